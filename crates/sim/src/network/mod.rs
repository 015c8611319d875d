// SPDX-License-Identifier: Apache-2.0
//! The message path: from a send to the receiver's mailbox, and who pays for it.
//!
//! A message costs its sender CPU time, then waits for the node's link (in order, at the
//! bandwidth), then travels for the latency, then costs its receiver CPU time. Within a
//! node only `local_latency` applies. So the one-way time on dedicated nodes is send + bytes / bandwidth +
//! latency + receive, and a round trip is exactly twice that.
//!
//! Interrupts: a user-level network (S1's Myrinet) interrupts only where its card
//! believes that the receiver is not running, or to wake a sleeper; a kernel's network
//! (S4's Ethernet) for each message. The card looks which task runs only once per
//! `nic_sample`, so it may be wrong in both directions: a needless interrupt, in which the
//! driver sees the truth, or a message that interrupts nobody (S1, section 3.3.1).
//!
//! What a socket queue holds is counted in bytes as S4's kernel counts it, for `order`. S4 and Linux 2.2
//! leave room for readings: the room that headers take, and how much a socket holds.
//!
//! Not modelled: contention at the receiver's link and in switches, loss.

use crate::engine::SEQ_MODULUS;
use crate::units::{Bandwidth, Span};
use serde::{Deserialize, Serialize};
use smallvec::{smallvec, SmallVec};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// From the sender's link to the receiver's node.
    pub latency: Span,
    /// Of a node's link; none: unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bandwidth>,
    /// Between tasks of one node.
    pub local_latency: Span,
    /// True: those go through shared memory, so that no kernel sees a message, only whom it wakes.
    #[serde(skip_serializing_if = "crate::units::is_off")]
    pub shared_memory: bool,
    /// CPU time to send a message, paid by the sender.
    pub send: Span,
    /// CPU time to receive one, paid by the receiver.
    pub receive: Span,
    /// True: those two are system time; false: user time.
    pub in_kernel: bool,
    /// CPU time of an interrupt and its driver.
    pub interrupt: Span,
    /// Which messages interrupt.
    pub interrupts: Interrupts,
    /// Who is charged for an interrupt.
    pub interrupt_paid_by: Payer,
    /// How often the card looks which task runs; 0: it always knows.
    pub nic_sample: Span,
    /// What each message takes longer where policy acts on arrivals (S1, section 4.3).
    pub arrival_check: Span,
    /// Bytes that a socket queue counts for each frame, begun or full, beside its data.
    pub frame_overhead: u32,
    /// What a task's socket queue counts at most; none: all that is on its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_limit: Option<u64>,
}

/// Which messages interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interrupts {
    /// Those for a sleeper, and where policy acts on arrivals those for one who seems not to run.
    #[default]
    Needed,
    /// All.
    All,
}

/// Who is charged for an interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Payer {
    /// The task that it interrupts, as system time: what kernels of the papers' time did.
    #[default]
    Interrupted,
    /// Nobody's account.
    Nobody,
}

impl Default for Network {
    fn default() -> Self {
        Network {
            latency: Span::us(10),
            bandwidth: None,
            local_latency: Span::us(1),
            shared_memory: false,
            send: Span::ZERO,
            receive: Span::ZERO,
            in_kernel: false,
            interrupt: Span::ZERO,
            interrupts: Interrupts::Needed,
            interrupt_paid_by: Payer::Interrupted,
            nic_sample: Span::ZERO,
            arrival_check: Span::ZERO,
            frame_overhead: 0,
            socket_limit: None,
        }
    }
}

/// Data of an Ethernet frame under TCP.
const FRAME_BYTES: u32 = 1460;

impl Network {
    /// What a message of `bytes` takes in a socket queue.
    pub fn queued(&self, bytes: u32) -> u64 {
        let frames = match self.frame_overhead {
            0 => 0,
            _ => bytes.div_ceil(FRAME_BYTES).max(1),
        };
        u64::from(bytes) + u64::from(frames) * u64::from(self.frame_overhead)
    }

