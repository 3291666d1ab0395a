// SPDX-License-Identifier: GPL-2.0-or-later
//! High-resolution timers: one queue per CPU, one clock event.
//!
//! A timer has a soft and a hard expiry; the clock event is programmed for the earliest hard one, and
//! an interrupt runs every timer, in order of hard expiry, until it meets one whose soft expiry is
//! still ahead. This is how sleeps with slack share interrupts.
//!
//! ```text
//!        soft        hard
//! A       |-----------|            the interrupt at A's hard expiry also runs B,
//! B           |-----------|        whose soft expiry has passed, but not C
//! C                        |----|
//! ```
//!
//! Kernel: 6.12.95 kernel/time/hrtimer.c `hrtimer_interrupt`, `__hrtimer_run_queues`.
//! Differences: one clock base, CLOCK_MONOTONIC. A sorted array, not a red-black tree; equal expiries
//! keep their order of insertion, as the tree does, and in 7.3 a timer that is started again may keep its place among them. Sleepers stay on the CPU where they slept: their
//! CPU is never idle when they arm (`get_nohz_timer_target` moves timers of idle CPUs only). What is due
//! by the end of the handlers' own costs waits for the next interrupt, where Linux looks again. What 7.3 leaves out of access
//! to the clock event is left out for the hrtick only, where it costs an interrupt without a timer.

use crate::config::{HrtimerRestart, HrtimerTarget};
use crate::system::SourceId;
use crate::{Context, Kernel, Scheduler, Time, sorted};
use schedtwin_types::{CpuId, NEVER, Ns, TaskGroupId, TaskId, WakeSource};

/// The action of a timer when it expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    /// `tick_nohz_handler`.
    SchedTick,
    /// `hrtimer_wakeup` of a sleeping task.
    Sleeper(TaskId),
    /// `dl_task_timer` or `inactive_task_timer` of a CPU's fair server.
    FairServer(CpuId),
    /// `inactive_task_timer` of a fair server, where it is a timer of its own (7.3).
    FairServerInactive(CpuId),
    /// `dl_task_timer`: a deadline task is replenished.
    DlTask(TaskId),
    /// `inactive_task_timer` of a deadline task.
    DlInactive(TaskId),
    /// `sched_rt_period_timer`, one for all CPUs.
    RtPeriod,
    /// `sched_cfs_period_timer` of a task group.
    CfsPeriod(TaskGroupId),
    /// `sched_cfs_slack_timer` of a task group.
    CfsSlack(TaskGroupId),
    /// `bctimer`: it serves as the broadcast device.
    Broadcast,
    /// An hrtimer of the system's description.
    Source(SourceId),
    /// `hrtick`: the running task's slice is over.
    Hrtick,
    /// `bpf_timer` of a scheduler of sched_ext.
    ScxTimer(u32),
    /// `scx_watchdog_workfn`.
    ScxWatchdog,
    /// The next step of loading or unloading a scheduler of sched_ext.
    ScxLife,
}

/// A queued timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hrtimer {
    /// Hard expiry: the order, and when the interrupt comes.
    pub expires: Ns,
    /// Soft expiry: from when on it may run.
    pub soft_expires: Ns,
    /// The action when it expires.
    pub kind: TimerKind,
}

/// `struct hrtimer_cpu_base`: the queue of a CPU, latest first, so that the earliest is popped from
/// the end.
#[derive(Clone, Debug)]
pub struct HrtimerBase {
    queue: Vec<Hrtimer>,
    /// The clock event is still armed for a hrtick that has been cancelled or moved to a later time ([`NEVER`]: it is not).
    left_armed: Ns,
    /// Whether the clock event is left alone until the interrupt or the switch ends.
    rearm: Rearm,
    /// `next_timer` while timers of an interrupt run and until the clock event is armed again: the timer that the interrupt came for,
    /// and then the earliest that was left. At other times it is the earliest timer, and nothing reads this.
    next_timer: Option<TimerKind>,
}

/// Work left to do at the end of a timer interrupt, or of the switch at its end
/// (`CONFIG_HRTIMER_REARM_DEFERRED`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rearm {
    /// Nothing: no interrupt has been handled, or the clock event is armed again.
    #[default]
    Done,
    /// The clock event is to be armed for what the interrupt left as the earliest timer (`deferred_expires_next`).
    Cached,
    /// A timer has been started since, or the earliest one cancelled, so it is looked up again (`deferred_needs_update`).
    Update,
}

