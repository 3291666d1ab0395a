// SPDX-License-Identifier: GPL-2.0-or-later
//! Percentages on the command line.

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
