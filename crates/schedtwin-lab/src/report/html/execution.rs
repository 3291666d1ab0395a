// SPDX-License-Identifier: GPL-2.0-or-later
//! Executions as pictures: the recording above, the twin below, on the same relative time.

use maud::{Markup, html};

use super::figures::{WIDTH, at, colour, steps_path};
use crate::report::cells::letter;
use crate::report::execution::{cells, conclusion};
use crate::study::execution::{Execution, PARTS, Stage};
use crate::study::run::Ran;

/// How much of a stage is shown at a scale on which single changes can be seen, ns.
const CLOSE_UP: u64 = 200_000_000;

/// All executions of a study; nothing where there are none.
pub fn all(ran: &Ran) -> Markup {
    if ran.executions.is_empty() {
        return html! {};
    }
    html! {
        h2 { "What happened, beside the recordings" }
        p { (conclusion(ran)) "." }
        @for (number, executed) in ran.study.executions.iter().enumerate() {
            h3 { (executed.id) ": " (executed.recording.about) }
            @let judged: Vec<_> = ran.executions.iter().filter(|one| one.execution == number).collect();
            div.wide { table.cards {
                tr.heads { th.l { "" } th.l { "" } th { "recorded" } th { "twin" } th { "distance" } th { "limit" } th.l { "" } }
                @for one in &judged { @for (line, [figure, board, twin, distance, limit, word]) in cells(one).into_iter().enumerate() { tr {
                    td.l { @if line == 0 { span.swatch style=(format!("background:{}", colour(one.column))) {} (letter(one.column)) " " (ran.study.columns[one.column].kernel) } }
                    td.l { (figure) } td data-is="recorded" { (board) } td data-is="twin" { (twin) } td data-is="distance" { (distance) } td data-is="limit" { (limit) }
                    td class=(match word.as_str() { "in" => "l good", "out" => "l bad", _ => "l" }) data-is="verdict" { (word) }
                } } }
                @for one in &judged { @if let Some(why_not) = &one.why_not { tr {
                    td.l { (letter(one.column)) } td.l colspan="6" { (why_not) }
                } } }
            } }
            (picture("recorded", "var(--fg)", &executed.recording.execution))
            @for one in &judged { @if let Some(shown) = &one.shown {
                (picture(&format!("{} {}", letter(one.column), ran.study.columns[one.column].kernel), &colour(one.column), shown))
            } }
        }
        p.legend { "Each CPU is a line from the first to the last run of the tasks, in hundredths: the darker, the more tasks sit on it (hover for "
            "how many). The twin's picture is that of its first seed. Of a stage the clock is shown from its beginning to its end, a close-up of "
            "200 ms from its middle, and the utilisation of its CPU's queue, from 0 to 1280." }
    }
}

/// One execution: who sat where, and the stage.
pub(super) fn picture(name: &str, colour: &str, execution: &Execution) -> Markup {
    let nr_cpus = execution.tasks.iter().map(|task| task.ran.len()).max().unwrap_or(0);
    let most = execution.tasks.len().clamp(1, 5) as f64;
    html! {
        p.caption { b { (name) } }
        div.lanes {
            @for cpu in 0..nr_cpus {
                div.muted { "CPU " (cpu) }
                svg viewBox="0 0 1000 20" height="12" preserveAspectRatio="none" role="img" aria-label=(format!("{name}, CPU {cpu}")) {
                    rect.track x="0" y="0" width="1000" height="20" {}
                    @for (from, to, tasks) in crowds(execution, cpu) {
                        rect x=(at(from as f64 * WIDTH / PARTS as f64)) y="0" width=(at((to - from) as f64 * WIDTH / PARTS as f64)) height="20"
                            fill=(colour) fill-opacity=(format!("{:.2}", (tasks as f64 / most).min(1.0))) { title { (tasks) } }
                    }
                }
            }
            @if let Some(stage) = &execution.stage {
                @let middle = (stage.span[0] + stage.span[1]) / 2;
                (clock("clock", stage, stage.span))
                (clock("close-up", stage, [middle, (middle + CLOSE_UP).min(stage.span[1])]))
                div.muted { "util" }
                svg viewBox="0 0 1000 20" height="22" preserveAspectRatio="none" role="img" aria-label="utilisation" {
                    rect.track x="0" y="0" width="1000" height="20" {}
                    path.freq d=(line(&stage.util)) {}
                }
            }
        }
    }
}

fn clock(name: &str, stage: &Stage, span: [u64; 2]) -> Markup {
    let x = |ns: u64| ns.saturating_sub(span[0]) as f64 / (span[1] - span[0]).max(1) as f64 * WIDTH;
    let top = stage.clock.iter().map(|step| step.1).max().unwrap_or(1).max(1);
    // The last step before the span is the frequency at its beginning.
    let first = stage.clock.partition_point(|step| step.0 <= span[0]).saturating_sub(1);
    let steps: Vec<(u64, u32)> = stage.clock[first..]
        .iter()
        .take_while(|step| step.0 < span[1])
        .map(|(when, mhz)| ((*when).max(span[0]), *mhz))
        .collect();
    html! {
        div.muted { (name) }
        svg viewBox="0 0 1000 20" height="22" preserveAspectRatio="none" role="img" aria-label=(name) {
            rect.track x="0" y="0" width="1000" height="20" {}
            path.freq d=(steps_path(&steps, top, &x)) {}
        }
    }
}

/// From which part to which how many tasks sit on a CPU, where any does.
fn crowds(execution: &Execution, cpu: usize) -> Vec<(usize, usize, usize)> {
    let here = |part: usize| {
        let sits = |seat: Option<u16>| seat.is_some_and(|seat| usize::from(seat) == cpu);
        execution.tasks.iter().filter(|task| sits(task.seats[part])).count()
    };
    let mut crowds: Vec<(usize, usize, usize)> = Vec::new();
    for part in 0..PARTS {
        let tasks = here(part);
        match crowds.last_mut() {
            Some((_, to, same)) if *to == part && *same == tasks => *to += 1,
            _ => crowds.push((part, part + 1, tasks)),
        }
    }
    crowds.retain(|(_, _, tasks)| *tasks > 0);
    crowds
}

/// A line through the means of the parts.
fn line(util: &[f64]) -> String {
    let mut path = String::new();
    for (part, value) in util.iter().enumerate() {
        let x = (part as f64 + 0.5) * WIDTH / PARTS as f64;
        let y = 20.0 - 20.0 * (value / 1280.0).min(1.0);
        path.push_str(&format!("{}{x:.1} {y:.1}", if part == 0 { "M" } else { "L" }));
    }
    path
}
