// SPDX-License-Identifier: Apache-2.0
//! The loop: one thread, one poll, nothing that waits for a client.
//!
//! Who sends garbage gets one line and is dropped, who does not read is dropped,
//! and nobody holds so many connections that others get none: a place is kept
//! for root. All that is urgent happens in the kernel; here is bookkeeping.

use crate::answer::{answer, About, Request, Yes};
use crate::bounds::Bounds;
use crate::config::{Config, Sources};
use crate::kernel::{Ejection, Kernel};
use crate::refusal::Refusal;
use crate::registry::{Caller, Registry};
use crate::wire;
use cosched_control::parse_request;
use cosched_model::abi;
use rustix::{
    event::{poll, PollFd, PollFlags, Timespec},
    io::Errno,
};
use sd_notify::NotifyState;
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};
use tracing::{info, warn};

const MAX_CONNECTIONS: usize = 256;
const KEPT_FOR_ROOT: usize = 16;
const MAX_OF_A_USER: usize = 32;
/// How often jobs are looked after.
const TICK: Duration = Duration::from_millis(250);

/// Why a daemon ends.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// By a signal.
    Told,
    /// The kernel took the scheduler away.
    Ejected(Ejection),
}

/// What wakes the loop beside its clients.
pub struct Doors {
    /// Listens.
    pub listener: OwnedFd,
    /// Readable: end.
    pub stop: OwnedFd,
    /// Readable: read the configuration again.
    pub reload: OwnedFd,
}

struct Connection {
    fd: OwnedFd,
    caller: Caller,
}

/// The daemon at work.
pub struct Server<K> {
    doors: Doors,
    sources: Sources,
    config: Config,
    registry: Registry<K>,
    connections: Vec<Connection>,
    last_connection: u64,
    since: Instant,
    ticked_at: Instant,
}

impl<K: Kernel> Server<K> {
    /// With a body that is attached; @config was read from @sources.
    pub fn new(doors: Doors, sources: Sources, config: Config, kernel: K) -> Self {
        Server {
            registry: Registry::new(kernel, Bounds::of(&config)),
            doors,
            sources,
            config,
            connections: Vec::new(),
            last_connection: 0,
            since: Instant::now(),
            ticked_at: Instant::now(),
        }
    }

    /// Serves until it is time to end; then no job is left, and who asked is told by
    /// the end of their connections.
    pub fn serve(&mut self) -> io::Result<End> {
        let end = loop {
            let happened = self.wait()?;
            if happened.stop {
                break End::Told;
            }
            if happened.reload {
                drain(&self.doors.reload);
                self.reload();
            }
            self.serve_clients(&happened.clients);
            if happened.door {
                self.accept();
            }
            if self.ticked_at.elapsed() >= TICK {
                self.ticked_at = Instant::now();
                self.registry.tick();
                if let Some(ejection) = self.ejected() {
                    break End::Ejected(ejection);
                }
            }
        };
        self.registry.end_all("coschedd ends");
        self.connections.clear();
        Ok(end)
    }

    /// An ejection that is the end; one after which the kernel wants us back is not.
    fn ejected(&mut self) -> Option<Ejection> {
        let mut ejection = self.registry.kernel().ejected()?;
        if !ejection.again {
            return Some(ejection);
        }
        warn!(
            "the kernel took the scheduler away: {}; attaching it again",
            ejection.why
        );
        match self.registry.kernel().attach_again() {
            Ok(()) => {
                info!("attached again; jobs go on");
                None
            }
            Err(error) => {
                ejection.why = format!("{}; it cannot be attached again: {error}", ejection.why);
                Some(ejection)
            }
        }
    }

