// SPDX-License-Identifier: Apache-2.0
//! The keeper against good and bad clients.

use super::*;
use rand::{rngs::StdRng, Rng, SeedableRng};
use rustix::event::{eventfd, EventfdFlags};
use std::{
    fs::File,
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    path::PathBuf,
    thread::{self, JoinHandle},
};

struct House {
    dir: tempfile::TempDir,
    stop: OwnedFd,
    thread: Option<JoinHandle<io::Result<()>>>,
    page: Arc<JobPage>,
}

impl House {
    fn open(nr_slots: u32) -> House {
        House::open_with(nr_slots, None)
    }

    fn open_with(nr_slots: u32, oncpu: Option<OwnedFd>) -> House {
        let dir = tempfile::tempdir().unwrap();
        let page = Arc::new(JobPage::new(nr_slots, &[0; 424], 100).unwrap());
        let mut keeper = Keeper::new(
            page.clone(),
            listen(&dir.path().join("sock")).unwrap(),
            oncpu,
        );
        let stop = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let leave = Leave::WhenTold(stop.try_clone().unwrap());
        let thread = Some(thread::spawn(move || keeper.serve(&leave)));
        House {
            dir,
            stop,
            thread,
            page,
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("sock")
    }

    fn client(&self) -> OwnedFd {
        use rustix::net::*;
        let flags = SocketFlags::CLOEXEC;
        let s = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        sockopt::set_socket_timeout(&s, sockopt::Timeout::Recv, Some(Duration::from_secs(5)))
            .unwrap();
        connect(&s, &SocketAddrUnix::new(self.path()).unwrap()).unwrap();
        s
    }
}

impl Drop for House {
    fn drop(&mut self) {
        rustix::io::write(&self.stop, &1u64.to_ne_bytes()).unwrap();
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

fn send_raw(to: &OwnedFd, bytes: &[u8], fds: &[&OwnedFd]) -> rustix::io::Result<usize> {
    use rustix::net::*;
    let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    }
    sendmsg(
        to,
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
    )
}

fn receive_reply(from: &OwnedFd) -> Option<(abi::cos_reply, Vec<OwnedFd>)> {
    use rustix::net::*;
    let mut words = [0u32; 4];
    let mut bytes = [0u8; 16];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let iov = &mut [IoSliceMut::new(&mut bytes)];
    let got = recvmsg(from, iov, &mut control, RecvFlags::CMSG_CLOEXEC).ok()?;
    if got.bytes != 16 {
        return None;
    }
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(4)) {
        *word = u32::from_ne_bytes(chunk.try_into().unwrap());
    }
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    let [version, status, slot, pad] = words;
    Some((
        abi::cos_reply {
            version,
            status,
            slot,
            pad,
        },
        fds,
    ))
}

fn bytes_of(ask: &abi::cos_ask) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(ask.version.to_ne_bytes());
    bytes.extend(ask.kind.to_ne_bytes());
    bytes.extend(ask.job.to_ne_bytes());
    for word in [ask.world_rank, ask.slot, ask.pid, ask.tid] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes
}

fn ask(kind: u32, slot: u32) -> abi::cos_ask {
    let version = abi::COS_WIRE_VERSION;
    abi::cos_ask {
        version,
        kind,
        job: 9,
        world_rank: slot,
        slot,
        pid: 2,
        tid: 3,
    }
}

fn request(
    client: &OwnedFd,
    ask: &abi::cos_ask,
    fds: &[&OwnedFd],
) -> (abi::cos_reply, Vec<OwnedFd>) {
    send_raw(client, &bytes_of(ask), fds).unwrap();
    receive_reply(client).expect("an answer")
}

#[test]
fn joins_and_hands_out_page_and_bells() {
    let house = House::open(4);
    let (a, b) = (house.client(), house.client());
    let bell = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let (joined, fds) = request(&a, &ask(abi::COS_ASK_JOIN, 0), &[&bell]);
    assert_eq!(
        (joined.status, joined.slot, fds.len()),
        (abi::COS_REPLY_OK, 0, 1)
    );
    let page = cosched_model::page_bytes(4) as u64;
    assert_eq!(
        File::from(fds.into_iter().next().unwrap())
            .metadata()
            .unwrap()
            .len(),
        page
    );

    let (answer, fds) = request(&b, &ask(abi::COS_ASK_BELL, 0), &[]);
    assert_eq!(answer.status, abi::COS_REPLY_OK);
    rustix::io::write(&fds[0], &3u64.to_ne_bytes()).unwrap();
    let mut count = [0; 8];
    rustix::io::read(&bell, &mut count).unwrap();
    assert_eq!(u64::from_ne_bytes(count), 3);
    assert_eq!(house.page.slots()[0].pid, 2);
}

