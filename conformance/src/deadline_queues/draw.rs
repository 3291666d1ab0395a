// SPDX-License-Identifier: GPL-2.0-or-later
//! Random sequences of what happens to the deadline class of a machine.

use super::{
    AFFINITY, CPU, CPUS, DeadlineQueues, FAIR, FAIR_RAN, FIND, IDLE_TICK, LEAVE, REPLENISH,
    RESERVE, SCHEDULE, SERVER_TIMER, SERVER_ZERO_LAG, START, TASK, TASKS_MAX, TICK, WAKE, YIELD,
    ZERO_LAG,
};
use crate::l0::Record;
use crate::rt::{bits, draw_domains, draw_mask};
use schedtwin_kernel::sched::rt::conformance::RtSteps;
use schedtwin_kernel::sched::{Class, OnRq};
use schedtwin_types::rng::Rng;
use schedtwin_types::{CpuId, TaskId};

/// A runtime, a deadline and a period, often like those of another task.
fn reservation(rng: &mut Rng) -> [u64; 3] {
    let unit = 100_000;
    let runtime = unit * (1 + rng.below(20));
    let deadline = match rng.below(3) {
        0 => runtime + unit * rng.below(40),
        1 => 2 * runtime,
        _ => runtime.max(4_000_000),
    };
    let period = match rng.below(3) {
        0 => deadline + unit * rng.below(40),
        1 => 0,
        _ => deadline,
    };
    [runtime, deadline, period]
}

/// A task that sleeps.
pub(super) fn task(rng: &mut Rng) -> Record {
    let mask = draw_mask(rng);
    let cpu = bits(mask).nth(rng.below(mask.count_ones() as u64) as usize).expect("a CPU");
    let [runtime, deadline, period] = reservation(rng);
    Record::new(TASK, &[cpu, mask, runtime, deadline, period])
}

impl<const FORM: u8, const SERVERS: bool> DeadlineQueues<FORM, SERVERS> {
    pub(super) fn draw_start(&mut self, rng: &mut Rng) -> Record {
        let machine = rng.below(3);
        self.planned = 2 + rng.below(TASKS_MAX as u64 - 1);
        // Clocks begin late enough for deadlines in the past.
        self.now = 1 << 30;
        let (runtime, period) = match rng.below(3) {
            _ if !SERVERS => (0, 1),
            0 => (50_000_000, 1_000_000_000),
            _ => (500_000 * (1 + rng.below(8)), 10_000_000),
        };
        Record::new(START, &[(machine == 1) as u64, machine, runtime, period])
    }

    pub(super) fn draw_cpu(&mut self, number: u16, rng: &mut Rng) -> Record {
        let cpu = CpuId(number);
        let capacity = self.kernel.inside().rq[cpu].arch_capacity;
        let mut args = [number as u64, capacity, 0, 0, 0, 0];
        let domains = RtSteps(&mut self.kernel).domains(cpu);
        args[2..5].copy_from_slice(&draw_domains(domains, rng));
        Record { op: CPU, args }
    }

    /// A timer that is due at `now`, mostly the earliest.
    fn draw_timer(&mut self, now: u64, rng: &mut Rng) -> Option<Record> {
        let mut due = Vec::new();
        for number in 0..self.tasks.len() {
            let task = self.tasks[number];
            let timers = self.steps().timers(task);
            for (op, at) in [REPLENISH, ZERO_LAG].into_iter().zip(timers) {
                due.extend(at.filter(|at| *at <= now).map(|at| (at, op, number as u64)));
            }
        }
        for cpu in (0..CPUS as u64).filter(|_| SERVERS) {
            let timers = self.steps().server(CpuId(cpu as u16)).timers;
            for (op, at) in [SERVER_TIMER, SERVER_ZERO_LAG].into_iter().zip(timers) {
                due.extend(at.filter(|at| *at <= now).map(|at| (at, op, cpu)));
            }
        }
        due.sort_unstable();
        if due.is_empty() || rng.one_in(6) {
            return None;
        }
        let (_, op, task) = if rng.one_in(8) { rng.pick(&due) } else { due[0] };
        if op >= SERVER_TIMER {
            return Some(Record::new(op, &[now, task]));
        }
        Some(Record::new(op, &[now, rng.below(CPUS as u64), task]))
    }

