// SPDX-License-Identifier: Apache-2.0
//! What the shim reads from what coschedd publishes, against an array that says anything.
//! `root_oncpu.rs` has the real one.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::{c_program, job::text, root};
use std::{fs, path::Path, process::Command};

/// A line of shim/published.c, and what makes it wrong.
const MUTANTS: [(&str, &str); 5] = [
    ("cpu < COS_MAX_CPUS && ", ""),
    (">=\n\t\t\t       cos_self.slept_at_ns", ">= 0"),
    ("!published || !is_fresh()", "!published"),
    (" || is_anywhere(tid)", ""),
    ("is_map(fd)", "true"),
];

/// The files of a folder.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        if entry.path().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// What tests/shim/published.c complains about, and how it ended.
fn complaints(mutant: Option<(&str, &str)>) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    for room in ["shim", "abi", "policy", "tests/shim"] {
        copy(&root().join(room), &folder.path().join(room));
    }
    if let Some((from, to)) = mutant {
        let path = folder.path().join("shim/published.c");
        let source = fs::read_to_string(&path).unwrap();
        assert_eq!(source.matches(from).count(), 1, "{from}");
        fs::write(&path, source.replace(from, to)).unwrap();
    }
    let source = folder.path().join("tests/shim/published.c");
    // A mutant deserves its warnings.
    let flags = [
        "-O1",
        "-D_GNU_SOURCE",
        "-Wno-unused-function",
        "-Wno-type-limits",
    ];
    let output = Command::new(c_program(folder.path(), &source, &flags))
        .output()
        .unwrap();
    (output.status.success(), text(&output.stdout))
}

#[test]
fn the_shim_believes_what_is_of_now_and_nothing_else() {
    assert_eq!(complaints(None), (true, String::new()));
}

#[test]
fn each_part_is_needed() {
    for mutant in MUTANTS {
        let (right, said) = complaints(Some(mutant));
        assert!(!right, "{mutant:?} is not noticed: {said}");
    }
}
