// SPDX-License-Identifier: Apache-2.0
//! Programs: what the processes of a job do, as operations on CPU and messages.
//!
//! A [`Program`] is written like MPI code: each call of [`Program::step`] says what one
//! iteration does, by calling `compute`, `send`, `recv` on a [`Step`]. The
//! operations are kept and carried out in simulated time; when they are used
//! up, the next step is asked for. Collectives are functions that say several operations
//! ([`collective`]); what a step needs to know of the past (who sent last) is in the `Step`.
//!
//! | kind | what | from |
//! |---|---|---|
//! | `latency` | two ranks pass a token to and fro | S1 4.1.2 |
//! | `barrier` | a grain, then a barrier through the root | S1 4.1.2 |
//! | `token` | the same token on a ring or chain, with a grain, through threads | S1 5.1 |
//! | `polling` | receivers that compute, look for messages and never wait | S1 2 |
//! | `sor` | neighbours exchange rows of a grid | S1 4.1.2 |
//! | `sequential` | a unit after the other: read, compute (gtar, gs) | S1 4.1.2 |
//! | `master-slave` | some slaves reply and some do not | S4 4 |
//! | `is`, `mg` | NAS: all to all; halos on finer and coarser grids | S4 4, S5 3 |
//! | `calcula` | pure CPU | S4 4 |
//! | `local` | a user: part of a CPU, and long calls | S5 3 |
//! | `spmd` | random grains, a collective after each | S1 5.3: irregular codes |
//! | `sparse` | random grains, random neighbours | the same |
//! | `farm` | a bag of tasks | the same |
//! | `bursty` | background that comes and goes | the same |
//!
//! To add a workload: a file here with its parameters and its [`Kind`], a variant of
//! [`Workload`], a line in [`Workload::kind`], a dedicated time worked out by hand in tests/programs.rs.

mod barrier;
mod bursty;
mod calcula;
pub mod collective;
mod farm;
mod is;
mod latency;
mod local;
mod master_slave;
mod mg;
mod polling;
mod sequential;
mod sor;
mod sparse;
mod spmd;
mod token;
mod varies;

pub use barrier::Barrier;
pub use bursty::Bursty;
pub use calcula::Calcula;
pub use farm::Farm;
pub use is::Is;
pub use latency::Latency;
pub use local::Local;
pub use master_slave::MasterSlave;
pub use mg::Mg;
pub use polling::Polling;
pub use sequential::Sequential;
pub use sor::Sor;
pub use sparse::Sparse;
pub use spmd::{Collective, Spmd};
pub use token::{Path, Token};
pub use varies::Varies;

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
    /// Takes a message if there is one, and goes on at once; the next step knows by `last_from`.
    Poll {
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
    /// The instant; what receiving costs is still to be paid.
    pub now_ns: u64,
    /// Who sent the message that was received last; [`ANY`] before the first, and after a poll
    /// that found nothing.
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

    /// Take a message from `from`, or from [`ANY`], if there is one.
    pub fn poll(&mut self, from: u32) {
        self.ops.push(Op::Poll { from });
    }

    /// Sleep for `ns`.
    pub fn sleep(&mut self, ns: u64) {
        if ns > 0 {
            self.ops.push(Op::Sleep(ns));
        }
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

/// What is asked of a workload before it runs.
trait Kind {
    /// A fresh program for the task numbered `task`.
    fn program(&self, task: u32) -> Box<dyn Program>;
    /// Why a job of `ranks` with `threads` each cannot be this workload.
    fn refuses(&self, ranks: u32, threads: u32) -> Option<String>;
    /// Whether it runs until the simulation is over.
    fn endless(&self) -> bool {
        false
    }
    /// Whether its tasks send messages.
    fn communicates(&self) -> bool {
        true
    }
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
    /// A token on a ring or a chain.
    Token(Token),
    /// Receivers that never wait.
    Polling(Polling),
    /// Neighbours exchange rows.
    Sor(Sor),
    /// Reads and computes, alone.
    Sequential(Sequential),
    /// Some slaves reply, some do not.
    MasterSlave(MasterSlave),
    /// NAS IS.
    Is(Is),
    /// NAS MG.
    Mg(Mg),
    /// A local user.
    Local(Local),
    /// Random grains and a collective.
    Spmd(Spmd),
    /// Random grains and random neighbours.
    Sparse(Sparse),
    /// A bag of tasks.
    Farm(Farm),
    /// Background that comes and goes.
    Bursty(Bursty),
}

impl Workload {
    fn kind(&self) -> &dyn Kind {
        match self {
            Workload::Latency(it) => it,
            Workload::Barrier(it) => it,
            Workload::Calcula(it) => it,
            Workload::Token(it) => it,
            Workload::Polling(it) => it,
            Workload::Sor(it) => it,
            Workload::Sequential(it) => it,
            Workload::MasterSlave(it) => it,
            Workload::Is(it) => it,
            Workload::Mg(it) => it,
            Workload::Local(it) => it,
            Workload::Spmd(it) => it,
            Workload::Sparse(it) => it,
            Workload::Farm(it) => it,
            Workload::Bursty(it) => it,
        }
    }

    /// A fresh program for the task numbered `task`.
    pub fn program(&self, task: u32) -> Box<dyn Program> {
        self.kind().program(task)
    }

    /// Why a job of `ranks` with `threads` each cannot be this workload.
    pub fn refuses(&self, ranks: u32, threads: u32) -> Option<String> {
        self.kind().refuses(ranks, threads)
    }

    /// Whether it runs until the simulation is over.
    pub fn endless(&self) -> bool {
        self.kind().endless()
    }

    /// Whether its tasks send messages.
    pub fn communicates(&self) -> bool {
        self.kind().communicates()
    }
}

fn one() -> u32 {
    1
}

/// For workloads of ranks of one thread, at least `least` of them.
fn too_few(word: &str, least: u32, ranks: u32, threads: u32) -> Option<String> {
    (ranks < least || threads != 1)
        .then(|| format!("{word} has {least} or more ranks of one thread"))
}

/// The first of `needs` that is not so: what must be written instead.
fn lacking(word: &str, needs: &[(bool, &str)]) -> Option<String> {
    let (_, what) = needs.iter().find(|(is_so, _)| !is_so)?;
    Some(format!("{word} needs {what}"))
}
