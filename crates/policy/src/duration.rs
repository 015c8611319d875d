// SPDX-License-Identifier: Apache-2.0
//! How a length of time is written: always with its unit, like `"1600us"`.

/// Durations are shown in the largest of these that divides them.
const UNITS: [(u64, &str); 4] = [
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
    (1_000, "us"),
    (1, "ns"),
];

/// The nanoseconds of `"20us"` or `"1ms 600us"`; none of what is no duration, or beyond 2^64 ns.
pub fn parse(text: &str) -> Option<u64> {
    let long = humantime::parse_duration(text).ok()?;
    u64::try_from(long.as_nanos()).ok()
}

/// So that [`parse`] gives the number back.
pub fn show(ns: u64) -> String {
    if ns == 0 {
        return "0us".to_owned();
    }
    let fits = |(unit, _): &&(u64, &str)| ns.is_multiple_of(*unit);
    let (unit, word) = UNITS.iter().find(fits).expect("1 divides all");
    format!("{}{word}", ns / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_back() {
        for ns in [0, 1, 999, 1_600_000, 20_000_000, 7_000_000_001, u64::MAX] {
            assert_eq!(parse(&show(ns)), Some(ns));
        }
        assert_eq!(show(1_600_000), "1600us");
        assert_eq!(parse("1ms 600us"), Some(1_600_000));
        for wrong in ["", "us", "1600", "-1us", "9999999999y"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
