// SPDX-License-Identifier: Apache-2.0
//! The unit: systemd itself runs coschedd by packaging/systemd/coschedd.service, with its two
//! capabilities, its filter of system calls, and files and a network of its own.
//!
//! The guest's process 1 is a script, so systemd is started as a user's manager, of root: it reads the same units
//! and has the same privileges.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::{
    coschedd::{ask, counted, install, installed, job_of, read, state, wait_for, Running, LOG},
    inside::{self, Check, Hogs},
    root,
};
use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

const TIMEOUT: Duration = Duration::from_secs(600);
const USER: u32 = 1000;
/// Where systemd looks for units, and where a manager of root's has what the system's has in /run.
const UNITS: &str = "/run/units";
const RUN: &str = "/run";

const CHECKS: [Check<Systemd>; 7] = [
    ("it says when it is ready", is_ready),
    ("it has two capabilities", two_capabilities),
    ("it is shut in", shut_in),
    ("a user's job is boosted", serves),
    ("a reload keeps the scheduler", reloads),
    ("killed it comes back", comes_back),
    ("stopped it leaves a stock machine", stops),
];

#[test]
fn systemd_runs_it() {
    inside::checks("systemd_runs_it", TIMEOUT, Systemd::start, &CHECKS);
}

struct Systemd(Child);

impl Systemd {
    /// It knows our unit, as it is but for where the program lies.
    fn start() -> Systemd {
        install("");
        let dropins = Path::new(UNITS).join("coschedd.service.d");
        fs::create_dir_all(&dropins).unwrap();
        let unit = "coschedd.service";
        let from = root().join("packaging/systemd").join(unit);
        fs::copy(from, Path::new(UNITS).join(unit)).unwrap();
        let place = format!(
            "[Service]\nExecStart=\nExecStart={}\nStandardError=file:{LOG}\n",
            installed("coschedd").display()
        );
        fs::write(dropins.join("place.conf"), place).unwrap();
        // It runs only where the system's manager does.
        fs::create_dir_all("/run/systemd/system").unwrap();
        let manager = Command::new("/lib/systemd/systemd")
            .args(["--user", "--unit=basic.target"])
            .env(
                "SYSTEMD_UNIT_PATH",
                format!("{UNITS}:/usr/lib/systemd/user"),
            )
            .env("XDG_RUNTIME_DIR", RUN)
            .stdin(Stdio::null())
            .spawn();
        let it = Systemd(manager.expect("systemd is installed"));
        wait_for("systemd", || {
            it.says(&["is-active", "basic.target"]) == "active"
        });
        it
    }

    /// What systemctl answers.
    fn says(&self, args: &[&str]) -> String {
        let output = Command::new("systemctl")
            .arg("--user")
            .args(args)
            .env("XDG_RUNTIME_DIR", RUN)
            .output()
            .expect("it comes with systemd");
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// A property of our unit.
    fn property(&self, name: &str) -> String {
        self.says(&["show", "--value", "--property", name, "coschedd"])
    }
}

impl Drop for Systemd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Type=notify: systemctl comes back when coschedd has said that it is ready.
fn is_ready(systemd: &mut Systemd) {
    systemd.says(&["start", "coschedd"]);
    assert_eq!(systemd.property("ActiveState"), "active", "{}", read(LOG));
    assert_eq!(state(), "enabled");
    assert!(ask(&["status"]).status.success());
}

fn two_capabilities(systemd: &mut Systemd) {
    let status = read(&format!("/proc/{}/status", systemd.property("MainPID")));
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        line.unwrap().split_whitespace().nth(1).unwrap().to_owned()
    };
    let (bpf, perfmon) = (39, 38);
    let two = format!("{:016x}", 1u64 << bpf | 1u64 << perfmon);
    assert_eq!((of("CapEff:"), of("CapBnd:")), (two.clone(), two));
    assert_eq!(
        (of("NoNewPrivs:"), of("Seccomp:")),
        ("1".into(), "2".into())
    );
}

/// ProtectSystem and its like, and PrivateNetwork.
fn shut_in(systemd: &mut Systemd) {
    let pid = systemd.property("MainPID");
    for kind in ["mnt", "net"] {
        let of = |who: &str| fs::read_link(format!("/proc/{who}/ns/{kind}")).unwrap();
        assert_ne!(of(&pid), of("self"), "{kind}");
    }
}

fn serves(_: &mut Systemd) {
    let hogs = Hogs::on(&["0", "1"]);
    let job = Running::job(USER, "auto", "pair", &["spin", "1000000"]);
    wait_for("boosts", || counted(&job_of(USER), "nr_boosts") > 0);
    drop(job);
    hogs.end();
}

fn times_enabled() -> String {
    read("/sys/kernel/sched_ext/enable_seq")
}

fn reloads(systemd: &mut Systemd) {
    let (pid, before) = (systemd.property("MainPID"), times_enabled());
    systemd.says(&["reload", "coschedd"]);
    assert_eq!(systemd.property("ActiveState"), "active");
    assert!(ask(&["status"]).status.success());
    assert_eq!(
        (systemd.property("MainPID"), times_enabled()),
        (pid, before)
    );
}

fn comes_back(systemd: &mut Systemd) {
    let before = times_enabled();
    systemd.says(&["kill", "--signal=KILL", "coschedd"]);
    wait_for("stock scheduling", || state() == "disabled");
    wait_for("coschedd again", || {
        systemd.property("ActiveState") == "active"
    });
    assert_ne!(times_enabled(), before);
    assert_eq!(systemd.property("NRestarts"), "1");
}

fn stops(systemd: &mut Systemd) {
    systemd.says(&["stop", "coschedd"]);
    assert_eq!(
        (systemd.property("Result"), state()),
        ("success".into(), "disabled".into())
    );
}
