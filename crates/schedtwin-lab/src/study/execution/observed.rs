// SPDX-License-Identifier: GPL-2.0-or-later
//! An execution from a run of the twin: who ran where, and what a CPU's clock and queue did.

use std::collections::BTreeMap;

use schedtwin_engine::board::FlatBoard;
use schedtwin_engine::twin::{Observer, Twin};
use schedtwin_types::{CpuId, DecisionRecord, Fact, FactKind, Ns, PowerSource, TaskId};

use super::recorded::Recording;
use super::{Execution, PARTS, Stage, Task, edge, seats};
use crate::twin::Column;

/// Watches a run.
struct Watch {
    /// The tasks that are wanted, by name.
    wanted: Vec<String>,
    by_id: BTreeMap<TaskId, usize>,
    /// Of every CPU which wanted task runs, since when.
    running: Vec<Option<(usize, Ns)>>,
    /// Of each wanted task from when to when it ran, and where.
    runs: Vec<Vec<(Ns, Ns, u16)>>,
    /// The CPU whose clock and queue are wanted, and its frequency domain.
    of: Option<(CpuId, usize)>,
    clock: Vec<(Ns, u32)>,
    util: Vec<(Ns, u32)>,
    now: Ns,
}

impl Watch {
    fn close(&mut self, cpu: usize, at: Ns) {
        if let Some((task, since)) = self.running[cpu].take()
            && since < at
        {
            self.runs[task].push((since, at, cpu as u16));
        }
    }
}

impl Observer for Watch {
    const DECISIONS: bool = false;
    fn task(&mut self, id: TaskId, name: &str, _: i32) {
        if let Some(at) = self.wanted.iter().position(|wanted| wanted == name) {
            self.by_id.insert(id, at);
        }
    }
    fn fact(&mut self, fact: &Fact) {
        let cpu = usize::from(fact.cpu.0);
        match fact.kind {
            FactKind::Switch { next, .. } => {
                self.close(cpu, fact.at);
                self.running[cpu] = self.by_id.get(&next).map(|task| (*task, fact.at));
            }
            FactKind::Frequency { policy, khz, .. }
                if self.of.is_some_and(|(_, domain)| domain == policy.index()) =>
            {
                self.clock.push((fact.at, khz / 1000));
            }
            FactKind::CpuSignals { util_avg, .. }
                if self.of.is_some_and(|(of, _)| of == fact.cpu) =>
            {
                self.util.push((fact.at, util_avg));
            }
            _ => {}
        }
    }
    fn decision(&mut self, _: DecisionRecord) {}
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, now: Ns) {
        self.now = now;
    }
}

/// Runs the scenario with this seed and reduces the run as the recording is. `None`: none of its
/// tasks ever ran.
pub fn observe(column: &Column, recording: &Recording, seed: u64) -> Option<Execution> {
    let machine = column.scenario.machine();
    let of_stage = recording.of_stage.as_ref();
    let mut wanted: Vec<String> =
        recording.execution.tasks.iter().map(|task| task.name.clone()).collect();
    wanted.extend(of_stage.map(|of| of.task.clone()));
    let domain_of = |cpu: CpuId| machine.domains.iter().position(|d| d.cpus.contains(&cpu));
    let of = of_stage.and_then(|of| {
        let cpu = CpuId(u16::try_from(of.cpu).ok()?);
        Some((cpu, domain_of(cpu)?))
    });
    let mut watch = Watch {
        by_id: BTreeMap::new(),
        running: vec![None; machine.nr_cpus()],
        runs: vec![Vec::new(); wanted.len()],
        wanted,
        of,
        clock: Vec::new(),
        util: Vec::new(),
        now: 0,
    };
    let mut twin: Twin<FlatBoard> = column.scenario.twin(seed);
    twin.report_signals();
    twin.introduce(&mut watch);
    while twin.step(&mut watch) {}
    for cpu in 0..machine.nr_cpus() {
        watch.close(cpu, watch.now);
    }
    // Stamps of several CPUs are told in the order of their events, which may differ by what a path takes.
    watch.runs.iter_mut().for_each(|runs| runs.sort());
    watch.clock.sort_by_key(|(at, _)| *at);
    watch.util.sort_by_key(|(at, _)| *at);
    let all = || watch.runs.iter().flatten();
    let span = [all().map(|run| run.0).min()?, all().map(|run| run.1).max()?];
    let tasks = recording.execution.tasks.iter().zip(&watch.runs).map(|(task, runs)| {
        let mut ran = vec![0; machine.nr_cpus()];
        for (from, to, cpu) in runs {
            ran[usize::from(*cpu)] += to - from;
        }
        Task { name: task.name.clone(), ran, seats: seats(runs, span, machine.nr_cpus()) }
    });
    let tasks = tasks.collect();
    let stage = of_stage.and_then(|of| {
        let mut there = watch.runs.last()?.iter().filter(|run| usize::from(run.2) == of.cpu);
        let first = there.next()?;
        stage(&watch, [first.0, there.next_back().unwrap_or(first).1])
    });
    let same_work = recording.execution.same_work;
    Some(Execution { length: span[1] - span[0], same_work, tasks, stage })
}

/// The clock and the signal of the watched CPU in `span`.
fn stage(watch: &Watch, span: [Ns; 2]) -> Option<Stage> {
    let first = watch.clock.first()?.1;
    let clock = [(0, first)].into_iter().chain(watch.clock.iter().copied()).collect();
    Some(Stage { span, clock, util: in_parts(&watch.util, span) })
}

/// Time-weighted means of a signal in the parts of `span`; each value holds until the next.
fn in_parts(signal: &[(Ns, u32)], span: [Ns; 2]) -> Vec<f64> {
    let mut next = signal.partition_point(|(at, _)| *at <= span[0]);
    let mut means = Vec::new();
    for part in 0..PARTS {
        let (begin, to) = (edge(span, part), edge(span, part + 1));
        let mut from = begin;
        let mut sum = 0.0;
        while from < to {
            let value = next.checked_sub(1).map_or(0, |last| signal[last].1);
            let until = signal.get(next).map_or(to, |(at, _)| (*at).clamp(from, to));
            sum += f64::from(value) * (until - from) as f64;
            from = until;
            if signal.get(next).is_some_and(|(at, _)| *at <= from) {
                next += 1;
            }
        }
        means.push(sum / (to - begin).max(1) as f64);
    }
    means
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_weighed_by_time() {
        let signal = [(0, 100), (1_050, 200), (1_100, 300), (9_000, 0)];
        let parts = in_parts(&signal, [1_000, 11_000]);
        assert_eq!(parts[..3], [150.0, 300.0, 300.0]);
        assert_eq!((parts[79], parts[80], parts[99]), (300.0, 0.0, 0.0));
    }
}
