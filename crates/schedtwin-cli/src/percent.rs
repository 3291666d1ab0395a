// SPDX-License-Identifier: GPL-2.0-or-later
//! Percentages on the command line.

/// How well differences shall be known: half of the 95 % interval, in percent of the baseline's mean.
#[derive(Clone, Debug, PartialEq)]
pub enum Precision {
    /// Of every main metric.
    OfAll(f64),
    /// Of these rows.
    Of {
        /// As `--metric` has them.
        rows: String,
        /// In percent.
        half_width_pct: f64,
    },
}

impl Precision {
    /// Reads `1%` or `wakeup_latency.p99:5%`.
    pub fn parse(text: &str) -> Result<Precision, String> {
        match text.rsplit_once(':') {
            None => parse_percent(text).map(Precision::OfAll),
            Some((rows, percent)) => {
                let half_width_pct = parse_percent(percent)?;
                Ok(Precision::Of { rows: rows.to_string(), half_width_pct })
            }
        }
    }
}

/// Reads a precision such as `1%` or `0.5%`, in percent.
pub fn parse_percent(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let number = text.strip_suffix('%').unwrap_or(text).trim();
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
    fn precisions_are_percentages() {
        for (text, expected) in [
            ("1%", Some(1.0)),
            (" 1% ", Some(1.0)),
            ("0.5", Some(0.5)),
            ("0%", None),
            ("-1%", None),
            ("nan%", None),
            ("101%", None),
            ("x", None),
        ] {
            assert_eq!(parse_percent(text).ok(), expected, "{text}");
            assert_eq!(Precision::parse(text).ok(), expected.map(Precision::OfAll), "{text}");
        }
    }

    #[test]
    fn a_precision_may_name_its_metric() {
        let of = |rows: &str| Precision::Of { rows: rows.into(), half_width_pct: 5.0 };
        assert_eq!(Precision::parse("power:5%"), Ok(of("power")));
        assert_eq!(
            Precision::parse("wakeup_latency.p99,task=a:b: 5"),
            Ok(of("wakeup_latency.p99,task=a:b"))
        );
        assert!(Precision::parse("power:x").is_err());
    }
}
