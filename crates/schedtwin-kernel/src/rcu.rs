// SPDX-License-Identifier: GPL-2.0-or-later
//! RCU: callbacks that wait for a grace period, the thread that drives grace periods, and what both cost idle CPUs.
//!
//! **Idea.** Memory that readers may still see is freed after a *grace period*, in which every CPU was seen outside of
//! a reader. Nobody hurries: each step waits for a tick of the CPU concerned, or for a jiffy of the thread's timer.
//!
//! **Terms.** *Callback*: what `call_rcu()` leaves to be done after a grace period. *Quiescent state*: the CPU has switched, was
//! in user mode or idle; with preemptible RCU each tick outside of a reader is one. *Offloaded*: threads handle a CPU's
//! callbacks instead of its softirq.
//!
//! **Algorithm.**
//! 1. A tick that finds callbacks without a grace period raises the RCU softirq, which asks for one: `rcu_preempt` is woken.
//! 2. The thread begins the grace period and sleeps for *d* jiffies, so two ticks at 250 Hz.
//! 3. Busy CPUs notice the new grace period at their ticks, and report at a tick after their quiescent state. The last one
//!    wakes the thread.
//! 4. When its time is over the thread looks at the CPUs that are left. An idle one counts as quiescent without an
//!    interrupt. If some are left, it sleeps again.
//! 5. The grace period ends. CPUs notice that at a tick, and run their callbacks in the softirq.
//!
//! ```text
//!  call_rcu   tick: ask   thread: begin     tick: report    thread: end    tick: callbacks
//!  ───┼───────────┼──────────────┼────────────────┼───────────────┼──────────────┼──►
//! ```
//!
//! **The tick.** As long as a CPU has callbacks, its tick is not stopped (`rcu_needs_cpu`), unless it is offloaded. Then
//! `rcuog/L` asks for the grace period, and `rcuop/N` runs the callbacks when it is over. Lazy callbacks wait ten seconds first.
//!
//! Kernel: 6.12.95 kernel/rcu/tree.c `rcu_pending`, `rcu_core`, `note_gp_changes`, `rcu_gp_kthread`; tree_nocb.h
//! `nocb_gp_wait`, `nocb_cb_wait`; 6.1 and 7.3 alike.
//! Differences: one node instead of a tree. All ready callbacks run at once (Linux: batches of 10, or a 128th). No expedited
//! grace periods, no bypass list, no hints for CPUs that hold a grace period up, no boosting. `RCU_FAST_NO_HZ` (up to 5.16)
//! is absent. Callbacks come from the system's sources and from tasks that exit.

use crate::sched::TaskKind;
use crate::softirq::Softirq;
use crate::system::{RunWork, ThreadClass};
use crate::time::timer::wheel::TimerId;
use crate::time::timer::{TimerFlags, TimerFunction};
use crate::{Context, Kernel};
use schedtwin_types::draw::Draws;
use schedtwin_types::{CpuId, CpuMask, Mode, Ns, TaskId, TaskState, WakeSource, Work};

/// `jiffies_lazy_flush`: how long lazy callbacks wait.
const LAZY_FLUSH: Ns = 10_000_000_000;

/// RCU of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RcuDescription {
    /// `CONFIG_PREEMPT_RCU`.
    pub preemptible: bool,
    /// `CONFIG_RCU_NOCB_CPU_DEFAULT_ALL`, `rcu_nocbs=all`: all CPUs.
    pub offloaded: bool,
    /// `CONFIG_RCU_LAZY`; offloaded CPUs only.
    pub lazy: bool,
    /// The work of a softirq, beside its callbacks.
    pub softirq: RunWork,
    /// The work of a thread each time it is woken.
    pub thread: RunWork,
    /// The work of a callback.
    pub callback: Work,
    /// Callbacks of a task that exits.
    pub exit_callbacks: u32,
}

/// A thread of RCU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RcuThread {
    /// `rcu_preempt` or `rcu_sched`: drives grace periods.
    GracePeriods,
    /// `rcuog/N`: asks for grace periods for a group of CPUs.
    Offload(CpuId),
    /// `rcuop/N`: runs the callbacks of a CPU.
    Callbacks(CpuId),
}

