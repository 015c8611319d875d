// SPDX-License-Identifier: Apache-2.0
//! coschedd on this machine: one that schedules nothing, whatever the kernel offers, in a
//! folder of its own, and commands that ask it.

use crate::job::built;
use rustix::process::{kill_process, Pid, Signal};
use serde_json::Value;
use std::{
    fs::{set_permissions, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    thread,
    time::Duration,
};
use tempfile::TempDir;

/// Killed when it goes out of scope.
pub struct Daemon {
    /// Where its socket is.
    pub dir: TempDir,
    /// Its process.
    pub child: Child,
}

impl Daemon {
    /// One that answers.
    pub fn start() -> Daemon {
        Daemon::start_in(tempfile::tempdir().expect("/tmp is writable"))
    }

    /// In a folder where another one may have been.
    pub fn start_in(dir: TempDir) -> Daemon {
        set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("made by us");
        let child = coschedd(dir.path()).spawn().expect("it was built");
        let daemon = Daemon { dir, child };
        daemon.wait_for("an answer", || daemon.ask(["status"]).status.success());
        daemon
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("control.sock")
    }

    /// A command that asks it.
    pub fn cosched<const N: usize>(&self, args: [&str; N]) -> Command {
        let mut command = Command::new(built("cosched"));
        command.args(args).env("COSCHED_SOCKET", self.socket());
        command
    }

    /// ... and what came of it.
    pub fn ask<const N: usize>(&self, args: [&str; N]) -> Output {
        self.cosched(args).output().expect("it was built")
    }

    /// ... which is JSON.
    pub fn json<const N: usize>(&self, args: [&str; N]) -> Value {
        serde_json::from_slice(&self.ask(args).stdout).expect("it prints JSON")
    }

    /// Polls for at most a minute, or a little more.
    pub fn wait_for(&self, what: &str, mut holds: impl FnMut() -> bool) {
        for _ in 0..3000 {
            if holds() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("waited for {what}");
    }

    /// How it ended by @signal.
    pub fn signal(&mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), signal).expect("our child");
        self.child.wait().expect("our child")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// As it is started in @dir.
pub fn coschedd(dir: &Path) -> Command {
    let mut command = Command::new(built("coschedd"));
    command
        .args(["--config", "/dev/null", "--observe-only", "--socket"])
        .arg(dir.join("control.sock"))
        .stderr(Stdio::null());
    command
}
