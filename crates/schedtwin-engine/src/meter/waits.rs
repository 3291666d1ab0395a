// SPDX-License-Identifier: GPL-2.0-or-later
//! Waits for a CPU: who is runnable and does not run, for how long, and what CPUs did meanwhile.
//!
//! # Terms
//!
//! * A task is *queued* on a CPU from its `sched_wakeup` to the switch in which it goes to sleep, and *waits* while it is
//!   queued and does not run. Both end and begin anew on another CPU when it migrates; the wait goes on.
//! * `run_delay`: the sum of its waits, after a preemption as after a wakeup (`sched_info.run_delay`). A wait that has not
//!   ended when the run ends counts with its age.
//! * *contention*: two or more tasks are queued on a CPU; what runnable boosting reacts to.
//! * PSI's cpu `some`: a task waits on a CPU (`PSI_CPU_SOME`: `NR_RUNNING > oncpu`). CPUs are weighted with the time in which
//!   they are not idle, in periods of 2 s, as `collect_percpu_times()` does.
//! * *wasted CPU*: a CPU is idle while a task waits behind another one on a CPU of its own and may run on the idle one. The
//!   tick of the busy CPU notices it (one with two tasks always has a tick); it then counts from the moment on from which
//!   both were so, and ends when the queue is down to one task, no CPU is idle, or a tick finds nobody who may move.
//!
//! The kernel's own threads neither wait nor are queued here.
//!
//! ```text
//!  queued     1        2           1     2    1     0
//!         ────┼────────┼───────────┼─────┼────┼─────┼──►
//!                      |contended  |     |    |
//! ```
//!
//! # Bounds
//!
//! [`Property`] says which intervals break a property. Time in which the task's cgroup is throttled is nobody's fault: the
//! engine, which can ask the kernel, says since when a long wait, or one beside an idle CPU, is without one
//! ([`Meter::judge_waits`]). What such a wait had before it was throttled does not count either.
//!
//! # Differences
//!
//! CPUs stamp out of order by the kernel time that one of them owes. Each CPU's own time only goes forward here, so intervals
//! of a CPU never overlap.
//!
//! Kernel: 6.12 kernel/sched/stats.h `sched_info_arrive`, `sched_info_enqueue`; kernel/sched/psi.c `test_states`,
//! `collect_percpu_times`.

use super::{Meter, WAKE_SOURCES};
use schedtwin_kernel::hardware::TaskShare;
use schedtwin_types::property::{Bounds, Breach, Property};
use schedtwin_types::{CpuId, CpuMask, NEVER, Ns, TaskId};

/// `psi_period`: CPUs are weighted anew after it.
const PSI_PERIOD: Ns = 2_000_000_000;

/// A task that waits longer than so many turns of all tasks of its CPU starves: placement, lag and slices of a tick take some.
const TURNS: Ns = 10;

/// RT tasks leave a twentieth of the time to fair ones (`sched_rt_runtime_us`, the fair server).
const RT_LEAVES: Ns = 20;

/// Long waits that may be noticed within one entry of the kernel: it switches one CPU, and few are woken by it.
const LONG_WAITS: usize = 64;

/// Two or more tasks are queued.
const CONTENDED: u8 = 1;
/// A task waits.
const SOME: u8 = 2;
/// It runs its idle task, and nobody is queued.
const IDLE: u8 = 4;
/// An RT or DEADLINE task waits while a fair one runs.
const INVERTED: u8 = 8;

/// Queued tasks of a CPU.
#[derive(Clone, Debug)]
struct CpuQueue {
    /// Its time, which only goes forward; the window's beginning at first.
    now: Ns,
    queued: u32,
    /// Tasks that wait, in the low half, and the RT and DEADLINE tasks among them, in the high one ([`wait_unit`]).
    waiting: u64,
    /// The task whose wait began here last. If one waits here, and this one does, it is that one.
    waiter: TaskId,
    /// It runs its idle task.
    idle: bool,
    /// It runs a fair task of the workload.
    runs_fair: bool,
    /// When an RT or DEADLINE task last ran.
    ran_rt: Ns,
    /// What of [`CONTENDED`], [`SOME`], [`IDLE`] and [`INVERTED`] it is.
    state: u8,
    /// Time in each of the first three, of the present period of PSI.
    spent: [Ns; 8],
    /// Time with two or more queued, in the window, up to that period.
    contended_ns: Ns,
    /// Waits that ended here.
    run_delay_ns: Ns,
    /// Since when there are two or more.
    crowded_since: Ns,
    /// Since when a task waits behind another one beside an idle CPU; `NEVER`: none was noticed.
    wasted_since: Ns,
    /// The idle period of the machine in which that began, and the last tick that found it so.
    wasted_period: u64,
    wasted_seen: Ns,
    /// The task that waits and the idle CPU.
    wasted_by: (TaskId, CpuId),
    /// Since when an RT or DEADLINE task waits while a fair one runs.
    inverted_since: Ns,
}

