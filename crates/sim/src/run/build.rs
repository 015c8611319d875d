// SPDX-License-Identifier: Apache-2.0
//! From a scenario to a cluster at rest, and its first events.

use super::allocate::{Allocator, Unit};
use super::{decide, Costs, JobState, Options, Sim};
use crate::cluster::{Clock, Cpu, Ledger, Mail, Node, Process, RunQueue, Script, Task};
use crate::engine::{Agenda, Event, EventQueue, Kind, Timer};
use crate::histogram::Tally;
use crate::local::LocalScheduler;
use crate::network::Outbox;
use crate::observer::{Observer, TaskName};
use crate::program::ANY;
use crate::random::{Purpose, Source};
use crate::scenario::{End, Scenario};
use crate::SimError;
use decide::Decider;
use smallvec::SmallVec;
use std::collections::HashMap;

/// What grows while jobs are laid out.
struct Layout<T> {
    source: Source,
    cpus_each: u32,
    /// Tasks placed on each CPU.
    placed: Vec<u32>,
    /// (job, node): where policy's state of it is.
    here: HashMap<(u32, u32), u32>,
    tasks: Vec<Task>,
    own: Vec<T>,
    processes: Vec<Process>,
    jobs: Vec<JobState>,
    names: Vec<TaskName>,
    /// Who is granted CPUs together; the last one of each job is still growing.
    units: Vec<Unit>,
    /// How long after its job each task starts.
    scatter_ns: Vec<u64>,
}

impl<'a, L: LocalScheduler, Q: EventQueue, O: Observer> Sim<'a, L, Q, O> {
    pub(super) fn new(
        scenario: &'a Scenario,
        local: &'a L,
        observer: &'a mut O,
        options: Options,
    ) -> Result<Self, SimError> {
        let resolved = scenario.resolved()?;
        decide::check(&resolved, L::CAPABILITIES)?;
        let cluster = &scenario.cluster;
        let nr_cpus = (cluster.nodes * cluster.cpus) as usize;
        let mut layout = lay_out(scenario, local);
        observer.begin(&layout.names);
        let nodes = nodes(scenario, local, &layout.tasks);
        let nr_tasks = layout.tasks.len();
        let nr_queues = if L::SHARED_QUEUE {
            nodes.len()
        } else {
            nr_cpus
        };
        let scatter_ns = std::mem::take(&mut layout.scatter_ns);
        let units = std::mem::take(&mut layout.units);
        let mut sim = Sim {
            scenario,
            local,
            observer,
            now_ns: 0,
            agenda: Agenda::new(options.shortcuts),
            costs: Costs {
                switch_ns: cluster.switch.ns(),
                refill_ns: cluster.refill.ns(),
                block_ns: cluster.block.ns(),
                kick_ns: cluster.kick.ns(),
                wake_ns: cluster.wake.ns(),
                yield_ns: cluster.yields.ns(),
                balance: cluster.balance,
            },
            network: scenario.network.clone(),
            nodes,
            cpus: vec![Cpu::default(); nr_cpus],
            cpus_each: cluster.cpus,
            queues: vec![RunQueue::default(); nr_queues],
            decider: Decider::new(&resolved, nr_tasks, layout.here.len(), options.shortcuts),
            allocator: Allocator::new(&resolved.params(), units, scatter_ns),
            tasks: layout.tasks,
            own: layout.own,
            processes: layout.processes,
            jobs: layout.jobs,
            events: 0,
            hash: 0,
            over: None,
            to_end: to_end(scenario),
            seen: Vec::new(),
        };
        sim.first_events();
        Ok(sim)
    }

    fn first_events(&mut self) {
        self.submit_all();
        if self.local.period_ns().is_some() {
            for node in 0..self.nodes.len() as u32 {
                let first_ns = self.nodes[node as usize].period.at_or_after(0);
                self.agenda
                    .push(Event::new(first_ns, node, Kind::Period, 0, 0));
            }
        }
    }
}

/// How many jobs must end before it is over.
fn to_end(scenario: &Scenario) -> u32 {
    match scenario.end {
        End::All => scenario
            .jobs
            .iter()
            .filter(|job| !job.workload.endless())
            .count() as u32,
        End::First | End::Job(_) => 1,
        End::Time(_) => 0,
    }
}

fn nodes<L: LocalScheduler>(scenario: &Scenario, local: &L, tasks: &[Task]) -> Vec<Node> {
    let source = source(scenario);
    let ppm = scenario.cluster.drift_ppm;
    let mut nodes: Vec<Node> = (0..u64::from(scenario.cluster.nodes))
        .map(|node| {
            let mut stream = source.stream(node, Purpose::Clock);
            let mut clock = |period_ns: u64| Clock::new(period_ns.max(1), ppm, &mut stream);
            let [tick, period, nic] = [
                local.tick_ns(),
                local.period_ns().unwrap_or(1),
                scenario.network.nic_sample.ns(),
            ]
            .map(&mut clock);
            Node {
                clock: tick,
                period,
                nic,
                outbox: Outbox::default(),
                alive: Ledger::default(),
                ahead_ns: stream.below(2 * scenario.cluster.clock_error.ns() + 1),
                policy_timer: Timer::default(),
                tasks: Vec::new(),
            }
        })
        .collect();
    for (number, task) in (0..).zip(tasks) {
        nodes[task.node as usize].tasks.push(number);
    }
    nodes
}

