// SPDX-License-Identifier: Apache-2.0
//! What may be written in a preset: questions, their answers, the answers'
//! parameters. The only place where a TOML key meets a position in
//! `cos_params.arg`.
//!
//! Every answer of the whole design is a known word, so that a preset can prefer
//! one that no body gives yet; such an answer has no code and takes no parameters
//! here. To add an answer: its function and enum line in policy/, one line here.

use crate::raw;
use serde::Serialize;

/// Who can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// The operating system's own scheduler, which is always there.
    Local,
    /// The preloaded library.
    Shim,
    /// The scheduler in the kernel.
    Kernel,
    /// The daemon beside the kernel body.
    Daemon,
    /// The cluster simulator.
    Sim,
}

impl Body {
    /// As a person reads it.
    pub fn word(self) -> &'static str {
        match self {
            Body::Local => "local scheduler",
            Body::Shim => "shim",
            Body::Kernel => "kernel",
            Body::Daemon => "daemon",
            Body::Sim => "simulator",
        }
    }
}

/// In what a parameter is written, and what its number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `"20us"`, in ns.
    Duration,
    /// `2.0`, in 1/256.
    Factor,
    /// `4`.
    Count,
}

/// One parameter of an answer.
#[derive(Debug, PartialEq)]
pub struct Arg {
    /// Its key in TOML.
    pub key: &'static str,
    /// Its position in `cos_params.arg[question]`.
    pub at: usize,
    /// How it is written.
    pub unit: Unit,
    /// Taken where a preset does not say; without one it must.
    pub default: Option<u64>,
    /// The largest value that makes sense.
    pub max: u64,
}

/// One answer to a question.
#[derive(Debug, PartialEq)]
pub struct Answer {
    /// Its name in TOML.
    pub word: &'static str,
    /// Its number in policy/; nothing: no body has its function yet.
    pub code: Option<u32>,
    /// The bodies that can give it, or will.
    pub bodies: &'static [Body],
    /// Its parameters.
    pub args: &'static [Arg],
}

/// One of the seven questions.
#[derive(Debug, PartialEq)]
pub struct Question {
    /// Its name in TOML.
    pub word: &'static str,
    /// What is asked.
    pub asks: &'static str,
    /// Every answer known.
    pub answers: &'static [Answer],
}

/// How many questions there are.
pub const NR_QUESTIONS: usize = raw::COS_NR_QUESTIONS as usize;

const US: u64 = 1_000;
const HOUR_NS: u64 = 3_600_000_000_000;

const fn duration(key: &'static str, at: u32, default: Option<u64>) -> Arg {
    Arg {
        key,
        at: at as usize,
        unit: Unit::Duration,
        default,
        max: HOUR_NS,
    }
}

const fn factor(key: &'static str, at: u32, default_q8: u64) -> Arg {
    Arg {
        key,
        at: at as usize,
        unit: Unit::Factor,
        default: Some(default_q8),
        max: 1000 << 8,
    }
}

const fn wait(word: &'static str, code: u32, args: &'static [Arg]) -> Answer {
    Answer {
        word,
        code: Some(code),
        bodies: &[Body::Shim, Body::Sim],
        args,
    }
}

/// As the local scheduler does: answer 0, which needs no code.
const fn local(word: &'static str) -> Answer {
    Answer {
        word,
        code: Some(0),
        bodies: &[Body::Local],
        args: &[],
    }
}

const fn kernel(word: &'static str) -> Answer {
    Answer {
        word,
        code: None,
        bodies: &[Body::Kernel, Body::Sim],
        args: &[],
    }
}

const fn daemon(word: &'static str) -> Answer {
    Answer {
        word,
        code: None,
        bodies: &[Body::Daemon, Body::Sim],
        args: &[],
    }
}

const SPIN: &[Arg] = &[duration("spin", 0, None)];

const ADAPTIVE: &[Arg] = &[
    factor("factor", raw::COS_ADAPTIVE_FACTOR_Q8, 512),
    duration("min", raw::COS_ADAPTIVE_MIN_NS, Some(20 * US)),
    duration("max", raw::COS_ADAPTIVE_MAX_NS, Some(200 * US)),
    duration("shared", raw::COS_ADAPTIVE_SHARED_NS, Some(5 * US)),
    duration("yield", raw::COS_ADAPTIVE_YIELD_NS, Some(10_000 * US)),
    duration("boost", raw::COS_ADAPTIVE_BOOST_NS, Some(100 * US)),
];

