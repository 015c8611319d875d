#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A machine without any parallel job, under its own scheduler and under coschedd in turns, for benchmarks.md.
# As root in a guest, after `make build`; hackbench and cyclictest are in Debian's rt-tests:
#
#   cargo xtask vm run --timeout 1200 -- docs/benchmarks/no-job.sh 6
#
# Each line of output: scheduler, what, value; seconds, switches (a second, for hogs), microseconds.

set -eu
rounds=${1:-6}
release=$PWD/target/release
sources=$(mktemp -d /run/no-job.XXXXXX)

switches() { awk '/^ctxt/ { print $2 }' /proc/stat; }

sources() {
	local file function
	for file in $(seq 12); do
		for function in $(seq 9); do
			echo "int f${file}_$function(int a, int b) { int s = 0; for (int i = 0; i < a; i++) switch (i * b % 7) {" \
				"case 0: s += i; break; case 1: s ^= b; break; case 2: s *= 3; break; default: s -= i / $function; } return s; }"
		done >"$sources/$file.c"
	done
}

compile() {
	local from to
	from=$(date +%s%N)
	ls "$sources"/*.c | xargs -P 4 -I{} cc -O2 -c -o /dev/null {}
	to=$(date +%s%N)
	echo "$1 compile $(((to - from) / 1000000))e-3"
}

messages() {
	local from seconds
	from=$(switches)
	seconds=$(hackbench -l 150 -g 3 | awk '/^Time/ { print $2 }')
	echo "$1 hackbench $seconds"
	echo "$1 hackbench-switches $(($(switches) - from))"
}

# Two hogs per CPU, and who sleeps beside them.
hogs() {
	local from cpu hogs=()
	for cpu in $(seq 0 $(($(nproc) - 1))); do
		for _ in 1 2; do
			taskset -c "$cpu" sh -c 'while :; do :; done' &
			hogs+=($!)
		done
	done
	sleep 0.5
	from=$(switches)
	sleep 4
	echo "$1 hogs-switches $((($(switches) - from) / 4))"
	cyclictest -q -t1 -i5000 -l1000 -h 30000 | awk -v name="$1" '
		/^[0-9]/ { at[nr++] = $1 + 0; times[nr - 1] = $2; all += $2 }
		END {
			for (i = 0; i < nr; i++) {
				before = sum; sum += times[i]
				if (before < all / 2 && sum >= all / 2) print name, "sleeper-p50", at[i]
				if (before < all * 0.99 && sum >= all * 0.99) print name, "sleeper-p99", at[i]
			}
		}'
	kill "${hogs[@]}"
	wait "${hogs[@]}" 2>/dev/null || true
}

all() {
	compile "$1"
	messages "$1"
	messages "$1"
	hogs "$1"
}

sources
for _ in $(seq "$rounds"); do
	all stock
	"$release/coschedd" --set control.socket=/run/no-job.socket 2>/dev/null &
	daemon=$!
	until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.2; done
	all coschedd
	kill "$daemon"
	wait "$daemon" || true
done
