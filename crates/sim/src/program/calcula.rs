// SPDX-License-Identifier: Apache-2.0
//! calcula: pure CPU, for a given amount or for ever (S4, section 4).

use super::{lacking, Kind, Program, Step};
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
struct Loop {
    left: Option<u64>,
}

/// A task that never ends says what it does for an hour at a time.
const HOUR_NS: u64 = 3_600_000_000_000;

impl Kind for Calcula {
    fn program(&self, _task: u32) -> Box<dyn Program> {
        Box::new(Loop {
            left: self.work.map(Span::ns),
        })
    }

    fn refuses(&self, _ranks: u32, _threads: u32) -> Option<String> {
        let some = self.work != Some(Span::ZERO);
        lacking(
            "calcula",
            &[(some, "work above 0, or none given to run for ever")],
        )
    }

    fn endless(&self) -> bool {
        self.work.is_none()
    }

    fn communicates(&self) -> bool {
        false
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
