// SPDX-License-Identifier: Apache-2.0
//! What the answers to `fairness` keep: equation 1 of S1 to the nanosecond,
//! bounded debt, and that whoever is refused is granted in the end.

use crate::contract::number;
use crate::cpu::{self, Load};
use crate::policy::{params, with, Of, Policy};
use crate::{always, Verdict as Law};
use cosched_policy::native::{Job, Obs, Params, Task};
use cosched_policy::raw;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
/// An instant late enough that all before it exists.
const NOW_NS: u64 = 1 << 62;

#[derive(Clone, Copy, Debug)]
struct Cycle {
    e: i64,
    c_ns: u64,
    tq_ns: u64,
    less: u64,
    nr_runnable: u32,
    since_ns: u64,
}

fn any_cycle() -> impl Strategy<Value = Cycle> {
    let e = prop_oneof![-70..70i64, any::<i64>(), Just(i64::MIN), Just(i64::MAX)];
    let tq_ns = number().prop_map(|n| n & ((1 << 40) - 1));
    let since_ns = number().prop_map(|n| n & ((1 << 60) - 1));
    (e, number(), tq_ns, 0..3u64, 0..1u32 << 20, since_ns).prop_map(
        |(e, c_ns, tq_ns, less, nr_runnable, since_ns)| Cycle {
            e,
            c_ns,
            tq_ns,
            less,
            nr_runnable,
            since_ns,
        },
    )
}

impl Cycle {
    fn params(&self) -> Params {
        let args = [self.e as u64, self.c_ns, self.tq_ns, 0, 0, self.less];
        params(raw::COS_Q_FAIRNESS, raw::COS_FAIRNESS_QUEUE_CYCLE, &args)
    }

    fn obs(&self, now_ns: u64) -> Obs {
        Obs {
            now_ns,
            event: raw::COS_EV_ARRIVAL,
            known: raw::COS_F_NR_RUNNABLE,
            nr_runnable: self.nr_runnable,
            ..Obs::default()
        }
    }

    /// The job after a boost, `since_ns` before NOW_NS.
    fn boosted(&self, policy: &Policy) -> Job {
        let (mut task, mut job) = (Task::default(), Job::default());
        let obs = self.obs(NOW_NS - self.since_ns);
        let out = policy.ask(Of::Fairness, &self.params(), &obs, &mut task, &mut job);
        assert_eq!(out.act, raw::COS_ACT_BOOST, "the first boost is free");
        job
    }

    fn granted(&self, policy: &Policy) -> bool {
        let (mut task, mut job) = (Task::default(), self.boosted(policy));
        let obs = self.obs(NOW_NS);
        let out = policy.ask(Of::Fairness, &self.params(), &obs, &mut task, &mut job);
        out.act == raw::COS_ACT_BOOST
    }

    /// In 128 bits, where nothing saturates.
    fn equation_1(&self) -> bool {
        let since = u128::from(self.since_ns);
        let left = match self.e {
            e if e >= 64 && since > 0 => 1 << 126,
            e if e >= 0 => since << e.min(64),
            e => since >> e.unsigned_abs().min(64),
        };
        let r = u128::from(self.nr_runnable).saturating_sub(u128::from(self.less));
        left + u128::from(self.c_ns) >= u128::from(self.tq_ns) * r
    }
}

pub fn queue_cycle_is_equation_1(policy: &Policy) -> Law {
    always(any_cycle(), |cycle| {
        prop_assert_eq!(cycle.granted(policy), cycle.equation_1());
        Ok(())
    })
}

pub fn queue_cycle_is_monotone_in_each_parameter(policy: &Policy) -> Law {
    always((any_cycle(), number()), |(cycle, more)| {
        let few = more as u32 & 0xff;
        let easier = [
            Cycle {
                e: cycle.e.saturating_add(few.into()),
                ..cycle
            },
            Cycle {
                c_ns: cycle.c_ns.saturating_add(more),
                ..cycle
            },
            Cycle {
                tq_ns: cycle.tq_ns.saturating_sub(more),
                ..cycle
            },
            Cycle {
                nr_runnable: cycle.nr_runnable.saturating_sub(few),
                ..cycle
            },
            Cycle {
                less: cycle.less + u64::from(few),
                ..cycle
            },
            Cycle {
                since_ns: (cycle.since_ns + (more >> 2)).min(NOW_NS - 1),
                ..cycle
            },
        ];
        if cycle.granted(policy) {
            for easier in easier {
                prop_assert!(easier.granted(policy), "{easier:?}");
            }
        }
        Ok(())
    })
}

