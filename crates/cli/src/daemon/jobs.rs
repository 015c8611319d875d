// SPDX-License-Identifier: Apache-2.0
//! `cosched jobs`: one line a job, and below it one a rank.

use super::{ask, read};
use crate::{policy::plain, say::say};
use anyhow::Result;
use comfy_table::CellAlignment;
use cosched_control::{
    document::{Job, Jobs, Rank},
    Wish,
};
use cosched_model::abi;
use std::{fmt::Write, process::ExitCode};

/// List your jobs and their ranks (needs coschedd)
///
/// Root sees those of all. F is the CPU time over the fair share; `last` the reason
/// of the last verdict on a rank.
#[derive(clap::Args)]
pub struct Args {
    /// Only this one
    job: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// On stdout.
pub fn main(args: &Args) -> Result<ExitCode> {
    let wish = Wish {
        job: args.job.unwrap_or(0),
        ..Wish::default()
    };
    let reply = ask(abi::COS_CONTROL_JOBS, &wish)?;
    if args.json {
        say(&reply.text)?;
    } else {
        say(render(&read(&reply)?).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn render(jobs: &Jobs) -> String {
    if jobs.jobs.is_empty() {
        return format!("no jobs of yours{}", hidden(jobs.nr_hidden));
    }
    let mut table = plain([
        "JOB",
        "UID",
        "NAME",
        "PRESET",
        "TASKS",
        "F",
        "BOOSTS",
        "DENIED",
        "BEGUN WITH",
    ]);
    for job in &jobs.jobs {
        table.add_row(line(job));
    }
    let mut text = format!("{}\n", table.trim_fmt());
    if !jobs.ranks.is_empty() {
        let _ = write!(text, "\n{}\n", ranks(&jobs.ranks));
    }
    if jobs.nr_ranks > jobs.ranks.len() {
        let more = jobs.nr_ranks - jobs.ranks.len();
        let _ = writeln!(text, "... and {more} ranks more: cosched jobs JOB");
    }
    if jobs.nr_hidden > 0 {
        let _ = writeln!(text, "{}", hidden(jobs.nr_hidden).trim_start_matches("; "));
    }
    text
}

fn hidden(nr: usize) -> String {
    match nr {
        0 => String::new(),
        nr => format!("; {nr} of other users are not shown"),
    }
}

fn line(job: &Job) -> Vec<String> {
    let denied: u64 = job.ledger.denied.values().sum();
    let begun = match (&job.cgroup, job.root_pid) {
        (Some(path), _) => path.clone(),
        (None, Some(pid)) => format!("process {pid}"),
        (None, None) => "nobody yet".to_owned(),
    };
    vec![
        job.job.to_string(),
        job.uid.to_string(),
        job.name.clone(),
        job.preset.clone(),
        job.ledger.nr_tasks.to_string(),
        fairness(job.ledger.fairness),
        job.ledger.nr_boosts.to_string(),
        denied.to_string(),
        begun,
    ]
}

/// `-` before anything ran.
pub fn fairness(f: Option<f64>) -> String {
    f.map_or_else(|| "-".to_owned(), |f| format!("{f:.2}"))
}

fn ranks(ranks: &[Rank]) -> String {
    let header = [
        "JOB", "PID", "TASK", "NAME", "CPU", "RAN", "WANTED", "F", "BOOSTS", "DENIED", "LAST",
    ];
    let mut table = plain(header);
    for rank in ranks {
        let f = (rank.due_ns.0 > 0).then(|| rank.ran_ns.share_of(rank.due_ns));
        let state = if rank.running { "*" } else { "" };
        table.add_row([
            rank.job.to_string(),
            rank.tgid.to_string(),
            rank.tid.to_string(),
            rank.comm.clone(),
            format!("{}{state}", rank.cpu),
            rank.ran_ns.to_string(),
            rank.wanted_ns.to_string(),
            fairness(f),
            rank.nr_boosts.to_string(),
            rank.nr_denied.to_string(),
            rank.last_reason.clone(),
        ]);
    }
    for at in [1, 2, 5, 6] {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use cosched_control::document::{Answer, Ledger};
    use cosched_model::Nanos;

    /// A job with numbers.
    pub fn job() -> Job {
        let mut ledger = Ledger {
            nr_tasks: 2,
            fairness: Some(0.987),
            nr_boosts: 12,
            nr_served: 11,
            run_delay: vec![0; 32],
            ..Ledger::default()
        };
        ledger.denied.insert("in_debt".into(), 3);
        ledger.boosted.insert("in_credit".into(), 12);
        ledger.seen.insert("socket".into(), 15);
        let answer = Answer {
            question: "arrival".into(),
            owner: "kernel".into(),
            answer: "boost".into(),
            instead_of: None,
        };
        Job {
            job: 1,
            serial: 7,
            uid: 1000,
            name: "app".into(),
            preset: "auto".into(),
            answers: vec![answer],
            root_pid: Some(42),
            cgroup: None,
            held: true,
            age_ns: Nanos(1),
            ledger,
        }
    }

    #[test]
    fn a_line_a_job_and_one_a_rank() {
        let rank = Rank {
            job: 1,
            tgid: 42,
            tid: 43,
            comm: "app".into(),
            ran_ns: Nanos(2_000_000),
            due_ns: Nanos(4_000_000),
            wanted_ns: Nanos(8_000_000),
            nr_boosts: 1,
            nr_denied: 0,
            last_reason: "in_credit".into(),
            running: true,
            cpu: 1,
        };
        let jobs = Jobs {
            jobs: vec![job()],
            ranks: vec![rank],
            nr_ranks: 3,
            nr_hidden: 2,
        };
        let text = render(&jobs);
        for part in [
            "process 42",
            "0.99",
            "1*",
            "0.50",
            "in_credit",
            "and 2 ranks more",
            "2 of other users",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let none = Jobs {
            jobs: vec![],
            ranks: vec![],
            nr_ranks: 0,
            nr_hidden: 1,
        };
        assert_eq!(
            render(&none),
            "no jobs of yours; 1 of other users are not shown"
        );
    }
}
