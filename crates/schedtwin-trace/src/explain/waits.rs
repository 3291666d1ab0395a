// SPDX-License-Identifier: GPL-2.0-or-later
//! The longest waits for a CPU: who waited, why, and what ran there meanwhile.
//!
//! A wait begins when a task is woken (`sched_waking`) or leaves its CPU while it could go on (`R`, `R+`), and ends with the
//! switch to it, or with the record. What ran meanwhile is what the CPUs ran on whose queues the task stood. *Throttled* is
//! the part of a wait in which the `cpu.max` of its cgroup, or of one above, kept the task from its CPU.
//!
//! ```text
//!        waited            since    cpu  task      why                  on its CPU meanwhile
//!      7.406 ms      0.992012302      4  ui-3-16   woken by kworker-24  kworker-23-36 4.100 ms, kworker-24-37 3.306 ms
//! ```

use super::Listing;
use super::chain::clock;
use super::words::duration;
use schedtwin_types::printable;
use schedtwin_types::{CpuId, FactKind, Ns, TaskGroupId, TaskId, TaskState, WakeSource};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::io;

/// Switches that are kept of each CPU: of a wait that is longer, the end is told.
const SWITCHES_KEPT: usize = 16_384;
/// Spans that are kept of each throttled queue.
const THROTTLES_KEPT: usize = 16_384;
/// Tasks that are named of those which ran meanwhile.
const MEANWHILE_SHOWN: usize = 4;

/// Why a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// A task woke it.
    WokenBy(TaskId),
    /// Something else did.
    Woken(WakeSource),
    /// It had to leave for another task, or gave its CPU up.
    Left { next: TaskId, preempted: bool },
}

/// A wait that goes on.
#[derive(Clone, Debug)]
struct Waiting {
    since: Ns,
    why: Why,
    /// On whose queue it stands, and since when; the first is the CPU that it ran on last.
    queues: Vec<(CpuId, Ns)>,
}

/// A wait.
#[derive(Clone, Debug)]
struct Wait {
    task: TaskId,
    since: Ns,
    ns: Ns,
    cpu: CpuId,
    why: Why,
    /// Changes of its queue.
    moves: usize,
    /// For how long its cgroup was throttled on the CPU of its queue.
    throttled: Ns,
    /// Its cgroup.
    group: TaskGroupId,
    /// It still waits when the record ends.
    open: bool,
    /// Tasks that ran on its CPU, and for how long: the longest first.
    meanwhile: Vec<(TaskId, Ns)>,
}

/// A CPU's last switches: when, and to whom.
#[derive(Clone, Debug, Default)]
struct Switches(VecDeque<(Ns, TaskId)>);

impl Switches {
    fn running(&self) -> Option<TaskId> {
        self.0.back().map(|(_, task)| *task)
    }

    fn add(&mut self, at: Ns, next: TaskId) {
        if self.0.len() == SWITCHES_KEPT {
            self.0.pop_front();
        }
        self.0.push_back((at, next));
    }

    /// Adds how long each task ran from one moment to another.
    fn sum(&self, from: Ns, to: Ns, sums: &mut BTreeMap<TaskId, Ns>) {
        let mut end = to;
        for (at, task) in self.0.iter().rev() {
            let begin = (*at).max(from);
            if begin < end {
                *sums.entry(*task).or_default() += end - begin;
                end = begin;
            }
            if *at <= from {
                return;
            }
        }
    }
}

/// When a queue was throttled: from, to; the last may be open.
#[derive(Clone, Debug, Default)]
struct Throttles(VecDeque<(Ns, Option<Ns>)>);

impl Throttles {
    fn changes(&mut self, at: Ns, throttled: bool) {
        match (self.0.back_mut(), throttled) {
            (Some((_, end @ None)), false) => *end = Some(at),
            (Some((_, None)), true) | (_, false) => {}
            (_, true) => {
                if self.0.len() == THROTTLES_KEPT {
                    self.0.pop_front();
                }
                self.0.push_back((at, None));
            }
        }
    }

    /// For how long it was throttled from one moment to another.
    fn within(&self, from: Ns, to: Ns) -> Ns {
        let spans = self.0.iter().rev();
        let spans = spans.map(|(begin, end)| ((*begin).max(from), end.unwrap_or(to).min(to)));
        let of_span = |(begin, end): (Ns, Ns)| end.saturating_sub(begin);
        spans.take_while(|(_, end)| *end > from).map(of_span).sum()
    }
}

/// The longest waits so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    cpus: Vec<Switches>,
    waiting: BTreeMap<TaskId, Waiting>,
    /// The CPU that each task was switched to last.
    last_cpu: BTreeMap<TaskId, CpuId>,
    /// The cgroups of tasks that are not in the root.
    cgroups: BTreeMap<TaskId, TaskGroupId>,
    throttles: BTreeMap<(TaskGroupId, CpuId), Throttles>,
    longest: Vec<Wait>,
    count: u64,
    sum: u128,
}

