// SPDX-License-Identifier: Apache-2.0
//! Which body can do what on this machine.

use super::{mpi::Mpi, Fact, Status};
use crate::{
    daemon::{self, Travelling},
    policy,
};
use anyhow::Result;
use cosched_control::Mode;
use cosched_model::abi;

/// What coschedd says of itself, and does for us.
pub struct Told {
    mode: Mode,
    why: String,
    publishes: bool,
}

/// Asks, and begins a job, as `cosched run` would; it ends at once.
pub fn told() -> Result<Option<Told>> {
    let preset = policy::read("auto")?;
    Ok(daemon::find().map(|found| {
        let (mode, why) = (found.mode, found.why.clone());
        let auto = Travelling::of("auto", &preset);
        let held = found.hold(&auto, "doctor", abi::COS_CONTROL_SHIM);
        Told {
            mode,
            why,
            publishes: held.is_ok_and(|mut held| held.take_oncpu().is_some()),
        }
    }))
}

/// From what was found, and what coschedd says of itself.
pub fn facts(machine: &[Fact], shim: &Fact, mpi: &[Mpi], daemon: Option<Told>) -> Vec<Fact> {
    vec![
        shim_body(shim, mpi),
        slice_act(machine),
        peers_seen(machine, daemon.as_ref()),
        kernel_body(machine, daemon.as_ref()),
    ]
}

fn shim_body(shim: &Fact, mpi: &[Mpi]) -> Fact {
    let hooked: Vec<_> = mpi
        .iter()
        .filter(|mpi| mpi.is_hooked())
        .map(|mpi| mpi.fact().name)
        .collect();
    if !shim.is_there() {
        Fact::missing("shim", "cannot be loaded", "see libcosched.so above")
    } else if hooked.is_empty() {
        Fact::missing("shim", "no MPI here has a wait point", "see MPI above")
    } else {
        Fact::ok(
            "shim",
            format!(
                "answers wait (spin, block, yield, wake) for {}",
                hooked.join(", ")
            ),
        )
    }
}

fn slice_act(machine: &[Fact]) -> Fact {
    if is_there(machine, "slice") {
        Fact::ok("slice", "ranks get short turns, without privilege")
    } else {
        Fact::note(
            "slice",
            "turns are as long as the kernel makes them",
            "cosched works without",
        )
    }
}

/// The first source that tells a rank whether its peer is on a CPU.
fn peers_seen(machine: &[Fact], daemon: Option<&Told>) -> Fact {
    let switches = machine.iter().find(|fact| fact.name == "context switches");
    let next = match switches {
        Some(fact) if fact.status == Status::Ok => "by records of context switches",
        _ => "by guesses from heartbeats and /proc",
    };
    match daemon {
        Some(told) if told.publishes => Fact::ok(
            "peers",
            "seen in what coschedd publishes of who is on a CPU",
        ),
        Some(_) => Fact::note(
            "peers",
            format!("seen {next}: coschedd does not show us who is on a CPU"),
            "see its log; where everybody may load BPF programs it shows that to root alone: \
             sysctl kernel.unprivileged_bpf_disabled=2",
        ),
        None => Fact::ok("peers", format!("seen {next}")),
    }
}

/// What coschedd says of itself; where none is there, whether one could work here.
fn kernel_body(machine: &[Fact], daemon: Option<&Told>) -> Fact {
    match daemon.map(|told| (told.mode, &told.why)) {
        Some((Mode::Schedule, _)) => Fact::ok("kernel", "coschedd is there and schedules"),
        Some((Mode::Observe, why)) => Fact::note(
            "kernel",
            format!("coschedd is there and only observes: {why}"),
            "cosched status shows what it sees; presets fall back to the shim where they say `else`",
        ),
        None => without_daemon(machine),
    }
}

fn without_daemon(machine: &[Fact]) -> Fact {
    let lacks = |name| !is_there(machine, name);
    let could = match (lacks("BTF"), lacks("sched_ext")) {
        (true, _) => "this machine lacks BTF, so it could not even observe",
        (false, true) => "this machine lacks sched_ext, so it would only observe",
        (false, false) => "this machine has what it needs",
    };
    let to_do =
        "as root: systemctl start coschedd; presets fall back to the shim where they say `else`";
    Fact::note("kernel", format!("no coschedd is there ({could})"), to_do)
}

fn is_there(machine: &[Fact], name: &str) -> bool {
    machine
        .iter()
        .any(|fact| fact.name == name && fact.is_there())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_shim_or_hook_there_is_no_body() {
        let there = Fact::ok("libcosched.so", "/l");
        let gone = Fact::missing("libcosched.so", "", "");
        assert_eq!(facts(&[], &gone, &[], None)[0].status, Status::Missing);
        assert_eq!(
            facts(&[], &there, &[], None)[0].found,
            "no MPI here has a wait point"
        );
    }

    #[test]
    fn says_what_coschedd_does_or_could_do_here() {
        let machine = [Fact::ok("BTF", ""), Fact::missing("sched_ext", "", "")];
        let line = |daemon: Option<&Told>| kernel_body(&machine, daemon).found;
        assert!(line(None).contains("would only observe"));
        let observes = says(Mode::Observe, "no sched_ext", true);
        assert!(line(Some(&observes)).ends_with("only observes: no sched_ext"));
        assert!(line(Some(&says(Mode::Schedule, "", true))).ends_with("schedules"));
    }

    fn says(mode: Mode, why: &str, publishes: bool) -> Told {
        Told {
            mode,
            why: why.to_owned(),
            publishes,
        }
    }

    #[test]
    fn says_which_source_tells_of_peers() {
        let machine = [Fact::ok("context switches", "")];
        let line = |daemon: Option<&Told>, machine: &[Fact]| peers_seen(machine, daemon).found;
        assert!(line(None, &machine).contains("records of context switches"));
        assert!(line(None, &[]).contains("/proc"));
        let gives = says(Mode::Observe, "", true);
        assert!(line(Some(&gives), &machine).contains("publishes"));
        let keeps = says(Mode::Observe, "", false);
        let line = line(Some(&keeps), &machine);
        assert!(line.contains("records") && line.contains("does not show us"));
    }
}
