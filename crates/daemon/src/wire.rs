// SPDX-License-Identifier: Apache-2.0
//! The control socket: one that listens, and packets that never wait.
//!
//! A socket that a killed daemon left behind is replaced, one that a daemon
//! listens on is not. Everybody may connect: what they may do is decided by who
//! they are.

use crate::refusal::Refusal;
use cosched_control::bytes_of_reply;
use cosched_model::abi;
use rustix::{
    cmsg_space,
    fs::{chmod, flock, FlockOperation, Mode},
    io::Errno,
    net::{
        self, sockopt, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags,
        ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
        SocketFlags, SocketType,
    },
};
use std::{
    fs::{self, File},
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{BorrowedFd, OwnedFd},
    path::Path,
};
use thiserror::Error;

const BACKLOG: i32 = 64;
const MAX_PACKET: usize =
    size_of::<abi::cos_control_request>() + abi::COS_CONTROL_MAX_TEXT as usize;
/// Room for the longest reply, and for what the kernel adds to it.
const SEND_BUFFER: usize = 2 * abi::COS_CONTROL_MAX_REPLY as usize;

/// Why nothing listens.
#[derive(Debug, Error)]
pub enum Error {
    /// Another daemon does.
    #[error(
        "coschedd runs already, pid {0}: stop it first (systemctl stop coschedd), or give --socket"
    )]
    Runs(i32),
    /// The system refused.
    #[error("cannot listen on {path}: {why}: run as root, or give --socket PATH in a directory of yours")]
    Cannot {
        /// The socket.
        path: String,
        /// In the system's words.
        why: String,
    },
}

fn socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// A listening socket at @path.
pub fn listen(path: &Path) -> Result<OwnedFd, Error> {
    let cannot = |why: &dyn std::fmt::Display| Error::Cannot {
        path: path.display().to_string(),
        why: why.to_string(),
    };
    let dir = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(dir).map_err(|e| cannot(&e))?;
    // Two that begin at once must not both take the place of a dead one.
    let lock = File::open(dir).map_err(|e| cannot(&e))?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| cannot(&"another one is beginning there"))?;
    if let Some(pid) = listener_of(path) {
        return Err(Error::Runs(pid));
    }
    let attempt = || {
        match fs::symlink_metadata(path) {
            Ok(found) if is_socket(&found) => fs::remove_file(path)?,
            Ok(_) => return Err(std::io::Error::other("a file that is no socket is there")),
            Err(_) => {}
        }
        let listener = socket()?;
        net::bind(&listener, &SocketAddrUnix::new(path)?)?;
        chmod(path, Mode::from_raw_mode(0o666))?;
        net::listen(&listener, BACKLOG)?;
        Ok(listener)
    };
    attempt().map_err(|e| cannot(&e))
}

fn is_socket(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    found.file_type().is_socket()
}

/// The process that listens at @path.
fn listener_of(path: &Path) -> Option<i32> {
    let asked = socket().ok()?;
    match net::connect(&asked, &SocketAddrUnix::new(path).ok()?) {
        Ok(()) => sockopt::socket_peercred(&asked)
            .ok()
            .map(|peer| peer.pid.as_raw_nonzero().get()),
        // A full backlog is a daemon too.
        Err(Errno::AGAIN) => Some(0),
        Err(_) => None,
    }
}

/// The next who is at the door: their user and process.
pub fn accept(listener: &OwnedFd) -> rustix::io::Result<(OwnedFd, u32, u32)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connection = net::accept_with(listener, flags)?;
    let peer = sockopt::socket_peercred(&connection)?;
    // Without the privilege the system's own bound holds, and long replies may not fit.
    if sockopt::set_socket_send_buffer_size_force(&connection, SEND_BUFFER).is_err() {
        let _ = sockopt::set_socket_send_buffer_size(&connection, SEND_BUFFER);
    }
    let pid = peer.pid.as_raw_nonzero().get().unsigned_abs();
    Ok((connection, peer.uid.as_raw(), pid))
}

/// A packet and the descriptor beside it; nothing at the end. One that is too
/// long is given as an empty one, which is no request.
pub fn receive(connection: &OwnedFd) -> rustix::io::Result<Option<(Vec<u8>, Option<OwnedFd>)>> {
    let mut bytes = vec![0u8; MAX_PACKET];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let got = net::recvmsg(
        connection,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut beside,
        RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
    )?;
    let mut fd = None;
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(mut received) = message {
            fd = received.next();
        }
    }
    if got.bytes == 0 && !got.flags.contains(ReturnFlags::TRUNC) {
        return Ok(None);
    }
    let whole = !got
        .flags
        .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    bytes.truncate(if whole { got.bytes } else { 0 });
    Ok(Some((bytes, fd)))
}

/// Sends at once or fails.
pub fn send(
    connection: &OwnedFd,
    reply: &abi::cos_control_reply,
    text: &str,
    beside: Option<BorrowedFd<'_>>,
) -> rustix::io::Result<()> {
    let packet = bytes_of_reply(reply, text.as_bytes());
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = beside.as_slice();
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Errno::NOBUFS);
    }
    net::sendmsg(connection, &[IoSlice::new(&packet)], &mut control, flags).map(drop)
}

/// A text that no packet holds is refused instead of cut.
pub fn fits(text: String) -> Result<String, Refusal> {
    if text.len() <= abi::COS_CONTROL_MAX_REPLY as usize {
        return Ok(text);
    }
    Err(Refusal::cannot(
        "the answer is too long for one packet: ask for one job (cosched jobs JOB)",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_daemons_socket_is_replaced_and_a_live_ones_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/control.sock");
        let first = listen(&path).unwrap();
        let line = listen(&path).unwrap_err().to_string();
        assert!(
            line.contains(&format!("pid {}", std::process::id())),
            "{line}"
        );
        drop(first);
        assert!(path.exists());
        listen(&path).unwrap();
    }

    #[test]
    fn what_is_no_socket_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("precious");
        fs::write(&path, "data").unwrap();
        assert!(listen(&path).unwrap_err().to_string().contains("no socket"));
        assert_eq!(fs::read(&path).unwrap(), b"data");
        assert!(listen(Path::new("/proc/none/control.sock")).is_err());
    }
}
