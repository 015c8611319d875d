// SPDX-License-Identifier: Apache-2.0
//! Tasks: operations, waits, sleeps, their beginning and end.
//!
//! A task on a CPU has work left, in ns, and something to do after it. What needs CPU
//! and is seen by nobody else is added up (the cost of receiving, a computation, the cost
//! of the next send), so that one event carries it all out.
//!
//! A wait is an interval: policy is asked once, and its verdict holds until an instant or
//! until something that it watches changes. Going to sleep takes `block` of CPU time; a message that
//! arrives meanwhile is found by the look that follows, so no wake-up is lost.

use super::{hash, Sim};
use crate::cluster::{Mail, Next, TaskState};
use crate::engine::{Event, EventQueue, Kind};
use crate::local::{LocalScheduler, Why, NONE};
use crate::observer::Observer;
use crate::program::{Op, Step, ANY};
use cosched_policy::raw;

/// Where an operation leaves its task.
#[derive(PartialEq)]
enum After {
    /// On its CPU, with nothing left to do in this operation.
    Next,
    /// On its CPU with something to do that takes time, or off it.
    Later,
}

impl<L: LocalScheduler, Q: EventQueue, O: Observer> Sim<'_, L, Q, O> {
    /// The work of `task`, on `cpu`, is done: what follows it is carried out, and so on
    /// until something takes time.
    pub(super) fn go_on(&mut self, cpu: u32, task: u32) {
        let next = std::mem::replace(&mut self.tasks[task as usize].next, Next::Fetch);
        let mut after = match next {
            Next::Fetch => After::Next,
            Next::Do(op) => self.carry_out(cpu, task, op),
            Next::Block => self.block(cpu, task),
            Next::Yield => self.yield_cpu(cpu, task),
        };
        while after == After::Next {
            after = self.next_op(cpu, task);
        }
    }

    /// Takes the next operation of the program.
    fn next_op(&mut self, cpu: u32, task: u32) -> After {
        let op = self.fetch(task);
        let t = &mut self.tasks[task as usize];
        match op {
            Op::Compute(ns) => {
                t.work_ns += ns;
                if let Some(Op::Send { .. }) = self.peek(task) {
                    return After::Next;
                }
                self.tasks[task as usize].next = Next::Fetch;
            }
            Op::Send { .. } => {
                t.work_ns += self.network.send.ns();
                if self.network.in_kernel {
                    t.counted.system_ns += self.network.send.ns();
                }
                t.next = Next::Do(op);
            }
            _ => t.next = Next::Do(op),
        }
        let t = &mut self.tasks[task as usize];
        if t.work_ns == 0 {
            let Next::Do(op) = std::mem::replace(&mut t.next, Next::Fetch) else {
                return After::Next;
            };
            return self.carry_out(cpu, task, op);
        }
        self.show(cpu);
        self.arm(cpu);
        After::Later
    }

    fn fetch(&mut self, task: u32) -> Op {
        let it = &mut self.tasks[task as usize];
        let script = &mut it.script;
        if script.at == script.ops.len() {
            script.ops.clear();
            script.at = 0;
            let job = &self.jobs[it.job as usize];
            let number = task - job.first_task;
            let (number, all) = match job.independent {
                true => (number % job.threads, job.threads),
                false => (number, job.nr_tasks),
            };
            let mut step = Step {
                task: number,
                tasks: all,
                threads: job.threads,
                now_ns: self.now_ns,
                last_from: script.last.from,
                last_bytes: script.last.bytes,
                random: &mut script.random,
                ops: &mut script.ops,
            };
            script.program.step(&mut step);
            debug_assert!(!script.ops.is_empty(), "a step says at least one operation");
        }
        script.at += 1;
        script.ops[script.at - 1]
    }

    /// The operation after this one, if the program has said it already.
    fn peek(&self, task: u32) -> Option<Op> {
        let script = &self.tasks[task as usize].script;
        script.ops.get(script.at).copied()
    }

    fn carry_out(&mut self, cpu: u32, task: u32, op: Op) -> After {
        match op {
            Op::Compute(ns) => self.tasks[task as usize].work_ns += ns,
            Op::Send { to, bytes } => self.send(task, to, bytes),
            Op::Recv { from } => return self.receive(cpu, task, from),
            Op::Poll { from } => self.poll(task, from),
            Op::Sleep(ns) => return self.sleep(cpu, task, ns),
            Op::Lap => self.lap(task),
            Op::Exit => return self.exit(cpu, task),
        }
        After::Next
    }

    fn lap(&mut self, task: u32) {
        let began_ns = std::mem::replace(&mut self.tasks[task as usize].script.lap_ns, self.now_ns);
        let job = self.job_of(task);
        if began_ns != u64::MAX && (task == self.jobs[job].first_task || self.jobs[job].independent)
        {
            self.jobs[job].laps.add(self.now_ns - began_ns);
        }
    }

    /// The task that a program calls `from`, or [`ANY`].
    fn sender(&self, task: u32, from: u32) -> u32 {
        match from {
            ANY => ANY,
            from => self.jobs[self.job_of(task)].first_task + from,
        }
    }

    /// Reads a message if there is one; waits for none.
    fn poll(&mut self, task: u32, from: u32) {
        let peer = self.sender(task, from);
        if !self.read(task, peer) {
            self.tasks[task as usize].script.last = Mail {
                from: ANY,
                bytes: 0,
            };
        }
    }

    fn receive(&mut self, cpu: u32, task: u32, from: u32) -> After {
        let peer = self.sender(task, from);
        if self.read(task, peer) {
            return After::Next;
        }
        let t = &mut self.tasks[task as usize];
        t.waiting = true;
        t.wait_from = peer;
        t.wait_began_ns = self.now_ns;
        self.tasks[task as usize].counted.nr_waits += 1;
        self.ask_wait(cpu, task);
        After::Later
    }

    /// Takes a message of that task if it is there; its cost is added to the work.
    fn read(&mut self, task: u32, from: u32) -> bool {
        let Some(mail) = self.tasks[task as usize].mailbox.take(from) else {
            return false;
        };
        self.tasks[task as usize].mailbox.rq_bytes -= self.network.queued(mail.bytes);
        let first = self.jobs[self.job_of(task)].first_task;
        self.tasks[task as usize].script.last = Mail {
            from: mail.from - first,
            ..mail
        };
        self.tasks[task as usize].work_ns += self.network.receive.ns();
        if self.network.in_kernel {
            self.tasks[task as usize].counted.system_ns += self.network.receive.ns();
        }
        self.observe(task, raw::COS_EV_CONSUME);
        true
    }

    /// `task`, on `cpu` and waiting, has its message: the wait is over.
    pub(super) fn found(&mut self, cpu: u32, task: u32) {
        let t = &mut self.tasks[task as usize];
        t.waiting = false;
        t.spinning = false;
        t.yielding = false;
        t.watch = 0;
        let (from, began_ns) = (t.wait_from, t.wait_began_ns);
        self.tasks[task as usize].counted.wait_ns += self.now_ns - began_ns;
        let read = self.read(task, from);
        debug_assert!(read);
        self.go_on(cpu, task);
    }

    /// The verdict is SPIN, until then.
    pub(super) fn spin(&mut self, cpu: u32, task: u32, until_ns: u64, watch: u32) {
        let t = &mut self.tasks[task as usize];
        let was = std::mem::replace(&mut t.spinning, true);
        t.yielding = false;
        t.spin_until_ns = until_ns;
        t.watch = watch;
        if !was {
            self.show(cpu);
        }
        self.arm(cpu);
    }

    /// The verdict is YIELD: at each empty poll; where nobody else is ready that is spinning.
    pub(super) fn give_way(&mut self, cpu: u32, task: u32, until_ns: u64, watch: u32) {
        if self.queues[self.queue_of(cpu)].ready.is_empty() {
            self.spin(cpu, task, until_ns, watch);
            self.tasks[task as usize].yielding = true;
        } else {
            self.system_call(cpu, task, self.costs.yield_ns, Next::Yield);
        }
    }

    /// The verdict is BLOCK.
    pub(super) fn fall_asleep(&mut self, cpu: u32, task: u32) {
        if self.costs.block_ns == 0 {
            self.block(cpu, task);
        } else {
            self.system_call(cpu, task, self.costs.block_ns, Next::Block);
        }
    }

    fn system_call(&mut self, cpu: u32, task: u32, ns: u64, next: Next) {
        let t = &mut self.tasks[task as usize];
        t.spinning = false;
        t.yielding = false;
        t.watch = 0;
        t.work_ns += ns;
        t.next = next;
        self.tasks[task as usize].counted.system_ns += ns;
        self.show(cpu);
        self.arm(cpu);
    }

    /// The last look, and then sleep.
    fn block(&mut self, cpu: u32, task: u32) -> After {
        let from = self.tasks[task as usize].wait_from;
        if self.tasks[task as usize].mailbox.has(from) {
            self.found(cpu, task);
            return After::Later;
        }
        self.tasks[task as usize].counted.nr_blocks += 1;
        let job = self.job_of(task);
        self.off(cpu, task, TaskState::Blocked);
        self.ask_for_boost(task);
        self.inactive(job);
        After::Later
    }

    fn sleep(&mut self, cpu: u32, task: u32, ns: u64) -> After {
        self.off(cpu, task, TaskState::Sleeping);
        self.set_task_timer(task, self.now_ns.saturating_add(ns));
        After::Later
    }

    /// `task` gives `cpu` up to the next and is in no queue.
    fn off(&mut self, cpu: u32, task: u32, state: TaskState) {
        let (local, mut view) = self.view(cpu);
        local.stop(&mut view, task);
        self.load_changed(cpu, -1);
        self.leave(cpu, state);
        self.choose(cpu, NONE);
        self.went_off(task);
    }

    fn yield_cpu(&mut self, cpu: u32, task: u32) -> After {
        self.tasks[task as usize].counted.nr_yields += 1;
        let it = &mut self.tasks[task as usize];
        it.spinning = true;
        it.yielding = !L::YIELDS_ADD_UP;
        it.spin_until_ns = if L::YIELDS_ADD_UP {
            self.now_ns
        } else {
            u64::MAX
        };
        self.put_back(cpu, Why::Yielded);
        if self.cpus[cpu as usize].current != task {
            self.tasks[task as usize].spin_until_ns = self.now_ns;
        }
        self.note_yield(task);
        After::Later
    }

    /// A waiting task that polls goes on with it: it has its CPU again, or an interrupt is over.
    pub(super) fn resume_wait(&mut self, cpu: u32, task: u32) {
        let it = &self.tasks[task as usize];
        if self.tasks[task as usize].mailbox.has(it.wait_from) {
            return self.found(cpu, task);
        }
        if it.spin_until_ns <= self.now_ns {
            return self.ask_wait(cpu, task);
        }
        self.show(cpu);
        self.arm(cpu);
    }

    /// A blocked task whose message came becomes ready; it will find it when it runs.
    pub(super) fn wake(&mut self, task: u32) {
        let t = &mut self.tasks[task as usize];
        t.woken_ns = t.woken_ns.min(self.now_ns);
        t.spinning = true;
        t.spin_until_ns = self.now_ns;
        let job = self.job_of(task);
        self.jobs[job].nr_active += 1;
        if self.decider.pace_ns[task as usize] == 0 {
            self.set_task_timer(task, u64::MAX);
        }
        self.make_ready(task, Why::Woken);
    }

    pub(super) fn set_task_timer(&mut self, task: u32, at_ns: u64) {
        let t = &mut self.tasks[task as usize];
        let node = t.node;
        if let Some(at_ns) = t.timer.arm(at_ns) {
            self.agenda
                .push(Event::new(at_ns, node, Kind::Task, task, 0));
        }
    }

    /// A sleep is over; or it is time to ask policy again: for the peer's boost, for the own.
    pub(super) fn on_task_timer(&mut self, task: u32) {
        if self.keep_pace(task) {
            return;
        }
        match self.tasks[task as usize].state {
            TaskState::Sleeping => self.make_ready(task, Why::Woken),
            TaskState::Blocked => self.ask_for_boost(task),
            TaskState::Ready => self.ask_again(task),
            _ => {}
        }
    }

    /// Its process starts.
    pub(super) fn on_start(&mut self, task: u32) {
        let cpus = self.cpus_each;
        let t = &self.tasks[task as usize];
        let node = &mut self.nodes[t.node as usize];
        let counted = &mut self.tasks[task as usize].counted;
        counted.began_ns = self.now_ns;
        counted.share_q8 = node.alive.join(self.now_ns, cpus);
        self.join(task);
        self.make_ready(task, Why::New);
    }

    fn exit(&mut self, cpu: u32, task: u32) -> After {
        self.observe(task, raw::COS_EV_JOB_END);
        self.off(cpu, task, TaskState::Done);
        let cpus = self.cpus_each;
        let node = self.tasks[task as usize].node;
        let share_q8 = self.nodes[node as usize].alive.leave(self.now_ns, cpus);
        let counted = &mut self.tasks[task as usize].counted;
        counted.share_q8 = share_q8 - counted.share_q8;
        counted.ended_ns = Some(self.now_ns);
        self.hash = hash(self.hash, counted.cpu_ns);
        let job = self.job_of(task);
        self.jobs[job].nr_done += 1;
        self.released(task);
        if self.jobs[job].nr_done == self.jobs[job].nr_tasks {
            self.job_ended(job);
        }
        self.inactive(job);
        After::Later
    }
}
