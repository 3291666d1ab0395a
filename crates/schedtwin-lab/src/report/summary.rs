// SPDX-License-Identifier: GPL-2.0-or-later
//! The changes in two or three sentences: what got better, what got worse, by how much, and what
//! did not change.
//!
//! The sentences speak of the headlines alone, or of the rows that were asked for, with the marks of the table: better and worse are what its stars say. Of
//! many changes the clearest are named (those with the smallest p), in the order of the table.

use schedtwin_engine::result::Better;

use super::Extent;
use super::cells::shown_rows;
use super::change::Change;
use crate::compare::{ComparedRow, Comparison};

/// Changes that a sentence names, beside one other kernel; of several kernels there is space for
/// fewer of each.
const NAMED: usize = 4;
const NAMED_OF_SEVERAL: usize = 2;

/// More kernels than this are left to the table.
const MOST_KERNELS: usize = 8;

/// A sentence or a few for each kernel but the first; none where nothing can be said: one seed has no interval. `name`:
/// what the table calls a kernel.
pub fn sentences(
    comparison: &Comparison,
    extent: Extent,
    name: impl Fn(usize) -> String,
) -> Vec<String> {
    let others = comparison.kernels.len().saturating_sub(1);
    if comparison.seeds.len() < 2 || others == 0 || others > MOST_KERNELS {
        return Vec::new();
    }
    // Of rows that were asked for by name there are no headlines.
    let (extent, what) = match extent {
        Extent::Chosen => (Extent::Chosen, "row"),
        _ => (Extent::Headlines, "headline"),
    };
    let shown = shown_rows(comparison, extent);
    let named = if others > 1 { NAMED_OF_SEVERAL } else { NAMED };
    (1..=others).map(|kernel| of(comparison, (&shown.rows, what), kernel, &name, named)).collect()
}

/// A row as a sentence tells it.
struct Told<'a> {
    title: &'a str,
    change: String,
    p: f64,
}

fn of(
    comparison: &Comparison,
    (rows, what): (&[(String, &ComparedRow)], &str),
    kernel: usize,
    name: impl Fn(usize) -> String,
    named: usize,
) -> String {
    let (base, name) = (name(0), name(kernel));
    if comparison.identical_executions[kernel] == comparison.seeds.len() {
        return format!("{name} executed exactly as {base}: nothing changed.");
    }
    let (mut better, mut worse, mut other, mut unchanged) = (vec![], vec![], vec![], vec![]);
    let (mut doubtful, mut unknown) = (vec![], vec![]);
    for (title, row) in rows {
        let Some(difference) = &row.cells[kernel].difference else { continue };
        let change = Change::of(difference, row.row.unit);
        let p = difference.p.unwrap_or(1.0);
        let told = Told { title, change: change.whole(), p };
        match (change.verdict(row.row.better), row.row.better) {
            _ if row.not_judged => unknown.push(told),
            _ if row.doubtful => doubtful.push(told),
            ("", _) => unchanged.push(told),
            (_, Better::Neutral) => other.push(told),
            ("* better", _) => better.push(told),
            _ => worse.push(told),
        }
    }
    let mut sentences = Vec::new();
    let of_change = |told: &Told| format!("{} {}", told.title, told.change);
    let mut changed: Vec<String> = Vec::new();
    if !better.is_empty() {
        changed.push(format!("better: {}", list(better, named, of_change)));
    }
    if !worse.is_empty() {
        changed.push(format!("worse: {}", list(worse, named, of_change)));
    }
    if !other.is_empty() {
        changed.push(format!("different: {}", list(other, named, of_change)));
    }
    sentences.push(match changed.is_empty() {
        true => format!("{name} against {base}: no {what} changed beyond chance."),
        false => format!("{name} against {base} is {}.", changed.join("; ")),
    });
    if !unchanged.is_empty() && !changed.is_empty() {
        let names = list(unchanged, named, |told| told.title.to_string());
        sentences.push(format!("Not changed beyond chance: {names}."));
    }
    if !doubtful.is_empty() {
        let names = list(doubtful, named, |told| told.title.to_string());
        sentences.push(format!("Doubtful, so no verdict: {names}."));
    }
    if !unknown.is_empty() {
        let names = list(unknown, named, |told| told.title.to_string());
        sentences.push(format!("Not judged, as the recording does not tell: {names}."));
    }
    sentences.join(" ")
}

/// The clearest few, in their order, and how many more there are.
fn list(mut all: Vec<Told>, named: usize, text: impl Fn(&Told) -> String) -> String {
    let count = all.len();
    let mut by_p: Vec<usize> = (0..count).collect();
    by_p.sort_by(|a, b| all[*a].p.total_cmp(&all[*b].p));
    by_p.truncate(named);
    let mut at = 0;
    all.retain(|_| {
        at += 1;
        by_p.contains(&(at - 1))
    });
    let mut texts: Vec<String> = all.iter().map(text).collect();
    match count - all.len() {
        0 => {}
        more => texts.push(format!("{more} more")),
    }
    let last = texts.pop().expect("callers have one");
    if texts.is_empty() { last } else { format!("{} and {last}", texts.join(", ")) }
}
