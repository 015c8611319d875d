// SPDX-License-Identifier: Apache-2.0
//! Install: PREFIX/bin/cosched, PREFIX/bin/coschedd and, where they are looked for, PREFIX/lib/cosched/
//! with the shim and the workloads. Files are replaced by renaming, so that a job
//! which runs on the old shim keeps it whole.

use std::path::Path;

use anyhow::{Context, Result};

use crate::build;
use crate::tree::Tree;

/// Builds, then copies below `prefix`.
pub fn all(tree: &Tree, prefix: &Path) -> Result<()> {
    build::all(tree)?;
    let (from, lib) = (tree.release(), prefix.join("lib/cosched"));
    for program in ["cosched", "coschedd"] {
        copy(&from.join(program), &prefix.join("bin").join(program))?;
    }
    copy(&from.join("libcosched.so"), &lib.join("libcosched.so"))?;
    for mpi in entries(&from.join("workloads"))? {
        for name in entries(&from.join("workloads").join(&mpi))? {
            let program = Path::new("workloads").join(&mpi).join(name);
            copy(&from.join(&program), &lib.join(&program))?;
        }
    }
    eprintln!("installed: {}/bin/cosched and coschedd", prefix.display());
    Ok(())
}

fn entries(dir: &Path) -> Result<Vec<std::ffi::OsString>> {
    let read = std::fs::read_dir(dir).and_then(|list| list.map(|e| Ok(e?.file_name())).collect());
    read.with_context(|| format!("cannot list {}", dir.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let fresh = to.with_extension("new");
    let dir = to.parent().context("no directory to install to")?;
    std::fs::create_dir_all(dir)
        .and_then(|()| std::fs::copy(from, &fresh))
        .and_then(|_| std::fs::rename(&fresh, to))
        .with_context(|| format!("cannot install {} as {}", from.display(), to.display()))
}
