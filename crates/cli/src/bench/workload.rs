// SPDX-License-Identifier: Apache-2.0
//! Built-in workloads: their names, where they lie, and who starts their ranks.
//!
//! An MPI's launcher does for most. `yielders` and `arrivals` are jobs without MPI, which fork their
//! ranks; told by the same options, `calcula` forks its own in the same way and so measures the fair
//! share of such a job. What a workload computes is its own matter (workloads/).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::launch::{Mpi, Placement};
use crate::fault::Fault;

/// All of them.
pub const NAMES: [&str; 8] = [
    "latency",
    "barrier",
    "sor",
    "master_slave",
    "calcula",
    "local",
    "yielders",
    "arrivals",
];

/// Those without MPI.
const FORKING: [&str; 2] = ["yielders", "arrivals"];

/// How many ranks a workload can fork: workloads/workers.h.
const WORKERS: std::ops::RangeInclusive<u32> = 2..=64;

/// Whether workload @name forks its ranks itself.
pub fn forks(name: &str) -> bool {
    FORKING.contains(&name)
}

/// One rank per CPU, where that can be.
pub fn default_workers(nr_cpus: usize) -> u32 {
    (nr_cpus as u32).clamp(*WORKERS.start(), *WORKERS.end())
}

/// The options by which a program forks its ranks as `placement` says; refuses what cannot be.
pub fn workers(placement: &Placement) -> Result<Vec<OsString>> {
    let ranks = placement.ranks;
    if !WORKERS.contains(&ranks) {
        let (least, most) = WORKERS.into_inner();
        let line = format!("a workload without MPI cannot run on {ranks} rank(s): it takes {least} to {most}; give --ranks");
        return Err(Fault::Usage(line).into());
    }
    let mut words = vec!["--workers".into(), ranks.to_string().into()];
    if placement.pin {
        words.push("--pin".into());
    }
    Ok(words)
}

/// Where workload @name lies for `mpi`; for none, that of any MPI, as it is called without.
pub fn find(exe: &Path, mpi: Mpi, name: &str) -> Result<PathBuf> {
    let any = [Mpi::Openmpi, Mpi::Mpich];
    let builds: &[Mpi] = if mpi == Mpi::None { &any } else { &[mpi] };
    let mut found = builds
        .iter()
        .filter_map(|mpi| beside(exe, mpi.name(), name));
    found.next().ok_or_else(|| {
        let (mpi, bin) = (builds[0].name(), exe.display());
        Fault::Machine(format!(
            "workload {name} of {mpi} is not next to {bin}: build it with `cargo xtask build`"
        ))
        .into()
    })
}

fn beside(exe: &Path, mpi: &str, name: &str) -> Option<PathBuf> {
    let bin = exe.parent()?;
    ["workloads", "../lib/cosched/workloads"]
        .iter()
        .map(|dir| bin.join(dir).join(mpi).join(name))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::super::cpus::CpuList;
    use super::*;

    fn placement(ranks: u32, pin: bool) -> Placement {
        Placement {
            ranks,
            cpus: CpuList(vec![0, 1]),
            pin,
        }
    }

    #[test]
    fn placement_is_spelled_out_for_who_forks() {
        let words = |ranks, pin| workers(&placement(ranks, pin)).unwrap();
        assert_eq!(words(2, true), ["--workers", "2", "--pin"]);
        assert_eq!(words(4, false), ["--workers", "4"]);
        for ranks in [1, 65] {
            assert!(workers(&placement(ranks, true)).is_err());
        }
    }

    #[test]
    fn those_without_mpi_fork_and_no_other() {
        let forking: Vec<_> = NAMES.into_iter().filter(|name| forks(name)).collect();
        assert_eq!(forking, ["yielders", "arrivals"]);
    }
}
