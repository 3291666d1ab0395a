// SPDX-License-Identifier: GPL-2.0-or-later
//! Facts and decisions in words: a line each, and below it what the kernel looked at.

use super::{Listing, chain};
use crate::record::{CandidateLine, IdleInputLine, InputLine, RecordedDecision};
use schedtwin_types::printable;
use schedtwin_types::{
    CpuId, FactKind, FactWords, FrequencyRule, Ns, PolicyId, TaskGroupId, TaskId,
};
use std::fmt::Write as _;

/// The name of a decision in a listing.
pub(super) const fn name(decision: &RecordedDecision) -> &'static str {
    match decision {
        RecordedDecision::Placement { .. } => "placement",
        RecordedDecision::Frequency { .. } => "frequency",
        RecordedDecision::Idle { .. } => "idle",
        RecordedDecision::Balance { .. } => "balance",
        RecordedDecision::Preemption { .. } => "preemption",
        RecordedDecision::Pick { .. } => "pick",
    }
}

impl FactWords for Listing<'_> {
    fn task(&self, task: TaskId) -> String {
        self.who(task)
    }

    fn policy(&self, policy: PolicyId) -> String {
        Listing::policy(self, policy.0)
    }

    fn cgroup(&self, group: TaskGroupId) -> String {
        Listing::cgroup(self, group)
    }

    fn span(&self, ns: Ns) -> String {
        duration(ns)
    }
}

impl Listing<'_> {
    /// The path of a cgroup, `/` of the root; its number where the header does not say.
    pub(super) fn cgroup(&self, group: TaskGroupId) -> String {
        let Some(at) = group.0.checked_sub(1) else { return "/".to_string() };
        self.cgroups.get(at as usize).cloned().unwrap_or_else(|| group.0.to_string())
    }

    /// A task as the listing calls it: `ui-12`.
    pub(super) fn who(&self, task: TaskId) -> String {
        match self.tasks.get(task) {
            _ if task.is_idle() => "idle".to_string(),
            Some(info) => format!("{}-{task}", printable::line(&info.name)),
            None => format!("task-{task}"),
        }
    }

    pub(super) fn fact(&self, at: Ns, cpu: Option<CpuId>, kind: &FactKind) -> String {
        let (event, text) = kind.words(self, at);
        head(at, cpu, event, &text)
    }

    pub(super) fn decision(&self, at: Ns, cpu: CpuId, decision: &RecordedDecision) -> String {
        let who = |task: u32| self.who(TaskId(task));
        let cpu = Some(cpu);
        let head = |text: &str| head(at, cpu, name(decision), text);
        match decision {
            RecordedDecision::Placement { task, prev, chosen, rule, candidates } => {
                self.placement(head, *task, (*prev, *chosen), rule, candidates)
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
                let change = match khz == previous_khz {
                    // The governor has asked for nothing so far.
                    true if *rule == FrequencyRule::Changed.text() => {
                        format!("asks for {khz} kHz, as it is, for the first time")
                    }
                    true => format!("stays at {khz} kHz, {rule}"),
                    false => format!("{previous_khz} -> {khz} kHz, {rule}"),
                };
                let text = format!("{}: {change}", self.policy(*policy));
                // Refused before anything was looked at.
                if inputs.is_empty() {
                    let until = limited_until.map(|at| format!(" until {}", chain::clock(at)));
                    return head(&(text + &until.unwrap_or_default()));
                }
                let util = util.map_or_else(
                    || "util of the governor's own C: not known".to_string(),
                    |util| format!("util {util}"),
                );
                let steps = match *rule == FrequencyRule::Held.text() {
                    true => format!("{util} -> raw {raw_khz} kHz; the clock is held at {khz} kHz"),
                    false => format!("{util} -> raw {raw_khz} kHz -> table {khz} kHz"),
                };
                head(&text) + &signals(inputs) + &format!("{:INDENT$}    {steps}\n", "")
            }
            RecordedDecision::Idle {
                state,
                stop_tick,
                sleep_length_ns,
                rule,
                tick_rule,
                input,
            } => {
                let mut tick = if *stop_tick { "tick stops" } else { "tick stays" }.to_string();
                if let Some(rule) = tick_rule {
                    let _ = write!(tick, " ({rule})");
                }
                let sleep = match sleep_length_ns {
                    None => String::new(),
                    // A timer that never comes, less the time of day.
                    Some(i64::MIN..0) => ", the timer is overdue".to_string(),
                    Some(NEVER_NS..) => ", no timer".to_string(),
                    Some(ns @ 0..NEVER_NS) => format!(", sleep length {}", duration(*ns as u64)),
                };
                head(&format!("state {state}, {tick}{sleep}; {rule}")) + &memory(input)
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
                head(&text)
            }
            RecordedDecision::Preemption { task, curr, preempt, rule } => {
                let verb = if *preempt { "preempts" } else { "does not preempt" };
                let text = format!("{} {verb} {}; {rule}", who(*task), who(*curr));
                head(&text)
            }
            RecordedDecision::Pick { prev, next, rule, candidates } => {
                self.pick(head, (*prev, *next), rule, candidates)
            }
        }
    }

    fn placement(
        &self,
        head: impl Fn(&str) -> String,
        task: u32,
        (prev, chosen): (u16, u16),
        rule: &str,
        candidates: &[CandidateLine],
    ) -> String {
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
                if candidate.cpu == chosen { "=>" } else { "" }.to_string(),
                candidate.cpu.to_string(),
                candidate.role.to_string(),
                candidate.util.to_string(),
                candidate.capacity.to_string(),
                percent,
                number(candidate.energy_delta),
                number(candidate.max_util),
            ]
        }));
        let first = head(&format!("{}: {stays}, {rule}", self.who(TaskId(task))));
        if candidates.is_empty() { first } else { first + &table(&rows, 2) }
    }
}

