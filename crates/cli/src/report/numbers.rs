// SPDX-License-Identifier: Apache-2.0
//! From slots of the job page to numbers with units: per rank and per job.
//!
//! Slots are hints that any rank may have overwritten: every sum saturates, and
//! what cannot be (an end before its begin) is unknown, not zero.

use cosched_model::{abi, bucket_upper_us, hook_names, Nanos, RankState, SOURCES};
use cosched_policy::words::REASONS;
use serde::Serialize;
use std::collections::BTreeMap;

/// What was counted, for a rank or summed over the ranks of a job.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counters {
    /// Waiting on the CPU, or wanting it.
    #[serde(rename = "spinning_ns")]
    pub spinning: Nanos,
    /// Waiting asleep.
    #[serde(rename = "blocked_ns")]
    pub blocked: Nanos,
    /// MPI calls.
    pub nr_calls: u64,
    /// Sleeps begun.
    pub nr_blocks: u64,
    /// Sleeps ended by a doorbell or a packet.
    pub nr_wakes: u64,
    /// Sleeps ended by the safety net.
    pub nr_timeouts: u64,
    /// ... that then found a message.
    pub nr_missed: u64,
    /// Woken, and nothing was there.
    pub nr_spurious: u64,
    /// Doorbells rung at others.
    pub nr_rings: u64,
    /// Yields.
    pub nr_yields: u64,
    /// Test loops that gave way.
    pub nr_gave: u64,
    /// Verdicts that ended spinning, by reason.
    pub why: BTreeMap<&'static str, u64>,
    /// Looks at the awaited peer, by the source that answered.
    pub source: BTreeMap<&'static str, u64>,
    /// Doorbell to running.
    pub wake_delay: Delays,
}

/// A histogram of wake-up delays; shown as upper bounds of percentiles.
#[derive(Clone, Debug, Default)]
pub struct Delays([u64; abi::COS_NR_DELAYS as usize]);

/// One rank.
#[derive(Clone, Debug, Serialize)]
pub struct Rank {
    /// Key of its job.
    pub job: String,
    /// In MPI_COMM_WORLD.
    pub world_rank: u32,
    /// As the rank sees itself.
    pub pid: u32,
    /// When the report was made.
    pub state: RankState,
    /// From MPI_Init to MPI_Finalize; unknown where it did not get there.
    #[serde(rename = "wall_ns")]
    pub wall: Option<Nanos>,
    /// The part of it that was not spent waiting.
    #[serde(rename = "computing_ns")]
    pub computing: Option<Nanos>,
    /// CPU time of the process in it.
    #[serde(rename = "cpu_ns")]
    pub cpu: Option<Nanos>,
    /// Wait points that fired.
    pub hook: Vec<&'static str>,
    /// As the kernel gave it; 0 = its own.
    pub slice_us: u32,
    /// Counted by this rank.
    #[serde(flatten)]
    pub counters: Counters,
}

/// The ranks of one MPI job on this node.
#[derive(Clone, Debug, Serialize)]
pub struct Job {
    /// Its key on this node.
    pub job: String,
    /// The longest of its ranks.
    #[serde(rename = "wall_ns")]
    pub wall: Option<Nanos>,
    /// Of all ranks that reached MPI_Finalize.
    #[serde(rename = "cpu_ns")]
    pub cpu: Nanos,
    /// Ranks that this node should have and that have no slot.
    pub nr_ranks_without_page: u32,
    /// Sums over its ranks.
    pub total: Counters,
    /// By world rank.
    #[serde(skip)]
    pub ranks: Vec<Rank>,
}