impl Default for HrtimerBase {
    fn default() -> HrtimerBase {
        HrtimerBase::with_capacity(0)
    }
}

impl HrtimerBase {
    /// Makes an empty base with space for `count` timers.
    pub fn with_capacity(count: usize) -> HrtimerBase {
        HrtimerBase {
            queue: Vec::with_capacity(count),
            left_armed: NEVER,
            rearm: Rearm::Done,
            next_timer: None,
        }
    }

    /// Makes space for `count` more timers than are queued.
    pub fn reserve(&mut self, count: usize) {
        self.queue.reserve(count);
    }

    /// Queues a timer.
    #[inline]
    pub fn insert(&mut self, timer: Hrtimer) {
        // Later than all with the same expiry: in front of them in this reversed order.
        sorted::insert(&mut self.queue, timer, |other| other.expires <= timer.expires);
    }

    /// Queues a timer at `place`, where it was before, if the order allows it (`hrtimer_can_update_in_place`).
    fn insert_at(&mut self, place: usize, timer: Hrtimer) {
        let (later, earlier) = self.queue.split_at(place);
        let fits = later.last().is_none_or(|next| timer.expires <= next.expires)
            && earlier.first().is_none_or(|previous| timer.expires >= previous.expires);
        match fits {
            true => self.queue.insert(place, timer),
            false => self.insert(timer),
        }
    }

    /// Takes a timer out; whether it was queued.
    #[inline]
    pub fn remove(&mut self, kind: TimerKind) -> bool {
        self.take(kind).is_some()
    }

    /// `hrtimer_try_to_cancel()`; whether it was queued. `looked_up`: the release looks for the next timer at once; `local`: this
    /// CPU does it.
    fn cancel(&mut self, kind: TimerKind, looked_up: bool, local: bool) -> bool {
        let was_queued = self.remove(kind);
        if was_queued && self.next_timer == Some(kind) {
            if looked_up {
                self.next_timer = self.first_kind();
            } else if self.rearm == Rearm::Cached && local {
                self.rearm = Rearm::Update;
            }
        }
        was_queued
    }

    /// Takes a timer out, and returns its place.
    #[inline]
    fn take(&mut self, kind: TimerKind) -> Option<usize> {
        let place = self.queue.iter().rposition(|t| t.kind == kind)?;
        sorted::remove(&mut self.queue, place);
        Some(place)
    }

    /// Takes out the timers that are not wanted any more.
    pub(crate) fn retain(&mut self, wanted: impl Fn(TimerKind) -> bool) {
        self.queue.retain(|timer| wanted(timer.kind));
    }

    /// The earliest timer.
    #[inline]
    pub fn first(&self) -> Option<&Hrtimer> {
        self.queue.last()
    }

    fn first_kind(&self) -> Option<TimerKind> {
        self.first().map(|timer| timer.kind)
    }

    /// Returns the tasks that sleep here, for verification.
    pub(crate) fn sleepers(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.queue.iter().filter_map(|t| match t.kind {
            TimerKind::Sleeper(task) => Some(task),
            _ => None,
        })
    }

    /// Whether a timer is queued.
    pub fn is_queued(&self, kind: TimerKind) -> bool {
        self.queue.iter().any(|t| t.kind == kind)
    }

    /// A timer, if it is queued.
    pub fn timer(&self, kind: TimerKind) -> Option<Hrtimer> {
        self.queue.iter().rfind(|t| t.kind == kind).copied()
    }

    /// Hard expiry of a timer, if it is queued.
    pub fn expires(&self, kind: TimerKind) -> Option<Ns> {
        self.timer(kind).map(|t| t.expires)
    }

    /// Hard expiry of the earliest timer ([`NEVER`]: none).
    #[inline]
    pub fn next_event(&self) -> Ns {
        self.queue.last().map_or(NEVER, |t| t.expires)
    }

    /// `expires_next`: what the clock event is armed for.
    #[inline]
    pub fn armed(&self) -> Ns {
        self.next_event().min(self.left_armed)
    }