/// What the thread of grace periods does when it runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waits to be asked.
    Idle,
    /// Has begun a grace period or looked at CPUs, and is about to sleep.
    Sleeps,
    /// Waits for its timer or the last report.
    Waits,
}

/// `struct rcu_data`.
#[derive(Clone, Debug, Default)]
struct RcuData {
    /// Callbacks without a grace period.
    next: u32,
    /// Callbacks that wait for the end of a grace period.
    waits: Vec<(u64, u32)>,
    /// Callbacks that may run.
    done: u32,
    /// The last grace periods that it knows to have begun and ended.
    seen: (u64, u64),
    /// A report is due.
    core_needs_qs: bool,
    /// It has not been quiescent since.
    cpu_no_qs: bool,
}

impl RcuData {
    fn is_empty(&self) -> bool {
        self.next == 0 && self.done == 0 && self.waits.is_empty()
    }

    /// `rcu_advance_cbs()`, without what it starts.
    fn advance(&mut self, completed: u64) {
        let ready = self.waits.iter().filter(|(needed, _)| *needed <= completed);
        self.done += ready.map(|(_, count)| count).sum::<u32>();
        self.waits.retain(|(needed, _)| *needed > completed);
    }
}

/// RCU of a booted system.
#[derive(Clone, Debug)]
struct State {
    of: RcuDescription,
    cpus: Vec<RcuData>,
    /// Grace periods begun, ended, and the last one that somebody needs.
    started: u64,
    completed: u64,
    requested: u64,
    /// CPUs that have not been quiescent in this grace period.
    qsmask: CpuMask,
    /// When it began.
    started_at: Ns,
    phase: Phase,
    thread: TaskId,
    timer: TimerId,
    /// Jiffies between two looks at the CPUs (`jiffies_till_first_fqs`).
    fqs_delay: u64,
    /// Per group of offloaded CPUs: its first CPU, its thread, the timer of lazy callbacks.
    groups: Vec<(CpuId, TaskId, TimerId)>,
    callback_threads: Vec<TaskId>,
    group_size: usize,
    /// Threads that have done the work of this wakeup.
    worked: Vec<TaskId>,
    draws: Draws,
    nr_draws: u64,
    /// The mode that the interrupt of this entry came into.
    interrupted: Mode,
}

impl State {
    fn in_progress(&self) -> bool {
        self.started > self.completed
    }

    fn draw(&mut self, work: RunWork) -> Work {
        self.nr_draws += 1;
        work.draw(self.draws.nth(self.nr_draws)).max(1)
    }

    /// `rcu_accelerate_cbs()`: callbacks get the next grace period that begins after now. Whether its thread has to be woken.
    fn accelerate(&mut self, cpu: CpuId) -> bool {
        let needed = self.started + 1;
        let data = &mut self.cpus[cpu.index()];
        let count = std::mem::take(&mut data.next);
        if count == 0 {
            return false;
        }
        match data.waits.iter_mut().find(|(of, _)| *of == needed) {
            Some((_, waits)) => *waits += count,
            None => data.waits.push((needed, count)),
        }
        let asks = self.requested < needed;
        self.requested = self.requested.max(needed);
        asks && !self.in_progress()
    }

    /// `note_gp_changes()`; whether the thread has to be woken.
    fn note_gp_changes(&mut self, cpu: CpuId) -> bool {
        let now = (self.started, self.completed);
        let offloaded = self.of.offloaded;
        let (in_progress, completed) = (self.in_progress(), self.completed);
        let data = &mut self.cpus[cpu.index()];
        let seen = std::mem::replace(&mut data.seen, now);
        if seen == now {
            return false;
        }
        if seen.1 != completed {
            if !offloaded {
                data.advance(completed);
            }
            data.core_needs_qs = false;
        }
        if seen.0 != now.0 {
            let needs = in_progress && self.qsmask.contains(cpu);
            (data.cpu_no_qs, data.core_needs_qs) = (needs, needs);
        }
        !offloaded && self.accelerate(cpu)
    }

    /// `rcu_pending()`.
    fn is_pending(&self, cpu: CpuId) -> bool {
        let data = &self.cpus[cpu.index()];
        let offloaded = self.of.offloaded;
        (data.core_needs_qs && !data.cpu_no_qs)
            || (!offloaded && (data.done > 0 || (!self.in_progress() && data.next > 0)))
            || data.seen != (self.started, self.completed)
    }
}

