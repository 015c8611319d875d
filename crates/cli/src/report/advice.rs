// SPDX-License-Identifier: Apache-2.0
//! Did it help, and what to change? One line, from rules on the counters.
//!
//! The rules stand in the order of how much they matter; the first that holds
//! speaks. What is no defect of the run (nothing to wait for, all well) comes last.

use super::numbers::{Job, Rank};
use cosched_model::{Nanos, RankState};
use serde::Serialize;

/// The last line of a report.
#[derive(Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Did ranks sleep where they would have spun?
    pub helped: bool,
    /// The line, without the first word.
    pub line: String,
}

type Rule = fn(&Facts) -> Option<String>;

/// What the rules look at.
struct Facts<'a> {
    jobs: &'a [Job],
    slice_asked_us: u32,
    wall: Nanos,
    spinning: Nanos,
    blocked: Nanos,
    nr_blocks: u64,
    nr_wakes: u64,
    nr_missed: u64,
    nr_spurious: u64,
}

const DEFECTS: [Rule; 10] = [
    no_rank,
    none_active,
    no_hook,
    not_finalized,
    missed,
    spurious,
    without_page,
    spinning,
    no_slice,
    imbalance,
];

/// Judges the jobs of a run.
pub fn advise(jobs: &[Job], slice_asked_us: u32) -> Advice {
    let facts = Facts::of(jobs, slice_asked_us);
    let helped = facts.blocked.share_of(facts.wall) > 0.01;
    let change = DEFECTS.iter().find_map(|rule| rule(&facts));
    let outcome = match (helped, jobs.is_empty()) {
        (_, true) => String::new(),
        (true, _) => format!(
            "it helped: ranks slept {} where they would have spun; ",
            facts.blocked
        ),
        (false, _) => "it changed little: ranks had hardly anything to wait for; ".to_owned(),
    };
    let change = change.unwrap_or_else(|| "nothing to change".to_owned());
    Advice {
        helped,
        line: outcome + &change,
    }
}

impl<'a> Facts<'a> {
    fn of(jobs: &'a [Job], slice_asked_us: u32) -> Self {
        let sum = |number: fn(&Job) -> u64| jobs.iter().map(number).sum();
        Facts {
            jobs,
            slice_asked_us,
            wall: jobs
                .iter()
                .flat_map(|job| &job.ranks)
                .filter_map(|rank| rank.wall)
                .sum(),
            spinning: jobs.iter().map(|job| job.total.spinning).sum(),
            blocked: jobs.iter().map(|job| job.total.blocked).sum(),
            nr_blocks: sum(|job| job.total.nr_blocks),
            nr_wakes: sum(|job| job.total.nr_wakes),
            nr_missed: sum(|job| job.total.nr_missed),
            nr_spurious: sum(|job| job.total.nr_spurious),
        }
    }

    fn ranks(&self) -> impl Iterator<Item = &Rank> {
        self.jobs.iter().flat_map(|job| &job.ranks)
    }

    fn count(&self, wanted: fn(&Rank) -> bool) -> usize {
        self.ranks().filter(|rank| wanted(rank)).count()
    }
}

fn no_rank(facts: &Facts) -> Option<String> {
    facts.jobs.is_empty().then(|| {
        "no MPI rank of this node joined: the command ran as without cosched. Is it an MPI program, \
         linked dynamically, not setuid, and started with this environment (containers drop LD_PRELOAD)?"
            .to_owned()
    })
}

fn none_active(facts: &Facts) -> Option<String> {
    let nr = facts.count(|rank| rank.state == RankState::Passive);
    (nr > 0 && nr == facts.ranks().count()).then(|| {
        "no rank got through MPI_Init with cosched: if the command failed, see its own message"
            .to_owned()
    })
}

fn no_hook(facts: &Facts) -> Option<String> {
    let nr = facts.count(|rank| rank.hook.is_empty() && rank.counters.nr_calls > 0);
    let waited = facts.spinning + facts.blocked > Nanos(0);
    (nr > 0 && nr == facts.ranks().count() && !waited).then(|| {
        "no wait point of the MPI library fired, so every rank ran as without cosched: \
         use Open MPI or an MPICH of ch4:ucx (ch4:ofi and ch3 have none; see `cosched doctor`)"
            .to_owned()
    })
}

fn not_finalized(facts: &Facts) -> Option<String> {
    let nr = facts.count(|rank| rank.state != RankState::Done && rank.state != RankState::Passive);
    (nr > 0).then(|| {
        format!("{nr} ranks ended without MPI_Finalize: their times are unknown; look for a crash or an MPI_Abort")
    })
}

