// SPDX-License-Identifier: Apache-2.0
//! A request's no: a status for programs and one line for people.

use cosched_model::abi;

/// Why not.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// `enum cos_control_status`.
    pub status: u32,
    /// What failed, on what, why, what to do.
    pub line: String,
}

impl Refusal {
    /// Not the caller's, or beyond the administrator's policy.
    pub fn refused(line: impl Into<String>) -> Self {
        Refusal::of(abi::COS_CONTROL_REFUSED, line)
    }

    /// No such job, process, cgroup or preset.
    pub fn unknown(line: impl Into<String>) -> Self {
        Refusal::of(abi::COS_CONTROL_UNKNOWN, line)
    }

    /// Not a request.
    pub fn malformed(line: impl Into<String>) -> Self {
        Refusal::of(abi::COS_CONTROL_MALFORMED, line)
    }

    /// This machine or this mode cannot.
    pub fn cannot(line: impl Into<String>) -> Self {
        Refusal::of(abi::COS_CONTROL_CANNOT, line)
    }

    /// With any status.
    pub fn of(status: u32, line: impl Into<String>) -> Self {
        let line: String = line.into();
        let line = line.lines().collect::<Vec<_>>().join("; ");
        Refusal { status, line }
    }
}

impl From<crate::kernel::Error> for Refusal {
    fn from(error: crate::kernel::Error) -> Self {
        let status = match error {
            crate::kernel::Error::NoRoom(_) => abi::COS_CONTROL_NO_ROOM,
            crate::kernel::Error::Failed(_) => abi::COS_CONTROL_CANNOT,
        };
        Refusal::of(status, error.to_string())
    }
}
