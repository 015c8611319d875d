// SPDX-License-Identifier: Apache-2.0
//! A kernel body of memory, for tests: it remembers what it was told, and takes
//! processes for tasks.

use crate::kernel::{Ejection, Error, Kernel};
use cosched_control::{
    document::{Count, Ledger, Offer, Rank},
    Mode,
};
use cosched_policy::Params;
use std::{
    collections::BTreeMap,
    os::fd::OwnedFd,
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
};

/// A job as it was told.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub params: Params,
    pub boost_gap_ns: u64,
    pub pids: Vec<u32>,
}

#[derive(Debug, Default)]
pub struct State {
    pub jobs: BTreeMap<u32, Told>,
    pub observes: bool,
    pub refuses: bool,
    pub ejection: Option<Ejection>,
    pub nr_attached_again: u32,
    pub nr_ranks_shown: u32,
    pub published: Option<OwnedFd>,
}

/// Clones are the same body.
#[derive(Clone, Debug, Default)]
pub struct Fake(Arc<Mutex<State>>);

impl Fake {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

fn failed(job: u32) -> Error {
    Error::Failed(format!("job {job} is not there"))
}

impl Kernel for Fake {
    fn mode(&self) -> Mode {
        match self.state().observes {
            true => Mode::Observe,
            false => Mode::Schedule,
        }
    }

    fn why_observe(&self) -> Option<String> {
        let observes = self.state().observes;
        observes.then(|| "this kernel has no sched_ext".to_owned())
    }

    fn offers(&self) -> Vec<Offer> {
        vec![Offer {
            name: "BTF".to_owned(),
            found: "there".to_owned(),
            missing: None,
        }]
    }

    fn begin(&mut self, params: &Params, boost_gap_ns: u64) -> Result<u32, Error> {
        let mut state = self.state();
        let free = (1..64).find(|job| !state.jobs.contains_key(job));
        let job = free.ok_or(Error::NoRoom(63))?;
        let told = Told {
            params: *params,
            boost_gap_ns,
            pids: Vec::new(),
        };
        state.jobs.insert(job, told);
        Ok(job)
    }

    fn set_params(&mut self, job: u32, params: &Params) -> Result<(), Error> {
        self.state()
            .jobs
            .get_mut(&job)
            .ok_or_else(|| failed(job))?
            .params = *params;
        Ok(())
    }

    fn join(&mut self, job: u32, pid: u32) -> Result<u32, Error> {
        self.state()
            .jobs
            .get_mut(&job)
            .ok_or_else(|| failed(job))?
            .pids
            .push(pid);
        Ok(1)
    }

    fn end(&mut self, job: u32) -> Result<(), Error> {
        self.state()
            .jobs
            .remove(&job)
            .map(drop)
            .ok_or_else(|| failed(job))
    }

    fn ledger(&self, job: u32) -> Result<Ledger, Error> {
        let state = self.state();
        let told = state.jobs.get(&job).ok_or_else(|| failed(job))?;
        let alive = |pid: &&u32| Path::new(&format!("/proc/{pid}")).exists();
        Ok(Ledger {
            nr_tasks: told.pids.iter().filter(alive).count() as u64,
            nr_joined: told.pids.len() as u64,
            ..Ledger::default()
        })
    }

    fn counts(&self) -> Result<Vec<Count>, Error> {
        Ok(vec![Count {
            name: "switches".to_owned(),
            value: 7,
            meaning: "a task came on a CPU".to_owned(),
        }])
    }

    fn members(&self) -> Result<Vec<Rank>, Error> {
        let state = self.state();
        let jobs = state.jobs.iter();
        let real = jobs.flat_map(|(job, told)| told.pids.iter().map(|pid| (*job, *pid)));
        let many = (0..state.nr_ranks_shown).map(|tid| (1, 100_000 + tid));
        let ranks = real.chain(many).map(|(job, tid)| Rank {
            job,
            tgid: tid,
            tid,
            comm: "a-name-as-long-".to_owned(),
            ran_ns: Default::default(),
            due_ns: Default::default(),
            wanted_ns: Default::default(),
            nr_boosts: 0,
            nr_denied: 0,
            last_reason: "unknown".to_owned(),
            running: false,
            cpu: 0,
        });
        Ok(ranks.collect())
    }

    fn oncpu(&self) -> Result<OwnedFd, Error> {
        let found = self.state().published.as_ref().map(OwnedFd::try_clone);
        let fd = found.ok_or_else(|| Error::Failed("nothing is published".to_owned()))?;
        fd.map_err(|error| Error::Failed(error.to_string()))
    }

    fn ejected(&mut self) -> Option<Ejection> {
        self.state().ejection.take()
    }

    fn attach_again(&mut self) -> Result<(), Error> {
        let mut state = self.state();
        if state.refuses {
            return Err(Error::Failed("another scheduler is attached".to_owned()));
        }
        state.nr_attached_again += 1;
        Ok(())
    }
}
