// SPDX-License-Identifier: Apache-2.0
//! The yield trap: a rank that yields without our hook is thirteen times slower, so
//! whatever keeps the preload from a rank must leave it as stock is. Counted with
//! strace: `sched_yield` is the system call that must not be there. And a process that
//! is no rank makes the system calls that it makes without us.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::{
    installed,
    job::{
        built, compile, installation_of, limited, mpis, shown, text, turn, Job, Mpi, Ran, NOBODY,
    },
    need,
    strace::{nr_yields, yields_after_marks},
    superuser,
};
use std::{
    ffi::OsString,
    fs,
    os::unix::fs::{chown, PermissionsExt},
    path::{Path, PathBuf},
};

/// Between launcher and rank: ways to lose what `cosched run` gave.
const DROPS: [(&str, &str); 5] = [
    ("unset in a shell", r#"unset LD_PRELOAD; exec "$@""#),
    (
        "without the keeper's address",
        r#"unset COSCHED_KEEPER; exec "$@""#,
    ),
    ("told to be off", r#"COSCHED=off exec "$@""#),
    (
        "nobody listens, nothing to start",
        r#"COSCHED_KEEPER=/no/such COSCHED_EXE=/no/such exec "$@""#,
    ),
    (
        "an environment of its own",
        r#"set -f
           keep=$(env | grep -E '^(OMPI|PMIX?|HYDRA|HYDI|PATH|HOME)[A-Za-z0-9_]*=[^ ]*$')
           exec env -i $keep "$@""#,
    ),
];

/// Traces what follows; the calls are those that `nr_yields` counts.
fn strace(log: &Path) -> [OsString; 9] {
    let options = "strace -f -qq -e trace=sched_yield,getsid -e signal=none -o";
    let mut words = options.split(' ').map(OsString::from);
    let mut next = || words.next().unwrap_or_else(|| log.into());
    std::array::from_fn(|_| next())
}

/// A job of two ranks in which one waits 300 ms, all of it below strace.
fn traced(log: &Path, mpi: Mpi, program: &Path) -> Job {
    let [strace, options @ ..] = strace(log);
    let launcher = format!("mpirun.{}", mpi.name());
    let launch = [&launcher, "-n", "2"];
    Job::plain(strace).args(options).args(launch).arg(program)
}

#[track_caller]
fn assert_stock(what: &str, ran: &Ran, log: &Path) {
    let shown = shown(&ran.output);
    assert!(ran.output.status.success(), "{what}: {shown}");
    assert!(ran.stdout().starts_with("recv ok\n"), "{what}: {shown}");
    ran.report.assert_passive();
    assert_eq!(nr_yields(log, 2), 0, "{what}");
}

#[test]
fn without_the_preload_a_rank_is_as_stock() {
    let test = "mpi_trap::without_the_preload_a_rank_is_as_stock";
    if need(test, installed("strace")).is_none() {
        return;
    }
    let log = tempfile::NamedTempFile::new().unwrap();
    for mpi in mpis(test) {
        let program = mpi.compile("late.c", "", &[]);
        for (what, script) in DROPS {
            let job = traced(log.path(), mpi, Path::new("sh"));
            let job = job.args(["-c", script, "sh"]).arg(&program).arg("recv");
            assert_stock(what, &job.cosched(), log.path());
        }
    }
}

/// That the count above is able to see one.
#[test]
fn a_rank_that_is_to_yield_is_seen_yielding() {
    let test = "mpi_trap::a_rank_that_is_to_yield_is_seen_yielding";
    if need(test, installed("strace")).is_none() {
        return;
    }
    let log = tempfile::NamedTempFile::new().unwrap();
    for mpi in mpis(test) {
        let program = mpi.compile("late.c", "", &[]);
        let job = traced(log.path(), mpi, &program).arg("recv");
        let ran = job.option("--policy=spin-yield").cosched();
        assert_eq!(ran.stdout(), "recv ok\n");
        assert!(nr_yields(log.path(), 2) > 0);
    }
}

/// A wait that has come to yielding says nothing of the next: each spins first for as long as its preset says.
#[test]
fn each_wait_spins_before_it_yields() {
    let test = "mpi_trap::each_wait_spins_before_it_yields";
    if need(test, installed("strace")).is_none() {
        return;
    }
    let log = tempfile::NamedTempFile::new().unwrap();
    for mpi in mpis(test) {
        let program = mpi.compile("late.c", "", &[]);
        let job = traced(log.path(), mpi, &program).arg("soon");
        let ran = job.option("--policy=spin_yield:100ms").cosched();
        assert_eq!(ran.stdout(), "soon ok\n");
        let ranks = yields_after_marks(log.path());
        let after = |mark: usize| ranks.values().map(|nr| nr[mark]).sum::<usize>();
        let (long, short) = (after(0), after(1));
        assert!(long > 0 && short == 0, "{mpi:?}: {long}, then {short}");
    }
}

/// Its own definitions of MPI's functions come before any preloaded ones.
#[test]
fn a_statically_linked_mpi_is_as_stock() {
    let test = "mpi_trap::a_statically_linked_mpi_is_as_stock";
    if need(test, installed("strace").and(Mpi::Mpich.found())).is_none() {
        return;
    }
    let flags = [
        "-Wl,--as-needed,-Bstatic",
        "-lmpich",
        "-Wl,-Bdynamic",
        "-lucp",
        "-lucs",
        "-lhwloc",
    ];
    let program = compile("mpicc.mpich", "late.c", "mpich-static", &flags);
    let log = tempfile::NamedTempFile::new().unwrap();
    let ran = traced(log.path(), Mpi::Mpich, &program)
        .arg("recv")
        .cosched();
    assert_stock("libmpich.a", &ran, log.path());
}

/// An owner of programs who is neither root nor he who starts them.
const DAEMON: u32 = 1;

/// A program of MPICH that runs with other rights than those of its caller.
fn late_in(folder: &Path, user: Option<u32>, group: Option<u32>, mode: u32) -> PathBuf {
    let program = folder.join("late");
    fs::copy(Mpi::Mpich.compile("late.c", "", &[]), &program).unwrap();
    chown(&program, user, group).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
    program
}

/// The kernel says "secure", and the loader preloads nothing. (Open MPI's launcher does not
/// talk to such ranks, with cosched or without.)
#[test]
fn a_set_group_id_program_is_as_stock() {
    let test = "mpi_trap::a_set_group_id_program_is_as_stock";
    let tools = installed("strace").and(Mpi::Mpich.found());
    let (Some(()), Some(())) = (need(test, superuser()), need(test, tools)) else {
        return;
    };
    let folder = installation_of(NOBODY);
    let log = tempfile::NamedTempFile::new().unwrap();
    let program = late_in(folder.path(), None, Some(DAEMON), 0o2755);
    let ran = traced(log.path(), Mpi::Mpich, &program)
        .arg("recv")
        .cosched();
    assert_stock("set-group-ID", &ran, log.path());
}

/// strace stands outside: who traces as an ordinary user takes such rights away. UCX is told
/// not to open descriptors of its peers through /proc, which nobody may of such programs.
#[test]
fn a_set_user_id_program_of_an_ordinary_user_is_as_stock() {
    let test = "mpi_trap::a_set_user_id_program_of_an_ordinary_user_is_as_stock";
    let tools = installed("strace").and(Mpi::Mpich.found());
    let (Some(()), Some(())) = (need(test, superuser()), need(test, tools)) else {
        return;
    };
    let home = installation_of(NOBODY);
    let log = tempfile::NamedTempFile::new().unwrap();
    let program = late_in(home.path(), Some(DAEMON), None, 0o4755);
    let [strace, options @ ..] = strace(log.path());
    let around = [strace, "-u".into(), "nobody".into()];
    let ran = Job::new(Mpi::Mpich, 2, program)
        .arg("recv")
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .env("UCX_POSIX_USE_PROC_LINK", "no")
        .as_user(NOBODY, &home.path().join("cosched"))
        .within(around.into_iter().chain(options))
        .cosched();
    assert_stock("set-user-ID", &ran, log.path());
}

/// As in a container: the loader looks for the library and does not find it.
#[test]
fn where_the_library_is_not_mounted_a_rank_is_as_stock() {
    let test = "mpi_trap::where_the_library_is_not_mounted_a_rank_is_as_stock";
    let tools = installed("strace").and(installed("unshare"));
    if need(test, superuser()).is_none() || need(test, tools).is_none() {
        return;
    }
    let library = built("libcosched.so");
    let hide = r#"mount -t tmpfs none "$0"; exec "$@""#;
    let log = tempfile::NamedTempFile::new().unwrap();
    for mpi in mpis(test) {
        let job = traced(log.path(), mpi, Path::new("unshare"))
            .args(["--mount", "sh", "-c", hide])
            .arg(library.parent().unwrap())
            .arg(mpi.compile("late.c", "", &[]))
            .arg("recv");
        assert_stock("hidden", &job.cosched(), log.path());
    }
}

/// No child, whatever it is, finds a switch that makes an MPI yield.
#[test]
fn no_environment_says_yield() {
    for mpi in mpis("mpi_trap::no_environment_says_yield") {
        for policy in ["auto", "spin-yield"] {
            let job = Job::new(mpi, 2, "env").option(format!("--policy={policy}"));
            let variables = job.cosched().stdout().to_lowercase();
            assert!(variables.contains("cosched_keeper="), "{variables}");
            let said: Vec<&str> = variables
                .lines()
                .filter(|line| line.contains("yield"))
                .collect();
            assert!(said.is_empty(), "{said:?}");
        }
    }
}

/// Names of the system calls of each process of @command after its getppid(), sorted.
fn system_calls(command: &[&str]) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let _turn = turn();
    let mut strace = limited("strace");
    strace.args(["-ff", "-qq", "-e", "signal=none", "-o"]);
    let output = strace.arg(folder.path().join("log")).args(command).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let logs = fs::read_dir(folder.path()).unwrap().flatten();
    let mut all: Vec<Vec<String>> = logs.map(|log| names_after_loading(&log.path())).collect();
    all.retain(|calls| !calls.is_empty());
    all.sort();
    all
}

/// After the last getppid(): an executed program is loaded again.
fn names_after_loading(log: &Path) -> Vec<String> {
    let log = fs::read_to_string(log).unwrap();
    let names: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split('(').next())
        .collect();
    let loaded = names.iter().rposition(|name| *name == "getppid");
    let calls = loaded.map(|at| &names[at..]).unwrap_or_default();
    calls.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn what_is_no_rank_makes_the_same_system_calls() {
    let test = "mpi_trap::what_is_no_rank_makes_the_same_system_calls";
    if need(test, installed("strace")).is_none() {
        return;
    }
    let program = compile("cc", "plain.c", "plain", &[]);
    let plain = program.to_str().unwrap();
    let cosched = built("cosched");
    let run = [cosched.to_str().unwrap(), "run", "--"];
    // The program, a child that executes it and one that it spawned; a shell (which asks
    // for its parent at the start too) beside them.
    for (command, nr) in [(&[plain][..], 3), (&["sh", "-c", "$0; exit 0", plain], 4)] {
        let stock = system_calls(command);
        assert_eq!(stock.len(), nr, "{stock:?}");
        assert_eq!(system_calls(&[&run, command].concat()), stock);
    }
}
