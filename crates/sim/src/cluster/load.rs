// SPDX-License-Identifier: Apache-2.0
//! How many tasks are runnable, as a monitor sees it: averages over periods that are over.
//!
//! S3's monitor writes an average now and then (section 2.2.2); who reads it between two
//! writes sees the old one. Nothing runs at the ends of periods: they are computed when looked at.

/// A run queue's length over time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    length: u32,
    at_ns: u64,
    /// length * ns since the current period began.
    sum: u64,
    average_q8: u32,
}

impl Load {
    /// The length now.
    pub fn length(&self) -> u32 {
        self.length
    }

    /// The length changes by `by`.
    pub fn change(&mut self, now_ns: u64, period_ns: u64, by: i32) {
        self.advance(now_ns, period_ns);
        self.length = self.length.saturating_add_signed(by);
    }

    /// The average over the last period that is over, in 1/256.
    pub fn average_q8(&mut self, now_ns: u64, period_ns: u64) -> u32 {
        self.advance(now_ns, period_ns);
        self.average_q8
    }

    fn advance(&mut self, now_ns: u64, period_ns: u64) {
        let began_ns = now_ns / period_ns * period_ns;
        if self.at_ns < began_ns {
            let ended_ns = (self.at_ns / period_ns + 1) * period_ns;
            self.sum += u64::from(self.length) * (ended_ns - self.at_ns);
            let last = if ended_ns < began_ns {
                u64::from(self.length) * period_ns
            } else {
                self.sum
            };
            self.average_q8 = (u128::from(last) * 256 / u128::from(period_ns)) as u32;
            self.sum = 0;
            self.at_ns = began_ns;
        }
        self.sum += u64::from(self.length) * (now_ns - self.at_ns);
        self.at_ns = now_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_are_of_periods_that_are_over() {
        let mut load = Load::default();
        load.change(0, 100, 2);
        load.change(50, 100, 2);
        assert_eq!(load.average_q8(99, 100), 0);
        assert_eq!(load.average_q8(100, 100), 3 * 256);
        assert_eq!(load.average_q8(199, 100), 3 * 256);
        assert_eq!(load.average_q8(1000, 100), 4 * 256);
        assert_eq!(load.length(), 4);
    }
}
