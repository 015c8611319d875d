// SPDX-License-Identifier: Apache-2.0
//! Who answers what: a preset meets the bodies that are present.
//!
//! For each question the preferred answer is taken where a present body gives
//! it, else the other one; where neither can be given the preset is refused,
//! never run with less than it says. The outcome depends on nothing else.

use crate::native::Params;
use crate::preset::{Choice, Preset, Want};
use crate::table::{Body, Question, NR_QUESTIONS, QUESTIONS};
use crate::{raw, Error};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// The answer to one question, and who gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Taken {
    /// The question.
    pub question: &'static Question,
    /// The body that answers.
    pub owner: Body,
    /// Its answer.
    pub choice: Choice,
    /// The answer that was preferred, where no present body gives it.
    pub instead_of: Option<Choice>,
    /// Whether that body is here; always so after [`resolve`].
    pub present: bool,
}

/// A preset with its questions settled.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Resolved {
    /// The preset's name.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Where it comes from.
    pub source: String,
    /// By `enum cos_question`.
    #[serde(rename = "questions")]
    pub taken: [Taken; NR_QUESTIONS],
}

/// Settle each question of @preset with the bodies @present.
pub fn resolve(preset: &Preset, present: &[Body]) -> Result<Resolved, Error> {
    let sketch = sketch(preset, present);
    match sketch.taken.iter().find(|taken| !taken.present) {
        Some(gap) => Err(Error::gap(
            &preset.name,
            gap.question.word,
            gap.choice.answer,
        )),
        None => Ok(sketch),
    }
}

/// As [`resolve`], to be looked at: a gap is filled with its missing body.
pub fn sketch(preset: &Preset, present: &[Body]) -> Resolved {
    let questions = QUESTIONS.iter().zip(&preset.wants);
    let taken: Vec<_> = questions
        .map(|(q, want)| settle(q, want, present))
        .collect();
    Resolved {
        name: preset.name.clone(),
        about: preset.about.clone(),
        source: preset.source.clone(),
        taken: taken.try_into().expect("one for each question"),
    }
}

fn settle(question: &'static Question, want: &Want, present: &[Body]) -> Taken {
    let take = |choice: Choice, owner, instead_of, present| Taken {
        question,
        owner,
        choice,
        instead_of,
        present,
    };
    let given = |choice: &Choice| choice.answer.given_by(&choice.args, present);
    let other = want.or_else.map(|other| (other, Some(want.prefer)));
    let sides = [Some((want.prefer, None)), other];
    let found = sides
        .into_iter()
        .flatten()
        .find_map(|(choice, instead_of)| Some(take(choice, given(&choice)?, instead_of, true)));
    found.unwrap_or_else(|| {
        let (open, instead_of) = other.unwrap_or((want.prefer, None));
        take(open, open.answer.belongs_to(), instead_of, false)
    })
}

impl Resolved {
    /// The bytes that the bodies read.
    pub fn params(&self) -> Params {
        let mut params = Params::default();
        params.0.abi = raw::COS_POLICY_ABI;
        for (i, taken) in self.taken.iter().enumerate() {
            params.0.answer[i] = taken.choice.answer.code.unwrap_or(0);
            params.0.arg[i] = taken.choice.args;
        }
        params
    }
}

/// `{"question": "wait", "owner": "shim", "present": true, "answer": "spin_block", "parameters": {"spin": "1600us"}}`
impl Serialize for Taken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("question", self.question.word)?;
        map.serialize_entry("owner", &self.owner)?;
        map.serialize_entry("present", &self.present)?;
        map.serialize_entry("answer", self.choice.answer.word)?;
        let shown: std::collections::BTreeMap<_, _> = self.choice.shown().into_iter().collect();
        map.serialize_entry("parameters", &shown)?;
        map.serialize_entry("instead_of", &self.instead_of.map(|c| c.answer.word))?;
        map.end()
    }
}
