// SPDX-License-Identifier: Apache-2.0
//! What libbpf says while it loads: kept for the line that explains a refusal,
//! never printed by itself.

use libbpf_rs::{set_print, PrintLevel};
use std::sync::Mutex;

static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn keep(_: PrintLevel, text: String) {
    if let Ok(mut said) = SAID.lock() {
        said.extend(text.lines().map(str::to_owned));
    }
}

/// From now on warnings are kept.
pub fn listen() {
    if let Ok(mut said) = SAID.lock() {
        said.clear();
    }
    set_print(Some((PrintLevel::Warn, keep)));
}

/// The lines since [`listen`].
pub fn said() -> Vec<String> {
    SAID.lock().map(|said| said.clone()).unwrap_or_default()
}

/// The line that tells most about a refusal: the verifier's last, or libbpf's.
pub fn cause() -> Option<String> {
    let said = said();
    let verifier = said.iter().rposition(|l| l.contains("END PROG LOAD LOG"));
    let line = match verifier {
        Some(end) => said[..end]
            .iter()
            .rev()
            .find(|l| !l.is_empty() && !l.starts_with("processed ")),
        None => said.first(),
    };
    line.map(|line| line.trim().to_owned())
}
