// SPDX-License-Identifier: Apache-2.0
//! The loop against good and bad clients.

use super::*;
use crate::fake::Fake;
use cosched_control::{bytes_of_request, document, Client, Error, Mode, Wish, PATIENCE};
use proptest::prelude::*;
use rustix::{
    net::{
        self, sockopt, AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    },
    pipe::{pipe_with, PipeFlags},
};
use std::{
    fs,
    path::PathBuf,
    process::{Child, Command},
    thread::{self, JoinHandle},
};

struct House {
    dir: tempfile::TempDir,
    fake: Fake,
    stop: OwnedFd,
    reload: OwnedFd,
    thread: Option<JoinHandle<io::Result<End>>>,
}

impl House {
    fn open(text: &str) -> House {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("c.toml"), text).unwrap();
        let sources = Sources {
            file: Some(dir.path().join("c.toml")),
            ..Sources::default()
        };
        let config = Config::read(&sources).unwrap();
        let pipe = || pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        let ((stopped, stop), (reloads, reload)) = (pipe(), pipe());
        let doors = Doors {
            listener: wire::listen(&dir.path().join("sock")).unwrap(),
            stop: stopped,
            reload: reloads,
        };
        let fake = Fake::default();
        let mut server = Server::new(doors, sources, config, fake.clone());
        let thread = Some(thread::spawn(move || server.serve()));
        House {
            dir,
            fake,
            stop,
            reload,
            thread,
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("sock")
    }

    fn client(&self) -> Client {
        Client::connect(&self.path(), PATIENCE).unwrap()
    }

    fn raw(&self) -> OwnedFd {
        let flags = SocketFlags::CLOEXEC;
        let s = net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let patience = Some(Duration::from_secs(5));
        sockopt::set_socket_timeout(&s, sockopt::Timeout::Recv, patience).unwrap();
        net::connect(&s, &SocketAddrUnix::new(self.path()).unwrap()).unwrap();
        s
    }

    fn end(&mut self) -> End {
        let _ = rustix::io::write(&self.stop, b"x");
        self.thread.take().unwrap().join().unwrap().unwrap()
    }

    /// Polls for at most 5 s.
    fn wait_for(&self, what: &str, holds: impl Fn(&Fake) -> bool) {
        for _ in 0..500 {
            if holds(&self.fake) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("waited for {what}");
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end();
        }
    }
}

const HELD: u32 = abi::COS_CONTROL_HELD | abi::COS_CONTROL_EMPTY;

fn begin(client: &Client, flags: u32) -> Result<cosched_control::Reply, Error> {
    let wish = Wish {
        flags,
        preset: "auto",
        name: "test",
        ..Wish::default()
    };
    client.ask(abi::COS_CONTROL_BEGIN, &wish)
}

fn still_serves(house: &House) {
    let reply = house.client().ask(abi::COS_CONTROL_HELLO, &Wish::default());
    assert_eq!(reply.unwrap().mode, Mode::Schedule);
}

#[test]
fn a_job_begins_is_seen_and_ends_with_its_holder() {
    let house = House::open("");
    let client = house.client();
    let reply = begin(&client, HELD).unwrap();
    assert_eq!((reply.job, reply.serial), (1, 1));
    let answers: Vec<document::Answer> = serde_json::from_str(&reply.text).unwrap();
    assert_eq!(answers.len(), 7);
    let jobs = house
        .client()
        .ask(abi::COS_CONTROL_JOBS, &Wish::default())
        .unwrap();
    let jobs: document::Jobs = serde_json::from_str(&jobs.text).unwrap();
    assert_eq!(
        (jobs.jobs[0].name.as_str(), jobs.jobs[0].held),
        ("test", true)
    );
    let status = house
        .client()
        .ask(abi::COS_CONTROL_STATUS, &Wish::default())
        .unwrap();
    let status: document::Status = serde_json::from_str(&status.text).unwrap();
    assert_eq!(status.pid, std::process::id());
    assert_eq!(status.counts[0].meaning, "a task came on a CPU");
    assert_eq!(status.config.len(), crate::settings::TABLE.len());
    drop(client);
    house.wait_for("the end of the job", |fake| fake.state().jobs.is_empty());
}