fn source(scenario: &Scenario) -> Source {
    Source {
        seed: scenario.seed,
        replication: scenario.replication,
    }
}

fn lay_out<L: LocalScheduler>(scenario: &Scenario, local: &L) -> Layout<L::Task> {
    let cluster = &scenario.cluster;
    let mut layout = Layout {
        source: source(scenario),
        cpus_each: cluster.cpus,
        placed: vec![0; (cluster.nodes * cluster.cpus) as usize],
        here: HashMap::new(),
        tasks: Vec::new(),
        own: Vec::new(),
        processes: Vec::new(),
        jobs: Vec::new(),
        names: Vec::new(),
        units: Vec::new(),
        scatter_ns: Vec::new(),
    };
    for (number, job) in (0..).zip(&scenario.jobs) {
        let nr_processes = job.processes(cluster.nodes) as u32;
        layout.jobs.push(JobState {
            first_task: layout.tasks.len() as u32,
            nr_tasks: nr_processes * job.threads,
            first_process: layout.processes.len() as u32,
            nr_processes,
            independent: job.each_node.is_some(),
            threads: job.threads,
            nr_done: 0,
            nr_active: nr_processes * job.threads,
            began_ns: u64::MAX,
            ended_ns: None,
            laps: Tally::default(),
        });
        for process in 0..nr_processes {
            layout.process(number, job, process, job.node_of(process, cluster.nodes));
        }
    }
    for (number, own) in (0..).zip(&mut layout.own) {
        local.begin(own, &mut layout.source.stream(number, Purpose::Phase));
        let job = layout.tasks[number as usize].job;
        if let Some(slice) = scenario.jobs[job as usize].slice {
            local.set_slice(own, slice.ns());
        }
    }
    layout
}

impl<T: Default> Layout<T> {
    fn process(&mut self, job: u32, it: &crate::scenario::Job, process: u32, node: u32) {
        let first = self.tasks.len() as u32;
        let next_here = self.here.len() as u32;
        let here = *self.here.entry((job, node)).or_insert(next_here);
        let mut start = self.source.stream(u64::from(first), Purpose::Start);
        let scatter_ns = start.below(it.scatter.ns() + 1);
        let unit = self.unit(job, it, process);
        for thread in 0..it.threads {
            let number = process * it.threads + thread;
            self.names.push(TaskName { job, number, node });
            let script = self.script(it, number);
            let task = self.task(job, here, node, script);
            let cpu = task.cpu;
            self.tasks.push(Task {
                communicates: it.workload.communicates(),
                unit: unit as u32,
                ..task
            });
            self.own.push(T::default());
            self.scatter_ns.push(scatter_ns);
            self.units[unit].add(self.tasks.len() as u32 - 1, cpu);
        }
        let tasks = first..first + it.threads;
        self.processes.push(Process { node, tasks });
    }

    /// Which unit a process belongs to: one for all ranks, or one for the n-th copies on all nodes.
    fn unit(&mut self, job: u32, it: &crate::scenario::Job, process: u32) -> usize {
        let copies = it.each_node.unwrap_or(1);
        if process == 0 {
            let new = (0..copies).map(|_| Unit::new(job));
            self.units.extend(new);
        }
        let first = self.units.len() - copies as usize;
        first + (process % copies) as usize * usize::from(it.each_node.is_some())
    }

    /// On the CPU of its node that has fewest.
    fn task(&mut self, job: u32, job_here: u32, node: u32, script: Script) -> Task {
        let first = node * self.cpus_each;
        let cpus = first..first + self.cpus_each;
        let fewest = cpus.min_by_key(|cpu| self.placed[*cpu as usize]);
        let cpu = fewest.unwrap_or(first);
        self.placed[cpu as usize] += 1;
        Task {
            job_here,
            ..Task::new(node, cpu, self.processes.len() as u32, job, script)
        }
    }

    fn script(&self, it: &crate::scenario::Job, number: u32) -> Script {
        let alone = it.each_node.is_some();
        let number = if alone { number % it.threads } else { number };
        let who = self.tasks.len() as u64;
        let nobody = Mail {
            from: ANY,
            bytes: 0,
        };
        Script {
            program: it.workload.program(number),
            ops: SmallVec::new(),
            at: 0,
            random: self.source.stream(who, Purpose::Program),
            last: nobody,
            last_to: ANY,
            lap_ns: u64::MAX,
        }
    }
}