#[test]
fn says_what_it_does_not_have() {
    let house = House::open(1);
    let (a, b) = (house.client(), house.client());
    let not_a_bell = OwnedFd::from(File::open("/dev/zero").unwrap());
    assert_eq!(
        request(&a, &ask(abi::COS_ASK_JOIN, 0), &[&not_a_bell])
            .0
            .status,
        abi::COS_REPLY_OK
    );
    for (kind, slot) in [
        (abi::COS_ASK_BELL, 0),
        (abi::COS_ASK_WATCH, 0),
        (abi::COS_ASK_BELL, u32::MAX),
        (abi::COS_ASK_ONCPU, 0),
    ] {
        assert_eq!(
            request(&a, &ask(kind, slot), &[]).0.status,
            abi::COS_REPLY_NONE
        );
    }
    assert_eq!(
        request(&b, &ask(abi::COS_ASK_JOIN, 1), &[]).0.status,
        abi::COS_REPLY_FULL
    );
    let no_record = request(&a, &ask(abi::COS_ASK_OFFER, 0), &[&not_a_bell]);
    assert_eq!(no_record.0.status, abi::COS_REPLY_NONE);
    let other = abi::cos_ask {
        version: 99,
        ..ask(abi::COS_ASK_JOIN, 1)
    };
    assert_eq!(request(&b, &other, &[]).0.status, abi::COS_REPLY_VERSION);
}

#[test]
fn what_is_no_map_is_not_handed_out_as_one() {
    let null = OwnedFd::from(File::open("/dev/null").unwrap());
    let house = House::open_with(1, Some(null));
    let a = house.client();
    request(&a, &ask(abi::COS_ASK_JOIN, 0), &[]);
    let (answer, fds) = request(&a, &ask(abi::COS_ASK_ONCPU, 0), &[]);
    assert_eq!((answer.status, fds.len()), (abi::COS_REPLY_NONE, 0));
}

#[test]
fn a_second_join_gets_the_same_slot() {
    let house = House::open(4);
    let a = house.client();
    let slots = [0, 1].map(|_| request(&a, &ask(abi::COS_ASK_JOIN, 0), &[]).0.slot);
    assert_eq!(slots, [0, 0]);
}

#[test]
fn a_dead_rank_keeps_its_slot_but_not_its_bell() {
    let house = House::open(4);
    let (a, b) = (house.client(), house.client());
    let bell = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    request(&a, &ask(abi::COS_ASK_JOIN, 0), &[&bell]);
    drop(a);
    let gone = || request(&b, &ask(abi::COS_ASK_BELL, 0), &[]).0.status == abi::COS_REPLY_NONE;
    assert!((0..100).any(|_| gone() || {
        thread::sleep(Duration::from_millis(10));
        false
    }));
    assert_eq!(request(&b, &ask(abi::COS_ASK_JOIN, 1), &[]).0.slot, 1);
}

#[test]
fn survives_garbage_and_who_does_not_read() {
    let house = House::open(8);
    let mut rng = StdRng::seed_from_u64(1);
    let null = OwnedFd::from(File::open("/dev/null").unwrap());
    for _ in 0..2000 {
        let client = house.client();
        for _ in 0..rng.random_range(1..6) {
            let mut bytes = vec![0u8; rng.random_range(1..80)];
            rng.fill(&mut bytes[..]);
            if rng.random_bool(0.5) {
                let mut wild = ask(rng.random_range(0..6), rng.random());
                wild.job = rng.random();
                bytes = bytes_of(&wild);
            }
            let fds = vec![&null; rng.random_range(0..8)];
            let _ = send_raw(&client, &bytes, &fds);
        }
    }
    let deaf = house.client();
    while send_raw(&deaf, &bytes_of(&ask(abi::COS_ASK_BELL, 5)), &[]).is_ok() {}
    let polite = house.client();
    assert_eq!(
        request(&polite, &ask(abi::COS_ASK_BELL, 7), &[]).0.status,
        abi::COS_REPLY_NONE
    );
}

#[test]
fn leaves_when_no_one_comes() {
    let dir = tempfile::tempdir().unwrap();
    let page = Arc::new(JobPage::new(1, &[0; 424], 0).unwrap());
    let mut keeper = Keeper::new(page, listen(&dir.path().join("sock")).unwrap(), None);
    let patience = Duration::from_millis(200);
    keeper
        .serve(&Leave::WhenIdle {
            first: patience,
            last: patience,
        })
        .unwrap();
}
