// SPDX-License-Identifier: Apache-2.0
//! The record: every raw sample as a CSV row, with where it came from.
//!
//! One row per program and attempt, repeated and failed ones included, written through at once, so
//! that neither ^C nor a crash loses a sample. An existing file is never overwritten. Each row
//! carries its whole provenance: rows of several machines may be thrown together.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use csv::Writer;

use super::child::Exit;
use super::plan::{Cell, Work};
use super::sample::{Program, Role};
use super::series::Sample;
use crate::fault::Fault;

/// A row's cells with their column names.
type Row = Vec<(&'static str, String)>;

/// What is the same in all rows.
#[derive(Clone, Debug, Default)]
pub struct Provenance(pub Row);

impl Provenance {
    /// This build and this machine; `parameters` are those of the bench.
    pub fn here(parameters: Row) -> Self {
        let mut row = vec![
            (
                "revision",
                option_env!("COSCHED_REVISION")
                    .unwrap_or("unknown")
                    .to_owned(),
            ),
            ("kernel", uname()),
            (
                "cpu_model",
                cpu_model().unwrap_or_else(|| "unknown".to_owned()),
            ),
            (
                "autogroup",
                read("/proc/sys/kernel/sched_autogroup_enabled"),
            ),
        ];
        row.extend(parameters);
        Self(row)
    }
}

/// An open record.
pub struct Record {
    writer: Writer<File>,
    provenance: Provenance,
    started: bool,
}

impl Record {
    /// Creates `path`, which must not exist.
    pub fn create(path: &Path, provenance: Provenance) -> Result<Self> {
        let file = File::create_new(path).map_err(|error| {
            let path = path.display();
            Fault::Usage(format!(
                "cannot create {path} for the samples: {error}; give another name by --csv"
            ))
        })?;
        Ok(Self {
            writer: Writer::from_writer(file),
            provenance,
            started: false,
        })
    }

    /// A name with the time in it.
    pub fn default_path() -> PathBuf {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        format!("bench-{}.csv", now.replace(':', "")).into()
    }

    /// Writes all programs of `sample` through to the file.
    pub fn add(&mut self, sample: &Sample) -> Result<()> {
        for program in &sample.outcome.programs {
            let mut row = row(sample, program);
            row.extend(self.provenance.0.iter().cloned());
            let (names, values): (Vec<_>, Vec<_>) = row.into_iter().unzip();
            if !self.started {
                self.writer.write_record(names)?;
                self.started = true;
            }
            self.writer.write_record(values)?;
        }
        self.writer.flush().context("cannot write the samples")
    }
}

fn row(sample: &Sample, program: &Program) -> Row {
    let number = |value: f64| format!("{value:.6}");
    let maybe = |value: Option<f64>| value.map(number).unwrap_or_default();
    let count = |value: Option<u64>| value.map(|n| n.to_string()).unwrap_or_default();
    let bells = program.doorbells;
    let (arm, role) = names(&sample.cell, program.role);
    vec![
        (
            "at",
            humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
        ),
        ("arm", arm),
        ("scheduler", sample.cell.scheduler().to_string()),
        ("hogs_per_cpu", sample.cell.hogs.to_string()),
        ("together", sample.cell.together.to_string()),
        ("role", role.to_owned()),
        ("program", program.name.clone()),
        ("repeat", sample.repeat.to_string()),
        ("attempt", sample.attempt.to_string()),
        ("counts", sample.kept.to_string()),
        ("foreign", number(sample.outcome.foreign)),
        ("exit", exit(program.exit)),
        ("offset_s", number(program.offset_s)),
        ("wall_s", number(program.wall_s)),
        ("own_s", maybe(program.own_s)),
        ("own_cpu_s", maybe(program.own_cpu_s)),
        ("user_s", number(program.usage.user_s)),
        ("system_s", number(program.usage.system_s)),
        ("voluntary", program.usage.voluntary.to_string()),
        ("involuntary", program.usage.involuntary.to_string()),
        ("hogs_rounds", format!("{:.0}", sample.outcome.hogs.rounds)),
        ("hogs_cpu_s", number(sample.outcome.hogs.cpu_s)),
        ("sleeper_p99_us", maybe(sample.outcome.sleeper_p99_us)),
        ("blocks", count(bells.map(|b| b.blocks))),
        ("missed", count(bells.map(|b| b.missed))),
        ("spurious", count(bells.map(|b| b.spurious))),
        ("wakes", count(bells.map(|b| b.wakes))),
    ]
}

fn names(cell: &Cell, role: Role) -> (String, &'static str) {
    let arm = match &cell.work {
        Work::Arm(arm) => arm.to_string(),
        Work::Probe(_) | Work::Beside(_) => String::new(),
    };
    let role = match role {
        Role::Job => "job",
        Role::Probe => "probe",
        Role::Beside => "beside",
    };
    (arm, role)
}

fn exit(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => code.to_string(),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::TimedOut => "time limit".to_owned(),
        Exit::Unscheduled => "scheduler lost".to_owned(),
    }
}

fn uname() -> String {
    let uname = rustix::system::uname();
    format!(
        "{} {}",
        uname.release().to_string_lossy(),
        uname.version().to_string_lossy()
    )
}

fn cpu_model() -> Option<String> {
    use procfs::Current;
    let info = procfs::CpuInfo::current().ok()?;
    Some(info.model_name(0)?.to_owned())
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).map_or_else(|_| "none".to_owned(), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::arm::Arm;
    use super::super::series::tests::outcome;
    use super::*;

    fn sample() -> Sample {
        Sample {
            cell: Cell {
                work: Work::Arm(Arm::Yield),
                hogs: 2,
                together: false,
            },
            repeat: 3,
            attempt: 1,
            disturbed: true,
            kept: false,
            outcome: outcome(1.5, 2.25),
        }
    }

    #[test]
    fn a_row_holds_the_sample_and_its_provenance() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.csv");
        let mut record =
            Record::create(&path, Provenance::here(vec![("seed", "5".to_owned())])).unwrap();
        record.add(&sample()).unwrap();
        record.add(&sample()).unwrap();
        let mut reader = csv::Reader::from_path(&path).unwrap();
        let header = reader.headers().unwrap().clone();
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        let at = |name: &str| &rows[1][header.iter().position(|column| column == name).unwrap()];
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (at("arm"), at("hogs_per_cpu"), at("repeat"), at("counts")),
            ("yield", "2", "3", "false")
        );
        assert_eq!(
            (at("own_s"), at("own_cpu_s"), at("blocks")),
            ("1.500000", "2.250000", "")
        );
        assert_eq!(at("seed"), "5");
        assert!(at("kernel").starts_with(|c: char| c.is_ascii_digit()));
    }

    #[test]
    fn no_file_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.csv");
        std::fs::write(&path, "precious").unwrap();
        assert!(Record::create(&path, Provenance::default()).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }
}
