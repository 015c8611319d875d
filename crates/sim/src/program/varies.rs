// SPDX-License-Identifier: Apache-2.0
//! How a length varies around its mean: the grains of irregular codes (S1, section 5.3).
//!
//! Each draw takes the same number of random bits, so that runs which differ in the
//! distribution alone meet the same quantiles in the same order.

use crate::random::Stream;
use serde::{Deserialize, Serialize};

/// A distribution of given mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Varies {
    /// Always the mean.
    #[default]
    Never,
    /// Uniform within that fraction around the mean.
    Uniform(f64),
    /// Memoryless.
    Exponential,
    /// Heavy-tailed, with that exponent above 1; up to 2 the variance is infinite.
    Pareto(f64),
}

impl Varies {
    /// One length of that mean; at least 1 where the mean is.
    pub fn draw(self, mean: u64, random: &mut Stream) -> u64 {
        if self == Varies::Never || mean == 0 {
            return mean;
        }
        let u = random.unit();
        let factor = match self {
            Varies::Never => 1.0,
            Varies::Uniform(spread) => 1.0 + spread * (2.0 * u - 1.0),
            Varies::Exponential => -libm::log(1.0 - u),
            Varies::Pareto(a) => (a - 1.0) / a * libm::pow(1.0 - u, -1.0 / a),
        };
        ((mean as f64 * factor) as u64).max(1)
    }

    /// Whether it has a mean, and no negative lengths.
    pub fn is_sound(self) -> bool {
        match self {
            Varies::Uniform(spread) => (0.0..=1.0).contains(&spread),
            Varies::Pareto(a) => a > 1.0 && a.is_finite(),
            Varies::Never | Varies::Exponential => true,
        }
    }
}

/// What must be written where it is not sound.
pub const SOUND: &str = "varies = { uniform = 0 to 1 } or { pareto = above 1 }";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Source};

    #[test]
    fn all_have_the_mean_that_they_are_given() {
        let source = Source {
            seed: 1,
            replication: 0,
        };
        for varies in [
            Varies::Never,
            Varies::Uniform(1.0),
            Varies::Exponential,
            Varies::Pareto(3.0),
        ] {
            assert!(varies.is_sound());
            let mut random = source.stream(0, Purpose::Program);
            let n = 200_000;
            let sum: u64 = (0..n).map(|_| varies.draw(10_000, &mut random)).sum();
            assert!(
                sum.abs_diff(n * 10_000) < n * 100,
                "{varies:?}: {}",
                sum / n
            );
        }
        for wrong in [
            Varies::Uniform(1.1),
            Varies::Uniform(f64::NAN),
            Varies::Pareto(1.0),
            Varies::Pareto(f64::INFINITY),
        ] {
            assert!(!wrong.is_sound(), "{wrong:?}");
        }
    }
}
