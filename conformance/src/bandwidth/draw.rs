// SPDX-License-Identifier: GPL-2.0-or-later
//! Random sequences of what happens to groups with limits.

use super::{
    BandwidthOf, CPUS, CSD, GROUP, GROUPS_MAX, LIMIT, MIGRATE, MOVE, NO_LIMIT, PERIOD, REQUEUE,
    RETURN, SCHEDULE, SLACK, START, TASK, TASKS_MAX, TICK, WAKE, by_task,
};
use crate::l0::Record;
use schedtwin_kernel::sched::OnRq;
use schedtwin_kernel::sched::fair::weight_of;
use schedtwin_types::rng::Rng;
use schedtwin_types::{CpuId, Policy, TaskGroupId, TaskId};

const MS: u64 = 1_000_000;

/// What may be done with a task.
#[derive(PartialEq)]
enum State {
    /// It sleeps, or waits to be dequeued.
    Asleep,
    /// It is queued or in limbo, and does not run.
    Waits,
    Runs,
}

impl<const FORM: u8> BandwidthOf<FORM> {
    fn state(&self, task: TaskId) -> State {
        let inside = self.kernel.inside();
        let t = &inside.tasks[task];
        let delayed = inside.se[t.se].sched_delayed;
        match inside.rq[t.cpu].curr == task {
            true => State::Runs,
            false if t.on_rq == OnRq::No || delayed => State::Asleep,
            false => State::Waits,
        }
    }

    fn tasks_in(&self, state: State) -> Vec<u64> {
        let is = |at: &u64| self.state(self.tasks[*at as usize]) == state;
        (0..self.tasks.len() as u64).filter(is).collect()
    }

    /// A task that runs, and has left its queue: the switch is to come.
    fn leaves(&self, cpu: usize) -> bool {
        let inside = self.kernel.inside();
        let curr = self.curr(cpu);
        !curr.is_idle() && !inside.se[inside.tasks[curr].se].on_rq
    }

    pub(super) fn draw(&mut self, step: u64, rng: &mut Rng) -> Option<Record> {
        if step == 0 {
            self.planned =
                [1 + rng.below(GROUPS_MAX), 1 + rng.below(TASKS_MAX), 40 + rng.below(160)];
            self.now = 1 << 30;
            let slice = rng.pick(&[5_000, 5_000, 1_000, 20_000, 100]);
            return Some(Record::new(START, &[slice]));
        }
        let [groups, tasks, steps] = self.planned;
        let step = step - 1;
        if step < groups {
            // Deep trees as often as wide ones.
            let parent = if rng.one_in(2) { step } else { rng.below(step + 1) };
            return Some(Record::new(GROUP, &[parent]));
        }
        let step = step - groups;
        if step < tasks {
            return Some(self.draw_task(rng));
        }
        let step = step - tasks;
        if step < groups && !rng.one_in(3) {
            return Some(self.draw_limit(self.now, step + 1, rng));
        }
        (step < steps).then(|| self.draw_step(rng))
    }

    fn draw_task(&self, rng: &mut Rng) -> Record {
        let (policy, number) = if rng.one_in(6) { (Policy::Idle, 5) } else { (Policy::Normal, 0) };
        let nice = if rng.one_in(2) { 0 } else { rng.below(40) as i8 - 20 };
        let load = weight_of(policy, nice);
        let group = rng.below(self.nr_groups() as u64 + 1);
        let cpu = rng.below(CPUS as u64);
        let inverse = u64::from(load.inv_weight);
        Record::new(TASK, &[group, cpu, load.weight, inverse, number, nice as i64 as u64])
    }

    fn draw_limit(&self, now: u64, group: u64, rng: &mut Rng) -> Record {
        let this = rng.below(CPUS as u64);
        let any = 1 + rng.below(30);
        let period = MS * rng.pick(&[10, 20, 100, any]);
        if rng.one_in(8) {
            return Record::new(LIMIT, &[now, this, NO_LIMIT, period, 0, group]);
        }
        let most = rng.pick(&[2_000, 10_000, 60_000]);
        let quota = MS + 1_000 * rng.below(most);
        let burst = if rng.one_in(3) { 1_000 * rng.below(quota / 1_000) } else { 0 };
        Record::new(LIMIT, &[now, this, quota, period, burst, group])
    }

