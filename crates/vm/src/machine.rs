// SPDX-License-Identifier: Apache-2.0
//! The machine: what QEMU and virtiofsd are told. Two CPUs of emulation are two
//! threads of QEMU's. The job's stdout, stderr and exit code leave by a port each;
//! the serial console is the kernel's alone, so that no message mixes with output.
//!
//! All that is started here ends with the thread that started it, however that ends.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::job::{quote, Job};
use crate::{Error, Guest};

/// What the kernel said, in the guest's folder.
pub(crate) const CONSOLE: &str = "console";
/// What the servers of files said.
pub(crate) const SHARES: &str = "shares";
/// The job's exit code.
pub(crate) const EXIT: &str = "exit";

/// A process that does not outlive this.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn stop(&mut self) {
        // An error says that it has ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A guest that runs.
pub(crate) struct Machine {
    pub(crate) qemu: Process,
    /// They serve as long as this lives.
    _shares: Vec<Process>,
}

impl Guest {
    /// Starts @job; @folder is for what one guest needs.
    pub(crate) fn start(&self, job: &Job, folder: &Path) -> Result<Machine, Error> {
        self.write_files(job, folder)
            .map_err(Error::host(format!("write to {}", folder.display())))?;
        let mut shares = vec![self.share(folder, "root", Path::new("/"))?];
        if let Some(exchange) = &job.exchange {
            fs::create_dir_all(exchange)
                .map_err(Error::host(format!("make {}", exchange.display())))?;
            shares.push(self.share(folder, "exchange", exchange)?);
        }
        let mut qemu = ends_with_us();
        qemu.args(self.qemu.arguments()).args(machine(job));
        qemu.arg("-kernel").arg(self.kernel.vmlinuz());
        qemu.arg("-append").arg(kernel_arguments(folder));
        qemu.args(ports(folder));
        for tag in ["root", "exchange"].iter().take(shares.len()) {
            let path = folder.join(tag);
            qemu.arg("-chardev")
                .arg(format!("socket,id={tag},path={}", path.display()));
            qemu.arg("-device")
                .arg(format!("vhost-user-fs-pci,chardev={tag},tag={tag}"));
        }
        qemu.stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let qemu = qemu.spawn().map_err(Error::host("start QEMU"))?;
        Ok(Machine {
            qemu: Process(qemu),
            _shares: shares,
        })
    }

    fn write_files(&self, job: &Job, folder: &Path) -> io::Result<()> {
        let mut settings = b"modules=".to_vec();
        quote(&mut settings, path(self.kernel.modules()));
        settings.extend(b"\nexchange=");
        quote(&mut settings, path(job.exchange.as_deref()));
        settings.push(b'\n');
        fs::write(folder.join("settings"), settings)?;
        fs::write(folder.join("job"), job.script())?;
        fs::write(folder.join("init"), include_str!("init.sh"))?;
        fs::set_permissions(folder.join("init"), fs::Permissions::from_mode(0o755))
    }

    /// A server of @source for the guest, which QEMU reaches at FOLDER/TAG. What is
    /// the guest's root cannot be written here either.
    fn share(&self, folder: &Path, tag: &str, source: &Path) -> Result<Process, Error> {
        let socket = folder.join(tag);
        let listener = UnixListener::bind(&socket)
            .map_err(Error::host(format!("listen at {}", socket.display())))?;
        let log = log(&folder.join(SHARES)).map_err(Error::host("write a log"))?;
        let (mut share, cache) = if source == Path::new("/") {
            let mut apart = Command::new("unshare");
            let script = "mount -o remount,bind,ro / && exec \"$@\"";
            apart.args([
                "--mount",
                "sh",
                "-c",
                script,
                "sh",
                "setpriv",
                "--pdeathsig=KILL",
            ]);
            (apart, "always")
        } else {
            (ends_with_us(), "auto")
        };
        // By a link of a plain name, for a path may have a comma.
        let link = folder.join(format!("{tag}-source"));
        symlink(source, &link).map_err(Error::host(format!("make {}", link.display())))?;
        let options = format!("sandbox=chroot,cache={cache},source={}/.", link.display());
        share.arg(&self.virtiofsd).args(["-f", "--fd=0", "-o"]);
        share.arg(options);
        share.stdin(OwnedFd::from(listener)).stdout(Stdio::null());
        share.stderr(log);
        let share = share.spawn().map_err(Error::host("start virtiofsd"))?;
        Ok(Process(share))
    }
}

fn path(path: Option<&Path>) -> &OsStr {
    path.map(Path::as_os_str).unwrap_or_default()
}

fn log(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// A command that is killed when the thread that starts it ends.
fn ends_with_us() -> Command {
    let mut command = Command::new("setpriv");
    command.arg("--pdeathsig=KILL");
    command
}

fn machine(job: &Job) -> Vec<String> {
    let Job {
        cpus, memory_mib, ..
    } = job;
    let memory = format!("memory-backend-memfd,id=memory,size={memory_mib}M,share=on");
    let mut all = vec![
        "-nodefaults -no-user-config -display none -no-reboot".to_owned(),
        format!("-machine q35,memory-backend=memory -object {memory}"),
        format!("-cpu max -smp {cpus} -m {memory_mib}M"),
    ];
    all.push(accelerators(job.by_instructions).to_owned());
    all.iter()
        .flat_map(|line| line.split(' ').map(str::to_owned))
        .collect()
}

/// Of two the first that works is taken.
fn accelerators(by_instructions: bool) -> &'static str {
    match (by_instructions, kvm()) {
        (true, _) => "-accel tcg,thread=single -icount shift=0,sleep=off",
        (false, true) => "-accel kvm -accel tcg,thread=multi",
        (false, false) => "-accel tcg,thread=multi",
    }
}

/// True where /dev/kvm is ours to use and the CPU behind it can. Some machines have
/// the one without the other; QEMU aborts there.
pub(crate) fn kvm() -> bool {
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let able = flags
        .split_whitespace()
        .any(|flag| matches!(flag, "svm" | "vmx"));
    able && OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/kvm")
        .is_ok()
}

/// Quiet, and free of checks that take a busy host for broken hardware: a virtual CPU
/// that does not run for a while makes a timer look dead and a clock unstable.
fn kernel_arguments(folder: &Path) -> String {
    let init = folder.join("init");
    format!(
        "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check tsc=reliable \
         root=root rootfstype=virtiofs ro init={}",
        init.display()
    )
}

/// The console and the three ports, in the order that init.sh knows.
fn ports(folder: &Path) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut all = vec!["-serial".into(), format!("file:{}", file(CONSOLE))];
    all.extend(["-device".into(), "virtio-serial-pci".into()]);
    let outputs = ["/dev/stdout".into(), "/dev/stderr".into(), file(EXIT)];
    for (number, output) in (1..).zip(outputs) {
        all.extend([
            "-chardev".into(),
            format!("file,id=port{number},path={output}"),
        ]);
        let port = format!("virtserialport,chardev=port{number},nr={number}");
        all.extend(["-device".into(), port]);
    }
    all
}