    /// Takes a timer out that is not worth an access to the device (`HRTIMER_MODE_LAZY_REARM`).
    pub fn remove_lazily(&mut self, kind: TimerKind) {
        self.take_lazily(kind);
    }

    /// The same, and returns its place.
    fn take_lazily(&mut self, kind: TimerKind) -> Option<usize> {
        let armed = self.armed();
        let place = self.take(kind)?;
        // It was the earliest: the clock event stays, also for another timer of the same expiry that is moved later.
        if place == self.queue.len() {
            self.left_armed = armed;
        }
        Some(place)
    }

    /// `TIF_HRTIMER_REARM`: the clock event waits for the end of the interrupt, or of the switch.
    fn defer_rearm(&mut self) {
        self.rearm = Rearm::Cached;
        self.next_timer = self.first_kind();
    }

    /// `__hrtimer_rearm_deferred()`. A hrtick that was cancelled meanwhile is looked for only if a timer was started, too.
    pub fn rearm_deferred(&mut self) {
        self.next_timer = None;
        if std::mem::take(&mut self.rearm) == Rearm::Update {
            self.left_armed = NEVER;
        }
    }

    /// Hard expiry of the earliest timer that is not the tick ([`NEVER`]: none).
    #[inline]
    pub fn next_event_without_tick(&self) -> Ns {
        self.queue
            .iter()
            .rev()
            .find(|t| t.kind != TimerKind::SchedTick)
            .map_or(NEVER, |t| t.expires)
    }
}

/// `hrtimer_forward()`: the first of `expires`, `expires + interval`, ... that is after `now`.
///
/// ```
/// use schedtwin_kernel::time::hrtimer::hrtimer_forward;
/// assert_eq!(hrtimer_forward(4_000, 3_999, 4_000), 4_000);
/// assert_eq!(hrtimer_forward(4_000, 4_000, 4_000), 8_000);
/// assert_eq!(hrtimer_forward(4_000, 13_000, 4_000), 16_000);
/// ```
pub fn hrtimer_forward(expires: Ns, now: Ns, interval: Ns) -> Ns {
    if now < expires {
        return expires;
    }
    let interval = interval.max(1);
    expires + ((now - expires) / interval + 1) * interval
}

impl Scheduler {
    /// `get_nohz_timer_target()`: `this`, which executes, or while that idles the nearest busy CPU.
    pub(crate) fn nohz_timer_target(&self, this: CpuId) -> CpuId {
        if !self.idle_cpu(this) {
            return this;
        }
        let mut level = self.topology().base[this.index()];
        while let Some(id) = level {
            let sd = &self.topology().domains[id.0 as usize];
            // `this` is idle, so it is not among them.
            if let Some(busy) = sd.span.and_not(self.idle_mask()).lowest() {
                return busy;
            }
            level = sd.parent;
        }
        this
    }
}

impl Time {
    /// Where a timer that is not pinned is queued (`switch_hrtimer_base`): on [`Scheduler::nohz_timer_target`], unless
    /// that CPU would have to be told of an earlier event.
    pub(crate) fn nohz_timer_target(&self, expires: Ns, sched: &Scheduler, cx: &Context) -> CpuId {
        let target = sched.nohz_timer_target(cx.this_cpu);
        let sooner = target != cx.this_cpu && expires < self.timers[target].armed();
        if sooner { cx.this_cpu } else { target }
    }

    /// `hrtimer_start_range_ns()` on `cpu`.
    pub(crate) fn hrtimer_start(
        &mut self,
        cpu: CpuId,
        soft: Ns,
        hard: Ns,
        kind: TimerKind,
        cx: &mut Context,
    ) {
        self.enqueue(cpu, Hrtimer { expires: hard, soft_expires: soft, kind }, None, cx);
    }

    /// Queues a timer, if it can be at its former place, and programs the clock event.
    fn enqueue(&mut self, cpu: CpuId, timer: Hrtimer, place: Option<usize>, cx: &mut Context) {
        let base = &mut self.timers[cpu];
        if timer.expires < base.left_armed {
            base.left_armed = NEVER;
        }
        if base.rearm == Rearm::Cached {
            base.rearm = Rearm::Update;
        }
        match place {
            Some(place) if cx.config.hrtimer_restart == HrtimerRestart::InPlace => {
                base.insert_at(place, timer);
            }
            _ => base.insert(timer),
        }
        self.program_clock_event(cpu, cx);
    }

