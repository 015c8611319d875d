// SPDX-License-Identifier: Apache-2.0
//! local: a local user, part of a CPU and now and then a long system call (S5, section 3).
//!
//! It computes a share of each period and sleeps out the rest; at exponential intervals of its
//! nominal time it moves 1 to 10 MB to memory, which costs CPU time. The pattern is that of
//! workloads/local.c: a period that took too long has no sleep, and the next is a whole one again,
//! so an undisturbed user takes its nominal length and no other does less work.
//!
//! S5 gives the share (10 to 90 %), the mean interval (500 ms) and the sizes; not the period, which
//! is our 10 ms, nor the speed of its memory. A lap is a period: longer ones are what a user feels.

use super::{lacking, Kind, Program, Step};
use crate::units::{Bandwidth, Span};
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Local {
    /// Of a CPU, while it computes; 0 to 1.
    pub share: f64,
    /// Nominal length, in whole periods; without it, for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<Span>,
    /// How often it sleeps.
    #[serde(default = "usual_period")]
    pub period: Span,
    /// Mean interval of the calls.
    #[serde(default = "usual_interval")]
    pub interval: Span,
    /// Bytes of the smallest call.
    #[serde(default = "one_megabyte")]
    pub least_bytes: u32,
    /// Bytes of the largest.
    #[serde(default = "ten_megabytes")]
    pub most_bytes: u32,
    /// How fast a call moves them.
    pub copy: Bandwidth,
}

fn usual_period() -> Span {
    Span::ms(10)
}

fn usual_interval() -> Span {
    Span::ms(500)
}

fn one_megabyte() -> u32 {
    1_000_000
}

fn ten_megabytes() -> u32 {
    10_000_000
}

struct User {
    it: Local,
    nr_periods: u64,
    /// When the period began that is not slept out yet.
    began_ns: Option<u64>,
    /// The next call, in nominal time; drawn when it is first asked for.
    next_call_ns: Option<u64>,
}

impl Kind for Local {
    fn program(&self, _task: u32) -> Box<dyn Program> {
        Box::new(User {
            it: self.clone(),
            nr_periods: 0,
            began_ns: None,
            next_call_ns: None,
        })
    }

    fn refuses(&self, _ranks: u32, threads: u32) -> Option<String> {
        let needs = [
            (threads == 1, "one thread"),
            ((0.0..=1.0).contains(&self.share), "a share of 0 to 1"),
            (self.period > Span::ZERO, "a period above 0"),
            (self.interval >= Span::ms(1), "an interval of 1ms or more"),
            (
                self.least_bytes <= self.most_bytes,
                "least_bytes of at most most_bytes",
            ),
            (
                self.length.is_none_or(|length| length >= self.period),
                "a length of a period or more",
            ),
        ];
        lacking("local", &needs)
    }

    fn endless(&self) -> bool {
        self.length.is_none()
    }

    fn communicates(&self) -> bool {
        false
    }
}

impl Program for User {
    fn step(&mut self, step: &mut Step) {
        if let Some(began_ns) = self.began_ns.take() {
            let left_ns = (began_ns + self.it.period.ns()).saturating_sub(step.now_ns);
            if left_ns > 0 {
                return step.sleep(left_ns);
            }
        }
        step.lap();
        let nominal_ns = self.nr_periods * self.it.period.ns();
        if self
            .it
            .length
            .is_some_and(|length| nominal_ns + self.it.period.ns() > length.ns())
        {
            return step.exit();
        }
        self.nr_periods += 1;
        self.began_ns = Some(step.now_ns);
        step.compute((self.it.share * self.it.period.ns() as f64) as u64);
        self.calls(step, nominal_ns + self.it.period.ns());
    }
}

impl User {
    /// Those that are due before `end_ns` of nominal time.
    fn calls(&mut self, step: &mut Step, end_ns: u64) {
        let interval_ns = self.it.interval.ns();
        let mut next_ns = match self.next_call_ns {
            Some(at_ns) => at_ns,
            None => step.random.exponential_ns(interval_ns),
        };
        while next_ns < end_ns {
            let range = u64::from(self.it.most_bytes - self.it.least_bytes) + 1;
            let bytes = self.it.least_bytes + step.random.below(range) as u32;
            step.compute(self.it.copy.time_ns(bytes));
            next_ns += step.random.exponential_ns(interval_ns).max(1);
        }
        self.next_call_ns = Some(next_ns);
    }
}
