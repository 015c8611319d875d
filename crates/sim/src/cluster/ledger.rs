// SPDX-License-Identifier: Apache-2.0
//! What an equal share would have been: the integral of min(1, CPUs / members) over time.
//!
//! With a constant number N of processes on one CPU, the share of a process over T
//! is T / N, so that CPU time over share is the fairness F = N * Tc / Te of S1, equation 2.
//! Where processes come and go the integral is the same idea, moment by moment.

/// Whose, and since when.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    members: u32,
    /// In 1/256 ns.
    share_q8: u64,
    at_ns: u64,
}

impl Ledger {
    fn advance(&mut self, now_ns: u64, cpus: u32) {
        let passed_q8 = (now_ns - self.at_ns) << 8;
        self.at_ns = now_ns;
        self.share_q8 += match u64::from(self.members) {
            0 => 0,
            n => passed_q8 * u64::from(cpus).min(n) / n,
        };
    }

    /// One more member; gives what the share is up to now, in 1/256 ns.
    pub fn join(&mut self, now_ns: u64, cpus: u32) -> u64 {
        self.advance(now_ns, cpus);
        self.members += 1;
        self.share_q8
    }

    /// One member fewer; gives the same.
    pub fn leave(&mut self, now_ns: u64, cpus: u32) -> u64 {
        self.advance(now_ns, cpus);
        self.members -= 1;
        self.share_q8
    }

    /// What it is now, in 1/256 ns.
    pub fn share_q8(&mut self, now_ns: u64, cpus: u32) -> u64 {
        self.advance(now_ns, cpus);
        self.share_q8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_equal_and_never_above_one_cpu() {
        let mut ledger = Ledger::default();
        ledger.join(0, 2);
        ledger.join(100, 2);
        assert_eq!(ledger.share_q8(200, 2) >> 8, 200);
        ledger.join(200, 2);
        ledger.join(200, 2);
        assert_eq!(ledger.leave(300, 2) >> 8, 250);
        assert_eq!(ledger.share_q8(600, 2) >> 8, 450);
    }
}
