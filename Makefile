# SPDX-License-Identifier: Apache-2.0
# Thin on purpose: each line calls cargo, so that CI, make and a bare cargo do the same.
PREFIX ?= /usr/local
.PHONY: setup build check test install

setup:
	cargo xtask setup
build:
	cargo xtask build
check:
	cargo xtask check
test:
	cargo xtask test
install:
	cargo xtask install --prefix $(PREFIX)
