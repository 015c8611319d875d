// SPDX-License-Identifier: Apache-2.0
//! `cosched policy`: which policies there are, and what each means here: for
//! each of the seven questions who answers it, what, and with which parameters.
//!
//! It also is where `--policy WORD` of other sub-commands is settled.

use crate::{daemon, fault::Fault};
use anyhow::Result;
use clap::Subcommand;
use comfy_table::{presets::NOTHING, ContentArrangement, Table};
use cosched_policy::{Body, Error, Preset, Resolved, Taken};
use std::{io::Write, process::ExitCode};

/// Show the policies, and what each means on this machine
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the built-in presets
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show for each question who answers it, and what
    Show {
        /// A preset, a wait answer such as spin_block:50us, or a TOML file
        name: String,
        /// Print JSON
        #[arg(long, conflicts_with = "toml")]
        json: bool,
        /// Print the preset itself with every parameter, to start one of your own
        #[arg(long)]
        toml: bool,
    },
    /// Check that a preset file is right and can run here
    Check {
        /// The TOML file
        file: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Prints on stdout; fails with one line.
pub fn main(args: &Args) -> Result<ExitCode> {
    let text = match &args.action {
        Action::List { json } => list(*json)?,
        Action::Show {
            name, toml: true, ..
        } => read(name)?.to_toml(),
        Action::Show { name, json, .. } => show(&sketch(&read(name)?), *json)?,
        Action::Check { file, json } => check(file, *json)?,
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The policy that @word names, settled with the bodies that are present.
pub fn load(word: &str) -> Result<Resolved> {
    settle(&read(word)?, &present())
}

/// The bodies that are there when a command runs now.
fn present() -> Vec<Body> {
    daemon::present(daemon::find().as_ref())
}

/// The preset that @word names.
pub fn read(word: &str) -> Result<Preset> {
    Ok(cosched_policy::load(word).map_err(fault)?)
}

/// To be shown, also where it cannot run.
fn sketch(preset: &Preset) -> Resolved {
    cosched_policy::sketch(preset, &present())
}

/// With the bodies @present.
pub fn settle(preset: &Preset, present: &[Body]) -> Result<Resolved> {
    Ok(cosched_policy::resolve(preset, present).map_err(fault)?)
}

/// A missing body is this machine's fault, all else is the user's.
fn fault(error: Error) -> Fault {
    match error {
        Error::Gap { .. } => Fault::Machine(error.to_string()),
        _ => Fault::Usage(error.to_string()),
    }
}

fn list(json: bool) -> Result<String> {
    let presets = cosched_policy::built_in().map_err(fault)?;
    let present = present();
    let sketch = |preset| cosched_policy::sketch(preset, &present);
    let sketches: Vec<_> = presets.iter().map(sketch).collect();
    if json {
        return as_json(&sketches);
    }
    let mut table = plain(["PRESET", "WAIT", "NEEDS", "WHAT IT DOES"]);
    for policy in &sketches {
        let wait = policy.taken[0].choice.answer.word;
        table.add_row([&policy.name, wait, &needs(policy), &policy.about]);
    }
    Ok(format!("{}\n", table.trim_fmt()))
}

/// The bodies that are missing here.
fn needs(policy: &Resolved) -> String {
    let missing = policy.taken.iter().filter(|taken| !taken.present);
    let mut words: Vec<&str> = missing.map(|taken| taken.owner.word()).collect();
    words.dedup();
    words.join(", ")
}

fn show(policy: &Resolved, json: bool) -> Result<String> {
    if json {
        return as_json(policy);
    }
    let mut text = format!(
        "{}: {}\nsource: {}\n\n",
        policy.name, policy.about, policy.source
    );
    text += &questions(policy).trim_fmt();
    Ok(text + "\n")
}

/// A path is meant here, also where a preset has that name.
fn check(file: &str, json: bool) -> Result<String> {
    let path = if file.contains('/') {
        file.to_owned()
    } else {
        format!("./{file}")
    };
    let policy = load(&path)?;
    if !json {
        eprintln!("{file}: runs here");
    }
    show(&policy, json)
}

/// Question, owner, answer: one row each, also in reports.
pub fn questions(policy: &Resolved) -> Table {
    let mut table = plain(["QUESTION", "OWNER", "ANSWER", ""]);
    for taken in &policy.taken {
        let note = match taken.instead_of {
            _ if !taken.present => format!("(the {} is not present here)", taken.owner.word()),
            Some(preferred) => format!("(no body here gives {})", preferred.answer.word),
            None => String::new(),
        };
        table.add_row([
            taken.question.word,
            taken.owner.word(),
            &answer(taken),
            &note,
        ]);
    }
    table
}

/// `shim (wait), kernel (arrival, fairness)`: what is not left to the local scheduler.
pub fn owners(policy: &Resolved) -> String {
    let mut owners: Vec<(&str, Vec<&str>)> = Vec::new();
    for taken in policy
        .taken
        .iter()
        .filter(|taken| taken.owner != Body::Local)
    {
        let word = taken.owner.word();
        match owners.iter_mut().find(|(owner, _)| *owner == word) {
            Some((_, questions)) => questions.push(taken.question.word),
            None => owners.push((word, vec![taken.question.word])),
        }
    }
    let words = owners
        .iter()
        .map(|(owner, questions)| format!("{owner} ({})", questions.join(", ")));
    words.collect::<Vec<_>>().join(", ")
}

/// `spin_block(spin = "1600us")`
fn answer(taken: &Taken) -> String {
    let shown = taken.choice.shown();
    let shown: Vec<String> = shown
        .iter()
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    match shown.len() {
        0 => taken.choice.answer.word.to_owned(),
        _ => format!("{}({})", taken.choice.answer.word, shown.join(", ")),
    }
}

/// Columns and nothing around them.
pub fn plain<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    if let Some(first) = table.column_mut(0) {
        first.set_padding((0, 1));
    }
    table
}

fn as_json(value: &impl serde::Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
