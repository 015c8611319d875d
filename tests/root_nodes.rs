// SPDX-License-Identifier: Apache-2.0
//! A job on two nodes, which are namespaces of this machine: each node has a job page
//! of its own, the second one from a keeper that the first rank there starts and that
//! goes when the last has gone. Ranks wait for shared memory and sockets at once.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::{
    installed,
    job::{assert_nothing_left, number, Job, Mpi},
    need, root, superuser,
};

#[test]
fn each_node_has_its_own_page_and_keeper() {
    let test = "root_nodes::each_node_has_its_own_page_and_keeper";
    let tools = installed("ip").and(Mpi::OpenMpi.found());
    if need(test, superuser()).is_none() || need(test, tools).is_none() {
        return;
    }
    let nodes = root().join("tests/mpi/two_nodes.sh");
    let folder = tempfile::tempdir().unwrap();
    let ran = Job::plain("mpirun.openmpi")
        .args(["--host", "10.77.0.1:2,10.77.0.2:2", "-n", "4"])
        .arg(Mpi::OpenMpi.compile("nodes.c", "", &[]))
        .env("OMPI_MCA_plm_rsh_agent", &nodes)
        .env("OMPI_MCA_btl_tcp_if_include", "10.77.0.0/24")
        .env("OMPI_MCA_oob_tcp_if_include", "10.77.0.0/24")
        .env("XDG_RUNTIME_DIR", folder.path())
        .within([nodes.as_os_str(), folder.path().as_os_str()])
        .cosched();

    let stdout = ran.stdout();
    let lines: Vec<&str> = stdout.lines().collect();
    let [a, b, c, d, "whoever comes ok"] = lines[..] else {
        panic!("{stdout}");
    };
    assert!(a.starts_with("one ") && c.starts_with("two "), "{stdout}");
    assert!(a == b && c == d, "ranks of a node share its page: {stdout}");
    let inodes = [a, c].map(|line| line[4..].parse::<u64>().unwrap());
    assert!(inodes[0] != inodes[1] && !inodes.contains(&0), "{stdout}");

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
