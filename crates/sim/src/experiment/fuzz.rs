// SPDX-License-Identifier: Apache-2.0
//! Whatever stands in an experiment or a record: it is taken, or refused in one line; nothing panics.
//!
//! Random text hardly gets beyond the first line of the reader, so valid experiments (the small one of
//! the tests and those of the repository) are damaged byte by byte and token by token. What is
//! taken after all is simulated for some events, since a number that no reader refuses may
//! still break arithmetic behind it.

use super::record::{self, Journal};
use super::tests::{made, GOOD};
use super::*;
use crate::simulate;
use proptest::prelude::*;
use std::path::Path;
use std::sync::LazyLock;

/// What numbers, units and names are wrong in.
const WRONG: &[&str] = &[
    "0",
    "-1",
    "1",
    "7",
    "512",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "1e308",
    "nan",
    "-inf",
    "true",
    "''",
    "'0us'",
    "'1ns'",
    "'30days'",
    "'580y'",
    "'-1us'",
    "'1'",
    "[]",
    "{}",
    "[[",
    "]]",
    "=",
    "\n",
    "\"",
    "'\\u0000'",
    "-64",
    "64",
    "65",
];

static BASES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let list = |dir: &Path| {
        let entries = std::fs::read_dir(dir).into_iter().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let folders = list(&folder).into_iter().flat_map(|paper| list(&paper));
    let files = folders.filter_map(|dir| std::fs::read_to_string(dir.join("experiment.toml")).ok());
    [GOOD.to_owned()].into_iter().chain(files).collect()
});

/// Words, strings, white space, and each other sign by itself.
fn tokens(text: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        c if c.is_alphanumeric() || "_.-'\"".contains(c) => 0,
        c if c.is_whitespace() => 1,
        other => 2 + u32::from(other),
    };
    text.split_inclusive(|_| true)
        .scan((0, 0), |(start, at), piece| {
            let from = *at;
            *at += piece.len();
            let next = text[*at..].chars().next().map(kind);
            let here = text[from..].chars().next().map(kind);
            let ends = next != here;
            let token = ends.then(|| &text[*start..*at]);
            if ends {
                *start = *at;
            }
            Some(token)
        })
        .flatten()
        .collect()
}

/// One damage: what, at which token, with which other.
type Damage = (u8, prop::sample::Index, prop::sample::Index);

fn damaged(text: &str, damages: &[Damage]) -> String {
    let mut all = tokens(text);
    for (what, at, other) in damages {
        let (i, j) = (at.index(all.len()), other.index(all.len()));
        match what % 5 {
            0 => drop(all.remove(i)),
            1 => all.insert(i, all[j]),
            2 => all.swap(i, j),
            3 => all[i] = all[j],
            _ => all[i] = WRONG[other.index(WRONG.len())],
        }
    }
    all.concat()
}

fn one_line(why: impl ToString) -> Result<(), TestCaseError> {
    let why = why.to_string();
    prop_assert!(!why.is_empty() && !why.contains('\n'), "{}", why);
    Ok(())
}

/// Reads `text`, and simulates the first and the last point of what is right.
fn read(text: &str) -> Result<(), TestCaseError> {
    let experiment = match Experiment::parse(text) {
        Ok(experiment) => experiment,
        Err(why) => return one_line(why),
    };
    let points = Plan::new(&experiment, true).unwrap().points;
    for point in points.first().iter().chain(&points.last()) {
        let mut scenario = point.scenario.clone();
        scenario.max_events = 200;
        if let Err(why) = simulate(&scenario, &mut ()) {
            one_line(why)?;
        }
    }
    Ok(())
}

#[test]
fn tokens_are_the_text() {
    for base in BASES.iter() {
        assert_eq!(damaged(base, &[]), *base);
        assert!(tokens(base).len() > 100);
        assert!(read(base).is_ok());
    }
}

proptest! {
    #[test]
    fn random_text_is_refused_in_one_line(text in "\\PC*") {
        if let Err(why) = Experiment::parse(&text) {
            one_line(why)?;
        }
    }

    #[test]
    fn damaged_bytes_are_taken_or_refused_in_one_line(from in 0..GOOD.len(), cut in 0..40usize, put in "[ -~\\n]{0,6}") {
        let to = (from + cut).min(GOOD.len());
        read(&format!("{}{put}{}", &GOOD[..from], &GOOD[to..]))?;
    }

    #[test]
    fn damaged_tokens_are_taken_or_refused_in_one_line(
        base in any::<prop::sample::Index>(),
        damages in prop::collection::vec(any::<Damage>(), 1..4),
    ) {
        read(&damaged(&BASES[base.index(BASES.len())], &damages))?;
    }

    #[test]
    fn a_damaged_record_is_taken_or_refused_in_one_line(
        at in any::<prop::sample::Index>(),
        cut in 0..60usize,
        put in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b','), Just(b'"'), any::<u8>()], 0..4),
    ) {
        let experiment = Experiment::parse(GOOD).unwrap();
        let plan = Plan::new(&experiment, true).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("quick.csv");
        made(&plan, |_, _| 1.5).write(&experiment, &plan, &path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let from = at.index(bytes.len());
        let to = (from + cut).min(bytes.len());
        let bytes = [&bytes[..from], &put, &bytes[to..]].concat();
        std::fs::write(&path, &bytes).unwrap();
        match Record::read(&experiment, &path).and_then(|mut it| it.keep(&plan, Some("r"), &path)) {
            Err(why) => {
                one_line(why)?;
                prop_assert_eq!(std::fs::read(&path).unwrap(), bytes);
            }
            Ok(()) => drop(Journal::open(&experiment, &path).unwrap()),
        }
        prop_assert!(record::runs(&plan).count() > 0);
    }
}