    /// What a socket queue shows of `queued` bytes that are unread or on their way.
    pub fn shown(&self, queued: u64) -> u64 {
        self.socket_limit.map_or(queued, |limit| queued.min(limit))
    }

    /// Why it cannot be.
    pub fn check(&self) -> Result<(), String> {
        let instant =
            self.latency == Span::ZERO && self.send == Span::ZERO && self.receive == Span::ZERO;
        let local = self.local_latency == Span::ZERO
            && self.send == Span::ZERO
            && self.receive == Span::ZERO;
        if instant || local {
            return Err("network: a message that takes no time at all never ends: write a latency, send or receive above 0".into());
        }
        Ok(())
    }
}

/// A message on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flight {
    /// When it was sent.
    pub sent_ns: u64,
    /// The sending task.
    pub from: u32,
    /// The receiving task.
    pub to: u32,
    /// Its size.
    pub bytes: u32,
    /// It only says that its sender lives (periodic: BEAT): no receive takes it.
    pub beat: bool,
    /// What was left of its sender's slice, in ns; `u64::MAX`: not known.
    pub sender_left_ns: u64,
    /// The epoch of its sender's CPU.
    pub epoch: u64,
    /// Its number at its node.
    pub(crate) seq: u32,
    /// It has not arrived.
    pub(crate) live: bool,
}

/// A node's link, and what was sent there and has not arrived yet, by the low bits of its number.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    /// When the link has sent all.
    pub link_free_ns: u64,
    nr_sent: u32,
    flights: SmallVec<[Flight; 1]>,
}

impl Outbox {
    /// Keeps a message until it arrives; gives its number.
    pub fn put(&mut self, flight: Flight) -> u32 {
        let seq = self.nr_sent;
        self.nr_sent = (seq + 1) % SEQ_MODULUS;
        while self.flights.is_empty() || self.flights[self.slot(seq)].live {
            self.grow();
        }
        let slot = self.slot(seq);
        self.flights[slot] = Flight {
            seq,
            live: true,
            ..flight
        };
        seq
    }

    /// It has arrived.
    pub fn take(&mut self, seq: u32) -> Flight {
        let slot = self.slot(seq);
        debug_assert!(self.flights[slot].live && self.flights[slot].seq == seq);
        self.flights[slot].live = false;
        self.flights[slot]
    }

    fn slot(&self, seq: u32) -> usize {
        seq as usize & (self.flights.len() - 1)
    }

    /// Twice the room: two that are apart stay apart.
    fn grow(&mut self) {
        let twice = smallvec![Flight::default(); (2 * self.flights.len()).max(1)];
        let old = std::mem::replace(&mut self.flights, twice);
        for flight in old.into_iter().filter(|flight| flight.live) {
            let slot = self.slot(flight.seq);
            self.flights[slot] = flight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_socket_counts_headers_of_frames_and_holds_so_much() {
        let bare = Network::default();
        let kernel = Network {
            frame_overhead: 200,
            socket_limit: Some(65_535),
            ..Network::default()
        };
        assert_eq!(
            [0, 8, 100_000].map(|bytes| bare.queued(bytes)),
            [0, 8, 100_000]
        );
        assert_eq!(
            [0, 8, 1460, 1461].map(|bytes| kernel.queued(bytes)),
            [200, 208, 1660, 1861]
        );
        assert_eq!(kernel.shown(kernel.queued(100_000)), 65_535);
        assert_eq!(bare.shown(bare.queued(100_000)), 100_000);
    }

    proptest! {
        #[test]
        fn each_message_is_found_again_by_its_number(steps in prop::collection::vec(any::<(bool, u8)>(), 0..400)) {
            let mut outbox = Outbox::default();
            let mut flying = Vec::new();
            for (i, (send, which)) in steps.into_iter().enumerate() {
                if send || flying.is_empty() {
                    let seq = outbox.put(Flight { to: i as u32, ..Flight::default() });
                    flying.push((seq, i as u32));
                } else {
                    let (seq, to) = flying.swap_remove(usize::from(which) % flying.len());
                    prop_assert_eq!(outbox.take(seq).to, to);
                }
            }
        }
    }
}