/// An interval that was longer than its bound, before anybody has asked whose fault it is.
#[derive(Clone, Copy, Debug)]
pub struct LongWait {
    /// The task.
    pub task: TaskId,
    /// Where it waited last.
    pub cpu: CpuId,
    since: Ns,
    until: Ns,
    open: bool,
    instead: TaskId,
}

/// A task that waits behind another one beside an idle CPU that it may use.
#[derive(Clone, Copy, Debug)]
struct Stranded {
    task: TaskId,
    free: CpuId,
    since: Ns,
    /// Since when no limit keeps it from its CPU.
    free_since: Ns,
}

/// A CPU was idle beside a queue, for all that is known before anybody has asked whether the task was throttled.
#[derive(Clone, Copy, Debug)]
struct Waste {
    task: TaskId,
    cpu: CpuId,
    idle: CpuId,
    since: Ns,
    until: Ns,
    open: bool,
}

/// Breaches of a property: how many, and the longest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaches {
    pub(super) count: u64,
    longest: Ns,
    since: Ns,
    open: bool,
    pub(super) task: Option<TaskId>,
    pub(super) cpu: CpuId,
    /// The task that ran, or the CPU that was idle.
    instead: Option<TaskId>,
    idle: Option<CpuId>,
}

impl Breaches {
    fn add(&mut self, since: Ns, until: Ns, open: bool) -> bool {
        self.count += 1;
        let longest = self.count == 1 || until - since > self.longest;
        if longest {
            (self.longest, self.since, self.open) = (until - since, since, open);
        }
        longest
    }

    /// An amount that grows: a breach the first time at which it is beyond the bound.
    pub(super) fn amounts_to(&mut self, amount: Ns, since: Ns, new: bool) -> bool {
        self.count += u64::from(new);
        let most = amount > self.longest;
        if most {
            (self.longest, self.since) = (amount, since);
        }
        most
    }
}

/// Waits of all CPUs.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    cpus: Vec<CpuQueue>,
    bounds: Bounds,
    window_start: Ns,
    /// CPUs that run their idle task and have nobody queued.
    idle: CpuMask,
    nr_idle: u32,
    /// Since when a CPU is idle, until when one was, and which such period it is.
    idle_since: Ns,
    idle_until: Ns,
    idle_period: u64,
    long: Vec<LongWait>,
    /// What was wasted since the kernel was last asked.
    wastes: Vec<Waste>,
    /// The engine is to ask the kernel about one of these, or of those that follow.
    asks: bool,
    /// A tick has found a queue beside an idle CPU.
    look: Option<CpuId>,
    /// A tick has found a queue, and it is time to look at its shares.
    look_at_shares: Option<CpuId>,
    wasted_ns: Ns,
    wasted_longest: Ns,
    starved: Breaches,
    late: Breaches,
    wasted: Breaches,
    inverted: Breaches,
    /// The shorter bound of the two that a wait has.
    shortest_long: Ns,
    /// PSI: when the period ends, and the sums of those before, ns.
    psi_ends: Ns,
    psi_some_ns: u128,
    psi_ns: u128,
}

/// One task that waits, as [`CpuQueue::waiting`] counts it: an RT or DEADLINE task counts in both halves.
pub(super) const fn wait_unit(rt: bool) -> u64 {
    1 | ((rt as u64) << 32)
}

/// The shorter of the bounds that a wait for a CPU has.
fn shortest_long(bounds: &Bounds) -> Ns {
    bounds.of(Property::Starvation).min(bounds.of(Property::LatencyBound))
}

/// A change of what a CPU has. The waiting tasks wrap: a change may take some away.
#[derive(Clone, Copy, Default)]
struct QueueChange {
    queued: i32,
    waiting: u64,
}

impl Waits {
    /// A wait begins or ends in a switch on `cpu`, of a task that is queued there, as a rule: that is part of the switch's
    /// change `by`.
    #[inline(always)]
    fn waits(
        &mut self,
        at: Ns,
        queued_on: Option<CpuId>,
        cpu: CpuId,
        waiting: u64,
        by: &mut QueueChange,
    ) {
        if queued_on == Some(cpu) {
            by.waiting = by.waiting.wrapping_add(waiting);
        } else if let Some(other) = queued_on {
            self.change(at, other, QueueChange { queued: 0, waiting });
        }
    }

