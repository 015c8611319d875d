// SPDX-License-Identifier: Apache-2.0
//! Claims as relations, judged from a record alone.
//!
//! A claim is about a quantity at each of the selected points: a metric of a job, or its ratio
//! to the metric at other levels (`against`). It says that the quantity lies within
//! bounds (at each point, or its largest or smallest), that it rises or falls along a factor, or
//! that it ascends through given levels of a factor. `tolerance` is a fraction: how much of a
//! difference does not count. `at_some` and `at_none` ask whether there is a combination of
//! levels at which all that holds, and name those there are. `fair` says how far above its fair share a job may be: a rival that
//! is further above is none, and a point of the claim that is lies outside every bound, since its speed is taken from
//! others. `common` asks whether one setting suffices: the claim is judged where these
//! factors have the one combination of levels whose worst point is best. Nothing else is allowed for: a claim that
//! does not hold stays so, and its `finding` says why.

mod judge;

pub(super) use judge::at_points;
pub use judge::{judge, Values};

use super::sweep::{self, lets_in, level_name, Selection};
use super::{check_metric, Factor};
use crate::statistics::Statistic;
use judge::Judge;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A claim, as the experiment says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Paper and number, like "S1.2".
    pub id: String,
    /// This part of it, in words.
    pub text: String,
    /// The experiment fails where it does not hold.
    #[serde(default)]
    pub must_hold: bool,
    /// Whose metric.
    pub job: String,
    /// Which.
    pub metric: String,
    /// What of all replications.
    #[serde(default)]
    pub statistic: Statistic,
    /// At which points.
    #[serde(default, rename = "where")]
    pub at: Selection,
    /// The quantity is the ratio to the metric at these levels; of several, to each.
    #[serde(default)]
    pub against: Selection,
    /// Of all points: which must be within bounds.
    #[serde(default)]
    pub take: Take,
    /// The largest F that counts as fair: of rivals and of the points themselves; with `at_most`.
    #[serde(default)]
    pub fair: Option<f64>,
    /// Only where these factors have the levels that suit all points best; with `at_most`.
    #[serde(default)]
    pub common: Vec<String>,
    /// Lower bound.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// Upper bound.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// The quantity rises along this factor.
    #[serde(default)]
    pub rises_with: Option<String>,
    /// The quantity falls along this factor.
    #[serde(default)]
    pub falls_with: Option<String>,
    /// The quantity ascends through these levels of one factor.
    #[serde(default)]
    pub ascending: BTreeMap<String, Vec<toml::Value>>,
    /// A fraction that does not count.
    #[serde(default)]
    pub tolerance: f64,
    /// The relation holds at one combination of levels of these factors, or at more.
    #[serde(default)]
    pub at_some: Vec<String>,
    /// The relation holds at no combination of levels of these factors.
    #[serde(default)]
    pub at_none: Vec<String>,
    /// Why it does not hold, or in which regime it does.
    #[serde(default)]
    pub finding: Option<String>,
}

/// Which of the points must be within bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    /// All.
    #[default]
    Each,
    /// The one with the largest quantity ("up to").
    Max,
    /// The one with the smallest quantity ("down to").
    Min,
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Holds,
    /// It does not.
    Fails,
    /// A value is missing.
    Unjudged,
}

/// A verdict and what it comes from.
#[derive(Clone, Debug)]
pub struct Judged {
    /// At the first level of the sensitivity factor.
    pub verdict: Verdict,
    /// In numbers.
    pub evidence: String,
    /// At the other levels.
    pub elsewhere: Vec<(String, Verdict)>,
}

/// A quantity and where it was.
struct Quantity {
    levels: Vec<String>,
    value: f64,
}

