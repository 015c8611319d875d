// SPDX-License-Identifier: Apache-2.0
//! A preset: one answer to each of the seven questions, read strictly.
//!
//! ```toml
//! name = "implicit"
//! about = "spin for a fixed time, then sleep"
//! source = "where it comes from"
//! wait = { answer = "spin_block", spin = "1600us" }
//! arrival = { prefer = "boost", else = "none" }
//! fairness = "none"
//! # ... and so on, all seven
//! ```
//!
//! Nothing is ignored: an unknown key, a missing unit, a question without an
//! answer are refused in a line that says what to write. Whether a body can give
//! the answers is not decided here but in `resolve`.

use crate::error::known;
use crate::table::{Answer, Question, NR_QUESTIONS, QUESTIONS};
use crate::{raw, value, Error};
use std::fmt::Write;
use toml::{Table, Value};

/// One answer with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// The answer.
    pub answer: &'static Answer,
    /// By position, as `cos_params.arg[question]`.
    pub args: [u64; raw::COS_NR_ARGS as usize],
}

/// What a preset wants of a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Want {
    /// Taken where a present body gives it.
    pub prefer: Choice,
    /// Taken otherwise.
    pub or_else: Option<Choice>,
}

/// An answer to each question, by a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// What it is, in a line.
    pub about: String,
    /// Where it comes from: paper and section.
    pub source: String,
    /// By `enum cos_question`.
    pub wants: [Want; NR_QUESTIONS],
}

impl Preset {
    /// Read TOML; errors name @origin, a file or the preset itself.
    pub fn parse(origin: &str, text: &str) -> Result<Self, Error> {
        let table: Table = text.parse().map_err(|e| syntax(origin, text, &e))?;
        let reader = Reader { origin };
        let questions = QUESTIONS.iter().map(|q| q.word);
        reader.only(&table, "", HEAD.into_iter().chain(questions))?;
        let [name, about, source] = HEAD.map(|key| reader.line(&table, key));
        let mut wants = Vec::with_capacity(NR_QUESTIONS);
        for question in &QUESTIONS {
            wants.push(reader.want(question, &table)?);
        }
        Ok(Preset {
            name: name?,
            about: about?,
            source: source?,
            wants: wants.try_into().expect("one for each question"),
        })
    }

    /// As TOML with every parameter written out; [`Preset::parse`] gives it back.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let head = [&self.name, &self.about, &self.source];
        for (key, line) in HEAD.iter().zip(head) {
            let line = Value::String(line.clone());
            writeln!(text, "{key} = {line}").expect("a String takes all");
        }
        for (question, want) in QUESTIONS.iter().zip(&self.wants) {
            let want = want.to_toml();
            writeln!(text, "{} = {want}", question.word).expect("a String takes all");
        }
        text
    }
}

const HEAD: [&str; 3] = ["name", "about", "source"];

impl Want {
    fn to_toml(self) -> String {
        match self.or_else {
            Some(other) => format!(
                "{{ prefer = {}, else = {} }}",
                self.prefer.to_toml(),
                other.to_toml()
            ),
            None => self.prefer.to_toml(),
        }
    }
}

impl Choice {
    /// The answer with defaults; nothing where a parameter has none.
    pub fn of(answer: &'static Answer) -> Option<Self> {
        let mut args = [0; raw::COS_NR_ARGS as usize];
        for arg in answer.args {
            args[arg.at] = arg.default?;
        }
        Some(Choice { answer, args })
    }

    /// Each parameter with its unit, as in TOML.
    pub fn shown(&self) -> Vec<(&'static str, Value)> {
        let show = |arg: &crate::table::Arg| (arg.key, value::show(arg.unit, self.args[arg.at]));
        self.answer.args.iter().map(show).collect()
    }

    fn to_toml(self) -> String {
        let word = format!("\"{}\"", self.answer.word);
        if self.answer.args.is_empty() {
            return word;
        }
        let mut text = format!("{{ answer = {word}");
        for (key, value) in self.shown() {
            write!(text, ", {key} = {value}").expect("a String takes all");
        }
        text + " }"
    }
}

fn syntax(origin: &str, text: &str, error: &toml::de::Error) -> Error {
    let (line, why) = place_of(text, error);
    Error::Syntax {
        origin: origin.to_owned(),
        line,
        why,
    }
}

/// The line of `text` at which it is not the TOML that it should be, and why, in one line.
pub fn place_of(text: &str, error: &toml::de::Error) -> (usize, String) {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let before = &text.as_bytes()[..start];
    let line = 1 + before.iter().filter(|c| **c == b'\n').count();
    (line, error.message().lines().collect::<Vec<_>>().join("; "))
}

