// SPDX-License-Identifier: Apache-2.0
//! Claims as relations, judged from a record alone.
//!
//! A claim is about a quantity at each of the selected points: a metric of a job, or its ratio
//! to the metric at other levels (`against`). It says that the quantity lies within
//! bounds (at each point, or its largest or smallest), that it rises or falls along a factor, or
//! that it ascends through given levels of a factor. `tolerance` is a fraction: how much of a
//! difference does not count. `fair` says how far above its fair share a job may be: a rival that
//! is further above is none, and a point of the claim that is lies outside every bound, since its speed is taken from
//! others. `common` asks whether one setting suffices: the claim is judged where these
//! factors have the one combination of levels whose worst point is best. Nothing else is allowed for: a claim that
//! does not hold stays so, and its `finding` says why.

use super::sweep::{self, lets_in, level_name, selected, Plan, Selection};
use super::{check_metric, metrics, Experiment, Record};
use crate::statistics::Statistic;
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
    pub(super) fn check(&self, experiment: &Experiment, jobs: &[String]) -> Result<(), String> {
        check_metric(&self.metric, &self.job, jobs)?;
        let ascending = self
            .ascending
            .iter()
            .map(|(k, v)| (k.clone(), toml::Value::Array(v.clone())));
        let ascending: Selection = ascending.collect();
        for selection in [&self.at, &self.against, &ascending] {
            sweep::check_selection(experiment, selection)?;
        }
        for factor in self.rises_with.iter().chain(&self.falls_with) {
            experiment.factor(factor)?;
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
        let least = self.at_most.is_none() || self.at_least.is_some();
        if least && (self.fair.is_some() || !self.common.is_empty()) {
            return Err("fair and common are about at_most alone".into());
        }
        for factor in &self.common {
            experiment.factor(factor)?;
        }
        if !(0.0..1.0).contains(&self.tolerance) {
            return Err("tolerance: write a fraction from 0 to below 1".into());
        }
        Ok(())
    }

    /// The quantity at each selected point of `plan`; the error says what is missing.
    fn quantities(&self, judge: &Judge) -> Result<Vec<Quantity>, String> {
        let mut all = Vec::new();
        for point in &judge.plan.points {
            let levels = &point.levels;
            let wanted = lets_in(judge.experiment, &self.at, levels)
                && lets_in(judge.experiment, &judge.variant, levels);
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

/// What a verdict comes from.
struct Judge<'a> {
    experiment: &'a Experiment,
    plan: &'a Plan,
    record: &'a Record,
    /// The level of the sensitivity factor.
    variant: Selection,
}

impl Judge<'_> {
    fn value(&self, claim: &Claim, levels: &[String]) -> Result<f64, String> {
        self.metric(claim, &claim.metric, claim.statistic, levels)
    }

    fn is_fair(&self, claim: &Claim, levels: &[String]) -> Result<bool, String> {
        match claim.fair {
            Some(most) => Ok(self.metric(claim, "fairness", Statistic::Mean, levels)? <= most),
            None => Ok(true),
        }
    }

    fn metric(
        &self,
        claim: &Claim,
        name: &str,
        statistic: Statistic,
        levels: &[String],
    ) -> Result<f64, String> {
        let metric = metrics::named(name).unwrap_or(0);
        let values = self.record.values(levels, &claim.job, metric);
        let value = statistic.of(&values).filter(|value| value.is_finite());
        value.ok_or_else(|| {
            let place = sweep::place(self.experiment, levels);
            format!("no {name} of {} at {place}", claim.job)
        })
    }

    /// Those of `all` where the factors have the combination of levels whose largest quantity is least.
    fn common(&self, factors: &[String], all: Vec<Quantity>) -> Vec<Quantity> {
        let is_one = |(factor, _): &(&sweep::Factor, &String)| factors.contains(&factor.name);
        let setting = |quantity: &Quantity| -> Vec<String> {
            let pairs = self.experiment.factors.iter().zip(&quantity.levels);
            pairs
                .filter(is_one)
                .map(|(_, level)| level.clone())
                .collect()
        };
        let mut worst: BTreeMap<Vec<String>, f64> = BTreeMap::new();
        for quantity in &all {
            let largest = worst.entry(setting(quantity)).or_insert(f64::NEG_INFINITY);
            *largest = largest.max(quantity.value);
        }
        let best = worst.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let is_best = |quantity: &Quantity| best.as_ref().is_some_and(|b| b.0 == setting(quantity));
        all.into_iter().filter(is_best).collect()
    }

    /// `levels` with each combination of what `against` says instead.
    fn replaced(&self, against: &Selection, levels: &[String]) -> Vec<Vec<String>> {
        let mut all = vec![levels.to_vec()];
        for (i, factor) in self.experiment.factors.iter().enumerate() {
            let Some(instead) = against.get(&factor.name) else {
                continue;
            };
            let with = |levels: &Vec<String>, level: String| {
                let mut other = levels.clone();
                other[i] = level;
                other
            };
            all = all
                .iter()
                .flat_map(|levels| {
                    selected(instead)
                        .into_iter()
                        .map(|level| with(levels, level))
                        .collect::<Vec<_>>()
                })
                .collect();
        }
        all
    }

    /// Whether `ok` holds of all neighbours along `factor`, all else equal; false where none are.
    fn along(
        &self,
        factor: &str,
        only: Option<&[String]>,
        all: &[Quantity],
        ok: impl Fn(f64, f64) -> bool,
    ) -> bool {
        let Some(at) = self
            .experiment
            .factors
            .iter()
            .position(|f| f.name == factor)
        else {
            return false;
        };
        let names = || {
            self.experiment.factors[at]
                .levels()
                .into_iter()
                .map(|level| level.name)
                .collect()
        };
        let order: Vec<String> = only.map_or_else(names, <[String]>::to_vec);
        let mut groups: BTreeMap<Vec<String>, Vec<(usize, f64)>> = BTreeMap::new();
        for quantity in all {
            let mut rest = quantity.levels.clone();
            let level = rest.remove(at);
            if let Some(place) = order.iter().position(|name| *name == level) {
                groups
                    .entry(rest)
                    .or_default()
                    .push((place, quantity.value));
            }
        }
        let mut compared = 0;
        let right = groups.values_mut().all(|group| {
            group.sort_by_key(|(place, _)| *place);
            let whole = only.is_none() || group.len() == order.len();
            compared += group.len().saturating_sub(1);
            whole && group.windows(2).all(|pair| ok(pair[0].1, pair[1].1))
        });
        right && compared > 0
    }

    /// Levels of the factors that the claim leaves open.
    fn place(&self, claim: &Claim, levels: &[String]) -> String {
        let fixed = |name: &String| {
            let one = |s: &Selection| {
                s.get(name)
                    .is_some_and(|wanted| selected(wanted).len() == 1)
            };
            one(&claim.at) || one(&self.variant)
        };
        let pairs = self.experiment.factors.iter().zip(levels);
        let open = pairs.filter(|(factor, _)| !fixed(&factor.name));
        let words: Vec<String> = open
            .map(|(f, level)| format!("{}={level}", f.name))
            .collect();
        words.join(" ")
    }

    fn judge(&self, claim: &Claim) -> (Verdict, String) {
        match claim.quantities(self) {
            Err(why) => (Verdict::Unjudged, why),
            Ok(all) => {
                let verdict = match claim.holds(self, &all) {
                    true => Verdict::Holds,
                    false => Verdict::Fails,
                };
                (verdict, claim.evidence(self, &all))
            }
        }
    }
}

/// Judges one claim of `experiment` by the record of `plan`.
pub fn judge(experiment: &Experiment, plan: &Plan, record: &Record, claim: &Claim) -> Judged {
    let at = |variant: Selection| {
        let judge = Judge {
            experiment,
            plan,
            record,
            variant,
        };
        judge.judge(claim)
    };
    let varied = experiment
        .sensitivity
        .as_ref()
        .filter(|name| !claim.at.contains_key(*name));
    let Some(factor) = varied.and_then(|name| experiment.factor(name).ok()) else {
        let (verdict, evidence) = at(Selection::new());
        return Judged {
            verdict,
            evidence,
            elsewhere: Vec::new(),
        };
    };
    let variant = |level: &str| Selection::from([(factor.name.clone(), toml::Value::from(level))]);
    let there = |level: &sweep::Level| {
        plan.points
            .iter()
            .any(|point| lets_in(experiment, &variant(&level.name), &point.levels))
    };
    let mut levels = factor
        .levels()
        .into_iter()
        .filter(there)
        .map(|level| level.name);
    let first = levels.next().unwrap_or_default();
    let (verdict, evidence) = at(variant(&first));
    Judged {
        verdict,
        evidence,
        elsewhere: levels
            .map(|level| (level.clone(), at(variant(&level)).0))
            .collect(),
    }
}
