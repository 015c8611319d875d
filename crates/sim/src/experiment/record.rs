// SPDX-License-Identifier: Apache-2.0
//! The record of an experiment: a CSV with one row for each job of each run.
//!
//! Each row says which run it is (levels and replication), every metric, and where it comes
//! from: a hash of its scenario and the revision of the program. While runs are made their rows
//! are appended as they come, all rows of a run in one write; what an interrupt or a full
//! disk leaves of a last line is cut off when the file is opened again, and the run is made again.
//! When all are there the file is written anew in the order of the plan and put in place of the old one, so that
//! its bytes do not depend on who made which run when.

use super::metrics::{self, Seen, METRICS};
use super::sweep::{fingerprint, Plan, Point};
use super::Experiment;
use crate::outcome::Outcome;
use crate::scenario::Scenario;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Columns beside factors and metrics.
pub const COLUMNS: [&str; 8] = [
    "replication",
    "job",
    "fairness_each",
    "laps_by_octave",
    "verdicts",
    "state_hash",
    "scenario",
    "revision",
];

/// Why a record cannot be used.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The file system refused.
    #[error("{path}: {source}: what was recorded before is kept; run again to go on")]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another run has it.
    #[error("{0}: another run writes it: wait for its end")]
    Busy(PathBuf),
    /// It is of another experiment or program.
    #[error("{path}: {why}: remove it to begin anew, or go on with what made it")]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// In what it differs.
        why: String,
    },
}

/// One job of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The level of each factor.
    pub levels: Vec<String>,
    /// Which run of this point.
    pub replication: u64,
    /// The job.
    pub job: String,
    /// By [`METRICS`].
    pub values: Vec<Option<f64>>,
    /// F of each process, rounds by octave, what policy said, hash of the last state.
    pub notes: [String; 4],
    /// Of the scenario.
    pub scenario: u64,
    /// Of the program.
    pub revision: String,
}

/// The rows that are there.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// In the order of the file.
    pub rows: Vec<Row>,
}

/// A run: a point and the number of its replication.
pub type Run<'a> = (&'a Point, u64);

/// What is simulated in a run.
pub fn scenario_of((point, replication): Run) -> Scenario {
    Scenario {
        replication,
        ..point.scenario.clone()
    }
}

/// All runs of `plan`, in its order.
pub fn runs(plan: &Plan) -> impl Iterator<Item = Run<'_>> {
    let each = |point| (0..plan.replications).map(move |replication| (point, replication));
    plan.points.iter().flat_map(each)
}

/// The names of all columns.
pub fn header(experiment: &Experiment) -> Vec<String> {
    let factors = experiment.factors.iter().map(|factor| factor.name.as_str());
    let metrics = METRICS.iter().map(|metric| metric.name);
    let names = factors.chain(COLUMNS[..2].iter().copied());
    let names = names.chain(metrics).chain(COLUMNS[2..].iter().copied());
    names.map(str::to_owned).collect()
}

/// The rows of one run; `dedicated` gives what a job is alone.
pub fn rows_of(
    run: Run,
    outcome: &Outcome,
    revision: &str,
    dedicated: impl Fn(&str) -> Option<Outcome>,
) -> Vec<Row> {
    let scenario = fingerprint(&scenario_of(run));
    let row = |job: &crate::JobOutcome| {
        let alone = dedicated(&job.name);
        let seen = Seen {
            job,
            outcome,
            dedicated: alone.as_ref().map(|alone| &alone.jobs[0]),
        };
        Row {
            levels: run.0.levels.clone(),
            replication: run.1,
            job: job.name.clone(),
            values: METRICS.iter().map(|metric| (metric.of)(&seen)).collect(),
            notes: [
                metrics::fairness_each(job),
                metrics::laps_by_octave(job),
                metrics::verdicts(outcome),
                format!("{:016x}", outcome.state_hash),
            ],
            scenario,
            revision: revision.to_owned(),
        }
    };
    outcome.jobs.iter().map(row).collect()
}

impl Row {
    fn fields(&self) -> Vec<String> {
        let mut fields = self.levels.clone();
        fields.push(self.replication.to_string());
        fields.push(self.job.clone());
        let number = |value: &Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
        fields.extend(self.values.iter().map(number));
        fields.extend(self.notes.iter().cloned());
        fields.push(format!("{:016x}", self.scenario));
        fields.push(self.revision.clone());
        fields
    }

