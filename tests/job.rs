// SPDX-License-Identifier: Apache-2.0
//! MPI jobs as the tests start them: a program of either MPI, with and without
//! `cosched run`, and what its report says.
//!
//! The programs under test are those that `cargo xtask build` made. Sources in
//! tests/mpi are compiled here, once per test program, MPI and flags. One job
//! runs at a time, since stock ranks spin; each is killed after a minute, the only
//! use of time here: tests look at results, counters and orderings.

use crate::{installed, need, root};
use serde_json::Value;
use std::{
    env,
    ffi::{OsStr, OsString},
    fs::{self, Permissions},
    os::unix::fs::{chown, PermissionsExt},
    path::{Path, PathBuf},
    process::{Child, Command, Output},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};
use tempfile::TempDir;

/// An MPI library of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mpi {
    /// Waits in `sched_yield`.
    OpenMpi,
    /// Waits in `ucp_worker_progress`.
    Mpich,
}

/// Both, where they are installed; @test is skipped for one that is not.
pub fn mpis(test: &str) -> Vec<Mpi> {
    let all = [Mpi::OpenMpi, Mpi::Mpich].into_iter();
    all.filter(|mpi| need(test, mpi.found()).is_some())
        .collect()
}

/// Seconds after which a job hangs. A thousand ranks take five to twelve, on a loaded machine sixty.
const HANGS: &str = "180";

/// Of all launchers: root may, and ranks may outnumber CPUs.
const LAUNCH: [(&str, &str); 4] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    // Open MPI 5.
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
];

impl Mpi {
    /// As Debian's alternatives are called.
    pub fn name(self) -> &'static str {
        match self {
            Mpi::OpenMpi => "openmpi",
            Mpi::Mpich => "mpich",
        }
    }

    /// Launcher and compilers are there.
    pub fn found(self) -> Result<(), String> {
        let programs = ["mpirun", "mpicc", "mpifort"];
        let mut programs = programs
            .map(|name| format!("{name}.{}", self.name()))
            .into_iter();
        programs.try_for_each(|name| installed(&name).map(drop))
    }

    /// The wait point that fires in its ranks on one node.
    pub fn hook(self) -> &'static str {
        match self {
            Mpi::OpenMpi => "sched_yield",
            Mpi::Mpich => "ucp_worker_progress",
        }
    }

    /// A workload of cosched, built for this MPI.
    pub fn workload(self, name: &str) -> PathBuf {
        built(&format!("workloads/{}/{name}", self.name()))
    }

    /// Compiles @source of tests/mpi with `-D@variant` (none: "") and @flags.
    pub fn compile(self, source: &str, variant: &str, flags: &[&str]) -> PathBuf {
        let compiler = if source.ends_with(".F90") {
            "mpifort"
        } else {
            "mpicc"
        };
        let compiler = format!("{compiler}.{}", self.name());
        let define = (!variant.is_empty()).then(|| format!("-D{variant}"));
        let flags: Vec<&str> = define
            .as_deref()
            .into_iter()
            .chain(flags.to_vec())
            .collect();
        compile(
            &compiler,
            source,
            &format!("{}{variant}", self.name()),
            &flags,
        )
    }
}

/// Compiles @source of tests/mpi by @compiler; @kind tells apart what it is compiled as.
pub fn compile(compiler: &str, source: &str, kind: &str, flags: &[&str]) -> PathBuf {
    static BUSY: Mutex<()> = Mutex::new(());
    let _one_at_a_time = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
    let name = source.replace('.', "-");
    let dir = release().join("../tmp/mpi").join(kind);
    fs::create_dir_all(&dir).expect("the target directory is ours");
    // Test programs may run beside each other: none may start what another is writing.
    let fresh = format!("{name}.{}", std::process::id());
    let (program, fresh) = (dir.join(&name), dir.join(fresh));
    let source = root().join("tests/mpi").join(source);
    let output = Command::new(compiler)
        .args(["-O1", "-g", "-Wall", "-o"])
        .args([&fresh, &source])
        .args(flags)
        .current_dir(&dir)
        .output()
        .unwrap_or_else(|why| panic!("{compiler}: {why}; type: cargo xtask setup"));
    assert!(
        output.status.success(),
        "{compiler}: {}",
        text(&output.stderr)
    );
    fs::rename(&fresh, &program).expect("both are ours");
    program
}

/// What `cargo xtask build` made.
pub fn built(name: &str) -> PathBuf {
    let path = release().join(name);
    assert!(
        path.exists(),
        "no {}; type: cargo xtask build",
        path.display()
    );
    path
}

/// Tests lie in `target/PROFILE/deps`, programs above; what both use in `target/release`.
pub(crate) fn release() -> PathBuf {
    let this = env::current_exe().expect("/proc is mounted");
    let folder = this.parent().expect("a file lies in a folder");
    let is_test = folder.ends_with("deps");
    let profile = if is_test {
        folder.parent()
    } else {
        Some(folder)
    };
    let target = profile.and_then(Path::parent);
    target.expect("below the target directory").join("release")
}

