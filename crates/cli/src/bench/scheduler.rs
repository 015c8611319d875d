// SPDX-License-Identifier: Apache-2.0
//! Schedulers: who schedules the machine while a cell runs, and changing that.
//!
//! A cell runs under the kernel's own scheduler, under coschedd, or under another sched_ext
//! program that the user names. Only one can be attached; it is started before the cell and ended
//! by SIGINT when a cell wants another. It runs in a process group of its own, for ^C is the
//! bench's to hear. What it prints is kept for the one line that says why it failed.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use cosched_control::{Client, Mode, Wish, PATIENCE};
use cosched_model::abi;
use rustix::process::{kill_process, Pid, Signal};

use super::cpus;
use crate::fault::Fault;

/// sched_ext in the kernel's words: `disabled`, `enabling`, `enabled`.
const STATE: &str = "/sys/kernel/sched_ext/state";
/// Who is attached.
const OPS: &str = "/sys/kernel/sched_ext/root/ops";
/// The verifier may take long under emulation.
const TO_ATTACH: Duration = Duration::from_secs(90);
const TO_DETACH: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// Who schedules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// The kernel's own.
    Stock,
    /// coschedd.
    Cosched,
    /// This sched_ext program.
    Other(PathBuf),
}

impl std::fmt::Display for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stock => f.write_str("stock"),
            Self::Cosched => f.write_str("cosched"),
            Self::Other(path) => {
                f.write_str(&path.file_name().unwrap_or_default().to_string_lossy())
            }
        }
    }
}

impl serde::Serialize for Scheduler {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Scheduler {
    /// Refuses what this machine, or a wrong path, will not let run.
    pub fn check(&self, arm: &dyn std::fmt::Display) -> Result<()> {
        if let Self::Other(path) = self {
            if !path.is_file() {
                let path = path.display();
                return Err(Fault::Usage(format!(
                    "no program {path}: --scheduler takes the path of one"
                ))
                .into());
            }
        }
        match lack(Path::new(STATE)) {
            Some(lack) if *self != Self::Stock => Err(Fault::Machine(format!(
                "arm `{arm}` replaces the scheduler, and {lack}: say --vm for a guest that can"
            ))
            .into()),
            _ => Ok(()),
        }
    }
}

/// What is missing to attach one.
fn lack(state: &Path) -> Option<&'static str> {
    if !state.exists() {
        return Some("this kernel has no sched_ext");
    }
    let is_root = rustix::process::geteuid().is_root();
    (!is_root).then_some("only root may do that here")
}

/// Who schedules now; back to the kernel's own when this goes away.
pub struct Schedulers {
    exe: PathBuf,
    socket: PathBuf,
    stop: Arc<AtomicBool>,
    attached: Option<Attached>,
}

/// One that runs.
struct Attached {
    scheduler: Scheduler,
    child: Child,
    log: File,
}

impl Schedulers {
    /// The kernel's own schedules so far: refuses a machine where it does not, since each arm
    /// would run under what is there. `dir` is for coschedd's socket.
    pub fn new(exe: &Path, dir: &Path, stop: Arc<AtomicBool>) -> Result<Self> {
        if !matches!(state().as_deref(), None | Some("disabled")) {
            let who = read(OPS).unwrap_or_else(|| "some scheduler".to_owned());
            return Err(Fault::Machine(format!(
                "{who} is attached to sched_ext, and all arms would run under it: stop it; arms attach what they need"
            ))
            .into());
        }
        Ok(Self {
            exe: exe.to_owned(),
            socket: dir.join("coschedd.sock"),
            stop,
            attached: None,
        })
    }

    /// Where coschedd listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// What runs beside the bench and is no stray.
    pub fn pid(&self) -> Option<Pid> {
        Some(Pid::from_child(&self.attached.as_ref()?.child))
    }

    /// CPU time of the one that is attached: neither the job's nor a stranger's.
    pub fn cpu_s(&self) -> f64 {
        let stat = || {
            let pid = self.pid()?.as_raw_nonzero().get();
            procfs::process::Process::new(pid).ok()?.stat().ok()
        };
        let ticks = stat().map_or(0, |stat| stat.utime + stat.stime);
        ticks as f64 / procfs::ticks_per_second() as f64
    }

    /// Makes `wanted` schedule. Returns early, with whatever is there, when the bench is to stop.
    pub fn switch(&mut self, wanted: &Scheduler) -> Result<()> {
        let now = self
            .attached
            .as_ref()
            .map_or(&Scheduler::Stock, |a| &a.scheduler);
        if now == wanted {
            return Ok(());
        }
        if let Some(attached) = self.attached.take() {
            attached.detach()?;
        }
        let command = match wanted {
            Scheduler::Stock => return Ok(()),
            Scheduler::Cosched => {
                let mut command = self.confined(&self.exe.with_file_name("coschedd"))?;
                command.arg("--socket").arg(&self.socket);
                command
            }
            Scheduler::Other(path) => self.confined(path)?,
        };
        self.attached = Some(Attached::start(wanted, command)?);
        self.wait()?;
        if *wanted == Scheduler::Cosched && !self.stop.load(Ordering::Relaxed) {
            self.greet()?;
        }
        Ok(())
    }

