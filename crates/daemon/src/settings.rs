// SPDX-License-Identifier: Apache-2.0
//! What can be configured: each key once, with its unit, default and meaning.
//!
//! The file, the environment, `--set`, `coschedd --check-config`, `cosched status
//! --config` and the reference are all made of this table.

use cosched_policy::duration;
use toml::Value as Toml;

/// The keys, in the order of [`TABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// `control.socket`
    Socket,
    /// `scheduler.observe_only`
    ObserveOnly,
    /// `scheduler.slice`
    Slice,
    /// `scheduler.max_debt`
    MaxDebt,
    /// `scheduler.credit`
    Credit,
    /// `scheduler.granularity`
    Granularity,
    /// `scheduler.kick_gap`
    KickGap,
    /// `scheduler.balance`
    Balance,
    /// `users.presets`
    Presets,
    /// `users.custom`
    Custom,
    /// `users.max_slice`
    MaxSlice,
    /// `users.boosts_per_second`
    BoostsPerSecond,
    /// `users.jobs`
    Jobs,
    /// `users.ranks`
    Ranks,
}

/// In what a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `"3ms"`, in ns, between two bounds.
    Duration(u64, u64),
    /// `8`, at most so many.
    Count(u64),
    /// `true` or `false`.
    Switch,
    /// `["auto", "dcs-*"]`
    Names,
    /// `"/run/cosched/control.sock"`
    Path,
}

/// One key.
#[derive(Debug)]
pub struct Setting {
    /// Section and name in the file.
    pub key: &'static str,
    /// The variable that is read.
    pub variable: &'static str,
    /// How it is written.
    pub kind: Kind,
    /// As the file would write it.
    pub default: &'static str,
    /// What it does.
    pub meaning: &'static str,
}

/// A value that was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// In ns.
    Duration(u64),
    /// A number.
    Count(u64),
    /// On or off.
    Switch(bool),
    /// Words.
    Names(Vec<String>),
    /// A file.
    Path(String),
}

const US: u64 = 1_000;
const S: u64 = 1_000_000_000;
const TURN: Kind = Kind::Duration(100 * US, S / 10);
const DEBT: Kind = Kind::Duration(0, 60 * S);
const GAP: Kind = Kind::Duration(0, S);

macro_rules! settings {
    ($($key:literal $variable:literal $kind:expr, $default:literal, $meaning:literal;)*) => {
        &[$(Setting { key: $key, variable: $variable, kind: $kind, default: $default, meaning: $meaning }),*]
    };
}

/// By [`Key`].
pub static TABLE: &[Setting] = settings![
    "control.socket" "COSCHED_SOCKET" Kind::Path, "\"/run/cosched/control.sock\"",
        "where coschedd listens";
    "scheduler.observe_only" "COSCHEDD_OBSERVE_ONLY" Kind::Switch, "false",
        "see and count, and leave scheduling alone";
    "scheduler.slice" "COSCHEDD_SLICE" TURN, "\"3ms\"",
        "a task's turn on its CPU, where no preset says otherwise";
    "scheduler.max_debt" "COSCHEDD_MAX_DEBT" DEBT, "\"20ms\"",
        "so far ahead of its fair share may a boosted task be";
    "scheduler.credit" "COSCHEDD_CREDIT" DEBT, "\"3ms\"",
        "so much of what it is owed a task keeps that sleeps or yields";
    "scheduler.granularity" "COSCHEDD_GRANULARITY" GAP, "\"1ms\"",
        "who wakes preempts who is so far ahead; where a socket or pipe woke it, who has run for so long too";
    "scheduler.kick_gap" "COSCHEDD_KICK_GAP" GAP, "\"50us\"",
        "least time between two boosts that preempt on one CPU";
    "scheduler.balance" "COSCHEDD_BALANCE" GAP, "\"4ms\"",
        "least time between two looks of a CPU for a longer queue";
    "users.presets" "COSCHEDD_USERS_PRESETS" Kind::Names, "[\"auto\", \"dcs-*\"]",
        "presets that users may ask for; a final * stands for any ending";
    "users.custom" "COSCHEDD_USERS_CUSTOM" Kind::Switch, "false",
        "users may bring preset files of their own";
    "users.max_slice" "COSCHEDD_USERS_MAX_SLICE" TURN, "\"10ms\"",
        "the longest turn that a user's preset may ask for";
    "users.boosts_per_second" "COSCHEDD_USERS_BOOSTS_PER_SECOND" Kind::Count(1_000_000), "10000",
        "of each job of a user; further ones are denied; 0 = no limit";
    "users.jobs" "COSCHEDD_USERS_JOBS" Kind::Count(63), "8",
        "that a user may have at once";
    "users.ranks" "COSCHEDD_USERS_RANKS" Kind::Count(1_000_000), "1024",
        "tasks in all jobs of a user";
];

impl Key {
    /// Its line of the table.
    pub fn setting(self) -> &'static Setting {
        &TABLE[self as usize]
    }
}