impl Delays {
    /// Upper bound in us of the bucket that `percent` of all delays do not
    /// exceed; none where nothing was counted, or the bucket is the open one.
    pub fn percentile_us(&self, percent: u64) -> Option<u64> {
        let total: u64 = self.0.iter().sum();
        let target = (total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let bucket = self.0.iter().position(|nr| {
            seen += nr;
            seen >= target
        });
        bucket.and_then(bucket_upper_us)
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Serialize for Delays {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("nr", &self.count())?;
        for (key, percent) in [
            ("p50_below_us", 50),
            ("p90_below_us", 90),
            ("p99_below_us", 99),
        ] {
            map.serialize_entry(key, &self.percentile_us(percent))?;
        }
        map.end()
    }
}

impl Counters {
    fn of(slot: &abi::cos_slot) -> Self {
        let named = |names: &[&'static str], numbers: &[u32]| {
            names
                .iter()
                .zip(numbers)
                .map(|(name, nr)| (*name, u64::from(*nr)))
                .collect()
        };
        Counters {
            spinning: Nanos(slot.spin_ns),
            blocked: Nanos(slot.blocked_ns),
            nr_calls: slot.nr_calls,
            nr_blocks: slot.nr_blocks.into(),
            nr_wakes: slot.nr_wakes.into(),
            nr_timeouts: slot.nr_timeouts.into(),
            nr_missed: slot.nr_missed.into(),
            nr_spurious: slot.nr_spurious.into(),
            nr_rings: slot.nr_rings.into(),
            nr_yields: slot.nr_yields.into(),
            nr_gave: slot.nr_gave.into(),
            why: named(REASONS, &slot.why),
            source: named(&SOURCES, &slot.source),
            wake_delay: Delays(slot.delay.map(u64::from)),
        }
    }

    fn add(&mut self, other: &Counters) {
        self.spinning = self.spinning + other.spinning;
        self.blocked = self.blocked + other.blocked;
        self.nr_calls = self.nr_calls.saturating_add(other.nr_calls);
        self.nr_blocks += other.nr_blocks;
        self.nr_wakes += other.nr_wakes;
        self.nr_timeouts += other.nr_timeouts;
        self.nr_missed += other.nr_missed;
        self.nr_spurious += other.nr_spurious;
        self.nr_rings += other.nr_rings;
        self.nr_yields += other.nr_yields;
        self.nr_gave += other.nr_gave;
        for (mine, theirs) in [
            (&mut self.why, &other.why),
            (&mut self.source, &other.source),
        ] {
            for (name, nr) in theirs {
                *mine.entry(name).or_default() += nr;
            }
        }
        for (mine, theirs) in self.wake_delay.0.iter_mut().zip(other.wake_delay.0) {
            *mine += theirs;
        }
    }
}

impl Rank {
    fn of(slot: &abi::cos_slot) -> Self {
        let state = RankState::of(slot.state);
        let counters = Counters::of(slot);
        let wall = (state == RankState::Done)
            .then(|| slot.end_ns.checked_sub(slot.begin_ns).map(Nanos))
            .flatten();
        let waiting = counters.spinning + counters.blocked;
        Rank {
            job: shown(slot.job),
            world_rank: slot.world_rank,
            pid: slot.pid,
            state,
            wall,
            computing: wall.map(|wall| wall.saturating_sub(waiting)),
            cpu: wall.map(|_| Nanos(slot.cpu_ns)),
            hook: hook_names(slot.hook.into()),
            slice_us: slot.slice_us,
            counters,
        }
    }
}

/// The jobs of a page, in the order in which their first ranks came.
pub fn jobs_of(slots: &[abi::cos_slot]) -> Vec<Job> {
    let mut keys: Vec<u64> = Vec::new();
    for slot in slots {
        if !keys.contains(&slot.job) {
            keys.push(slot.job);
        }
    }
    keys.into_iter().map(|key| job_of(key, slots)).collect()
}

fn shown(key: u64) -> String {
    format!("{key:016x}")
}

fn job_of(key: u64, slots: &[abi::cos_slot]) -> Job {
    let mut ranks: Vec<Rank> = slots
        .iter()
        .filter(|slot| slot.job == key)
        .map(Rank::of)
        .collect();
    ranks.sort_by_key(|rank| rank.world_rank);
    let mut total = Counters::default();
    for rank in &ranks {
        total.add(&rank.counters);
    }
    Job {
        job: shown(key),
        wall: ranks.iter().filter_map(|rank| rank.wall).max(),
        cpu: ranks.iter().filter_map(|rank| rank.cpu).sum(),
        nr_ranks_without_page: gaps(&ranks),
        total,
        ranks,
    }
}

/// World ranks are dense, so that a gap between those of this node is a rank
/// without a page, or one of another node: only the launcher knows. Counted
/// where they are nearly dense, since then another node is unlikely.
fn gaps(ranks: &[Rank]) -> u32 {
    let (Some(first), Some(last)) = (ranks.first(), ranks.last()) else {
        return 0;
    };
    let span = u64::from(last.world_rank - first.world_rank) + 1;
    let missing = span.saturating_sub(ranks.len() as u64);
    if missing * 4 < span {
        missing as u32
    } else {
        0
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A rank that did 6 s of work, spun 1 s and slept 3 s.
    pub fn slot(world_rank: u32) -> abi::cos_slot {
        let mut slot = abi::cos_slot {
            job: 7,
            world_rank,
            pid: 100 + world_rank,
            state: abi::COS_RANK_DONE,
            begin_ns: 1_000_000_000,
            end_ns: 11_000_000_000,
            cpu_ns: 7_000_000_000,
            spin_ns: 1_000_000_000,
            blocked_ns: 3_000_000_000,
            nr_calls: 5000,
            nr_blocks: 1000,
            nr_wakes: 990,
            nr_rings: 980,
            hook: abi::COS_HOOK_YIELD as u16,
            slice_us: 100,
            ..Default::default()
        };
        slot.delay[1] = 900;
        slot.delay[8] = 90;
        slot.why[abi::COS_WHY_LIMIT as usize] = 1000;
        slot
    }

    #[test]
    fn what_is_not_waiting_is_computing() {
        let rank = &jobs_of(&[slot(0)])[0].ranks[0];
        assert_eq!(rank.wall, Some(Nanos(10_000_000_000)));
        assert_eq!(rank.computing, Some(Nanos(6_000_000_000)));
    }

    #[test]
    fn percentiles_are_upper_bounds_of_buckets() {
        let delay = &jobs_of(&[slot(0)])[0].total.wake_delay;
        assert_eq!(
            [50, 90, 99].map(|p| delay.percentile_us(p)),
            [Some(8), Some(8), Some(1024)]
        );
        assert_eq!(Delays::default().percentile_us(50), None);
    }

    #[test]
    fn jobs_are_told_apart_and_summed() {
        let other = abi::cos_slot { job: 8, ..slot(0) };
        let jobs = jobs_of(&[slot(1), other, slot(0)]);
        let ranks: Vec<u32> = jobs[0].ranks.iter().map(|rank| rank.world_rank).collect();
        assert_eq!(
            (jobs.len(), ranks, jobs[0].total.nr_blocks),
            (2, vec![0, 1], 2000)
        );
        assert_eq!(jobs[0].total.why["limit"], 2000);
    }

    #[test]
    fn a_rank_without_finalize_has_no_wall_time() {
        let killed = abi::cos_slot {
            state: abi::COS_RANK_BLOCKED,
            ..slot(0)
        };
        let rank = &jobs_of(&[killed])[0].ranks[0];
        assert_eq!(
            (rank.wall, rank.cpu, rank.state),
            (None, None, RankState::Blocked)
        );
    }

    #[test]
    fn a_gap_between_ranks_is_a_rank_without_page() {
        let slots: Vec<_> = [0, 1, 2, 3, 5, 6].map(slot).to_vec();
        assert_eq!(jobs_of(&slots)[0].nr_ranks_without_page, 1);
        assert_eq!(jobs_of(&[slot(0), slot(8)])[0].nr_ranks_without_page, 0);
    }

    #[test]
    fn survives_any_bytes() {
        let mut wild = abi::cos_slot {
            world_rank: u32::MAX,
            ..slot(0)
        };
        (wild.begin_ns, wild.end_ns, wild.spin_ns, wild.state) = (u64::MAX, 0, u64::MAX, 5);
        (wild.nr_calls, wild.delay, wild.why) = (u64::MAX, [u32::MAX; 11], [u32::MAX; 5]);
        let jobs = jobs_of(&[wild, wild, slot(0)]);
        assert_eq!(jobs[0].total.nr_calls, u64::MAX);
        assert_eq!(jobs[0].ranks[2].wall, None);
    }
}
