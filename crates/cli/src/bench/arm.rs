// SPDX-License-Identifier: Apache-2.0
//! Arms: the ways of running one and the same job that are compared.
//!
//! Words that mean a setting of the MPI library, or nothing at all, are known here; any other word
//! is a policy for `cosched run`, which knows presets, files and shorthands itself. `kernel:` and
//! `kernel+shim:` before a policy say which bodies give it: under `kernel:` the ranks are as in
//! `stock`, and coschedd alone acts. All other arms have the kernel's own scheduler, but those of
//! `--scheduler`: `stock` under that one.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Result;
use cosched_policy::Body;

use super::launch::Mpi;
use super::scheduler::Scheduler;
use crate::fault::Fault;
use crate::policy;

/// One way of running the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arm {
    /// As it is.
    Stock,
    /// Open MPI told to yield when idle.
    Yield,
    /// Open MPI told not to yield when idle.
    Spin,
    /// As it is, but all programs one after another.
    Batch,
    /// Under `cosched run --policy` with this word, without coschedd.
    Policy(String),
    /// A job of coschedd's under this policy; its ranks are as they are.
    Kernel(String),
    /// Under `cosched run` with this policy, and coschedd.
    KernelShim(String),
    /// As it is, under this other sched_ext scheduler.
    Under(PathBuf),
}

impl FromStr for Arm {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Infallible> {
        if let Some(policy) = word.strip_prefix("kernel:") {
            return Ok(Self::Kernel(policy.to_owned()));
        }
        if let Some(policy) = word.strip_prefix("kernel+shim:") {
            return Ok(Self::KernelShim(policy.to_owned()));
        }
        Ok(match word {
            "stock" => Self::Stock,
            "yield" => Self::Yield,
            "spin" => Self::Spin,
            "batch" => Self::Batch,
            _ => Self::Policy(word.to_owned()),
        })
    }
}

impl std::fmt::Display for Arm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stock => f.write_str("stock"),
            Self::Yield => f.write_str("yield"),
            Self::Spin => f.write_str("spin"),
            Self::Batch => f.write_str("batch"),
            Self::Policy(word) => f.write_str(word),
            Self::Kernel(word) => write!(f, "kernel:{word}"),
            Self::KernelShim(word) => write!(f, "kernel+shim:{word}"),
            Self::Under(_) => self.scheduler().fmt(f),
        }
    }
}

impl Arm {
    /// Who schedules while it runs.
    pub fn scheduler(&self) -> Scheduler {
        match self {
            Self::Kernel(_) | Self::KernelShim(_) => Scheduler::Cosched,
            Self::Under(path) => Scheduler::Other(path.clone()),
            _ => Scheduler::Stock,
        }
    }

    /// Refuses what `mpi` or this machine cannot do, a policy that `cosched run` would refuse, and
    /// `batch` where there is only one program.
    pub fn check(&self, mpi: Mpi, nr_programs: usize) -> Result<()> {
        self.scheduler().check(self)?;
        let line = match self {
            Self::Yield | Self::Spin if mpi != Mpi::Openmpi => format!(
                "arm `{self}` is a setting of Open MPI and does nothing with {}: leave it out or say --mpi openmpi",
                mpi.name()
            ),
            Self::Batch if nr_programs < 2 => {
                "arm `batch` runs programs one after another: give a second one by --beside or --jobs 2".to_owned()
            }
            Self::Policy(word) => return settles(word, &[Body::Shim]),
            Self::Kernel(word) | Self::KernelShim(word) => {
                return settles(word, &[Body::Shim, Body::Kernel])
            }
            _ => return Ok(()),
        };
        Err(Fault::Usage(line).into())
    }

    /// What it sets in the environment.
    pub fn environment(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Yield => Some(("OMPI_MCA_mpi_yield_when_idle", "1")),
            Self::Spin => Some(("OMPI_MCA_mpi_yield_when_idle", "0")),
            Self::Policy(_) => Some(("COSCHED_DAEMON", "off")),
            Self::Kernel(_) | Self::KernelShim(_) => Some(("COSCHED_DAEMON", "on")),
            _ => None,
        }
    }

    /// What it puts in front of the launcher; the report of cosched goes to `report`.
    pub fn prefix(&self, cosched: &Path, report: &Path) -> Vec<OsString> {
        let (word, options): (_, Vec<OsString>) = match self {
            Self::Policy(word) | Self::KernelShim(word) => (
                word,
                vec!["--report=json".into(), "--report-to".into(), report.into()],
            ),
            Self::Kernel(word) => (word, vec!["--no-shim".into()]),
            _ => return Vec::new(),
        };
        let mut prefix: Vec<OsString> = vec![cosched.into(), "run".into(), "--policy".into()];
        prefix.push(word.into());
        prefix.extend(options);
        prefix.push("--".into());
        prefix
    }
}

/// Whether the policy that @word names can run with these bodies.
fn settles(word: &str, bodies: &[Body]) -> Result<()> {
    policy::settle(&policy::read(word)?, bodies).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_arms_and_back() {
        for word in [
            "stock",
            "yield",
            "spin",
            "batch",
            "auto",
            "spin_block:50us",
            "./my.toml",
            "kernel:dcs-spin",
            "kernel+shim:auto",
        ] {
            let arm: Arm = word.parse().unwrap();
            assert_eq!(arm.to_string(), word);
            assert_eq!(
                matches!(arm, Arm::Policy(_) | Arm::KernelShim(_)),
                arm.prefix("c".as_ref(), "r".as_ref()).len() == 8
            );
        }
    }

    #[test]
    fn each_arm_has_its_scheduler() {
        let of = |word: &str| word.parse::<Arm>().unwrap().scheduler();
        for word in ["stock", "yield", "auto", "batch"] {
            assert_eq!(of(word), Scheduler::Stock, "{word}");
        }
        assert_eq!(of("kernel:auto"), Scheduler::Cosched);
        assert_eq!(of("kernel+shim:auto"), Scheduler::Cosched);
        let path: PathBuf = "/opt/scx_simple".into();
        let under = Arm::Under(path.clone());
        assert_eq!(under.scheduler(), Scheduler::Other(path));
        assert_eq!(under.to_string(), "scx_simple");
    }

    #[test]
    fn under_the_kernel_body_alone_ranks_are_as_they_are() {
        let prefix = Arm::Kernel("auto".into()).prefix("c".as_ref(), "r".as_ref());
        assert_eq!(prefix, ["c", "run", "--policy", "auto", "--no-shim", "--"]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(Arm::Yield.check(Mpi::Openmpi, 1).is_ok());
        assert!(Arm::Yield.check(Mpi::Mpich, 1).is_err());
        assert!(Arm::Policy("nosuch".into()).check(Mpi::Mpich, 1).is_err());
        assert!(Arm::Batch.check(Mpi::Mpich, 1).is_err());
        assert!(Arm::Batch.check(Mpi::Mpich, 2).is_ok());
    }
}
