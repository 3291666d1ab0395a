// SPDX-License-Identifier: GPL-2.0-or-later
//! The figures of a page. Shapes are in a box of 1000 units of width that is stretched to the page.

use maud::{Markup, html};

use crate::many_parts;
use crate::measured::Row;
use crate::moment::{Moment, Piece};
use crate::report::cells::{letter, number};
use crate::stats;
use schedtwin_types::metric::Kind;

/// Kernels beyond these colours share them; letters tell them apart. The colours are Okabe and Ito's, which people with
/// any colour vision tell apart (jfly.uni-koeln.de/color): style.css has them for light and dark pages.
pub const COLOURS: usize = 7;

/// The colour of a kernel.
pub fn colour(kernel: usize) -> String {
    format!("var(--k{})", kernel % COLOURS)
}

/// Width of a box.
pub const WIDTH: f64 = 1000.0;

/// How far a scale of differences may reach to each side, percent.
const REACHES: [f64; 10] = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];

/// How far a scale of differences reaches to each side, percent: as little as holds nine of ten intervals, for one wild row
/// must not make all others invisible.
pub fn reach(ends: impl Iterator<Item = [f64; 2]>) -> f64 {
    let furthest: Vec<f64> = ends.map(|[low, high]| low.abs().max(high.abs())).collect();
    let holds = |reach: &f64| {
        10 * furthest.iter().filter(|end| *end <= reach).count() >= 9 * furthest.len()
    };
    if furthest.is_empty() {
        return 1.0;
    }
    REACHES.into_iter().find(holds).unwrap_or(REACHES[REACHES.len() - 1])
}

/// A difference with its interval.
pub struct Interval<'a> {
    /// The difference, percent.
    pub percent: Option<f64>,
    /// Its interval.
    pub ci95: Option<[f64; 2]>,
    /// The published value.
    pub published: Option<f64>,
    /// `good`, `bad` or none.
    pub class: &'static str,
    /// How far the scale reaches to each side.
    pub reach: f64,
    /// The runs behind it.
    pub words: Option<&'a str>,
}

/// An interval on a scale with zero in the middle. What lies beyond is drawn at the edge, with an arrow.
pub fn interval(of: &Interval) -> Markup {
    let x = |percent: f64| (0.5 + root((percent / of.reach).clamp(-1.0, 1.0)) / 2.0) * WIDTH;
    // Whether anything of it lies beyond that end of the scale.
    let beyond = |side: f64| {
        let marks = of.ci95.iter().flatten().chain(&of.percent).chain(&of.published);
        marks.into_iter().any(|percent| percent * side > of.reach)
    };
    let colour = match of.class {
        "good" => "var(--good)",
        "bad" => "var(--bad)",
        _ => "var(--plain)",
    };
    html! {
        svg viewBox="0 0 1000 20" height="16" preserveAspectRatio="none" role="img" aria-label="interval" {
            @if let Some(words) = of.words { title { (words) } rect.all x="0" y="0" width="1000" height="20" {} }
            line.zero x1="500" y1="0" x2="500" y2="20" {}
            @if let Some([low, high]) = of.ci95 {
                rect x=(at(x(low))) y="7" width=(at((x(high) - x(low)).max(4.0))) height="6" fill=(colour) fill-opacity="0.45" {}
            }
            @if let Some(percent) = of.percent {
                rect x=(at((x(percent) - 6.0).clamp(0.0, WIDTH - 12.0))) y="3" width="12" height="14" fill=(colour) {}
            }
            @if beyond(-1.0) { path.beyond d="M0 10L14 1V19Z" fill=(colour) {} }
            @if beyond(1.0) { path.beyond d="M1000 10L986 1V19Z" fill=(colour) {} }
            @if let Some(published) = of.published {
                rect.published x=(at((x(published) - 8.0).clamp(2.0, WIDTH - 18.0))) y="3" width="16" height="14" {}
            }
        }
    }
}

