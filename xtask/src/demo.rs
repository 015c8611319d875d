// SPDX-License-Identifier: Apache-2.0
//! Demo: a real program on a machine that it does not have to itself.
//!
//! Installs what is missing, builds, and lets `cosched bench` run LAMMPS on two
//! CPUs: with a rank for each, alone and beside other busy processes, then with
//! twice as many ranks as CPUs. Bench prints the tables and keeps each sample;
//! the figure docs/demo.svg shows the medians (figure.rs). Measures for about
//! three minutes. What the numbers mean is bench's business.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::figure::{self, Group};
use crate::tree::{run, which, Missing, Tree};
use crate::{build, setup};

const ARMS: [(&str, &str); 3] = [
    ("stock", "as it is"),
    ("yield", "mpi_yield_when_idle"),
    ("auto", "cosched run"),
];

/// One run of bench: ranks, and busy processes per CPU beside them.
const CASES: [(u32, [u32; 2]); 2] = [(2, [0, 2]), (4, [0, 1])];

const TIME: &str = "Loop time of ([0-9.]+)";

/// Everything; tables on stdout, the figure in docs/.
pub fn all(tree: &Tree) -> Result<()> {
    setup::all()?;
    build::all(tree)?;
    let cpus = two_cpus()?;
    let dir = tree.target.join("demo");
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let mut groups = Vec::new();
    for (ranks, levels) in CASES {
        println!("\nLAMMPS, {ranks} ranks on 2 CPUs:");
        let csv = dir.join(format!("{ranks}-ranks.csv"));
        bench(tree, ranks, &levels, &cpus, &csv)?;
        for level in levels {
            groups.push(group(&csv, ranks, level)?);
        }
    }
    let figure = tree.root.join("docs/demo.svg");
    figure::bars(
        &figure,
        "LAMMPS (4000 atoms, 400 steps): median run time",
        &groups,
    )?;
    println!("\nfigure: {}; samples: {}", figure.display(), dir.display());
    Ok(())
}

fn bench(tree: &Tree, ranks: u32, levels: &[u32], cpus: &str, csv: &Path) -> Result<()> {
    let lammps = which("lmp").context("no lmp in PATH; type: cargo xtask setup")?;
    if csv.exists() {
        std::fs::remove_file(csv).with_context(|| format!("cannot remove {}", csv.display()))?;
    }
    let levels: Vec<String> = levels.iter().map(u32::to_string).collect();
    let mut bench = Command::new(tree.release().join("cosched"));
    bench.args([
        "bench",
        "--mpi=openmpi",
        "--repeats=3",
        "--probe=1s",
        "--time-regex",
        TIME,
    ]);
    bench.arg(format!("--arms={}", ARMS.map(|(arm, _)| arm).join(",")));
    bench
        .arg(format!("--ranks={ranks}"))
        .arg(format!("--competitors={}", levels.join(",")));
    bench
        .arg(format!("--cpus={cpus}"))
        .arg("--csv")
        .arg(csv)
        .arg("--")
        .arg(lammps);
    bench.args(["-log", "none", "-var", "steps", "400", "-in"]);
    run(bench.arg(tree.root.join("workloads/melt.lammps")))
}

/// The medians of bench's samples of the job under one load.
fn group(csv: &Path, ranks: u32, level: u32) -> Result<Group> {
    let mut times: Vec<(&str, Vec<f64>)> = ARMS.map(|(arm, _)| (arm, Vec::new())).into();
    let mut reader =
        csv::Reader::from_path(csv).with_context(|| format!("cannot read {}", csv.display()))?;
    for sample in reader.deserialize() {
        let sample: Sample = sample.with_context(|| format!("cannot read {}", csv.display()))?;
        let arm = times.iter_mut().find(|(arm, _)| sample.is_of(arm, level));
        if let (Some((_, times)), Some(own_s)) = (arm, sample.own_s) {
            times.push(own_s);
        }
    }
    let load = match level {
        0 => "nothing else running".to_owned(),
        1 => "1 other busy process per CPU".to_owned(),
        n => format!("{n} other busy processes per CPU"),
    };
    let named = times.into_iter().zip(ARMS);
    let bars = named.filter_map(|((_, times), (_, name))| Some((name.to_owned(), median(times)?)));
    Ok(Group {
        title: format!("{ranks} ranks on 2 CPUs, {load}"),
        bars: bars.collect(),
    })
}

/// The columns of bench's CSV that the figure needs.
#[derive(serde::Deserialize)]
struct Sample {
    arm: String,
    hogs_per_cpu: u32,
    role: String,
    counts: bool,
    own_s: Option<f64>,
}

impl Sample {
    fn is_of(&self, arm: &str, level: u32) -> bool {
        self.counts && self.role == "job" && self.arm == arm && self.hogs_per_cpu == level
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some(if values.len() % 2 == 1 {
        upper
    } else {
        (values[values.len() / 2 - 1] + upper) / 2.0
    })
}

/// The first two CPUs that this process may use, as `0,1`.
fn two_cpus() -> Result<String> {
    let path = PathBuf::from("/proc/self/status");
    let status = std::fs::read_to_string(&path).context("cannot read /proc/self/status")?;
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let cpus = first_cpus(list.unwrap_or_default().trim(), 2);
    if cpus.len() < 2 {
        return Err(Missing("the demo needs two CPUs; this process may use one".into()).into());
    }
    Ok(format!("{},{}", cpus[0], cpus[1]))
}

/// The first `nr` of a list such as `0-3,8`.
fn first_cpus(list: &str, nr: usize) -> Vec<u32> {
    let ranges = list.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u32>().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().take(nr).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(first_cpus("0-3,8", 2), [0, 1]);
        assert_eq!(first_cpus("1,5-6", 2), [1, 5]);
        assert_eq!(first_cpus("7", 2), [7]);
        assert_eq!(first_cpus("", 2), Vec::<u32>::new());
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }
}
