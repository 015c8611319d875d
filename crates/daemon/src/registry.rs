// SPDX-License-Identifier: Apache-2.0
//! Who is a job and which are its ranks.
//!
//! Whatever a request asks is decided here: is it the caller's, is it within the
//! administrator's policy, what of the kernel body follows. A job ends when it is
//! told to, or with the connection that holds it, or, where none does, with its
//! last task; then its tasks are ordinary again. Job numbers are used again, serials
//! are not.

use crate::bounds::{Bounds, Holdings};
use crate::kernel::Kernel;
use crate::process::{for_tree, Beside, Cgroup, Process};
use crate::refusal::Refusal;
use crate::wish::{settle, Asker, Settled};
use cosched_control::document::{self, Answer};
use std::{
    collections::HashSet,
    time::{Duration, Instant},
};
use tracing::{info, warn};

/// How often a cgroup is looked at for processes that were moved into it.
const LOOK: Duration = Duration::from_secs(1);

/// At the other end of a connection, as the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its user.
    pub uid: u32,
    /// Its process.
    pub pid: u32,
    /// The connection; no two have the same.
    pub connection: u64,
}

/// What is to be begun.
#[derive(Debug, Default)]
pub struct Begin<'a> {
    /// The name of a preset.
    pub preset: &'a str,
    /// A preset file instead.
    pub text: Option<&'a str>,
    /// What its user calls the job.
    pub name: &'a str,
    /// It ends with the connection.
    pub held: bool,
    /// Nobody joins yet.
    pub empty: bool,
    /// Its ranks have the preloaded library.
    pub has_shim: bool,
}

/// One job.
#[derive(Debug)]
struct Job {
    number: u32,
    serial: u64,
    uid: u32,
    name: String,
    preset: String,
    answers: Vec<Answer>,
    has_shim: bool,
    root_pid: Option<u32>,
    cgroup: Option<Watched>,
    holder: Option<u64>,
    since: Instant,
}

/// A cgroup whose later processes join too.
#[derive(Debug)]
struct Watched {
    cgroup: Cgroup,
    known: HashSet<u32>,
    looked_at: Instant,
}

/// All jobs, and the kernel body that they are in.
pub struct Registry<K> {
    kernel: K,
    bounds: Bounds,
    jobs: Vec<Job>,
    last_serial: u64,
}

impl<K: Kernel> Registry<K> {
    /// Without a job.
    pub fn new(kernel: K, bounds: Bounds) -> Self {
        Registry {
            kernel,
            bounds,
            jobs: Vec::new(),
            last_serial: 0,
        }
    }

    /// The kernel body.
    pub fn kernel(&mut self) -> &mut K {
        &mut self.kernel
    }

