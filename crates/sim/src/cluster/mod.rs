// SPDX-License-Identifier: Apache-2.0
//! The state of the cluster: nodes, run queues, CPUs, tasks, in arenas.
//!
//! Plain data with the few operations that keep it consistent; what happens to it is
//! in [`crate::run`]. The records that each event touches are aligned to two cache lines
//! and keep to them; what is only counted lies elsewhere.

mod clock;
mod ledger;
mod load;

pub use clock::Clock;
pub use ledger::Ledger;
pub use load::Load;

use crate::engine::Timer;
use crate::local::NONE;
use crate::network::Outbox;
use crate::program::{Op, Program, ANY};
use crate::random::Stream;
use std::collections::VecDeque;
use std::ops::Range;

/// What a CPU does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CpuState {
    /// Nothing.
    #[default]
    Idle,
    /// Serves interrupts, then switches to its task if there is one.
    Overhead,
    /// Runs its task.
    Running,
}

/// CPU time by use, in ns. The sum is the time that has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Spent {
    /// Running tasks that compute, send or receive.
    pub run_ns: u64,
    /// Running tasks that spin.
    pub spin_ns: u64,
    /// Switching.
    pub switch_ns: u64,
    /// Interrupts.
    pub irq_ns: u64,
    /// Nothing.
    pub idle_ns: u64,
}

impl Spent {
    /// All of it.
    pub fn total_ns(&self) -> u64 {
        self.run_ns + self.spin_ns + self.switch_ns + self.irq_ns + self.idle_ns
    }
}

/// One CPU.
#[derive(Clone, Debug)]
#[repr(align(128))]
pub struct Cpu {
    /// What it does.
    pub state: CpuState,
    /// Choose again when the overhead is over.
    pub resched: bool,
    /// The task that has it, or [`NONE`].
    pub current: u32,
    /// The task that had it last: whose data the cache holds.
    pub last: u32,
    /// What the network card saw here when it last looked before `came_on_ns`.
    pub nic_saw: u32,
    /// Its one timer: whatever ends next.
    pub timer: Timer,
    /// Charged up to here.
    pub since_ns: u64,
    /// Overhead left.
    pub irq_ns: u64,
    /// Overhead left, after the interrupts.
    pub switch_ns: u64,
    /// Switches that the local scheduler made by itself (policy/fairness.h, epoch).
    pub epoch: u64,
    /// When the local scheduler wants to look at the running task.
    pub look_at_ns: u64,
    /// When `current` became what it is.
    pub came_on_ns: u64,
    /// Where the time went.
    pub spent: Spent,
}

impl Default for Cpu {
    fn default() -> Self {
        Cpu {
            state: CpuState::Idle,
            resched: false,
            current: NONE,
            last: NONE,
            nic_saw: NONE,
            timer: Timer::default(),
            since_ns: 0,
            irq_ns: 0,
            switch_ns: 0,
            epoch: 0,
            look_at_ns: u64::MAX,
            came_on_ns: 0,
            spent: Spent::default(),
        }
    }
}

/// What a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Its job has not started.
    #[default]
    Unborn,
    /// In a run queue.
    Ready,
    /// On a CPU.
    Running,
    /// Waiting for a message, asleep.
    Blocked,
    /// Asleep until an instant.
    Sleeping,
    /// Gone.
    Done,
}

/// What a task does when its CPU work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Ask its program.
    Fetch,
    /// Carry this out.
    Do(Op),
    /// Go to sleep for a message, unless it is there.
    Block,
    /// Let others go first.
    Yield,
}

/// One task.
#[derive(Clone, Debug)]
#[repr(align(128))]
pub struct Task {
    /// What it is.
    pub state: TaskState,
    /// It wants a message that it has not got.
    pub waiting: bool,
    /// It polls; else it uses up `work_ns`.
    pub spinning: bool,
    /// It spins only since nobody would take its place.
    pub yielding: bool,
    /// Fields of `cos_obs`: decide again when one changes.
    pub watch: u32,
    /// Of whom it wants a message: a task, or [`ANY`].
    pub wait_from: u32,
    /// Its node.
    pub node: u32,
    /// Where it runs or ran last.
    pub cpu: u32,
    /// Its process.
    pub process: u32,
    /// CPU work left before `next`.
    pub work_ns: u64,
    /// Cache to refill first.
    pub refill_ns: u64,
    /// What then.
    pub next: Next,
    /// The verdict to spin holds until then.
    pub spin_until_ns: u64,
    /// When the wait began.
    pub wait_began_ns: u64,
    /// It has not run since it was off its CPU.
    pub away: bool,
    /// When it last left a CPU, 0 before; and for how long it had had it.
    pub left_cpu_ns: u64,
    /// See `left_cpu_ns`.
    pub ran_ns: u64,
    /// When it was last woken by a message; `u64::MAX` once that was learned from.
    pub woken_ns: u64,
    /// For sleeps, and asking for a peer's boost.
    pub timer: Timer,
    /// MARK_RUNNING: ask as at an arrival if it loses its CPU before.
    pub marked_ns: u64,
    /// When policy wants to be asked periodically; `u64::MAX`: never.
    pub period_ns: u64,
    /// Boosted and not yet run: for how long; 0: as long as the local scheduler says.
    pub boost_slice_ns: u64,
    /// Boosted and not yet run: the epoch of the message; `u64::MAX`: not so.
    pub boost_epoch: u64,
}

