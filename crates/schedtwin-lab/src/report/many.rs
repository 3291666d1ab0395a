// SPDX-License-Identifier: GPL-2.0-or-later
//! The comparisons of several machines and workloads as one table for a cover letter: a row for each metric, machine and
//! workload, one heading, one footer, and a sentence for each kernel on what changed where.
//!
//! ```text
//!                                          A      B    B vs A     95%
//! power mean  pixel6   ui-phone  mW    347.0  427.4    +23.2%   +-2.8  * worse
//!             juno-r2  ui-phone  mW    251.0  250.1     -0.4%   +-1.1
//! ```

use schedtwin_engine::result::Better;
use schedtwin_types::metric::declared;

use super::cells::{
    Shown, letter, plain_table, printable, seeds_text, shown_rows, simulated_text, value, wrap,
};
use super::change::{Change, difference_cells, verdict};
use super::compare_text::{header_cells, notes, row_cells};
use super::markdown::escape;
use super::{Extent, Layout};
use crate::Provenance;
use crate::compare::{ComparedRow, Comparison};

/// A row of the table.
struct Line<'a> {
    /// The metric; rows of one metric stand together.
    title: String,
    machine: &'a str,
    workload: &'a str,
    row: &'a ComparedRow,
}

impl Line<'_> {
    fn place(&self) -> String {
        format!("{} {}", self.machine, self.workload)
    }
}

/// Whether a row is shown where nothing was asked for by name: what the workload is judged by, and tails of latency.
fn is_usual(row: &ComparedRow) -> bool {
    let primary = declared(row.row.name)
        .is_some_and(|metric| metric.primary && metric.headline.whole.contains(&row.row.stat));
    let tail = [("wakeup_latency", "p99"), ("frame_duration", "p99")];
    row.row.is_whole() && (primary || tail.contains(&(row.row.name, row.row.stat)))
}

/// All rows: metrics in the order of the first comparison that has them, and under each the comparisons in theirs.
fn lines(all: &[Comparison], extent: Extent) -> Vec<Line<'_>> {
    let mut lines: Vec<Line> = Vec::new();
    for comparison in all {
        let shown = shown_rows(comparison, extent).rows.into_iter();
        for (title, row) in shown.filter(|(_, row)| extent != Extent::Headlines || is_usual(row)) {
            let Provenance { machine, workload, .. } = &comparison.provenance;
            let line = Line { title, machine, workload, row };
            match lines.iter().rposition(|known| known.title == line.title) {
                Some(at) => lines.insert(at + 1, line),
                None => lines.push(line),
            }
        }
    }
    lines
}

/// `3 comparisons, 10 runs each, paired (seeds 1-10), 10s simulated`.
fn heading(all: &[Comparison]) -> String {
    let first = &all[0];
    let same = |of: fn(&Comparison) -> String| all.iter().all(|one| of(one) == of(first));
    let mut line = format!("{} comparisons", all.len());
    if same(|one| seeds_text(&one.seeds)) {
        line.push_str(&match first.seeds.len() {
            1 => format!(", {}", seeds_text(&first.seeds)),
            n => format!(", {n} runs each, paired ({})", seeds_text(&first.seeds)),
        });
    } else {
        let runs = all.iter().map(|one| one.seeds.len());
        let (least, most) = (runs.clone().min().unwrap_or(0), runs.max().unwrap_or(0));
        line.push_str(&format!(", {least} to {most} runs each, paired"));
    }
    if let Some(length) =
        simulated_text(first).filter(|_| same(|one| simulated_text(one).unwrap_or_default()))
    {
        line.push_str(&format!(", {length}"));
    }
    line
}

/// Returns the changes with the rows and parts where they occur, in a sentence for each kernel but
/// the first.
fn sentences(lines: &[Line], kernels: usize, name: impl Fn(usize) -> String) -> Vec<String> {
    let of = |kernel: usize| {
        let mut parts: Vec<String> = Vec::new();
        for rows in lines.chunk_by(|a, b| a.title == b.title) {
            let mut told: Vec<(&str, Vec<String>)> = Vec::new();
            for line in rows {
                let Some(difference) = &line.row.cells[kernel].difference else { continue };
                let change = Change::of(difference, line.row.row.unit);
                let word = match (change.verdict(line.row.row.better), line.row.row.better) {
                    ("", _) => continue,
                    (_, Better::Neutral) => "different",
                    ("* better", _) => "better",
                    _ => "worse",
                };
                let place = format!("{} ({})", line.place(), change.whole());
                match told.iter_mut().find(|(known, _)| *known == word) {
                    Some((_, places)) => places.push(place),
                    None => told.push((word, vec![place])),
                }
            }
            let words =
                told.iter().map(|(word, places)| format!("{word} on {}", places.join(", ")));
            let words: Vec<String> = words.collect();
            if !words.is_empty() {
                parts.push(format!("{} is {}", rows[0].title, words.join(", ")));
            }
        }
        let (base, name) = (name(0), name(kernel));
        match parts.is_empty() {
            true => format!("{name} against {base}: nothing here changed beyond chance."),
            false => format!("{name} against {base}: {}.", parts.join("; ")),
        }
    };
    let has_intervals = lines.iter().any(|line| line.row.row.samples[0].len() > 1);
    if has_intervals { (1..kernels).map(of).collect() } else { Vec::new() }
}

