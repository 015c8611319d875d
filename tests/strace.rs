// SPDX-License-Identifier: Apache-2.0
//! What `strace -f -o log` tells of ranks: how often each yielded. Only after MPI_Init, which they mark by
//! `getsid(0)`: some libraries that Open MPI loads yield for themselves.

use std::{collections::HashMap, fs, path::Path};

/// Of all @nr ranks.
pub fn nr_yields(log: &Path, nr: usize) -> usize {
    let ranks = yields_after_marks(log);
    assert_eq!(ranks.len(), nr, "{ranks:?}");
    ranks.values().flatten().sum()
}

/// Of each rank: how often it yielded after its first mark, after its second, and so on.
pub fn yields_after_marks(log: &Path) -> HashMap<String, Vec<usize>> {
    let log = fs::read_to_string(log).expect("strace wrote it");
    let mut ranks: HashMap<String, Vec<usize>> = HashMap::new();
    for (pid, call) in log.lines().filter_map(|line| line.split_once(' ')) {
        if call.trim_start().starts_with("getsid(") {
            ranks.entry(pid.to_owned()).or_default().push(0);
        } else if call.contains("sched_yield(") {
            if let Some(latest) = ranks.get_mut(pid).and_then(|marks| marks.last_mut()) {
                *latest += 1;
            }
        }
    }
    ranks
}
