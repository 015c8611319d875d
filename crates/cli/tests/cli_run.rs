// SPDX-License-Identifier: Apache-2.0
//! `cosched run` is invisible: what the command prints, sees and ends with is
//! its own, and nothing is left behind. No MPI is needed here.

#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

mod cli;

use cli::Install;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::{contains, is_empty};
use std::{fs, os::unix::fs::PermissionsExt, os::unix::process::ExitStatusExt};

#[test]
fn passes_output_and_exit_code_through() {
    let install = Install::new();
    let run = install.run_sh("echo out; echo err >&2; exit 7").assert();
    run.code(7).stdout("out\n").stderr("err\n");
}

#[test]
fn dies_by_the_signal_that_its_command_died_by() {
    for signal in [9, 15, 11, 2] {
        let install = Install::new();
        let status = install
            .std()
            .args(["run", "--", "sh", "-c", &format!("kill -{signal} $$")])
            .status()
            .unwrap();
        assert_eq!(status.signal(), Some(signal));
        assert_eq!(install.keepers().len(), 0);
    }
}

#[test]
fn exits_as_a_shell_where_the_command_does_not_start() {
    let install = Install::new();
    let file = install.path().join("data");
    fs::write(&file, "").unwrap();
    for off in ["off", "on"] {
        let mut missing = install.cosched();
        let missing = missing
            .env("COSCHED", off)
            .args(["run", "--", "no-such-command"])
            .assert();
        missing
            .code(127)
            .stderr(contains("cannot start no-such-command"));
        let mut data = install.cosched();
        data.env("COSCHED", off)
            .args(["run", "--"])
            .arg(&file)
            .assert()
            .code(126);
    }
    assert_eq!(install.keepers().len(), 0);
}

#[test]
fn runs_a_script_without_an_interpreter_line() {
    let install = Install::new();
    let script = install.path().join("script");
    fs::write(&script, "echo hello\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    install
        .cosched()
        .args(["run", "--"])
        .arg(&script)
        .assert()
        .code(0)
        .stdout("hello\n");
}

#[test]
fn gives_the_command_what_ranks_need() {
    let install = Install::new();
    let script = "test -S $COSCHED_KEEPER && test -x $COSCHED_EXE && echo $LD_PRELOAD $COSCHED_SLICE_US ${#COSCHED_PARAMS}";
    let run = install
        .run_sh(script)
        .env("LD_PRELOAD", "libm.so.6")
        .assert();
    run.code(0).stdout(contains(":libm.so.6 100 848"));
    let mut off = install.cosched();
    let off = off
        .args([
            "run",
            "--slice=off",
            "--",
            "sh",
            "-c",
            "echo $COSCHED_SLICE_US",
        ])
        .assert();
    off.stdout("0\n");
}

#[test]
fn does_nothing_where_it_is_switched_off() {
    let install = Install::without_shim();
    let run = install
        .run_sh("env | grep -E 'COSCHED_|LD_PRELOAD'; exit 3")
        .env("COSCHED", "off")
        .assert();
    run.code(3).stdout(is_empty()).stderr(is_empty());
}

#[test]
fn removes_its_directory() {
    let install = Install::new();
    let script = "stat -c %a ${COSCHED_KEEPER%/*}";
    install.run_sh(script).assert().code(0).stdout("700\n");
    assert_eq!(install.keepers().len(), 0);
}

#[test]
fn leaves_limits_and_ignored_signals_as_they_were() {
    let install = Install::new();
    let exe = install.exe();
    let line = format!(
        "trap '' HUP; ulimit -Sn 300; {} run -- sh -c 'kill -HUP $$; ulimit -Sn'",
        exe.display()
    );
    assert_cmd::Command::new("sh")
        .args(["-c", &line])
        .assert()
        .code(0)
        .stdout("300\n");
}

#[test]
fn runs_without_cosched_where_it_cannot_have_a_page() {
    let install = Install::new();
    for limit in ["ulimit -f 0", "ulimit -n 6"] {
        let line = format!(
            "{limit}; exec {} run -- sh -c 'echo ${{COSCHED_KEEPER:-none}}'",
            install.exe().display()
        );
        let run = assert_cmd::Command::new("sh")
            .args(["-c", &line])
            .assert()
            .code(0)
            .stdout("none\n");
        run.stderr(contains("running the command without cosched"));
    }
}

#[test]
fn says_what_is_wrong_before_the_command_runs() {
    let install = Install::new();
    for (args, code, words) in [
        (vec!["frobnicate"], 2, "frobnicate"),
        (vec!["run", "--policy", "autp", "--", "echo"], 2, "autp"),
        (vec!["run", "--slice", "1s", "--", "echo"], 2, "100us"),
        (vec!["run", "--report=xml", "--", "echo"], 2, "json"),
        (
            vec!["run", "--report-to", "/no/such/dir/r", "--", "echo"],
            2,
            "/no/such/dir/r",
        ),
        (
            vec!["run", "--alone", "3s", "--", "echo"],
            2,
            "--competitors",
        ),
        (vec!["run"], 2, "CMD"),
    ] {
        install
            .cosched()
            .args(&args)
            .assert()
            .code(code)
            .stdout(is_empty())
            .stderr(contains(words));
    }
}

#[test]
fn says_where_it_looks_for_the_shim() {
    let install = Install::without_shim();
    let run = install
        .run_sh("echo ran")
        .assert()
        .code(3)
        .stdout(is_empty());
    run.stderr(contains("libcosched.so").and(contains("COSCHED_SHIM")));

    let dir = install.path().join("a b");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("libcosched.so"), "").unwrap();
    let run = install
        .run_sh("echo ran")
        .env("COSCHED_SHIM", dir.join("libcosched.so"))
        .assert();
    run.code(3).stderr(contains("blank or a colon"));
}

#[test]
fn reports_on_stderr_or_into_a_file() {
    let install = Install::new();
    let mut text = install.cosched();
    let text = text
        .args(["run", "--report", "--", "echo", "hi"])
        .assert()
        .code(0)
        .stdout("hi\n");
    text.stderr(contains("Verdict: no MPI rank"));

    let file = install.path().join("r.json");
    let mut json = install.cosched();
    json.args(["run", "--report=json", "--report-to"])
        .arg(&file)
        .args(["--", "echo", "hi"]);
    json.assert().code(0).stdout("hi\n").stderr(is_empty());
    let report: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(report["ranks"], serde_json::json!([]));
    assert_eq!(report["policy"]["name"], "auto");
}

#[test]
fn without_the_shim_it_needs_coschedd() {
    let install = Install::new();
    let mut run = install.cosched();
    run.env("COSCHED_DAEMON", "off");
    let run = run.args(["run", "--no-shim", "--", "true"]).assert();
    run.code(3)
        .stderr(contains("--no-shim").and(contains("coschedd")));
}
