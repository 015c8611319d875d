// SPDX-License-Identifier: Apache-2.0
//! Local schedulers: who runs on one node, with no knowledge of any other.
//!
//! The body of the simulator owns run queues, CPUs and time; a local scheduler
//! owns what it remembers of a task and of a queue, and answers: in which order,
//! until when, who preempts. Everything is integer arithmetic. To add one: a file
//! here that implements [`LocalScheduler`], a variant of [`Params`] and its line in
//! [`with_scheduler`].
//!
//! What policy may ask of it is declared in [`Capabilities`]; a scenario that asks for
//! more is refused before it runs, so that no verdict is ignored silently.

mod cosched;
mod eevdf;
mod linux22;
mod solaris_ts;
mod stride;

pub use cosched::Cosched;
pub use eevdf::Eevdf;
pub use linux22::{Linux22, Recharge, SliceEnds};
pub use solaris_ts::{Boost, Dispwait, SolarisTs};
pub use stride::Stride;

pub use crate::cluster::NONE;

use crate::cluster::Clock;
use crate::random::Stream;
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Which verdicts of policy a local scheduler can realise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// `arrival`, `periodic`: a task runs next, whatever its turn.
    pub boost: bool,
    /// `quantum`: the length of a slice, per task.
    pub slice: bool,
    /// `order` with a key instead of the local one.
    pub order_replace: bool,
    /// `order` with a key that is added to the local one.
    pub order_bias: bool,
    /// `wait`: a yield lets others run first.
    pub yields: bool,
    /// `fairness = lag`: it keeps account of who is owed time.
    pub lag: bool,
}

impl Capabilities {
    /// It realises every verdict.
    pub const ALL: Capabilities = Capabilities {
        boost: true,
        slice: true,
        order_replace: true,
        order_bias: true,
        yields: true,
        lag: true,
    };
}

/// Why a task enters a run queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It begins.
    New,
    /// It slept.
    Woken,
    /// Another runs instead, its slice is not over.
    Preempted,
    /// Its slice is over.
    Expired,
    /// It asked others to go first.
    Yielded,
    /// It comes from another CPU's queue.
    Migrated,
}

/// What a local scheduler sees and may change: one run queue, at one instant.
pub struct View<'a, L: LocalScheduler> {
    /// The instant.
    pub now_ns: u64,
    /// The node's ticks.
    pub clock: &'a Clock,
    /// Runnable tasks that do not run, in queue order.
    pub ready: &'a mut Vec<u32>,
    /// The task on the CPU that asks, or [`NONE`].
    pub running: u32,
    /// The scheduler's state of the queue.
    pub queue: &'a mut L::Queue,
    /// Its state of every task, by number.
    pub tasks: &'a mut [L::Task],
}

impl<L: LocalScheduler> View<'_, L> {
    /// The first tick at which who runs has used up the `left` ns of its slice; never while nobody waits.
    fn used_up_at_ns(&self, left: i64) -> u64 {
        if self.ready.is_empty() {
            return u64::MAX;
        }
        let left_ns = left.max(0) as u64;
        self.clock.at_or_after(self.now_ns.saturating_add(left_ns))
    }
}

/// Refuses a parameter, called `name`, of no length.
fn refuse_zero(name: &str, span: Span) -> Option<String> {
    (span == Span::ZERO).then(|| format!("local.{name}: write a {name} above 0"))
}

/// `ns` among virtual times, which are signed.
fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// The slice that policy set, or where that is 0 the scheduler's `own`.
fn slice_or(slice_ns: u64, own: Span) -> i64 {
    match slice_ns {
        0 => signed(own.ns()),
        ns => signed(ns),
    }
}

/// How one node shares its CPUs among tasks. What has a body here is what most do.
pub trait LocalScheduler: Sized {
    /// Its state of a run queue.
    type Queue: Clone + Default;
    /// Its state of a task.
    type Task: Clone + Copy + Default;

    /// True: the CPUs of a node share one run queue; false: each has its own.
    const SHARED_QUEUE: bool;

    /// True: each yield in a row puts the task further back; false: a second one changes nothing,
    /// so that after a yield in vain the next is not simulated until something changes.
    const YIELDS_ADD_UP: bool;

    /// What policy may ask of it.
    const CAPABILITIES: Capabilities;

    /// Why its parameters cannot be.
    fn refuses(&self) -> Option<String> {
        None
    }

    /// The nominal period of the clock tick in ns.
    fn tick_ns(&self) -> u64;

    /// A task is new here; what is random in its first slice comes from `phase`.
    fn begin(&self, task: &mut Self::Task, phase: &mut Stream);

