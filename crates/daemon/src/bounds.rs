// SPDX-License-Identifier: Apache-2.0
//! The administrator's policy: what a user may ask of the kernel body.
//!
//! Each refusal names the key that says so. Root is not bound. A rate is not
//! refused but kept: the kernel body denies the boosts beyond it.

use crate::config::{shown, Config};
use crate::refusal::Refusal;
use crate::settings::Key;
use cosched_policy::{raw, table::Unit, Resolved};

/// For all users.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    presets: Vec<String>,
    custom: bool,
    max_slice_ns: u64,
    boosts_per_second: u64,
    nr_jobs: u64,
    nr_ranks: u64,
}

/// What one user has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Holdings {
    /// Jobs.
    pub nr_jobs: u64,
    /// Tasks in them.
    pub nr_ranks: u64,
}

impl Bounds {
    /// As configured.
    pub fn of(config: &Config) -> Self {
        Bounds {
            presets: config.names(Key::Presets).to_vec(),
            custom: config.switch(Key::Custom),
            max_slice_ns: config.duration(Key::MaxSlice),
            boosts_per_second: config.count(Key::BoostsPerSecond),
            nr_jobs: config.count(Key::Jobs),
            nr_ranks: config.count(Key::Ranks),
        }
    }

    /// May @uid ask for the preset of that name?
    pub fn preset(&self, uid: u32, name: &str) -> Result<(), Refusal> {
        let fits = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        };
        if uid == 0 || self.presets.iter().any(fits) {
            return Ok(());
        }
        let allowed = self.presets.join(", ");
        Err(Refusal::refused(format!(
            "preset {name:?} is not for users: users.presets allows {allowed}: \
             take one of these, or ask your administrator"
        )))
    }

    /// May @uid bring a preset file?
    pub fn custom(&self, uid: u32) -> Result<(), Refusal> {
        if uid == 0 || self.custom {
            return Ok(());
        }
        Err(Refusal::refused(
            "a preset file of your own is not for users: users.custom is false: \
             take a preset by its name, or ask your administrator",
        ))
    }

    /// May @uid ask for turns as long as those of @policy?
    pub fn slices(&self, uid: u32, policy: &Resolved) -> Result<(), Refusal> {
        let longest = longest_slice(policy);
        match longest {
            Some((key, ns)) if uid != 0 && ns > self.max_slice_ns => {
                let (ns, most) = (shown(ns), shown(self.max_slice_ns));
                Err(Refusal::refused(format!(
                    "{}: {key} = {ns} is longer than users may ask: users.max_slice is {most}: \
                     write at most that, or ask your administrator",
                    policy.name
                )))
            }
            _ => Ok(()),
        }
    }

    /// May @uid, who has @has, begin another job?
    pub fn jobs(&self, uid: u32, has: Holdings) -> Result<(), Refusal> {
        if uid == 0 || has.nr_jobs < self.nr_jobs {
            return Ok(());
        }
        Err(Refusal::refused(format!(
            "uid {uid} has {} jobs: users.jobs is {}: end one (cosched jobs)",
            has.nr_jobs, self.nr_jobs
        )))
    }

    /// May @uid, who has @has, have so many tasks @more?
    pub fn ranks(&self, uid: u32, has: Holdings, more: u64) -> Result<(), Refusal> {
        let would = has.nr_ranks.saturating_add(more);
        if uid == 0 || would <= self.nr_ranks {
            return Ok(());
        }
        Err(Refusal::refused(format!(
            "uid {uid} would have {would} tasks in its jobs: users.ranks is {}: \
             end a job (cosched jobs), or ask your administrator",
            self.nr_ranks
        )))
    }

    /// Least time between two boosts of a job of @uid; 0 = no limit.
    pub fn boost_gap_ns(&self, uid: u32) -> u64 {
        match self.boosts_per_second {
            0 => 0,
            _ if uid == 0 => 0,
            rate => 1_000_000_000 / rate,
        }
    }
}

/// The longest turn that @policy can ask of the kernel body, and where.
fn longest_slice(policy: &Resolved) -> Option<(String, u64)> {
    let of_turns = [
        (raw::COS_Q_ARRIVAL, &["slice"][..]),
        (raw::COS_Q_PERIODIC, &["slice"]),
        (raw::COS_Q_QUANTUM, &["slice", "max"]),
    ];
    let turns = of_turns.into_iter().flat_map(|(question, keys)| {
        let taken = &policy.taken[question as usize];
        let args = taken.choice.answer.args.iter();
        args.filter(move |arg| keys.contains(&arg.key) && arg.unit == Unit::Duration)
            .map(move |arg| {
                let key = format!("{}.{}", taken.question.word, arg.key);
                (key, taken.choice.args[arg.at])
            })
    });
    turns.max_by_key(|(_, ns)| *ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;
    use cosched_policy::{resolve, Body, Preset};

    fn bounds() -> Bounds {
        let flags = vec!["users.jobs=2".to_owned(), "users.ranks=10".to_owned()];
        let config = Config::read(&Sources {
            file: Some("/dev/null".into()),
            flags,
            ..Sources::default()
        });
        Bounds::of(&config.unwrap())
    }

    #[test]
    fn each_refusal_names_its_key_and_root_is_not_bound() {
        let bounds = bounds();
        let has = Holdings {
            nr_jobs: 2,
            nr_ranks: 9,
        };
        let ask = |uid| {
            [
                ("users.presets", bounds.preset(uid, "staticq")),
                ("users.custom", bounds.custom(uid)),
                ("users.jobs", bounds.jobs(uid, has)),
                ("users.ranks", bounds.ranks(uid, has, 2)),
            ]
        };
        for (key, answer) in ask(1000) {
            let line = answer.unwrap_err().line;
            assert!(line.contains(key) && line.lines().count() == 1, "{line}");
        }
        assert!(ask(0).iter().all(|(_, answer)| answer.is_ok()));
        assert!(bounds.preset(1000, "auto").is_ok());
        assert!(bounds.preset(1000, "dcs-spin").is_ok());
        assert!(bounds.preset(1000, "dcs").is_err());
        assert!(bounds.ranks(1000, has, 1).is_ok());
        assert_eq!(bounds.boost_gap_ns(0), 0);
        assert_eq!(bounds.boost_gap_ns(1000), 100_000);
    }

    #[test]
    fn a_turn_beyond_the_bound_is_refused_wherever_it_is_asked() {
        let preset = cosched_policy::load("uncoordinated").unwrap().to_toml();
        for (from, to, key) in [
            (
                "quantum = \"local\"",
                "quantum = { answer = \"fixed\", slice = \"11ms\" }",
                "quantum.slice",
            ),
            (
                "quantum = \"local\"",
                "quantum = { answer = \"match\", max = \"11ms\" }",
                "quantum.max",
            ),
            (
                "arrival = \"none\"",
                "arrival = { answer = \"boost\", slice = \"11ms\" }",
                "arrival.slice",
            ),
        ] {
            let text = preset.replace(from, to);
            let preset = Preset::parse("test", &text).unwrap();
            let policy = resolve(&preset, &[Body::Shim, Body::Kernel]).unwrap();
            let line = bounds().slices(1000, &policy).unwrap_err().line;
            assert!(
                line.contains(key) && line.contains("users.max_slice"),
                "{line}"
            );
            assert!(bounds().slices(0, &policy).is_ok());
        }
    }
}