    pub(super) fn new(cpus: usize, window_start: Ns, bounds: Bounds) -> Waits {
        let queue = CpuQueue {
            now: window_start,
            queued: 0,
            waiting: 0,
            waiter: TaskId::IDLE,
            idle: true,
            runs_fair: false,
            ran_rt: 0,
            state: IDLE,
            spent: [0; 8],
            contended_ns: 0,
            run_delay_ns: 0,
            crowded_since: NEVER,
            wasted_since: NEVER,
            wasted_period: 0,
            wasted_seen: 0,
            wasted_by: (TaskId::IDLE, CpuId(0)),
            inverted_since: NEVER,
        };
        Waits {
            cpus: vec![queue; cpus],
            window_start,
            idle: CpuMask::first(cpus),
            nr_idle: cpus as u32,
            idle_since: 0,
            idle_until: NEVER,
            idle_period: 0,
            long: Vec::with_capacity(LONG_WAITS),
            wastes: Vec::with_capacity(LONG_WAITS),
            asks: false,
            look: None,
            look_at_shares: None,
            wasted_ns: 0,
            wasted_longest: 0,
            starved: Breaches::default(),
            late: Breaches::default(),
            shortest_long: shortest_long(&bounds),
            bounds,
            wasted: Breaches::default(),
            inverted: Breaches::default(),
            psi_ends: window_start + PSI_PERIOD,
            psi_some_ns: 0,
            psi_ns: 0,
        }
    }

    pub(super) fn bound_by(&mut self, bounds: Bounds) {
        self.shortest_long = shortest_long(&bounds);
        self.bounds = bounds;
    }

    /// Books the time of `cpu` up to `at`, then changes its queue.
    #[inline(always)]
    fn change(&mut self, at: Ns, cpu: CpuId, by: QueueChange) {
        self.cpus[cpu.index()].advance(at);
        self.apply(at, cpu, by);
    }

    /// Changes the queue of `cpu`, whose time is booked.
    #[inline(always)]
    fn apply(&mut self, at: Ns, cpu: CpuId, by: QueueChange) {
        let queue = &mut self.cpus[cpu.index()];
        queue.queued = queue.queued.wrapping_add_signed(by.queued);
        queue.waiting = queue.waiting.wrapping_add(by.waiting);
        let state = (u8::from(queue.queued >= 2) * CONTENDED)
            | (u8::from(queue.waiting != 0) * SOME)
            | (u8::from(queue.idle && queue.queued == 0) * IDLE)
            | (u8::from(queue.waiting >> 32 != 0 && queue.runs_fair) * INVERTED);
        let changed = std::mem::replace(&mut queue.state, state) ^ state;
        if changed & (CONTENDED | INVERTED) != 0 {
            self.contention_changes(at, cpu, state, changed);
        }
        if changed & IDLE != 0 {
            self.idle_changes(at, cpu, state & IDLE != 0);
        }
    }

    #[inline(never)]
    fn contention_changes(&mut self, at: Ns, cpu: CpuId, state: u8, changed: u8) {
        if changed & CONTENDED != 0 {
            let queue = &mut self.cpus[cpu.index()];
            queue.crowded_since = if state & CONTENDED != 0 { at } else { NEVER };
            if state & CONTENDED == 0 && queue.wasted_since != NEVER {
                self.waste_ends(at, cpu, false);
            }
        }
        if changed & INVERTED != 0 {
            self.inversion_changes(at, cpu);
        }
    }

    /// Keeps the set of idle CPUs.
    #[inline(always)]
    fn idle_changes(&mut self, at: Ns, cpu: CpuId, idle: bool) {
        self.idle.set(cpu, idle);
        if idle {
            self.nr_idle += 1;
            if self.nr_idle == 1 {
                (self.idle_since, self.idle_until) = (at, NEVER);
                self.idle_period += 1;
            }
        } else {
            self.nr_idle -= 1;
            if self.nr_idle == 0 {
                self.idle_until = at;
            }
        }
    }

    #[cold]
    fn inversion_changes(&mut self, at: Ns, cpu: CpuId) {
        let queue = &mut self.cpus[cpu.index()];
        let since = std::mem::replace(&mut queue.inverted_since, NEVER);
        if since == NEVER {
            queue.inverted_since = at;
            return;
        }
        self.inverted_for(since, at, cpu, false);
    }

    fn inverted_for(&mut self, since: Ns, at: Ns, cpu: CpuId, open: bool) {
        let since = since.max(self.window_start);
        if at.saturating_sub(since) > self.bounds.of(Property::PriorityInversion)
            && self.inverted.add(since, at, open)
        {
            self.inverted.cpu = cpu;
        }
    }

