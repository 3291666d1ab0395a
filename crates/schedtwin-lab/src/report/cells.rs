//! How numbers and differences look in tables, and which rows a table has.

use std::collections::BTreeSet;

use comfy_table::{CellAlignment, Table, presets};
use schedtwin::result::{Better, Metric, RunResult};

use super::Extent;
use crate::Provenance;
use crate::compare::{ComparedRow, Comparison};
use crate::measured::{Labels, title};
use crate::select;
use crate::stats::Difference;

/// Four significant digits; the whole part of numbers below ten millions in full.
pub fn number(x: f64) -> String {
    if x == 0.0 {
        return "0".to_string();
    }
    let scientific = format!("{x:.3e}");
    let exponent: i32 = scientific
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .expect("a finite number prints with an exponent");
    match exponent {
        7.. | ..=-5 => scientific,
        _ => format!("{x:.*}", (3 - exponent).max(0) as usize),
    }
}

/// A value in its unit: counts without decimals where they have none, a dash for what is undefined.
pub fn value(x: Option<f64>, unit: &str) -> String {
    match x {
        None => "-".to_string(),
        Some(x) if unit == "count" && x.fract() == 0.0 && x.abs() < 1e7 => format!("{x:.0}"),
        Some(x) => number(x),
    }
}

/// A difference as two cells: the signed change and the half-width of its interval. In percent of
/// the baseline, or in the metric's unit (no `%`) where the baseline is zero.
pub fn difference_cells(difference: Option<&Difference>) -> (String, String) {
    let Some(difference) = difference else {
        return ("-".into(), String::new());
    };
    match difference.diff_pct {
        Some(percent) => {
            let half = difference.half_width_pct();
            let decimals = match percent.abs().max(half.unwrap_or(0.0)) {
                ..10.0 => 2,
                10.0..100.0 => 1,
                _ => 0,
            };
            let change = match percent {
                0.0 if half == Some(0.0) => return ("0%".into(), String::new()),
                0.0 => "0%".to_string(),
                _ => without_sign_of_zero(format!("{percent:+.decimals$}%")),
            };
            (change, half.map_or(String::new(), |half| format!("{half:.decimals$}")))
        }
        None if difference.diff == 0.0 => ("0".into(), String::new()),
        None => {
            let sign = if difference.diff > 0.0 { "+" } else { "" };
            let half = difference.ci95.map(|[low, high]| (high - low) / 2.0);
            let half = half.filter(|half| *half > 0.0);
            (format!("{sign}{}", number(difference.diff)), half.map_or(String::new(), number))
        }
    }
}

/// What rounds to zero has no sign.
fn without_sign_of_zero(text: String) -> String {
    match text.strip_prefix(['+', '-']) {
        Some(digits) if !digits.contains(|c: char| matches!(c, '1'..='9')) => digits.to_string(),
        _ => text,
    }
}

/// `*` and, where the metric has a direction, which way it went; empty when not significant, or so
/// small that the table shows 0.00%: nobody acts on that, and JSON has it.
pub fn verdict(difference: Option<&Difference>, better: Better) -> &'static str {
    let Some(difference) = difference.filter(|d| d.significant) else {
        return "";
    };
    if difference.diff_pct.is_some_and(|percent| percent.abs() < 0.005) {
        return "";
    }
    match (better, difference.diff > 0.0) {
        (Better::Neutral, _) => "*",
        (Better::Higher, true) | (Better::Lower, false) => "* better",
        (Better::Higher, false) | (Better::Lower, true) => "* worse",
    }
}

/// What names a metric: name, stat, labels.
type Key<'a> = (&'a str, &'a str, &'a Labels);

/// The rows that a comparison's table shows, by group and with their titles, and how many rows it leaves out.
pub fn shown_rows(comparison: &Comparison, extent: Extent) -> (Vec<(String, &ComparedRow)>, usize) {
    fn key_of(row: &ComparedRow) -> Key<'_> {
        (row.row.name, row.row.stat, &row.row.labels)
    }
    shown(&comparison.rows, key_of, |row| row.row.is_undefined(), |row| row.row.is_zero(), extent)
}

/// The metrics that a run's table shows, likewise.
pub fn shown_metrics(result: &RunResult, extent: Extent) -> (Vec<(String, &Metric)>, usize) {
    fn key_of(metric: &Metric) -> Key<'_> {
        (metric.name, metric.stat, &metric.labels)
    }
    let is_zero = |metric: &Metric| metric.value.is_none_or(|value| value == 0.0);
    shown(&result.metrics, key_of, |metric| metric.value.is_none(), is_zero, extent)
}

fn shown<T>(
    all: &[T],
    key_of: fn(&T) -> Key<'_>,
    is_undefined: impl Fn(&T) -> bool,
    is_zero: impl Fn(&T) -> bool,
    extent: Extent,
) -> (Vec<(String, &T)>, usize) {
    let is_important = |item: &T| {
        let (name, stat, labels) = key_of(item);
        select::is_shown(name, stat, labels)
            && !is_zero(item)
            && !select::repeats_the_whole(name, stat, labels, all.iter().map(key_of))
    };
    let mut items: Vec<&T> = all
        .iter()
        .filter(|item| match extent {
            Extent::All => !is_undefined(item),
            Extent::Important => is_important(item),
        })
        .collect();
    items.sort_by_key(|item| select::group(key_of(item).0));
    let stats: BTreeSet<(&str, &str)> =
        all.iter().map(key_of).map(|(name, stat, _)| (name, stat)).collect();
    let left_out = all.len() - items.len();
    let titled = items.into_iter().map(|item| {
        let (name, stat, labels) = key_of(item);
        // The stat says nothing where the metric has only one.
        let several = stats.iter().filter(|(other, _)| *other == name).count() > 1;
        let full = title(name, stat, labels);
        let title = if several { full } else { full.replacen(&format!(" {stat}"), "", 1) };
        (title, item)
    });
    (titled.collect(), left_out)
}

