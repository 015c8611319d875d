// SPDX-License-Identifier: Apache-2.0
//! The verdict: one line per arm, level and program, in the measures of docs/design.md.
//!
//!   T      response time
//!   S      T / fair limit; 1.00 is perfect coscheduling
//!   F      CPU time used / CPU time that was the program's fair share; above 1.05 it is theft
//!   waste  CPU time used / CPU time used alone on the free machine
//!
//! S divides by one fair limit, the median's, so its interval is that of T. A run that was ended
//! at the time limit enters with that limit, and its line says so: its T and S are lower bounds.

use cosched_sim::statistics::{summarise, Estimate, Summary};
use serde::Serialize;

use super::arm::Arm;
use super::child::Exit;
use super::fair::Fair;
use super::plan::{Cell, Plan, Work};
use super::sample::{Doorbells, Outcome, Program};
use super::series::{Sample, Series};

/// What is known about one program in one cell.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The arm.
    pub arm: String,
    /// Hogs per CPU.
    pub hogs: u32,
    /// Which program of the cell.
    pub program: String,
    /// Runs that count.
    pub nr_runs: usize,
    /// ... of which too much foreign CPU time was seen.
    pub nr_disturbed: usize,
    /// ... of which were ended at the time limit.
    pub nr_timed_out: usize,
    /// Why the arm failed here, where it did.
    pub failed: Option<String>,
    /// T.
    pub time_s: Option<Summary>,
    /// S.
    pub slowdown: Option<Summary>,
    /// F.
    pub fairness: Option<Summary>,
    /// CPU time used / CPU time alone.
    pub waste: Option<f64>,
    /// T / T of `stock` in the same repeat at the same level, median.
    pub against_stock: Option<Estimate>,
    /// Switches by waiting, median.
    pub voluntary: Option<f64>,
    /// Switches by preemption, median.
    pub involuntary: Option<f64>,
    /// Work of the hogs / the work that they could fairly do, median.
    pub hog_work: Option<f64>,
    /// 99th percentile of the interactive sleepers' lateness, median of the runs.
    pub sleeper_p99_us: Option<f64>,
    /// Sleeps of all ranks, median.
    pub blocks: Option<f64>,
    /// Missed doorbells per sleep.
    pub missed_per_block: Option<f64>,
    /// Wake-ups for nothing per useful one.
    pub spurious_per_wake: Option<f64>,
}

/// All lines, in the order of levels and arms.
pub fn judge(plan: &Plan, series: &Series, fair: Option<&Fair>) -> Vec<Line> {
    let is_verdict =
        |cell: &Cell| matches!(cell.work, Work::Arm(_)) && cell.together == plan.crowded();
    let cells = plan.cells();
    let mut lines = Vec::new();
    for cell in cells.iter().filter(|cell| is_verdict(cell)) {
        let samples: Vec<&Sample> = series.samples.iter().filter(|s| s.cell == *cell).collect();
        let names = samples
            .first()
            .map_or(0, |sample| sample.outcome.programs.len());
        lines.extend((0..names).map(|index| line(series, fair, &samples, index)));
    }
    lines
}

/// The runs of one cell, seen from one of its programs.
struct Group<'a> {
    series: &'a Series,
    /// Those that did not fail.
    runs: Vec<&'a Sample>,
    index: usize,
}

impl<'a> Group<'a> {
    fn programs(&self) -> impl Iterator<Item = &'a Program> + '_ {
        let index = self.index;
        self.runs
            .iter()
            .map(move |sample| &sample.outcome.programs[index])
    }

    fn summary(&self, value: impl Fn(&Program) -> f64) -> Option<Summary> {
        summarise(&self.programs().map(value).collect::<Vec<_>>())
    }

    fn middle(&self, value: impl Fn(&Program) -> f64) -> Option<f64> {
        Some(self.summary(value)?.median.value)
    }

    /// Over the runs that came to their own end; what a killed tree used is not known.
    fn of_ended(&self, value: impl Fn(&Outcome) -> Option<f64>) -> Option<Summary> {
        let ended = self
            .runs
            .iter()
            .filter(|s| s.outcome.programs[self.index].exit != Exit::TimedOut);
        summarise(&ended.filter_map(|s| value(&s.outcome)).collect::<Vec<_>>())
    }

    /// Of a figure that the whole run has.
    fn of_runs(&self, value: impl Fn(&Outcome) -> Option<f64>) -> Option<f64> {
        let values = self.runs.iter().filter_map(|sample| value(&sample.outcome));
        Some(summarise(&values.collect::<Vec<_>>())?.median.value)
    }

