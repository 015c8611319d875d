// SPDX-License-Identifier: Apache-2.0
//! live EXPERIMENT FIRST LAST FILE.csv: passes FIRST to LAST of an experiment of S1's, measured in a guest.
//!
//! Rows are appended to FILE.csv as they come, so that a series may be made in several parts.

use cosched_tests::live::{mixed, plan, Row};
use cosched_tests::{guest, inside};
use std::fs::File;
use std::time::Duration;

/// Of one boot.
const TIMEOUT: Duration = Duration::from_secs(1200);

/// What stands for the file's name inside, where it has its first line already.
const GOES_ON: &str = "goes-on";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, first, last, path] = &args[..] else {
        panic!("type: live EXPERIMENT FIRST LAST FILE.csv");
    };
    if inside::is_inside() {
        let passes = [first, last].map(|word| word.parse::<u64>().expect("a number"));
        return measure(name, passes, path != GOES_ON);
    }
    let guest = guest().unwrap_or_else(|error| panic!("{error}"));
    let file = File::options().create(true).append(true).open(path);
    let file = file.unwrap_or_else(|error| panic!("{path}: {error}"));
    let is_new = file.metadata().is_ok_and(|about| about.len() == 0);
    let told = if is_new { path } else { GOES_ON };
    let (_tools, job) = inside::job(&[name, first, last, told], TIMEOUT);
    let outcome = guest.run_into(&job, file, std::io::stderr());
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.code, 0, "the guest's part failed");
}

fn measure(name: &str, [first, last]: [u64; 2], mut needs_head: bool) {
    let mut say = |row: Row| {
        let (names, values): (Vec<_>, Vec<_>) = row.into_iter().unzip();
        if std::mem::take(&mut needs_head) {
            println!("{}", names.join(","));
        }
        println!("{}", values.join(","));
    };
    for number in first..=last {
        match name {
            "mixed" => mixed::pass(number, &mut say),
            _ => plan::pass(name, number, &mut say),
        }
    }
}
