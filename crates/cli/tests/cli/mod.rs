// SPDX-License-Identifier: Apache-2.0
//! An installation of cosched for one test: the program, something that can be
//! preloaded beside it, and a runtime directory of its own.

#![allow(dead_code, reason = "each test file uses a part")]

use assert_cmd::Command;
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

pub struct Install {
    dir: tempfile::TempDir,
}

impl Install {
    /// As a user has it. The C library stands in for the shim: it is preloaded already.
    pub fn new() -> Install {
        let install = Install::without_shim();
        symlink(c_library(), install.dir.path().join("libcosched.so")).unwrap();
        install
    }

    pub fn without_shim() -> Install {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::hard_link(env!("CARGO_BIN_EXE_cosched"), dir.path().join("cosched")).unwrap();
        // A socket's address is short, and the target directory may not be.
        let runtime = tempfile::Builder::new()
            .prefix("t")
            .tempdir_in("/tmp")
            .unwrap()
            .keep();
        symlink(runtime, dir.path().join("runtime")).unwrap();
        Install { dir }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn exe(&self) -> PathBuf {
        self.path().join("cosched")
    }

    /// Where keepers of this installation live.
    pub fn runtime(&self) -> PathBuf {
        fs::read_link(self.path().join("runtime")).unwrap()
    }

    pub fn keepers(&self) -> Vec<PathBuf> {
        fs::read_dir(self.runtime())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect()
    }

    pub fn cosched(&self) -> Command {
        Command::from_std(self.std())
    }

    /// `cosched run -- sh -c SCRIPT`
    pub fn run_sh(&self, script: &str) -> Command {
        let mut command = self.cosched();
        command.args(["run", "--", "sh", "-c", script]);
        command
    }

    pub fn std(&self) -> std::process::Command {
        let mut command = std::process::Command::new(self.exe());
        command.env("XDG_RUNTIME_DIR", self.runtime());
        for name in [
            "COSCHED",
            "COSCHED_SHIM",
            "COSCHED_KEEPER",
            "COSCHED_PARAMS",
            "LD_PRELOAD",
        ] {
            command.env_remove(name);
        }
        command
    }
}

impl Drop for Install {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.runtime());
    }
}

fn c_library() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let path = maps.lines().find_map(|line| {
        line.split_whitespace()
            .nth(5)
            .filter(|p| p.contains("/libc.so"))
    });
    PathBuf::from(path.expect("tests are linked with the C library"))
}

/// Polls for at most 5 s.
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(
            begin.elapsed() < Duration::from_secs(5),
            "waited for {what}"
        );
        thread::sleep(Duration::from_millis(5));
    }
}
