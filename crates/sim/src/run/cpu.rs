// SPDX-License-Identifier: Apache-2.0
//! CPUs: charge, choose, switch, preempt, interrupt.
//!
//! A CPU is idle, in overhead (interrupts first, then a switch), or running its task. The
//! task on a CPU in overhead has it already: a switch is paid by the task that comes
//! on. A choice that falls due in overhead waits for its end, as on exit from an interrupt
//! (S1, section 3.3.2).

use super::Sim;
use crate::cluster::{CpuState, TaskState};
use crate::engine::{Event, EventQueue, Kind};
use crate::local::{LocalScheduler, Why, NONE};
use crate::network::Payer;
use crate::observer::{Activity, Observer};

impl<L: LocalScheduler, Q: EventQueue, O: Observer> Sim<'_, L, Q, O> {
    /// Its timer is due.
    pub(super) fn on_cpu(&mut self, cpu: u32) {
        self.charge(cpu);
        match self.cpus[cpu as usize].state {
            CpuState::Idle => {}
            CpuState::Overhead => self.overhead_over(cpu),
            CpuState::Running => {
                let task = self.cpus[cpu as usize].current;
                self.on_running(cpu, task);
                let it = &self.cpus[cpu as usize];
                let same = it.state == CpuState::Running && it.current == task;
                if same && it.look_at_ns <= self.now_ns {
                    self.slice_over(cpu);
                }
            }
        }
        self.arm(cpu);
    }

    /// Work that ends at the instant at which the slice ends is done.
    fn on_running(&mut self, cpu: u32, task: u32) {
        let it = &self.tasks[task as usize];
        if it.spinning {
            if it.spin_until_ns <= self.now_ns {
                self.ask_wait(cpu, task);
            }
        } else if it.work_ns == 0 {
            self.go_on(cpu, task);
        }
    }

    fn overhead_over(&mut self, cpu: u32) {
        let it = &mut self.cpus[cpu as usize];
        if it.irq_ns + it.switch_ns > 0 {
            return;
        }
        let resched = std::mem::take(&mut it.resched);
        if it.current == NONE {
            self.choose(cpu, NONE);
        } else if resched {
            self.put_back(cpu, Why::Preempted);
        } else {
            self.resume(cpu);
        }
    }

    /// Charges the time since `cpu` was last charged to whoever had it.
    pub(super) fn charge(&mut self, cpu: u32) {
        let it = &mut self.cpus[cpu as usize];
        let (from_ns, passed_ns) = (it.since_ns, self.now_ns - it.since_ns);
        if passed_ns == 0 {
            return;
        }
        it.since_ns = self.now_ns;
        let task = it.current as usize;
        match it.state {
            CpuState::Idle => it.spent.idle_ns += passed_ns,
            CpuState::Overhead => self.charge_overhead(cpu, from_ns, passed_ns),
            CpuState::Running => {
                let t = &mut self.tasks[task];
                t.counted.cpu_ns += passed_ns;
                if t.spinning {
                    it.spent.spin_ns += passed_ns;
                    t.counted.spin_ns += passed_ns;
                } else {
                    it.spent.run_ns += passed_ns;
                    t.work(passed_ns);
                }
                let (local, mut view) = self.view(cpu);
                local.charge(&mut view, task as u32, from_ns);
            }
        }
    }

    fn charge_overhead(&mut self, cpu: u32, from_ns: u64, passed_ns: u64) {
        let it = &mut self.cpus[cpu as usize];
        let irq_ns = passed_ns.min(it.irq_ns);
        let switch_ns = passed_ns - irq_ns;
        it.irq_ns -= irq_ns;
        it.switch_ns -= switch_ns;
        it.spent.irq_ns += irq_ns;
        it.spent.switch_ns += switch_ns;
        let task = it.current;
        if task == NONE {
            return;
        }
        let paid = self.network.interrupt_paid_by == Payer::Interrupted;
        let unpaid_ns = if paid { 0 } else { irq_ns };
        let counted = &mut self.tasks[task as usize].counted;
        counted.cpu_ns += passed_ns - unpaid_ns;
        counted.system_ns += passed_ns - unpaid_ns;
        let (local, mut view) = self.view(cpu);
        local.charge(&mut view, task, from_ns + unpaid_ns);
    }

    /// Sets the timer of `cpu`, charged up to now, for whatever ends next.
    pub(super) fn arm(&mut self, cpu: u32) {
        let it = &mut self.cpus[cpu as usize];
        let due_ns = match it.state {
            CpuState::Idle => u64::MAX,
            CpuState::Overhead => it.since_ns + it.irq_ns + it.switch_ns,
            CpuState::Running => {
                let task = &self.tasks[it.current as usize];
                let ends_ns = match task.spinning {
                    true => task.spin_until_ns,
                    false => it.since_ns.saturating_add(task.lasts_ns()),
                };
                ends_ns.min(it.look_at_ns).max(self.now_ns)
            }
        };
        if let Some(at_ns) = it.timer.arm(due_ns) {
            let node = cpu / self.cpus_each;
            self.agenda.push(Event::new(at_ns, node, Kind::Cpu, cpu, 0));
        }
    }

    /// When the local scheduler wants to look at `cpu`, charged up to now, again.
    pub(super) fn look(&mut self, cpu: u32) {
        let task = self.cpus[cpu as usize].current;
        if task == NONE {
            return;
        }
        let (local, view) = self.view(cpu);
        let at_ns = local.look_at_ns(&view, task);
        self.cpus[cpu as usize].look_at_ns = at_ns;
        self.arm(cpu);
    }

    fn slice_over(&mut self, cpu: u32) {
        let task = self.cpus[cpu as usize].current;
        let (local, mut view) = self.view(cpu);
        if local.expire(&mut view, task) {
            self.put_back(cpu, Why::Expired);
        } else {
            self.look(cpu);
        }
    }

    /// The task of `cpu`, charged up to now, goes into the run queue; the best of all comes on.
    pub(super) fn put_back(&mut self, cpu: u32, why: Why) {
        let task = self.leave(cpu, TaskState::Ready);
        let (local, mut view) = self.view(cpu);
        local.enqueue(&mut view, task, why);
        let over = self.local.turn_is_over(&self.own[task as usize]) && why != Why::Yielded;
        self.choose(cpu, task);
        if self.cpus[cpu as usize].current != task {
            self.went_off(task);
            if over {
                self.note_turn(task);
            }
        }
    }

    /// The task leaves its CPU, charged up to now. Nobody has it then.
    pub(super) fn leave(&mut self, cpu: u32, state: TaskState) -> u32 {
        self.note_for_nic(cpu);
        let it = &mut self.cpus[cpu as usize];
        let task = std::mem::replace(&mut it.current, NONE);
        it.last = task;
        it.switch_ns = 0;
        it.look_at_ns = u64::MAX;
        it.resched = false;
        let left = &mut self.tasks[task as usize];
        left.state = state;
        left.away = true;
        left.left_cpu_ns = self.now_ns;
        left.ran_ns = self.now_ns - it.came_on_ns;
        task
    }

    /// What the network card saw of `current`, which is about to change.
    fn note_for_nic(&mut self, cpu: u32) {
        let looked_ns = self.nodes[(cpu / self.cpus_each) as usize]
            .nic
            .last_at(self.now_ns);
        let it = &mut self.cpus[cpu as usize];
        if looked_ns >= it.came_on_ns {
            it.nic_saw = it.current;
        }
    }

    /// Nobody has `cpu`: the best of the run queue gets it. `from` had it just now.
    pub(super) fn choose(&mut self, cpu: u32, from: u32) {
        let chosen = self.best(cpu).or_else(|| self.steal(cpu));
        match chosen {
            Some(task) => self.dispatch(cpu, task, from),
            None => {
                let it = &mut self.cpus[cpu as usize];
                if it.irq_ns > 0 {
                    return;
                }
                it.state = CpuState::Idle;
                it.came_on_ns = self.now_ns;
                self.observer.cpu(self.now_ns, cpu, Activity::Idle);
                self.arm(cpu);
            }
        }
    }

    /// Takes the best of the run queue out of it.
    fn best(&mut self, cpu: u32) -> Option<u32> {
        let queue = self.queue_of(cpu);
        if self.queues[queue].ready.is_empty() || self.first_admitted(cpu).is_none() {
            return None;
        }
        let i = match self.best_of(cpu) {
            Some(i) => i,
            None => {
                let (local, mut view) = self.view(cpu);
                local.replenish(&mut view);
                self.best_of(cpu).or_else(|| self.first_admitted(cpu))?
            }
        };
        Some(self.queues[queue].ready.remove(i))
    }

    /// An idle CPU takes the first of the longest run queue of its node.
    fn steal(&mut self, cpu: u32) -> Option<u32> {
        if L::SHARED_QUEUE || !self.costs.balance || self.cpus_each == 1 {
            return None;
        }
        let first = cpu / self.cpus_each * self.cpus_each;
        let mut longest = (0, cpu);
        for other in first..first + self.cpus_each {
            let waiting = self.queues[other as usize].ready.len();
            if waiting > longest.0 {
                longest = (waiting, other);
            }
        }
        let (waiting, other) = longest;
        if waiting == 0 || self.first_admitted(other).is_none() {
            return None;
        }
        self.charge(other);
        let task = self.queues[other as usize].ready[0];
        let (local, mut view) = self.view(other);
        local.stop(&mut view, task);
        self.queues[other as usize].ready.remove(0);
        self.load_changed(other, -1);
        self.load_changed(cpu, 1);
        self.look(other);
        let (local, mut view) = self.view(cpu);
        local.enqueue(&mut view, task, Why::Migrated);
        self.best(cpu)
    }

    /// `task`, in no queue, gets `cpu`; `from` had it just now.
    fn dispatch(&mut self, cpu: u32, task: u32, from: u32) {
        let came = &mut self.tasks[task as usize];
        came.state = TaskState::Running;
        if came.cpu != cpu {
            came.cpu = cpu;
            came.grow_cold(self.costs.refill_ns);
            self.tasks[task as usize].counted.nr_migrations += 1;
        }
        if from != task {
            self.note_run(task);
        }
        let it = &mut self.cpus[cpu as usize];
        it.current = task;
        let other = it.last != task;
        it.switch_ns = if from == task {
            0
        } else {
            self.costs.switch_ns
        };
        if from != task {
            it.came_on_ns = self.now_ns;
            self.tasks[task as usize].counted.nr_switches += 1;
            let boosted = std::mem::replace(&mut self.tasks[task as usize].boost_epoch, u64::MAX);
            it.epoch = if boosted == u64::MAX {
                it.epoch + 1
            } else {
                boosted
            };
        }
        if other {
            self.tasks[task as usize].grow_cold(self.costs.refill_ns);
        }
        self.give_slice(cpu, task);
        let (local, mut view) = self.view(cpu);
        local.start(&mut view, task);
        self.look(cpu);
        self.peer_changed(task);
        let it = &mut self.cpus[cpu as usize];
        if it.irq_ns + it.switch_ns == 0 {
            return self.resume(cpu);
        }
        it.state = CpuState::Overhead;
        self.observer
            .cpu(self.now_ns, cpu, Activity::Overhead(Some(task)));
        self.arm(cpu);
    }

    /// The task of `cpu` goes on with what it does.
    fn resume(&mut self, cpu: u32) {
        let it = &mut self.cpus[cpu as usize];
        it.state = CpuState::Running;
        let task = it.current;
        if std::mem::take(&mut self.tasks[task as usize].away) {
            self.is_back(task);
        }
        let t = &self.tasks[task as usize];
        if t.waiting && t.spinning {
            self.resume_wait(cpu, task);
        } else if t.work_ns == 0 {
            self.go_on(cpu, task);
        } else {
            self.show(cpu);
            self.arm(cpu);
        }
    }

    /// Tells the observer what `cpu`, which runs, does.
    pub(super) fn show(&mut self, cpu: u32) {
        let task = self.cpus[cpu as usize].current;
        let activity = match self.tasks[task as usize].spinning {
            true => Activity::Spin(task),
            false => Activity::Run(task),
        };
        self.observer.cpu(self.now_ns, cpu, activity);
    }

    /// `task`, not in any place, becomes runnable.
    pub(super) fn make_ready(&mut self, task: u32, why: Why) {
        let cpu = self.landing(task);
        self.charge(cpu);
        let it = &mut self.tasks[task as usize];
        it.state = TaskState::Ready;
        it.away = true;
        if it.cpu != cpu {
            it.cpu = cpu;
            it.grow_cold(self.costs.refill_ns);
            self.tasks[task as usize].counted.nr_migrations += 1;
        }
        self.load_changed(cpu, 1);
        let (local, mut view) = self.view(cpu);
        local.enqueue(&mut view, task, why);
        self.serve(cpu, task);
    }

    /// The CPU on which a task becomes runnable: its own, or an idle one of the node.
    fn landing(&self, task: u32) -> u32 {
        let home = self.tasks[task as usize].cpu;
        let idle = |cpu: &u32| self.cpus[*cpu as usize].state == CpuState::Idle;
        if !self.costs.balance || idle(&home) {
            return home;
        }
        let first = home / self.cpus_each * self.cpus_each;
        (first..first + self.cpus_each).find(idle).unwrap_or(home)
    }

    /// `task` was put into the run queue of `cpu`: who runs it, and when?
    pub(super) fn serve(&mut self, cpu: u32, task: u32) {
        let siblings = self.siblings(cpu);
        let mut order = std::iter::once(cpu).chain(siblings.clone().filter(|other| *other != cpu));
        if let Some(idle) = order
            .clone()
            .find(|c| self.cpus[*c as usize].current == NONE)
        {
            if self.cpus[idle as usize].state == CpuState::Idle {
                self.charge(idle);
                self.choose(idle, NONE);
            }
            return;
        }
        let preempted = order.find(|c| {
            self.charge(*c);
            self.preempts(*c, task)
        });
        match preempted {
            Some(cpu) => self.preempt(cpu),
            None => siblings.for_each(|cpu| {
                self.charge(cpu);
                self.look(cpu);
                self.stir(cpu);
            }),
        }
    }

    /// The best of the run queue shall have `cpu`, at once or at the end of the overhead.
    pub(super) fn preempt(&mut self, cpu: u32) {
        self.charge(cpu);
        let it = &mut self.cpus[cpu as usize];
        match it.state {
            CpuState::Overhead => it.resched = true,
            _ => self.put_back(cpu, Why::Preempted),
        }
    }

    /// Another CPU makes `cpu` choose again.
    pub(super) fn kick(&mut self, cpu: u32) {
        self.interrupt(cpu, self.costs.kick_ns);
        self.preempt(cpu);
    }

    /// An interrupt of that length begins on `cpu`.
    pub(super) fn interrupt(&mut self, cpu: u32, ns: u64) {
        if ns == 0 {
            return;
        }
        self.charge(cpu);
        let it = &mut self.cpus[cpu as usize];
        it.irq_ns += ns;
        if it.state != CpuState::Overhead {
            it.state = CpuState::Overhead;
            let task = (it.current != NONE).then_some(it.current);
            self.observer
                .cpu(self.now_ns, cpu, Activity::Overhead(task));
        }
        self.arm(cpu);
    }

    /// The local scheduler's own period is over on that node.
    pub(super) fn on_period(&mut self, node: u32) {
        let first = node * self.cpus_each;
        let step = if L::SHARED_QUEUE { self.cpus_each } else { 1 };
        for cpu in (first..first + self.cpus_each).step_by(step as usize) {
            let siblings = self.siblings(cpu);
            siblings.clone().for_each(|c| self.charge(c));
            let running: Vec<u32> = siblings
                .clone()
                .map(|c| self.cpus[c as usize].current)
                .filter(|task| *task != NONE)
                .collect();
            let asleep = self.asleep_at(node, &siblings);
            let (local, mut view) = self.view(cpu);
            if local.on_period(&mut view, &asleep, &running) {
                self.reconsider(siblings);
            }
        }
        let next_ns = self.nodes[node as usize].period.nth_after(self.now_ns, 1);
        self.agenda
            .push(Event::new(next_ns, node, Kind::Period, 0, 0));
    }

    /// Tasks of the node that sleep and belong to one of those CPUs.
    fn asleep_at(&self, node: u32, cpus: &std::ops::Range<u32>) -> Vec<u32> {
        let sleeps = |task: &&u32| {
            let it = &self.tasks[**task as usize];
            matches!(it.state, TaskState::Blocked | TaskState::Sleeping) && cpus.contains(&it.cpu)
        };
        self.nodes[node as usize]
            .tasks
            .iter()
            .filter(sleeps)
            .copied()
            .collect()
    }

    /// Keys and what is left of slices have changed: the best of the run queue may preempt.
    fn reconsider(&mut self, siblings: std::ops::Range<u32>) {
        for cpu in siblings {
            if self.cpus[cpu as usize].current == NONE {
                continue;
            }
            let queue = self.queue_of(cpu);
            let best = self
                .best_of(cpu)
                .map(|i| self.queues[queue].ready[i])
                .filter(|best| self.preempts(cpu, *best));
            match best {
                Some(_) => self.preempt(cpu),
                None => self.look(cpu),
            }
        }
    }
}
