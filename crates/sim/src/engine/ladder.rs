// SPDX-License-Identifier: Apache-2.0
//! A ladder queue: sort late, and only what comes next.
//!
//! Three levels. The bottom is one sorted bucket, from which events are popped. Above it
//! are two rings of unsorted buckets; a bucket of the second is as wide as the whole
//! first. What lies beyond both waits in a heap. An event is moved at most three
//! times and sorted once, among the few of its bucket.
//!
//! After Tang, Goh and Thng, "Ladder queue" (ACM TOMACS 15(3), 2005), with a fixed number
//! of rungs. How wide a bucket should be depends on the model, so it is
//! tuned: whenever the first ring has been used up, a mean of more than
//! [`MOST`] or fewer than [`FEWEST`] events in a bucket divides or multiplies the
//! width by four, and all that is pending is put in again.

use super::{Event, EventQueue, Heap};

const RING_BITS: u32 = 12;
const RING: usize = 1 << RING_BITS;
const MOST: u64 = 200;
const FEWEST: u64 = 12;
/// Too few buckets to judge by.
const SAMPLE: u64 = 256;
const FIRST_WIDTH_BITS: u32 = 10;
const WIDTH_BITS: std::ops::RangeInclusive<u32> = 2..=30;

/// Unsorted buckets, and which of them hold something.
#[derive(Debug)]
struct Ring {
    buckets: Vec<Vec<Event>>,
    full: [u64; RING / 64],
}

impl Default for Ring {
    fn default() -> Self {
        Ring {
            buckets: vec![Vec::new(); RING],
            full: [0; RING / 64],
        }
    }
}

impl Ring {
    fn push(&mut self, at: u64, event: Event) {
        let i = at as usize % RING;
        self.full[i / 64] |= 1 << (i % 64);
        self.buckets[i].push(event);
    }

    /// The first bucket at or after `from` that holds something.
    fn first(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = self.full.get(word)? & (!0 << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.full.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// Swaps the bucket for an empty one.
    fn take(&mut self, i: usize, empty: &mut Vec<Event>) {
        debug_assert!(empty.is_empty());
        self.full[i / 64] &= !(1 << (i % 64));
        std::mem::swap(&mut self.buckets[i], empty);
    }
}

/// The queue.
#[derive(Debug)]
pub struct Ladder {
    /// log2 of a near bucket's width in ns.
    width_bits: u32,
    /// Latest first, so that the next is popped from the end.
    bottom: Vec<Event>,
    /// Absolute number of the bucket that is the bottom; of the first ring's turn; of the second's.
    at: [u64; 3],
    near: Ring,
    far: Ring,
    beyond: Heap,
    spare: Vec<Event>,
    opened: u64,
    opened_events: u64,
}

impl Default for Ladder {
    fn default() -> Self {
        Ladder {
            width_bits: FIRST_WIDTH_BITS,
            bottom: Vec::new(),
            at: [0; 3],
            near: Ring::default(),
            far: Ring::default(),
            beyond: Heap::default(),
            spare: Vec::new(),
            opened: 0,
            opened_events: 0,
        }
    }
}

impl Ladder {
    /// The numbers of the near bucket, the far bucket and the turn that hold `at_ns`.
    fn place(&self, at_ns: u64) -> [u64; 3] {
        let near = at_ns >> self.width_bits;
        [near, near >> RING_BITS, near >> (2 * RING_BITS)]
    }

    fn insert_sorted(&mut self, event: Event) {
        let i = self.bottom.partition_point(|other| *other > event);
        self.bottom.insert(i, event);
    }

    /// Makes the bottom hold the next events; false where nothing is pending.
    fn advance(&mut self) -> bool {
        while self.bottom.is_empty() {
            let from = (self.at[0] % RING as u64) as usize;
            if let Some(i) = self.near.first(from) {
                self.open(i);
            } else if !self.tune() && !self.refill_near() && !self.refill_far() {
                return false;
            }
        }
        true
    }

    fn open(&mut self, i: usize) {
        self.near.take(i, &mut self.bottom);
        self.bottom.sort_unstable_by(|a, b| b.cmp(a));
        self.at[0] = self.at[0] / RING as u64 * RING as u64 + i as u64;
        self.opened += 1;
        self.opened_events += self.bottom.len() as u64;
    }

    /// The next far bucket becomes the near ring.
    fn refill_near(&mut self) -> bool {
        let from = (self.at[1] % RING as u64) as usize;
        let Some(i) = self.far.first(from) else {
            return false;
        };
        let mut events = std::mem::take(&mut self.spare);
        self.far.take(i, &mut events);
        self.at[1] = self.at[1] / RING as u64 * RING as u64 + i as u64;
        self.at[0] = self.at[1] * RING as u64;
        for event in events.drain(..) {
            self.near.push(event.at_ns >> self.width_bits, event);
        }
        self.spare = events;
        true
    }

    /// The next turn of the far ring comes from the heap.
    fn refill_far(&mut self) -> bool {
        let Some(first) = self.beyond.peek() else {
            return false;
        };
        let turn = self.place(first.at_ns)[2];
        self.at = [turn << (2 * RING_BITS), turn << RING_BITS, turn];
        while let Some(event) = self.beyond.peek() {
            let place = self.place(event.at_ns);
            if place[2] != turn {
                break;
            }
            self.beyond.pop();
            self.far.push(place[1], event);
        }
        true
    }

    /// The near ring is empty, and so is the bottom. True: all was put in again.
    fn tune(&mut self) -> bool {
        if self.opened < SAMPLE {
            return false;
        }
        let mean = self.opened_events / self.opened;
        (self.opened, self.opened_events) = (0, 0);
        let wanted = match mean {
            _ if mean > MOST => self.width_bits - 2,
            _ if mean < FEWEST => self.width_bits + 2,
            _ => return false,
        };
        let possible = WIDTH_BITS.contains(&wanted);
        if possible {
            self.rebuild(wanted);
        }
        possible
    }

    /// Puts everything in again; what falls into the current bucket becomes the bottom.
    fn rebuild(&mut self, width_bits: u32) {
        let now_ns = self.at[0].saturating_mul(1 << self.width_bits);
        let mut all = Vec::new();
        for bucket in &mut self.far.buckets {
            all.append(bucket);
        }
        all.extend(std::iter::from_fn(|| self.beyond.pop()));
        self.far.full = [0; RING / 64];
        self.width_bits = width_bits;
        self.at = self.place(now_ns);
        for event in all {
            self.push(event);
        }
    }
}

impl EventQueue for Ladder {
    const NAME: &'static str = "ladder";

    fn push(&mut self, event: Event) {
        let place = self.place(event.at_ns);
        if place[0] <= self.at[0] {
            self.insert_sorted(event);
        } else if place[1] == self.at[1] {
            self.near.push(place[0], event);
        } else if place[2] == self.at[2] {
            self.far.push(place[1], event);
        } else {
            self.beyond.push(event);
        }
    }

    fn peek(&mut self) -> Option<Event> {
        if self.bottom.is_empty() && !self.advance() {
            return None;
        }
        self.bottom.last().copied()
    }

    fn pop(&mut self) -> Option<Event> {
        if self.bottom.is_empty() && !self.advance() {
            return None;
        }
        self.bottom.pop()
    }

    fn likely(&self, n: usize) -> Option<Event> {
        let i = self.bottom.len().checked_sub(n + 1)?;
        Some(self.bottom[i])
    }
}
