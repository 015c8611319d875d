// SPDX-License-Identifier: Apache-2.0
//! Setup: what a Debian machine needs to build, test and show cosched. One list,
//! each package with its reason; only what is missing is installed, without
//! recommended packages.

use std::process::{Command, Stdio};

use anyhow::Result;

use crate::tree::{output, run, which, Missing};

const PACKAGES: [(&str, &str); 26] = [
    ("gcc", "the shim and what the workloads' compilers call"),
    ("make", "make test, make demo"),
    (
        "clang",
        "policy/ compiled for BPF, and the second opinion on every header",
    ),
    ("clang-19", "bpf/: clang 14 is too old for it"),
    ("llvm", "llvm-strip for BPF objects"),
    ("libclang-dev", "bindgen reads policy/ and abi/ with it"),
    ("libelf-dev", "libbpf"),
    ("zlib1g-dev", "libbpf"),
    ("pkg-config", "libbpf's build finds libelf with it"),
    ("openmpi-bin", "mpirun.openmpi"),
    ("libopenmpi-dev", "mpicc.openmpi, mpifort.openmpi"),
    ("mpich", "mpirun.mpich"),
    ("libmpich-dev", "mpicc.mpich"),
    ("gfortran", "the tests of Fortran's three interfaces"),
    ("lammps", "the real program of tests and demo"),
    ("pvm", "a library that blocks already: must stay as it is"),
    ("pvm-dev", "to build a PVM program"),
    ("python3-mpi4py", "MPI loaded with RTLD_LOCAL"),
    ("valgrind", "callgrind counts the instructions per MPI call"),
    ("strace", "tests count the system calls of ranks"),
    ("iproute2", "network namespaces stand in for nodes"),
    (
        "qemu-system-x86",
        "guests with a sched_ext kernel; brings virtiofsd",
    ),
    ("ghostscript", "a competitor in S1's mixed workload"),
    ("stress-ng", "a guest that does all that a scheduler fears"),
    ("kmod", "the modules of that kernel"),
    ("systemd", "runs coschedd's unit in a guest"),
];

/// Installs what is missing; says what to type where we may not.
pub fn all() -> Result<()> {
    if which("dpkg-query").is_none() {
        let names = PACKAGES.map(|(name, reason)| format!("{name} ({reason})"));
        return Err(Missing(format!(
            "this is no Debian system; install the likes of: {}",
            names.join(", ")
        ))
        .into());
    }
    let missing: Vec<_> = PACKAGES
        .iter()
        .filter(|(name, _)| !installed(name))
        .collect();
    if missing.is_empty() {
        eprintln!("setup: all {} packages are installed", PACKAGES.len());
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    if output(Command::new("id").arg("-u"))?.trim() != "0" {
        return Err(Missing(format!(
            "only root may install packages; type: sudo apt-get install --no-install-recommends {}",
            names.join(" ")
        ))
        .into());
    }
    for (name, reason) in missing {
        eprintln!("setup: {name}: {reason}");
    }
    run(apt_get().arg("update"))?;
    run(apt_get()
        .args(["install", "--no-install-recommends"])
        .args(names))
}

fn apt_get() -> Command {
    let mut apt = Command::new("apt-get");
    apt.args(["-qq", "-y"])
        .env("DEBIAN_FRONTEND", "noninteractive");
    apt
}

fn installed(name: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query
        .args(["-W", "-f=${db:Status-Status}", name])
        .stderr(Stdio::null());
    query.output().is_ok_and(|out| out.stdout == b"installed")
}
