// SPDX-License-Identifier: Apache-2.0
//! A guest with a sched_ext kernel, booted for one command and gone after it.
//!
//! The guest has no disk and no image. Its root file system is the host's own,
//! shared read-only by virtiofs, with memory above it for what is written; so every
//! program, library and build is there under its own path, and nothing that the
//! guest does stays, but what it puts into the exchange folder. It runs under
//! QEMU's emulation, or KVM where the machine has it. Nothing runs in it but the
//! kernel's threads, init.sh and the job.
//!
//! ```no_run
//! # fn main() -> Result<(), cosched_vm::Error> {
//! use cosched_vm::{Guest, Job};
//! let guest = Guest::find(std::path::Path::new("target/vm"))?;
//! let outcome = guest.run(&Job::new("uname").arg("-r"))?;
//! assert_eq!(outcome.code, 0);
//! # Ok(())
//! # }
//! ```
//!
//! kernel.rs finds what a guest needs, machine.rs describes it to QEMU and
//! virtiofsd, this file runs a job in it.

mod job;
mod kernel;
mod machine;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

pub use job::Job;
pub use kernel::{installed, Kernel, Qemu};
use machine::Process;

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This machine lacks something: what, and what to do.
    #[error("{0}")]
    Missing(String),
    /// The host's side failed.
    #[error("cannot {what}: {why}")]
    Host {
        /// What was tried.
        what: String,
        /// Its error.
        why: io::Error,
    },
    /// The job was not done in time; the guest was ended.
    #[error("guest ended after its timeout of {after:?}, command not done; last words:\n{last}")]
    Timeout {
        /// The limit.
        after: Duration,
        /// The last lines of the console and of the job.
        last: String,
    },
    /// Somebody wanted it to end.
    #[error("guest ended before its command was done, as was wanted")]
    Stopped,
    /// The guest ended before the job did: a panic, or it did not boot.
    #[error("guest died before the command was done; last words:\n{last}")]
    Died {
        /// The last lines of the console, the job and QEMU.
        last: String,
    },
}

impl Error {
    fn host(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |why| Self::Host { what, why }
    }
}

/// What came back.
#[derive(Debug)]
pub struct Outcome {
    /// The job's exit code; 128 + signal where a signal ended it.
    pub code: i32,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// What it complained of.
    pub stderr: Vec<u8>,
    /// What the kernel said (it was told to be quiet).
    pub console: String,
}

/// All that is needed to boot one.
#[derive(Debug)]
pub struct Guest {
    kernel: Kernel,
    qemu: Qemu,
    virtiofsd: PathBuf,
}

impl Guest {
    /// With the kernel that COSCHED_VMLINUZ names, or else that of @folder, where
    /// `cargo xtask vm prepare` put one.
    pub fn find(folder: &Path) -> Result<Self, Error> {
        if !cfg!(target_arch = "x86_64") {
            return Err(Error::Missing(
                "guests are x86-64 only, as Debian's kernel".into(),
            ));
        }
        if !rustix::process::geteuid().is_root() {
            return Err(Error::Missing(
                "only root may share the root file system with a guest".into(),
            ));
        }
        for tool in ["unshare", "setpriv", "insmod", "ip"] {
            kernel::installed(tool)?;
        }
        Ok(Self {
            kernel: Kernel::find(folder)?,
            qemu: Qemu::find(folder)?,
            virtiofsd: kernel::virtiofsd()?,
        })
    }

    /// What it boots.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// What runs it, for records: `QEMU 9.2, tcg`.
    pub fn emulator(&self) -> String {
        let version = self.qemu.version();
        let version =
            version.map_or_else(String::new, |(major, minor)| format!(" {major}.{minor}"));
        let accelerator = if machine::kvm() { "kvm" } else { "tcg" };
        format!("QEMU{version}, {accelerator}")
    }

    /// Boots, runs @job, powers off.
    pub fn run(&self, job: &Job) -> Result<Outcome, Error> {
        self.run_into(job, io::sink(), io::sink())
    }

    /// The same, and writes what the job writes as it comes.
    pub fn run_into(
        &self,
        job: &Job,
        mut stdout: impl Write + Send,
        mut stderr: impl Write + Send,
    ) -> Result<Outcome, Error> {
        for _ in 1..BOOTS {
            match self.boot(job, &mut stdout, &mut stderr)? {
                Some(outcome) => return Ok(outcome),
                None => continue,
            }
        }
        self.boot(job, stdout, stderr)?.ok_or(Error::Died {
            last: format!("none of {BOOTS} boots came to the command\n"),
        })
    }

