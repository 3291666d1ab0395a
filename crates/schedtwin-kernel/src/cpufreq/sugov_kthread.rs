// SPDX-License-Identifier: GPL-2.0-or-later
//! schedutil's slow path: the thread `sugov:N` that changes the frequency where the driver may sleep or
//! takes long.
//!
//! **Idea.** The scheduler holds a run queue's lock when it asks for a frequency, so a driver that waits for a
//! clock, a regulator or another processor cannot be called there. The governor decides as ever, and has
//! the rest done: an interrupt wakes a thread, the thread calls the driver, and only when that returns
//! does the kernel believe in the new frequency.
//!
//! **Terms.** `next_freq`: what the governor wants last. `work_in_progress`: the thread has been asked and has
//! not yet read it. `policy.cur`, `freq_scale`: what the kernel believes to run at.
//!
//! **Algorithm.**
//! 1. The governor sets `next_freq` and `last_freq_update_time`. If no work is in progress, it is now, and the
//!    executing CPU sends itself an irq_work (`work/irq_work.rs`). Otherwise that was all.
//! 2. The interrupt queues the work for the thread, and wakes it unless it is busy with the one before.
//! 3. The thread, a special deadline task bound to the domain's CPUs ([`crate::sched::deadline`]), reads
//!    `next_freq`: from here on the governor asks for new work. What is the current frequency already needs no
//!    driver.
//! 4. The driver's call takes its time, asleep until an interrupt says that it is done, or spinning.
//! 5. Then `cpu_frequency` is traced, and belief changes (`CPUFREQ_POSTCHANGE`).
//! 6. More work goes on with 3, none sleeps.
//!
//! Earlier forms ([`SugovSlowPath`], [`crate::config::SugovWork`]): the thread is one of SCHED_FIFO, or a kworker of the CPU that took the
//! interrupt; and until the driver has returned the governor decides nothing.
//!
//! ```text
//!  governor  A ─── B (work in progress: only overwrites A) ── C (asks again)
//!            │                                               │
//!  irq_work  └──► wake sugov:4                               └──► queued: the thread is busy
//!  sugov:4             └─ switch ─ reads B ─ driver call ─────────┤ reads C ─ driver call ─┤
//!  belief                                                       B ▲                      C ▲
//!  silicon                            asked for B ── settle_us ──► B
//! ```
//!
//! **Example.** Of the recordings of the real kernel: tick at 3.044024 s, `cpu_frequency` 53 µs later, with the
//! thread on the CPU for 10 µs (printing included).
//!
//! Kernel: 6.12.95 kernel/sched/cpufreq_schedutil.c `sugov_deferred_update`, `sugov_irq_work`, `sugov_work`;
//! kernel/kthread.c `kthread_worker_fn`; drivers/cpufreq/cpufreq.c `__cpufreq_driver_target`. Steps 1 to 3 and 5
//! are checked against that C, of 6.1 too (`conformance/src/schedutil`).
//! Differences: the driver's call is its duration; it holds no lock that others wait for. The interrupt that
//! ends a sleeping call comes to CPU 0, where Linux leaves the interrupts that nobody moves. The threads sleep
//! at boot, on the first CPU of their domains. A kworker is each domain's own, so it waits for no other work.

use crate::config::SugovSlowPath;
use crate::sched::{OnRq, TaskKind};
use crate::work::IrqWork;
use crate::{Cpufreq, Kernel, Scheduler};
use schedtwin_types::{Khz, Ns, PolicyId, TaskId, TaskState, WakeSource};

/// `SUGOV_KTHREAD_PRIORITY`, where the thread is one of SCHED_FIFO.
const SUGOV_KTHREAD_PRIORITY: i32 = 50;

/// A thread `sugov:N` and its `kthread_worker`.
#[derive(Clone, Debug)]
pub struct SugovKthread {
    /// The thread.
    pub task: TaskId,
    /// The work is on `worker.work_list`.
    pub(super) queued: bool,
    /// The driver's call under way (`worker.current_work`).
    pub(super) call: Option<DriverCall>,
}

/// A call of the driver's `target()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DriverCall {
    pub(super) khz: Khz,
    /// Since when the governor has wanted it.
    requested_at: Ns,
    /// When the driver is done.
    pub(super) until: Ns,
    /// The thread sleeps, and nobody has woken it yet.
    waits: bool,
}

impl SugovKthread {
    /// Whether a call of the driver is under way.
    pub(crate) fn calls_driver(&self) -> bool {
        self.call.is_some()
    }

