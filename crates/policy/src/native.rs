// SPDX-License-Identifier: Apache-2.0
//! Policy itself, compiled natively: the functions that the shim asks.
//!
//! Nothing is decided here. Everything is an argument, so calls are pure, and
//! any bytes are valid input.

use crate::raw;
use cosched_model::abi::cos_params;
use std::fmt::Write;

pub use crate::raw::{
    cos_alloc_job as AllocJob, cos_job as Job, cos_obs as Obs, cos_out as Verdict, cos_task as Task,
};

/// Parameters as every body reads them: compiled from a preset, or from bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Params(pub cos_params);

impl Params {
    /// How many bytes they are.
    pub const BYTES: usize = size_of::<cos_params>();

    /// The bytes, in this machine's order.
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        // SAFETY: cos_params is integers only, padded explicitly (its size is
        // asserted in policy.h), so each of its bytes is initialised.
        unsafe { std::mem::transmute(self.0) }
    }

    /// What [`Params::bytes`] gave.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        // SAFETY: every bit pattern is a valid cos_params, which is integers only.
        Params(unsafe { std::mem::transmute::<[u8; Self::BYTES], cos_params>(bytes) })
    }

    /// Two lower-case digits a byte, to travel in the environment.
    pub fn to_hex(&self) -> String {
        self.bytes().iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a String takes all");
            text
        })
    }

    /// What [`Params::to_hex`] gave; nothing where it is anything else.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; Self::BYTES];
        if text.len() != 2 * bytes.len() || !text.bytes().all(|c| c.is_ascii_hexdigit()) {
            return None;
        }
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
        }
        Some(Self::from_bytes(bytes))
    }
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

/// Let policy learn from an event.
pub fn observe(params: &Params, obs: &Obs, task: &mut Task, job: &mut Job) {
    // SAFETY: four valid pointers to distinct structs, used during the call only.
    unsafe { raw::native_observe(&params.0, obs, task, job) }
}

/// One of the functions below: its verdict replaces an old one, of which nothing stays.
pub type Decide = fn(&Params, &Obs, &mut Task, &mut Job, &mut Verdict);

macro_rules! decisions {
    ($($(#[$doc:meta])* $name:ident, $into:ident => $native:ident;)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub fn $name(params: &Params, obs: &Obs, task: &mut Task, job: &mut Job) -> Verdict {
                let mut out = Verdict::default();
                $into(params, obs, task, job, &mut out);
                out
            }

            #[doc = concat!("[`", stringify!($name), "`] over an old verdict.")]
            #[inline]
            pub fn $into(
                params: &Params,
                obs: &Obs,
                task: &mut Task,
                job: &mut Job,
                out: &mut Verdict,
            ) {
                // SAFETY: five valid pointers to distinct structs, used during the call only.
                unsafe { raw::$native(&params.0, obs, task, job, out) }
            }
        )*

        /// Every decision under its name, in the order of `policy/policy.h`.
        pub const DECISIONS: &[(&str, Decide)] = &[$((stringify!($name), $into)),*];
    };
}

decisions! {
    /// How shall this rank wait? SPIN, YIELD or BLOCK.
    wait, wait_into => native_wait;
    /// A message for this task arrived: NONE, BOOST or MARK_RUNNING.
    arrival, arrival_into => native_arrival;
    /// May it be boosted now? NONE or BOOST; asked inside of arrival and periodic.
    fairness, fairness_into => native_fairness;
    /// Its period is over: NONE, BOOST or BEAT.
    periodic, periodic_into => native_periodic;
    /// What is this candidate's key? NONE, BIAS, REPLACE or VETO.
    order, order_into => native_order;
    /// How long is its slice? `slice_ns`, 0 = as the local scheduler says.
    quantum, quantum_into => native_quantum;
    /// May it run now, and until when? RUN or NONE.
    admit, admit_into => native_admit;
}

/// Which jobs get CPUs: all there are, in order of arrival. Returns how many do;
/// of more than `COS_MAX_PLAN` jobs the last ones wait.
pub fn plan(params: &Params, jobs: &mut [AllocJob], nr_cpus: u32) -> usize {
    let nr_jobs = u32::try_from(jobs.len()).unwrap_or(u32::MAX);
    // SAFETY: a valid pointer to so many structs, used during the call only.
    let granted = unsafe { raw::native_plan(&params.0, jobs.as_mut_ptr(), nr_jobs, nr_cpus) };
    usize::try_from(granted).expect("a count")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_travel_as_hex() {
        let mut params = Params::default();
        params.0.answer[0] = 0x0102_0304;
        params.0.arg[7][5] = u64::MAX;
        let hex = params.to_hex();
        assert_eq!(hex.len(), 848);
        assert_eq!(Params::from_hex(&hex), Some(params));
    }

    #[test]
    fn other_text_is_no_params() {
        let hex = Params::default().to_hex();
        for wrong in [
            "",
            &hex[2..],
            &format!("{hex}00"),
            &hex.replacen("0", "+", 1),
        ] {
            assert_eq!(Params::from_hex(wrong), None);
        }
        let wide = format!("é{}", &hex[2..]);
        assert_eq!(Params::from_hex(&wide), None);
    }
}
