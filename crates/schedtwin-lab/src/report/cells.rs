// SPDX-License-Identifier: GPL-2.0-or-later
//! How numbers and differences look in tables, and which rows a table has.

use comfy_table::{CellAlignment, Table, presets};
use schedtwin_engine::result::{Metric, RunResult};
use schedtwin_input::{Diagnostics, wrapped};
use schedtwin_types::metric::{Section, declared};

use super::Extent;
use super::change::Change;
use crate::Provenance;
use crate::compare::{ComparedRow, Comparison};
use crate::many_parts;
use crate::measured::title;
use crate::select::{self, Counts, Key};
use crate::selector::{Selector, choose};

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

/// A change, with its sign.
pub fn signed(x: f64) -> String {
    if x > 0.0 { format!("+{}", number(x)) } else { number(x) }
}

/// A share below this is 0 to a reader, %.
const LEAST_SHARE: f64 = 0.0005;

/// A value in its unit: counts without decimals where they have none, a dash for what is undefined.
pub fn value(x: Option<f64>, unit: &str) -> String {
    match x {
        None => "-".to_string(),
        Some(x) if unit == "count" && x.fract() == 0.0 && x.abs() < 1e7 => format!("{x:.0}"),
        Some(x) if unit == "%" && x.abs() < LEAST_SHARE => "0".to_string(),
        Some(x) => number(x),
    }
}

/// The rows that a table shows.
pub struct Shown<'a, T> {
    /// Its rows with their titles, by section.
    pub rows: Vec<(String, &'a T)>,
    /// Rows of the longer table that are not shown, with their titles.
    pub more: Vec<(String, &'a T)>,
    /// Rows of each extent.
    counts: [usize; 4],
}

impl<'a, T> Shown<'a, T> {
    /// Rows that were chosen one by one.
    pub fn chosen(rows: Vec<(String, &'a T)>) -> Shown<'a, T> {
        Shown { counts: [rows.len(); 4], rows, more: Vec::new() }
    }

    /// How to see what the table leaves out.
    pub fn further(&self, extent: Extent) -> Option<String> {
        let [headlines, more, per_cpu, all] = self.counts;
        let mut ways = Vec::new();
        if extent == Extent::Headlines && more > headlines {
            ways.push(format!("--more ({more})"));
        }
        if extent == Extent::More && per_cpu > more {
            ways.push(format!("--per-cpu ({per_cpu})"));
        }
        let not_all = [Extent::Headlines, Extent::More, Extent::PerCpu].contains(&extent);
        if not_all && all > self.rows.len() {
            ways.push(format!("--all ({all})"));
        }
        if ways.is_empty() {
            return None;
        }
        Some(format!("more rows: {}; single ones: --metric NAME", ways.join(", ")))
    }
}

pub fn key_of(row: &ComparedRow) -> Key<'_> {
    row.row.key()
}

/// The rows that a selector means by themselves: of its total, where it names no stat.
pub fn totals_of<'a>(
    selector: &Selector,
    rows: &'a [ComparedRow],
) -> Result<Vec<&'a ComparedRow>, Diagnostics> {
    let keys: Vec<Key> = rows.iter().map(key_of).collect();
    Ok(selector.pick_totals(&keys)?.into_iter().map(|at| &rows[at]).collect())
}

fn key_of_metric(metric: &Metric) -> Key<'_> {
    (metric.name, metric.stat, &metric.labels, metric.kind)
}

/// The rows of a comparison's table.
pub fn shown_rows(comparison: &Comparison, extent: Extent) -> Shown<'_, ComparedRow> {
    let is_undefined = |row: &ComparedRow| row.row.is_undefined();
    shown(&comparison.rows, key_of, is_undefined, |row| row.row.is_zero(), extent)
}

/// The metrics of a run's table.
pub fn shown_metrics(result: &RunResult, extent: Extent) -> Shown<'_, Metric> {
    let is_zero = |metric: &Metric| metric.value.is_none_or(|value| value == 0.0);
    shown(&result.metrics, key_of_metric, |metric| metric.value.is_none(), is_zero, extent)
}

/// Keeps the rows that the selectors mean; verdicts go on reading the others.
pub fn choose_rows(comparison: &mut Comparison, selectors: &[Selector]) -> Result<(), Diagnostics> {
    let all = comparison.rows.clone();
    choose(selectors, &mut comparison.rows, key_of)?;
    comparison.all_rows = Some(all);
    Ok(())
}

/// Keeps the metrics that the selectors mean.
pub fn choose_metrics(result: &mut RunResult, selectors: &[Selector]) -> Result<(), Diagnostics> {
    choose(selectors, &mut result.metrics, key_of_metric)
}

