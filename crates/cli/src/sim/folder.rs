// SPDX-License-Identifier: Apache-2.0
//! The folder of an experiment: its file, its records, and how both are named.
//!
//! `live.toml` and `live.csv` are what was measured on a running Linux beside what is simulated.
//! `experiment.toml` is what a person writes; `record.csv` is the record, `quick.csv` that of the
//! short variant; `record.2-of-3.csv` holds one of three shards until all are put together, and
//! `record.before.csv` is the record while a new one is made in its place.

use crate::fault::Fault;
use anyhow::{Context, Result};
use cosched_sim::experiment::record::{Record, RecordError};
use cosched_sim::experiment::{Experiment, Live, Measured, Plan};
use std::path::{Path, PathBuf};

/// What made a record.
pub const REVISION: &str = match option_env!("COSCHED_REVISION") {
    Some(revision) => revision,
    None => "unknown",
};

/// One experiment, or its short variant.
pub struct Folder {
    /// Where it is.
    pub dir: PathBuf,
    /// What it is.
    pub experiment: Experiment,
    /// Its runs.
    pub plan: Plan,
    quick: bool,
}

impl Folder {
    /// Reads `dir/experiment.toml`.
    pub fn open(dir: &Path, quick: bool) -> Result<Self> {
        let path = dir.join("experiment.toml");
        let usage = |why: String| Fault::Usage(format!("{}: {why}", path.display()));
        let text = std::fs::read_to_string(&path);
        let text =
            text.map_err(|error| usage(format!("{error}; name the folder of an experiment")))?;
        let experiment = Experiment::parse(&text).map_err(|error| usage(error.to_string()))?;
        let plan = Plan::new(&experiment, quick).map_err(usage)?;
        Ok(Folder {
            dir: dir.to_owned(),
            experiment,
            plan,
            quick,
        })
    }

    /// The last two parts of its path: `sobalvarro-1998/fig3`.
    pub fn name(&self) -> String {
        let full = std::path::absolute(&self.dir).unwrap_or_else(|_| self.dir.clone());
        let parts: Vec<_> = full
            .components()
            .map(|c| c.as_os_str().to_string_lossy())
            .collect();
        parts[parts.len().saturating_sub(2)..].join("/")
    }

    fn stem(&self) -> &'static str {
        if self.quick {
            "quick"
        } else {
            "record"
        }
    }

    /// The record, or that of one shard.
    pub fn record_path(&self, shard: Option<(u64, u64)>) -> PathBuf {
        let stem = self.stem();
        self.dir.join(match shard {
            Some((i, n)) => format!("{stem}.{i}-of-{n}.csv"),
            None => format!("{stem}.csv"),
        })
    }

    /// Where the record is while a new one is made in its place.
    pub fn before(&self) -> PathBuf {
        self.dir.join(format!("{}.before.csv", self.stem()))
    }

    /// Records of shards that are there.
    pub fn shards(&self) -> Result<Vec<PathBuf>> {
        let prefix = format!("{}.", self.stem());
        let listed = std::fs::read_dir(&self.dir)
            .with_context(|| format!("cannot list {}", self.dir.display()))?;
        let mut shards: Vec<PathBuf> = listed
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                let name = path
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned());
                name.is_some_and(|name| {
                    name.starts_with(&prefix) && name.contains("-of-") && name.ends_with(".csv")
                })
            })
            .collect();
        shards.sort();
        Ok(shards)
    }

    /// Whole runs in the file at `path`; `revision`: only of that one.
    pub fn read(&self, path: &Path, revision: Option<&str>) -> Result<Record> {
        let mut record = Record::read(&self.experiment, path).map_err(fault)?;
        record.keep(&self.plan, revision, path).map_err(fault)?;
        Ok(record)
    }

    /// What was measured of it on a running Linux, if anything: `live.toml` and `live.csv`.
    pub fn live(&self) -> Result<Option<(Live, Measured)>> {
        let path = self.dir.join("live.toml");
        if !path.exists() {
            return Ok(None);
        }
        let usage = |path: &Path, why: String| Fault::Usage(format!("{}: {why}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|e| usage(&path, e.to_string()))?;
        let live = Live::parse(&text).map_err(|error| usage(&path, error.to_string()))?;
        let record = path.with_extension("csv");
        let text = std::fs::read_to_string(&record).map_err(|e| usage(&record, e.to_string()))?;
        let measured = live.read(&text).map_err(|why| usage(&record, why))?;
        Ok(Some((live, measured)))
    }

    /// The record, whole.
    pub fn whole(&self) -> Result<Record> {
        let path = self.record_path(None);
        let record = self.read(&path, None)?;
        let missing = record.missing(&self.plan).len();
        if missing > 0 {
            let quick = if self.quick { " --quick" } else { "" };
            let why = format!(
                "{}: {missing} of its runs are not there: type cosched sim run {}{quick}",
                path.display(),
                self.dir.display()
            );
            return Err(Fault::Usage(why).into());
        }
        Ok(record)
    }
}

/// Files are this machine's, what stands in them is the user's.
pub fn fault(error: RecordError) -> Fault {
    match error {
        RecordError::File { .. } => Fault::Machine(error.to_string()),
        _ => Fault::Usage(error.to_string()),
    }
}
