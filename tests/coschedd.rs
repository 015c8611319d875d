// SPDX-License-Identifier: Apache-2.0
//! coschedd inside a guest, as it is installed: a folder that every user can read, the
//! daemon started from it, users who ask it, and commands that run meanwhile.
//!
//! It waits for what must come, with generous limits: attaching takes seconds where
//! CPUs are emulated, and more beside hogs.

use crate::{
    inside,
    job::{built, text},
};
use rustix::process::{kill_process, kill_process_group, Pid, Signal};
use serde_json::Value;
use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Where it is installed; /run is the guest's own memory.
const HOME: &str = "/run/installed";
/// What it says, until another is started.
pub const LOG: &str = "/run/coschedd.log";
const CONFIG: &str = "/run/coschedd.toml";

/// No wait is longer: attaching beside hogs takes a quarter of it.
const LIMIT: Duration = Duration::from_secs(120);

/// Copies what is to be installed, and the helpers that users start.
pub fn install(config: &str) {
    fs::create_dir_all(HOME).expect("/run is writable");
    let ours = ["coschedd", "cosched", "libcosched.so"].map(built);
    let helpers = ["pair", "crowd"].map(inside::tool);
    for from in ours.iter().chain(&helpers) {
        let name = from.file_name().expect("a file");
        fs::copy(from, Path::new(HOME).join(name)).expect("there is room");
    }
    fs::write(CONFIG, config).expect("/run is writable");
}

/// What was installed under @name.
pub fn installed(name: &str) -> PathBuf {
    Path::new(HOME).join(name)
}

/// Polls until @holds.
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        let log = || fs::read_to_string(LOG).unwrap_or_default();
        assert!(begun.elapsed() < LIMIT, "waited for {what}:\n{}", log());
        thread::sleep(Duration::from_millis(50));
    }
}

/// sched_ext's: `disabled`, `enabling`, `enabled`, `disabling`.
pub fn state() -> String {
    read("/sys/kernel/sched_ext/state")
}

/// A small file without its last newline; nothing where there is none.
pub fn read(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.trim_end().to_owned()
}

/// The daemon; killed when it goes out of scope.
pub struct Coschedd(Child);

impl Coschedd {
    /// Started, with the priority that its unit gives it; what it says begins anew.
    pub fn spawn() -> Coschedd {
        let log = File::create(LOG).expect("/run is writable");
        let mut command = Command::new("nice");
        command
            .args(["--adjustment=-10"])
            .arg(installed("coschedd"));
        command.args(["--config", CONFIG]).stderr(log);
        Coschedd(command.spawn().expect("installed before"))
    }

    /// Started, and it schedules.
    pub fn start() -> Coschedd {
        let mut daemon = Coschedd::spawn();
        daemon.wait_until_it_schedules();
        daemon
    }

    /// And answers.
    pub fn wait_until_it_schedules(&mut self) {
        wait_for("coschedd", || {
            let ended = self.0.try_wait().expect("our child");
            assert!(ended.is_none(), "{ended:?}: {}", self.said());
            state() == "enabled" && ask(&["status"]).status.success()
        });
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Its log so far.
    pub fn said(&self) -> String {
        read(LOG)
    }

    /// Sends it @signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("our child");
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("our child")
    }

    /// Waits for its end; its exit code.
    pub fn code(&mut self) -> Option<i32> {
        let mut ended = None;
        wait_for("coschedd's end", || {
            ended = self.ended();
            ended.is_some()
        });
        ended.and_then(|status| status.code())
    }
}

impl Drop for Coschedd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `cosched` with @args, not started yet.
pub fn cosched(uid: u32, args: &[&str]) -> Command {
    let mut command = Command::new(installed("cosched"));
    command.args(args).uid(uid).gid(uid);
    command
}

/// What `cosched @args` says to root.
pub fn ask(args: &[&str]) -> Output {
    ask_as(0, args)
}

/// What it says to @uid.
pub fn ask_as(uid: u32, args: &[&str]) -> Output {
    cosched(uid, args).output().expect("installed before")
}

/// The JSON that it prints.
pub fn json_as(uid: u32, args: &[&str]) -> Value {
    let output = ask_as(uid, args);
    let why = || text(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{args:?}: {}", why()))
}

/// Root's list of jobs.
pub fn jobs() -> Vec<Value> {
    let list = json_as(0, &["jobs", "--json"]);
    list["jobs"].as_array().cloned().unwrap_or_default()
}

/// The job of @uid's, if it has one.
pub fn job_of(uid: u32) -> Option<Value> {
    jobs().into_iter().find(|job| job["uid"] == uid)
}

/// A number of the job's ledger; 0 where there is no job.
pub fn counted(job: &Option<Value>, what: &str) -> u64 {
    let ledger = job.as_ref().map(|job| &job["ledger"][what]);
    match ledger {
        Some(Value::Object(by_reason)) => by_reason.values().filter_map(Value::as_u64).sum(),
        Some(number) => number.as_u64().unwrap_or(0),
        None => 0,
    }
}

/// A command and whatever it starts; ended when it goes out of scope.
pub struct Running(Child);

impl Running {
    /// In a process group of its own.
    pub fn start(mut command: Command) -> Running {
        command.process_group(0).stdin(Stdio::null());
        command.stdout(Stdio::null());
        Running(command.spawn().expect("the program is there"))
    }

    /// `cosched run --policy @policy -- @helper @args` of @uid's.
    pub fn job(uid: u32, policy: &str, helper: &str, args: &[&str]) -> Running {
        let program = installed(helper);
        let mut command = cosched(uid, &["run", "--policy", policy, "--"]);
        command.arg(program).args(args);
        Running::start(command)
    }

    /// What a shell does again and again.
    pub fn again(script: &str) -> Running {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("while :; do {script}; done")]);
        shell.stderr(Stdio::null()).current_dir(HOME);
        Running::start(shell)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// It and its descendants, which are in its group.
    pub fn pids(&self) -> Vec<u32> {
        let group = self.pid().to_string();
        let all = fs::read_dir("/proc").expect("/proc is mounted");
        let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter(|pid| stat(*pid).is_some_and(|fields| fields[2] == group))
            .collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.0);
        let _ = kill_process_group(group, Signal::TERM);
        let _ = self.0.wait();
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// /proc/@pid/stat from its third field on: what follows the name.
pub fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}
