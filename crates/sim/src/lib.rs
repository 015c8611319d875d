// SPDX-License-Identifier: Apache-2.0
//! A deterministic simulator of clusters of timeshared nodes.
//!
//! Each node has CPUs and a local scheduler that knows no other node ([`local`]); tasks run
//! programs that compute and exchange messages ([`program`], [`network`]). What dynamic
//! coscheduling adds is decided by the very headers in `policy/` that the shim and
//! the kernel body compile. The engine ([`engine`]) gives events in an order that
//! depends on the events alone, so a [`Scenario`] always gives the same
//! [`Outcome`], byte for byte.
//!
//! Time is in integer nanoseconds: `u64`, named `*_ns`, inside; with units in text and
//! in [`units`] outside. Polls and idle ticks are not events: a spin is an interval that ends at an
//! instant or with a message, and ticks are computed when looked at.

pub mod bench;
mod cluster;
pub mod engine;
mod error;
pub mod experiment;
mod histogram;
pub mod local;
pub mod network;
mod observer;
pub mod order;
mod outcome;
pub mod program;
mod random;
mod run;
mod scenario;
pub mod statistics;
pub mod units;

pub use cluster::Spent;
pub use error::SimError;
pub use histogram::Histogram;
pub use observer::{Activity, Message, Observer, TaskName};
pub use outcome::{JobOutcome, Outcome, ProcessOutcome, Verdict};
pub use run::{simulate, simulate_with, Options, QueueKind};
pub use scenario::{Cluster, End, Job, Placement, Policy, Scenario};
