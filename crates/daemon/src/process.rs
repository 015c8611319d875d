// SPDX-License-Identifier: Apache-2.0
//! Who is meant: a process, a tree of processes, a cgroup; and whose they are.
//!
//! A number names a process only while somebody holds it, so each process is held
//! by a pidfd: opened first, looked at next, and then found alive, which says that
//! what was read is that process. A user may act on a process whose real,
//! effective and saved user are all that user: one that changed or could change
//! its user is not theirs to slow down or speed up.

use crate::refusal::Refusal;
use procfs::process::{Stat, Status};
use rustix::{
    event::{poll, PollFd, PollFlags, Timespec},
    fs::{fstatfs, openat, Mode, OFlags},
    process::{pidfd_open, Pid, PidfdFlags},
};
use std::{
    collections::HashSet,
    fs::{self, File},
    io::Read,
    os::fd::{AsRawFd, OwnedFd},
};

const CGROUP2_MAGIC: u64 = 0x6367_7270;
/// `PF_KTHREAD` of the kernel.
const KERNEL_THREAD: u32 = 0x0020_0000;
/// More looks at /proc than any tree needs: who is born later follows by itself.
const MAX_LOOKS: usize = 8;

/// A process that is held, so that its number means it.
#[derive(Debug)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Threads when it was looked at.
    pub nr_threads: u64,
    pidfd: OwnedFd,
    started: u64,
    uids: [u32; 3],
}

/// A cgroup's directory.
#[derive(Debug)]
pub struct Cgroup {
    dir: OwnedFd,
    /// Where it is mounted here.
    pub path: String,
}

/// What a descriptor beside a request stands for.
#[derive(Debug)]
pub enum Beside {
    /// A pidfd.
    Process(Process),
    /// A cgroup's directory.
    Cgroup(Cgroup),
}

impl Process {
    /// The process that has that number now.
    pub fn of_pid(pid: u32) -> Result<Self, Refusal> {
        let gone = || gone(pid);
        let raw = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(gone)?;
        let pidfd = pidfd_open(raw, PidfdFlags::empty()).map_err(|_| gone())?;
        Process::held(pid, pidfd)
    }

    fn held(pid: u32, pidfd: OwnedFd) -> Result<Self, Refusal> {
        let (status, stat) = read(pid).ok_or_else(|| gone(pid))?;
        let process = Process {
            pid,
            nr_threads: u64::try_from(stat.num_threads).unwrap_or(0),
            pidfd,
            started: stat.starttime,
            uids: [status.ruid, status.euid, status.suid],
        };
        if !process.is_alive() {
            return Err(gone(pid));
        }
        if stat.flags & KERNEL_THREAD != 0 {
            let line = format!("process {pid} is the kernel's: name a program's");
            return Err(Refusal::refused(line));
        }
        Ok(process)
    }

    /// Has it not ended yet?
    pub fn is_alive(&self) -> bool {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&Timespec::default())), Ok(0))
    }

    /// Does its number now belong to another? Asked after something was done by number.
    pub fn was_replaced(&self) -> bool {
        !self.is_alive() && read(self.pid).is_some_and(|(_, stat)| stat.starttime != self.started)
    }

    /// May @uid act on it?
    pub fn belongs_to(&self, uid: u32) -> Result<(), Refusal> {
        if uid == 0 || self.uids.iter().all(|owner| *owner == uid) {
            return Ok(());
        }
        let [real, effective, saved] = self.uids;
        Err(Refusal::refused(format!(
            "process {} is not yours: its real, effective and saved uid are {real}, {effective}, \
             {saved}, and you are {uid}: name one of your own, or ask as root",
            self.pid
        )))
    }
}

fn gone(pid: u32) -> Refusal {
    Refusal::unknown(format!(
        "no process {pid}: it has ended, or its number is wrong"
    ))
}

/// Nothing where there is no such process, or it is a thread of one.
fn read(pid: u32) -> Option<(Status, Stat)> {
    let process = procfs::process::Process::new(i32::try_from(pid).ok()?).ok()?;
    let (status, stat) = (process.status().ok()?, process.stat().ok()?);
    (status.tgid == status.pid).then_some((status, stat))
}

/// What came beside a request.
pub fn beside(fd: OwnedFd) -> Result<Beside, Refusal> {
    if fstatfs(&fd).is_ok_and(|fs| fs.f_type as u64 == CGROUP2_MAGIC) {
        let path = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        let path = path.map_or_else(|_| "?".to_owned(), |path| path.display().to_string());
        return Ok(Beside::Cgroup(Cgroup { dir: fd, path }));
    }
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()));
    let info = info.unwrap_or_default();
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"));
    match pid.map(|pid| pid.trim().parse::<u32>()) {
        Some(Ok(pid)) if pid > 0 => Ok(Beside::Process(Process::held(pid, fd)?)),
        Some(_) => Err(Refusal::unknown(
            "the process of the pidfd has ended, or is not of this machine's",
        )),
        None => Err(Refusal::malformed(
            "the descriptor is neither a pidfd nor a cgroup's directory (version 2)",
        )),
    }
}