/// RCU; empty: nobody waits for grace periods.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rcu(Option<Box<State>>);

impl Rcu {
    /// `rcu_needs_cpu()`: the CPU must not stop its tick.
    #[inline(always)]
    pub(crate) fn needs_cpu(&self, cpu: CpuId) -> bool {
        self.0.as_ref().is_some_and(|s| !s.of.offloaded && !s.cpus[cpu.index()].is_empty())
    }

    /// `rcu_note_context_switch()`.
    #[inline(always)]
    pub(crate) fn note_context_switch(&mut self, cpu: CpuId) {
        if let Some(s) = &mut self.0 {
            s.cpus[cpu.index()].cpu_no_qs = false;
        }
    }

    /// An interrupt has come into work of this mode.
    #[inline(always)]
    pub(crate) fn interrupted(&mut self, mode: Mode) {
        if let Some(s) = &mut self.0 {
            s.interrupted = mode;
        }
    }

    /// The name of a thread.
    pub(crate) fn thread_name(&self, thread: RcuThread) -> String {
        let preemptible = self.0.as_ref().is_some_and(|s| s.of.preemptible);
        match (thread, preemptible) {
            (RcuThread::GracePeriods, true) => "rcu_preempt".to_string(),
            (RcuThread::GracePeriods, false) => "rcu_sched".to_string(),
            (RcuThread::Offload(cpu), _) => format!("rcuog/{cpu}"),
            (RcuThread::Callbacks(cpu), true) => format!("rcuop/{cpu}"),
            (RcuThread::Callbacks(cpu), false) => format!("rcuos/{cpu}"),
        }
    }

    /// Asserts what holds between entries.
    pub(crate) fn verify(&self) {
        let Some(s) = &self.0 else { return };
        assert!(s.started - s.completed <= 1, "one grace period at a time");
        assert!(s.in_progress() || s.phase == Phase::Idle, "the thread waits for nothing");
        for (index, data) in s.cpus.iter().enumerate() {
            let last = data.waits.iter().map(|(needed, _)| *needed).max().unwrap_or(0);
            assert!(last <= s.requested, "cpu{index}: nobody has asked for its grace period");
        }
    }
}

/// `jiffies_till_first_fqs`: how long a grace period goes on before CPUs are looked at.
pub(crate) fn jiffies_till_first_fqs(cx: &Context) -> u64 {
    let (hz, nr_cpus) = (cx.hz(), cx.platform.device_tree.cpus.len());
    1 + u64::from(hz > 250) + u64::from(hz > 500) + nr_cpus as u64 / 256
}

impl Kernel {
    /// Makes RCU's threads.
    pub(crate) fn rcu_init(&mut self, of: &RcuDescription, seed: u64) {
        let nr_cpus = self.sched.nr_cpus();
        let all = self.cx.platform.device_tree.all_cpus();
        let spawn = |kernel: &mut Kernel, thread| {
            let task = kernel.new_task(None, TaskKind::Rcu { thread });
            kernel.kthread_setup(task, ThreadClass::Nice(0), CpuId(0), all);
            task
        };
        let thread = spawn(self, RcuThread::GracePeriods);
        let flags = TimerFlags::default();
        let timer = self.time.timer_setup(TimerFunction::ProcessTimeout(thread), flags);
        // rcu_organize_nocb_kthreads()
        let group_size = nr_cpus / (nr_cpus as u64).isqrt().max(1) as usize;
        let (mut groups, mut callback_threads) = (Vec::new(), Vec::new());
        if of.offloaded {
            for c in 0..nr_cpus {
                let cpu = CpuId(c as u16);
                if c.is_multiple_of(group_size) {
                    let task = spawn(self, RcuThread::Offload(cpu));
                    let lazy = self.time.timer_setup(TimerFunction::ProcessTimeout(task), flags);
                    groups.push((cpu, task, lazy));
                }
                callback_threads.push(spawn(self, RcuThread::Callbacks(cpu)));
            }
        }
        let fqs_delay = jiffies_till_first_fqs(&self.cx);
        let data = RcuData { waits: Vec::with_capacity(4), ..RcuData::default() };
        let worked = Vec::with_capacity(groups.len() + callback_threads.len());
        self.rcu.0 = Some(Box::new(State {
            of: of.clone(),
            cpus: vec![data; nr_cpus],
            started: 0,
            completed: 0,
            requested: 0,
            qsmask: CpuMask::EMPTY,
            started_at: 0,
            phase: Phase::Idle,
            thread,
            timer,
            fqs_delay,
            groups,
            callback_threads,
            group_size,
            worked,
            draws: Draws::new(seed, "rcu", "run"),
            nr_draws: 0,
            interrupted: Mode::Kernel,
        }));
    }

