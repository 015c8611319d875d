// SPDX-License-Identifier: Apache-2.0
//! One parameter, between what a person writes and the number in
//! `cos_params.arg`: `"1600us"` is 1600000, the factor 2.0 is 512.

use crate::duration;
use crate::table::{Arg, Unit};
use toml::Value;

/// What is wrong with a value, and what to write instead.
pub(crate) type Wrong = (String, String);

/// The number that @value means for @arg.
pub(crate) fn read(arg: &Arg, value: &Value) -> Result<u64, Wrong> {
    let number = match (arg.unit, value) {
        (Unit::Duration, Value::String(text)) => duration_ns(text)?,
        (Unit::Duration, Value::Integer(n)) => return Err(no_unit(&n.to_string())),
        (Unit::Factor, Value::Float(factor)) => factor_q8(*factor)?,
        (Unit::Factor, Value::Integer(factor)) => factor_q8(*factor as f64)?,
        (Unit::Count, Value::Integer(n)) => u64::try_from(*n).map_err(|_| below_zero(n))?,
        (Unit::Exponent, Value::Integer(e)) => return exponent(*e, arg.max),
        (Unit::Share, Value::Float(share)) => share_ppm(*share)?,
        (Unit::Share, Value::Integer(share)) => share_ppm(*share as f64)?,
        (Unit::Switch, Value::Boolean(on)) => u64::from(*on),
        (unit, other) => return Err(wrong_type(unit, other)),
    };
    if number > arg.max {
        let most = show(arg.unit, arg.max);
        let wrong = format!("{value} is out of range");
        return Err((wrong, format!("write at most {most}")));
    }
    Ok(number)
}

/// As TOML, so that [`read`] gives the number back.
pub(crate) fn show(unit: Unit, number: u64) -> Value {
    match unit {
        Unit::Duration => Value::String(duration::show(number)),
        Unit::Factor => Value::Float(number as f64 / 256.0),
        Unit::Count => Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)),
        Unit::Exponent => Value::Integer(number as i64),
        Unit::Share => Value::Float(number as f64 / 1e6),
        Unit::Switch => Value::Boolean(number != 0),
    }
}

fn duration_ns(text: &str) -> Result<u64, Wrong> {
    if !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit()) {
        return Err(no_unit(text));
    }
    duration::parse(text).ok_or_else(|| {
        let wrong = format!("{text:?} is no duration");
        (wrong, format!("write {}", like(Unit::Duration)))
    })
}

fn factor_q8(factor: f64) -> Result<u64, Wrong> {
    if !factor.is_finite() || factor < 0.0 {
        let wrong = format!("{factor} is no factor");
        return Err((wrong, "write a number like 2.0".to_owned()));
    }
    Ok((factor * 256.0).round() as u64)
}

fn share_ppm(share: f64) -> Result<u64, Wrong> {
    if !(0.0..=1.0).contains(&share) {
        let wrong = format!("{share} is no share");
        return Err((wrong, "write a number from 0 to 1, like 0.99".to_owned()));
    }
    Ok((share * 1e6).round() as u64)
}

/// Two's complement, so that policy reads a signed number back.
fn exponent(e: i64, max: u64) -> Result<u64, Wrong> {
    if e.unsigned_abs() > max {
        let wrong = format!("{e} is out of range");
        return Err((wrong, format!("write a number from -{max} to {max}")));
    }
    Ok(e as u64)
}

fn no_unit(number: &str) -> Wrong {
    let wrong = format!("{number} has no unit");
    (
        wrong,
        format!("write \"{number}us\" if microseconds are meant"),
    )
}

/// For a parameter without a default that is not given.
pub(crate) fn missing(arg: &Arg, answer: &str) -> Wrong {
    let wrong = format!("missing, and {answer} has no default for it");
    (wrong, format!("write {} = {}", arg.key, like(arg.unit)))
}

fn kind(unit: Unit) -> &'static str {
    match unit {
        Unit::Duration => "a duration",
        Unit::Factor => "a factor",
        Unit::Count => "a count",
        Unit::Exponent => "an exponent",
        Unit::Share => "a share",
        Unit::Switch => "a switch",
    }
}

fn like(unit: Unit) -> &'static str {
    match unit {
        Unit::Duration => "something like \"20us\"",
        Unit::Factor => "something like 2.0",
        Unit::Count => "something like 4",
        Unit::Exponent => "something like -1",
        Unit::Share => "something like 0.99",
        Unit::Switch => "true or false",
    }
}

