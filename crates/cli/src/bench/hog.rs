// SPDX-License-Identifier: Apache-2.0
//! Hogs: the competitors. One process each, pinned to its CPU, all its time in user mode.
//!
//! A hog counts its rounds into a word of a memory file that it inherits as its standard input, so
//! the bench reads every hog's progress at the very start and end of a run without disturbing it.
//! Hogs live in the bench's session, like the job's launcher. They are up before the job starts,
//! and end when they are dropped, or with the bench however that ends.

use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use rustix::fs::{ftruncate, memfd_create, MemfdFlags};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use rustix::process::{set_parent_process_death_signal, Pid, Signal};

use super::cpus;

/// Counters lie one cache line apart.
const STRIDE: usize = 64;
/// Rounds of the loop between two looks of the outside world.
const ROUNDS: u64 = 4096;

/// Arguments of the hidden sub-command that is one hog.
#[derive(clap::Args, Debug)]
pub struct HogArgs {
    /// The CPU to burn
    #[arg(long)]
    cpu: usize,
    /// Which counter of the memory file on standard input is its own
    #[arg(long)]
    index: usize,
}

/// Is a hog; returns only on failure.
pub fn run(args: &HogArgs) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    cpus::pin(&[args.cpu])?;
    let counters = Counters::map(
        std::io::stdin().as_fd().try_clone_to_owned()?,
        args.index + 1,
    )?;
    let counter = counters.at(args.index);
    let mut noise = 1_u64;
    loop {
        for _ in 0..ROUNDS {
            noise = noise
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
        }
        std::hint::black_box(noise);
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// The hogs of one run.
pub struct Hogs {
    children: Vec<Child>,
    counters: Counters,
}

/// What the hogs have done so far.
pub struct Reading {
    at: Instant,
    rounds: Vec<u64>,
    cpu_s: f64,
}

/// What the hogs did between two readings, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Rounds of their loops.
    pub rounds: f64,
    /// CPU time.
    pub cpu_s: f64,
    /// Time between the readings.
    pub wall_s: f64,
}

impl Hogs {
    /// Starts `per_cpu` hogs on each of `cpus` and waits until each one works.
    pub fn start(per_cpu: u32, cpus: &[usize]) -> Result<Self> {
        let places: Vec<usize> = (0..per_cpu).flat_map(|_| cpus.iter().copied()).collect();
        let file = memfd_create("cosched-hogs", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, (places.len().max(1) * STRIDE) as u64)?;
        let exe = std::env::current_exe()?;
        let mut hogs = Self {
            children: Vec::new(),
            counters: Counters::map(file.try_clone()?, places.len().max(1))?,
        };
        for (index, cpu) in places.iter().enumerate() {
            let child = Command::new(&exe)
                .args([
                    "hog",
                    "--cpu",
                    &cpu.to_string(),
                    "--index",
                    &index.to_string(),
                ])
                .stdin(Stdio::from(file.try_clone()?))
                .stdout(Stdio::null())
                .spawn()
                .context("cannot start a hog")?;
            hogs.children.push(child);
        }
        hogs.wait_until_up()?;
        Ok(hogs)
    }

    fn wait_until_up(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while (0..self.children.len()).any(|i| self.counters.get(i) == 0) {
            if Instant::now() > deadline {
                bail!("hogs did not start within 20 s: is the machine overloaded, or a CPU of --cpus offline?");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Their process ids.
    pub fn pids(&self) -> Vec<Pid> {
        self.children.iter().map(Pid::from_child).collect()
    }

    /// Reads all counters and CPU times.
    pub fn read(&self) -> Reading {
        let cpu_ns = |child: &Child| {
            procfs::process::Process::new(child.id() as i32)
                .and_then(|process| process.schedstat())
                .map_or(0, |times| times.sum_exec_runtime)
        };
        Reading {
            at: Instant::now(),
            rounds: (0..self.children.len())
                .map(|i| self.counters.get(i))
                .collect(),
            cpu_s: self.children.iter().map(cpu_ns).sum::<u64>() as f64 / 1e9,
        }
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
        }
        for child in &mut self.children {
            let _ = child.wait();
        }
    }
}

impl Reading {
    /// The work done since `before`.
    pub fn since(&self, before: &Self) -> Work {
        let pairs = self.rounds.iter().zip(&before.rounds);
        Work {
            rounds: pairs.map(|(after, before)| after - before).sum::<u64>() as f64,
            cpu_s: self.cpu_s - before.cpu_s,
            wall_s: self.at.duration_since(before.at).as_secs_f64(),
        }
    }
}

/// The shared words, mapped.
struct Counters {
    base: *mut std::ffi::c_void,
    bytes: usize,
}

impl Counters {
    fn map(file: OwnedFd, count: usize) -> Result<Self> {
        let bytes = count * STRIDE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                access,
                MapFlags::SHARED,
                file,
                0,
            )
        }
        .context("cannot map the counters of the hogs")?;
        Ok(Self { base, bytes })
    }

    fn at(&self, index: usize) -> &AtomicU64 {
        assert!((index + 1) * STRIDE <= self.bytes);
        // SAFETY: the word lies inside the mapping (asserted), is aligned, lives as long as self,
        // and is only ever accessed atomically.
        unsafe { AtomicU64::from_ptr(self.base.byte_add(index * STRIDE).cast()) }
    }

    fn get(&self, index: usize) -> u64 {
        self.at(index).load(Ordering::Relaxed)
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives self.
        let _ = unsafe { munmap(self.base, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_what_lies_between_readings() {
        let at = Instant::now();
        let before = Reading {
            at,
            rounds: vec![10, 20],
            cpu_s: 1.0,
        };
        let after = Reading {
            at: at + Duration::from_secs(2),
            rounds: vec![30, 80],
            cpu_s: 2.5,
        };
        let work = Work {
            rounds: 80.0,
            cpu_s: 1.5,
            wall_s: 2.0,
        };
        assert_eq!(after.since(&before), work);
    }

    #[test]
    fn counters_are_shared_between_mappings() {
        let file = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 2 * STRIDE as u64).unwrap();
        let one = Counters::map(file.try_clone().unwrap(), 2).unwrap();
        let two = Counters::map(file, 2).unwrap();
        one.at(1).store(7, Ordering::Relaxed);
        assert_eq!((two.get(0), two.get(1)), (0, 7));
    }
}
