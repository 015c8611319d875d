// SPDX-License-Identifier: Apache-2.0
//! Check: what can be said about the source without running it. cargo fmt and
//! clippy speak for Rust (clippy.toml holds the function length); here is what
//! no tool knows: licences by directory, lengths of files and C functions, no
//! unfinished work, and that arrows between the rooms point down only (rooms.rs).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context, Result};

use crate::rooms;
use crate::tree::{cargo, output, run, Tree};

const MAX_FILE_LINES: usize = 500;
const MAX_FUNCTION_LINES: usize = 60;

/// Words of work that is not done; spelt so that this file passes.
const UNFINISHED: [&str; 4] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
];

/// One source file.
pub struct Source {
    /// Relative to the root.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// Everything; prints each complaint on stderr, `path:line: what`.
pub fn all(tree: &Tree) -> Result<()> {
    let sources = sources(tree)?;
    let mut complaints: Vec<String> = sources.iter().flat_map(complaints_about).collect();
    complaints.extend(sources.iter().flat_map(rooms::wrong_includes));
    complaints.extend(rooms::wrong_crates(&tree.metadata));
    complaints.iter().for_each(|line| eprintln!("{line}"));
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo()
        .args(["clippy", "--workspace", "--all-targets", "--release"])
        .args(["--quiet", "--", "--deny=warnings"]))?;
    if !complaints.is_empty() {
        bail!(
            "{} complaint(s) about the source, see above",
            complaints.len()
        );
    }
    Ok(())
}

/// What git knows or would add, as far as it is source.
fn sources(tree: &Tree) -> Result<Vec<Source>> {
    let list = [
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        "--deduplicate",
    ];
    let names = output(Command::new("git").current_dir(&tree.root).args(list))?;
    let paths = names.split_terminator('\0').map(PathBuf::from);
    paths
        .filter(|path| is_source(path) && tree.root.join(path).exists())
        .map(|path| {
            let text = std::fs::read_to_string(tree.root.join(&path))
                .with_context(|| format!("cannot read {}", path.display()))?;
            Ok(Source { path, text })
        })
        .collect()
}

fn is_source(path: &Path) -> bool {
    let ext = path.extension().and_then(|ext| ext.to_str());
    matches!(ext, Some("rs" | "c" | "h" | "def" | "toml" | "py" | "sh"))
        || path == Path::new("Makefile")
        || path == Path::new(".ci/run")
}

fn complaints_about(source: &Source) -> Vec<String> {
    let Source { path, text } = source;
    let at = |line: usize, what: String| format!("{}:{line}: {what}", path.display());
    let mut found = Vec::new();
    let licence = licence_of(path);
    if !has_licence(text, licence) {
        found.push(at(
            1,
            format!("first line must be: SPDX-License-Identifier: {licence}"),
        ));
    }
    let length = text.lines().count();
    if length > MAX_FILE_LINES {
        found.push(at(
            length,
            format!("file longer than {MAX_FILE_LINES} lines; divide it"),
        ));
    }
    for (number, line) in text.lines().enumerate() {
        if UNFINISHED.iter().any(|word| line.contains(word)) {
            found.push(at(
                number + 1,
                "unfinished work; do it or open an issue".into(),
            ));
        }
    }
    for (line, length) in long_functions(text) {
        found.push(at(
            line,
            format!("{length} lines in one function; at most {MAX_FUNCTION_LINES}"),
        ));
    }
    found
}

/// By directory, the innermost that says so.
fn licence_of(path: &Path) -> &'static str {
    let room = path
        .components()
        .next()
        .map(|c| c.as_os_str().to_string_lossy());
    match room.as_deref() {
        Some("bpf") => "GPL-2.0-only",
        Some("policy" | "abi") => "GPL-2.0-only OR Apache-2.0",
        _ if path.to_string_lossy().ends_with(".bpf.c") => "GPL-2.0-only",
        _ => "Apache-2.0",
    }
}

/// On the first line, or the second where the first names an interpreter.
fn has_licence(text: &str, licence: &str) -> bool {
    let mut lines = text.lines().skip_while(|line| line.starts_with("#!"));
    let first = lines.next().unwrap_or_default();
    let stated = first.split_once("SPDX-License-Identifier: ");
    stated.is_some_and(|(_, rest)| rest.trim_end_matches("*/").trim_end() == licence)
}

/// C functions beyond the limit: first line and length. A body is what lies
/// between a brace in the first column and its counterpart there.
fn long_functions(text: &str) -> Vec<(usize, usize)> {
    let mut begun = None;
    let mut long = Vec::new();
    for (number, line) in text.lines().enumerate() {
        match (begun, line) {
            (None, "{") => begun = Some(number),
            (Some(first), "}") => {
                begun = None;
                let length = number - first - 1;
                if length > MAX_FUNCTION_LINES {
                    long.push((first + 1, length));
                }
            }
            _ => {}
        }
    }
    long
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        complaints_about(&Source {
            path: path.into(),
            text: text.into(),
        })
    }

    #[test]
    fn a_good_file_gives_no_complaint() {
        let text = "/* SPDX-License-Identifier: Apache-2.0 */\nint f(void)\n{\n\treturn 0;\n}\n";
        assert_eq!(complaints("shim/a.c", text), Vec::<String>::new());
    }

    #[test]
    fn the_licence_follows_from_the_directory() {
        let text = "/* SPDX-License-Identifier: Apache-2.0 */\n";
        assert_eq!(complaints("policy/a.h", text).len(), 1);
        assert_eq!(complaints("abi/a.h", text).len(), 1);
        assert_eq!(complaints("bpf/a.bpf.c", text).len(), 1);
        let dual = "/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */\n";
        assert_eq!(complaints("policy/a.h", dual).len(), 0);
        assert_eq!(complaints("shim/a.c", dual).len(), 1);
    }

    #[test]
    fn an_interpreter_may_come_first() {
        let text = "#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\n";
        assert_eq!(complaints(".ci/run", text).len(), 0);
        assert_eq!(complaints(".ci/run", "#!/bin/bash\n").len(), 1);
    }

    #[test]
    fn long_files_and_long_functions_are_found_at_their_line() {
        let head = "/* SPDX-License-Identifier: Apache-2.0 */\n";
        let body = |lines| format!("{head}int f(void)\n{{\n{}}}\n", "\tg();\n".repeat(lines));
        assert_eq!(complaints("shim/a.c", &body(60)).len(), 0);
        let found = complaints("shim/a.c", &body(61));
        assert_eq!(found, ["shim/a.c:3: 61 lines in one function; at most 60"]);
        assert_eq!(
            complaints("shim/a.h", &format!("{head}{}", "\n".repeat(499))).len(),
            0
        );
        assert_eq!(
            complaints("shim/a.h", &format!("{head}{}", "\n".repeat(500))).len(),
            1
        );
    }

    #[test]
    fn unfinished_work_is_found() {
        for word in UNFINISHED {
            let text = format!("// SPDX-License-Identifier: Apache-2.0\n// {word}\n");
            assert_eq!(complaints("a.rs", &text).len(), 1, "{word}");
        }
    }
}