/// Of @nr_slices slices; messages come at least once in two of them.
fn any_load(nr_slices: u64) -> impl Strategy<Value = Load> {
    (0..8u32, 1..100u64, 1..40u64).prop_map(move |(nr_hogs, slice_ms, per_2_slices)| Load {
        nr_hogs,
        slice_ns: slice_ms * MS,
        gap_ns: 2 * slice_ms * MS / per_2_slices + 1,
        until_ns: nr_slices * slice_ms * MS,
    })
}

fn boosting(answer: u32, args: &[u64]) -> Params {
    let fair = params(raw::COS_Q_FAIRNESS, answer, args);
    let boost = [0, 1_000 * MS];
    with(fair, raw::COS_Q_ARRIVAL, raw::COS_ARRIVAL_BOOST, &boost)
}

pub fn queue_cycle_bounds_the_number_of_boosts(policy: &Policy) -> Law {
    always((any_load(50), 0..5u32, 1..200u64), |(load, down, tq_ms)| {
        let e = -i64::from(down);
        let args = [e as u64, 0, tq_ms * MS];
        let served = cpu::run(
            policy,
            &boosting(raw::COS_FAIRNESS_QUEUE_CYCLE, &args),
            load,
        );
        let cycle_ns = (tq_ms * MS * u64::from(load.nr_hogs + 1)) << down;
        prop_assert!(
            served.nr_boosts <= 1 + load.until_ns / cycle_ns,
            "{served:?}"
        );
        Ok(())
    })
}

fn calibrated(max_debt_ns: u64) -> Params {
    let args = [max_debt_ns, 10_000 * MS];
    boosting(raw::COS_FAIRNESS_CALIBRATED, &args)
}

/// Asked at @obs after learning from it.
fn fair(
    policy: &Policy,
    params: &Params,
    obs: &Obs,
    task: &mut Task,
    job: &mut Job,
) -> (bool, u64) {
    policy.observe(params, obs, task, job);
    let out = policy.ask(Of::Fairness, params, obs, task, job);
    (out.act == raw::COS_ACT_BOOST, out.until_ns)
}

pub fn a_refusal_ends_when_it_says(policy: &Policy) -> Law {
    always((any_cycle(), 0..1u64 << 44), |(cycle, debt_ns)| {
        let (params, mut task, mut job) = (cycle.params(), Task::default(), cycle.boosted(policy));
        let before = job;
        let (granted, until_ns) = fair(policy, &params, &cycle.obs(NOW_NS), &mut task, &mut job);
        if !granted {
            prop_assert_eq!(job, before, "a refusal moves nothing");
            prop_assert!(until_ns > NOW_NS);
            let (granted, _) = fair(
                policy,
                &params,
                &cycle.obs(until_ns - 1),
                &mut task,
                &mut job,
            );
            prop_assert!(!granted, "a nanosecond early");
            let (granted, _) = fair(policy, &params, &cycle.obs(until_ns), &mut task, &mut job);
            prop_assert!(granted || until_ns == u64::MAX);
        }

        let (params, mut task, mut job) = (calibrated(MS), Task::default(), Job::default());
        task.w[raw::COS_W_CREDIT_NS as usize] = debt_ns.wrapping_neg();
        let (granted, until_ns) = fair(policy, &params, &cycle.obs(NOW_NS), &mut task, &mut job);
        if !granted {
            let (granted, _) = fair(policy, &params, &cycle.obs(until_ns), &mut task, &mut job);
            prop_assert!(granted);
        }
        Ok(())
    })
}

fn lagging(now_ns: u64, lag_ns: i64) -> Obs {
    Obs {
        now_ns,
        known: raw::COS_F_LAG,
        lag_ns,
        ..Obs::default()
    }
}

pub fn lag_allows_the_debt_that_it_is_told(policy: &Policy) -> Law {
    always((any::<i64>(), 0..1u64 << 60), |(lag_ns, max_debt_ns)| {
        let params = params(raw::COS_Q_FAIRNESS, raw::COS_FAIRNESS_LAG, &[max_debt_ns]);
        let out = policy.ask_fresh(Of::Fairness, &params, &lagging(NOW_NS, lag_ns));
        let allowed = i128::from(lag_ns) >= -i128::from(max_debt_ns);
        prop_assert_eq!(out.act == raw::COS_ACT_BOOST, allowed);
        Ok(())
    })
}

