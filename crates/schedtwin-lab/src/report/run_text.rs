// SPDX-License-Identifier: GPL-2.0-or-later
//! One run as text: its metrics, then what the tasks and the CPUs did.

use schedtwin_engine::result::{CpuResult, RunResult, TaskResult};

use super::cells::{
    further, number, plain_table, provenance_lines, section, shown_metrics, time, value, wrap,
};
use super::{Extent, RunReport};
use crate::verdict;

/// The widest that a column of titles is made.
const WIDEST: usize = 1000;

/// Tasks and CPUs listed unless all are asked for.
const LISTED: usize = 16;

pub fn render(report: &RunReport, extent: Extent, width: usize) -> String {
    let RunReport { provenance, kernel, seed, result } = report;
    let simulated = time(result.simulated_ns);
    let line = format!(
        "{}, {}, {kernel}, seed {seed}: {simulated} simulated, {} events",
        provenance.machine, provenance.workload, result.events
    );
    let mut text = wrap(&line, width, "  ");
    for grave in graves(result) {
        text.push('\n');
        text.push_str(&wrap(&grave, width, "  "));
    }
    let left_out = metrics(result, extent, &mut text);
    // Who named metrics wants nothing else.
    if extent != Extent::Chosen {
        tasks(&result.tasks, extent, &mut text);
        cpus(&result.cpus, result.simulated_ns, extent, &mut text);
    }
    text.push('\n');
    if let Some(left_out) = left_out {
        text.push_str(&format!("{left_out}\n"));
    }
    for line in
        result.notices.iter().map(|n| format!("note: {n}")).chain(provenance_lines(provenance))
    {
        text.push_str(&wrap(&line, width, "  "));
    }
    text.push_str(&format!("execution: {:016x}\n", result.digest));
    text
}

/// What ended the run or kept it from ending, and the properties that it broke: before any number.
fn graves(result: &RunResult) -> Vec<String> {
    let ended = result.ended.iter().map(|what| format!("NOT AS ASKED: {what}"));
    let broken = result.broken.iter();
    let broken = broken.map(|b| format!("BROKEN: {}: {}", b.property, verdict::words(b)));
    ended.chain(broken).collect()
}

fn metrics(result: &RunResult, extent: Extent, text: &mut String) -> Option<String> {
    let shown = shown_metrics(result, extent);
    // Titles of all groups take part in every group's width, so that values stand in one column.
    let width = shown.rows.iter().map(|(title, _)| title.chars().count()).max().unwrap_or(0);
    // A name may be as long as a file; it then stands out of the column.
    let width = width.min(WIDEST);
    for group in shown.rows.chunk_by(|(_, a), (_, b)| section(a.name) == section(b.name)) {
        text.push('\n');
        let rows = group.iter().map(|(title, metric)| {
            let value = value(metric.value, metric.unit);
            vec![format!("{title:width$}"), format!("{value:>10}"), metric.unit.to_string()]
        });
        text.push_str(&plain_table(rows.collect(), 1, &[2]));
    }
    shown.further(extent)
}

fn tasks(tasks: &[TaskResult], extent: Extent, text: &mut String) {
    let mut busiest: Vec<&TaskResult> = tasks.iter().collect();
    busiest.sort_by_key(|task| (std::cmp::Reverse(task.cpu_time_ns), task.id));
    let listed = if extent == Extent::All { busiest.len() } else { busiest.len().min(LISTED) };
    if listed == 0 {
        return;
    }
    let mut rows = vec![
        ["task", "id", "cpu time ms", "jobs", "switches", "migrations", "mostly on"]
            .map(String::from)
            .to_vec(),
    ];
    for task in &busiest[..listed] {
        rows.push(vec![
            task.name.clone(),
            task.id.to_string(),
            number(milliseconds(task.cpu_time_ns)),
            task.jobs.to_string(),
            task.switches.to_string(),
            task.migrations.to_string(),
            mostly_on(task),
        ]);
    }
    text.push('\n');
    text.push_str(&plain_table(rows, 1, &[6]));
    if listed < busiest.len() {
        text.push_str(&format!("... {}: --all\n", further(busiest.len() - listed, "task")));
    }
}

/// The CPU that a task was on longest and its share of the task's time.
fn mostly_on(task: &TaskResult) -> String {
    let most = task
        .cpu_time_by_cpu_ns
        .iter()
        .enumerate()
        .max_by_key(|(cpu, ns)| (**ns, std::cmp::Reverse(*cpu)));
    match most {
        Some((cpu, ns)) if *ns > 0 => {
            format!("CPU {cpu} ({:.0}%)", 100.0 * *ns as f64 / task.cpu_time_ns.max(1) as f64)
        }
        _ => "-".to_string(),
    }
}

fn cpus(cpus: &[CpuResult], simulated_ns: u64, extent: Extent, text: &mut String) {
    let listed = if extent == Extent::All { cpus.len() } else { cpus.len().min(LISTED) };
    if listed == 0 {
        return;
    }
    let states = cpus.iter().map(|cpu| cpu.idle_ns.len()).max().unwrap_or(0);
    let mut header = vec!["cpu".to_string(), "busy %".to_string()];
    header.extend((0..states).map(|state| format!("idle{state} %")));
    header.push("mean MHz".to_string());
    let mut rows = vec![header];
    let share = |ns: u64| format!("{:.1}", 100.0 * ns as f64 / simulated_ns.max(1) as f64);
    for cpu in &cpus[..listed] {
        let mut row = vec![cpu.cpu.to_string(), share(cpu.busy_ns)];
        row.extend(
            (0..states).map(|state| cpu.idle_ns.get(state).map_or("-".into(), |ns| share(*ns))),
        );
        row.push(mean_mhz(cpu));
        rows.push(row);
    }
    text.push('\n');
    text.push_str(&plain_table(rows, 1, &[]));
    if listed < cpus.len() {
        text.push_str(&format!("... {}: --all\n", further(cpus.len() - listed, "CPU")));
    }
}

fn mean_mhz(cpu: &CpuResult) -> String {
    let time: u128 = cpu.frequency_ns.iter().map(|(_, ns)| u128::from(*ns)).sum();
    let weighted: u128 =
        cpu.frequency_ns.iter().map(|(khz, ns)| u128::from(*khz) * u128::from(*ns)).sum();
    match time {
        0 => "-".to_string(),
        _ => format!("{:.0}", weighted as f64 / time as f64 / 1000.0),
    }
}

fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}
