// SPDX-License-Identifier: Apache-2.0
//! Every header of policy/ and abi/ compiles alone and without a warning: by gcc,
//! by clang, and by clang for BPF. They are shared by programs of all three.

use cosched_tests::{need, root, tool};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const NATIVE: &[&str] = &["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2"];
const BPF: &[&str] = &[
    "-target", "bpf", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2",
];

/// The compiler's complaint about @header as the whole of a program.
fn compile(compiler: &str, flags: &[&str], header: &Path) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let output = Command::new(compiler)
        .args(flags)
        .args(["-x", "c", "-c", "-o"])
        .arg(folder.path().join("header.o"))
        .arg(header)
        .output()
        .map_err(|e| format!("{compiler}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{compiler} {flags:?} {header:?}:\n{said}"))
}

fn headers() -> Vec<PathBuf> {
    let folders = ["policy", "abi"].map(|folder| root().join(folder));
    let files = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("a folder of the source tree"));
    let mut headers: Vec<PathBuf> = files
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "h"))
        .collect();
    headers.sort();
    headers
}

fn all_compile(compiler: &str, flags: &[&str]) {
    let headers = headers();
    assert!(headers.len() >= 5, "only {headers:?}");
    let wrong: Vec<String> = headers
        .iter()
        .filter_map(|header| compile(compiler, flags, header).err())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn by_gcc() {
    if let Some(gcc) = need("headers::by_gcc", tool("gcc")) {
        all_compile(&gcc, NATIVE);
    }
}

#[test]
fn by_clang() {
    if let Some(clang) = need("headers::by_clang", tool("clang")) {
        all_compile(&clang, NATIVE);
    }
}

#[test]
fn by_clang_for_bpf() {
    if let Some(clang) = need("headers::by_clang_for_bpf", tool("clang")) {
        all_compile(&clang, BPF);
    }
}

#[test]
fn a_header_that_leans_on_others_or_warns_is_found() {
    let test = "headers::a_header_that_leans_on_others_or_warns_is_found";
    let Some(gcc) = need(test, tool("gcc")) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let header = folder.path().join("bad.h");
    for bad in ["extern u32 x;\n", "static int unused(void) { return 0; }\n"] {
        fs::write(&header, bad).unwrap();
        assert!(compile(&gcc, NATIVE, &header).is_err(), "{bad}");
    }
    fs::write(&header, "extern unsigned x;\n").unwrap();
    assert_eq!(compile(&gcc, NATIVE, &header), Ok(()));
}