/// `A`, `B`, ..., `Z`, `A2`, `B2`, ...: the letter of a column.
pub fn letter(kernel: usize) -> String {
    let letter = char::from(b'A' + (kernel % 26) as u8);
    if kernel < 26 { letter.to_string() } else { format!("{letter}{}", kernel / 26 + 1) }
}

/// A table without lines whose columns are two spaces apart: the first `left` columns and those in
/// `also_left` flush left, the others right. No trailing spaces.
pub fn plain_table(rows: Vec<Vec<String>>, left: usize, also_left: &[usize]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    for row in rows {
        let mut row: Vec<String> = row.iter().map(|cell| printable(cell)).collect();
        row.resize(columns, String::new());
        table.add_row(row);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index + 1 == columns { 0 } else { 2 }));
        if index >= left && !also_left.contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// `1 further metric`, `2 further metrics`: what a table leaves out.
pub fn further(count: usize, what: &str) -> String {
    format!("{count} further {what}{}", if count == 1 { "" } else { "s" })
}

/// Which seeds: `seed 1`, `seeds 1-10`.
pub fn seeds_text(seeds: &[u64]) -> String {
    match seeds {
        [] => "no seed".to_string(),
        [one] => format!("seed {one}"),
        [first, .., last] => format!("seeds {first}-{last}"),
    }
}

/// `, 10s each`, or nothing where the workload decides.
pub fn duration_text(provenance: &Provenance) -> Option<String> {
    let duration = std::time::Duration::from_nanos(provenance.duration_ns?);
    Some(humantime::format_duration(duration).to_string())
}

/// `10s simulated`, of a comparison.
pub fn simulated_text(comparison: &Comparison) -> Option<String> {
    duration_text(&comparison.provenance).map(|duration| format!("{duration} simulated"))
}

/// The lines that end every text report: version, trust, hashes.
pub fn provenance_lines(provenance: &Provenance) -> Vec<String> {
    let mut lines =
        vec![format!("schedtwin {}, model {}", provenance.version, provenance.model_version)];
    if !provenance.trust.is_empty() {
        lines.push(format!("how far to trust this: {}", provenance.trust));
    }
    if !provenance.hashes.is_empty() {
        let hashes: Vec<String> =
            provenance.hashes.iter().map(|(name, hash)| format!("{name} {hash}")).collect();
        lines.push(format!("inputs: {}", hashes.join(", ")));
    }
    lines
}

/// Names come from users' files: a line feed or an escape sequence in one must not act on the table.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Breaks a line at spaces so that it has at most `width` columns where words allow.
pub fn wrap(line: &str, width: usize, indent: &str) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in printable(line).split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            text.push('\n');
            text.push_str(indent);
            column = indent.len();
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        for (x, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (18.0, "18.00"),
            (18.004, "18.00"),
            (0.48691, "0.4869"),
            (6651.6, "6652"),
            (9999.96, "10000"),
            (9.9999, "10.00"),
            (12.0, "12.00"),
            (1234567.0, "1234567"),
            (12345678.9, "1.235e7"),
            (0.00001234, "1.234e-5"),
            (-129.53, "-129.5"),
        ] {
            assert_eq!(number(x), expected);
        }
    }

    #[test]
    fn differences_show_percent_or_the_unit() {
        let difference = |diff: f64, base: f64, half: f64| Difference {
            n: 2,
            diff,
            diff_pct: (base != 0.0).then(|| 100.0 * diff / base),
            ci95: Some([diff - half, diff + half]),
            ci95_pct: (base != 0.0)
                .then(|| [100.0 * (diff - half) / base, 100.0 * (diff + half) / base]),
            p: Some(0.01),
            significant: true,
        };
        for (difference, expected) in [
            (difference(-5.3, 18.0, 0.2), ("-29.4%", "1.1")),
            (difference(0.5, 100.0, 0.25), ("+0.50%", "0.25")),
            (difference(300.0, 100.0, 4.0), ("+300%", "4")),
            (difference(0.0, 100.0, 4.0), ("0%", "4.00")),
            (difference(-0.001, 100.0, 0.0001), ("0.00%", "0.00")),
            (difference(0.0, 100.0, 0.0), ("0%", "")),
            (difference(3.0, 0.0, 1.5), ("+3.000", "1.500")),
        ] {
            let (change, half) = difference_cells(Some(&difference));
            assert_eq!((change.as_str(), half.as_str()), expected);
        }
        assert_eq!(difference_cells(None).0, "-");
        assert_eq!(verdict(Some(&difference(1.0, 5.0, 0.1)), Better::Lower), "* worse");
        assert_eq!(verdict(Some(&difference(1.0, 5.0, 0.1)), Better::Higher), "* better");
        assert_eq!(verdict(Some(&difference(1.0, 5.0, 0.1)), Better::Neutral), "*");
        assert_eq!(verdict(Some(&difference(0.004, 100.0, 0.0)), Better::Lower), "");
    }

    #[test]
    fn letters_do_not_run_out() {
        let letters: Vec<String> = [0, 25, 26, 52].map(letter).to_vec();
        assert_eq!(letters, ["A", "Z", "A2", "A3"]);
    }
}
