// SPDX-License-Identifier: Apache-2.0
//! What S1 measured on two nodes, measured in a guest: each of its two CPUs is a node.
//!
//! A run is a program of two ranks, one on each CPU, beside so many hogs on each CPU, under a
//! scheduler of S1's: spin, or spin and then sleep, without DCS or with it. With it the ranks are a
//! job of the kernel body's. Without it there are two local schedulers: the kernel's own, and ours with a
//! preset that boosts nobody.
//! A row of the record is one job of one run; claims are judged by it alone (`live.toml` of
//! an experiment), and vm_claims.rs asserts of short runs what surely holds.

pub mod messages;
pub mod mixed;
pub mod plan;

use crate::inside;
use cosched_loader::Body;
use std::{fs, time::SystemTime};

/// Who schedules a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    /// The kernel's own.
    Eevdf,
    /// The kernel body.
    Ours,
}

/// A scheduler of S1's, as it can be had here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduler {
    /// In a record.
    pub name: &'static str,
    /// Who schedules.
    pub local: Local,
    /// What the kernel body is to do for the ranks.
    pub preset: &'static str,
    /// Whether a rank spins for 1600 us and then sleeps.
    pub sleeps: bool,
}

const fn scheduler(
    name: &'static str,
    local: Local,
    preset: &'static str,
    sleeps: bool,
) -> Scheduler {
    Scheduler {
        name,
        local,
        preset,
        sleeps,
    }
}

/// Without DCS under the kernel's own scheduler and under ours, and with it. E and C of `dcs-spin` are those
/// of S1's mixed workload; the paper does not say those of its other figures, so it has them of `dcs-spin-block` too.
pub const SCHEDULERS: [Scheduler; 7] = [
    scheduler("eevdf:spin", Local::Eevdf, "uncoordinated", false),
    scheduler("eevdf:spin-block", Local::Eevdf, "implicit", true),
    scheduler("ours:spin", Local::Ours, "uncoordinated", false),
    scheduler("ours:spin-block", Local::Ours, "implicit", true),
    scheduler("dcs-spin", Local::Ours, "dcs-spin", false),
    scheduler("dcs-spin E=2 C=100ms", Local::Ours, "dcs-spin-block", false),
    scheduler("dcs-spin-block", Local::Ours, "dcs-spin-block", true),
];

/// The one of that name.
pub fn named(name: &str) -> Scheduler {
    let found = SCHEDULERS.into_iter().find(|it| it.name == name);
    found.unwrap_or_else(|| panic!("there is no scheduler {name}"))
}

/// The kernel body, or nothing.
pub fn attach(local: Local) -> Option<Body> {
    match local {
        Local::Eevdf => None,
        Local::Ours => Some(inside::attach()),
    }
}

/// A line of a record: names of columns and their values.
pub type Row = Vec<(&'static str, String)>;

/// When, and on what.
pub fn provenance() -> Row {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let revision = option_env!("COSCHED_REVISION").unwrap_or("unknown");
    vec![
        ("at_s", now.map_or(0, |at| at.as_secs()).to_string()),
        ("kernel", kernel.trim().to_owned()),
        ("revision", revision.to_owned()),
    ]
}

/// The number in column @name.
pub fn number(row: &Row, name: &str) -> f64 {
    let value = row.iter().find(|(column, _)| *column == name);
    let value = value.unwrap_or_else(|| panic!("no column {name}"));
    value.1.parse().unwrap_or(f64::NAN)
}
