// SPDX-License-Identifier: Apache-2.0
//! What coschedd and those who ask it share: a client of `abi/control.h`, and
//! the documents that its answers hold.
//!
//! It is a crate of its own so that `cosched` can ask a daemon without being
//! linked with what the daemon needs to load programs into the kernel. It decides
//! nothing: who may ask what stands in the daemon.

mod client;
pub mod document;
mod packet;

pub use client::{Client, Error, Joiner, Reply, Wish, PATIENCE};
pub use packet::{bytes_of_reply, bytes_of_request, parse_reply, parse_request, word_of};

use cosched_model::abi;
use serde::{Deserialize, Serialize};
use std::{env, ffi::OsStr, os::unix::ffi::OsStrExt, path::PathBuf};

/// How much of the kernel body there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It sees and counts, and changes nothing.
    Observe,
    /// It decides who runs.
    Schedule,
}

impl Mode {
    /// As the protocol writes it.
    pub fn number(self) -> u32 {
        match self {
            Mode::Observe => abi::COS_CONTROL_OBSERVES,
            Mode::Schedule => abi::COS_CONTROL_SCHEDULES,
        }
    }

    /// What [`Mode::number`] gave.
    pub fn of(number: u32) -> Option<Self> {
        [Mode::Observe, Mode::Schedule]
            .into_iter()
            .find(|mode| mode.number() == number)
    }

    /// As a person reads it.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Observe => "observes only",
            Mode::Schedule => "schedules",
        }
    }
}

/// Where a daemon listens that was not told otherwise.
pub fn default_socket() -> PathBuf {
    let path = abi::COS_CONTROL_SOCKET.split_last();
    let path = path.map(|(_nul, path)| OsStr::from_bytes(path));
    PathBuf::from(path.expect("a string of C ends in a NUL"))
}

/// Where to ask: `COSCHED_SOCKET`, or where daemons listen.
pub fn socket() -> PathBuf {
    env::var_os("COSCHED_SOCKET").map_or_else(default_socket, PathBuf::from)
}
