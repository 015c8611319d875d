// SPDX-License-Identifier: Apache-2.0
//! Soak: the kills of tests/vm_fail_open.rs, many times more than CI has time for. What
//! is promised of one kill holds for each; the first that breaks it ends the soak.

use anyhow::Result;

use crate::tree::{cargo, run, Tree};
use crate::{build, vm};

/// Builds, boots one guest, and kills coschedd in it @kills times.
pub fn all(tree: &Tree, kills: u32) -> Result<()> {
    vm::prepare(tree)?;
    build::all(tree)?;
    let mut test = cargo();
    test.args(["test", "--release", "--package", "cosched-tests"]);
    test.args(["--test", "vm_fail_open", "--", "--nocapture"]);
    // It is asked for by name, so that a machine that cannot must not pass.
    run(test
        .env("COSCHED_KILLS", kills.to_string())
        .env("CI", "true"))
}
