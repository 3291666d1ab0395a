// SPDX-License-Identifier: GPL-2.0-or-later
//! One telling moment of a run: of the task that waited most for CPUs, all its waits together, the longest wait, and what
//! the CPUs did meanwhile. (The longest wait of all is most often that of a kernel thread that nobody waits for.)
//!
//! A table says that the worst wakeup took 20 ms; the moment shows who ran instead, where, and at which
//! frequency. The run is made twice: once to find the moment, once to keep what happened around it, so that
//! memory is bounded by the moment and not by the run.

use std::collections::BTreeMap;

use rayon::prelude::*;
use schedtwin_engine::board::FlatBoard;
use schedtwin_engine::twin::{Observer, Twin};
use schedtwin_types::{CpuId, DecisionRecord, Fact, FactKind, Ns, PowerSource, TaskId, TaskState};

use crate::crash;
use crate::twin::Column;

/// Shown before and after the wait.
const MARGIN: Ns = 4_000_000;

/// No moment is shown longer than this: of a longer wait the end is what tells.
const LONGEST: Ns = 60_000_000;

/// More pieces than this are not drawn.
const MOST_PIECES: usize = 4000;

/// The events around the longest wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The kernel.
    pub kernel: String,
    /// The seed of the run.
    pub seed: u64,
    /// The task that waited.
    pub task: String,
    /// On which CPU it got to run.
    pub cpu: u16,
    /// When it was woken, or lost the CPU to another one.
    pub ready_at: Ns,
    /// When it got the CPU.
    pub runs_at: Ns,
    /// The interval that is shown, from and to.
    pub window: [Ns; 2],
    /// Of every CPU who ran, in order.
    pub lanes: Vec<Vec<Piece>>,
    /// Of every frequency domain its name and its frequencies: from when, kHz.
    pub frequencies: Vec<(String, Vec<(Ns, u32)>)>,
}

/// A task on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// From and to, within the window.
    pub span: [Ns; 2],
    /// The task's name.
    pub task: String,
    /// Whether it is the task that waited.
    pub is_waiter: bool,
}

/// Finds the waits.
#[derive(Default)]
struct Search {
    /// Of the tasks that want a CPU and have none: since when.
    ready: BTreeMap<TaskId, Ns>,
    names: BTreeMap<TaskId, String>,
    waits: BTreeMap<TaskId, Waits>,
}

/// How a task waited.
#[derive(Clone, Copy)]
struct Waits {
    /// All waits together.
    total: Ns,
    /// The longest: when it was woken or preempted, when it ran, where.
    longest: (Ns, Ns, CpuId),
}

impl Search {
    /// The task that waited most; of equal ones the first. `name`: among those with that name, if it has any.
    fn most(&self, name: Option<&str>) -> Option<(TaskId, Waits)> {
        let is_named = |task: &TaskId| self.names.get(task).map(String::as_str) == name;
        let known = name.is_some() && self.waits.keys().any(is_named);
        let all = self.waits.iter().map(|(task, waits)| (*task, *waits));
        let all = all.filter(|(task, _)| !known || is_named(task));
        all.reduce(|most, other| if other.1.total > most.1.total { other } else { most })
    }
}

