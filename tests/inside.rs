// SPDX-License-Identifier: Apache-2.0
//! Checks that run inside a guest: a test's own program is started there again, with
//! one name in its environment, and runs a table of checks instead of booting. One
//! boot, and one load of the BPF programs, serve them all; each says by itself how it ended.

use crate::{c_program, guest, need, root};
use cosched_loader::{Body, Config};
use cosched_policy::Params;
use cosched_vm::Job;
use std::{
    env,
    io::{self, Read, Write},
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

/// Set inside: where the helpers of tests/guest lie.
const INSIDE: &str = "COSCHED_TEST_INSIDE";

/// How often vm_fail_open.rs kills, where that is not its own number.
pub const KILLS: &str = "COSCHED_KILLS";

/// For how many seconds vm_stress.rs stresses, where that is not its own number.
pub const STRESS: &str = "COSCHED_STRESS";

/// A check and its name. What it prints in lines that begin with `NOTE ` is shown at once.
pub type Check<T> = (&'static str, fn(&mut T));

/// Boots, and runs the calling test's program again with @test alone; all its checks must have passed.
/// Inside, @checks run on what @prepare gives.
pub fn checks<T>(test: &str, timeout: Duration, prepare: fn() -> T, checks: &[Check<T>]) {
    if is_inside() {
        return run_inside(prepare, checks);
    }
    let Some(guest) = need(test, guest()) else {
        return;
    };
    let (tools, job) = job(
        &["--exact", test, "--nocapture", "--test-threads=1"],
        timeout,
    );
    let given = [KILLS, STRESS].map(|name| (name, env::var(name)));
    let job = given
        .into_iter()
        .fold(job, |job, (name, value)| match value {
            Ok(value) => job.env(name, value),
            Err(_) => job,
        });
    let outcome = guest.run_into(&job, Notes::default(), io::sink());
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    drop(tools);
    let said = String::from_utf8_lossy(&outcome.stdout);
    let passed = said.matches("CHECK passed ").count();
    let whole = format!("{said}{}", String::from_utf8_lossy(&outcome.stderr));
    assert!(
        outcome.code == 0 && passed == checks.len(),
        "{passed} of {} checks passed:\n{whole}",
        checks.len()
    );
}

/// Shows notes as they come: of a long run they are its progress.
#[derive(Default)]
struct Notes(Vec<u8>);

impl Write for Notes {
    fn write(&mut self, said: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(said);
        while let Some(end) = self.0.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.0.drain(..=end).collect();
            if let Some((_, note)) = String::from_utf8_lossy(&line).split_once("NOTE ") {
                print!("{note}");
            }
        }
        Ok(said.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The number in the environment under @name, @or where there is none.
pub fn number_of(name: &str, or: u64) -> u64 {
    env::var(name).map_or(or, |text| text.parse().expect("a number"))
}

/// Whether this is the guest.
pub fn is_inside() -> bool {
    env::var_os(INSIDE).is_some()
}

/// This program again with @args, in a guest; the helpers of tests/guest lie in the folder.
pub fn job(args: &[&str], timeout: Duration) -> (TempDir, Job) {
    let tools = tempfile::tempdir().expect("a writable folder");
    for entry in root().join("tests/guest").read_dir().expect("it is there") {
        let source = entry.expect("readable").path();
        if source.extension().is_some_and(|kind| kind == "c") {
            c_program(tools.path(), &source, &["-O2"]);
        }
    }
    let job = Job::new(env::current_exe().expect("this program"))
        .args(args)
        .env(INSIDE, tools.path())
        .env("RUST_BACKTRACE", "0")
        .timeout(timeout);
    (tools, job)
}

fn run_inside<T>(prepare: fn() -> T, checks: &[Check<T>]) {
    let mut with = prepare();
    let mut failed = 0;
    for (name, check) in checks {
        match panic::catch_unwind(AssertUnwindSafe(|| check(&mut with))) {
            Ok(()) => println!("CHECK passed {name}"),
            Err(_) => {
                println!("CHECK failed {name}");
                failed += 1;
            }
        }
    }
    assert_eq!(failed, 0, "checks failed");
}

/// The kernel body as it is by default.
pub fn attach() -> Body {
    Body::attach(&Config::default(), false).unwrap_or_else(|error| panic!("{error}"))
}

/// What the kernel body takes of @preset.
pub fn params(preset: &str) -> Params {
    let bodies = [cosched_policy::Body::Kernel, cosched_policy::Body::Shim];
    let preset = cosched_policy::load(preset).expect("a preset of ours");
    let resolved = cosched_policy::resolve(&preset, &bodies).expect("the bodies answer it");
    resolved.params()
}

/// The program of tests/guest/NAME.c.
pub fn tool(name: &str) -> PathBuf {
    Path::new(&env::var_os(INSIDE).expect("we are inside")).join(name)
}

/// What @name with @args prints: numbers.
pub fn numbers(name: &str, args: &[&str]) -> Vec<u64> {
    let output = Command::new(tool(name))
        .args(args)
        .stdin(Stdio::null())
        .output();
    let output = output.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(output.status.success(), "{name}: {}", output.status);
    let text = String::from_utf8(output.stdout).expect("numbers");
    text.split_whitespace()
        .map(|word| word.parse().expect("a number"))
        .collect()
}

/// The most and the least of @shares, as their ratio in per cent.
pub fn spread(shares: &[u64]) -> u64 {
    let of = |share: Option<&u64>| *share.expect("there are shares");
    of(shares.iter().max()) * 100 / of(shares.iter().min()).max(1)
}

/// Hogs that end with it.
pub struct Hogs(Child);

impl Hogs {
    /// One on each of @cpus.
    pub fn on(cpus: &[&str]) -> Hogs {
        let mut hogs = Command::new(tool("hogs"));
        hogs.arg("0").args(cpus);
        let child = hogs.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        Hogs(child.unwrap_or_else(|error| panic!("hogs: {error}")))
    }

    /// Ends them; the CPU time of each, in ms.
    pub fn end(mut self) -> Vec<u64> {
        drop(self.0.stdin.take());
        let mut text = String::new();
        let mut out = self.0.stdout.take().expect("piped");
        out.read_to_string(&mut text).expect("numbers");
        self.0.wait().expect("our child");
        text.split_whitespace()
            .map(|word| word.parse().expect("a number"))
            .collect()
    }
}
