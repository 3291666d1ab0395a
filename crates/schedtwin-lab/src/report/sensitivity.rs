// SPDX-License-Identifier: GPL-2.0-or-later
//! On what the signs of a study depend: a table for each kernel, a line for each variant, a column for each row.
//!
//! Each difference stands with half the width of its own 95 % interval; a star, in Markdown bold letters, says that the
//! interval leaves out zero. Only such a sign counts for or against a conclusion; the last line is the answer.

use super::Studies;
use super::cells::{letter, plain_table, wrap};
use super::markdown::escape;
use super::study::{difference_text, robust_text};
use crate::stats::Difference;
use crate::study::run::{Beside, Ran};
use crate::study::spec::Assignment;

/// One cell: what is written, and whether the sign is known.
pub type Entry = (String, bool);

/// The predictions of one kernel in all variants.
pub struct Table {
    /// The kernel's column in the study.
    pub kernel: usize,
    /// A title for each row of the study.
    pub titles: Vec<String>,
    /// `NAME: SETTINGS` of a variant, and the entries.
    pub lines: Vec<(String, Vec<Entry>)>,
    /// Whether each row is robust.
    pub robust: Vec<String>,
}

fn entry(difference: Option<&Difference>) -> Entry {
    match difference {
        None => ("-".to_string(), false),
        Some(difference) => (difference_text(difference), difference.significant),
    }
}

/// The tables of a study; none if no variant ran.
pub fn tables(ran: &Ran) -> Vec<Table> {
    let study = &ran.study;
    let predicted = |kernel: usize| -> Vec<&Beside> {
        let of = |cell: &&Beside| {
            let published = &study.rows[cell.row].cells[cell.cell];
            published.column == kernel && cell.difference.is_some() && !cell.in_variants.is_empty()
        };
        ran.cells.iter().filter(of).collect()
    };
    let table = |kernel: usize| {
        let cells = predicted(kernel);
        if cells.is_empty() {
            return None;
        }
        let title = |cell: &&Beside| {
            let row = &study.rows[cell.row];
            format!("{} {}", row.id, row.title())
        };
        let as_published = cells.iter().map(|cell| entry(cell.difference.as_ref())).collect();
        let mut lines = vec![("as the study is".to_string(), as_published)];
        lines.extend(study.variants.iter().enumerate().map(|(at, variant)| {
            let sets: Vec<String> = variant.settings.iter().map(Assignment::text).collect();
            let of = |cell: &&Beside| entry(cell.in_variants.get(at).and_then(Option::as_ref));
            let ruled_out = if variant.ruled_out.is_some() { " (ruled out)" } else { "" };
            let name = format!("{}{ruled_out}: {}", variant.name, sets.join(", "));
            (name, cells.iter().map(of).collect())
        }));
        Some(Table {
            kernel,
            titles: cells.iter().map(title).collect(),
            lines,
            robust: cells.iter().map(|cell| robust_text(cell)).collect(),
        })
    };
    (0..study.columns.len()).filter_map(table).collect()
}

/// The meaning of the tables, said once.
const LEGEND: [&str; 2] = [
    "Differences to the base in %, with half the width of their 95 % intervals; marked: the interval leaves out zero (p < 0.05, paired).",
    "robust, yes: the study as it is knows its sign, and it is the same in every variant; k/n: k of n variants know it, too. no: a variant knows the other \
     sign. unknown: neither. Ruled out: base values say that it was not so; it does not count.",
];

fn of_seeds(ran: &Ran) -> String {
    let most = crate::study::run::VARIANT_SEEDS;
    format!("{} runs of each kernel, {} in variants", ran.seeds.len(), ran.seeds.len().min(most))
}

/// The tables of all studies in ASCII.
pub fn text(studies: &Studies, width: usize) -> String {
    let mut text = String::new();
    for ran in &studies.ran {
        text.push_str(&format!("{}: {}\n", ran.study.name, of_seeds(ran)));
        for table in tables(ran) {
            let column = &ran.study.columns[table.kernel];
            text.push_str(&format!("\n  {}  {}\n", letter(table.kernel), column.kernel));
            text.extend(table.titles.iter().map(|title| format!("     {title}\n")));
            let ids = table.titles.iter().map(|title| {
                title.split(' ').next().expect("a title begins with its id").to_string()
            });
            let mut rows = vec![std::iter::once(String::new()).chain(ids).collect()];
            rows.extend(table.lines.iter().map(|(name, entries)| {
                let name = name.split(": ").next().expect("a name").to_string();
                let star =
                    |(text, known): &Entry| format!("{text}{}", if *known { " *" } else { "  " });
                std::iter::once(name).chain(entries.iter().map(star)).collect()
            }));
            let robust = table.robust.iter().map(|robust| format!("{robust}  "));
            rows.push(std::iter::once("robust".to_string()).chain(robust).collect());
            text.push_str(&plain_table(rows, 1, &[]));
        }
        text.push('\n');
    }
    text.extend(LEGEND.iter().map(|line| wrap(line, width, "  ")));
    text
}

/// The tables of all studies in Markdown.
pub fn markdown(studies: &Studies) -> String {
    let mut text = String::new();
    for ran in &studies.ran {
        for table in tables(ran) {
            let kernel = &ran.study.columns[table.kernel].kernel;
            text.push_str(&format!(
                "**{}**: {}, {}\n\n",
                escape(&ran.study.name),
                escape(kernel),
                of_seeds(ran)
            ));
            let titles: Vec<String> = table.titles.iter().map(|title| escape(title)).collect();
            text.push_str(&format!("| variant | {} |\n", titles.join(" | ")));
            text.push_str(&format!("|---|{}\n", "---:|".repeat(titles.len())));
            for (name, entries) in &table.lines {
                let bold = |(text, known): &Entry| {
                    let text = text.replace("+-", "±");
                    if *known { format!("**{text}**") } else { text }
                };
                let entries: Vec<String> = entries.iter().map(bold).collect();
                text.push_str(&format!("| {} | {} |\n", escape(name), entries.join(" | ")));
            }
            text.push_str(&format!("| **robust** | {} |\n\n", table.robust.join(" | ")));
        }
    }
    text.extend(LEGEND.iter().map(|line| format!("{line}\n")));
    text
}
