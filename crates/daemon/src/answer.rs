// SPDX-License-Identifier: Apache-2.0
//! From one request to one reply.
//!
//! What a request means is read here, field by field, and nothing of it is
//! believed: flags that no version knows, words that do not end, text that is no
//! text are malformed. What may be done is the registry's to say.

use crate::config::Config;
use crate::kernel::Kernel;
use crate::process::{beside, Beside, Process};
use crate::refusal::Refusal;
use crate::registry::{Begin, Caller, Registry};
use cosched_control::{document, word_of};
use cosched_model::abi;
use rustix::process::getpid;
use std::{fs, os::fd::OwnedFd, time::Instant};
use tracing::warn;

/// A yes: what the reply holds.
#[derive(Debug, Default)]
pub struct Yes {
    /// The job meant.
    pub job: u32,
    /// Its serial.
    pub serial: u64,
    /// As the kind of request says.
    pub text: String,
    /// Goes with the reply: a read-only map.
    pub beside: Option<OwnedFd>,
    /// The configuration is to be read again.
    pub reload: bool,
}

/// One packet, and what came beside it.
pub struct Request<'a> {
    /// Its head.
    pub head: abi::cos_control_request,
    /// What followed.
    pub text: &'a [u8],
    /// A descriptor.
    pub fd: Option<OwnedFd>,
}

/// What does not change while a daemon runs, or only by a reload.
pub struct About<'a> {
    /// As configured.
    pub config: &'a Config,
    /// When it began.
    pub since: Instant,
}

const FLAGS: u32 = abi::COS_CONTROL_HELD
    | abi::COS_CONTROL_EMPTY
    | abi::COS_CONTROL_SHIM
    | abi::COS_CONTROL_PRESET_TEXT;

/// Does what @request asks, or says why not.
pub fn answer<K: Kernel>(
    registry: &mut Registry<K>,
    about: &About<'_>,
    caller: Caller,
    request: Request<'_>,
) -> Result<Yes, Refusal> {
    let Request { head, text, fd } = request;
    if head.flags & !FLAGS != 0 {
        return Err(Refusal::malformed(format!(
            "unknown flags {:#x}",
            head.flags & !FLAGS
        )));
    }
    let text =
        std::str::from_utf8(text).map_err(|_| Refusal::malformed("the text is not UTF-8"))?;
    let read = |field| {
        word_of(field)
            .ok_or_else(|| Refusal::malformed("a name that is no line of text, or does not end"))
    };
    let (preset, name) = (read(&head.preset)?, read(&head.name)?);
    let is_file = head.flags & abi::COS_CONTROL_PRESET_TEXT != 0;
    let file = is_file.then_some(text);
    match head.kind {
        abi::COS_CONTROL_HELLO => Ok(hello(registry)),
        abi::COS_CONTROL_BEGIN => {
            let wish = Begin {
                preset: &preset,
                text: file,
                name: &name,
                held: head.flags & abi::COS_CONTROL_HELD != 0,
                empty: head.flags & abi::COS_CONTROL_EMPTY != 0,
                has_shim: head.flags & abi::COS_CONTROL_SHIM != 0,
            };
            let (job, serial, answers) = registry.begin(caller, &wish, who(&head, fd)?)?;
            Ok(Yes {
                beside: published(registry, caller, wish.has_shim),
                ..yes(job, serial, json(&answers))
            })
        }
        abi::COS_CONTROL_JOIN => {
            let serial = registry.join(caller, head.job, head.serial, who(&head, fd)?)?;
            Ok(yes(head.job, serial, String::new()))
        }
        abi::COS_CONTROL_SWITCH => {
            let (serial, answers) =
                registry.switch(caller, head.job, head.serial, &preset, file)?;
            Ok(yes(head.job, serial, json(&answers)))
        }
        abi::COS_CONTROL_END => {
            let serial = registry.end(caller, head.job, head.serial)?;
            Ok(yes(head.job, serial, String::new()))
        }
        abi::COS_CONTROL_JOBS => jobs(registry, caller, head.job),
        abi::COS_CONTROL_STATUS => status(registry, about, caller),
        abi::COS_CONTROL_RELOAD if caller.uid == 0 => Ok(Yes {
            reload: true,
            ..Yes::default()
        }),
        abi::COS_CONTROL_RELOAD => Err(Refusal::refused(
            "only root may have the configuration read again",
        )),
        kind => Err(Refusal::malformed(format!(
            "unknown kind of request {kind}"
        ))),
    }
}

