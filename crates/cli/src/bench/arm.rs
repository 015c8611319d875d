// SPDX-License-Identifier: Apache-2.0
//! Arms: the ways of running one and the same job that are compared.
//!
//! Words that mean a setting of the MPI library, or nothing at all, are known here; any other word
//! is a policy for `cosched run`, which knows presets, files and shorthands itself.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::Path;
use std::str::FromStr;

use anyhow::Result;

use super::launch::Mpi;
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
    /// Under `cosched run --policy` with this word.
    Policy(String),
}

impl FromStr for Arm {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Infallible> {
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
        f.write_str(match self {
            Self::Stock => "stock",
            Self::Yield => "yield",
            Self::Spin => "spin",
            Self::Batch => "batch",
            Self::Policy(word) => word,
        })
    }
}

impl Arm {
    /// Refuses what `mpi` cannot do, a policy that `cosched run` would refuse, and `batch` where
    /// there is only one program.
    pub fn check(&self, mpi: Mpi, nr_programs: usize) -> Result<()> {
        let line = match self {
            Self::Yield | Self::Spin if mpi != Mpi::Openmpi => format!(
                "arm `{self}` is a setting of Open MPI and does nothing with {}: leave it out or say --mpi openmpi",
                mpi.name()
            ),
            Self::Batch if nr_programs < 2 => {
                "arm `batch` runs programs one after another: give a second one by --beside or --jobs 2".to_owned()
            }
            Self::Policy(word) => return policy::load(word).map(drop),
            _ => return Ok(()),
        };
        Err(Fault::Usage(line).into())
    }

    /// What it sets in the environment.
    pub fn environment(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Yield => Some(("OMPI_MCA_mpi_yield_when_idle", "1")),
            Self::Spin => Some(("OMPI_MCA_mpi_yield_when_idle", "0")),
            _ => None,
        }
    }

    /// What it puts in front of the launcher; the report of cosched goes to `report`.
    pub fn prefix(&self, cosched: &Path, report: &Path) -> Vec<OsString> {
        let Self::Policy(word) = self else {
            return Vec::new();
        };
        let mut prefix: Vec<OsString> = vec![cosched.into(), "run".into(), "--policy".into()];
        prefix.extend([word.into(), "--report=json".into(), "--report-to".into()]);
        prefix.extend([report.into(), "--".into()]);
        prefix
    }
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
        ] {
            let arm: Arm = word.parse().unwrap();
            assert_eq!(arm.to_string(), word);
            assert_eq!(
                matches!(arm, Arm::Policy(_)),
                arm.prefix("c".as_ref(), "r".as_ref()).len() == 8
            );
        }
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
