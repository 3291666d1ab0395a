// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduler's hook: who is told that a CPU's utilisation has changed, and by whom.
//!
//! **Decides** whether the governor hears of a change now, later or not at all.
//!
//! **Idea.** A clock can often be changed only by a CPU that it drives. So at first a CPU told nobody but its own governor:
//! a task that was woken on another CPU went unnoticed there until that CPU ran scheduler code itself, which may
//! be its next tick. Calling the other CPU's hook helps, but costs an interrupt, which is wasted if that CPU is about to be
//! interrupted anyway in order to switch to the task.
//!
//! **Forms** ([`crate::config::CpufreqRemote`]), for a change on CPU *t* seen by the executing CPU *x*:
//!
//! ```text
//!                     t = x      x in t's domain    x elsewhere
//!   LocalOnly         call       -                  -
//!   AfterPreemption   call       call               remember; check_preempt_curr(): t is to switch -> forget,
//!                                                   else call, and an interrupt to t changes the clock
//!   Allowed           call       call               call; the governor drops it unless any CPU may change the clock
//! ```
//!
//! **Timeline** of a wakeup on a busy CPU that is not preempted, without and with the call:
//!
//! ```text
//!  x       wakes ─┐                       x       wakes ── call ── interrupt ─┐
//!  t  tick ───────┴─ busy ─────── tick    t  tick ────────── busy ────────────┴─ clock changes
//!                    └─ up to a tick ─┘ clock changes
//! ```
//!
//! Kernel: 6.12.95 kernel/sched/sched.h `cpufreq_update_util`, kernel/sched/cpufreq.c; 4.7 the same, and
//! `cpufreq_trigger_update`; the series "cpufreq: schedutil: improve latency of response", v2 of May 2016, by its
//! cover letter and the comment of its `cpufreq_add_update_util_hook()`.
//! Differences: a remembered call of the series waits for the next preemption check or for a call by the CPU itself, also
//! where the change was no wakeup; what the posted code does then was not read.

use crate::cpufreq::forms::SugovForms;
use crate::{Context, Cpufreq, Kernel, Scheduler};
use schedtwin_types::{CpuId, FrequencyRule, IpiKind, Khz, Ns, PolicyId};

/// The owner of the hook that [`Kernel::cpufreq_update_util`] calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrequencyHook {
    /// Nobody's.
    None,
    /// schedutil's, for every caller.
    Schedutil,
    /// schedutil's in one of its early forms, or called as in one of them.
    Early,
    /// That of a governor that samples.
    Sampling,
    /// intel_pstate's in active mode.
    IntelPstate,
    /// The user's governor's.
    Custom,
    /// That of the user's governor that is one for all domains.
    OfMachine,
}

/// Not of Linux: the caller is an RT or DEADLINE queue that has changed. 4.7 does not tell of that.
pub(crate) const CLASS_QUEUE: u32 = 1 << 31;
/// Not of Linux: the caller is an RT or DEADLINE task that runs (`cpufreq_trigger_update()`).
const CLASS_RUNS: u32 = 1 << 30;
/// Not of Linux: a call is remembered.
const REMEMBERED: u32 = 1 << 29;

/// Outcomes of the governor's calls, counted since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Another frequency was asked for.
    pub made: u64,
    /// Dropped: too soon after the last change, or its slow path was at work.
    pub rate_limited: u64,
    /// Dropped: the frequency was the one asked for already.
    pub equal: u64,
    /// Dropped: the executing CPU may not change the domain.
    pub elsewhere: u64,
    /// Interrupts sent to have another CPU change its clock.
    pub interrupts: u64,
    /// Such interrupts not sent, because the CPU was about to switch.
    pub interrupts_saved: u64,
    /// Changes of a busy CPU's utilisation by a CPU that is another one, each up to the governor's next decision.
    pub remote: u64,
    /// The time that these took together.
    pub remote_ns: Ns,
    /// The longest.
    pub remote_ns_max: Ns,
    /// Since when such a change waits for a decision, plus one; 0: none does.
    remote_since: Ns,
}

