// SPDX-License-Identifier: Apache-2.0
//! Policy decides the same natively and in the kernel, bit for bit.
//!
//! The same random cases go through the native functions and through BPF programs
//! (BPF_PROG_TEST_RUN, hence root), first cos_observe, then every decision;
//! verdicts and what was learned must be equal. 10^5 cases, or COSCHED_CASES;
//! COSCHED_SEED repeats a run.

use cosched_policy::native::{observe, Job, Obs, Params, Task, Verdict, DECISIONS};
use cosched_policy::{raw, words};
use cosched_tests::{bpf_object, need, superuser, tool};
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, ProgramInput};
use rand::{rngs::StdRng, Rng, SeedableRng};
use std::{collections::BTreeSet, env, mem};

/// NR_CASES of probe.bpf.c.
const BATCH: u32 = 1024;

/// `struct probe_case`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Case {
    params: Params,
    obs: Obs,
    task: Task,
    job: Job,
    out: [Verdict; DECISIONS.len()],
}

const CASE_BYTES: usize = mem::size_of::<Case>();

impl Case {
    fn bytes(&self) -> [u8; CASE_BYTES] {
        // SAFETY: integers only, and no implicit padding: each member's size is
        // asserted in policy.h and a multiple of 8.
        unsafe { mem::transmute(*self) }
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let bytes: [u8; CASE_BYTES] = bytes.try_into().expect("the map's value size");
        // SAFETY: every bit pattern is a valid Case, which is integers only.
        unsafe { mem::transmute(bytes) }
    }

    fn ask_natively(&mut self) {
        let Case {
            params,
            obs,
            task,
            job,
            out,
        } = self;
        observe(params, obs, task, job);
        for ((_, decide), out) in DECISIONS.iter().zip(out) {
            decide(params, obs, task, job, out);
        }
    }

    /// What policy wrote.
    fn outcome(&self) -> (Task, Job, [Verdict; DECISIONS.len()]) {
        (self.task, self.job, self.out)
    }
}

/// Where arithmetic breaks, if it breaks: ends, powers of two and around them;
/// else any order of magnitude.
fn number(rng: &mut StdRng) -> u64 {
    let power = 1u64 << rng.random_range(0..64);
    match rng.random_range(0..8) {
        0 => 0,
        1 => 1,
        2 => u64::MAX,
        3 => power - 1,
        4 => power,
        5 => power.wrapping_add(1),
        _ => rng.random::<u64>() >> rng.random_range(0..64),
    }
}

/// One past the largest word of an enum, or any number at all.
fn word(rng: &mut StdRng, nr: u32) -> u32 {
    if rng.random_ratio(1, 20) {
        number(rng) as u32
    } else {
        rng.random_range(0..=nr)
    }
}

/// Any fields, whatever fields there are; then words of their enums, mostly.
fn observation(rng: &mut StdRng) -> Obs {
    let any: [u64; mem::size_of::<Obs>() / 8] = std::array::from_fn(|_| {
        let halves = number(rng) << 32 | u64::from(number(rng) as u32);
        [number(rng), halves][usize::from(rng.random::<bool>())]
    });
    // SAFETY: of the same size (or this would not compile), and integers only.
    let mut obs: Obs = unsafe { mem::transmute(any) };
    obs.event = word(rng, raw::COS_NR_EVENTS);
    obs.peer_state = word(rng, words::PEER_STATES.len() as u32 + 1);
    obs.known = rng.random();
    obs
}

/// How many answers each question has.
const NR_ANSWERS: [usize; 7] = [
    words::WAIT_ANSWERS.len(),
    words::ARRIVAL_ANSWERS.len(),
    words::FAIRNESS_ANSWERS.len(),
    words::PERIODIC_ANSWERS.len(),
    words::ORDER_ANSWERS.len(),
    words::QUANTUM_ANSWERS.len(),
    words::ALLOCATION_ANSWERS.len(),
];

fn case(rng: &mut StdRng) -> Case {
    let mut case = Case {
        obs: observation(rng),
        ..Case::default()
    };
    let params = &mut case.params.0;
    params.abi = raw::COS_POLICY_ABI;
    for (answer, nr) in params.answer.iter_mut().zip(NR_ANSWERS) {
        *answer = word(rng, nr as u32);
    }
    params.arg = std::array::from_fn(|_| std::array::from_fn(|_| number(rng)));
    if rng.random() {
        case.task.w = std::array::from_fn(|_| number(rng));
        case.job.w = std::array::from_fn(|_| number(rng));
    }
    if rng.random_ratio(1, 4) {
        let limit_ns = params.arg[0][rng.random_range(0..4)];
        case.obs.waited_ns = limit_ns
            .wrapping_add(rng.random_range(0..3))
            .wrapping_sub(1);
    }
    if rng.random() {
        ordinary(rng, &mut case);
    }
    case.out = std::array::from_fn(|_| Verdict {
        until_ns: rng.random(),
        key: rng.random(),
        boost_peer: rng.random(),
        ..Verdict::default()
    });
    case
}

