// SPDX-License-Identifier: Apache-2.0
//! What was measured on a running Linux, judged as simulations are.
//!
//! `live.toml` beside an experiment names the factors that were varied, how it was measured, and claims: the same
//! relations as in `experiment.toml`. `live.csv` is the record: a row for each job of each run, with a column for each
//! factor, `job`, and metrics by their names ([`metrics`](super::metrics)); what else it has
//! (when, on which kernel) is for the reader. Points that were not measured have no values; a claim that
//! needs one is not judged.

use super::claim::{at_points, Claim, Judged, Values};
use super::sweep::{combinations, Factor, Level};
use crate::SimError;
use serde::Deserialize;
use std::collections::HashMap;

/// What was measured, as its file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Live {
    /// How, and in what it differs from the source.
    pub measured: Vec<String>,
    /// The programs whose rows there are.
    pub jobs: Vec<String>,
    /// What varies; levels have names only.
    #[serde(rename = "factor")]
    pub factors: Vec<Factor>,
    /// What is claimed.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
}

/// All rows of a record.
#[derive(Clone, Debug, Default)]
pub struct Measured(Vec<Row>);

#[derive(Clone, Debug)]
struct Row {
    levels: Vec<String>,
    job: String,
    values: HashMap<String, f64>,
}

impl Live {
    /// Reads TOML and checks every claim; the error is one line.
    pub fn parse(text: &str) -> Result<Self, SimError> {
        let it: Live = toml::from_str(text).map_err(SimError::toml(text))?;
        it.check().map_err(SimError::Scenario)?;
        Ok(it)
    }

    fn check(&self) -> Result<(), String> {
        for factor in &self.factors {
            factor.check()?;
            if factor.levels().iter().any(|level| !level.set.is_empty()) {
                return Err(format!("factor {:?}: nothing is set here", factor.name));
            }
        }
        for claim in &self.claims {
            let checked = claim.check(&self.factors, &self.jobs);
            checked.map_err(|why| format!("claim {:?} ({}): {why}", claim.id, claim.text))?;
        }
        Ok(())
    }

    /// Reads a record; the error is one line.
    pub fn read(&self, text: &str) -> Result<Measured, String> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| error.to_string())?;
        let header: Vec<String> = header.iter().map(str::to_owned).collect();
        let mut rows = Vec::new();
        for fields in reader.records() {
            let fields = fields.map_err(|error| error.to_string())?;
            let cells = header.iter().map(String::as_str).zip(&fields);
            rows.push(self.row(&cells.collect())?);
        }
        Ok(Measured(rows))
    }

    fn row(&self, cells: &HashMap<&str, &str>) -> Result<Row, String> {
        let cell = |name: &str| {
            let found = cells.get(name).map(|text| (*text).to_owned());
            found.ok_or_else(|| format!("there is no column {name:?}"))
        };
        let level = |factor: &Factor| {
            let name = cell(&factor.name)?;
            let known = factor.levels().iter().any(|level| level.name == name);
            known
                .then(|| name.clone())
                .ok_or_else(|| format!("{} has no level {name:?}", factor.name))
        };
        let number = |(name, text): (&&str, &&str)| Some(((*name).to_owned(), text.parse().ok()?));
        Ok(Row {
            levels: self.factors.iter().map(level).collect::<Result<_, _>>()?,
            job: cell("job")?,
            values: cells.iter().filter_map(number).collect(),
        })
    }

    /// Every claim with its verdict.
    pub fn judge(&self, measured: &Measured) -> Result<Vec<(&Claim, Judged)>, String> {
        let points = self.points(measured)?;
        let judged = |claim| (claim, at_points(&self.factors, &points, measured, claim));
        Ok(self.claims.iter().map(judged).collect())
    }

    /// Those that were measured, in the order of the cross product.
    pub fn points(&self, measured: &Measured) -> Result<Vec<Vec<String>>, String> {
        let points = combinations(&self.factors)?.into_iter();
        let names = |levels: Vec<Level>| levels.into_iter().map(|level| level.name).collect();
        let there = |levels: &Vec<String>| measured.0.iter().any(|row| row.levels == *levels);
        Ok(points.map(names).filter(there).collect())
    }
}

impl Values for Measured {
    fn of(&self, levels: &[String], job: &str, metric: &str) -> Vec<f64> {
        let here = |row: &&Row| row.levels == levels && row.job == job;
        let those = self.0.iter().filter(here);
        those
            .filter_map(|row| row.values.get(metric).copied())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    const LIVE: &str = r#"
measured = ["by hand"]
jobs = ["a"]
[[factor]]
name = "load"
level = [{ name = "0" }, { name = "1" }, { name = "2" }]
[[claim]]
id = "T.1"
text = "a load slows it down"
job = "a"
metric = "response_s"
statistic = "median"
where = { load = 1 }
against = { load = 0 }
at_least = 2
[[claim]]
id = "T.2"
text = "two loads even more"
job = "a"
metric = "response_s"
where = { load = 2 }
at_least = 2
"#;
    const RECORD: &str =
        "at_s,load,job,response_s\n1,0,a,1\n2,1,a,2.5\n3,1,b,9\n4,1,a,90\n5,1,a,2\n";

    #[test]
    fn what_was_measured_is_judged_and_what_was_not_is_not() {
        let live = Live::parse(LIVE).unwrap();
        let measured = live.read(RECORD).unwrap();
        let judged = live.judge(&measured).unwrap();
        assert_eq!(judged[0].1.verdict, Verdict::Holds);
        assert!(
            judged[0].1.evidence.contains("2.500"),
            "{}",
            judged[0].1.evidence
        );
        assert_eq!(judged[1].1.verdict, Verdict::Unjudged);
    }

    #[test]
    fn wrong_lines_are_refused_in_one_line() {
        let live = Live::parse(LIVE).unwrap();
        for (record, why) in [
            ("load,job\n3,a\n", "load has no level \"3\""),
            ("job\na\n", "there is no column \"load\""),
            ("load\n0\n", "there is no column \"job\""),
        ] {
            assert_eq!(live.read(record).unwrap_err(), why);
        }
        for (from, to) in [
            ("load = 1 }", "load = 7 }"),
            ("response_s", "speed"),
            ("jobs = [\"a\"]", "jobs = []"),
            ("{ name = \"2\" }", "{ name = \"2\", set = { seed = 1 } }"),
        ] {
            let error = Live::parse(&LIVE.replace(from, to))
                .unwrap_err()
                .to_string();
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