/// The seven questions, in the order of `enum cos_question`.
pub static QUESTIONS: [Question; NR_QUESTIONS] = [
    Question {
        word: "wait",
        asks: "how does a rank wait?",
        answers: &[
            wait("spin", raw::COS_WAIT_SPIN, &[]),
            wait("block", raw::COS_WAIT_BLOCK, &[]),
            wait("spin_block", raw::COS_WAIT_SPIN_BLOCK, SPIN),
            wait("spin_yield", raw::COS_WAIT_SPIN_YIELD, SPIN),
            wait("adaptive", raw::COS_WAIT_ADAPTIVE, ADAPTIVE),
        ],
    },
    Question {
        word: "arrival",
        asks: "a message for one who is not running?",
        answers: &[local("none"), kernel("boost")],
    },
    Question {
        word: "fairness",
        asks: "may it be boosted now?",
        answers: &[
            local("none"),
            kernel("always"),
            kernel("queue_cycle"),
            kernel("lag"),
            kernel("epoch"),
            kernel("calibrated"),
        ],
    },
    Question {
        word: "periodic",
        asks: "and between arrivals?",
        answers: &[local("none"), kernel("boost_pending"), kernel("heartbeat")],
    },
    Question {
        word: "order",
        asks: "who is next?",
        answers: &[
            local("local"),
            kernel("frequency"),
            kernel("receive_frequency"),
            kernel("pending"),
            kernel("round_robin"),
            kernel("veto"),
        ],
    },
    Question {
        word: "quantum",
        asks: "for how long?",
        answers: &[
            local("local"),
            kernel("fixed"),
            kernel("cache"),
            kernel("match"),
        ],
    },
    Question {
        word: "allocation",
        asks: "where?",
        answers: &[
            local("shared"),
            daemon("partition"),
            daemon("gang"),
            daemon("fcfs_space"),
            daemon("batch"),
        ],
    },
];

impl Question {
    /// The answer of that name.
    pub fn answer(&self, word: &str) -> Option<&'static Answer> {
        self.answers.iter().find(|a| a.word == word)
    }
}

impl Answer {
    /// The first of the bodies that can give it; the local scheduler is always there.
    pub fn given_by(&self, present: &[Body]) -> Option<Body> {
        self.code?;
        let here = |body: &Body| *body == Body::Local || present.contains(body);
        self.bodies.iter().copied().find(here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words;

    #[test]
    fn questions_stand_in_the_order_of_policy_h() {
        let ours: Vec<_> = QUESTIONS.iter().map(|q| q.word).collect();
        assert_eq!(ours, words::QUESTIONS);
    }

    #[test]
    fn every_wait_answer_of_policy_h_has_its_line() {
        let ours: Vec<_> = QUESTIONS[0].answers.iter().map(|a| a.word).collect();
        assert_eq!(ours, words::WAIT_ANSWERS);
        for (code, answer) in QUESTIONS[0].answers.iter().enumerate() {
            assert_eq!(answer.code, u32::try_from(code).ok(), "{}", answer.word);
        }
    }

    #[test]
    fn every_argument_of_adaptive_has_its_line_and_unit() {
        let suffix = |unit| match unit {
            Unit::Duration => "_ns",
            Unit::Factor => "_q8",
            Unit::Count => "",
        };
        let mut ours: Vec<_> = ADAPTIVE.iter().collect();
        ours.sort_by_key(|a| a.at);
        let ours: Vec<_> = ours
            .iter()
            .map(|a| format!("{}{}", a.key, suffix(a.unit)))
            .collect();
        assert_eq!(ours, words::ADAPTIVE_ARGS);
    }

    #[test]
    fn the_local_schedulers_answer_comes_first_and_is_0() {
        for question in &QUESTIONS[1..] {
            assert_eq!(question.answers[0].code, Some(0), "{}", question.word);
            assert_eq!(question.answers[0].given_by(&[]), Some(Body::Local));
        }
    }

    #[test]
    fn parameters_fit_and_do_not_collide() {
        for answer in QUESTIONS.iter().flat_map(|q| q.answers) {
            for (i, arg) in answer.args.iter().enumerate() {
                assert!(arg.at < raw::COS_NR_ARGS as usize, "{}", arg.key);
                assert!(arg.default.is_none_or(|d| d <= arg.max), "{}", arg.key);
                let same = |other: &Arg| other.at == arg.at || other.key == arg.key;
                assert!(!answer.args[..i].iter().any(same), "{}", arg.key);
            }
        }
    }
}