    /// When the interrupt comes that the thread waits for; `None`: it waits for none.
    pub fn interrupt_at(&self) -> Option<Ns> {
        self.call.filter(|call| call.waits).map(|call| call.until)
    }
}

impl Kernel {
    /// `sugov_kthread_create()`: where the governor cannot call the driver itself.
    pub(crate) fn sugov_kthreads_create(&mut self) {
        let samples = self.cx.config.runs_sampling();
        if !self.cx.config.runs_schedutil() && !samples {
            return;
        }
        for index in self.cpufreq.policies.ids() {
            if self.cpufreq.policies[index].fast_switch && !samples {
                continue;
            }
            let cpus = self.cpufreq.policies[index].cpus;
            let first = cpus.lowest().expect("a policy has CPUs");
            let kind = TaskKind::Sugov { policy: index };
            let task = self.new_task(None, kind);
            if self.cx.config.sugov_slow_path == SugovSlowPath::Fifo && !samples {
                self.sched.make_fifo(task, SUGOV_KTHREAD_PRIORITY);
            }
            self.sched.kthread_bind_mask(task, first, cpus);
            if self.cx.config.sugov_slow_path == SugovSlowPath::Deadline && !samples {
                self.sched.make_special_dl(task);
            }
            self.cpufreq.policies[index].kthread =
                Some(SugovKthread { task, queued: false, call: None });
        }
    }

    /// `sugov_deferred_update()`: the governor's choice is in `next_freq`.
    pub(crate) fn sugov_deferred_update(&mut self, index: PolicyId) {
        let sugov = &mut self.cpufreq.policies[index].sugov;
        if !sugov.work_in_progress {
            sugov.work_in_progress = true;
            self.irq_work_queue(index);
        }
    }

    /// `sugov_irq_work()`, `kthread_queue_work()`.
    pub(crate) fn sugov_irq_work(&mut self, index: PolicyId) {
        let thread = self.cpufreq.sugov_mut(index);
        thread.queued = true;
        let task = thread.task;
        if thread.call.is_none() {
            let sleeps = self.sched.task(task).on_rq == OnRq::No;
            let by_kworker = self.cx.config.sugov_slow_path == SugovSlowPath::Kworker
                || self.cpufreq.policies[index].dbs.is_some();
            if sleeps && by_kworker {
                // schedule_work_on(): by the kworker of this CPU.
                self.sched.queue_kworker_on(task, self.cx.this_cpu);
            }
            self.try_to_wake_up(task, 0, WakeSource::Kernel);
        }
    }

    /// The interrupt of a driver has come: threads whose driver is done wake up.
    pub(crate) fn sugov_driver_interrupt(&mut self) {
        for index in self.cpufreq.policies.ids() {
            let now = self.cx.now;
            let call = self.cpufreq.policies[index].kthread.as_mut().and_then(|k| k.call.as_mut());
            if let Some(call) = call.filter(|call| call.waits && call.until <= now) {
                call.waits = false;
                let task = self.cpufreq.sugov(index).task;
                self.try_to_wake_up(task, 0, WakeSource::Kernel);
            }
        }
    }

    /// The running thread of a policy goes on. Returns until when it is busy: until a driver that spins is done; 0: it is not.
    pub(crate) fn sugov_kthread_worker(&mut self, policy: PolicyId) -> Ns {
        self.sugov_kthread_fn(policy);
        self.cpufreq.sugov_busy_until(policy)
    }

    /// `kthread_worker_fn()` of the running thread: it has been switched to, or its driver has stopped spinning.
    pub(crate) fn sugov_kthread_fn(&mut self, index: PolicyId) {
        let cpu = self.cx.this_cpu;
        let task = self.sched.rq(cpu).curr;
        // cond_resched() between two works.
        if self.sugov_driver_returns(index) && self.sched.rq(cpu).need_resched {
            self.schedule(true);
            return;
        }
        while std::mem::take(&mut self.cpufreq.sugov_mut(index).queued) {
            if self.sugov_work(index) {
                return;
            }
        }
        self.sched.set_task_state(task, TaskState::Interruptible);
        self.schedule(false);
    }

    /// The driver's call under way is over; whether there is one.
    pub(super) fn sugov_driver_returns(&mut self, index: PolicyId) -> bool {
        let Some(call) = self.cpufreq.sugov_mut(index).call.take() else { return false };
        assert!(
            call.until <= self.cx.now && !call.waits,
            "policy {} goes on before its driver",
            index.0
        );
        self.cpufreq_freq_transition_end(index, call.khz, call.requested_at);
        self.cpufreq.sugov_work_ends(index);
        true
    }