impl Waits {
    /// Takes a fact; they come in time order.
    pub fn fact(&mut self, at: Ns, cpu: CpuId, kind: &FactKind, listing: &Listing<'_>) {
        match *kind {
            FactKind::Waking { task, source, .. } => {
                let by = self.of(cpu).running().filter(|by| !by.is_idle());
                let why = match (source, by) {
                    (WakeSource::Task, Some(by)) => Why::WokenBy(by),
                    _ => Why::Woken(source),
                };
                let runs = self.cpus.iter().any(|cpu| cpu.running() == Some(task));
                if !runs {
                    let wait = Waiting { since: at, why, queues: Vec::new() };
                    self.waiting.entry(task).or_insert(wait);
                }
            }
            FactKind::Wakeup { task, target, new } => {
                if new {
                    let why = Why::Woken(WakeSource::Task);
                    let wait = Waiting { since: at, why, queues: Vec::new() };
                    self.waiting.entry(task).or_insert(wait);
                }
                self.queued(task, target, at);
            }
            FactKind::Migrate { task, to, .. } => self.queued(task, to, at),
            FactKind::Switch { prev, next, prev_state } => {
                if let Some(waiting) = self.waiting.remove(&next) {
                    self.ends(next, waiting, (at, cpu), false, listing);
                }
                self.of(cpu).add(at, next);
                self.last_cpu.insert(next, cpu);
                let runnable = matches!(prev_state, TaskState::Running | TaskState::Preempted);
                // Lines of two CPUs may be out of order by a kernel path: it may run elsewhere already.
                let was_here = self.last_cpu.get(&prev).is_none_or(|last| *last == cpu);
                if runnable && !prev.is_idle() && prev != next && was_here {
                    let preempted = prev_state == TaskState::Preempted;
                    let why = Why::Left { next, preempted };
                    let queues = vec![(cpu, at)];
                    self.waiting.insert(prev, Waiting { since: at, why, queues });
                }
            }
            FactKind::Exit { task } => drop(self.waiting.remove(&task)),
            FactKind::CgroupAttach { task, group } => drop(self.cgroups.insert(task, group)),
            FactKind::CfsThrottled { group, on, throttled } => {
                self.throttles.entry((group, on)).or_default().changes(at, throttled);
            }
            _ => {}
        }
    }

