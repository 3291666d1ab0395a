// SPDX-License-Identifier: GPL-2.0-or-later
//! The comparisons of several machines and workloads as one table for a cover letter: a row for each metric, machine and
//! workload, one heading, one footer, and a sentence for each kernel on what changed where.
//!
//! ```text
//!                                          A      B    B vs A     95%
//! power mean  pixel6   ui-phone  mW    347.0  427.4    +23.2%   +-2.8  * worse
//!             juno-r2  ui-phone  mW    251.0  250.1     -0.4%   +-1.1
//! ```
//!
//! Where that is wider than asked for, a metric has a line of its own, and what all comparisons share (one workload, one
//! machine) stands in the heading alone:
//!
//! ```text
//!                     A      B    B vs A     95%
//! power mean, mW
//!   pixel6        347.0  427.4    +23.2%   +-2.8  * worse
//!   juno-r2       251.0  250.1     -0.4%   +-1.1
//! ```

use schedtwin_engine::result::Better;
use schedtwin_types::metric::declared;

use super::cells::{
    Shown, letter, plain_table, printable, seeds_text, shown_rows, simulated_text, value, wrap,
};
use super::change::{self, Change, difference_cells};
use super::compare_text::{header_cells, notes, row_cells};
use super::markdown::escape;
use super::summary::{
    Conclusion, NAMED, Told, conclusion, grave, is_side, of_the_baseline, p_of, small_and_by_chance,
};
use super::{Extent, Layout};
use crate::compare::{ComparedRow, Comparison};
use crate::{Provenance, stats, verdict};

/// A row of the table.
struct Line<'a> {
    /// The metric; rows of one metric stand together.
    title: String,
    /// The comparison's place among all.
    at: usize,
    machine: &'a str,
    workload: &'a str,
    row: &'a ComparedRow,
}

impl Line<'_> {
    fn place(&self) -> String {
        format!("{} {}", self.machine, self.workload)
    }
}

/// Whether a row is shown where nothing was asked for by name: what the workload is judged by, tails of latency, and idle states.
fn is_usual(row: &ComparedRow) -> bool {
    let primary = declared(row.row.name)
        .is_some_and(|metric| metric.primary && metric.headline.whole.contains(&row.row.stat));
    let tail = [("wakeup_latency", "p99"), ("frame_duration", "p99")];
    let idle = ["idle_too_deep", "idle_too_shallow"].contains(&row.row.name);
    row.row.is_whole() && (primary || idle || tail.contains(&(row.row.name, row.row.stat)))
}

