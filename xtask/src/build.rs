// SPDX-License-Identifier: Apache-2.0
//! Build: what cargo builds, then what only a C compiler can. The shim is one
//! shared library without mpi.h; a workload is one program per source file and
//! MPI, since the ABIs differ. Each output is rebuilt when a source, a header or
//! this program (which knows the flags) is younger.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::mpis;
use crate::tree::{cargo, run, up_to_date, which, Missing, Tree};

const C_FLAGS: [&str; 6] = ["-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-Werror"];

/// Everything, into the release directory.
pub fn all(tree: &Tree) -> Result<()> {
    run(cargo()
        .args(["build", "--release", "--workspace", "--exclude=xtask"])
        .env("COSCHED_REVISION", revision()))?;
    shim(tree)?;
    let found = mpis(tree);
    if found.is_empty() {
        return Err(Missing(
            "no MPI compiler (mpicc.openmpi, mpicc.mpich), so no workloads; \
             type: cargo xtask setup"
                .into(),
        )
        .into());
    }
    found
        .iter()
        .try_for_each(|(cc, mpi)| workloads(tree, cc, mpi))
}

/// The MPIs found, as compiler and name: those that a Debian system may have
/// beside each other, and `openmpi-SUITE` where `cargo xtask mpis` put them.
fn mpis(tree: &Tree) -> Vec<(PathBuf, String)> {
    let system = ["openmpi", "mpich"]
        .into_iter()
        .filter_map(|mpi| Some((which(&format!("mpicc.{mpi}"))?, mpi.to_owned())));
    let suites = std::fs::read_dir(tree.target.join("mpis"))
        .into_iter()
        .flatten();
    let newer = suites.flatten().flat_map(|suite| {
        let name = suite.file_name().to_string_lossy().into_owned();
        let compilers = mpis::compilers(&suite.path()).into_iter();
        compilers.map(move |(cc, mpi)| (cc, format!("{mpi}-{name}")))
    });
    system.chain(newer).collect()
}

/// What is built, for the provenance of measurements.
fn revision() -> String {
    let described = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=10"])
        .output();
    match described {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => "unknown".to_owned(),
    }
}

fn shim(tree: &Tree) -> Result<()> {
    let sources = tree.files("shim", "c");
    let flags = [
        "-D_GNU_SOURCE",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        "-ftls-model=initial-exec",
    ];
    if sources.is_empty() {
        return Ok(());
    }
    let output = tree.release().join("libcosched.so");
    let headers = ["shim", "abi", "policy"]
        .map(|dir| tree.files(dir, "h"))
        .concat();
    compile(Command::new("cc").args(flags), &sources, &headers, &output)
}

fn workloads(tree: &Tree, mpicc: &Path, mpi: &str) -> Result<()> {
    let dir = tree.release().join("workloads").join(mpi);
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let headers = tree.files("workloads", "h");
    for source in tree.files("workloads", "c") {
        let name = source.file_stem().context("a source file without a name")?;
        let output = dir.join(name);
        // MPI is linked only where it is used: `local` is no MPI program.
        let mut mpicc = Command::new(mpicc);
        mpicc.args(["-Wl,--as-needed"]);
        compile(&mut mpicc, &[source], &headers, &output)?;
    }
    Ok(())
}

/// Compiles into a file beside `output` and renames it, so that a program which
/// runs or preloads the old one keeps it whole.
fn compile(
    cc: &mut Command,
    sources: &[PathBuf],
    headers: &[PathBuf],
    output: &Path,
) -> Result<()> {
    let myself = std::env::current_exe().context("where am I?")?;
    if up_to_date(output, sources.iter().chain(headers).chain([&myself])) {
        return Ok(());
    }
    eprintln!("   Compiling {}", output.display());
    let fresh = output.with_extension("new");
    run(cc
        .args(C_FLAGS)
        .arg("-o")
        .arg(&fresh)
        .args(sources)
        .arg("-lm"))?;
    std::fs::rename(&fresh, output)
        .with_context(|| format!("cannot rename to {}", output.display()))
}