    /// `hrtimer_start_range_ns()` of a timer that may be queued on `cpu`, and stays there.
    pub(crate) fn hrtimer_restart(
        &mut self,
        cpu: CpuId,
        soft: Ns,
        hard: Ns,
        kind: TimerKind,
        cx: &mut Context,
    ) {
        let place = self.timers[cpu].take(kind);
        self.enqueue(cpu, Hrtimer { expires: hard, soft_expires: soft, kind }, place, cx);
    }

    /// The same of a timer that is not worth an access to the device (`HRTIMER_MODE_LAZY_REARM`).
    pub(crate) fn hrtimer_restart_lazily(
        &mut self,
        cpu: CpuId,
        expires: Ns,
        kind: TimerKind,
        cx: &mut Context,
    ) {
        let place = self.timers[cpu].take_lazily(kind);
        self.enqueue(cpu, Hrtimer { expires, soft_expires: expires, kind }, place, cx);
    }

    /// `hrtimer_try_to_cancel()`.
    pub(crate) fn hrtimer_cancel(&mut self, cpu: CpuId, kind: TimerKind, cx: &mut Context) {
        let looked_up = cx.config.hrtimer_target == HrtimerTarget::NohzTarget;
        if self.timers[cpu].cancel(kind, looked_up, cpu == cx.this_cpu) {
            self.program_clock_event(cpu, cx);
        }
    }

    /// Arms the clock event of `cpu` for its earliest timer, unless somebody else has to wake it.
    #[inline]
    pub(crate) fn program_clock_event(&self, cpu: CpuId, cx: &mut Context) {
        let off = self.local_timers_off.contains(cpu);
        let next = if off { NEVER } else { self.timers[cpu].armed() };
        if cx.platform.wires[cpu].clock_event_at != next {
            cx.platform.wires[cpu].clock_event_at = next;
            cx.platform.dirty.insert(cpu);
        }
    }
}

impl Kernel {
    /// Where a timer is queued that was on `last` before: [`Time::nohz_timer_target`], unless the release keeps it here, or
    /// it is what this CPU's interrupt came for.
    pub(crate) fn hrtimer_target(&self, kind: TimerKind, expires: Ns, last: CpuId) -> CpuId {
        let this = self.cx.this_cpu;
        if last == this && self.time.timers[this].next_timer == Some(kind) {
            return this;
        }
        let stays = match self.cx.config.hrtimer_target {
            HrtimerTarget::NohzTarget => false,
            HrtimerTarget::TickRunning => {
                let stopped = self.cpuidle.cpu(this).tick.tick_stopped;
                last == this && (!stopped || self.sched.rq(this).need_resched)
            }
        };
        if stays { this } else { self.time.nohz_timer_target(expires, &self.sched, &self.cx) }
    }

    /// `hrtimer_wakeup()`: a sleep has ended.
    pub(crate) fn hrtimer_wakeup(&mut self, task: TaskId) {
        self.sched.set_sleep_timer(task, None);
        self.try_to_wake_up(task, 0, WakeSource::Timer);
    }

    /// `hrtimer_interrupt()` on the executing CPU.
    pub(crate) fn hrtimer_interrupt(&mut self) {
        self.hrtimer_interrupt_with(Kernel::run_hrtimer);
    }

