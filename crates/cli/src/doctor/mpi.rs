// SPDX-License-Identifier: Apache-2.0
//! Which MPIs are here, and does the preloaded library find its wait point in them?
//!
//! Open MPI is hooked where it can be told to yield (libopen-pal), MPICH where
//! it imports UCX's progress call. Both are names in the string table of a
//! library, which is all that is looked at: nothing of an MPI is loaded.

use super::Fact;
use crate::run::launch;
use serde::Serialize;
use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const LAUNCHERS: [&str; 5] = [
    "mpirun.openmpi",
    "mpirun.mpich",
    "mpirun",
    "mpiexec",
    "prterun",
];
const OPEN_PAL: &str = "libopen-pal.so";
const MPICH: [&str; 2] = ["libmpich.so", "libmpi.so"];

/// One installation.
#[derive(Clone, Debug, Serialize)]
pub struct Mpi {
    launcher: PathBuf,
    name: &'static str,
    version: String,
    library: Option<PathBuf>,
    /// The function that a waiting rank calls; none = ranks stay passive.
    hook: Option<&'static str>,
}

impl Mpi {
    /// As one line.
    pub fn fact(&self) -> Fact {
        let name = format!("{} {}", self.name, self.version);
        let found = self.launcher.display().to_string();
        match (&self.library, self.hook) {
            (_, Some(hook)) => Fact::ok(name, format!("{found}, waits in {hook}")),
            (None, None) => Fact::note(
                name,
                format!("{found}, its library was not found"),
                "cosched run --report says whether a wait point fires",
            ),
            (Some(library), None) => Fact::missing(
                name,
                format!("{found}, no wait point in {}", library.display()),
                "its ranks run as without cosched: use Open MPI, or an MPICH built --with-device=ch4:ucx",
            ),
        }
    }

    /// Can the preloaded library do something for its ranks?
    pub fn is_hooked(&self) -> bool {
        self.hook.is_some()
    }
}

/// Every MPI with a launcher in PATH, once.
pub fn find() -> Vec<Mpi> {
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut found = Vec::new();
    for name in LAUNCHERS {
        let Some(launcher) = launch::which(OsStr::new(name)) else {
            continue;
        };
        let Ok(real) = launcher.canonicalize() else {
            continue;
        };
        if !seen.contains(&real) {
            found.extend(inspect(launcher, &real));
            seen.push(real);
        }
    }
    found
}

fn inspect(launcher: PathBuf, real: &Path) -> Option<Mpi> {
    let output = Command::new(&launcher)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let (name, version) = identify(&said)?;
    let dirs = library_dirs(real);
    let (library, hook) = if name == "MPICH" {
        let library = MPICH.iter().find_map(|stem| library(&dirs, stem));
        (
            library,
            ("ucp_worker_progress", ["ucp_worker_progress", "libucp.so"]),
        )
    } else {
        let yields = "opal_progress_set_yield_when_idle";
        (
            library(&dirs, OPEN_PAL),
            ("sched_yield", [yields, "sched_yield"]),
        )
    };
    let holds = |library: &PathBuf| {
        fs::read(library).is_ok_and(|image| hook.1.iter().all(|name| contains(&image, name)))
    };
    let hook = library
        .as_ref()
        .filter(|library| holds(library))
        .map(|_| hook.0);
    Some(Mpi {
        launcher,
        name,
        version,
        library,
        hook,
    })
}

/// From what `mpirun --version` says.
fn identify(said: &str) -> Option<(&'static str, String)> {
    let first = said.lines().next()?;
    if first.contains("Open MPI") || first.contains("OpenRTE") {
        let version = first.split_whitespace().last()?;
        return Some(("Open MPI", version.to_owned()));
    }
    let version = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("Version:"))?;
    said.contains("HYDRA")
        .then(|| ("MPICH", version.trim().to_owned()))
}

/// Beside the launcher first: several MPIs may be installed.
fn library_dirs(launcher: &Path) -> Vec<PathBuf> {
    let prefix = launcher
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("/usr"));
    let triple = format!("{}-linux-gnu", env::consts::ARCH);
    let mut dirs: Vec<PathBuf> = ["lib", "lib64"]
        .iter()
        .map(|lib| prefix.join(lib))
        .collect();
    dirs.push(prefix.join("lib").join(&triple));
    dirs.extend(
        env::var_os("LD_LIBRARY_PATH")
            .iter()
            .flat_map(env::split_paths),
    );
    dirs.push(Path::new("/usr/lib").join(triple));
    dirs
}

fn library(dirs: &[PathBuf], stem: &str) -> Option<PathBuf> {
    let in_dir = |dir: &PathBuf| {
        let mut names: Vec<PathBuf> = fs::read_dir(dir)
            .ok()?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| {
                path.file_name()
                    .is_some_and(|n| n.to_string_lossy().starts_with(stem))
            })
            .collect();
        names.sort();
        names.pop()
    };
    dirs.iter().find_map(in_dir)
}

fn contains(image: &[u8], name: &str) -> bool {
    image
        .windows(name.len())
        .any(|window| window == name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_launchers_apart() {
        let openmpi = "mpirun.openmpi (OpenRTE) 4.1.4\n\nReport bugs to";
        assert_eq!(identify(openmpi), Some(("Open MPI", "4.1.4".into())));
        assert_eq!(
            identify("mpirun (Open MPI) 5.0.7"),
            Some(("Open MPI", "5.0.7".into()))
        );
        let hydra = "HYDRA build details:\n    Version:      4.0.2\n";
        assert_eq!(identify(hydra), Some(("MPICH", "4.0.2".into())));
        assert_eq!(identify("Intel(R) MPI Library"), None);
        assert_eq!(identify(""), None);
    }

    #[test]
    fn finds_a_hook_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(
            dir.path().join("libmpich.so.12"),
            b"\x7fELF\0ucp_worker_progress\0libucp.so.0\0",
        )
        .unwrap();
        let found = library(&[dir.path().to_owned()], "libmpich.so").unwrap();
        let image = fs::read(found).unwrap();
        assert!(contains(&image, "ucp_worker_progress"));
        assert!(!contains(&image, "fi_cq_read"));
    }
}
