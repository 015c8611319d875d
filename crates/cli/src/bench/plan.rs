// SPDX-License-Identifier: Apache-2.0
//! The plan: which cells are measured, and in which order.
//!
//! Repeat is the outermost loop and the cells of each repeat are shuffled, so that slow drift of
//! the machine falls on all arms alike. What the verdict needs beside the asked arms is part of
//! the same interleaved run: the job alone on the free machine, and `calcula` at each level of
//! competition under each scheduler, which tells the fair share (probe). To change the scheduler
//! takes seconds, so each repeat has the cells of one scheduler together; which comes first is chance.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::SeedableRng;

use super::arm::Arm;
use super::scheduler::Scheduler;

/// What runs in a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// The job under an arm.
    Arm(Arm),
    /// `calcula` in its place, under this scheduler.
    Probe(Scheduler),
    /// Only the program of this `--beside`.
    Beside(usize),
}

/// One combination of factors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What runs.
    pub work: Work,
    /// Hogs per CPU.
    pub hogs: u32,
    /// All copies of the job and all programs beside it, or one copy only.
    pub together: bool,
}

impl Cell {
    /// Who schedules while it runs.
    pub fn scheduler(&self) -> Scheduler {
        match &self.work {
            Work::Arm(arm) => arm.scheduler(),
            Work::Probe(scheduler) => scheduler.clone(),
            Work::Beside(_) => Scheduler::Stock,
        }
    }
}

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The arms to compare.
    pub arms: Vec<Arm>,
    /// Levels of competition, hogs per CPU.
    pub levels: Vec<u32>,
    /// Arms of which the best, alone on the free machine, gives T alone.
    pub alone: Vec<Arm>,
    /// Copies of the job that run together.
    pub copies: u32,
    /// How many programs run beside it.
    pub nr_beside: usize,
    /// Passes over all cells.
    pub repeats: u32,
    /// Seed of the order.
    pub seed: u64,
}

impl Plan {
    /// Whether more than one copy of the job runs in its cells.
    pub fn crowded(&self) -> bool {
        self.copies > 1 || self.nr_beside > 0
    }

    /// Those under which an arm runs.
    pub fn schedulers(&self) -> Vec<Scheduler> {
        let mut all = Vec::new();
        for scheduler in self.arms.iter().chain(&self.alone).map(Arm::scheduler) {
            if !all.contains(&scheduler) {
                all.push(scheduler);
            }
        }
        all
    }