    fn rcu_wake(&mut self, task: TaskId) {
        self.wake_up_kthread(task, WakeSource::Kernel);
    }

    /// `call_rcu()` by the executing CPU, `count` times.
    pub(crate) fn call_rcu(&mut self, count: u32) {
        let cpu = self.cx.this_cpu;
        let Some(s) = &mut self.rcu.0 else { return };
        let data = &mut s.cpus[cpu.index()];
        let was_empty = data.is_empty();
        data.next += count;
        if !s.of.offloaded || !was_empty {
            return;
        }
        let (_, task, timer) = s.groups[cpu.index() / s.group_size];
        if !s.of.lazy {
            self.rcu_wake(task);
        } else if !self.time.timer_pending(timer) {
            let at = self.cx.jiffies() + LAZY_FLUSH / self.cx.tick_nsec;
            self.mod_timer(timer, at);
        }
    }

    /// The callbacks of a task that exits.
    pub(crate) fn rcu_exit(&mut self) {
        let count = self.rcu.0.as_ref().map_or(0, |s| s.of.exit_callbacks);
        if count > 0 {
            self.call_rcu(count);
        }
    }

    /// `rcu_sched_clock_irq()`: a tick of `cpu`.
    #[inline]
    pub(crate) fn rcu_sched_clock_irq(&mut self, cpu: CpuId) {
        let idle = self.sched.rq(cpu).curr.is_idle();
        let Some(s) = &mut self.rcu.0 else { return };
        if s.of.preemptible || idle || s.interrupted == Mode::User {
            s.cpus[cpu.index()].cpu_no_qs = false;
        }
        if s.is_pending(cpu) {
            self.softirqs.raise(cpu, Softirq::Rcu);
        }
    }

    /// `rcu_core()`.
    pub(crate) fn rcu_core(&mut self, cpu: CpuId) {
        let Some(s) = &mut self.rcu.0 else { return };
        let softirq = s.of.softirq;
        let mut work = s.draw(softirq);
        let mut wake = s.note_gp_changes(cpu);
        let in_progress = s.in_progress();
        let data = &mut s.cpus[cpu.index()];
        if data.core_needs_qs && !data.cpu_no_qs {
            data.core_needs_qs = false;
            s.qsmask.remove(cpu);
            // rcu_report_qs_rnp(): the last one.
            wake |= in_progress && s.qsmask.is_empty();
        }
        if !s.of.offloaded {
            if !s.in_progress() {
                wake |= s.accelerate(cpu);
            }
            let done = std::mem::take(&mut s.cpus[cpu.index()].done);
            work += Work::from(done) * s.of.callback;
        }
        let thread = s.thread;
        self.sched.charge(work, &mut self.cx);
        if wake {
            self.rcu_wake(thread);
        }
    }

    /// A thread of RCU runs.
    pub(crate) fn rcu_thread(&mut self, thread: RcuThread) {
        match thread {
            RcuThread::GracePeriods => self.rcu_gp_kthread(),
            RcuThread::Offload(first) => self.nocb_gp_wait(first),
            RcuThread::Callbacks(cpu) => self.nocb_cb_wait(cpu),
        }
    }

    fn rcu_sleep(&mut self) {
        let task = self.sched.rq(self.cx.this_cpu).curr;
        self.sched.set_task_state(task, TaskState::Interruptible);
        self.schedule(false);
    }