/// One comparison that stands for all in the footer: notes, crashes, and where everything comes from.
fn joined(all: &[Comparison]) -> Comparison {
    let mut joined = all[0].clone();
    joined.provenance.hashes.clear();
    let mut clauses: Vec<&str> = Vec::new();
    for one in all {
        let Provenance { machine, workload, hashes, trust, .. } = &one.provenance;
        for (name, hash) in hashes {
            let name = match name.as_str() {
                "machine" => format!("machine {machine}"),
                "workload" => format!("workload {workload}"),
                kernel => kernel.to_string(),
            };
            if !joined.provenance.hashes.iter().any(|(known, _)| *known == name) {
                joined.provenance.hashes.push((name, hash.clone()));
            }
        }
        for clause in trust.split("; ").filter(|clause| !clause.is_empty()) {
            if !clauses.contains(&clause) {
                clauses.push(clause);
            }
        }
    }
    joined.provenance.trust = clauses.join("; ");
    for one in &all[1..] {
        for notice in &one.notices {
            if !joined.notices.contains(notice) {
                joined.notices.push(notice.clone());
            }
        }
        joined.crashes.extend(one.crashes.clone());
    }
    joined
}

/// The table as text. All comparisons have the same kernels.
pub fn text(all: &[Comparison], extent: Extent, layout: Layout) -> String {
    let (lines, kernels) = (lines(all, extent), &all[0].kernels);
    let mut text = wrap(&heading(all), layout.width, "  ");
    text.push('\n');
    for kernel in 0..kernels.len() {
        let base = if kernel == 0 { "  (baseline)" } else { "" };
        let name = all[0].named(kernel);
        text.push_str(&format!("  {}  {}{base}\n", letter(kernel), printable(&name)));
    }
    let said = sentences(&lines, kernels.len(), letter);
    if !said.is_empty() {
        text.push('\n');
        said.iter().for_each(|said| text.push_str(&wrap(said, layout.width, "  ")));
    }
    let table = |others: &[usize]| {
        let mut head = header_cells(others, layout);
        head.splice(1..1, [String::new(), String::new()]);
        let mut rows = vec![head];
        for (at, line) in lines.iter().enumerate() {
            let again = at > 0 && lines[at - 1].title == line.title;
            let title = if again { String::new() } else { line.title.clone() };
            let mut cells = row_cells(&(title, line.row), others, layout);
            cells.splice(1..1, [line.machine.to_string(), line.workload.to_string()]);
            rows.push(cells);
        }
        let verdicts: Vec<usize> = (0..others.len()).map(|other| 8 + 4 * other).collect();
        plain_table(rows, 4, &verdicts)
    };
    let fits =
        |others: &[usize]| table(others).lines().all(|line| line.chars().count() <= layout.width);
    let mut blocks: Vec<Vec<usize>> = vec![Vec::new()];
    for kernel in 1..kernels.len() {
        let last = blocks.last_mut().expect("there is always a block");
        last.push(kernel);
        if last.len() > 1 && !fits(last) {
            last.pop();
            blocks.push(vec![kernel]);
        }
    }
    for others in blocks {
        text.push('\n');
        text.push_str(&table(&others));
    }
    text.push('\n');
    let rows = lines.iter().map(|line| (line.title.clone(), line.row)).collect();
    let shown = Shown::chosen(rows);
    text + &notes(&joined(all), &shown, Extent::Chosen, layout)
}

/// The table as Markdown.
pub fn markdown(all: &[Comparison], extent: Extent) -> String {
    let (lines, kernels) = (lines(all, extent), &all[0].kernels);
    let mut text = escape(&heading(all));
    for said in sentences(&lines, kernels.len(), |kernel| kernels[kernel].clone()) {
        text.push_str(&format!("\n\n{}", escape(&said)));
    }
    text.push_str("\n\n| metric | machine | workload | unit |");
    for kernel in 0..kernels.len() {
        let change = if kernel > 0 { " change |" } else { "" };
        text.push_str(&format!(" {} |{change}", escape(&all[0].named(kernel))));
    }
    text.push_str("\n|---|---|---|---|");
    text.push_str(&"---:|".repeat(2 * kernels.len() - 1));
    text.push('\n');
    for line in &lines {
        let cells = [&line.title, line.machine, line.workload, line.row.row.unit].map(escape);
        text.push_str(&format!("| {} |", cells.join(" | ")));
        let unit = line.row.row.unit;
        for (kernel, cell) in line.row.cells.iter().enumerate() {
            text.push_str(&format!(" {} |", value(cell.estimate.map(|e| e.mean), unit)));
            if kernel > 0 {
                let difference = cell.difference.as_ref();
                let (change, half) = difference_cells(difference, unit);
                let bold = !verdict(line.row, kernel).is_empty();
                let change = if bold { format!("**{change}**") } else { change };
                let half = if half.is_empty() { half } else { format!(" ±{half}") };
                text.push_str(&format!(" {change}{half} |"));
            }
        }
        text.push('\n');
    }
    text.push_str(&format!("\n{}\n\n", super::markdown::LEGEND));
    text + &super::markdown::footer(&joined(all))
}
