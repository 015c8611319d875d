// SPDX-License-Identifier: Apache-2.0
//! What the kernel offers: slices, BTF, sched_ext, records of context switches,
//! autogroups.

use super::Fact;
use std::{fs, mem, path::Path, thread};

/// The shortest that EEVDF takes.
const SLICE_NS: u64 = 100_000;

/// Of the kernel that runs.
pub fn facts() -> Vec<Fact> {
    vec![
        kernel(),
        slice(),
        btf(),
        sched_ext(),
        switches(),
        autogroup(),
    ]
}

fn word(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn kernel() -> Fact {
    match word("/proc/sys/kernel/osrelease") {
        Some(release) => Fact::ok("kernel", format!("Linux {release}")),
        None => Fact::missing("kernel", "no /proc", "mount /proc"),
    }
}

fn slice() -> Fact {
    // The slice belongs to the thread, and ends with it.
    match thread::spawn(|| try_slice(SLICE_NS)).join() {
        Ok(Some(ns)) if ns == SLICE_NS => Fact::ok("slice", "a rank may ask for turns of 100 us"),
        Ok(read) => Fact::missing(
            "slice",
            format!("asked for {SLICE_NS} ns, read back {}", read.unwrap_or(0)),
            "cosched works without it; Linux 6.12 or newer gives woken ranks their CPU sooner",
        ),
        Err(_) => Fact::missing("slice", "the try failed", "report this"),
    }
}

/// Sets a slice for this thread, and reads it back.
fn try_slice(ns: u64) -> Option<u64> {
    // SAFETY: sched_attr is plain integers; the kernel writes and reads at most
    // the size that it is told.
    unsafe {
        let size = mem::size_of::<libc::sched_attr>() as u32;
        let mut attr: libc::sched_attr = mem::zeroed();
        let get = |attr: &mut libc::sched_attr| {
            libc::syscall(libc::SYS_sched_getattr, 0, attr, size, 0) == 0
        };
        if !get(&mut attr) {
            return None;
        }
        attr.sched_runtime = ns;
        if libc::syscall(libc::SYS_sched_setattr, 0, &attr, 0) != 0 {
            return None;
        }
        get(&mut attr).then_some(attr.sched_runtime)
    }
}

fn btf() -> Fact {
    if Path::new("/sys/kernel/btf/vmlinux").exists() {
        Fact::ok("BTF", "/sys/kernel/btf/vmlinux")
    } else {
        let to_do = "only coschedd needs it: a kernel with CONFIG_DEBUG_INFO_BTF";
        Fact::missing("BTF", "no /sys/kernel/btf/vmlinux", to_do)
    }
}

fn sched_ext() -> Fact {
    match word("/sys/kernel/sched_ext/state") {
        Some(state) => Fact::ok("sched_ext", state),
        None => {
            let to_do =
                "only coschedd needs it, to schedule: Linux 6.13+ with CONFIG_SCHED_CLASS_EXT";
            Fact::missing("sched_ext", "no /sys/kernel/sched_ext", to_do)
        }
    }
}

fn switches() -> Fact {
    let name = "context switches";
    let level =
        word("/proc/sys/kernel/perf_event_paranoid").and_then(|text| text.parse::<i32>().ok());
    match level {
        None => Fact::missing(name, "this kernel has no perf events", "ranks guess from /proc whether a peer runs"),
        Some(level) if level <= 2 => {
            Fact::ok(name, format!("perf_event_paranoid {level}: ranks see whether a peer is on its CPU"))
        }
        Some(level) => Fact::note(
            name,
            format!("perf_event_paranoid {level}: an ordinary user guesses from /proc whether a peer runs"),
            "sysctl kernel.perf_event_paranoid=2 (as root) makes it exact",
        ),
    }
}

fn autogroup() -> Fact {
    match word("/proc/sys/kernel/sched_autogroup_enabled").as_deref() {
        Some("1") => Fact::note(
            "autogroup",
            "on: in the root CPU cgroup each session competes as one",
            "MPICH starts every rank in a session of its own, which gets more than 1/(n+1) beside n competitors; \
             `cosched bench` measures the fair share instead of assuming it",
        ),
        _ => Fact::ok("autogroup", "off: each task competes for itself"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_no_slice_behind() {
        let slice_of_this_thread = || {
            let sched = fs::read_to_string("/proc/thread-self/sched").ok()?;
            sched
                .lines()
                .find(|l| l.starts_with("se.slice"))
                .map(str::to_owned)
        };
        let before = slice_of_this_thread();
        slice();
        assert_eq!(slice_of_this_thread(), before);
    }
}
