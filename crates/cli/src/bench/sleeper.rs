// SPDX-License-Identifier: Apache-2.0
//! The interactive sleeper: what an editor or a shell would feel beside the job.
//!
//! One thread per CPU, pinned, wakes every 10 ms from an absolute timer and notes how late it
//! runs. It uses well under 0.1 % of its CPU, so EEVDF owes it an immediate start; what it does not
//! get is the job's or the hogs' doing.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

use cosched_sim::statistics::quantile;
use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack, ClockId};
use rustix::time::{clock_gettime, Timespec};

use super::cpus;

const PERIOD_NS: i64 = 10_000_000;
const SECOND_NS: i64 = 1_000_000_000;

/// Sleepers at work.
pub struct Sleepers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<f64>>>,
}

impl Sleepers {
    /// Starts one on each of `cpus`.
    pub fn start(cpus: &[usize]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let start = |&cpu: &usize| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || sleep_until(cpu, &stop))
        };
        let threads = cpus.iter().map(start).collect();
        Self { stop, threads }
    }

    /// Ends them; the 99th percentile of how late they ran, in microseconds.
    pub fn finish(self) -> Option<f64> {
        self.stop.store(true, Ordering::Relaxed);
        let late_us: Vec<f64> = self
            .threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .flatten()
            .collect();
        quantile(&late_us, 0.99)
    }
}

fn sleep_until(cpu: usize, stop: &AtomicBool) -> Vec<f64> {
    let mut late_us = Vec::new();
    // Without these two it still measures, only less sharply.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let _ = cpus::pin(&[cpu]);
    let mut due_ns = now_ns();
    while !stop.load(Ordering::Relaxed) {
        due_ns += PERIOD_NS;
        let due = Timespec {
            tv_sec: due_ns / SECOND_NS,
            tv_nsec: due_ns % SECOND_NS,
        };
        if clock_nanosleep_absolute(ClockId::Monotonic, &due).is_ok() {
            late_us.push((now_ns() - due_ns) as f64 / 1e3);
        }
        due_ns = due_ns.max(now_ns());
    }
    late_us
}

fn now_ns() -> i64 {
    let now = clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * SECOND_NS + now.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_is_never_early() {
        let cpus::CpuList(cpus) = cpus::allowed().unwrap();
        let sleepers = Sleepers::start(&cpus[..1]);
        std::thread::sleep(std::time::Duration::from_millis(60));
        assert!(sleepers.finish().unwrap() >= 0.0);
    }
}