fn below_zero(n: &i64) -> Wrong {
    (format!("{n} is out of range"), "write 0 or more".to_owned())
}

fn wrong_type(unit: Unit, value: &Value) -> Wrong {
    let fix = format!("write {}", like(unit));
    (
        format!("{} where {} belongs", value.type_str(), kind(unit)),
        fix,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arg(unit: Unit, max: u64) -> Arg {
        let (key, at, default) = ("x", 0, None);
        #[rustfmt::skip]
        let arg = Arg { key, at, unit, default, max };
        arg
    }

    fn read_as(unit: Unit, text: &str) -> Result<u64, String> {
        let value: Value =
            toml::from_str::<toml::Table>(&format!("x = {text}")).unwrap()["x"].clone();
        read(&arg(unit, 1 << 40), &value).map_err(|(wrong, fix)| format!("{wrong}: {fix}"))
    }

    #[test]
    fn durations_carry_units() {
        assert_eq!(read_as(Unit::Duration, "'1600us'"), Ok(1_600_000));
        assert_eq!(read_as(Unit::Duration, "'1ms 600us'"), Ok(1_600_000));
        assert_eq!(read_as(Unit::Duration, "'0us'"), Ok(0));
        for bare in ["1600", "'1600'"] {
            let said = read_as(Unit::Duration, bare).unwrap_err();
            assert!(said.contains("write \"1600us\""), "{said}");
        }
        for wrong in ["''", "'us'", "'-1us'", "2.0", "true", "'9999999999y'"] {
            assert!(read_as(Unit::Duration, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn factors_are_in_256ths() {
        assert_eq!(read_as(Unit::Factor, "2.0"), Ok(512));
        assert_eq!(read_as(Unit::Factor, "3"), Ok(768));
        for wrong in ["-1", "nan", "inf", "1e300", "'2'"] {
            assert!(read_as(Unit::Factor, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn counts_are_whole() {
        assert_eq!(read_as(Unit::Count, "4"), Ok(4));
        for wrong in ["-1", "4.0", "'4'"] {
            assert!(read_as(Unit::Count, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn exponents_are_signed_and_bounded_on_both_sides() {
        let read = |text: &str| {
            let value = toml::from_str::<toml::Table>(&format!("x = {text}")).unwrap()["x"].clone();
            read(&arg(Unit::Exponent, 64), &value)
        };
        assert_eq!(read("-64"), Ok(64u64.wrapping_neg()));
        assert_eq!(read("0"), Ok(0));
        for wrong in ["65", "-65", "-9223372036854775808", "1.0", "'1'"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(show(Unit::Exponent, u64::MAX), Value::Integer(-1));
    }

    #[test]
    fn shares_lie_between_0_and_1() {
        assert_eq!(read_as(Unit::Share, "0.99"), Ok(990_000));
        assert_eq!(read_as(Unit::Share, "1"), Ok(1_000_000));
        for wrong in ["-0.1", "1.1", "nan", "inf", "'1'"] {
            assert!(read_as(Unit::Share, wrong).is_err(), "{wrong}");
        }
        for ppm in [0, 1, 333_333, 990_000, 999_999, 1_000_000] {
            let shown = show(Unit::Share, ppm);
            assert_eq!(read(&arg(Unit::Share, 1_000_000), &shown), Ok(ppm));
        }
    }

    #[test]
    fn switches_are_on_or_off() {
        assert_eq!(read_as(Unit::Switch, "true"), Ok(1));
        assert_eq!(read_as(Unit::Switch, "false"), Ok(0));
        assert!(read_as(Unit::Switch, "1").is_err());
    }

    #[test]
    fn above_the_largest_is_refused_with_the_largest() {
        let value = Value::String("2s".to_owned());
        let (_, fix) = read(&arg(Unit::Duration, 1_000_000_000), &value).unwrap_err();
        assert_eq!(fix, "write at most \"1s\"");
    }

    #[test]
    fn what_is_shown_reads_back() {
        for unit in [Unit::Duration, Unit::Factor, Unit::Count] {
            for number in [0, 1, 255, 256, 1_000, 1_600_000, 20_000_000, 7_000_000_001] {
                assert_eq!(read(&arg(unit, u64::MAX), &show(unit, number)), Ok(number));
            }
        }
        assert_eq!(
            show(Unit::Duration, 1_600_000),
            Value::String("1600us".into())
        );
    }
}
