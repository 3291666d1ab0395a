// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin explain`: what happened and why, out of a record.

use std::io::{self, BufWriter, Write};

use schedtwin_input::did_you_mean_or;
use schedtwin_trace::explain::{self as trace, Query, Summary, What};
use schedtwin_types::{CpuId, FactKind};

use crate::arguments::Explain;
use crate::failure::Failure;
use crate::output;

/// Tasks that an error names, at most.
const MOST_TASKS: usize = 12;

pub fn explain(arguments: Explain) -> Result<(), Failure> {
    let Explain { record, at, task, cpu, window, event, limit, waits, chains, json, legend } =
        arguments;
    let Some(record) = record else { return output::print(trace::LEGEND) };
    let at = match at.as_deref().map(trace::parse_time).transpose() {
        Ok(at) => at,
        Err(message) => {
            return Err(Failure::bad(format!("failed to understand --at: {message}")));
        }
    };
    // Opened here to tell a file that cannot be read from an output that cannot be written.
    schedtwin_trace::open_readable(&record)
        .map_err(|error| Failure::of_file("read", &record, &error))?;
    let what = match (waits, chains) {
        (true, _) => What::Waits,
        (_, true) => What::Chains,
        _ => What::Entries,
    };
    let query = Query {
        at,
        window_ns: window,
        task,
        cpu: cpu.map(CpuId),
        events: event,
        limit: limit.unwrap_or(what.usual_limit()),
        what,
        json,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let summary = match trace::explain(&record, &query, &mut out) {
        Ok(summary) => summary,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Err(Failure::NobodyReads);
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(Failure::bad(format!(
                "failed to explain {}: {error}; a record is what `run --record` writes or, of a trace, `replay --record`",
                output::shown(&record)
            )));
        }
        Err(error) => return Err(Failure::of_file("explain", &record, &error)),
    };
    if legend {
        write!(out, "\n{}", trace::LEGEND).map_err(output::failure)?;
    }
    out.flush().map_err(output::failure)?;
    for problem in &summary.problems {
        output::tell(&format!("warning: {}: {problem}", output::shown(&record)));
    }
    let told = summary.problems.len() as u64;
    if summary.problem_count > told {
        output::tell(&format!("warning: and {} more lines", summary.problem_count - told));
    }
    conclude(&query, &summary, &output::shown(&record))
}

/// The decisions' names in a listing.
const DECISIONS: [&str; 6] = ["placement", "frequency", "idle", "balance", "preemption", "pick"];

/// Says what of a query the record does not have, or has more of.
fn conclude(query: &Query, summary: &Summary, name: &str) -> Result<(), Failure> {
    let asked = query.cpu.filter(|cpu| cpu.index() >= summary.nr_cpus);
    if let Some(cpu) = asked {
        let count = summary.nr_cpus;
        let plural = if count == 1 { "" } else { "s" };
        return Err(Failure::bad(format!("{name} has no CPU {cpu}: it has {count} CPU{plural}")));
    }
    if let Some(end) = summary.ends_before {
        let (seconds, ms) = (end / 1_000_000_000, end / 1_000_000 % 1000);
        return Err(Failure::bad(format!(
            "--at lies beyond {name}, which ends at {seconds}.{ms:03} s"
        )));
    }
    // Without an entry of the task or on the CPU there are no names.
    let names = || summary.event_names.iter().map(String::as_str);
    let unknown =
        |asked: &&String| names().next().is_some() && names().all(|name| name != asked.as_str());
    for unknown in query.events.iter().filter(unknown) {
        let is_decision = DECISIONS.contains(&unknown.as_str());
        if is_decision && !names().any(|name| DECISIONS.contains(&name)) {
            output::tell(&format!(
                "note: {name} has facts and no decisions: those are in the file that run --record wrote"
            ));
            continue;
        }
        let there = || Some(format!("there are {}", names().collect::<Vec<_>>().join(", ")));
        let help = did_you_mean_or(unknown, names(), there).unwrap_or_default();
        let text = format!("nothing here is called `{unknown}`; {help}");
        if summary.matched == 0 && !is_decision && !FactKind::NAMES.contains(&unknown.as_str()) {
            return Err(Failure::bad(text));
        }
        output::tell(&format!("note: {text}"));
    }
    match (&query.task, summary.matched) {
        (Some(task), _) if !summary.task_found => {
            let names = &summary.task_names;
            let some = || {
                let some = names.iter().take(MOST_TASKS).map(|name| format!("`{name}`"));
                let some = some.collect::<Vec<_>>().join(", ");
                Some(match names.len().saturating_sub(MOST_TASKS) {
                    0 => format!("it has {some}"),
                    rest => format!("it has {some} and {rest} more"),
                })
            };
            let help = did_you_mean_or(task, names.iter().map(String::as_str), some);
            let help = help.unwrap_or_default();
            Err(Failure::bad(format!("{name} has no task {task:?}; {help}")))
        }
        (_, 0) => {
            let hint = match (query.at, summary.before) {
                (Some(_), Some(before)) => {
                    let (seconds, ns) = (before / 1_000_000_000, before % 1_000_000_000);
                    format!("; the last before it: --at {seconds}.{ns:09}s; --window looks further")
                }
                (Some(_), None) => "; --window looks further around --at".to_string(),
                (None, _) if query.what == What::Chains => {
                    "; chains are in what run --record wrote".to_string()
                }
                (None, _) => String::new(),
            };
            output::tell(&format!("note: nothing matches{hint}"));
            Ok(())
        }
        (_, matched) => {
            // The heading of waits says how many there are.
            if matched > summary.listed && query.what != What::Waits {
                let more = matched - summary.listed;
                output::tell(&format!("note: {more} further entries match; --limit shows more"));
            }
            Ok(())
        }
    }
}