    /// The same, with other handlers: `run` is called with a timer that has been taken out of the queue.
    #[inline]
    pub(crate) fn hrtimer_interrupt_with(
        &mut self,
        mut run: impl FnMut(&mut Kernel, CpuId, Hrtimer),
    ) {
        let cpu = self.cx.this_cpu;
        let now = self.cx.now;
        self.time.local_timers_off.remove(cpu);
        self.time.timers[cpu].left_armed = NEVER;
        self.time.timers[cpu].next_timer = self.time.timers[cpu].first_kind();
        while let Some(timer) = self.time.timers[cpu].queue.last().copied() {
            if timer.soft_expires > now {
                break;
            }
            self.time.timers[cpu].queue.pop();
            let cost = self.cx.platform.device_tree.path_costs.hrtimer;
            self.sched.charge(cost, &mut self.cx);
            run(self, cpu, timer);
        }
        self.time.timers[cpu].next_timer = None;
        if self.cx.config.features.hrtick {
            self.time.timers[cpu].defer_rearm();
        }
        self.time.program_clock_event(cpu, &mut self.cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(task: u32, expires: Ns) -> Hrtimer {
        Hrtimer { expires, soft_expires: expires, kind: TimerKind::Sleeper(TaskId(task)) }
    }

    /// 7.3: a timer that is started again keeps its place as long as the order allows it.
    #[test]
    fn a_timer_that_is_started_again_keeps_its_place() {
        let check = |expires: Ns, expected: [u32; 4]| {
            let mut base = HrtimerBase::default();
            for (task, expires) in [(1, 10), (2, 15), (3, 20), (4, 20)] {
                base.insert(sleeper(task, expires));
            }
            let place = base.take(TimerKind::Sleeper(TaskId(2))).expect("it is queued");
            base.insert_at(place, sleeper(2, expires));
            let order = base.queue.iter().rev().map(|timer| match timer.kind {
                TimerKind::Sleeper(task) => task.0,
                _ => unreachable!("all are sleepers"),
            });
            assert_eq!(order.collect::<Vec<_>>(), expected, "{expires}");
        };
        check(9, [2, 1, 3, 4]);
        check(10, [1, 2, 3, 4]);
        check(15, [1, 2, 3, 4]);
        // Elsewhere it would be behind 4.
        check(20, [1, 2, 3, 4]);
        check(21, [1, 3, 4, 2]);
    }

    /// 7.3: after an interrupt the clock event that a hrtick has left is looked up again if the earliest timer is cancelled.
    #[test]
    fn a_deferred_clock_event_follows_a_cancelled_timer() {
        let armed = |cancelled: u32, local: bool| {
            let mut base = HrtimerBase::default();
            base.insert(sleeper(1, 10));
            base.insert(Hrtimer { expires: 10, soft_expires: 10, kind: TimerKind::Hrtick });
            base.insert(sleeper(2, 20));
            base.insert(sleeper(3, 30));
            base.defer_rearm();
            base.left_armed = 10;
            base.remove(TimerKind::Hrtick);
            assert!(base.cancel(TimerKind::Sleeper(TaskId(cancelled)), false, local));
            base.rearm_deferred();
            base.remove(TimerKind::Sleeper(TaskId(1)));
            base.armed()
        };
        assert_eq!(armed(1, true), 20);
        assert_eq!(armed(3, true), 10, "it was not the earliest");
        assert_eq!(armed(1, false), 10, "another CPU does not look");
    }

    /// The clock event of a lazily cancelled timer stays, also if another one of the same expiry is moved.
    #[test]
    fn a_lazily_cancelled_timer_leaves_the_clock_event() {
        let mut base = HrtimerBase::default();
        base.insert(Hrtimer { expires: 10, soft_expires: 10, kind: TimerKind::Hrtick });
        base.insert(sleeper(1, 10));
        base.remove_lazily(TimerKind::Hrtick);
        assert_eq!(base.armed(), 10);
        base.remove(TimerKind::Sleeper(TaskId(1)));
        base.insert(sleeper(1, 20));
        assert_eq!((base.next_event(), base.armed()), (20, 10));
        // One that was not the earliest leaves nothing.
        let mut base = HrtimerBase::default();
        base.insert(sleeper(1, 10));
        base.insert(Hrtimer { expires: 10, soft_expires: 10, kind: TimerKind::Hrtick });
        base.remove_lazily(TimerKind::Hrtick);
        base.remove(TimerKind::Sleeper(TaskId(1)));
        assert_eq!(base.armed(), NEVER);
    }

    #[test]
    fn equal_expiries_keep_their_order() {
        let mut base = HrtimerBase::default();
        for (expires, task) in [(30, 1), (10, 2), (30, 3), (20, 4), (30, 5)] {
            let kind = TimerKind::Sleeper(TaskId(task));
            base.insert(Hrtimer { expires, soft_expires: expires, kind });
        }
        let mut order = Vec::new();
        while let Some(timer) = base.queue.pop() {
            let TimerKind::Sleeper(task) = timer.kind else { unreachable!() };
            order.push(task.0);
        }
        assert_eq!(order, [2, 4, 1, 3, 5]);
    }
}
