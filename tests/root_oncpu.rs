// SPDX-License-Identifier: Apache-2.0
//! Who is on a CPU, as coschedd publishes it: ranks ask that first, nobody can write it, and
//! where it cannot be believed (coschedd died, a pid namespace, somebody else wrote it) jobs go
//! on as without.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_control::{bytes_of_reply, parse_request, Client, Wish, PATIENCE};
use cosched_model::abi;
use cosched_tests::{
    attack::under_attack,
    job::{mpis, said, Hog, Job, Mpi, Ran, Report, PATTERNS},
    need,
    observer::Daemon,
    superuser,
};
use libbpf_rs::{libbpf_sys, MapCore, MapFlags, MapHandle, MapType};
use rand::{rngs::StdRng, Rng, SeedableRng};
use rustix::{
    io::Errno,
    mm::{mmap, mprotect, MapFlags as Shared, MprotectFlags, ProtFlags},
    net::{
        accept, bind, listen, recv, sendmsg, socket, AddressFamily, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketType,
    },
    process::Signal,
};
use serde_json::Value;
use std::{
    fs,
    io::IoSlice,
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::Path,
    ptr,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

const ENTRY: usize = 64;
const BYTES: usize = ENTRY * 1024;

/// A daemon and hogs for one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn found(test: &str) -> Vec<Mpi> {
    match need(test, superuser()) {
        Some(()) => mpis(test),
        None => Vec::new(),
    }
}

/// Two ranks that wait for each other all the time.
fn barrier(mpi: Mpi, socket: &Path) -> Job {
    Job::new(mpi, 2, mpi.workload("barrier"))
        .args(["--iterations=20000", "--spins=70000"])
        .env("COSCHED_SOCKET", socket)
}

fn beside_hogs(job: &Job) -> Ran {
    let hogs = [Hog::start(), Hog::start()];
    let ran = job.cosched();
    drop(hogs);
    ran
}

fn checksum(ran: &Ran) -> String {
    let told: Value = serde_json::from_str(&ran.stdout()).unwrap();
    told["checksum"].as_str().unwrap().to_owned()
}

/// Looks that @source answered.
fn looks(report: &Report, source: &str) -> u64 {
    let of = |rank: &Value| rank["source"][source].as_u64().unwrap();
    report.ranks().iter().map(of).sum()
}

/// Looks that it answered, and that anything else did.
fn published_and_others(report: &Report) -> [u64; 2] {
    let others = ["switches", "same_cpu", "beat", "proc"];
    let others = others.iter().map(|name| looks(report, name)).sum();
    [looks(report, "published"), others]
}

/// There are kernels that trace no switch away from certain tasks (seen where an agent runs as process 1): whoever comes after such a one
/// is not published until it comes again, and the next source is asked. So one of three runs will do.
#[test]
fn ranks_ask_it_first() {
    for mpi in found("root_oncpu::ranks_ask_it_first") {
        let _alone = alone();
        let daemon = Daemon::start();
        let mut told = Vec::new();
        let ran = loop {
            let ran = beside_hogs(&barrier(mpi, &daemon.socket()));
            ran.report.assert_none_missed();
            let [published, others] = published_and_others(&ran.report);
            told.push([published, others]);
            if published > others {
                break ran;
            }
            assert!(told.len() < 3, "{told:?}");
        };

        let without = barrier(mpi, &daemon.socket()).option("--no-daemon");
        let without = beside_hogs(&without);
        assert_eq!(looks(&without.report, "published"), 0);
        assert_eq!(checksum(&ran), checksum(&without));
    }
}

