// SPDX-License-Identifier: Apache-2.0
//! A node's clock: ticks that are computed when looked at, never events.
//!
//! Nodes are not started together, and their quartzes differ. Were all ticks
//! aligned, equal quanta on different nodes would stay in step for ever, and the
//! simulator would coschedule by itself. So each node has a random
//! phase and a random drift.

use crate::random::Stream;

/// Tick `k` comes at `phase_ns + k * period_ns`.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    phase_ns: u64,
    period_ns: u64,
}

impl Clock {
    /// A clock of nominal `period_ns` with a phase in 0..period and a drift in
    /// -`ppm`..=`ppm` drawn from `stream`.
    pub fn new(period_ns: u64, ppm: u64, stream: &mut Stream) -> Self {
        let phase_ns = stream.below(period_ns);
        let off_ppm = stream.below(2 * ppm + 1);
        let period_ns = scale(period_ns, 1_000_000 - ppm + off_ppm, 1_000_000).max(1);
        Clock {
            phase_ns,
            period_ns,
        }
    }

    /// A clock without drift whose tick 0 is at `phase_ns`.
    pub fn exact(period_ns: u64, phase_ns: u64) -> Self {
        Clock {
            phase_ns,
            period_ns: period_ns.max(1),
        }
    }

    /// How many ticks come in (0, `at_ns`].
    fn count(&self, at_ns: u64) -> u64 {
        if at_ns < self.phase_ns {
            0
        } else {
            (at_ns - self.phase_ns) / self.period_ns + 1
        }
    }

    /// How many ticks come in (`after_ns`, `until_ns`].
    pub fn ticks(&self, after_ns: u64, until_ns: u64) -> u64 {
        self.count(until_ns) - self.count(after_ns)
    }

    /// The instant of the `n`-th tick after `after_ns`; `n` at least 1.
    pub fn nth_after(&self, after_ns: u64, n: u64) -> u64 {
        let k = self.count(after_ns) + n - 1;
        self.phase_ns
            .saturating_add(k.saturating_mul(self.period_ns))
    }

    /// The instant of the first tick at or after `at_ns`.
    pub fn at_or_after(&self, at_ns: u64) -> u64 {
        match at_ns.checked_sub(1) {
            Some(before) => self.nth_after(before, 1),
            None => self.phase_ns,
        }
    }

    /// The instant of the last tick at or before `at_ns`; 0 where there was none.
    pub fn last_at(&self, at_ns: u64) -> u64 {
        match self.count(at_ns) {
            0 => 0,
            n => self.phase_ns + (n - 1) * self.period_ns,
        }
    }
}

/// `ns * times / parts` without overflow.
fn scale(ns: u64, times: u64, parts: u64) -> u64 {
    let wide = u128::from(ns) * u128::from(times) / u128::from(parts.max(1));
    u64::try_from(wide).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Source};

    #[test]
    fn ticks_are_counted_in_half_open_intervals() {
        let clock = Clock::exact(10, 3);
        assert_eq!(clock.ticks(0, 2), 0);
        assert_eq!(clock.ticks(0, 3), 1);
        assert_eq!(clock.ticks(3, 13), 1);
        assert_eq!(clock.ticks(3, 42), 3);
        assert_eq!(clock.nth_after(0, 1), 3);
        assert_eq!(clock.nth_after(3, 1), 13);
        assert_eq!(clock.nth_after(4, 2), 23);
        assert_eq!(clock.at_or_after(13), 13);
        assert_eq!(clock.at_or_after(14), 23);
        assert_eq!(clock.at_or_after(0), 3);
        assert_eq!(clock.last_at(22), 13);
        assert_eq!(clock.last_at(2), 0);
    }

    #[test]
    fn phases_and_periods_differ_between_nodes_within_their_bounds() {
        let source = Source {
            seed: 1,
            replication: 0,
        };
        let clocks: Vec<Clock> = (0..100)
            .map(|node| Clock::new(10_000_000, 50, &mut source.stream(node, Purpose::Clock)))
            .collect();
        let within = |c: &Clock| (9_999_500..=10_000_500).contains(&c.period_ns);
        assert!(clocks.iter().all(within));
        let mut phases: Vec<u64> = clocks.iter().map(|c| c.phase_ns).collect();
        phases.sort_unstable();
        phases.dedup();
        assert!(phases.len() > 90);
    }
}
