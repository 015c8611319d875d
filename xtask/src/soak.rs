// SPDX-License-Identifier: Apache-2.0
//! Soak: the kills of tests/vm_fail_open.rs and the stress of tests/vm_stress.rs, many times more than CI
//! has time for. What is promised of one kill holds for each; the first that breaks it ends the soak.

use anyhow::Result;

use crate::tree::{cargo, run, Tree};
use crate::{build, vm};

/// Builds, and boots two guests: in one it kills coschedd @kills times, the other is
/// stressed for @stress seconds. Nothing is done of what is 0.
pub fn all(tree: &Tree, kills: u32, stress: u32) -> Result<()> {
    vm::prepare(tree)?;
    build::all(tree)?;
    let soaks = [
        ("vm_fail_open", "COSCHED_KILLS", kills),
        ("vm_stress", "COSCHED_STRESS", stress),
    ];
    for (test, name, number) in soaks.iter().filter(|(_, _, number)| *number > 0) {
        let mut cargo = cargo();
        cargo.args(["test", "--release", "--package", "cosched-tests"]);
        cargo.args(["--test", test, "--", "--nocapture"]);
        // It is asked for by name, so that a machine that cannot must not pass.
        run(cargo.env(name, number.to_string()).env("CI", "true"))?;
    }
    Ok(())
}