impl Claim {
    pub(super) fn check(&self, factors: &[Factor], jobs: &[String]) -> Result<(), String> {
        check_metric(&self.metric, &self.job, jobs)?;
        let ascending = self
            .ascending
            .iter()
            .map(|(k, v)| (k.clone(), toml::Value::Array(v.clone())));
        let ascending: Selection = ascending.collect();
        for selection in [&self.at, &self.against, &ascending] {
            sweep::check_selection(factors, selection)?;
        }
        let along = self.rises_with.iter().chain(&self.falls_with);
        for factor in along.chain(&self.at_some).chain(&self.at_none) {
            sweep::factor(factors, factor)?;
        }
        if !self.at_some.is_empty() && !self.at_none.is_empty() {
            return Err("write one of: at_some, at_none".into());
        }
        let bounds = self.at_least.is_some() || self.at_most.is_some();
        let relations = [
            bounds,
            self.rises_with.is_some(),
            self.falls_with.is_some(),
            !self.ascending.is_empty(),
        ];
        if relations.iter().filter(|is| **is).count() != 1 {
            return Err(
                "write one of: at_least and at_most, rises_with, falls_with, ascending".into(),
            );
        }
        if self.ascending.len() > 1 || self.ascending.values().any(|levels| levels.len() < 2) {
            return Err("ascending: write one factor with two levels or more".into());
        }
        if self.take != Take::Each && !bounds {
            return Err("take is about at_least and at_most".into());
        }
        let most = self.at_most.is_some() && self.at_least.is_none();
        let worst = self.at_least.is_some() && self.at_most.is_none() && self.take == Take::Max;
        if !(most || worst) && (self.fair.is_some() || !self.common.is_empty()) {
            return Err("fair and common are about at_most alone, or at_least of take max".into());
        }
        for factor in &self.common {
            sweep::factor(factors, factor)?;
        }
        let mut bounds = self.at_least.iter().chain(&self.at_most).chain(&self.fair);
        if !bounds.all(|bound| bound.is_finite()) {
            return Err("at_least, at_most, fair: write a number".into());
        }
        if !(0.0..1.0).contains(&self.tolerance) {
            return Err("tolerance: write a fraction from 0 to below 1".into());
        }
        Ok(())
    }

    /// The quantity at each selected point of `plan`; the error says what is missing.
    fn quantities(&self, judge: &Judge) -> Result<Vec<Quantity>, String> {
        let mut all = Vec::new();
        for levels in judge.points {
            let wanted = lets_in(judge.factors, &self.at, levels)
                && lets_in(judge.factors, &judge.variant, levels);
            if !wanted {
                continue;
            }
            let values = self.values(judge, levels)?;
            all.extend(values.into_iter().map(|value| Quantity {
                levels: levels.clone(),
                value,
            }));
        }
        if all.is_empty() {
            return Err("no point is selected".into());
        }
        Ok(judge.common(&self.common, all))
    }

    /// The quantity at one point: one, or one for each fair rival; infinite where it is itself unfair.
    fn values(&self, judge: &Judge, levels: &[String]) -> Result<Vec<f64>, String> {
        let value = judge.value(self, levels)?;
        if !judge.is_fair(self, levels)? {
            return Ok(vec![f64::INFINITY]);
        }
        if self.against.is_empty() {
            return Ok(vec![value]);
        }
        let mut ratios = Vec::new();
        for other in judge.replaced(&self.against, levels) {
            if other != levels && judge.is_fair(self, &other)? {
                ratios.push(value / judge.value(self, &other)?);
            }
        }
        Ok(ratios)
    }

    fn holds(&self, judge: &Judge, all: &[Quantity]) -> bool {
        if let Some(factor) = &self.rises_with {
            return judge.along(factor, None, all, |a, b| b >= a * (1.0 - self.tolerance));
        }
        if let Some(factor) = &self.falls_with {
            return judge.along(factor, None, all, |a, b| b <= a * (1.0 + self.tolerance));
        }
        if let Some((factor, levels)) = self.ascending.first_key_value() {
            let levels: Vec<String> = levels.iter().map(level_name).collect();
            return judge.along(factor, Some(&levels), all, |a, b| {
                a <= b * (1.0 + self.tolerance)
            });
        }
        let within = |value: f64| {
            let low = self
                .at_least
                .is_none_or(|least| value >= least * (1.0 - self.tolerance));
            low && self
                .at_most
                .is_none_or(|most| value <= most * (1.0 + self.tolerance))
        };
        let values = all.iter().map(|q| q.value);
        match self.take {
            Take::Each => values.into_iter().all(within),
            Take::Max => values.max_by(f64::total_cmp).is_some_and(within),
            Take::Min => values.min_by(f64::total_cmp).is_some_and(within),
        }
    }

    /// In numbers.
    fn evidence(&self, judge: &Judge, all: &[Quantity]) -> String {
        let least = all.iter().min_by(|a, b| a.value.total_cmp(&b.value));
        let most = all.iter().max_by(|a, b| a.value.total_cmp(&b.value));
        let (Some(least), Some(most)) = (least, most) else {
            return String::new();
        };
        let of = if self.against.is_empty() {
            ""
        } else {
            "ratio of "
        };
        let show = |q: &Quantity| match q.value.is_finite() {
            true => format!("{} ({})", short(q.value), judge.place(self, &q.levels)),
            false => format!("more than its share ({})", judge.place(self, &q.levels)),
        };
        match least.value == most.value {
            true => format!("{of}{}: {}", self.metric, show(least)),
            false => format!("{of}{}: {} to {}", self.metric, show(least), show(most)),
        }
    }
}

/// Three digits that mean something.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.01 || v == 0.0 => format!("{value:.3}"),
        _ => format!("{value:.2e}"),
    }
}
