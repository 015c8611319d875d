// SPDX-License-Identifier: Apache-2.0
//! Collectives, built from messages between tasks.
//!
//! Linear ones go through task 0, as S1's barrier does; the others are the textbook
//! algorithms that MPI libraries take (Thakur, Rabenseifner and Gropp, IJHPCA 2005).

use super::Step;

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
        (1..step.tasks).for_each(|_| step.recv(super::ANY));
    } else {
        step.send(0, bytes);
    }
}
