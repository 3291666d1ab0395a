// SPDX-License-Identifier: GPL-2.0-or-later
//! `replay --first-difference` with one kernel: where the replay parts from the recording, and why.

use std::fmt::Write;

use schedtwin_engine::recording::{Differences, Kind, Parting, TraceRecording, parting};
use schedtwin_lab::crash;
use schedtwin_lab::twin::Column;
use schedtwin_types::printable;

use crate::arguments::Printing;
use crate::failure::Failure;
use crate::output;

/// Reasons and threads of a kind that are named.
const NAMED: usize = 3;

/// Replays the recording, compares, and prints.
pub fn print(
    column: &Column,
    trace: &TraceRecording,
    seed: u64,
    printing: &Printing,
) -> Result<(), Failure> {
    let found = crash::caught(|| parting(&column.scenario, trace, seed));
    let found = found.map_err(|panic| {
        let kernel = printable::line(&column.kernel);
        Failure::Failed(vec![format!("{kernel}, seed {seed}: panicked: {panic}")])
    })?;
    output::print_within(&text(&column.kernel, seed, &found), printing.columns())
}

fn text(kernel: &str, seed: u64, found: &Parting) -> String {
    let kernel = printable::line(kernel);
    let mut text = format!(
        "the recording and its replay on {kernel}, seed {seed}: {} of {} recorded sleeps are compared\n",
        found.compared, found.sleeps
    );
    let Some(first) = found.first() else {
        text.push_str("\nthey do not differ in where threads go on, how often they sleep or lose their CPUs\n");
        return text;
    };
    text.push_str("\nhow the replay differs\n");
    for kind in Kind::ALL {
        let none = Differences::default();
        let of_kind = found.kinds.get(&kind).unwrap_or(&none);
        let share = 100.0 * of_kind.count as f64 / (found.compared.max(1)) as f64;
        writeln!(text, "  {:<26} {:>8}  {share:5.1}%", kind.text(), of_kind.count).expect("text");
        for (title, counts) in [("why", &of_kind.by_reason), ("who", &of_kind.by_thread)] {
            if !counts.is_empty() {
                writeln!(text, "      {title}: {}", listed(counts)).expect("text");
            }
        }
    }
    let others = Kind::ALL.into_iter().filter(|kind| *kind != first);
    for (title, kind) in std::iter::once(("the first of all", first))
        .chain(others.map(|kind| ("the first of its kind", kind)))
    {
        if let Some(of_kind) = found.kinds.get(&kind) {
            push_first(&mut text, title, kind, of_kind);
        }
    }
    text
}

fn push_first(text: &mut String, title: &str, kind: Kind, of_kind: &Differences) {
    let Some(first) = &of_kind.first else { return };
    let thread = printable::line(&first.thread);
    let at = seconds(first.at);
    write!(text, "\n{title}, at {at} s: {thread} {}\n", kind.text()).expect("text");
    writeln!(text, "  recorded  {}", printable::line(&first.recorded)).expect("text");
    writeln!(text, "  replayed  {}", printable::line(&first.replayed)).expect("text");
    for line in first.decisions.iter().flat_map(|decision| decision.lines()) {
        writeln!(text, "    {}", printable::line(line)).expect("text");
    }
    let shown = shell_quoted(&first.task);
    writeln!(
        text,
        "  more      replay --record r.rec, then schedtwin explain r.rec --at {}s --task {shown}",
        seconds(first.replay_at)
    )
    .expect("text");
}

/// The most frequent of counted names.
fn listed(counts: &[(String, u64)]) -> String {
    let named = counts.iter().take(NAMED);
    let mut names: Vec<String> =
        named.map(|(name, count)| format!("{} {count}", printable::line(name))).collect();
    let more = counts.len().saturating_sub(NAMED);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

fn shell_quoted(name: &str) -> String {
    format!("'{}'", printable::line(name).replace('\'', "'\\''"))
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}
