// SPDX-License-Identifier: Apache-2.0
//! What the command is given so that its ranks find us, and only that.
//!
//! Five variables and a preload, nothing else. mpirun of Open MPI hands
//! its ranks on this node its whole environment, but those on other nodes
//! only what `-x` names; hydra and srun pass everything by themselves. The
//! variables switch nothing on in a process that is not a rank.

use crate::fault::Fault;
use anyhow::Result;
use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const SHIM: &str = "libcosched.so";
/// What ranks on other nodes need.
const PASSED: [&str; 5] = [
    "LD_PRELOAD",
    "COSCHED_KEEPER",
    "COSCHED_EXE",
    "COSCHED_PARAMS",
    "COSCHED_SLICE_US",
];
/// Open MPI's launcher after its links are followed. A name of several MPIs is asked.
const OPEN_MPI: [&str; 2] = ["orterun", "prterun"];
const AMBIGUOUS: [&str; 2] = ["mpirun", "mpiexec"];
/// What the names of launchers that take variables for ranks begin with.
const LAUNCHERS: [&str; 4] = ["mpirun", "mpiexec", "orterun", "prterun"];

/// What a job is started with.
pub struct Kit {
    /// libcosched.so.
    pub shim: PathBuf,
    /// The keeper's socket.
    pub socket: PathBuf,
    /// `struct cos_params` in hexadecimal digits.
    pub params_hex: String,
    /// Asked of the kernel for each rank; 0 = none.
    pub slice_us: u32,
}

/// The preloaded library: beside this program, where it is installed, or where we are told.
pub fn find_shim() -> Result<PathBuf> {
    let beside = env::current_exe()?;
    let beside = beside.parent().unwrap_or(Path::new("/"));
    let told = env::var_os("COSCHED_SHIM").map(PathBuf::from);
    let places = [
        Some(beside.join(SHIM)),
        Some(beside.join("../lib/cosched").join(SHIM)),
        told,
    ];
    let found = places
        .into_iter()
        .flatten()
        .find(|path| path.is_file())
        .ok_or_else(|| {
            Fault::Machine(format!(
            "{SHIM} is neither in {} nor in ../lib/cosched: install it there, or set COSCHED_SHIM",
            beside.display()
        ))
        })?;
    let found = found.canonicalize()?;
    if found
        .as_os_str()
        .as_bytes()
        .iter()
        .any(|b| b.is_ascii_whitespace() || *b == b':')
    {
        let line = "its path has a blank or a colon, which LD_PRELOAD cannot hold: move it";
        return Err(Fault::Machine(format!("{}: {line}", found.display())).into());
    }
    Ok(found)
}

/// The command as it will be started.
pub fn prepare(argv: &[OsString], kit: &Kit) -> Result<Command> {
    let (program, rest) = argv.split_first().expect("clap requires one");
    let mut command = Command::new(program);
    // Any step between fork and exec makes std use execvp(), which gives a script
    // without an interpreter line to /bin/sh as every launcher does; posix_spawn() does not.
    // SAFETY: it does nothing.
    unsafe { command.pre_exec(|| Ok(())) };
    if is_open_mpi(program) {
        command.args(PASSED.iter().flat_map(|name| ["-x", name]));
    }
    command
        .args(behind_ours(program, rest, &kit.shim))
        .env("LD_PRELOAD", preload(&kit.shim, env::var_os("LD_PRELOAD")))
        .env("COSCHED_KEEPER", &kit.socket)
        .env("COSCHED_EXE", env::current_exe()?)
        .env("COSCHED_PARAMS", &kit.params_hex)
        .env("COSCHED_SLICE_US", kit.slice_us.to_string());
    Ok(command)
}

/// Ours first: it chains to what comes after it. Never twice, as in a run inside a run.
fn preload(shim: &Path, existing: Option<OsString>) -> OsString {
    let mut all = shim.as_os_str().to_owned();
    for other in existing
        .unwrap_or_default()
        .as_bytes()
        .split(|b| matches!(b, b':' | b' '))
    {
        if !other.is_empty() && other != shim.as_os_str().as_bytes() {
            all.push(":");
            all.push(OsStr::from_bytes(other));
        }
    }
    all
}

