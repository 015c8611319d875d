// SPDX-License-Identifier: Apache-2.0
//! The simulator with one line spoilt: each mutant must turn the named test red.
//!
//! A copy of the workspace is built once; for each mutant one file of it is changed
//! and put back. The line must be there exactly once, so that a change of the
//! simulator does not quietly disarm its mutant. Policy has mutants of its own
//! (crates/policy/tests/laws).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Mutant {
    file: &'static str,
    from: &'static str,
    to: &'static str,
    /// Test binary and test.
    reddens: [&'static str; 2],
}

#[rustfmt::skip]
const MUTANTS: &[Mutant] = &[
    // a kick is dropped
    Mutant { file: "run/decide/arrival.rs", from: "            self.kick(cpu);", to: "", reddens: ["truth_policy", "a_boosted_task_is_the_next_to_run"] },
    // a denial is skipped
    Mutant { file: "run/decide/arrival.rs", from: "match verdict.act {\n            raw::COS_ACT_BOOST => {\n                let epoch", to: "match raw::COS_ACT_BOOST {\n            raw::COS_ACT_BOOST => {\n                let epoch", reddens: ["truth_policy", "equation_1_bounds_the_number_of_boosts"] },
    // vtime is charged wrongly
    Mutant { file: "local/cosched.rs", from: "        it.vtime += ran;", to: "        it.vtime += ran / 2 * i64::from(task % 2);", reddens: ["truth_locals", "shares_are_equal_within_two_turns_at_any_time"] },
    Mutant { file: "local/cosched.rs", from: "it.boosted && it.vtime - queue.vtime <= ns(self.max_debt)", to: "it.boosted", reddens: ["truth_locals", "boosts_without_end_cost_others_no_more_than_the_debt_under_cosched"] },
    // the last look before a sleep is dropped
    Mutant { file: "run/task.rs", from: "        if self.tasks[task as usize].mailbox.has(from) {\n            self.found(cpu, task);\n            return After::Later;\n        }\n        self.tasks[task as usize].counted.nr_blocks", to: "        self.tasks[task as usize].counted.nr_blocks", reddens: ["truth", "no_wake_up_is_lost_at_any_instant_between_spin_and_sleep"] },
    // a switch is free
    Mutant { file: "run/cpu.rs", from: "CpuState::Overhead => it.since_ns + it.irq_ns + it.switch_ns,", to: "CpuState::Overhead => it.since_ns + it.irq_ns + it.switch_ns / 2,", reddens: ["truth", "each_switch_costs_what_it_costs"] },
    // half of a refill is free
    Mutant { file: "cluster/task.rs", from: "self.cold_ns = 2 * refill_ns;", to: "self.cold_ns = refill_ns;", reddens: ["truth", "work_takes_twice_as_long_until_caches_are_refilled"] },
];

/// The tests that mutants redden, each once.
fn tests() -> Vec<[&'static str; 2]> {
    let mut tests: Vec<_> = MUTANTS.iter().map(|mutant| mutant.reddens).collect();
    tests.sort_unstable();
    tests.dedup();
    tests
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Copies `from` with all that is in it, but not what was built, nor the records of experiments.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let (path, name) = (entry.path(), entry.file_name());
        let left_out =
            name == "target" || name == "experiments" || name.to_string_lossy().starts_with('.');
        match entry.file_type().expect("a type") {
            kind if kind.is_dir() && !left_out => copy(&path, &to.join(name)),
            kind if kind.is_file() => {
                fs::copy(&path, to.join(name)).expect("a copy");
            }
            _ => {}
        }
    }
}

/// A copy of the workspace, with what was built from it.
struct Workspace {
    folder: tempfile::TempDir,
}

impl Workspace {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        copy(&top(), &folder.path().join("workspace"));
        Workspace { folder }
    }

    fn cargo(&self, what: &str, args: &[&str]) -> bool {
        let done = Command::new(env!("CARGO"))
            .args([what, "--quiet", "--offline", "--package", "cosched-sim"])
            .args(args)
            .current_dir(self.folder.path().join("workspace"))
            .env("CARGO_TARGET_DIR", self.folder.path().join("target"))
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .output()
            .expect("cargo runs");
        done.status.success()
    }

    /// Whether that test is green; what does not compile is no answer.
    fn green(&self, [binary, test]: [&str; 2]) -> bool {
        assert!(self.cargo("build", &["--test", binary]), "{binary} builds");
        self.cargo("test", &["--test", binary, "--", "--exact", test])
    }

    /// Whether the test that `mutant` should turn red stays green.
    fn survives(&self, mutant: &Mutant) -> bool {
        let path = self.folder.path().join("workspace/crates/sim/src");
        let path = path.join(mutant.file);
        let text = fs::read_to_string(&path).expect("a file");
        let places = text.matches(mutant.from).count();
        assert_eq!(places, 1, "{}: {:?}", mutant.file, mutant.from);
        fs::write(&path, text.replacen(mutant.from, mutant.to, 1)).expect("written");
        let green = self.green(mutant.reddens);
        fs::write(&path, text).expect("written");
        green
    }
}

#[test]
fn every_mutant_turns_its_test_red() {
    let workspace = Workspace::new();
    for test in tests() {
        assert!(workspace.green(test), "{test:?} is green as it is");
    }
    let survivors = MUTANTS.iter().filter(|mutant| workspace.survives(mutant));
    let survivors: Vec<String> = survivors
        .map(|mutant| format!("{}: {:?}", mutant.file, mutant.from))
        .collect();
    assert!(survivors.is_empty(), "{}", survivors.join("\n"));
}
