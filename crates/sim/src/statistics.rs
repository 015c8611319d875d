// SPDX-License-Identifier: Apache-2.0
//! Statistics: what a handful of runs allows to say, and no more.
//!
//! `cosched bench` and the experiments use the same. Run times of an MPI job on a shared machine
//! are skewed and few, so each figure carries two summaries: the mean with Student's 90 % interval, and
//! the median with an interval between two order statistics, which assumes nothing about the
//! distribution. Few samples cannot hold a confidence of exactly 90 %, so the median's interval
//! states the coverage that it has. No outlier is dropped here; what may be repeated is decided before.

use serde::{Deserialize, Serialize};

/// The coverage that intervals aim at.
pub const CONFIDENCE: f64 = 0.90;

/// A mean or median with the interval around it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The point estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Probability that the interval covers the true value.
    pub coverage: f64,
}

/// Mean and median of the same samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many samples.
    pub count: usize,
    /// Mean with Student's interval.
    pub mean: Estimate,
    /// Median with its order-statistic interval.
    pub median: Estimate,
}

/// Summarises `samples`; `None` where there are none.
pub fn summarise(samples: &[f64]) -> Option<Summary> {
    Some(Summary {
        count: samples.len(),
        mean: mean(samples)?,
        median: median(samples)?,
    })
}

/// What is taken of the values of all replications of an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// Their mean, as the papers take it.
    #[default]
    Mean,
    /// The value in the middle.
    Median,
    /// Standard deviation over mean.
    Variation,
}

impl Statistic {
    /// Of `samples`; `None` where there are none.
    pub fn of(self, samples: &[f64]) -> Option<f64> {
        let value = |estimate: Estimate| estimate.value;
        match self {
            Statistic::Mean => mean(samples).map(value),
            Statistic::Median => median(samples).map(value),
            Statistic::Variation => coefficient_of_variation(samples),
        }
    }
}

/// Standard deviation over mean (S2: across workloads); 0 of one sample, and where the mean is 0.
fn coefficient_of_variation(samples: &[f64]) -> Option<f64> {
    let mean = mean(samples)?.value;
    Some(match mean {
        0.0 => 0.0,
        _ => deviation(samples, mean) / mean,
    })
}

/// The standard deviation of a sample around its `mean`; 0 of one.
fn deviation(samples: &[f64], mean: f64) -> f64 {
    let squares: f64 = samples.iter().map(|x| (x - mean).powi(2)).sum();
    (squares / samples.len().saturating_sub(1).max(1) as f64).sqrt()
}

/// With Student's interval; one sample claims no coverage.
pub fn mean(samples: &[f64]) -> Option<Estimate> {
    let freedom = samples.len().checked_sub(1)?;
    let count = samples.len() as f64;
    let value = samples.iter().sum::<f64>() / count;
    let error = deviation(samples, value) / count.sqrt() * student_95(freedom);
    Some(Estimate {
        value,
        low: value - error,
        high: value + error,
        coverage: if freedom == 0 { 0.0 } else { CONFIDENCE },
    })
}

fn median(samples: &[f64]) -> Option<Estimate> {
    let sorted = sorted(samples);
    let count = sorted.len();
    if count == 0 {
        return None;
    }
    let (rank, coverage) = median_rank(count);
    Some(Estimate {
        value: (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0,
        low: sorted[rank - 1],
        high: sorted[count - rank],
        coverage,
    })
}

/// The rank k for which the interval from the k-th smallest to the k-th largest sample is the
/// narrowest that covers the median with at least [`CONFIDENCE`], and what it covers; the whole
/// range where the samples are too few for that.
pub fn median_rank(count: usize) -> (usize, f64) {
    let half_power = 0.5_f64.powi(count as i32);
    let mut term = half_power;
    let mut below = half_power;
    let mut best = (1, 1.0 - 2.0 * below);
    for rank in 2..=count.div_ceil(2) {
        term *= (count - rank + 2) as f64 / (rank - 1) as f64;
        below += term;
        let coverage = 1.0 - 2.0 * below;
        if coverage < CONFIDENCE {
            break;
        }
        best = (rank, coverage);
    }
    (best.0, best.1.max(0.0))
}

/// The `q` quantile (0..=1) by nearest rank; `None` where there are no samples.
pub fn quantile(samples: &[f64], q: f64) -> Option<f64> {
    let sorted = sorted(samples);
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Student's t at 95 % (two-sided 90 %) for `freedom` degrees of freedom; 0 for none. Beyond the table
/// two terms of the Cornish-Fisher expansion are right to 0.001.
fn student_95(freedom: usize) -> f64 {
    const TABLE: [f64; 31] = [
        0.0, 6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782,
        1.771, 1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708,
        1.706, 1.703, 1.701, 1.699, 1.697,
    ];
    TABLE
        .get(freedom)
        .copied()
        .unwrap_or(1.645 + 1.524 / freedom as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    #[test]
    fn mean_and_interval_of_known_values() {
        let mean = summarise(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap().mean;
        assert!(close(mean.value, 3.0));
        // s = 1.5811, t(4) = 2.132, so the half width is 2.132 * 1.5811 / sqrt(5).
        assert!(close(mean.high - mean.value, 1.5075));
        assert!(close(mean.value - mean.low, 1.5075));
    }

    #[test]
    fn what_is_taken_of_replications() {
        assert_eq!(Statistic::Mean.of(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(Statistic::Median.of(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(Statistic::Variation.of(&[2.0, 4.0, 6.0]), Some(0.5));
        assert_eq!(Statistic::Variation.of(&[7.0]), Some(0.0));
        assert_eq!(Statistic::Variation.of(&[]), None);
    }

    #[test]
    fn one_sample_claims_no_coverage() {
        let summary = summarise(&[2.5]).unwrap();
        assert_eq!(summary.mean.coverage, 0.0);
        assert_eq!(summary.median.coverage, 0.0);
        assert_eq!(summary.median.value, 2.5);
        assert!(summarise(&[]).is_none());
    }

    #[test]
    fn median_ranks_are_the_binomial_ones() {
        for (count, rank, coverage) in [
            (4, 1, 0.875),
            (5, 1, 0.9375),
            (7, 1, 0.984_375),
            (8, 2, 0.929_687),
            (10, 2, 0.978_515),
            (20, 6, 0.958_610),
            (31, 11, 0.929_244),
        ] {
            let (got, covers) = median_rank(count);
            assert_eq!(got, rank, "{count} samples");
            assert!(close(covers, coverage), "{count} samples cover {covers}");
        }
    }

    #[test]
    fn median_takes_its_interval_from_the_sorted_samples() {
        let median = summarise(&[8.0, 1.0, 7.0, 2.0, 6.0, 3.0, 5.0, 4.0])
            .unwrap()
            .median;
        assert_eq!((median.value, median.low, median.high), (4.5, 2.0, 7.0));
    }

    #[test]
    fn quantiles_by_nearest_rank() {
        let samples: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(quantile(&samples, 0.99), Some(99.0));
        assert_eq!(quantile(&samples, 0.0), Some(1.0));
        assert_eq!(quantile(&samples, 1.0), Some(100.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn student_is_continuous_where_the_table_ends() {
        assert!(close(student_95(30), 1.697));
        assert!((student_95(31) - 1.696).abs() < 0.003);
        assert!(close(student_95(1_000_000), 1.645));
    }
}
