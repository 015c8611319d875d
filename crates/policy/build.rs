// SPDX-License-Identifier: Apache-2.0
//! Binds policy/policy.h, compiles it natively, and derives the words that a
//! person reads from the names of its enums, so that none is written twice.

use bindgen::callbacks::{EnumVariantCustomBehavior, EnumVariantValue, ParseCallbacks};
use std::{
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

/// C enum, the Rust list of its words, the prefix that a word drops.
const WORDS: [(&str, &str, &str); 24] = [
    ("cos_question", "QUESTIONS", "COS_Q_"),
    ("cos_wait_answer", "WAIT_ANSWERS", "COS_WAIT_"),
    ("cos_arrival_answer", "ARRIVAL_ANSWERS", "COS_ARRIVAL_"),
    ("cos_fairness_answer", "FAIRNESS_ANSWERS", "COS_FAIRNESS_"),
    ("cos_periodic_answer", "PERIODIC_ANSWERS", "COS_PERIODIC_"),
    ("cos_order_answer", "ORDER_ANSWERS", "COS_ORDER_"),
    ("cos_quantum_answer", "QUANTUM_ANSWERS", "COS_QUANTUM_"),
    (
        "cos_allocation_answer",
        "ALLOCATION_ANSWERS",
        "COS_ALLOCATION_",
    ),
    ("cos_adaptive_arg", "ADAPTIVE_ARGS", "COS_ADAPTIVE_"),
    ("cos_boost_arg", "BOOST_ARGS", "COS_BOOST_"),
    (
        "cos_queue_cycle_arg",
        "QUEUE_CYCLE_ARGS",
        "COS_QUEUE_CYCLE_",
    ),
    ("cos_lag_arg", "LAG_ARGS", "COS_LAG_"),
    ("cos_calibrated_arg", "CALIBRATED_ARGS", "COS_CALIBRATED_"),
    ("cos_periodic_arg", "PERIODIC_ARGS", "COS_PERIODIC_"),
    ("cos_frequency_arg", "FREQUENCY_ARGS", "COS_FREQUENCY_"),
    ("cos_fixed_arg", "FIXED_ARGS", "COS_FIXED_"),
    ("cos_match_arg", "MATCH_ARGS", "COS_MATCH_"),
    ("cos_shared_arg", "SHARED_ARGS", "COS_SHARED_"),
    ("cos_gang_arg", "GANG_ARGS", "COS_GANG_"),
    ("cos_event", "EVENTS", "COS_EV_"),
    ("cos_peer_state", "PEER_STATES", "COS_PEER_"),
    ("cos_act", "ACTS", "COS_ACT_"),
    ("cos_reason", "REASONS", "COS_WHY_"),
    ("cos_field", "FIELDS", "COS_F_"),
];

/// Notes every enum constant that bindgen meets, in order, as (enum, constant).
#[derive(Clone, Debug, Default)]
struct Enums(Arc<Mutex<Vec<(String, String)>>>);

impl ParseCallbacks for Enums {
    fn enum_variant_behavior(
        &self,
        of: Option<&str>,
        constant: &str,
        _value: EnumVariantValue,
    ) -> Option<EnumVariantCustomBehavior> {
        let of = of.unwrap_or_default().trim_start_matches("enum ");
        let mut seen = self.0.lock().expect("one thread");
        seen.push((of.to_owned(), constant.to_owned()));
        None
    }
}

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let policy = here.join("../../policy");
    let native = here.join("native");
    for path in [&policy, &native] {
        println!("cargo:rerun-if-changed={}", path.display());
    }

    cc::Build::new()
        .file(native.join("native.c"))
        .include(&policy)
        .std("c11")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("cosched_policy_native");
    let enums = Enums::default();
    bind(&native.join("native.h"), &policy, enums.clone())
        .write_to_file(out.join("raw.rs"))
        .expect("OUT_DIR is writable");
    let seen = enums.0.lock().expect("one thread");
    fs::write(out.join("words.rs"), words(&seen)).expect("OUT_DIR is writable");
}

/// cos_params is not bound again: it is the one that the job page carries.
fn bind(header: &Path, include: &Path, enums: Enums) -> bindgen::Bindings {
    bindgen::Builder::default()
        .header(header.to_string_lossy())
        .clang_arg(format!("-I{}", include.display()))
        .allowlist_function("native_.*")
        .allowlist_type("cos_.*")
        .allowlist_var("COS_.*")
        .blocklist_type("cos_params")
        .raw_line("use cosched_model::abi::cos_params;")
        .prepend_enum_name(false)
        .derive_default(true)
        .derive_partialeq(true)
        .generate_comments(false)
        .parse_callbacks(Box::new(enums))
        .generate()
        .expect("policy/*.h must parse: is libclang installed?")
}

/// `pub const REASONS: &[&str] = &["preset", ...];` and so on, in C's order.
fn words(seen: &[(String, String)]) -> String {
    let mut text = String::new();
    for (of, list, prefix) in WORDS {
        let words: Vec<String> = seen
            .iter()
            .filter(|(e, c)| e == of && !c.starts_with("COS_NR_"))
            .map(|(_, c)| c.strip_prefix(prefix).expect("one prefix an enum"))
            .map(str::to_lowercase)
            .collect();
        assert!(!words.is_empty(), "policy/ has no enum {of}");
        writeln!(text, "/// The words of `enum {of}`, in its order.").expect("memory");
        writeln!(text, "pub const {list}: &[&str] = &{words:?};").expect("memory");
    }
    text
}
