// SPDX-License-Identifier: Apache-2.0
//! The fair limit: how long the job may take beside competitors if nobody is robbed.
//!
//! It is measured, not derived. `calcula` never waits, so the share of a CPU that one of its ranks
//! gets - under the job's own launcher, pins, limits and competitors - is the share that a rank of
//! the job may have. Alone it gets `share alone`, beside n hogs `share`, and
//!
//!   fair limit = T alone * share alone / share
//!
//! T alone is the median time of one copy on the free machine under the best of the arms that may
//! stand for it. Only where programs of `--beside` run along is the share derived, since none of
//! them lasts as long as a probe would need: all tasks count alike, and a program of `--beside`
//! counts as many tasks as CPUs that it kept busy alone.

use serde::Serialize;

use super::plan::{Cell, Plan, Work};
use super::sample::{Outcome, Program, Role};
use super::series::Series;
use super::stats::summarise;

/// What is fair at one level of competition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Level {
    /// Hogs per CPU.
    pub hogs: u32,
    /// All copies of the job and all programs beside it.
    pub together: bool,
    /// Share of a CPU that one rank may have.
    pub share: f64,
    /// Computed from the number of tasks, not measured.
    pub derived: bool,
    /// T alone * share alone / share.
    pub limit_s: f64,
    /// Rounds of a hog in a second of CPU time beside `calcula`.
    pub hog_rounds_per_cpu_s: Option<f64>,
}

/// What is fair at every level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fair {
    /// The arm that was best alone on the free machine.
    pub alone_arm: String,
    /// Its median time.
    pub alone_s: f64,
    /// Its median CPU time.
    pub alone_cpu_s: f64,
    /// Share of a CPU that a rank has there.
    pub share_alone: f64,
    /// Ranks of one job.
    pub ranks: u32,
    /// CPUs of the run.
    pub nr_cpus: usize,
    /// The levels.
    pub levels: Vec<Level>,
}

/// The median of `value` over the programs with `role` in the samples of `cell`.
pub fn median(
    series: &Series,
    cell: &Cell,
    role: Role,
    value: impl Fn(&Program) -> f64,
) -> Option<f64> {
    let values: Vec<f64> = series
        .samples
        .iter()
        .filter(|sample| sample.cell == *cell && sample.failure().is_none())
        .flat_map(|sample| &sample.outcome.programs)
        .filter(|program| program.role == role)
        .map(value)
        .collect();
    Some(summarise(&values)?.median.value)
}

impl Fair {
    /// From the series; `None` where the job alone or a probe is missing.
    pub fn measure(plan: &Plan, series: &Series, ranks: u32, nr_cpus: usize) -> Option<Self> {
        let (alone_arm, alone_s, cell) = plan
            .alone
            .iter()
            .filter_map(|arm| {
                let work = Work::Arm(arm.clone());
                let cell = Cell {
                    work,
                    hogs: 0,
                    together: false,
                };
                let time_s = median(series, &cell, Role::Job, Program::time_s)?;
                Some((arm.to_string(), time_s, cell))
            })
            .min_by(|a, b| a.1.total_cmp(&b.1))?;
        let mut fair = Self {
            alone_arm,
            alone_s,
            alone_cpu_s: median(series, &cell, Role::Job, Program::cpu_s)?,
            share_alone: probed(series, 0, false, ranks)?,
            ranks,
            nr_cpus,
            levels: Vec::new(),
        };
        let hogs_of = |(hogs, together)| fair.level(plan, series, hogs, together, nr_cpus);
        let alone = [(0, false)].into_iter().filter(|_| plan.crowded());
        let asked = plan.levels.iter().map(|&hogs| (hogs, plan.crowded()));
        fair.levels = asked.chain(alone).map(hogs_of).collect::<Option<_>>()?;
        Some(fair)
    }

