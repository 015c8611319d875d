// SPDX-License-Identifier: Apache-2.0
//! The launcher: which MPI starts the ranks, and the command line that does it.
//!
//! A program that the bench launches itself gets one rank count, one pinning and one transport,
//! spelled in the words of the MPI at hand. A command that begins with mpirun already is taken as
//! it is, and its launcher options are kept apart from its program, so that `calcula` can be
//! started in exactly the same way to measure the job's fair share.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::cpus::CpuList;
use crate::fault::Fault;

/// The MPIs that the bench can speak to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mpi {
    /// Open MPI 4 or 5
    Openmpi,
    /// MPICH 4 or 5
    Mpich,
    /// The command is not an MPI program: start it without a launcher
    None,
}

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Transport {
    /// Shared memory
    Shm,
    /// TCP over the loopback device
    Tcp,
}

impl Mpi {
    /// The directory that its build of the workloads has.
    pub fn name(self) -> &'static str {
        match self {
            Self::Openmpi => "openmpi",
            Self::Mpich => "mpich",
            Self::None => "none",
        }
    }

    fn of_version(text: &str) -> Option<Self> {
        let open = text.contains("Open MPI") || text.contains("OpenRTE") || text.contains("PRRTE");
        let hydra = text.contains("HYDRA") || text.contains("MPICH");
        open.then_some(Self::Openmpi)
            .or(hydra.then_some(Self::Mpich))
    }
}

/// An MPI launcher with the options that come before the program.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// Whose launcher it is.
    pub mpi: Mpi,
    /// Name and version.
    pub version: String,
    /// The launcher and its options; empty without a launcher.
    pub prefix: Vec<OsString>,
}

/// A command that begins with a launcher, taken apart.
pub struct Given {
    /// The launcher with its options.
    pub launcher: Launcher,
    /// The program behind it.
    pub job: Vec<OsString>,
    /// The ranks that it asks for.
    pub ranks: Option<u32>,
}

/// How the bench launches a program itself.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Ranks of one job.
    pub ranks: u32,
    /// CPUs of the job.
    pub cpus: CpuList,
    /// Rank i on the i-th CPU.
    pub pin: bool,
}

impl Launcher {
    /// No launcher at all.
    pub fn none() -> Self {
        Self {
            mpi: Mpi::None,
            version: "none".to_owned(),
            prefix: Vec::new(),
        }
    }

    /// The launcher of `wanted`, or of the first MPI found, with options for `placement`.
    pub fn find(wanted: Option<Mpi>, placement: &Placement) -> Result<Self> {
        if wanted == Some(Mpi::None) {
            return Ok(Self::none());
        }
        let found = ["mpirun.openmpi", "mpirun.mpich", "mpirun"]
            .into_iter()
            .filter_map(|name| Some((name, ask_version(name.as_ref())?)))
            .find(|(_, (mpi, _))| wanted.is_none_or(|wanted| wanted == *mpi));
        let Some((name, (mpi, version))) = found else {
            let name = wanted.map_or("Open MPI or MPICH", Mpi::name);
            return Err(Fault::Machine(format!(
                "no launcher of {name} found on PATH: install openmpi-bin or mpich, or give a command that begins with its mpirun"
            ))
            .into());
        };
        let prefix = own_prefix(mpi, name, placement)?;
        Ok(Self {
            mpi,
            version,
            prefix,
        })
    }

    /// Takes `command` apart where it begins with a launcher.
    pub fn split(command: &[OsString]) -> Result<Option<Given>> {
        let name = command
            .first()
            .and_then(|first| Path::new(first).file_name());
        let known = ["mpirun", "mpiexec", "orterun", "prterun"];
        let stem = name
            .and_then(|name| name.to_str())
            .and_then(|name| name.split('.').next());
        if !stem.is_some_and(|stem| known.contains(&stem)) {
            return Ok(None);
        }
        let Some((mpi, version)) = ask_version(&command[0]) else {
            return Err(Fault::Machine(format!(
                "{:?} does not say whose launcher it is (--version): Open MPI and MPICH are known",
                command[0]
            ))
            .into());
        };
        let (program, ranks) = skip_options(command);
        if program >= command.len() {
            return Err(
                Fault::Usage(format!("no program behind the options of {:?}", command[0])).into(),
            );
        }
        let (prefix, target) = command.split_at(program);
        let launcher = Self {
            mpi,
            version,
            prefix: prefix.to_vec(),
        };
        let job = target.to_vec();
        Ok(Some(Given {
            launcher,
            job,
            ranks,
        }))
    }

    /// What to set in the environment of a job.
    pub fn environment(&self, transport: Option<Transport>) -> Vec<(&'static str, &'static str)> {
        let modern = !self.version.contains(" 4.");
        let mut set = match (self.mpi, transport) {
            (Mpi::Openmpi, Some(Transport::Tcp)) => vec![("OMPI_MCA_btl", "self,tcp")],
            (Mpi::Openmpi, Some(Transport::Shm)) if modern => vec![("OMPI_MCA_btl", "self,sm")],
            (Mpi::Openmpi, Some(Transport::Shm)) => vec![("OMPI_MCA_btl", "self,vader")],
            (Mpi::Mpich, Some(Transport::Tcp)) => {
                vec![("UCX_TLS", "tcp"), ("MPIR_CVAR_NOLOCAL", "1")]
            }
            _ => Vec::new(),
        };
        if self.mpi == Mpi::Openmpi && rustix::process::geteuid().is_root() {
            set.push(("OMPI_ALLOW_RUN_AS_ROOT", "1"));
            set.push(("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"));
        }
        set
    }
}

