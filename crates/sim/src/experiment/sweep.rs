// SPDX-License-Identifier: Apache-2.0
//! Factors and their cross product: the points of an experiment.
//!
//! A factor is one key of the scenario with its values, or named levels that each set
//! several keys. The first factor varies slowest. A job that a level leaves without ranks
//! is not there, so that "no competitors" is a level like others. Seed and replication are the
//! sweep's: runs that differ only in factors see the same random numbers.

use super::assign::{assign, drop_empty_jobs};
use super::Experiment;
use crate::scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// More points, or runs in all, are a slip of the pen.
const MOST_POINTS: usize = 100_000;
const MOST_RUNS: u64 = 10_000_000;

/// What varies.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// Its column in the record.
    pub name: String,
    /// The key of the scenario that it sets; or its levels say which.
    #[serde(default)]
    key: Option<String>,
    /// What that key is set to.
    #[serde(default)]
    values: Vec<Value>,
    /// Levels that set several keys.
    #[serde(default, rename = "level")]
    levels: Vec<Level>,
}

/// One level of a factor.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// What stands in the record.
    pub name: String,
    /// Keys of the scenario, dotted, and their values.
    #[serde(default)]
    pub set: Table,
}

/// Levels by factor; a factor that is not named is not restricted. One level or a list.
pub type Selection = BTreeMap<String, Value>;

/// The short variant: the same experiment, coarser.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    /// Independent runs of each point.
    pub replications: u64,
    /// What is different in the scenario.
    #[serde(default)]
    pub set: Table,
    /// Which levels.
    #[serde(default)]
    pub only: Selection,
}

/// One point of the cross product.
#[derive(Clone, Debug)]
pub struct Point {
    /// The level of each factor.
    pub levels: Vec<String>,
    /// What is simulated; its replication is to be set.
    pub scenario: Scenario,
}

/// All points, and how often each is simulated.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In the order of the cross product.
    pub points: Vec<Point>,
    /// Independent runs of each.
    pub replications: u64,
}

/// How a value is named in a record.
pub fn level_name(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The levels that a selection names for one factor.
pub fn selected(value: &Value) -> Vec<String> {
    match value {
        Value::Array(all) => all.iter().map(level_name).collect(),
        one => vec![level_name(one)],
    }
}

/// Whether `selection` lets a point with these levels in.
pub fn lets_in(factors: &[Factor], selection: &Selection, levels: &[String]) -> bool {
    let mut pairs = factors.iter().zip(levels);
    pairs.all(|(factor, level)| {
        let wanted = selection.get(&factor.name);
        wanted.is_none_or(|wanted| selected(wanted).contains(level))
    })
}

/// The one of that name.
pub fn factor<'a>(factors: &'a [Factor], name: &str) -> Result<&'a Factor, String> {
    let found = factors.iter().find(|factor| factor.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = factors.iter().map(|f| f.name.as_str()).collect();
        format!("there is no factor {name:?}, but {}", names.join(", "))
    })
}

/// Whether all factors and levels of a selection exist.
pub fn check_selection(factors: &[Factor], selection: &Selection) -> Result<(), String> {
    for (name, wanted) in selection {
        let levels = factor(factors, name)?.levels();
        let levels: Vec<String> = levels.into_iter().map(|level| level.name).collect();
        if let Some(none) = selected(wanted).iter().find(|name| !levels.contains(name)) {
            let levels = levels.join(", ");
            return Err(format!("{name} has no level {none:?}, but {levels}"));
        }
    }
    Ok(())
}

impl Factor {
    /// Its levels in order.
    pub fn levels(&self) -> Vec<Level> {
        let Some(key) = &self.key else {
            return self.levels.clone();
        };
        let level = |value: &Value| Level {
            name: level_name(value),
            set: Table::from_iter([(key.clone(), value.clone())]),
        };
        self.values.iter().map(level).collect()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let refuse = |why: &str| Err(format!("factor {:?}: {why}", self.name));
        if self.key.is_some() == self.values.is_empty()
            || self.key.is_some() != self.levels.is_empty()
        {
            return refuse("write key and values, or [[factor.level]]s");
        }
        let names: Vec<String> = self.levels().into_iter().map(|level| level.name).collect();
        if names
            .iter()
            .enumerate()
            .any(|(i, name)| names[..i].contains(name))
        {
            return refuse("two levels have the same name");
        }
        if names
            .iter()
            .any(|name| name.is_empty() || name.contains(char::is_control))
        {
            return refuse(
                "give each level a name of one line; a table of values needs a level with a name",
            );
        }
        Ok(())
    }
}