/// A preload that the user gives to a launcher's ranks would replace ours: put it behind.
fn behind_ours(program: &OsStr, rest: &[OsString], shim: &Path) -> Vec<OsString> {
    let mut rest = rest.to_vec();
    let name = Path::new(program)
        .file_name()
        .map(OsStr::as_bytes)
        .unwrap_or_default();
    if !LAUNCHERS
        .iter()
        .any(|launcher| name.starts_with(launcher.as_bytes()))
    {
        return rest;
    }
    for i in 1..rest.len() {
        let pair = rest[i]
            .as_bytes()
            .strip_prefix(b"LD_PRELOAD=")
            .filter(|_| rest[i - 1] == "-x");
        let is_triple = i > 1
            && rest[i - 1] == "LD_PRELOAD"
            && (rest[i - 2] == "-genv" || rest[i - 2] == "-env");
        if let Some(theirs) = pair {
            let theirs = OsStr::from_bytes(theirs).to_owned();
            rest[i] = OsString::from("LD_PRELOAD=");
            rest[i].push(preload(shim, Some(theirs)));
        } else if is_triple {
            rest[i] = preload(shim, Some(rest[i].clone()));
        }
    }
    rest
}

fn is_open_mpi(program: &OsStr) -> bool {
    let Some(path) = which(program).and_then(|path| path.canonicalize().ok()) else {
        return false;
    };
    let Some(name) = path.file_name().and_then(OsStr::to_str) else {
        return false;
    };
    OPEN_MPI.contains(&name) || AMBIGUOUS.contains(&name) && says_open_mpi(&path)
}

fn says_open_mpi(path: &Path) -> bool {
    let output = Command::new(path)
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("Open MPI"))
}

/// The file that would be executed.
pub fn which(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(program));
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn comes_first_in_the_preload_and_only_once() {
        let shim = Path::new("/l/libcosched.so");
        for (existing, expected) in [
            (None, "/l/libcosched.so"),
            (Some("/a.so b.so"), "/l/libcosched.so:/a.so:b.so"),
            (Some("/a.so:/l/libcosched.so"), "/l/libcosched.so:/a.so"),
        ] {
            assert_eq!(preload(shim, existing.map(OsString::from)), expected);
        }
    }

    #[test]
    fn a_preload_for_ranks_goes_behind_ours() {
        let changed = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let rest = behind_ours(&words[0], &words[1..], Path::new("/l.so"));
            rest.join(OsStr::new(" ")).into_string().unwrap()
        };
        assert_eq!(
            changed("/bin/mpirun -x LD_PRELOAD=a.so -x B app"),
            "-x LD_PRELOAD=/l.so:a.so -x B app"
        );
        assert_eq!(
            changed("mpiexec -genv LD_PRELOAD a.so app"),
            "-genv LD_PRELOAD /l.so:a.so app"
        );
        assert_eq!(changed("mpirun -x LD_PRELOAD app"), "-x LD_PRELOAD app");
        assert_eq!(changed("tool -x LD_PRELOAD=a.so"), "-x LD_PRELOAD=a.so");
    }

    #[test]
    fn knows_open_mpi_behind_its_links() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("orterun"), "").unwrap();
        std::fs::write(dir.path().join("mpiexec.hydra"), "").unwrap();
        symlink("orterun", dir.path().join("mpirun")).unwrap();
        symlink("mpiexec.hydra", dir.path().join("mpiexec")).unwrap();
        assert!(is_open_mpi(dir.path().join("mpirun").as_os_str()));
        assert!(!is_open_mpi(dir.path().join("mpiexec").as_os_str()));
        assert!(!is_open_mpi(OsStr::new("no-such-program")));
    }
}