    /// A timer that is due at `now`.
    fn draw_timer(&mut self, now: u64, rng: &mut Rng) -> Option<Record> {
        let mut due = Vec::new();
        for group in 1..=self.nr_groups() as u64 {
            let id = TaskGroupId(group as u32);
            let timers = self.steps().timers(id);
            let active = self.kernel.inside().groups[id].bandwidth.period_active;
            let period = active.then_some(timers.period);
            for (op, at) in [(PERIOD, period), (SLACK, timers.slack)] {
                due.extend(at.filter(|at| *at <= now).map(|at| (at, op, group)));
            }
        }
        due.sort_unstable();
        if due.is_empty() || rng.one_in(5) {
            return None;
        }
        let (_, op, group) = if rng.one_in(6) { rng.pick(&due) } else { due[0] };
        Some(Record::new(op, &[now, rng.below(CPUS as u64), group]))
    }

    fn draw_step(&mut self, rng: &mut Rng) -> Record {
        let now = self.now + if rng.one_in(4) { 0 } else { rng.magnitude(23) };
        if let Some(timer) = self.draw_timer(now, rng) {
            return timer;
        }
        let cpus = 0..CPUS as u64;
        let leaving: Vec<u64> = cpus.clone().filter(|cpu| self.leaves(*cpu as usize)).collect();
        if !leaving.is_empty() && !rng.one_in(6) {
            let cpu = rng.pick(&leaving);
            // Another CPU may be faster than the switch.
            if self.kernel.inside().tasks[self.curr(cpu as usize)].throttled && rng.one_in(8) {
                return Record::new(MOVE, &[now, cpu, rng.below(self.nr_groups() as u64 + 1)]);
            }
            return Record::new(SCHEDULE, &[now, cpu, 0]);
        }
        let told: Vec<u64> = cpus
            .clone()
            .filter(|cpu| self.steps().csd_list(CpuId(*cpu as u16)).next().is_some())
            .collect();
        if !told.is_empty() && rng.one_in(2) {
            return Record::new(CSD, &[now, rng.pick(&told)]);
        }
        let asked: Vec<u64> = cpus
            .clone()
            .filter(|cpu| self.kernel.inside().rq[CpuId(*cpu as u16)].need_resched)
            .collect();
        if !asked.is_empty() && !rng.one_in(3) {
            return Record::new(SCHEDULE, &[now, rng.pick(&asked), 0]);
        }
        let work: Vec<u64> = cpus
            .filter(|cpu| !self.leaves(*cpu as usize))
            .filter(|cpu| self.kernel.inside().tasks[self.curr(*cpu as usize)].throttle_work)
            .collect();
        if !work.is_empty() && rng.one_in(2) {
            return Record::new(RETURN, &[now, rng.pick(&work)]);
        }
        self.draw_of_tasks(now, rng)
    }

    fn draw_of_tasks(&mut self, now: u64, rng: &mut Rng) -> Record {
        let this = rng.below(CPUS as u64);
        let (asleep, waiting) = (self.tasks_in(State::Asleep), self.tasks_in(State::Waits));
        match rng.below(16) {
            0..=3 if !asleep.is_empty() => Record::new(WAKE, &[now, this, rng.pick(&asleep)]),
            4 if !waiting.is_empty() => {
                let task = rng.pick(&waiting);
                let cpu = self.kernel.inside().tasks[self.tasks[task as usize]].cpu;
                let to = (u64::from(cpu.0) + 1 + rng.below(CPUS as u64 - 1)) % CPUS as u64;
                Record::new(MIGRATE, &[now, this, task, to])
            }
            5 if !waiting.is_empty() => Record::new(REQUEUE, &[now, this, rng.pick(&waiting)]),
            6 if rng.one_in(3) => self.draw_limit(now, 1 + rng.below(self.nr_groups() as u64), rng),
            _ => self.draw_of_running(now, rng),
        }
    }

    /// What the running task of a CPU does, of a CPU that runs one of the tasks where there is one.
    fn draw_of_running(&self, now: u64, rng: &mut Rng) -> Record {
        let busy = |cpu: &u64| {
            let cpu = *cpu as usize;
            !self.curr(cpu).is_idle() && !self.leaves(cpu)
        };
        let runs: Vec<u64> = (0..CPUS as u64).filter(busy).collect();
        if runs.is_empty() {
            return Record::new(SCHEDULE, &[now, rng.below(CPUS as u64), 0]);
        }
        let cpu = rng.pick(&runs);
        match rng.below(12) {
            0..=2 => Record::new(SCHEDULE, &[now, cpu, if rng.one_in(8) { 2 } else { 1 }]),
            3 => Record::new(SCHEDULE, &[now, cpu, 0]),
            4 => Record::new(MOVE, &[now, cpu, rng.below(self.nr_groups() as u64 + 1)]),
            5 if by_task(FORM) => Record::new(RETURN, &[now, cpu]),
            _ => Record::new(TICK, &[now, cpu]),
        }
    }
}
