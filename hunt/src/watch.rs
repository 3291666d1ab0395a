// SPDX-License-Identifier: GPL-2.0-or-later
//! Watches a run by its facts alone: who runs where, who sleeps, who is woken. Nothing here asks the kernel or the meter.
//!
//! The scenario tests know machines whose paths take microseconds and check times as well; here nothing is known of times,
//! so only the order of facts and the sums of time are checked.

use schedtwin_engine::result::RunResult;
use schedtwin_engine::twin::Observer;
use schedtwin_types::{DecisionRecord, Fact, FactKind, Ns, PowerSource, TaskId, TaskState, metric};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// Known from the boot, nothing seen yet.
    Unknown,
    Queued,
    Running,
    Sleeping,
    Waking,
    Dead,
}

#[derive(Clone, Debug)]
struct Cpu {
    running: TaskId,
    last: Ns,
    /// When each task before the present one left, and whether that was the idle task.
    left: Vec<(Ns, bool)>,
    /// The idle state that the kernel is in, and since when.
    resting: Option<(usize, Ns)>,
    /// Idle states, each from its way in to its way out.
    rests: Vec<(usize, Ns, Ns)>,
}

impl Cpu {
    /// The kernel is back from the state that it asked for.
    fn leave_idle(&mut self, at: Ns) {
        if let Some((state, since)) = self.resting.take() {
            self.rests.push((state, since, at));
        }
    }

    /// Time of all tasks but the idle one, and of that, within the window.
    fn times(&self, window: &Range<Ns>) -> (Ns, Ns) {
        let (mut busy, mut idle, mut since) = (0, 0, 0);
        for (at, was_idle) in self.left.iter().chain([&(window.end, self.running.is_idle())]) {
            *if *was_idle { &mut idle } else { &mut busy } += within(window, since, *at);
            since = *at;
        }
        (busy, idle)
    }

    /// By idle state: time from its way in to its way out within the window.
    fn rested(&self, window: &Range<Ns>) -> Vec<Ns> {
        let states = self.rests.iter().map(|(state, ..)| state + 1).max().unwrap_or(0);
        let mut rested = vec![0; states];
        for (state, since, until) in &self.rests {
            rested[*state] += within(window, *since, *until);
        }
        rested
    }
}

/// How much of the time from `since` to `until` the window has.
fn within(window: &Range<Ns>, since: Ns, until: Ns) -> Ns {
    let clamped = |at: Ns| at.clamp(window.start, window.end);
    clamped(until) - clamped(since)
}

/// The time that a result counts: from the end of the warm-up to the end of the run.
pub fn window_of(result: &RunResult) -> Range<Ns> {
    let row = result.metrics.iter().find(|row| row.name == metric::WARMUP.name);
    let warmup_s = row.and_then(|row| row.value).expect("watch: warmup");
    // A run may end before.
    ((warmup_s * 1e9).round() as Ns).min(result.simulated_ns)..result.simulated_ns
}

/// The state of a CPU that facts alone tell.
pub struct Seen {
    /// Time of the idle task.
    pub idle_ns: Ns,
    /// By idle state: time between asking for it and being back.
    pub rested: Vec<Ns>,
}

/// The state that has been seen.
#[derive(Clone, Debug)]
pub struct Watch {
    cpus: Vec<Cpu>,
    /// Number 0: the idle tasks.
    tasks: Vec<(Stage, bool)>,
    switches: u64,
}

impl Watch {
    pub fn new(nr_cpus: usize) -> Watch {
        let cpu = Cpu {
            running: TaskId::IDLE,
            last: 0,
            left: Vec::new(),
            resting: None,
            rests: Vec::new(),
        };
        let tasks = vec![(Stage::Running, true)];
        Watch { cpus: vec![cpu; nr_cpus], tasks, switches: 0 }
    }

