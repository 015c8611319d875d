// SPDX-License-Identifier: Apache-2.0
//! coschedd: who is a job, which are its ranks, who may ask for what.
//!
//! It registers jobs with the kernel body, holds users to the administrator's
//! policy and tells what was counted. It never decides who runs: that happens in
//! the kernel, and goes on as it is while this process is busy. What it attached
//! goes when it goes, however it ends.

mod answer;
mod body;
mod bounds;
mod config;
pub mod kernel;
mod process;
mod refusal;
mod registry;
mod server;
mod settings;
mod wire;
mod wish;

#[cfg(test)]
mod fake;

pub use body::{attach, lack, Attached};
pub use bounds::Bounds;
pub use config::{Config, Error as ConfigError, Scheduling, Sources, FILE};
pub use server::{Doors, End, Server};
pub use settings::{Key, Setting, TABLE as SETTINGS};
pub use wire::{listen, Error as SocketError};
