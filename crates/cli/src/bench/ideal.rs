// SPDX-License-Identifier: Apache-2.0
//! Ideal sharing, computed: what is fair among programs that come and go.
//!
//! Used only where programs of `--beside` run along, since none of them lasts as long as measuring
//! the share would need. All tasks count alike and nobody gets more than one CPU per task; hogs are
//! there all the time; when a program ends, those left share its part. This knows neither cgroups
//! nor autogroups.

/// A program that wants to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// CPUs that it would keep busy, one task each.
    pub tasks: f64,
    /// Its time alone.
    pub alone_s: f64,
    /// Share of a CPU that each task had then.
    pub share_alone: f64,
}

/// A program that ran: when, and how wide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Presence {
    /// As in [`Demand`].
    pub tasks: f64,
    /// Since the common start.
    pub start_s: f64,
    /// Since the common start.
    pub end_s: f64,
}

/// Share of a CPU of one task where `hogs` per CPU and `tasks` more compete for `nr_cpus` CPUs.
pub fn share(nr_cpus: usize, hogs: u32, tasks: f64) -> f64 {
    let nr_cpus = nr_cpus as f64;
    (nr_cpus / (nr_cpus * f64::from(hogs) + tasks)).min(1.0)
}

/// What is left of a program that ends with another one, by rounding.
const TOGETHER_S: f64 = 1e-9;

/// When each of `demands`, started together, would end under ideal sharing.
pub fn ends_s(nr_cpus: usize, hogs: u32, demands: &[Demand]) -> Vec<f64> {
    let mut left_s: Vec<f64> = demands.iter().map(|demand| demand.alone_s).collect();
    let mut ends_s = vec![0.0; demands.len()];
    let mut now_s = 0.0;
    loop {
        let active: Vec<usize> = (0..demands.len()).filter(|&i| left_s[i] > 0.0).collect();
        let tasks = active.iter().map(|&i| demands[i].tasks).sum();
        let share = share(nr_cpus, hogs, tasks);
        let speed = |i: usize| (share / demands[i].share_alone).min(1.0);
        let Some(next) = active
            .iter()
            .copied()
            .min_by(|&a, &b| (left_s[a] / speed(a)).total_cmp(&(left_s[b] / speed(b))))
        else {
            return ends_s;
        };
        let step_s = left_s[next] / speed(next);
        now_s += step_s;
        for &i in &active {
            left_s[i] -= step_s * speed(i);
            if i == next || left_s[i] < TOGETHER_S {
                left_s[i] = 0.0;
                ends_s[i] = now_s;
            }
        }
    }
}

/// CPU time that `all[index]` could fairly have while it was there.
pub fn fair_cpu_s(nr_cpus: usize, hogs: u32, all: &[Presence], index: usize) -> f64 {
    let own = all[index];
    let mut instants: Vec<f64> = all
        .iter()
        .flat_map(|other| [other.start_s, other.end_s])
        .filter(|&at| own.start_s <= at && at <= own.end_s)
        .collect();
    instants.sort_by(f64::total_cmp);
    let between = |pair: &[f64]| {
        let there = all
            .iter()
            .filter(|p| p.start_s <= pair[0] && pair[1] <= p.end_s);
        let tasks = there.map(|presence| presence.tasks).sum();
        (pair[1] - pair[0]) * share(nr_cpus, hogs, tasks) * own.tasks
    };
    instants.windows(2).map(between).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    fn demand(tasks: f64, alone_s: f64) -> Demand {
        Demand {
            tasks,
            alone_s,
            share_alone: 1.0,
        }
    }

    #[test]
    fn nobody_gets_more_than_a_cpu() {
        assert_eq!(share(2, 0, 1.0), 1.0);
        assert_eq!(share(2, 1, 2.0), 0.5);
    }

    #[test]
    fn the_longer_program_speeds_up_when_the_shorter_has_ended() {
        // One CPU: both at half speed until the short one ends at 2 s, then 3 s of work are left.
        let ends = ends_s(1, 0, &[demand(1.0, 1.0), demand(1.0, 4.0)]);
        assert!(close(ends[0], 2.0) && close(ends[1], 5.0), "{ends:?}");
    }

    #[test]
    fn hogs_never_leave() {
        let ends = ends_s(2, 1, &[demand(2.0, 3.0)]);
        assert!(close(ends[0], 6.0));
    }

    #[test]
    fn ranks_that_shared_cpus_alone_lose_only_what_is_new() {
        let four = Demand {
            tasks: 4.0,
            alone_s: 1.0,
            share_alone: 0.5,
        };
        assert!(close(ends_s(2, 0, &[four])[0], 1.0));
        assert!(close(ends_s(2, 0, &[four, four])[1], 2.0));
    }

    #[test]
    fn fair_cpu_time_counts_only_those_present() {
        let all = [
            Presence {
                tasks: 1.0,
                start_s: 0.0,
                end_s: 2.0,
            },
            Presence {
                tasks: 1.0,
                start_s: 0.0,
                end_s: 5.0,
            },
        ];
        assert!(close(fair_cpu_s(1, 0, &all, 0), 1.0));
        assert!(close(fair_cpu_s(1, 0, &all, 1), 4.0));
    }
}
