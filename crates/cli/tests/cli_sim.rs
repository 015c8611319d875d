// SPDX-License-Identifier: Apache-2.0
//! `cosched sim` from its files to its bytes and exit codes: a record does not depend on who made which run, and
//! figures and claims follow from it. What goes wrong is in cli_sim_wrong.rs.

#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

mod small;

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use small::{Small, SMALL};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn the_bytes_depend_neither_on_jobs_nor_on_shards_nor_on_interrupts() {
    let whole = Small::new();
    whole.sim(&["run", "--jobs", "1"]).code(0);
    let bytes = whole.bytes("record.csv");
    assert_eq!(
        bytes.lines().count(),
        1 + 4 * (2 + 4 * 2),
        "one row for each job of each run"
    );
    let sharded = Small::new();
    for shard in ["1/3", "2/3", "3/3"] {
        sharded
            .sim(&["run", "--jobs", "2", "--shard", shard])
            .code(0);
    }
    assert_eq!(sharded.files().len(), 4);
    sharded
        .sim(&["run"])
        .code(0)
        .stdout(contains("0 of them now"));
    assert_eq!(sharded.bytes("record.csv"), bytes);
    assert_eq!(sharded.files(), ["experiment.toml", "record.csv"]);
    let interrupted = Small::new();
    for cut in [bytes.len() / 3, bytes.len() - 1, 10] {
        fs::write(interrupted.path.join("record.csv"), &bytes[..cut]).unwrap();
        interrupted.sim(&["run"]).code(0);
        assert_eq!(interrupted.bytes("record.csv"), bytes, "cut at {cut}");
    }
}

#[test]
fn claims_are_judged_and_one_that_must_hold_and_does_not_is_exit_1() {
    let small = Small::new();
    small
        .sim(&["check"])
        .code(2)
        .stderr(contains("24 of its runs are not there"));
    small.sim(&["run", "--quick"]).code(0);
    small
        .sim(&["check", "--quick"])
        .code(0)
        .stdout(contains("holds (must hold)"));
    let wrong = Small::of(&SMALL.replace("at_least = 1.1", "at_most = 1.1"));
    wrong.sim(&["run", "--quick"]).code(0);
    let refused = wrong
        .sim(&["check", "--quick"])
        .code(1)
        .stdout(contains("fails (must hold)"));
    refused.stderr(contains("T.1"));
}

#[test]
fn a_whole_record_of_another_revision_is_left_alone_and_again_compares() {
    let small = Small::new();
    small.sim(&["run", "--quick"]).code(0);
    let fresh = small.bytes("quick.csv");
    let (header, rows) = fresh.split_once('\n').unwrap();
    let other = |row: &str| format!("{},older\n", row.rsplit_once(',').unwrap().0);
    let mut rows: Vec<String> = rows.lines().map(other).collect();
    rows[0] = rows[0].replacen(",latency,", ",latency,9", 1);
    let older = format!("{header}\n{}", rows.concat());
    fs::write(small.path.join("quick.csv"), &older).unwrap();
    let left = small.sim(&["run", "--quick"]).code(0);
    left.stdout(contains("made by revision older").and(contains("--again")));
    assert_eq!(small.bytes("quick.csv"), older);
    let again = small.sim(&["run", "--quick", "--again"]).code(0);
    again.stdout(contains("1 of ").and(contains("runs differ")));
    assert_eq!(small.bytes("quick.csv"), fresh);
    assert_eq!(small.files(), ["experiment.toml", "quick.csv"]);
}

#[test]
fn a_trace_shows_each_cpu_and_each_message() {
    let small = Small::new();
    let out = small.path.join("trace.json");
    let at = [
        "trace",
        "--at",
        "hogs=1",
        "--until",
        "200ms",
        "--out",
        out.to_str().unwrap(),
    ];
    small.sim(&at).code(0).stdout(contains("slices"));
    let trace: serde_json::Value = serde_json::from_str(&small.bytes("trace.json")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |ph: &str| {
        events
            .iter()
            .filter(|event| event["ph"] == ph)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("M").len(), 2);
    assert!(!of("s").is_empty() && of("s").len() == of("f").len());
    for cpu in 0..2 {
        let mut slices = of("X");
        slices.retain(|slice| slice["tid"] == cpu);
        assert!(slices
            .iter()
            .any(|slice| slice["name"] == format!("hog {cpu}")));
        let end = |slice: &serde_json::Value| {
            slice["ts"].as_f64().unwrap() + slice["dur"].as_f64().unwrap()
        };
        let apart = slices
            .windows(2)
            .all(|two| end(two[0]) <= two[1]["ts"].as_f64().unwrap() + 1e-3);
        assert!(apart, "slices of a CPU do not overlap");
    }
}

#[test]
fn figures_readme_and_claims_come_from_the_record() {
    let small = Small::new();
    small.list_claims("");
    small.sim(&["run"]).code(0);
    small.figure().code(0);
    let reference = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference.md"
    ))
    .unwrap();
    let record = small.bytes("record.csv");
    let columns = record.lines().next().unwrap().split(',').skip(2);
    columns.for_each(|name| {
        assert!(
            reference.contains(&format!("`{name}`")),
            "{name} is in no reference"
        )
    });
    let svg = small.bytes("times.svg");
    assert!(svg.contains("uncoordinated") && svg.contains("response_s"));
    let readme = small.bytes("README.md");
    assert!(
        readme.contains("| 0 |")
            && readme.contains("holds (must hold)")
            && readme.contains("times.svg")
    );
    assert!(small
        .bytes("claims.md")
        .contains("| T.1 | spinning is slower | **reproduced** |"));
    small.list_claims("[[claim]]\nid = \"T.2\"\ntext = \"more\"\n");
    small.figure().code(2).stderr(contains("T.2"));
}

