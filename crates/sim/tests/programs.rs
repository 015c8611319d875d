// SPDX-License-Identifier: Apache-2.0
//! Each workload on dedicated nodes takes the time that is worked out by hand, and sends so
//! many messages; random ones draw the same whoever else is there.
//!
//! Times by hand: a send costs 2 us, the wire 10 us (1 us within a node), a receive 3 us. So a
//! hop takes 15 us (6 us), and where all ranks send at once, a round of a collective does too.

use cosched_sim::{simulate, simulate_with, JobOutcome, Options, Outcome, QueueKind, Scenario};

const HOP: u64 = 15;
const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Jobs as (workload, rest of the job's table), on dedicated `nodes` of `cpus`.
fn scenario(nodes: u32, cpus: u32, jobs: &[(&str, &str)]) -> Scenario {
    let mut text = format!(
        r#"
policy = "uncoordinated"
end = "all"
[cluster]
nodes = {nodes}
cpus = {cpus}
[local]
scheduler = "eevdf"
[network]
latency = "10us"
local_latency = "1us"
send = "2us"
receive = "3us"
"#
    );
    for (i, (workload, rest)) in jobs.iter().enumerate() {
        text +=
            &format!("[[job]]\nname = \"job{i}\"\nworkload = {{ kind = {workload} }}\n{rest}\n");
    }
    Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn run(scenario: &Scenario) -> Outcome {
    let outcome = simulate(scenario, &mut ()).expect("an outcome");
    let cpus = scenario.cluster.nodes * scenario.cluster.cpus;
    let passed = outcome.ended_at.0 * u64::from(cpus);
    assert_eq!(outcome.spent.total_ns(), passed, "CPU time is conserved");
    outcome
}

/// The only job, on a node for each rank.
fn alone(workload: &str, ranks: u32) -> JobOutcome {
    let scenario = scenario(ranks, 1, &[(workload, &format!("ranks = {ranks}"))]);
    run(&scenario).jobs.remove(0)
}

fn response_ns(job: &JobOutcome) -> u64 {
    job.response.expect("it ended").0
}

fn messages(job: &JobOutcome) -> u64 {
    job.processes.iter().map(|p| p.messages).sum()
}

/// What it computed, sent and received: CPU time without polling.
fn work_ns(job: &JobOutcome) -> u64 {
    job.cpu().0 - job.processes.iter().map(|p| p.spun.0).sum::<u64>()
}

#[test]
fn a_token_takes_a_hop_and_a_grain_to_each_holder() {
    let ring = alone("'token', path = 'ring', rounds = 7, grain = '20us'", 5);
    assert_eq!(response_ns(&ring), 7 * 5 * (HOP + 20) * US);
    assert_eq!((messages(&ring), ring.laps.count), (7 * 5, 7));
    let chain = alone("'token', path = 'chain', rounds = 7, grain = '20us'", 5);
    assert_eq!(response_ns(&chain), 7 * 8 * (HOP + 20) * US);
    assert_eq!((messages(&chain), chain.laps.count), (7 * 8, 7));
}

#[test]
fn a_token_of_two_is_latency() {
    let latency = alone("'latency', round_trips = 100", 2);
    assert_eq!(response_ns(&latency), 100 * 2 * HOP * US);
    for path in ["ring", "chain"] {
        let token = alone(&format!("'token', path = '{path}', rounds = 100"), 2);
        assert_eq!(response_ns(&token), response_ns(&latency), "{path}");
        assert_eq!(token.laps, latency.laps, "{path}");
    }
}

#[test]
fn a_token_passes_through_all_threads_of_a_process() {
    let token = "'token', path = 'ring', rounds = 9, grain = '20us'";
    let outcome = run(&scenario(2, 2, &[(token, "ranks = 2\nthreads = 2")]));
    let within = 6;
    assert_eq!(
        response_ns(&outcome.jobs[0]),
        9 * (2 * (HOP + 20) + 2 * (within + 20)) * US
    );
}

#[test]
fn who_polls_answers_at_the_end_of_a_piece() {
    // The first question arrives at 12 and is seen at 100, the answer back at 118; from then
    // on each piece of 100 begins after an answer, which costs 5.
    let polling = "'polling', rounds = 6, piece = '100us'";
    let job = alone(polling, 2);
    assert_eq!(response_ns(&job), (118 + 5 * 105) * US);
    assert_eq!((messages(&job), job.laps.count), (12, 6));
    assert_eq!(job.processes[1].waits, 0);
    assert_eq!(messages(&alone(polling, 4)), 6 * 2 * 3);
}

#[test]
fn sor_takes_two_hops_and_the_points_to_each_half_sweep() {
    // Rank 1 sends up at once, rank 0 down only when it has that: 30 to a half sweep of 16 / 4
    // points. In a residual rank 1 finds rank 0's message and pays 5; at the end rank 0 waits.
    let sor = "'sor', iterations = 4, size = 4, point = '7us', residual_every = 2";
    let job = alone(sor, 2);
    assert_eq!(response_ns(&job), (8 * (2 * HOP + 4 * 7) + 5 + 15) * US);
    let bare = "'sor', iterations = 4, size = 5, point = '7us', residual_every = 0";
    let job = alone(bare, 5);
    assert_eq!(messages(&job), 4 * 2 * 2 * 4);
    assert_eq!(work_ns(&job), (4 * 25 * 7 + 4 * 2 * 2 * 4 * 5) * US);
}

#[test]
fn sequential_jobs_take_their_io_and_their_cpu() {
    // 3 units of 1001 bytes are 2 blocks each.
    let reads = "'sequential', units = 3, bytes = 3001, block = 1000, cpu = '100us', io = '2ms'";
    let job = alone(reads, 1);
    assert_eq!(response_ns(&job), 6 * 2 * MS + 100 * US);
    assert_eq!((job.cpu().0, job.laps.count), (100 * US, 3));
    // S1's GNU tar: 97 files of 2.1 MB are 291 blocks.
    let gtar = "'sequential', units = 97, bytes = 2100000, cpu = '80s', io = '20ms'";
    assert_eq!(response_ns(&alone(gtar, 1)), 291 * 20 * MS + 80_000 * MS);
}

#[test]
fn a_master_waits_for_those_who_reply() {
    // The second message leaves at 4, is read at 17, answered at 49, read at 62.
    let job = alone(
        "'master-slave', iterations = 50, grain = '30us', bytes = 1000",
        3,
    );
    assert_eq!(response_ns(&job), 50 * 62 * US);
    assert_eq!(job.laps.count, 50);
    // S4's: 1 master, and 2 slaves on each of 3 nodes.
    let slaves = "'master-slave', iterations = 50, grain = '30us', bytes = 1000";
    let placed = "ranks = 7\nplacement = { nodes = [0, 1, 1, 2, 2, 3, 3] }";
    let job = run(&scenario(4, 1, &[(slaves, placed)])).jobs.remove(0);
    assert_eq!(messages(&job), 50 * (6 + 3));
    assert!(job.processes[1].blocks == 0 && job.processes[0].messages == 150);
}

#[test]
fn is_reduces_counts_and_exchanges_keys() {
    // 2 rounds of 40 bytes, 3 of 4, 3 of 100, at 10 ns a byte.
    let is = "'is', key = '100ns', keys = 400, iterations = 5, buckets = 10";
    let mut scenario = scenario(4, 1, &[(is, "ranks = 4")]);
    let with = toml::from_str::<toml::Table>("bandwidth = '100MB/s'").unwrap();
    scenario.network.bandwidth = with["bandwidth"].clone().try_into().unwrap();
    let job = run(&scenario).jobs.remove(0);
    let bytes = 2 * 40 + 3 * 4 + 3 * 100;
    assert_eq!(response_ns(&job), 5 * (10 * US + 8 * HOP * US + bytes * 10));
    assert_eq!(messages(&job), 5 * 4 * 8);
}

#[test]
fn mg_exchanges_six_faces_after_each_stencil() {
    // Two levels: 2 stencils on 1 point of a rank, 3 on 8. Two messages to the same
    // neighbour take 18 to a dimension.
    let job = alone("'mg', point = '50us', size = 4, iterations = 3", 8);
    let cycle = (2 + 3 * 8) * 50 + 5 * 3 * 18;
    assert_eq!(response_ns(&job), 3 * cycle * US);
    assert_eq!(messages(&job), 3 * 5 * 6 * 8);
    // 4 ranks are a box of 2 x 2 x 1: nobody to exchange the third faces with.
    let job = alone("'mg', point = '50us', size = 4, iterations = 3", 4);
    assert_eq!(messages(&job), 3 * 5 * 4 * 4);
}

#[test]
fn a_local_user_undisturbed_takes_its_nominal_length() {
    let user = "'local', share = 0.5, length = '100s', copy = '10GB/s'";
    let outcome = run(&scenario(1, 1, &[(user, "each_node = 1")]));
    let job = &outcome.jobs[0];
    assert_eq!(response_ns(job), 100_000 * MS);
    assert_eq!(job.laps.max_ns, 10 * MS);
    // 200 calls of 0.1 to 1 ms are expected, 110 ms in all.
    let calls = job.cpu().0 - 50_000 * MS;
    assert!((80 * MS..140 * MS).contains(&calls), "{calls}");
}

#[test]
fn a_local_user_beside_others_does_the_same_work_and_takes_longer() {
    let user = "'local', share = 0.5, length = '5s', copy = '1GB/s'";
    let free = run(&scenario(1, 1, &[(user, "")]));
    let mut beside = scenario(1, 1, &[(user, ""), ("'calcula'", "each_node = 3")]);
    beside.cluster.balance = false;
    let beside = run(&beside);
    assert_eq!(free.jobs[0].cpu(), beside.jobs[0].cpu());
    assert!(free.jobs[0].response < beside.jobs[0].response);
}

#[test]
fn collectives_take_their_rounds() {
    let iterations = |collective: &str, ranks: u32| {
        let spmd = format!("'spmd', iterations = 9, grain = '20us', collective = '{collective}'");
        alone(&spmd, ranks)
    };
    for (collective, ranks, rounds) in [
        ("dissemination", 4, 2),
        ("dissemination", 5, 3),
        ("dissemination", 2, 1),
        ("allreduce", 4, 2),
        ("allreduce", 8, 3),
        ("alltoall", 5, 4),
    ] {
        let job = iterations(collective, ranks);
        let time = 9 * (20 + rounds * HOP) * US;
        assert_eq!(response_ns(&job), time, "{collective} {ranks}");
        let sent = 9 * rounds * u64::from(ranks);
        assert_eq!(messages(&job), sent, "{collective} {ranks}");
    }
    // Of 6 ranks 4 pair up in two rounds, and 2 are folded in and told.
    assert_eq!(messages(&iterations("allreduce", 6)), 9 * (4 * 2 + 2 * 2));
    // The root takes 3 messages, the last read at 21, and sends 3 until 27, as in all that
    // follow; then they come 2 apart and 9 later. The last rank is told after 13.
    let linear = iterations("linear", 4);
    assert_eq!(response_ns(&linear), (40 + 20 + 8 * (36 + 20)) * US);
    assert_eq!(messages(&linear), 9 * 6);
}

#[test]
fn sparse_neighbours_take_what_their_messages_cost() {
    for (ranks, degree) in [(2, 2), (7, 2), (9, 4), (16, 8)] {
        let sparse = format!("'sparse', iterations = 5, grain = '20us', degree = {degree}");
        let job = alone(&sparse, ranks);
        // The first is there at 12, or read after the last send; the others follow 3 apart.
        let exchange = (2 * degree).max(12) + 3 * degree;
        assert_eq!(response_ns(&job), 5 * (20 + exchange) * US, "{degree}");
        assert_eq!(messages(&job), 5 * u64::from(ranks) * degree);
    }
}

#[test]
fn a_farm_does_the_same_items_with_any_number_of_workers() {
    let regular = alone("'farm', items = 20, grain = '100us', bytes = 100", 2);
    assert_eq!(response_ns(&regular), (20 * (2 * HOP + 100) + 2 * HOP) * US);
    assert_eq!((messages(&regular), regular.laps.count), (2 * 21, 19));
    let farm = "'farm', items = 200, grain = '1ms', bytes = 10000, varies = 'exponential'";
    let items = |workers: u64| {
        let job = alone(farm, 1 + workers as u32);
        assert_eq!(messages(&job), 2 * (200 + workers));
        work_ns(&job) - 2 * (200 + workers) * 5 * US
    };
    assert_eq!(items(1), items(3));
    assert_eq!(items(1), items(8));
}

#[test]
fn bursts_and_pauses_alternate() {
    let bursty = "'bursty', busy = '3ms', idle = '7ms', varies = 'never', bursts = 12";
    let job = alone(bursty, 1);
    assert_eq!((response_ns(&job), job.cpu().0), (120 * MS, 36 * MS));
    let random = "'bursty', busy = '3ms', idle = '7ms', bursts = 2000";
    let job = alone(random, 1);
    let share = job.cpu().0 as f64 / response_ns(&job) as f64;
    assert!((0.28..0.32).contains(&share), "{share}");
}

/// One of each that draws, and its ranks.
const RANDOM: [(&str, &str); 6] = [
    (
        "'spmd', iterations = 40, grain = '1ms', varies = { pareto = 1.5 }, collective = 'allreduce'",
        "ranks = 4",
    ),
    (
        "'sparse', iterations = 40, grain = '1ms', varies = 'exponential', degree = 2",
        "ranks = 4",
    ),
    (
        "'farm', items = 80, grain = '1ms', bytes = 4096, varies = { uniform = 0.9 }",
        "ranks = 4",
    ),
    ("'bursty', busy = '2ms', idle = '5ms', bursts = 20", "ranks = 4"),
    (
        "'local', share = 0.3, length = '200ms', copy = '1GB/s', interval = '50ms'",
        "ranks = 4",
    ),
    (
        "'sequential', units = 9, bytes = 90000, cpu = '90ms', io = '2ms', varies = 'exponential'",
        "ranks = 4",
    ),
];

#[test]
fn who_else_is_there_shifts_no_draw() {
    let elsewhere = (
        "'spmd', iterations = 9, grain = '1ms', varies = 'exponential', collective = 'linear'",
        "ranks = 4\nplacement = { nodes = [4, 5, 6, 7] }",
    );
    for job in RANDOM {
        let placed = (job.0, "ranks = 4\nplacement = { nodes = [0, 1, 2, 3] }");
        let alone = run(&scenario(8, 1, &[placed]));
        let beside = run(&scenario(8, 1, &[placed, elsewhere]));
        assert_eq!(alone.jobs[0].response, beside.jobs[0].response, "{}", job.0);
        let mut again = scenario(8, 1, &[placed]);
        again.replication = 1;
        let again = run(&again);
        assert_ne!(alone.jobs[0].cpu(), again.jobs[0].cpu(), "{}", job.0);
    }
}

#[test]
fn policies_meet_the_same_work() {
    for job in RANDOM {
        let jobs = [job, ("'calcula'", "each_node = 2")];
        let work = ["uncoordinated", "local-block", "spin-yield"].map(|policy| {
            let mut scenario = scenario(4, 1, &jobs);
            scenario.policy = cosched_sim::Policy::Named(policy.into());
            let outcome = run(&scenario);
            let system: u64 = outcome.jobs[0].processes.iter().map(|p| p.system.0).sum();
            work_ns(&outcome.jobs[0]) - system
        });
        assert!(work.iter().all(|w| *w == work[0]), "{} {work:?}", job.0);
    }
}

#[test]
fn one_history_of_all_whatever_the_queue() {
    let mut jobs = RANDOM.to_vec();
    jobs.extend([
        (
            "'token', path = 'chain', rounds = 20, grain = '1ms'",
            "ranks = 3\nthreads = 2",
        ),
        ("'polling', rounds = 20, piece = '1ms'", "ranks = 4"),
        ("'sor', iterations = 10, point = '1us'", "ranks = 4"),
        (
            "'master-slave', iterations = 20, grain = '1ms', bytes = 9000",
            "ranks = 7",
        ),
        (
            "'is', key = '1us', keys = 4096, iterations = 3",
            "ranks = 4",
        ),
        (
            "'mg', point = '1us', size = 16, iterations = 3",
            "ranks = 4",
        ),
    ]);
    for policy in ["dcs-spin-block", "implicit", "auto"] {
        let mut scenario = scenario(4, 2, &jobs);
        scenario.policy = cosched_sim::Policy::Named(policy.into());
        let usual = simulate(&scenario, &mut ()).unwrap();
        for queue in [QueueKind::Ladder, QueueKind::Heap] {
            let options = Options {
                queue,
                shortcuts: false,
            };
            let other = simulate_with(&scenario, &mut (), options).unwrap();
            assert!(usual == other, "{policy} {queue:?}");
        }
    }
}

#[test]
fn who_polls_is_boosted_by_arrivals_and_never_woken() {
    // Questions are 5 ms apart, so that most come while nobody waits for an answer.
    let jobs = [
        (
            "'polling', rounds = 300, piece = '100us', grain = '5ms'",
            "ranks = 2",
        ),
        ("'calcula'", "each_node = 3"),
    ];
    let run = |policy: &str| {
        let mut scenario = scenario(2, 1, &jobs);
        let local = toml::from_str::<toml::Table>("scheduler = 'solaris-ts'").unwrap();
        scenario.local = local.try_into().unwrap();
        scenario.policy = cosched_sim::Policy::Named(policy.into());
        run(&scenario).jobs.remove(0)
    };
    let (implicit, dcs) = (run("implicit"), run("dcs-spin-block"));
    for job in [&implicit, &dcs] {
        assert_eq!((job.processes[1].waits, job.processes[1].wakes), (0, 0));
    }
    assert!(implicit.processes[1].boosts == 0 && dcs.processes[1].boosts > 0);
    assert!(dcs.response < implicit.response);
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    for (workload, rest, said) in [
        ("'token', path = 'star', rounds = 1", "ranks = 2", "star"),
        ("'token', path = 'ring', rounds = 1", "ranks = 1", "two or more"),
        ("'polling', rounds = 1, piece = '0us'", "ranks = 2", "piece"),
        ("'sor', iterations = 1, point = '1us', size = 3", "ranks = 4", "raise size"),
        (
            "'sequential', units = 0, bytes = 1, cpu = '1s', io = '1ms'",
            "",
            "above 0",
        ),
        (
            "'sequential', units = 9, bytes = 9, cpu = '1ns', io = '1ms'",
            "",
            "each block",
        ),
        ("'master-slave', iterations = 1, grain = '1us', bytes = 1", "ranks = 2", "3 or more"),
        ("'is', key = '1us', buckets = 0", "ranks = 2", "bucket"),
        ("'mg', point = '1us'", "ranks = 6", "power of two"),
        ("'mg', point = '1us', size = 2", "ranks = 8", "raise size"),
        ("'local', share = 1.5, copy = '1GB/s'", "", "share"),
        ("'local', share = 0.5", "", "copy"),
        (
            "'spmd', iterations = 1, grain = '1us', varies = { pareto = 1.0 }, collective = 'linear'",
            "ranks = 2",
            "pareto",
        ),
        ("'sparse', iterations = 1, grain = '1us', degree = 3", "ranks = 9", "even degree"),
        ("'farm', items = 1, grain = '1us', bytes = 0", "ranks = 2", "bytes"),
        ("'bursty', busy = '0us', idle = '1ms'", "", "busy"),
        ("'bursty', busy = '1us', idle = '1ms', burst = 1", "", "burst"),
        ("'farm', items = 1, grain = '1us', bytes = 1", "ranks = 2\nthreads = 2", "one thread"),
    ] {
        let text = format!(
            "policy = 'implicit'\nend = {{ time = '1s' }}\n[cluster]\nnodes = 2\n[local]\n\
             scheduler = 'eevdf'\n[[job]]\nname = 'x'\nworkload = {{ kind = {workload} }}\n{rest}\n"
        );
        let why = Scenario::parse(&text).unwrap_err().to_string();
        assert!(why.contains(said) && !why.contains('\n'), "{workload}: {why}");
    }
}

#[test]
fn what_is_written_is_read_back() {
    let scenario = scenario(4, 1, &RANDOM);
    let text = toml::to_string(&scenario).unwrap();
    assert_eq!(Scenario::parse(&text).unwrap(), scenario);
}
