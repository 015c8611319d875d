// SPDX-License-Identifier: Apache-2.0
//! sparse: a grain of computation, then an exchange with a few random neighbours.
//!
//! The pattern of unstructured meshes and graph codes: no global synchronisation, but delays
//! spread along the edges. The graph is a union of random rings, so it is connected,
//! symmetric, and each rank has the same degree; two rings may share an edge, which then
//! carries two messages. Each rank works out the rings by itself from the number of the graph, as
//! all must agree on them. A lap is one iteration as rank 0 sees it.

use super::{lacking, too_few, varies, Kind, Program, Step, Varies};
use crate::random::{Purpose, Source};
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sparse {
    /// How many iterations.
    pub iterations: u64,
    /// CPU time of each rank in each.
    pub grain: Span,
    /// How grains vary.
    #[serde(default)]
    pub varies: Varies,
    /// Neighbours of each rank: an even number.
    pub degree: u32,
    /// Which of the random graphs.
    #[serde(default)]
    pub graph: u64,
    /// The size of a message.
    #[serde(default = "super::one")]
    pub bytes: u32,
}

struct Rank {
    it: Sparse,
    left: u64,
    /// Before and after it on each ring; empty before the first step.
    neighbours: Vec<(u32, u32)>,
}

impl Kind for Sparse {
    fn program(&self, _task: u32) -> Box<dyn Program> {
        Box::new(Rank {
            it: self.clone(),
            left: self.iterations,
            neighbours: Vec::new(),
        })
    }

    fn refuses(&self, ranks: u32, threads: u32) -> Option<String> {
        let even = self.degree > 0 && self.degree.is_multiple_of(2);
        let needs = [
            (even, "an even degree of 2 or more"),
            (self.degree <= ranks, "a degree of at most its ranks"),
            (self.varies.is_sound(), varies::SOUND),
        ];
        too_few("sparse", 2, ranks, threads).or_else(|| lacking("sparse", &needs))
    }
}

/// Whom `rank` of `ranks` has before and after it on that ring of that graph.
fn on_ring(graph: u64, ring: u32, rank: u32, ranks: u32) -> (u32, u32) {
    let source = Source {
        seed: graph,
        replication: 0,
    };
    let mut random = source.stream(u64::from(ring), Purpose::Graph);
    let mut order: Vec<u32> = (0..ranks).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    let n = order.len();
    let at = order.iter().position(|it| *it == rank).unwrap_or(0);
    (order[(at + n - 1) % n], order[(at + 1) % n])
}

impl Program for Rank {
    fn step(&mut self, step: &mut Step) {
        if self.neighbours.is_empty() {
            let (graph, task, tasks) = (self.it.graph, step.task, step.tasks);
            let rings = 0..self.it.degree / 2;
            self.neighbours = rings
                .map(|ring| on_ring(graph, ring, task, tasks))
                .collect();
        }
        step.lap();
        if self.left == 0 {
            return step.exit();
        }
        self.left -= 1;
        let grain_ns = self.it.varies.draw(self.it.grain.ns(), step.random);
        step.compute(grain_ns);
        for (before, after) in &self.neighbours {
            step.send(*after, self.it.bytes);
            step.send(*before, self.it.bytes);
        }
        for (before, after) in &self.neighbours {
            step.recv(*before);
            step.recv(*after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_symmetric_connected_and_depends_on_graph_and_ring() {
        let ring = |graph, ring| -> Vec<(u32, u32)> {
            (0..20).map(|rank| on_ring(graph, ring, rank, 20)).collect()
        };
        let first = ring(1, 0);
        for (rank, (before, after)) in (0..).zip(&first) {
            assert_eq!(first[*before as usize].1, rank);
            assert_eq!(first[*after as usize].0, rank);
        }
        let steps = std::iter::successors(Some(0), |at| Some(first[*at as usize].1));
        let back = steps.skip(1).position(|at| at == 0);
        assert_eq!(back, Some(19), "one ring through all");
        assert!(first != ring(2, 0) && first != ring(1, 1));
    }
}
