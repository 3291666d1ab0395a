// SPDX-License-Identifier: GPL-2.0-or-later
//! Random sequences of what happens to the RT class of a machine.

use super::{
    AFFINITY, CPU, CPUS, DEADLINE, FIND, INTERRUPT, LEAVE, PERIOD, PERIOD_NS, PRIORITY, Rt,
    SCHEDULE, START, TASK, TASKS_MAX, TICK, WAKE, YIELD, bits_of,
};
use crate::l0::Record;
use schedtwin_kernel::sched::{Class, OnRq};
use schedtwin_types::rng::Rng;
use schedtwin_types::{CpuId, CpuMask, TaskId};

/// RT priorities of most tasks; of each sequence three of them, so that equals meet.
const PRIORITIES: [u64; 8] = [0, 1, 40, 41, 50, 50, 97, 98];

impl<const FORM: u8> Rt<FORM> {
    pub(super) fn draw_start(&mut self, rng: &mut Rng) -> Record {
        (self.machine, self.planned) = (rng.below(3), 3 + rng.below(TASKS_MAX - 2));
        self.priorities = [0; 3].map(|_| rng.pick(&PRIORITIES));
        let (runtime, period) = match rng.below(if Self::THROTTLES { 7 } else { 6 }) {
            _ if !Self::THROTTLES => (PERIOD_NS / 20 * 19, PERIOD_NS),
            0 => (PERIOD_NS / 20 * 19, PERIOD_NS),
            1 => (PERIOD_NS, PERIOD_NS),
            2 => (1_000, 1_000_000),
            3 => (2_000_000, 2_000_000),
            _ => (3_000_000 + 1_000 * rng.below(6_000), 10_000_000),
        };
        let by_interrupt = !rng.one_in(3);
        let asymmetric = (self.machine == 1) as u64;
        Record::new(START, &[by_interrupt as u64, asymmetric, runtime, period, self.machine])
    }

    pub(super) fn draw_cpu(&mut self, number: u16, rng: &mut Rng) -> Record {
        let cpu = CpuId(number);
        let capacity = self.kernel.inside().rq[cpu].arch_capacity;
        let mut args = [number as u64, capacity, 0, 0, 0, rng.below(4)];
        args[2..5].copy_from_slice(&draw_domains(self.steps().domains(cpu), rng));
        Record { op: CPU, args }
    }

    pub(super) fn draw_task(&mut self, rng: &mut Rng) -> Record {
        let mask = draw_mask(rng);
        let cpu = bits(mask).nth(rng.below(mask.count_ones() as u64) as usize).expect("a CPU");
        let clamp = rng.pick(&[0, 300, 301, 700, 1024]);
        Record::new(TASK, &[cpu, self.draw_priority(rng), 1 + rng.below(2), mask, clamp])
    }

    pub(super) fn draw_step(&mut self, rng: &mut Rng) -> Record {
        let longest = if Self::THROTTLES { 23 } else { 20 };
        let now = self.now + if rng.one_in(4) { 0 } else { rng.magnitude(longest) };
        if Self::THROTTLES
            && let (true, due) = self.steps().period_timer()
            && due <= now
            && !rng.one_in(3)
        {
            return Record::new(PERIOD, &[now, rng.below(CPUS as u64)]);
        }
        let waiting = bits_of(&self.steps().push_interrupts());
        if waiting != 0 && !rng.one_in(4) {
            let cpu = bits(waiting).nth(rng.below(waiting.count_ones() as u64) as usize);
            return Record::new(INTERRUPT, &[now, cpu.expect("one of them")]);
        }
        let asked: Vec<u64> = (0..CPUS as u64)
            .filter(|cpu| self.kernel.inside().rq[CpuId(*cpu as u16)].need_resched)
            .collect();
        if !asked.is_empty() && !rng.one_in(3) {
            return Record::new(SCHEDULE, &[now, rng.pick(&asked), 0, rng.below(2)]);
        }
        let asleep = |task: &TaskId| {
            let t = &self.kernel.inside().tasks[*task];
            t.on_rq == OnRq::No && t.class == Class::Rt
        };
        let sleepers: Vec<u64> =
            (0..self.tasks.len() as u64).filter(|&at| asleep(&self.tasks[at as usize])).collect();
        let this = rng.below(CPUS as u64);
        match rng.below(16) {
            0..=6 if !sleepers.is_empty() => Record::new(WAKE, &[now, this, rng.pick(&sleepers)]),
            7 => {
                let task = rng.below(self.tasks.len() as u64);
                match self.class(self.tasks[task as usize]) {
                    Class::Rt => Record::new(FIND, &[now, this, task]),
                    // One that has left the class has no level.
                    _ => self.draw_of_running(now, rng),
                }
            }
            8 => self.draw_deadline(now, this as usize, rng),
            _ => self.draw_of_running(now, rng),
        }
    }