/// Returns what an idle governor looked at beside the timers, in lines.
fn memory(input: &IdleInputLine) -> String {
    let list = |numbers: &mut dyn Iterator<Item = u32>| {
        numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
    };
    let mut text = String::new();
    if let Some(total) = input.total {
        // The array has room for more states than there are.
        let used = input.bins.iter().rposition(|bin| *bin != [0, 0]).map_or(1, |last| last + 1);
        let bins = &input.bins[..used.min(input.bins.len())];
        let hits = list(&mut bins.iter().map(|bin| bin[0]));
        let intercepts = list(&mut bins.iter().map(|bin| bin[1]));
        let _ = writeln!(
            text,
            "{:INDENT$}    from state 0 on: hits {hits}; intercepts {intercepts}; total {total}",
            ""
        );
    }
    if let Some([util, threshold]) = input.util {
        let _ = writeln!(text, "{:INDENT$}    util {util}, utilised above {threshold}", "");
    }
    if let Some(permille) = input.correction_permille {
        let last = input.intervals_us.iter().map(|us| match *us {
            u32::MAX => "-".to_string(),
            us => us.to_string(),
        });
        let last = last.collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            text,
            "{:INDENT$}    last sleeps {last} us; correction factor {}.{:03}",
            "",
            permille / 1000,
            permille % 1000
        );
    }
    text
}

/// Returns what the governor read of each CPU: a table, and a line for what is boosted or clamped.
fn signals(inputs: &[InputLine]) -> String {
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
            "max",
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
            max,
            perf,
            ..
        } = *input;
        let numbers = [util_avg, runnable_avg, util_est, boost, rt, dl, irq, min];
        let mut row = [const { String::new() }; 12];
        row[1] = cpu.to_string();
        for (cell, number) in row[2..].iter_mut().zip(numbers) {
            *cell = number.to_string();
        }
        row[10] = max.map_or("-".to_string(), |max| max.to_string());
        row[11] = perf.to_string();
        row
    }));
    let boosted = inputs.iter().filter(|input| input.boost != 0).map(|input| {
        let InputLine { cpu, util_avg, util_est, runnable_avg, boost, .. } = *input;
        let below = match util_est > util_avg {
            true => format!("util_est {util_est}"),
            false => format!("util_avg {util_avg}"),
        };
        format!(
            "{:INDENT$}    cpu {cpu}: runnable_avg {runnable_avg} > {below}: boosted by {boost}\n",
            ""
        )
    });
    let clamped = inputs.iter().filter_map(|input| {
        let (cpu, util) = (input.cpu, input.util_uclamp?);
        Some(format!("{:INDENT$}    cpu {cpu}: {util} with each task's clamps\n", ""))
    });
    table(&rows, usize::MAX) + &clamped.collect::<String>() + &boosted.collect::<String>()
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
