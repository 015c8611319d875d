// SPDX-License-Identifier: Apache-2.0
//! A small experiment for tests of `cosched sim`.

#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]
#![allow(dead_code, reason = "each test file uses a part")]

use assert_cmd::{assert::Assert, Command};
use std::{fs, path::PathBuf};

/// Seconds at most, with a claim that holds and a figure.
pub const SMALL: &str = r#"
question = "Do competitors cost time?"
source = "the tests"
seed = 1
replications = 4
[quick]
replications = 1
[scenario]
policy = "implicit"
end = { job = "latency" }
[scenario.cluster]
nodes = 2
switch = "250us"
[scenario.local]
scheduler = "solaris-ts"
[[scenario.job]]
name = "latency"
workload = { kind = "latency", round_trips = 20_000 }
ranks = 2
[[scenario.job]]
name = "hog"
workload = { kind = "calcula" }
each_node = 1
[[factor]]
name = "hogs"
key = "job.hog.each_node"
values = [0, 1, 2]
[[factor]]
name = "policy"
key = "policy"
values = ["uncoordinated", "dcs-spin-block"]
[[claim]]
id = "T.1"
text = "competitors cost time"
must_hold = true
job = "latency"
metric = "response_s"
where = { hogs = 2, policy = "uncoordinated" }
against = { hogs = 0 }
at_least = 1.1
[[figure]]
name = "times"
title = "Times"
x = "hogs"
series = "policy"
job = "latency"
metric = "response_s"
"#;

/// That experiment in a folder of its own.
pub struct Small {
    _dir: tempfile::TempDir,
    pub path: PathBuf,
}

impl Small {
    pub fn new() -> Self {
        Small::of(SMALL)
    }

    pub fn of(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("paper/small");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("experiment.toml"), text).unwrap();
        Small { _dir: dir, path }
    }

    pub fn sim(&self, args: &[&str]) -> Assert {
        let mut command = Command::cargo_bin("cosched").unwrap();
        command.arg("sim").args(args).arg(&self.path).assert()
    }

    /// The list of the paper's claims: T.1, and @more lines.
    pub fn list_claims(&self, more: &str) {
        let list = "title = \"Tests\"\n[[claim]]\nid = \"T.1\"\ntext = \"spinning is slower\"\n";
        let paper = self.path.with_file_name("paper.toml");
        fs::write(paper, list.to_owned() + more).unwrap();
    }

    /// `cosched sim figure`, its claims.md beside the experiment.
    pub fn figure(&self) -> Assert {
        let claims = self.path.join("claims.md");
        self.sim(&["figure", "--claims", claims.to_str().unwrap()])
    }

    pub fn bytes(&self, name: &str) -> String {
        fs::read_to_string(self.path.join(name)).unwrap()
    }

    pub fn files(&self) -> Vec<String> {
        let names = fs::read_dir(&self.path).unwrap();
        let mut names: Vec<String> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}
