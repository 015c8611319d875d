// SPDX-License-Identifier: Apache-2.0
//! Experiments: figures, READMEs, docs/claims.md and docs/validation.md, from their records and what was measured.
//!
//! What is drawn and said is `cosched sim figure`'s and `validate`'s business; this names all experiments.

use std::path::{Path, PathBuf};
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
    run(figure.args(all(tree)?))?;
    let mut validate = Command::new(tree.release().join("cosched"));
    validate
        .args(["sim", "validate", "--calibration", "latency", "--write"])
        .arg(tree.root.join("docs/validation.md"));
    for folder in folders(&tree.root.join("experiments/guest"))? {
        validate.arg("--order").arg(folder);
    }
    run(validate.args(folders(&tree.root.join("experiments/reality"))?))
}

/// The folders in `dir`, by name.
fn folders(dir: &Path) -> Result<Vec<PathBuf>> {
    let list = std::fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    let mut paths: Vec<PathBuf> = list.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths.into_iter().filter(|path| path.is_dir()).collect())
}

/// The folder of each experiment, by name.
fn all(tree: &Tree) -> Result<Vec<PathBuf>> {
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