impl RequestCounts {
    /// A frequency has been computed.
    #[inline(always)]
    pub(crate) fn count(&mut self, changes: bool) {
        self.made += u64::from(changes);
        self.equal += u64::from(!changes);
    }

    /// A busy CPU's utilisation has been changed by another CPU.
    #[inline(always)]
    pub(crate) fn changed_from_elsewhere(&mut self, now: Ns) {
        if self.remote_since == 0 {
            self.remote_since = now + 1;
        }
    }

    /// The governor decides: a change by another CPU waits no longer. `busy`: the CPU still is.
    #[inline(always)]
    pub(crate) fn decided(&mut self, now: Ns, busy: bool) {
        let since = std::mem::take(&mut self.remote_since);
        if since != 0 && busy {
            let waited = now + 1 - since;
            self.remote += 1;
            self.remote_ns += waited;
            self.remote_ns_max = self.remote_ns_max.max(waited);
        }
    }
}

impl FrequencyHook {
    /// schedutil's hook in a configuration.
    pub(crate) fn schedutil(forms: SugovForms) -> FrequencyHook {
        if forms.are_early() { FrequencyHook::Early } else { FrequencyHook::Schedutil }
    }
}

impl Kernel {
    /// `cpufreq_update_util()`: utilisation of `cpu` may have changed.
    #[inline]
    pub(crate) fn cpufreq_update_util(&mut self, cpu: CpuId, flags: u32) {
        match self.cpufreq.frequency_hook {
            FrequencyHook::Schedutil => self.sugov_update(cpu, flags),
            FrequencyHook::None => {}
            FrequencyHook::Early => self.early_hook(cpu, flags),
            FrequencyHook::Sampling => self.dbs_update_util(cpu),
            FrequencyHook::IntelPstate => {
                self.cpufreq.intel_pstate_update_util(cpu, flags, &mut self.sched, &mut self.cx)
            }
            FrequencyHook::Custom => self.custom_frequency_update(cpu, flags),
            FrequencyHook::OfMachine => self.machine_frequency_update(cpu, flags),
        }
    }

    /// `cpufreq_trigger_update()` of 4.7: an RT or DEADLINE task of `cpu` runs.
    #[inline]
    pub(crate) fn cpufreq_trigger_update(&mut self, cpu: CpuId) {
        if self.cpufreq.frequency_hook == FrequencyHook::Early && self.cpufreq.sugov_forms.passed {
            self.early_hook(cpu, CLASS_RUNS);
        }
    }

    #[cold]
    fn early_hook(&mut self, cpu: CpuId, flags: u32) {
        let forms = self.cpufreq.sugov_forms;
        if forms.passed && flags & CLASS_QUEUE != 0 {
            return;
        }
        let index = self.cx.policy_of(cpu);
        self.cpufreq.note_remote_change(cpu, &self.sched, &self.cx);
        if forms.local_only && cpu != self.cx.this_cpu {
            self.cpufreq.policies[index].sugov.counts.elsewhere += 1;
            if self.cx.wants_decisions() {
                self.cpufreq.record_refusal(index, FrequencyRule::NotFromHere, &mut self.cx);
            }
        } else if forms.after_preemption
            && !self.cpufreq.policies[index].cpus.contains(self.cx.this_cpu)
        {
            self.cpufreq.callbacks[cpu] |= REMEMBERED | flags;
        } else {
            self.call_early(cpu, flags);
        }
    }

    fn call_early(&mut self, cpu: CpuId, flags: u32) {
        self.cpufreq.callbacks[cpu] = 0;
        if self.cpufreq.sugov_forms.passed {
            let rq = self.sched.rq(cpu);
            let util = self.sched.root_cfs(cpu).avg.util_avg.min(rq.arch_capacity);
            self.sugov_update_passed(cpu, (flags & CLASS_RUNS == 0).then_some(util));
        } else {
            self.sugov_update(cpu, flags);
        }
    }

