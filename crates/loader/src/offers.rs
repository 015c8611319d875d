// SPDX-License-Identifier: Apache-2.0
//! What this kernel and this process offer to the kernel body.
//!
//! Read from /sys and from the kernel's own type information; nothing is
//! attached to find out. Kernel configuration files are not asked: many machines hide them.

use libbpf_rs::btf::types::{Enum, Enum64, Func};
use libbpf_rs::btf::{Btf, BtfType};
use std::{fs, path::Path};

/// One thing that is needed for something.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Offer {
    /// Its name.
    pub name: &'static str,
    /// Needed even to observe.
    pub vital: bool,
    /// What was found.
    pub found: String,
    /// What is missing and what to do; nothing where it is there.
    pub missing: Option<String>,
}

/// All of them, in the order in which they are needed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Offers(pub Vec<Offer>);

/// Tracepoints that are seen through.
const TRACEPOINTS: [&str; 6] = [
    "sk_data_ready",
    "sock_recv_length",
    "sched_switch",
    "sched_wakeup",
    "sched_process_fork",
    "sched_process_exit",
];

/// Functions of sched_ext that have no substitute.
const FUNCTIONS: [&str; 6] = [
    "scx_bpf_dsq_insert",
    "scx_bpf_dsq_insert_vtime",
    "scx_bpf_dsq_move_to_local",
    "scx_bpf_dsq_move",
    "scx_bpf_kick_cpu",
    "bpf_iter_scx_dsq_new",
];

impl Offers {
    /// Of the running kernel.
    pub fn probe() -> Offers {
        let types = Btf::from_vmlinux().ok();
        Offers(vec![
            privilege(),
            type_information(types.is_some()),
            tracepoints(types.as_ref()),
            sched_ext(types.as_ref()),
            no_other_scheduler(),
        ])
    }

    /// Why not even observing is possible.
    pub fn lack(&self) -> Option<&str> {
        self.first_missing(true)
    }

    /// Why it can only observe.
    pub fn why_observe(&self) -> Option<&str> {
        self.first_missing(false)
    }

    fn first_missing(&self, vital: bool) -> Option<&str> {
        let mut wanted = self.0.iter().filter(|offer| offer.vital == vital);
        wanted.find_map(|offer| offer.missing.as_deref())
    }
}

/// Tasks that would otherwise pass by `enqueue`, to the front of their CPU and with the kernel's own slice of
/// 20 ms: who was preempted where it may not migrate (in a tracing program, for instance), and who exits.
const OPS_FLAGS: [&str; 2] = ["SCX_OPS_ENQ_MIGRATION_DISABLED", "SCX_OPS_ENQ_EXITING"];

/// Flags of the scheduler's operations, as far as this kernel knows them.
pub(crate) fn ops_flags() -> u64 {
    let types = Btf::from_vmlinux().ok();
    let flags = OPS_FLAGS.iter().zip(types.iter().cycle());
    flags.fold(0, |all, (word, btf)| {
        all | value_of(btf, "scx_ops_flags", word)
    })
}

/// 0 where the kernel has no such word. Enumerations are of 64 bits where a value needs them.
fn value_of(btf: &Btf<'_>, name: &str, word: &str) -> u64 {
    let long = btf.type_by_name::<Enum64<'_>>(name);
    let short = btf.type_by_name::<Enum<'_>>(name);
    let long = long.iter().flat_map(|e| e.iter());
    let short = short.iter().flat_map(|e| e.iter());
    let long = long.map(|member| (member.name, member.value as u64));
    let short = short.map(|member| (member.name, member.value as u64));
    let found = long
        .chain(short)
        .find(|(name, _)| name.is_some_and(|n| n == word));
    found.map_or(0, |(_, value)| value)
}

fn offer(name: &'static str, vital: bool, found: Result<String, String>) -> Offer {
    let (found, missing) = match found {
        Ok(found) => (found, None),
        Err(missing) => ("missing".to_owned(), Some(missing)),
    };
    Offer {
        name,
        vital,
        found,
        missing,
    }
}

/// CAP_BPF and CAP_PERFMON, or root's CAP_SYS_ADMIN for both.
fn privilege() -> Offer {
    use rustix::thread::{capabilities, CapabilitySet};
    let has = |wanted: CapabilitySet| {
        capabilities(None).is_ok_and(|sets| sets.effective.contains(wanted))
    };
    let enough = has(CapabilitySet::SYS_ADMIN) || has(CapabilitySet::BPF | CapabilitySet::PERFMON);
    let found = match enough {
        true => Ok("may load BPF programs".to_owned()),
        false => Err(
            "this process may not load BPF programs (CAP_BPF and CAP_PERFMON); \
                      run it as root"
                .to_owned(),
        ),
    };
    offer("privilege", true, found)
}

fn type_information(there: bool) -> Offer {
    let found = match there {
        true => Ok("/sys/kernel/btf/vmlinux".to_owned()),
        false => Err(
            "the kernel has no type information (/sys/kernel/btf/vmlinux); \
                      use one with CONFIG_DEBUG_INFO_BTF"
                .to_owned(),
        ),
    };
    offer("BTF", true, found)
}

fn tracepoints(types: Option<&Btf<'_>>) -> Offer {
    let lacks = TRACEPOINTS.iter().find(|name| {
        let wanted = format!("btf_trace_{name}");
        types.is_none_or(|btf| btf.type_by_name::<BtfType<'_>>(&wanted).is_none())
    });
    let found = match lacks {
        None => Ok(format!("{} of {0}", TRACEPOINTS.len())),
        Some(name) => Err(format!(
            "the kernel has no tracepoint {name}; use Linux 6.3 or newer"
        )),
    };
    offer("tracepoints", true, found)
}

fn sched_ext(types: Option<&Btf<'_>>) -> Offer {
    let lacks = FUNCTIONS
        .iter()
        .find(|name| types.is_none_or(|btf| btf.type_by_name::<Func<'_>>(name).is_none()));
    let there = Path::new("/sys/kernel/sched_ext/state").exists();
    let found = match (there, lacks) {
        (true, None) => Ok("there".to_owned()),
        (true, Some(name)) => Err(format!(
            "this kernel's sched_ext has no {name}; use Linux 6.13 or newer"
        )),
        (false, _) => Err(
            "this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT, Linux 6.13 or \
                           newer)"
                .to_owned(),
        ),
    };
    offer("sched_ext", false, found)
}

fn no_other_scheduler() -> Offer {
    let word = |path| {
        fs::read_to_string(path)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let state = word("/sys/kernel/sched_ext/state");
    let found = match state.as_str() {
        "" | "disabled" => Ok("no other sched_ext scheduler".to_owned()),
        _ => {
            let name = word("/sys/kernel/sched_ext/root/ops");
            Err(format!(
                "another scheduler is attached ({name}, {state}); stop it first"
            ))
        }
    };
    offer("free", false, found)
}
