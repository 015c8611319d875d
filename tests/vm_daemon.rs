// SPDX-License-Identifier: Apache-2.0
//! coschedd with sched_ext, as it is installed: users' jobs beside each other under
//! presets of their own, bounds that hold, and all that may happen to a job or to
//! the machine meanwhile. What happens when coschedd itself is killed: vm_fail_open.rs.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_control::{Client, Wish, PATIENCE};
use cosched_model::abi;
use cosched_tests::{
    coschedd::{
        ask, ask_as, cosched, counted, install, installed, job_of, jobs, json_as, read, state,
        wait_for, Coschedd, Running,
    },
    inside::{self, Check, Hogs},
    job::text,
};
use libbpf_rs::query::ProgInfoIter;
use std::{fs, process::Command, process::Output, time::Duration};

/// With a margin for a busy machine without KVM.
const TIMEOUT: Duration = Duration::from_secs(600);

/// What a user may do is the default, but fewer ranks.
const CONFIG: &str = "[users]\nranks = 64\n";

const ALICE: u32 = 1000;
const BOB: u32 = 1001;

const CHECKS: [Check<Coschedd>; 11] = [
    ("it schedules and says so", schedules),
    ("the verifier's work is within its budget", budgets_hold),
    ("two users' jobs under two presets", two_users),
    ("beyond the policy file: one line", beyond_policy),
    ("a switch changes what happens", switches),
    ("an adopted process", adopts_a_process),
    ("an adopted cgroup, and its end", adopts_a_cgroup),
    ("the 64th job is one line", fills_up),
    ("a thousand tasks, and a bomb", crowds),
    ("a CPU goes and comes back", hotplug),
    ("SysRq-S: it ends and says why", sysrq),
];

#[test]
fn coschedd_schedules() {
    inside::checks("coschedd_schedules", TIMEOUT, start, &CHECKS);
}

fn start() -> Coschedd {
    install(CONFIG);
    Coschedd::start()
}

fn is_one_line(output: &Output, code: i32, says: &str) {
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{line}");
    assert!(line.contains(says) && line.lines().count() == 1, "{line}");
}

fn wait_for_no_jobs() {
    wait_for("the end of all jobs", || jobs().is_empty());
}

fn schedules(daemon: &mut Coschedd) {
    let status = json_as(0, &["status", "--json"]);
    assert_eq!(status["mode"], "schedule", "{status}");
    assert_eq!(status["pid"], daemon.pid());
    assert_eq!(read("/sys/kernel/sched_ext/root/ops"), "cosched");
    let second = Command::new(installed("coschedd"))
        .args(["--config", "/dev/null"])
        .output();
    is_one_line(&second.unwrap(), 3, "runs already");
}

/// Instructions that the verifier looked at, over all ways through a program, when last
/// recorded. Names as the kernel keeps them. It gives up at a million, and attaching takes
/// as long as it looks; a quarter more is for other kernels and for small changes.
const VERIFIED: [(&str, u32); 22] = [
    ("on_receive", 44),
    ("on_arrival", 10603),
    ("join", 4852),
    ("on_fork", 4853),
    ("on_exit", 4711),
    ("list_members", 74),
    ("cos_select_cpu", 144),
    ("cos_enqueue", 10244),
    ("cos_dequeue", 31),
    ("cos_dispatch", 3534),
    ("cos_runnable", 455),
    ("cos_quiescent", 488),
    ("cos_disable", 24),
    ("cos_running", 12087),
    ("cos_stopping", 5227),
    ("cos_yield", 11757),
    ("cos_init_task", 4885),
    ("cos_exit_task", 105),
    ("cos_cgroup_init", 14),
    ("cos_cgroup_set_", 12),
    ("cos_init", 10404),
    ("cos_exit", 24),
];

fn budgets_hold(_: &mut Coschedd) {
    let mut over = Vec::new();
    for info in ProgInfoIter::default() {
        let name = info.name.to_string_lossy().into_owned();
        let (now, recorded) = (info.verified_insns, recorded(&name));
        println!("NOTE verified {name} {now}, recorded {recorded}");
        if now > recorded * 5 / 4 {
            over.push(name);
        }
    }
    assert!(
        over.is_empty(),
        "{over:?}: is it worth that? then record it"
    );
}

