// SPDX-License-Identifier: Apache-2.0
//! What may be written in a preset: questions, their answers, the answers'
//! parameters. The only place where a TOML key meets a position in
//! `cos_params.arg`.
//!
//! Every answer of the whole design is a known word, so that a preset can prefer
//! one that no body gives yet; such an answer has no code and takes no parameters
//! here. To add an answer: its function and enum line in policy/, one line here.
//!
//! Who gives what: wait is the shim's, and the simulator gives all. The kernel
//! cannot put an epoch on a message or send one, so epoch and heartbeat are the
//! simulator's alone.

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
    /// `-5`, in two's complement; its largest value bounds it on both sides.
    Exponent,
    /// `0.99`, from 0 to 1, in millionths.
    Share,
    /// `true` or `false`, 1 or 0.
    Switch,
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
const MILLION: u64 = 1_000_000;

const fn arg(key: &'static str, at: u32, unit: Unit, default: Option<u64>, max: u64) -> Arg {
    Arg {
        key,
        at: at as usize,
        unit,
        default,
        max,
    }
}

const fn duration(key: &'static str, at: u32, default: Option<u64>) -> Arg {
    arg(key, at, Unit::Duration, default, HOUR_NS)
}

const fn factor(key: &'static str, at: u32, default_q8: u64) -> Arg {
    arg(key, at, Unit::Factor, Some(default_q8), 1000 << 8)
}

/// Off where a preset does not say.
const fn switch(key: &'static str, at: u32) -> Arg {
    arg(key, at, Unit::Switch, Some(0), 1)
}

const fn answer(
    word: &'static str,
    code: u32,
    bodies: &'static [Body],
    args: &'static [Arg],
) -> Answer {
    Answer {
        word,
        code: Some(code),
        bodies,
        args,
    }
}

/// As the local scheduler does: answer 0.
const fn local(word: &'static str) -> Answer {
    answer(word, 0, &[Body::Local], &[])
}

const fn wait(word: &'static str, code: u32, args: &'static [Arg]) -> Answer {
    answer(word, code, &[Body::Shim, Body::Sim], args)
}

const fn kernel(word: &'static str, code: u32, args: &'static [Arg]) -> Answer {
    answer(word, code, &[Body::Kernel, Body::Sim], args)
}

const fn daemon(word: &'static str, code: u32, args: &'static [Arg]) -> Answer {
    answer(word, code, &[Body::Daemon, Body::Sim], args)
}

const fn sim(word: &'static str, code: u32, args: &'static [Arg]) -> Answer {
    answer(word, code, &[Body::Sim], args)
}

