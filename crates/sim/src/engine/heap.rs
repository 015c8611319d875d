// SPDX-License-Identifier: Apache-2.0
//! The plain binary heap of the standard library: what the ladder is judged by.

use super::{Event, EventQueue};
use std::{cmp::Reverse, collections::BinaryHeap};

/// A binary heap of events.
#[derive(Debug, Default)]
pub struct Heap(BinaryHeap<Reverse<Event>>);

impl EventQueue for Heap {
    const NAME: &'static str = "binary heap";

    fn push(&mut self, event: Event) {
        self.0.push(Reverse(event));
    }

    fn peek(&mut self) -> Option<Event> {
        self.0.peek().map(|e| e.0)
    }

    fn pop(&mut self) -> Option<Event> {
        self.0.pop().map(|e| e.0)
    }

    fn likely(&self, n: usize) -> Option<Event> {
        self.0.iter().nth(n).map(|e| e.0)
    }
}