    /// None where it is no row; a quote too many makes one of several lines.
    fn parse(fields: &csv::StringRecord, nr_factors: usize) -> Option<Row> {
        if fields.iter().any(|field| field.contains(char::is_control)) {
            return None;
        }
        let at = |i: usize| fields.get(nr_factors + i).map(str::to_owned);
        let number = |i: usize| match fields.get(nr_factors + 2 + i)? {
            "" => Some(None),
            text => text.parse().ok().map(Some),
        };
        let notes = 2 + METRICS.len();
        Some(Row {
            levels: fields.iter().take(nr_factors).map(str::to_owned).collect(),
            replication: at(0)?.parse().ok()?,
            job: at(1)?,
            values: (0..METRICS.len()).map(number).collect::<Option<_>>()?,
            notes: [at(notes)?, at(notes + 1)?, at(notes + 2)?, at(notes + 3)?],
            scenario: u64::from_str_radix(&at(notes + 4)?, 16).ok()?,
            revision: at(notes + 5)?,
        })
    }

    fn key(&self) -> (&[String], u64) {
        (&self.levels, self.replication)
    }
}

fn as_csv(rows: impl IntoIterator<Item = Vec<String>>) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.write_record(row).expect("memory takes all");
    }
    writer.into_inner().expect("memory takes all")
}

/// How many of `bytes` are lines that have an end.
fn whole_lines(bytes: &[u8]) -> usize {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    end.map_or(0, |end| end + 1)
}

