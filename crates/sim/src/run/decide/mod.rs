// SPDX-License-Identifier: Apache-2.0
//! Policy in the simulated cluster: KNOW what it is told, ask, ACT on the verdict.
//!
//! Every decision is made by the functions of `policy/`, called through `cosched_policy::native`.
//! What they are told is what a body could know: lengths of the own run queue, the own
//! mailbox, the state of peers on the same node; nothing of another node except
//! what a message carried. Who is asked: tasks of jobs that exchange messages; for `order` every candidate.
//!
//!   see      observations, and learning from them
//!   wait     how a waiting task waits
//!   arrival  boosts: on arrival and periodically
//!   mates    what a kernel body sees of ranks on its node
//!   order    who is next, for how long
//!
//! With shortcuts, `cos_observe` is called only for events from which an answer of this
//! preset learns; a test holds histories with and without equal.

mod arrival;
mod mates;
mod order;
mod see;
mod wait;

pub(super) use mates::Seen;

use crate::local::Capabilities;
use crate::SimError;
use cosched_policy::native::{Job, Params, Task, Verdict};
use cosched_policy::{raw, Resolved};

const NR_QUESTIONS: usize = raw::COS_NR_QUESTIONS as usize;
const NR_ACTS: usize = raw::COS_ACT_RUN as usize + 1;
const NR_REASONS: usize = raw::COS_NR_REASONS as usize;

/// Policy's state, and what its preset implies.
pub(super) struct Decider {
    pub params: Params,
    pub tasks: Vec<Task>,
    pub jobs: Vec<Job>,
    /// Outsiders as each task sees them: average in 1/256, and when it last looked.
    outsiders: Vec<(u32, u64)>,
    /// The next interval of asking for a peer's boost; 0: do not ask.
    asking_ns: Vec<u64>,
    /// How often the CPU of each task is to choose again; 0: as the local scheduler says.
    pub pace_ns: Vec<u64>,
    /// arrival is not `none`.
    pub on_arrival: bool,
    pub periodic: bool,
    ordered: bool,
    sliced: bool,
    matched: bool,
    adaptive: bool,
    /// By event: whether cos_observe could learn from it.
    learns: [bool; raw::COS_NR_EVENTS as usize],
    /// By question, act and reason.
    pub verdicts: [[[u64; NR_REASONS]; NR_ACTS]; NR_QUESTIONS],
}

pub(super) fn answer(params: &Params, question: u32) -> u32 {
    params.0.answer[question as usize]
}

pub(super) fn arg(params: &Params, question: u32, at: u32) -> u64 {
    params.0.arg[question as usize][at as usize]
}

/// From which events the answers of a preset learn (`cos_observe` and what it calls).
fn learns(params: &Params) -> [bool; raw::COS_NR_EVENTS as usize] {
    let mut learns = [false; raw::COS_NR_EVENTS as usize];
    let mut from = |event: u32| learns[event as usize] = true;
    if answer(params, raw::COS_Q_WAIT) == raw::COS_WAIT_ADAPTIVE {
        from(raw::COS_EV_WAKE);
        from(raw::COS_EV_RUN);
    }
    if answer(params, raw::COS_Q_PERIODIC) == raw::COS_PERIODIC_HEARTBEAT {
        from(raw::COS_EV_SEND);
    }
    if answer(params, raw::COS_Q_QUANTUM) == raw::COS_QUANTUM_MATCH {
        from(raw::COS_EV_ARRIVAL);
    }
    let fairness = answer(params, raw::COS_Q_FAIRNESS);
    if fairness == raw::COS_FAIRNESS_LAG || fairness == raw::COS_FAIRNESS_CALIBRATED {
        learns = [true; raw::COS_NR_EVENTS as usize];
    }
    learns
}

