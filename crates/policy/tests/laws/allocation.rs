// SPDX-License-Identifier: Apache-2.0
//! What the answers to `allocation` keep: nobody overtakes, no CPU is given
//! twice, and a gang runs in its slot and in no other.

use crate::policy::{params, Of, Policy};
use crate::{always, Verdict as Law};
use cosched_policy::native::{AllocJob, Obs, Params};
use cosched_policy::raw;
use proptest::prelude::*;

fn answer(answer: u32, arg: u64) -> Params {
    params(raw::COS_Q_ALLOCATION, answer, &[arg])
}

/// Jobs of at least one rank, somewhere on @nr_cpus, and what they had before.
fn any_jobs(nr_cpus: u32) -> impl Strategy<Value = Vec<AllocJob>> {
    let job = (1..2 * nr_cpus, 0..nr_cpus, any::<u32>());
    prop::collection::vec(job, 0..300).prop_map(|jobs| {
        let job = |(nr_ranks, first_cpu, old)| AllocJob {
            nr_ranks,
            first_cpu,
            nr_cpus: old,
            slot: old,
            nr_slots: old,
            ..AllocJob::default()
        };
        jobs.into_iter().map(job).collect()
    })
}

const CPUS: u32 = 64;

/// Every answer: those who get CPUs come before those who get none, who starts
/// is never stopped by a later arrival, and the first always starts.
pub fn nobody_overtakes(policy: &Policy) -> Law {
    let which = (0..raw::COS_NR_ALLOCATION_ANSWERS, 0..10u64);
    always((which, any_jobs(CPUS)), |((word, arg), jobs)| {
        let params = answer(word, arg);
        let mut all = jobs.clone();
        let nr = policy.plan(&params, &mut all, CPUS);
        prop_assert!(all[..nr]
            .iter()
            .all(|job| job.nr_cpus == job.nr_ranks.min(CPUS)));
        prop_assert!(all[nr..]
            .iter()
            .all(|job| job.nr_cpus == 0 && job.nr_slots == 0));
        prop_assert!(nr > 0 || jobs.is_empty());
        let mut fewer = jobs[..jobs.len() / 2].to_vec();
        let nr_before = policy.plan(&params, &mut fewer, CPUS);
        prop_assert_eq!(nr_before, nr.min(fewer.len()));
        prop_assert!(word != raw::COS_ALLOCATION_BATCH || nr <= 1);
        Ok(())
    })
}

pub fn fcfs_space_gives_cpus_once(policy: &Policy) -> Law {
    always((any_jobs(CPUS), 1..5u64), |(mut jobs, mpl)| {
        let sum = |jobs: &[AllocJob]| jobs.iter().map(|j| u64::from(j.nr_ranks)).sum::<u64>();
        for (params, room) in [
            (answer(raw::COS_ALLOCATION_FCFS_SPACE, 0), u64::from(CPUS)),
            (
                answer(raw::COS_ALLOCATION_SHARED, mpl),
                mpl * u64::from(CPUS),
            ),
        ] {
            let nr = policy.plan(&params, &mut jobs, CPUS);
            prop_assert!(nr <= 1 || sum(&jobs[..nr]) <= room);
            prop_assert!(
                nr == jobs.len() || sum(&jobs[..=nr]) > room,
                "one more had fitted"
            );
        }
        let nr = policy.plan(&answer(raw::COS_ALLOCATION_SHARED, 0), &mut jobs, CPUS);
        prop_assert_eq!(nr, jobs.len().min(raw::COS_MAX_PLAN as usize));
        Ok(())
    })
}

pub fn gang_jobs_of_one_slot_share_no_cpu(policy: &Policy) -> Law {
    always(any_jobs(CPUS), |mut jobs| {
        let params = answer(raw::COS_ALLOCATION_GANG, 1_000_000);
        let nr = policy.plan(&params, &mut jobs, CPUS);
        let cpus = |job: &AllocJob| job.first_cpu..job.first_cpu + job.nr_cpus;
        for (i, a) in jobs[..nr].iter().enumerate() {
            prop_assert!(a.slot < a.nr_slots);
            for b in jobs[..i].iter().filter(|b| b.slot == a.slot) {
                let (a, b) = (cpus(a), cpus(b));
                prop_assert!(a.end <= b.start || b.end <= a.start, "{a:?} and {b:?}");
            }
        }
        let slots = |slot| jobs[..nr].iter().any(|job| job.slot == slot);
        prop_assert!(
            jobs.is_empty() || (0..jobs[0].nr_slots).all(slots),
            "no slot is empty"
        );
        Ok(())
    })
}

fn admitted(policy: &Policy, slot_ns: u64, now_ns: u64, slot: u32, nr_slots: u32) -> (bool, u64) {
    let known = raw::COS_F_SLOT;
    let obs = Obs {
        now_ns,
        known,
        slot,
        nr_slots,
        ..Obs::default()
    };
    let params = answer(raw::COS_ALLOCATION_GANG, slot_ns);
    let out = policy.ask_fresh(Of::Admit, &params, &obs);
    (out.act == raw::COS_ACT_RUN, out.until_ns)
}

/// At each instant one slot runs, and what a verdict says holds until it says.
pub fn each_slot_has_its_turn_and_no_other(policy: &Policy) -> Law {
    let clock = (1..1u64 << 34, 0..1u64 << 50, 2..20u32);
    always(clock, |(slot_ns, now_ns, nr_slots)| {
        let runs = |now_ns, slot| admitted(policy, slot_ns, now_ns, slot, nr_slots);
        let running: Vec<u32> = (0..nr_slots).filter(|slot| runs(now_ns, *slot).0).collect();
        prop_assert_eq!(running.len(), 1);
        for slot in 0..nr_slots {
            let (now, until_ns) = runs(now_ns, slot);
            prop_assert!(until_ns > now_ns && until_ns - now_ns <= slot_ns * u64::from(nr_slots));
            prop_assert_eq!(runs(until_ns - 1, slot).0, now);
            prop_assert_eq!(runs(until_ns, slot).0, !now);
            if !now {
                prop_assert_eq!(runs(until_ns, slot).1, until_ns + slot_ns);
            }
        }
        Ok(())
    })
}

pub fn a_lone_job_is_never_delayed(policy: &Policy) -> Law {
    let any = (1..1000u32, 1..100u32, any::<[u64; 2]>());
    always(any, |(nr_ranks, nr_cpus, [arg, now_ns])| {
        for word in 0..raw::COS_NR_ALLOCATION_ANSWERS {
            let params = answer(word, arg);
            let mut job = [AllocJob {
                nr_ranks,
                ..AllocJob::default()
            }];
            prop_assert_eq!(policy.plan(&params, &mut job, nr_cpus), 1);
            prop_assert_eq!(job[0].nr_cpus, nr_ranks.min(nr_cpus));
            let [AllocJob { slot, nr_slots, .. }] = job;
            let known = raw::COS_F_SLOT;
            let obs = Obs {
                now_ns,
                known,
                slot,
                nr_slots,
                ..Obs::default()
            };
            let out = policy.ask_fresh(Of::Admit, &params, &obs);
            prop_assert_eq!((out.act, out.until_ns), (raw::COS_ACT_RUN, u64::MAX));
        }
        Ok(())
    })
}