    /// The end: what is open is closed, and the sums are those that the result tells. Returns by CPU what was seen.
    pub fn finish(mut self, result: &RunResult) -> Vec<Seen> {
        let window = window_of(result);
        let mut seen = Vec::with_capacity(self.cpus.len());
        for (index, cpu) in self.cpus.iter_mut().enumerate() {
            cpu.leave_idle(window.end);
            let (busy_ns, idle_ns) = cpu.times(&window);
            let span = window.end - window.start;
            assert_eq!(busy_ns + idle_ns, span, "watch: cpu{index} run + idle = span");
            assert_eq!(busy_ns, result.cpus[index].busy_ns, "watch: cpu{index} busy time");
            seen.push(Seen { idle_ns, rested: cpu.rested(&window) });
        }
        let told: u64 = result.tasks.iter().map(|task| task.switches).sum();
        assert!(told <= self.switches, "watch: {told} switches to tasks of {}", self.switches);
        seen
    }

    fn switch(&mut self, fact: &Fact, prev: TaskId, next: TaskId, state: TaskState) {
        let running = self.cpus[fact.cpu.index()].running;
        self.switches += 1;
        assert_eq!(prev, running, "watch: who leaves is who ran: {fact:?}");
        assert_ne!(prev, next, "watch: a switch is between two: {fact:?}");
        if !prev.is_idle() {
            let stage = self.tasks[prev.index()].0;
            let left = match state {
                TaskState::Running | TaskState::Preempted => Stage::Queued,
                TaskState::Interruptible | TaskState::Uninterruptible => Stage::Sleeping,
                TaskState::Dead => Stage::Dead,
            };
            let fits = stage == Stage::Running || (stage == Stage::Dead && left == Stage::Dead);
            assert!(fits, "watch: who leaves was running, not {stage:?}: {fact:?}");
            self.tasks[prev.index()].0 = left;
        }
        if !next.is_idle() {
            let elsewhere = self.cpus.iter().filter(|other| other.running == next).count();
            assert_eq!(elsewhere, 0, "watch: a task runs on one CPU: {fact:?}");
            let (stage, stopper) = self.tasks[next.index()];
            // A CPU's stopper is woken inside the kernel, without a tracepoint's fact.
            assert!(stopper || stage == Stage::Queued, "watch: who enters was {stage:?}: {fact:?}");
            self.tasks[next.index()].0 = Stage::Running;
        }
        let c = &mut self.cpus[fact.cpu.index()];
        c.left.push((fact.at, prev.is_idle()));
        c.running = next;
    }
}

impl Observer for Watch {
    const DECISIONS: bool = false;

    fn task(&mut self, id: TaskId, name: &str, _: i32) {
        assert_eq!(id.index(), self.tasks.len(), "watch: tasks are announced in order, once");
        self.tasks.push((Stage::Unknown, name.starts_with("migration/")));
    }

    fn fact(&mut self, fact: &Fact) {
        let Fact { at, cpu, kind } = *fact;
        let last = &mut self.cpus[cpu.index()].last;
        assert!(at >= *last, "watch: a CPU's facts go forward in time: {fact:?}");
        *last = at;
        match kind {
            FactKind::Switch { prev, next, prev_state } => {
                self.switch(fact, prev, next, prev_state);
            }
            FactKind::Waking { task, .. } => {
                let stage = &mut self.tasks[task.index()].0;
                let slept = matches!(stage, Stage::Sleeping | Stage::Unknown);
                assert!(slept, "watch: who is woken was {stage:?}: {fact:?}");
                *stage = Stage::Waking;
            }
            FactKind::Wakeup { task, new, .. } => {
                let stage = &mut self.tasks[task.index()].0;
                let expected = if new { Stage::Unknown } else { Stage::Waking };
                assert_eq!(*stage, expected, "watch: a wakeup follows its waking: {fact:?}");
                *stage = Stage::Queued;
            }
            FactKind::IdleEnter { state, .. } => {
                let cpu = &mut self.cpus[cpu.index()];
                assert_eq!(cpu.resting, None, "watch: a state is left before another: {fact:?}");
                cpu.resting = Some((usize::from(state), at));
            }
            FactKind::IdleExit { .. } => self.cpus[cpu.index()].leave_idle(at),
            FactKind::Exit { task } => {
                let stage = &mut self.tasks[task.index()].0;
                assert_eq!(*stage, Stage::Running, "watch: who exits runs: {fact:?}");
                *stage = Stage::Dead;
            }
            _ => {}
        }
    }

    fn decision(&mut self, _: DecisionRecord) {}
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}
