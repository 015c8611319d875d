# SPDX-License-Identifier: Apache-2.0
# Thin on purpose: each line calls cargo, so that CI, make and a bare cargo do the same.
.PHONY: build

build:
	cargo xtask build