    /// When something happens: at once, soon, or at and just after a server's deadline.
    fn draw_now(&mut self, rng: &mut Rng) -> u64 {
        if SERVERS && rng.one_in(8) {
            let deadline = self.steps().server(CpuId(rng.below(CPUS as u64) as u16)).deadline;
            let late = rng.pick(&[0, 0, 1, 999, 1_000]);
            if (self.now..self.now + (1 << 24)).contains(&deadline) {
                return deadline + late;
            }
        }
        self.now + if rng.one_in(4) { 0 } else { rng.magnitude(22) }
    }

    pub(super) fn draw_step(&mut self, rng: &mut Rng) -> Record {
        let now = self.draw_now(rng);
        if let Some(timer) = self.draw_timer(now, rng) {
            return timer;
        }
        let asked: Vec<u64> = (0..CPUS as u64)
            .filter(|cpu| self.kernel.inside().rq[CpuId(*cpu as u16)].need_resched)
            .collect();
        if !asked.is_empty() && !rng.one_in(3) {
            return Record::new(SCHEDULE, &[now, rng.pick(&asked), 0, rng.below(2)]);
        }
        let asleep = |task: &TaskId| {
            let t = &self.kernel.inside().tasks[*task];
            t.on_rq == OnRq::No && t.class == Class::Deadline
        };
        let sleepers: Vec<u64> =
            (0..self.tasks.len() as u64).filter(|&at| asleep(&self.tasks[at as usize])).collect();
        let this = rng.below(CPUS as u64);
        if SERVERS && rng.one_in(2) {
            return self.draw_of_fair(now, this, rng);
        }
        let task = rng.below(self.tasks.len() as u64);
        match rng.below(16) {
            0..=6 if !sleepers.is_empty() => Record::new(WAKE, &[now, this, rng.pick(&sleepers)]),
            7 if self.class(self.tasks[task as usize]) == Class::Deadline => {
                Record::new(FIND, &[now, this, task])
            }
            _ => self.draw_of_running(now, rng),
        }
    }

    /// What fair tasks and the idle task of a CPU do.
    fn draw_of_fair(&mut self, now: u64, cpu: u64, rng: &mut Rng) -> Record {
        let left = self.steps().server(CpuId(cpu as u16)).runtime;
        let has_fair = self.has_fair[cpu as usize];
        let idle = self.curr(cpu as usize).is_idle();
        match rng.below(4) {
            0 => Record::new(FAIR, &[now, cpu, !has_fair as u64]),
            1 if idle => Record::new(IDLE_TICK, &[now, cpu]),
            1 | 2 if has_fair => {
                let exactly = left > 0 && rng.one_in(4);
                let delta = if exactly { left as u64 } else { 1 + rng.magnitude(23) };
                Record::new(FAIR_RAN, &[now, cpu, delta])
            }
            _ => Record::new(SCHEDULE, &[now, cpu, 0, 0]),
        }
    }

    /// What the running task of a CPU does, of a CPU that runs one of the tasks where there is one.
    fn draw_of_running(&self, now: u64, rng: &mut Rng) -> Record {
        let runs: Vec<u64> =
            (0..CPUS as u64).filter(|cpu| self.number_of(self.curr(*cpu as usize)) != 0).collect();
        if runs.is_empty() {
            return Record::new(SCHEDULE, &[now, rng.below(CPUS as u64), 0, rng.below(2)]);
        }
        let cpu = rng.pick(&runs);
        let [runtime, deadline, period] = reservation(rng);
        let reserve = Record::new(RESERVE, &[now, cpu, runtime, deadline, period]);
        if self.class(self.curr(cpu as usize)) != Class::Deadline {
            return match rng.below(3) {
                0 => Record::new(SCHEDULE, &[now, cpu, 0, 0]),
                _ => reserve,
            };
        }
        match rng.below(16) {
            0..=3 => Record::new(SCHEDULE, &[now, cpu, 1, rng.below(2)]),
            4 => Record::new(SCHEDULE, &[now, cpu, 0, rng.below(2)]),
            5..=9 => Record::new(TICK, &[now, cpu]),
            10 | 11 => Record::new(YIELD, &[now, cpu]),
            12 => Record::new(AFFINITY, &[now, cpu, draw_mask(rng) | 1 << cpu]),
            13 => reserve,
            _ if !SERVERS && self.left[cpu as usize].is_none() => Record::new(LEAVE, &[now, cpu]),
            _ => Record::new(TICK, &[now, cpu]),
        }
    }
}
