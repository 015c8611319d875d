// SPDX-License-Identifier: Apache-2.0
//! Which body can do what on this machine.

use super::{mpi::Mpi, Fact};

/// From what was found.
pub fn facts(machine: &[Fact], shim: &Fact, mpi: &[Mpi]) -> Vec<Fact> {
    vec![
        shim_body(shim, mpi),
        slice_act(machine),
        kernel_body(machine),
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

/// This version has none; the line says whether one could work here.
fn kernel_body(machine: &[Fact]) -> Fact {
    let lacking: Vec<_> = ["BTF", "sched_ext"]
        .into_iter()
        .filter(|name| !is_there(machine, name))
        .collect();
    let machine_could = match lacking.as_slice() {
        [] => "this machine has what one needs".to_owned(),
        names => format!("this machine lacks {}", names.join(" and ")),
    };
    let to_do = "presets fall back to the shim where they say `else`";
    Fact::note(
        "kernel",
        format!("this version has no kernel body ({machine_could})"),
        to_do,
    )
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
        assert_eq!(facts(&[], &gone, &[])[0].status, Status::Missing);
        assert_eq!(
            facts(&[], &there, &[])[0].found,
            "no MPI here has a wait point"
        );
    }

    #[test]
    fn names_what_a_kernel_body_would_lack() {
        let machine = [Fact::ok("BTF", ""), Fact::missing("sched_ext", "", "")];
        let found = facts(&machine, &Fact::ok("libcosched.so", ""), &[])[2]
            .found
            .clone();
        assert!(found.contains("lacks sched_ext"), "{found}");
    }
}