#[test]
fn what_was_measured_is_judged_beside_what_was_simulated() {
    let small = Small::new();
    small.list_claims("");
    let live = r#"
measured = ["by hand"]
jobs = ["job"]
[[factor]]
name = "wait"
level = [{ name = "spin" }, { name = "block" }]
[[claim]]
id = "T.1"
text = "spinning is slower here"
job = "job"
metric = "response_s"
where = { wait = "spin" }
against = { wait = "block" }
at_least = 1
"#;
    fs::write(small.path.join("live.toml"), live).unwrap();
    let record = "wait,job,response_s\nspin,job,2\nblock,job,4\n";
    fs::write(small.path.join("live.csv"), record).unwrap();
    small.sim(&["run"]).code(0);
    small.figure().code(0);
    let text = small.bytes("claims.md");
    assert!(text.contains("| T.1 | spinning is slower | **reproduced** | not reproduced |"));
    assert!(text.contains("Live: not reproduced\n\n- **fails**: spinning is slower here"));
    let readme = small.bytes("README.md");
    assert!(readme.contains("## On a running Linux") && readme.contains("| block | 4.000 |"));
    small.list_claims("not_live = \"it needs wings\"\n");
    small.figure().code(2).stderr(contains("T.1"));
    small.list_claims("");
    fs::write(small.path.join("live.csv"), "wait,job\nhope,job\n").unwrap();
    small.figure().code(2).stderr(contains("no level \"hope\""));
}

#[test]
fn the_bench_prints_both_queues() {
    let mut command = Command::cargo_bin("cosched").unwrap();
    let bench = command
        .args([
            "sim",
            "bench",
            "--nodes",
            "10",
            "--time",
            "5ms",
            "--repeats",
            "1",
        ])
        .assert();
    bench.code(0).stdout(
        contains("ladder")
            .and(contains("heap"))
            .and(contains("M events/s")),
    );
}

/// The folders of all experiments, copied to where records may be written.
fn experiments(to: &Path) -> Vec<PathBuf> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let list = |dir: &Path| -> Vec<PathBuf> {
        fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().path())
            .filter(|p| p.is_dir())
            .collect()
    };
    let all = list(&from).into_iter().flat_map(|paper| list(&paper));
    let mut copies: Vec<PathBuf> = all
        .filter(|dir| dir.join("experiment.toml").exists())
        .map(|dir| {
            let copy = to.join(dir.strip_prefix(&from).unwrap());
            fs::create_dir_all(&copy).unwrap();
            for name in ["experiment.toml", "measured.csv"] {
                let _ = fs::copy(dir.join(name), copy.join(name));
            }
            copy
        })
        .collect();
    copies.sort();
    copies
}

#[test]
fn all_experiments_run_quick_and_what_must_hold_holds() {
    let dir = tempfile::tempdir().unwrap();
    let folders = experiments(dir.path());
    assert!(folders.len() >= 5);
    for action in ["run", "check"] {
        let mut command = Command::cargo_bin("cosched").unwrap();
        let done = command
            .args(["sim", action, "--quick"])
            .args(&folders)
            .assert();
        done.code(0);
    }
}

/// Both sides are data: what was measured once, and a simulation that gives the same bytes each time.
#[test]
fn simulations_are_within_20_percent_of_what_was_measured() {
    let dir = tempfile::tempdir().unwrap();
    let mut folders = experiments(dir.path());
    folders.retain(|it| it.parent().unwrap().ends_with("reality") && !it.ends_with("latency"));
    assert_eq!(folders.len(), 2);
    let sim = |args: &[&str]| {
        let mut command = Command::cargo_bin("cosched").unwrap();
        command.arg("sim").args(args).args(&folders).assert()
    };
    sim(&["run", "--quick"]).code(0);
    sim(&["validate", "--quick"])
        .code(0)
        .stdout(contains("Median error of the 24 judged cells"));
    sim(&["validate", "--quick", "--at-most", "0.001"]).code(1);
    sim(&[
        "validate",
        "--quick",
        "--calibration",
        "barrier",
        "--calibration",
        "sor",
    ])
    .code(2)
    .stderr(contains("no cell is judged"));
}
