// SPDX-License-Identifier: Apache-2.0
//! Orders: do two sides put the same cases into the same order?
//!
//! A side knows of each case an interval. Of a pair of cases it says which is less, or nothing where the intervals
//! overlap or the values are nearly the same (a tie): a simulation's interval becomes as narrow as one likes, so that without a
//! margin it would order by what no machine shows. A pair agrees if both sides say the same, is discordant if they say opposite things, and open
//! if one says something and the other nothing. Kendall's tau-b sums that up: 1 is the same order, -1 the opposite one, ties on
//! either side bring it towards 0.

use crate::statistics::Estimate;
use std::cmp::Ordering;

/// How far two orders of the same cases agree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agreement {
    /// Pairs that both sides put into the same order.
    pub ordered: usize,
    /// Pairs that are ties on both.
    pub tied: usize,
    /// Pairs that are a tie on one side only.
    pub open: usize,
    /// Pairs in opposite orders, by number: the first is less on the first side.
    pub discordant: Vec<(usize, usize)>,
    ties: [usize; 2],
}

/// So much of the lesser value is nearly the same.
pub const MARGIN: f64 = 0.05;

/// Less or greater where the intervals are apart, equal where they overlap or the values are nearly the same.
fn compare(a: &Estimate, b: &Estimate) -> Ordering {
    let near = (a.value - b.value).abs() <= MARGIN * a.value.min(b.value);
    match (a.high < b.low, b.high < a.low) {
        (true, _) if !near => Ordering::Less,
        (_, true) if !near => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

/// Holds `second` to `first`; both know the same cases in the same order.
pub fn agreement(first: &[Estimate], second: &[Estimate]) -> Agreement {
    let mut found = Agreement::default();
    for (i, j) in pairs(first.len().min(second.len())) {
        let said = [first, second].map(|side| compare(&side[i], &side[j]));
        found.put(i, j, said);
    }
    found
}

fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |i| (i + 1..count).map(move |j| (i, j)))
}

impl Agreement {
    fn put(&mut self, i: usize, j: usize, said: [Ordering; 2]) {
        for (ties, said) in self.ties.iter_mut().zip(said) {
            *ties += usize::from(said == Ordering::Equal);
        }
        match said {
            [Ordering::Equal, Ordering::Equal] => self.tied += 1,
            [Ordering::Equal, _] | [_, Ordering::Equal] => self.open += 1,
            [one, other] if one == other => self.ordered += 1,
            [Ordering::Less, _] => self.discordant.push((i, j)),
            _ => self.discordant.push((j, i)),
        }
    }

    /// All pairs.
    pub fn pairs(&self) -> usize {
        self.ordered + self.tied + self.open + self.discordant.len()
    }

    /// Kendall's tau-b; none where a side orders no pair.
    pub fn tau(&self) -> Option<f64> {
        let said = self.ties.map(|ties| (self.pairs() - ties) as f64);
        let both = (said[0] * said[1]).sqrt();
        let more = self.ordered as f64 - self.discordant.len() as f64;
        (both > 0.0).then(|| more / both)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(intervals: &[(f64, f64)]) -> Vec<Estimate> {
        let estimate = |(low, high): &(f64, f64)| Estimate {
            value: (low + high) / 2.0,
            low: *low,
            high: *high,
            coverage: 0.9,
        };
        intervals.iter().map(estimate).collect()
    }

    /// Each value with an interval of 0.2 around it.
    fn values(values: &[f64]) -> Vec<Estimate> {
        let around: Vec<_> = values.iter().map(|v| (v - 0.1, v + 0.1)).collect();
        side(&around)
    }

    #[test]
    fn the_same_and_the_opposite_order() {
        let up = values(&[1.0, 2.0, 3.0, 4.0]);
        let down = values(&[9.0, 8.0, 7.0, 6.0]);
        let same = agreement(&up, &values(&[10.0, 20.0, 30.0, 40.0]));
        assert_eq!((same.ordered, same.pairs(), same.tau()), (6, 6, Some(1.0)));
        assert_eq!(same.discordant, []);
        let opposite = agreement(&up, &down);
        assert_eq!((opposite.ordered, opposite.tau()), (0, Some(-1.0)));
        assert_eq!(opposite.discordant.len(), 6);
    }

    #[test]
    fn a_discordant_pair_is_named_the_lesser_of_the_first_side_first() {
        let found = agreement(&values(&[3.0, 1.0, 2.0]), &values(&[3.0, 2.0, 1.0]));
        assert_eq!((found.ordered, found.discordant), (2, vec![(1, 2)]));
        let found = agreement(&values(&[3.0, 2.0, 1.0]), &values(&[3.0, 1.0, 2.0]));
        assert_eq!(found.discordant, [(2, 1)]);
    }

    /// By hand: of six pairs the first side ties one, the second another; three of the four others agree.
    #[test]
    fn overlapping_intervals_are_ties_and_tau_counts_them() {
        let first = side(&[(1.0, 2.0), (1.5, 2.5), (3.0, 4.0), (5.0, 6.0)]);
        let second = side(&[(1.0, 2.0), (3.0, 4.0), (8.0, 9.0), (3.5, 6.0)]);
        let found = agreement(&first, &second);
        assert_eq!((found.ordered, found.tied, found.open), (3, 0, 2));
        assert_eq!(found.discordant, [(2, 3)]);
        assert_eq!(found.tau(), Some((3.0 - 1.0) / 5.0));
    }

    #[test]
    fn values_within_the_margin_are_ties_however_narrow_their_intervals() {
        let exact = |values: &[f64]| side(&values.iter().map(|v| (*v, *v)).collect::<Vec<_>>());
        let found = agreement(&exact(&[100.0, 105.0, 111.0]), &exact(&[1.0, 3.0, 2.0]));
        assert_eq!((found.ordered, found.tied, found.open), (1, 0, 1));
        assert_eq!(found.discordant, [(1, 2)]);
    }

    #[test]
    fn intervals_that_touch_overlap_and_who_says_nothing_has_no_tau() {
        let touching = side(&[(1.0, 2.0), (2.0, 3.0)]);
        let apart = side(&[(1.0, 2.0), (2.1, 3.0)]);
        let found = agreement(&touching, &apart);
        assert_eq!((found.open, found.tau()), (1, None));
        let both = agreement(&touching, &touching);
        assert_eq!((both.tied, both.tau()), (1, None));
        assert_eq!(agreement(&[], &[]).tau(), None);
    }
}
