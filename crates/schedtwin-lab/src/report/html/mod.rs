// SPDX-License-Identifier: GPL-2.0-or-later
//! One file to open in a browser: tables, intervals, figures. It loads nothing from anywhere, follows the light or dark
//! scheme of the reader, and fits a phone.
//!
//! Words are HTML and only shapes are SVG: shapes may be stretched to any width, words may not. Names of
//! tasks and files are escaped by the templating library (maud), which also writes the SVG: chart
//! libraries draw with colours of their own, and a page has two schemes.

mod domains;
mod execution;
mod figures;
#[cfg(test)]
mod positions;
mod sweep;
mod table;
mod timeline;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use schedtwin_engine::DomainTable;

use super::cells::{letter, provenance_lines, seeds_text, shown_metrics, shown_rows, time, value};
use super::{Extent, RunReport, Studies};
use crate::compare::Comparison;
use crate::crash;
use crate::measured::Measured;
use crate::moment::Moment;
use crate::replay::Replayed;
use crate::study::run::{Ran, summary};
use crate::study::verdict::Verdict;
use crate::study::{Published, Role};
use crate::timeline::Timelines;
#[cfg(test)]
pub(super) use figures::COLOURS;
use figures::{Interval, colour};
pub use sweep::sweep;
use table::Scales;

/// A comparison as a page; `domains` by kernel.
pub fn comparison(
    comparison: &Comparison,
    runs: &Timelines,
    moments: &[Moment],
    domains: &[DomainTable],
) -> String {
    let length = super::cells::simulated_text(comparison);
    compared_page("compare", comparison, length, (Vec::new(), html! {}), (runs, moments), domains)
}

/// A comparison of a page with several, and what its page has besides.
pub struct Part<'a> {
    /// The comparison.
    pub comparison: &'a Comparison,
    /// Its first runs over time.
    pub runs: Timelines,
    /// The first decisions that differ.
    pub moments: Vec<Moment>,
    /// Scheduling domains by kernel.
    pub domains: Vec<DomainTable>,
}

/// Comparisons of the same kernels on several machines or under several workloads as a page: one table of all, and behind it the
/// page of each.
pub fn comparisons(parts: &[Part<'_>]) -> String {
    let title = |part: &Part<'_>| {
        let from = &part.comparison.provenance;
        format!("{}, {}", from.machine, from.workload)
    };
    let all: Vec<Comparison> = parts.iter().map(|part| part.comparison.clone()).collect();
    let heading = format!("{} comparisons", parts.len());
    page(
        &heading,
        html! {
            h1 { (heading) }
            div.wide { (super::many::html(&all)) }
            ul { @for (at, part) in parts.iter().enumerate() { li { a href=(format!("#part-{at}")) { (title(part)) } } } }
            @for (at, part) in parts.iter().enumerate() {
                div id=(format!("part-{at}")) {
                    (compared_body(
                        "compare",
                        part.comparison,
                        super::cells::simulated_text(part.comparison),
                        (Vec::new(), html! {}),
                        (&part.runs, &part.moments),
                        &part.domains,
                    ))
                }
            }
        },
    )
}

/// A replay as a page: its comparison, and how far each kernel's replay is the recording.
pub fn replay(
    replayed: &Replayed,
    runs: &Timelines,
    moments: &[Moment],
    domains: &[DomainTable],
) -> String {
    let Replayed { comparison, fidelity } = replayed;
    let length =
        super::replay::length(fidelity, super::cells::duration_text(&comparison.provenance));
    let names = &comparison.kernels;
    let section = html! {
        h2 { "How far the replays are the recording" }
        div.wide { table {
            tr { th.l { "" } th.l { "" } th { "recorded" }
                @for (at, _) in names.iter().enumerate() { th { (letter(at)) } th { (letter(at)) "/rec" } } }
            @for cells in super::replay::pairs(fidelity) { tr {
                td.l { (breakable(&cells[0])) } td.l.muted { (cells[1]) }
                @for cell in &cells[2..] { td { (cell) } }
            } }
        } }
        ul {
            @for verdict in super::replay::verdicts(fidelity) { li { b { (verdict) } } }
            @for sentence in super::replay::sentences(fidelity) { li { (sentence) } }
        }
    };
    let above = fidelity.trust.lead_and_bounds();
    compared_page("replay", comparison, Some(length), (above, section), (runs, moments), domains)
}

fn compared_page(
    command: &str,
    comparison: &Comparison,
    length: Option<String>,
    (above, section): (Vec<String>, Markup),
    figures: (&Timelines, &[Moment]),
    domains: &[DomainTable],
) -> String {
    let from = &comparison.provenance;
    let title = format!("{}, {}", from.machine, from.workload);
    page(&title, compared_body(command, comparison, length, (above, section), figures, domains))
}