/// Bytes that a program printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// One job at a time; a test that starts something else beside takes its turn too.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An ordinary user.
pub const NOBODY: u32 = 65534;

/// What an ordinary user needs of cosched, in a folder of his own.
pub fn installation_of(uid: u32) -> TempDir {
    let home = tempfile::tempdir().expect("/tmp is writable");
    for name in ["cosched", "libcosched.so"] {
        fs::copy(built(name), home.path().join(name)).expect("both are readable");
    }
    fs::set_permissions(home.path(), Permissions::from_mode(0o755)).expect("made above");
    chown(home.path(), Some(uid), Some(uid)).expect("only root asks for this");
    home
}

/// A busy process; ended when it goes out of scope.
pub struct Hog(Child);

impl Hog {
    /// Another one.
    pub fn start() -> Self {
        let mut shell = limited("sh");
        let shell = shell.args(["-c", "while :; do :; done"]);
        Hog(shell.spawn().expect("there is a shell"))
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        // timeout(1) passes it on to the shell.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

/// What patterns.c shows to be right, in this order.
pub const PATTERNS: [&str; 6] = [
    "wildcards",
    "persistent",
    "tests",
    "collectives",
    "handles",
    "large",
];

/// What a program of tests/mpi says of so many things that are right.
pub fn said(what: &[&str]) -> String {
    what.iter().map(|name| format!("{name} ok\n")).collect()
}

/// A command with a limit, and everything that `cosched run` would give it taken away.
pub fn limited(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", HANGS]).arg(program).envs(LAUNCH);
    for name in ["COSCHED", "COSCHED_KEEPER", "LD_PRELOAD"] {
        command.env_remove(name);
    }
    command
}

/// A job that may be started with and without cosched.
#[derive(Clone)]
pub struct Job {
    command: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    options: Vec<OsString>,
    around: Vec<OsString>,
    user: Option<u32>,
    cosched: PathBuf,
}

/// What became of a job under `cosched run`.
pub struct Ran {
    /// Of the job.
    pub output: Output,
    /// Of cosched.
    pub report: Report,
}

/// The JSON of `cosched run --report=json`.
pub struct Report(Value);

impl Job {
    /// @ranks ranks of @program.
    pub fn new(mpi: Mpi, ranks: u32, program: impl AsRef<OsStr>) -> Self {
        let launcher = format!("mpirun.{}", mpi.name());
        let count = ranks.to_string();
        Self::plain(launcher).arg("-n").arg(count).arg(program)
    }

    /// A command that is no job.
    pub fn plain(program: impl AsRef<OsStr>) -> Self {
        Job {
            command: vec![program.as_ref().to_owned()],
            env: Vec::new(),
            options: Vec::new(),
            around: Vec::new(),
            user: None,
            cosched: built("cosched"),
        }
    }

    /// One more argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.push(arg.as_ref().to_owned());
        self
    }

    /// More arguments.
    pub fn args<S: AsRef<OsStr>>(self, args: impl IntoIterator<Item = S>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    /// A variable for the job.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// An option of `cosched run`.
    pub fn option(mut self, option: impl AsRef<OsStr>) -> Self {
        self.options.push(option.as_ref().to_owned());
        self
    }

    /// All of it, cosched too, as the command of this command.
    pub fn within<S: AsRef<OsStr>>(mut self, around: impl IntoIterator<Item = S>) -> Self {
        self.around = around
            .into_iter()
            .map(|word| word.as_ref().to_owned())
            .collect();
        self
    }

    /// As this user, from an installation of cosched that he may read.
    pub fn as_user(self, uid: u32, cosched: &Path) -> Self {
        let [user, group] = ["reuid", "regid"].map(|id| format!("--{id}={uid}"));
        Job {
            user: Some(uid),
            cosched: cosched.to_owned(),
            ..self.within(["setpriv", &user, &group, "--clear-groups"])
        }
    }

    /// Without cosched.
    pub fn stock(&self) -> Output {
        let _turn = turn();
        let mut command = self.starts(&[]);
        command.output().expect("timeout(1) is installed")
    }

    /// Under `cosched run`; its report must be there.
    pub fn cosched(&self) -> Ran {
        let _turn = turn();
        let file = tempfile::NamedTempFile::new().expect("/tmp is writable");
        let fd_path = file.path();
        if let Some(uid) = self.user {
            chown(fd_path, Some(uid), Some(uid)).expect("only root asks for this");
        }
        let run = ["run", "--report=json", "--report-to"].map(OsString::from);
        let mut words = vec![self.cosched.clone().into_os_string()];
        words.extend(run);
        words.push(fd_path.into());
        words.extend(self.options.clone());
        words.push("--".into());
        let output = self.starts(&words).output();
        let output = output.expect("timeout(1) is installed");
        let report = fs::read_to_string(fd_path).expect("made above");
        let report = serde_json::from_str(&report)
            .unwrap_or_else(|why| panic!("no report ({why}): {}", shown(&output)));
        Ran {
            output,
            report: Report(report),
        }
    }

    /// The same output on stdout in both ways, and success; the report.
    pub fn same_with_and_without(&self) -> Report {
        let (stock, ran) = (self.stock(), self.cosched());
        assert!(stock.status.success(), "stock: {}", shown(&stock));
        assert!(ran.output.status.success(), "{}", shown(&ran.output));
        assert_eq!(text(&ran.output.stdout), text(&stock.stdout), "{self:?}");
        ran.report
    }

    fn starts(&self, before: &[OsString]) -> Command {
        let words: Vec<_> = [&self.around, before, &self.command].concat();
        let mut command = limited(&words[0]);
        command.args(&words[1..]);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:?} {:?}", self.env, self.command)
    }
}

/// Processes whose environment has an entry that begins with @text.
fn with_variable(text: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").expect("it is mounted").flatten();
    let processes = all.filter_map(|entry| {
        let environ = fs::read(entry.path().join("environ")).ok()?;
        let mut variables = environ.split(|byte| *byte == 0);
        let found = variables.any(|variable| variable.starts_with(text.as_bytes()));
        found.then(|| fs::read_to_string(entry.path().join("comm")).unwrap_or_default())
    });
    processes.collect()
}

/// No process is left that was given this variable, in a while: launchers reap their last
/// child after they have gone, and a keeper stays for two seconds.
pub fn assert_nothing_left(variable: &str) {
    let mut left = with_variable(variable);
    for _ in 0..200 {
        if left.is_empty() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
        left = with_variable(variable);
    }
    panic!("left behind: {left:?}");
}

/// How a job ended and what it said.
pub fn shown(output: &Output) -> String {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    format!("{}\nstdout: {out}\nstderr: {err}", output.status)
}

impl Ran {
    /// It succeeded; its stdout.
    #[track_caller]
    pub fn stdout(&self) -> String {
        assert!(self.output.status.success(), "{}", shown(&self.output));
        text(&self.output.stdout)
    }
}

impl Report {
    /// One object per rank.
    pub fn ranks(&self) -> &[Value] {
        self.0["ranks"].as_array().expect("a list of ranks")
    }