impl Task {
    /// One that has not begun.
    pub fn new(node: u32, cpu: u32, process: u32) -> Self {
        Task {
            state: TaskState::Unborn,
            waiting: false,
            spinning: false,
            yielding: false,
            watch: 0,
            wait_from: ANY,
            node,
            cpu,
            process,
            work_ns: 0,
            refill_ns: 0,
            next: Next::Fetch,
            spin_until_ns: u64::MAX,
            wait_began_ns: 0,
            away: false,
            left_cpu_ns: 0,
            ran_ns: 0,
            woken_ns: u64::MAX,
            timer: Timer::default(),
            marked_ns: 0,
            period_ns: u64::MAX,
            boost_slice_ns: 0,
            boost_epoch: u64::MAX,
        }
    }
}

/// An unread message.
#[derive(Clone, Copy, Debug)]
pub struct Mail {
    /// The sending task.
    pub from: u32,
    /// Its size.
    pub bytes: u32,
}

/// Unread messages of a task, oldest first, and bytes on both sides.
#[derive(Clone, Debug, Default)]
pub struct Mailbox {
    mails: VecDeque<Mail>,
    /// Bytes that arrived and were not read.
    pub rq_bytes: u64,
    /// Bytes that were sent and did not arrive.
    pub sq_bytes: u64,
}

impl Mailbox {
    /// One arrives.
    pub fn put(&mut self, mail: Mail) {
        self.rq_bytes += u64::from(mail.bytes);
        self.mails.push_back(mail);
    }

    /// Whether there is one from that task, or from [`ANY`].
    pub fn has(&self, from: u32) -> bool {
        match from {
            ANY => !self.mails.is_empty(),
            from => self.mails.iter().any(|mail| mail.from == from),
        }
    }

    /// Reads the oldest of that task, or of [`ANY`].
    pub fn take(&mut self, from: u32) -> Option<Mail> {
        let i = self
            .mails
            .iter()
            .position(|mail| from == ANY || mail.from == from)?;
        let mail = self.mails.remove(i)?;
        self.rq_bytes -= u64::from(mail.bytes);
        Some(mail)
    }

    /// How many are unread.
    pub fn pending(&self) -> u32 {
        self.mails.len() as u32
    }
}

/// A program and how far it is.
pub struct Script {
    /// Says what comes next.
    pub program: Box<dyn Program>,
    /// What it said.
    pub ops: Vec<Op>,
    /// How much of that is done.
    pub at: usize,
    /// Its random numbers.
    pub random: Stream,
    /// Who sent what was received last.
    pub last: Mail,
    /// To whom it last sent; [`ANY`] before the first.
    pub last_to: u32,
    /// When the round began; `u64::MAX` before the first.
    pub lap_ns: u64,
}

/// A process: tasks that share an address space.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its job.
    pub job: u32,
    /// Its node.
    pub node: u32,
    /// Its tasks.
    pub tasks: Range<u32>,
    /// Where policy's state of its job on its node is.
    pub job_here: u32,
    /// Whether policy is asked about it: its job exchanges messages.
    pub communicates: bool,
}

/// A run queue.
#[derive(Clone, Debug, Default)]
pub struct RunQueue<T> {
    /// Runnable tasks that do not run.
    pub ready: Vec<u32>,
    /// How many are runnable, on average.
    pub load: Load,
    /// The local scheduler's state.
    pub own: T,
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its ticks.
    pub clock: Clock,
    /// When its local scheduler's period is over.
    pub period: Clock,
    /// When its network card looks who runs.
    pub nic: Clock,
    /// Its link, and what it sent.
    pub outbox: Outbox,
    /// The fair share of each that lives here, asleep or not.
    pub alive: Ledger,
    /// When policy is asked periodically next.
    pub policy_timer: Timer,
    /// Its tasks.
    pub tasks: Vec<u32>,
}