fn compared_body(
    command: &str,
    comparison: &Comparison,
    length: Option<String>,
    (above, section): (Vec<String>, Markup),
    (runs, moments): (&Timelines, &[Moment]),
    domains: &[DomainTable],
) -> Markup {
    let from = &comparison.provenance;
    let title = format!("{}, {}", from.machine, from.workload);
    let rows: Vec<_> = comparison.rows.iter().map(|row| row.row.clone()).collect();
    html! {
            h1 { (title) }
            p.muted { "schedtwin " (command) ": " (comparison.seeds.len()) " runs each, paired (" (seeds_text(&comparison.seeds)) ")"
                @if let Some(length) = length { ", " (length) } }
            @let named: Vec<String> = (0..comparison.kernels.len()).map(|kernel| comparison.named(kernel)).collect();
            (kernels(&named))
            @for said in &above { p.verdict { (said) } }
            @let scales = Scales::of(comparison);
            h2 { "What changed" }
            @for said in super::summary::sentences(comparison, Extent::Headlines, letter) { p.verdict { (said) } }
            (table::table(comparison, &table::first_rows(comparison), &scales, "first rows"))
            (figures::first(&comparison.kernels, &rows))
            h2 { "All rows" }
            (compared(comparison, &scales))
            (section)
            (figures::rest(&comparison.kernels, &rows))
            (timeline::all(runs))
            (figures::moments(moments))
            (domains::all(&comparison.kernels, domains))
            h2 { "Where this comes from" }
            ul {
                @for line in crash::lines(&comparison.crashes) { li { b.bad { (line) } } }
                @for notice in &comparison.notices { li { "note: " (notice) } }
                @for line in provenance_lines(from) { li { (line) } }
            }
    }
}

/// A run as a page.
pub fn run(
    report: &RunReport,
    runs: &Timelines,
    moments: &[Moment],
    domains: &[DomainTable],
) -> String {
    let RunReport { provenance: from, kernel, seed, result } = report;
    let title = format!("{}, {}", from.machine, from.workload);
    let names = [kernel.to_string()];
    let mut measured = Measured::new(1);
    measured.add(0, 0, result.metrics.clone());
    let shown = shown_metrics(result, Extent::More);
    page(
        &title,
        html! {
            h1 { (title) }
            p.muted { "schedtwin run: seed " (seed) ", " (time(result.simulated_ns)) " simulated, "
                (result.events) " events" }
            (kernels(&names))
            h2 { "What was measured" }
            div.wide { table {
                @for (title, metric) in &shown.rows { tr {
                    td.l { (breakable(title)) } td { (value(metric.value, metric.unit)) } td.l.muted { (metric.unit) }
                } }
            } }
            @if let Some(note) = shown.further(Extent::More) { p.legend { (note) } }
            (figures::all(&names, &measured.rows(1)))
            (timeline::all(runs))
            (figures::moments(moments))
            (domains::all(&names, domains))
            h2 { "Where this comes from" }
            ul {
                @for notice in &result.notices { li { "note: " (notice) } }
                @for line in provenance_lines(from) { li { (line) } }
            }
        },
    )
}

fn compared(comparison: &Comparison, scales: &Scales) -> Markup {
    let shown = shown_rows(comparison, Extent::More);
    html! {
        // Shown by the script, which it needs.
        form.tools hidden onsubmit="return false" {
            label { "Find " input type="search" placeholder="power big"; }
            label { input type="checkbox"; " only what changed" }
            output {}
        }
        (table::table(comparison, &shown.rows, scales, "all rows"))
        @if let Some(note) = shown.further(Extent::More) { p.legend { (note) } }
        p.legend { "Change in % of the first kernel (temperatures in K, shares in points: pt), with half the width of its 95% "
            "interval over the seeds. The bar is that interval; the runs behind it show when you point at it. Its scale is of its kind: to each side "
            (scales.words()) ", stretched about zero by square roots; an arrow at the end: it goes on beyond. " b.good { "Green" } " and " b.bad { "red" } ": p < 0.05 in the paired t-test, for better or worse. "
            "Where nothing changed 1 row in 20 is marked by chance." }
    }
}

/// Studies as a page; `moments` by study.
pub fn studies(studies: &Studies, moments: &[Vec<Moment>]) -> String {
    let title = match studies.ran.as_slice() {
        [one] => one.study.name.clone(),
        _ => "Published experiments and the twin".to_string(),
    };
    let counts = summary(studies.ran.iter().flat_map(|ran| &ran.cells));
    page(
        &title,
        html! {
            h1 { (title) }
            p { @for (verdict, count) in &counts { b { (count) } " " (verdict.word()) "  " } }
            p.legend { "agree: same sign and 0.5 to 2 times the published difference, or both within the noise. direction: same sign "
                "only. Base values are no predictions. robust: the sign is known, and the same in all sensitivity variants of the study; k/n: k of the n variants know it, too." }
            @for (at, ran) in studies.ran.iter().enumerate() {
                (study(ran))
                (execution::all(ran))
                @for measured in &ran.measured {
                    @if ran.measured.len() > 1 { h3 { (measured.setup) } }
                    (figures::all(&measured.kernels, &measured.rows))
                }
                @if let Some(moments) = moments.get(at) { (figures::moments(moments)) }
            }
            @if !studies.waiting.is_empty() {
                h2 { "Waiting" }
                ul { @for (name, waits) in &studies.waiting { li { (name) " waits for: " (waits.join(", ")) } } }
            }
            @if let Some(ran) = studies.ran.first() {
                h2 { "How far to trust this" }
                ul { @for line in provenance_lines(&ran.provenance) { @if !line.starts_with("inputs") { li { (line) } } } }
            }
        },
    )
}

