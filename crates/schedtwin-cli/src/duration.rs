// SPDX-License-Identifier: GPL-2.0-or-later
//! Durations, percentages and limits on the command line.

use std::time::Duration;

use schedtwin_types::Ns;

/// Longest run: a day simulates in minutes, and longer ones are typing errors.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads a simulated duration such as `10s`, `500ms`, `1m 30s`.
pub fn parse(text: &str) -> Result<Ns, String> {
    let text = text.trim();
    if text.starts_with('-') {
        return Err("a duration is positive".to_string());
    }
    if text.parse::<f64>().is_ok() && text != "0" {
        return Err(format!("a duration has a unit: {text}s or {text}ms"));
    }
    let duration = humantime::parse_duration(text).map_err(|error| match error {
        humantime::DurationError::Empty => "a duration is written 10s, 500ms or 1m 30s".to_string(),
        humantime::DurationError::NumberOverflow => {
            "too large, or finer than a nanosecond".to_string()
        }
        error => format!("{error}; a duration is written 10s, 500ms or 1m 30s"),
    })?;
    if duration.is_zero() {
        return Err("a run of no length measures nothing".to_string());
    }
    if duration > LONGEST {
        return Err(format!("at most {} can be simulated", humantime::format_duration(LONGEST)));
    }
    Ok(u64::try_from(duration.as_nanos()).expect("a day has less than 2^64 ns"))
}

/// Reads a precision such as `1%` or `0.5%`, in percent.
pub fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').unwrap_or(text).trim();
    let percent: f64 =
        number.parse().map_err(|_| "a precision is written 1% or 0.5%".to_string())?;
    // The least positive number would ask for the most iterations, which are bounded anyway.
    if percent > 0.0 && percent <= 100.0 {
        Ok(percent)
    } else {
        Err("a precision lies between 0% and 100%".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_and_bounds() {
        for (text, expected) in [
            ("10s", Ok(10_000_000_000)),
            ("500ms", Ok(500_000_000)),
            (" 1m 30s ", Ok(90_000_000_000)),
            ("1.5s", Ok(1_500_000_000)),
            ("1ns", Ok(1)),
            ("24h", Ok(86_400_000_000_000)),
            ("24h 1ns", Err("at most 1day")),
            ("99999999999999years", Err("too large")),
            ("0", Err("measures nothing")),
            ("0s", Err("measures nothing")),
            ("-5s", Err("is positive")),
            ("10", Err("has a unit: 10s")),
            ("1e3", Err("has a unit")),
            ("nan", Err("has a unit")),
            ("", Err("is written 10s")),
            ("ten seconds", Err("is written 10s")),
            ("5 parsecs", Err("unknown time unit")),
        ] {
            match (parse(text), expected) {
                (Ok(ns), Ok(expected)) => assert_eq!(ns, expected, "{text}"),
                (Err(message), Err(expected)) => {
                    assert!(message.contains(expected), "{text}: {message}")
                }
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn precisions_are_percentages() {
        for (text, expected) in [
            ("1%", Some(1.0)),
            ("0.5", Some(0.5)),
            ("0%", None),
            ("-1%", None),
            ("nan%", None),
            ("101%", None),
            ("x", None),
        ] {
            assert_eq!(parse_percent(text).ok(), expected, "{text}");
        }
    }
}
