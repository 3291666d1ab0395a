// SPDX-License-Identifier: GPL-2.0-or-later
//! The table of a comparison as a cover letter wants it: ASCII, at most 100 columns, every kernel a
//! letter with a legend, so that long names do not spread the columns.
//!
//! Kernels that do not fit beside each other continue in a further block, each block with the
//! baseline in front.

use super::cells::{
    Shown, also_changed, letter, number, plain_table, printable, provenance_lines, section,
    seeds_text, shown_rows, simulated_text, value, wrap,
};
use super::change::{Change, Told, difference_cells, verdict};
use super::{Extent, Layout};
use crate::compare::{ComparedRow, Comparison};
use crate::{crash, stats};
use schedtwin_input::wrapped;

/// A row and its title.
type Titled<'a> = (String, &'a ComparedRow);

pub fn render(comparison: &Comparison, extent: Extent, layout: Layout) -> String {
    render_with(comparison, extent, layout, simulated_text(comparison), ("", ""))
}

/// With what to say of the length, a sentence under the heading, and a further section between the table and the notes.
pub fn render_with(
    comparison: &Comparison,
    extent: Extent,
    layout: Layout,
    length: Option<String>,
    (lead, further_section): (&str, &str),
) -> String {
    let mut text = heading(comparison, layout, length);
    if !lead.is_empty() {
        text.push('\n');
        text.push_str(&wrap(lead, layout.width, "  "));
    }
    let summary = super::summary::sentences(comparison, extent, letter);
    if !summary.is_empty() {
        text.push('\n');
        summary.iter().for_each(|said| text.push_str(&wrap(said, layout.width, "  ")));
    }
    let shown = shown_rows(comparison, extent);
    let rows = &shown.rows;
    if rows.is_empty() {
        text.push_str("\nNo metric is defined and different from zero.\n");
    }
    for others in blocks(comparison, rows, layout) {
        text.push('\n');
        text.push_str(&block(comparison, rows, &others, layout));
    }
    text.push('\n');
    if !further_section.is_empty() {
        text.push_str(further_section);
        text.push('\n');
    }
    text.push_str(&notes(comparison, &shown, extent, layout));
    text
}

pub fn heading(comparison: &Comparison, layout: Layout, length: Option<String>) -> String {
    let provenance = &comparison.provenance;
    let mut line = format!("{}, {}: ", provenance.machine, provenance.workload);
    line.push_str(&match comparison.seeds.len() {
        1 => seeds_text(&comparison.seeds),
        n => format!("{n} runs each, paired ({})", seeds_text(&comparison.seeds)),
    });
    if let Some(length) = length {
        line.push_str(&format!(", {length}"));
    }
    let mut text = wrap(&line, layout.width, "  ");
    text.push('\n');
    for kernel in 0..comparison.kernels.len() {
        let name = comparison.named(kernel);
        let n = comparison.seeds.len();
        let what = match comparison.identical_executions[kernel] {
            _ if kernel == 0 => "  (baseline)".to_string(),
            0 => String::new(),
            same if same == n => "  (executed exactly as A)".to_string(),
            same => format!("  (executed exactly as A with {same} of {n} seeds)"),
        };
        text.push_str(&format!("  {}  {}{what}\n", letter(kernel), printable(&name)));
    }
    text
}

/// The columns of one row: title and unit, the baseline, and four cells for each other kernel.
pub fn row_cells((title, row): &Titled, others: &[usize], layout: Layout) -> Vec<String> {
    let mean = |kernel: usize| {
        let mean = value(row.cells[kernel].estimate.map(|e| e.mean), row.row.unit);
        match stats::stddev(&row.row.samples[kernel]).filter(|_| layout.stddev) {
            Some(deviation) => format!("{mean} ({})", number(deviation)),
            None => mean,
        }
    };
    // A row that a replay does not bear out is marked whatever it shows.
    let mark = row.standing().map(|word| format!("? {word}"));
    let mut cells = vec![title.clone(), row.row.unit.to_string(), mean(0)];
    if others.is_empty() {
        cells.extend(mark.clone());
    }
    for &kernel in others {
        let (change, interval) = difference_cells(row.told(kernel).as_ref(), row.row.unit, "+-");
        let interval = if layout.stddev { String::new() } else { interval };
        let verdict = mark.as_deref().unwrap_or_else(|| verdict(row, kernel));
        // Beside further columns the star has to do: the sign and the metric say the rest.
        let verdict = if others.len() > 1 { verdict.get(..1).unwrap_or("") } else { verdict };
        cells.extend([mean(kernel), change, interval, verdict.to_string()]);
    }
    cells
}

pub fn header_cells(others: &[usize], layout: Layout) -> Vec<String> {
    let interval = if layout.stddev { "" } else { "95%" };
    let mut cells = vec![String::new(), String::new(), letter(0)];
    for &kernel in others {
        let letter = letter(kernel);
        cells.extend([letter.clone(), format!("{letter} vs A"), interval.into(), String::new()]);
    }
    cells
}