    /// The queue of `cpu` and the idle CPUs part: what has lasted until `at` counts.
    #[cold]
    fn waste_ends(&mut self, at: Ns, cpu: CpuId, open: bool) {
        let queue = &mut self.cpus[cpu.index()];
        let since = std::mem::replace(&mut queue.wasted_since, NEVER).max(self.window_start);
        // When an idle period ended is known of the last one only; of others, until when a tick has seen it.
        let same = queue.wasted_period == self.idle_period;
        let idle_until = if same { self.idle_until } else { queue.wasted_seen };
        let until = at.min(idle_until.max(since));
        let (task, idle) = queue.wasted_by;
        self.wastes.push(Waste { task, cpu, idle, since, until, open });
        self.asks = true;
    }

    /// Counts what was wasted, without the time in which a limit kept the task from its CPU.
    #[cold]
    fn count_wastes(&mut self, free_since: impl Fn(TaskId, CpuId) -> Ns) {
        while let Some(Waste { task, cpu, idle, since, until, open }) = self.wastes.pop() {
            let since = since.max(free_since(task, cpu));
            let length = until.saturating_sub(since);
            self.wasted_ns += length;
            self.wasted_longest = self.wasted_longest.max(length);
            if length > self.bounds.of(Property::WorkConservation)
                && self.wasted.add(since, until, open)
            {
                (self.wasted.task, self.wasted.cpu) = (Some(task), cpu);
                self.wasted.idle = Some(idle);
            }
        }
    }

    /// PSI: the CPUs are weighted with the time in which they were not idle.
    #[cold]
    fn psi_period_ends(&mut self, at: Ns) {
        let (mut some, mut all, mut longest) = (0u128, 0u128, 0);
        for queue in &mut self.cpus {
            queue.advance(at);
            let busy = u128::from(queue.spent(|state| state & IDLE == 0));
            some += u128::from(queue.spent(|state| state & SOME != 0)) * busy;
            all += busy;
            queue.contended_ns += queue.spent(|state| state & CONTENDED != 0);
            queue.spent = [0; 8];
            longest = longest.max(queue.now);
        }
        self.psi_some_ns += some / all.max(1);
        self.psi_ns += u128::from(PSI_PERIOD.min(at.saturating_sub(self.psi_ends - PSI_PERIOD)));
        self.psi_ends = at + PSI_PERIOD;
    }

    /// The time with two or more queued tasks on `cpu`, in the window.
    pub(super) fn contended_ns(&self, cpu: usize) -> Ns {
        let queue = &self.cpus[cpu];
        queue.contended_ns + queue.spent(|state| state & CONTENDED != 0)
    }

    /// Time for which tasks waited that got `cpu` then, in the window.
    pub(super) fn run_delay_ns(&self, cpu: usize) -> Ns {
        self.cpus[cpu].run_delay_ns
    }

    /// Shares of the window, thousandths of a percent: PSI's cpu `some`.
    pub(super) fn psi_some(&self) -> (u128, u128) {
        (self.psi_some_ns, self.psi_ns)
    }

    /// Sum and longest of the wasted time, ns.
    pub(super) fn wasted(&self) -> (Ns, Ns) {
        (self.wasted_ns, self.wasted_longest)
    }

    /// Intervals beyond the bound.
    pub(super) fn breaches(&self, property: Property) -> u64 {
        match property {
            Property::Starvation => self.starved.count,
            Property::LatencyBound => self.late.count,
            Property::WorkConservation => self.wasted.count,
            Property::PriorityInversion => self.inverted.count,
            _ => 0,
        }
    }

    /// The number of tasks that are queued on `cpu`, and of those that wait.
    pub(super) fn queued(&self, cpu: usize) -> (u32, u32) {
        (self.cpus[cpu].queued, self.cpus[cpu].waiting as u32)
    }
}

impl CpuQueue {
    #[inline(always)]
    fn advance(&mut self, at: Ns) {
        let at = at.max(self.now);
        self.spent[usize::from(self.state & 7)] += at - self.now;
        self.now = at;
    }

    /// Time in the states that are meant, of the present period of PSI.
    fn spent(&self, meant: impl Fn(u8) -> bool) -> Ns {
        (0u8..8).zip(self.spent).filter(|(state, _)| meant(*state)).map(|(_, ns)| ns).sum()
    }
}