fn shown<T>(
    items: &[T],
    key_of: fn(&T) -> Key<'_>,
    is_undefined: impl Fn(&T) -> bool,
    is_zero: impl Fn(&T) -> bool,
    extent: Extent,
) -> Shown<'_, T> {
    let defined: Vec<&T> = items.iter().filter(|item| !is_undefined(item)).collect();
    let all = || defined.iter().map(|item| key_of(item));
    let (of_items, of_defined) = (Counts::of(items.iter().map(key_of)), Counts::of(all()));
    let tells = |item: &&&T| !is_zero(item) && !select::repeats_the_whole(key_of(item), &of_items);
    let one_of_many = many_parts::one_of_many(all());
    let hidden = |item: &&&T| extent != Extent::PerCpu && one_of_many(key_of(item));
    let listed = defined.iter().filter(|item| select::is_listed(key_of(item)));
    let (parts, listed): (Vec<&T>, Vec<&T>) =
        listed.filter(tells).copied().partition(|item| hidden(&item));
    let is_headline = |item: &&T| select::is_headline(key_of(item), &of_defined);
    let (headlines, more): (Vec<&T>, Vec<&T>) = listed.iter().copied().partition(is_headline);
    let counts = [headlines.len(), listed.len(), listed.len() + parts.len(), defined.len()];
    let rows = match extent {
        Extent::Headlines => headlines,
        Extent::More | Extent::PerCpu => listed,
        Extent::All => defined.clone(),
        Extent::Chosen => items.iter().collect(),
    };
    Shown { rows: titled(rows, key_of), more: titled(more, key_of), counts }
}

/// Rows with their titles, by section.
fn titled<T>(mut rows: Vec<&T>, key_of: fn(&T) -> Key<'_>) -> Vec<(String, &T)> {
    rows.sort_by_key(|item| section(key_of(item).0));
    let title_of = |item: &T| {
        let (name, stat, ..) = key_of(item);
        // The stat says nothing where the metric has only one.
        let several = declared(name).is_none_or(|metric| metric.stats.len() > 1);
        let full = title(key_of(item));
        if several { full } else { full.replacen(&format!(" {stat}"), "", 1) }
    };
    rows.into_iter().map(|item| (title_of(item), item)).collect()
}

/// The section of a metric.
pub fn section(name: &str) -> Section {
    declared(name).expect("values are made from declarations").section
}

/// Differences that the default table names below it, at most.
const ALSO_CHANGED: usize = 5;

/// Of the longer table's rows those that changed beyond what so many rows do by chance: the clearest, in one line.
/// Bonferroni's correction: p times the number of differences that were looked at is below 0.05.
pub fn also_changed(comparison: &Comparison, more: &[(String, &ComparedRow)]) -> Option<String> {
    let kernels = 1..comparison.kernels.len();
    let looked_at = more.len() * kernels.len();
    let mut changed: Vec<(f64, usize, String)> = Vec::new();
    for (at, (title, row)) in more.iter().enumerate() {
        for kernel in kernels.clone() {
            let Some(difference) = row.told(kernel) else { continue };
            let Some(p) = difference.p.filter(|p| p * (looked_at as f64) < 0.05) else { continue };
            let change = Change::of(&difference, row.row.unit);
            if change.verdict(row.row.better).is_empty() || row.doubtful || row.not_judged {
                continue;
            }
            let of = if kernels.len() > 1 { format!("{} ", letter(kernel)) } else { String::new() };
            changed.push((p, at, format!("{of}{title} {}", change.whole())));
        }
    }
    if changed.is_empty() {
        return None;
    }
    let count = changed.len();
    changed.sort_by(|a, b| a.0.total_cmp(&b.0));
    changed.truncate(ALSO_CHANGED);
    changed.sort_by_key(|(_, at, _)| *at);
    let named: Vec<String> = changed.into_iter().map(|(.., text)| text).collect();
    let rest = match count - named.len() {
        0 => String::new(),
        rest => format!(", and {rest} more"),
    };
    Some(format!(
        "also changed: {}{rest} (of {looked_at} differences in --more, corrected for their number)",
        named.join(", ")
    ))
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

/// `10 s`, or nothing where the workload decides.
pub fn duration_text(provenance: &Provenance) -> Option<String> {
    provenance.duration_ns.map(time)
}

/// A length of time as people write it: `10 s`, `1.068 s`, `16.67 ms`, `2 min 5 s`.
pub fn time(ns: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us"), (1, "ns")];
    if ns >= 60 * UNITS[0].0 {
        let seconds = (ns + UNITS[0].0 / 2) / UNITS[0].0;
        let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        return parts.map(|(n, unit)| format!("{n} {unit}")).collect::<Vec<_>>().join(" ");
    }
    let (unit, word) = UNITS.into_iter().find(|(unit, _)| ns >= *unit).unwrap_or(UNITS[3]);
    let number = number(ns as f64 / unit as f64);
    let short = if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        &number
    };
    format!("{short} {word}")
}

/// `10 s simulated`, of a comparison.
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
    schedtwin_types::printable::line(text).into_owned()
}

/// Width of text where nothing else is said: as wide as mails are.
pub const WIDTH: usize = 100;

/// Breaks a line at spaces so that it has at most `width` columns where words allow.
pub fn wrap(line: &str, width: usize, indent: &str) -> String {
    let mut text = wrapped(&printable(line), width, indent);
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
    fn times_are_as_people_write_them() {
        for (ns, expected) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_067_696_631, "1.068 s"),
            (10_000_000_000, "10 s"),
            (500_000_000, "500 ms"),
            (16_666_667, "16.67 ms"),
            (59_999_999_999, "60 s"),
            (125_400_000_000, "2 min 5 s"),
            (3_600_000_000_000, "1 h"),
        ] {
            assert_eq!(time(ns), expected);
        }
    }

    #[test]
    fn letters_do_not_run_out() {
        let letters: Vec<String> = [0, 25, 26, 52].map(letter).to_vec();
        assert_eq!(letters, ["A", "Z", "A2", "A3"]);
    }
}
