// SPDX-License-Identifier: Apache-2.0
//! From replications to one number.

use crate::outcome::coefficient_of_variation;
use serde::Deserialize;

/// What is taken of the values of all replications.
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
    /// Of `values`; none of none.
    pub fn of(self, values: &[f64]) -> Option<f64> {
        if values.is_empty() {
            return None;
        }
        Some(match self {
            Statistic::Mean => values.iter().sum::<f64>() / values.len() as f64,
            Statistic::Median => median(values),
            Statistic::Variation => coefficient_of_variation(values),
        })
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
}

/// Mean, and half the width of Student's 90 % interval; none of none, no width of one value.
pub fn mean_interval(values: &[f64]) -> Option<(f64, f64)> {
    let mean = Statistic::Mean.of(values)?;
    let n = values.len() as f64;
    let deviation = coefficient_of_variation(values) * mean.abs();
    let t = student_95(values.len().saturating_sub(1));
    Some((mean, t * deviation / n.sqrt()))
}

/// Student's t at 95 % (two-sided 90 %). Beyond the table two terms of the Cornish-Fisher
/// expansion are right to 0.01.
fn student_95(freedom: usize) -> f64 {
    const TABLE: [f64; 10] = [
        0.0, 6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833,
    ];
    let beyond = || 1.645 + 1.524 / freedom as f64;
    TABLE.get(freedom).copied().unwrap_or_else(beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        let (mean, half) = mean_interval(&values).unwrap();
        assert!(mean == 3.0 && (half - 1.5075).abs() < 1e-3);
        assert_eq!(mean_interval(&[2.0]), Some((2.0, 0.0)));
        assert_eq!(mean_interval(&[]), None);
        assert_eq!(Statistic::Median.of(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(Statistic::Variation.of(&[2.0, 4.0, 6.0]), Some(0.5));
    }
}
