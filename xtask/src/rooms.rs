// SPDX-License-Identifier: Apache-2.0
//! Rooms: which part may know which. Arrows point down only, so that a part can
//! be taken out without breaking what lies below it, and policy depends on
//! nothing at all, since it is compiled for the kernel too.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::check::Source;

/// Directory of C, what its files may include, and whether system headers too.
const C_ROOMS: [(&str, &[&str], bool); 5] = [
    ("policy", &["policy"], false),
    ("abi", &["abi", "policy"], false),
    ("bpf", &["bpf", "abi", "policy"], true),
    ("shim", &["shim", "abi", "policy"], true),
    ("workloads", &["workloads"], true),
];

/// Crate, and the crates of this workspace that it may use.
const CRATES: [(&str, &[&str]); 10] = [
    ("cosched-model", &[]),
    ("cosched-policy", &["cosched-model"]),
    ("cosched-sim", &["cosched-policy", "cosched-model"]),
    ("cosched-loader", &["cosched-policy", "cosched-model"]),
    ("cosched-control", &["cosched-model"]),
    (
        "cosched-daemon",
        &[
            "cosched-control",
            "cosched-loader",
            "cosched-policy",
            "cosched-model",
        ],
    ),
    (
        "cosched-cli",
        &[
            "cosched-control",
            "cosched-sim",
            "cosched-vm",
            "cosched-policy",
            "cosched-model",
        ],
    ),
    ("cosched-vm", &[]),
    (
        "cosched-tests",
        &[
            "cosched-control",
            "cosched-loader",
            "cosched-vm",
            "cosched-policy",
            "cosched-model",
        ],
    ),
    ("xtask", &["cosched-vm"]),
];

/// The includes of a C file that its room does not allow.
pub fn wrong_includes(source: &Source) -> Vec<String> {
    let path = &source.path;
    let Some(&(_, allowed, system)) = C_ROOMS.iter().find(|(room, ..)| path.starts_with(room))
    else {
        return Vec::new();
    };
    let lines = source.text.lines().enumerate();
    let includes =
        lines.filter_map(|(n, line)| Some((n, line.trim().strip_prefix("#include")?.trim())));
    includes
        .filter(|(_, what)| match what.strip_prefix('"') {
            Some(rest) => !allowed.contains(&room_of(path, rest.trim_end_matches('"')).as_str()),
            None => !system,
        })
        .map(|(n, what)| {
            let known = if system { " and the system's" } else { "" };
            format!(
                "{}:{}: includes {what}; may know only {}{known}",
                path.display(),
                n + 1,
                allowed.join(", ")
            )
        })
        .collect()
}

/// The top directory that `include` leads to from the file at `path`.
fn room_of(path: &Path, include: &str) -> String {
    let mut at = path.parent().map(PathBuf::from).unwrap_or_default();
    for part in Path::new(include).components() {
        match part {
            Component::ParentDir => drop(at.pop()),
            part => at.push(part),
        }
    }
    let top = at.components().next();
    top.map(|c| c.as_os_str().to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// The dependencies between our crates that point upwards, or of a crate that
/// has no place yet.
pub fn wrong_crates(metadata: &Value) -> Vec<String> {
    let names = |list: &Value| -> Vec<String> {
        let items = list.as_array().into_iter().flatten();
        items
            .filter_map(|item| Some(item["name"].as_str()?.to_owned()))
            .collect()
    };
    let ours = names(&metadata["packages"]);
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut wrong = Vec::new();
    for (package, name) in packages.zip(&ours) {
        let Some((_, allowed)) = CRATES.iter().find(|(known, _)| known == name) else {
            wrong.push(format!(
                "{name}: no place in xtask/src/rooms.rs; say there what it may use"
            ));
            continue;
        };
        for used in names(&package["dependencies"]) {
            if ours.contains(&used) && !allowed.contains(&used.as_str()) {
                wrong.push(format!("{name}: must not depend on {used}"));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(path: &str, include: &str) -> usize {
        let text = format!("#include {include}\n");
        wrong_includes(&Source {
            path: path.into(),
            text,
        })
        .len()
    }

    #[test]
    fn includes_point_down_only() {
        assert_eq!(wrong("shim/wait.c", "\"../abi/page.h\""), 0);
        assert_eq!(wrong("shim/wait.c", "<stdio.h>"), 0);
        assert_eq!(wrong("abi/page.h", "\"../policy/policy.h\""), 0);
        assert_eq!(wrong("policy/policy.h", "\"wait.h\""), 0);
        assert_eq!(wrong("abi/page.h", "\"../shim/shim.h\""), 1);
        assert_eq!(wrong("policy/wait.h", "\"../abi/page.h\""), 1);
        assert_eq!(wrong("policy/wait.h", "<stdint.h>"), 1);
        assert_eq!(wrong("workloads/a.c", "\"../shim/futex.h\""), 1);
    }

    #[test]
    fn crates_point_down_only() {
        let metadata = |name: &str, uses: &str| -> Value {
            serde_json::json!({ "packages": [
                { "name": name, "dependencies": [{ "name": uses }, { "name": "clap" }] },
                { "name": "cosched-cli", "dependencies": [] },
                { "name": "cosched-model", "dependencies": [] },
            ]})
        };
        assert!(wrong_crates(&metadata("cosched-policy", "cosched-model")).is_empty());
        assert_eq!(
            wrong_crates(&metadata("cosched-policy", "cosched-cli")).len(),
            1
        );
        assert_eq!(
            wrong_crates(&metadata("cosched-new", "cosched-model")).len(),
            1
        );
    }
}