    /// The cells of every repeat, without probes.
    pub fn cells(&self) -> Vec<Cell> {
        let arm = |arm: &Arm, hogs, together| Cell {
            work: Work::Arm(arm.clone()),
            hogs,
            together,
        };
        let mut cells: Vec<Cell> = Vec::new();
        for &hogs in &self.levels {
            cells.extend(self.arms.iter().map(|a| arm(a, hogs, self.crowded())));
        }
        for a in &self.alone {
            let cell = arm(a, 0, false);
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
        cells.extend((0..self.nr_beside).map(|i| Cell {
            work: Work::Beside(i),
            hogs: 0,
            together: false,
        }));
        cells
    }

    /// The probes; where other programs run beside the job no probe stands for them.
    fn probes(&self) -> Vec<Cell> {
        let alone: BTreeSet<u32> = self.levels.iter().copied().chain([0]).collect();
        let mut kinds: Vec<(u32, bool)> = alone.into_iter().map(|hogs| (hogs, false)).collect();
        if self.copies > 1 {
            kinds.extend(self.levels.iter().map(|&hogs| (hogs, true)));
        }
        let probes = |scheduler: Scheduler| {
            let kinds = kinds.iter();
            let probes = kinds.map(move |&(hogs, together)| Cell {
                work: Work::Probe(scheduler.clone()),
                hogs,
                together,
            });
            probes.collect::<Vec<_>>()
        };
        self.schedulers().into_iter().flat_map(probes).collect()
    }

    /// Every cell in the order of measurement, with its repeat.
    pub fn order(&self) -> Vec<(u32, Cell)> {
        let mut random = StdRng::seed_from_u64(self.seed);
        let rounds = (self.repeats.div_ceil(3)).max(2);
        let mut order = Vec::new();
        for repeat in 0..self.repeats {
            let mut cells = self.cells();
            for round in 0..rounds {
                if round * self.repeats / rounds == repeat {
                    cells.extend(self.probes());
                }
            }
            cells.shuffle(&mut random);
            group(&mut cells);
            order.extend(cells.into_iter().map(|cell| (repeat, cell)));
        }
        order
    }
}

/// Cells of one scheduler together, in the order in which each was first met.
fn group(cells: &mut [Cell]) {
    let mut met = Vec::new();
    for scheduler in cells.iter().map(Cell::scheduler) {
        if !met.contains(&scheduler) {
            met.push(scheduler);
        }
    }
    cells.sort_by_key(|cell| met.iter().position(|one| *one == cell.scheduler()));
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Stock and `auto`, alone and beside so many hogs per CPU.
    pub fn plan_of(hogs: u32, repeats: u32) -> Plan {
        Plan {
            arms: vec![Arm::Stock, Arm::Policy("auto".into())],
            levels: vec![0, hogs],
            alone: vec![Arm::Stock],
            copies: 1,
            nr_beside: 0,
            repeats,
            seed: 1,
        }
    }

    fn plan() -> Plan {
        plan_of(2, 7)
    }

    fn count(order: &[(u32, Cell)], wanted: impl Fn(&(u32, Cell)) -> bool) -> usize {
        order.iter().filter(|entry| wanted(entry)).count()
    }

    #[test]
    fn every_repeat_has_every_cell_once() {
        let order = plan().order();
        for repeat in 0..7 {
            for cell in plan().cells() {
                assert_eq!(count(&order, |entry| *entry == (repeat, cell.clone())), 1);
            }
        }
    }

    #[test]
    fn each_level_is_probed_at_least_twice_and_apart() {
        let of = |order: &[(u32, Cell)], hogs| {
            count(order, |(_, cell)| {
                matches!(cell.work, Work::Probe(_)) && cell.hogs == hogs
            })
        };
        assert_eq!((of(&plan().order(), 0), of(&plan().order(), 2)), (3, 3));
        let quick = Plan {
            repeats: 1,
            ..plan()
        };
        assert_eq!(of(&quick.order(), 2), 2);
    }

    #[test]
    fn each_repeat_attaches_each_scheduler_once_and_probes_under_each() {
        let plan = Plan {
            arms: ["stock", "kernel:auto", "kernel+shim:auto"]
                .map(|word| word.parse().unwrap())
                .into(),
            ..plan()
        };
        assert_eq!(plan.schedulers(), [Scheduler::Stock, Scheduler::Cosched]);
        let order = plan.order();
        for repeat in 0..7 {
            let mut schedulers: Vec<Scheduler> = order
                .iter()
                .filter(|(of, _)| *of == repeat)
                .map(|(_, cell)| cell.scheduler())
                .collect();
            schedulers.dedup();
            assert_eq!(schedulers.len(), 2, "repeat {repeat}");
        }
        let probe = Work::Probe(Scheduler::Cosched);
        assert_eq!(
            count(&order, |(_, cell)| cell.work == probe && cell.hogs == 2),
            3
        );
    }

    #[test]
    fn the_order_follows_the_seed() {
        assert_eq!(plan().order(), plan().order());
        assert_ne!(plan().order(), Plan { seed: 2, ..plan() }.order());
    }

    #[test]
    fn the_job_alone_is_measured_even_if_not_asked_for() {
        let alone = |plan: &Plan| {
            let cells = plan.cells();
            cells
                .iter()
                .filter(|cell| cell.hogs == 0 && !cell.together)
                .count()
        };
        assert_eq!(
            alone(&Plan {
                levels: vec![1],
                ..plan()
            }),
            1
        );
        assert_eq!(
            alone(&Plan {
                copies: 2,
                ..plan()
            }),
            1
        );
        assert_eq!(
            alone(&Plan {
                nr_beside: 1,
                ..plan()
            }),
            2
        );
    }
}