impl Observer for Search {
    const DECISIONS: bool = false;
    fn task(&mut self, id: TaskId, name: &str, _: i32) {
        self.names.insert(id, name.to_string());
    }
    fn fact(&mut self, fact: &Fact) {
        match fact.kind {
            FactKind::Waking { task, .. } => {
                self.ready.insert(task, fact.at);
            }
            FactKind::Switch { prev, next, prev_state } => {
                if matches!(prev_state, TaskState::Running | TaskState::Preempted) {
                    self.ready.insert(prev, fact.at);
                }
                let ready = self.ready.remove(&next).filter(|_| !next.is_idle());
                let Some(ready) = ready else { return };
                let this = (ready, fact.at.max(ready), fact.cpu);
                let waits = self.waits.entry(next).or_insert(Waits { total: 0, longest: this });
                waits.total += this.1 - this.0;
                if this.1 - this.0 > waits.longest.1 - waits.longest.0 {
                    waits.longest = this;
                }
            }
            _ => {}
        }
    }
    fn decision(&mut self, _: DecisionRecord) {}
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

/// Keeps what happened in the window, and what was the case when it began.
struct Keep {
    window: [Ns; 2],
    waiter: TaskId,
    names: BTreeMap<TaskId, String>,
    /// Of every CPU: who runs, since when.
    running: Vec<(TaskId, Ns)>,
    lanes: Vec<Vec<Piece>>,
    pieces: usize,
    frequencies: Vec<Vec<(Ns, u32)>>,
}

impl Keep {
    fn close(&mut self, cpu: usize, at: Ns) {
        let (task, since) = self.running[cpu];
        let span = [since.max(self.window[0]), at.min(self.window[1])];
        if task == TaskId::IDLE || span[0] >= span[1] || self.pieces >= MOST_PIECES {
            return;
        }
        self.pieces += 1;
        let name = self.names.get(&task).cloned().unwrap_or_default();
        self.lanes[cpu].push(Piece { span, task: name, is_waiter: task == self.waiter });
    }
}

impl Observer for Keep {
    const DECISIONS: bool = false;
    fn task(&mut self, id: TaskId, name: &str, _: i32) {
        self.names.insert(id, name.to_string());
    }
    fn fact(&mut self, fact: &Fact) {
        match fact.kind {
            FactKind::Switch { next, .. } => {
                let cpu = usize::from(fact.cpu.0);
                self.close(cpu, fact.at);
                self.running[cpu] = (next, fact.at);
            }
            FactKind::Frequency { policy, khz, .. } if fact.at <= self.window[1] => {
                let list = &mut self.frequencies[policy.index()];
                // Of what was before the window only the last counts.
                if fact.at <= self.window[0] {
                    list.clear();
                }
                list.push((fact.at.max(self.window[0]), khz));
            }
            _ => {}
        }
    }
    fn decision(&mut self, _: DecisionRecord) {}
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

/// Of every column the longest wait in the run with this seed of the task that waits most in the first one.
pub fn moments(columns: &[Column], seed: u64) -> Vec<Moment> {
    // A run that panics has been reported already.
    let wait = |column: &Column, task: Option<&str>| {
        crash::caught(|| longest_wait(column, seed, task)).ok().flatten()
    };
    let Some((first, others)) = columns.split_first() else { return Vec::new() };
    let first = wait(first, None);
    let task = first.as_ref().map(|moment| moment.task.as_str());
    let others: Vec<Moment> = others.par_iter().filter_map(|column| wait(column, task)).collect();
    first.into_iter().chain(others).collect()
}

/// The longest wait of the task that waited most in the run with this seed; `None` if nobody waited. `of`: the task to
/// look at instead, so that several kernels show the same one.
pub fn longest_wait(column: &Column, seed: u64, of: Option<&str>) -> Option<Moment> {
    let mut search = Search::default();
    let mut twin: Twin<FlatBoard> = column.scenario.twin(seed);
    twin.introduce(&mut search);
    while twin.step(&mut search) {}
    let (waiter, Waits { longest: (ready_at, runs_at, cpu), .. }) = search.most(of)?;
    let to = runs_at + MARGIN;
    let window = [ready_at.saturating_sub(MARGIN).max(to.saturating_sub(LONGEST)), to];
    let machine = column.scenario.machine();
    let cpus = machine.nr_cpus();
    let mut keep = Keep {
        window,
        waiter,
        names: BTreeMap::new(),
        running: vec![(TaskId::IDLE, 0); cpus],
        lanes: vec![Vec::new(); cpus],
        pieces: 0,
        frequencies: vec![Vec::new(); machine.domains.len()],
    };
    let mut twin: Twin<FlatBoard> = column.scenario.twin(seed);
    twin.introduce(&mut keep);
    while twin.now() <= to && twin.step(&mut keep) {}
    for cpu in 0..cpus {
        keep.close(cpu, to);
    }
    let names = machine.domains.iter().map(|domain| domain.name.clone());
    Some(Moment {
        kernel: column.kernel.clone(),
        seed,
        task: search.names.get(&waiter).cloned().unwrap_or_default(),
        cpu: cpu.0,
        ready_at,
        runs_at,
        window,
        lanes: keep.lanes,
        frequencies: names.zip(keep.frequencies).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_engine::Scenario;

    #[test]
    fn the_moment_holds_the_wait() {
        let scenario =
            Scenario::new("pixel6", "linux-5.18", "ui-phone", Some(500_000_000)).unwrap();
        let column = Column { kernel: "linux-5.18".into(), scenario };
        let moment = longest_wait(&column, 1, None).unwrap();
        assert!(moment.ready_at < moment.runs_at, "{moment:?}");
        let [from, to] = moment.window;
        assert!(to - from <= LONGEST && from <= moment.runs_at && moment.runs_at < to);
        // The waiter begins to run at the end of its wait, on the CPU that is named.
        let lane = &moment.lanes[usize::from(moment.cpu)];
        let begins = |piece: &Piece| piece.is_waiter && piece.span[0] == moment.runs_at;
        assert!(lane.iter().any(begins), "{moment:?}");
        for lane in &moment.lanes {
            for pair in lane.windows(2) {
                assert!(pair[0].span[1] <= pair[1].span[0], "{pair:?}");
            }
            assert!(lane.iter().all(|p| from <= p.span[0] && p.span[1] <= to));
        }
        assert_eq!(longest_wait(&column, 1, Some(&moment.task)).as_ref(), Some(&moment));
        let others = moment.lanes.iter().flatten().filter(|piece| !piece.is_waiter);
        let other = others.map(|piece| piece.task.as_str()).find(|task| {
            longest_wait(&column, 1, Some(task)).is_some_and(|wait| wait.task == *task)
        });
        assert!(other.is_some(), "another task's wait can be asked for: {moment:?}");
    }

    /// Tasks that never sleep wait for each other all the time.
    #[test]
    fn who_is_preempted_waits() {
        // Eight tasks that never rest on six CPUs.
        let second = Some(1_000_000_000);
        let scenario = Scenario::new("juno-r2", "linux-6.12", "juno-scenario4", second).unwrap();
        let moment = longest_wait(&Column { kernel: "k".into(), scenario }, 1, None).unwrap();
        assert!(moment.task.starts_with("thread"), "{moment:?}");
        let wait = moment.runs_at - moment.ready_at;
        assert!((2_000_000..20_000_000).contains(&wait), "some slices: {wait}");
    }

    #[test]
    fn many_waits_count_more_than_one_long_one() {
        let waits = |total, length| Waits { total, longest: (0, length, CpuId(0)) };
        let mut search = Search::default();
        assert!(search.most(None).is_none());
        search.waits =
            [(TaskId(1), waits(30, 30)), (TaskId(2), waits(50, 10)), (TaskId(3), waits(50, 20))]
                .into();
        assert_eq!(search.most(None).unwrap().0, TaskId(2));
        search.names = [(TaskId(1), "ui".into()), (TaskId(2), "bg".into())].into();
        assert_eq!(search.most(Some("ui")).unwrap().0, TaskId(1), "the same task as elsewhere");
        assert_eq!(search.most(Some("gone")).unwrap().0, TaskId(2), "it never waited");
    }
}
