// SPDX-License-Identifier: Apache-2.0
//! The words in which the page's numbers are shown to a person.

use crate::abi;
use serde::Serialize;

/// Which source told whether the peer is on its CPU, in the order of `cos_slot.source`.
pub const SOURCES: [&str; abi::COS_NR_SOURCES as usize] = [
    "published",
    "switches",
    "same_cpu",
    "beat",
    "proc",
    "unknown",
];

/// What a rank was doing when its slot was last written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RankState {
    /// It never told: its shim is passive.
    Passive,
    /// Outside of waits.
    Computing,
    /// Waiting on its CPU.
    Spinning,
    /// Waiting asleep.
    Blocked,
    /// Waiting, and giving way.
    Yielding,
    /// It reached MPI_Finalize.
    Done,
}

impl RankState {
    /// What a slot says; a page is a hint, so any other value reads as passive.
    pub fn of(word: u32) -> Self {
        match word {
            abi::COS_RANK_COMPUTING => Self::Computing,
            abi::COS_RANK_SPINNING => Self::Spinning,
            abi::COS_RANK_BLOCKED => Self::Blocked,
            abi::COS_RANK_YIELDING => Self::Yielding,
            abi::COS_RANK_DONE => Self::Done,
            _ => Self::Passive,
        }
    }
}

/// The wait points that fired, `none` where the shim stayed passive.
pub fn hook_names(bits: u32) -> Vec<&'static str> {
    [
        (abi::COS_HOOK_YIELD, "sched_yield"),
        (abi::COS_HOOK_UCP, "ucp_worker_progress"),
        (abi::COS_HOOK_POLL, "poll"),
    ]
    .into_iter()
    .filter(|(bit, _)| bits & bit != 0)
    .map(|(_, name)| name)
    .collect()
}

/// Upper bound of delay bucket `i` in microseconds; the last has none.
pub fn bucket_upper_us(i: usize) -> Option<u64> {
    (i + 1 < abi::COS_NR_DELAYS as usize).then(|| 4 << i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_page_has_a_name() {
        assert_eq!(SOURCES[abi::COS_SRC_UNKNOWN as usize], "unknown");
        assert_eq!(
            hook_names(abi::COS_HOOK_UCP | 1 << 31),
            ["ucp_worker_progress"]
        );
        assert_eq!(RankState::of(abi::COS_RANK_DONE), RankState::Done);
        assert_eq!(RankState::of(77), RankState::Passive);
    }

    #[test]
    fn the_last_bucket_is_open() {
        let last = abi::COS_NR_DELAYS as usize - 1;
        assert_eq!(bucket_upper_us(0), Some(4));
        assert_eq!(bucket_upper_us(last - 1), Some(2048));
        assert_eq!(bucket_upper_us(last), None);
    }
}
