// SPDX-License-Identifier: Apache-2.0
//! What bounds a job here: CPUs, quotas, memory that may be locked, shared
//! memory; and whether the preloaded library can be loaded at all.

use super::Fact;
use crate::run::launch;
use rustix::{
    fs::statvfs,
    process::{getrlimit, Resource},
    thread::sched_getaffinity,
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Open MPI and MPICH both want some MiB of it for each rank.
const SHM_MIN_BYTES: u64 = 64 << 20;

/// Of this process, as its children will inherit them.
pub fn facts() -> Vec<Fact> {
    vec![cpus(), quota(), memlock(), shm()]
}

fn cpus() -> Fact {
    match sched_getaffinity(None) {
        Ok(cpus) => Fact::ok("CPUs", format!("{} allowed", cpus.count())),
        Err(error) => Fact::missing("CPUs", error.to_string(), "report this"),
    }
}

fn quota() -> Fact {
    match quotas().into_iter().next() {
        None => Fact::ok("CPU quota", "none"),
        Some((file, quota)) => Fact::note(
            "CPU quota",
            format!("{quota} in {}", file.display()),
            "a job may be stopped for the rest of a period, whatever cosched does",
        ),
    }
}

/// Limits of the cgroups that this process is in, the innermost first.
fn quotas() -> Vec<(PathBuf, String)> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (mount, file) = match controllers {
            "" => ("/sys/fs/cgroup", "cpu.max"),
            v1 if v1.split(',').any(|c| c == "cpu") => ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us"),
            _ => continue,
        };
        let inner = Path::new(mount).join(group.trim_start_matches('/'));
        for dir in inner.ancestors().take_while(|dir| dir.starts_with(mount)) {
            let quota = fs::read_to_string(dir.join(file)).unwrap_or_default();
            if is_limit(quota.trim()) {
                found.push((dir.join(file), quota.trim().to_owned()));
            }
        }
    }
    found
}

/// `max 100000` (v2) and `-1` (v1) are none.
fn is_limit(quota: &str) -> bool {
    quota.starts_with(|c: char| c.is_ascii_digit())
}

fn memlock() -> Fact {
    match getrlimit(Resource::Memlock).current {
        None => Fact::ok("locked memory", "unlimited"),
        Some(bytes) if bytes >= 64 << 10 => {
            Fact::ok("locked memory", format!("{} KiB", bytes >> 10))
        }
        Some(bytes) => Fact::note(
            "locked memory",
            format!("{bytes} bytes"),
            "too little for a record of context switches: raise ulimit -l to 64 KiB",
        ),
    }
}

fn shm() -> Fact {
    let to_do =
        "the MPI library itself needs it: in a container give --shm-size, or mount a tmpfs there";
    match statvfs("/dev/shm") {
        Err(error) => Fact::missing("/dev/shm", error.to_string(), to_do),
        Ok(stat) => {
            let bytes = stat.f_bavail * stat.f_frsize;
            let found = format!("{} MiB free", bytes >> 20);
            if bytes >= SHM_MIN_BYTES {
                Fact::ok("/dev/shm", found)
            } else {
                Fact::note("/dev/shm", found, to_do)
            }
        }
    }
}

/// Is the preloaded library there, and does the loader take it?
pub fn shim() -> Fact {
    let path = match launch::find_shim() {
        Ok(path) => path,
        Err(error) => return Fact::missing("libcosched.so", error.to_string(), "then try again"),
    };
    // A loader that cannot use a preload says so on stderr, and goes on.
    let tried = Command::new("true")
        .env("LD_PRELOAD", &path)
        .stdin(Stdio::null())
        .output();
    let complaint = tried.map_or_else(
        |error| error.to_string(),
        |output| String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    );
    if complaint.is_empty() {
        Fact::ok("libcosched.so", path.display().to_string())
    } else {
        let to_do = "it must be of this machine's architecture and C library: build it here";
        Fact::missing("libcosched.so", complaint, to_do)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_a_limit_from_none() {
        assert!(is_limit("50000 100000") && is_limit("50000"));
        assert!(!is_limit("max 100000") && !is_limit("-1") && !is_limit(""));
    }
}
