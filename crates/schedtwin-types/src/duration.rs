// SPDX-License-Identifier: GPL-2.0-or-later
//! A span of simulated time with its unit: what programs and command lines ask for.

use crate::Ns;
use std::fmt;
use std::str::FromStr;

/// A span of simulated time.
///
/// ```
/// use schedtwin_types::Duration;
/// assert_eq!("1m 30s".parse(), Ok(Duration::from_s(90)));
/// assert_eq!(Duration::from_s(90).to_string(), "1m 30s");
/// assert_eq!(Duration::from_ms(1500).word(), "1500ms", "what a command line takes");
/// assert_eq!(Duration::from_us(3).ns(), 3_000);
/// assert!("10".parse::<Duration>().unwrap_err().contains("has a unit"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(Ns);

/// How a duration is written.
const WRITTEN: &str = "a duration is written 10s, 500ms or 1m 30s";

impl Duration {
    /// A day: longer runs are typing errors.
    pub const DAY: Duration = Duration::from_s(24 * 60 * 60);

    /// That many nanoseconds.
    pub const fn from_ns(ns: Ns) -> Duration {
        Duration(ns)
    }

    /// That many microseconds; more than fit are the most that fit.
    pub const fn from_us(us: u64) -> Duration {
        Duration(us.saturating_mul(1_000))
    }

    /// That many milliseconds; more than fit are the most that fit.
    pub const fn from_ms(ms: u64) -> Duration {
        Duration(ms.saturating_mul(1_000_000))
    }

    /// That many seconds; more than fit are the most that fit.
    pub const fn from_s(s: u64) -> Duration {
        Duration(s.saturating_mul(1_000_000_000))
    }

    /// In nanoseconds.
    pub const fn ns(self) -> Ns {
        self.0
    }

    /// In seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// As one word without spaces, in the largest unit that it is a whole number of.
    pub fn word(self) -> String {
        let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
        let whole = units.into_iter().find(|(_, ns)| self.0 != 0 && self.0.is_multiple_of(*ns));
        let (unit, ns) = whole.unwrap_or(("ns", 1));
        format!("{}{unit}", self.0 / ns)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration((*self).into()).fmt(f)
    }
}

impl From<Duration> for std::time::Duration {
    fn from(duration: Duration) -> std::time::Duration {
        std::time::Duration::from_nanos(duration.0)
    }
}

/// Reads `10s`, `500ms`, `1m 30s`: more than nothing, and at most a day.
impl FromStr for Duration {
    type Err = String;

    fn from_str(text: &str) -> Result<Duration, String> {
        let text = text.trim();
        if text.starts_with('-') {
            return Err("a duration is positive".to_string());
        }
        if text.parse::<f64>().is_ok() && text != "0" {
            return Err(format!("a duration has a unit: {text}s or {text}ms"));
        }
        if names_a_unit_twice(text) {
            return Err(format!("a unit is named twice; {WRITTEN}"));
        }
        let duration = humantime::parse_duration(text).map_err(|error| match error {
            humantime::DurationError::Empty => WRITTEN.to_string(),
            humantime::DurationError::NumberOverflow => {
                "too large, or finer than a nanosecond".to_string()
            }
            error => format!("{error}; {WRITTEN}"),
        })?;
        if duration.is_zero() {
            return Err("a run of no length measures nothing".to_string());
        }
        match u64::try_from(duration.as_nanos()).map(Duration) {
            Ok(duration) if duration <= Duration::DAY => Ok(duration),
            _ => Err(format!("at most {} can be simulated", Duration::DAY)),
        }
    }
}

/// Whether a unit stands in a duration more than once: `1s1s` is a slip, not two seconds.
fn names_a_unit_twice(text: &str) -> bool {
    let words = text.split(|c: char| c.is_ascii_digit() || c == '.' || c.is_whitespace());
    let mut units: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let count = units.len();
    units.sort_unstable();
    units.dedup();
    units.len() < count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_named_twice_is_a_slip() {
        for text in ["1s1s", "1s 1s", "1m 2s 3m"] {
            let error = text.parse::<Duration>().expect_err("refused");
            assert!(error.contains("a unit is named twice"), "{text}: {error}");
        }
    }

    #[test]
    fn durations_have_units_and_bounds() {
        for (text, expected) in [
            ("10s", Ok(10_000_000_000)),
            ("500ms", Ok(500_000_000)),
            (" 1m 30s ", Ok(90_000_000_000)),
            ("1.5s", Ok(1_500_000_000)),
            ("1ns", Ok(1)),
            ("1s 500ms", Ok(1_500_000_000)),
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
            match (text.parse::<Duration>(), expected) {
                (Ok(duration), Ok(expected)) => assert_eq!(duration.ns(), expected, "{text}"),
                (Err(message), Err(expected)) => {
                    assert!(message.contains(expected), "{text}: {message}")
                }
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for ns in [1, 999, 1_000, 1_500_000, 2_000_000_000, 90_000_000_000, 86_400_000_000_000] {
            let duration = Duration::from_ns(ns);
            assert_eq!(duration.word().parse(), Ok(duration));
            assert_eq!(duration.to_string().parse(), Ok(duration));
            assert!(!duration.word().contains(' '));
        }
    }
}
