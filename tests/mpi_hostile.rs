// SPDX-License-Identifier: Apache-2.0
//! Nothing that comes from outside is trusted. A process of the same user that joins
//! a job and writes into its page or babbles at its socket may make it slow, never
//! wrong; a keeper that is none, or of another version, leaves ranks as stock.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_model::{abi, page_bytes};
use cosched_tests::{
    attack::under_attack,
    job::{built, mpis, said, text, Job, PATTERNS},
};
use rustix::{
    cmsg_space,
    fs::{fcntl_add_seals, ftruncate, memfd_create, MemfdFlags, SealFlags},
    io::{pread, write},
    net::{
        accept, bind, listen, recv, sendmsg, socket, AddressFamily, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketType,
    },
};
use std::{
    io::IoSlice,
    mem::{offset_of, MaybeUninit},
    os::fd::{AsFd, OwnedFd},
    path::Path,
    thread,
};

fn assert_survives(test: &str, attack: &str) {
    for mpi in mpis(test) {
        let program = mpi.compile("patterns.c", "", &[]);
        let ran = under_attack(attack, mpi, &program).cosched();
        assert_eq!(ran.stdout(), said(&PATTERNS));
        assert!(ran.report.ranks().len() >= 3, "two ranks and the attacker");
    }
}

#[test]
fn a_scribbled_page_changes_no_result() {
    assert_survives("mpi_hostile::a_scribbled_page_changes_no_result", "page");
}

#[test]
fn babble_at_the_socket_changes_no_result() {
    assert_survives(
        "mpi_hostile::babble_at_the_socket_changes_no_result",
        "socket",
    );
}

/// How a keeper answers who joins; only the first is one.
#[derive(Clone, Copy, Debug)]
enum Fake {
    Sound,
    PageOfAnotherVersion,
    AnotherMagic,
    WireOfAnotherVersion,
    TooManySlots,
    SlotOutside,
    Unsealed,
    Tiny,
    Garbage,
    HangsUp,
    Silent,
}

const FAKES: [Fake; 10] = [
    Fake::PageOfAnotherVersion,
    Fake::AnotherMagic,
    Fake::WireOfAnotherVersion,
    Fake::TooManySlots,
    Fake::SlotOutside,
    Fake::Unsealed,
    Fake::Tiny,
    Fake::Garbage,
    Fake::HangsUp,
    Fake::Silent,
];

const NR_SLOTS: u32 = 4;

fn put(page: &mut [u8], at: usize, word: u32) {
    page[at..at + 4].copy_from_slice(&word.to_ne_bytes());
}

fn page_of(fake: Fake) -> OwnedFd {
    let mut page = vec![0; page_bytes(NR_SLOTS)];
    let mut magic = abi::COS_PAGE_MAGIC;
    let (mut version, mut nr_slots) = (abi::COS_PAGE_VERSION, NR_SLOTS);
    match fake {
        Fake::PageOfAnotherVersion => version += 1,
        Fake::AnotherMagic => magic += 1,
        Fake::TooManySlots => nr_slots = abi::COS_MAX_SLOTS,
        _ => {}
    }
    page[..8].copy_from_slice(&magic.to_ne_bytes());
    put(&mut page, offset_of!(abi::cos_page, version), version);
    put(&mut page, offset_of!(abi::cos_page, nr_slots), nr_slots);
    let params = offset_of!(abi::cos_page, params) + offset_of!(abi::cos_params, abi);
    put(&mut page, params, abi::COS_POLICY_ABI);
    let fd = memfd_create("fake", MemfdFlags::ALLOW_SEALING).unwrap();
    write(&fd, &page).unwrap();
    if matches!(fake, Fake::Tiny) {
        ftruncate(&fd, 100).unwrap();
    }
    if !matches!(fake, Fake::Unsealed) {
        fcntl_add_seals(&fd, SealFlags::SHRINK).unwrap();
    }
    fd
}

fn answer(rank: &OwnedFd, fake: Fake, page: &OwnedFd, mut slot: u32) {
    let mut version = abi::COS_WIRE_VERSION;
    match fake {
        Fake::WireOfAnotherVersion => version += 1,
        Fake::SlotOutside => slot = NR_SLOTS,
        _ => {}
    }
    let words = [version, abi::COS_REPLY_OK, slot, 0].map(u32::to_ne_bytes);
    let reply = match fake {
        Fake::Garbage => vec![0xa5; 40],
        _ => words.concat(),
    };
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let fds = [page.as_fd()];
    beside.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(
        rank,
        &[IoSlice::new(&reply)],
        &mut beside,
        SendFlags::empty(),
    )
    .unwrap();
}

fn bytes_of(page: &OwnedFd) -> Vec<u8> {
    let mut bytes = vec![0; page_bytes(NR_SLOTS)];
    let nr = pread(page, &mut bytes, 0).unwrap();
    bytes.truncate(nr);
    bytes
}

/// Until the rank has gone. Has it written into the page?
fn serve(rank: &OwnedFd, fake: Fake, slot: u32) -> bool {
    let page = page_of(fake);
    let before = bytes_of(&page);
    let mut request = [0; 256];
    while let Ok((nr @ 1.., _)) = recv(rank, &mut request[..], RecvFlags::empty()) {
        assert_eq!(nr, size_of::<abi::cos_ask>());
        match fake {
            Fake::HangsUp => break,
            Fake::Silent => {}
            _ => answer(rank, fake, &page, slot),
        }
    }
    bytes_of(&page) != before
}

/// Two ranks on a fake keeper: which of them took part in its page?
fn took_part(fake: Fake, path: &Path, job: &Job) -> Vec<bool> {
    let listener = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    bind(&listener, &SocketAddrUnix::new(path).unwrap()).unwrap();
    listen(&listener, 16).unwrap();
    let keeper = thread::spawn(move || {
        let ranks = [0, 1].map(|slot| {
            let rank = accept(&listener).unwrap();
            thread::spawn(move || serve(&rank, fake, slot))
        });
        ranks.map(|rank| rank.join().unwrap())
    });
    let output = job.stock();
    let said = (text(&output.stdout), text(&output.stderr));
    assert_eq!(said.0, "recv ok\n", "{fake:?}: {}", said.1);
    keeper.join().unwrap().into()
}

#[test]
fn a_false_keeper_leaves_ranks_as_stock() {
    let folder = tempfile::tempdir().unwrap();
    for mpi in mpis("mpi_hostile::a_false_keeper_leaves_ranks_as_stock") {
        let program = mpi.compile("late.c", "", &[]);
        let took_part = |fake| {
            let path = folder.path().join(format!("{}-{fake:?}", mpi.name()));
            let job = Job::new(mpi, 2, &program)
                .arg("recv")
                .env("COSCHED_KEEPER", &path)
                .env("LD_PRELOAD", built("libcosched.so"));
            took_part(fake, &path, &job)
        };
        for fake in FAKES {
            assert_eq!(took_part(fake), [false, false], "{fake:?}");
        }
        assert_eq!(took_part(Fake::Sound), [true, true]);
    }
}