/// The place on a scale that is stretched about zero: the square root, with its sign. Where one row changes by 250 %, 5 % are seen.
fn root(part: f64) -> f64 {
    part.abs().sqrt().copysign(part)
}

pub fn at(x: f64) -> String {
    format!("{x:.1}")
}

/// Mean over the seeds of a kernel's samples.
fn mean(row: &Row, kernel: usize) -> Option<f64> {
    stats::estimate(&row.samples[kernel]).map(|estimate| estimate.mean)
}

fn label<'a>(row: &'a Row, key: &str) -> Option<&'a str> {
    row.labels.iter().find(|(k, _)| *k == key).map(|(_, value)| value.as_str())
}

/// All figures that the rows have data for.
pub fn all(kernels: &[String], rows: &[Row]) -> Markup {
    html! { (first(kernels, rows)) (rest(kernels, rows)) }
}

/// The figures of the first screen.
pub fn first(kernels: &[String], rows: &[Row]) -> Markup {
    html! { (durations(kernels, rows)) (power(kernels, rows)) }
}

/// The other figures.
pub fn rest(kernels: &[String], rows: &[Row]) -> Markup {
    html! {
        (frequencies(kernels, rows))
        (idle(kernels, rows))
    }
}

/// Quantiles of the frame durations, on a logarithmic scale.
fn durations(kernels: &[String], rows: &[Row]) -> Markup {
    const STATS: [&str; 4] = ["p50", "p90", "p99", "max"];
    let of = |stat: &str, kernel: usize| {
        let found = rows
            .iter()
            .find(|r| r.name == "frame_duration" && r.stat == stat && r.labels.is_empty());
        mean(found?, kernel).filter(|x| *x > 0.0)
    };
    let known: Vec<Vec<Option<f64>>> = (0..kernels.len())
        .map(|kernel| STATS.iter().map(|stat| of(stat, kernel)).collect())
        .collect();
    let values = || known.iter().flatten().copied().flatten();
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    if most <= 0.0 {
        return html! {};
    }
    // Whole powers of two around the values: an axis of doublings, found without logarithms of the system.
    let (from, to) =
        (libm::log2(least).floor(), libm::log2(most).ceil().max(libm::log2(least).floor() + 1.0));
    let x = |ms: f64| (libm::log2(ms) - from) / (to - from) * (WIDTH - 20.0) + 10.0;
    let unit = rows.iter().find(|r| r.name == "frame_duration").map_or("", |r| r.unit);
    html! {
        figure {
            h2 { "Frame durations" }
            div.rows {
                @for (kernel, quantiles) in known.iter().enumerate() {
                    div { (letter(kernel)) }
                    div { svg viewBox="0 0 1000 20" height="20" preserveAspectRatio="none" role="img" aria-label="quantiles" {
                        rect.track x="0" y="0" width="1000" height="20" {}
                        @if let (Some(p50), Some(p90)) = (quantiles[0], quantiles[1]) {
                            rect x=(at(x(p50))) y="6" width=(at((x(p90) - x(p50)).max(2.0))) height="8" fill=(colour(kernel)) {}
                        }
                        @if let (Some(p90), Some(p99)) = (quantiles[1], quantiles[2]) {
                            rect x=(at(x(p90))) y="6" width=(at((x(p99) - x(p90)).max(2.0))) height="8" fill=(colour(kernel)) fill-opacity="0.5" {}
                        }
                        @if let (Some(p99), Some(max)) = (quantiles[2], quantiles[3]) {
                            rect x=(at(x(p99))) y="6" width=(at((x(max) - x(p99)).max(2.0))) height="8" fill=(colour(kernel)) fill-opacity="0.22" {}
                        }
                    } }
                    div { (quantiles[3].map_or("-".into(), number)) " " (unit) }
                }
                div {}
                div.axis { @for doubling in 0..=((to - from) as i32) { span { (short(libm::exp2(from + f64::from(doubling)))) } } }
                div {}
            }
            p.legend { @for (kernel, quantiles) in known.iter().enumerate() {
                span { (letter(kernel)) @for (stat, value) in STATS.iter().zip(quantiles) {
                    " " (stat) " " (value.map_or("-".into(), number)) } }
            } }
            p.legend { "Half of the frames are below the bar; its shades are 50–90%, 90–99% and 99%–maximum, on an axis of doublings from "
                (number(libm::exp2(from))) " to " (number(libm::exp2(to))) " " (unit) ". Means over the seeds." }
        }
    }
}

