// SPDX-License-Identifier: Apache-2.0
//! The simulation: events change the state of the cluster.
//!
//! One [`Sim`] holds everything. Its methods are in files by what they are about:
//!
//!   allocate  which jobs get CPUs, and when
//!   build     from a scenario to the first events
//!   cpu       CPUs: charge, choose, switch, preempt, interrupt
//!   task      tasks: operations, waits, sleeps, their end
//!   message   sends and arrivals
//!   decide    policy: what it is told, what is asked, what is done about it
//!   prefetch  what the next events will touch
//!   report    from the last state to the outcome
//!
//! Invariants, held by all of them: a task is in exactly one place (a run queue, one
//! CPU, or neither); a CPU is charged up to now before anything about it changes; after that its
//! timer is armed for whatever ends next.

mod allocate;
mod build;
mod cpu;
mod decide;
mod message;
mod prefetch;
mod report;
mod task;
#[cfg(test)]
mod tests;

use crate::cluster::{Cpu, Node, Process, RunQueue, Task};
use crate::engine::{Agenda, Event, EventQueue, Fired, Heap, Kind, Ladder};
use crate::histogram::Tally;
use crate::local::{with_scheduler, LocalScheduler, View};
use crate::network::Network;
use crate::observer::Observer;
use crate::outcome::Outcome;
use crate::scenario::{End, Scenario};
use crate::SimError;
use allocate::Allocator;
use cosched_model::Nanos;
use decide::{Decider, Seen};

/// Which queue gives the events. The outcome does not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueKind {
    /// The ladder queue.
    #[default]
    Ladder,
    /// The standard library's heap, to judge the ladder by.
    Heap,
}

/// How to simulate; the outcome depends on none of it.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The event queue.
    pub queue: QueueKind,
    /// Shortcuts: the next event beside the queue, and no call of policy that cannot learn anything.
    pub shortcuts: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            queue: QueueKind::Ladder,
            shortcuts: true,
        }
    }
}

/// Simulates `scenario`, telling `observer` what happens.
pub fn simulate<O: Observer>(scenario: &Scenario, observer: &mut O) -> Result<Outcome, SimError> {
    simulate_with(scenario, observer, Options::default())
}

/// [`simulate`] in a given way.
pub fn simulate_with<O: Observer>(
    scenario: &Scenario,
    observer: &mut O,
    options: Options,
) -> Result<Outcome, SimError> {
    scenario.check()?;
    with_scheduler!(&scenario.local, local => match options.queue {
        QueueKind::Ladder => Sim::<_, Ladder, O>::new(scenario, local, observer, options)?.run(),
        QueueKind::Heap => Sim::<_, Heap, O>::new(scenario, local, observer, options)?.run(),
    })
}

/// What things cost, in ns.
#[derive(Clone, Copy, Debug)]
struct Costs {
    switch_ns: u64,
    refill_ns: u64,
    block_ns: u64,
    kick_ns: u64,
    wake_ns: u64,
    yield_ns: u64,
    balance: bool,
}

/// A job as it runs.
#[derive(Clone, Debug)]
#[repr(align(128))]
struct JobState {
    first_task: u32,
    nr_tasks: u32,
    first_process: u32,
    nr_processes: u32,
    independent: bool,
    threads: u32,
    nr_done: u32,
    /// Tasks that can still do something by themselves, and messages on their way.
    nr_active: u32,
    began_ns: u64,
    ended_ns: Option<u64>,
    laps: Tally,
}

struct Sim<'a, L: LocalScheduler, Q, O> {
    scenario: &'a Scenario,
    local: &'a L,
    observer: &'a mut O,
    now_ns: u64,
    agenda: Agenda<Q>,
    costs: Costs,
    network: Network,
    nodes: Vec<Node>,
    cpus: Vec<Cpu>,
    /// CPUs of a node.
    cpus_each: u32,
    queues: Vec<RunQueue<L::Queue>>,
    tasks: Vec<Task>,
    /// The local scheduler's state of each task.
    own: Vec<L::Task>,
    processes: Vec<Process>,
    jobs: Vec<JobState>,
    decider: Decider,
    allocator: Allocator,
    events: u64,
    hash: u64,
    /// What ended the simulation.
    over: Option<Result<(), SimError>>,
    /// Jobs that must end before it is over.
    to_end: u32,
    /// What a kernel body has yet to see of this instant.
    seen: Vec<Seen>,
}

