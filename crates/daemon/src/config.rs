// SPDX-License-Identifier: Apache-2.0
//! The configuration: a flag goes before the environment, that before the file,
//! that before the default, and each value remembers where it came from.
//!
//! Nothing is ignored: an unknown key, a number without its unit and values that
//! contradict each other are refused in a line that says where and what to write.

use crate::settings::{Key, Value, TABLE};
use cosched_control::document;
use cosched_policy::{duration, place_of};
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use thiserror::Error;
use toml::Table;

/// Read where no flag names another.
pub const FILE: &str = "/etc/cosched/coschedd.toml";
/// No configuration is longer; a path may name anything.
const MAX_BYTES: usize = 64 << 10;

/// One line: what is wrong, where, what to do.
#[derive(Debug, Error, PartialEq)]
#[error("{0}")]
pub struct Error(String);

/// What stands above the file.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file; nothing: [`FILE`], if it is there.
    pub file: Option<PathBuf>,
    /// `KEY=VALUE` of flags.
    pub flags: Vec<String>,
    /// The environment.
    pub environment: Vec<(String, String)>,
}

/// All values.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    values: Vec<(Value, String)>,
}

/// What the programs in the kernel are given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheduling {
    /// Of a turn.
    pub slice_ns: u64,
    /// A boosted task may be so far ahead.
    pub max_debt_ns: u64,
    /// A sleeper or yielder keeps so much of what it is owed.
    pub credit_ns: u64,
    /// Who wakes preempts from so far behind.
    pub granularity_ns: u64,
    /// Least time between two boosting kicks of a CPU.
    pub kick_gap_ns: u64,
    /// Least time between two looks of a CPU for a longer queue.
    pub balance_ns: u64,
}

impl Config {
    /// From everywhere.
    pub fn read(sources: &Sources) -> Result<Self, Error> {
        let mut values = Vec::with_capacity(TABLE.len());
        let file = read_file(sources.file.as_deref())?;
        for setting in TABLE {
            let default = setting.read_text(&bare(setting.default));
            let default = default.map_err(|why| Error(format!("{}: {why}", setting.key)))?;
            values.push((default, "default".to_owned()));
        }
        let mut config = Config { values };
        if let Some((path, text)) = file {
            config.take_file(&path, &text)?;
        }
        config.take_environment(&sources.environment)?;
        config.take_flags(&sources.flags)?;
        config.contradictions()?;
        Ok(config)
    }

    fn take_file(&mut self, path: &Path, text: &str) -> Result<(), Error> {
        let origin = path.display().to_string();
        let table: Table = text.parse().map_err(|error| {
            let (line, why) = place_of(text, &error);
            Error(format!("{origin}:{line}: not TOML: {why}"))
        })?;
        for (section, inner) in &table {
            let toml::Value::Table(inner) = inner else {
                let line = format!(
                    "{origin}: {section}: stands in no section: {}",
                    known(section)
                );
                return Err(Error(line));
            };
            for (name, value) in inner {
                let key = format!("{section}.{name}");
                let at = place(&key).map_err(|line| Error(format!("{origin}: {line}")))?;
                let value = TABLE[at].read(value);
                let value = value.map_err(|why| Error(format!("{origin}: {key}: {why}")))?;
                self.values[at] = (value, origin.clone());
            }
        }
        Ok(())
    }

    fn take_environment(&mut self, environment: &[(String, String)]) -> Result<(), Error> {
        for (name, text) in environment {
            let Some(at) = TABLE.iter().position(|setting| setting.variable == name) else {
                if name.starts_with("COSCHEDD_") {
                    let known: Vec<_> = TABLE.iter().map(|setting| setting.variable).collect();
                    let known = known.join(", ");
                    return Err(Error(format!(
                        "{name}: unknown variable: unset it; known: {known}"
                    )));
                }
                continue;
            };
            let value = TABLE[at].read_text(text);
            let value = value.map_err(|why| Error(format!("{name}: {why}")))?;
            self.values[at] = (value, format!("environment, {name}"));
        }
        Ok(())
    }

