// SPDX-License-Identifier: Apache-2.0
//! Collectives, built from messages between tasks.
//!
//! Linear ones go through task 0, as S1's barrier does (section 4.1.2); the others are the textbook
//! algorithms that MPI libraries take: dissemination (Hensgen, Finkel and Manber, International
//! Journal of Parallel Programming 17, 1988), recursive doubling and pairwise exchange (Thakur,
//! Rabenseifner and Gropp, IJHPCA 19, 2005).
//!
//! Messages of one sender are taken in order and each task receives from whom the
//! algorithm says, so a collective that follows another needs no tag. Not so after
//! [`linear_gather`], which takes them as they come: a [`linear_release`] must follow it.
//! Combining data costs no CPU time.

use super::{Step, ANY};

/// Task 0 sends to each other one.
pub fn linear_release(step: &mut Step, bytes: u32) {
    if step.task == 0 {
        (1..step.tasks).for_each(|to| step.send(to, bytes));
    } else {
        step.recv(0);
    }
}

/// Each sends to task 0, which takes them as they come.
pub fn linear_gather(step: &mut Step, bytes: u32) {
    if step.task == 0 {
        (1..step.tasks).for_each(|_| step.recv(ANY));
    } else {
        step.send(0, bytes);
    }
}

/// A barrier in ceil(log2 n) rounds: each signals the one 1, 2, 4, ... after it.
pub fn dissemination(step: &mut Step, bytes: u32) {
    let (task, n) = (step.task, step.tasks);
    let mut distance = 1;
    while distance < n {
        step.send((task + distance) % n, bytes);
        step.recv((task + n - distance) % n);
        distance *= 2;
    }
}

/// All reduce `bytes` by recursive doubling. What exceeds a power of two folds itself into a
/// neighbour before, and is told the result afterwards.
pub fn allreduce(step: &mut Step, bytes: u32) {
    let (task, n) = (step.task, step.tasks);
    let whole = 1 << n.ilog2();
    let excess = n - whole;
    let folded = task < 2 * excess;
    if folded && task.is_multiple_of(2) {
        step.send(task + 1, bytes);
        return step.recv(task + 1);
    }
    if folded {
        step.recv(task - 1);
    }
    let place = if folded { task / 2 } else { task - excess };
    let mut bit = 1;
    while bit < whole {
        let other = place ^ bit;
        let peer = if other < excess {
            2 * other + 1
        } else {
            other + excess
        };
        step.send(peer, bytes);
        step.recv(peer);
        bit *= 2;
    }
    if folded {
        step.send(task - 1, bytes);
    }
}

/// Each sends `bytes` to each other one, by pairwise exchange in n - 1 rounds.
pub fn alltoall(step: &mut Step, bytes: u32) {
    let (task, n) = (step.task, step.tasks);
    for distance in 1..n {
        step.send((task + distance) % n, bytes);
        step.recv((task + n - distance) % n);
    }
}
