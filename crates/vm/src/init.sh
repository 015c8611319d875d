#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The guest's process 1. It decides nothing about the job: it makes a system out of
# the host's files, starts the job that lies beside it, sends back output and exit
# code, and powers off. Where a step fails it ends, the kernel panics, and the host
# reads why on the console.
set -e
here=${0%/*}
. "$here/settings"

# First the root: the host's files below, a memory file system above them for all
# that is written. Then this script again, inside.
if [ "$1" != inside ]; then
	mount -t proc proc /proc
	mount -t tmpfs tmpfs /run
	grep -qw overlay /proc/filesystems || insmod "$modules"/kernel/fs/overlayfs/overlay.ko*
	mkdir /run/upper /run/work /run/root
	mount -t overlay -o lowerdir=/,upperdir=/run/upper,workdir=/run/work overlay /run/root
	umount /proc
	cd /run/root
	pivot_root . run
	exec /bin/sh "$0" inside
fi

umount -l /run
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
ln -s /proc/self/fd /dev/fd
ln -s /proc/self/fd/0 /dev/stdin
ln -s /proc/self/fd/1 /dev/stdout
ln -s /proc/self/fd/2 /dev/stderr
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo '+cpuset +cpu +memory +pids' >/sys/fs/cgroup/cgroup.subtree_control
mount -t bpf bpf /sys/fs/bpf
mount -t tracefs tracefs /sys/kernel/tracing
mount -t debugfs debugfs /sys/kernel/debug

# Where modprobe and programs that ask for the kernel's configuration look.
release=$(uname -r)
if [ -n "$modules" ]; then
	mkdir -p /lib/modules /boot
	[ -e "/lib/modules/$release" ] || ln -s "$modules" "/lib/modules/$release"
	cp "$modules/config" "/boot/config-$release"
fi

echo guest >/proc/sys/kernel/hostname
echo '127.0.0.1 guest' >>/etc/hosts
ip link set lo up
if [ -n "$exchange" ]; then
	mkdir -p "$exchange"
	mount -t virtiofs exchange "$exchange"
fi

# Pipes, since a port can be opened only once and jobs open /dev/stderr again.
set -- /dev/vport*p[123]
mkfifo /run/stdout /run/stderr
cat /run/stdout >"$1" &
stdout=$!
cat /run/stderr >"$2" &
stderr=$!
exec 9>"$3"
echo begun >&9
code=0
setsid /bin/sh "$here/job" </dev/null >/run/stdout 2>/run/stderr 9>&- || code=$?

# Whatever the job left running keeps a pipe open.
for process in /proc/[0-9]*; do
	case ${process#/proc/} in
	1 | "$stdout" | "$stderr") ;;
	*) kill -9 "${process#/proc/}" 2>/dev/null || true ;;
	esac
done
wait "$stdout" "$stderr"
echo "$code" >&9
echo o >/proc/sysrq-trigger
sleep 60
