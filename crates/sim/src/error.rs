// SPDX-License-Identifier: Apache-2.0
//! Why there is no outcome: always one line.

use cosched_model::Nanos;
use thiserror::Error;

/// Why a scenario could not be simulated to its end.
#[derive(Debug, Error, PartialEq)]
pub enum SimError {
    /// The scenario says something that cannot be.
    #[error("{0}")]
    Scenario(String),
    /// Its policy is no preset, or leaves a question open.
    #[error(transparent)]
    Policy(#[from] cosched_policy::Error),
    /// A verdict that the local scheduler cannot carry out.
    #[error("policy {preset}: {question}: {answer} needs a local scheduler that can {what}, and this one cannot: take another")]
    Incapable {
        /// The preset.
        preset: String,
        /// The question.
        question: &'static str,
        /// Its answer.
        answer: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// More events than allowed.
    #[error(
        "{limit} events were not enough, at {at}: no result; raise max_events, or simulate less"
    )]
    Truncated {
        /// How many were allowed.
        limit: u64,
        /// How far it came.
        at: Nanos,
    },
    /// All tasks of a job wait for messages that nobody sends.
    #[error("job {job:?}: all its tasks wait for messages and none is on its way, at {at}: the workload or its ranks are wrong")]
    Deadlock {
        /// The job.
        job: String,
        /// Since when.
        at: Nanos,
    },
}

impl SimError {
    /// What an error of reading `text` becomes.
    pub(crate) fn toml(text: &str) -> impl Fn(toml::de::Error) -> Self + '_ {
        |error| {
            let (line, why) = cosched_policy::place_of(text, &error);
            SimError::Scenario(format!("line {line}: {why}"))
        }
    }
}
