// SPDX-License-Identifier: Apache-2.0
//! Asking coschedd: `cosched status`, `jobs`, `switch`, `adopt`, `end`, and what
//! `run`, `policy` and `doctor` want to know of it.
//!
//! Whether a wish is granted is the daemon's to say, in its own line. `run` does
//! without a daemon; the others need one.

pub mod jobs;
pub mod status;
pub mod wishes;

use crate::fault::Fault;
use anyhow::Result;
use cosched_control::{document::Job, Client, Error, Joiner, Mode, Reply, Wish, PATIENCE};
use cosched_model::abi;
use cosched_policy::{Body, Preset};
use serde::de::DeserializeOwned;
use std::{env, os::fd::OwnedFd, time::Duration};

/// `run` waits no longer for a daemon that is stopped.
const SOON: Duration = Duration::from_secs(1);

/// Of a daemon that must be there.
pub fn ask(kind: u32, wish: &Wish<'_>) -> Result<Reply> {
    let client = Client::connect(&cosched_control::socket(), PATIENCE).map_err(fault)?;
    Ok(client.ask(kind, wish).map_err(fault)?)
}

/// The JSON of an answer.
pub fn read<T: DeserializeOwned>(reply: &Reply) -> Result<T> {
    serde_json::from_str(&reply.text).map_err(|error| {
        let line = format!("coschedd's answer cannot be read: {error}: is it of another version?");
        Fault::Machine(line).into()
    })
}

/// What it refuses is the user's to change, what it lacks is the machine's.
pub fn fault(error: Error) -> Fault {
    let is_users = matches!(
        &error,
        Error::Refused {
            status: abi::COS_CONTROL_REFUSED | abi::COS_CONTROL_UNKNOWN,
            ..
        }
    );
    match is_users {
        true => Fault::Usage(error.to_string()),
        false => Fault::Machine(error.to_string()),
    }
}

/// How a policy travels: by its name, or a file as text.
pub struct Travelling {
    name: String,
    text: Option<String>,
}

impl Travelling {
    /// The preset that @word names.
    pub fn of(word: &str, preset: &Preset) -> Self {
        let is_file = word.contains('/') || word.ends_with(".toml");
        Travelling {
            name: if is_file {
                String::new()
            } else {
                word.to_owned()
            },
            text: is_file.then(|| preset.to_toml()),
        }
    }

    /// As part of a wish.
    pub fn wish(&self, flags: u32) -> Wish<'_> {
        let file = match self.text {
            Some(_) => abi::COS_CONTROL_PRESET_TEXT,
            None => 0,
        };
        Wish {
            flags: flags | file,
            preset: &self.name,
            text: self.text.as_deref().unwrap_or_default(),
            ..Wish::default()
        }
    }
}

/// A daemon that is there and may be used.
pub struct Daemon {
    client: Client,
    /// Schedules, or observes only.
    pub mode: Mode,
    /// Why it only observes.
    pub why: String,
}

/// Nothing where there is none, or the user wants none.
pub fn find() -> Option<Daemon> {
    if env::var_os("COSCHED_DAEMON").is_some_and(|value| value == "off") {
        return None;
    }
    let client = Client::connect(&cosched_control::socket(), SOON).ok()?;
    let hello = client.ask(abi::COS_CONTROL_HELLO, &Wish::default()).ok()?;
    Some(Daemon {
        client,
        mode: hello.mode,
        why: hello.text,
    })
}

/// The bodies that are there when a command runs now.
pub fn present(daemon: Option<&Daemon>) -> Vec<Body> {
    match daemon {
        Some(daemon) if daemon.mode == Mode::Schedule => vec![Body::Shim, Body::Kernel],
        _ => vec![Body::Shim],
    }
}

/// A job of ours in the daemon, as long as this lives.
pub struct Held {
    daemon: Daemon,
    job: u32,
    serial: u64,
    oncpu: Option<OwnedFd>,
}

impl Daemon {
    /// Begins a job without tasks; else the daemon's line. @shim is COS_CONTROL_SHIM where its
    /// ranks will have the preloaded library, else 0.
    pub fn hold(self, policy: &Travelling, name: &str, shim: u32) -> Result<Held, Error> {
        let wish = Wish {
            name,
            ..policy.wish(abi::COS_CONTROL_HELD | abi::COS_CONTROL_EMPTY | shim)
        };
        let reply = self.client.ask(abi::COS_CONTROL_BEGIN, &wish)?;
        Ok(Held {
            daemon: self,
            job: reply.job,
            serial: reply.serial,
            oncpu: reply.beside,
        })
    }
}

impl Held {
    /// What lets the command join before it is executed.
    pub fn joiner(&self) -> Joiner {
        self.daemon.client.joiner(self.job, self.serial)
    }

    /// Which rank is on each CPU, where the daemon lets us read it; taken once.
    pub fn take_oncpu(&mut self) -> Option<OwnedFd> {
        self.oncpu.take()
    }

    /// What was counted so far; nothing where the daemon is gone.
    pub fn job(&self) -> Option<Job> {
        let wish = Wish {
            job: self.job,
            ..Wish::default()
        };
        let reply = self.daemon.client.ask(abi::COS_CONTROL_JOBS, &wish).ok()?;
        let jobs: cosched_control::document::Jobs = read(&reply).ok()?;
        jobs.jobs.into_iter().find(|job| job.serial == self.serial)
    }
}