    fn wait(&self) -> io::Result<Happened> {
        let mut fds = vec![
            PollFd::new(&self.doors.stop, PollFlags::IN),
            PollFd::new(&self.doors.reload, PollFlags::IN),
            PollFd::new(&self.doors.listener, PollFlags::IN),
        ];
        let clients = self.connections.iter();
        fds.extend(clients.map(|client| PollFd::new(&client.fd, PollFlags::IN)));
        let tick = Timespec {
            tv_sec: 0,
            tv_nsec: TICK.subsec_nanos().into(),
        };
        match poll(&mut fds, Some(&tick)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Happened::default()),
            Err(error) => return Err(error.into()),
        }
        let mut happened: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let clients = happened.split_off(3);
        Ok(Happened {
            stop: happened[0],
            reload: happened[1],
            door: happened[2],
            clients,
        })
    }

    /// All who are at the door; who finds no place is let go again.
    fn accept(&mut self) {
        loop {
            match wire::accept(&self.doors.listener) {
                Ok((fd, uid, pid)) if self.has_place_for(uid) => {
                    self.last_connection += 1;
                    let caller = Caller {
                        uid,
                        pid,
                        connection: self.last_connection,
                    };
                    self.connections.push(Connection { fd, caller });
                }
                Ok((_, uid, pid)) => {
                    warn!("process {pid} of uid {uid} is let go: too many connections")
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(_) => return,
            }
        }
    }

    fn has_place_for(&self, uid: u32) -> bool {
        if uid == 0 {
            return self.connections.len() < MAX_CONNECTIONS;
        }
        let theirs = self
            .connections
            .iter()
            .filter(|client| client.caller.uid == uid);
        theirs.count() < MAX_OF_A_USER && self.connections.len() < MAX_CONNECTIONS - KEPT_FOR_ROOT
    }

    /// One request of each ready client; one that cannot be served is let go.
    fn serve_clients(&mut self, ready: &[bool]) {
        for at in (0..self.connections.len()).rev() {
            if ready.get(at) == Some(&true) && self.serve_one(at).is_none() {
                let gone = self.connections.swap_remove(at);
                self.registry.holder_gone(gone.caller.connection);
            }
        }
    }

    fn serve_one(&mut self, at: usize) -> Option<()> {
        let (packet, fd) = match wire::receive(&self.connections[at].fd) {
            Ok(received) => received?,
            Err(Errno::AGAIN | Errno::INTR) => return Some(()),
            Err(_) => return None,
        };
        let caller = self.connections[at].caller;
        let outcome = self.decide(caller, &packet, fd);
        let (reply, text, beside) = self.reply(caller, outcome);
        let beside = beside.as_ref().map(OwnedFd::as_fd);
        wire::send(&self.connections[at].fd, &reply, &text, beside).ok()?;
        (reply.status != abi::COS_CONTROL_MALFORMED).then_some(())
    }

    fn decide(
        &mut self,
        caller: Caller,
        packet: &[u8],
        fd: Option<OwnedFd>,
    ) -> Result<Yes, Refusal> {
        let (head, text) = parse_request(packet)
            .ok_or_else(|| Refusal::malformed("not a request: see abi/control.h"))?;
        if head.version != abi::COS_CONTROL_VERSION {
            let line = format!(
                "this coschedd speaks version {} of the protocol",
                abi::COS_CONTROL_VERSION
            );
            return Err(Refusal::of(abi::COS_CONTROL_OTHER_VERSION, line));
        }
        let about = About {
            config: &self.config,
            since: self.since,
        };
        let request = Request { head, text, fd };
        let mut yes = answer(&mut self.registry, &about, caller, request)?;
        if yes.reload {
            self.reload();
        }
        yes.text = wire::fits(yes.text)?;
        Ok(yes)
    }

    fn reply(
        &mut self,
        caller: Caller,
        outcome: Result<Yes, Refusal>,
    ) -> (abi::cos_control_reply, String, Option<OwnedFd>) {
        let mut reply = abi::cos_control_reply {
            version: abi::COS_CONTROL_VERSION,
            mode: self.registry.kernel().mode().number(),
            ..Default::default()
        };
        match outcome {
            Ok(yes) => {
                (reply.job, reply.serial) = (yes.job, yes.serial);
                (reply, yes.text, yes.beside)
            }
            Err(refusal) => {
                warn!(
                    "process {} of uid {}: {}",
                    caller.pid, caller.uid, refusal.line
                );
                reply.status = refusal.status;
                (reply, refusal.line, None)
            }
        }
    }

    /// Bounds change at once, jobs and what is attached go on; a file that is wrong changes nothing.
    fn reload(&mut self) {
        let _ = sd_notify::notify(&[NotifyState::Reloading]);
        match Config::read(&self.sources) {
            Ok(config) => {
                let later = config.needs_restart(&self.config);
                info!("configuration read again");
                if !later.is_empty() {
                    warn!(
                        "takes effect when coschedd begins again: {}",
                        later.join(", ")
                    );
                }
                self.registry.set_bounds(Bounds::of(&config));
                self.config = config;
            }
            Err(error) => warn!("{error}; going on with the configuration as it was"),
        }
        let _ = sd_notify::notify(&[NotifyState::Ready]);
    }
}

#[derive(Default)]
struct Happened {
    stop: bool,
    reload: bool,
    door: bool,
    clients: Vec<bool>,
}

/// Everything that is in a self-pipe; signals that came together count as one.
fn drain(fd: &OwnedFd) {
    let mut bytes = [0u8; 64];
    while matches!(rustix::io::read(fd, &mut bytes), Ok(64)) {}
}

#[cfg(test)]
mod tests;
