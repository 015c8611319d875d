// SPDX-License-Identifier: Apache-2.0
//! The report as a person reads it: a table, then what happened, then one line.

use super::{
    numbers::{Counters, Job, Rank},
    Report,
};
use crate::daemon::{jobs::fairness, status};
use crate::policy;
use comfy_table::{presets, CellAlignment, Table};
use cosched_control::document;
use cosched_model::{Nanos, RankState};
use std::{collections::BTreeMap, fmt::Write};

/// More ranks than this are summarised.
const MAX_ROWS: usize = 16;

const COLUMNS: [&str; 13] = [
    "rank",
    "time",
    "computing",
    "spinning",
    "blocked",
    "CPU",
    "calls",
    "blocks",
    "rung",
    "missed",
    "spurious",
    "wake-up p50/p90/p99",
    "",
];

/// What a counter means: its name in the text, and a sentence.
const SENTENCES: [(&str, &str); 12] = [
    (
        "time",
        "from the return of MPI_Init to the call of MPI_Finalize",
    ),
    (
        "computing",
        "the part of it outside of waits, on the CPU or wanting it",
    ),
    (
        "spinning",
        "waiting for a message without giving up the CPU: what cosched makes short",
    ),
    ("blocked", "waiting asleep: this CPU time went to others"),
    ("CPU", "CPU time of the process as a share of its time"),
    (
        "blocks",
        "sleeps begun, each ended by a doorbell, a packet or the safety net",
    ),
    ("rung", "doorbells that this rank rang at sleeping peers"),
    (
        "missed",
        "sleeps that the safety net ended although a message was there: at most 0.1 % of blocks",
    ),
    (
        "spurious",
        "wake-ups that found nothing: at most one per useful one",
    ),
    (
        "wake-up",
        "from the doorbell to running, as the upper bound of a bucket",
    ),
    ("stopped spinning", "which rule of the policy ended a spin"),
    (
        "peer seen by",
        "which source told whether the awaited peer was on its CPU",
    ),
];

/// The whole report.
pub fn render(report: &Report, explain: bool) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "cosched report: {}", report.command);
    for job in &report.jobs {
        render_job(&mut text, job, explain);
    }
    if explain {
        let _ = writeln!(
            text,
            "policy {}: {}",
            report.policy.name, report.policy.about
        );
        push_table(&mut text, &policy::questions(report.policy));
        for (name, sentence) in SENTENCES {
            let _ = writeln!(text, "  {name:<18}{sentence}");
        }
    }
    let _ = writeln!(text, "answered by: {}", policy::owners(report.policy));
    if let Some(job) = &report.kernel {
        render_kernel(&mut text, job);
    }
    let fairness = report.fairness.as_ref().map_or_else(
        || {
            "unknown without a run alone: give --alone and --competitors, or use `cosched bench`"
                .to_owned()
        },
        |f| {
            format!(
                "S {:.2} (time / fair limit), F {:.2} (CPU / fair share)",
                f.s, f.f
            )
        },
    );
    let _ = writeln!(
        text,
        "S and F: {fairness}; waste: `cosched bench` measures it"
    );
    let _ = writeln!(text, "Verdict: {}", report.advice.line);
    text
}

/// The job as the kernel body saw it, all its processes together.
fn render_kernel(text: &mut String, job: &document::Job) {
    let ledger = &job.ledger;
    let _ = writeln!(
        text,
        "kernel body: F {}, {} boosts ({} in time), granted for {}, denied for {}; arrival to run {}",
        fairness(ledger.fairness),
        ledger.nr_boosts,
        ledger.nr_served,
        status::listed(&ledger.boosted),
        status::listed(&ledger.denied),
        status::delays(job)
    );
}