fn yes(job: u32, serial: u64, text: String) -> Yes {
    Yes {
        job,
        serial,
        text,
        ..Yes::default()
    }
}

/// Which rank is on each CPU, for ranks that would read it.
fn published<K: Kernel>(
    registry: &mut Registry<K>,
    caller: Caller,
    has_shim: bool,
) -> Option<OwnedFd> {
    let disabled = fs::read_to_string("/proc/sys/kernel/unprivileged_bpf_disabled");
    if !has_shim || !may_map(caller.uid, &disabled.unwrap_or_default()) {
        return None;
    }
    let map = registry.kernel().oncpu();
    map.inspect_err(|error| warn!("ranks are not told who is on a CPU: {error}"))
        .ok()
}

/// Who may load a program writes through it into any map that he has, frozen or not. So where
/// everybody may (@unprivileged_bpf_disabled is 0) maps are root's alone.
fn may_map(uid: u32, unprivileged_bpf_disabled: &str) -> bool {
    uid == 0 || unprivileged_bpf_disabled.trim() != "0"
}

/// The descriptor, or a number, or nothing: then it is the caller.
fn who(head: &abi::cos_control_request, fd: Option<OwnedFd>) -> Result<Option<Beside>, Refusal> {
    match (fd, head.pid) {
        (Some(fd), 0) => Ok(Some(beside(fd)?)),
        (Some(_), _) => Err(Refusal::malformed(
            "both a descriptor and a pid: send one of them",
        )),
        (None, 0) => Ok(None),
        (None, pid) => Ok(Some(Beside::Process(Process::of_pid(pid)?))),
    }
}

fn hello<K: Kernel>(registry: &mut Registry<K>) -> Yes {
    let why = registry.kernel().why_observe();
    yes(0, 0, why.unwrap_or_default())
}

fn jobs<K: Kernel>(registry: &mut Registry<K>, caller: Caller, only: u32) -> Result<Yes, Refusal> {
    let (jobs, nr_hidden) = registry.shown(caller, only);
    if only != 0 && jobs.is_empty() {
        return Err(Refusal::unknown(format!(
            "no job {only} of yours: `cosched jobs` lists them"
        )));
    }
    let mut ranks = registry.kernel().members()?;
    ranks.retain(|rank| jobs.iter().any(|job| job.job == rank.job));
    ranks.sort_by_key(|rank| (rank.job, rank.tgid, rank.tid));
    let nr_ranks = ranks.len();
    ranks.truncate(abi::COS_CONTROL_MAX_RANKS as usize);
    let document = document::Jobs {
        jobs,
        ranks,
        nr_ranks,
        nr_hidden,
    };
    Ok(yes(only, 0, json(&document)))
}

fn status<K: Kernel>(
    registry: &mut Registry<K>,
    about: &About<'_>,
    caller: Caller,
) -> Result<Yes, Refusal> {
    let (jobs, nr_hidden) = registry.shown(caller, 0);
    let kernel = registry.kernel();
    let document = document::Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: getpid().as_raw_nonzero().get().unsigned_abs(),
        up_ns: about.since.elapsed().into(),
        mode: kernel.mode(),
        why: kernel.why_observe(),
        offers: kernel.offers(),
        counts: kernel.counts()?,
        jobs,
        nr_hidden,
        config: about.config.shown(),
    };
    Ok(yes(0, 0, json(&document)))
}

/// Numbers and words only, which JSON always holds.
fn json(document: &impl serde::Serialize) -> String {
    serde_json::to_string(document).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_could_write_a_map_by_a_program_gets_none() {
        for (uid, level, may) in [
            (0, "0\n", true),
            (1000, "0\n", false),
            (1000, "1\n", true),
            (1000, "2\n", true),
            (1000, "", true),
        ] {
            assert_eq!(may_map(uid, level), may, "{uid} {level:?}");
        }
    }
}