impl Meter {
    /// `task` is queued on `cpu` from now on, or nowhere.
    #[inline(always)]
    pub(super) fn queue_task(&mut self, at: Ns, task: TaskId, cpu: Option<CpuId>) {
        let meter = &mut self.tasks[task.index()];
        let before = std::mem::replace(&mut meter.queued_on, cpu);
        if before == cpu || meter.kernel {
            return;
        }
        meter.queued_at = at;
        let waited = meter.waits_since != NEVER;
        let waits = cpu.is_some() && !meter.on_cpu;
        let unit = meter.wait_unit;
        if waits && !waited {
            meter.waits_since = at;
        }
        if !waits && waited {
            // It was taken off its queue without having run.
            meter.waits_since = NEVER;
        }
        let at = at.min(self.end);
        if let Some(before) = before {
            let waiting = if waited { unit.wrapping_neg() } else { 0 };
            let by = QueueChange { queued: -1, waiting };
            self.waits.change(at, before, by);
        }
        if let Some(cpu) = cpu {
            let waiting = if waits { unit } else { 0 };
            self.waits.cpus[cpu.index()].waiter = task;
            let by = QueueChange { queued: 1, waiting };
            self.waits.change(at, cpu, by);
        }
    }

    /// `next` gets `cpu` from `prev`, which stays queued or not.
    #[inline(always)]
    pub(super) fn queues_switch(
        &mut self,
        at: Ns,
        cpu: CpuId,
        prev: TaskId,
        next: TaskId,
        stays: bool,
    ) {
        let mut by = QueueChange::default();
        let end = self.end;
        let leaving = &mut self.tasks[prev.index()];
        leaving.on_cpu = false;
        let (rt, waiter) = (leaving.wait_unit >> 32 != 0, leaving.counts());
        if rt {
            self.waits.cpus[cpu.index()].ran_rt = at;
        }
        if waiter {
            if stays {
                leaving.waits_since = at;
                let (of, unit) = (leaving.queued_on, leaving.wait_unit);
                self.waits.cpus[cpu.index()].waiter = prev;
                self.waits.waits(at.min(end), of, cpu, unit, &mut by);
            } else if leaving.queued_on == Some(cpu) {
                leaving.queued_on = None;
                by.queued = -1;
            } else {
                self.queue_task(at, prev, None);
            }
        }
        let entering = &mut self.tasks[next.index()];
        entering.on_cpu = true;
        let queue = &mut self.waits.cpus[cpu.index()];
        queue.advance(at.min(end));
        queue.idle = next.is_idle();
        queue.runs_fair = false;
        if entering.counts() {
            queue.runs_fair = entering.wait_unit == wait_unit(false);
            let since = std::mem::replace(&mut entering.waits_since, NEVER);
            if since != NEVER {
                let (of, unit) = (entering.queued_on, entering.wait_unit.wrapping_neg());
                self.waits.waits(at.min(end), of, cpu, unit, &mut by);
                let start = since.max(self.waits.window_start);
                let waited = at.min(end).saturating_sub(start);
                entering.run_delay_ns += waited;
                entering.longest_wait_ns = entering.longest_wait_ns.max(waited);
                self.waits.cpus[cpu.index()].run_delay_ns += waited;
                if waited > self.waits.shortest_long {
                    self.waits.long_wait(LongWait {
                        task: next,
                        cpu,
                        since: start,
                        until: at,
                        open: false,
                        instead: prev,
                    });
                }
            }
        }
        self.waits.apply(at.min(end), cpu, by);
        if at >= self.waits.psi_ends && at < end {
            self.waits.psi_period_ends(at);
        }
    }

    /// A tick of `cpu`: does a task wait there behind another one beside an idle CPU? Does each get its share?
    #[inline(always)]
    pub(super) fn tick_looks(&mut self, at: Ns, cpu: CpuId) {
        let queue = &self.waits.cpus[cpu.index()];
        if queue.queued < 2 {
            return;
        }
        if self.waits.nr_idle != 0 || queue.wasted_since != NEVER {
            self.waits.look = Some(cpu);
            self.waits.asks = true;
        }
        if self.fairness.is_due(at, cpu) {
            self.waits.look_at_shares = Some(cpu);
            self.waits.asks = true;
        }
    }

    /// Whether the engine should ask the kernel: of a queue beside an idle CPU, of shares, or of a long wait.
    #[inline(always)]
    pub fn has_questions(&self) -> bool {
        self.waits.asks
    }

