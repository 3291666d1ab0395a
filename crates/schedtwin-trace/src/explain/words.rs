// SPDX-License-Identifier: GPL-2.0-or-later
//! Facts and decisions in words: a line each, and below it what the kernel looked at.

use super::{Listing, chain};
use crate::ftrace_text::state_letters;
use crate::perfetto::push_lines;
use crate::record::{InputLine, RecordedDecision};
use schedtwin_types::printable;
use schedtwin_types::{CpuId, FactKind, IpiKind, Ns, TaskId, WakeSource};

impl Listing<'_> {
    /// A task as the listing calls it: `ui-12`.
    pub(super) fn who(&self, task: TaskId) -> String {
        match self.tasks.get(task) {
            _ if task.is_idle() => "idle".to_string(),
            Some(info) => format!("{}-{task}", printable::line(&info.name)),
            None => format!("task-{task}"),
        }
    }

    pub(super) fn fact(&self, at: Ns, cpu: Option<CpuId>, kind: &FactKind) -> String {
        let who = |task: TaskId| self.who(task);
        let (event, text) = match *kind {
            FactKind::Switch { prev, next, prev_state } => {
                let state = state_letters(prev_state);
                ("sched_switch", format!("{} {state} ==> {}", who(prev), who(next)))
            }
            FactKind::Waking { task, source, prev_cpu } => {
                let source = match source {
                    WakeSource::Task => "a task",
                    WakeSource::Timer => "a timer",
                    WakeSource::Kernel => "the kernel",
                };
                ("sched_waking", format!("{} by {source}, last on CPU {prev_cpu}", who(task)))
            }
            FactKind::Wakeup { task, target, new } => (
                if new { "sched_wakeup_new" } else { "sched_wakeup" },
                format!("{} on CPU {target}", who(task)),
            ),
            FactKind::Migrate { task, from, to } => {
                ("sched_migrate_task", format!("{}: CPU {from} -> {to}", who(task)))
            }
            FactKind::Exit { task } => ("sched_process_exit", who(task)),
            FactKind::IdleEnter { state, tick_stopped } => {
                let tick = if tick_stopped { ", tick stopped" } else { "" };
                ("cpu_idle", format!("state {state}{tick}"))
            }
            // A Perfetto trace holds neither the state nor the residency of the way back.
            FactKind::IdleExit { residency_ns: 0, .. } => ("cpu_idle", "exit".to_string()),
            FactKind::IdleExit { state, residency_ns } => {
                ("cpu_idle", format!("exit from state {state} after {}", duration(residency_ns)))
            }
            FactKind::IdleMiss { state, below } => {
                let verdict = if below { "too shallow" } else { "too deep" };
                ("cpu_idle_miss", format!("state {state} was {verdict}"))
            }
            FactKind::Frequency { policy, khz, requested_at } => {
                let delay = match at.saturating_sub(requested_at) {
                    0 => String::new(),
                    delay => format!(", wanted for {}", duration(delay)),
                };
                ("cpu_frequency", format!("{}: {khz} kHz{delay}", self.policy(policy.0)))
            }
            FactKind::Tick => ("sched_tick", String::new()),
            FactKind::Ipi { target, kind } => {
                let kind = match kind {
                    IpiKind::Reschedule => "reschedule",
                    IpiKind::WakeList => "wake list",
                    IpiKind::NohzKick => "nohz kick",
                    IpiKind::IrqWork => "irq work",
                    IpiKind::Timer => "timer broadcast",
                };
                ("ipi", format!("{kind} to CPU {target}"))
            }
            FactKind::IrqEntry { lines } => {
                let mut names = Vec::new();
                push_lines(lines, &mut names);
                ("irq_handler_entry", String::from_utf8_lossy(&names).into_owned())
            }
            FactKind::IrqExit { spent_ns: 0 } => ("irq_handler_exit", String::new()),
            FactKind::IrqExit { spent_ns } => {
                ("irq_handler_exit", format!("after {}", duration(u64::from(spent_ns))))
            }
            FactKind::Balance { level, idle, moved } => {
                let idle = ["busy", "idle", "newidle"].get(usize::from(idle)).unwrap_or(&"?");
                let tasks = if moved == 1 { "task" } else { "tasks" };
                ("sched_balance_rq", format!("level {level}, {idle}: {moved} {tasks} moved"))
            }
            FactKind::Preempted { task } => ("preempted", who(task)),
            FactKind::DlThrottled { task } => ("dl_throttled", who(task)),
            FactKind::Overutilized { on } => {
                ("overutilized", if on { "on" } else { "off" }.to_string())
            }
            FactKind::CpuSignals { util_avg, runnable_avg, util_est } => (
                "cpu_signals",
                format!("util_avg {util_avg}, runnable_avg {runnable_avg}, util_est {util_est}"),
            ),
            FactKind::TaskSignals { task, util_avg, util_est, runnable_avg } => (
                "task_signals",
                format!(
                    "{}: util_avg {util_avg}, runnable_avg {runnable_avg}, util_est {util_est}",
                    who(task)
                ),
            ),
        };
        head(at, cpu, event, &text)
    }

    pub(super) fn decision(&self, at: Ns, cpu: CpuId, decision: &RecordedDecision) -> String {
        let who = |task: u32| self.who(TaskId(task));
        let cpu = Some(cpu);
        match decision {
            RecordedDecision::Placement { task, prev, chosen, rule, candidates } => {
                let stays = if prev == chosen {
                    format!("stays on CPU {chosen}")
                } else {
                    format!("CPU {prev} -> {chosen}")
                };
                let mut rows = vec![
                    ["", "cpu", "role", "util", "capacity", "use", "energy delta", "max util"]
                        .map(str::to_string),
                ];
                rows.extend(candidates.iter().map(|candidate| {
                    let number = |value: Option<u64>| value.map_or("-".into(), |v| v.to_string());
                    let percent = match candidate.capacity {
                        0 => "-".to_string(),
                        capacity => {
                            format!("{}%", candidate.util.saturating_mul(100) / capacity)
                        }
                    };
                    [
                        if candidate.cpu == *chosen { "=>" } else { "" }.to_string(),
                        candidate.cpu.to_string(),
                        candidate.role.to_string(),
                        candidate.util.to_string(),
                        candidate.capacity.to_string(),
                        percent,
                        number(candidate.energy_delta),
                        number(candidate.max_util),
                    ]
                }));
                let first = head(at, cpu, "placement", &format!("{}: {stays}, {rule}", who(*task)));
                if candidates.is_empty() { first } else { first + &table(&rows, 2) }
            }
            RecordedDecision::Frequency {
                policy,
                inputs,
                util,
                raw_khz,
                khz,
                previous_khz,
                rule,
                limited_until,
            } => {
                let change = if khz == previous_khz {
                    format!("stays at {khz} kHz")
                } else {
                    format!("{previous_khz} -> {khz} kHz")
                };
                let mut rows = vec![
                    [
                        "",
                        "cpu",
                        "util_avg",
                        "runnable_avg",
                        "util_est",
                        "boost",
                        "rt",
                        "dl",
                        "irq",
                        "min",
                        "perf",
                    ]
                    .map(str::to_string),
                ];
                rows.extend(inputs.iter().map(|input| {
                    let InputLine {
                        cpu,
                        util_avg,
                        runnable_avg,
                        util_est,
                        boost,
                        rt,
                        dl,
                        irq,
                        min,
                        perf,
                        ..
                    } = *input;
                    let numbers = [util_avg, runnable_avg, util_est, boost, rt, dl, irq, min, perf];
                    let mut row = [const { String::new() }; 11];
                    row[1] = cpu.to_string();
                    for (cell, number) in row[2..].iter_mut().zip(numbers) {
                        *cell = number.to_string();
                    }
                    row
                }));
                let text = format!("{}: {change}, {rule}", self.policy(*policy));
                // Refused before anything was looked at.
                if inputs.is_empty() {
                    let until = limited_until.map(|at| format!(" until {}", chain::clock(at)));
                    return head(at, cpu, "frequency", &(text + &until.unwrap_or_default()));
                }
                let boosted = inputs.iter().filter(|input| input.boost != 0).map(|input| {
                    let InputLine { cpu, util_avg, runnable_avg, boost, .. } = *input;
                    format!(
                        "{:INDENT$}    cpu {cpu}: runnable_avg {runnable_avg} > util_avg {util_avg}: \
                         boosted by {boost}\n",
                        ""
                    )
                });
                let clamped = inputs.iter().filter_map(|input| {
                    let (cpu, util) = (input.cpu, input.util_uclamp?);
                    Some(format!("{:INDENT$}    cpu {cpu}: {util} with each task's clamps\n", ""))
                });
                head(at, cpu, "frequency", &text)
                    + &table(&rows, usize::MAX)
                    + &clamped.collect::<String>()
                    + &boosted.collect::<String>()
                    + &format!(
                        "{:INDENT$}    util {util} -> raw {raw_khz} kHz -> table {khz} kHz\n",
                        ""
                    )
            }
            RecordedDecision::Idle { state, stop_tick, sleep_length_ns, rule } => {
                let tick = if *stop_tick { "tick stops" } else { "tick stays" };
                let sleep = match sleep_length_ns {
                    None => String::new(),
                    // A timer that never comes, less the time of day.
                    Some(i64::MIN..0) => ", the timer is overdue".to_string(),
                    Some(NEVER_NS..) => ", no timer".to_string(),
                    Some(ns @ 0..NEVER_NS) => format!(", sleep length {}", duration(*ns as u64)),
                };
                head(at, cpu, "idle", &format!("state {state}, {tick}{sleep}; {rule}"))
            }
            RecordedDecision::Balance {
                dst,
                src,
                level,
                idle,
                migration,
                imbalance,
                moved,
                rule,
            } => {
                let text = match src {
                    None => {
                        format!("CPU {dst} finds nothing to pull (level {level}, {idle}); {rule}")
                    }
                    Some(src) => {
                        let names: Vec<String> = moved.iter().map(|task| who(*task)).collect();
                        let names =
                            if names.is_empty() { "nothing".into() } else { names.join(", ") };
                        format!(
                            "CPU {dst} pulls {names} from CPU {src} (level {level}, {idle}, \
                             {migration}, imbalance {imbalance}); {rule}"
                        )
                    }
                };
                head(at, cpu, "balance", &text)
            }
            RecordedDecision::Preemption { task, curr, preempt, rule } => {
                let verb = if *preempt { "preempts" } else { "does not preempt" };
                let text = format!("{} {verb} {}; {rule}", who(*task), who(*curr));
                head(at, cpu, "preemption", &text)
            }
            RecordedDecision::Pick { prev, next, rule, candidates } => {
                self.pick((at, cpu), (*prev, *next), rule, candidates)
            }
        }
    }
}

