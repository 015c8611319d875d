// SPDX-License-Identifier: Apache-2.0
//! The runs of each experiment that messages.c serves, in random order within a pass.
//!
//! Loading the kernel body takes seconds in a guest, so a pass has two halves, one for each local
//! scheduler; the halves take turns in coming first.

use super::messages::Cell;
use super::{attach, named, Local, Row, Scheduler, SCHEDULERS};
use rand::seq::SliceRandom;
use rand::SeedableRng;
use std::fs;

/// Names that [`cells`] knows.
pub const NAMES: [&str; 6] = [
    "latency",
    "barrier",
    "grain",
    "preemption",
    "polling",
    "threads",
];

/// The runs of one pass of the experiment @name.
pub fn cells(name: &str) -> Vec<Cell> {
    match name {
        "latency" => of_all(&SCHEDULERS, "latency", &[0, 1, 2, 4], &[78]),
        "barrier" => of_all(&SCHEDULERS, "barrier", &[0, 1, 2, 4], &[78]),
        "grain" => {
            let those: Vec<_> = SCHEDULERS.into_iter().filter(|it| it.sleeps).collect();
            let mut all = of_all(&those, "barrier", &[0, 1, 2], &[78, 3000, 30_000]);
            for cell in &mut all {
                cell.seconds = if cell.grain_us > 10_000 { 5.0 } else { 2.0 };
            }
            all
        }
        "preemption" => {
            let eevdf = ["eevdf:spin", "eevdf:spin-block"].map(named);
            let mut all = of_all(&eevdf, "barrier", &[1, 2, 4], &[78]);
            let off = |cell: &Cell| Cell {
                wakeup_preemption: false,
                ..cell.clone()
            };
            let without: Vec<Cell> = all.iter().map(off).collect();
            all.extend(without);
            all
        }
        "polling" => of_all(&SCHEDULERS, "poll", &[1, 2], &[100, 1000]),
        "threads" => of_all(&[named("dcs-spin-block")], "threads", &[1, 2], &[78]),
        _ => panic!("there is no experiment {name}, but {NAMES:?} and mixed"),
    }
}

fn of_all(
    schedulers: &[Scheduler],
    program: &'static str,
    competitors: &[u32],
    grains_us: &[u32],
) -> Vec<Cell> {
    let mut all = Vec::new();
    for scheduler in schedulers {
        for competitors in competitors {
            for grain_us in grains_us {
                all.push(Cell {
                    competitors: *competitors,
                    grain_us: *grain_us,
                    ..Cell::of(program, *scheduler)
                });
            }
        }
    }
    all
}

/// One pass: each cell once; @say takes each row as it comes.
pub fn pass(name: &str, number: u64, say: &mut dyn FnMut(Row)) {
    let mut cells = cells(name);
    cells.shuffle(&mut rand::rngs::StdRng::seed_from_u64(number));
    let mut locals = [Local::Eevdf, Local::Ours];
    locals.rotate_left((number % 2) as usize);
    for local in locals {
        let those: Vec<&Cell> = cells
            .iter()
            .filter(|cell| cell.scheduler.local == local)
            .collect();
        let mut body = (!those.is_empty()).then(|| attach(local)).flatten();
        for cell in those {
            preempt_on_wakeup(cell.wakeup_preemption);
            for mut row in cell.run(body.as_mut()) {
                row.insert(3, ("replication", number.to_string()));
                say(row);
            }
        }
    }
}

/// A feature of the kernel's own scheduler.
pub fn preempt_on_wakeup(is: bool) {
    let word = ["NO_WAKEUP_PREEMPTION", "WAKEUP_PREEMPTION"][usize::from(is)];
    let file = "/sys/kernel/debug/sched/features";
    fs::write(file, word).unwrap_or_else(|error| panic!("{file}: {error}"));
}
