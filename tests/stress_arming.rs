// SPDX-License-Identifier: Apache-2.0
//! The waiting protocol, put under stress: `tests/stress` lets processes that are preempted
//! at any instruction wake each other through `shim/doorbell.h`, and counts lost wake-ups.
//! As it stands none may be lost; without the fences, or without the second pass, some must
//! be: a stress test that never goes red proves nothing. (`model_arming.rs` explores all
//! interleavings of a model; this is the real machine.)
#![allow(clippy::unwrap_used)] // helpers of tests

use cosched_tests::{c_program, need, root};
use serde_json::Value;
use std::{
    process::Command,
    sync::{Mutex, PoisonError},
    thread::available_parallelism,
};

const MILLISECONDS: u64 = 2500;

/// One is enough as a rule; a machine that is busy otherwise may need another.
const TRIES: u32 = 3;

fn two_cpus() -> Result<(), String> {
    match available_parallelism().unwrap().get() {
        1 => Err("needs two CPUs".to_owned()),
        _ => Ok(()),
    }
}

/// The exit code of `stress`, compiled with @flags, and what it counted in @processes that
/// are pinned to @cpus in turn. One at a time: others beside it would only thin it out.
fn stress(flags: &[&str], processes: u64, cpus: u64) -> (Option<i32>, Value) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let source = root().join("tests/stress/stress.c");
    let flags = [&["-O2"], flags].concat();
    let output = Command::new(c_program(folder.path(), &source, &flags))
        .args([processes, cpus, MILLISECONDS].map(|n| n.to_string()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let counts = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
    println!("{flags:?} {processes} on {cpus}: {counts}");
    (output.status.code(), counts)
}

/// Nothing is lost, and there was occasion enough to lose something.
fn holds(processes: u64, cpus: u64) {
    let (code, counts) = stress(&[], processes, cpus);
    assert_eq!((code, &counts["lost"]), (Some(0), &0.into()), "{counts}");
    for (count, least) in [
        ("rounds", 300),
        ("sleeps", 300),
        ("second_pass", 3),
        ("interrupted", 10),
        ("preempted", 300),
    ] {
        assert!(counts[count].as_u64() >= Some(least), "{count}: {counts}");
    }
}

fn is_found(mutant: &str, cpus: u64) {
    let flag = format!("-DCOS_MUTANT_{mutant}");
    let found = (0..TRIES).any(|_| stress(&[&flag], 2, cpus).0 == Some(1));
    assert!(found, "{mutant}: no wake-up was lost in {TRIES} runs");
}

#[test]
fn no_wake_up_is_lost_on_one_cpu() {
    for processes in [2, 4] {
        holds(processes, 1);
    }
}

#[test]
fn no_wake_up_is_lost_on_two_cpus() {
    if need("stress_arming::no_wake_up_is_lost_on_two_cpus", two_cpus()).is_some() {
        for processes in [2, 4] {
            holds(processes, 2);
        }
    }
}

/// A CPU sees its own stores in order: it takes two to miss a fence.
#[test]
fn the_fences_are_needed() {
    if need("stress_arming::the_fences_are_needed", two_cpus()).is_some() {
        is_found("NO_FENCE", 2);
    }
}

#[test]
fn the_second_pass_is_needed() {
    is_found("NO_SECOND_PASS", 1);
}