/// A number of an axis: no zeros that say nothing.
fn short(x: f64) -> String {
    if x >= 1.0 { format!("{x:.0}") } else { number(x) }
}

/// Pieces of a stacked bar: width as a share, colour, opacity, words.
type Stack = Vec<(f64, String, f64, String)>;

fn stacked(pieces: &Stack) -> Markup {
    let mut from = 0.0;
    let placed: Vec<_> = pieces
        .iter()
        .map(|(share, colour, opacity, words)| {
            let x = from;
            from += share * WIDTH;
            (x, share * WIDTH, colour, opacity, words)
        })
        .collect();
    html! {
        svg viewBox="0 0 1000 20" height="20" preserveAspectRatio="none" role="img" aria-label="shares" {
            rect.track x="0" y="0" width="1000" height="20" {}
            @for (x, width, colour, opacity, words) in placed { @if width > 0.0 {
                rect x=(at(x)) y="1" width=(at(width)) height="18" fill=(colour) fill-opacity=(format!("{opacity:.2}")) { title { (words) } }
            } }
        }
    }
}

/// Power by frequency domain.
fn power(kernels: &[String], rows: &[Row]) -> Markup {
    let mean_power = |row: &&Row| row.name == "power" && row.stat == "mean";
    let of_domain = |row: &&Row| row.labels.len() == 1 && label(row, "domain").is_some();
    let mut parts: Vec<&Row> = rows.iter().filter(mean_power).filter(of_domain).collect();
    if parts.len() > many_parts::MANY {
        parts = rows.iter().filter(mean_power).filter(|row| row.is_whole()).collect();
    }
    let values = |kernel: usize| parts.iter().map(move |row| mean(row, kernel).unwrap_or(0.0));
    let most = (0..kernels.len()).map(|kernel| values(kernel).sum::<f64>()).fold(0.0, f64::max);
    if most <= 0.0 {
        return html! {};
    }
    let names: Vec<&str> =
        parts.iter().map(|row| label(row, "domain").unwrap_or("all domains")).collect();
    html! {
        figure {
            h2 { "Power" }
            div.rows { @for kernel in 0..kernels.len() {
                div { (letter(kernel)) }
                div { (stacked(&values(kernel).enumerate().map(|(at, mw)| {
                    (mw / most, colour(at + 2), 0.85, format!("{}: {} mW", names[at], number(mw)))
                }).collect())) }
                div { (number(values(kernel).sum())) " mW" }
            } }
            p.legend { @for (at, name) in names.iter().enumerate() {
                span { span.swatch style=(format!("background:{};opacity:.85", colour(at + 2))) {} (name)
                    @for kernel in 0..kernels.len() { " " (letter(kernel)) " " (number(mean(parts[at], kernel).unwrap_or(0.0))) } }
            } }
        }
    }
}

