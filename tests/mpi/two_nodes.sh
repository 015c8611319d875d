#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# two_nodes.sh FOLDER COMMAND...: COMMAND on node "one" of two that are namespaces of this
# machine (host name, network, mounts) with a cable between them. On node "two" FOLDER is
# empty: what lies there belongs to node one; so is the folder that ABSENT names, if any. Called as two_nodes.sh ADDRESS COMMAND... by a
# launcher it starts the command on node two, as a remote shell would: with no environment.
# Both nodes vanish with their processes.
set -euo pipefail

if [ -n "${NODE_TWO:-}" ]; then
	shift
	exec nsenter -t "$NODE_TWO" -n -u -m env -i PATH="$PATH" HOME="$HOME" \
		OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 sh -c "$*"
fi
if [ -z "${NODE_ONE:-}" ]; then
	NODE_ONE=1 exec unshare --net --uts --mount "$0" "$@"
fi

folder=$1
shift
hostname one
ip link set lo up
unshare --net --uts --mount sh -c 'hostname two && ip link set lo up &&
	for absent; do mount -t tmpfs two "$absent" || exit; done &&
	: >"$1/ready" && exec sleep 600' sh "$folder" ${ABSENT:+"$ABSENT"} &
two=$!
trap 'kill $two' EXIT
until nsenter -t "$two" -m test -e "$folder/ready"; do
	kill -0 "$two"
	sleep 0.02
done
ip link add one type veth peer name two netns "$two"
ip addr add 10.77.0.1/24 dev one
ip link set one up
nsenter -t "$two" -n ip addr add 10.77.0.2/24 dev two
nsenter -t "$two" -n ip link set two up
NODE_TWO=$two "$@"
