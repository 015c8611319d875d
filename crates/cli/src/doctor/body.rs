// SPDX-License-Identifier: Apache-2.0
//! Which body can do what on this machine.

use super::{mpi::Mpi, Fact};
use cosched_control::Mode;

/// From what was found, and what coschedd says of itself.
pub fn facts(
    machine: &[Fact],
    shim: &Fact,
    mpi: &[Mpi],
    daemon: Option<(Mode, String)>,
) -> Vec<Fact> {
    vec![
        shim_body(shim, mpi),
        slice_act(machine),
        kernel_body(machine, daemon),
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

/// What coschedd says of itself; where none is there, whether one could work here.
fn kernel_body(machine: &[Fact], daemon: Option<(Mode, String)>) -> Fact {
    match daemon {
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
    use crate::doctor::Status;

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
        let line = |daemon| kernel_body(&machine, daemon).found;
        assert!(line(None).contains("would only observe"));
        let why = "no sched_ext".to_owned();
        assert!(line(Some((Mode::Observe, why))).ends_with("only observes: no sched_ext"));
        assert!(line(Some((Mode::Schedule, String::new()))).ends_with("schedules"));
    }
}
