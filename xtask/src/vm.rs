// SPDX-License-Identifier: Apache-2.0
//! Vm: the kernel that guests boot, and a command in a guest. The build machine's
//! kernel need not have sched_ext; Debian's newest has. Which that is, is asked when
//! it is fetched, since the mirror keeps no old ones. It stays in target/vm until
//! that is removed. What a guest is, crates/vm decides.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use clap::Args;
use cosched_vm::{Error, Guest, Job, Kernel, Qemu};

use crate::suite::Suite;
use crate::tree::{run as run_command, Missing, Tree};

const SUITE: &str = "sid";
const NEWEST: &str = "linux-image-cloud-amd64";

/// What to do with guests.
#[derive(clap::Subcommand)]
pub enum What {
    /// Fetch Debian's newest kernel, unless one is there
    Prepare,
    /// Boot, run CMD as root at the same place with the same environment, power off
    Run(Run),
}

/// A command in a guest.
#[derive(Args)]
pub struct Run {
    /// How many CPUs the guest has
    #[arg(long, value_name = "N", default_value_t = 2)]
    cpus: u32,
    /// How much memory the guest has, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    memory: u32,
    /// End it after so many seconds, booting included
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
    /// Its clocks count instructions, 1 ns each: slow, and the same however busy the host is
    #[arg(long)]
    instructions: bool,
    /// A folder that the command may write to; all else that it writes is lost
    #[arg(long, value_name = "DIR")]
    exchange: Option<PathBuf>,
    /// The command
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Where guests' kernels lie.
fn folder(tree: &Tree) -> PathBuf {
    tree.target.join("vm")
}

/// Fetches a kernel, unless one is there or named, and a QEMU where the system's is too old.
pub fn prepare(tree: &Tree) -> Result<()> {
    let folder = folder(tree);
    if !Qemu::find(&folder).map_err(missing)?.patches_safely() {
        fetch_qemu(&folder)?;
    }
    if Kernel::find(&folder).is_err() {
        fetch(&folder)?;
    }
    let kernel = Kernel::find(&folder).map_err(missing)?;
    eprintln!("vm: {}", kernel.vmlinuz().display());
    Ok(())
}

/// Into FOLDER/RELEASE, by way of a folder of another name: what is there is whole.
fn fetch(folder: &Path) -> Result<()> {
    let fresh = folder.join("new");
    if fresh.exists() {
        fs::remove_dir_all(&fresh).context("cannot remove what an earlier fetch left")?;
    }
    let suite = Suite::open(SUITE, &fresh.join("apt"))?;
    let release = release(&suite)?;
    // The rest of the image's dependencies make an initramfs, which guests do without.
    let packages = ["binary", "modules", "base"].map(|part| format!("linux-{part}-{release}"));
    suite.download(&packages).map_err(|why| {
        let from = &suite.mirror;
        Missing(format!(
            "cannot fetch the kernel {release} from {from}: {why:#}"
        ))
    })?;
    suite.unpack(&fresh)?;
    suite.close()?;
    let modules = fresh.join("usr/lib/modules").join(&release);
    has_sched_ext(&modules.join("config"))?;
    let depmod = cosched_vm::installed("depmod").map_err(missing)?;
    run_command(
        Command::new(depmod)
            .arg("-b")
            .arg(fresh.join("usr"))
            .arg(&release),
    )?;
    fs::rename(&fresh, folder.join(&release)).context("cannot put the kernel in its place")
}

/// From the backports of this Debian, whose libraries are those of the QEMU that is installed.
fn fetch_qemu(folder: &Path) -> Result<()> {
    let fresh = folder.join("new-qemu");
    if fresh.exists() {
        fs::remove_dir_all(&fresh).context("cannot remove what an earlier fetch left")?;
    }
    let release = fs::read_to_string("/etc/os-release").context("cannot read /etc/os-release")?;
    let codename = release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .ok_or_else(|| {
            Missing("/etc/os-release has no codename; install QEMU 8.1 or newer".into())
        })?;
    let suite = Suite::open(&format!("{codename}-backports"), &fresh.join("apt"))?;
    let packages = [
        "qemu-system-x86",
        "qemu-system-common",
        "qemu-system-data",
        "seabios",
    ];
    suite.download(&packages).map_err(|why| {
        let from = &suite.mirror;
        Missing(format!(
            "cannot fetch QEMU 8.1 or newer from {from}: {why:#}"
        ))
    })?;
    suite.unpack(&fresh)?;
    suite.close()?;
    fs::rename(&fresh, folder.join("qemu")).context("cannot put QEMU in its place")
}

/// The newest there, as `uname -r` will say it.
fn release(suite: &Suite) -> Result<String> {
    let depends = suite.depends(NEWEST)?;
    let mut images = depends
        .iter()
        .filter_map(|name| name.strip_prefix("linux-image-"));
    let missing = || Missing(format!("{SUITE} of {} has no {NEWEST}", suite.mirror));
    Ok(images.next().ok_or_else(missing)?.to_owned())
}

fn has_sched_ext(config: &Path) -> Result<()> {
    let text =
        fs::read_to_string(config).with_context(|| format!("cannot read {}", config.display()))?;
    let wanted = "CONFIG_SCHED_CLASS_EXT=y";
    ensure!(
        text.lines().any(|line| line == wanted),
        Missing(format!(
            "the newest kernel of {SUITE} is not built with {wanted}"
        ))
    );
    Ok(())
}

/// Runs a command in a guest; its output and its exit code are ours.
pub fn run(tree: &Tree, args: &Run) -> Result<ExitCode> {
    let guest = Guest::find(&folder(tree)).map_err(missing)?;
    let here = env::current_dir().context("where am I?")?;
    let mut job = Job::new(&args.command[0])
        .args(&args.command[1..])
        .cpus(args.cpus)
        .memory_mib(args.memory)
        .by_instructions(args.instructions)
        .timeout(Duration::from_secs(args.timeout));
    job = env::vars_os().fold(job, |job, (name, value)| job.env(name, value));
    if let Some(exchange) = &args.exchange {
        job = job.exchange(exchange);
    }
    let outcome = guest.run_into(&job.dir(here), std::io::stdout(), std::io::stderr());
    let code = outcome.map_err(missing)?.code;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// What is missing to the library is missing to us.
fn missing(error: Error) -> anyhow::Error {
    match error {
        Error::Missing(what) => Missing(what).into(),
        error => error.into(),
    }
}
