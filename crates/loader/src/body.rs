// SPDX-License-Identifier: Apache-2.0
//! The attached kernel body: jobs go in, ledgers and counters come out.

use crate::maps::{self, Ledger};
use crate::offers::ops_flags;
use crate::{raw, say, Config, Count, Error, Member, Offers, COUNTS};
use cosched_policy::Params;
use libbpf_rs::{Link, MapCore, Object, ObjectBuilder, OpenObject, ProgramInput};
use std::{
    fs,
    io::Read,
    os::fd::{AsFd, OwnedFd},
};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cosched.bpf.o"));

/// The map of sched_ext's operations.
const OPS: &str = "cosched_ops";

/// Programs that only an observer needs: the scheduler's own operations see the same.
const OBSERVERS: [&str; 2] = ["on_switch", "on_wakeup"];

/// What the body can do here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It is the machine's scheduler.
    Schedule,
    /// It sees and knows, and does not act.
    Observe,
}

/// A job's entry, 1 to `COS_MAX_JOBS - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct JobNumber(pub u32);

/// `SCX_ECODE_ACT_RESTART`.
const RESTART: u64 = 1 << 48;

/// Why sched_ext took the scheduler away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// `enum scx_exit_kind`.
    pub kind: u64,
    /// `enum scx_exit_code`: what the kernel asks for.
    pub code: u64,
    /// In the kernel's words.
    pub reason: String,
    /// More of them.
    pub message: String,
}

impl Exit {
    /// Whether the kernel only wants it attached again: a CPU came or went.
    pub fn asks_for_restart(&self) -> bool {
        self.code & RESTART != 0
    }
}

/// Attached as long as it lives.
pub struct Body {
    object: Object,
    scheduler: Option<Link>,
    links: Vec<Link>,
    members: Option<Link>,
    mode: Mode,
    why_observe: Option<String>,
    serial: u64,
}

/// The `struct join_request` of bpf/member.bpf.h.
#[repr(C)]
struct JoinRequest {
    tid: u32,
    job: u32,
    serial: u64,
}

impl Body {
    /// Opens, loads and attaches: the scheduler where that is possible and wanted.
    pub fn attach(config: &Config, observe_only: bool) -> Result<Body, Error> {
        config.check()?;
        let offers = Offers::probe();
        if let Some(lack) = offers.lack() {
            return Err(Error::Missing(lack.to_owned()));
        }
        let why_observe = match observe_only {
            true => Some("told to only observe".to_owned()),
            false => offers.why_observe().map(str::to_owned),
        };
        let mode = match why_observe {
            None => Mode::Schedule,
            Some(_) => Mode::Observe,
        };
        let object = load(mode)?;
        let nr_cpus = nr_possible_cpus()?;
        let raw = config.raw(nr_cpus, mode == Mode::Schedule);
        maps::write(&object, "config", 0, &raw)?;
        maps::freeze(&object, "oncpu")?;
        let mut body = Body {
            object,
            scheduler: None,
            links: Vec::new(),
            members: None,
            mode,
            why_observe,
            serial: 0,
        };
        body.attach_programs()?;
        Ok(body)
    }

    /// Tracing programs first, so that no fork is missed; the scheduler last.
    fn attach_programs(&mut self) -> Result<(), Error> {
        for program in self.object.progs_mut() {
            let section = program.section().to_string_lossy().into_owned();
            let wanted = program.autoload();
            let link = match section.split('/').next() {
                Some("tp_btf") if wanted => &mut self.links,
                Some("iter") => {
                    self.members = Some(program.attach().map_err(refused("an iterator"))?);
                    continue;
                }
                _ => continue,
            };
            link.push(program.attach().map_err(refused("a tracepoint program"))?);
        }
        match self.mode {
            Mode::Schedule => self.attach_scheduler(),
            Mode::Observe => Ok(()),
        }
    }

    fn attach_scheduler(&mut self) -> Result<(), Error> {
        let mut maps = self.object.maps_mut();
        let ops = maps.find(|map| map.name() == OPS);
        let mut ops = ops.ok_or_else(|| Error::Map {
            what: OPS,
            why: "the BPF object has no such map".into(),
        })?;
        let link = ops.attach_struct_ops().map_err(refused("the scheduler"))?;
        self.scheduler = Some(link);
        Ok(())
    }