fn render_job(text: &mut String, job: &Job, explain: bool) {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(COLUMNS);
    if job.ranks.len() <= MAX_ROWS || explain {
        for rank in &job.ranks {
            table.add_row(row(named(rank), rank, note(rank)));
        }
    } else {
        summarise(&mut table, &job.ranks);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let _ = writeln!(
        text,
        "job {}: {} ranks on this node",
        job.job,
        job.ranks.len()
    );
    push_table(text, &table);
    let total = &job.total;
    let _ = writeln!(text, "stopped spinning: {}", listed(&total.why));
    let _ = writeln!(text, "peer seen by: {}", listed(&total.source));
    let _ = writeln!(text, "wait points: {}; slice: {}", hooks(job), slices(job));
}

fn push_table(text: &mut String, table: &Table) {
    for line in table.lines() {
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// Three real ranks, by the time that they waited: the least, the median, the most.
fn summarise(table: &mut Table, ranks: &[Rank]) {
    let mut by_wait: Vec<&Rank> = ranks.iter().collect();
    by_wait.sort_by_key(|rank| rank.counters.spinning + rank.counters.blocked);
    let last = by_wait.len() - 1;
    for (name, at) in [
        ("waits least", 0),
        ("median", last / 2),
        ("waits most", last),
    ] {
        let rank = by_wait[at];
        table.add_row(row(format!("{name} ({})", named(rank)), rank, note(rank)));
    }
    let ended = ranks
        .iter()
        .filter(|rank| rank.state != RankState::Done)
        .count();
    if ended > 0 {
        table.add_row([format!("{ended} ranks did not reach MPI_Finalize")]);
    }
}

fn row(name: String, rank: &Rank, note: &str) -> Vec<String> {
    let counters = &rank.counters;
    let share = |part: Nanos| match rank.wall {
        Some(wall) => format!("{part} {:3.0}%", part.share_of(wall) * 100.0),
        None => part.to_string(),
    };
    let known = |time: Option<Nanos>| time.map_or_else(|| "?".to_owned(), |t| t.to_string());
    let cpu = rank
        .cpu
        .zip(rank.wall)
        .map(|(cpu, wall)| cpu.share_of(wall) * 100.0);
    vec![
        name,
        known(rank.wall),
        rank.computing.map_or_else(|| "?".to_owned(), share),
        share(counters.spinning),
        share(counters.blocked),
        cpu.map_or_else(|| "?".to_owned(), |percent| format!("{percent:.0}%")),
        counters.nr_calls.to_string(),
        counters.nr_blocks.to_string(),
        counters.nr_rings.to_string(),
        counters.nr_missed.to_string(),
        counters.nr_spurious.to_string(),
        delays(counters),
        note.to_owned(),
    ]
}

/// A rank that did not get through MPI_Init has no world rank.
fn named(rank: &Rank) -> String {
    match rank.world_rank {
        u32::MAX => "?".to_owned(),
        world_rank => world_rank.to_string(),
    }
}

fn note(rank: &Rank) -> &'static str {
    match rank.state {
        RankState::Done => "",
        RankState::Passive => "passive: ran as without cosched",
        _ => "ended without MPI_Finalize",
    }
}

fn delays(counters: &Counters) -> String {
    let delay = &counters.wake_delay;
    if delay.count() == 0 {
        return "-".to_owned();
    }
    let shown = [50, 90, 99].map(|percent| match delay.percentile_us(percent) {
        Some(us) => us.to_string(),
        None => "more".to_owned(),
    });
    format!("< {} us", shown.join("/"))
}

fn listed(numbers: &BTreeMap<&'static str, u64>) -> String {
    let mut named: Vec<(&str, u64)> = numbers
        .iter()
        .map(|(k, v)| (*k, *v))
        .filter(|n| n.1 > 0)
        .collect();
    named.sort_by_key(|(_, nr)| std::cmp::Reverse(*nr));
    let shown: Vec<String> = named
        .iter()
        .map(|(name, nr)| format!("{name} {nr}"))
        .collect();
    if shown.is_empty() {
        "never".to_owned()
    } else {
        shown.join(", ")
    }
}

fn hooks(job: &Job) -> String {
    let mut all: Vec<&str> = job
        .ranks
        .iter()
        .flat_map(|rank| rank.hook.iter().copied())
        .collect();
    all.sort_unstable();
    all.dedup();
    if all.is_empty() {
        "none fired".to_owned()
    } else {
        all.join(", ")
    }
}

fn slices(job: &Job) -> String {
    match job.ranks.iter().map(|rank| rank.slice_us).max() {
        None | Some(0) => "the kernel's own".to_owned(),
        Some(us) => format!("{us} us"),
    }
}
