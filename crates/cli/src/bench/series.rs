// SPDX-License-Identifier: Apache-2.0
//! The series: goes through the plan, cell by cell, and repeats what was disturbed.
//!
//! How a cell is run is somebody else's business ([`Executor`]), and so is what becomes of the
//! samples. A disturbed run is repeated at most [`MAX_REPEATS`] times; its last attempt counts,
//! marked. A failed run takes its cell out of the rest of the series. A run that reached the time
//! limit counts at once: it would only reach it again.

use anyhow::Result;

use super::child::Exit;
use super::plan::{Cell, Plan, Work};
use super::sample::{Outcome, Program};
use crate::fault::Fault;

/// How often a disturbed run is repeated.
pub const MAX_REPEATS: u32 = 3;

/// Who can run a cell. `None`: interrupted by the user.
pub trait Executor {
    /// Runs `cell` once.
    fn run(&mut self, cell: &Cell) -> Result<Option<Outcome>>;
}

/// One attempt at one cell.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What was run.
    pub cell: Cell,
    /// In which pass over the plan.
    pub repeat: u32,
    /// 0, or how many disturbed attempts came before.
    pub attempt: u32,
    /// More foreign CPU time than allowed.
    pub disturbed: bool,
    /// It counts: not to be repeated.
    pub kept: bool,
    /// What it gave.
    pub outcome: Outcome,
}

/// All that counts.
#[derive(Debug, Default)]
pub struct Series {
    /// The samples that count.
    pub samples: Vec<Sample>,
    /// Runs that were repeated since they were disturbed.
    pub nr_repeated: u32,
    /// The user interrupted it.
    pub interrupted: bool,
}

impl Sample {
    /// Whether a program was ended at the time limit.
    pub fn late(&self) -> bool {
        let mut programs = self.outcome.programs.iter();
        programs.any(|program| program.exit == Exit::TimedOut)
    }

    /// The program that failed, if one did.
    pub fn failure(&self) -> Option<&Program> {
        self.outcome
            .programs
            .iter()
            .find(|program| program.failed())
    }
}

/// Runs the whole plan. Every attempt goes to `record` at once, together with the number of cells
/// that are done.
pub fn run(
    plan: &Plan,
    max_foreign: f64,
    executor: &mut dyn Executor,
    record: &mut dyn FnMut(&Sample, usize) -> Result<()>,
) -> Result<Series> {
    let mut series = Series::default();
    for (done, (repeat, cell)) in plan.order().into_iter().enumerate() {
        if series
            .samples
            .iter()
            .any(|s| s.cell == cell && s.failure().is_some())
        {
            continue;
        }
        for attempt in 0..=MAX_REPEATS {
            let Some(outcome) = executor.run(&cell)? else {
                series.interrupted = true;
                return Ok(series);
            };
            let disturbed = outcome.foreign > max_foreign;
            let mut sample = Sample {
                cell: cell.clone(),
                repeat,
                attempt,
                disturbed,
                kept: !disturbed || attempt == MAX_REPEATS,
                outcome,
            };
            sample.kept |= sample.failure().is_some() || sample.late();
            record(&sample, done + 1)?;
            if sample.kept {
                check_probe(&sample)?;
                series.samples.push(sample);
                break;
            }
            series.nr_repeated += 1;
        }
    }
    Ok(series)
}