/// All rows: metrics in the order of the first comparison that has them, and under each the comparisons in theirs.
fn lines(all: &[Comparison], extent: Extent) -> Vec<Line<'_>> {
    let mut lines: Vec<Line> = Vec::new();
    for (place, comparison) in all.iter().enumerate() {
        let shown = shown_rows(comparison, extent).rows.into_iter();
        for (title, row) in shown.filter(|(_, row)| extent != Extent::Headlines || is_usual(row)) {
            let Provenance { machine, workload, .. } = &comparison.provenance;
            let line = Line { title, at: place, machine, workload, row };
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
    if same(|one| one.provenance.machine.clone()) {
        line.push_str(&format!(" on {}", first.provenance.machine));
    }
    if same(|one| one.provenance.workload.clone()) {
        line.push_str(&format!(" under {}", first.provenance.workload));
    }
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

/// Sentences on each kernel but the first: where it ends runs, breaks something or hurts somebody; then which rows changed
/// where, as clearly as it takes among so many.
fn sentences(all: &[Comparison], lines: &[Line], name: impl Fn(usize) -> String) -> Vec<String> {
    let kernels = 1..all[0].kernels.len();
    let said = kernels.flat_map(|kernel| {
        let names = [name(0), name(kernel)];
        let mut said = harm(all, kernel, &names);
        said.extend(changes(all, lines, kernel, &names));
        said
    });
    let of_base = |at: usize| {
        let said = of_the_baseline(&all[at], &name);
        said.map(|said| format!("{}: {said}", places(all, &[at])))
    };
    said.chain((0..all.len()).filter_map(of_base)).collect()
}

fn harm(all: &[Comparison], kernel: usize, [base, name]: &[String; 2]) -> Vec<String> {
    let of = |at: usize| {
        let found = verdict::verdict(&all[at], kernel);
        let said = grave(&found, name, base);
        said.into_iter().map(move |said| format!("{}: {said}", places(all, &[at])))
    };
    (0..all.len()).flat_map(of).collect()
}

fn changes(
    all: &[Comparison],
    lines: &[Line],
    kernel: usize,
    [base, name]: &[String; 2],
) -> Option<String> {
    if all.iter().all(|one| one.identical_executions[kernel] == one.seeds.len()) {
        return Some(format!("{name} executed exactly as {base}: nothing changed."));
    }
    if lines.iter().all(|line| line.row.row.samples[0].len() < 2) {
        return None;
    }
    let looked_at: Vec<f64> = lines.iter().filter_map(|line| p_of(line.row, kernel)).collect();
    let sure = stats::holm(&looked_at);
    // Better and worse are said where the comparison of that place alone says it.
    let concluded: Vec<Conclusion> =
        all.iter().map(|one| conclusion(one, Extent::Headlines, kernel)).collect();
    let (mut parts, mut small, mut by_chance): (Vec<String>, Vec<Told>, Vec<Told>) =
        Default::default();
    for rows in lines.chunk_by(|a, b| a.title == b.title) {
        let mut told: Vec<(&str, Vec<String>)> = Vec::new();
        for line in rows {
            let (Some(difference), Some(p)) = (line.row.told(kernel), p_of(line.row, kernel))
            else {
                continue;
            };
            let change = Change::of(&difference, line.row.row.unit);
            let word = match (change.verdict(line.row.row.better), line.row.row.better) {
                ("", _) => continue,
                (_, Better::Neutral) => "is different on",
                _ if is_side(line.row) => "is different on",
                ("* better", _) => match concluded[line.at] {
                    Conclusion::Better | Conclusion::TradeOff => "is better on",
                    _ => "improved on",
                },
                _ => match concluded[line.at] {
                    Conclusion::Worse | Conclusion::TradeOff => "is worse on",
                    _ => "worsened on",
                },
            };
            let unsure = match (p > sure, change.is_small()) {
                (true, _) => Some(&mut by_chance),
                (false, true) => Some(&mut small),
                (false, false) => None,
            };
            if let Some(list) = unsure {
                let title = format!("{} {}", line.title, line.place());
                list.push(Told::of(title, line.row, &change, p));
                continue;
            }
            let place = format!("{} ({})", line.place(), change.whole());
            match told.iter_mut().find(|(known, _)| *known == word) {
                Some((_, places)) => places.push(place),
                None => told.push((word, vec![place])),
            }
        }
        let words = told.iter().map(|(word, places)| format!("{word} {}", places.join(", ")));
        let words: Vec<String> = words.collect();
        if !words.is_empty() {
            parts.push(format!("{} {}", rows[0].title, words.join(", ")));
        }
    }
    let mut said = match parts.is_empty() {
        true => format!("{name} against {base}: nothing here changed beyond chance."),
        false => format!("{name} against {base}: {}.", parts.join("; ")),
    };
    if let Some(more) = small_and_by_chance(small, by_chance, looked_at.len(), "row", NAMED) {
        said.push_str(&format!(" {more}"));
    }
    Some(said)
}

/// Texts of the comparisons, each once: with the places that it is of, where it is not of all.
fn each_once<'a>(
    all: &'a [Comparison],
    texts: impl Fn(&'a Comparison) -> Vec<&'a str>,
) -> Vec<String> {
    let mut told: Vec<(&str, Vec<usize>)> = Vec::new();
    for (at, one) in all.iter().enumerate() {
        for text in texts(one) {
            match told.iter_mut().find(|(known, _)| *known == text) {
                Some((_, of)) if of.last() == Some(&at) => {}
                Some((_, of)) => of.push(at),
                None => told.push((text, vec![at])),
            }
        }
    }
    let said = |(text, of): (&str, Vec<usize>)| match of.len() == all.len() {
        true => text.to_owned(),
        false => format!("{}: {text}", places(all, &of)),
    };
    told.into_iter().map(said).collect()
}

/// The comparisons in words, by what tells them apart: machines, workloads, or both.
fn places(all: &[Comparison], of: &[usize]) -> String {
    let machine = |one: &Comparison| one.provenance.machine.clone();
    let workload = |one: &Comparison| one.provenance.workload.clone();
    let same =
        |word: &dyn Fn(&Comparison) -> String| all.iter().all(|one| word(one) == word(&all[0]));
    let word = |at: &usize| match (same(&machine), same(&workload)) {
        (_, true) => machine(&all[*at]),
        (true, false) => workload(&all[*at]),
        (false, false) => format!("{} {}", machine(&all[*at]), workload(&all[*at])),
    };
    of.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// One comparison that stands for all in the footer: notes, crashes, and where everything comes from.
fn joined(all: &[Comparison]) -> Comparison {
    let mut joined = all[0].clone();
    joined.provenance.hashes.clear();
    for one in all {
        let Provenance { machine, workload, hashes, .. } = &one.provenance;
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
    }
    let clauses = |one: &'_ Comparison| -> Vec<String> {
        one.provenance
            .trust
            .split("; ")
            .filter(|clause| !clause.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let clauses: Vec<Vec<String>> = all.iter().map(clauses).collect();
    let of = |one: &Comparison| all.iter().position(|other| std::ptr::eq(one, other)).unwrap_or(0);
    let trust = each_once(all, |one| clauses[of(one)].iter().map(String::as_str).collect());
    joined.provenance.trust = trust.join("; ");
    joined.notices = each_once(all, |one| one.notices.iter().map(String::as_str).collect());
    for one in &all[1..] {
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
    let said = sentences(all, &lines, letter);
    if !said.is_empty() {
        text.push('\n');
        said.iter().for_each(|said| text.push_str(&wrap(said, layout.width, "  ")));
    }
    let fits = |text: &str| text.lines().all(|line| line.chars().count() <= layout.width);
    let wide = |others: &[usize]| wide_table(&lines, others, layout);
    let is_wide = fits(&wide(if kernels.len() > 1 { &[1] } else { &[] }));
    let narrow = |others: &[usize]| {
        let forms = [Narrow::Words, Narrow::Stars, Narrow::OwnLines];
        let mut forms =
            forms.map(|form| narrow_table(all, &lines, others, layout, form)).into_iter();
        let last = forms.next_back().expect("there are three");
        forms.find(|text| fits(text)).unwrap_or(last)
    };
    let table = |others: &[usize]| if is_wide { wide(others) } else { narrow(others) };
    let mut blocks: Vec<Vec<usize>> = vec![Vec::new()];
    for kernel in 1..kernels.len() {
        let last = blocks.last_mut().expect("there is always a block");
        last.push(kernel);
        if last.len() > 1 && !fits(&table(last)) {
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

/// The table with a line for each row: metric, machine, workload, unit, values.
fn wide_table(lines: &[Line], others: &[usize], layout: Layout) -> String {
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
}

/// The width that a line for each place takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Narrow {
    /// The place, the values, and after a star whether it is better or worse.
    Words,
    /// A star alone.
    Stars,
    /// The place has a line of its own.
    OwnLines,
}

/// The table with a line for each metric and under it one for each place.
fn narrow_table(
    all: &[Comparison],
    lines: &[Line],
    others: &[usize],
    layout: Layout,
    form: Narrow,
) -> String {
    let place = |line: &Line| {
        let of = |one: &Comparison| {
            one.provenance.machine == line.machine && one.provenance.workload == line.workload
        };
        all.iter().position(of).map_or_else(|| line.place(), |at| places(all, &[at]))
    };
    let without_unit = |mut cells: Vec<String>| {
        cells.remove(1);
        cells
    };
    let mut rows = vec![without_unit(header_cells(others, layout))];
    let verdicts: Vec<usize> = (0..others.len()).map(|other| 5 + 4 * other).collect();
    for line in lines {
        let title = match form {
            Narrow::OwnLines => String::new(),
            _ => format!("  {}", place(line)),
        };
        let mut cells = without_unit(row_cells(&(title, line.row), others, layout));
        if form != Narrow::Words {
            verdicts.iter().for_each(|at| cells[*at].truncate(1));
        }
        rows.push(cells);
    }
    let table = plain_table(rows, 1, &verdicts);
    let mut text = String::new();
    for (at, row) in table.lines().enumerate() {
        // The first line has the letters of the kernels.
        if let Some(now) = at.checked_sub(1) {
            if now == 0 || lines[now - 1].title != lines[now].title {
                let (title, unit) = (printable(&lines[now].title), lines[now].row.row.unit);
                text.push_str(&format!("{title}, {unit}\n"));
            }
            if form == Narrow::OwnLines {
                text.push_str(&format!("  {}\n", printable(&place(&lines[now]))));
            }
        }
        text.push_str(&format!("{row}\n"));
    }
    text
}

/// The table as Markdown.
pub fn markdown(all: &[Comparison], extent: Extent) -> String {
    let (lines, kernels) = (lines(all, extent), &all[0].kernels);
    let mut text = escape(&heading(all));
    for said in sentences(all, &lines, |kernel| kernels[kernel].clone()) {
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
    let mut has_ends = false;
    for line in &lines {
        let cells = [&line.title, line.machine, line.workload, line.row.row.unit].map(escape);
        text.push_str(&format!("| {} |", cells.join(" | ")));
        let unit = line.row.row.unit;
        for (kernel, cell) in line.row.cells.iter().enumerate() {
            text.push_str(&format!(" {} |", value(cell.estimate.map(|e| e.mean), unit)));
            if kernel > 0 {
                let (change, half) = difference_cells(line.row.told(kernel).as_ref(), unit, "±");
                let bold = !change::verdict(line.row, kernel).is_empty();
                let change = if bold { format!("**{change}**") } else { change };
                has_ends |= half.starts_with('[');
                let half = if half.is_empty() { half } else { format!(" {half}") };
                text.push_str(&format!(" {change}{half} |"));
            }
        }
        text.push('\n');
    }
    text.push_str(&format!("\n{}\n\n", super::markdown::legend(has_ends)));
    text + &super::markdown::footer(&joined(all))
}

/// The table as HTML.
pub fn html(all: &[Comparison]) -> maud::Markup {
    let (lines, kernels) = (lines(all, Extent::Headlines), &all[0].kernels);
    maud::html! {
        table {
            tr { th.l { "" } th.l { "machine" } th.l { "workload" } th.l { "" }
                @for kernel in 0..kernels.len() {
                    th { (letter(kernel)) }
                    @if kernel > 0 { th { (letter(kernel)) " vs A" } }
                } }
            @for (at, line) in lines.iter().enumerate() { tr {
                td.l { @if at == 0 || lines[at - 1].title != line.title { (line.title) } }
                td.l { (line.machine) } td.l { (line.workload) } td.l.muted { (line.row.row.unit) }
                @for (kernel, cell) in line.row.cells.iter().enumerate() {
                    td { (value(cell.estimate.map(|e| e.mean), line.row.row.unit)) }
                    @if kernel > 0 {
                        @let (change, half) = difference_cells(line.row.told(kernel).as_ref(), line.row.row.unit, "±");
                        @let word = change::verdict(line.row, kernel);
                        @let class = if word.contains("better") { "good" } else if word.contains("worse") { "bad" } else { "" };
                        td class=(class) { (change) @if !half.is_empty() { " " (half) } }
                    }
                }
            } }
        }
    }
}
