// SPDX-License-Identifier: Apache-2.0
//! Histogram of durations: 1 us bins as in S3, then a logarithmic tail.
//!
//! The tail decides (S3: 996 000 of a million round trips are in one bin for every policy, and the others
//! set the outcome), so nothing is cut off. Sum and extremes are exact.

use serde::Serialize;

/// Microseconds that have a bin of their own.
const LINEAR: u64 = 4096;
/// Bins to each doubling beyond.
const PER_OCTAVE_BITS: u32 = 5;

const CHUNK: usize = 64;

/// Durations by length.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Histogram {
    /// How many.
    pub count: u64,
    /// Their sum in ns.
    pub sum_ns: u128,
    /// The longest in ns.
    pub max_ns: u64,
    /// Bins in chunks; those that nothing fell into are not there: thousands of jobs have one each.
    #[serde(skip)]
    chunks: Vec<Option<Box<[u64; CHUNK]>>>,
}

fn bin_of(us: u64) -> usize {
    if us < LINEAR {
        return us as usize;
    }
    let octave = us.ilog2() - LINEAR.ilog2();
    let within = us >> (us.ilog2() - PER_OCTAVE_BITS) & ((1 << PER_OCTAVE_BITS) - 1);
    (LINEAR + (u64::from(octave) << PER_OCTAVE_BITS) + within) as usize
}

/// The least duration of a bin in us.
fn lower_us(bin: usize) -> u64 {
    let bin = bin as u64;
    if bin < LINEAR {
        return bin;
    }
    let octave = (bin - LINEAR) >> PER_OCTAVE_BITS;
    let within = (bin - LINEAR) & ((1 << PER_OCTAVE_BITS) - 1);
    ((1 << PER_OCTAVE_BITS) + within) << (octave + u64::from(LINEAR.ilog2() - PER_OCTAVE_BITS))
}

impl Histogram {
    /// Counts `n` more in `bin`.
    fn fill(&mut self, bin: usize, n: u64) {
        if bin / CHUNK >= self.chunks.len() {
            self.chunks.resize(bin / CHUNK + 1, None);
        }
        let chunk = self.chunks[bin / CHUNK].get_or_insert_with(|| Box::new([0; CHUNK]));
        chunk[bin % CHUNK] += n;
    }

    /// The mean in ns; 0 where there is none.
    pub fn mean_ns(&self) -> u64 {
        (self.sum_ns / u128::from(self.count.max(1))) as u64
    }

    /// (lower bound in us, how many), of bins that are not empty.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let chunks = self.chunks.iter().enumerate();
        let there = chunks.filter_map(|(i, chunk)| Some((i * CHUNK, chunk.as_ref()?)));
        let bins = there.flat_map(|(first, chunk)| (first..).zip(chunk.iter()));
        let full = bins.filter(|(_, n)| **n > 0);
        full.map(|(bin, n)| (lower_us(bin), *n))
    }

    /// The lower bound in us of the bin that holds the `q`-quantile, 0 <= q <= 1.
    pub fn quantile_us(&self, q: f64) -> u64 {
        let rank = (q * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let mut reached = self.bins().skip_while(|(_, n)| {
            seen += n;
            seen < rank
        });
        reached.next().map_or(0, |(us, _)| us)
    }
}

/// Makes a histogram. Durations of the same bin in a row are counted here and reach
/// its bins together: those of thousands of jobs are in no cache.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    histogram: Histogram,
    bin: usize,
    in_a_row: u64,
}

impl Tally {
    /// Takes one.
    pub fn add(&mut self, ns: u64) {
        let bin = bin_of(ns / 1000);
        if bin != self.bin && self.in_a_row > 0 {
            self.histogram.fill(self.bin, self.in_a_row);
            self.in_a_row = 0;
        }
        self.bin = bin;
        self.in_a_row += 1;
        self.histogram.count += 1;
        self.histogram.sum_ns += u128::from(ns);
        self.histogram.max_ns = self.histogram.max_ns.max(ns);
    }

    /// The histogram of all that was taken.
    pub fn histogram(mut self) -> Histogram {
        if self.in_a_row > 0 {
            self.histogram.fill(self.bin, self.in_a_row);
        }
        self.histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_1_us_wide_and_then_3_per_cent() {
        for us in (0..10_000).chain((0..50).map(|bits| (1 << bits) + 12_345)) {
            let lower = lower_us(bin_of(us));
            assert!(lower <= us, "{us}");
            assert!(us - lower <= if us < LINEAR { 0 } else { us / 32 }, "{us}");
        }
        assert!((1..20_000).all(|us| bin_of(us) >= bin_of(us - 1)));
    }

    #[test]
    fn quantiles_come_from_the_tail_too() {
        let mut tally = Tally::default();
        (0..996).for_each(|_| tally.add(20_500));
        (0..4).for_each(|_| tally.add(1_000_000_000));
        let h = tally.histogram();
        assert_eq!(h.quantile_us(0.5), 20);
        assert_eq!(h.quantile_us(0.999), lower_us(bin_of(1_000_000)));
        assert_eq!(h.mean_ns(), (996 * 20_500 + 4 * 1_000_000_000) / 1000);
        assert_eq!(h.bins().count(), 2);
    }
}