    /// How many MPI jobs had ranks on this node.
    pub fn nr_jobs(&self) -> usize {
        self.0["jobs"].as_array().map_or(0, Vec::len)
    }

    /// A counter, summed over all ranks.
    pub fn sum(&self, counter: &str) -> u64 {
        let of = |rank: &Value| rank[counter].as_u64().expect("a counter");
        self.ranks().iter().map(of).sum()
    }

    /// At most one sleep in a thousand ended by the safety net with a message there; one may,
    /// since a sleep may end by time just as a message comes.
    pub fn assert_none_missed(&self) {
        let (missed, blocks) = (self.sum("nr_missed"), self.sum("nr_blocks"));
        assert!(missed <= 1 + blocks / 1000, "{}", self.0);
    }

    /// Every one of @nr ranks, of one job, was active from MPI_Init to MPI_Finalize.
    pub fn assert_active(&self, nr: usize) {
        let named: Vec<u64> = self
            .ranks()
            .iter()
            .map(|rank| number(rank, "world_rank"))
            .collect();
        assert_eq!(named, (0..nr as u64).collect::<Vec<_>>(), "{}", self.0);
        assert_eq!(
            self.0["jobs"].as_array().map(Vec::len),
            Some(1),
            "{}",
            self.0
        );
        for rank in self.ranks() {
            assert_eq!(rank["state"], "done", "{rank}");
            assert!(number(rank, "nr_calls") > 0, "{rank}");
        }
    }

    /// All ranks that ever waited did so at this wait point, and one did.
    pub fn assert_hook(&self, hook: &str) {
        let fired = |rank: &&Value| {
            rank["hook"]
                .as_array()
                .is_some_and(|hooks| hooks.iter().any(|h| h == hook))
        };
        assert!(self.ranks().iter().any(|rank| fired(&rank)), "{}", self.0);
    }

    /// No rank got as far as waiting with us: none joined, or none became active.
    pub fn assert_passive(&self) {
        for rank in self.ranks() {
            assert_eq!(rank["state"], "passive", "{rank}");
            assert_eq!(rank["nr_calls"], 0, "{rank}");
        }
    }
}

/// A counter of a rank.
pub fn number(rank: &Value, counter: &str) -> u64 {
    rank[counter]
        .as_u64()
        .unwrap_or_else(|| panic!("no {counter} in {rank}"))
}
