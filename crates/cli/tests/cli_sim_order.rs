// SPDX-License-Identifier: Apache-2.0
//! `cosched sim validate --order`: presets in the simulator and under the kernel body in a guest. Both sides are data: what
//! was measured once, and a simulation that gives the same bytes each time.

#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use assert_cmd::{assert::Assert, Command};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use std::fs;
use std::path::{Path, PathBuf};

/// `reality/barrier`, since times are always held to something, and the two of `guest`.
struct Copies {
    _dir: tempfile::TempDir,
    reality: PathBuf,
    guest: [PathBuf; 2],
}

impl Copies {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let copy = |name: &str| {
            let from = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../experiments")
                .join(name);
            let to = dir.path().join(name);
            fs::create_dir_all(&to).unwrap();
            for file in ["experiment.toml", "measured.csv"] {
                fs::copy(from.join(file), to.join(file)).unwrap();
            }
            to
        };
        let reality = copy("reality/barrier");
        let guest = ["guest/barrier", "guest/latency"].map(copy);
        let copies = Copies {
            _dir: dir,
            reality,
            guest,
        };
        copies
            .sim(
                &["run", "--quick"],
                &[&copies.reality, &copies.guest[0], &copies.guest[1]],
            )
            .code(0);
        copies
    }

    fn sim(&self, args: &[&str], paths: &[&PathBuf]) -> Assert {
        let mut command = Command::cargo_bin("cosched").unwrap();
        command.arg("sim").args(args).args(paths).assert()
    }

    fn validate(&self, opposite: &str) -> Assert {
        let [one, other] = &self.guest;
        let (one, other) = (one.to_str().unwrap(), other.to_str().unwrap());
        let args = [
            "validate",
            "--quick",
            "--order",
            one,
            "--order",
            other,
            "--opposite",
            opposite,
        ];
        self.sim(&args, &[&self.reality])
    }
}

/// Of 112 pairs so many are in opposite orders, with few replications too.
const OPPOSITE: &str = "0";

#[test]
fn the_simulator_puts_presets_into_the_order_of_the_kernel_body() {
    let copies = Copies::new();
    let same = copies.validate(OPPOSITE).code(0);
    same.stdout(contains("The order of presets under our scheduler").and(contains("Of 112 pairs")));
}

/// What was measured of the best preset and of one of the worst is exchanged.
#[test]
fn a_pair_in_opposite_orders_is_named_and_too_many_are_exit_1() {
    let copies = Copies::new();
    let path = copies.guest[1].join("measured.csv");
    let [best, worst] = ["auto,", "local-block,"].map(|name| format!("kernel+shim:{name}"));
    let text = fs::read_to_string(&path).unwrap();
    let swapped = text
        .replace(&best, "kernel+shim:x,")
        .replace(&worst, &best)
        .replace("kernel+shim:x,", &worst);
    fs::write(&path, swapped).unwrap();
    let named = contains("- 1 hogs: measured kernel+shim:local-block before kernel+shim:auto, simulated the other way round");
    copies.validate(OPPOSITE).code(1).stdout(named);
    copies.validate("1000").code(0);
}
