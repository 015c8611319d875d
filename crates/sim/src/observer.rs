// SPDX-License-Identifier: Apache-2.0
//! Watching a simulation without changing it: for traces and for tests.
//!
//! The simulator is compiled for each observer; the one that does nothing, `()`, costs nothing.

/// What a CPU is seen to do from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Nothing.
    Idle,
    /// Interrupts, or a switch to that task.
    Overhead(Option<u32>),
    /// That task computes, sends or receives.
    Run(u32),
    /// That task polls for a message.
    Spin(u32),
}

/// A message that arrived. Tasks are named by their numbers in the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sending task.
    pub from: u32,
    /// The receiving task.
    pub to: u32,
    /// When its sender had sent it.
    pub sent_ns: u64,
    /// Its size.
    pub bytes: u32,
}

/// Is told what happens, in the order in which it happens.
pub trait Observer {
    /// The tasks are known: node, job and number within the job of each.
    fn begin(&mut self, _tasks: &[TaskName]) {}
    /// From `now_ns` on, `cpu` of the cluster does that.
    fn cpu(&mut self, _now_ns: u64, _cpu: u32, _activity: Activity) {}
    /// A message arrived.
    fn message(&mut self, _now_ns: u64, _message: Message) {}
    /// Policy boosted that task.
    fn boost(&mut self, _now_ns: u64, _task: u32) {}
}

/// Where a task belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskName {
    /// Its job, in the scenario's order.
    pub job: u32,
    /// Its number within the job.
    pub number: u32,
    /// Its node.
    pub node: u32,
}

impl Observer for () {}
