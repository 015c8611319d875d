// SPDX-License-Identifier: Apache-2.0
//! The kernel body behind the trait: crates/loader's, in the daemon's words.
//!
//! Nothing is decided here. What the kernel counts by number gets its word.

use crate::config::Scheduling;
use crate::kernel::{Ejection, Error, Kernel};
use cosched_control::{
    document::{Count, Ledger, Offer, Rank},
    Mode,
};
use cosched_loader as loader;
use cosched_model::Nanos;
use cosched_policy::{words, Params};
use std::{collections::BTreeMap, os::fd::OwnedFd};

/// `enum scx_exit_kind`: somebody detached it, or pressed SysRq-S.
const ON_REQUEST: [u64; 2] = [64, 67];

/// The programs in the kernel, as long as it lives.
pub struct Attached {
    body: loader::Body,
    offers: Vec<Offer>,
}

/// What is missing even for an observer; nothing: [`attach`] may be tried.
pub fn lack() -> Option<String> {
    loader::Offers::probe().lack().map(str::to_owned)
}

/// The scheduler where that is possible and wanted, else an observer.
pub fn attach(scheduling: &Scheduling, observe_only: bool) -> Result<Attached, Error> {
    // Before attaching: afterwards it is we who are in the way of another scheduler.
    let offers = loader::Offers::probe().0.into_iter().map(|offer| Offer {
        name: offer.name.to_owned(),
        found: offer.found,
        missing: offer.missing,
    });
    let offers = offers.collect();
    let body = loader::Body::attach(&scheduling.into(), observe_only)?;
    Ok(Attached { body, offers })
}

impl From<&Scheduling> for loader::Config {
    fn from(scheduling: &Scheduling) -> Self {
        loader::Config {
            slice: Nanos(scheduling.slice_ns),
            max_debt: Nanos(scheduling.max_debt_ns),
            credit: Nanos(scheduling.credit_ns),
            granularity: Nanos(scheduling.granularity_ns),
            kick_gap: Nanos(scheduling.kick_gap_ns),
            balance: Nanos(scheduling.balance_ns),
        }
    }
}

impl From<loader::Error> for Error {
    fn from(error: loader::Error) -> Self {
        match error {
            loader::Error::NoRoom(most) => Error::NoRoom(u32::try_from(most).unwrap_or(u32::MAX)),
            other => Error::Failed(other.to_string()),
        }
    }
}

impl Kernel for Attached {
    fn mode(&self) -> Mode {
        match self.body.mode() {
            loader::Mode::Observe => Mode::Observe,
            loader::Mode::Schedule => Mode::Schedule,
        }
    }

    fn why_observe(&self) -> Option<String> {
        self.body.why_observe().map(str::to_owned)
    }

    fn offers(&self) -> Vec<Offer> {
        self.offers.clone()
    }

    fn begin(&mut self, params: &Params, boost_gap_ns: u64) -> Result<u32, Error> {
        Ok(self.body.begin(params, boost_gap_ns)?.0)
    }

    fn set_params(&mut self, job: u32, params: &Params) -> Result<(), Error> {
        Ok(self.body.set_params(loader::JobNumber(job), params)?)
    }

    fn join(&mut self, job: u32, pid: u32) -> Result<u32, Error> {
        Ok(self.body.join(loader::JobNumber(job), pid)?)
    }

    fn end(&mut self, job: u32) -> Result<(), Error> {
        Ok(self.body.end(loader::JobNumber(job))?)
    }

    fn ledger(&self, job: u32) -> Result<Ledger, Error> {
        let ledger = self.body.ledger(loader::JobNumber(job))?;
        match ledger.serial {
            0 => Err(Error::Failed(format!("the kernel body has no job {job}"))),
            _ => Ok(in_words(&ledger)),
        }
    }

    fn counts(&self) -> Result<Vec<Count>, Error> {
        let counts = self.body.counts()?.into_iter();
        let counts = counts.map(|(count, value)| Count {
            name: count.word.to_owned(),
            value,
            meaning: count.meaning.to_owned(),
        });
        Ok(counts.collect())
    }