#[test]
fn who_is_on_a_cpu_is_shown_to_jobs_with_the_shim_alone() {
    let house = House::open("");
    let begin = |flags| begin(&house.client(), HELD | flags).unwrap().beside;
    assert!(begin(abi::COS_CONTROL_SHIM).is_none(), "nothing is there");
    let (mine, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    house.fake.state().published = Some(theirs);
    assert!(begin(0).is_none());
    let given = begin(abi::COS_CONTROL_SHIM).unwrap();
    rustix::io::write(&given, b"x").unwrap();
    let mut byte = [0];
    rustix::io::read(&mine, &mut byte).unwrap();
    assert_eq!(byte, *b"x", "it is that descriptor");
    still_serves(&house);
}

#[test]
fn a_pidfd_says_who_joins_and_nobody_else_does() {
    let house = House::open("");
    let mut child: Child = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
    let wish = Wish {
        preset: "auto",
        beside: Some(std::os::fd::AsFd::as_fd(&pidfd)),
        ..Wish::default()
    };
    house.client().ask(abi::COS_CONTROL_BEGIN, &wish).unwrap();
    assert_eq!(house.fake.state().jobs[&1].pids, [child.id()]);
    child.kill().unwrap();
    child.wait().unwrap();
    house.wait_for("the end of the job", |fake| fake.state().jobs.is_empty());
    let dead = house
        .client()
        .ask(abi::COS_CONTROL_BEGIN, &wish)
        .unwrap_err();
    assert!(dead.to_string().contains("has ended"), "{dead}");
}

#[test]
fn a_child_joins_before_it_is_its_program() {
    use std::os::unix::process::CommandExt;
    let house = House::open("");
    let client = house.client();
    let reply = begin(&client, HELD).unwrap();
    let joiner = client.joiner(reply.job, reply.serial);
    let mut command = Command::new("sleep");
    command.arg("60");
    // SAFETY: join() is system calls only.
    unsafe { command.pre_exec(move || Ok(joiner.join()?)) };
    let mut child = command.spawn().unwrap();
    assert_eq!(house.fake.state().jobs[&1].pids, [child.id()]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_reload_changes_bounds_and_keeps_jobs() {
    let house = House::open("");
    let client = house.client();
    begin(&client, HELD).unwrap();
    let jobs_of = |client: &Client| {
        let reply = client
            .ask(abi::COS_CONTROL_STATUS, &Wish::default())
            .unwrap();
        let status: document::Status = serde_json::from_str(&reply.text).unwrap();
        let jobs = status
            .config
            .iter()
            .find(|setting| setting.key == "users.jobs");
        jobs.unwrap().value.clone()
    };
    fs::write(house.dir.path().join("c.toml"), "[users]\njobs = 5\n").unwrap();
    rustix::io::write(&house.reload, b"x").unwrap();
    house.wait_for("the new bound", |_| jobs_of(&client) == "5");
    fs::write(house.dir.path().join("c.toml"), "[users]\njbos = 6\n").unwrap();
    let root = rustix::process::getuid().is_root();
    let reply = client.ask(abi::COS_CONTROL_RELOAD, &Wish::default());
    assert_eq!(reply.is_ok(), root);
    assert_eq!(jobs_of(&client), "5");
    assert_eq!(house.fake.state().jobs.len(), 1);
}

#[test]
fn another_version_is_told_ours_and_may_go_on() {
    let house = House::open("");
    let client = house.raw();
    let head = abi::cos_control_request {
        version: 99,
        kind: abi::COS_CONTROL_HELLO,
        ..Default::default()
    };
    for _ in 0..2 {
        net::send(&client, &bytes_of_request(&head, b""), SendFlags::NOSIGNAL).unwrap();
        let mut bytes = [0; 1024];
        let (got, _) = net::recv(&client, &mut bytes[..], RecvFlags::empty()).unwrap();
        let (reply, _) = cosched_control::parse_reply(&bytes[..got]).unwrap();
        assert_eq!(reply.status, abi::COS_CONTROL_OTHER_VERSION);
        assert_eq!(reply.version, abi::COS_CONTROL_VERSION);
    }
}

#[test]
fn who_sends_more_than_a_request_is_dropped() {
    let house = House::open("");
    let client = house.raw();
    let huge = vec![1u8; 100_000];
    net::send(&client, &huge, SendFlags::NOSIGNAL).unwrap();
    let mut bytes = [0; 1024];
    let (got, _) = net::recv(&client, &mut bytes[..], RecvFlags::empty()).unwrap();
    let (reply, _) = cosched_control::parse_reply(&bytes[..got]).unwrap();
    assert_eq!(reply.status, abi::COS_CONTROL_MALFORMED);
    assert_eq!(
        net::recv(&client, &mut bytes[..], RecvFlags::empty())
            .unwrap()
            .0,
        0
    );
    still_serves(&house);
}

#[test]
fn who_does_not_read_is_dropped_and_keeps_nobody_waiting() {
    let house = House::open("");
    house.fake.state().nr_ranks_shown = 2000;
    begin(&house.client(), 0).unwrap();
    let deaf = house.raw();
    let head = abi::cos_control_request {
        version: abi::COS_CONTROL_VERSION,
        kind: abi::COS_CONTROL_JOBS,
        ..Default::default()
    };
    let packet = bytes_of_request(&head, b"");
    let begun = Instant::now();
    while net::send(&deaf, &packet, SendFlags::NOSIGNAL).is_ok() {
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "it was never dropped"
        );
    }
    still_serves(&house);
}

#[test]
fn the_longest_answer_fits_a_packet() {
    let house = House::open("");
    house.fake.state().nr_ranks_shown = 5000;
    begin(&house.client(), 0).unwrap();
    let reply = house
        .client()
        .ask(abi::COS_CONTROL_JOBS, &Wish::default())
        .unwrap();
    let jobs: document::Jobs = serde_json::from_str(&reply.text).unwrap();
    assert_eq!(jobs.ranks.len(), abi::COS_CONTROL_MAX_RANKS as usize);
    assert!(jobs.nr_ranks > 5000);
}

#[test]
fn connections_have_a_bound_and_come_back() {
    let house = House::open("");
    let many: Vec<OwnedFd> = (0..MAX_CONNECTIONS + 40).map(|_| house.raw()).collect();
    let mut byte = [0; 1];
    let last = many.last().unwrap();
    assert_eq!(
        net::recv(last, &mut byte[..], RecvFlags::empty())
            .unwrap()
            .0,
        0
    );
    drop(many);
    thread::sleep(Duration::from_millis(50));
    still_serves(&house);
}

#[test]
fn an_ejected_scheduler_ends_the_daemon_with_its_reason() {
    let mut house = House::open("");
    let client = house.client();
    begin(&client, HELD).unwrap();
    let ejection = Ejection {
        on_request: false,
        again: false,
        why: "watchdog: runnable task stall".to_owned(),
    };
    house.fake.state().ejection = Some(ejection.clone());
    let end = house.thread.take().unwrap().join().unwrap().unwrap();
    assert_eq!(end, End::Ejected(ejection));
    assert!(house.fake.state().jobs.is_empty());
    let told = client
        .ask(abi::COS_CONTROL_HELLO, &Wish::default())
        .unwrap_err();
    assert!(matches!(told, Error::Broken { .. }), "{told}");
}

#[test]
fn who_is_wanted_back_attaches_again_and_keeps_jobs() {
    let mut house = House::open("");
    begin(&house.client(), 0).unwrap();
    let hotplug = Ejection {
        on_request: false,
        again: true,
        why: "cpu 1 going offline".to_owned(),
    };
    house.fake.state().ejection = Some(hotplug.clone());
    house.wait_for("the scheduler", |fake| fake.state().nr_attached_again == 1);
    still_serves(&house);
    assert_eq!(house.fake.state().jobs.len(), 1);
    house.fake.state().refuses = true;
    house.fake.state().ejection = Some(hotplug);
    match house.thread.take().unwrap().join().unwrap().unwrap() {
        End::Ejected(ejection) => assert!(ejection.why.contains("cannot be attached again")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stop_leaves_no_job() {
    let mut house = House::open("");
    begin(&house.client(), 0).unwrap();
    assert_eq!(house.end(), End::Told);
    assert!(house.fake.state().jobs.is_empty());
}

/// A packet that is almost a request.
fn near_requests() -> impl Strategy<Value = Vec<u8>> {
    let numbers = (0u32..12, 0u32..32, 0u32..4, 0u64..3, any::<u32>());
    let text = proptest::collection::vec(any::<u8>(), 0..300);
    let words = proptest::collection::vec(any::<u8>(), 96);
    (numbers, text, words, any::<bool>(), any::<u16>()).prop_map(
        |(numbers, text, words, words_too, cut)| {
            let (kind, flags, job, serial, pid) = numbers;
            let head = abi::cos_control_request {
                version: abi::COS_CONTROL_VERSION,
                kind,
                flags,
                job,
                serial,
                pid: if flags & 1 == 0 { 0 } else { pid },
                ..Default::default()
            };
            let mut packet = bytes_of_request(&head, &text);
            if words_too {
                packet[32..128].copy_from_slice(&words);
            }
            if cut % 4 == 0 {
                packet.truncate(usize::from(cut) % packet.len());
            }
            packet
        },
    )
}

#[test]
fn survives_whatever_is_sent() {
    let house = House::open("");
    let random = proptest::collection::vec(any::<u8>(), 1..20_000);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let packets = proptest::collection::vec(prop_oneof![near_requests(), random], 1..4);
    let outcome = runner.run(&packets, |packets| {
        let client = house.raw();
        for packet in &packets {
            if net::send(&client, packet, SendFlags::NOSIGNAL).is_err() {
                break;
            }
            let mut bytes = vec![0; 300_000];
            match net::recv(&client, &mut bytes[..], RecvFlags::empty()) {
                Ok((0, _)) | Err(_) => break,
                Ok((got, _)) => {
                    let (reply, text) = cosched_control::parse_reply(&bytes[..got]).unwrap();
                    let is_line = std::str::from_utf8(text).unwrap().lines().count() <= 1;
                    prop_assert!(is_line || reply.status == abi::COS_CONTROL_OK);
                }
            }
        }
        Ok(())
    });
    outcome.unwrap();
    still_serves(&house);
}