/// The parts of a machine that have a figure of their own, in the order of the rows; of many their mean alone.
fn drawn(rows: &[&Row], key: &str) -> Vec<String> {
    let names_of = |sums: bool| {
        let mut names = Vec::new();
        let rows = rows.iter().filter(|row| (row.kind != Kind::One) == sums);
        for name in rows.filter_map(|row| part(row, key)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    };
    let parts = names_of(false);
    if parts.len() > many_parts::MANY { names_of(true) } else { parts }
}

/// The part that a row is of, or `mean of 160 domains` of a row that is their mean.
fn part(row: &Row, key: &str) -> Option<String> {
    match row.kind {
        Kind::One => label(row, key).map(String::from),
        Kind::Mean(parts) => (parts.over == key).then(|| row.kind.to_string()),
        Kind::Lowest(_) | Kind::Highest(_) => None,
    }
}

/// Time at each frequency, by domain.
fn frequencies(kernels: &[String], rows: &[Row]) -> Markup {
    let parts: Vec<&Row> = rows.iter().filter(|row| row.name == "freq_residency").collect();
    if parts.is_empty() {
        return html! {};
    }
    html! {
        figure {
            h2 { "Frequencies" }
            @for domain in drawn(&parts, "domain") {
                @let of: Vec<&&Row> = parts.iter().filter(|row| part(row, "domain").as_ref() == Some(&domain)).collect();
                @let top = of.iter().filter_map(|row| khz(row)).fold(1.0, f64::max);
                h3 { (domain) }
                div.rows { @for kernel in 0..kernels.len() {
                    div { (letter(kernel)) }
                    div { (stacked(&of.iter().filter_map(|row| {
                        let (khz, share) = (khz(row)?, mean(row, kernel)?);
                        let words = format!("{} MHz: {}%", number(khz / 1000.0), number(share));
                        Some((share / 100.0, "var(--seq)".to_string(), shade(khz, top), words))
                    }).collect())) }
                    div { @let mhz = rows.iter().find(|r| r.name == "freq_mean" && r.labels.iter().all(|(key, _)| *key == "domain") && part(r, "domain").as_ref() == Some(&domain));
                        (mhz.and_then(|row| mean(row, kernel)).map_or("-".into(), number)) " MHz" }
                } }
                p.legend { @for khz in few(of.iter().filter_map(|row| khz(row)).collect()) {
                    span { span.swatch style=(format!("background:var(--seq);opacity:{:.2}", shade(khz, top))) {}
                        (format!("{:.0} MHz", khz / 1000.0)) }
                } }
            }
            p.legend { "Share of the time at each frequency, from the lowest (pale) to the highest (full): the shades of some are named; on the right the mean." }
        }
    }
}

/// How full the colour of a frequency is.
fn shade(khz: f64, top: f64) -> f64 {
    0.08 + 0.87 * khz / top
}

/// Frequencies that a legend shows, at most.
const SHADES: usize = 5;

/// Some of many frequencies from the lowest to the highest, evenly.
fn few(mut all: Vec<f64>) -> Vec<f64> {
    all.sort_by(f64::total_cmp);
    all.dedup();
    if all.len() <= SHADES {
        return all;
    }
    (0..SHADES).map(|at| all[at * (all.len() - 1) / (SHADES - 1)]).collect()
}

fn khz(row: &Row) -> Option<f64> {
    label(row, "khz")?.parse().ok()
}

/// Time in each idle state, by cluster.
fn idle(kernels: &[String], rows: &[Row]) -> Markup {
    let parts: Vec<&Row> = rows
        .iter()
        .filter(|row| row.name == "idle_residency" && part(row, "cluster").is_some())
        .collect();
    if parts.is_empty() {
        return html! {};
    }
    html! {
        figure {
            h2 { "Idle states" }
            @for cluster in drawn(&parts, "cluster") {
                @let of: Vec<&&Row> = parts.iter().filter(|row| part(row, "cluster").as_ref() == Some(&cluster)).collect();
                @let depth = of.len().max(1) as f64;
                h3 { (cluster) }
                div.rows { @for kernel in 0..kernels.len() {
                    @let shares: Vec<f64> = of.iter().map(|row| mean(row, kernel).unwrap_or(0.0)).collect();
                    div { (letter(kernel)) }
                    div { (stacked(&of.iter().zip(&shares).enumerate().map(|(at, (row, share))| {
                        let name = label(row, "state").unwrap_or("");
                        let opacity = 0.25 + 0.65 * (at + 1) as f64 / depth;
                        (share / 100.0, "var(--good)".to_string(), opacity, format!("{name}: {}%", number(*share)))
                    }).collect())) }
                    div { (number(100.0 - shares.iter().sum::<f64>())) "% busy" }
                } }
                p.legend { @for (row, at) in of.iter().zip(1..) {
                    span { span.swatch style=(format!("background:var(--good);opacity:{:.2}", 0.25 + 0.65 * f64::from(at) / depth)) {}
                        (label(row, "state").unwrap_or(""))
                        @for kernel in 0..kernels.len() { " " (letter(kernel)) " " (mean(row, kernel).map_or("-".into(), number)) "%" } }
                } }
            }
        }
    }
}

/// Of every kernel its longest wait.
pub fn moments(moments: &[Moment]) -> Markup {
    if moments.is_empty() {
        return html! {};
    }
    html! {
        figure {
            h2 { "The longest wait of " (moments[0].task) }
            p.legend { "Of all tasks it is the one that waited most under " (moments[0].kernel) ", all its waits taken together." }
            @for moment in moments { (one_moment(moment)) }
            p.legend {
                span { span.swatch style="background:var(--bad)" {} "the task that waited; its wait is dashed" }
                span { span.swatch style="background:var(--plain);opacity:.55" {} "others (hover for names)" }
                span { span.swatch style="background:var(--seq)" {} "frequency of a domain, from 0 to the highest in the window" }
            }
        }
    }
}

fn one_moment(moment: &Moment) -> Markup {
    let [from, to] = moment.window;
    let x = |ns: u64| ns.saturating_sub(from) as f64 / (to - from).max(1) as f64 * WIDTH;
    let ms = |ns: u64| format!("{:.3} ms", ns as f64 / 1e6);
    // Of a large machine: the CPUs on which something ran, the one that was waited for, and the clocks that changed.
    let many_cpus = moment.lanes.len() > many_parts::MANY;
    let has_lane = |(cpu, lane): &(usize, &Vec<Piece>)| {
        !many_cpus || !lane.is_empty() || *cpu == usize::from(moment.cpu)
    };
    let many_clocks = moment.frequencies.len() > many_parts::MANY;
    let fewest_steps = if many_clocks { 2 } else { 1 };
    html! {
        h3 { (moment.kernel) ", seed " (moment.seed) ": " (moment.task) " waits " (ms(moment.runs_at - moment.ready_at)) }
        p.caption { (caption(moment)) }
        div.lanes {
            @for (cpu, lane) in moment.lanes.iter().enumerate().filter(has_lane) {
                div.muted { "CPU " (cpu) }
                svg viewBox="0 0 1000 20" height="14" preserveAspectRatio="none" role="img" aria-label=(format!("CPU {cpu}")) {
                    rect.track x="0" y="0" width="1000" height="20" {}
                    @for piece in lane {
                        @let width = (x(piece.span[1]) - x(piece.span[0])).max(0.6);
                        rect x=(at(x(piece.span[0]))) y="2" width=(at(width)) height="16"
                            fill=(if piece.is_waiter { "var(--bad)" } else { "var(--plain)" })
                            fill-opacity=(if piece.is_waiter { "1" } else { "0.55" }) { title { (piece.task) } }
                    }
                    @if cpu == usize::from(moment.cpu) {
                        rect.wait x=(at(x(moment.ready_at))) y="2" width=(at((x(moment.runs_at) - x(moment.ready_at)).max(1.0))) height="16" {}
                    }
                }
            }
            @for (domain, steps) in moment.frequencies.iter().filter(|(_, steps)| steps.len() >= fewest_steps) {
                @let top = steps.iter().map(|(_, khz)| *khz).max().unwrap_or(0).max(1);
                div.muted { (domain) }
                svg viewBox="0 0 1000 20" height="22" preserveAspectRatio="none" role="img" aria-label=(format!("frequency of {domain}")) {
                    rect.track x="0" y="0" width="1000" height="20" {}
                    path.freq d=(steps_path(steps, top, &x)) {}
                }
            }
            div {}
            div.axis { span { (ms(from)) } span { (ms(to)) } }
        }
    }
}

/// In words what a moment shows: who had the CPU while the task waited, and which CPUs had nothing to do.
fn caption(moment: &Moment) -> String {
    let [from, to] = [moment.ready_at.max(moment.window[0]), moment.runs_at];
    let shown = (to - from).max(1);
    let within = |span: [u64; 2]| span[1].min(to).saturating_sub(span[0].max(from));
    let mut ran: Vec<(&str, u64)> = Vec::new();
    for piece in &moment.lanes[usize::from(moment.cpu)] {
        match ran.iter_mut().find(|(task, _)| *task == piece.task) {
            Some((_, time)) => *time += within(piece.span),
            None => ran.push((&piece.task, within(piece.span))),
        }
    }
    ran.retain(|(_, time)| 100 * time >= shown);
    ran.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let percent = |time: u64| (100 * time + shown / 2) / shown;
    let who: Vec<String> =
        ran.iter().take(3).map(|(task, time)| format!("{task} ({}%)", percent(*time))).collect();
    let who = match who.as_slice() {
        [] => "hardly anything ran there".to_string(),
        who => format!("{} ran there", who.join(", ")),
    };
    let is_idle = |lane: &&Vec<Piece>| lane.iter().all(|piece| within(piece.span) == 0);
    let idle = moment.lanes.iter().filter(is_idle).count();
    let idle = match idle {
        0 => "no CPU was idle all the time".to_string(),
        idle => format!("{idle} of {} CPUs were idle all the time", moment.lanes.len()),
    };
    format!("Between its wakeup and its run on CPU {} {who}; {idle}.", moment.cpu)
}

/// A staircase from the first step to the end of the window.
pub fn steps_path(steps: &[(u64, u32)], top: u32, x: &impl Fn(u64) -> f64) -> String {
    let y = |khz: u32| 19.0 - 18.0 * f64::from(khz) / f64::from(top);
    let mut path = String::new();
    for (number, (when, khz)) in steps.iter().enumerate() {
        let how = if number == 0 { "M" } else { "H" };
        path.push_str(&match how {
            "M" => format!("M{:.1} {:.1}", x(*when), y(*khz)),
            _ => format!("H{:.1}V{:.1}", x(*when), y(*khz)),
        });
    }
    if !path.is_empty() {
        path.push_str("H1000");
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_not_stretched_by_one_wild_row() {
        let mut ends = vec![[-3.0, 4.0]; 19];
        assert_eq!(reach(ends.iter().copied()), 5.0);
        ends.push([-900.0, 20.0]);
        assert_eq!(reach(ends.iter().copied()), 5.0);
        assert_eq!(reach([[-72.0, -72.0]].into_iter()), 100.0);
        assert_eq!(reach([[-720.0, 1.0]].into_iter()), 100.0, "drawn at the edge");
        assert_eq!(reach([].into_iter()), 1.0);
    }

    #[test]
    fn a_caption_says_who_ran_instead() {
        let piece = |from, to, task: &str| crate::moment::Piece {
            span: [from, to],
            task: task.into(),
            is_waiter: false,
        };
        let moment = Moment {
            kernel: "k".into(),
            seed: 1,
            task: "ui".into(),
            cpu: 1,
            ready_at: 1000,
            runs_at: 2000,
            window: [500, 2500],
            lanes: vec![
                vec![piece(600, 900, "before")],
                vec![piece(500, 1700, "b"), piece(1700, 1995, "a"), piece(1995, 2000, "c")],
            ],
            frequencies: Vec::new(),
        };
        assert_eq!(
            caption(&moment),
            "Between its wakeup and its run on CPU 1 b (70%), a (30%) ran there; 1 of 2 CPUs were idle all the time."
        );
    }
}
