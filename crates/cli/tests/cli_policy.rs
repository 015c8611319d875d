// SPDX-License-Identifier: Apache-2.0
//! `cosched policy`: data on stdout, one line on stderr where it refuses, and
//! the exit code that says whose fault it is.

#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use assert_cmd::{assert::Assert, Command};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::{contains, is_empty, starts_with};
use std::fs;

fn policy(args: &[&str]) -> Assert {
    let mut command = Command::cargo_bin("cosched").unwrap();
    command.arg("policy").args(args).assert()
}

fn json(args: &[&str]) -> serde_json::Value {
    let assert = policy(args).code(0).stderr(is_empty());
    serde_json::from_slice(&assert.get_output().stdout).unwrap()
}

#[test]
fn lists_every_preset_the_default_first() {
    policy(&["list"])
        .code(0)
        .stdout(starts_with("PRESET").and(contains("implicit")));
    let list = json(&["list", "--json"]);
    assert_eq!(list[0]["name"], "auto");
    let presets = concat!(env!("CARGO_MANIFEST_DIR"), "/../../presets");
    let files = fs::read_dir(presets).unwrap().count() - 1; // and the README
    assert_eq!(list.as_array().unwrap().len(), files);
}

#[test]
fn shows_who_answers_what_with_units() {
    let show = json(&["show", "spin_block:50us", "--json"]);
    let wait = &show["questions"][0];
    assert_eq!(wait["question"], "wait");
    assert_eq!(wait["owner"], "shim");
    assert_eq!(wait["parameters"]["spin"], "50us");
    assert_eq!(show["questions"].as_array().unwrap().len(), 7);
    policy(&["show", "auto"])
        .code(0)
        .stdout(contains("(no body here gives boost)"));
}

#[test]
fn shows_what_cannot_run_here_and_says_what_is_missing() {
    policy(&["show", "dcs-spin"])
        .code(0)
        .stdout(contains("(the kernel is not present here)"));
    let show = json(&["show", "dcs-spin", "--json"]);
    let arrival = &show["questions"][1];
    assert_eq!(arrival["answer"], "boost");
    assert_eq!(arrival["owner"], "kernel");
    assert_eq!(arrival["present"], false);
    policy(&["list"]).stdout(contains("NEEDS").and(contains("kernel")));
}

#[test]
fn what_it_prints_as_toml_is_a_preset_that_checks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let shown = policy(&["show", "auto", "--toml"]).code(0);
    fs::write(&file, &shown.get_output().stdout).unwrap();
    let mut check = Command::cargo_bin("cosched").unwrap();
    check.current_dir(folder.path());
    let checked = check
        .args(["policy", "check", "mine.toml", "--json"])
        .assert();
    let checked: serde_json::Value =
        serde_json::from_slice(&checked.code(0).get_output().stdout).unwrap();
    assert_eq!(checked, json(&["show", "auto", "--json"]));
}

#[test]
fn a_wrong_policy_is_the_users_fault_and_a_missing_body_the_machines() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let file = file.to_str().unwrap();
    let shown = policy(&["show", "uncoordinated", "--toml"]);
    let good = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    let cases = [
        (
            "order = \"local\"",
            "ordr = \"local\"",
            2,
            "ordr: unknown key: did you mean \"order\"?",
        ),
        (
            "arrival = \"none\"",
            "arrival = \"boost\"",
            3,
            "arrival: no present body answers boost: it is the kernel's, and",
        ),
    ];
    for (from, to, code, line) in cases {
        fs::write(file, good.replacen(from, to, 1)).unwrap();
        let refused = policy(&["check", file]).code(code).stdout(is_empty());
        let refused = refused.stderr(starts_with("cosched: ").and(contains(line)));
        let stderr = &refused.get_output().stderr;
        assert_eq!(stderr.iter().filter(|c| **c == b'\n').count(), 1);
    }
    policy(&["show", "implict"])
        .code(2)
        .stderr(contains("did you mean \"implicit\"?"));
    policy(&["check", "/nowhere/x.toml"]).code(2);
    policy(&["frobnicate"]).code(2);
}
