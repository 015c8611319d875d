// SPDX-License-Identifier: Apache-2.0
//! The keeper of a node that cosched was not started on, and the doctor.

#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

mod cli;

use cli::{wait_for, Install};
use predicates::str::contains;
use rustix::{
    net::{connect, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType},
    process::geteuid,
};
use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::Command,
};

const KEEPER: &str = "/run/user/1/cosched-foobar/keeper.sock";

fn keep(install: &Install) -> Command {
    let mut command = install.std();
    let params = "00".repeat(size_of::<cosched_model::abi::cos_params>());
    command
        .arg("keep")
        .env("COSCHED_KEEPER", KEEPER)
        .env("COSCHED_PARAMS", params);
    command
}

fn path(install: &Install) -> PathBuf {
    let output = keep(install).arg("--print-path").output().unwrap();
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

fn try_join(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

fn join(path: &Path) -> OwnedFd {
    try_join(path).expect("a keeper listens")
}

#[test]
fn lives_where_every_rank_of_the_job_finds_it() {
    let install = Install::new();
    let name = format!(
        "cosched-{}-f8044bd185ab05b6/keeper.sock",
        geteuid().as_raw()
    );
    assert_eq!(path(&install), install.runtime().join(name));
}

#[test]
fn of_many_started_at_once_one_stays_until_it_is_not_needed() {
    let install = Install::new();
    let starters: Vec<_> = (0..4).map(|_| keep(&install).spawn().unwrap()).collect();
    for mut starter in starters {
        assert!(starter.wait().unwrap().success());
    }
    let socket = path(&install);
    drop(join(&socket));
    wait_for("the keeper to leave", || !socket.parent().unwrap().exists());
}

#[test]
fn takes_the_place_of_a_dead_one() {
    let install = Install::new();
    assert!(keep(&install).status().unwrap().success());
    let socket = path(&install);
    let connection = join(&socket);
    let dead = rustix::net::sockopt::socket_peercred(&connection)
        .unwrap()
        .pid;
    rustix::process::kill_process(dead, rustix::process::Signal::KILL).unwrap();
    drop(connection);
    wait_for("its end", || try_join(&socket).is_err());
    assert!(keep(&install).status().unwrap().success());
    drop(join(&socket));
    wait_for("the keeper to leave", || !socket.exists());
}

#[test]
fn says_that_ranks_start_it() {
    let install = Install::new();
    install
        .cosched()
        .arg("keep")
        .assert()
        .code(2)
        .stderr(contains("COSCHED_KEEPER"));
}

#[test]
fn doctor_exits_3_only_where_nothing_could_run() {
    let install = Install::without_shim();
    let doctor = install
        .cosched()
        .args(["doctor", "--json"])
        .assert()
        .code(3);
    let diagnosis: serde_json::Value = serde_json::from_slice(&doctor.get_output().stdout).unwrap();
    let shim = diagnosis["machine"]
        .as_array()
        .unwrap()
        .iter()
        .find(|fact| fact["name"] == "libcosched.so");
    assert_eq!(shim.unwrap()["status"], "missing");
    install
        .cosched()
        .arg("doctor")
        .assert()
        .code(3)
        .stdout(contains("missing libcosched.so"));
}
