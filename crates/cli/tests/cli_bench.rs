// SPDX-License-Identifier: Apache-2.0
//! `cosched bench` from its command line to its table, samples and exit codes. No MPI is needed:
//! the job is a shell command, and a script that claims a share stands in for calcula.

#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

mod cli;

use cli::{wait_for, Install};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Stdio};

/// A share of one half at any level of competition.
const CALCULA: &str = "#!/bin/sh\nsleep 0.05\necho '{\"elapsed_s\":2.0,\"cpu_s\":1.0}'\n";
const JOB: &str = "echo '{\"elapsed_s\":2.0,\"cpu_s\":0.9}'";

/// One run alone.
const QUICK: [&str; 5] = ["--quick", "--arms", "stock", "--competitors", "0"];

struct Bench {
    install: Install,
}

impl Bench {
    fn new() -> Self {
        let install = Install::new();
        let bench = Self { install };
        bench.workload("calcula", CALCULA);
        bench
    }

    /// A script in the place of a workload.
    fn workload(&self, name: &str, script: &str) {
        let dir = self.install.path().join("workloads/openmpi");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(name), script).unwrap();
        fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn csv(&self) -> PathBuf {
        self.install.path().join("samples.csv")
    }

    /// Whatever else runs here disturbs nobody.
    fn command(&self, options: &[&str]) -> assert_cmd::Command {
        let mut command = self.install.cosched();
        command
            .args(["bench", "--mpi", "none", "--max-foreign", "100%", "--csv"])
            .arg(self.csv())
            .args(options);
        command
    }
}

fn rows(bench: &Bench) -> usize {
    fs::read_to_string(bench.csv()).map_or(0, |text| text.lines().count())
}

#[test]
fn prints_json_and_keeps_every_sample() {
    let bench = Bench::new();
    let options = [
        "--json",
        "--arms",
        "stock",
        "--competitors",
        "0,1",
        "--repeats",
        "2",
    ];
    let run = bench
        .command(&options)
        .args(["--", "sh", "-c", JOB])
        .assert()
        .code(0);
    let all: serde_json::Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(all["fair"]["job"]["time_s"], 2.0);
    let line = &all["lines"][1];
    assert_eq!((&line["hogs"], &line["nr_runs"]), (&1.into(), &2.into()));
    let fairness = line["fairness"]["median"]["value"].as_f64().unwrap();
    assert!((fairness - 0.9).abs() < 1e-9);
    assert!(line["hog_work"].as_f64().is_some());
    // Two levels twice under the arm, two probes of each, and the header.
    assert_eq!(rows(&bench), 9);
}

#[test]
fn a_failed_arm_is_told_and_is_exit_1() {
    let bench = Bench::new();
    let job = ["--", "sh", "-c", "echo broken >&2; exit 9"];
    let run = bench.command(&QUICK).args(job).assert();
    run.code(1).stdout(contains(
        "failed: stock at 0 hogs/CPU: job ended with exit code 9: broken",
    ));
}

