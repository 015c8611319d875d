// SPDX-License-Identifier: Apache-2.0
//! Test: everything that can go red. Checks the source, fetches the newer MPIs and
//! the kernel of guests (once; where that fails their tests are skipped), builds, runs the tests of the whole
//! workspace, and counts what their own output says: suites are named as cargo names
//! them, a test that this machine cannot run says `SKIPPED name: reason`. Under
//! CI=true a skipped test is a failure. The last line on stdout is `N passed, N failed,
//! N skipped`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use anyhow::{bail, Context, Result};

use crate::tree::{cargo, Tree};
use crate::{build, check, mpis, vm};

/// What the suites said so far.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    /// Name and result line of each suite, in order.
    suites: Vec<(String, String)>,
    /// The suite that is running.
    current: String,
    /// `name: reason` of each skipped test.
    skipped: Vec<String>,
    passed: usize,
    failed: usize,
    ignored: usize,
}

impl Tally {
    /// Takes one line of cargo's or a suite's output.
    fn take(&mut self, line: &str) {
        let trimmed = line.trim();
        if let Some(what) = trimmed.strip_prefix("Running ") {
            self.current = suite_name(what);
        }
        if let Some(name) = trimmed.strip_prefix("Doc-tests ") {
            self.current = format!("{name} (documentation)");
        }
        if let Some((_, what)) = trimmed.split_once("SKIPPED ") {
            self.skipped.push(what.to_owned());
        }
        if let Some(result) = trimmed.strip_prefix("test result: ") {
            self.passed += count(result, " passed");
            self.failed += count(result, " failed");
            self.ignored += count(result, " ignored");
            self.suites
                .push((std::mem::take(&mut self.current), result.to_owned()));
        }
    }

    fn nr_skipped(&self) -> usize {
        self.skipped.len() + self.ignored
    }

    /// Suites, skipped tests, and the closing line.
    fn print(&self) {
        println!();
        for (name, result) in &self.suites {
            println!("{name}: {result}");
        }
        for what in &self.skipped {
            println!("SKIPPED {what}");
        }
        // A test that skips itself counts as passed in its suite's own line.
        let passed = self.passed.saturating_sub(self.skipped.len());
        println!(
            "{passed} passed, {} failed, {} skipped",
            self.failed,
            self.nr_skipped()
        );
    }
}

/// `unittests src/lib.rs (target/release/deps/cosched_model-0123)` is
/// `cosched_model (src/lib.rs)`: the path alone is the same in many crates.
fn suite_name(what: &str) -> String {
    let what = what.trim_start_matches("unittests ");
    let (path, program) = what.split_once(" (").unwrap_or((what, ""));
    let file = program
        .trim_end_matches(')')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    match file.rsplit_once('-') {
        Some((name, _hash)) => format!("{name} ({path})"),
        None => path.to_owned(),
    }
}

/// The number before `what` in `ok. 3 passed; 0 failed; ...`.
fn count(result: &str, what: &str) -> usize {
    let before = result.split(what).next().unwrap_or_default();
    let digits = before.rsplit(' ').next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

/// Check, fetch, build, test.
pub fn all(tree: &Tree) -> Result<()> {
    let mut tally = Tally::default();
    if let Err(error) = check::all(tree) {
        eprintln!("xtask: check: {error:#}");
        tally
            .suites
            .push(("check".into(), format!("FAILED. {error:#}")));
        tally.failed += 1;
    }
    if let Err(error) = mpis::all(tree, &mpis::SUITES.map(str::to_owned)) {
        eprintln!("xtask: {error:#}; tests of newer MPIs will be skipped");
    }
    if let Err(error) = vm::prepare(tree) {
        eprintln!("xtask: {error:#}; tests in guests will be skipped");
    }
    build::all(tree)?;
    run_suites(&mut tally)?;
    tally.print();
    if tally.failed > 0 {
        bail!("{} test(s) failed", tally.failed);
    }
    if tally.nr_skipped() > 0 && std::env::var_os("CI").is_some_and(|ci| ci == "true") {
        bail!(
            "{} test(s) skipped, which CI=true forbids; see SKIPPED above",
            tally.nr_skipped()
        );
    }
    Ok(())
}

/// `cargo test`, shown as it comes; stdout and stderr as one stream, since
/// cargo names a suite on the one and the suite reports on the other.
fn run_suites(tally: &mut Tally) -> Result<()> {
    let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
    let mut cargo = cargo();
    cargo.args(["test", "--workspace", "--release", "--no-fail-fast"]);
    cargo.env("CARGO_TERM_COLOR", "never").stdin(Stdio::null());
    cargo
        .stdout(writer.try_clone().context("cannot copy a pipe")?)
        .stderr(writer);
    let mut child = cargo.spawn().context("cannot start cargo test")?;
    drop(cargo); // and with it our ends of the pipe
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.context("cannot read what cargo test says")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        tally.take(&line);
    }
    let status = child.wait().context("cargo test")?;
    if !status.success() && tally.failed == 0 {
        // A suite that did not build, or died without a result.
        tally
            .suites
            .push(("cargo test".into(), format!("FAILED. {status}")));
        tally.failed += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
     Running unittests src/main.rs (target/release/deps/cosched-1)
test a ... ok
test result: ok. 12 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.1s
     Running tests/root_differential.rs (target/release/deps/root-2)
SKIPPED native_is_bpf: not root
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.0s
   Doc-tests cosched_model
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.0s
";

    #[test]
    fn counts_come_from_the_suites_own_lines() {
        let mut tally = Tally::default();
        OUTPUT.lines().for_each(|line| tally.take(line));
        assert_eq!((tally.passed, tally.failed, tally.ignored), (16, 1, 2));
        assert_eq!(tally.nr_skipped(), 3);
        assert_eq!(tally.skipped, ["native_is_bpf: not root"]);
        let names: Vec<_> = tally.suites.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "cosched (src/main.rs)",
                "root (tests/root_differential.rs)",
                "cosched_model (documentation)"
            ]
        );
    }

    #[test]
    fn a_line_that_is_no_result_counts_nothing() {
        let mut tally = Tally::default();
        tally.take("warning: 3 passed on the way");
        assert_eq!(tally, Tally::default());
    }
}