    /// `rcu_gp_kthread()`.
    fn rcu_gp_kthread(&mut self) {
        let (now, jiffies) = (self.cx.now, self.cx.jiffies());
        let all = self.cx.platform.device_tree.all_cpus();
        let timer_pending = {
            let timer = self.rcu.0.as_ref().expect("its thread runs").timer;
            self.time.timer_pending(timer)
        };
        let s = self.rcu.0.as_mut().expect("its thread runs");
        let (work, timer) = (s.of.thread, s.timer);
        match s.phase {
            Phase::Idle if s.requested > s.completed => {
                // rcu_gp_init()
                s.started += 1;
                (s.qsmask, s.started_at, s.phase) = (all, now, Phase::Sleeps);
                let work = s.draw(work);
                self.set_kthread_work(work);
            }
            Phase::Idle => self.rcu_sleep(),
            Phase::Sleeps if !s.qsmask.is_empty() => {
                s.phase = Phase::Waits;
                let at = jiffies + s.fqs_delay;
                self.mod_timer(timer, at);
                self.rcu_sleep();
            }
            Phase::Sleeps | Phase::Waits if s.qsmask.is_empty() => {
                // rcu_gp_cleanup()
                (s.completed, s.phase) = (s.started, Phase::Idle);
                let work = s.draw(work);
                self.set_kthread_work(work);
                self.time.timer_delete(timer);
                self.rcu_nocb_gp_cleanup();
            }
            Phase::Waits if timer_pending => self.rcu_sleep(),
            _ => {
                // force_qs_rnp(): idle now, or since the beginning.
                s.phase = Phase::Sleeps;
                for cpu in s.qsmask.iter() {
                    let idle = self.cpuidle.cpu(cpu);
                    if idle.entered.is_some() || idle.entered_at > s.started_at {
                        s.qsmask.remove(cpu);
                    }
                }
                let work = s.draw(work);
                self.set_kthread_work(work);
            }
        }
    }

    /// `rcu_nocb_gp_cleanup()`: wakes the threads that wait for the end of the grace period.
    fn rcu_nocb_gp_cleanup(&mut self) {
        let nr_groups = self.rcu.0.as_ref().map_or(0, |s| s.groups.len());
        for at in 0..nr_groups {
            let Some(s) = &self.rcu.0 else { return };
            let (first, task, _) = s.groups[at];
            let of_group = &s.cpus[first.index()..(first.index() + s.group_size).min(s.cpus.len())];
            if of_group.iter().any(|data| !data.waits.is_empty()) {
                self.rcu_wake(task);
            }
        }
    }

    /// Whether the running thread has done the work of its wakeup; if not, it gets it.
    fn rcu_has_worked(&mut self, work: RunWork) -> bool {
        let task = self.sched.rq(self.cx.this_cpu).curr;
        let s = self.rcu.0.as_mut().expect("its thread runs");
        if let Some(at) = s.worked.iter().position(|worked| *worked == task) {
            s.worked.swap_remove(at);
            return true;
        }
        s.worked.push(task);
        let work = s.draw(work);
        self.set_kthread_work(work);
        false
    }

    /// `nocb_gp_wait()`.
    fn nocb_gp_wait(&mut self, first: CpuId) {
        let work = self.rcu.0.as_ref().expect("its thread runs").of.thread;
        if !self.rcu_has_worked(work) {
            return;
        }
        let s = self.rcu.0.as_mut().expect("its thread runs");
        let last = (first.index() + s.group_size).min(s.cpus.len());
        let mut wake = false;
        let completed = s.completed;
        for c in first.index()..last {
            s.cpus[c].advance(completed);
            wake |= s.accelerate(CpuId(c as u16));
        }
        let thread = s.thread;
        if wake {
            self.rcu_wake(thread);
        }
        for c in first.index()..last {
            let Some(s) = &self.rcu.0 else { return };
            if s.cpus[c].done > 0 {
                let task = s.callback_threads[c];
                self.rcu_wake(task);
            }
        }
        self.rcu_sleep();
    }

    /// `nocb_cb_wait()`.
    fn nocb_cb_wait(&mut self, cpu: CpuId) {
        let s = self.rcu.0.as_mut().expect("its thread runs");
        let done = std::mem::take(&mut s.cpus[cpu.index()].done);
        if done == 0 {
            self.rcu_sleep();
            return;
        }
        let (thread, callback) = (s.of.thread, s.of.callback);
        let work = s.draw(thread) + Work::from(done) * callback;
        self.set_kthread_work(work);
    }
}
