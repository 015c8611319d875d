// SPDX-License-Identifier: Apache-2.0
//! What a claim is judged by: values of a record at the points of a plan, and their neighbours.
//!
//! It knows no relation: [`Claim`] says which must hold.

use super::{Claim, Judged, Quantity, Verdict};
use crate::experiment::sweep::{self, lets_in, selected, Factor, Plan, Selection};
use crate::experiment::{metrics, Experiment, Record};
use crate::statistics::Statistic;
use std::collections::BTreeMap;

/// A record: what was simulated, or measured.
pub trait Values {
    /// The values of one metric of one job at one point, of all replications.
    fn of(&self, levels: &[String], job: &str, metric: &str) -> Vec<f64>;
}

impl Values for Record {
    fn of(&self, levels: &[String], job: &str, metric: &str) -> Vec<f64> {
        self.values(levels, job, metrics::named(metric).unwrap_or(0))
    }
}

/// What a verdict comes from.
pub(super) struct Judge<'a> {
    pub factors: &'a [Factor],
    /// Their levels at each point.
    pub points: &'a [Vec<String>],
    pub values: &'a dyn Values,
    /// The level of the sensitivity factor.
    pub variant: Selection,
}

impl Judge<'_> {
    pub fn value(&self, claim: &Claim, levels: &[String]) -> Result<f64, String> {
        self.metric(claim, &claim.metric, claim.statistic, levels)
    }

    pub fn is_fair(&self, claim: &Claim, levels: &[String]) -> Result<bool, String> {
        match claim.fair {
            Some(most) => Ok(self.metric(claim, "fairness", Statistic::Mean, levels)? <= most),
            None => Ok(true),
        }
    }

    pub fn metric(
        &self,
        claim: &Claim,
        name: &str,
        statistic: Statistic,
        levels: &[String],
    ) -> Result<f64, String> {
        let values = self.values.of(levels, &claim.job, name);
        let value = statistic.of(&values).filter(|value| value.is_finite());
        value.ok_or_else(|| {
            let place = sweep::place(self.factors, levels);
            format!("no {name} of {} at {place}", claim.job)
        })
    }

    /// Those of `all` where the factors have the combination of levels whose largest quantity is least.
    pub fn common(&self, factors: &[String], all: Vec<Quantity>) -> Vec<Quantity> {
        let is_one = |(factor, _): &(&sweep::Factor, &String)| factors.contains(&factor.name);
        let setting = |quantity: &Quantity| -> Vec<String> {
            let pairs = self.factors.iter().zip(&quantity.levels);
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
    pub fn replaced(&self, against: &Selection, levels: &[String]) -> Vec<Vec<String>> {
        let mut all = vec![levels.to_vec()];
        for (i, factor) in self.factors.iter().enumerate() {
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
    pub fn along(
        &self,
        factor: &str,
        only: Option<&[String]>,
        all: &[Quantity],
        ok: impl Fn(f64, f64) -> bool,
    ) -> bool {
        let Some(at) = self.factors.iter().position(|f| f.name == factor) else {
            return false;
        };
        let names = || {
            self.factors[at]
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
    pub fn place(&self, claim: &Claim, levels: &[String]) -> String {
        let fixed = |name: &String| {
            let one = |s: &Selection| {
                s.get(name)
                    .is_some_and(|wanted| selected(wanted).len() == 1)
            };
            one(&claim.at) || one(&self.variant)
        };
        sweep::place_in(self.factors, levels, |name| !fixed(name))
    }

    fn judge(&self, claim: &Claim) -> (Verdict, String) {
        let all = match claim.quantities(self) {
            Err(why) => return (Verdict::Unjudged, why),
            Ok(all) => all,
        };
        let (holds, evidence) = match claim.at_some.is_empty() && claim.at_none.is_empty() {
            true => (claim.holds(self, &all), claim.evidence(self, &all)),
            false => self.by_cell(claim, all),
        };
        let verdict = match holds {
            true => Verdict::Holds,
            false => Verdict::Fails,
        };
        (verdict, evidence)
    }

    /// Whether the relation holds at some combination, or at none, and at which it does.
    fn by_cell(&self, claim: &Claim, all: Vec<Quantity>) -> (bool, String) {
        let mut cells: Vec<(String, Vec<Quantity>)> = Vec::new();
        for quantity in all {
            let name = self.cell(claim, &quantity.levels);
            match cells.iter_mut().find(|(other, _)| *other == name) {
                Some((_, there)) => there.push(quantity),
                None => cells.push((name, vec![quantity])),
            }
        }
        let those = cells
            .iter()
            .filter(|(_, there)| claim.holds(self, there))
            .map(|(name, _)| name.as_str());
        let those: Vec<&str> = those.collect();
        let evidence = match those.len() {
            0 => format!("{}: so at none of {}", claim.metric, cells.len()),
            n => format!(
                "{}: so at {n} of {}: {}",
                claim.metric,
                cells.len(),
                those.join(", ")
            ),
        };
        (those.is_empty() != claim.at_none.is_empty(), evidence)
    }

    /// The levels of the factors of `at_some` or `at_none`.
    fn cell(&self, claim: &Claim, levels: &[String]) -> String {
        sweep::place_in(self.factors, levels, |name| {
            claim.at_some.contains(name) || claim.at_none.contains(name)
        })
    }
}

/// Judges one claim by the values at `points`; nothing is varied that the source leaves unstated.
pub fn at_points(
    factors: &[Factor],
    points: &[Vec<String>],
    values: &dyn Values,
    claim: &Claim,
) -> Judged {
    let judge = Judge {
        factors,
        points,
        values,
        variant: Selection::new(),
    };
    let (verdict, evidence) = judge.judge(claim);
    Judged {
        verdict,
        evidence,
        elsewhere: Vec::new(),
    }
}

/// Judges one claim of `experiment` by the record of `plan`.
pub fn judge(experiment: &Experiment, plan: &Plan, record: &Record, claim: &Claim) -> Judged {
    let points: Vec<Vec<String>> = plan.points.iter().map(|p| p.levels.clone()).collect();
    let varied = experiment
        .sensitivity
        .as_ref()
        .filter(|name| !claim.at.contains_key(*name));
    let Some(factor) = varied.and_then(|name| experiment.factor(name).ok()) else {
        return at_points(&experiment.factors, &points, record, claim);
    };
    let at = |variant: Selection| {
        let judge = Judge {
            factors: &experiment.factors,
            points: &points,
            values: record,
            variant,
        };
        judge.judge(claim)
    };
    let variant = |level: &str| Selection::from([(factor.name.clone(), toml::Value::from(level))]);
    let there = |level: &sweep::Level| {
        let here =
            |levels: &Vec<String>| lets_in(&experiment.factors, &variant(&level.name), levels);
        points.iter().any(here)
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
