// SPDX-License-Identifier: Apache-2.0
//! Asking a daemon: connect, ask, read the answer.
//!
//! A daemon answers at once or not at all, so each step has a time limit; one
//! that is not there is told apart, since `cosched run` does without.

use crate::packet::{bytes_of_request, fill, parse_reply};
use crate::Mode;
use cosched_model::abi;
use rustix::{
    cmsg_space,
    io::Errno,
    net::{
        self,
        sockopt::{self, Timeout},
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    },
    process::{getpid, pidfd_open, PidfdFlags},
};
use std::{
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use thiserror::Error;

/// A daemon that is busy answers within this.
pub const PATIENCE: Duration = Duration::from_secs(5);
const MAX_PACKET: usize = abi::COS_CONTROL_MAX_REPLY as usize + size_of::<abi::cos_control_reply>();

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum Error {
    /// Nobody listens.
    #[error(
        "no coschedd listens on {0:?}: start it (systemctl start coschedd), or set COSCHED_SOCKET"
    )]
    Absent(PathBuf),
    /// The connection failed, or no answer came in time.
    #[error("coschedd on {path:?} does not answer: {why}: is it stopped? see its log")]
    Broken {
        /// Where.
        path: PathBuf,
        /// In the system's words.
        why: String,
    },
    /// It speaks another version.
    #[error("coschedd on {path:?} speaks version {version} of its protocol, this program {}: install both from one version", abi::COS_CONTROL_VERSION)]
    Version {
        /// Where.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// It answered no, in its own line.
    #[error("{line}")]
    Refused {
        /// `enum cos_control_status`.
        status: u32,
        /// One line.
        line: String,
    },
}

/// What is asked, beside its kind.
#[derive(Default)]
pub struct Wish<'a> {
    /// `enum cos_control_flag`.
    pub flags: u32,
    /// The job meant; 0 = none.
    pub job: u32,
    /// Its serial; 0 = whichever has that number now.
    pub serial: u64,
    /// The name of a preset.
    pub preset: &'a str,
    /// What a person calls the job.
    pub name: &'a str,
    /// A preset file.
    pub text: &'a str,
    /// A pidfd, or a cgroup's directory.
    pub beside: Option<BorrowedFd<'a>>,
}

/// A daemon's yes.
#[derive(Debug)]
pub struct Reply {
    /// The job meant.
    pub job: u32,
    /// Its serial.
    pub serial: u64,
    /// How much of the kernel body there is.
    pub mode: Mode,
    /// As the kind of request says.
    pub text: String,
    /// A descriptor, where the kind of request says so.
    pub beside: Option<OwnedFd>,
}

/// A connection to a daemon.
pub struct Client {
    path: PathBuf,
    connection: Arc<OwnedFd>,
}

impl Client {
    /// To the daemon that listens at @path; each step may take so long as @patience.
    pub fn connect(path: &Path, patience: Duration) -> Result<Self, Error> {
        let attempt = || {
            let flags = SocketFlags::CLOEXEC;
            let kind = SocketType::SEQPACKET;
            let connection = net::socket_with(AddressFamily::UNIX, kind, flags, None)?;
            for way in [Timeout::Recv, Timeout::Send] {
                sockopt::set_socket_timeout(&connection, way, Some(patience))?;
            }
            net::connect(&connection, &SocketAddrUnix::new(path)?)?;
            Ok(connection)
        };
        match attempt() {
            Ok(connection) => Ok(Client {
                path: path.to_owned(),
                connection: Arc::new(connection),
            }),
            Err(Errno::NOENT | Errno::CONNREFUSED | Errno::NOTDIR) => {
                Err(Error::Absent(path.to_owned()))
            }
            Err(why) => Err(broken(path, &why.to_string())),
        }
    }

    /// Asks, and waits for the answer.
    pub fn ask(&self, kind: u32, wish: &Wish<'_>) -> Result<Reply, Error> {
        let broken = |why: &str| broken(&self.path, why);
        let head = head_of(kind, wish).ok_or_else(|| Error::Refused {
            status: abi::COS_CONTROL_UNKNOWN,
            line: format!("no preset {:?}: a name has at most 63 bytes", wish.preset),
        })?;
        let packet = bytes_of_request(&head, wish.text.as_bytes());
        send(&self.connection, &packet, wish.beside).map_err(|e| broken(&e.to_string()))?;
        let mut bytes = vec![0; MAX_PACKET];
        let got = receive(&self.connection, &mut bytes);
        let (got, beside) = got.map_err(|e| broken(&e.to_string()))?;
        if got == 0 {
            return Err(broken("it closed the connection"));
        }
        let (reply, text) = parse_reply(&bytes[..got]).ok_or_else(|| broken("malformed"))?;
        let yes = self.judge(&reply, String::from_utf8_lossy(text).into_owned())?;
        Ok(Reply { beside, ..yes })
    }