/// Ranks of the barrier that had a third of the CPU time that it takes: they have waited for each other.
fn nr_at_work(daemon: &Daemon) -> usize {
    let jobs = daemon.json(["jobs", "--json"]);
    let at_work = |rank: &&Value| {
        rank["comm"] == "barrier"
            && rank["tid"] == rank["tgid"]
            && rank["ran_ns"].as_u64() > Some(1_000_000_000)
    };
    jobs["ranks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(at_work)
        .count()
}

#[test]
fn a_killed_coschedd_leaves_ranks_the_next_source() {
    for mpi in found("root_oncpu::a_killed_coschedd_leaves_ranks_the_next_source") {
        let _alone = alone();
        let mut daemon = Daemon::start();
        let job = barrier(mpi, &daemon.socket()).arg("--iterations=40000");
        let ran = thread::scope(|scope| {
            let running = scope.spawn(|| beside_hogs(&job));
            daemon.wait_for("ranks at work", || nr_at_work(&daemon) == 2);
            daemon.child.kill().unwrap();
            running.join().unwrap()
        });
        daemon.signal(Signal::KILL);
        ran.report.assert_active(2);
        ran.report.assert_none_missed();
        let (published, switches) = ("published", "switches");
        assert!(looks(&ran.report, published) > 0, "killed too early");
        assert!(looks(&ran.report, switches) > 0, "never noticed");
    }
}

#[test]
fn in_a_pid_namespace_it_is_not_asked() {
    for mpi in found("root_oncpu::in_a_pid_namespace_it_is_not_asked") {
        let _alone = alone();
        let daemon = Daemon::start();
        let inside = ["unshare", "--pid", "--fork", "--mount-proc"];
        let ran = beside_hogs(&barrier(mpi, &daemon.socket()).within(inside));
        ran.stdout();
        ran.report.assert_active(2);
        assert_eq!(looks(&ran.report, "published"), 0);
    }
}

/// What `cosched run` is given, beside the connection that holds its job.
fn given(daemon: &Daemon) -> (Client, OwnedFd) {
    let client = Client::connect(&daemon.socket(), PATIENCE).unwrap();
    let wish = Wish {
        flags: abi::COS_CONTROL_HELD | abi::COS_CONTROL_EMPTY | abi::COS_CONTROL_SHIM,
        preset: "auto",
        ..Wish::default()
    };
    let reply = client.ask(abi::COS_CONTROL_BEGIN, &wish).unwrap();
    (client, reply.beside.unwrap())
}

fn map(fd: &OwnedFd, how: ProtFlags) -> rustix::io::Result<*mut u64> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    unsafe { mmap(ptr::null_mut(), BYTES, how, Shared::SHARED, fd, 0) }.map(<*mut _>::cast)
}

/// Not even root, which this test is.
#[test]
fn nobody_can_write_it() {
    let test = "root_oncpu::nobody_can_write_it";
    if need(test, superuser()).is_none() {
        return;
    }
    let _alone = alone();
    let daemon = Daemon::start();
    let (_client, fd) = given(&daemon);
    let (read, write) = (ProtFlags::READ, ProtFlags::READ | ProtFlags::WRITE);
    assert_eq!(map(&fd, write).unwrap_err(), Errno::PERM);
    let entries = map(&fd, read).unwrap();
    // SAFETY: mapped above; nobody reads it.
    let opened = unsafe { mprotect(entries.cast(), BYTES, MprotectFlags::WRITE) };
    assert_eq!(opened.unwrap_err(), Errno::ACCESS);

    let (key, value) = (0u32.to_ne_bytes(), [0xa5u8; ENTRY]);
    let (key, value) = (key.as_ptr().cast(), value.as_ptr().cast());
    // SAFETY: key and value are as long as those of the map.
    let written = unsafe { libbpf_sys::bpf_map_update_elem(fd.as_raw_fd(), key, value, 0) };
    assert_eq!(written, -Errno::PERM.raw_os_error());
    // SAFETY: so many bytes are mapped, and aligned to a page.
    let first = unsafe { entries.read_volatile() };
    assert_ne!(first, u64::from_ne_bytes([0xa5; 8]));
}

