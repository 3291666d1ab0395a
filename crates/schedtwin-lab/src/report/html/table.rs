// SPDX-License-Identifier: GPL-2.0-or-later
//! The table of a comparison: each row with its bar on a scale of its own kind, and the runs behind each interval. `script.js`
//! sorts and filters it.

use maud::{Markup, html};

use super::figures::{self, Interval};
use super::{breakable, swatch};
use crate::compare::{ComparedRow, Comparison};
use crate::report::Extent;
use crate::report::cells::{letter, shown_rows, signed, value};
use crate::report::change::{Change, Told, difference_cells, verdict};
use crate::report::summary::is_main;

/// Rows of the first screen.
const FIRST: usize = 6;

/// How far the scale of each kind of change reaches to each side.
pub struct Scales {
    percent: f64,
    points: f64,
    kelvin: f64,
}

impl Scales {
    /// Scales that hold nine of ten intervals of their kind.
    pub fn of(comparison: &Comparison) -> Scales {
        let rows = shown_rows(comparison, Extent::More).rows;
        let reach = |kind: Told| {
            let changes = rows
                .iter()
                .flat_map(|(_, row)| (0..row.cells.len()).filter_map(|at| change(row, at)));
            figures::reach(
                changes.filter(|change| change.unit == kind).filter_map(|change| change.ends),
            )
        };
        Scales {
            percent: reach(Told::Percent),
            points: reach(Told::Points),
            kelvin: reach(Told::Kelvin),
        }
    }

    fn reach(&self, of: Told) -> f64 {
        match of {
            Told::Points => self.points,
            Told::Kelvin => self.kelvin,
            Told::Percent | Told::Own(_) => self.percent,
        }
    }

    /// Returns the scales in words.
    pub fn words(&self) -> String {
        let Scales { percent, points, kelvin } = self;
        format!("{percent} %, {points} points (pt) and {kelvin} K")
    }
}

/// The change of a cell, where there is one.
fn change(row: &ComparedRow, kernel: usize) -> Option<Change<'_>> {
    Some(Change::of(&row.told(kernel)?, row.row.unit))
}

/// The rows of the first screen: of the headlines the main ones that changed and not just a little, then others that changed most
/// surely, as the sentences above choose theirs, then the first ones.
pub fn first_rows(comparison: &Comparison) -> Vec<(String, &ComparedRow)> {
    let rows = shown_rows(comparison, Extent::Headlines).rows;
    // Small changes come behind others, however sure they are.
    type Rank = (bool, bool, f64);
    let by_rank_and_p = |a: &Rank, b: &Rank| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2));
    let rank = |row: &ComparedRow| {
        let known = (1..row.cells.len()).filter(|kernel| verdict(row, *kernel).starts_with('*'));
        let of = known.filter_map(|kernel| {
            let is_small = change(row, kernel).is_some_and(|change| change.is_small());
            Some((is_small, !is_main(row), row.cells[kernel].difference?.p?))
        });
        of.min_by(by_rank_and_p).unwrap_or((true, true, f64::INFINITY))
    };
    let mut by_rank: Vec<usize> = (0..rows.len()).collect();
    by_rank.sort_by(|a, b| by_rank_and_p(&rank(rows[*a].1), &rank(rows[*b].1)));
    by_rank.truncate(FIRST);
    by_rank.sort();
    by_rank.into_iter().map(|at| rows[at].clone()).collect()
}

/// A table of some rows.
pub fn table(
    comparison: &Comparison,
    rows: &[(String, &ComparedRow)],
    scales: &Scales,
    name: &str,
) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label=(name) { table.sorted {
            thead { tr {
                th.l scope="col" { "metric" } th.l scope="col" { "unit" }
                @for (at, _) in comparison.kernels.iter().enumerate() {
                    th scope="col" { (swatch(at)) (letter(at)) }
                    @if at > 0 { th scope="col" { "change" } th.bar scope="col" data-sort="no" { span.unseen { "interval" } } }
                }
            } }
            tbody { @for (title, row) in rows {
                tr data-changed=((1..row.cells.len()).any(|at| !verdict(row, at).is_empty())) {
                    th.l scope="row" { (breakable(title)) @if let Some(word) = row.standing() { " " span.muted { (word) } } } td.l.muted { (row.row.unit) }
                    @for (at, cell) in row.cells.iter().enumerate() {
                        td data-is=(letter(at)) data-value=[cell.estimate.map(|e| e.mean)] { (value(cell.estimate.map(|e| e.mean), row.row.unit)) }
                        @if at > 0 { (changed(row, at, scales)) }
                    }
                }
            } }
        } }
    }
}

/// The change of a kernel: in words and as a bar.
fn changed(row: &ComparedRow, at: usize, scales: &Scales) -> Markup {
    let (text, half) = difference_cells(row.told(at).as_ref(), row.row.unit, "±");
    let word = verdict(row, at);
    let drawn = change(row, at).filter(Change::has_a_scale);
    let class = match word {
        "* better" => "good",
        "* worse" => "bad",
        _ => "",
    };
    let runs = runs(row, at);
    html! {
        td class=(class) data-is="" data-value=[change(row, at).map(|change| change.value)] {
            (text) @if !half.is_empty() { span.muted { " " (half) } } @if !word.is_empty() { " *" }
        }
        td.bar { (figures::interval(&Interval {
            percent: drawn.map(|change| change.value),
            ci95: drawn.and_then(|change| change.ends),
            published: None,
            class,
            reach: drawn.map_or(scales.percent, |change| scales.reach(change.unit)),
            words: runs.as_deref(),
        })) }
    }
}

/// The differences of the single runs that an interval was made of, seed by seed.
fn runs(row: &ComparedRow, at: usize) -> Option<String> {
    /// More than a reader looks at.
    const MOST: usize = 20;
    let unit = change(row, at)?.unit;
    let (base, other) = (&row.row.samples[0], &row.row.samples[at]);
    let mean = row.cells[0].estimate.map_or(0.0, |estimate| estimate.mean);
    let pairs = base.iter().zip(other).filter_map(|(base, other)| Some((*other)? - (*base)?));
    let told: Vec<String> = match unit {
        Told::Percent if mean != 0.0 => {
            pairs.map(|diff| format!("{:+.2}", 100.0 * diff / mean.abs())).collect()
        }
        _ => pairs.map(signed).collect(),
    };
    let all = told.len();
    let suffix = unit.suffix().map_or(String::new(), |unit| format!(" {}", unit.trim_start()));
    let more = if all > MOST { format!(" and {} more", all - MOST) } else { String::new() };
    (all > 1).then(|| format!("{} runs: {}{suffix}{more}", all, told[..all.min(MOST)].join(" ")))
}