/// Reads the tables of one file.
struct Reader<'a> {
    origin: &'a str,
}

impl Reader<'_> {
    fn wrong(&self, key: &str, wrong: impl Into<String>, fix: impl Into<String>) -> Error {
        Error::Key {
            origin: self.origin.to_owned(),
            key: key.escape_debug().to_string(),
            wrong: wrong.into(),
            fix: fix.into(),
        }
    }

    /// Refuses the first key of @table that is not @allowed.
    fn only<'k>(
        &self,
        table: &Table,
        path: &str,
        allowed: impl Iterator<Item = &'k str>,
    ) -> Result<(), Error> {
        let allowed: Vec<&str> = allowed.collect();
        match table.keys().find(|key| !allowed.contains(&key.as_str())) {
            Some(key) => Err(self.wrong(
                &format!("{path}{key}"),
                "unknown key",
                known(key, allowed.iter().copied()),
            )),
            None => Ok(()),
        }
    }

    /// A text of one line.
    fn line(&self, table: &Table, key: &str) -> Result<String, Error> {
        let fix = format!("write {key} = \"...\", one line");
        match table.get(key) {
            Some(Value::String(text)) if !text.is_empty() && !text.contains(char::is_control) => {
                Ok(text.clone())
            }
            Some(_) => Err(self.wrong(key, "not a line of text", fix)),
            None => Err(self.wrong(key, "missing", fix)),
        }
    }

    fn want(&self, question: &Question, table: &Table) -> Result<Want, Error> {
        let key = question.word;
        let value = table.get(key).ok_or_else(|| {
            let fix = format!("a preset answers all seven, write {key} = \"...\"");
            self.wrong(
                key,
                "not answered",
                format!("{fix}, {}", words(question, "")),
            )
        })?;
        match value {
            Value::Table(sides) if !sides.contains_key("answer") => {
                self.preference(question, sides)
            }
            _ => Ok(Want {
                prefer: self.choice(question, key, value)?,
                or_else: None,
            }),
        }
    }

    /// `{ prefer = X, else = Y }`.
    fn preference(&self, question: &Question, table: &Table) -> Result<Want, Error> {
        let path = format!("{}.", question.word);
        self.only(table, &path, ["answer", "prefer", "else"].into_iter())?;
        let side = |key: &str| {
            let path = format!("{path}{key}");
            let fix = "write answer = \"...\", or both prefer and else";
            let value = table.get(key);
            let value = value.ok_or_else(|| self.wrong(&path, "missing", fix))?;
            self.choice(question, &path, value)
        };
        Ok(Want {
            prefer: side("prefer")?,
            or_else: Some(side("else")?),
        })
    }

    /// `"word"`, or `{ answer = "word", key = value, ... }`.
    fn choice(&self, question: &Question, path: &str, value: &Value) -> Result<Choice, Error> {
        let empty = Table::new();
        let (word, args) = match value {
            Value::Table(table) => (table.get("answer"), table),
            word => (Some(word), &empty),
        };
        let Some(Value::String(word)) = word else {
            let fix = format!("name one, {}", words(question, ""));
            return Err(self.wrong(path, "no answer", fix));
        };
        let answer = question.answer(word).ok_or_else(|| {
            let wrong = format!("unknown answer {word:?}");
            self.wrong(path, wrong, words(question, word))
        })?;
        self.arguments(answer, path, args)
    }

    fn arguments(
        &self,
        answer: &'static Answer,
        path: &str,
        table: &Table,
    ) -> Result<Choice, Error> {
        let path = format!("{path}.");
        let keys = answer.args.iter().map(|arg| arg.key);
        self.only(table, &path, ["answer"].into_iter().chain(keys))?;
        let mut args = [0; raw::COS_NR_ARGS as usize];
        for arg in answer.args {
            let at = format!("{path}{}", arg.key);
            let wrong = |(wrong, fix): value::Wrong| self.wrong(&at, wrong, fix);
            args[arg.at] = match (table.get(arg.key), arg.default) {
                (Some(value), _) => value::read(arg, value).map_err(wrong)?,
                (None, Some(default)) => default,
                (None, None) => return Err(wrong(value::missing(arg, answer.word))),
            };
        }
        Ok(Choice { answer, args })
    }
}

fn words(question: &Question, wrong: &str) -> String {
    known(wrong, question.answers.iter().map(|a| a.word))
}