    /// After an exit that asks for it. Jobs, their tasks and what was counted stay: only
    /// the scheduler went, the programs that keep them did not.
    pub fn attach_again(&mut self) -> Result<(), Error> {
        self.scheduler = None;
        let none = raw::cos_kernel_exit {
            kind: 0,
            code: 0,
            reason: [0; 128],
            message: [0; 1024],
        };
        maps::write(&self.object, "exits", 0, &none)?;
        say::listen();
        self.attach_scheduler()
    }

    /// What it can do here.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Why it only observes, if it does.
    pub fn why_observe(&self) -> Option<&str> {
        self.why_observe.as_deref()
    }

    /// A new job without tasks. @boost_gap_ns: least time between two boosts, 0 = no limit.
    pub fn begin(&mut self, params: &Params, boost_gap_ns: u64) -> Result<JobNumber, Error> {
        let free = |number: &u32| self.ledger(JobNumber(*number)).is_ok_and(|l| l.serial == 0);
        let number = (1..raw::COS_MAX_JOBS).find(free);
        let number = number.ok_or(Error::NoRoom(raw::COS_MAX_JOBS as usize - 1))?;
        self.serial += 1;
        let entry = Ledger {
            serial: self.serial,
            boost_gap_ns,
            params: params.0,
            ..Ledger::default()
        };
        maps::write(&self.object, "jobs", number, &entry)?;
        Ok(JobNumber(number))
    }

    /// From the next decision on. What was counted meanwhile in the few instructions between
    /// reading and writing the entry is lost.
    pub fn set_params(&mut self, job: JobNumber, params: &Params) -> Result<(), Error> {
        let mut entry = self.living(job)?;
        entry.params = params.0;
        entry.state = Default::default();
        maps::write(&self.object, "jobs", job.0, &entry)
    }

    /// All threads of process @pid join; what they start follows by itself. Returns how many did.
    pub fn join(&mut self, job: JobNumber, pid: u32) -> Result<u32, Error> {
        let serial = self.living(job)?.serial;
        let mut joined = 0;
        loop {
            let new = self.join_threads(job, serial, pid)?;
            joined += new;
            if new == 0 {
                return Ok(joined);
            }
        }
    }

    fn join_threads(&self, job: JobNumber, serial: u64, pid: u32) -> Result<u32, Error> {
        let threads = fs::read_dir(format!("/proc/{pid}/task"));
        let threads = threads.map_err(|_| Error::NoProcess(pid))?;
        let names = threads.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut new = 0;
        for tid in names.filter_map(|name| name.parse().ok()) {
            let job = job.0;
            new += u32::from(self.join_one(JoinRequest { tid, job, serial })?);
        }
        Ok(new)
    }

    /// Whether it was not in the job before; a thread that is gone is none.
    fn join_one(&self, mut request: JoinRequest) -> Result<bool, Error> {
        let wrong = |why: String| Error::Map { what: "join", why };
        let mut programs = self.object.progs_mut();
        let program = programs.find(|program| program.name() == "join");
        let program = program.ok_or_else(|| wrong("the BPF object has no such program".into()))?;
        // SAFETY: the struct is integers without padding and lives during the call.
        let context = unsafe {
            std::slice::from_raw_parts_mut(
                std::ptr::from_mut(&mut request).cast::<u8>(),
                size_of::<JoinRequest>(),
            )
        };
        let input = ProgramInput {
            context_in: Some(context),
            ..ProgramInput::default()
        };
        let output = program.test_run(input);
        let told = output.map_err(|e| wrong(e.to_string()))?.return_value as i32;
        match told {
            0 => Ok(true),
            1 | -3 => Ok(false),
            -22 => Err(Error::NoJob(request.job)),
            other => Err(wrong(format!("error {other}"))),
        }
    }

    /// Its tasks are as any other from now on.
    pub fn end(&mut self, job: JobNumber) -> Result<(), Error> {
        self.living(job)?;
        maps::write(&self.object, "jobs", job.0, &Ledger::default())
    }

    /// What was counted of the job.
    pub fn ledger(&self, job: JobNumber) -> Result<Ledger, Error> {
        maps::read(&self.object, "jobs", job.0)
    }

    fn living(&self, job: JobNumber) -> Result<Ledger, Error> {
        let entry = self.ledger(job)?;
        match entry.serial {
            0 => Err(Error::NoJob(job.0)),
            _ => Ok(entry),
        }
    }