fn missed(facts: &Facts) -> Option<String> {
    (facts.nr_missed * 1000 > facts.nr_blocks).then(|| {
        format!(
            "{} of {} sleeps were ended by the safety net although a message was there: report this, \
             with the MPI library and its transport; meanwhile try --policy spin_block:200us",
            facts.nr_missed, facts.nr_blocks
        )
    })
}

fn spurious(facts: &Facts) -> Option<String> {
    let useful = facts.nr_wakes.saturating_sub(facts.nr_spurious);
    (facts.nr_spurious > useful && facts.nr_spurious > 100).then(|| {
        format!(
            "{} of {} wake-ups found nothing: ranks were rung for messages of others; \
             a longer spin costs less here, try --policy spin_block:200us",
            facts.nr_spurious, facts.nr_wakes
        )
    })
}

fn without_page(facts: &Facts) -> Option<String> {
    let nr: u32 = facts.jobs.iter().map(|job| job.nr_ranks_without_page).sum();
    (nr > 0).then(|| {
        format!("{nr} ranks have no slot on the job page and spin as without cosched: are they started with the same environment?")
    })
}

fn spinning(facts: &Facts) -> Option<String> {
    let much = facts.spinning.share_of(facts.wall) > 0.25 && facts.spinning.0 > 2 * facts.blocked.0;
    much.then(|| {
        "ranks spun much and slept little: right on a free machine; beside other work use --policy auto"
            .to_owned()
    })
}

fn no_slice(facts: &Facts) -> Option<String> {
    let refused = facts.slice_asked_us > 0 && facts.count(|rank| rank.slice_us > 0) == 0;
    let active = facts.count(|rank| rank.state == RankState::Done) > 0;
    (refused && active).then(|| {
        "this kernel takes no slice per task, so that a woken rank may wait for a competitor's turn to end: \
         Linux 6.12 or newer would help"
            .to_owned()
    })
}

/// Much sleep while some rank never waits: it is the slowest, and all wait for it.
fn imbalance(facts: &Facts) -> Option<String> {
    let waiting = |rank: &Rank| {
        let waited = rank.counters.blocked + rank.counters.spinning;
        rank.wall
            .map(|wall| (waited.share_of(wall), rank.world_rank))
    };
    let shares: Vec<(f64, u32)> = facts.ranks().filter_map(waiting).collect();
    let least = shares.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let most = shares.iter().map(|share| share.0).fold(0.0, f64::max);
    (least.0 < 0.1 && most > 0.4).then(|| {
        format!(
            "rank {} hardly ever waits while others wait {:.0} % of the time: the work is unevenly shared out, \
             or that rank's CPU has more competitors",
            least.1,
            most * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::numbers::{jobs_of, tests::slot};
    use cosched_model::abi::{self, cos_slot};

    fn says(change: impl Fn(&mut cos_slot), words: &str) {
        let mut slots = [slot(0), slot(1)];
        slots.iter_mut().for_each(change);
        let line = advise(&jobs_of(&slots), 100).line;
        assert!(line.contains(words), "{line}");
    }

    #[test]
    fn praises_a_good_run() {
        let advice = advise(&jobs_of(&[slot(0), slot(1)]), 100);
        assert!(advice.helped);
        assert!(
            advice.line.ends_with("nothing to change"),
            "{}",
            advice.line
        );
    }

    #[test]
    fn each_rule_speaks_when_its_counter_does() {
        says(
            |s| (s.hook, s.spin_ns, s.blocked_ns) = (0, 0, 0),
            "no wait point",
        );
        says(|s| s.state = abi::COS_RANK_SPINNING, "without MPI_Finalize");
        says(|s| s.state = abi::COS_RANK_NONE, "through MPI_Init");
        says(|s| s.nr_missed = 2, "safety net");
        says(|s| s.nr_spurious = 600, "found nothing");
        says(|s| s.world_rank *= 3, "nothing to change");
        says(
            |s| (s.spin_ns, s.blocked_ns) = (4_000_000_000, 1),
            "spun much",
        );
        says(|s| s.slice_us = 0, "takes no slice");
        says(
            |s| (s.spin_ns, s.blocked_ns) = (0, u64::from(s.world_rank) * 5_000_000_000),
            "rank 0 hardly ever waits",
        );
    }

    #[test]
    fn says_when_no_rank_came() {
        let advice = advise(&[], 100);
        assert!(!advice.helped && advice.line.starts_with("no MPI rank"));
    }

    #[test]
    fn holds_the_bounds_of_the_promises() {
        says(|s| s.nr_missed = 1, "nothing to change"); // 0.1 % is allowed
        says(|s| s.nr_spurious = 495, "nothing to change"); // one per useful wake-up is
    }
}
