// SPDX-License-Identifier: Apache-2.0
//! Children: programs under measurement, from their start to their whole tree's end.
//!
//! Each child leads a process group of its own, so that a timeout or ^C can end launcher and ranks
//! together, but stays in the session of the bench: competition on Linux is per session
//! (autogroup), and a job in another session would not compete with the hogs as it does in life.
//! The bench is their subreaper: whatever a launcher leaves behind falls to it and is ended here.
//!
//! While they run the bench sleeps in one poll() on their pidfds; their output goes to unnamed
//! files, since reading a pipe would wake the bench in the middle of the measurement.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{
    getpid, kill_process, kill_process_group, pidfd_open, set_child_subreaper, Pid, PidfdFlags,
    Signal,
};

/// How often a sleeping bench looks whether it was interrupted.
const LOOK: Duration = Duration::from_millis(250);
/// How long a tree may take to end by itself after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was ended since the time limit was reached.
    TimedOut,
    /// The scheduler that it was to run under went away, or did not take it.
    Unscheduled,
}

/// What a tree of processes used, launcher included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// CPU time in user mode.
    pub user_s: f64,
    /// CPU time in the kernel.
    pub system_s: f64,
    /// Context switches by waiting.
    pub voluntary: u64,
    /// Context switches by preemption.
    pub involuntary: u64,
}

impl Usage {
    /// CPU time, user and system.
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// A program that ended.
#[derive(Debug)]
pub struct Ended {
    /// From its start until its launcher ended.
    pub wall_s: f64,
    /// How it ended.
    pub exit: Exit,
    /// What it used.
    pub usage: Usage,
    /// All it wrote.
    pub stdout: String,
    /// All it complained about.
    pub stderr: String,
}

/// A program that runs.
pub struct Child {
    pid: Pid,
    pidfd: OwnedFd,
    started: Instant,
    stdout: File,
    stderr: File,
}

impl Child {
    /// Starts `command` in a process group of its own.
    pub fn start(command: &mut Command) -> Result<Self> {
        use std::os::unix::process::CommandExt;
        let stdout = tempfile::tempfile().context("cannot make a file for the output")?;
        let stderr = tempfile::tempfile().context("cannot make a file for the output")?;
        let started = Instant::now();
        let child = command
            .stdin(Stdio::null())
            .stdout(stdout.try_clone()?)
            .stderr(stderr.try_clone()?)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {:?}", command.get_program()))?;
        let pid = Pid::from_child(&child);
        Ok(Self {
            pid,
            pidfd: pidfd_open(pid, PidfdFlags::empty())?,
            started,
            stdout,
            stderr,
        })
    }

    fn end(mut self, timed_out: bool) -> Result<Ended> {
        let (status, usage) = reap(self.pid)?;
        let exit = match (timed_out, libc::WIFSIGNALED(status)) {
            (true, _) => Exit::TimedOut,
            (_, true) => Exit::Signal(libc::WTERMSIG(status)),
            _ => Exit::Code(libc::WEXITSTATUS(status)),
        };
        Ok(Ended {
            wall_s: self.started.elapsed().as_secs_f64(),
            exit,
            usage,
            stdout: read_all(&mut self.stdout)?,
            stderr: read_all(&mut self.stderr)?,
        })
    }

