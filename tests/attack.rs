// SPDX-License-Identifier: Apache-2.0
//! A job with a hostile process of the same user beside it (tests/mpi/hostile.c).

use crate::job::{compile, Job, Mpi};
use std::path::Path;

/// The second word attacks the job in the rest until it has ended.
const UNDER_ATTACK: &str = r#"
"$0" "$1" "$2" & attacker=$!
shift 2
"$@"; code=$?
kill -0 $attacker || code=99
kill $attacker
exit $code
"#;

/// Two ranks of @program, attacked in its page or at its socket, as @attack says.
pub fn under_attack(attack: &str, mpi: Mpi, program: &Path) -> Job {
    Job::plain("sh")
        .args(["-c", UNDER_ATTACK])
        .arg(compile("cc", "hostile.c", "hostile", &[]))
        .args([attack, "2", &format!("mpirun.{}", mpi.name()), "-n", "2"])
        .arg(program)
}
