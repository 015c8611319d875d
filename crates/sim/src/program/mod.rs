// SPDX-License-Identifier: Apache-2.0
//! Programs: what the processes of a job do, as operations on CPU and messages.
//!
//! A [`Program`] is written like MPI code: each call of [`Program::step`] says what one
//! iteration does, by calling `compute`, `send`, `recv` on a [`Step`]. The
//! operations are kept and carried out in simulated time; when they are used
//! up, the next step is asked for. Collectives are functions that say several operations
//! ([`collective`]); what a step needs to know of the past (who sent last) is in the `Step`.
//!
//! To add a workload: a file here, a variant of [`Workload`], a line in [`Workload::program`].

mod barrier;
mod calcula;
pub mod collective;
mod latency;

pub use barrier::Barrier;
pub use calcula::Calcula;
pub use latency::Latency;

use crate::random::Stream;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// As the sender of a receive: whoever comes first.
pub const ANY: u32 = u32::MAX;

/// One operation of a task. Peers are named by their number within the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Uses that many ns of CPU.
    Compute(u64),
    /// Sends so many bytes.
    Send {
        /// To whom.
        to: u32,
        /// How much.
        bytes: u32,
    },
    /// Waits for a message.
    Recv {
        /// From whom, or [`ANY`].
        from: u32,
    },
    /// Sleeps for that many ns, as for a terminal or a disk.
    Sleep(u64),
    /// A round begins, or ends and the next begins: its length goes into the job's histogram.
    Lap,
    /// The task is done.
    Exit,
}

/// What a program says its task does next, and what it may know.
pub struct Step<'a> {
    /// The number of this task within its job: rank * threads + thread.
    pub task: u32,
    /// How many tasks the job has.
    pub tasks: u32,
    /// How many threads each of its processes has.
    pub threads: u32,
    /// Who sent the message that was received last; [`ANY`] before the first.
    pub last_from: u32,
    /// How many bytes that message had.
    pub last_bytes: u32,
    /// The task's own random numbers.
    pub random: &'a mut Stream,
    pub(crate) ops: &'a mut SmallVec<[Op; 4]>,
}

impl Step<'_> {
    /// The rank of the process.
    pub fn rank(&self) -> u32 {
        self.task / self.threads
    }

    /// How many ranks the job has.
    pub fn ranks(&self) -> u32 {
        self.tasks / self.threads
    }

    /// The number of the thread within its process.
    pub fn thread(&self) -> u32 {
        self.task % self.threads
    }

    /// Use `ns` of CPU.
    pub fn compute(&mut self, ns: u64) {
        if ns > 0 {
            self.ops.push(Op::Compute(ns));
        }
    }

    /// Send `bytes` to the task numbered `to`.
    pub fn send(&mut self, to: u32, bytes: u32) {
        debug_assert!(to < self.tasks);
        self.ops.push(Op::Send { to, bytes });
    }

    /// Receive from `from`, or from [`ANY`].
    pub fn recv(&mut self, from: u32) {
        self.ops.push(Op::Recv { from });
    }

    /// Sleep for `ns`.
    pub fn sleep(&mut self, ns: u64) {
        self.ops.push(Op::Sleep(ns));
    }

    /// End a round and begin the next.
    pub fn lap(&mut self) {
        self.ops.push(Op::Lap);
    }

    /// The task is done.
    pub fn exit(&mut self) {
        self.ops.push(Op::Exit);
    }
}

/// The state of one task's program.
pub trait Program {
    /// Says at least one operation; [`Step::exit`] is the last.
    fn step(&mut self, step: &mut Step);
}

/// A workload with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Workload {
    /// Two ranks pass a token to and fro.
    Latency(Latency),
    /// Barriers with a grain of computation between.
    Barrier(Barrier),
    /// Pure CPU.
    Calcula(Calcula),
}

impl Workload {
    /// A fresh program for the task numbered `task`.
    pub fn program(&self, task: u32) -> Box<dyn Program> {
        match self {
            Workload::Latency(it) => Box::new(it.program(task)),
            Workload::Barrier(it) => Box::new(it.program()),
            Workload::Calcula(it) => Box::new(it.program()),
        }
    }

    /// Why a job of `ranks` with `threads` each cannot be this workload.
    pub fn refuses(&self, ranks: u32, threads: u32) -> Option<String> {
        match self {
            Workload::Latency(_) if ranks != 2 || threads != 1 => {
                Some("latency has two ranks of one thread".to_owned())
            }
            Workload::Barrier(_) if ranks < 2 || threads != 1 => {
                Some("barrier has two or more ranks of one thread".to_owned())
            }
            Workload::Calcula(it) => it.refuses(),
            _ => None,
        }
    }

    /// Whether it runs until the simulation is over.
    pub fn endless(&self) -> bool {
        matches!(self, Workload::Calcula(it) if it.work.is_none())
    }

    /// Whether its tasks send messages.
    pub fn communicates(&self) -> bool {
        !matches!(self, Workload::Calcula(_))
    }
}

fn one() -> u32 {
    1
}
