// SPDX-License-Identifier: Apache-2.0
//! A scenario: everything that a simulation depends on, as plain data.
//!
//! Units stand in the text (`"1600us"`), unknown keys are refused, each kind of
//! workload, scheduler and end has its own parameters, so none is taken that no part
//! reads. Running the same scenario gives the same bytes.
//!
//! It does not say which factors vary: that is an experiment's business, which writes
//! scenarios.

use crate::engine::MAX_IDS;
use crate::local;
use crate::network::Network;
use crate::program::Workload;
use crate::units::Span;
use crate::SimError;
use cosched_policy::{load, raw, resolve, Body, Preset, Resolved};
use serde::{Deserialize, Serialize};

/// One simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Of all random numbers.
    #[serde(default)]
    pub seed: u64,
    /// Which independent run with this seed.
    #[serde(default)]
    pub replication: u64,
    /// What policy decides: a built-in preset's name, a preset file, a `wait` answer, or a preset in place.
    pub policy: Policy,
    /// When it is over.
    pub end: End,
    /// More events are an error, never a result.
    #[serde(default = "most_events")]
    pub max_events: u64,
    /// The machines.
    pub cluster: Cluster,
    /// Their schedulers.
    pub local: local::Params,
    /// What connects them.
    #[serde(default)]
    pub network: Network,
    /// Who runs.
    #[serde(rename = "job")]
    pub jobs: Vec<Job>,
}

fn most_events() -> u64 {
    1_000_000_000
}

/// A preset by name, or written in place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Policy {
    /// What `cosched policy show` takes.
    Named(String),
    /// The tables of a preset file; `name`, `about` and `source` may be left out.
    Written(toml::Table),
}

/// Equal nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// How many.
    pub nodes: u32,
    /// CPUs of each.
    #[serde(default = "one")]
    pub cpus: u32,
    /// Node clocks differ by up to this from the nominal rate, in parts per million.
    #[serde(default = "usual_drift")]
    pub drift_ppm: u64,
    /// A context switch, paid by the task that comes on.
    #[serde(default)]
    pub switch: Span,
    /// Lost to refilling caches after another task ran there, or on another CPU, by the task that comes on: until then
    /// its work takes twice as long.
    #[serde(default)]
    pub refill: Span,
    /// The system call that goes to sleep; a message that arrives within is seen.
    #[serde(default)]
    pub block: Span,
    /// The interrupt by which one CPU makes another choose again: for whom it wakes there, for a boost, or where turns end
    /// together.
    #[serde(default, skip_serializing_if = "crate::units::is_off")]
    pub kick: Span,
    /// The system call by which who sends on its own node wakes a receiver that sleeps.
    #[serde(default, skip_serializing_if = "crate::units::is_off")]
    pub wake: Span,
    /// The system call that yields.
    #[serde(default = "usual_yield", rename = "yield")]
    pub yields: Span,
    /// How often the monitor that averages run-queue lengths writes a new value.
    #[serde(default = "usual_monitor")]
    pub monitor: Span,
    /// Node clocks, by which gangs take turns, are off by up to this either way.
    #[serde(default)]
    pub clock_error: Span,
    /// False: a task stays on the CPU it was placed on; true: idle CPUs take waiting ones.
    #[serde(default = "yes")]
    pub balance: bool,
}

impl Default for Cluster {
    fn default() -> Self {
        Cluster {
            nodes: 1,
            cpus: one(),
            drift_ppm: usual_drift(),
            switch: Span::ZERO,
            refill: Span::ZERO,
            block: Span::ZERO,
            kick: Span::ZERO,
            wake: Span::ZERO,
            yields: usual_yield(),
            monitor: usual_monitor(),
            clock_error: Span::ZERO,
            balance: yes(),
        }
    }
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

fn usual_drift() -> u64 {
    50
}

fn usual_monitor() -> Span {
    Span::s(1)
}

fn usual_yield() -> Span {
    Span::us(1)
}

/// When a simulation is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// All jobs that end by themselves have ended.
    All,
    /// The first job has ended.
    First,
    /// The job of that name has ended.
    Job(String),
    /// At that instant.
    Time(Span),
}

/// A job: processes that start together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Its name, unique.
    pub name: String,
    /// What it does.
    pub workload: Workload,
    /// How many processes; not with `each_node`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<u32>,
    /// That many independent processes on each node, instead of ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each_node: Option<u32>,
    /// Threads of each process.
    #[serde(default = "one")]
    pub threads: u32,
    /// Which rank goes where; not with `each_node`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// The slice its tasks ask their scheduler for, as by sched_setattr; none: the scheduler's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<Span>,
    /// When it starts.
    #[serde(default)]
    pub start: Span,
    /// Each process starts up to that much later, at random.
    #[serde(default)]
    pub scatter: Span,
}

