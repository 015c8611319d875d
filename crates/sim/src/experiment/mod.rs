// SPDX-License-Identifier: Apache-2.0
//! An experiment as data: a question, scenarios that differ in factors, and claims.
//!
//! An `experiment.toml` holds a scenario and the factors that vary in it; the points are
//! their cross product, and each is simulated in several replications with common random
//! numbers ([`sweep`]). Each simulation gives rows of a record with every metric ([`metrics`],
//! [`record`]); claims are relations between metrics of points, judged from the record
//! alone ([`claim`]).
//!
//! What a paper leaves unstated is a factor too, named by `sensitivity`: its first level is what
//! the verdict comes from, and the verdicts at its other levels are shown beside it.
//!
//! It does not run anything: that is the command's business.

mod assign;
pub mod claim;
pub mod live;
pub mod metrics;
pub mod record;
pub mod sweep;

pub use claim::{judge, Claim, Judged, Verdict};
pub use live::{Live, Measured};
pub use record::{Record, Row};
pub use sweep::{level_name, Factor, Level, Plan, Point, Quick, Selection};

use crate::SimError;
use serde::Deserialize;

/// An experiment, as its file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What it is to answer.
    pub question: String,
    /// Paper and section.
    pub source: String,
    /// In what it differs from the source, and what it assumes.
    #[serde(default)]
    pub deviations: Vec<String>,
    /// Of all random numbers.
    pub seed: u64,
    /// Independent runs of each point.
    pub replications: u64,
    /// The factor that holds what the source leaves unstated.
    #[serde(default)]
    pub sensitivity: Option<String>,
    /// The short variant.
    pub quick: Quick,
    /// What all points have in common.
    pub scenario: toml::Table,
    /// What varies, the slowest first.
    #[serde(rename = "factor")]
    pub factors: Vec<Factor>,
    /// What is claimed.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
    /// What is drawn.
    #[serde(rename = "figure", default)]
    pub figures: Vec<Figure>,
}

/// A figure: a metric over one factor, one line for each level of another.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The file's name without its ending.
    pub name: String,
    /// Above it.
    pub title: String,
    /// The factor along the horizontal axis.
    pub x: String,
    /// The factor whose levels are lines.
    pub series: String,
    /// Whose metric.
    pub job: String,
    /// What is drawn.
    pub metric: String,
    /// A logarithmic vertical axis.
    #[serde(default)]
    pub log: bool,
    /// Which points.
    #[serde(default, rename = "where")]
    pub at: Selection,
}

impl Experiment {
    /// Reads TOML and checks every point and claim; the error is one line.
    pub fn parse(text: &str) -> Result<Self, SimError> {
        let it: Experiment = toml::from_str(text).map_err(SimError::toml(text))?;
        it.check().map_err(|why| {
            let why = why.lines().collect::<Vec<_>>().join("; ");
            SimError::Scenario(why)
        })?;
        Ok(it)
    }

    fn check(&self) -> Result<(), String> {
        if self.replications == 0 || self.quick.replications == 0 {
            return Err("replications: write 1 or more".into());
        }
        self.check_factors()?;
        if let Some(factor) = &self.sensitivity {
            self.factor(factor)
                .map_err(|why| format!("sensitivity: {why}"))?;
        }
        for quick in [false, true] {
            Plan::new(self, quick)?;
        }
        let jobs = self.job_names();
        for claim in &self.claims {
            let named = |why| format!("claim {:?} ({}): {why}", claim.id, claim.text);
            one_line(&claim.id).map_err(named)?;
            claim.check(&self.factors, &jobs).map_err(named)?;
        }
        for (i, figure) in self.figures.iter().enumerate() {
            let named = |why| format!("figure {:?}: {why}", figure.name);
            figure.check(self, &jobs).map_err(named)?;
            if self.figures[..i].iter().any(|it| it.name == figure.name) {
                return Err(named("two figures have this name".to_owned()));
            }
        }
        Ok(())
    }

    fn check_factors(&self) -> Result<(), String> {
        for (i, factor) in self.factors.iter().enumerate() {
            let taken = record::COLUMNS.contains(&factor.name.as_str())
                || metrics::named(&factor.name).is_some()
                || self.factors[..i]
                    .iter()
                    .any(|other| other.name == factor.name);
            if taken {
                return Err(format!("factor {:?}: the name is taken", factor.name));
            }
            one_line(&factor.name).map_err(|why| format!("factor {:?}: {why}", factor.name))?;
            factor.check()?;
        }
        Ok(())
    }

    /// The factor of that name.
    pub fn factor(&self, name: &str) -> Result<&Factor, String> {
        sweep::factor(&self.factors, name)
    }

    /// The names of the template's jobs.
    pub fn job_names(&self) -> Vec<String> {
        let jobs = self.scenario.get("job").and_then(toml::Value::as_array);
        let names = jobs.into_iter().flatten();
        names
            .filter_map(|job| Some(job.get("name")?.as_str()?.to_owned()))
            .collect()
    }
}

impl Figure {
    fn check(&self, experiment: &Experiment, jobs: &[String]) -> Result<(), String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || !self.name.chars().all(plain) {
            return Err("it names a file: write letters, digits, - and _".to_owned());
        }
        experiment.factor(&self.x)?;
        experiment.factor(&self.series)?;
        sweep::check_selection(&experiment.factors, &self.at)?;
        check_metric(&self.metric, &self.job, jobs)
    }
}

/// Names stand in tables and in lines of a record.
fn one_line(name: &str) -> Result<(), String> {
    let ok = !name.is_empty() && !name.contains(char::is_control);
    ok.then_some(())
        .ok_or_else(|| "write a name of one line".to_owned())
}

/// Whether both exist.
fn check_metric(metric: &str, job: &str, jobs: &[String]) -> Result<(), String> {
    if metrics::named(metric).is_none() {
        return Err(format!(
            "there is no metric {metric:?}; docs/reference.md lists them"
        ));
    }
    if !jobs.iter().any(|name| name == job) {
        return Err(format!("there is no job {job:?}"));
    }
    Ok(())
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
