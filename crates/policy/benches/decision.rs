// SPDX-License-Identifier: Apache-2.0
//! What an event costs natively, learning and a decision: the shim asks on every empty
//! progress pass, the simulator on every event; 50 ns are promised. Each function of the contract is asked
//! under each answer that a preset gives it, about random observations. A new answer is
//! here as soon as a preset takes it, a new question with its line in `native.rs`
//! and one in `questions_of`.

#![allow(missing_docs, reason = "criterion's macro writes functions")]

use cosched_policy::native::{observe, Decide, Job, Obs, Params, Task, Verdict, DECISIONS};
use cosched_policy::{built_in, raw, resolve, Body, Resolved};
use criterion::{criterion_group, criterion_main, Criterion};
use rand::{rngs::StdRng, Rng, SeedableRng};
use std::{collections::BTreeMap, hint::black_box, mem};

/// More than a branch predictor learns by heart.
const NR_OBSERVATIONS: usize = 8192;

/// The questions that a decision asks.
fn questions_of(decision: &str) -> &'static [&'static str] {
    match decision {
        "wait" => &["wait"],
        "arrival" => &["arrival", "fairness"],
        "fairness" => &["fairness"],
        "periodic" => &["periodic", "fairness"],
        "order" => &["order"],
        "quantum" => &["quantum"],
        "admit" => &["allocation"],
        other => panic!("{other}: which questions does it ask?"),
    }
}

/// `DECISION/ANSWERS`; nothing where the local scheduler decides.
fn name_of(decision: &str, preset: &Resolved) -> Option<String> {
    let questions = questions_of(decision).iter();
    let mut taken = questions.filter_map(|word| {
        let mut all = preset.taken.iter();
        all.find(|taken| taken.question.word == *word)
    });
    let first = taken.next()?.choice.answer;
    let words = taken.map(|taken| format!("+{}", taken.choice.answer.word));
    let answers: String = [first.word.to_owned()].into_iter().chain(words).collect();
    let decides = first.code.is_some_and(|code| code != 0);
    decides.then(|| format!("{decision}/{answers}"))
}

/// Fields of any order of magnitude, mostly known.
fn observation(rng: &mut StdRng) -> Obs {
    let any: [u64; mem::size_of::<Obs>() / 8] =
        std::array::from_fn(|_| rng.random::<u64>() >> rng.random_range(0..64));
    // SAFETY: of the same size (or this would not compile), and integers only.
    let mut obs: Obs = unsafe { mem::transmute(any) };
    obs.event = rng.random_range(0..raw::COS_NR_EVENTS);
    obs.known = rng.random::<u32>() | rng.random::<u32>();
    obs
}

fn all() -> BTreeMap<String, (Decide, Params)> {
    let mut all = BTreeMap::new();
    for preset in built_in().expect("presets are sound") {
        let preset = resolve(&preset, &[Body::Sim]).expect("the simulator answers all");
        for (decision, decide) in DECISIONS {
            if let Some(name) = name_of(decision, &preset) {
                all.entry(name).or_insert((*decide, preset.params()));
            }
        }
    }
    all
}

/// One function a line.
fn decisions(criterion: &mut Criterion) {
    let mut rng = StdRng::seed_from_u64(1);
    let observations: Vec<Obs> = (0..NR_OBSERVATIONS)
        .map(|_| observation(&mut rng))
        .collect();
    for (name, (decide, params)) in all() {
        let (mut task, mut job) = (Task::default(), Job::default());
        let mut out = Verdict::default();
        let mut next = observations.iter().cycle();
        criterion.bench_function(&name, |bench| {
            bench.iter(|| {
                let obs = next.next().expect("it is a cycle");
                observe(black_box(&params), obs, &mut task, &mut job);
                decide(&params, obs, &mut task, &mut job, &mut out);
                black_box(out.act)
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = decisions
}
criterion_main!(benches);