impl Record {
    /// Reads `path`; a file that is not there is empty. Rows of runs that are not whole are left out.
    pub fn read(experiment: &Experiment, path: &Path) -> Result<Self, RecordError> {
        let bytes = match std::fs::read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            other => other.map_err(file_error(path))?,
        };
        let whole = &bytes[..whole_lines(&bytes)];
        let foreign = |why: String| RecordError::Foreign {
            path: path.to_owned(),
            why,
        };
        let begins = as_csv([header(experiment)]).starts_with(&bytes);
        if whole.is_empty() && !begins {
            return Err(foreign("it is no record".to_owned()));
        }
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_reader(whole);
        let mut record = Record::default();
        for (number, fields) in reader.records().enumerate() {
            let fields = fields.map_err(|error| foreign(error.to_string()))?;
            if number == 0 && fields != header(experiment) {
                return Err(foreign(
                    "its columns are not those of this experiment".into(),
                ));
            }
            if number > 0 {
                let row = Row::parse(&fields, experiment.factors.len());
                record
                    .rows
                    .push(row.ok_or_else(|| foreign(format!("line {} is no row", number + 1)))?);
            }
        }
        Ok(record)
    }

    /// Keeps whole runs only, each once; refuses runs of other scenarios or of another `revision`.
    /// More replications than planned stay.
    pub fn keep(
        &mut self,
        plan: &Plan,
        revision: Option<&str>,
        path: &Path,
    ) -> Result<(), RecordError> {
        let points: HashMap<&[String], &Point> = plan
            .points
            .iter()
            .map(|point| (point.levels.as_slice(), point))
            .collect();
        let foreign = |why: String| RecordError::Foreign {
            path: path.to_owned(),
            why,
        };
        let mut there: HashMap<(Vec<String>, u64), HashSet<String>> = HashMap::new();
        for row in &self.rows {
            let point = points.get(row.levels.as_slice());
            let planned = point.map(|point| fingerprint(&scenario_of((point, row.replication))));
            if planned != Some(row.scenario) {
                return Err(foreign("it holds runs of another scenario".to_owned()));
            }
            if let Some(now) = revision.filter(|now| *now != row.revision) {
                let then = &row.revision;
                return Err(foreign(format!(
                    "it was made by revision {then}, this is {now}"
                )));
            }
            let jobs = there
                .entry((row.levels.clone(), row.replication))
                .or_default();
            jobs.insert(row.job.clone());
        }
        let whole = |row: &Row| {
            let jobs = &there[&(row.levels.clone(), row.replication)];
            jobs.len() == points[row.levels.as_slice()].scenario.jobs.len()
        };
        let mut seen = HashSet::new();
        self.rows.retain(|row| {
            whole(row) && seen.insert((row.levels.clone(), row.replication, row.job.clone()))
        });
        Ok(())
    }

    /// The runs of `plan` that are not there.
    pub fn missing<'a>(&self, plan: &'a Plan) -> Vec<Run<'a>> {
        let there: HashSet<_> = self.rows.iter().map(Row::key).collect();
        runs(plan)
            .filter(|(point, replication)| {
                !there.contains(&(point.levels.as_slice(), *replication))
            })
            .collect()
    }

    /// How many runs are not in `other`, or there with other values; whoever made them.
    pub fn differing(&self, other: &Record) -> usize {
        let values = |row: &Row| (row.values.clone(), row.notes.clone());
        let there: HashMap<_, _> = other
            .rows
            .iter()
            .map(|row| ((row.key(), &row.job), values(row)))
            .collect();
        let differs = |row: &&Row| there.get(&(row.key(), &row.job)) != Some(&values(row));
        let runs = self.rows.iter().filter(differs).map(Row::key);
        runs.collect::<HashSet<_>>().len()
    }

    /// The values of one metric of one job at one point, in the order of replications.
    pub fn values(&self, levels: &[String], job: &str, metric: usize) -> Vec<f64> {
        let rows = self
            .rows
            .iter()
            .filter(|row| row.levels == levels && row.job == job);
        rows.filter_map(|row| row.values[metric]).collect()
    }

    /// Puts the rows into the order of `plan` and writes them in place of `path`.
    pub fn write(
        &mut self,
        experiment: &Experiment,
        plan: &Plan,
        path: &Path,
    ) -> Result<(), RecordError> {
        let order: HashMap<&[String], usize> = (0..)
            .zip(&plan.points)
            .map(|(i, p)| (p.levels.as_slice(), i))
            .collect();
        let place = |row: &Row| {
            let point = order.get(row.levels.as_slice()).copied();
            let jobs = point.map(|at| &plan.points[at].scenario.jobs);
            let job = jobs.and_then(|jobs| jobs.iter().position(|job| job.name == row.job));
            (point, row.replication, job)
        };
        self.rows.sort_by_key(place);
        let rows = self.rows.iter().map(Row::fields);
        let bytes = as_csv(std::iter::once(header(experiment)).chain(rows));
        let fresh = path.with_extension("csv.new");
        let written = File::create(&fresh).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_all()
        });
        let placed = written.and_then(|()| std::fs::rename(&fresh, path));
        if placed.is_err() {
            let _ = std::fs::remove_file(&fresh);
        }
        placed.map_err(file_error(path))
    }
}

fn file_error(path: &Path) -> impl Fn(std::io::Error) -> RecordError + '_ {
    |source| RecordError::File {
        path: path.to_owned(),
        source,
    }
}

/// A record that grows.
pub struct Journal {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Journal {
    /// Opens `path` to append, cuts off half a line, and keeps other runs away while it is open.
    pub fn open(experiment: &Experiment, path: &Path) -> Result<Self, RecordError> {
        let error = file_error(path);
        let mut options = File::options();
        let opened = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let mut file = opened.map_err(&error)?;
        file.try_lock()
            .map_err(|_| RecordError::Busy(path.to_owned()))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(&error)?;
        let whole = whole_lines(&bytes);
        let mut journal = Journal {
            path: path.to_owned(),
            file,
            length: whole as u64,
        };
        journal.cut().map_err(&error)?;
        if whole == 0 {
            journal.write(&as_csv([header(experiment)]))?;
        }
        Ok(journal)
    }

    /// Appends the rows of one run.
    pub fn append(&mut self, rows: &[Row]) -> Result<(), RecordError> {
        self.write(&as_csv(rows.iter().map(Row::fields)))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        if let Err(error) = self.file.write_all(bytes) {
            // What cannot be cut off now is cut off when the file is opened again.
            let _ = self.cut();
            return Err(file_error(&self.path)(error));
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn cut(&mut self) -> std::io::Result<()> {
        self.file.set_len(self.length)?;
        self.file.seek(SeekFrom::Start(self.length)).map(drop)
    }
}
