// SPDX-License-Identifier: Apache-2.0
//! The kernel body as the daemon needs it.
//!
//! A trait, so that all of the daemon but one file can be tried without root and
//! without loading anything. What a body promises: a task that joined a job takes
//! its later children along by itself; `end` makes all of them ordinary again;
//! and when the body is dropped or its process killed, stock scheduling is back.

use cosched_control::{
    document::{Count, Ledger, Offer, Rank},
    Mode,
};
use cosched_policy::Params;
use std::os::fd::OwnedFd;
use thiserror::Error;

/// Why the body did not do it.
#[derive(Debug, Error)]
pub enum Error {
    /// All job numbers are taken.
    #[error("all {0} job numbers are taken: end a job (cosched jobs)")]
    NoRoom(u32),
    /// One line of the body's own.
    #[error("{0}")]
    Failed(String),
}

/// The kernel took the scheduler away.
#[derive(Clone, Debug, PartialEq)]
pub struct Ejection {
    /// Somebody asked for it (sysrq, another scheduler), nothing went wrong.
    pub on_request: bool,
    /// Nothing went wrong: the kernel wants it attached again, for a CPU came or went.
    pub again: bool,
    /// One line.
    pub why: String,
}

/// The programs in the kernel, attached.
pub trait Kernel {
    /// How much of it there is.
    fn mode(&self) -> Mode;
    /// Why it only observes; nothing where it schedules.
    fn why_observe(&self) -> Option<String>;
    /// What this kernel offers.
    fn offers(&self) -> Vec<Offer>;
    /// A new job without tasks, and its number.
    fn begin(&mut self, params: &Params, boost_gap_ns: u64) -> Result<u32, Error>;
    /// Other parameters for a job that goes on.
    fn set_params(&mut self, job: u32, params: &Params) -> Result<(), Error>;
    /// All threads of a process join; how many.
    fn join(&mut self, job: u32, pid: u32) -> Result<u32, Error>;
    /// Its tasks are ordinary again, its number is free.
    fn end(&mut self, job: u32) -> Result<(), Error>;
    /// What was counted for a job.
    fn ledger(&self, job: u32) -> Result<Ledger, Error>;
    /// What was counted over the machine.
    fn counts(&self) -> Result<Vec<Count>, Error>;
    /// The tasks of all jobs.
    fn members(&self) -> Result<Vec<Rank>, Error>;
    /// Which rank is on each CPU (`struct cos_oncpu`): to map, and for nobody to write.
    fn oncpu(&self) -> Result<OwnedFd, Error>;
    /// Once, when the kernel took the scheduler away.
    fn ejected(&mut self) -> Option<Ejection>;
    /// After an ejection; jobs and their tasks are as they were.
    fn attach_again(&mut self) -> Result<(), Error>;
}
