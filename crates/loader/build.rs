// SPDX-License-Identifier: Apache-2.0
//! Compiles bpf/ into one object, and binds abi/kernel.h.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The first whose BPF is good enough; an older clang loses 64-bit enums.
const CLANGS: [&str; 5] = ["clang-21", "clang-20", "clang-19", "clang-18", "clang"];
const OLDEST: u32 = 16;

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let top = here.join("../..");
    for room in ["bpf", "abi", "policy"] {
        println!("cargo:rerun-if-changed={}", top.join(room).display());
    }
    compile(&top.join("bpf/main.bpf.c"), &out.join("cosched.bpf.o"));
    bind(&top.join("abi/kernel.h"))
        .write_to_file(out.join("raw.rs"))
        .expect("OUT_DIR is writable");
    // `COS_COUNT(...)` lines alone.
    let counts = fs::read_to_string(top.join("abi/counts.def")).expect("it is in the tree");
    fs::write(out.join("counts.rs"), table(&counts)).expect("OUT_DIR is writable");
}

fn compile(source: &Path, object: &Path) {
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    let clang = env::var("BPF_CLANG").unwrap_or_else(|_| find_clang());
    let headers = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    let status = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-std=gnu11", "-O2", "-g"])
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        .arg(format!("-D__TARGET_ARCH_{}", architecture()))
        .arg(format!("-isystem{headers}"))
        .arg("-c")
        .args([source, Path::new("-o"), object])
        .status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "{clang} cannot compile {}: {status:?}; type: cargo xtask setup",
        source.display()
    );
}

fn find_clang() -> String {
    let fits = |name: &&&str| version(name).is_some_and(|version| version >= OLDEST);
    let found = CLANGS.iter().find(fits);
    found
        .unwrap_or_else(|| panic!("no clang of version {OLDEST} or newer; type: cargo xtask setup"))
        .to_string()
}

fn version(clang: &str) -> Option<u32> {
    let out = Command::new(clang).arg("-dumpversion").output().ok()?;
    String::from_utf8(out.stdout)
        .ok()?
        .split('.')
        .next()?
        .parse()
        .ok()
}

/// As bpf_tracing.h calls it.
fn architecture() -> &'static str {
    match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("aarch64") => "arm64",
        Ok("riscv64") => "riscv",
        Ok("powerpc64") => "powerpc",
        Ok("s390x") => "s390",
        _ => "x86",
    }
}

/// What policy/ and abi/page.h declare is bound in cosched-policy and cosched-model.
fn bind(header: &Path) -> bindgen::Bindings {
    bindgen::Builder::default()
        .header(header.to_string_lossy())
        .allowlist_type("cos_kernel_.*|cos_oncpu|cos_seen|cos_count")
        .allowlist_var("COS_(MAX|KERNEL|NR_RUN|NR_SEEN|NR_COUNTS|SEEN|COUNT)_.*|COS_NR_REASONS")
        .blocklist_type("cos_params|cos_job")
        .raw_line("use cosched_model::abi::cos_params;")
        .raw_line("use cosched_policy::native::Job as cos_job;")
        .prepend_enum_name(false)
        .derive_default(true)
        .generate_comments(false)
        .generate()
        .expect("abi/kernel.h must parse: is libclang installed?")
}

/// `COS_COUNT(NAME, "word", "meaning")` as `Count { word: .., meaning: .. },`.
fn table(text: &str) -> String {
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("COS_COUNT("));
    let entries = lines.map(|line| {
        let strings: Vec<&str> = line.split('"').collect();
        assert_eq!(strings.len(), 5, "abi/counts.def: {line}");
        format!(
            "Count {{ word: {:?}, meaning: {:?} }},\n",
            strings[1], strings[3]
        )
    });
    format!(
        "/// By `enum cos_count`.\npub static COUNTS: &[Count] = &[\n{}];\n",
        entries.collect::<String>()
    )
}