    /// The end of `check_preempt_curr()` in the series: a remembered call, unless `cpu` is about to switch.
    #[cold]
    pub(crate) fn cpufreq_callback(&mut self, cpu: CpuId) {
        let flags = std::mem::take(&mut self.cpufreq.callbacks[cpu]);
        if self.sched.rq(cpu).need_resched {
            let index = self.cx.policy_of(cpu);
            self.cpufreq.policies[index].sugov.counts.interrupts_saved += 1;
        } else {
            self.call_early(cpu, flags);
        }
    }

    /// schedutil has chosen `khz` when it was called for `cpu`: the driver is asked from here, or by an interrupt to `cpu`
    /// where only the series lets the executing CPU decide.
    #[inline]
    pub(super) fn sugov_carry_out(&mut self, cpu: CpuId, index: PolicyId, khz: Khz, time: Ns) {
        if self.cpufreq.frequency_hook == FrequencyHook::Early
            && self.cpufreq.sugov_forms.after_preemption
            && !self.cpufreq.policies[index].cpus.contains(self.cx.this_cpu)
        {
            self.carry_out_by_interrupt(cpu, index);
        } else {
            self.cpufreq_driver_request(index, khz, time);
        }
    }

    fn carry_out_by_interrupt(&mut self, cpu: CpuId, index: PolicyId) {
        let policy = &mut self.cpufreq.policies[index];
        self.cpufreq.wishing_policies.insert(index);
        self.cpufreq.policies_dirty = true;
        if std::mem::replace(&mut policy.sugov.work_in_progress, true) {
            return;
        }
        policy.sugov.counts.interrupts += 1;
        if policy.fast_switch {
            self.work.raise_fast_switch(cpu);
            self.sched.send_ipi(cpu, IpiKind::IrqWork, &mut self.cpuidle, &mut self.cx);
        } else {
            self.irq_work_queue_on(index, cpu);
        }
    }

    /// The hook at `time` for a CPU whose domain's signals have been set from outside, as a comparison with
    /// a real kernel's recorded calls needs it.
    pub fn cpufreq_update_util_at(&mut self, cpu: CpuId, time: Ns, flags: u32) {
        self.sched.set_clock(cpu, time);
        let cpus = self.cpufreq.policies[self.cx.policy_of(cpu)].cpus;
        cpus.iter().for_each(|j| self.sched.stale_demands_mut().mark(j));
        self.cpufreq_update_util(cpu, flags);
    }
}

impl Cpufreq {
    /// The hook of a CPU is called, or would be if that CPU itself were the caller.
    #[inline(always)]
    pub(crate) fn note_remote_change(&mut self, cpu: CpuId, sched: &Scheduler, cx: &Context) {
        if cpu != cx.this_cpu && sched.rq(cpu).nr_running > 0 {
            let index = cx.policy_of(cpu);
            self.policies[index].sugov.counts.changed_from_elsewhere(cx.now);
        }
    }

    /// The interrupt has come to `cpu`: what is wanted by now.
    pub(crate) fn fast_switch_by_interrupt(
        &mut self,
        cpu: CpuId,
        sched: &mut Scheduler,
        cx: &mut Context,
    ) {
        let index = cx.policy_of(cpu);
        let sugov = &mut self.policies[index].sugov;
        sugov.work_in_progress = false;
        let (khz, requested_at) = (sugov.next_freq, sugov.last_freq_update_time);
        let khz = self.driver_frequency(index, khz);
        self.cpufreq_driver_fast_switch(index, khz, requested_at, sched, cx);
    }
}

impl Scheduler {
    /// Whether RT or DEADLINE tasks make `cpu` ask for all it has, as 4.7 has it.
    #[inline]
    pub(crate) fn class_asks_for_all(&self, cpu: CpuId) -> bool {
        self.rq(cpu).rt.nr_running() > 0 || self.cpu_bw_dl(cpu) > 0
    }
}
