// SPDX-License-Identifier: Apache-2.0
//! `cosched status`: what coschedd does here and why, with every number's meaning.

use super::{ask, jobs::fairness, read, wishes::owners};
use crate::{policy::plain, say::say};
use anyhow::Result;
use comfy_table::CellAlignment;
use cosched_control::{
    document::{Job, Setting, Status},
    Wish,
};
use cosched_model::{abi, Nanos};
use std::{collections::BTreeMap, fmt::Write, process::ExitCode};

/// Say what coschedd does here, and who was boosted or denied, and why
#[derive(clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print its configuration with the origin of each value
    #[arg(long)]
    config: bool,
}

/// On stdout.
pub fn main(args: &Args) -> Result<ExitCode> {
    let reply = ask(abi::COS_CONTROL_STATUS, &Wish::default())?;
    let status: Status = read(&reply)?;
    match (args.json, args.config) {
        (true, true) => say(serde_json::to_string(&status.config)?)?,
        (true, false) => say(&reply.text)?,
        (false, true) => say(config(&status.config).trim_end())?,
        (false, false) => say(render(&status).trim_end())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn config(settings: &[Setting]) -> String {
    let mut table = plain(["KEY", "VALUE", "ORIGIN", "WHAT IT DOES"]);
    for setting in settings {
        table.add_row([
            &setting.key,
            &setting.value,
            &setting.origin,
            &setting.meaning,
        ]);
    }
    table.trim_fmt()
}

fn render(status: &Status) -> String {
    let why = status
        .why
        .as_ref()
        .map(|why| format!(": {why}"))
        .unwrap_or_default();
    let mut text = format!(
        "coschedd {}, pid {}, up {}: {}{why}\n",
        status.version,
        status.pid,
        status.up_ns,
        status.mode.word()
    );
    text += "\nthe kernel offers\n";
    for offer in &status.offers {
        let found = offer.missing.as_ref().unwrap_or(&offer.found);
        let _ = writeln!(text, "  {:<14}{found}", offer.name);
    }
    text += "\nsince it began, on all CPUs\n";
    let mut table = plain(["", "", ""]);
    for count in &status.counts {
        table.add_row([
            &format!("  {}", count.name),
            &count.value.to_string(),
            &count.meaning,
        ]);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let rows = table.trim_fmt();
    text.extend(rows.lines().skip(1).map(|line| format!("{line}\n")));
    for job in &status.jobs {
        text += &one(job);
    }
    if status.nr_hidden > 0 {
        let _ = writeln!(
            text,
            "\n{} jobs of other users are not shown",
            status.nr_hidden
        );
    }
    text
}

/// A job, with the reasons of its verdicts.
fn one(job: &Job) -> String {
    let ledger = &job.ledger;
    let mut text = format!(
        "\njob {} {:?} of uid {}, preset {}, up {}, {} tasks ({} ever)\n",
        job.job, job.name, job.uid, job.preset, job.age_ns, ledger.nr_tasks, ledger.nr_joined
    );
    let mut line = |name: &str, what: String| {
        let _ = writeln!(text, "  {name:<17}{what}");
    };
    line("answered by", owners(&job.answers));
    line(
        "F",
        format!(
            "{}: ran {} of {} that were due",
            fairness(ledger.fairness),
            ledger.ran_ns,
            ledger.due_ns
        ),
    );
    line("arrivals seen by", listed(&ledger.seen));
    line(
        "boosts",
        format!(
            "{}: {} ran in time, {} expired",
            ledger.nr_boosts, ledger.nr_served, ledger.nr_expired
        ),
    );
    line("... granted for", listed(&ledger.boosted));
    line("... denied for", listed(&ledger.denied));
    line("arrival to run", delays(job));
    let (yields, stayed) = (ledger.nr_yields, ledger.nr_stayed);
    line("yields", format!("{yields}, {stayed} of them kept the CPU"));
    line("migrations", ledger.nr_migrations.to_string());
    text
}

/// Upper bounds, as of buckets.
pub fn delays(job: &Job) -> String {
    let bound = |bound: Option<Nanos>| bound.map_or_else(|| "-".to_owned(), |ns| format!("< {ns}"));
    let ledger = &job.ledger;
    let (p50, p99) = (ledger.run_delay_p50_below_ns, ledger.run_delay_p99_below_ns);
    format!("p50 {}, p99 {}", bound(p50), bound(p99))
}

/// `in_credit 12, running 3`, the most first.
pub fn listed(numbers: &BTreeMap<String, u64>) -> String {
    let mut pairs: Vec<_> = numbers.iter().collect();
    pairs.sort_by_key(|(_, nr)| std::cmp::Reverse(**nr));
    let words: Vec<_> = pairs
        .iter()
        .map(|(word, nr)| format!("{word} {nr}"))
        .collect();
    if words.is_empty() {
        return "-".to_owned();
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_control::{
        document::{Count, Offer},
        Mode,
    };

    #[test]
    fn says_mode_why_and_what_each_number_means() {
        let status = Status {
            version: "0".into(),
            pid: 7,
            up_ns: Nanos(1_000_000_000),
            mode: Mode::Observe,
            why: Some("no sched_ext".into()),
            offers: vec![Offer {
                name: "BTF".into(),
                found: "there".into(),
                missing: None,
            }],
            counts: vec![Count {
                name: "switches".into(),
                value: 123,
                meaning: "a task came on a CPU".into(),
            }],
            jobs: vec![super::super::jobs::tests::job()],
            nr_hidden: 0,
            config: vec![],
        };
        let text = render(&status);
        for part in [
            "observes only: no sched_ext",
            "123  a task came on a CPU",
            "arrival: boost (kernel)",
            "0.99: ran",
            "in_debt 3",
            "11 ran in time",
            "p50 -",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
