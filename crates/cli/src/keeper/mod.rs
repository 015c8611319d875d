// SPDX-License-Identifier: Apache-2.0
//! The keeper: owner of one node's job page, and the only one who hands it out.
//!
//! It serves abi/wire.h on a socket in a directory that only its user may
//! enter. One thread, one poll loop, nothing that blocks: who sends nonsense or
//! does not read its answer is dropped. Clients are unprivileged processes of
//! the same user, checked by the kernel's word (SO_PEERCRED); others get no
//! answer. It never looks at what ranks write into the page: it is off the hot
//! path, and a job whose keeper was killed goes on.

pub mod house;
mod page;
mod socket;

pub use page::JobPage;
pub use socket::{is_listening, listen};

use cosched_model::abi;
use rustix::{
    event::{poll, PollFd, PollFlags, Timespec},
    io::Errno,
    net::{accept_with, SocketFlags},
    process::{getrlimit, setrlimit, Resource, Rlimit},
};
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
    time::{Duration, Instant},
};

/// Connections beyond one per slot: ranks that are told that the page is full.
const NR_SPARE_CONNECTIONS: usize = 64;
/// How long no one is let in after the process ran out of descriptors.
const CROWDED: Duration = Duration::from_millis(100);

/// Each rank costs three descriptors; the soft limit is often 1024.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // Refused means fewer ranks with a doorbell, which accept() and join() survive.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
}

/// When a keeper ends.
pub enum Leave {
    /// As soon as this descriptor becomes readable.
    WhenTold(OwnedFd),
    /// When no one came for `first`, or for `last` after the last one left.
    WhenIdle {
        /// Patience before the first connection.
        first: Duration,
        /// Patience after the last one.
        last: Duration,
    },
}

/// What a rank deposited; both are gone when it is.
#[derive(Default)]
struct Deposit {
    bell: Option<OwnedFd>,
    switches: Option<OwnedFd>,
}

struct Client {
    connection: OwnedFd,
    slot: Option<u32>,
}

/// Serves the page on a listening socket.
pub struct Keeper {
    page: Arc<JobPage>,
    listener: OwnedFd,
    clients: Vec<Client>,
    deposits: Vec<Deposit>,
    oncpu: Option<OwnedFd>,
    crowded_until: Option<Instant>,
}

impl Keeper {
    /// Of this page, on this socket (see [`listen`]); @oncpu: what coschedd gave for ranks to map.
    pub fn new(page: Arc<JobPage>, listener: OwnedFd, oncpu: Option<OwnedFd>) -> Self {
        let (clients, deposits) = (Vec::new(), Vec::new());
        Keeper {
            page,
            listener,
            clients,
            deposits,
            oncpu: oncpu.filter(socket::is_bpf_map),
            crowded_until: None,
        }
    }

    /// Serves until it is time to leave.
    pub fn serve(&mut self, leave: &Leave) -> io::Result<()> {
        let mut idle_since = Instant::now();
        let mut someone_came = false;
        loop {
            let (told, waiting, ready) = self.poll(leave)?;
            if told {
                return Ok(());
            }
            self.answer(&ready);
            if waiting {
                self.accept();
            }
            if !self.clients.is_empty() {
                (idle_since, someone_came) = (Instant::now(), true);
            } else if let Leave::WhenIdle { first, last } = leave {
                let patience = if someone_came { last } else { first };
                if idle_since.elapsed() >= *patience {
                    return Ok(());
                }
            }
        }
    }

