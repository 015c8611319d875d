// SPDX-License-Identifier: Apache-2.0
//! The least of a node: one CPU, one spinning rank and some hogs, served in turn
//! for a slice each, as the local scheduler of S3 does; messages arrive for the
//! rank at equal intervals. It does what the verdicts say, nothing else.

use crate::policy::{Of, Policy};
use cosched_policy::native::{Job, Obs, Params, Task};
use cosched_policy::raw;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub nr_hogs: u32,
    pub slice_ns: u64,
    pub gap_ns: u64,
    pub until_ns: u64,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Served {
    pub rank_ns: u64,
    pub hogs_ns: Vec<u64>,
    pub nr_boosts: u64,
    pub nr_refused: u64,
}

/// Who runs: 0 is the rank.
struct Cpu<'a> {
    policy: &'a Policy,
    params: &'a Params,
    load: Load,
    queue: VecDeque<usize>,
    running: usize,
    since_ns: u64,
    now_ns: u64,
    task: Task,
    job: Job,
    served: Served,
}

pub fn run(policy: &Policy, params: &Params, load: Load) -> Served {
    let nr_hogs = load.nr_hogs as usize;
    let mut cpu = Cpu {
        policy,
        params,
        load,
        queue: (1..=nr_hogs).collect(),
        running: 0,
        since_ns: 0,
        now_ns: 0,
        task: Task::default(),
        job: Job::default(),
        served: Served {
            hogs_ns: vec![0; nr_hogs],
            ..Served::default()
        },
    };
    let mut arrival_ns = load.gap_ns;
    while cpu.now_ns < load.until_ns {
        let end_ns = cpu.since_ns + load.slice_ns;
        cpu.now_ns = end_ns.min(arrival_ns);
        if arrival_ns <= end_ns {
            arrival_ns += load.gap_ns;
            cpu.arrival();
        } else {
            cpu.expire();
        }
    }
    cpu.leave();
    cpu.served
}

impl Cpu<'_> {
    fn obs(&self, event: u32) -> Obs {
        Obs {
            now_ns: self.now_ns,
            event,
            known: raw::COS_F_NR_RUNNABLE | raw::COS_F_RUNNING | raw::COS_F_RAN,
            ran_ns: self.now_ns - self.since_ns,
            nr_runnable: self.load.nr_hogs + 1,
            running: u32::from(self.running == 0),
            ..Obs::default()
        }
    }

    fn arrival(&mut self) {
        let obs = self.obs(raw::COS_EV_ARRIVAL);
        self.policy
            .observe(self.params, &obs, &mut self.task, &mut self.job);
        let out = self.policy.ask(
            Of::Arrival,
            self.params,
            &obs,
            &mut self.task,
            &mut self.job,
        );
        if out.act == raw::COS_ACT_BOOST {
            self.served.nr_boosts += 1;
            self.leave();
            self.queue.retain(|who| *who != 0);
            self.queue.push_back(self.running);
            self.running = 0;
        } else if self.running != 0 {
            self.served.nr_refused += 1;
        }
    }

    fn expire(&mut self) {
        self.leave();
        self.queue.push_back(self.running);
        self.running = self.queue.pop_front().unwrap();
    }

    /// Accounts for who runs until now.
    fn leave(&mut self) {
        let ran_ns = self.now_ns - self.since_ns;
        if self.running == 0 {
            let obs = self.obs(raw::COS_EV_STOP);
            self.policy
                .observe(self.params, &obs, &mut self.task, &mut self.job);
            self.served.rank_ns += ran_ns;
        } else {
            self.served.hogs_ns[self.running - 1] += ran_ns;
        }
        self.since_ns = self.now_ns;
    }
}