impl<L: LocalScheduler, Q: EventQueue, O: Observer> Sim<'_, L, Q, O> {
    fn run(mut self) -> Result<Outcome, SimError> {
        match self.until_over() {
            Some(Err(error)) => Err(error),
            _ => Ok(self.outcome()),
        }
    }

    /// Events, until something ends them.
    fn until_over(&mut self) -> Option<Result<(), SimError>> {
        let stop_ns = match self.scenario.end {
            End::Time(at) => at.ns(),
            _ => u64::MAX,
        };
        while self.over.is_none() {
            self.fetch_early();
            match self.agenda.pop() {
                Some(event) if event.at_ns <= stop_ns => {
                    self.event(event);
                    self.see_mates();
                }
                _ => {
                    self.now_ns = stop_ns;
                    self.over = Some(Ok(()));
                }
            }
        }
        self.over.take()
    }

    fn event(&mut self, event: Event) {
        debug_assert!(event.at_ns >= self.now_ns);
        self.now_ns = event.at_ns;
        let (node, from) = (event.node(), event.from());
        match event.kind() {
            Kind::Cpu => match self.cpus[from as usize].timer.fire(event.at_ns) {
                Fired::Due => {
                    self.count(event);
                    self.on_cpu(from);
                }
                Fired::Moved(at_ns) => self.agenda.push(Event { at_ns, ..event }),
                Fired::Stale => {}
            },
            Kind::Task => match self.tasks[from as usize].timer.fire(event.at_ns) {
                Fired::Due => {
                    self.count(event);
                    self.on_task_timer(from);
                }
                Fired::Moved(at_ns) => self.agenda.push(Event { at_ns, ..event }),
                Fired::Stale => {}
            },
            Kind::Policy => match self.nodes[node as usize].policy_timer.fire(event.at_ns) {
                Fired::Due => {
                    self.count(event);
                    self.on_policy_period(node);
                }
                Fired::Moved(at_ns) => self.agenda.push(Event { at_ns, ..event }),
                Fired::Stale => {}
            },
            Kind::Arrival => {
                self.count(event);
                self.on_arrival(from, event.seq());
            }
            Kind::Start => {
                self.count(event);
                self.on_start(from);
            }
            Kind::Submit => {
                self.count(event);
                self.on_submit(from);
            }
            Kind::Slot => {
                self.count(event);
                self.on_slot(node);
            }
            Kind::Period => {
                self.count(event);
                self.on_period(node);
            }
        }
    }

    /// Every event that means something is counted, and leaves its trace in the hash.
    fn count(&mut self, event: Event) {
        self.events += 1;
        self.hash = hash(hash(self.hash, event.at_ns), event.key);
        if self.events > self.scenario.max_events && self.over.is_none() {
            self.over = Some(Err(SimError::Truncated {
                limit: self.scenario.max_events,
                at: Nanos(self.now_ns),
            }));
        }
    }

    /// The run queue that serves `cpu`.
    fn queue_of(&self, cpu: u32) -> usize {
        if L::SHARED_QUEUE {
            (cpu / self.cpus_each) as usize
        } else {
            cpu as usize
        }
    }

    /// The CPUs of the run queue that serves `cpu`.
    fn siblings(&self, cpu: u32) -> std::ops::Range<u32> {
        if L::SHARED_QUEUE {
            let first = cpu / self.cpus_each * self.cpus_each;
            first..first + self.cpus_each
        } else {
            cpu..cpu + 1
        }
    }

    /// The local scheduler, and what it sees from `cpu`.
    fn view(&mut self, cpu: u32) -> (&L, View<'_, L>) {
        let queue = self.queue_of(cpu);
        let queue = &mut self.queues[queue];
        let view = View {
            now_ns: self.now_ns,
            clock: &self.nodes[(cpu / self.cpus_each) as usize].clock,
            ready: &mut queue.ready,
            running: self.cpus[cpu as usize].current,
            queue: &mut queue.own,
            tasks: &mut self.own,
        };
        (self.local, view)
    }

    fn job_of(&self, task: u32) -> usize {
        self.tasks[task as usize].job as usize
    }

    /// One task or message of the job can act no more; if that was the last, nobody ever will.
    fn inactive(&mut self, job: usize) {
        let it = &mut self.jobs[job];
        it.nr_active -= 1;
        if it.nr_active == 0 && it.nr_done < it.nr_tasks && self.over.is_none() {
            self.over = Some(Err(SimError::Deadlock {
                job: self.scenario.jobs[job].name.clone(),
                at: Nanos(self.now_ns),
            }));
        }
    }
}

/// One step of a 64-bit hash.
fn hash(so_far: u64, word: u64) -> u64 {
    (so_far.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}