    /// One boot; nothing where it did not come as far as the job.
    fn boot(
        &self,
        job: &Job,
        stdout: impl Write + Send,
        stderr: impl Write + Send,
    ) -> Result<Option<Outcome>, Error> {
        let folder = tempfile::Builder::new()
            .prefix("cosched-vm-")
            .tempdir_in("/tmp")
            .map_err(Error::host("make a folder in /tmp"))?;
        let begun_at = Instant::now();
        let mut machine = self.start(job, folder.path())?;
        let qemu = &mut machine.qemu;
        let pipes = (qemu.0.stdout.take(), qemu.0.stderr.take());
        let (done, out, err) = thread::scope(|scope| {
            let out = scope.spawn(move || copy(pipes.0, stdout));
            let err = scope.spawn(move || copy(pipes.1, stderr));
            let done = wait(qemu, job, &folder.path().join(machine::EXIT));
            (done, joined(out), joined(err))
        });
        let console = read(&folder.path().join(machine::CONSOLE));
        let last = || {
            let shares = read(&folder.path().join(machine::SHARES));
            // With a console there was a root: the shares' chatter says nothing.
            let host = if console.is_empty() { &shares } else { "" };
            [host, &console, &lossy(&out), &lossy(&err)]
                .map(tail)
                .concat()
        };
        let done = done.map_err(Error::host("wait for QEMU"))?;
        if job.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let told = read(&folder.path().join(machine::EXIT));
        if !told.starts_with(BEGUN) && begun_at.elapsed() < job.timeout {
            return Ok(None);
        }
        if !done {
            let (after, last) = (job.timeout, last());
            return Err(Error::Timeout { after, last });
        }
        match told.trim_start_matches(BEGUN).trim().parse() {
            Ok(code) => Ok(Some(Outcome {
                code,
                stdout: out,
                stderr: err,
                console,
            })),
            Err(_) => Err(Error::Died { last: last() }),
        }
    }
}

/// Emulated CPUs now and then stop for ever while the kernel starts (one boot in 35 did beside
/// other work), or end in a panic: such a guest is started again, so often.
const BOOTS: u32 = 3;

/// A boot takes 5 to 15 s, beside much other work a minute.
const BOOT_LIMIT: Duration = Duration::from_secs(120);

/// What init.sh says before it starts the job.
const BEGUN: &str = "begun";

/// True when @qemu ended by itself; after @job's limit, or on its stop, or where @told says nothing of
/// the job's begin for too long, it is killed.
fn wait(qemu: &mut Process, job: &Job, told: &Path) -> io::Result<bool> {
    let begun = Instant::now();
    let hangs = || begun.elapsed() > BOOT_LIMIT && read(told).is_empty();
    while begun.elapsed() < job.timeout && !job.stop.load(Ordering::Relaxed) && !hangs() {
        if qemu.0.try_wait()?.is_some() {
            return Ok(true);
        }
        thread::sleep(Duration::from_millis(20));
    }
    qemu.stop();
    Ok(false)
}

/// All of @from, also written to @to for as long as that takes it.
fn copy(from: Option<impl Read>, mut to: impl Write) -> Vec<u8> {
    let mut all = Vec::new();
    let Some(mut from) = from else { return all };
    let mut buffer = [0; 1 << 14];
    let mut wanted = true;
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        all.extend_from_slice(&buffer[..length]);
        wanted = wanted
            && to
                .write_all(&buffer[..length])
                .and_then(|()| to.flush())
                .is_ok();
    }
    all
}

fn joined(thread: thread::ScopedJoinHandle<Vec<u8>>) -> Vec<u8> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The text of @path; a file that is not there says nothing.
fn read(path: &Path) -> String {
    lossy(&std::fs::read(path).unwrap_or_default())
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The 20 lines that tell most: from a panic on, else the last.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let panic = lines.iter().position(|line| line.contains("Kernel panic"));
    let from = panic.unwrap_or(lines.len().saturating_sub(20));
    let told = lines[from..].iter().take(20);
    told.map(|line| format!("{line}\n")).collect()
}