/// Which rank goes to which node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Rank r on node r modulo nodes; the default.
    Cyclic,
    /// As many neighbouring ranks on a node as fit when all nodes are used.
    Block,
    /// The node of each rank.
    Nodes(Vec<u32>),
}

impl Job {
    /// How many processes it has on a cluster of `nodes`.
    pub fn processes(&self, nodes: u32) -> u64 {
        match self.each_node {
            Some(copies) => u64::from(copies) * u64::from(nodes),
            None => u64::from(self.ranks.unwrap_or(1)),
        }
    }

    /// The node of process `p`.
    pub fn node_of(&self, p: u32, nodes: u32) -> u32 {
        match (&self.placement, self.each_node) {
            (_, Some(copies)) => p / copies,
            (Some(Placement::Nodes(list)), _) => list[p as usize],
            (Some(Placement::Block), _) => {
                let per_node = self.ranks.unwrap_or(1).div_ceil(nodes);
                p / per_node
            }
            _ => p % nodes,
        }
    }

    fn refusal(&self, cluster: &Cluster) -> Option<String> {
        let processes = self.processes(cluster.nodes);
        if processes == 0 || self.threads == 0 {
            return Some(
                "it has no process: write ranks, each_node and threads of 1 or more".into(),
            );
        }
        if self.each_node.is_some() && (self.ranks.is_some() || self.placement.is_some()) {
            return Some("each_node says all about ranks and placement: leave those out".into());
        }
        if self.each_node.is_some() && self.workload.communicates() {
            return Some("each_node makes independent processes, and this workload communicates: write ranks".into());
        }
        if let Some(Placement::Nodes(list)) = &self.placement {
            if list.len() as u64 != processes {
                return Some(format!(
                    "placement names {} nodes for {processes} ranks",
                    list.len()
                ));
            }
            if let Some(node) = list.iter().find(|node| **node >= cluster.nodes) {
                return Some(format!(
                    "placement names node {node}, the last is {}",
                    cluster.nodes - 1
                ));
            }
        }
        let ranks = if self.each_node.is_some() {
            1
        } else {
            processes as u32
        };
        self.workload.refuses(ranks, self.threads)
    }
}

impl Scenario {
    /// Reads TOML; the error is one line with its place.
    pub fn parse(text: &str) -> Result<Self, SimError> {
        let scenario: Scenario = toml::from_str(text).map_err(SimError::toml(text))?;
        scenario.check()?;
        Ok(scenario)
    }

    /// Refuses what cannot be simulated, in one line.
    pub fn check(&self) -> Result<(), SimError> {
        let refuse = |why: String| Err(SimError::Scenario(why));
        let nodes = self.cluster.nodes;
        if nodes == 0 || self.cluster.cpus == 0 {
            return refuse("cluster: write 1 or more for nodes and cpus".into());
        }
        if u64::from(nodes) * u64::from(self.cluster.cpus) > MAX_IDS as u64 {
            return refuse(format!("cluster: more than {MAX_IDS} CPUs"));
        }
        if self.cluster.drift_ppm >= 1_000_000 {
            return refuse("cluster.drift_ppm: write less than 1000000".into());
        }
        if self.cluster.yields == Span::ZERO {
            return refuse(
                "cluster.yield: a yield that costs nothing never ends: write 100ns or more".into(),
            );
        }
        if self.cluster.monitor == Span::ZERO {
            return refuse("cluster.monitor: write a period above 0".into());
        }
        let mut tasks = 0;
        for (i, job) in self.jobs.iter().enumerate() {
            if job.name.is_empty() || job.name.contains(char::is_control) {
                return refuse(format!("job {:?}: write a name of one line", job.name));
            }
            if let Some(why) = job.refusal(&self.cluster) {
                return refuse(format!("job {:?}: {why}", job.name));
            }
            if job.slice == Some(Span::ZERO)
                || job.slice.is_some() && !self.local.capabilities().slice
            {
                return refuse(format!(
                    "job {:?}: slice: write one above 0, under a local scheduler that takes slices",
                    job.name
                ));
            }
            if self.jobs[..i].iter().any(|other| other.name == job.name) {
                return refuse(format!("job {:?}: two jobs have this name", job.name));
            }
            tasks += job.processes(nodes) * u64::from(job.threads);
        }
        if tasks == 0 || tasks >= MAX_IDS as u64 {
            return refuse(format!(
                "{tasks} tasks in all: write jobs of 1 to {} tasks",
                MAX_IDS - 1
            ));
        }
        self.network.check().map_err(SimError::Scenario)?;
        self.local.check().map_err(SimError::Scenario)?;
        self.check_end()
    }

