// SPDX-License-Identifier: Apache-2.0
//! Who may do what to whose job, and when a job ends.

use super::*;
use crate::config::{Config, Sources};
use crate::fake::Fake;
use cosched_model::abi;
use std::process::{Child, Command};

const ROOT: Caller = Caller {
    uid: 0,
    pid: 1,
    connection: 1,
};

fn bounds(flags: &[&str]) -> Bounds {
    let config = Config::read(&Sources {
        file: Some("/dev/null".into()),
        flags: flags.iter().map(|flag| flag.to_string()).collect(),
        ..Sources::default()
    });
    Bounds::of(&config.unwrap())
}

fn registry(flags: &[&str]) -> (Registry<Fake>, Fake) {
    let fake = Fake::default();
    (Registry::new(fake.clone(), bounds(flags)), fake)
}

fn wish(preset: &str) -> Begin<'_> {
    Begin {
        preset,
        ..Begin::default()
    }
}

fn held() -> Begin<'static> {
    Begin {
        held: true,
        empty: true,
        ..wish("auto")
    }
}

fn sleeper() -> Child {
    Command::new("sleep").arg("60").spawn().unwrap()
}

fn of(child: &Child) -> Option<Beside> {
    Some(Beside::Process(Process::of_pid(child.id()).unwrap()))
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn user(uid: u32) -> Caller {
    Caller {
        uid,
        pid: std::process::id(),
        connection: u64::from(uid),
    }
}

#[test]
fn a_job_ends_with_its_last_task() {
    let (mut registry, fake) = registry(&[]);
    let child = sleeper();
    let (job, serial, answers) = registry.begin(ROOT, &wish("auto"), of(&child)).unwrap();
    assert_eq!((job, serial, answers.len()), (1, 1, 7));
    registry.tick();
    assert_eq!(fake.state().jobs[&1].pids, [child.id()]);
    end(child);
    registry.tick();
    assert!(fake.state().jobs.is_empty());
}

#[test]
fn a_held_job_ends_with_its_connection() {
    let (mut registry, fake) = registry(&[]);
    registry.begin(ROOT, &held(), None).unwrap();
    registry.tick();
    registry.holder_gone(2);
    assert_eq!(fake.state().jobs.len(), 1);
    registry.holder_gone(1);
    assert!(fake.state().jobs.is_empty());
}

#[test]
fn a_held_job_outlives_its_tasks() {
    let (mut registry, fake) = registry(&[]);
    let child = sleeper();
    registry.begin(ROOT, &held(), None).unwrap();
    registry.join(ROOT, 1, 0, of(&child)).unwrap();
    end(child);
    registry.tick();
    assert_eq!(fake.state().jobs.len(), 1);
}

#[test]
fn an_empty_job_must_be_held() {
    let (mut registry, _) = registry(&[]);
    let empty = Begin {
        empty: true,
        ..wish("auto")
    };
    let status = registry.begin(ROOT, &empty, None).unwrap_err().status;
    assert_eq!(status, abi::COS_CONTROL_MALFORMED);
}

#[test]
fn another_users_job_is_as_if_it_were_not_there() {
    let (mut registry, fake) = registry(&[]);
    let (job, serial, _) = registry.begin(user(1000), &held(), None).unwrap();
    let other = user(1001);
    let (shown, nr_hidden) = registry.shown(other, 0);
    assert_eq!((shown.len(), nr_hidden), (0, 1));
    for refusal in [
        registry.end(other, job, 0).unwrap_err(),
        registry.switch(other, job, 0, "auto", None).unwrap_err(),
        registry.join(other, job, 0, None).unwrap_err(),
        registry.end(user(1000), job, serial + 1).unwrap_err(),
    ] {
        assert_eq!(refusal.status, abi::COS_CONTROL_UNKNOWN, "{}", refusal.line);
    }
    assert_eq!(fake.state().jobs.len(), 1);
    assert_eq!(registry.shown(ROOT, 0).0.len(), 1);
    registry.end(user(1000), job, serial).unwrap();
    let (again, later, _) = registry.begin(user(1000), &held(), None).unwrap();
    assert!(again == job && later > serial);
}

#[test]
fn another_users_process_does_not_join() {
    let (mut registry, fake) = registry(&[]);
    let child = sleeper();
    // The sleeper is ours; for the registry another user asks.
    let stranger = user(rustix::process::getuid().as_raw() + 1);
    let refusal = registry
        .begin(stranger, &wish("auto"), of(&child))
        .unwrap_err();
    assert!(refusal.line.contains("is not yours"), "{}", refusal.line);
    assert!(fake.state().jobs.is_empty());
    let (job, ..) = registry.begin(stranger, &held(), None).unwrap();
    assert!(registry.join(stranger, job, 0, of(&child)).is_err());
    assert!(fake.state().jobs[&job].pids.is_empty());
    end(child);
}

#[test]
fn bounds_hold_for_jobs_ranks_and_boosts() {
    let (mut registry, fake) = registry(&["users.jobs=2", "users.boosts_per_second=1000"]);
    for _ in 0..2 {
        registry.begin(user(1000), &held(), None).unwrap();
    }
    let line = registry.begin(user(1000), &held(), None).unwrap_err().line;
    assert!(line.contains("users.jobs"), "{line}");
    registry.begin(user(1001), &held(), None).unwrap();
    assert_eq!(fake.state().jobs[&1].boost_gap_ns, 1_000_000);
    let line = registry
        .begin(user(1001), &wish("gang"), None)
        .unwrap_err()
        .line;
    assert!(line.contains("users.presets"), "{line}");
}

#[test]
fn who_has_too_many_ranks_loses_the_largest_job_and_no_other() {
    let (mut registry, fake) = registry(&["users.ranks=3"]);
    for job in 1..=2 {
        registry.begin(user(1000), &held(), None).unwrap();
        // As forks would: without being asked.
        let pids = vec![std::process::id(); job];
        fake.state().jobs.get_mut(&(job as u32)).unwrap().pids = pids;
    }
    registry.tick();
    assert_eq!(fake.state().jobs.len(), 2);
    fake.state().jobs.get_mut(&2).unwrap().pids = vec![std::process::id(); 50];
    registry.tick();
    assert_eq!(fake.state().jobs.keys().collect::<Vec<_>>(), [&1]);
}

#[test]
fn all_job_numbers_taken_is_one_line() {
    let (mut registry, _) = registry(&[]);
    for _ in 0..63 {
        registry.begin(ROOT, &held(), None).unwrap();
    }
    let refusal = registry.begin(ROOT, &held(), None).unwrap_err();
    assert_eq!(refusal.status, abi::COS_CONTROL_NO_ROOM);
    assert_eq!(refusal.line.lines().count(), 1);
}

#[test]
fn a_switch_changes_the_parameters_and_nothing_else() {
    let (mut registry, fake) = registry(&[]);
    let child = sleeper();
    let (job, ..) = registry.begin(ROOT, &wish("auto"), of(&child)).unwrap();
    let before = fake.state().jobs[&job].clone();
    registry.switch(ROOT, job, 0, "dcs-spin", None).unwrap();
    let after = fake.state().jobs[&job].clone();
    assert!(before.params != after.params);
    assert_eq!(before.pids, after.pids);
    assert!(registry.switch(ROOT, job, 0, "no-such", None).is_err());
    assert!(fake.state().jobs[&job].params == after.params);
    end(child);
}