    /// From now on; jobs that there are go on.
    pub fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }

    /// Begins a job; its number, serial and who answers what.
    pub fn begin(
        &mut self,
        caller: Caller,
        wish: &Begin<'_>,
        who: Option<Beside>,
    ) -> Result<(u32, u64, Vec<Answer>), Refusal> {
        if wish.empty && !wish.held {
            let line = "a job without tasks must be held by its connection: add COS_CONTROL_HELD";
            return Err(Refusal::malformed(line));
        }
        self.bounds.jobs(caller.uid, self.holdings(caller.uid))?;
        let settled = self.settle(caller.uid, wish.has_shim, wish.preset, wish.text)?;
        let gap_ns = self.bounds.boost_gap_ns(caller.uid);
        let number = self.kernel.begin(&settled.params, gap_ns)?;
        let serial = self.add(number, caller, wish, settled);
        if !wish.empty {
            if let Err(refusal) = self.enter(number, caller, who) {
                self.end_job(number, "nobody could join");
                return Err(refusal);
            }
        }
        let job = self.job(number)?;
        let (name, preset) = (&job.name, &job.preset);
        info!(
            "job {number} (serial {serial}) of uid {} begins: {name:?}, preset {preset}, {}",
            caller.uid,
            whom(job)
        );
        Ok((number, serial, job.answers.clone()))
    }

    fn settle(
        &self,
        uid: u32,
        has_shim: bool,
        preset: &str,
        text: Option<&str>,
    ) -> Result<Settled, Refusal> {
        let mode = self.kernel.mode();
        let asker = Asker {
            uid,
            has_shim,
            mode,
        };
        settle(&self.bounds, asker, preset, text)
    }

    fn add(&mut self, number: u32, caller: Caller, wish: &Begin<'_>, settled: Settled) -> u64 {
        self.last_serial += 1;
        self.jobs.push(Job {
            number,
            serial: self.last_serial,
            uid: caller.uid,
            name: wish.name.to_owned(),
            preset: settled.preset,
            answers: settled.answers,
            has_shim: wish.has_shim,
            root_pid: None,
            cgroup: None,
            holder: wish.held.then_some(caller.connection),
            since: Instant::now(),
        });
        self.last_serial
    }

    /// @who, or the caller, joins a job of the caller's.
    pub fn join(
        &mut self,
        caller: Caller,
        job: u32,
        serial: u64,
        who: Option<Beside>,
    ) -> Result<u64, Refusal> {
        let serial = self.owned(caller, job, serial)?.serial;
        self.enter(job, caller, who)?;
        Ok(serial)
    }

    fn enter(&mut self, job: u32, caller: Caller, who: Option<Beside>) -> Result<(), Refusal> {
        match who {
            Some(Beside::Cgroup(cgroup)) => self.enter_cgroup(job, caller.uid, cgroup),
            Some(Beside::Process(process)) => self.enter_tree(job, caller.uid, process),
            None => self.enter_tree(job, caller.uid, Process::of_pid(caller.pid)?),
        }
    }

    fn enter_tree(&mut self, job: u32, uid: u32, root: Process) -> Result<(), Refusal> {
        root.belongs_to(uid)?;
        let pid = root.pid;
        let has = self.holdings(uid);
        let (kernel, bounds) = (&mut self.kernel, &self.bounds);
        let mut nr_tasks = 0;
        for_tree(root, uid, |process| {
            nr_tasks += process.nr_threads;
            bounds.ranks(uid, has, nr_tasks)?;
            enter_process(kernel, job, &process)
        })?;
        let job = self.job_mut(job)?;
        job.root_pid = job.root_pid.or(Some(pid));
        Ok(())
    }

    fn enter_cgroup(&mut self, job: u32, uid: u32, cgroup: Cgroup) -> Result<(), Refusal> {
        let pids = cgroup.pids();
        let path = &cgroup.path;
        if pids.is_empty() {
            let line = format!(
                "no process is in {path}: start them first, or name the cgroup that has them"
            );
            return Err(Refusal::unknown(line));
        }
        let processes: Vec<Process> = pids
            .iter()
            .filter_map(|pid| Process::of_pid(*pid).ok())
            .collect();
        processes
            .iter()
            .try_for_each(|process| process.belongs_to(uid))?;
        let nr_tasks = processes.iter().map(|process| process.nr_threads).sum();
        self.bounds.ranks(uid, self.holdings(uid), nr_tasks)?;
        for process in &processes {
            enter_process(&mut self.kernel, job, process)?;
        }
        self.job_mut(job)?.cgroup = Some(Watched {
            cgroup,
            known: pids.into_iter().collect(),
            looked_at: Instant::now(),
        });
        Ok(())
    }

    /// Another preset for a job that goes on.
    pub fn switch(
        &mut self,
        caller: Caller,
        job: u32,
        serial: u64,
        preset: &str,
        text: Option<&str>,
    ) -> Result<(u64, Vec<Answer>), Refusal> {
        let has_shim = self.owned(caller, job, serial)?.has_shim;
        let settled = self.settle(caller.uid, has_shim, preset, text)?;
        self.kernel.set_params(job, &settled.params)?;
        let entry = self.job_mut(job)?;
        info!(
            "job {job} (serial {}) goes on with preset {} instead of {}",
            entry.serial, settled.preset, entry.preset
        );
        (entry.preset, entry.answers) = (settled.preset, settled.answers);
        Ok((entry.serial, entry.answers.clone()))
    }

    /// Ends a job of the caller's.
    pub fn end(&mut self, caller: Caller, job: u32, serial: u64) -> Result<u64, Refusal> {
        let serial = self.owned(caller, job, serial)?.serial;
        self.end_job(job, "asked to");
        Ok(serial)
    }

    /// A connection is gone; so are the jobs that it held.
    pub fn holder_gone(&mut self, connection: u64) {
        for number in self.numbers(|job| job.holder == Some(connection)) {
            self.end_job(number, "its holder is gone");
        }
    }

    /// A few times a second: who has ended, who came, who has too much.
    pub fn tick(&mut self) {
        for number in self.numbers(|_| true) {
            let is_held = self.job(number).is_ok_and(|job| job.holder.is_some());
            match self.kernel.ledger(number) {
                Ok(ledger) if !is_held && ledger.nr_joined > 0 && ledger.nr_tasks == 0 => {
                    self.end_job(number, "its last task is gone");
                }
                Ok(_) => self.look_at_cgroup(number),
                Err(error) => self.end_job(number, &error.to_string()),
            }
        }
        self.hold_to_bounds();
    }

    fn look_at_cgroup(&mut self, number: u32) {
        let Some(job) = self.jobs.iter_mut().find(|job| job.number == number) else {
            return;
        };
        let Some(watched) = &mut job.cgroup else {
            return;
        };
        if watched.looked_at.elapsed() < LOOK {
            return;
        }
        watched.looked_at = Instant::now();
        let now: HashSet<u32> = watched.cgroup.pids().into_iter().collect();
        let fresh: Vec<u32> = now.difference(&watched.known).copied().collect();
        watched.known = now;
        for pid in fresh {
            let joined = Process::of_pid(pid).and_then(|process| {
                process.belongs_to(job.uid)?;
                enter_process(&mut self.kernel, number, &process)
            });
            if let Err(refusal) = joined {
                warn!(
                    "job {number}: process {pid} of its cgroup does not join: {}",
                    refusal.line
                );
            }
        }
    }

    /// A fork bomb in a job is ordinary tasks again, and all else goes on.
    fn hold_to_bounds(&mut self) {
        let mut uids: Vec<u32> = self.jobs.iter().map(|job| job.uid).collect();
        uids.sort_unstable();
        uids.dedup();
        for uid in uids {
            if let Err(refusal) = self.bounds.ranks(uid, self.holdings(uid), 0) {
                let largest = self.numbers(|job| job.uid == uid).into_iter();
                let largest = largest.max_by_key(|number| self.nr_tasks(*number));
                if let Some(number) = largest {
                    self.end_job(number, &refusal.line);
                }
            }
        }
    }

    /// The jobs that @caller may see, and how many there are beside.
    pub fn shown(&self, caller: Caller, only: u32) -> (Vec<document::Job>, usize) {
        let (seen, hidden): (Vec<&Job>, Vec<&Job>) = self
            .jobs
            .iter()
            .partition(|job| caller.uid == 0 || job.uid == caller.uid);
        let wanted = seen
            .into_iter()
            .filter(|job| only == 0 || job.number == only);
        let shown = wanted.map(|job| self.show(job)).collect();
        (shown, hidden.len())
    }

    fn show(&self, job: &Job) -> document::Job {
        document::Job {
            job: job.number,
            serial: job.serial,
            uid: job.uid,
            name: job.name.clone(),
            preset: job.preset.clone(),
            answers: job.answers.clone(),
            root_pid: job.root_pid,
            cgroup: job
                .cgroup
                .as_ref()
                .map(|watched| watched.cgroup.path.clone()),
            held: job.holder.is_some(),
            age_ns: job.since.elapsed().into(),
            ledger: self.kernel.ledger(job.number).unwrap_or_default(),
        }
    }

    /// Ends all, as they would by themselves.
    pub fn end_all(&mut self, why: &str) {
        for number in self.numbers(|_| true) {
            self.end_job(number, why);
        }
    }

    fn end_job(&mut self, number: u32, why: &str) {
        let Some(at) = self.jobs.iter().position(|job| job.number == number) else {
            return;
        };
        let job = self.jobs.swap_remove(at);
        let f = self
            .kernel
            .ledger(number)
            .ok()
            .and_then(|ledger| ledger.fairness);
        let f = f.map_or_else(|| "unknown".to_owned(), |f| format!("{f:.2}"));
        info!(
            "job {number} (serial {}) of uid {} ends: {why}; F {f}",
            job.serial, job.uid
        );
        if let Err(error) = self.kernel.end(number) {
            warn!("job {number} cannot be ended: {error}");
        }
    }

    fn holdings(&self, uid: u32) -> Holdings {
        let numbers = self.numbers(|job| job.uid == uid);
        Holdings {
            nr_jobs: numbers.len() as u64,
            nr_ranks: numbers
                .into_iter()
                .map(|number| self.nr_tasks(number))
                .sum(),
        }
    }

    fn nr_tasks(&self, number: u32) -> u64 {
        self.kernel
            .ledger(number)
            .map_or(0, |ledger| ledger.nr_tasks)
    }

    fn numbers(&self, wanted: impl Fn(&Job) -> bool) -> Vec<u32> {
        let jobs = self.jobs.iter().filter(|job| wanted(job));
        jobs.map(|job| job.number).collect()
    }

    fn job(&self, number: u32) -> Result<&Job, Refusal> {
        let found = self.jobs.iter().find(|job| job.number == number);
        found.ok_or_else(|| no_job(number))
    }

    fn job_mut(&mut self, number: u32) -> Result<&mut Job, Refusal> {
        let found = self.jobs.iter_mut().find(|job| job.number == number);
        found.ok_or_else(|| no_job(number))
    }

    /// The job that @caller means; another user's is as if it were not there.
    fn owned(&self, caller: Caller, number: u32, serial: u64) -> Result<&Job, Refusal> {
        let job = self.job(number)?;
        let theirs = caller.uid == 0 || job.uid == caller.uid;
        if theirs && (serial == 0 || serial == job.serial) {
            Ok(job)
        } else {
            Err(no_job(number))
        }
    }
}

fn no_job(number: u32) -> Refusal {
    Refusal::unknown(format!(
        "no job {number} of yours: `cosched jobs` lists them"
    ))
}

/// By its number, and afterwards it must still be the same.
fn enter_process(kernel: &mut impl Kernel, job: u32, process: &Process) -> Result<(), Refusal> {
    let joined = kernel.join(job, process.pid);
    if process.was_replaced() {
        let line = format!(
            "process {} ended while it joined, and its number was used again",
            process.pid
        );
        return Err(Refusal::unknown(line));
    }
    match joined {
        Err(_) if !process.is_alive() => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

fn whom(job: &Job) -> String {
    match (&job.cgroup, job.root_pid) {
        (Some(watched), _) => format!("cgroup {}", watched.cgroup.path),
        (None, Some(pid)) => format!("process {pid}"),
        (None, None) => "nobody yet".to_owned(),
    }
}

#[cfg(test)]
mod tests;