    /// `sugov_work()`; whether the driver has been called.
    pub(super) fn sugov_work(&mut self, index: PolicyId) -> bool {
        let policy = &mut self.cpufreq.policies[index];
        if !self.cpufreq.sugov_forms.drops_while_busy {
            policy.sugov.work_in_progress = false;
        }
        if policy.dbs.is_some() {
            let khz = self.dbs_work(index);
            let sugov = &mut self.cpufreq.policies[index].sugov;
            sugov.next_freq = khz.unwrap_or(sugov.next_freq);
            sugov.last_freq_update_time = self.cx.now;
            if khz.is_none() {
                self.cpufreq.sugov_work_ends(index);
                return false;
            }
        }
        let sugov = &self.cpufreq.policies[index].sugov;
        let (wanted, requested_at) = (sugov.next_freq, sugov.last_freq_update_time);
        let khz = self.cpufreq.driver_frequency(index, wanted);
        let policy = &self.cpufreq.policies[index];
        if khz == policy.cur && khz == policy.requested {
            self.cpufreq.sugov_work_ends(index);
            return false;
        }
        let cost = self.cx.platform.device_tree.path_costs.frequency_switch;
        self.sched.charge(cost, &mut self.cx);
        self.cpufreq.cpufreq_driver_target_index(index, khz);
        let driver = &self.cx.platform.device_tree.policies[index.index()];
        let (until, waits) = (self.cx.local_clock() + driver.driver_latency, driver.driver_sleeps);
        let thread = self.cpufreq.sugov_mut(index);
        thread.call = Some(DriverCall { khz, requested_at, until, waits });
        let task = thread.task;
        if waits {
            self.sched.set_task_state(task, TaskState::Uninterruptible);
            self.schedule(false);
        }
        true
    }

    /// `cpufreq_freq_transition_end()`: the driver has returned.
    fn cpufreq_freq_transition_end(&mut self, index: PolicyId, khz: Khz, requested_at: Ns) {
        let Kernel { cpufreq, sched, cx, .. } = self;
        cpufreq.cpufreq_freq_transition(index, khz, requested_at, sched, cx);
        // A limit that came meanwhile has waited for the call.
        self.cpufreq_policy_apply_limits(index);
    }
}

impl Cpufreq {
    /// How long the thread of a policy is busy before [`Kernel::kthread`] is due again: until a driver that spins is done.
    pub(crate) fn sugov_busy_until(&self, index: PolicyId) -> Ns {
        self.sugov(index).call.map_or(0, |call| call.until)
    }

    fn sugov(&self, index: PolicyId) -> &SugovKthread {
        self.policies[index].kthread.as_ref().expect("a slow domain has a thread")
    }

    fn sugov_mut(&mut self, index: PolicyId) -> &mut SugovKthread {
        self.policies[index].kthread.as_mut().expect("a slow domain has a thread")
    }

    /// The end of `sugov_work()` where the governor waits for it.
    fn sugov_work_ends(&mut self, index: PolicyId) {
        if self.sugov_forms.drops_while_busy {
            self.policies[index].sugov.work_in_progress = false;
        }
    }

    /// Asserts that each work in progress is on its way to the thread, and that none is lost there.
    pub(crate) fn verify_sugov(&self, sched: &Scheduler, work: &IrqWork) {
        for index in self.policies.ids() {
            let policy = &self.policies[index];
            let Some(thread) = &policy.kthread else {
                let raised = policy.cpus.iter().filter(|cpu| work.has_fast_switch(*cpu));
                let under_way = policy.sugov.work_in_progress as usize;
                assert_eq!(raised.count(), under_way, "policy {}: interrupts", index.0);
                continue;
            };
            let raised = work.nr_raised(index);
            let called = thread.calls_driver() && self.sugov_forms.drops_while_busy;
            let under_way = raised + thread.queued as usize + usize::from(called);
            assert_eq!(
                under_way, policy.sugov.work_in_progress as usize,
                "policy {}: work",
                index.0
            );
            let task = sched.task(thread.task);
            // A fair thread (a kworker) whose dequeue is delayed sleeps, though it is queued.
            let queued = task.on_rq == OnRq::Queued && !sched.is_delayed(thread.task);
            let woken = queued
                || sched.rq(task.cpu).wake_list.iter().any(|entry| entry.task == thread.task);
            if thread.queued && thread.call.is_none() {
                assert!(woken, "policy {}: work, and its thread sleeps", index.0);
            }
            if let Some(call) = thread.call {
                assert_eq!(woken, !call.waits, "policy {}: driver's call", index.0);
            }
        }
    }
}
