// SPDX-License-Identifier: Apache-2.0
//! What a command says on stdout. A full disk, or a reader that has gone, is an error like others: one
//! line and an exit code, where `println!` would panic.

use anyhow::{Context, Result};
use std::fmt::Display;
use std::io::Write;

/// Writes `text` and the end of its line.
pub fn say(text: impl Display) -> Result<()> {
    writeln!(std::io::stdout(), "{text}").context("cannot write to stdout")
}