/// The width of a table of these kernels.
fn width_of(rows: &[Titled], others: &[usize], layout: Layout) -> usize {
    let mut widths: Vec<usize> =
        header_cells(others, layout).iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row_cells(row, others, layout)) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths.iter().sum::<usize>() + 2 * (widths.len() - 1)
}

/// Distributes the other kernels over blocks that fit the width; at least one in each.
fn blocks(comparison: &Comparison, rows: &[Titled], layout: Layout) -> Vec<Vec<usize>> {
    let width_of = |others: &[usize]| width_of(rows, others, layout);
    let mut blocks: Vec<Vec<usize>> = vec![Vec::new()];
    for kernel in 1..comparison.kernels.len() {
        let last = blocks.last_mut().expect("there is always a block");
        last.push(kernel);
        if last.len() > 1 && width_of(last) > layout.width {
            last.pop();
            blocks.push(vec![kernel]);
        }
    }
    blocks
}

/// The narrowest that a column of titles gets.
const LEAST_TITLE: usize = 20;

fn block(comparison: &Comparison, rows: &[Titled], others: &[usize], layout: Layout) -> String {
    let mut lines = vec![header_cells(others, layout)];
    let mut starts = Vec::new();
    // What does not fit is taken from the titles.
    let longest = rows.iter().map(|(title, _)| title.chars().count()).max().unwrap_or(0);
    let excess = width_of(rows, others, layout).saturating_sub(layout.width);
    let room = longest.saturating_sub(excess).max(LEAST_TITLE);
    for (at, row) in rows.iter().enumerate() {
        let section_of = |(_, row): &Titled| section(row.row.name);
        if at > 0 && section_of(row) != section_of(&rows[at - 1]) {
            starts.push(lines.len() + starts.len());
        }
        let mut cells = row_cells(row, others, layout);
        let broken = wrapped(&cells[0], room, "  ");
        let mut title = broken.lines().map(String::from);
        cells[0] = title.next().unwrap_or_default();
        lines.push(cells);
        lines.extend(title.map(|rest| vec![rest]));
    }
    let verdicts: Vec<usize> = match others.is_empty() {
        true => vec![3],
        false => (0..comparison.kernels.len()).map(|other| 6 + 4 * other).collect(),
    };
    let table = plain_table(lines, 2, &verdicts);
    let mut text = String::new();
    let mut printed = 0;
    for line in table.lines() {
        if starts.contains(&printed) {
            text.push('\n');
            printed += 1;
        }
        text.push_str(line);
        text.push('\n');
        printed += 1;
    }
    text
}

pub fn notes(
    comparison: &Comparison,
    shown: &Shown<ComparedRow>,
    extent: Extent,
    layout: Layout,
) -> String {
    let mut notes = Vec::new();
    let others = comparison.kernels.len() - 1;
    if comparison.seeds.len() > 1 && others > 0 {
        if layout.stddev {
            notes.push("In brackets: the standard deviation over the seeds.".to_string());
        } else if !layout.mmtests {
            let told = told_in(&shown.rows);
            let mut note =
                "95%: half the width of the 95% interval of the difference, over the seeds, in % of A"
                    .to_string();
            let brackets = |cells: Vec<String>| cells.iter().any(|cell| cell.starts_with('['));
            let others: Vec<usize> = (1..=others).collect();
            if shown.rows.iter().any(|row| brackets(row_cells(row, &others, layout))) {
                note.push_str(", or its ends where one side is longer");
            }
            if told.contains(&Told::Kelvin) {
                note.push_str(", of temperatures in K");
            }
            if told.contains(&Told::Points) {
                note.push_str(", of shares in points (pt)");
            }
            notes.push(note + ".");
        }
        notes.push("*: p < 0.05 in the paired t-test; where nothing changed 1 row in 20 is marked by chance. The sentences above are corrected for that.".to_string());
    } else if others > 0 {
        notes.push(
            "One seed: no interval, and no difference can be called significant. Use -n 10."
                .to_string(),
        );
    }
    if told_in(&shown.rows).iter().any(|told| matches!(told, Told::Own(_))) {
        notes.push(
            "Differences without % are in the metric's unit: one of the values is zero or below."
                .to_string(),
        );
    }
    if extent == Extent::Headlines {
        notes.extend(also_changed(comparison, &shown.more));
    }
    notes.extend(shown.further(extent));
    notes.extend(crash::lines(&comparison.crashes));
    notes.extend(comparison.notices.iter().map(|notice| format!("note: {notice}")));
    notes.extend(provenance_lines(&comparison.provenance));
    notes.iter().map(|note| wrap(note, layout.width, "  ")).collect()
}

/// Returns the units in which the changes of these rows are told, each once.
fn told_in<'a>(rows: &[Titled<'a>]) -> Vec<Told<'a>> {
    let mut all: Vec<Told<'a>> = Vec::new();
    for (_, row) in rows {
        for difference in row.cells.iter().filter_map(|cell| cell.difference.as_ref()) {
            let change = Change::of(difference, row.row.unit);
            let is_none = change.value == 0.0 && matches!(change.unit, Told::Own(_));
            if !is_none && !all.contains(&change.unit) {
                all.push(change.unit);
            }
        }
    }
    all
}
