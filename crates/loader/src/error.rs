// SPDX-License-Identifier: Apache-2.0
//! Why the kernel body cannot do something: one line with a way on.

use thiserror::Error;

/// Always one line.
#[derive(Debug, Error)]
pub enum Error {
    /// This machine lacks something.
    #[error("{0}")]
    Missing(String),
    /// The configuration contradicts itself.
    #[error("{0}")]
    Config(String),
    /// The kernel refused the programs.
    #[error("the kernel refuses {what}: {why}")]
    Refused {
        /// Load or attach, of what.
        what: &'static str,
        /// The kernel's and libbpf's words, or the cause that we know behind them.
        why: String,
    },
    /// Every entry is taken.
    #[error("{0} jobs run already, and there is room for no more; end one")]
    NoRoom(usize),
    /// No such job.
    #[error("there is no job {0}")]
    NoJob(u32),
    /// The process is gone.
    #[error("there is no process {0}; it may have ended")]
    NoProcess(u32),
    /// What the kernel holds cannot be read or written.
    #[error("{what}: {why}")]
    Map {
        /// Which map or program.
        what: &'static str,
        /// In libbpf's words.
        why: String,
    },
}
