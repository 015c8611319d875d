// SPDX-License-Identifier: Apache-2.0
//! A job on two nodes, which are namespaces of this machine: each node has a job page
//! of its own, the second one from a keeper that the first rank there starts and that
//! goes when the last has gone. Ranks wait for shared memory and sockets at once.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::{
    installed,
    job::{assert_nothing_left, built, number, Job, Mpi, Ran},
    need, root,
    strace::nr_yields,
    superuser,
};
use std::{ffi::OsString, path::Path};

/// Four ranks, started by the words before the program; node one may have a runtime
/// folder, which node two finds empty.
fn on_two_nodes<const N: usize>(folder: &Path, before: [OsString; N]) -> Job {
    let nodes = root().join("tests/mpi/two_nodes.sh");
    Job::plain("mpirun.openmpi")
        .args(["--host", "10.77.0.1:2,10.77.0.2:2", "-n", "4"])
        .args(before)
        .arg(Mpi::OpenMpi.compile("nodes.c", "", &[]))
        .env("OMPI_MCA_plm_rsh_agent", &nodes)
        .env("OMPI_MCA_btl_tcp_if_include", "10.77.0.0/24")
        .env("OMPI_MCA_oob_tcp_if_include", "10.77.0.0/24")
        .env("XDG_RUNTIME_DIR", folder)
        .within([nodes.as_os_str(), folder.as_os_str()])
}

/// For each of the ranks in order, the inode of its page; 0 = none.
fn pages(ran: &Ran) -> [u64; 4] {
    let stdout = ran.stdout();
    let lines: Vec<&str> = stdout.lines().collect();
    let [a, b, c, d, "whoever comes ok"] = lines[..] else {
        panic!("{stdout}");
    };
    let on = |line: &str, node| -> u64 {
        let inode = line.strip_prefix(node).expect("a node and an inode");
        inode.parse().expect("a number")
    };
    [on(a, "one "), on(b, "one "), on(c, "two "), on(d, "two ")]
}

#[test]
fn each_node_has_its_own_page_and_keeper() {
    let test = "root_nodes::each_node_has_its_own_page_and_keeper";
    let tools = installed("ip").and(Mpi::OpenMpi.found());
    if need(test, superuser()).is_none() || need(test, tools).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ran = on_two_nodes(folder.path(), []).cosched();
    let [a, b, c, d] = pages(&ran);
    assert!(a == b && c == d, "ranks of a node share its page");
    assert!(a != c && a != 0 && c != 0, "and nodes do not");

    ran.report.assert_active(2); // those of this node
    ran.report.assert_hook("poll");
    let waiter = &ran.report.ranks()[0];
    assert!(number(waiter, "nr_wakes") >= 3, "{waiter}");
    // A sleep may end by time just as a message comes.
    assert!(number(waiter, "nr_missed") <= 1, "{waiter}");

    // The keeper of node two was told the address of that on node one.
    let address = format!("COSCHED_KEEPER={}", folder.path().display());
    assert_nothing_left(&address);
}

/// A rank under strace, whose log is called by the rank's number.
const TRACED: &str = r#"exec strace -f -qq -e trace=sched_yield,getsid -e signal=none \
    -o "$0/$OMPI_COMM_WORLD_RANK" "$@""#;

/// The yield trap on another machine: nothing there may say yield.
#[test]
fn on_a_node_without_the_library_ranks_are_as_stock() {
    let test = "root_nodes::on_a_node_without_the_library_ranks_are_as_stock";
    let tools = installed("ip").and(installed("strace"));
    let tools = tools.and_then(|_| Mpi::OpenMpi.found());
    if need(test, superuser()).is_none() || need(test, tools).is_none() {
        return;
    }
    let (folder, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let library = built("libcosched.so");
    let before = ["sh".into(), "-c".into(), TRACED.into(), logs.path().into()];
    let ran = on_two_nodes(folder.path(), before)
        .env("ABSENT", library.parent().unwrap())
        .cosched();
    let [a, b, c, d] = pages(&ran);
    assert!(a == b && a != 0, "node one has a page");
    assert_eq!([c, d], [0, 0], "node two has none");
    for rank in ["2", "3"] {
        assert_eq!(nr_yields(&logs.path().join(rank), 1), 0, "rank {rank}");
    }
    ran.report.assert_active(2);
    assert!(number(&ran.report.ranks()[0], "nr_wakes") >= 3);
    let address = format!("COSCHED_KEEPER={}", folder.path().display());
    assert_nothing_left(&address);
}