    /// Answers what [`Meter::has_questions`] asks. `allowed`: the CPUs that a task may move to now, none if it is throttled;
    /// `free_since`: since when no group of a task is throttled on a CPU; `share_of`: what a fair task has had;
    /// `turn_of`: in what time each of the tasks of its CPU has had a turn by weights alone; `None`: it is no fair task.
    pub fn judge_waits(
        &mut self,
        at: Ns,
        allowed: impl Fn(TaskId) -> CpuMask,
        free_since: impl Fn(TaskId, CpuId) -> Ns,
        share_of: impl Fn(TaskId) -> Option<TaskShare>,
        turn_of: impl Fn(TaskId, &[TaskId], Ns) -> Option<Ns>,
    ) {
        self.waits.asks = false;
        if let Some(cpu) = self.waits.look_at_shares.take() {
            self.look_at_shares(at, cpu, share_of);
        }
        if let Some(cpu) = self.waits.look.take() {
            let found = self.stranded_longest(cpu, allowed, &free_since);
            self.waits.tick_finds(at.min(self.end), cpu, found);
        }
        self.waits.count_wastes(&free_since);
        while let Some(wait) = self.waits.long.pop() {
            let since = wait.since.max(free_since(wait.task, wait.cpu));
            let until = wait.until.min(self.end);
            let waited = until.saturating_sub(since);
            if waited <= self.waits.shortest_long || waited <= self.explained_wait(&wait, &turn_of)
            {
                continue;
            }
            let found = if waited > self.waits.bounds.of(Property::Starvation) {
                self.tasks[wait.task.index()].starved += 1;
                &mut self.waits.starved
            } else if waited > self.waits.bounds.of(Property::LatencyBound)
                && self.tasks[wait.task.index()].prio >= 100
            {
                &mut self.waits.late
            } else {
                continue;
            };
            if found.add(since, until, wait.open) {
                (found.task, found.cpu) = (Some(wait.task), wait.cpu);
                found.instead = Some(wait.instead);
            }
        }
    }

    /// Of the tasks that wait on `cpu` and may run on a CPU that is idle, the one that has waited longest.
    fn stranded_longest(
        &self,
        cpu: CpuId,
        allowed: impl Fn(TaskId) -> CpuMask,
        free_since: impl Fn(TaskId, CpuId) -> Ns,
    ) -> Option<Stranded> {
        let stranded = |task: TaskId| {
            let of = &self.tasks[task.index()];
            let waits = of.queued_on == Some(cpu) && of.waits_since != NEVER && of.counts();
            waits.then(|| Some((allowed(task).and(&self.waits.idle).lowest()?, of.waits_since)))
        };
        let found = |task, (free, since)| {
            let free_since = free_since(task, cpu);
            Stranded { task, free, since, free_since }
        };
        let queue = &self.waits.cpus[cpu.index()];
        if queue.waiting as u32 == 1
            && let Some(it) = stranded(queue.waiter)
        {
            return it.map(|it| found(queue.waiter, it));
        }
        let tasks = (0..self.tasks.len()).map(|index| TaskId(index as u32));
        let all = tasks.filter_map(|task| Some(found(task, stranded(task)??)));
        all.min_by_key(|stranded| stranded.since)
    }

    /// The longest wait that priorities and weights alone explain, whatever the kernel makes of them.
    fn explained_wait(
        &self,
        wait: &LongWait,
        turn_of: impl Fn(TaskId, &[TaskId], Ns) -> Option<Ns>,
    ) -> Ns {
        let waits = &self.tasks[wait.task.index()];
        let instead = self.tasks.get(wait.instead.index()).map_or(120, |task| task.prio);
        let ran_rt = self.waits.cpus[wait.cpu.index()].ran_rt;
        // Who sleeps at this moment has had turns, too.
        let competes = |at: &usize| {
            let ran = self.run_ns[at * self.cpus.len() + wait.cpu.index()] > 0;
            self.tasks[*at].counts() && (ran || self.tasks[*at].queued_on == Some(wait.cpu))
        };
        let competing: Vec<TaskId> =
            (0..self.tasks.len()).filter(competes).map(|at| TaskId(at as u32)).collect();
        match turn_of(wait.task, &competing, wait.since) {
            Some(turn) if instead < 100 || ran_rt > wait.since => {
                turn.saturating_mul(TURNS * RT_LEAVES)
            }
            Some(turn) => turn.saturating_mul(TURNS),
            // An RT task waits for those of its priority and above as long as they run; between them, fair tasks have what RT
            // tasks leave.
            None if instead <= waits.prio || ran_rt > wait.since => NEVER,
            None => 0,
        }
    }