    fn doorbells(&self) -> Vec<Doorbells> {
        self.programs()
            .filter_map(|program| program.doorbells)
            .collect()
    }
}

fn line(series: &Series, fair: Option<&Fair>, samples: &[&Sample], index: usize) -> Line {
    let cell = &samples[0].cell;
    let first = &samples[0].outcome.programs[index];
    let good = samples.iter().copied().filter(|s| s.failure().is_none());
    let group = Group {
        series,
        runs: good.collect(),
        index,
    };
    let limit_s = fair.and_then(|fair| fair.limit_s(cell, index));
    let alone_cpu_s = fair.and_then(|fair| Some(fair.alone(index)?.cpu_s));
    // One after another nobody shares, so there is no share to compare with.
    let shared = fair.filter(|_| cell.work != Work::Arm(Arm::Batch));
    let bells = Rates::of(&group.doorbells());
    Line {
        arm: arm_of(cell),
        hogs: cell.hogs,
        program: first.name.clone(),
        nr_runs: group.runs.len(),
        nr_disturbed: group.runs.iter().filter(|s| s.disturbed).count(),
        nr_timed_out: group
            .programs()
            .filter(|p| p.exit == Exit::TimedOut)
            .count(),
        failed: samples.iter().find_map(|s| s.failure()).map(describe),
        time_s: group.summary(Program::time_s),
        slowdown: limit_s.and_then(|limit_s| group.summary(|p| p.time_s() / limit_s)),
        fairness: shared.and_then(|fair| group.of_ended(|run| fair.fairness(cell, run, index))),
        waste: alone_cpu_s.and_then(|alone_cpu_s| {
            let waste = |run: &Outcome| Some(run.programs[index].cpu_s() / alone_cpu_s);
            Some(group.of_ended(waste)?.median.value)
        }),
        against_stock: group.against_stock(),
        voluntary: group.middle(|p| p.usage.voluntary as f64),
        involuntary: group.middle(|p| p.usage.involuntary as f64),
        hog_work: shared.and_then(|fair| group.of_runs(|run| fair.hog_work(cell, run))),
        sleeper_p99_us: group.of_runs(|run| run.sleeper_p99_us),
        blocks: bells.blocks,
        missed_per_block: bells.missed_per_block,
        spurious_per_wake: bells.spurious_per_wake,
    }
}

/// Doorbell counters of several runs as rates.
#[derive(Default)]
struct Rates {
    blocks: Option<f64>,
    missed_per_block: Option<f64>,
    spurious_per_wake: Option<f64>,
}

impl Rates {
    fn of(runs: &[Doorbells]) -> Self {
        let sum = |key: fn(&Doorbells) -> u64| runs.iter().map(key).sum::<u64>() as f64;
        let rate = |n: f64, d: f64| (d > 0.0).then(|| n / d);
        let (blocks, spurious) = (sum(|b| b.blocks), sum(|b| b.spurious));
        Self {
            blocks: rate(blocks, runs.len() as f64),
            missed_per_block: rate(sum(|b| b.missed), blocks),
            spurious_per_wake: rate(spurious, sum(|b| b.wakes) - spurious),
        }
    }
}

fn arm_of(cell: &Cell) -> String {
    match &cell.work {
        Work::Arm(arm) => arm.to_string(),
        Work::Probe(_) => "calcula".to_owned(),
        Work::Beside(_) => "alone".to_owned(),
    }
}

fn describe(program: &Program) -> String {
    let how = match program.exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::TimedOut => "time limit".to_owned(),
        Exit::Unscheduled => "its scheduler lost".to_owned(),
    };
    format!("{} ended with {how}: {}", program.name, program.complaint)
}

