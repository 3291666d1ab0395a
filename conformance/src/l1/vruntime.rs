//! Which of several delayed tasks a pick dequeues: the little of EEVDF that this needs.
//!
//! The recording names everybody who wakes, sleeps and runs, but not the delayed task that a pick
//! finishes ([`super::queue`]). Most of the time only one can be meant. Otherwise virtual times decide,
//! and they can be followed: a running task's `vruntime` grows with `clock_task`, a woken one is placed at
//! the average less its lag, and each line of a task corrects what is known of it.
//!
//! **Terms.** *V*: the weighted average `vruntime` of the queue. *Eligible*: `vruntime` not above V.
//! *Lag*: V − `vruntime` at the dequeue, kept while asleep.
//!
//! **Kernel:** Linux 6.12.95, `kernel/sched/fair.c`: `avg_vruntime`, `entity_eligible`, `place_entity`,
//! `update_entity_lag`, `update_deadline`, `pick_eevdf`.
//!
//! **Differences:** V is computed from the entities each time, not kept relative to `zero_vruntime`,
//! rounding down; a ns of difference could only matter for a tie. Slices are the printed ones.

use super::redrive::Redrive;

/// `TICK_NSEC` at the rig's HZ 250, the least a lag is clamped to.
const TICK_NS: i64 = 4_000_000;

impl Redrive {
    /// V of the queue, or where it was when the last one left.
    fn avg_vruntime(&self, cpu: usize) -> u64 {
        let queued = || self.tasks.values().filter(|t| t.cpu == cpu && t.on_rq);
        let Some(base) = queued().map(|t| t.vruntime).next() else {
            return self.cpus[cpu].vruntime;
        };
        let (mut sum, mut weights) = (0i128, 0i128);
        for t in queued() {
            sum += t.weight as i128 * (t.vruntime.wrapping_sub(base) as i64) as i128;
            weights += t.weight as i128;
        }
        base.wrapping_add(sum.div_euclid(weights.max(1)) as u64)
    }

    /// The running task has run up to `clock_task`.
    pub(super) fn charge(&mut self, cpu: usize, pid: i32, clock_task: u64) {
        let c = &mut self.cpus[cpu];
        let ran = clock_task.wrapping_sub(c.exec_start) as i64;
        if let Some(t) = self.tasks.get_mut(&pid)
            && ran > 0
        {
            c.exec_start = clock_task;
            t.vruntime = t.vruntime.wrapping_add(scale(ran, t.weight) as u64);
            if t.vruntime.wrapping_sub(t.deadline) as i64 >= 0 {
                t.deadline = t.vruntime.wrapping_add(scale(t.slice, t.weight) as u64);
            }
        }
    }

    /// Whether the pick may choose `pid`, which will have run up to `clock_task` if that is given.
    pub(super) fn eligible(&self, cpu: usize, pid: i32, clock_task: Option<u64>) -> bool {
        let Some(t) = self.tasks.get(&pid) else {
            return true;
        };
        let ran = clock_task.map_or(0, |now| now.wrapping_sub(self.cpus[cpu].exec_start) as i64);
        let vruntime = t.vruntime.wrapping_add(scale(ran.max(0), t.weight) as u64);
        let lag: i128 = self
            .tasks
            .iter()
            .filter(|(other, t)| t.cpu == cpu && t.on_rq && **other != pid)
            .map(|(_, t)| t.weight as i128 * (t.vruntime.wrapping_sub(vruntime) as i64) as i128)
            .sum();
        lag >= 0
    }

    /// Places a task that is about to be queued.
    pub(super) fn place(&mut self, cpu: usize, pid: i32) {
        let average = self.avg_vruntime(cpu);
        let load = self.cpus[cpu].weight as i128;
        if let Some(t) = self.tasks.get_mut(&pid) {
            let lag = if load == 0 {
                0
            } else {
                (t.vlag as i128 * (load + t.weight as i128) / load) as i64
            };
            t.vruntime = average.wrapping_sub(lag as u64);
            t.deadline = t.vruntime.wrapping_add(scale(t.slice, t.weight) as u64);
        }
    }

    /// Remembers the lag of a task that is about to leave its queue.
    pub(super) fn keep_lag(&mut self, cpu: usize, pid: i32) {
        let average = self.avg_vruntime(cpu);
        self.cpus[cpu].vruntime = average;
        if let Some(t) = self.tasks.get_mut(&pid) {
            let limit = scale((2 * t.slice).max(TICK_NS), t.weight);
            let lag = average.wrapping_sub(t.vruntime) as i64;
            t.vlag = lag.clamp(-limit, if t.delayed { 0 } else { limit });
        }
    }

    /// A delayed task wakes up where it is: with a lag to its favour it starts afresh.
    pub(super) fn requeue(&mut self, cpu: usize, pid: i32) {
        let average = self.avg_vruntime(cpu);
        let favoured =
            self.tasks.get(&pid).is_some_and(|t| average.wrapping_sub(t.vruntime) as i64 > 0);
        if favoured && let Some(t) = self.tasks.get_mut(&pid) {
            t.vlag = 0;
            t.on_rq = false;
            self.place(cpu, pid);
            if let Some(t) = self.tasks.get_mut(&pid) {
                t.on_rq = true;
            }
        }
    }
}

/// Time at a weight as virtual time (`calc_delta_fair`).
fn scale(ns: i64, weight: u64) -> i64 {
    (ns as i128 * 1024 / weight.max(1) as i128) as i64
}