    /// The run ends at `end`: what still waits, waits with its age.
    pub fn waits_end(&mut self, end: Ns) {
        for (index, task) in self.tasks.iter_mut().enumerate() {
            let since = std::mem::replace(&mut task.waits_since, NEVER);
            if since == NEVER || !task.counts() {
                continue;
            }
            let since = since.max(self.waits.window_start);
            let waited = end.saturating_sub(since);
            task.run_delay_ns += waited;
            task.longest_wait_ns = task.longest_wait_ns.max(waited);
            let Some(cpu) = task.queued_on else { continue };
            // As with jobs: a wakeup that has led to no switch counts with its age if that is the longest.
            let group = task.group as usize;
            if task.wakeup_at != NEVER {
                let age = end.saturating_sub(task.wakeup_at);
                let longest = self.wakeup.by_group[group].max();
                if longest.is_none_or(|max| age as f64 > max) {
                    let cluster = self.cpus[cpu.index()].cluster as usize;
                    let place = cluster * WAKE_SOURCES + task.source as usize;
                    self.wakeup.record(group, place, age);
                    if task.waking_at != NEVER {
                        self.waking.record(group, place, end.saturating_sub(task.waking_at));
                    }
                }
            }
            self.waits.cpus[cpu.index()].run_delay_ns += waited;
            if waited > self.waits.shortest_long {
                let instead = self.cpus[cpu.index()].running;
                let task = TaskId(index as u32);
                self.waits.long.push(LongWait {
                    task,
                    cpu,
                    since,
                    until: end,
                    open: true,
                    instead,
                });
            }
        }
        for index in 0..self.waits.cpus.len() {
            let cpu = CpuId(index as u16);
            self.waits.cpus[index].advance(end);
            if self.waits.cpus[index].wasted_since != NEVER {
                self.waits.waste_ends(end, cpu, true);
            }
            let since = std::mem::replace(&mut self.waits.cpus[index].inverted_since, NEVER);
            if since != NEVER {
                self.waits.inverted_for(since, end, cpu, true);
            }
        }
        self.waits.psi_period_ends(end);
    }

    /// The properties of waits that were broken, in words.
    pub(super) fn broken_waits(&self) -> Vec<Breach> {
        let mut broken = Vec::new();
        let name = |task: TaskId| self.task_name(task).unwrap_or_default();
        for (property, found) in [
            (Property::Starvation, &self.waits.starved),
            (Property::LatencyBound, &self.waits.late),
            (Property::Fairness, &self.fairness.owed),
            (Property::PriorityInversion, &self.waits.inverted),
            (Property::WorkConservation, &self.waits.wasted),
        ] {
            if found.count == 0 {
                continue;
            }
            let cpu = found.cpu;
            let how = match (property, found.instead, found.idle) {
                (Property::Starvation | Property::LatencyBound, Some(task), _)
                    if task.is_idle() =>
                {
                    format!("on CPU {cpu}, which was idle")
                }
                (Property::Starvation | Property::LatencyBound, Some(task), _) => {
                    format!("on CPU {cpu}, where {} ran", name(task))
                }
                (Property::Fairness, ..) => {
                    format!("on CPU {cpu}, by tasks of its cgroup beside it")
                }
                (Property::WorkConservation, _, Some(idle)) => {
                    format!("on CPU {cpu} while CPU {idle} was idle")
                }
                _ => format!("on CPU {cpu}, where a fair task ran"),
            };
            let task = found.task.and_then(|task| self.tasks.get(task.index()));
            let group = task.and_then(|task| self.groups.get(task.group as usize));
            broken.push(Breach {
                property,
                count: found.count,
                longest: found.longest,
                open: found.open,
                since: found.since,
                who: match (property, found.task.map(name)) {
                    // Tasks of the queue take turns at waiting.
                    (Property::WorkConservation, Some(first)) => format!("a task ({first} first)"),
                    (_, who) => who.unwrap_or_else(|| "an RT task".to_string()),
                },
                group: group.map_or_else(String::new, |group| group.name.clone()),
                how,
                bound: self.waits.bounds.of(property),
            });
        }
        broken
    }
}

impl Waits {
    #[cold]
    fn long_wait(&mut self, wait: LongWait) {
        // The engine takes them after each entry; beyond the reserve they are the same story.
        if self.long.len() < LONG_WAITS {
            self.long.push(wait);
            self.asks = true;
        }
    }