    fn draw_deadline(&self, now: u64, cpu: usize, rng: &mut Rng) -> Record {
        let queued = self.kernel.inside().tasks[self.deadline[cpu]].dl.queued;
        if queued || !self.runs_deadline(cpu) {
            return Record::new(DEADLINE, &[now, cpu as u64, !queued as u64]);
        }
        Record::new(SCHEDULE, &[now, cpu as u64, 0, rng.below(2)])
    }

    fn draw_priority(&self, rng: &mut Rng) -> u64 {
        if rng.one_in(4) { rng.below(99) } else { rng.pick(&self.priorities) }
    }

    /// What the running task of a CPU does, of a CPU that runs an RT task where there is one.
    fn draw_of_running(&self, now: u64, rng: &mut Rng) -> Record {
        let has_rt = |cpu: &u64| self.number_of(self.curr(*cpu as usize)) != 0;
        let runs: Vec<u64> = (0..CPUS as u64).filter(has_rt).collect();
        if runs.is_empty() {
            return Record::new(SCHEDULE, &[now, rng.below(CPUS as u64), 0, rng.below(2)]);
        }
        let cpu = rng.pick(&runs);
        let (prio, policy) = (self.draw_priority(rng), 1 + rng.below(2));
        if self.class(self.curr(cpu as usize)) != Class::Rt {
            return match rng.below(2) {
                0 => Record::new(PRIORITY, &[now, cpu, prio, policy]),
                _ => Record::new(SCHEDULE, &[now, cpu, 0, rng.below(2)]),
            };
        }
        match rng.below(16) {
            0..=4 => Record::new(SCHEDULE, &[now, cpu, 1, rng.below(2)]),
            5 => Record::new(SCHEDULE, &[now, cpu, 0, rng.below(2)]),
            6..=10 => {
                // The slice of SCHED_RR is 25 ticks.
                let count = if rng.one_in(2) { 1 } else { rng.below(60) };
                Record::new(TICK, &[now, cpu, count])
            }
            11 => Record::new(YIELD, &[now, cpu]),
            12 => Record::new(AFFINITY, &[now, cpu, draw_mask(rng) | 1 << cpu]),
            13 | 14 => Record::new(PRIORITY, &[now, cpu, prio, policy]),
            _ => Record::new(LEAVE, &[now, cpu]),
        }
    }
}

/// The numbers of the bits that are set.
pub(crate) fn bits(mask: u64) -> impl Iterator<Item = u64> {
    (0..64).filter(move |bit| mask >> bit & 1 != 0)
}

/// CPUs that a task may have: one, some or all.
pub(crate) fn draw_mask(rng: &mut Rng) -> u64 {
    match rng.below(4) {
        0 => 1 << rng.below(CPUS as u64),
        1 => 1 + rng.below(255),
        _ => 255,
    }
}

/// The domains of a CPU, which has three at most. Wakeups may not stay within one in eight.
pub(crate) fn draw_domains(domains: Vec<(CpuMask, bool)>, rng: &mut Rng) -> [u64; 3] {
    let mut drawn = [0; 3];
    for (arg, (span, wakes)) in drawn.iter_mut().zip(domains) {
        *arg = bits_of(&span) | ((wakes && !rng.one_in(8)) as u64) << 63;
    }
    drawn
}