impl Plan {
    /// The points of `experiment`, or of its short variant; the error names the point.
    pub fn new(experiment: &Experiment, quick: bool) -> Result<Self, String> {
        let mut template = experiment.scenario.clone();
        for key in ["seed", "replication"] {
            if template.contains_key(key) {
                return Err(format!(
                    "scenario.{key}: the experiment decides that: leave it out"
                ));
            }
        }
        let only = match quick {
            true => experiment.quick.only.clone(),
            false => Selection::new(),
        };
        check_selection(&experiment.factors, &only).map_err(|why| format!("quick.only: {why}"))?;
        if quick {
            set_all(&mut template, &experiment.quick.set)
                .map_err(|why| format!("quick.set: {why}"))?;
        }
        let mut points = Vec::new();
        for levels in combinations(&experiment.factors)? {
            let names: Vec<String> = levels.iter().map(|level| level.name.clone()).collect();
            if lets_in(&experiment.factors, &only, &names) {
                let scenario = scenario(experiment, &template, &levels)
                    .map_err(|why| format!("at {}: {why}", place(&experiment.factors, &names)))?;
                points.push(Point {
                    levels: names,
                    scenario,
                });
            }
        }
        let replications = match quick {
            true => experiment.quick.replications,
            false => experiment.replications,
        };
        let mut plan = Plan {
            points,
            replications,
        };
        plan.repeat(replications)?;
        Ok(plan)
    }

    /// Takes another number of replications.
    pub fn repeat(&mut self, replications: u64) -> Result<(), String> {
        let runs = replications.saturating_mul(self.points.len() as u64);
        if runs > MOST_RUNS {
            return Err(format!(
                "more than {MOST_RUNS} runs: write fewer replications"
            ));
        }
        self.replications = replications;
        Ok(())
    }
}

/// `competitors=2 scheduler=dcs-spin`.
pub fn place(factors: &[Factor], levels: &[String]) -> String {
    place_in(factors, levels, |_| true)
}

/// The same of the factors that are `wanted` by name.
pub fn place_in(factors: &[Factor], levels: &[String], wanted: impl Fn(&String) -> bool) -> String {
    let pairs = factors.iter().zip(levels);
    let pairs: Vec<String> = pairs
        .filter(|(factor, _)| wanted(&factor.name))
        .map(|(factor, level)| format!("{}={level}", factor.name))
        .collect();
    pairs.join(" ")
}

/// The cross product of all levels; the last factor varies fastest.
pub fn combinations(factors: &[Factor]) -> Result<Vec<Vec<Level>>, String> {
    let mut all: Vec<Vec<Level>> = vec![Vec::new()];
    for factor in factors {
        let levels = factor.levels();
        if all.len() * levels.len() > MOST_POINTS {
            return Err(format!(
                "more than {MOST_POINTS} points: write fewer levels"
            ));
        }
        let longer = |head: &Vec<Level>| {
            let head = head.clone();
            let with = |level: &Level| [head.as_slice(), std::slice::from_ref(level)].concat();
            levels.iter().map(with).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    Ok(all)
}

fn set_all(scenario: &mut Table, set: &Table) -> Result<(), String> {
    set.iter()
        .try_for_each(|(key, value)| assign(scenario, key, value))
}

fn scenario(
    experiment: &Experiment,
    template: &Table,
    levels: &[Level],
) -> Result<Scenario, String> {
    let mut table = template.clone();
    for level in levels {
        set_all(&mut table, &level.set)?;
    }
    drop_empty_jobs(&mut table);
    let read = Scenario::deserialize(Value::Table(table));
    let mut scenario = read.map_err(|error| error.message().to_owned())?;
    scenario.seed = experiment.seed;
    scenario.check().map_err(|error| error.to_string())?;
    scenario.resolved().map_err(|error| error.to_string())?;
    Ok(scenario)
}

/// What `job` needs when nobody else is there, under the same policy; none where it never ends.
pub fn dedicated(scenario: &Scenario, job: &str) -> Option<Scenario> {
    let alone = scenario.jobs.iter().find(|it| it.name == job)?.clone();
    if alone.workload.endless() {
        return None;
    }
    let mut dedicated = Scenario {
        jobs: vec![alone],
        end: crate::scenario::End::All,
        replication: 0,
        ..scenario.clone()
    };
    dedicated.jobs[0].start = crate::units::Span::ZERO;
    Some(dedicated)
}

/// Names a scenario in a record: a hash of all that it says, replication included.
pub fn fingerprint<T: Serialize>(scenario: &T) -> u64 {
    let text = toml::to_string(scenario).expect("a scenario is a TOML table");
    cosched_model::fnv1a(text.as_bytes())
}
