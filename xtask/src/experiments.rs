// SPDX-License-Identifier: Apache-2.0
//! Experiments: figures, READMEs and docs/claims.md, from their records alone.
//!
//! What is drawn and said is `cosched sim figure`'s business; this names all experiments.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::build;
use crate::tree::{run, Tree};

/// Builds, and writes all that follows from the records.
pub fn figures(tree: &Tree) -> Result<()> {
    build::all(tree)?;
    let mut figure = Command::new(tree.release().join("cosched"));
    figure
        .args(["sim", "figure", "--claims"])
        .arg(tree.root.join("docs/claims.md"));
    run(figure.args(all(tree)?))
}

/// The folder of each experiment, by name.
fn all(tree: &Tree) -> Result<Vec<PathBuf>> {
    let folders = |dir: &PathBuf| -> Result<Vec<PathBuf>> {
        let list =
            std::fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
        let mut paths: Vec<PathBuf> = list.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        Ok(paths.into_iter().filter(|path| path.is_dir()).collect())
    };
    let mut found = Vec::new();
    for paper in folders(&tree.root.join("experiments"))? {
        found.extend(
            folders(&paper)?
                .into_iter()
                .filter(|dir| dir.join("experiment.toml").exists()),
        );
    }
    Ok(found)
}