    /// What was counted over the machine.
    pub fn counts(&self) -> Result<Vec<(&'static Count, u64)>, Error> {
        let nr_cpus = nr_possible_cpus()?;
        let mut sums = [0; raw::COS_NR_COUNTS as usize];
        for cpu in 0..nr_cpus {
            let one: [u64; raw::COS_NR_COUNTS as usize] = maps::read(&self.object, "counts", cpu)?;
            sums.iter_mut().zip(one).for_each(|(sum, n)| *sum += n);
        }
        Ok(COUNTS.iter().zip(sums).collect())
    }

    /// The tasks of all jobs.
    pub fn members(&self) -> Result<Vec<Member>, Error> {
        let wrong = |why: String| Error::Map {
            what: "list_members",
            why,
        };
        let Some(link) = &self.members else {
            return Ok(Vec::new());
        };
        let mut iterator = libbpf_rs::Iter::new(link).map_err(|e| wrong(e.to_string()))?;
        let mut text = String::new();
        iterator
            .read_to_string(&mut text)
            .map_err(|e| wrong(e.to_string()))?;
        Ok(text.lines().filter_map(Member::parse).collect())
    }

    /// Which rank is on each CPU: to map, and for nobody to write.
    pub fn oncpu(&self) -> Result<OwnedFd, Error> {
        let map = maps::map(&self.object, "oncpu")?;
        let fd = map.as_fd().try_clone_to_owned();
        fd.map_err(|error| Error::Map {
            what: "oncpu",
            why: error.to_string(),
        })
    }

    /// Whether sched_ext took the scheduler away, and why.
    pub fn ejected(&self) -> Option<Exit> {
        let told: raw::cos_kernel_exit = maps::read(&self.object, "exits", 0).ok()?;
        (told.kind != 0).then(|| Exit {
            kind: told.kind,
            code: told.code,
            reason: text(&told.reason),
            message: text(&told.message),
        })
    }

    /// Name and number of instructions of each program, as the kernel has it.
    pub fn programs(&self) -> Vec<(String, usize)> {
        let loaded = self.object.progs().filter(|program| program.autoload());
        loaded
            .map(|program| {
                (
                    program.name().to_string_lossy().into_owned(),
                    program.insn_cnt(),
                )
            })
            .collect()
    }
}

/// Up to the first zero.
fn text(bytes: &[std::ffi::c_char]) -> String {
    let bytes = bytes.iter().map(|c| *c as u8).take_while(|c| *c != 0);
    String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
}

fn load(mode: Mode) -> Result<Object, Error> {
    say::listen();
    let mut open = ObjectBuilder::default()
        .name("cosched")
        .and_then(|builder| builder.open_memory(OBJECT))
        .map_err(refused("the BPF object"))?;
    choose(&mut open, mode).map_err(refused("the BPF object"))?;
    open.load().map_err(refused("the BPF programs"))
}

/// The scheduler's programs or the observer's; the others are for both.
fn choose(open: &mut OpenObject, mode: Mode) -> libbpf_rs::Result<()> {
    for mut program in open.progs_mut() {
        let schedules = program
            .section()
            .to_string_lossy()
            .starts_with("struct_ops");
        let observes = OBSERVERS.iter().any(|name| program.name() == *name);
        match mode {
            Mode::Schedule if observes => program.set_autoload(false),
            Mode::Observe if schedules => program.set_autoload(false),
            _ => {}
        }
    }
    let mut maps = open.maps_mut();
    let Some(mut ops) = maps.find(|map| map.name() == OPS) else {
        return Ok(());
    };
    match (mode, ops.initial_value_mut()) {
        (Mode::Observe, _) => ops.set_autocreate(false)?,
        (Mode::Schedule, Some(value)) => value[..8].copy_from_slice(&ops_flags().to_ne_bytes()),
        (Mode::Schedule, None) => {}
    }
    Ok(())
}

fn refused(what: &'static str) -> impl Fn(libbpf_rs::Error) -> Error {
    move |error| Error::Refused {
        what,
        why: match say::cause() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}

fn nr_possible_cpus() -> Result<u32, Error> {
    let nr = libbpf_rs::num_possible_cpus().map_err(|e| Error::Missing(e.to_string()))?;
    let fits = u32::try_from(nr).ok().filter(|nr| *nr <= raw::COS_MAX_CPUS);
    fits.ok_or_else(|| {
        let most = raw::COS_MAX_CPUS;
        Error::Missing(format!("{nr} CPUs, and the kernel body knows {most}"))
    })
}
