#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What coschedd's programs take on a machine without any job, in instructions, for benchmarks.md.

As root in a guest whose clocks count instructions, after `make build`; bpftool and rt-tests (hackbench) are Debian's:

    cargo xtask vm run --instructions --cpus 1 -- docs/benchmarks/instructions.py

The kernel adds up the time of each program's calls (kernel.bpf_stats_enabled), so there it adds up instructions: those
of the program, compiled, and of the kernel's functions that it calls, and a few of reading the clock. One CPU, since a
second one's instructions would count for the first.
"""

import json
import os
import pathlib
import subprocess
import time

RELEASE = pathlib.Path("target/release").resolve()
SECONDS = 4


def read(path):
    return pathlib.Path(path).read_text(encoding="utf-8").strip()


def switches():
    return int(next(line.split()[1] for line in read("/proc/stat").splitlines() if line.startswith("ctxt")))


def programs():
    """Calls and instructions by program."""
    told = subprocess.run(["bpftool", "-j", "prog", "show"], check=True, capture_output=True).stdout
    return {p["name"]: (p["run_cnt"], p["run_time_ns"]) for p in json.loads(told) if "run_cnt" in p}


def hogs():
    """Two on each CPU."""
    spin = "while :; do :; done"
    for cpu in range(os.cpu_count()):
        for _ in range(2):
            yield subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", spin])


def beside_hogs():
    started = list(hogs())
    yield
    time.sleep(SECONDS)
    yield
    for hog in started:
        hog.kill()


def in_hackbench():
    yield
    subprocess.run(["hackbench", "-l", "50", "-g", "3"], check=True, stdout=subprocess.DEVNULL)
    yield


def measure(what, steps):
    next(steps)
    before, switched = programs(), switches()
    next(steps)
    switched, after = switches() - switched, programs()
    next(steps, None)
    sums = [0, 0]
    print(f"{what}: {switched} switches", flush=True)
    for name, (calls, instructions) in sorted(after.items()):
        calls -= before.get(name, (0, 0))[0]
        instructions -= before.get(name, (0, 0))[1]
        if calls:
            print(f"  {name:20} {calls / switched:6.2f} calls a switch, {instructions / calls:7.0f} instructions a call")
        sums = [sums[0] + calls, sums[1] + instructions]
    print(f"  {'all':20} {sums[0] / switched:6.2f} calls a switch, {sums[1] / switched:7.0f} instructions a switch")


def main():
    quiet = ["--set", "control.socket=/run/instructions.socket"]
    daemon = subprocess.Popen([RELEASE / "coschedd", *quiet], stderr=subprocess.DEVNULL)
    while read("/sys/kernel/sched_ext/state") != "enabled":
        time.sleep(0.2)
    pathlib.Path("/proc/sys/kernel/bpf_stats_enabled").write_text("1", encoding="utf-8")
    measure("beside hogs", beside_hogs())
    measure("hackbench", in_hackbench())
    daemon.terminate()
    daemon.wait()


main()
