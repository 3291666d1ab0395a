// SPDX-License-Identifier: GPL-2.0-or-later
//! Watches a run by its facts alone: who runs where, who sleeps, who is woken. Nothing here asks the kernel or the meter.
//!
//! The scenario tests know machines whose paths take microseconds and check times as well; here nothing is known of times,
//! so only the order of facts and the sums of time are checked.

use schedtwin_engine::result::RunResult;
use schedtwin_engine::twin::Observer;
use schedtwin_types::{DecisionRecord, Fact, FactKind, Ns, PowerSource, TaskId, TaskState};

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
    since: Ns,
    last: Ns,
    busy_ns: Ns,
    idle_ns: Ns,
    /// The idle state that the kernel is in, and since when.
    resting: Option<(usize, Ns)>,
    /// By idle state: time from its way in to its way out, and how often.
    rested: Vec<(Ns, u64)>,
}

impl Cpu {
    /// The kernel is back from the state that it asked for.
    fn leave_idle(&mut self, at: Ns) {
        let Some((state, since)) = self.resting.take() else { return };
        if self.rested.len() <= state {
            self.rested.resize(state + 1, (0, 0));
        }
        self.rested[state].0 += at.saturating_sub(since);
        self.rested[state].1 += 1;
    }
}

/// The state of a CPU that facts alone tell.
pub struct Seen {
    /// How far a path that was under way reached beyond the end.
    pub beyond_ns: Ns,
    /// By idle state: time between asking for it and being back, and how often.
    pub rested: Vec<(Ns, u64)>,
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
            since: 0,
            last: 0,
            busy_ns: 0,
            idle_ns: 0,
            resting: None,
            rested: Vec::new(),
        };
        let tasks = vec![(Stage::Running, true)];
        Watch { cpus: vec![cpu; nr_cpus], tasks, switches: 0 }
    }

    /// The end: what is open is closed, and the sums are those that the result tells. Returns by CPU what was seen.
    pub fn finish(mut self, result: &RunResult) -> Vec<Seen> {
        let end = result.simulated_ns;
        for (index, cpu) in self.cpus.iter_mut().enumerate() {
            let close = end.max(cpu.since);
            let open = close - cpu.since;
            if cpu.running.is_idle() {
                cpu.idle_ns += open;
            } else {
                cpu.busy_ns += open;
            }
            assert_eq!(cpu.busy_ns + cpu.idle_ns, close, "watch: cpu{index} run + idle = span");
            assert_eq!(cpu.busy_ns, result.cpus[index].busy_ns, "watch: cpu{index} busy time");
        }
        let told: u64 = result.tasks.iter().map(|task| task.switches).sum();
        assert!(told <= self.switches, "watch: {told} switches to tasks of {}", self.switches);
        let seen = |mut cpu: Cpu| {
            cpu.leave_idle(end);
            Seen { beyond_ns: cpu.last.saturating_sub(end), rested: cpu.rested }
        };
        self.cpus.into_iter().map(seen).collect()
    }

    fn switch(&mut self, fact: &Fact, prev: TaskId, next: TaskId, state: TaskState) {
        let cpu = self.cpus[fact.cpu.index()].clone();
        self.switches += 1;
        assert_eq!(prev, cpu.running, "watch: who leaves is who ran: {fact:?}");
        assert_ne!(prev, next, "watch: a switch is between two: {fact:?}");
        let time = fact.at - cpu.since;
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
        *if prev.is_idle() { &mut c.idle_ns } else { &mut c.busy_ns } += time;
        (c.running, c.since) = (next, fact.at);
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
        // A thermal limit changes a frequency from outside of any CPU, whose path may reach beyond that moment.
        if !matches!(kind, FactKind::Frequency { .. }) {
            let last = &mut self.cpus[cpu.index()].last;
            assert!(at >= *last, "watch: a CPU's facts go forward in time: {fact:?}");
            *last = at;
        }
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