pub fn shared_lag_is_the_sum_over_the_ranks_here(policy: &Policy) -> Law {
    let seen = prop::collection::vec(
        (0..4usize, -1_000..1_000i64, prop::bool::weighted(0.1)),
        1..40,
    );
    always((seen, 0..2_000u64), |(seen, max_debt_ns)| {
        let args = [max_debt_ns, 1];
        let params = params(raw::COS_Q_FAIRNESS, raw::COS_FAIRNESS_LAG, &args);
        let (mut tasks, mut lags) = ([Task::default(); 4], [0i64; 4]);
        let mut job = Job::default();
        for (rank, lag_ns, ends) in seen {
            let mut obs = lagging(NOW_NS, lag_ns);
            obs.event = if ends {
                raw::COS_EV_JOB_END
            } else {
                raw::COS_EV_STOP
            };
            lags[rank] = if ends { 0 } else { lag_ns };
            let (granted, _) = fair(policy, &params, &obs, &mut tasks[rank], &mut job);
            let sum: i64 = lags.iter().sum();
            prop_assert_eq!(granted, sum >= -(max_debt_ns as i64));
        }
        Ok(())
    })
}

pub fn only_what_is_newer_boosts(policy: &Policy) -> Law {
    always((number(), number()), |(message_epoch, cpu_epoch)| {
        let params = params(raw::COS_Q_FAIRNESS, raw::COS_FAIRNESS_EPOCH, &[]);
        let known = raw::COS_F_EPOCHS;
        let obs = Obs {
            known,
            message_epoch,
            cpu_epoch,
            ..Obs::default()
        };
        let out = policy.ask_fresh(Of::Fairness, &params, &obs);
        prop_assert_eq!(out.act == raw::COS_ACT_BOOST, message_epoch > cpu_epoch);
        Ok(())
    })
}

/// What is the rank's by right, and how far beyond it may get: the debt allowed,
/// the slice of the last boost, and a turn of its own that was due anyway.
pub fn calibrated_bounds_the_debt(policy: &Policy) -> Law {
    always((any_load(200), 1..200u64), |(load, max_debt_ms)| {
        let served = cpu::run(policy, &calibrated(max_debt_ms * MS), load);
        let due_ns = load.until_ns / u64::from(load.nr_hogs + 1);
        let debt_ns = load.slice_ns.min(max_debt_ms * MS) + 2 * load.slice_ns;
        prop_assert!(served.rank_ns <= due_ns + debt_ns, "{served:?}");
        Ok(())
    })
}

pub fn calibrated_starves_nobody(policy: &Policy) -> Law {
    always(any_load(200), |load| {
        let served = cpu::run(policy, &calibrated(200 * MS), load);
        let due_ns = load.until_ns / u64::from(load.nr_hogs + 1);
        prop_assert!(served.rank_ns >= due_ns - due_ns / 10, "{served:?}");
        for hog_ns in &served.hogs_ns {
            prop_assert!(*hog_ns >= due_ns / 2, "{served:?}");
        }
        Ok(())
    })
}

/// Whatever it did: with nobody else there nobody is to be protected.
pub fn calibrated_never_refuses_a_lone_task(policy: &Policy) -> Law {
    let steps = prop::collection::vec((0..3usize, 0..1u64 << 34), 1..30);
    always(steps, |steps| {
        let (params, mut task, mut job) = (calibrated(200 * MS), Task::default(), Job::default());
        let (mut now_ns, mut ran_ns) = (1, 0);
        for (kind, step_ns) in steps {
            now_ns += step_ns;
            ran_ns += step_ns;
            let event = [raw::COS_EV_RUN, raw::COS_EV_STOP, raw::COS_EV_ARRIVAL][kind];
            let known = raw::COS_F_NR_RUNNABLE | raw::COS_F_RAN;
            let obs = Obs {
                now_ns,
                event,
                known,
                ran_ns,
                nr_runnable: 1,
                ..Obs::default()
            };
            let (granted, _) = fair(policy, &params, &obs, &mut task, &mut job);
            prop_assert!(granted);
            if event == raw::COS_EV_STOP {
                ran_ns = 0;
            }
        }
        Ok(())
    })
}

pub fn calibrated_boosts_who_sleeps(policy: &Policy) -> Law {
    always((1..8u32, 0..1u64 << 34), |(nr_runnable, debt_ns)| {
        let (params, mut task, mut job) = (calibrated(200 * MS), Task::default(), Job::default());
        task.w[raw::COS_W_CREDIT_NS as usize] = debt_ns.wrapping_neg();
        task.w[raw::COS_W_ACCOUNTED_AT_NS as usize] = 1;
        let now_ns = 2 + debt_ns * u64::from(nr_runnable);
        let known = raw::COS_F_NR_RUNNABLE;
        let obs = Obs {
            now_ns,
            known,
            nr_runnable,
            ..Obs::default()
        };
        prop_assert!(fair(policy, &params, &obs, &mut task, &mut job).0);
        Ok(())
    })
}
