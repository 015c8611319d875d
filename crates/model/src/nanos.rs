// SPDX-License-Identifier: Apache-2.0
//! A length of time or an instant in nanoseconds, never a bare number.

use serde::{Deserialize, Serialize};
use std::{fmt, ops, time::Duration};

/// Nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// In seconds, for arithmetic of shares.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - other`, or nothing where other is larger.
    pub fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }

    /// `self / whole`; 0 where whole is.
    pub fn share_of(self, whole: Nanos) -> f64 {
        if whole.0 == 0 {
            0.0
        } else {
            self.0 as f64 / whole.0 as f64
        }
    }
}

impl From<Duration> for Nanos {
    fn from(d: Duration) -> Self {
        Nanos(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl ops::Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl std::iter::Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(iter: I) -> Nanos {
        iter.fold(Nanos(0), ops::Add::add)
    }
}

/// Three digits and the unit that fits: `1.23 ms`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let (value, unit) = match self.0 {
            0 => return f.write_str("0"),
            1..1_000 => (ns, "ns"),
            1_000..1_000_000 => (ns / 1e3, "us"),
            1_000_000..1_000_000_000 => (ns / 1e6, "ms"),
            _ => (ns / 1e9, "s"),
        };
        let digits = if value < 10.0 {
            2
        } else {
            usize::from(value < 100.0)
        };
        write!(f, "{value:.digits$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_three_digits_with_a_unit() {
        let shown = [0, 7, 1_234, 12_340_000, 123_400_000_000].map(|ns| Nanos(ns).to_string());
        assert_eq!(shown, ["0", "7.00 ns", "1.23 us", "12.3 ms", "123 s"]);
    }

    #[test]
    fn never_overflows_nor_divides_by_zero() {
        assert_eq!(Nanos(u64::MAX) + Nanos(1), Nanos(u64::MAX));
        assert_eq!(Nanos(1).saturating_sub(Nanos(2)), Nanos(0));
        assert_eq!(Nanos(1).share_of(Nanos(0)), 0.0);
    }
}
