// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables for web pages: the rows of the text tables, significant differences in bold.

use super::cells::{
    also_changed, printable, provenance_lines, seeds_text, shown_metrics, shown_rows,
    simulated_text, value,
};
use super::change::{difference_cells, verdict};
use super::{Extent, RunReport};
use crate::compare::Comparison;
use crate::crash;

pub fn comparison(comparison: &Comparison, extent: Extent) -> String {
    comparison_with(comparison, extent, simulated_text(comparison), "")
}

/// With what to say of the length, and a further section between the table and the notes.
pub fn comparison_with(
    comparison: &Comparison,
    extent: Extent,
    length: Option<String>,
    section: &str,
) -> String {
    let provenance = &comparison.provenance;
    let mut text = format!(
        "**{}**, **{}**: {} runs each, paired ({})",
        escape(&provenance.machine),
        escape(&provenance.workload),
        comparison.seeds.len(),
        seeds_text(&comparison.seeds)
    );
    if let Some(length) = length {
        text.push_str(&format!(", {length}"));
    }
    let name_of = |kernel: usize| comparison.kernels[kernel].clone();
    for said in super::summary::sentences(comparison, extent, name_of) {
        text.push_str(&format!("\n\n{}", escape(&said)));
    }
    text.push_str("\n\n| metric | unit |");
    for kernel in 0..comparison.kernels.len() {
        text.push_str(&format!(" {} |", escape(&comparison.named(kernel))));
        if kernel > 0 {
            text.push_str(" change |");
        }
    }
    text.push_str("\n|---|---|");
    text.push_str(&"---:|".repeat(2 * comparison.kernels.len() - 1));
    text.push('\n');
    let shown = shown_rows(comparison, extent);
    let mut has_ends = false;
    for (title, row) in &shown.rows {
        text.push_str(&format!("| {} | {} |", escape(title), escape(row.row.unit)));
        for (kernel, cell) in row.cells.iter().enumerate() {
            text.push_str(&format!(" {} |", value(cell.estimate.map(|e| e.mean), row.row.unit)));
            if kernel == 0 {
                continue;
            }
            let (change, half) = difference_cells(row.told(kernel).as_ref(), row.row.unit, "±");
            let change = match (row.standing(), verdict(row, kernel)) {
                (Some(word), _) => format!("{change} ({word})"),
                (None, "") => change,
                (None, _) => format!("**{change}**"),
            };
            has_ends |= half.starts_with('[');
            let half = if half.is_empty() { half } else { format!(" {half}") };
            text.push_str(&format!(" {change}{half} |"));
        }
        text.push('\n');
    }
    text.push_str(&format!("\n{}\n", legend(has_ends)));
    let changed = also_changed(comparison, &shown.more).filter(|_| extent == Extent::Headlines);
    for note in changed.into_iter().chain(shown.further(extent)) {
        text.push_str(&format!("\n{}.\n", escape(&note)));
    }
    text.push_str(section);
    text.push('\n');
    text + &footer(comparison)
}

/// The meaning of bold changes and of intervals; `has_ends`: some are told by their ends.
pub fn legend(has_ends: bool) -> String {
    let ends = "[...]: the interval itself, where one side is longer by more than a quarter.";
    if has_ends { format!("{LEGEND} {ends}") } else { LEGEND.to_string() }
}

const LEGEND: &str = "**Bold**: p < 0.05 (paired t-test); ±: half the width of the 95% interval of the difference, in % of the first kernel, of temperatures in K, of shares in points (pt).";

/// Crashes, notes, and where it comes from.
pub fn footer(comparison: &Comparison) -> String {
    let mut text = String::new();
    for line in crash::lines(&comparison.crashes) {
        text.push_str(&format!("- {}\n", escape(&line)));
    }
    for notice in &comparison.notices {
        text.push_str(&format!("- note: {}\n", escape(notice)));
    }
    for line in provenance_lines(&comparison.provenance) {
        text.push_str(&format!("- {}\n", escape(&line)));
    }
    text
}

pub fn run(report: &RunReport, extent: Extent) -> String {
    let RunReport { provenance, kernel, seed, result } = report;
    let mut text = format!(
        "**{}**, **{}**, **{}**, seed {seed}\n\n| metric | value | unit |\n|---|---:|---|\n",
        escape(&provenance.machine),
        escape(&provenance.workload),
        escape(kernel)
    );
    let shown = shown_metrics(result, extent);
    for (title, metric) in &shown.rows {
        let value = value(metric.value, metric.unit);
        text.push_str(&format!("| {} | {value} | {} |\n", escape(title), escape(metric.unit)));
    }
    if let Some(note) = shown.further(extent) {
        text.push_str(&format!("\n{}.\n", escape(&note)));
    }
    text.push('\n');
    for line in
        result.notices.iter().map(|n| format!("note: {n}")).chain(provenance_lines(provenance))
    {
        text.push_str(&format!("- {}\n", escape(&line)));
    }
    text
}

/// Names of tasks and files may hold what markdown takes for markup. Escaped is what could be, and no more: tables are mailed,
/// too, and `frame_duration` and `HEAD~1` are what they are.
pub fn escape(text: &str) -> String {
    let text = printable(text);
    let characters: Vec<char> = text.chars().collect();
    let in_word = |at: usize| {
        let is_word = |at: Option<&char>| at.is_some_and(|c| c.is_alphanumeric() || *c == '_');
        is_word(at.checked_sub(1).and_then(|at| characters.get(at)))
            && is_word(characters.get(at + 1))
    };
    // These strike through, or begin mathematics, in pairs alone.
    let paired = |sign: char| characters.iter().filter(|c| **c == sign).count() > 1;
    let mut escaped = String::new();
    for (at, character) in characters.iter().copied().enumerate() {
        let markup = match character {
            '|' | '*' | '`' | '<' | '[' | '\\' | '&' => true,
            '_' => !in_word(at),
            '~' | '$' => paired(character),
            _ => false,
        };
        if markup {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_are_escaped_where_they_could_be_markup() {
        for (text, expected) in [
            ("frame_duration p99", "frame_duration p99"),
            ("tree=~/linux@HEAD~1", "tree=\\~/linux@HEAD\\~1"),
            ("linux@HEAD~1", "linux@HEAD~1"),
            ("_a_ *b* |", "\\_a\\_ \\*b\\* \\|"),
            ("a__b", "a__b"),
            ("$5 [x] `y` <z>", "$5 \\[x] \\`y\\` \\<z>"),
            ("$a$", "\\$a\\$"),
        ] {
            assert_eq!(escape(text), expected, "{text}");
        }
    }
}
