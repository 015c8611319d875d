// SPDX-License-Identifier: Apache-2.0
//! What can be wrong with a preset: always one line that says what to do.

use crate::table::Answer;
use thiserror::Error;

/// Why there is no policy.
#[derive(Debug, Error, PartialEq)]
pub enum Error {
    /// It is not TOML.
    #[error("{origin}:{line}: not TOML: {why}")]
    Syntax {
        /// The file, or the name of the preset.
        origin: String,
        /// Counted from 1.
        line: usize,
        /// In the reader's words.
        why: String,
    },
    /// It is TOML, but a key is unknown, missing, or has a wrong value.
    #[error("{origin}: {key}: {wrong}: {fix}")]
    Key {
        /// The file, or the name of the preset.
        origin: String,
        /// `question.key`, or the place where it should be.
        key: String,
        /// What is wrong.
        wrong: String,
        /// What to do.
        fix: String,
    },
    /// No present body gives an answer, and there is no other to take.
    #[error(
        "{preset}: {question}: no present body answers {answer}: it is the {body}'s, and {lack}: \
         write {question} = {{ prefer = \"{answer}\", else = ... }}, or another answer"
    )]
    Gap {
        /// The preset's name.
        preset: String,
        /// The question that stays open.
        question: &'static str,
        /// The answer that was wanted.
        answer: &'static str,
        /// The body that is missing.
        body: &'static str,
        /// What of it is missing.
        lack: String,
    },
    /// Neither a preset, nor a wait answer, nor a file.
    #[error("no policy {word:?}: {fix}")]
    Unknown {
        /// As it was given.
        word: String,
        /// What to do.
        fix: String,
    },
    /// The file cannot be read.
    #[error(
        "cannot read the preset {path:?}: {why}: name a TOML file of yours, or a built-in preset"
    )]
    Unreadable {
        /// As it was given.
        path: String,
        /// In the system's words.
        why: String,
    },
}

impl Error {
    pub(crate) fn gap(preset: &str, question: &'static str, answer: &'static Answer) -> Self {
        let body = answer.belongs_to().word();
        let lack = match answer.code {
            Some(_) => format!("the {body} is not present here"),
            None => format!("this version has no {body} that gives it"),
        };
        Error::Gap {
            preset: preset.to_owned(),
            question,
            answer: answer.word,
            body,
            lack,
        }
    }
}

/// `did you mean "spin"? Known: block, spin`, the question only where a word is near.
pub(crate) fn known<'a>(wrong: &str, words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    let near = words
        .iter()
        .map(|word| (strsim::damerau_levenshtein(wrong, word), word))
        .filter(|(distance, word)| *distance <= 1 + word.len() / 4)
        .min();
    let list = format!("known: {}", words.join(", "));
    match near {
        Some((_, word)) => format!("did you mean {word:?}? {list}"),
        None => list,
    }
}

#[cfg(test)]
mod tests {
    use super::known;

    #[test]
    fn a_near_word_is_offered_and_a_far_one_is_not() {
        assert_eq!(
            known("sipn", ["block", "spin"]),
            "did you mean \"spin\"? known: block, spin"
        );
        assert_eq!(known("gang", ["block", "spin"]), "known: block, spin");
    }
}