    /// Asks the group to end, then makes the whole tree end.
    fn kill(&self) {
        let _ = kill_process_group(self.pid, Signal::TERM);
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline {
            if wait_any(&[self], deadline - Instant::now()).contains(&0) {
                return;
            }
        }
        for pid in descendants(self.pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = kill_process(self.pid, Signal::KILL);
    }
}

/// Waits for all `children`; those that outlive `limit` are ended. `None` when `stop` was raised:
/// then all are ended. The results come in the order of the children.
pub fn wait_all(
    children: Vec<Child>,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<Option<Vec<Ended>>> {
    let mut running: Vec<Option<Child>> = children.into_iter().map(Some).collect();
    let mut ended: Vec<Option<Ended>> = running.iter().map(|_| None).collect();
    while running.iter().any(Option::is_some) {
        for (i, slot) in running.iter_mut().enumerate() {
            let late = |child: &Child| child.started.elapsed() > limit;
            let Some(child) = slot.as_ref() else { continue };
            let over = wait_any(&[child], Duration::ZERO).contains(&0);
            let timed_out = !over && late(child);
            if timed_out || stop.load(Ordering::Relaxed) {
                child.kill();
            } else if !over {
                continue;
            }
            if let Some(child) = slot.take() {
                ended[i] = Some(child.end(timed_out)?);
            }
        }
        let left: Vec<&Child> = running.iter().flatten().collect();
        let next = left
            .iter()
            .map(|child| limit.saturating_sub(child.started.elapsed()))
            .min();
        if let Some(next) = next {
            wait_any(&left, next.min(LOOK));
        }
    }
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    Ok(Some(ended.into_iter().flatten().collect()))
}

/// Sleeps until one of `children` has ended or `timeout` is over; which have ended.
fn wait_any(children: &[&Child], timeout: Duration) -> Vec<usize> {
    let mut fds: Vec<PollFd<'_>> = children
        .iter()
        .map(|child| PollFd::new(&child.pidfd, PollFlags::IN))
        .collect();
    let timeout = Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    if poll(&mut fds, Some(&timeout)).is_err() {
        return Vec::new();
    }
    (0..fds.len())
        .filter(|&i| !fds[i].revents().is_empty())
        .collect()
}

/// Takes the end of an own child that has ended or is about to.
fn reap(pid: Pid) -> Result<(i32, Usage)> {
    let mut status = 0;
    // SAFETY: rusage is a plain C structure for which all zero is a valid value.
    let mut raw: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers lead to live variables of the types that wait4() writes.
    while unsafe { libc::wait4(pid.as_raw_nonzero().get(), &mut status, 0, &mut raw) } < 0 {
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error).context("cannot wait for a program under measurement");
        }
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let usage = Usage {
        user_s: seconds(raw.ru_utime),
        system_s: seconds(raw.ru_stime),
        voluntary: raw.ru_nvcsw as u64,
        involuntary: raw.ru_nivcsw as u64,
    };
    Ok((status, usage))
}

fn read_all(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Makes this process the heir of what its children leave behind.
pub fn adopt_orphans() -> Result<()> {
    set_child_subreaper(Some(getpid())).context("cannot become the heir of orphaned ranks")
}

/// Ends every child of this process that is not in `keep`, and what these leave behind. Returns
/// the CPU time that all of them used.
pub fn end_strays(keep: &[Pid]) -> f64 {
    let mut cpu_s = 0.0;
    loop {
        let strays: Vec<Pid> = parents()
            .into_iter()
            .filter(|&(pid, parent)| parent == getpid() && !keep.contains(&pid))
            .map(|(pid, _)| pid)
            .collect();
        if strays.is_empty() {
            return cpu_s;
        }
        for pid in strays {
            let _ = kill_process(pid, Signal::KILL);
            cpu_s += reap(pid).map_or(0.0, |(_, usage)| usage.cpu_s());
        }
    }
}

fn descendants(root: Pid) -> Vec<Pid> {
    let all = parents();
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        let of = found[next];
        found.extend(all.iter().filter(|&&(_, up)| up == of).map(|&(pid, _)| pid));
        next += 1;
    }
    found
}

/// Every process and its parent.
fn parents() -> Vec<(Pid, Pid)> {
    let Ok(all) = procfs::process::all_processes() else {
        return Vec::new();
    };
    all.flatten()
        .filter_map(|process| process.stat().ok())
        .filter_map(|stat| Some((Pid::from_raw(stat.pid)?, Pid::from_raw(stat.ppid)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Child {
        Child::start(Command::new("sh").args(["-c", script])).unwrap()
    }

    fn wait(children: Vec<Child>, limit: Duration) -> Vec<Ended> {
        wait_all(children, limit, &AtomicBool::new(false))
            .unwrap()
            .unwrap()
    }

    #[test]
    fn output_and_code_come_back_in_order() {
        let children = vec![
            shell("sleep 0.1; echo one; exit 3"),
            shell("echo two; kill -9 $$"),
        ];
        let ended = wait(children, Duration::from_secs(20));
        assert_eq!(
            (ended[0].exit, ended[1].exit),
            (Exit::Code(3), Exit::Signal(9))
        );
        assert_eq!(
            (ended[0].stdout.as_str(), ended[1].stdout.as_str()),
            ("one\n", "two\n")
        );
        assert!(ended[0].wall_s >= 0.1);
    }

    #[test]
    fn a_late_tree_is_ended_even_where_it_ignores_the_request() {
        let ended = wait(
            vec![shell("trap '' TERM; sleep 100 & sleep 100")],
            Duration::from_millis(50),
        );
        assert_eq!(ended[0].exit, Exit::TimedOut);
        assert!(ended[0].wall_s < 60.0);
    }

    #[test]
    fn an_interrupt_ends_the_children() {
        let stop = AtomicBool::new(true);
        let child = shell("sleep 100");
        let pid = child.pid;
        assert!(wait_all(vec![child], Duration::from_secs(100), &stop)
            .unwrap()
            .is_none());
        assert!(rustix::process::test_kill_process(pid).is_err());
    }
}
