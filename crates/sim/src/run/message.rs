// SPDX-License-Identifier: Apache-2.0
//! Sends and arrivals: a message leaves its sender, travels, and meets its receiver in
//! whatever state that is.

use super::Sim;
use crate::cluster::{CpuState, Mail, TaskState};
use crate::engine::{Event, EventQueue, Kind};
use crate::local::{LocalScheduler, NONE};
use crate::network::{Flight, Interrupts};
use crate::observer::{Message, Observer};
use crate::program::ANY;
use cosched_policy::raw;

impl<L: LocalScheduler, Q: EventQueue, O: Observer> Sim<'_, L, Q, O> {
    /// `task` has paid for the send: the message leaves it. `to` is a number within the job.
    pub(super) fn send(&mut self, task: u32, to: u32, bytes: u32) {
        let to = self.jobs[self.job_of(task)].first_task + to;
        self.tasks[task as usize].script.last_to = to;
        self.observe(task, raw::COS_EV_SEND);
        self.depart(task, to, bytes, false);
    }

    /// A message, or only a sign of life, is on its way.
    pub(super) fn depart(&mut self, task: u32, to: u32, bytes: u32, beat: bool) {
        let (node, there) = (self.tasks[task as usize].node, self.tasks[to as usize].node);
        let cpu = self.tasks[task as usize].cpu;
        let flight = Flight {
            sent_ns: self.now_ns,
            from: task,
            to,
            bytes,
            beat,
            sender_left_ns: self.slice_left_ns(task),
            epoch: self.cpus[cpu as usize].epoch,
            ..Flight::default()
        };
        let arrives_ns = if node == there {
            self.now_ns + self.network.local_latency.ns() + self.ring(task, to)
        } else {
            let link_free_ns = &mut self.nodes[node as usize].outbox.link_free_ns;
            let takes_ns = self.network.bandwidth.map_or(0, |it| it.time_ns(bytes));
            *link_free_ns = self.now_ns.max(*link_free_ns) + takes_ns;
            let check_ns = if self.decider.on_arrival {
                self.network.arrival_check.ns()
            } else {
                0
            };
            *link_free_ns + self.network.latency.ns() + check_ns
        };
        let seq = self.nodes[node as usize].outbox.put(flight);
        self.tasks[task as usize].mailbox.sq_bytes += self.network.queued(bytes);
        let job = self.job_of(task);
        self.jobs[job].nr_active += 1;
        self.agenda
            .push(Event::new(arrives_ns, there, Kind::Arrival, node, seq));
    }

    /// On one node the sender itself rings whom it wakes: who looks from then on knows that it wakes. The sleeper is
    /// awake at the end of that call, whose length is returned.
    fn ring(&mut self, from: u32, to: u32) -> u64 {
        let it = &mut self.tasks[to as usize];
        let awaited = it.wait_from == from || it.wait_from == ANY;
        let asleep = it.state == TaskState::Blocked && it.waiting && it.woken_ns > self.now_ns;
        if !(asleep && awaited) {
            return 0;
        }
        it.woken_ns = self.now_ns;
        let (ringer, ns) = (&mut self.tasks[from as usize], self.costs.wake_ns);
        ringer.work_ns += ns;
        ringer.counted.system_ns += ns;
        ns
    }

    /// Message `seq` of that node reaches its receiver's node.
    pub(super) fn on_arrival(&mut self, from_node: u32, seq: u32) {
        let flight = self.nodes[from_node as usize].outbox.take(seq);
        let to = flight.to;
        let queued = self.network.queued(flight.bytes);
        self.tasks[flight.from as usize].mailbox.sq_bytes -= queued;
        self.observer.message(
            self.now_ns,
            Message {
                from: flight.from,
                to,
                sent_ns: flight.sent_ns,
                bytes: flight.bytes,
            },
        );
        if !flight.beat {
            self.tasks[to as usize].counted.nr_messages += 1;
            let mail = Mail {
                from: flight.from,
                bytes: flight.bytes,
            };
            self.tasks[to as usize].mailbox.put(mail, queued);
        }
        self.meet(&flight, from_node);
        let job = self.job_of(to);
        self.inactive(job);
    }

    /// What the message does to its receiver, and to whoever has its CPU.
    fn meet(&mut self, flight: &Flight, from_node: u32) {
        let to = flight.to;
        let it = &self.tasks[to as usize];
        let (cpu, state, remote) = (it.cpu, it.state, it.node != from_node);
        let wanted = it.waiting && self.tasks[to as usize].mailbox.has(it.wait_from);
        let sleeps = state == TaskState::Blocked && wanted;
        let seen = remote || sleeps || !self.network.shared_memory;
        if seen {
            self.observe_arrival(flight);
        }
        let asks = seen && self.decider.on_arrival && !self.seems_to_run(to);
        if remote && (sleeps || asks || self.network.interrupts == Interrupts::All) {
            self.interrupt(cpu, self.network.interrupt.ns());
        }
        if sleeps {
            if !remote && self.tasks[flight.from as usize].cpu != cpu {
                self.interrupt(cpu, self.costs.kick_ns);
            }
            self.wake(to);
        }
        if asks {
            self.ask_arrival(to, Some(flight));
        }
        let it = &self.tasks[to as usize];
        let polls = it.state == TaskState::Running && it.waiting && it.spinning;
        let unread = it.mailbox.has(it.wait_from);
        if unread && polls && self.cpus[it.cpu as usize].state == CpuState::Running {
            let cpu = it.cpu;
            self.charge(cpu);
            self.found(cpu, to);
        }
    }

    /// What the network card of its node believes of the process of `task`.
    fn seems_to_run(&mut self, task: u32) -> bool {
        let process = &self.processes[self.tasks[task as usize].process as usize];
        let tasks = process.tasks.clone();
        if self.network.nic_sample.ns() == 0 {
            return tasks
                .clone()
                .any(|t| self.tasks[t as usize].state == TaskState::Running);
        }
        let first = process.node * self.cpus_each;
        let looked_ns = self.nodes[process.node as usize].nic.last_at(self.now_ns);
        (first..first + self.cpus_each).any(|cpu| {
            let it = &self.cpus[cpu as usize];
            let saw = if looked_ns >= it.came_on_ns {
                it.current
            } else {
                it.nic_saw
            };
            saw != NONE && tasks.contains(&saw)
        })
    }
}
