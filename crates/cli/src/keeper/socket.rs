// SPDX-License-Identifier: Apache-2.0
//! The wire of the keeper: one request or answer per packet, descriptors beside
//! it, nothing that waits.
//!
//! A request is bytes from a stranger until its length was checked; descriptors
//! are taken only where the kernel says that they are what they should be. A
//! doorbell is made non-blocking here, so that no ringer can be made to hang.

use anyhow::{Context, Result};
use cosched_model::abi;
use rustix::{
    cmsg_space,
    fs::{fcntl_getfl, fcntl_setfl, OFlags},
    io::Errno,
    net::{
        self, sockopt, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags,
        SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
        SocketType,
    },
    process::geteuid,
};
use std::{
    fs,
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    path::Path,
    slice,
};

const BACKLOG: i32 = 1024;

fn socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// A listening socket at `path`, in a directory that only its user may enter.
pub fn listen(path: &Path) -> Result<OwnedFd> {
    let attempt = || {
        let listener = socket()?;
        net::bind(&listener, &SocketAddrUnix::new(path)?)?;
        net::listen(&listener, BACKLOG)?;
        Ok::<_, Errno>(listener)
    };
    attempt().with_context(|| format!("cannot listen on {}", path.display()))
}

/// Does a keeper answer at `path`?
pub fn is_listening(path: &Path) -> bool {
    let attempt = || net::connect(&socket()?, &SocketAddrUnix::new(path)?);
    // A full backlog is a keeper too.
    matches!(attempt(), Ok(()) | Err(Errno::AGAIN))
}

/// Is the other end a process of our user?
pub fn is_ours(connection: &OwnedFd) -> bool {
    sockopt::socket_peercred(connection).is_ok_and(|peer| peer.uid == geteuid())
}

/// One request and what came beside it; none at the end or where it is malformed.
pub fn receive(connection: &OwnedFd) -> rustix::io::Result<Option<(abi::cos_ask, Vec<OwnedFd>)>> {
    let mut bytes = [0u8; size_of::<abi::cos_ask>() + 1];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(2))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let got = net::recvmsg(
        connection,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut beside,
        RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
    )?;
    let mut fds = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    if got.bytes != size_of::<abi::cos_ask>() {
        return Ok(None);
    }
    // SAFETY: the bytes are there, any bytes are a cos_ask, and it is read unaligned.
    let ask = unsafe { bytes.as_ptr().cast::<abi::cos_ask>().read_unaligned() };
    Ok(Some((ask, fds)))
}

/// Sends at once or fails.
pub fn send(
    connection: &OwnedFd,
    reply: &abi::cos_reply,
    beside: Option<BorrowedFd<'_>>,
) -> rustix::io::Result<()> {
    // SAFETY: a reply is plain integers without padding.
    let bytes = unsafe {
        slice::from_raw_parts(std::ptr::from_ref(reply).cast::<u8>(), size_of_val(reply))
    };
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<BorrowedFd<'_>> = beside.into_iter().collect();
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(Errno::NOBUFS);
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    net::sendmsg(connection, &[IoSlice::new(bytes)], &mut control, flags).map(drop)
}

/// An eventfd, now non-blocking?
pub fn is_bell(fd: &OwnedFd) -> bool {
    let non_blocking = || fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK);
    kind_of(fd).is_some_and(|kind| kind.starts_with("anon_inode:[eventfd"))
        && non_blocking().is_ok()
}

/// A record of context switches?
pub fn is_switch_record(fd: &OwnedFd) -> bool {
    kind_of(fd).is_some_and(|kind| kind == "anon_inode:[perf_event]")
}

/// A map of the kernel body's?
pub fn is_bpf_map(fd: &OwnedFd) -> bool {
    kind_of(fd).is_some_and(|kind| kind == "anon_inode:bpf-map")
}

fn kind_of(fd: &OwnedFd) -> Option<String> {
    let link = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
    link.into_os_string().into_string().ok()
}
