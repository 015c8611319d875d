// SPDX-License-Identifier: Apache-2.0
//! Random numbers that do not depend on who asks first.
//!
//! Each stream is keyed by (seed, replication, who, purpose), and its n-th number is a
//! function of key and n. Adding a node, a task or a policy shifts no other draw, so
//! runs that differ in one factor see the same phases, grains and arrivals: paired
//! differences are much tighter than independent ones. The function is SplitMix64's
//! (Steele, Lea and Flood, OOPSLA 2014).
//!
//! Logarithms come from a library in Rust: those of the system differ from machine to machine.

/// What a stream is for. Two purposes never share numbers.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub enum Purpose {
    /// Phase and drift of a node's clock.
    Clock = 1,
    /// Where in its first slice a task begins, and its place in the queue.
    Phase,
    /// Start times within the scatter of a job.
    Start,
    /// What a program draws.
    Program,
    /// Who is whose neighbour.
    Graph,
}

/// A seed and the number of the run with it.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Of the experiment.
    pub seed: u64,
    /// Of the run: independent runs differ here.
    pub replication: u64,
}

/// One stream of numbers.
#[derive(Clone, Debug)]
pub struct Stream {
    key: u64,
    drawn: u64,
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Source {
    /// The stream of `who` (a node or task) for `purpose`.
    pub fn stream(self, who: u64, purpose: Purpose) -> Stream {
        let words = [self.seed, self.replication, who, purpose as u64];
        let key = words.iter().fold(GOLDEN, |key, word| {
            mix(key.wrapping_add(GOLDEN).wrapping_add(mix(*word ^ GOLDEN)))
        });
        Stream { key, drawn: 0 }
    }
}

impl Stream {
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.drawn += 1;
        mix(self.key.wrapping_add(self.drawn.wrapping_mul(GOLDEN)))
    }

    /// Uniform in 0..`n`, 0 where `n` is; biased by less than n / 2^64.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponential with that mean, rounded to ns.
    pub fn exponential_ns(&mut self, mean_ns: u64) -> u64 {
        (-libm::log(1.0 - self.unit()) * mean_ns as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Source = Source {
        seed: 1,
        replication: 2,
    };

    #[test]
    fn streams_differ_in_each_part_of_their_key() {
        let first = |seed, replication, who, purpose| {
            Source { seed, replication }.stream(who, purpose).bits()
        };
        let mut all = vec![
            first(1, 2, 3, Purpose::Clock),
            first(2, 2, 3, Purpose::Clock),
            first(1, 3, 3, Purpose::Clock),
            first(1, 2, 4, Purpose::Clock),
            first(1, 2, 3, Purpose::Phase),
            first(2, 1, 3, Purpose::Clock),
        ];
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 6);
    }

    #[test]
    fn uniform_and_exponential_have_their_means() {
        let mut stream = SOURCE.stream(0, Purpose::Program);
        let n = 100_000;
        let uniform: u64 = (0..n).map(|_| stream.below(1000)).sum();
        assert!((49_000_000..51_000_000).contains(&uniform), "{uniform}");
        let exponential: u64 = (0..n).map(|_| stream.exponential_ns(1000)).sum();
        assert!((98_000_000..102_000_000).contains(&exponential));
        assert_eq!(stream.below(0), 0);
    }
}