    fn members(&self) -> Result<Vec<Rank>, Error> {
        let members = self.body.members()?.into_iter();
        let ranks = members.map(|member| Rank {
            job: member.job,
            tgid: member.tgid,
            tid: member.tid,
            comm: member.comm,
            ran_ns: Nanos(member.ran_ns),
            due_ns: Nanos(member.due_ns),
            wanted_ns: Nanos(member.wanted_ns),
            nr_boosts: member.nr_boosts,
            nr_denied: member.nr_denied,
            last_reason: member.last_reason.to_owned(),
            running: member.running,
            cpu: member.cpu,
        });
        Ok(ranks.collect())
    }

    fn oncpu(&self) -> Result<OwnedFd, Error> {
        Ok(self.body.oncpu()?)
    }

    fn ejected(&mut self) -> Option<Ejection> {
        let exit = self.body.ejected()?;
        let words = [exit.reason.trim(), exit.message.trim()];
        let said = words.iter().filter(|word| !word.is_empty());
        let said: Vec<&str> = said.flat_map(|word| word.lines()).collect();
        Some(Ejection {
            on_request: ON_REQUEST.contains(&exit.kind),
            again: exit.asks_for_restart(),
            why: said.join(": "),
        })
    }

    fn attach_again(&mut self) -> Result<(), Error> {
        Ok(self.body.attach_again()?)
    }
}

fn in_words(ledger: &loader::Ledger) -> Ledger {
    let (ran, due) = (Nanos(ledger.ran_ns), Nanos(ledger.due_ns));
    let reasons = words::REASONS;
    let mut shown = Ledger {
        nr_tasks: ledger.nr_tasks,
        nr_joined: ledger.nr_joined,
        ran_ns: ran,
        wanted_ns: Nanos(ledger.wanted_ns),
        due_ns: due,
        fairness: (due.0 > 0).then(|| ran.share_of(due)),
        nr_boosts: ledger.nr_boosts,
        nr_served: ledger.nr_served,
        nr_expired: ledger.nr_expired,
        nr_yields: ledger.nr_yields,
        nr_stayed: ledger.nr_stayed,
        nr_migrations: ledger.nr_migrations,
        seen: named(&loader::SEEN, &ledger.nr_seen),
        boosted: named(reasons, &ledger.why_boosted),
        denied: named(reasons, &ledger.why_denied),
        run_delay: ledger.run_delay.to_vec(),
        ..Ledger::default()
    };
    shown.run_delay_p50_below_ns = shown.run_delay_below(50);
    shown.run_delay_p99_below_ns = shown.run_delay_below(99);
    shown
}

/// Those that are not 0.
fn named(words: &[&str], numbers: &[u64]) -> BTreeMap<String, u64> {
    let pairs = words.iter().zip(numbers).filter(|(_, nr)| **nr > 0);
    pairs.map(|(word, nr)| ((*word).to_owned(), *nr)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Sources};

    #[test]
    fn the_defaults_of_the_file_are_the_bodys_own() {
        let config = Config::read(&Sources {
            file: Some("/dev/null".into()),
            ..Sources::default()
        });
        let ours = loader::Config::from(&config.unwrap().scheduling());
        assert_eq!(ours, loader::Config::default());
        ours.check().unwrap();
    }

    #[test]
    fn numbers_get_their_words() {
        let mut ledger = loader::Ledger {
            ran_ns: 3,
            due_ns: 2,
            ..loader::Ledger::default()
        };
        ledger.nr_seen[1] = 5;
        ledger.run_delay[2] = 1;
        let shown = in_words(&ledger);
        assert_eq!(shown.fairness, Some(1.5));
        assert_eq!(shown.seen, BTreeMap::from([("wake".to_owned(), 5)]));
        assert_eq!(shown.run_delay_p50_below_ns, Some(Nanos(4096)));
        assert_eq!(in_words(&loader::Ledger::default()).fairness, None);
    }
}
