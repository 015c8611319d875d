// SPDX-License-Identifier: Apache-2.0
//! The kernel body as Rust sees it: opens bpf/, finds out what this kernel lets
//! it do, attaches, and reads what it counts.
//!
//! It decides nothing about scheduling (policy/ does) and knows nothing of users
//! (coschedd does). Where the kernel has no sched_ext, the same object observes: it
//! sees and knows, and does not act. All that it attaches is held by file
//! descriptors of this process: when that ends, however it ends, the kernel's own
//! scheduler is back.

mod body;
mod config;
mod error;
mod maps;
mod member;
mod offers;
mod say;

pub use body::{Body, Exit, JobNumber, Mode};
pub use config::Config;
pub use error::Error;
pub use maps::Ledger;
pub use member::Member;
pub use offers::{Offer, Offers};

/// `abi/kernel.h` as bindgen sees it.
#[allow(
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
pub mod raw {
    include!(concat!(env!("OUT_DIR"), "/raw.rs"));
}

/// One thing that is counted over the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Its name in reports.
    pub word: &'static str,
    /// What it counts.
    pub meaning: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/counts.rs"));

/// The words of `enum cos_seen`, in its order: how an arrival was seen.
pub const SEEN: [&str; raw::COS_NR_SEEN as usize] = ["socket", "wake", "yield", "mate", "again"];
