// SPDX-License-Identifier: Apache-2.0
//! The engine: what happens next. It knows instants and keys, nothing of nodes.
//!
//! [`Agenda`] is a queue with one shortcut in front: the earliest event that was
//! pushed since waits outside of the queue. In a ping-pong each event makes the next one,
//! which therefore never enters the queue. The shortcut changes no order, since
//! what is popped is always the smaller of the two; a test holds histories with and
//! without it equal.

mod event;
mod heap;
mod ladder;
mod timer;

pub use event::{Event, Kind, MAX_IDS, SEQ_MODULUS};
pub use heap::Heap;
pub use ladder::Ladder;
pub use timer::{Fired, Timer};

/// Gives events in their total order.
pub trait EventQueue: Default {
    /// Its name, for reports.
    const NAME: &'static str;
    /// Takes an event; it may lie before the last one popped only by a defect of the caller.
    fn push(&mut self, event: Event);
    /// The smallest event.
    fn peek(&mut self) -> Option<Event>;
    /// Takes the smallest event.
    fn pop(&mut self) -> Option<Event>;
    /// One that most likely comes after `n` others; only for fetching its data early.
    fn likely(&self, n: usize) -> Option<Event>;
}

/// A queue, and the shortcut around it.
#[derive(Debug)]
pub struct Agenda<Q> {
    /// [`Event::LAST`]: empty.
    held: Event,
    queue: Q,
    shortcut: bool,
}

impl<Q: EventQueue> Agenda<Q> {
    /// An empty one; `shortcut` changes the cost, nothing else.
    pub fn new(shortcut: bool) -> Self {
        Agenda {
            held: Event::LAST,
            queue: Q::default(),
            shortcut,
        }
    }

    /// Takes an event.
    pub fn push(&mut self, event: Event) {
        if !self.shortcut || event >= self.held {
            self.queue.push(event);
            return;
        }
        let second = std::mem::replace(&mut self.held, event);
        if second != Event::LAST {
            self.queue.push(second);
        }
    }

    /// One that most likely comes after `n` others.
    pub fn likely(&self, n: usize) -> Option<Event> {
        self.queue.likely(n)
    }

    /// Takes the smallest event.
    pub fn pop(&mut self) -> Option<Event> {
        if self.held == Event::LAST {
            return self.queue.pop();
        }
        match self.queue.peek() {
            Some(other) if other < self.held => self.queue.pop(),
            _ => Some(std::mem::replace(&mut self.held, Event::LAST)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a simulation does: pops one, pushes some at or after its instant.
    fn history<Q: EventQueue>(shortcut: bool, delays: &[(u64, u32)]) -> Vec<Event> {
        let mut agenda = Agenda::<Q>::new(shortcut);
        let mut popped = Vec::new();
        let mut now = 0;
        for (i, &(delay, node)) in delays.iter().enumerate() {
            agenda.push(Event::new(now + delay, node, Kind::Cpu, i as u32, 0));
            if i % 3 == 2 {
                let event = agenda.pop().unwrap();
                now = event.at_ns;
                popped.push(event);
            }
        }
        popped.extend(std::iter::from_fn(|| agenda.pop()));
        popped
    }

    proptest! {
        #[test]
        fn every_queue_gives_the_same_history(
            delays in prop::collection::vec(
                (prop_oneof![0..40u64, 0..40_000u64, 0..200_000_000u64, 0..(1u64 << 50)], 0..9u32),
                1..400,
            )
        ) {
            let plain = history::<Heap>(false, &delays);
            prop_assert_eq!(plain.len(), delays.len());
            prop_assert!(plain.is_sorted_by_key(|event| event.at_ns));
            for other in [
                history::<Heap>(true, &delays),
                history::<Ladder>(false, &delays),
                history::<Ladder>(true, &delays),
            ] {
                prop_assert_eq!(&plain, &other);
            }
        }
    }

    #[test]
    fn a_ladder_that_retunes_keeps_the_order() {
        let mut delays: Vec<(u64, u32)> = (0..60_000u64).map(|i| (i * 7919 % 5_000, 1)).collect();
        delays.extend((0..60_000u64).map(|i| (i * 7919 % 3_000_000_000, 2)));
        let (heap, ladder) = (
            history::<Heap>(false, &delays),
            history::<Ladder>(true, &delays),
        );
        let differs = heap.iter().zip(&ladder).position(|(a, b)| a != b);
        assert_eq!((heap.len(), differs), (ladder.len(), None));
    }
}