    fn of(&mut self, cpu: CpuId) -> &mut Switches {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, Switches::default());
        }
        &mut self.cpus[cpu.index()]
    }

    fn queued(&mut self, task: TaskId, cpu: CpuId, at: Ns) {
        if let Some(waiting) = self.waiting.get_mut(&task)
            && waiting.queues.last().is_none_or(|(last, _)| *last != cpu)
        {
            // The way to its first queue is part of the wait there.
            let from = if waiting.queues.is_empty() { waiting.since } else { at };
            waiting.queues.push((cpu, from));
        }
    }

    fn ends(
        &mut self,
        task: TaskId,
        waiting: Waiting,
        (at, cpu): (Ns, CpuId),
        open: bool,
        listing: &Listing<'_>,
    ) {
        let Waiting { since, why, queues } = waiting;
        let ns = at.saturating_sub(since);
        // Of the tasks, ended on the CPU, and under way in the window.
        let wanted = (listing.query.task.is_none() || listing.named.contains(&task))
            && listing.query.cpu.is_none_or(|wanted| wanted == cpu)
            && listing.is_under_way((since, at));
        if !wanted {
            return;
        }
        self.count += 1;
        self.sum += u128::from(ns);
        let most = usize::try_from(listing.query.limit).unwrap_or(usize::MAX);
        let place = self.longest.partition_point(|known| known.ns >= ns);
        if place >= most {
            return;
        }
        let mut sums = BTreeMap::new();
        let (group, mut throttled) = (self.cgroups.get(&task).copied(), 0);
        for (index, (queue, from)) in queues.iter().enumerate() {
            let to = queues.get(index + 1).map_or(at, |(_, next)| *next);
            let of_queue = group.and_then(|group| self.throttles.get(&(group, *queue)));
            throttled += of_queue.map_or(0, |of| of.within(*from, to));
            if let Some(switches) = self.cpus.get(queue.index()) {
                switches.sum(*from, to, &mut sums);
            }
        }
        sums.remove(&task);
        let mut meanwhile: Vec<(TaskId, Ns)> = sums.into_iter().collect();
        meanwhile.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let moves = queues.len().saturating_sub(1);
        self.longest.truncate(most - 1);
        let group = group.unwrap_or(TaskGroupId::ROOT);
        let wait = Wait { task, group, since, ns, cpu, why, moves, throttled, open, meanwhile };
        self.longest.insert(place, wait);
    }

    /// The record is over, and who still waits has waited until now: counts all waits in the summary, and writes the longest.
    pub fn finish(
        mut self,
        end: Ns,
        listing: &mut Listing<'_>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        for (task, waiting) in std::mem::take(&mut self.waiting) {
            // Its wakeup was under way.
            let Some((cpu, _)) = waiting.queues.last().copied() else { continue };
            self.ends(task, waiting, (end, cpu), true, listing);
        }
        listing.summary.matched = self.count;
        listing.summary.listed = self.longest.len() as u64;
        if self.count == 0 {
            return Ok(());
        }
        if listing.query.json {
            return self
                .longest
                .iter()
                .try_for_each(|wait| writeln!(out, "{}", wait.json(listing)));
        }
        let sum = duration(u64::try_from(self.sum).unwrap_or(u64::MAX));
        let shown = self.longest.len();
        writeln!(out, "{} waits for a CPU, {sum} in all; the longest {shown}:\n", self.count)?;
        out.write_all(printable::lines(&self.table(listing)).as_bytes())
    }

    fn table(&self, listing: &Listing<'_>) -> String {
        let rows: Vec<[String; 3]> = self
            .longest
            .iter()
            .map(|wait| [listing.who(wait.task), wait.why(listing), wait.meanwhile(listing)])
            .collect();
        let width = |column: usize, title: &str| {
            let longest = rows.iter().map(|row| row[column].chars().count()).max();
            longest.unwrap_or(0).max(title.len())
        };
        let (task, why) = (width(0, "task"), width(1, "why"));
        let mut text = format!(
            "{:>14}  {:>15}  {:>4}  {:task$}  {:why$}  on its CPU meanwhile\n",
            "waited", "since", "cpu", "task", "why"
        );
        for (wait, [name, reason, meanwhile]) in self.longest.iter().zip(rows) {
            let (waited, since) = (duration(wait.ns), clock(wait.since));
            let line = format!(
                "{waited:>14}  {since:>15}  {:>4}  {name:task$}  {reason:why$}  {meanwhile}",
                wait.cpu.0
            );
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }
}

impl Wait {
    fn why(&self, listing: &Listing<'_>) -> String {
        let mut text = match self.why {
            Why::WokenBy(by) => format!("woken by {}", listing.who(by)),
            Why::Woken(source) => format!("woken by {}", source.words()),
            Why::Left { next, .. } if next.is_idle() && self.throttled > 0 => {
                self.throttled_text(listing)
            }
            Why::Left { next, preempted: true } => format!("preempted by {}", listing.who(next)),
            Why::Left { next, .. } => format!("left for {}", listing.who(next)),
        };
        match self.moves {
            0 => {}
            1 => text.push_str(", moved"),
            times => {
                let _ = write!(text, ", moved {times} times");
            }
        }
        if self.throttled > 0 && !text.starts_with("throttled") {
            let _ = write!(text, ", {}", self.throttled_text(listing));
        }
        if self.open {
            text.push_str(", still waits");
        }
        text
    }

    fn throttled_text(&self, listing: &Listing<'_>) -> String {
        format!("throttled {} in cgroup {}", duration(self.throttled), listing.cgroup(self.group))
    }

    fn meanwhile(&self, listing: &Listing<'_>) -> String {
        let shown = self.meanwhile.iter().take(MEANWHILE_SHOWN);
        let mut texts: Vec<String> =
            shown.map(|(task, ns)| format!("{} {}", listing.who(*task), duration(*ns))).collect();
        if let Some(rest) = self.meanwhile.get(MEANWHILE_SHOWN..).filter(|rest| !rest.is_empty()) {
            let ns = rest.iter().map(|(_, ns)| ns).sum();
            texts.push(format!("{} more {}", rest.len(), duration(ns)));
        }
        texts.join(", ")
    }

    fn json(&self, listing: &Listing<'_>) -> serde_json::Value {
        let meanwhile: Vec<_> = self
            .meanwhile
            .iter()
            .map(|(task, ns)| json!({"task": task.0, "name": listing.who(*task), "ns": ns}))
            .collect();
        let wait = json!({
            "task": self.task.0, "name": listing.who(self.task), "ns": self.ns, "why": self.why(listing),
            "moves": self.moves, "throttled_ns": self.throttled, "cgroup": listing.cgroup(self.group), "open": self.open, "meanwhile": meanwhile,
        });
        json!({"at": self.since, "cpu": self.cpu.0, "wait": wait})
    }
}