fn recorded(name: &str) -> u32 {
    let found = VERIFIED.iter().find(|(known, _)| *known == name);
    found.map_or(0, |(_, recorded)| *recorded)
}

fn two_users(_: &mut Coschedd) {
    let hogs = Hogs::on(&["0", "1"]);
    let _alice = Running::job(ALICE, "auto", "pair", &["spin", "1000"]);
    let _bob = Running::job(BOB, "dcs-spin", "pair", &["udp", "1000"]);
    for (uid, preset) in [(ALICE, "auto"), (BOB, "dcs-spin")] {
        wait_for("boosts with reasons", || {
            let job = job_of(uid);
            let (boosts, boosted) = (counted(&job, "nr_boosts"), counted(&job, "boosted"));
            counted(&job, "nr_served") > 0 && boosts > 0 && boosted > 0
        });
        wait_for("denials with reasons", || {
            counted(&job_of(uid), "denied") > 0
        });
        let own = json_as(uid, &["jobs", "--json"]);
        let shown = own["jobs"].as_array().unwrap();
        assert_eq!(shown.len(), 1, "{own}");
        assert_eq!(
            (&shown[0]["uid"], &shown[0]["preset"]),
            (&uid.into(), &preset.into())
        );
        assert_eq!(own["nr_hidden"], 1, "{own}");
        let ranks = own["ranks"].as_array().unwrap();
        assert!(
            ranks.iter().all(|rank| rank["job"] == shown[0]["job"]),
            "{own}"
        );
    }
    hogs.end();
    drop((_alice, _bob));
    wait_for_no_jobs();
}