impl Decider {
    /// For so many tasks, and so many jobs on nodes.
    pub fn new(resolved: &Resolved, tasks: usize, jobs: usize, shortcuts: bool) -> Self {
        let params = resolved.params();
        let slices = [
            arg(&params, raw::COS_Q_ARRIVAL, raw::COS_BOOST_SLICE_NS),
            arg(&params, raw::COS_Q_PERIODIC, raw::COS_PERIODIC_SLICE_NS),
            u64::from(answer(&params, raw::COS_Q_QUANTUM)),
        ];
        Decider {
            tasks: vec![Task::default(); tasks],
            jobs: vec![Job::default(); jobs],
            outsiders: vec![(0, 0); tasks],
            asking_ns: vec![0; tasks],
            pace_ns: vec![0; tasks],
            on_arrival: answer(&params, raw::COS_Q_ARRIVAL) != raw::COS_ARRIVAL_NONE,
            periodic: answer(&params, raw::COS_Q_PERIODIC) != raw::COS_PERIODIC_NONE,
            ordered: answer(&params, raw::COS_Q_ORDER) != raw::COS_ORDER_LOCAL,
            sliced: slices.iter().any(|slice| *slice > 0),
            matched: answer(&params, raw::COS_Q_QUANTUM) == raw::COS_QUANTUM_MATCH,
            adaptive: answer(&params, raw::COS_Q_WAIT) == raw::COS_WAIT_ADAPTIVE,
            learns: match shortcuts {
                true => learns(&params),
                false => [true; raw::COS_NR_EVENTS as usize],
            },
            verdicts: [[[0; NR_REASONS]; NR_ACTS]; NR_QUESTIONS],
            params,
        }
    }

    pub fn count(&mut self, question: u32, verdict: &Verdict) {
        self.verdicts[question as usize][verdict.act as usize][verdict.reason as usize] += 1;
    }
}

/// What a local scheduler that `can` so much lacks for a preset: the question, and what it cannot.
fn lacks(params: &Params, can: Capabilities) -> Option<(u32, &'static str)> {
    let given = |question| answer(params, question) != 0;
    let wait = answer(params, raw::COS_Q_WAIT);
    let order = answer(params, raw::COS_Q_ORDER);
    let frequency = order == raw::COS_ORDER_FREQUENCY || order == raw::COS_ORDER_RECEIVE_FREQUENCY;
    let biases = frequency && arg(params, raw::COS_Q_ORDER, raw::COS_FREQUENCY_PRINTED) == 0;
    let replaces = given(raw::COS_Q_ORDER) && order != raw::COS_ORDER_VETO && !biases;
    let yields = wait == raw::COS_WAIT_SPIN_YIELD || wait == raw::COS_WAIT_ADAPTIVE;
    let lag = answer(params, raw::COS_Q_FAIRNESS) == raw::COS_FAIRNESS_LAG;
    let slice = arg(params, raw::COS_Q_ARRIVAL, raw::COS_BOOST_SLICE_NS) > 0;
    let pending = arg(params, raw::COS_Q_PERIODIC, raw::COS_PERIODIC_SLICE_NS) > 0;
    #[rustfmt::skip]
    let needs = [
        (raw::COS_Q_WAIT, yields, can.yields, "yield"),
        (raw::COS_Q_ARRIVAL, given(raw::COS_Q_ARRIVAL), can.boost, "boost"),
        (raw::COS_Q_ARRIVAL, slice, can.slice, "set a slice"),
        (raw::COS_Q_FAIRNESS, lag, can.lag, "tell the lag"),
        (raw::COS_Q_PERIODIC, given(raw::COS_Q_PERIODIC), can.boost, "boost"),
        (raw::COS_Q_PERIODIC, pending, can.slice, "set a slice"),
        (raw::COS_Q_ORDER, biases, can.order_bias, "add to its order"),
        (raw::COS_Q_ORDER, replaces, can.order_replace, "replace its order"),
        (raw::COS_Q_QUANTUM, given(raw::COS_Q_QUANTUM), can.slice, "set a slice"),
    ];
    let lacking = needs.iter().find(|(_, wants, can, _)| *wants && !can);
    lacking.map(|(question, _, _, what)| (*question, *what))
}

/// Refuses a preset that asks more of the local scheduler than it can do.
pub(super) fn check(resolved: &Resolved, can: Capabilities) -> Result<(), SimError> {
    let params = resolved.params();
    let word = |question: u32| resolved.taken[question as usize].choice.answer.word;
    if answer(&params, raw::COS_Q_ALLOCATION) == raw::COS_ALLOCATION_FCFS_SPACE {
        return Err(SimError::Scenario(format!(
            "policy {}: allocation {} is not simulated: take shared, gang or batch",
            resolved.name,
            word(raw::COS_Q_ALLOCATION)
        )));
    }
    match lacks(&params, can) {
        None => Ok(()),
        Some((question, what)) => Err(SimError::Incapable {
            preset: resolved.name.clone(),
            question: resolved.taken[question as usize].question.word,
            answer: word(question),
            what,
        }),
    }
}
