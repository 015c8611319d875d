// SPDX-License-Identifier: Apache-2.0
//! Job: one command for one guest, in the manner of `std::process::Command`, and
//! the shell script that init.sh starts it by. Standard input is empty. The
//! environment is a small one of its own, not the host's.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

/// What a guest is to run, and how large it is.
#[derive(Clone, Debug)]
pub struct Job {
    argv: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    dir: PathBuf,
    pub(crate) timeout: Duration,
    pub(crate) cpus: u32,
    pub(crate) memory_mib: u32,
    pub(crate) by_instructions: bool,
    pub(crate) exchange: Option<PathBuf>,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Job {
    /// @program as root in `/`, on two CPUs with 2 GiB, for ten minutes at most.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let env = [
            (
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            ),
            ("HOME", "/root"),
            ("LANG", "C.UTF-8"),
        ];
        Self {
            argv: vec![program.as_ref().to_owned()],
            env: env
                .map(|(name, value)| (name.into(), value.into()))
                .to_vec(),
            dir: "/".into(),
            timeout: Duration::from_secs(600),
            cpus: 2,
            memory_mib: 2048,
            by_instructions: false,
            exchange: None,
            stop: Arc::default(),
        }
    }

    /// One argument more.
    pub fn arg(self, arg: impl AsRef<OsStr>) -> Self {
        self.args([arg])
    }

    /// More arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        self.argv.extend(args);
        self
    }

    /// One variable; a later one of the same name counts.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Where it works.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = dir.into();
        self
    }

    /// How long it may take; booting counts.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// End it as soon as somebody raises @stop.
    pub fn until(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
    }

    /// How many CPUs the guest has.
    pub fn cpus(mut self, cpus: u32) -> Self {
        self.cpus = cpus;
        self
    }

    /// How much memory the guest has; what it writes to files lies there too.
    pub fn memory_mib(mut self, memory_mib: u32) -> Self {
        self.memory_mib = memory_mib;
        self
    }

    /// The guest's clocks advance by 1 ns with each instruction: what it measures as time are instructions, the
    /// same however busy the host is. Its CPUs take turns, without KVM.
    pub fn by_instructions(mut self, by_instructions: bool) -> Self {
        self.by_instructions = by_instructions;
        self
    }

    /// A folder of the host that the guest may write to, at the same path; the job
    /// finds it in COSCHED_EXCHANGE too.
    pub fn exchange(mut self, folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        self = self.env("COSCHED_EXCHANGE", &folder);
        self.exchange = Some(folder);
        self
    }

    pub(crate) fn script(&self) -> Vec<u8> {
        let mut script = b"cd ".to_vec();
        quote(&mut script, self.dir.as_os_str());
        script.extend(b" && exec env -i");
        for (name, value) in &self.env {
            let mut pair = name.clone();
            pair.push("=");
            pair.push(value);
            script.push(b' ');
            quote(&mut script, &pair);
        }
        for arg in &self.argv {
            script.push(b' ');
            quote(&mut script, arg);
        }
        script.push(b'\n');
        script
    }
}

/// @word as one word of a shell's.
pub(crate) fn quote(script: &mut Vec<u8>, word: &OsStr) {
    script.push(b'\'');
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => script.extend(br"'\''"),
            byte => script.push(byte),
        }
    }
    script.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_shell_reads_back_what_was_written() {
        let odd = "a 'b' \"c\" $d `e` \\f\n*";
        let job = Job::new("sh").args(["-c", "pwd; printf '%s\\n' \"$A\" \"$1\"", "-", odd]);
        let script = job.env("A", "first").env("A", odd).dir("/tmp").script();
        let script = String::from_utf8(script).unwrap();
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said, format!("/tmp\n{odd}\n{odd}\n"));
    }
}
