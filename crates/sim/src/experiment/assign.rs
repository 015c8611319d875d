// SPDX-License-Identifier: Apache-2.0
//! Writing a value into a scenario's tables by a dotted key.
//!
//! `cluster.switch`, `job.latency.workload.round_trips` (a job by its name),
//! `policy.order.past`. Whether the key exists is not decided here: the scenario is read
//! afterwards, and refuses what it does not know.

use toml::{Table, Value};

/// Writes `value` at `key`; the error says which part of the key leads nowhere.
pub fn assign(scenario: &mut Table, key: &str, value: &Value) -> Result<(), String> {
    let (path, last) = key.rsplit_once('.').unwrap_or(("", key));
    let mut at = scenario;
    let mut parts = path.split('.').filter(|part| !part.is_empty());
    while let Some(part) = parts.next() {
        at = match part {
            "job" => job(at, parts.next().unwrap_or(""))?,
            _ => enter(at, part)?,
        };
    }
    if last.is_empty() {
        return Err(format!(
            "{key:?} is no key: write one like \"cluster.nodes\""
        ));
    }
    at.insert(last.to_owned(), value.clone());
    Ok(())
}

/// The table at `part`; made where there is none. A policy by name becomes its tables, an
/// answer by name the table of that answer.
fn enter<'a>(at: &'a mut Table, part: &str) -> Result<&'a mut Table, String> {
    let entry = at
        .entry(part.to_owned())
        .or_insert_with(|| Value::Table(Table::new()));
    if let Value::String(name) = entry {
        let table = match part {
            "policy" => written(name)?,
            _ => Table::from_iter([("answer".to_owned(), Value::String(name.clone()))]),
        };
        *entry = Value::Table(table);
    }
    entry
        .as_table_mut()
        .ok_or_else(|| format!("{part:?} holds no keys"))
}

fn written(preset: &str) -> Result<Table, String> {
    let preset = cosched_policy::load(preset).map_err(|error| error.to_string())?;
    let text = preset.to_toml();
    text.parse::<Table>()
        .map_err(|error| error.message().to_owned())
}

fn job<'a>(at: &'a mut Table, name: &str) -> Result<&'a mut Table, String> {
    let jobs = at.get_mut("job").and_then(Value::as_array_mut);
    let mut named = jobs.into_iter().flatten().filter_map(Value::as_table_mut);
    named
        .find(|job| job.get("name").and_then(Value::as_str) == Some(name))
        .ok_or_else(|| format!("there is no job {name:?}"))
}

/// Jobs with no ranks, or with none on each node, are not there.
pub fn drop_empty_jobs(scenario: &mut Table) {
    let none = |job: &Value, key| job.get(key).and_then(Value::as_integer) == Some(0);
    if let Some(jobs) = scenario.get_mut("job").and_then(Value::as_array_mut) {
        jobs.retain(|job| !none(job, "ranks") && !none(job, "each_node"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        "policy = 'dcs-spin'\n[[job]]\nname = 'hog'\neach_node = 2\n[cluster]\nnodes = 2"
            .parse()
            .unwrap()
    }

    #[test]
    fn keys_lead_to_jobs_by_name_and_into_presets() {
        let mut it = table();
        assign(&mut it, "cluster.switch", &"1ms".into()).unwrap();
        assign(&mut it, "job.hog.each_node", &0.into()).unwrap();
        assign(&mut it, "policy.fairness.e", &3.into()).unwrap();
        assign(&mut it, "policy.wait.answer", &"block".into()).unwrap();
        assert_eq!(it["cluster"]["switch"].as_str(), Some("1ms"));
        assert_eq!(it["policy"]["fairness"]["e"].as_integer(), Some(3));
        assert_eq!(
            it["policy"]["arrival"]["answer"]
                .as_str()
                .or(it["policy"]["arrival"].as_str()),
            Some("boost")
        );
        assert_eq!(it["policy"]["wait"]["answer"].as_str(), Some("block"));
        drop_empty_jobs(&mut it);
        assert!(it["job"].as_array().unwrap().is_empty());
    }

    #[test]
    fn a_key_that_leads_nowhere_is_refused() {
        let refusal = |key: &str| assign(&mut table(), key, &1.into()).unwrap_err();
        assert!(refusal("job.hogs.each_node").contains("hogs"));
        assert!(refusal("cluster.nodes.x").contains("nodes"));
        assert!(refusal("cluster.").contains("no key"));
        assert!(refusal("").contains("no key"));
    }
}
