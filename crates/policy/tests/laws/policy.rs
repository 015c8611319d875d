// SPDX-License-Identifier: Apache-2.0
//! A policy to be tried: the native one, or any other build of the same
//! functions, loaded from a shared library.

use cosched_policy::native::{AllocJob, Job, Obs, Params, Task, Verdict};
use cosched_policy::raw;
use libloading::Library;
use std::path::Path;

type Learn = unsafe extern "C" fn(*const RawParams, *const Obs, *mut Task, *mut Job);
type Decide = unsafe extern "C" fn(*const RawParams, *const Obs, *mut Task, *mut Job, *mut Verdict);
type Plan = unsafe extern "C" fn(*const RawParams, *mut AllocJob, u32, u32) -> i32;
type RawParams = cosched_model::abi::cos_params;

/// The decisions that are tried here, by their place in [`Policy::decide`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Of {
    Arrival,
    Fairness,
    Periodic,
    Order,
    Quantum,
    Admit,
}

pub const ALL: [Of; 6] = [
    Of::Arrival,
    Of::Fairness,
    Of::Periodic,
    Of::Order,
    Of::Quantum,
    Of::Admit,
];

/// Its functions, and what keeps them loaded.
pub struct Policy {
    observe: Learn,
    decide: [Decide; 6],
    plan: Plan,
    _library: Option<Library>,
}

impl Policy {
    pub fn native() -> Self {
        Policy {
            observe: raw::native_observe,
            decide: [
                raw::native_arrival,
                raw::native_fairness,
                raw::native_periodic,
                raw::native_order,
                raw::native_quantum,
                raw::native_admit,
            ],
            plan: raw::native_plan,
            _library: None,
        }
    }

    /// native.c as a shared library at @path.
    pub fn load(path: &Path) -> Self {
        // SAFETY: the library is native.c: it runs nothing when it is loaded, and
        // its functions have the types of native.h.
        unsafe {
            let library = Library::new(path).unwrap();
            let decide = |name: &str| *library.get::<Decide>(name.as_bytes()).unwrap();
            Policy {
                observe: *library.get::<Learn>(b"native_observe").unwrap(),
                decide: [
                    decide("native_arrival"),
                    decide("native_fairness"),
                    decide("native_periodic"),
                    decide("native_order"),
                    decide("native_quantum"),
                    decide("native_admit"),
                ],
                plan: *library.get::<Plan>(b"native_plan").unwrap(),
                _library: Some(library),
            }
        }
    }

    pub fn observe(&self, params: &Params, obs: &Obs, task: &mut Task, job: &mut Job) {
        // SAFETY: four valid pointers to distinct structs, used during the call only.
        unsafe { (self.observe)(&params.0, obs, task, job) }
    }

    pub fn ask_into(
        &self,
        of: Of,
        params: &Params,
        obs: &Obs,
        (task, job): (&mut Task, &mut Job),
        out: &mut Verdict,
    ) {
        // SAFETY: five valid pointers to distinct structs, used during the call only.
        unsafe { (self.decide[of as usize])(&params.0, obs, task, job, out) }
    }

    pub fn ask(
        &self,
        of: Of,
        params: &Params,
        obs: &Obs,
        task: &mut Task,
        job: &mut Job,
    ) -> Verdict {
        let mut out = Verdict::default();
        self.ask_into(of, params, obs, (task, job), &mut out);
        out
    }

    /// Asked of a task and a job without history.
    pub fn ask_fresh(&self, of: Of, params: &Params, obs: &Obs) -> Verdict {
        self.ask(of, params, obs, &mut Task::default(), &mut Job::default())
    }

    pub fn plan(&self, params: &Params, jobs: &mut [AllocJob], nr_cpus: u32) -> usize {
        let nr_jobs = u32::try_from(jobs.len()).unwrap();
        // SAFETY: a valid pointer to so many structs, used during the call only.
        let granted = unsafe { (self.plan)(&params.0, jobs.as_mut_ptr(), nr_jobs, nr_cpus) };
        usize::try_from(granted).unwrap()
    }
}

/// Parameters with one answer; all other questions have answer 0.
pub fn params(question: u32, answer: u32, args: &[u64]) -> Params {
    with(Params::default(), question, answer, args)
}

/// @params with one more answer.
pub fn with(mut params: Params, question: u32, answer: u32, args: &[u64]) -> Params {
    params.0.abi = raw::COS_POLICY_ABI;
    params.0.answer[question as usize] = answer;
    params.0.arg[question as usize][..args.len()].copy_from_slice(args);
    params
}