/// Columns before an event's details: blocks are indented to half of them.
pub(super) const INDENT: usize = 22;

/// A line: time in seconds, CPU, event, details.
pub(super) fn head(at: Ns, cpu: Option<CpuId>, event: &str, text: &str) -> String {
    let cpu = cpu.map_or("  -".to_string(), |cpu| format!("{:03}", cpu.0));
    let (seconds, ns) = (at / 1_000_000_000, at % 1_000_000_000);
    let line = format!("{seconds:5}.{ns:09} [{cpu}] {event:<19} {text}");
    format!("{}\n", line.trim_end())
}

/// A span as one reads it.
pub(super) fn duration(ns: Ns) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..1_000_000 => format!("{}.{:03} us", ns / 1_000, ns % 1_000),
        _ => format!("{}.{:03} ms", ns / 1_000_000, ns / 1_000 % 1_000),
    }
}

/// The widest that a column is made: a name out of a file may be longer, and then stands out of it.
const WIDEST: usize = 200;

/// Sleeps from a century on have no end.
const NEVER_NS: i64 = 100 * 365 * 86_400 * 1_000_000_000;

/// Rows in aligned columns: numbers to the right, the column `text_column` to the left.
pub(super) fn table<const N: usize>(rows: &[[String; N]], text_column: usize) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; N] =
        std::array::from_fn(|column| width(column).unwrap_or(0).clamp(2, WIDEST));
    let mut text = String::new();
    for row in rows {
        let mut line = " ".repeat(INDENT);
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            let cell = if column == text_column {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            };
            line.push_str(if column == 0 { "" } else { "  " });
            line.push_str(&cell);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