    fn level(
        &self,
        plan: &Plan,
        series: &Series,
        hogs: u32,
        together: bool,
        nr_cpus: usize,
    ) -> Option<Level> {
        let derived = together && plan.nr_beside > 0;
        let share = if derived {
            let demands: f64 = (0..plan.nr_beside)
                .map(|i| demand(series, i))
                .sum::<Option<f64>>()?;
            let tasks = f64::from(self.ranks * plan.copies) + demands;
            derived_share(nr_cpus, hogs, tasks).min(self.share_alone)
        } else {
            probed(series, hogs, together, self.ranks)?
        };
        Some(Level {
            hogs,
            together,
            share,
            derived,
            limit_s: self.alone_s * self.share_alone / share,
            hog_rounds_per_cpu_s: hog_speed(series, &probe(hogs, together)).filter(|_| !derived),
        })
    }

    /// Work of the hogs in a run of `cell` / the work that they could fairly do: they may have all
    /// CPU time but the fair shares of the jobs, and what these need to start and end.
    pub fn hog_work(&self, cell: &Cell, outcome: &Outcome) -> Option<f64> {
        let level = self.at(cell)?;
        let jobs = outcome
            .programs
            .iter()
            .filter(|program| program.role == Role::Job);
        let fair_share_s = |job: &Program| {
            let around_s = (job.usage.cpu_s() - job.cpu_s()).max(0.0);
            job.span_s() * level.share * f64::from(self.ranks) + around_s
        };
        let jobs_s: f64 = jobs.map(fair_share_s).sum();
        let fair_s = outcome.hogs.wall_s * self.nr_cpus as f64 - jobs_s;
        Some(outcome.hogs.rounds / (level.hog_rounds_per_cpu_s? * fair_s))
    }

    /// The level of `cell`.
    pub fn at(&self, cell: &Cell) -> Option<&Level> {
        let same = |level: &&Level| level.hogs == cell.hogs && level.together == cell.together;
        self.levels.iter().find(same)
    }
}

/// CPUs that the program of `--beside` keeps busy alone.
pub fn demand(series: &Series, index: usize) -> Option<f64> {
    let cell = Cell {
        work: Work::Beside(index),
        hogs: 0,
        together: false,
    };
    median(series, &cell, Role::Beside, |program| {
        program.cpu_s() / program.span_s()
    })
}

/// Share of one task where `hogs` per CPU and `tasks` more compete for `nr_cpus` CPUs.
pub fn derived_share(nr_cpus: usize, hogs: u32, tasks: f64) -> f64 {
    let nr_cpus = nr_cpus as f64;
    (nr_cpus / (nr_cpus * f64::from(hogs) + tasks)).min(1.0)
}

/// Rounds per second of CPU time of the hogs in the samples of `cell`.
fn hog_speed(series: &Series, cell: &Cell) -> Option<f64> {
    let works = || {
        let of_cell = series.samples.iter().filter(|sample| sample.cell == *cell);
        of_cell.map(|sample| sample.outcome.hogs)
    };
    let cpu_s: f64 = works().map(|work| work.cpu_s).sum();
    (cpu_s > 0.0).then(|| works().map(|work| work.rounds).sum::<f64>() / cpu_s)
}

fn probe(hogs: u32, together: bool) -> Cell {
    Cell {
        work: Work::Probe,
        hogs,
        together,
    }
}

fn probed(series: &Series, hogs: u32, together: bool, ranks: u32) -> Option<f64> {
    let share = |program: &Program| program.cpu_s() / (program.span_s() * f64::from(ranks));
    median(series, &probe(hogs, together), Role::Probe, share).filter(|&share| share > 0.0)
}

#[cfg(test)]
mod tests {
    use super::super::arm::Arm;
    use super::super::series::tests::{outcome, program, Mock};
    use super::super::{hog, sample, series};
    use super::*;

