// SPDX-License-Identifier: Apache-2.0
//! One event in 16 bytes, and the total order of events.
//!
//! Events are ordered by (instant, node, kind, sender, the sender's number). All
//! five are properties of the event itself; the order in which events were made or
//! queued is not among them. So every correct queue, and every division of the
//! nodes among threads, gives the same history. Two different events that are
//! pending together never have the same key: a CPU, a task and a node have one timer of
//! each kind, and a node numbers its messages.
//!
//! At one instant on one node the kinds go in the order of [`Kind`]: a message that
//! arrives at the very instant at which a spin ends is seen by that spin, and one
//! that arrives as a slice ends is there before the choice of who is next.

/// What happens. The order is the order within one instant on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A message reaches its node; sender and number find it.
    Arrival,
    /// A job arrives; the sender is its number.
    Submit,
    /// A task starts; it is the sender.
    Start,
    /// The timer of a sleeping task.
    Task,
    /// The node's policy is asked periodically.
    Policy,
    /// The local scheduler's own period.
    Period,
    /// A slot of a gang begins.
    Slot,
    /// The timer of a CPU: whatever ends next there.
    Cpu,
}

const KINDS: [Kind; 8] = [
    Kind::Arrival,
    Kind::Submit,
    Kind::Start,
    Kind::Task,
    Kind::Policy,
    Kind::Period,
    Kind::Slot,
    Kind::Cpu,
];

/// Bits of each part of the key.
const NODE_BITS: u32 = 20;
const KIND_BITS: u32 = 4;
const FROM_BITS: u32 = 20;
const SEQ_BITS: u32 = 20;
const _: () = assert!(NODE_BITS + KIND_BITS + FROM_BITS + SEQ_BITS == u64::BITS);

/// The largest number of nodes, and of tasks.
pub const MAX_IDS: usize = 1 << NODE_BITS;
/// Numbers of messages are taken modulo this.
pub const SEQ_MODULUS: u32 = 1 << SEQ_BITS;

/// An instant and what happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// Nanoseconds since the start of the simulation.
    pub at_ns: u64,
    /// node | kind | sender | number, from the highest bit.
    pub key: u64,
}

const _: () = assert!(size_of::<Event>() == 16);

impl Event {
    /// Later than every event.
    pub const LAST: Event = Event {
        at_ns: u64::MAX,
        key: u64::MAX,
    };

    /// The event of that `kind` on that `node`; `seq` is taken modulo [`SEQ_MODULUS`].
    pub fn new(at_ns: u64, node: u32, kind: Kind, from: u32, seq: u32) -> Self {
        debug_assert!((node as usize) < MAX_IDS && (from as usize) < MAX_IDS);
        let seq = u64::from(seq & (SEQ_MODULUS - 1));
        let key = u64::from(node) << (KIND_BITS + FROM_BITS + SEQ_BITS)
            | (kind as u64) << (FROM_BITS + SEQ_BITS)
            | u64::from(from) << SEQ_BITS
            | seq;
        Event { at_ns, key }
    }

    /// Where it happens.
    pub fn node(self) -> u32 {
        (self.key >> (KIND_BITS + FROM_BITS + SEQ_BITS)) as u32
    }

    /// What happens.
    pub fn kind(self) -> Kind {
        KINDS[(self.key >> (FROM_BITS + SEQ_BITS)) as usize & ((1 << KIND_BITS) - 1)]
    }

    /// Who sent it: a node, a task, a CPU or a job, by the kind.
    pub fn from(self) -> u32 {
        (self.key >> SEQ_BITS) as u32 & ((1 << FROM_BITS) - 1)
    }

    /// The sender's number, modulo [`SEQ_MODULUS`].
    pub fn seq(self) -> u32 {
        self.key as u32 & (SEQ_MODULUS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_come_back() {
        for (i, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, i);
            let event = Event::new(7, 1_000_000, kind, 999_999, SEQ_MODULUS + 5);
            assert_eq!(
                (event.node(), event.kind(), event.from(), event.seq()),
                (1_000_000, kind, 999_999, 5)
            );
        }
    }

    #[test]
    fn order_is_instant_node_kind_sender_number() {
        let e = Event::new;
        let sorted = [
            e(1, 9, Kind::Cpu, 9, 9),
            e(2, 1, Kind::Cpu, 9, 9),
            e(2, 2, Kind::Arrival, 9, 9),
            e(2, 2, Kind::Cpu, 1, 9),
            e(2, 2, Kind::Cpu, 2, 1),
            e(2, 2, Kind::Cpu, 2, 2),
            Event::LAST,
        ];
        assert!(sorted.is_sorted());
    }
}