/// Numbers as a machine has them, where most answers have something to decide.
fn ordinary(rng: &mut StdRng, case: &mut Case) {
    let obs = &mut case.obs;
    obs.known |= rng.random::<u32>();
    obs.now_ns = rng.random_range(0..1 << 40);
    obs.nr_runnable = rng.random_range(0..8);
    obs.nr_pending = rng.random_range(0..3);
    obs.nr_pending_here = rng.random_range(0..3);
    obs.running = rng.random_range(0..2);
    obs.lag_ns = rng.random_range(-1 << 30..1 << 30);
    (obs.slot, obs.nr_slots) = (rng.random_range(0..4), rng.random_range(0..4));
    let before = [0, 1, obs.now_ns, rng.random_range(0..=obs.now_ns)];
    for word in [
        raw::COS_W_BOOSTED_AT_NS,
        raw::COS_W_ACCOUNTED_AT_NS,
        raw::COS_W_SENT_AT_NS,
        raw::COS_W_SENDER_UNTIL_NS,
    ] {
        case.task.w[word as usize] = before[rng.random_range(0..before.len())];
    }
    case.job.w[raw::COS_WJ_BOOSTED_AT_NS as usize] = before[rng.random_range(0..before.len())];
    for args in &mut case.params.0.arg[1..] {
        *args = std::array::from_fn(|_| rng.random::<u64>() >> rng.random_range(28..64));
    }
}

/// The BPF side, loaded.
struct Probe(Object);

impl Probe {
    fn load(clang: &str, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let object = bpf_object(folder.path(), clang, "probe.bpf.c", flags);
        let open = ObjectBuilder::default().open_file(object);
        Probe(
            open.and_then(|open| open.load())
                .expect("the kernel takes it"),
        )
    }

    fn run(&self, name: &str) {
        let mut programs = self.0.progs_mut();
        let program = programs.find(|program| program.name() == name);
        let program = program.expect("the probe has one for each decision");
        let ran = program.test_run(ProgramInput::default()).expect("it runs");
        assert_eq!(ran.return_value, BATCH, "cases asked");
    }

    /// The same cases after one run in the kernel.
    fn ask(&self, cases: &[Case]) -> Vec<Case> {
        let map = self.0.maps().next().expect("the probe has one map");
        let keys: Vec<u8> = (0..BATCH).flat_map(u32::to_ne_bytes).collect();
        let values: Vec<u8> = cases.iter().flat_map(Case::bytes).collect();
        map.update_batch(&keys, &values, BATCH, MapFlags::ANY, MapFlags::ANY)
            .expect("the map takes them");
        self.run("observe");
        for (name, _) in DECISIONS {
            self.run(name);
        }
        map.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY)
            .expect("the map gives them")
            .map(|(_, value)| Case::from_bytes(&value))
            .collect()
    }
}

fn setting(name: &str, default: u64) -> u64 {
    let text = env::var(name);
    text.map_or(default, |text| text.parse().expect(name))
}

/// What was decided, as (decision, act), and every reason that was given.
type Seen = (BTreeSet<(usize, u32)>, BTreeSet<u32>);

/// The first of @nr_cases on which the two differ, or all that was seen.
fn compare(probe: &Probe, nr_cases: u64, seed: u64) -> Result<Seen, String> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut seen = Seen::default();
    for _ in 0..nr_cases.div_ceil(u64::from(BATCH)) {
        let asked: Vec<Case> = (0..BATCH).map(|_| case(&mut rng)).collect();
        for (before, kernel) in asked.iter().zip(probe.ask(&asked)) {
            let mut native = *before;
            native.ask_natively();
            if native.outcome() != kernel.outcome() {
                return Err(format!(
                    "COSCHED_SEED={seed}: {before:?}\nnative: {:?}\nBPF: {:?}",
                    native.outcome(),
                    kernel.outcome()
                ));
            }
            for (decision, out) in native.out.iter().enumerate() {
                seen.0.insert((decision, out.act));
                seen.1.insert(out.reason);
            }
        }
    }
    Ok(seen)
}

fn clang(test: &str) -> Option<String> {
    need(test, superuser())?;
    need(test, tool("clang"))
}

#[test]
fn native_and_bpf_agree_bit_for_bit() {
    let Some(clang) = clang("root_differential::native_and_bpf_agree_bit_for_bit") else {
        return;
    };
    let nr_cases = setting("COSCHED_CASES", 100_000);
    let seed = setting("COSCHED_SEED", rand::random());
    let compared = compare(&Probe::load(&clang, &[]), nr_cases, seed);
    let (acts, reasons) = compared.unwrap_or_else(|differ| panic!("{differ}"));
    for (decision, (name, _)) in DECISIONS.iter().enumerate() {
        let seen = acts.iter().filter(|(d, _)| *d == decision).count();
        let all = match *name {
            "wait" | "arrival" | "periodic" => 3,
            "order" => 4,
            "quantum" => 1,
            _ => 2,
        };
        assert_eq!(seen, all, "acts of {name}");
    }
    assert_eq!(reasons.len(), words::REASONS.len(), "{reasons:?}");
}

#[test]
fn a_nanosecond_of_difference_is_found() {
    let Some(clang) = clang("root_differential::a_nanosecond_of_difference_is_found") else {
        return;
    };
    let mutant = Probe::load(&clang, &["-DCOS_MUTANT_LATE"]);
    let differ = compare(&mutant, 100_000, 1).expect_err("the mutant must be found");
    assert!(differ.starts_with("COSCHED_SEED=1: "), "{differ}");
}
