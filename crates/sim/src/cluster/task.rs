// SPDX-License-Identifier: Apache-2.0
//! A task: what it does, what it waits for, its mailbox, its program, what is counted of it.

use crate::engine::Timer;
use crate::program::{Op, Program, ANY};
use crate::random::Stream;
use smallvec::SmallVec;

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

/// One task. All that an event touches of it lies together: at 10^4 nodes memory is what limits.
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
    /// Its job.
    pub job: u32,
    /// With which others it is granted CPUs.
    pub unit: u32,
    /// Where policy's state of its job on its node is.
    pub job_here: u32,
    /// Whether policy is asked about it: its job exchanges messages.
    pub communicates: bool,
    /// CPU work left before `next`.
    pub work_ns: u64,
    /// For so long it refills its cache half of the time.
    pub cold_ns: u64,
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
    /// When it was last woken by a message, or rung on its node; `u64::MAX` once that was learned from.
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
    /// What is counted.
    pub counted: Counted,
    /// Its unread messages.
    pub mailbox: Mailbox,
    /// Its program.
    pub script: Script,
}

impl Task {
    /// One that has not begun, on `cpu` of `node`.
    pub fn new(node: u32, cpu: u32, process: u32, job: u32, script: Script) -> Self {
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
            job,
            unit: 0,
            job_here: 0,
            communicates: false,
            work_ns: 0,
            cold_ns: 0,
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
            counted: Counted {
                began_ns: u64::MAX,
                ..Counted::default()
            },
            mailbox: Mailbox::default(),
            script,
        }
    }

    /// It came on a CPU whose cache it must refill first, half of the time, until `refill_ns` are lost.
    pub fn grow_cold(&mut self, refill_ns: u64) {
        self.cold_ns = 2 * refill_ns;
    }

    /// It had its CPU for `ns` and worked: how often it is told does not matter, each odd nanosecond that is left of the cold ones is work.
    pub fn work(&mut self, ns: u64) {
        let cold_ns = self.cold_ns.saturating_sub(ns);
        let refilled_ns = self.cold_ns / 2 - cold_ns / 2;
        self.cold_ns = cold_ns;
        self.work_ns -= ns - refilled_ns;
    }

    /// How long its work takes from now.
    pub fn lasts_ns(&self) -> u64 {
        let refills_ns = self.work_ns.saturating_sub(self.cold_ns % 2);
        self.work_ns + refills_ns.min(self.cold_ns / 2)
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
    mails: SmallVec<[Mail; 2]>,
    /// Bytes of the socket queue that arrived and were not read.
    pub rq_bytes: u64,
    /// Bytes of the socket queue that were sent and did not arrive.
    pub sq_bytes: u64,
}

impl Mailbox {
    /// One arrives, which takes `queued` bytes of the socket.
    pub fn put(&mut self, mail: Mail, queued: u64) {
        self.rq_bytes += queued;
        self.mails.push(mail);
    }

    /// Whether there is one from that task, or from [`ANY`].
    pub fn has(&self, from: u32) -> bool {
        match from {
            ANY => !self.mails.is_empty(),
            from => self.mails.iter().any(|mail| mail.from == from),
        }
    }

    /// Reads the oldest of that task, or of [`ANY`]; its bytes are the caller's to take off.
    pub fn take(&mut self, from: u32) -> Option<Mail> {
        let i = self
            .mails
            .iter()
            .position(|mail| from == ANY || mail.from == from)?;
        Some(self.mails.remove(i))
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
    pub ops: SmallVec<[Op; 4]>,
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

/// What is counted of a task.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// CPU time.
    pub cpu_ns: u64,
    /// Part of it in the kernel.
    pub system_ns: u64,
    /// Part of it polling.
    pub spin_ns: u64,
    /// In waits for messages.
    pub wait_ns: u64,
    /// Waits for messages.
    pub nr_waits: u64,
    /// Those that slept.
    pub nr_blocks: u64,
    /// Yields.
    pub nr_yields: u64,
    /// Times it came onto a CPU that another had.
    pub nr_switches: u64,
    /// Changes of CPU.
    pub nr_migrations: u64,
    /// Times policy made it run next.
    pub nr_boosts: u64,
    /// Messages that reached it.
    pub nr_messages: u64,
    /// Times a message woke it.
    pub nr_wakes: u64,
    /// From those messages until it ran.
    pub wake_ns: u64,
    /// When it began; `u64::MAX` before.
    pub began_ns: u64,
    /// When it ended.
    pub ended_ns: Option<u64>,
    /// Its fair share: the ledger when it began; afterwards, the share itself.
    pub share_q8: u64,
}
