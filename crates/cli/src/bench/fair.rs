// SPDX-License-Identifier: Apache-2.0
//! The fair limit: how long the job may take beside competitors if nobody is robbed.
//!
//! It is measured, not derived. `calcula` never waits, so the share of a CPU that one of its ranks
//! gets - under the job's own launcher, pins, limits and competitors - is the share that a rank of
//! the job may have. Alone it gets `share alone`, beside n hogs `share`, and
//!
//!   fair limit = T alone * share alone / share
//!
//! Both shares are those under the arm's scheduler: what it grants to a rank that never waits.
//! T alone is the median time of one copy on the free machine under the best of the arms that may
//! stand for it. Only where programs of `--beside` run along is the limit computed (`ideal`), from
//! what each of them took alone.

use cosched_sim::statistics::summarise;
use serde::Serialize;

use super::arm::Arm;
use super::ideal::{ends_s, fair_cpu_s, share, Demand, Presence};
use super::plan::{Cell, Plan, Work};
use super::sample::{Outcome, Program, Role};
use super::scheduler::Scheduler;
use super::series::{Sample, Series};

/// What is fair at one level of competition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Level {
    /// Who schedules.
    pub scheduler: Scheduler,
    /// Hogs per CPU.
    pub hogs: u32,
    /// All copies of the job and all programs beside it.
    pub together: bool,
    /// Share of a CPU that one rank may have while all run.
    pub share: f64,
    /// Computed from what each program took alone, not measured.
    pub derived: bool,
    /// Fair limit of the job.
    pub limit_s: f64,
    /// Fair limits of the programs of `--beside`.
    pub beside_limits_s: Vec<f64>,
    /// Rounds of a hog in a second of CPU time beside `calcula`.
    pub hog_rounds_per_cpu_s: Option<f64>,
}

/// A program alone on the free machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alone {
    /// The arm that was best there, or the command of `--beside`.
    pub name: String,
    /// Median time.
    pub time_s: f64,
    /// Median CPU time.
    pub cpu_s: f64,
    /// Tasks that want a CPU: ranks, or CPUs kept busy.
    pub tasks: f64,
}

/// What is fair at every level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fair {
    /// The job.
    pub job: Alone,
    /// Share of a CPU that one of its ranks has alone under the scheduler of the first arm.
    pub share_alone: f64,
    /// How many copies of it run together.
    pub copies: usize,
    /// The programs of `--beside`.
    pub beside: Vec<Alone>,
    /// CPUs of the run.
    pub nr_cpus: usize,
    /// The levels.
    pub levels: Vec<Level>,
}

