// SPDX-License-Identifier: Apache-2.0
//! What can be set of the scheduler itself; what a job gets is its preset's.

use crate::{raw, Error};
use cosched_model::Nanos;

/// Parameters of the fair rule (bpf/vtime.bpf.h) and of kicks. The defaults are ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Of a turn; it ends at a tick of the kernel.
    pub slice: Nanos,
    /// A boosted rank may be so far ahead of the others on its CPU.
    pub max_debt: Nanos,
    /// Who slept or yielded keeps so much of what it is owed.
    pub credit: Nanos,
    /// Who wakes preempts from so far behind.
    pub granularity: Nanos,
    /// Least time between two kicks of a CPU for boosts.
    pub kick_gap: Nanos,
    /// Least time between two looks of a CPU for a longer queue.
    pub balance: Nanos,
}

impl Default for Config {
    fn default() -> Self {
        let us = |n: u64| Nanos(n * 1000);
        Config {
            slice: us(3_000),
            max_debt: us(20_000),
            credit: us(3_000),
            granularity: us(1_000),
            kick_gap: us(50),
            balance: us(4_000),
        }
    }
}

/// So many of a queue are looked at for a rank to boost, or one that may move.
const MAX_LOOKS: u32 = 64;

/// Nobody waits a quarter of the watchdog's time, even in a queue of so many.
const LONGEST_SLICE: Nanos = Nanos(100_000_000);

impl Config {
    /// What contradicts itself, in one line.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Config(what));
        if self.slice.0 == 0 || self.slice > LONGEST_SLICE {
            return wrong(format!(
                "slice is {}; it must be above 0 and at most {LONGEST_SLICE}",
                self.slice
            ));
        }
        if self.max_debt < self.slice {
            return wrong(format!(
                "max_debt ({}) is below slice ({}): no boost would ever be served twice; raise it",
                self.max_debt, self.slice
            ));
        }
        if self.kick_gap > self.slice {
            return wrong(format!(
                "kick_gap ({}) is above slice ({}): boosts would come too late; lower it",
                self.kick_gap, self.slice
            ));
        }
        Ok(())
    }

    pub(crate) fn raw(&self, nr_cpus: u32, schedules: bool) -> raw::cos_kernel_config {
        raw::cos_kernel_config {
            abi: raw::COS_KERNEL_ABI,
            nr_cpus,
            schedules: schedules.into(),
            max_looks: MAX_LOOKS,
            slice_ns: self.slice.0,
            max_debt_ns: self.max_debt.0,
            credit_ns: self.credit.0,
            granularity_ns: self.granularity.0,
            kick_gap_ns: self.kick_gap.0,
            balance_ns: self.balance.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictions_are_refused() {
        assert!(Config::default().check().is_ok());
        let wrong = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(wrong(|c| c.slice = Nanos(0)).contains("above 0"));
        assert!(wrong(|c| c.slice = Nanos(1_000_000_000)).contains("at most"));
        assert!(wrong(|c| c.max_debt = Nanos(1)).contains("max_debt"));
        assert!(wrong(|c| c.kick_gap = Nanos(4_000_000)).contains("kick_gap"));
    }
}