    /// What lets a child join @job between fork and exec.
    pub fn joiner(&self, job: u32, serial: u64) -> Joiner {
        let wish = Wish {
            job,
            serial,
            ..Wish::default()
        };
        let head = head_of(abi::COS_CONTROL_JOIN, &wish).unwrap_or_default();
        Joiner {
            connection: self.connection.clone(),
            packet: bytes_of_request(&head, b""),
        }
    }

    fn judge(&self, reply: &abi::cos_control_reply, text: String) -> Result<Reply, Error> {
        let status = reply.status;
        if reply.version != abi::COS_CONTROL_VERSION {
            return Err(Error::Version {
                path: self.path.clone(),
                version: reply.version,
            });
        }
        match (status, Mode::of(reply.mode)) {
            (abi::COS_CONTROL_OK, Some(mode)) => Ok(Reply {
                job: reply.job,
                serial: reply.serial,
                mode,
                text,
                beside: None,
            }),
            (abi::COS_CONTROL_OK, None) => Err(broken(&self.path, "malformed")),
            _ => Err(Error::Refused { status, line: text }),
        }
    }
}

/// For a child that is to join before it becomes its program.
pub struct Joiner {
    connection: Arc<OwnedFd>,
    packet: Vec<u8>,
}

impl Joiner {
    /// The calling process joins; its children will follow. Nothing but system calls
    /// happens here, so that it may be called between fork and exec.
    pub fn join(&self) -> rustix::io::Result<()> {
        let me = pidfd_open(getpid(), PidfdFlags::empty())?;
        send(&self.connection, &self.packet, Some(me.as_fd()))?;
        let mut reply = [0; size_of::<abi::cos_control_reply>()];
        net::recv(&self.connection, &mut reply, RecvFlags::empty()).map(drop)
    }
}

fn broken(path: &Path, why: &str) -> Error {
    Error::Broken {
        path: path.to_owned(),
        why: why.to_owned(),
    }
}

/// Nothing where a preset's name is too long; a job's is cut.
fn head_of(kind: u32, wish: &Wish<'_>) -> Option<abi::cos_control_request> {
    let mut head = abi::cos_control_request {
        version: abi::COS_CONTROL_VERSION,
        kind,
        flags: wish.flags,
        job: wish.job,
        serial: wish.serial,
        ..Default::default()
    };
    let mut cut = (head.name.len() - 1).min(wish.name.len());
    while !wish.name.is_char_boundary(cut) {
        cut -= 1;
    }
    fill(&mut head.name, &wish.name[..cut]);
    fill(&mut head.preset, wish.preset).then_some(head)
}

fn send(to: &OwnedFd, packet: &[u8], beside: Option<BorrowedFd<'_>>) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = beside.as_slice();
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Errno::NOBUFS);
    }
    net::sendmsg(
        to,
        &[IoSlice::new(packet)],
        &mut control,
        SendFlags::NOSIGNAL,
    )
    .map(drop)
}

fn receive(from: &OwnedFd, bytes: &mut [u8]) -> rustix::io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let iov = &mut [IoSliceMut::new(bytes)];
    let got = net::recvmsg(from, iov, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut beside = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut received) = message {
            beside = received.next();
        }
    }
    Ok((got.bytes, beside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_is_not_there_is_told_apart() {
        let nowhere = Path::new("/nonexistent/socket");
        assert!(matches!(
            Client::connect(nowhere, PATIENCE),
            Err(Error::Absent(_))
        ));
    }

    #[test]
    fn a_long_name_is_cut_between_characters_and_a_long_preset_is_none() {
        let long = "ä".repeat(20);
        let wish = |preset, name| Wish {
            preset,
            name,
            ..Wish::default()
        };
        let head = head_of(1, &wish("auto", &long)).unwrap();
        assert_eq!(crate::word_of(&head.name), Some("ä".repeat(15)));
        assert!(head_of(1, &wish(&"p".repeat(64), "")).is_none());
    }
}
