// SPDX-License-Identifier: Apache-2.0
//! Signals reach the command as if cosched were not there.

#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

mod cli;

use cli::{wait_for, Install};
use rustix::process::{kill_process, kill_process_group, Pid, Signal};
use std::{
    fs,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, Command},
};

/// Starts `cosched run -- sh -c 'PREPARE; SCRIPT'` in a process group of its own, as a
/// shell does, and waits until PREPARE is over.
fn start(install: &Install, prepare: &str, script: &str) -> Child {
    let ready = install.path().join("ready");
    let script = format!(
        "{prepare}; echo $$ > {0}.new; mv {0}.new {0}; {script}",
        ready.display()
    );
    let child = install
        .std()
        .args(["run", "--", "sh", "-c", &script])
        .process_group(0)
        .spawn()
        .unwrap();
    wait_for("the command", || ready.exists());
    child
}

fn send(to: &Child, signal: Signal) {
    kill_process(Pid::from_child(to), signal).unwrap();
}

fn command_of(install: &Install) -> Pid {
    let text = fs::read_to_string(install.path().join("ready")).unwrap();
    Pid::from_raw(text.trim().parse().unwrap()).unwrap()
}

fn is_stopped(pid: Pid) -> bool {
    let stat =
        fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| rest.trim_start().starts_with('T'))
}

#[test]
fn passes_on_what_was_sent_to_it_alone() {
    for (signal, number) in [
        (Signal::HUP, 1),
        (Signal::INT, 2),
        (Signal::QUIT, 3),
        (Signal::TERM, 15),
        (Signal::USR1, 10),
        (Signal::USR2, 12),
    ] {
        let install = Install::new();
        let code = 40 + number;
        let prepare = format!("trap 'exit {code}' {number}");
        let mut child = start(&install, &prepare, "while :; do sleep 0.02; done");
        send(&child, signal);
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(install.keepers().len(), 0);
    }
}

#[test]
fn an_interrupt_of_the_whole_group_ends_both_and_cleans_up() {
    let install = Install::new();
    let mut child = start(&install, ":", "exec sleep 30");
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    assert_eq!(install.keepers().len(), 0);
}

#[test]
fn outlives_a_command_that_ignores_the_interrupt() {
    let install = Install::new();
    let mut child = start(&install, "trap '' INT", "sleep 0.3; exit 5");
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn stops_and_continues_with_its_command() {
    let install = Install::new();
    let mut child = start(&install, ":", "exec sleep 0.5");
    let (outer, inner) = (Pid::from_child(&child), command_of(&install));
    send(&child, Signal::TSTP);
    wait_for("both to stop", || is_stopped(outer) && is_stopped(inner));
    send(&child, Signal::CONT);
    wait_for("both to continue", || {
        !is_stopped(outer) && !is_stopped(inner)
    });
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn is_not_stopped_by_who_stops_only_the_command() {
    let install = Install::new();
    let mut child = start(&install, ":", "exec sleep 0.3");
    let inner = command_of(&install);
    kill_process(inner, Signal::STOP).unwrap();
    wait_for("the command to stop", || is_stopped(inner));
    kill_process(inner, Signal::CONT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_killed_cosched_leaves_the_job_alone_and_the_next_one_sweeps() {
    let install = Install::new();
    let done = install.path().join("done");
    let mut child = start(
        &install,
        ":",
        &format!("sleep 0.3; touch {}", done.display()),
    );
    send(&child, Signal::KILL);
    child.wait().unwrap();
    wait_for("the job to go on", || done.exists());

    let left = install.keepers();
    assert_eq!(left.len(), 1);
    install.run_sh("true").assert().success();
    assert_eq!(
        install.keepers(),
        left,
        "a young directory may have a keeper"
    );
    let aged = Command::new("touch")
        .args(["-d", "5 minutes ago"])
        .arg(&left[0])
        .status()
        .unwrap();
    assert!(aged.success());
    install.run_sh("true").assert().success();
    assert_eq!(install.keepers().len(), 0);
}