fn study(ran: &Ran) -> Markup {
    let study = &ran.study;
    let names: Vec<String> = study.columns.iter().map(|column| column.kernel.clone()).collect();
    let ends = ran.cells.iter().flat_map(|cell| {
        let published = cell.published_diff_pct.map(|p| [p, p]);
        [cell.difference.and_then(|d| d.ci95_pct), published]
    });
    let reach = figures::reach(ends.flatten());
    html! {
        h2 { (study.name) ": " (study.description) }
        p { (study.published) }
        p.muted { (study.machine) ", " (study.workload) ": " (ran.seeds.len()) " runs each, paired (" (seeds_text(&ran.seeds)) ")" }
        p { (study.about.trim()) }
        (kernels(&names))
        @if !ran.cells.is_empty() {
            div.wide { table.cards {
                tr.heads { th.l { "" } th { "published" } th { "twin" } th { "publ. diff" } th { "twin's diff" }
                    th { (format!("-{reach:.0}% … +{reach:.0}%")) } th.l { "robust" } th.l { "verdict" } }
                @for (at, cell) in ran.cells.iter().enumerate() {
                    @let row = &study.rows[cell.row];
                    @let published = &row.cells[cell.cell];
                    @let cells = super::study::cells(study, cell);
                    @let class = match cell.verdict { Verdict::Agree | Verdict::Direction => "good", Verdict::Disagree => "bad", _ => "" };
                    // A title stands above its kernels: beside them the table would be wider than most windows.
                    @if at == 0 || ran.cells[at - 1].row != cell.row {
                        tr.title { td.l colspan="8" { b { (row.id) } " " (breakable(&row.title())) @if !row.unit.is_empty() { ", " (row.unit) } } }
                    }
                    tr {
                        td.l { (swatch(published.column)) (cells[0]) }
                        td data-is="published" { @match &published.published { Published::Text(text) => (text), _ => (cells[1]) } }
                        td data-is="twin" { (cells[2]) }
                        td data-is="published difference" { (cells[3]) }
                        td data-is="twin's difference" { (cells[4].trim_end_matches(" *")) @if !cells[5].is_empty() { span.muted { " " (cells[5].replace("+-", "±")) } }
                            @if cells[4].ends_with(" *") { " *" } }
                        td.bar { @if published.role == Role::Patched { (figures::interval(&Interval {
                            percent: cell.difference.and_then(|d| d.diff_pct),
                            ci95: cell.difference.and_then(|d| d.ci95_pct),
                            published: cell.published_diff_pct, class, reach, words: None,
                        })) } }
                        td.l data-is="robust" { (cells[6]) } td class=(format!("l {class}")) data-is="verdict" { (cells[7]) }
                    }
                }
            } }
            p.legend { "Differences in % of the base. The bar is the 95% interval of the twin's on a scale that is stretched about zero by square roots (an arrow: it goes on beyond the scale), the open mark what was published." }
        }
        @for table in super::sensitivity::tables(ran) {
            h3 { "On what the signs depend: " (letter(table.kernel)) " " (study.columns[table.kernel].kernel) }
            div.wide { table {
                tr { th.l { "" } @for title in &table.titles { th title=(title) { (title.split(' ').next().unwrap_or_default()) } } }
                @for (name, entries) in &table.lines { tr {
                    td.l title=(name) { (name.split(": ").next().unwrap_or_default()) }
                    @for (text, known) in entries { td { @if *known { b { (text.replace("+-", "±")) } } @else { (text.replace("+-", "±")) } } }
                } }
                tr { td.l { b { "robust" } } @for robust in &table.robust { td { b { (robust) } } } }
            } }
            p.legend { "Differences in % of the base with half the width of their 95% intervals; bold: the interval leaves out zero." }
        }
        ul { @for note in super::study::notes(ran) { @if !note.starts_with("with ") { li { (note) } } } }
    }
}

fn kernels(names: &[String]) -> Markup {
    html! { p.legend { @for (at, name) in names.iter().enumerate() {
        span { (swatch(at)) b { (letter(at)) } " " (name) @if at == 0 { " (baseline)" } }
    } } }
}

/// A name that may break after its underscores, and copies as it is.
fn breakable(name: &str) -> Markup {
    html! { @for piece in name.split_inclusive('_') { (piece) wbr; } }
}

fn swatch(kernel: usize) -> Markup {
    html! { span.swatch style=(format!("background:{}", colour(kernel))) {} }
}

/// A page of its own in the style of all: a title and what stands below.
pub fn page(title: &str, body: Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // Else browsers ask for an icon.
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body { main { (body) } script { (PreEscaped(include_str!("script.js"))) (PreEscaped(include_str!("timeline.js"))) } }
        }
    }
    .into_string()
}