    fn plan() -> Plan {
        Plan {
            arms: vec![Arm::Stock, Arm::Policy("auto".into())],
            levels: vec![0, 2],
            alone: vec![Arm::Stock],
            copies: 1,
            nr_beside: 0,
            repeats: 3,
            seed: 0,
        }
    }

    fn ideal(cell: &Cell, ranks: f64) -> sample::Outcome {
        let share = 1.0 / f64::from(cell.hogs + 1);
        match &cell.work {
            Work::Probe => sample::Outcome {
                programs: vec![program(Role::Probe, "probe", 3.0, 3.0 * share * ranks)],
                hogs: hog::Work {
                    rounds: 40.0,
                    cpu_s: 4.0 * (1.0 - share),
                    wall_s: 3.0,
                },
                ..outcome(0.0, 0.0)
            },
            Work::Beside(_) => sample::Outcome {
                programs: vec![program(Role::Beside, "other", 2.0, 2.0)],
                ..outcome(0.0, 0.0)
            },
            Work::Arm(_) => outcome(4.0 / share, 4.0 * ranks),
        }
    }

    fn measure(plan: &Plan) -> Fair {
        let mut mock = Mock(|cell: &Cell| Some(ideal(cell, 2.0)));
        let series = series::run(plan, 1.0, &mut mock, &mut |_, _| Ok(())).unwrap();
        Fair::measure(plan, &series, 2, 2).unwrap()
    }

    #[test]
    fn the_limit_follows_the_measured_share() {
        let fair = measure(&plan());
        assert_eq!((fair.alone_s, fair.share_alone), (4.0, 1.0));
        assert!((fair.levels[1].share - 1.0 / 3.0).abs() < 1e-12);
        assert!((fair.levels[1].limit_s - 12.0).abs() < 1e-9);
    }

    #[test]
    fn hogs_may_have_all_that_is_not_the_jobs_fair_share() {
        let fair = measure(&plan());
        // 40 rounds in 8/3 s of CPU time are 15 a second; two CPUs for 12 s are 24 s, of which the
        // two ranks may have a third: 16 s or 240 rounds are left for the hogs.
        let mut run = outcome(12.0, 8.0);
        run.hogs = hog::Work {
            rounds: 228.0,
            cpu_s: 15.2,
            wall_s: 12.0,
        };
        let work = Work::Arm(Arm::Stock);
        let cell = |hogs| Cell {
            work: work.clone(),
            hogs,
            together: false,
        };
        let share = fair.hog_work(&cell(2), &run).unwrap();
        assert!((share - 0.95).abs() < 1e-9);
        assert_eq!(fair.hog_work(&cell(0), &run), None);
    }

    #[test]
    fn the_best_arm_stands_for_the_job_alone() {
        let plan = Plan {
            alone: plan().arms,
            ..plan()
        };
        let mut mock = Mock(|cell: &Cell| match &cell.work {
            Work::Arm(Arm::Stock) => Some(outcome(9.0, 9.0)),
            _ => Some(ideal(cell, 2.0)),
        });
        let series = series::run(&plan, 1.0, &mut mock, &mut |_, _| Ok(())).unwrap();
        let fair = Fair::measure(&plan, &series, 2, 2).unwrap();
        assert_eq!((fair.alone_arm.as_str(), fair.alone_s), ("auto", 4.0));
    }

    #[test]
    fn beside_other_programs_all_tasks_count_alike() {
        let fair = measure(&Plan {
            nr_beside: 1,
            ..plan()
        });
        let level = &fair.levels[1];
        // Two CPUs, two hogs on each, two ranks and one task of the other program.
        assert!(level.derived && (level.share - 2.0 / 7.0).abs() < 1e-12);
        assert!((level.limit_s - 14.0).abs() < 1e-9);
    }

    #[test]
    fn nobody_gets_more_than_a_cpu() {
        assert_eq!(derived_share(2, 0, 1.0), 1.0);
        assert_eq!(derived_share(2, 1, 2.0), 0.5);
    }
}