    fn take_flags(&mut self, flags: &[String]) -> Result<(), Error> {
        for flag in flags {
            let (key, text) = flag
                .split_once('=')
                .ok_or_else(|| Error(format!("--set {flag}: no value: write --set KEY=VALUE")))?;
            let at = place(key).map_err(|line| Error(format!("--set {line}")))?;
            let value = TABLE[at].read_text(text);
            let value = value.map_err(|why| Error(format!("--set {key}: {why}")))?;
            self.values[at] = (value, "flag".to_owned());
        }
        Ok(())
    }

    /// Values that make no sense together.
    fn contradictions(&self) -> Result<(), Error> {
        let order = [
            (
                Key::Granularity,
                Key::Slice,
                "who wakes would never preempt",
            ),
            (
                Key::Slice,
                Key::MaxSlice,
                "users could not ask for what everybody gets",
            ),
            (Key::Slice, Key::MaxDebt, "no boost would be served twice"),
            (Key::KickGap, Key::Slice, "boosts would come too late"),
        ];
        for (small, large, why) in order {
            let (least, most) = (self.duration(small), self.duration(large));
            if least > most {
                let [small, large] = [small, large].map(|key| {
                    let (value, origin) = &self.values[key as usize];
                    format!("{} = {} ({origin})", key.setting().key, value.show())
                });
                return Err(Error(format!(
                    "{small} is above {large}: {why}: change one of them"
                )));
            }
        }
        Ok(())
    }

    fn value(&self, key: Key) -> &Value {
        &self.values[key as usize].0
    }

    /// Of a key that is one, in ns.
    pub fn duration(&self, key: Key) -> u64 {
        match self.value(key) {
            Value::Duration(n) | Value::Count(n) => *n,
            Value::Switch(on) => u64::from(*on),
            Value::Names(_) | Value::Path(_) => 0,
        }
    }

    /// Of a key that is one.
    pub fn count(&self, key: Key) -> u64 {
        self.duration(key)
    }

    /// Of a key that is one.
    pub fn switch(&self, key: Key) -> bool {
        self.value(key) == &Value::Switch(true)
    }

    /// Of a key that is a list.
    pub fn names(&self, key: Key) -> &[String] {
        match self.value(key) {
            Value::Names(names) => names,
            _ => &[],
        }
    }

    /// No scheduling, whatever the kernel offers.
    pub fn observes_only(&self) -> bool {
        self.switch(Key::ObserveOnly)
    }

    /// Where to listen.
    pub fn socket(&self) -> PathBuf {
        match self.value(Key::Socket) {
            Value::Path(path) => PathBuf::from(path),
            _ => cosched_control::default_socket(),
        }
    }

    /// For the programs in the kernel.
    pub fn scheduling(&self) -> Scheduling {
        Scheduling {
            slice_ns: self.duration(Key::Slice),
            max_debt_ns: self.duration(Key::MaxDebt),
            credit_ns: self.duration(Key::Credit),
            granularity_ns: self.duration(Key::Granularity),
            kick_gap_ns: self.duration(Key::KickGap),
            balance_ns: self.duration(Key::Balance),
        }
    }

    /// What takes effect only when coschedd begins, and differs from @other.
    pub fn needs_restart(&self, other: &Config) -> Vec<&'static str> {
        let fixed = [
            Key::Socket,
            Key::ObserveOnly,
            Key::Slice,
            Key::MaxDebt,
            Key::Credit,
            Key::Granularity,
            Key::KickGap,
            Key::Balance,
        ];
        let differs = |key: &Key| self.value(*key) != other.value(*key);
        let keys = fixed.into_iter().filter(differs);
        keys.map(|key| key.setting().key).collect()
    }

    /// Every value with its origin.
    pub fn shown(&self) -> Vec<document::Setting> {
        let lines = TABLE.iter().zip(&self.values);
        let shown = lines.map(|(setting, (value, origin))| document::Setting {
            key: setting.key.to_owned(),
            value: value.show(),
            origin: origin.clone(),
            meaning: setting.meaning.to_owned(),
        });
        shown.collect()
    }
}

/// The default as a flag would write it.
fn bare(default: &str) -> String {
    default.replace(['[', ']', '"'], "")
}

fn place(key: &str) -> Result<usize, String> {
    let found = TABLE.iter().position(|setting| setting.key == key);
    found.ok_or_else(|| format!("{}: unknown key: {}", key.escape_debug(), known(key)))
}

