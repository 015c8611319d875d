// SPDX-License-Identifier: Apache-2.0
//! Where things are, and how a command is run: the source tree as cargo sees it,
//! the target directory it was told, and errors that carry their exit code.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use anyhow::{ensure, Context, Result};
use serde_json::Value;

/// The source tree, as `cargo metadata` describes it.
pub struct Tree {
    /// Where the workspace's Cargo.toml is.
    pub root: PathBuf,
    /// `target/`, or what CARGO_TARGET_DIR says.
    pub target: PathBuf,
    /// The whole answer of `cargo metadata --no-deps`.
    pub metadata: Value,
}

impl Tree {
    /// Asks cargo.
    pub fn find() -> Result<Self> {
        let text = output(cargo().args(["metadata", "--no-deps", "--format-version=1"]))?;
        let metadata: Value = serde_json::from_str(&text).context("cargo metadata")?;
        let path = |key: &str| {
            let text = metadata[key].as_str();
            text.map(PathBuf::from)
                .with_context(|| format!("cargo metadata has no {key}"))
        };
        Ok(Self {
            root: path("workspace_root")?,
            target: path("target_directory")?,
            metadata,
        })
    }

    /// Where a release build's programs lie.
    pub fn release(&self) -> PathBuf {
        self.target.join("release")
    }

    /// The files in `dir` (relative to the root) that end in `.ext`, sorted;
    /// none where there is no such directory.
    pub fn files(&self, dir: &str, ext: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.root.join(dir)).into_iter().flatten();
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension() == Some(OsStr::new(ext)))
            .collect();
        files.sort();
        files
    }
}

/// Something that this machine lacks: exit code 3.
#[derive(Debug)]
pub struct Missing(pub String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// 3 where this machine lacks something, else 1.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<Missing>() {
        3
    } else {
        1
    }
}

/// The cargo that runs us.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs `command` with our stdout and stderr; an error names it.
pub fn run(command: &mut Command) -> Result<()> {
    let line = show(command);
    let status = command.stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot start: {line}"))?;
    ensure!(status.success(), "{status}: {line}");
    Ok(())
}

/// Runs `command` and returns its stdout.
pub fn output(command: &mut Command) -> Result<String> {
    let line = show(command);
    let out = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output();
    let out = out.with_context(|| format!("cannot start: {line}"))?;
    ensure!(out.status.success(), "{}: {line}", out.status);
    String::from_utf8(out.stdout).with_context(|| format!("not UTF-8: output of {line}"))
}

fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The program `name` as PATH finds it.
pub fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
}

/// True where `output` exists and no input is younger.
pub fn up_to_date<P: AsRef<Path>>(output: &Path, inputs: impl IntoIterator<Item = P>) -> bool {
    let changed_at =
        |path: &Path| -> Option<SystemTime> { std::fs::metadata(path).ok()?.modified().ok() };
    let Some(built_at) = changed_at(output) else {
        return false;
    };
    inputs
        .into_iter()
        .all(|input| changed_at(input.as_ref()).is_some_and(|at| at <= built_at))
}