    fn check_end(&self) -> Result<(), SimError> {
        let ends = |job: &&Job| !job.workload.endless();
        let ok = match &self.end {
            End::Time(_) => true,
            End::All | End::First => self.jobs.iter().any(|job| ends(&job)),
            End::Job(name) => {
                let named = self.jobs.iter().find(|job| job.name == *name);
                let Some(job) = named else {
                    return Err(SimError::Scenario(format!("end: no job {name:?}")));
                };
                ends(&job)
            }
        };
        if ok {
            return Ok(());
        }
        let why = "end: that job runs for ever: write end = { time = \"10s\" } or name another";
        Err(SimError::Scenario(why.into()))
    }

    /// The policy's answers; the simulator gives all that have a function.
    pub fn resolved(&self) -> Result<Resolved, SimError> {
        let preset = match &self.policy {
            Policy::Named(name) => load(name)?,
            Policy::Written(table) => {
                let mut table = table.clone();
                for (key, text) in [
                    ("name", "scenario"),
                    ("about", "in place"),
                    ("source", "the scenario"),
                ] {
                    table.entry(key).or_insert_with(|| text.into());
                }
                Preset::parse("policy", &table.to_string())?
            }
        };
        let resolved = resolve(&preset, &[Body::Sim])?;
        if asks_nobody(&resolved) {
            let why = "policy: nothing asks fairness: write arrival = \"boost\" or periodic = \"boost_pending\", or fairness = \"none\"";
            return Err(SimError::Scenario(why.into()));
        }
        Ok(resolved)
    }
}

/// Whether the parameters of fairness would be read by no part.
fn asks_nobody(resolved: &Resolved) -> bool {
    let answer = |question: u32| resolved.taken[question as usize].choice.answer.word;
    let asked =
        answer(raw::COS_Q_ARRIVAL) == "boost" || answer(raw::COS_Q_PERIODIC) == "boost_pending";
    answer(raw::COS_Q_FAIRNESS) != "none" && !asked
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
policy = "implicit"
end = { job = "latency" }
[cluster]
nodes = 2
switch = "250us"
[local]
scheduler = "solaris-ts"
[network]
latency = "30us"
[[job]]
name = "latency"
workload = { kind = "latency", round_trips = 10 }
ranks = 2
[[job]]
name = "hog"
workload = { kind = "calcula" }
each_node = 3
"#;

    fn refusal(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        Scenario::parse(&GOOD.replacen(from, to, 1))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn what_is_read_is_written_back() {
        let scenario = Scenario::parse(GOOD).unwrap();
        let text = toml::to_string(&scenario).unwrap();
        assert_eq!(Scenario::parse(&text).unwrap(), scenario);
        assert_eq!(scenario.jobs[1].processes(2), 6);
        assert_eq!(scenario.jobs[1].node_of(5, 2), 1);
    }

    #[test]
    fn every_wrong_line_is_refused_in_one_line_that_names_it() {
        for (from, to, said) in [
            ("switch", "swich", "swich"),
            ("\"250us\"", "250", "with its unit"),
            ("round_trips", "round_trip", "round_trip"),
            ("\"solaris-ts\"", "\"solaris-ts\"\nslice = \"1ms\"", "slice"),
            ("nodes = 2", "nodes = 0", "1 or more"),
            ("nodes = 2", "nodes = 2000000", "CPUs"),
            ("ranks = 2", "ranks = 3", "two ranks"),
            ("ranks = 2", "ranks = 0", "no process"),
            (
                "each_node = 3",
                "each_node = 3\nranks = 1",
                "leave those out",
            ),
            ("ranks = 2", "ranks = 2\nslice = \"0ms\"", "slice"),
            ("\"hog\"", "\"latency\"", "two jobs"),
            ("job = \"latency\"", "job = \"other\"", "no job"),
            ("job = \"latency\"", "job = \"hog\"", "for ever"),
            ("each_node = 3", "each_node = 1000000", "tasks"),
            ("\"hog\"", "\"h\\nog\"", "one line"),
            ("\"250us\"", "\"580y\"", "at most"),
            (
                "\"solaris-ts\"",
                "\"solaris-ts\"\nupdate = \"1ns\"",
                "1us or more",
            ),
            (
                "kind = \"calcula\"",
                "kind = \"calcula\", work = \"0us\"",
                "above 0",
            ),
        ] {
            let why = refusal(from, to);
            assert!(why.contains(said) && !why.contains('\n'), "{to}: {why}");
        }
    }

    #[test]
    fn a_policy_is_named_or_written_and_answers_all() {
        let mut scenario = Scenario::parse(GOOD).unwrap();
        assert_eq!(scenario.resolved().unwrap().name, "implicit");
        scenario.policy = Policy::Named("implict".into());
        assert!(scenario
            .resolved()
            .unwrap_err()
            .to_string()
            .contains("implicit"));
        scenario.policy = Policy::Written("wait = 'block'".parse().unwrap());
        assert!(scenario
            .resolved()
            .unwrap_err()
            .to_string()
            .contains("not answered"));
    }
}
