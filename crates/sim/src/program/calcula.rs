// SPDX-License-Identifier: Apache-2.0
//! calcula: pure CPU, for a given amount or for ever (S4, section 4).

use super::{Program, Step};
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calcula {
    /// CPU time of each task; without it, for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Span>,
}

/// One task: what is still to be done.
pub struct Loop {
    left: Option<u64>,
}

/// A task that never ends says what it does for an hour at a time.
const HOUR_NS: u64 = 3_600_000_000_000;

impl Calcula {
    pub(super) fn program(&self) -> Loop {
        Loop {
            left: self.work.map(Span::ns),
        }
    }

    pub(super) fn refuses(&self) -> Option<String> {
        let none = self.work == Some(Span::ZERO);
        none.then(|| "calcula needs work above 0, or none given to run for ever".to_owned())
    }
}

impl Program for Loop {
    fn step(&mut self, step: &mut Step) {
        match self.left {
            None => step.compute(HOUR_NS),
            Some(0) => step.exit(),
            Some(work) => {
                self.left = Some(0);
                step.compute(work);
            }
        }
    }
}