/// The median of `value` over the programs with `role` in the samples of `cell`.
fn median(
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
        let beside = (0..plan.nr_beside).map(|index| beside_alone(series, index));
        let mut fair = Self {
            job: job_alone(plan, series, ranks)?,
            share_alone: probed(series, &probe(&plan.schedulers()[0], 0, false), ranks)?,
            copies: plan.copies as usize,
            beside: beside.collect::<Option<_>>()?,
            nr_cpus,
            levels: Vec::new(),
        };
        for scheduler in plan.schedulers() {
            let levels = fair.under(plan, series, &scheduler, ranks)?;
            fair.levels.extend(levels);
        }
        Some(fair)
    }

    /// The levels under `scheduler`.
    fn under(
        &self,
        plan: &Plan,
        series: &Series,
        scheduler: &Scheduler,
        ranks: u32,
    ) -> Option<Vec<Level>> {
        let share_alone = probed(series, &probe(scheduler, 0, false), ranks)?;
        let alone = [(0, false)].into_iter().filter(|_| plan.crowded());
        let asked = plan.levels.iter().map(|&hogs| (hogs, plan.crowded()));
        let level = |(hogs, together)| {
            if together && plan.nr_beside > 0 {
                return Some(self.computed(scheduler, hogs));
            }
            let cell = probe(scheduler, hogs, together);
            let share = probed(series, &cell, ranks)?;
            let limit_s = self.job.time_s * share_alone / share;
            Some(measured(series, &cell, share, limit_s))
        };
        asked.chain(alone).map(level).collect()
    }

    fn computed(&self, scheduler: &Scheduler, hogs: u32) -> Level {
        let demand = |alone: &Alone, share_alone| Demand {
            tasks: alone.tasks,
            alone_s: alone.time_s,
            share_alone,
        };
        let jobs = std::iter::repeat_n(demand(&self.job, self.share_alone), self.copies);
        let beside = self.beside.iter().map(|alone| demand(alone, 1.0));
        let demands: Vec<Demand> = jobs.chain(beside).collect();
        let ends_s = ends_s(self.nr_cpus, hogs, &demands);
        let tasks = demands.iter().map(|demand| demand.tasks).sum();
        Level {
            scheduler: scheduler.clone(),
            hogs,
            together: true,
            share: share(self.nr_cpus, hogs, tasks).min(self.share_alone),
            derived: true,
            limit_s: ends_s[0],
            beside_limits_s: ends_s[self.copies..].to_vec(),
            hog_rounds_per_cpu_s: None,
        }
    }

    /// What the program with this index in a cell took alone.
    pub fn alone(&self, index: usize) -> Option<&Alone> {
        match index.checked_sub(self.copies) {
            None => Some(&self.job),
            Some(beside) => self.beside.get(beside),
        }
    }

    /// The fair limit of the program with this index in `cell`.
    pub fn limit_s(&self, cell: &Cell, index: usize) -> Option<f64> {
        let level = self.at(cell)?;
        match index.checked_sub(self.copies) {
            None => Some(level.limit_s),
            Some(beside) => level.beside_limits_s.get(beside).copied(),
        }
    }

    /// F of the program with this index in a run of `cell`.
    pub fn fairness(&self, cell: &Cell, outcome: &Outcome, index: usize) -> Option<f64> {
        let level = self.at(cell)?;
        let program = &outcome.programs[index];
        if !level.derived {
            let (cpu_s, span_s) = program.fair_use();
            return Some(cpu_s / (level.share * self.job.tasks * span_s));
        }
        let presence = |(index, program): (usize, &Program)| {
            Some(Presence {
                tasks: self.alone(index)?.tasks,
                start_s: program.offset_s,
                end_s: program.offset_s + program.wall_s,
            })
        };
        let all: Option<Vec<_>> = outcome.programs.iter().enumerate().map(presence).collect();
        Some(program.usage.cpu_s() / fair_cpu_s(self.nr_cpus, cell.hogs, &all?, index))
    }

    /// Work of the hogs in a run of `cell` / the work that they could fairly do: they may have all
    /// CPU time but the fair shares of the jobs, and what these need to start and end.
    pub fn hog_work(&self, cell: &Cell, outcome: &Outcome) -> Option<f64> {
        let level = self.at(cell)?;
        let fair_share_s = |job: &Program| {
            let (cpu_s, span_s) = job.fair_use();
            span_s * level.share * self.job.tasks + (job.usage.cpu_s() - cpu_s).max(0.0)
        };
        let jobs_s: f64 = outcome.programs.iter().map(fair_share_s).sum();
        let fair_s = outcome.hogs.wall_s * self.nr_cpus as f64 - jobs_s;
        Some(outcome.hogs.rounds / (level.hog_rounds_per_cpu_s? * fair_s))
    }

    /// The level of `cell`.
    fn at(&self, cell: &Cell) -> Option<&Level> {
        let scheduler = cell.scheduler();
        let same = |level: &&Level| {
            (level.hogs, level.together) == (cell.hogs, cell.together)
                && level.scheduler == scheduler
        };
        self.levels.iter().find(same)
    }
}

/// One copy of the job under the best of the arms that may stand for it and end in time.
fn job_alone(plan: &Plan, series: &Series, ranks: u32) -> Option<Alone> {
    let under = |arm: &Arm| {
        let cell = Cell {
            work: Work::Arm(arm.clone()),
            hogs: 0,
            together: false,
        };
        let mut samples = series.samples.iter().filter(|sample| sample.cell == cell);
        if samples.any(Sample::late) {
            return None;
        }
        Some(Alone {
            name: arm.to_string(),
            time_s: median(series, &cell, Role::Job, Program::time_s)?,
            cpu_s: median(series, &cell, Role::Job, Program::cpu_s)?,
            tasks: f64::from(ranks),
        })
    };
    let arms = plan.alone.iter().filter_map(under);
    arms.min_by(|a, b| a.time_s.total_cmp(&b.time_s))
}

