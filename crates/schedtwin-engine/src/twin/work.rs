// SPDX-License-Identifier: GPL-2.0-or-later
//! How a CPU's task gets its work done, and what it does next.
//!
//! ```text
//!  Compute(work) ── work / rate ── Work slot ── next operation ── system call, exit, more work
//! ```
//!
//! Hardware threads of one core that work at the same time slow each other down (`[smt]` of the machine).
//!
//! Work is counted with 20 fractional bits; a CPU's rate follows its frequency and the kind of work that runs.

use super::{MAX_OPS_AT_ONCE, MAX_PIECE, Phase, Twin, turns};
use crate::board::{Board, CpuSlot};
use crate::twin::Observer;
use schedtwin_kernel::hardware::{NewTask, UserReturn};
use schedtwin_machine::{PERMILLE, RATE_SHIFT};
use schedtwin_types::{
    CpuId, Mode, NEVER, NeedCause, Ns, Op, Outcome, Syscall, TaskId, ThreadId, Work,
};

impl<B: Board> Twin<B> {
    /// Counts the work that a CPU's task has done until now.
    #[inline(always)]
    pub(super) fn account_work(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu];
        if let Phase::Task(task) = c.phase
            && self.now > c.since
        {
            let t = &mut self.tasks[task.index()];
            let done = (self.now - c.since).saturating_mul(c.rate);
            if self.meter.counts_l3() {
                self.meter.l3_work(self.now, done.min(t.remaining));
            }
            t.remaining = t.remaining.saturating_sub(done);
            if t.mode == Mode::User {
                self.meter.user_time(task, c.since, self.now);
            }
            c.since = self.now;
        }
    }

    /// The rest of the work that a thread was given last, ns at capacity 1024.
    pub(super) fn left_of(&self, thread: ThreadId) -> Work {
        let task = self.tasks.iter().find(|task| task.thread == Some(thread));
        task.map_or(0, |task| task.reserve + task.remaining.div_ceil(1 << RATE_SHIFT))
    }

    /// The CPU's frequency has changed.
    pub(super) fn refresh_rates(&mut self, cpu: CpuId) {
        let khz = self.settled[self.machine.cpus[cpu.index()].domain];
        for kind in 0..self.nr_kinds {
            let rate = self.machine.rate_of(cpu, khz, kind.checked_sub(1));
            self.rates[cpu.index() * self.nr_kinds + kind] = rate.max(1);
        }
        self.choose_rate(cpu);
    }

    /// The CPU works at the rate of what it runs.
    #[inline]
    pub(super) fn choose_rate(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu];
        let (kind, stalls) = match c.phase {
            Phase::Task(task) => (self.tasks[task.index()].kind, self.tasks[task.index()].stalls),
            _ => (0, 0),
        };
        c.rate = self.rates[cpu.index() * self.nr_kinds + kind];
        if stalls > 0 {
            let highest = self.machine.domain_of(cpu).max_khz();
            let highest = self.machine.rate_of(cpu, highest, kind.checked_sub(1));
            c.rate = rate_with_stalls(c.rate, highest, stalls);
        }
        if self.machine.smt.is_some() {
            let speed = self.thread_speed(cpu);
            let c = &mut self.cpus[cpu];
            c.rate = (c.rate * speed / PERMILLE).max(1);
        }
    }

    /// A task is on a CPU, perhaps another one than before: what it lacks in the caches there it fetches first. That takes
    /// time, which is work at the present speed.
    pub(super) fn task_arrives(&mut self, cpu: CpuId, task: TaskId) {
        let Some(distances) = &self.machine.distances else { return };
        let t = &mut self.tasks[task.index()];
        if t.thread.is_none() {
            return;
        }
        if let Some(from) = t.ran_on.replace(cpu).filter(|from| *from != cpu) {
            let refill = distances.refill(self.machine.distance(from, cpu));
            t.remaining = t.remaining.saturating_add(refill * self.cpus[cpu].rate);
        }
    }

    /// Returns the speed of a CPU beside the other threads of its core, thousandths of its speed
    /// alone.
    pub(super) fn thread_speed(&self, cpu: CpuId) -> u64 {
        let Some(smt) = &self.machine.smt else { return PERMILLE };
        let others = self.threads[cpu.index()].iter().filter(|thread| **thread != cpu);
        smt.speed_beside(others.map(|thread| self.cpus[*thread].slows).sum())
    }

    /// A hardware thread begins or ends to work or poll: the others of its core get slower or faster, and so do the kernel's
    /// paths there.
    pub(super) fn thread_slows(&mut self, cpu: CpuId, slows: u64) {
        if self.threads[cpu.index()].is_empty() || self.cpus[cpu].slows == slows {
            return;
        }
        self.cpus[cpu].slows = slows;
        for index in 0..self.threads[cpu.index()].len() {
            let thread = self.threads[cpu.index()][index];
            if thread == cpu {
                continue;
            }
            self.kernel.thread_speed(thread, self.thread_speed(thread));
            if matches!(self.cpus[thread].phase, Phase::Task(_)) {
                self.account_work(thread);
                self.choose_rate(thread);
                let at = self.work_done_at(thread);
                self.board.set(self.slots.cpu(thread, CpuSlot::Work), at);
            }
        }
    }

    /// When the CPU's task will be through with its work.
    #[inline]
    pub(super) fn work_done_at(&self, cpu: CpuId) -> Ns {
        let c = &self.cpus[cpu];
        match c.phase {
            Phase::Task(task) => {
                let t = &self.tasks[task.index()];
                if self.turns.is_some() && !self.work_goes_on(cpu, t) {
                    return NEVER;
                }
                c.since.saturating_add(t.remaining.div_ceil(c.rate)).max(t.busy_until)
            }
            _ => NEVER,
        }
    }

    pub(super) fn work_done(&mut self, cpu: CpuId, observer: &mut impl Observer) {
        self.account_work(cpu);
        let Phase::Task(task) = self.cpus[cpu].phase else { unreachable!("only a task has work") };
        if !self.cpus[cpu].pending.is_empty() {
            // Simultaneous with the end of the debt: interrupts first, as in hardware.
            self.board.set(self.slots.cpu(cpu, CpuSlot::Unmask), NEVER);
            self.deliver(cpu, observer);
            return;
        }
        let t = &mut self.tasks[task.index()];
        if t.reserve > 0 {
            let piece = t.reserve.min(MAX_PIECE);
            t.reserve -= piece;
            t.remaining = piece << RATE_SHIFT;
            let at = self.work_done_at(cpu);
            self.board.set(self.slots.cpu(cpu, CpuSlot::Work), at);
            return;
        }
        let Some(thread) = t.thread else {
            let t = &mut self.tasks[task.index()];
            t.busy_until = self.kernel.kthread(cpu, self.now);
            t.remaining = self.kernel.take_kthread_work() << RATE_SHIFT;
            self.after_entry(Some(cpu), observer);
            return;
        };
        match self.kernel.return_to_user(cpu, self.now) {
            UserReturn::InKernel => self.after_entry(Some(cpu), observer),
            UserReturn::ToUser(_) if self.passes_turn(task) => self.turn_ends(),
            UserReturn::ToUser(outcome) => {
                self.next_operation(cpu, task, thread, outcome, observer);
            }
        }
    }

    /// Asks the program what comes next, until it is something that takes time.
    pub(super) fn next_operation<O: Observer>(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        thread: ThreadId,
        outcome: Outcome,
        observer: &mut O,
    ) {
        for _ in 0..MAX_OPS_AT_ONCE {
            let Twin { programs, meter, now, .. } = self;
            let mark = |mark| meter.mark(*now, task, mark);
            match programs.next_in_time(thread, outcome, *now, mark) {
                Op::Mark(_) => unreachable!("marks are handed over"),
                Op::Stalls(permille) => {
                    self.tasks[task.index()].stalls = permille.min(1000).into();
                    self.choose_rate(cpu);
                }
                Op::Relax if self.turns.is_some() => {
                    self.turn_ends();
                    return;
                }
                Op::Relax | Op::Compute { work: 0, .. } => {}
                Op::Compute { work, mode } => {
                    let t = &mut self.tasks[task.index()];
                    let piece = work.min(MAX_PIECE);
                    t.remaining = piece << RATE_SHIFT;
                    t.reserve = work - piece;
                    t.mode = mode;
                    if self.turns.is_some() {
                        self.work_begins(cpu, task, work);
                    }
                    let at = self.work_done_at(cpu);
                    self.board.set(self.slots.cpu(cpu, CpuSlot::Work), at);
                    self.sync_devices();
                    return;
                }
                Op::Call(call) => {
                    if O::DECISIONS && matches!(call, Syscall::SchedSetattr(_)) {
                        self.log_because(NeedCause::SchedSetattr(task));
                    }
                    if self.turns.is_some() {
                        self.tasks[task.index()].passes_turn = turns::moves_data(&call);
                    }
                    let effect = self.kernel.syscall(cpu, self.now, call);
                    if let Some(prio) = effect.new_prio {
                        observer.task_prio(self.now, task, prio);
                        self.meter.task_prio(task, prio);
                    }
                    if let Some(NewTask { task, thread, prio }) = effect.child {
                        let (name, group) = self.names(thread);
                        self.add_task(task, &name, &group, Some(thread));
                        observer.task(task, &name, prio);
                    }
                    self.after_entry(Some(cpu), observer);
                    return;
                }
                Op::Exit => {
                    self.kernel.exit(cpu, self.now);
                    self.after_entry(Some(cpu), observer);
                    if self.programs.finished() {
                        self.end_soon();
                    }
                    return;
                }
            }
        }
        panic!("thread {} does not let time pass", self.programs.thread_name(thread));
    }
}