/// Known, but nowhere in policy/ yet.
const fn later(word: &'static str, bodies: &'static [Body]) -> Answer {
    Answer {
        word,
        code: None,
        bodies,
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

const BOOST: &[Arg] = &[
    duration("slice", raw::COS_BOOST_SLICE_NS, Some(0)),
    duration("lasts", raw::COS_BOOST_LASTS_NS, Some(1_000_000 * US)),
    duration("mark", raw::COS_BOOST_MARK_NS, Some(0)),
    switch("again", raw::COS_BOOST_AGAIN),
];

const QUEUE_CYCLE: &[Arg] = &[
    arg("e", raw::COS_QUEUE_CYCLE_E, Unit::Exponent, None, 64),
    duration("c", raw::COS_QUEUE_CYCLE_C_NS, None),
    duration("tq", raw::COS_QUEUE_CYCLE_TQ_NS, None),
    switch("average", raw::COS_QUEUE_CYCLE_AVERAGE),
    switch("per_task", raw::COS_QUEUE_CYCLE_PER_TASK),
    arg(
        "less",
        raw::COS_QUEUE_CYCLE_LESS,
        Unit::Count,
        Some(0),
        1000,
    ),
];

const LAG: &[Arg] = &[
    duration("max_debt", raw::COS_LAG_MAX_DEBT_NS, None),
    switch("shared", raw::COS_LAG_SHARED),
];

const CALIBRATED: &[Arg] = &[
    duration(
        "max_debt",
        raw::COS_CALIBRATED_MAX_DEBT_NS,
        Some(200_000 * US),
    ),
    duration(
        "memory",
        raw::COS_CALIBRATED_MEMORY_NS,
        Some(1_000_000 * US),
    ),
];

const PERIOD: Arg = duration("period", raw::COS_PERIODIC_PERIOD_NS, None);

const FREQUENCY: &[Arg] = &[
    arg(
        "past",
        raw::COS_FREQUENCY_PAST_PPM,
        Unit::Share,
        Some(990_000),
        MILLION,
    ),
    switch("learn", raw::COS_FREQUENCY_LEARN),
    switch("printed", raw::COS_FREQUENCY_PRINTED),
    duration("worth", raw::COS_FREQUENCY_WORTH_NS, Some(10_000 * US)),
    duration("max_debt", raw::COS_FREQUENCY_MAX_DEBT_NS, Some(HOUR_NS)),
];

const MATCH: &[Arg] = &[
    duration("min", raw::COS_MATCH_MIN_NS, Some(1_000 * US)),
    duration("max", raw::COS_MATCH_MAX_NS, Some(200_000 * US)),
];

const MAX_MPL: Arg = arg(
    "max_mpl",
    raw::COS_SHARED_MAX_MPL,
    Unit::Count,
    Some(0),
    1000,
);

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
        answers: &[
            local("none"),
            kernel("boost", raw::COS_ARRIVAL_BOOST, BOOST),
        ],
    },
    Question {
        word: "fairness",
        asks: "may it be boosted now?",
        answers: &[
            local("none"),
            kernel("always", raw::COS_FAIRNESS_ALWAYS, &[]),
            kernel("queue_cycle", raw::COS_FAIRNESS_QUEUE_CYCLE, QUEUE_CYCLE),
            kernel("lag", raw::COS_FAIRNESS_LAG, LAG),
            sim("epoch", raw::COS_FAIRNESS_EPOCH, &[]),
            kernel("calibrated", raw::COS_FAIRNESS_CALIBRATED, CALIBRATED),
        ],
    },
    Question {
        word: "periodic",
        asks: "and between arrivals?",
        answers: &[
            local("none"),
            kernel(
                "boost_pending",
                raw::COS_PERIODIC_BOOST_PENDING,
                &[
                    PERIOD,
                    duration("slice", raw::COS_PERIODIC_SLICE_NS, Some(0)),
                ],
            ),
            sim("heartbeat", raw::COS_PERIODIC_HEARTBEAT, &[PERIOD]),
        ],
    },
    Question {
        word: "order",
        asks: "who is next?",
        answers: &[
            local("local"),
            kernel("frequency", raw::COS_ORDER_FREQUENCY, FREQUENCY),
            kernel(
                "receive_frequency",
                raw::COS_ORDER_RECEIVE_FREQUENCY,
                FREQUENCY,
            ),
            kernel("pending", raw::COS_ORDER_PENDING, &[]),
            kernel("round_robin", raw::COS_ORDER_ROUND_ROBIN, &[]),
            kernel("veto", raw::COS_ORDER_VETO, &[]),
        ],
    },
    Question {
        word: "quantum",
        asks: "for how long?",
        answers: &[
            local("local"),
            kernel(
                "fixed",
                raw::COS_QUANTUM_FIXED,
                &[duration("slice", raw::COS_FIXED_SLICE_NS, None)],
            ),
            kernel("match", raw::COS_QUANTUM_MATCH, MATCH),
            later("cache", &[Body::Kernel, Body::Sim]),
        ],
    },
    Question {
        word: "allocation",
        asks: "where?",
        answers: &[
            answer(
                "shared",
                raw::COS_ALLOCATION_SHARED,
                &[Body::Local, Body::Daemon, Body::Sim],
                &[MAX_MPL],
            ),
            daemon(
                "gang",
                raw::COS_ALLOCATION_GANG,
                &[duration("slot", raw::COS_GANG_SLOT_NS, None)],
            ),
            daemon("fcfs_space", raw::COS_ALLOCATION_FCFS_SPACE, &[]),
            daemon("batch", raw::COS_ALLOCATION_BATCH, &[]),
            later("partition", &[Body::Daemon, Body::Sim]),
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
    /// The first of @present that can give it with these parameters. The local
    /// scheduler is always there, and is told none.
    pub fn given_by(&self, args: &[u64], present: &[Body]) -> Option<Body> {
        self.code?;
        let here = |body: &Body| match body {
            Body::Local => args.iter().all(|arg| *arg == 0),
            other => present.contains(other),
        };
        self.bodies.iter().copied().find(here)
    }

    /// The body that is missing where none gives it.
    pub fn belongs_to(&self) -> Body {
        let body = self.bodies.iter().find(|body| **body != Body::Local);
        body.copied().unwrap_or(Body::Local)
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
    fn every_answer_of_policy_h_has_its_line() {
        let words = [
            words::WAIT_ANSWERS,
            words::ARRIVAL_ANSWERS,
            words::FAIRNESS_ANSWERS,
            words::PERIODIC_ANSWERS,
            words::ORDER_ANSWERS,
            words::QUANTUM_ANSWERS,
            words::ALLOCATION_ANSWERS,
        ];
        for (question, words) in QUESTIONS.iter().zip(words) {
            let coded = question.answers.iter().filter(|a| a.code.is_some());
            let ours: Vec<_> = coded.clone().map(|a| a.word).collect();
            assert_eq!(ours, words, "{}", question.word);
            for (code, answer) in coded.enumerate() {
                assert_eq!(answer.code, u32::try_from(code).ok(), "{}", answer.word);
            }
        }
    }

    #[test]
    fn every_argument_of_policy_h_has_its_line_and_unit() {
        let suffix = |unit| match unit {
            Unit::Duration => "_ns",
            Unit::Factor => "_q8",
            Unit::Share => "_ppm",
            Unit::Count | Unit::Exponent | Unit::Switch => "",
        };
        for (args, words) in [
            (ADAPTIVE, words::ADAPTIVE_ARGS),
            (BOOST, words::BOOST_ARGS),
            (QUEUE_CYCLE, words::QUEUE_CYCLE_ARGS),
            (LAG, words::LAG_ARGS),
            (CALIBRATED, words::CALIBRATED_ARGS),
            (QUESTIONS[3].answers[1].args, words::PERIODIC_ARGS),
            (FREQUENCY, words::FREQUENCY_ARGS),
            (QUESTIONS[5].answers[1].args, words::FIXED_ARGS),
            (MATCH, words::MATCH_ARGS),
            (&[MAX_MPL], words::SHARED_ARGS),
            (QUESTIONS[6].answers[1].args, words::GANG_ARGS),
        ] {
            let mut ours: Vec<_> = args.iter().collect();
            ours.sort_by_key(|a| a.at);
            let named = |a: &&Arg| format!("{}{}", a.key, suffix(a.unit));
            assert_eq!(ours.iter().map(named).collect::<Vec<_>>(), words);
        }
    }

    #[test]
    fn the_local_schedulers_answer_comes_first_and_is_0() {
        for question in &QUESTIONS[1..] {
            assert_eq!(question.answers[0].code, Some(0), "{}", question.word);
            assert_eq!(question.answers[0].given_by(&[], &[]), Some(Body::Local));
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
