// SPDX-License-Identifier: Apache-2.0
//! mg: NAS multigrid (Bailey et al., The NAS Parallel Benchmarks, 1991; S4, section 4).
//!
//! V-cycles on a periodic cubic grid that is dealt out to a box of ranks. After each stencil a
//! rank exchanges the faces of its block with its six neighbours, one dimension after the
//! other: large messages on the fine grids, tiny and frequent ones on the coarse. A cycle is
//! NPB's: restrict down to the coarsest, smooth there, on the way up residual and smoother on each
//! level, and the residual of the finest once more. Interpolation is counted with the
//! residual that follows it.
//!
//! Deviation: the coarsest level has one point of each rank in the longest dimension; NPB goes
//! on to 2 x 2 x 2 with some ranks idle.
//!
//! Class A is 256 with 4 iterations. `point` follows from the share of communication: with 17 %
//! (S5, table 1: 8 nodes, Fast Ethernet) and 3.1 MB from each node, 0.25 s at 12.5 MB/s, an
//! iteration computes 1.2 s for 7.2 million points of stencils: 170 ns a point, at NPB's 58
//! operations for each point of the grid 100 MFLOPS. Class T (S4, figure 3) is not
//! defined there: an experiment says its size. A lap is one iteration as rank 0 sees it.

use super::{lacking, too_few, Kind, Program, Step};
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mg {
    /// CPU time of a stencil on one point.
    pub point: Span,
    /// Points of the finest grid in each dimension: a power of two.
    #[serde(default = "class_a")]
    pub size: u32,
    /// How many V-cycles.
    #[serde(default = "four")]
    pub iterations: u64,
}

fn class_a() -> u32 {
    256
}

fn four() -> u64 {
    4
}

/// Bytes of a value.
const DOUBLE: u32 = 8;

/// Ranks in each dimension: doubled in turn until there are `ranks`, a power of two.
fn boxed(ranks: u32) -> [u32; 3] {
    let bits = ranks.ilog2();
    [0, 1, 2].map(|dimension| 1 << ((bits + 2 - dimension) / 3))
}

struct Rank {
    it: Mg,
    left: u64,
}

impl Kind for Mg {
    fn program(&self, _task: u32) -> Box<dyn Program> {
        Box::new(Rank {
            it: self.clone(),
            left: self.iterations,
        })
    }

    fn refuses(&self, ranks: u32, threads: u32) -> Option<String> {
        let few = too_few("mg", 2, ranks, threads);
        few.or_else(|| {
            let fits = boxed(ranks)[0] <= self.size / 2;
            let needs = [
                (ranks.is_power_of_two(), "a power of two of ranks"),
                (self.size.is_power_of_two(), "a power of two as size"),
                (self.size <= 4096, "a size of at most 4096"),
                (fits, "2 points or more for each rank: raise size"),
            ];
            lacking("mg", &needs)
        })
    }
}

impl Program for Rank {
    fn step(&mut self, step: &mut Step) {
        step.lap();
        if self.left == 0 {
            return step.exit();
        }
        self.left -= 1;
        let ranks = boxed(step.tasks);
        let sizes = |size: u32| (size > ranks[0]).then_some(size / 2);
        let levels: Vec<u32> = std::iter::successors(Some(self.it.size), |s| sizes(*s)).collect();
        let coarser = &levels[1..];
        coarser
            .iter()
            .for_each(|size| self.stencil(step, ranks, *size));
        self.stencil(step, ranks, ranks[0]);
        for size in levels.iter().rev().skip(1) {
            self.stencil(step, ranks, *size);
            self.stencil(step, ranks, *size);
        }
        self.stencil(step, ranks, self.it.size);
    }
}

impl Rank {
    /// On all points of the own block, then the halo.
    fn stencil(&self, step: &mut Step, ranks: [u32; 3], size: u32) {
        let block = ranks.map(|n| size / n);
        let points: u64 = block.iter().map(|n| u64::from(*n)).product();
        step.compute(points * self.it.point.ns());
        for (dimension, thickness) in block.into_iter().enumerate() {
            let face = points / u64::from(thickness);
            exchange(step, ranks, dimension, DOUBLE * face as u32);
        }
    }
}

/// With both neighbours along a dimension; nobody where that is oneself.
fn exchange(step: &mut Step, ranks: [u32; 3], dimension: usize, bytes: u32) {
    let n = ranks[dimension];
    if n == 1 {
        return;
    }
    let stride: u32 = ranks[..dimension].iter().product();
    let at = step.task / stride % n;
    let first = step.task - at * stride;
    let next = first + (at + 1) % n * stride;
    let previous = first + (at + n - 1) % n * stride;
    step.send(next, bytes);
    step.send(previous, bytes);
    step.recv(previous);
    step.recv(next);
}