    /// A tick of `cpu` has found a task that waits behind another one, and an idle CPU that it may use; or none.
    fn tick_finds(&mut self, at: Ns, cpu: CpuId, found: Option<Stranded>) {
        let queue = &self.cpus[cpu.index()];
        let goes_on = queue.wasted_since != NEVER && queue.wasted_period == self.idle_period;
        if queue.wasted_since != NEVER && !(goes_on && found.is_some()) {
            self.waste_ends(at, cpu, false);
        }
        let Some(found) = found else { return };
        let (since, period) = (self.idle_since, self.idle_period);
        let queue = &mut self.cpus[cpu.index()];
        // Others may have crowded the queue that may not leave it. A throttle lets it begin anew.
        if queue.wasted_since == NEVER || found.free_since > queue.wasted_since {
            let since = queue.crowded_since.max(since).max(found.since);
            queue.wasted_since = since.max(found.free_since);
            queue.wasted_period = period;
            queue.wasted_by = (found.task, found.free);
        }
        queue.wasted_seen = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(cpus: usize, window_start: Ns) -> Waits {
        Waits::new(cpus, window_start, Bounds::default())
    }

    #[test]
    fn time_with_two_or_more_counts_once_and_only_in_the_window() {
        let mut waits = waits(2, 100);
        let cpu = CpuId(1);
        let by = |queued| QueueChange { queued, ..QueueChange::default() };
        for (at, queued) in [(10, 1), (20, 1), (60, -1), (70, 1), (120, 1)] {
            waits.change(at, cpu, by(queued));
        }
        // Two from 70 on, three from 120 on, two again from 150 on, one from 170 on.
        waits.change(150, cpu, by(-1));
        waits.change(170, cpu, by(-1));
        assert_eq!((waits.contended_ns(1), waits.queued(1).0), (70, 1));
        // A stamp from another CPU that is behind: no time counts twice.
        waits.change(200, cpu, by(1));
        waits.change(190, cpu, by(1));
        waits.change(230, cpu, by(-1));
        assert_eq!((waits.contended_ns(1), waits.contended_ns(0)), (100, 0));
    }

    #[test]
    fn a_wasted_cpu_counts_from_when_both_were_so() {
        let mut waits = waits(2, 0);
        let busy = CpuId(0);
        let queued = |queued| QueueChange { queued, ..QueueChange::default() };
        let ms = |ms: u64| ms * 1_000_000;
        let (task, free, free_since) = (TaskId(7), CpuId(1), 0);
        let found = |since| Some(Stranded { task, free, since, free_since });
        let count = |waits: &mut Waits| waits.count_wastes(|_, _| 0);
        waits.cpus[0].idle = false;
        waits.change(ms(1), busy, queued(1));
        waits.change(ms(3), busy, queued(1));
        waits.tick_finds(ms(4), busy, found(0));
        waits.tick_finds(ms(60), busy, found(0));
        waits.change(ms(80), busy, queued(-1));
        count(&mut waits);
        assert_eq!(waits.wasted(), (ms(77), ms(77)));
        assert_eq!(waits.breaches(Property::WorkConservation), 0);
        // Nobody may move any more: a tick ends it. Then CPU 1 has work, which ends it, too.
        waits.change(ms(100), busy, queued(1));
        waits.tick_finds(ms(104), busy, found(0));
        waits.tick_finds(ms(210), busy, None);
        count(&mut waits);
        assert_eq!(waits.breaches(Property::WorkConservation), 1);
        assert_eq!(waits.wasted(), (ms(187), ms(110)));
        waits.tick_finds(ms(300), busy, found(0));
        waits.change(ms(302), CpuId(1), queued(1));
        waits.tick_finds(ms(308), busy, None);
        count(&mut waits);
        assert_eq!(waits.wasted().1, ms(302 - 100), "until the other CPU had work");
        // The queue has long been crowded by others: it counts from when this one waits.
        waits.change(ms(400), CpuId(1), queued(-1));
        waits.cpus[1].idle = true;
        waits.change(ms(400), CpuId(1), queued(0));
        waits.tick_finds(ms(904), busy, found(ms(900)));
        let before = waits.wasted().0;
        waits.change(ms(910), busy, queued(-1));
        count(&mut waits);
        assert_eq!(waits.wasted().0 - before, ms(10));
        // A limit that kept the task from its CPU until 1,080 ms: that is nobody's fault, whether a tick or the end finds it.
        waits.change(ms(1000), busy, queued(1));
        waits.tick_finds(ms(1004), busy, found(ms(1000)));
        let free = Stranded { task, free, since: ms(1000), free_since: ms(1080) };
        waits.tick_finds(ms(1084), busy, Some(free));
        waits.change(ms(1090), busy, queued(-1));
        waits.change(ms(1100), busy, queued(1));
        waits.tick_finds(ms(1104), busy, found(ms(1100)));
        waits.change(ms(1290), busy, queued(-1));
        let before = waits.wasted().0;
        waits.count_wastes(|_, _| ms(1285));
        assert_eq!(waits.wasted().0 - before, ms(5), "the first ended before it was free");
    }
}