    /// Told to leave? Is someone at the door? Which clients have something to say?
    fn poll(&mut self, leave: &Leave) -> io::Result<(bool, bool, Vec<bool>)> {
        self.crowded_until = self.crowded_until.filter(|until| *until > Instant::now());
        let door = match self.crowded_until {
            Some(_) => PollFlags::empty(),
            None => PollFlags::IN,
        };
        let mut fds = vec![PollFd::new(&self.listener, door)];
        fds.extend(
            self.clients
                .iter()
                .map(|c| PollFd::new(&c.connection, PollFlags::IN)),
        );
        if let Leave::WhenTold(stop) = leave {
            fds.push(PollFd::new(stop, PollFlags::IN));
        }
        let tick = Timespec {
            tv_sec: 0,
            tv_nsec: CROWDED.subsec_nanos().into(),
        };
        let needs_tick = self.crowded_until.is_some() || matches!(leave, Leave::WhenIdle { .. });
        match poll(&mut fds, needs_tick.then_some(&tick)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut happened: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let told = matches!(leave, Leave::WhenTold(_)) && happened.pop() == Some(true);
        let ready = happened.split_off(1);
        Ok((told, happened[0], ready))
    }

    /// All who are at the door: a thousand ranks that start together leave us no CPU
    /// for a look at everyone between two of them.
    fn accept(&mut self) {
        while self.accept_one() {}
    }

    /// False where no one else is to be let in.
    fn accept_one(&mut self) -> bool {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match accept_with(&self.listener, flags) {
            Ok(connection) => {
                let room = self.clients.len() < abi::COS_MAX_SLOTS as usize + NR_SPARE_CONNECTIONS;
                if room && socket::is_ours(&connection) {
                    self.clients.push(Client {
                        connection,
                        slot: None,
                    });
                }
                return true;
            }
            Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => {
                self.crowded_until = Some(Instant::now() + CROWDED);
            }
            Err(Errno::CONNABORTED) => return true, // it went away before we opened
            Err(_) => {}
        }
        false
    }

    /// One request of each ready client; one that cannot be served is let go.
    fn answer(&mut self, ready: &[bool]) {
        for index in (0..self.clients.len()).rev() {
            if ready.get(index) != Some(&true) || self.serve_one(index).is_some() {
                continue;
            }
            let gone = self.clients.swap_remove(index);
            if let Some(slot) = gone.slot {
                self.deposits[slot as usize] = Deposit::default();
            }
        }
    }

    fn serve_one(&mut self, index: usize) -> Option<()> {
        let (ask, fds) = match socket::receive(&self.clients[index].connection) {
            Ok(request) => request?,
            Err(Errno::AGAIN | Errno::INTR) => return Some(()),
            Err(_) => return None,
        };
        let mut reply = abi::cos_reply {
            version: abi::COS_WIRE_VERSION,
            slot: ask.slot,
            ..Default::default()
        };
        let mut beside = None;
        if ask.version != abi::COS_WIRE_VERSION {
            reply.status = abi::COS_REPLY_VERSION;
        } else if ask.kind == abi::COS_ASK_JOIN {
            match self.join(index, &ask, fds) {
                Some(slot) => (reply.slot, beside) = (slot, Some(self.page.as_fd())),
                None => reply.status = abi::COS_REPLY_FULL,
            }
        } else if ask.kind == abi::COS_ASK_OFFER {
            if !self.offer(index, fds) {
                reply.status = abi::COS_REPLY_NONE;
            }
        } else {
            beside = self.deposit(&ask)?;
            if beside.is_none() {
                reply.status = abi::COS_REPLY_NONE;
            }
        }
        socket::send(&self.clients[index].connection, &reply, beside).ok()
    }

    /// A connection has one slot, however often it asks.
    fn join(&mut self, index: usize, ask: &abi::cos_ask, fds: Vec<OwnedFd>) -> Option<u32> {
        let client = &mut self.clients[index];
        if client.slot.is_some() || ask.job == 0 {
            return client.slot;
        }
        let slot = self.page.join(ask)?;
        client.slot = Some(slot);
        let bell = fds.into_iter().next().filter(socket::is_bell);
        self.deposits.push(Deposit {
            bell,
            switches: None,
        });
        Some(slot)
    }

    /// A rank's switch record; false where it has no slot or it is none.
    fn offer(&mut self, index: usize, fds: Vec<OwnedFd>) -> bool {
        let record = fds.into_iter().next().filter(socket::is_switch_record);
        let slot = self.clients[index].slot;
        match slot.and_then(|slot| self.deposits.get_mut(slot as usize)) {
            Some(deposit) if record.is_some() => deposit.switches = record,
            _ => return false,
        }
        true
    }

    /// None where the kind is unknown; Some(None) where there is no such thing.
    fn deposit(&self, ask: &abi::cos_ask) -> Option<Option<std::os::fd::BorrowedFd<'_>>> {
        let of_slot = self.deposits.get(ask.slot as usize);
        let fd = match ask.kind {
            abi::COS_ASK_BELL => of_slot.and_then(|d| d.bell.as_ref()),
            abi::COS_ASK_WATCH => of_slot.and_then(|d| d.switches.as_ref()),
            abi::COS_ASK_ONCPU => self.oncpu.as_ref(),
            _ => return None,
        };
        Some(fd.map(AsFd::as_fd))
    }
}

#[cfg(test)]
mod tests;
