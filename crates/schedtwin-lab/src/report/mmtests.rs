// SPDX-License-Identifier: GPL-2.0-or-later
//! The table of a comparison as mmtests prints it and cover letters quote it: a column a kernel under its name, each
//! value with its change in brackets, between stars where it is more than chance.
//!
//! ```text
//!                              linux-5.11   linux-5.11+wide-llc
//! Amean     throughput    6652 (   0.00%)    6716 *   0.97%*
//! Stddev    throughput   12.40 (   0.00%)   11.10 (  10.48%)
//! ```
//!
//! As there, a change is positive where it is for the better; of metrics that have no better it is what it is.

use super::cells::{Shown, number, printable, shown_rows, simulated_text, value};
use super::compare_text::{heading, notes};
use super::{Extent, Layout};
use crate::compare::{ComparedRow, Comparison};
use crate::stats;
use schedtwin_engine::result::Better;

/// Between two columns.
const GAP: usize = 2;

/// The table.
pub fn render(comparison: &Comparison, extent: Extent, layout: Layout) -> String {
    let mut text = heading(comparison, layout, simulated_text(comparison));
    let shown = shown_rows(comparison, extent);
    let lines = lines(comparison, &shown, layout);
    let left: Vec<[&str; 2]> = lines.iter().map(|line| [line.stat, &line.title]).collect();
    let widths = [0, 1].map(|at| left.iter().map(|cells| cells[at].len()).max().unwrap_or(0));
    let names: Vec<String> = comparison.kernels.iter().map(|name| printable(name)).collect();
    let width_of = |kernel: usize| {
        let cells = lines.iter().map(|line| line.cells[kernel].chars().count());
        cells.chain([names[kernel].chars().count()]).max().unwrap_or(0) + GAP
    };
    let front = widths.iter().sum::<usize>() + GAP;
    let mut blocks: Vec<Vec<usize>> = vec![vec![0]];
    for kernel in 1..names.len() {
        let last = blocks.last_mut().expect("there is always a block");
        let width: usize = last.iter().chain([&kernel]).map(|kernel| width_of(*kernel)).sum();
        if last.len() > 1 && front + width > layout.width {
            blocks.push(vec![0, kernel]);
        } else {
            last.push(kernel);
        }
    }
    for kernels in blocks {
        let row = |[stat, title]: [&str; 2], cell: &dyn Fn(usize) -> String| {
            let gap = " ".repeat(GAP);
            let mut row = format!("{stat:0$}{gap}{title:1$}", widths[0], widths[1]);
            for kernel in &kernels {
                row.push_str(&format!("{:>1$}", cell(*kernel), width_of(*kernel)));
            }
            format!("{}\n", row.trim_end())
        };
        text.push('\n');
        text.push_str(&row(["", ""], &|kernel| names[kernel].clone()));
        for (line, left) in lines.iter().zip(&left) {
            text.push_str(&row(*left, &|kernel| line.cells[kernel].clone()));
        }
    }
    text.push('\n');
    // What is in brackets is the change here.
    text + &notes(comparison, &shown, extent, Layout { stddev: false, ..layout })
}

/// A line of the table.
struct Line {
    stat: &'static str,
    title: String,
    /// By kernel.
    cells: Vec<String>,
}

fn lines(comparison: &Comparison, shown: &Shown<ComparedRow>, layout: Layout) -> Vec<Line> {
    let mut lines = Vec::new();
    for (title, row) in &shown.rows {
        let kernels = 0..comparison.kernels.len();
        let title = printable(title);
        let cells = kernels.clone().map(|kernel| cell(row, kernel)).collect();
        lines.push(Line { stat: word(row.row.stat), title: title.clone(), cells });
        if layout.stddev {
            let of = |kernel: usize| stats::stddev(&row.row.samples[kernel]);
            let deviation = |kernel: usize| match (of(0), of(kernel)) {
                (Some(base), Some(own)) => {
                    let percent = (base != 0.0).then(|| 100.0 * (base - own) / base);
                    format!("{} {}", number(own), brackets(percent, false))
                }
                _ => "-".to_string(),
            };
            lines.push(Line { stat: "Stddev", title, cells: kernels.map(deviation).collect() });
        }
    }
    lines
}

/// The word that mmtests has for a mean over the runs of a stat.
fn word(stat: &str) -> &'static str {
    match stat {
        "max" => "Max",
        "min" => "Min",
        "gmean" => "Gmean",
        // A mean over the seeds, whatever one seed's value is: the title says that.
        _ => "Amean",
    }
}

fn cell(row: &ComparedRow, kernel: usize) -> String {
    let cell = &row.cells[kernel];
    let mean = value(cell.estimate.map(|estimate| estimate.mean), row.row.unit);
    if kernel == 0 {
        return format!("{mean} {}", brackets(Some(0.0), false));
    }
    let Some(difference) = &cell.difference else { return mean };
    let better = match row.row.better {
        Better::Lower => -1.0,
        Better::Higher | Better::Neutral => 1.0,
    };
    let percent = difference.diff_pct.map(|percent| percent * better);
    format!("{mean} {}", brackets(percent, difference.significant))
}

/// `(   0.97%)`, or `*   0.97%*`: more than chance.
fn brackets(percent: Option<f64>, significant: bool) -> String {
    let (open, close) = if significant { ('*', '*') } else { ('(', ')') };
    match percent {
        // Adding 0 takes the sign of a zero away.
        Some(percent) => format!("{open}{:7.2}%{close}", percent + 0.0),
        None => format!("{open}{:>8}{close}", "-"),
    }
}
