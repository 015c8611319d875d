// SPDX-License-Identifier: Apache-2.0
//! A Debian suite that is not this system's: packages fetched and unpacked beside
//! it. apt works in a configuration of its own: one suite, an empty record of what
//! is installed, the mirror and the options of this machine's own apt. Nothing is
//! installed, and root is not needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::tree::{output, run, Missing};

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// An apt that knows one suite.
pub struct Suite {
    /// Where it fetches from.
    pub mirror: String,
    dir: PathBuf,
}

impl Suite {
    /// Asks the mirror what the suite @name has; apt's files are to lie in @dir.
    pub fn open(name: &str, dir: &Path) -> Result<Self> {
        let suite = Self {
            mirror: mirror()?,
            dir: dir.to_owned(),
        };
        let source = format!("deb [signed-by={KEYRING}] {} {name} main\n", suite.mirror);
        suite
            .prepare(&source)
            .with_context(|| format!("cannot prepare {}", dir.display()))?;
        run(suite.apt("apt-get").arg("update")).map_err(|why| {
            Missing(format!(
                "cannot read what {name} has at {}: {why:#}",
                suite.mirror
            ))
        })?;
        Ok(suite)
    }

    fn prepare(&self, source: &str) -> std::io::Result<()> {
        fs::create_dir_all(self.dir.join("lists/partial"))?;
        fs::create_dir_all(self.archives().join("partial"))?;
        fs::write(self.dir.join("status"), "")?;
        fs::write(self.dir.join("sources.list"), source)
    }

    fn archives(&self) -> PathBuf {
        self.dir.join("cache/archives")
    }

    /// @program of apt's that knows nothing of this system but its options.
    fn apt(&self, program: &str) -> Command {
        let mut apt = Command::new(program);
        apt.args([
            "-qq",
            "-oAPT::Get::Assume-Yes=true",
            "-oAPT::Install-Recommends=false",
            "-oDir::Etc::SourceParts=/dev/null",
            "-oAPT::Sandbox::User=root",
            "-oAPT::Update::Error-Mode=any",
            "-oAcquire::Retries=2",
        ]);
        for (key, name) in [
            ("Dir::Etc::SourceList", "sources.list"),
            ("Dir::State::Lists", "lists"),
            ("Dir::State::status", "status"),
            ("Dir::Cache", "cache"),
        ] {
            apt.arg(format!("-o{key}={}", self.dir.join(name).display()));
        }
        apt
    }

    /// Fetches @packages and all that they depend on.
    pub fn install(&self, packages: &[&str]) -> Result<()> {
        let mut apt = self.apt("apt-get");
        run(apt.args(["install", "--download-only"]).args(packages))
    }

    /// Fetches @packages without what they depend on.
    pub fn download(&self, packages: &[impl AsRef<std::ffi::OsStr>]) -> Result<()> {
        let mut apt = self.apt("apt-get");
        run(apt
            .current_dir(self.archives())
            .arg("download")
            .args(packages))
    }

    /// What @package depends on, one step, by apt's own words.
    pub fn depends(&self, package: &str) -> Result<Vec<String>> {
        let said = output(
            self.apt("apt-cache")
                .args(["depends", "--important", package]),
        )?;
        let names = said
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Depends: "));
        Ok(names.map(str::to_owned).collect())
    }

    /// Unpacks all that was fetched into @root.
    pub fn unpack(&self, root: &Path) -> Result<()> {
        for deb in fs::read_dir(self.archives()).context("cannot list what apt fetched")? {
            let deb = deb.context("cannot list what apt fetched")?.path();
            if deb.extension().is_some_and(|ext| ext == "deb") {
                run(Command::new("dpkg").arg("-x").arg(&deb).arg(root))?;
            }
        }
        Ok(())
    }

    /// Removes apt's files.
    pub fn close(self) -> Result<()> {
        fs::remove_dir_all(&self.dir).context("cannot remove what apt left")
    }
}

/// Where this machine's own apt gets Debian from.
fn mirror() -> Result<String> {
    let fields = ["indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(LABEL)"];
    let targets = output(
        Command::new("apt-get")
            .args(fields)
            .arg("Created-By: Packages"),
    );
    let targets =
        targets.map_err(|why| Missing(format!("no mirror to fetch packages from: {why:#}")))?;
    let debian = targets
        .lines()
        .find_map(|line| line.strip_suffix(" Debian Debian"));
    let missing = || Missing("this machine's apt sources name no Debian mirror; add one".into());
    Ok(debian.ok_or_else(missing)?.to_owned())
}
