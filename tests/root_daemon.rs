// SPDX-License-Identifier: Apache-2.0
//! coschedd as it is installed, on this machine: it says that it only observes where
//! it was told to, serves several users and refuses what is not theirs, and leaves
//! nothing behind, killed or told to end, but what the next one replaces.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::{
    job::{built, installation_of, text, turn, NOBODY},
    need,
    observer::{coschedd, Daemon},
    superuser,
};
use libbpf_rs::query::ProgInfoIter;
use serde_json::Value;
use std::{
    ffi::OsStr,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

/// Something of ours that sleeps.
struct Sleeper(Child);

impl Sleeper {
    fn of(uid: u32) -> Sleeper {
        let mut command = Command::new("sleep");
        Sleeper(command.arg("60").uid(uid).gid(uid).spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Programs of the kernel body that are in the kernel.
fn nr_programs() -> usize {
    let ours = |name: &OsStr| name == "list_members";
    let all = ProgInfoIter::default();
    all.filter(|info| ours(OsStr::new(info.name.to_str().unwrap_or_default())))
        .count()
}

fn is_one_line(output: &Output, code: i32, says: &str) {
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{line}");
    assert!(line.contains(says) && line.lines().count() == 1, "{line}");
}

#[test]
fn an_observer_says_so_and_leaves_nothing() {
    let test = "root_daemon::an_observer_says_so_and_leaves_nothing";
    if need(test, superuser()).is_none() {
        return;
    }
    let _turn = turn();
    let before = nr_programs();
    let mut daemon = Daemon::start();
    assert_eq!(nr_programs(), before + 1);
    let said = text(&daemon.ask(["status"]).stdout);
    assert!(
        said.contains("observes only: told to only observe"),
        "{said}"
    );
    assert!(said.contains("switches"), "{said}");
    // Asking is a message too.
    daemon.wait_for("something that was seen", || {
        let status = daemon.json(["status", "--json"]);
        let counts = status["counts"].as_array().unwrap();
        counts
            .iter()
            .any(|count| count["value"].as_u64().unwrap() > 0)
    });
    let config = text(&daemon.ask(["status", "--config"]).stdout);
    assert!(
        config.contains("scheduler.observe_only") && config.contains("flag"),
        "{config}"
    );

    let second = coschedd(daemon.dir.path())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    is_one_line(
        &second,
        3,
        &format!("runs already, pid {}", daemon.child.id()),
    );

    assert_eq!(daemon.signal(rustix::process::Signal::TERM).code(), Some(0));
    assert!(!daemon.socket().exists());
    daemon.wait_for("the programs to go", || nr_programs() == before);
    is_one_line(&daemon.ask(["status"]), 3, "no coschedd listens");
}

#[test]
fn killed_it_leaves_a_socket_that_the_next_one_replaces() {
    let test = "root_daemon::killed_it_leaves_a_socket_that_the_next_one_replaces";
    if need(test, superuser()).is_none() {
        return;
    }
    let _turn = turn();
    let before = nr_programs();
    let mut daemon = Daemon::start();
    assert_eq!(
        daemon.signal(rustix::process::Signal::KILL).signal(),
        Some(9)
    );
    assert!(daemon.socket().exists());
    daemon.wait_for("the programs to go", || nr_programs() == before);
    let left = std::fs::read_dir(daemon.dir.path()).unwrap().count();
    assert_eq!(left, 1, "the socket alone");
    let dir = std::mem::replace(&mut daemon.dir, tempfile::tempdir().unwrap());
    Daemon::start_in(dir);
}

#[test]
fn a_command_is_a_job_from_its_first_instruction_to_its_end() {
    let test = "root_daemon::a_command_is_a_job_from_its_first_instruction_to_its_end";
    if need(test, superuser()).is_none() {
        return;
    }
    let _turn = turn();
    let daemon = Daemon::start();
    let script = r#""$0" jobs --json; (sleep 0.1 & sleep 0.1; wait)"#;
    let report = daemon.dir.path().join("report.json");
    let mut run = daemon.cosched(["run", "--report=json", "--report-to"]);
    run.arg(&report)
        .args(["--", "sh", "-c", script])
        .arg(built("cosched"));
    let output = run.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let during: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(during["jobs"][0]["name"], "sh", "{during}");
    assert!(during["nr_ranks"].as_u64().unwrap() >= 2, "{during}");
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    let ledger = &report["kernel"]["ledger"];
    assert!(ledger["nr_joined"].as_u64().unwrap() >= 4, "{ledger}");
    assert!(ledger["ran_ns"].as_u64().unwrap() > 0, "{ledger}");
    daemon.wait_for("the end of the job", || {
        daemon.json(["jobs", "--json"])["jobs"]
            .as_array()
            .unwrap()
            .is_empty()
    });

    let mut alone = daemon.cosched(["run", "--no-daemon", "--", "sh", "-c", script]);
    let output = alone.arg(built("cosched")).output().unwrap();
    let during: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(during["jobs"].as_array().unwrap().is_empty(), "{during}");
}

#[test]
fn users_have_their_own_processes_and_jobs_and_no_others() {
    let test = "root_daemon::users_have_their_own_processes_and_jobs_and_no_others";
    if need(test, superuser()).is_none() {
        return;
    }
    let _turn = turn();
    let daemon = Daemon::start();
    let home = installation_of(NOBODY);
    let as_user = |uid: u32, args: &[&str]| {
        let mut command = Command::new(home.path().join("cosched"));
        command.args(args).env("COSCHED_SOCKET", daemon.socket());
        command.uid(uid).gid(NOBODY).output().unwrap()
    };
    let (theirs, roots) = (Sleeper::of(NOBODY), Sleeper::of(0));
    is_one_line(
        &as_user(NOBODY, &["adopt", "--pid", &roots.pid()]),
        2,
        "is not yours",
    );
    let staticq = ["adopt", "--policy", "local-block", "--pid", &theirs.pid()];
    is_one_line(&as_user(NOBODY, &staticq), 2, "users.presets");
    let adopted = as_user(NOBODY, &["adopt", "--pid", &theirs.pid()]);
    assert_eq!(
        text(&adopted.stdout),
        "job 1: wait: as it does by itself (program)\n"
    );

    let other = NOBODY + 1;
    is_one_line(&as_user(other, &["end", "1"]), 2, "no job 1 of yours");
    let seen = text(&as_user(other, &["jobs"]).stdout);
    assert!(seen.contains("1 of other users"), "{seen}");
    let all = daemon.json(["jobs", "--json"]);
    assert_eq!(all["jobs"][0]["uid"], NOBODY, "{all}");

    is_one_line(
        &as_user(NOBODY, &["switch", "1", "dcs-spin"]),
        3,
        "no present body answers boost",
    );
    assert!(as_user(NOBODY, &["end", "1"]).status.success());
    let dead = theirs.pid();
    drop(theirs);
    is_one_line(
        &as_user(NOBODY, &["adopt", "--pid", &dead]),
        2,
        "no process",
    );
}

#[test]
fn a_cgroup_is_a_job_with_whoever_comes_later() {
    let test = "root_daemon::a_cgroup_is_a_job_with_whoever_comes_later";
    let Some(top) = need(
        test,
        superuser().map_err(str::to_owned).and_then(|()| cgroups()),
    ) else {
        return;
    };
    let _turn = turn();
    let daemon = Daemon::start();
    let group = top.join(format!("cosched-test-{}", std::process::id()));
    std::fs::create_dir(&group).unwrap();
    let (first, later) = (Sleeper::of(0), Sleeper::of(0));
    let enter = |pid: String| std::fs::write(group.join("cgroup.procs"), pid).unwrap();
    enter(first.pid());
    let path = group.to_str().unwrap();
    let adopted = daemon.ask(["adopt", "--cgroup", path]);
    assert!(adopted.status.success(), "{}", text(&adopted.stderr));
    let nr_ranks = || {
        daemon.json(["jobs", "--json"])["nr_ranks"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(nr_ranks(), 1);
    enter(later.pid());
    daemon.wait_for("who came later", || nr_ranks() == 2);
    drop((first, later));
    daemon.wait_for("the end of the job", || nr_ranks() == 0);
    let jobs = || daemon.json(["jobs", "--json"]);
    daemon.wait_for("its end", || jobs()["jobs"].as_array().unwrap().is_empty());
    std::fs::remove_dir(&group).unwrap();
    is_one_line(
        &daemon.ask(["adopt", "--cgroup", "/tmp"]),
        3,
        "neither a pidfd nor a cgroup",
    );
}

/// Where cgroups of version 2 are.
fn cgroups() -> Result<PathBuf, String> {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mut lines = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let found = lines.find(|words| words.get(2) == Some(&"cgroup2"));
    let found = found.map(|words| PathBuf::from(words[1]));
    found.ok_or_else(|| "no cgroups of version 2".to_owned())
}
