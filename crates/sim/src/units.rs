// SPDX-License-Identifier: Apache-2.0
//! How quantities are written in a scenario: always with their unit.
//!
//! `"1600us"`, `"13MB/s"`; a bare number is refused with a line that shows what to write.

use cosched_model::Nanos;
use cosched_policy::duration;
use serde::{de, Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A length of time, written like `"1600us"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Nanos);

impl Span {
    /// No time.
    pub const ZERO: Span = Span(Nanos(0));

    /// Of those that are read; with longer ones sums would not fit.
    const MOST: Span = Span::s(30 * 24 * 3600);

    /// That many microseconds.
    pub const fn us(us: u64) -> Self {
        Span(Nanos(us * 1_000))
    }

    /// That many milliseconds.
    pub const fn ms(ms: u64) -> Self {
        Span(Nanos(ms * 1_000_000))
    }

    /// That many seconds.
    pub const fn s(s: u64) -> Self {
        Span(Nanos(s * 1_000_000_000))
    }

    /// In nanoseconds.
    pub const fn ns(self) -> u64 {
        self.0 .0
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&duration::show(self.ns()))
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = text(deserializer, "a duration", "10ms")?;
        let wrong =
            || de::Error::custom(format!("{text:?} is no duration: write one like \"10ms\""));
        let span = Span(Nanos(duration::parse(&text).ok_or_else(wrong)?));
        if span > Span::MOST {
            return Err(de::Error::custom(format!(
                "{text:?} is too long: write at most \"30days\""
            )));
        }
        Ok(span)
    }
}

/// Bytes a second, written like `"13MB/s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth(pub u64);

/// The larger first, so that a suffix is not taken for a smaller one.
const RATES: [(u64, &str); 4] = [
    (1_000_000_000, "GB/s"),
    (1_000_000, "MB/s"),
    (1_000, "kB/s"),
    (1, "B/s"),
];

impl Bandwidth {
    /// How long `bytes` take, rounded up to a nanosecond.
    pub fn time_ns(self, bytes: u32) -> u64 {
        (u64::from(bytes) * 1_000_000_000).div_ceil(self.0)
    }
}

impl Serialize for Bandwidth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fits = |(rate, _): &&(u64, &str)| self.0.is_multiple_of(*rate);
        let (rate, word) = RATES.iter().find(fits).unwrap_or(&RATES[3]);
        serializer.collect_str(&format_args!("{}{word}", self.0 / rate))
    }
}

impl<'de> Deserialize<'de> for Bandwidth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = text(deserializer, "a bandwidth", "13MB/s")?;
        let number = |(rate, word): &(u64, &str)| {
            let number: f64 = text.strip_suffix(word)?.trim_end().parse().ok()?;
            let bytes = (number * *rate as f64).round();
            (1.0..1e15)
                .contains(&bytes)
                .then_some(Bandwidth(bytes as u64))
        };
        RATES.iter().find_map(number).ok_or_else(|| {
            de::Error::custom(format!(
                "{text:?} is no bandwidth: write one like \"13MB/s\""
            ))
        })
    }
}

/// A text; anything else is most likely a number without its unit.
fn text<'de, D: Deserializer<'de>>(
    deserializer: D,
    what: &'static str,
    like: &'static str,
) -> Result<String, D::Error> {
    struct Text(&'static str, &'static str);
    impl de::Visitor<'_> for Text {
        type Value = String;
        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            write!(f, "{} with its unit, like {:?}", self.0, self.1)
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }
    }
    deserializer.deserialize_any(Text(what, like))
}

/// What is off is not written: a scenario of before stays what it was.
pub fn is_off<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct Line<T> {
        x: T,
    }

    fn span(text: &str) -> Result<Span, String> {
        let line: Result<Line<Span>, _> = toml::from_str(&format!("x = {text}"));
        line.map(|l| l.x).map_err(|e| e.message().to_owned())
    }

    #[test]
    fn spans_carry_their_unit_and_come_back() {
        assert_eq!(span("'1600us'"), Ok(Span::us(1600)));
        for ns in [0, 1, 999, 1_600_000, 20_000_000, 7_000_000_001] {
            let text = toml::to_string(&Line { x: Span(Nanos(ns)) }).unwrap();
            let back: Line<Span> = toml::from_str(&text).unwrap();
            assert_eq!(back.x.ns(), ns, "{text}");
        }
        assert!(span("1600").unwrap_err().contains("with its unit"));
        for wrong in ["'1600'", "''", "'-1us'", "'99999999999y'", "'31days'"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bandwidths_carry_their_unit() {
        let of =
            |text: &str| toml::from_str::<Line<Bandwidth>>(&format!("x = {text}")).map(|l| l.x.0);
        assert_eq!(of("'13MB/s'").unwrap(), 13_000_000);
        assert_eq!(of("'12.5 MB/s'").unwrap(), 12_500_000);
        for wrong in ["'13'", "13", "'0B/s'", "'-1MB/s'", "'nanMB/s'", "'13Mb/s'"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Bandwidth(13_000_000).time_ns(128), 9847);
    }
}