    /// `program`, which ends when the bench does.
    fn confined(&self, program: &Path) -> Result<Command> {
        let mut command = Command::new(&self.exe);
        let everywhere = cpus::allowed()?.to_string();
        command.args([
            "exec-pinned",
            "--die-with-parent",
            "--cpus",
            &everywhere,
            "--",
        ]);
        command.arg(program);
        Ok(command)
    }

    /// Until it schedules.
    fn wait(&mut self) -> Result<()> {
        let Some(attached) = &mut self.attached else {
            return Ok(());
        };
        let begun = Instant::now();
        while state().as_deref() != Some("enabled") && !self.stop.load(Ordering::Relaxed) {
            let ended = attached.child.try_wait()?;
            if ended.is_some() || begun.elapsed() > TO_ATTACH {
                let how = ended.map_or_else(
                    || format!("not after {TO_ATTACH:?}"),
                    |status| status.to_string(),
                );
                let (who, last) = (attached.scheduler.to_string(), attached.last_words());
                return Err(Fault::Machine(format!(
                    "scheduler {who} did not attach to sched_ext ({how}); its last words: {last}"
                ))
                .into());
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Until coschedd answers: `cosched run` would not wait for it.
    fn greet(&self) -> Result<()> {
        let client = Client::connect(&self.socket, PATIENCE).map_err(crate::daemon::fault)?;
        let hello = client.ask(abi::COS_CONTROL_HELLO, &Wish::default());
        let hello = hello.map_err(crate::daemon::fault)?;
        match hello.mode {
            Mode::Schedule => Ok(()),
            _ => Err(Fault::Machine(format!("coschedd does not schedule: {}", hello.text)).into()),
        }
    }

    /// Why the one that should schedule does not any more, if so.
    pub fn lost(&mut self) -> Option<String> {
        let gone = self.attached.is_some() && state().as_deref() != Some("enabled");
        let mut attached = self.attached.take_if(|_| gone)?;
        let (who, last) = (attached.scheduler.to_string(), attached.last_words());
        // It failed already; how it ends is no second failure.
        let _ = attached.detach();
        Some(format!(
            "scheduler {who} was taken away; its last words: {last}"
        ))
    }
}

impl Drop for Schedulers {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.attached.take().map(Attached::detach) {
            crate::fault::report(&error);
        }
    }
}

impl Attached {
    fn start(scheduler: &Scheduler, mut command: Command) -> Result<Self> {
        use std::os::unix::process::CommandExt;
        let log = tempfile::tempfile().context("cannot make a file for a scheduler's output")?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start scheduler {scheduler}"))?;
        Ok(Self {
            scheduler: scheduler.clone(),
            child,
            log,
        })
    }

    /// Asks it to end, then makes it; the kernel's own schedules after that.
    fn detach(mut self) -> Result<()> {
        let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        let begun = Instant::now();
        while self.child.try_wait()?.is_none() {
            if begun.elapsed() > TO_DETACH {
                self.child.kill()?;
            }
            std::thread::sleep(LOOK);
        }
        while state().as_deref() != Some("disabled") {
            if begun.elapsed() > 2 * TO_DETACH {
                return Err(Fault::Machine(format!(
                    "sched_ext is not free after scheduler {} ended: write S to /proc/sysrq-trigger",
                    self.scheduler
                ))
                .into());
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn last_words(&mut self) -> String {
        let mut bytes = Vec::new();
        // What cannot be read is not there to be told.
        let _ = self
            .log
            .rewind()
            .and_then(|()| self.log.read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&bytes);
        let last = text.lines().rfind(|line| !line.trim().is_empty());
        last.unwrap_or("none").trim().to_owned()
    }
}

fn state() -> Option<String> {
    read(STATE)
}

fn read(path: &str) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_sched_ext_is_named() {
        assert_eq!(
            lack(Path::new("/nonexistent")),
            Some("this kernel has no sched_ext")
        );
    }

    #[test]
    fn a_scheduler_is_called_by_its_file() {
        let other = Scheduler::Other("/opt/bin/scx_simple".into());
        assert_eq!(other.to_string(), "scx_simple");
        assert!(other
            .check(&other)
            .unwrap_err()
            .to_string()
            .contains("/opt/bin/scx_simple"));
        assert!(Scheduler::Stock.check(&"stock").is_ok());
    }

    #[test]
    fn the_last_line_of_a_scheduler_is_kept() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; echo"]);
        let mut attached = Attached::start(&Scheduler::Cosched, command).unwrap();
        attached.child.wait().unwrap();
        assert_eq!(attached.last_words(), "two");
    }
}
