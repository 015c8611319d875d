// SPDX-License-Identifier: Apache-2.0
//! From what a user types to a preset: the name of a built-in one, a wait
//! answer, or the path of a TOML file, in this order.
//!
//! `spin_block:50us` is `uncoordinated` with that answer to `wait`.

use crate::error::known;
use crate::preset::{Choice, Preset, Want};
use crate::table::{Answer, QUESTIONS};
use crate::{value, Error};
use std::{fs::File, io::Read};

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../presets/", $name, ".toml")))),*]
    };
}

/// What stands in presets/, in the order of the list.
const FILES: [(&str, &str); 26] = files![
    "auto",
    "uncoordinated",
    "local-block",
    "implicit",
    "spin-yield",
    "dcs-spin",
    "dcs-spin-block",
    "dcs-spin-yield",
    "dcs-nt",
    "dcs-nt-passive",
    "dcs-nt-spin-block",
    "predictive",
    "dynamic",
    "staticq",
    "cs-bi-rr",
    "cs-bi-msg",
    "cs-sb800-rr",
    "cs-sb800-msg",
    "cs-sb1200-rr",
    "cs-sb1200-msg",
    "periodic-boost",
    "periodic-boost-sb",
    "gang",
    "gang-slurm",
    "batch",
    "fcfs-space",
];

/// No preset is longer; a path may name anything, even an endless device.
const MAX_BYTES: u64 = 64 << 10;

/// Every built-in preset, the default first.
pub fn built_in() -> Result<Vec<Preset>, Error> {
    FILES
        .iter()
        .map(|(n, text)| Preset::parse(n, text))
        .collect()
}

/// The preset that @word names.
pub fn load(word: &str) -> Result<Preset, Error> {
    if let Some((name, text)) = FILES.iter().find(|(name, _)| *name == word) {
        return Preset::parse(name, text);
    }
    if let Some(preset) = shorthand(word)? {
        return Ok(preset);
    }
    if word.contains('/') || word.ends_with(".toml") {
        return Preset::parse(word, &contents(word)?);
    }
    let answers = QUESTIONS[0].answers.iter().map(|a| a.word);
    let names = FILES.iter().map(|(name, _)| *name);
    Err(Error::Unknown {
        word: word.to_owned(),
        fix: known(word, names.chain(answers))
            + "; a file of yours is named by its path, ./NAME.toml",
    })
}

/// `ANSWER[:DURATION]` of wait; nothing where @word does not begin with one.
fn shorthand(word: &str) -> Result<Option<Preset>, Error> {
    let (name, duration) = match word.split_once(':') {
        Some((name, duration)) => (name, Some(duration)),
        None => (word, None),
    };
    let Some(answer) = QUESTIONS[0].answer(name) else {
        return Ok(None);
    };
    let mut preset = load("uncoordinated")?;
    preset.name = word.to_owned();
    preset.about = format!("uncoordinated, but a rank waits by {}", answer.word);
    preset.source = "the command line".to_owned();
    preset.wants[0] = Want {
        prefer: choice(word, answer, duration)?,
        or_else: None,
    };
    Ok(Some(preset))
}

fn choice(word: &str, answer: &'static Answer, duration: Option<&str>) -> Result<Choice, Error> {
    let wrong = |(wrong, fix): value::Wrong| Error::Key {
        origin: "policy".to_owned(),
        key: word.escape_debug().to_string(),
        wrong,
        fix,
    };
    match (answer.args, duration) {
        (_, None) => Choice::of(answer).ok_or_else(|| {
            let fix = format!("write {}:50us", answer.word);
            wrong(("how long?".to_owned(), fix))
        }),
        ([arg], Some(text)) => {
            let text = toml::Value::String(text.to_owned());
            let mut args = [0; crate::raw::COS_NR_ARGS as usize];
            args[arg.at] = value::read(arg, &text).map_err(wrong)?;
            Ok(Choice { answer, args })
        }
        _ => {
            let fix = format!("write {} alone, or a preset file", answer.word);
            Err(wrong(("it does not take one duration".to_owned(), fix)))
        }
    }
}

fn contents(path: &str) -> Result<String, Error> {
    let unreadable = |why: String| Error::Unreadable {
        path: path.to_owned(),
        why,
    };
    let mut text = String::new();
    let file = File::open(path).map_err(|e| unreadable(e.to_string()))?;
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text);
    match read {
        Ok(bytes) if bytes as u64 > MAX_BYTES => {
            Err(unreadable(format!("it is longer than {MAX_BYTES} bytes")))
        }
        Ok(_) => Ok(text),
        Err(error) => Err(unreadable(error.to_string())),
    }
}
