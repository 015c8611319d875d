// SPDX-License-Identifier: Apache-2.0
//! docs/how-to.md shows how to add an answer. Its very text is applied here to a copy of the
//! sources; that must compile natively, for BPF and as Rust, the answer must say what the
//! text says, and keep every law.

use crate::policy::{params, Of, Policy};
use crate::{mutants, LAWS};
use cosched_policy::native::{Obs, Verdict};
use cosched_policy::raw;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The number of the answer that the text adds.
const SHARE: u32 = raw::COS_NR_QUANTUM_ANSWERS;

/// What of the sources the crate needs to be built by itself.
const NEEDED: &[&str] = &[
    "Cargo.lock",
    "abi",
    "crates/model",
    "crates/policy",
    "docs/reference.md",
    "policy",
    "presets",
];

/// A place where the text changes a file.
struct Hunk {
    file: String,
    from: String,
    to: String,
}

/// The hunks of the one fence of `diff`; what follows `@@` is for people.
fn hunks(page: &str) -> Vec<Hunk> {
    let fence = page.split("```diff\n").nth(1).expect("a fence of diff");
    let fence = fence.split("```").next().expect("its end");
    let (mut hunks, mut file) = (Vec::<Hunk>::new(), "");
    for line in fence.lines() {
        if let Some(path) = line.strip_prefix("+++ b/") {
            file = path;
        } else if line.starts_with("@@") {
            let (file, from, to) = (file.to_owned(), String::new(), String::new());
            hunks.push(Hunk { file, from, to });
        } else if !line.starts_with("--- a/") {
            add(hunks.last_mut().expect("@@ comes first"), line);
        }
    }
    hunks
}

fn add(hunk: &mut Hunk, line: &str) {
    let (sign, text) = line.split_at_checked(1).unwrap_or((" ", ""));
    if sign != "+" {
        hunk.from += &format!("{text}\n");
    }
    if sign != "-" {
        hunk.to += &format!("{text}\n");
    }
}

fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
        return;
    }
    for entry in fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        copy(&from.join(&name), &to.join(&name));
    }
}

/// A workspace of this crate and the one below it, without the crates that only tests use.
fn workspace(folder: &Path) {
    let whole = fs::read_to_string(mutants::top().join("Cargo.toml")).unwrap();
    let members = whole
        .lines()
        .find(|line| line.starts_with("members"))
        .unwrap();
    let fewer = "members = [\"crates/model\", \"crates/policy\"]";
    fs::write(folder.join("Cargo.toml"), whole.replace(members, fewer)).unwrap();
    let manifest = folder.join("crates/policy/Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    let (before, rest) = text.split_once("[dev-dependencies]").unwrap();
    let (_, build) = rest.split_once("[build-dependencies]").unwrap();
    let (build, _) = build.split_once("[[bench]]").unwrap();
    fs::write(manifest, format!("{before}[build-dependencies]{build}")).unwrap();
}

/// The sources with the text applied: each hunk must be there exactly once.
fn applied(page: &str, folder: &Path) {
    for path in NEEDED {
        copy(&mutants::top().join(path), &folder.join(path));
    }
    workspace(folder);
    let hunks = hunks(page);
    assert_eq!(hunks.len(), 5, "docs/how-to.md");
    for Hunk { file, from, to } in hunks {
        let path = folder.join(&file);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            text.matches(&from).count(),
            1,
            "docs/how-to.md, {file}:\n{from}"
        );
        fs::write(path, text.replace(&from, &to)).unwrap();
    }
}

/// Fails with what the tool says.
fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}:\n{said}");
}

fn policy(folder: &Path) -> Policy {
    let warnings = ["-Wall", "-Wextra", "-Werror"];
    mutants::build(&folder.join("policy"), &warnings)
}

fn asked(policy: &Policy, known: u32) -> Verdict {
    let cycle_ns = 20_000_000;
    let obs = Obs {
        known,
        nr_runnable: 4,
        ..Obs::default()
    };
    policy.ask_fresh(
        Of::Quantum,
        &params(raw::COS_Q_QUANTUM, SHARE, &[cycle_ns]),
        &obs,
    )
}

fn page() -> String {
    fs::read_to_string(mutants::top().join("docs/how-to.md")).unwrap()
}

#[test]
fn the_answer_of_the_how_to_says_what_it_should_and_keeps_every_law() {
    let folder = tempfile::tempdir().unwrap();
    applied(&page(), folder.path());
    let policy = policy(folder.path());
    let verdict = asked(&policy, raw::COS_F_NR_RUNNABLE);
    assert_eq!(
        (verdict.act, verdict.slice_ns),
        (raw::COS_ACT_NONE, 5_000_000)
    );
    let verdict = asked(&policy, 0);
    assert_eq!(
        (verdict.reason, verdict.slice_ns),
        (raw::COS_WHY_UNKNOWN, 0)
    );
    assert_eq!(asked(&Policy::native(), raw::COS_F_NR_RUNNABLE).slice_ns, 0);
    for (name, law) in LAWS {
        assert_eq!(law(&policy), Ok(()), "{name}");
    }
}

#[test]
fn the_answer_of_the_how_to_compiles_for_the_kernel() {
    let folder = tempfile::tempdir().unwrap();
    applied(&page(), folder.path());
    run(Command::new("clang")
        .args([
            "-target", "bpf", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror",
        ])
        .args(["-x", "c", "-c", "policy/policy.h", "-o", "policy.o"])
        .current_dir(folder.path()));
}

/// In a folder that stays, so that only the first time takes long.
#[test]
fn the_table_and_the_reference_of_the_how_to_agree_with_the_enum() {
    let kept = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("how-to");
    let folder = tempfile::tempdir().unwrap();
    applied(&page(), folder.path());
    run(Command::new(env!("CARGO"))
        .args([
            "test",
            "--offline",
            "--quiet",
            "--lib",
            "-p",
            "cosched-policy",
        ])
        .env("CARGO_TARGET_DIR", kept)
        .current_dir(folder.path()));
    let reference = fs::read_to_string(folder.path().join("docs/reference.md")).unwrap();
    assert!(reference.contains("`share` | kernel, simulator |"));
}