/// `mpirun -n N ...` with what the bench needs: no binding of the launcher's own, more ranks than
/// slots where asked for, and the wrapper that pins.
fn own_prefix(mpi: Mpi, name: &str, placement: &Placement) -> Result<Vec<OsString>> {
    let mut prefix: Vec<OsString> =
        vec![name.into(), "-n".into(), placement.ranks.to_string().into()];
    if mpi == Mpi::Openmpi {
        prefix.extend(["--bind-to", "none"].map(OsString::from));
        if placement.ranks as usize > placement.cpus.0.len() {
            prefix.push("--oversubscribe".into());
        }
    }
    if placement.pin {
        let exe = std::env::current_exe()?;
        prefix.push(exe.into());
        let cpus = placement.cpus.to_string();
        prefix.extend(["exec-pinned", "--by-rank", "--cpus", &cpus, "--"].map(OsString::from));
    }
    Ok(prefix)
}

/// Where the launcher's options end, and the number of ranks among them.
fn skip_options(command: &[OsString]) -> (usize, Option<u32>) {
    const TWO: [&str; 8] = [
        "mca", "gmca", "omca", "pmca", "prtemca", "genv", "env", "tune-mca",
    ];
    const NONE: [&str; 14] = [
        "oversubscribe",
        "nooversubscribe",
        "allow-run-as-root",
        "report-bindings",
        "bind-to-none",
        "bind-to-core",
        "tag-output",
        "timestamp-output",
        "nolocal",
        "v",
        "verbose",
        "q",
        "genvall",
        "l",
    ];
    let mut at = 1;
    let mut ranks = None;
    while let Some(text) = command.get(at).and_then(|word| word.to_str()) {
        let Some(option) = text.strip_prefix("--").or(text.strip_prefix('-')) else {
            break;
        };
        if matches!(option, "n" | "np" | "c") {
            ranks = command.get(at + 1).and_then(|n| n.to_str()?.parse().ok());
        }
        at += match option {
            _ if TWO.contains(&option) => 3,
            _ if NONE.contains(&option) || option.contains('=') => 1,
            _ => 2,
        };
    }
    (at, ranks)
}

fn ask_version(launcher: &std::ffi::OsStr) -> Option<(Mpi, String)> {
    let output = Command::new(launcher).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mpi = Mpi::of_version(&text)?;
    let mut lines = text.lines().map(str::trim);
    let version = match mpi {
        Mpi::Openmpi => {
            let number = lines.next().and_then(|line| line.split(' ').next_back());
            format!("Open MPI {}", number.unwrap_or_default())
        }
        _ => lines
            .find_map(|line| line.strip_prefix("Version:"))
            .map_or_else(String::new, |version| format!("MPICH {}", version.trim())),
    };
    Some((mpi, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_program_is_found_behind_the_options() {
        for (line, at, ranks) in [
            ("mpirun -n 4 lmp -in in.melt", 3, Some(4)),
            (
                "mpirun --oversubscribe -np 8 --mca btl self,tcp ./a -n 3",
                7,
                Some(8),
            ),
            ("mpiexec -genv A b -l -n 2 ./a", 7, Some(2)),
            ("mpirun --bind-to core ./a", 3, None),
            ("mpirun -n 4", 3, Some(4)),
        ] {
            assert_eq!(skip_options(&words(line)), (at, ranks), "{line}");
        }
    }

    #[test]
    fn a_bare_program_has_no_launcher() {
        assert!(Launcher::split(&words("./lmp -in in.melt"))
            .unwrap()
            .is_none());
    }

    #[test]
    fn versions_tell_the_mpis_apart() {
        assert_eq!(
            Mpi::of_version("mpirun (Open MPI) 4.1.4\n"),
            Some(Mpi::Openmpi)
        );
        assert_eq!(
            Mpi::of_version("HYDRA build details:\n Version: 4.0.2"),
            Some(Mpi::Mpich)
        );
        assert_eq!(Mpi::of_version("slurm 22.05"), None);
    }

    #[test]
    fn oversubscription_and_pinning_are_spelled_out() {
        let cpus = CpuList(vec![0, 1]);
        let wide = Placement {
            ranks: 4,
            cpus: cpus.clone(),
            pin: false,
        };
        let prefix = own_prefix(Mpi::Openmpi, "mpirun.openmpi", &wide).unwrap();
        assert_eq!(
            prefix,
            words("mpirun.openmpi -n 4 --bind-to none --oversubscribe")
        );
        let pinned = Placement {
            ranks: 2,
            cpus,
            pin: true,
        };
        let prefix = own_prefix(Mpi::Mpich, "mpirun.mpich", &pinned).unwrap();
        assert_eq!(prefix[..3], words("mpirun.mpich -n 2"));
        assert_eq!(prefix[4..], words("exec-pinned --by-rank --cpus 0,1 --"));
    }
}
