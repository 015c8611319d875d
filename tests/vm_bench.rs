// SPDX-License-Identifier: Apache-2.0
//! `cosched bench --vm`: one command line on the host compares schedulers in a guest, and its
//! samples come home. Who ran under what is asserted, never a time.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use cosched_tests::{guest, job, need};

/// Stock, the kernel body alone and with the shim, and another sched_ext program: coschedd by
/// another name. The job is a shell's, since beside emulation an MPI's start is long.
#[test]
fn a_guest_compares_schedulers() {
    let Some(_guest) = need("a_guest_compares_schedulers", guest()) else {
        return;
    };
    let folder = tempfile::tempdir().expect("/tmp is writable");
    let other = folder.path().join("scx_other");
    let coschedd = job::built("coschedd");
    let script = format!(
        "#!/bin/sh\nexec {} --socket /run/other.sock\n",
        coschedd.display()
    );
    fs::write(&other, script).expect("a folder of ours");
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).expect("a file of ours");
    let csv = folder.path().join("samples.csv");
    let mut bench = Command::new(job::built("cosched"));
    bench.args(["bench", "--vm", "--quick", "--mpi", "none", "--ranks", "1"]);
    bench.args(["--arms", "stock,kernel:auto,kernel+shim:auto"]);
    bench.arg("--scheduler").arg(&other);
    bench.args(["--competitors", "0", "--probe", "200ms"]);
    bench.args(["--max-foreign", "100%", "--json", "--csv"]);
    bench.arg(&csv);
    bench.args(["--", "cat", "/sys/kernel/sched_ext/state"]);
    let output = bench.output().expect("it was built");
    let said = job::shown(&output);
    assert!(output.status.success(), "{said}");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let arms: Vec<_> = told["lines"].as_array().expect("lines").iter().collect();
    assert_eq!(arms.len(), 4, "{said}");
    assert!(arms.iter().all(|arm| arm["failed"].is_null()), "{said}");
    let text = fs::read_to_string(&csv).expect("it came home");
    for (arm, scheduler, role) in [
        ("stock", "stock", "job"),
        ("kernel:auto", "cosched", "job"),
        ("kernel+shim:auto", "cosched", "job"),
        ("scx_other", "scx_other", "job"),
        ("", "stock", "probe"),
        ("", "cosched", "probe"),
        ("", "scx_other", "probe"),
    ] {
        let row = format!(",{arm},{scheduler},0,false,{role},");
        assert!(text.contains(&row), "no {row} in\n{text}\n{said}");
    }
    assert!(text.contains("QEMU "), "no guest in\n{text}");
}
