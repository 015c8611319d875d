# SPDX-License-Identifier: Apache-2.0
# Thin on purpose: each line calls cargo, so that CI, make and a bare cargo do the same.
PREFIX ?= /usr/local
# What `make bench` is to measure, as `cosched bench --help` tells.
ARGS ?= --workload barrier
# How often `make soak` kills coschedd.
COUNT ?= 1000
# For how many seconds it then stresses a guest.
STRESS ?= 600
.PHONY: setup build check test soak demo bench install

setup:
	cargo xtask setup
build:
	cargo xtask build
check:
	cargo xtask check
test:
	cargo xtask test
soak:
	cargo xtask soak --kills $(COUNT) --stress $(STRESS)
demo:
	cargo xtask demo
bench: build
	cargo run --quiet --release --package cosched-cli -- bench $(ARGS)
install:
	cargo xtask install --prefix $(PREFIX)