/// The nearest key, and all.
fn known(wrong: &str) -> String {
    let far = |key: &&str| strsim::damerau_levenshtein(wrong, key);
    let keys: Vec<&str> = TABLE.iter().map(|setting| setting.key).collect();
    let near = keys.iter().copied().min_by_key(far);
    match near.filter(|near| far(near) <= 1 + near.len() / 4) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("known: {}", keys.join(", ")),
    }
}

/// Nothing where no file is named and the usual one is not there.
fn read_file(named: Option<&Path>) -> Result<Option<(PathBuf, String)>, Error> {
    let path = named.unwrap_or(Path::new(FILE));
    let wrong = |why: &str| {
        Error(format!(
            "cannot read {}: {why}: name a TOML file with --config",
            path.display()
        ))
    };
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => Ok(None),
        Err(error) => Err(wrong(&error.to_string())),
        Ok(bytes) if bytes.len() > MAX_BYTES => Err(wrong("it is longer than 64 KiB")),
        Ok(bytes) => {
            let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8"))?;
            Ok(Some((path.to_owned(), text)))
        }
    }
}

/// `3ms`, as a person reads a limit.
pub(crate) fn shown(ns: u64) -> String {
    duration::show(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, flags: &[&str], environment: &[(&str, &str)]) -> Result<Config, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        fs::write(&file, text).unwrap();
        let owned = |(a, b): &(&str, &str)| (a.to_string(), b.to_string());
        let sources = Sources {
            file: Some(file),
            flags: flags.iter().map(|flag| flag.to_string()).collect(),
            environment: environment.iter().map(owned).collect(),
        };
        Config::read(&sources).map_err(|error| error.to_string())
    }

    #[test]
    fn a_flag_goes_before_the_environment_that_before_the_file() {
        let file = "[users]\njobs = 2\nranks = 3\n[scheduler]\nslice = \"2ms\"\n";
        let config = read(
            file,
            &["users.jobs=4"],
            &[("COSCHEDD_USERS_JOBS", "5"), ("COSCHEDD_USERS_RANKS", "6")],
        )
        .unwrap();
        assert_eq!(config.count(Key::Jobs), 4);
        assert_eq!(config.count(Key::Ranks), 6);
        assert_eq!(config.scheduling().slice_ns, 2_000_000);
        let shown = config.shown();
        let origin = |key: Key| shown[key as usize].origin.as_str();
        assert_eq!(origin(Key::Jobs), "flag");
        assert_eq!(origin(Key::Ranks), "environment, COSCHEDD_USERS_RANKS");
        assert!(origin(Key::Slice).ends_with("c.toml"));
        assert_eq!(origin(Key::Custom), "default");
    }

    #[test]
    fn what_is_wrong_is_one_line_that_says_what_to_write() {
        for (text, says) in [
            ("[users]\njosb = 2\n", "did you mean users.jobs?"),
            ("[scheduler]\nslice = 3\n", "has no unit"),
            ("[scheduler]\nslice = \"3\"\n", "with its unit"),
            ("[scheduler]\nslice = \"9s\"\n", "from 100us to 100ms"),
            (
                "[scheduler]\nslice = \"20ms\"\n",
                "is above users.max_slice",
            ),
            ("[users]\njobs = \"many\"\n", "is not a number"),
            ("[users]\npresets = [1]\n", "is not a list of names"),
            ("jobs = 2\n", "stands in no section"),
            ("[users\n", "not TOML"),
        ] {
            let line = read(text, &[], &[]).unwrap_err();
            assert!(line.contains(says), "{line}");
            assert_eq!(line.lines().count(), 1, "{line}");
        }
        for flag in ["users.jobs", "users.jbs=1", "users.jobs=x"] {
            assert!(read("", &[flag], &[]).is_err(), "{flag}");
        }
        assert!(read("", &[], &[("COSCHEDD_SLCE", "1ms")]).is_err());
    }

    #[test]
    fn says_what_a_reload_cannot_change() {
        let old = read("", &[], &[]).unwrap();
        let new = read(
            "[scheduler]\nslice = \"2ms\"\n[users]\njobs = 1\n",
            &[],
            &[],
        )
        .unwrap();
        assert_eq!(new.needs_restart(&old), ["scheduler.slice"]);
    }
}
