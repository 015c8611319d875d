// SPDX-License-Identifier: Apache-2.0
//! Binds abi/, so that what crosses a process boundary is written down once.

use std::{env, path::PathBuf};

fn main() {
    let root =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let mut builder = bindgen::Builder::default();
    for header in ["abi/page.h", "abi/wire.h", "abi/control.h"] {
        builder = builder.header(root.join(header).to_string_lossy());
    }
    println!("cargo:rerun-if-changed={}", root.join("abi").display());
    println!("cargo:rerun-if-changed={}", root.join("policy").display());

    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("abi.rs");
    builder
        .allowlist_type(
            "cos_(page|slot|params|ask|reply|control|hook|source|watchable|reason|rank_state).*",
        )
        .allowlist_var("COS_.*")
        .prepend_enum_name(false)
        .derive_default(true)
        .generate_comments(false)
        .generate()
        .expect("abi/*.h must parse: is libclang installed?")
        .write_to_file(out)
        .expect("OUT_DIR is writable");
}
