// SPDX-License-Identifier: Apache-2.0
//! What a guest needs of this machine, and what to type where it is not there: a
//! kernel with sched_ext, QEMU, and virtiofsd.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;

/// Names a ready kernel.
pub const VARIABLE: &str = "COSCHED_VMLINUZ";

const QEMU: &str = "qemu-system-x86_64";

const SETUP: &str = "type: cargo xtask setup";

/// A kernel to boot.
#[derive(Clone, Debug)]
pub struct Kernel {
    vmlinuz: PathBuf,
}

impl Kernel {
    /// That which COSCHED_VMLINUZ names, or else that below @folder: an unpacked
    /// package, FOLDER/RELEASE/usr/lib/modules/RELEASE/vmlinuz.
    pub fn find(folder: &Path) -> Result<Self, Error> {
        if let Some(vmlinuz) = env::var_os(VARIABLE) {
            return Self::named(Path::new(&vmlinuz));
        }
        let unpacked = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut kernels = unpacked.map(|entry| {
            let modules = entry.path().join("usr/lib/modules");
            modules.join(entry.file_name()).join("vmlinuz")
        });
        let found = kernels.find(|vmlinuz| vmlinuz.is_file());
        let found = found.ok_or_else(|| {
            Error::Missing(format!(
                "no kernel for guests in {}; type: cargo xtask vm prepare, \
                 or let {VARIABLE} name a vmlinuz with sched_ext",
                folder.display()
            ))
        })?;
        Self::named(&found)
    }

    fn named(vmlinuz: &Path) -> Result<Self, Error> {
        let vmlinuz = vmlinuz.canonicalize().map_err(|why| {
            let path = vmlinuz.display();
            Error::Missing(format!("no kernel {path}, which {VARIABLE} names: {why}"))
        })?;
        Ok(Self { vmlinuz })
    }

    /// The file to boot.
    pub fn vmlinuz(&self) -> &Path {
        &self.vmlinuz
    }

    /// Its modules and its configuration, where they lie beside it, as Debian's do.
    /// Without them overlay must be built in.
    pub fn modules(&self) -> Option<&Path> {
        let beside = self.vmlinuz.parent()?;
        beside.join("modules.dep").is_file().then_some(beside)
    }
}

/// @program as PATH finds it, or where Debian has what only root needs.
pub fn installed(program: &str) -> Result<PathBuf, Error> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    first(folders.map(|folder| folder.join(program)))
        .ok_or_else(|| Error::Missing(format!("{program} is not installed; {SETUP}")))
}

/// QEMU, and where its firmware lies if that is not where it looks by itself.
#[derive(Clone, Debug)]
pub struct Qemu {
    program: PathBuf,
    firmware: Vec<PathBuf>,
}

impl Qemu {
    /// The one that was unpacked into FOLDER/qemu, or else the system's.
    pub fn find(folder: &Path) -> Result<Self, Error> {
        let usr = folder.join("qemu/usr");
        let fresh = usr.join("bin").join(QEMU);
        if fresh.is_file() {
            let firmware = ["qemu", "seabios"].map(|name| usr.join("share").join(name));
            return Ok(Self {
                program: fresh,
                firmware: firmware.into(),
            });
        }
        Ok(Self {
            program: installed(QEMU)?,
            firmware: Vec::new(),
        })
    }

    /// Whether emulated CPUs see each other's changes of code: before 8.1 one could keep the
    /// breakpoint by which Linux patches itself (jump labels, tracepoints, sched_ext), and panic.
    pub fn patches_safely(&self) -> bool {
        self.version().is_some_and(|version| version >= (8, 1))
    }

    pub(crate) fn version(&self) -> Option<(u32, u32)> {
        let out = Command::new(&self.program).arg("--version").output().ok()?;
        let text = String::from_utf8(out.stdout).ok()?;
        let number = text.split("version ").nth(1)?;
        let mut parts = number.split(['.', ' ']).map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    }

    pub(crate) fn arguments(&self) -> impl Iterator<Item = &std::ffi::OsStr> {
        let program = std::iter::once(self.program.as_os_str());
        let firmware = self.firmware.iter();
        program.chain(firmware.flat_map(|path| ["-L".as_ref(), path.as_os_str()]))
    }
}

/// QEMU's own (up to 7.2), or the one in Rust after it, which takes the same options.
pub(crate) fn virtiofsd() -> Result<PathBuf, Error> {
    let places = ["/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd"];
    first(places.into_iter().map(PathBuf::from)).map_or_else(|| installed("virtiofsd"), Ok)
}

fn first(mut paths: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    paths.find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_kernel_says_what_to_type() {
        let error = Kernel::find(Path::new("/nonexistent")).unwrap_err();
        assert!(error.to_string().contains("cargo xtask vm prepare"));
    }

    #[test]
    fn a_missing_program_says_what_to_type() {
        let error = installed("no-such-program").unwrap_err();
        assert!(error.to_string().ends_with(SETUP));
    }
}