/// The rate of work of which `stalls` thousandths of the time at the rate `highest` wait for memory, where other work has the
/// rate `now`: that time stays, the rest follows the clock.
///
/// ```text
/// time of a piece of work = (1000 - stalls) / now + stalls / highest, in thousandths
/// ```
fn rate_with_stalls(now: u64, highest: u64, stalls: u64) -> u64 {
    // At most 2^27 * 2^27 * 1000 < 2^64: a kind's factor makes rates a hundred times RATE_FULL at most.
    let time = (PERMILLE - stalls) * highest + stalls * now;
    (now * highest / time.max(1) * PERMILLE + now * highest % time.max(1) * PERMILLE / time.max(1))
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::rate_with_stalls;
    use schedtwin_machine::{RATE_FULL, rate_of_kind};

    #[test]
    fn stalls_are_those_of_a_kind_of_work() {
        for (capacity, stalls, khz) in [(1024, 500, 1_000_000), (124, 900, 300_000), (498, 1, 999)]
        {
            let highest = rate_of_kind(capacity, 1000, 0, 2_000_000, 2_000_000);
            let now = rate_of_kind(capacity, 1000, 0, khz, 2_000_000);
            let of_kind = rate_of_kind(capacity, 1000, stalls, khz, 2_000_000);
            let rate = rate_with_stalls(now, highest, stalls);
            assert!(rate.abs_diff(of_kind) <= of_kind / 500 + 2, "{rate} {of_kind}");
        }
        assert_eq!(rate_with_stalls(RATE_FULL / 2, RATE_FULL, 500), RATE_FULL * 2 / 3);
        assert_eq!(
            rate_with_stalls(RATE_FULL / 4, RATE_FULL, 1000),
            RATE_FULL,
            "all of it is memory"
        );
    }
}