fn beside_alone(series: &Series, index: usize) -> Option<Alone> {
    let cell = Cell {
        work: Work::Beside(index),
        hogs: 0,
        together: false,
    };
    let of_cell = series.samples.iter().find(|sample| sample.cell == cell)?;
    Some(Alone {
        name: of_cell.outcome.programs[0].name.clone(),
        time_s: median(series, &cell, Role::Beside, Program::time_s)?,
        cpu_s: median(series, &cell, Role::Beside, Program::cpu_s)?,
        tasks: median(series, &cell, Role::Beside, |p| p.cpu_s() / p.span_s())?,
    })
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

/// A level where `share` was measured in the samples of `cell`.
fn measured(series: &Series, cell: &Cell, share: f64, limit_s: f64) -> Level {
    Level {
        scheduler: cell.scheduler(),
        hogs: cell.hogs,
        together: cell.together,
        share,
        derived: false,
        limit_s,
        beside_limits_s: Vec::new(),
        hog_rounds_per_cpu_s: hog_speed(series, cell),
    }
}

fn probe(scheduler: &Scheduler, hogs: u32, together: bool) -> Cell {
    Cell {
        work: Work::Probe(scheduler.clone()),
        hogs,
        together,
    }
}

/// Share of a CPU that a rank of `calcula` had in the samples of `cell`.
fn probed(series: &Series, cell: &Cell, ranks: u32) -> Option<f64> {
    let share = |program: &Program| program.cpu_s() / (program.span_s() * f64::from(ranks));
    median(series, cell, Role::Probe, share).filter(|&share| share > 0.0)
}

#[cfg(test)]
mod tests {
    use super::super::child::Exit;
    use super::super::plan::tests::plan_of;
    use super::super::series::tests::{outcome, program, Mock};
    use super::super::{hog, sample, series};
    use super::*;

    fn plan() -> Plan {
        plan_of(2, 3)
    }

    fn ideal(cell: &Cell, ranks: f64) -> sample::Outcome {
        let share = 1.0 / f64::from(cell.hogs + 1);
        match &cell.work {
            Work::Probe(_) => sample::Outcome {
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
        assert_eq!((fair.job.time_s, fair.share_alone), (4.0, 1.0));
        assert!((fair.levels[1].share - 1.0 / 3.0).abs() < 1e-12);
        assert!((fair.levels[1].limit_s - 12.0).abs() < 1e-9);
    }

    #[test]
    fn each_scheduler_has_its_own_limit() {
        let plan = Plan {
            arms: vec![Arm::Stock, Arm::Kernel("auto".into())],
            ..plan()
        };
        // It gives a rank half a CPU where the kernel's own gives a third.
        let mut mock = Mock(|cell: &Cell| {
            let mut outcome = ideal(cell, 2.0);
            if cell.work == Work::Probe(Scheduler::Cosched) && cell.hogs == 2 {
                outcome.programs[0].own_cpu_s = Some(3.0);
            }
            Some(outcome)
        });
        let series = series::run(&plan, 1.0, &mut mock, &mut |_, _| Ok(())).unwrap();
        let fair = Fair::measure(&plan, &series, 2, 2).unwrap();
        let limit_s = |arm: &Arm| {
            let cell = Cell {
                work: Work::Arm(arm.clone()),
                hogs: 2,
                together: false,
            };
            fair.limit_s(&cell, 0).unwrap()
        };
        assert!((limit_s(&plan.arms[0]) - 12.0).abs() < 1e-9);
        assert!((limit_s(&plan.arms[1]) - 8.0).abs() < 1e-9);
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
        assert_eq!((fair.job.name.as_str(), fair.job.time_s), ("auto", 4.0));
    }

    #[test]
    fn a_job_that_does_not_end_alone_has_no_fair_limit() {
        let mut mock = Mock(|cell: &Cell| {
            let mut outcome = ideal(cell, 2.0);
            if !matches!(cell.work, Work::Probe(_)) {
                outcome.programs[0].exit = Exit::TimedOut;
            }
            Some(outcome)
        });
        let series = series::run(&plan(), 1.0, &mut mock, &mut |_, _| Ok(())).unwrap();
        assert_eq!(Fair::measure(&plan(), &series, 2, 2), None);
    }

    #[test]
    fn beside_other_programs_all_tasks_count_alike() {
        let fair = measure(&Plan {
            nr_beside: 1,
            ..plan()
        });
        let level = &fair.levels[1];
        // Two CPUs with two hogs on each, two ranks and one task of the other program: 2/7 of a CPU
        // each until that one ends after 7 s. Until then the job has done 2 s of its 4; alone
        // beside the hogs it may have a third, so the rest takes it 6 s.
        assert!(level.derived && (level.share - 2.0 / 7.0).abs() < 1e-12);
        assert!((level.beside_limits_s[0] - 7.0).abs() < 1e-9);
        assert!((level.limit_s - 13.0).abs() < 1e-9);
    }
}