/// A coschedd that is none: it grants every wish, and publishes @map.
fn false_coschedd(path: &Path, map: &MapHandle) {
    let listener = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    bind(&listener, &SocketAddrUnix::new(path).unwrap()).unwrap();
    listen(&listener, 16).unwrap();
    let map = map.as_fd().try_clone_to_owned().unwrap();
    thread::spawn(move || {
        while let Ok(client) = accept(&listener) {
            let map = map.try_clone().unwrap();
            thread::spawn(move || grant(&client, &map));
        }
    });
}

fn grant(client: &OwnedFd, map: &OwnedFd) {
    let mut packet = [0; 4096];
    while let Ok((nr @ 1.., _)) = recv(client, &mut packet[..], RecvFlags::empty()) {
        let (request, _) = parse_request(&packet[..nr]).unwrap();
        let reply = abi::cos_control_reply {
            version: abi::COS_CONTROL_VERSION,
            mode: abi::COS_CONTROL_OBSERVES,
            job: 1,
            serial: 1,
            ..Default::default()
        };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        let fds = [map.as_fd()];
        if request.kind == abi::COS_CONTROL_BEGIN {
            beside.push(SendAncillaryMessage::ScmRights(&fds));
        }
        let reply = bytes_of_reply(&reply, b"");
        let none = SendFlags::empty();
        sendmsg(client, &[IoSlice::new(&reply)], &mut beside, none).unwrap();
    }
}

fn pids_of(name: &str) -> Vec<u64> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| {
        let comm = fs::read_to_string(entry.path().join("comm")).ok()?;
        let pid = entry.file_name().to_str()?.parse().ok()?;
        (comm.trim() == name).then_some(pid)
    });
    pids.collect()
}

/// Where ranks look: often their own numbers, so that they believe what is there.
fn scribble(map: &MapHandle, name: &str, ended: impl Fn() -> bool) {
    let mut rng = StdRng::seed_from_u64(1);
    while !ended() {
        let mut tids = pids_of(name);
        tids.extend([0, 1, u64::MAX]);
        for _ in 0..2000 {
            let cpu = rng.random_range(0..4u32);
            let tid = tids[rng.random_range(0..tids.len())];
            let mut entry: [u64; 8] = rng.random();
            entry[0] = [0, rng.random(), u64::MAX][rng.random_range(0..3)];
            entry[1] = tid;
            let bytes: Vec<u8> = entry.iter().flat_map(|word| word.to_ne_bytes()).collect();
            map.update(&cpu.to_ne_bytes(), &bytes, MapFlags::ANY)
                .unwrap();
            thread::sleep(Duration::from_micros(20));
        }
    }
}

/// @job, run by @run, with a map that says anything.
fn misled(name: &str, job: impl Fn(&Path) -> Job, run: fn(&Job) -> Ran) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sock");
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        map_flags: libbpf_sys::BPF_F_MMAPABLE,
        ..Default::default()
    };
    let map = MapHandle::create(
        MapType::Array,
        Some("oncpu"),
        4,
        ENTRY as u32,
        1024,
        &options,
    );
    let map = map.unwrap();
    false_coschedd(&path, &map);
    let job = job(&path);
    thread::scope(|scope| {
        let running = scope.spawn(|| run(&job));
        scribble(&map, name, || running.is_finished());
        running.join().unwrap()
    })
}

#[test]
fn whatever_is_published_changes_no_result() {
    for mpi in found("root_oncpu::whatever_is_published_changes_no_result") {
        let _alone = alone();
        let ran = misled("barrier", |socket| barrier(mpi, socket), beside_hogs);
        assert!(looks(&ran.report, "published") > 0, "never believed");
        ran.report.assert_active(2);
        let right = barrier(mpi, Path::new("/nonexistent"));
        assert_eq!(checksum(&ran), checksum(&right.cosched()));

        let program = mpi.compile("patterns.c", "", &[]);
        let attacked =
            |socket: &Path| under_attack("page", mpi, &program).env("COSCHED_SOCKET", socket);
        let ran = misled("patterns-c", attacked, Job::cosched);
        assert_eq!(ran.stdout(), said(&PATTERNS));
    }
}