impl Cgroup {
    /// The processes in it, not in those below it; none where it was removed.
    pub fn pids(&self) -> Vec<u32> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(file) = openat(&self.dir, "cgroup.procs", flags, Mode::empty()) else {
            return Vec::new();
        };
        let mut text = String::new();
        // A cgroup that is removed meanwhile ends the list.
        let _ = File::from(file).read_to_string(&mut text);
        text.lines()
            .filter_map(|line| line.parse().ok())
            .filter(|pid| *pid > 0)
            .collect()
    }
}

/// Calls @join with @root and all its descendants, each once. Those of other
/// users than @uid are left alone (root has no others); so is who ended meanwhile.
pub fn for_tree(
    root: Process,
    uid: u32,
    mut join: impl FnMut(Process) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let mut known = HashSet::from([root.pid]);
    join(root)?;
    for _ in 0..MAX_LOOKS {
        let fresh = children_of(&known);
        if fresh.is_empty() {
            break;
        }
        for pid in fresh {
            known.insert(pid);
            match Process::of_pid(pid) {
                Ok(process) if process.belongs_to(uid).is_ok() => join(process)?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// Who is not @known and has a parent that is, or one that is found with it.
fn children_of(known: &HashSet<u32>) -> Vec<u32> {
    let all = procfs::process::all_processes().into_iter().flatten();
    let pairs = all.filter_map(|process| {
        let stat = process.ok()?.stat().ok()?;
        Some((
            u32::try_from(stat.pid).ok()?,
            u32::try_from(stat.ppid).ok()?,
        ))
    });
    let pairs: Vec<(u32, u32)> = pairs.collect();
    let mut family = known.clone();
    let mut fresh = Vec::new();
    loop {
        let before = fresh.len();
        for (pid, parent) in &pairs {
            if family.contains(parent) && family.insert(*pid) {
                fresh.push(*pid);
            }
        }
        if fresh.len() == before {
            return fresh;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    fn end(mut child: Child) -> u32 {
        let pid = child.id();
        child.kill().unwrap();
        child.wait().unwrap();
        pid
    }

    #[test]
    fn a_dead_process_is_none_and_a_held_one_is_seen_to_die() {
        let child = sleeper();
        let process = Process::of_pid(child.id()).unwrap();
        assert!(process.is_alive() && !process.was_replaced());
        let pid = end(child);
        assert!(!process.is_alive() && !process.was_replaced());
        assert!(Process::of_pid(pid).is_err());
        for wrong in [0, u32::MAX, i32::MAX as u32] {
            assert!(Process::of_pid(wrong).is_err());
        }
    }

    #[test]
    fn a_number_that_is_used_again_is_noticed() {
        let child = sleeper();
        let mut process = Process::of_pid(child.id()).unwrap();
        end(child);
        // As if its number were that of a process that began at another time: instants are 10 ms apart.
        process.pid = 1;
        assert!(process.was_replaced());
    }

    #[test]
    fn a_user_has_their_own_processes_and_root_has_all() {
        let me = Process::of_pid(std::process::id()).unwrap();
        let uid = rustix::process::getuid().as_raw();
        assert!(me.belongs_to(uid).is_ok() && me.belongs_to(0).is_ok());
        let other = me.belongs_to(uid + 1).unwrap_err().line;
        assert!(other.contains("is not yours"), "{other}");
        let changed = Process {
            uids: [7, 7, 0],
            ..me
        };
        assert!(changed.belongs_to(7).is_err());
    }

    #[test]
    fn a_tree_is_all_its_descendants_each_once() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 60 & (sleep 60 & wait) & wait"])
            .spawn()
            .unwrap();
        let mut seen = Vec::new();
        for _ in 0..100 {
            seen.clear();
            let root = Process::of_pid(shell.id()).unwrap();
            let note = |process: Process| {
                seen.push(process.pid);
                Ok(())
            };
            for_tree(root, 0, note).unwrap();
            if seen.len() == 4 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        for pid in seen.iter().rev() {
            let pid = Pid::from_raw(*pid as i32).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        shell.wait().unwrap();
        let once: HashSet<_> = seen.iter().collect();
        assert_eq!((seen.len(), once.len()), (4, 4));
    }

    #[test]
    fn a_descriptor_is_a_pidfd_or_a_cgroup_or_nothing() {
        let me = Pid::from_raw(std::process::id() as i32).unwrap();
        let pidfd = pidfd_open(me, PidfdFlags::empty()).unwrap();
        match beside(pidfd).unwrap() {
            Beside::Process(process) => assert_eq!(process.pid, std::process::id()),
            Beside::Cgroup(_) => panic!("a pidfd is no cgroup"),
        }
        assert!(beside(File::open("/dev/null").unwrap().into()).is_err());
        let child = sleeper();
        let pid = Pid::from_raw(child.id() as i32).unwrap();
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        end(child);
        assert!(beside(pidfd).unwrap_err().line.contains("has ended"));
    }
}