impl Setting {
    /// What @value means; else what is wrong with it and what to write.
    pub fn read(&self, value: &Toml) -> Result<Value, String> {
        match (self.kind, value) {
            (Kind::Duration(least, most), Toml::String(text)) => {
                let ns = duration::parse(text).ok_or_else(|| {
                    format!(
                        "{text:?} is no length of time: write one with its unit, {}",
                        self.default
                    )
                })?;
                if (least..=most).contains(&ns) {
                    return Ok(Value::Duration(ns));
                }
                let (least, most) = (duration::show(least), duration::show(most));
                Err(format!(
                    "{text:?} is beyond its bounds: write a time from {least} to {most}"
                ))
            }
            (Kind::Duration(..), Toml::Integer(n)) => Err(format!(
                "{n} has no unit: write one, \"{n}us\" or \"{n}ms\""
            )),
            (Kind::Count(most), Toml::Integer(n)) => match u64::try_from(*n) {
                Ok(n) if n <= most => Ok(Value::Count(n)),
                _ => Err(format!(
                    "{n} is beyond its bounds: write a number from 0 to {most}"
                )),
            },
            (Kind::Switch, Toml::Boolean(on)) => Ok(Value::Switch(*on)),
            (Kind::Path, Toml::String(path)) if path.starts_with('/') => {
                Ok(Value::Path(path.clone()))
            }
            (Kind::Names, Toml::Array(names)) => {
                let names = names.iter().map(|name| Some(name.as_str()?.to_owned()));
                let names = names
                    .collect::<Option<_>>()
                    .ok_or_else(|| self.wrong_kind(value))?;
                Ok(Value::Names(names))
            }
            _ => Err(self.wrong_kind(value)),
        }
    }

    /// As [`Setting::read`], of a flag or a variable: text, and lists with commas.
    pub fn read_text(&self, text: &str) -> Result<Value, String> {
        let word = || Toml::String(text.to_owned());
        let toml = match self.kind {
            Kind::Duration(..) if text.bytes().all(|c| c.is_ascii_digit()) => {
                text.parse().map_or_else(|_| word(), Toml::Integer)
            }
            Kind::Duration(..) | Kind::Path => word(),
            Kind::Count(_) => text.parse().map_or_else(|_| word(), Toml::Integer),
            Kind::Switch => text.parse().map_or_else(|_| word(), Toml::Boolean),
            Kind::Names => {
                let words = text.split(',').filter(|word| !word.is_empty());
                Toml::Array(
                    words
                        .map(|word| Toml::String(word.trim().to_owned()))
                        .collect(),
                )
            }
        };
        self.read(&toml)
    }

    fn wrong_kind(&self, value: &Toml) -> String {
        let wanted = match self.kind {
            Kind::Duration(..) => "a length of time with its unit",
            Kind::Count(_) => "a number",
            Kind::Switch => "true or false",
            Kind::Names => "a list of names",
            Kind::Path => "an absolute path",
        };
        let value = value.to_string();
        let value = value.lines().next().unwrap_or_default();
        format!("{value} is not {wanted}: write one as {}", self.default)
    }
}

impl Value {
    /// As the file writes it.
    pub fn show(&self) -> String {
        match self {
            Value::Duration(ns) => format!("{:?}", duration::show(*ns)),
            Value::Count(n) => n.to_string(),
            Value::Switch(on) => on.to_string(),
            Value::Names(names) => format!("{names:?}"),
            Value::Path(path) => format!("{path:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_lines_stand_in_one_order_and_defaults_are_values() {
        assert_eq!(Key::Ranks as usize + 1, TABLE.len());
        assert_eq!(Key::Slice.setting().key, "scheduler.slice");
        assert_eq!(Key::Presets.setting().key, "users.presets");
        for setting in TABLE {
            let toml: Toml = format!("x = {}", setting.default)
                .parse::<toml::Table>()
                .map(|table| table["x"].clone())
                .unwrap();
            let value = setting.read(&toml).unwrap();
            assert_eq!(value.show(), setting.default, "{}", setting.key);
        }
    }

    #[test]
    fn the_reference_has_every_key_as_it_is() {
        let reference = include_str!("../../../docs/reference.md");
        for line in TABLE {
            let (key, variable) = (line.key, line.variable);
            let row = format!(
                "| `{key}` | `{variable}` | `{}` | {} |",
                line.default, line.meaning
            );
            assert!(reference.contains(&row), "docs/reference.md lacks: {row}");
        }
    }

    #[test]
    fn text_of_a_flag_reads_as_the_file_does() {
        let read = |key: Key, text: &str| key.setting().read_text(text);
        assert_eq!(read(Key::Slice, "2ms"), Ok(Value::Duration(2_000_000)));
        assert_eq!(read(Key::Jobs, "3"), Ok(Value::Count(3)));
        assert_eq!(read(Key::Custom, "true"), Ok(Value::Switch(true)));
        let names = Value::Names(vec!["auto".into(), "dcs-*".into()]);
        assert_eq!(read(Key::Presets, "auto, dcs-*"), Ok(names));
        for (key, wrong) in [
            (Key::Slice, "2"),
            (Key::Slice, "1h"),
            (Key::Jobs, "-1"),
            (Key::Custom, "yes"),
            (Key::Socket, "relative"),
        ] {
            assert!(read(key, wrong).is_err(), "{wrong}");
        }
    }
}
