// SPDX-License-Identifier: Apache-2.0
//! What the tests across parts share: where things are, and how a test says
//! that this machine lacks what it needs.

pub mod attack;
pub mod coschedd;
pub mod inside;
pub mod job;
pub mod live;
pub mod observer;
pub mod strace;

use std::{
    env, fmt,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use cosched_vm::Guest;

/// The top of the source tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// @found, or nothing, and the test is over: it says `SKIPPED <test>: <reason>`
/// (on stderr, past the harness's capture, so that it can be counted). Under
/// CI=true nothing may be skipped: there it fails.
pub fn need<T>(test: &str, found: Result<T, impl fmt::Display>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(reason) if env::var_os("CI").is_some_and(|ci| ci == "true") => {
            panic!("{test} may not be skipped under CI=true: {reason}")
        }
        Err(reason) => {
            writeln!(io::stderr(), "SKIPPED {test}: {reason}").expect("stderr is open");
            None
        }
    }
}

/// A guest to boot.
pub fn guest() -> Result<Guest, cosched_vm::Error> {
    Guest::find(&job::release().with_file_name("vm"))
}

/// @name as a program that answers to `--version`; it must be installed.
pub fn tool(name: &str) -> Result<String, String> {
    let status = Command::new(name)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(name.to_owned()),
        Ok(status) => Err(format!("{name} --version fails: {status}")),
        Err(error) => Err(format!("{name} is not installed: {error}")),
    }
}

/// The program that `cc` makes of @source with @flags, in @folder; without a warning.
pub fn c_program(folder: &Path, source: &Path, flags: &[&str]) -> PathBuf {
    let program = folder.join(source.file_stem().expect("a C file"));
    let status = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror"])
        .args(flags)
        .arg("-o")
        .args([&program, source])
        .status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "cc {flags:?} {}: {status:?}",
        source.display()
    );
    program
}

/// @source of tests/bpf compiled for BPF by @clang with @flags, in @folder; without a warning.
pub fn bpf_object(folder: &Path, clang: &str, source: &str, flags: &[&str]) -> PathBuf {
    let object = folder.join("program.bpf.o");
    let status = Command::new(clang)
        .args(["-target", "bpf", "-std=gnu11", "-O2", "-g"])
        .args(["-Wall", "-Wextra", "-Werror", "-I"])
        .arg(root().join("policy"))
        .args(flags)
        .arg("-c")
        .arg(root().join("tests/bpf").join(source))
        .arg("-o")
        .arg(&object)
        .status()
        .expect("clang was found");
    assert!(status.success(), "{source} does not compile");
    object
}

/// @name as PATH finds it.
pub fn installed(name: &str) -> Result<PathBuf, String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut found = env::split_paths(&path).map(|folder| folder.join(name));
    found
        .find(|file| file.is_file())
        .ok_or_else(|| format!("{name} is not installed; type: cargo xtask setup"))
}

/// For tests of the kernel.
pub fn superuser() -> Result<(), &'static str> {
    if rustix::process::geteuid().is_root() {
        Ok(())
    } else {
        Err("needs root")
    }
}