fn beyond_policy(_: &mut Coschedd) {
    let mut alice = cosched(ALICE, &["run", "--policy", "auto", "--"]);
    let _alice = Running::start({
        alice.args(["sleep", "1000"]);
        alice
    });
    wait_for("Alice's job", || job_of(ALICE).is_some());
    let number = job_of(ALICE).unwrap()["job"].to_string();
    let beyond = ask_as(ALICE, &["switch", &number, "local-block"]);
    is_one_line(&beyond, 2, "users.presets");
    let others = ask_as(BOB, &["switch", &number, "dcs-spin"]);
    is_one_line(&others, 2, "of yours");
    // A run does without what it does not get, and says so.
    let run = ask_as(ALICE, &["run", "--policy", "implicit", "--", "true"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(
        text(&run.stderr).lines().count() <= 1,
        "{}",
        text(&run.stderr)
    );
    drop(_alice);
    wait_for_no_jobs();
}

fn switches(_: &mut Coschedd) {
    let hogs = Hogs::on(&["0", "1"]);
    let running = Running::job(0, "uncoordinated", "pair", &["spin", "1000"]);
    wait_for("the job to run", || counted(&job_of(0), "ran_ns") > 0);
    let number = job_of(0).unwrap()["job"].to_string();
    assert_eq!(counted(&job_of(0), "nr_boosts"), 0);
    assert!(ask(&["switch", &number, "auto"]).status.success());
    wait_for("boosts", || counted(&job_of(0), "nr_boosts") > 0);
    assert!(ask(&["switch", &number, "uncoordinated"]).status.success());
    let job = job_of(0);
    wait_for("more of its run", || {
        counted(&job_of(0), "ran_ns") > counted(&job, "ran_ns") + 200_000_000
    });
    assert_eq!(counted(&job_of(0), "nr_boosts"), counted(&job, "nr_boosts"));
    hogs.end();
    drop(running);
    wait_for_no_jobs();
}

fn pair(within: &str) -> Running {
    let mut shell = Command::new("sh");
    let script = format!("{within} exec {} spin 1000", installed("pair").display());
    shell.args(["-c", &script]);
    Running::start(shell)
}

fn adopts_a_process(_: &mut Coschedd) {
    let hogs = Hogs::on(&["0", "1"]);
    let running = pair("");
    wait_for("its ranks", || running.pids().len() == 3);
    let pid = running.pid().to_string();
    let adopted = ask(&["adopt", "--pid", &pid, "--name", "stray"]);
    assert!(adopted.status.success(), "{}", text(&adopted.stderr));
    wait_for("boosts", || counted(&job_of(0), "nr_boosts") > 0);
    let job = job_of(0);
    assert_eq!(counted(&job, "nr_tasks"), 3);
    assert_eq!(job.unwrap()["name"], "stray");
    let again = ask(&["adopt", "--pid", &pid]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    wait_for("the job that they left to end", || jobs().len() == 1);
    hogs.end();
    drop(running);
    wait_for_no_jobs();
}

fn adopts_a_cgroup(_: &mut Coschedd) {
    let group = "/sys/fs/cgroup/job";
    fs::create_dir(group).unwrap();
    let hogs = Hogs::on(&["0", "1"]);
    let running = pair(&format!("echo $$ >{group}/cgroup.procs;"));
    wait_for("its ranks", || running.pids().len() == 3);
    let adopted = ask(&["adopt", "--cgroup", group]);
    assert!(adopted.status.success(), "{}", text(&adopted.stderr));
    wait_for("boosts", || counted(&job_of(0), "nr_boosts") > 0);
    hogs.end();
    drop(running);
    // Gone before coschedd looks again.
    wait_for("the cgroup to be empty", || fs::remove_dir(group).is_ok());
    wait_for_no_jobs();
    assert_eq!(state(), "enabled");
}

fn fills_up(_: &mut Coschedd) {
    let client = Client::connect(&cosched_control::socket(), PATIENCE).unwrap();
    let wish = Wish {
        flags: abi::COS_CONTROL_HELD | abi::COS_CONTROL_EMPTY,
        preset: "auto",
        ..Wish::default()
    };
    for _ in 0..63 {
        client.ask(abi::COS_CONTROL_BEGIN, &wish).unwrap();
    }
    let me = std::process::id().to_string();
    is_one_line(&ask(&["adopt", "--pid", &me]), 3, "end a job");
    drop(client);
    wait_for_no_jobs();
}

/// Root's thousand are a job like any other; Bob's bomb costs him his job and nobody else theirs.
fn crowds(daemon: &mut Coschedd) {
    let thousand = Running::job(0, "auto", "crowd", &["1000", "1000"]);
    wait_for("a thousand", || counted(&job_of(0), "nr_tasks") > 1000);
    let shown = json_as(0, &["jobs", "--json"]);
    assert!(shown["nr_ranks"].as_u64().unwrap() > 1000);
    let bomb = Running::job(BOB, "auto", "crowd", &["2000", "5"]);
    wait_for("Bob's bound", || daemon.said().contains("users.ranks"));
    assert!(job_of(BOB).is_none());
    assert!(counted(&job_of(0), "nr_tasks") > 1000);
    assert_eq!(state(), "enabled");
    drop((thousand, bomb));
    wait_for_no_jobs();
}

/// sched_ext takes every scheduler away then; jobs stay what they are.
fn hotplug(daemon: &mut Coschedd) {
    let online = |value| fs::write("/sys/devices/system/cpu/cpu1/online", value).unwrap();
    let again = || daemon.said().matches("attached again").count();
    let running = Running::start({
        let mut run = cosched(ALICE, &["run", "--", "sh", "-c"]);
        let pair = installed("pair");
        run.arg(format!("while :; do {} spin 1; done", pair.display()));
        run
    });
    wait_for("Alice's job", || counted(&job_of(ALICE), "nr_tasks") > 1);
    let serial = job_of(ALICE).unwrap()["serial"].clone();
    for (nr, value) in [(1, "0"), (2, "1")] {
        online(value);
        wait_for("it to be attached again", || {
            again() == nr && state() == "enabled"
        });
    }
    let hogs = Hogs::on(&["0", "1"]);
    let before = counted(&job_of(ALICE), "nr_boosts");
    wait_for("boosts", || counted(&job_of(ALICE), "nr_boosts") > before);
    assert_eq!(job_of(ALICE).unwrap()["serial"], serial);
    hogs.end();
    let shares = inside::numbers("hogs", &["4", "0", "0", "1", "1"]);
    assert!(shares.iter().all(|ms| *ms > 500), "{shares:?}");
    drop(running);
    wait_for_no_jobs();
}

fn sysrq(daemon: &mut Coschedd) {
    fs::write("/proc/sysrq-trigger", "S").unwrap();
    assert_eq!(daemon.code(), Some(0), "{}", daemon.said());
    let said = daemon.said();
    assert!(
        said.contains("on request") && said.contains("sysrq"),
        "{said}"
    );
    assert_eq!(state(), "disabled");
    is_one_line(&ask(&["status"]), 3, "no coschedd listens");
}