impl Group<'_> {
    /// The ratios to `stock` of the same repeat, level and program.
    fn against_stock(&self) -> Option<Estimate> {
        let ratio = |sample: &&Sample| {
            let twin = self.series.samples.iter().find(|other| {
                (other.repeat, other.cell.hogs) == (sample.repeat, sample.cell.hogs)
                    && other.cell.together == sample.cell.together
                    && other.cell.work == Work::Arm(Arm::Stock)
                    && other.failure().is_none()
            })?;
            let time_s = |sample: &Sample| sample.outcome.programs[self.index].time_s();
            Some(time_s(sample) / time_s(twin))
        };
        let ratios: Vec<f64> = self.runs.iter().filter_map(ratio).collect();
        Some(summarise(&ratios)?.median)
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan_of;
    use super::super::sample::Role;
    use super::super::series::tests::{outcome, program, Mock};
    use super::super::{hog, series};
    use super::*;

    fn plan() -> Plan {
        plan_of(1, 5)
    }

    /// Hogs that make 10 rounds in a second of CPU time.
    fn hogs(rounds: f64, wall_s: f64) -> hog::Work {
        hog::Work {
            rounds,
            cpu_s: rounds / 10.0,
            wall_s,
        }
    }

    /// Stock takes 2 s alone and three times the fair limit beside a hog; auto 1.1 times that.
    fn machine(cell: &Cell) -> Option<Outcome> {
        let loaded = cell.hogs == 1;
        Some(match &cell.work {
            Work::Probe(_) => Outcome {
                programs: vec![program(
                    Role::Probe,
                    "probe",
                    3.0,
                    if loaded { 3.0 } else { 6.0 },
                )],
                hogs: hogs(30.0, 3.0),
                ..outcome(0.0, 0.0)
            },
            Work::Arm(Arm::Stock) if loaded => outcome(12.0, 12.0),
            Work::Arm(Arm::Policy(_)) if loaded => {
                let mut outcome = outcome(4.4, 4.18);
                outcome.hogs = hogs(46.2, 4.4);
                outcome.programs[0].doorbells = Some(Doorbells {
                    blocks: 1000,
                    missed: 1,
                    spurious: 50,
                    wakes: 550,
                });
                outcome
            }
            _ => outcome(2.0, 4.0),
        })
    }

    fn judged(plan: &Plan, machine: impl FnMut(&Cell) -> Option<Outcome>) -> Vec<Line> {
        let series = series::run(plan, 1.0, &mut Mock(machine), &mut |_, _| Ok(())).unwrap();
        let fair = Fair::measure(plan, &series, 2, 2).unwrap();
        judge(plan, &series, Some(&fair))
    }

    fn close(got: Option<f64>, wanted: f64) -> bool {
        got.is_some_and(|got| (got - wanted).abs() < 1e-9)
    }

    #[test]
    fn s_f_and_waste_of_known_times() {
        let lines = judged(&plan(), machine);
        let auto = &lines[3];
        assert_eq!((auto.arm.as_str(), auto.hogs, auto.nr_runs), ("auto", 1, 5));
        assert!(close(auto.slowdown.map(|s| s.median.value), 1.1));
        assert!(close(auto.fairness.map(|f| f.median.value), 0.95));
        assert!(close(auto.waste, 1.045));
        assert!(close(auto.hog_work, 1.05));
        assert!(close(auto.against_stock.map(|e| e.value), 4.4 / 12.0));
        let stock = &lines[2];
        assert!(close(stock.slowdown.map(|s| s.median.value), 3.0));
        assert!(close(stock.fairness.map(|f| f.median.value), 1.0));
    }

    #[test]
    fn doorbells_are_rates() {
        let lines = judged(&plan(), machine);
        assert!(close(lines[3].missed_per_block, 0.001));
        assert!(close(lines[3].spurious_per_wake, 0.1));
        assert_eq!(lines[2].blocks, None);
    }

    #[test]
    fn a_failed_arm_says_why_and_has_no_numbers() {
        let lines = judged(&plan(), |cell| {
            let mut outcome = machine(cell)?;
            if cell.work == Work::Arm(Arm::Policy("auto".into())) {
                outcome.programs[0].exit = Exit::Code(7);
                outcome.programs[0].complaint = "no such file".to_owned();
            }
            Some(outcome)
        });
        assert_eq!(
            lines[1].failed.as_deref(),
            Some("job ended with exit code 7: no such file")
        );
        assert!(lines[1].time_s.is_none() && lines[0].failed.is_none());
    }

    #[test]
    fn each_copy_is_compared_with_one_alone() {
        let plan = Plan {
            copies: 2,
            levels: vec![0],
            ..plan()
        };
        let lines = judged(&plan, |cell| {
            let copies: &[&str] = if cell.together {
                &["job", "job 2"]
            } else {
                &["job"]
            };
            let (role, time_s, cpu_s) = match cell.work {
                Work::Probe(_) => (Role::Probe, 3.0, if cell.together { 3.0 } else { 6.0 }),
                _ => (Role::Job, if cell.together { 4.2 } else { 2.0 }, 4.0),
            };
            let programs = copies
                .iter()
                .map(|name| program(role, name, time_s, cpu_s))
                .collect();
            Some(Outcome {
                programs,
                ..outcome(0.0, 0.0)
            })
        });
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[1].program, "job 2");
        assert!(close(lines[1].slowdown.map(|s| s.median.value), 1.05));
    }
}
