// SPDX-License-Identifier: Apache-2.0
//! The state of the cluster: nodes, run queues, CPUs, tasks, in arenas.
//!
//! Plain data with the few operations that keep it consistent; what happens to it is
//! in [`crate::run`]. The records that each event touches are aligned to two cache lines
//! and keep to them; what is only counted lies elsewhere.

mod clock;
mod ledger;
mod load;
mod task;

pub use clock::Clock;
pub use ledger::Ledger;
pub use load::Load;
pub use task::{Counted, Mail, Next, Script, Task, TaskState};

use crate::engine::Timer;
use crate::network::Outbox;
use std::ops::Range;

/// No task.
pub const NONE: u32 = u32::MAX;

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

impl Cpu {
    /// Whether it does nothing.
    pub fn is_idle(&self) -> bool {
        self.state == CpuState::Idle
    }
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

/// A process: tasks that share an address space.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its node.
    pub node: u32,
    /// Its tasks.
    pub tasks: Range<u32>,
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
    /// How far its clock is ahead, for gang scheduling.
    pub ahead_ns: u64,
    /// When policy is asked periodically next.
    pub policy_timer: Timer,
    /// Its tasks.
    pub tasks: Vec<u32>,
}
