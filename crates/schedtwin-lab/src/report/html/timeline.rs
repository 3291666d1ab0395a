// SPDX-License-Identifier: GPL-2.0-or-later
//! The runs of a page, to zoom and to pan; a click tells who ran, and what the kernel decided there in `explain`'s words.
//!
//! The script draws them from one packed text: JSON, deflated, in base64. JSON of whole numbers: times in microseconds since the number
//! before, so that most are short. Without the script there are the words on the first difference.
//!
//! ```text
//! { "kernels": [{ "name", "to": us, "tasks": [name, ...],
//!     "lanes": [[gap, idle state + 1, length, task, ...] by CPU], "clamps": [[gap, least, most, ...] by CPU], "clocks": [[name, first CPU, [gap, MHz, ...]], ...],
//!     "told": [[us, CPU, words], ...],
//!     "end": us, "bin": us, "busy": [[percent by bin, ...] by CPU],
//!     "wait": [woken us, runs us, CPU] }], "parted": us }
//! ```

use std::io::Write;

use data_encoding::BASE64;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use maud::{Markup, html};
use schedtwin_types::Ns;
use serde_json::{Value, json};

use crate::report::cells::{letter, number};
use crate::timeline::{Busy, Domain, Timeline, Timelines};

fn us(ns: Ns) -> u64 {
    ns / 1000
}

/// The section; nothing where nothing was kept.
pub fn all(timelines: &Timelines) -> Markup {
    if timelines.of.iter().all(|one| one.lanes.iter().all(Vec::is_empty)) {
        return html! {};
    }
    let clamped =
        timelines.of.iter().flat_map(|one| &one.clamps).any(|changes| !changes.is_empty());
    html! {
        h2 { "The run with seed " (timelines.seed) }
        @if let Some((at, sides)) = &timelines.parted {
            p { "A and B first differ at " (number(*at as f64 / 1e9)) " s:" }
            div.sides { @for (side, words) in sides.iter().enumerate() { div { b { (letter(side)) } pre tabindex="0" { (words) } } } }
        }
        div.timeline data-packed=(packed(timelines)) hidden {
            div.tools {
                button type="button" data-do="in" { "zoom in" }
                button type="button" data-do="out" { "zoom out" }
                button type="button" data-do="left" { "← earlier" }
                button type="button" data-do="right" { "later →" }
                button type="button" data-do="all" { "all" }
                @if timelines.of.iter().any(|one| one.wait.is_some()) { button type="button" data-do="wait" { "longest wait" } }
                @if timelines.parted.is_some() { button type="button" data-do="parted" { "first difference" } }
                button type="button" data-do="save" { "save as PNG" }
                label { "Task " select { option value="" { "all" } } }
                output {}
            }
            div.canvases {}
            p.legend { "Drag to pan, turn the wheel to zoom, click to see who ran and why. Each lane is a CPU; the line above the lanes of a domain is its clock, "
                "the pale ground an idle state: the deeper, the paler. "
                @if clamped { "A line in a lane is a clamp of the CPU's tasks, 1024 at the top: at least so fast (full), at most so fast (dashed). " }
                "Of a run with more than a page can bear the beginning is shown so, and of the rest how busy each CPU was. "
                "Decisions are kept around the longest wait and the first difference; elsewhere a click gives the command that prints them." }
            pre.why tabindex="0" aria-live="polite" {}
        }
    }
}

fn packed(timelines: &Timelines) -> String {
    let text = json!({
        "kernels": timelines.of.iter().map(one).collect::<Vec<_>>(),
        "parted": timelines.parted.as_ref().map(|(at, _)| us(*at)),
    });
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.to_string().as_bytes()).expect("memory takes it");
    BASE64.encode(&encoder.finish().expect("memory takes it"))
}

/// Of each CPU how busy it was, percent by interval, up to the end of the run.
fn busy(timeline: &Timeline) -> Vec<Vec<u64>> {
    let Busy { width, end, lanes } = &timeline.busy;
    let bins = end.div_ceil(*width) as usize;
    let percent = |ns: &Ns| (ns * 100).div_ceil(*width);
    lanes.iter().map(|lane| lane[..bins.min(lane.len())].iter().map(percent).collect()).collect()
}

fn one(timeline: &Timeline) -> Value {
    let lane = |stays: &Vec<crate::timeline::Stay>| {
        let mut last = 0;
        let mut numbers: Vec<u64> = Vec::new();
        for stay in stays {
            let [from, to] = stay.span.map(us);
            let idle = stay.after_idle.map_or(0, |state| u64::from(state) + 1);
            numbers.extend([from - last, idle, to - from, u64::from(stay.task)]);
            last = to;
        }
        numbers
    };
    let clocks = |clocks: &Vec<(Ns, u32)>| {
        let mut last = 0;
        let mut numbers = Vec::new();
        for (at, khz) in clocks {
            let at = us(*at).max(last);
            numbers.extend([at - last, u64::from(khz / 1000)]);
            last = at;
        }
        numbers
    };
    let told = timeline.told.iter().map(|(at, cpu, words)| json!([us(*at), cpu, words]));
    let domain = |of: &Domain| json!([of.name, of.first_cpu, clocks(&of.clocks)]);
    let clamps = |changes: &Vec<(Ns, [u32; 2])>| {
        let mut last = 0;
        let mut numbers = Vec::new();
        for (at, [least, most]) in changes {
            let at = us(*at).max(last);
            numbers.extend([at - last, u64::from(*least), u64::from(*most)]);
            last = at;
        }
        numbers
    };
    json!({
        "name": timeline.kernel,
        "to": us(timeline.to),
        "tasks": timeline.tasks,
        "lanes": timeline.lanes.iter().map(lane).collect::<Vec<_>>(),
        "clamps": timeline.clamps.iter().map(clamps).collect::<Vec<_>>(),
        "clocks": timeline.domains.iter().map(domain).collect::<Vec<_>>(),
        "told": told.collect::<Vec<_>>(),
        "end": us(timeline.busy.end),
        "bin": us(timeline.busy.width),
        "busy": if timeline.to < timeline.busy.end { busy(timeline) } else { Vec::new() },
        "wait": timeline.wait.map(|(woken, runs, cpu)| json!([us(woken), us(runs), cpu])),
    })
}