/// Without `calcula` there is no fair share to compare with.
fn check_probe(sample: &Sample) -> Result<()> {
    match sample
        .failure()
        .filter(|_| matches!(sample.cell.work, Work::Probe(_)))
    {
        Some(program) => Err(Fault::Machine(format!(
            "calcula, which measures the fair share, failed ({:?}): {}",
            program.exit, program.complaint
        ))
        .into()),
        None => Ok(()),
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::arm::Arm;
    use super::super::child::Usage;
    use super::super::hog;
    use super::super::plan::tests::plan_of;
    use super::super::sample::Role;
    use super::*;

    /// A run of one job as an executor would deliver it.
    pub fn outcome(time_s: f64, cpu_s: f64) -> Outcome {
        Outcome {
            programs: vec![program(Role::Job, "job", time_s, cpu_s)],
            foreign: 0.0,
            hogs: hog::Work::default(),
            sleeper_p99_us: Some(50.0),
        }
    }

    /// A program that told its time and CPU time.
    pub fn program(role: Role, name: &str, time_s: f64, cpu_s: f64) -> Program {
        Program {
            role,
            name: name.to_owned(),
            offset_s: 0.0,
            wall_s: time_s + 0.5,
            own_s: Some(time_s),
            own_cpu_s: Some(cpu_s),
            usage: Usage::default(),
            exit: Exit::Code(0),
            complaint: String::new(),
            doorbells: None,
            reported: None,
        }
    }

    /// Answers each cell by a function.
    pub struct Mock<F>(pub F);

    impl<F: FnMut(&Cell) -> Option<Outcome>> Executor for Mock<F> {
        fn run(&mut self, cell: &Cell) -> Result<Option<Outcome>> {
            Ok((self.0)(cell))
        }
    }

    fn plan() -> Plan {
        plan_of(1, 3)
    }

    fn ignore(_: &Sample, _: usize) -> Result<()> {
        Ok(())
    }

    #[test]
    fn a_quiet_series_runs_each_entry_once_and_in_order() {
        let mut seen = Vec::new();
        let mut mock = Mock(|cell: &Cell| {
            seen.push(cell.clone());
            Some(outcome(1.0, 1.0))
        });
        let series = run(&plan(), 0.06, &mut mock, &mut ignore).unwrap();
        let order: Vec<Cell> = plan().order().into_iter().map(|(_, cell)| cell).collect();
        assert_eq!(seen, order);
        assert_eq!((series.samples.len(), series.nr_repeated), (order.len(), 0));
    }

    #[test]
    fn a_disturbed_run_is_repeated_and_counted() {
        let mut calls = 0;
        let mut mock = Mock(|_: &Cell| {
            calls += 1;
            let foreign = if calls <= 2 { 0.5 } else { 0.0 };
            Some(Outcome {
                foreign,
                ..outcome(1.0, 1.0)
            })
        });
        let mut recorded = 0;
        let mut count = |_: &Sample, _: usize| {
            recorded += 1;
            Ok(())
        };
        let series = run(&plan(), 0.06, &mut mock, &mut count).unwrap();
        assert_eq!(series.nr_repeated, 2);
        assert_eq!(series.samples[0].attempt, 2);
        assert_eq!(recorded, series.samples.len() + 2);
    }

    #[test]
    fn a_run_that_is_always_disturbed_counts_in_the_end_and_is_marked() {
        let mut mock = Mock(|_: &Cell| {
            Some(Outcome {
                foreign: 0.5,
                ..outcome(1.0, 1.0)
            })
        });
        let series = run(&plan(), 0.06, &mut mock, &mut ignore).unwrap();
        assert_eq!(series.samples.len(), plan().order().len());
        assert!(series
            .samples
            .iter()
            .all(|s| s.disturbed && s.attempt == MAX_REPEATS));
    }

    #[test]
    fn a_late_run_is_not_repeated() {
        let mut mock = Mock(|_: &Cell| {
            let mut late = outcome(1.0, 1.0);
            late.programs[0].exit = Exit::TimedOut;
            late.foreign = 0.5;
            Some(late)
        });
        let series = run(&plan(), 0.06, &mut mock, &mut ignore).unwrap();
        assert_eq!(series.nr_repeated, 0);
    }

    #[test]
    fn a_failed_cell_is_not_tried_again() {
        let mut mock = Mock(|cell: &Cell| {
            let mut outcome = outcome(1.0, 1.0);
            if cell.work == Work::Arm(Arm::Policy("auto".into())) && cell.hogs == 1 {
                outcome.programs[0].exit = Exit::Code(1);
            }
            Some(outcome)
        });
        let series = run(&plan(), 0.06, &mut mock, &mut ignore).unwrap();
        assert_eq!(
            series
                .samples
                .iter()
                .filter(|s| s.failure().is_some())
                .count(),
            1
        );
        assert_eq!(series.samples.len(), plan().order().len() - 2);
    }

    #[test]
    fn without_probe_there_is_no_verdict() {
        let mut mock = Mock(|cell: &Cell| {
            let mut outcome = outcome(1.0, 1.0);
            if matches!(cell.work, Work::Probe(_)) {
                outcome.programs[0].exit = Exit::Signal(11);
            }
            Some(outcome)
        });
        assert!(run(&plan(), 0.06, &mut mock, &mut ignore).is_err());
    }

    #[test]
    fn an_interrupt_keeps_what_there_is() {
        let mut left = 3;
        let mut mock = Mock(|_: &Cell| {
            left -= 1;
            (left >= 0).then(|| outcome(1.0, 1.0))
        });
        let series = run(&plan(), 0.06, &mut mock, &mut ignore).unwrap();
        assert!(series.interrupted && series.samples.len() == 3);
    }
}
