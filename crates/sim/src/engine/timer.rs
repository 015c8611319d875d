// SPDX-License-Identifier: Apache-2.0
//! Timers that are moved far more often than they fire.
//!
//! A queue cannot cheaply take an event out. A timer therefore remembers when it is
//! due and for when its earliest event is queued. Moved later, it
//! only notes the new instant; the event that then comes too early queues the
//! next. Moved earlier, it queues another; the one left behind is known by its
//! instant, which is no longer the one queued. No generation number is needed, and a
//! slice that is extended a thousand times costs one event.

const NEVER: u64 = u64::MAX;

/// One timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    due_ns: u64,
    queued_ns: u64,
}

/// What an event means to its timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fired {
    /// It is due now.
    Due,
    /// It was moved: queue it again for that instant.
    Moved(u64),
    /// Nothing: left behind, or disarmed.
    Stale,
}

impl Default for Timer {
    fn default() -> Self {
        Timer {
            due_ns: NEVER,
            queued_ns: NEVER,
        }
    }
}

impl Timer {
    /// Due at `at_ns` (`u64::MAX`: never); gives the instant for which an event must be queued.
    #[must_use]
    pub fn arm(&mut self, at_ns: u64) -> Option<u64> {
        self.due_ns = at_ns;
        if at_ns >= self.queued_ns {
            return None;
        }
        self.queued_ns = at_ns;
        Some(at_ns)
    }

    /// An event of this timer comes at `now_ns`.
    pub fn fire(&mut self, now_ns: u64) -> Fired {
        if now_ns != self.queued_ns {
            return Fired::Stale;
        }
        self.queued_ns = NEVER;
        if self.due_ns == NEVER {
            return Fired::Stale;
        }
        if self.due_ns > now_ns {
            self.queued_ns = self.due_ns;
            return Fired::Moved(self.due_ns);
        }
        self.due_ns = NEVER;
        Fired::Due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_later_it_queues_nothing_until_the_event_comes() {
        let mut timer = Timer::default();
        assert_eq!(timer.arm(10), Some(10));
        assert_eq!(timer.arm(20), None);
        assert_eq!(timer.fire(10), Fired::Moved(20));
        assert_eq!(timer.fire(20), Fired::Due);
    }

    #[test]
    fn moved_earlier_the_one_left_behind_is_stale() {
        let mut timer = Timer::default();
        assert_eq!(timer.arm(20), Some(20));
        assert_eq!(timer.arm(10), Some(10));
        assert_eq!(timer.fire(10), Fired::Due);
        assert_eq!(timer.fire(20), Fired::Stale);
    }

    #[test]
    fn disarmed_it_does_not_fire() {
        let mut timer = Timer::default();
        assert_eq!(timer.arm(10), Some(10));
        assert_eq!(timer.arm(u64::MAX), None);
        assert_eq!(timer.fire(10), Fired::Stale);
    }

    #[test]
    fn one_left_behind_that_meets_a_new_one_fires_once() {
        let mut timer = Timer::default();
        assert_eq!(timer.arm(20), Some(20));
        assert_eq!(timer.arm(10), Some(10));
        assert_eq!(timer.fire(10), Fired::Due);
        assert_eq!(timer.arm(20), Some(20));
        assert_eq!(timer.fire(20), Fired::Due);
        assert_eq!(timer.fire(20), Fired::Stale);
    }
}