#[test]
fn a_late_run_is_ended_and_is_a_bound() {
    let bench = Bench::new();
    let late = ["--timeout", "300ms", "--", "sleep", "60"];
    let run = bench.command(&QUICK).args(late).assert();
    run.code(0)
        .stdout(contains("1 late").and(contains("> 0.3")));
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_runs() {
    let bench = Bench::new();
    for (options, line) in [
        (
            vec!["--arms", "yield", "--", "true"],
            "a setting of Open MPI",
        ),
        (
            vec!["--arms", "nosuch", "--", "true"],
            "no policy \"nosuch\"",
        ),
        (
            vec!["--arms", "batch", "--", "true"],
            "give a second one by --beside or --jobs 2",
        ),
        (vec!["--cpus", "1023", "--", "true"], "may not be used here"),
        (vec!["--workload", "nosuch"], "possible values: latency"),
        (
            vec!["--workload", "yielders", "--transport", "tcp"],
            "leave out --mpi and --transport",
        ),
        (
            vec!["--workload", "yielders", "--ranks", "1"],
            "it takes 2 to 64; give --ranks",
        ),
        (vec![], "nothing to measure"),
    ] {
        bench
            .command(&options)
            .assert()
            .code(2)
            .stderr(contains(line));
    }
    assert!(!bench.csv().exists());
}

#[test]
fn a_workload_without_mpi_forks_its_ranks_and_so_does_calcula() {
    let bench = Bench::new();
    let said = bench.install.path().join("said");
    for name in ["calcula", "yielders"] {
        let script = format!(
            "#!/bin/sh\necho {name} $* >>{}\necho '{{\"elapsed_s\":2.0,\"cpu_s\":4.0}}'\n",
            said.display()
        );
        bench.workload(name, &script);
    }
    let options = ["--workload", "yielders", "--ranks", "3", "--no-pin"];
    let mut run = bench.command(&QUICK);
    run.args(options).args(["--", "--rounds", "9"]);
    run.assert().code(0);
    let said = fs::read_to_string(said).unwrap();
    let mut started: Vec<&str> = said.lines().collect();
    started.sort_unstable();
    started.dedup();
    assert_eq!(
        started,
        [
            "calcula --workers 3 --for-s 3",
            "yielders --workers 3 --rounds 9"
        ]
    );
}

#[test]
fn a_machine_without_calcula_or_launcher_is_exit_3() {
    let bench = Bench::new();
    fs::remove_dir_all(bench.install.path().join("workloads")).unwrap();
    let run = bench.command(&["--arms", "stock", "--", "true"]).assert();
    run.code(3)
        .stderr(contains("workload calcula").and(contains("cargo xtask build")));
    let mut nowhere = bench.install.cosched();
    let run = nowhere
        .env("PATH", "/nonexistent")
        .args(["bench", "--", "./a"])
        .assert();
    run.code(3)
        .stderr(contains("no launcher of Open MPI or MPICH found"));
}

#[test]
fn samples_are_never_overwritten() {
    let bench = Bench::new();
    fs::write(bench.csv(), "precious").unwrap();
    let run = bench.command(&["--arms", "stock", "--", "true"]).assert();
    run.code(2).stderr(contains("give another name by --csv"));
    assert_eq!(fs::read_to_string(bench.csv()).unwrap(), "precious");
}

#[test]
fn an_interrupt_leaves_samples_and_nothing_else() {
    let bench = Bench::new();
    let mark = bench.install.path().join("running");
    let script = format!("{JOB}; touch {}; sleep 60", mark.display());
    let mut command = bench.install.std();
    command.args([
        "bench",
        "--mpi",
        "none",
        "--max-foreign",
        "100%",
        "--arms",
        "stock",
    ]);
    command
        .args(["--competitors", "1", "--csv"])
        .arg(bench.csv());
    command
        .env("TMPDIR", bench.install.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.args(["--", "sh", "-c", &script]).spawn().unwrap();
    wait_for("the job", || mark.exists());
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(bench.csv().exists());
    let left = fs::read_dir(bench.install.path()).unwrap();
    let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(
        names
            .filter(|name| name.starts_with("cosched-bench-"))
            .count(),
        0
    );
    let exe = bench.install.exe();
    let hogs = procfs::process::all_processes().unwrap().flatten();
    assert_eq!(
        hogs.filter(|hog| hog.exe().is_ok_and(|path| path == exe))
            .count(),
        0
    );
}

#[test]
fn exec_pinned_runs_on_the_cpu_of_its_rank() {
    let install = Install::new();
    let status = ["--", "grep", "Cpus_allowed_list", "/proc/self/status"];
    let mut pinned = install.cosched();
    pinned
        .args(["exec-pinned", "--by-rank", "--cpus", "0,0-0"])
        .args(status);
    pinned
        .env("PMI_RANK", "5")
        .assert()
        .code(0)
        .stdout("Cpus_allowed_list:\t0\n");
    let mut no_rank = install.cosched();
    no_rank
        .args(["exec-pinned", "--by-rank", "--cpus", "0"])
        .args(status);
    no_rank
        .assert()
        .code(3)
        .stderr(contains("cannot pin by rank"));
}

#[test]
fn an_arm_of_the_kernel_body_needs_a_kernel_that_has_it() {
    if std::path::Path::new("/sys/kernel/sched_ext/state").exists() {
        return; // Here it has, and tests/vm_bench.rs runs such arms.
    }
    for arm in ["kernel:auto", "kernel+shim:auto"] {
        let bench = Bench::new();
        let mut command = bench.command(&["--quick", "--arms", arm, "--", "true"]);
        let refused = command.assert().code(3);
        refused.stderr(contains(format!("cosched: arm `{arm}`")).and(contains("--vm")));
        assert_eq!(rows(&bench), 0);
    }
}

#[test]
fn another_scheduler_is_the_path_of_a_program() {
    let bench = Bench::new();
    let mut command = bench.command(&["--quick", "--scheduler", "/no/scx", "--", "true"]);
    let refused = command.assert().code(2);
    refused.stderr(contains("no program /no/scx"));
}