    /// Puts `task` into `ready`. Its CPU time up to now has been charged; `running` is another.
    fn enqueue(&self, view: &mut View<Self>, task: u32, why: Why);

    /// Smaller goes first, the earlier in the queue of two equal ones; none: not now.
    fn key(&self, view: &View<Self>, task: u32) -> Option<i64>;

    /// More is sooner, in ns, for `order` in the printed reading; none where there is no such weight.
    fn weight_ns(&self, _task: &Self::Task) -> Option<u64> {
        None
    }

    /// What is left of its slice; 0: used up in this epoch; none where slices do not end so.
    fn left_ns(&self, task: &Self::Task) -> Option<u64>;

    /// How far it is behind its fair share, if that is known.
    fn lag_ns(&self, _view: &View<Self>, _task: u32) -> Option<i64> {
        None
    }

    /// Tasks are ready and none has a key: a new epoch.
    fn replenish(&self, _view: &mut View<Self>) {}

    /// `task` left `ready` and is `running` now.
    fn start(&self, view: &mut View<Self>, task: u32);

    /// `task` had its CPU from `from_ns` until now.
    fn charge(&self, view: &mut View<Self>, task: u32, from_ns: u64);

    /// The instant at which the running task must be looked at again (`u64::MAX`: never).
    fn look_at_ns(&self, view: &View<Self>, task: u32) -> u64;

    /// That instant came. True: its slice is over, choose among it and `ready`.
    fn expire(&self, view: &mut View<Self>, task: u32) -> bool;

    /// Shall `task`, just put into `ready`, run instead of `running`?
    fn preempts(&self, view: &View<Self>, task: u32) -> bool;

    /// `task`, running or in `ready`, leaves this queue: it sleeps, ends or migrates.
    fn stop(&self, _view: &mut View<Self>, _task: u32) {}

    /// `task`, in `ready`, must be the next: policy said BOOST.
    fn boost(&self, view: &mut View<Self>, task: u32);

    /// May such a boost preempt who runs? Asked once for each.
    fn kicks(&self, _view: &mut View<Self>) -> bool {
        true
    }

    /// It is a kernel body that sees what ranks on its node do to each other.
    fn sees_mates(&self) -> bool {
        false
    }

    /// `task`, which leaves its CPU, had a whole turn.
    fn turn_is_over(&self, _task: &Self::Task) -> bool {
        false
    }

    /// `task` shall have slices of `slice_ns`, 0 = its own again: policy said so.
    fn set_slice(&self, task: &mut Self::Task, slice_ns: u64);

    /// Its own period in ns, if it has one.
    fn period_ns(&self) -> Option<u64> {
        None
    }

    /// That period is over; `asleep` and `running` are tasks of this queue. True: choose again.
    fn on_period(&self, _view: &mut View<Self>, _asleep: &[u32], _running: &[u32]) -> bool {
        false
    }
}

/// A local scheduler with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "scheduler", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Params {
    /// Linux since 6.6.
    Eevdf(eevdf::Eevdf),
    /// Solaris 2.4, time-sharing class.
    SolarisTs(solaris_ts::SolarisTs),
    /// Linux 2.2.
    Linux22(linux22::Linux22),
    /// Proportional share.
    Stride(stride::Stride),
    /// Our kernel body.
    Cosched(cosched::Cosched),
}

/// Calls `$body` with `$local` bound to the concrete scheduler that `$params` names.
macro_rules! with_scheduler {
    ($params:expr, $local:ident => $body:expr) => {
        match $params {
            $crate::local::Params::Eevdf($local) => $body,
            $crate::local::Params::SolarisTs($local) => $body,
            $crate::local::Params::Linux22($local) => $body,
            $crate::local::Params::Stride($local) => $body,
            $crate::local::Params::Cosched($local) => $body,
        }
    };
}
pub(crate) use with_scheduler;

impl Params {
    /// Why it cannot be.
    pub fn check(&self) -> Result<(), String> {
        let tick_ns = with_scheduler!(self, local => local.tick_ns());
        let period_ns = with_scheduler!(self, local => local.period_ns());
        if tick_ns.min(period_ns.unwrap_or(u64::MAX)) < 1_000 {
            return Err("local: too short a tick or period: write 1us or more".into());
        }
        match with_scheduler!(self, local => local.refuses()) {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }

    /// What policy may ask of it.
    pub fn capabilities(&self) -> Capabilities {
        fn of<L: LocalScheduler>(_: &L) -> Capabilities {
            L::CAPABILITIES
        }
        with_scheduler!(self, local => of(local))
    }
}
