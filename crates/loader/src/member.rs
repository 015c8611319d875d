// SPDX-License-Identifier: Apache-2.0
//! The tasks of all jobs, as the BPF iterator lists them.

/// One rank, or another task of a job.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Member {
    /// Thread.
    pub tid: u32,
    /// Its process.
    pub tgid: u32,
    /// Its job's number.
    pub job: u32,
    /// Where it runs or last did.
    pub cpu: u32,
    /// Whether it is on a CPU.
    pub running: bool,
    /// CPU time since it joined.
    pub ran_ns: u64,
    /// Time that it ran or could have.
    pub wanted_ns: u64,
    /// Its fair part of that.
    pub due_ns: u64,
    /// Granted.
    pub nr_boosts: u64,
    /// Refused, or found running.
    pub nr_denied: u64,
    /// Of the last verdict: its word.
    pub last_reason: &'static str,
    /// Its name.
    pub comm: String,
}

impl Member {
    /// From a line of `list_members` (bpf/member.bpf.h).
    pub(crate) fn parse(line: &str) -> Option<Member> {
        let mut words = line.splitn(12, ' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        let (tid, tgid, job, cpu) = (number()?, number()?, number()?, number()?);
        let (running, ran_ns, wanted_ns) = (number()? != 0, number()?, number()?);
        let (due_ns, nr_boosts, nr_denied) = (number()?, number()?, number()?);
        let reason = usize::try_from(number()?).ok()?;
        Some(Member {
            tid: u32::try_from(tid).ok()?,
            tgid: u32::try_from(tgid).ok()?,
            job: u32::try_from(job).ok()?,
            cpu: u32::try_from(cpu).ok()?,
            running,
            ran_ns,
            wanted_ns,
            due_ns,
            nr_boosts,
            nr_denied,
            last_reason: cosched_policy::words::REASONS.get(reason)?,
            comm: words.next()?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_member() {
        let member = Member::parse("12 11 1 0 1 1000 2000 900 3 4 0 my app").unwrap();
        assert_eq!((member.tid, member.job, member.running), (12, 1, true));
        assert_eq!((member.ran_ns, member.nr_denied), (1000, 4));
        assert_eq!((member.last_reason, &*member.comm), ("preset", "my app"));
        for wrong in [
            "",
            "12 11",
            "12 11 1 0 1 1 1 1 1 1 99 x",
            "a b c d e f g h i j k l",
        ] {
            assert_eq!(Member::parse(wrong), None, "{wrong}");
        }
    }
}
