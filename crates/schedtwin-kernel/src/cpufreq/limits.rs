// SPDX-License-Identifier: GPL-2.0-or-later
//! Limits of clocks: who asks for them, and what follows.
//!
//! Two ask: user space (`scaling_min_freq`, `scaling_max_freq`) and a cooling device ([`crate::thermal`]). Of the lower limits the highest
//! counts, of the upper ones the lowest. The governor of the domain follows, and the scheduler takes the lost capacity off.
//!
//! ```text
//!  settings, a replayed recording ──┐
//!                                   ├── policy->min, policy->max ──┬── governor: sugov_limits, ...
//!  cooling state ───────────────────┘                              └── cpufreq_pressure
//! ```
//!
//! Kernel: 6.12.117 drivers/cpufreq/cpufreq.c `cpufreq_set_policy`, `cpufreq_update_pressure`; freq_table.c
//! `cpufreq_frequency_table_verify`; include/linux/cpufreq.h `cpufreq_policy_apply_limits`; kernel/sched/cpufreq_schedutil.c
//! `sugov_limits`.
//! Differences: writing a limit costs nobody time. A driver without a table keeps to the table's frequencies as limits.

use super::freq_table::Limits;
use super::sugov_kthread::SugovKthread;
use crate::Kernel;
use schedtwin_types::{CpuId, Khz, Ns, PolicyId};

impl Kernel {
    /// Sets what the settings `scaling_min_freq` and `scaling_max_freq` ask for, before time begins.
    pub(crate) fn set_user_limits(&mut self) {
        let (min, max) = (self.cx.config.scaling_min_freq, self.cx.config.scaling_max_freq);
        if min.is_some() || max.is_some() {
            let limits = Limits { min: 0, max: Khz::MAX };
            for index in self.cpufreq.policies.ids() {
                self.freq_qos_update_request(index, limits, 0);
            }
        }
    }

    /// User space asks for limits of a policy, besides those of the settings `scaling_min_freq` and `scaling_max_freq`.
    pub fn freq_qos_update_request(&mut self, index: PolicyId, limits: Limits, now: Ns) {
        self.cx.begin_on_no_cpu(now);
        let set = (self.cx.config.scaling_min_freq, self.cx.config.scaling_max_freq);
        let limits = Limits {
            min: limits.min.max(set.0.unwrap_or(0)),
            max: limits.max.min(set.1.unwrap_or(Khz::MAX)),
        };
        let policy = self.cpufreq.policy_mut(index);
        if policy.user_limits != limits {
            policy.user_limits = limits;
            self.cpufreq_set_policy(index);
        }
    }

    /// `cpufreq_set_policy()`: a request has changed.
    pub(crate) fn cpufreq_set_policy(&mut self, index: PolicyId) {
        let policy = self.cpufreq.policy_mut(index);
        policy.read_limits();
        let Limits { min, max } = policy.limits;
        if let Some(amd) = &mut policy.amd {
            amd.update_limits(min, max);
        }
        self.cpufreq_update_pressure(index);
        // No CPU executes this: what follows is told of the policy's first.
        self.cx.this_cpu = self.cpufreq.policy(index).cpus.lowest().unwrap_or(CpuId(0));
        self.cpufreq_governor_limits(index);
    }

    /// `cpufreq_update_pressure()`: the capacity that the limit takes away. Before 6.10 cooling devices tell it, and user space's
    /// limits take nothing.
    fn cpufreq_update_pressure(&mut self, index: PolicyId) {
        let policy = self.cpufreq.policy(index);
        let highest = match self.sched.user_limits_take_capacity() {
            true => policy.limits.max,
            false => policy.cooled_max(),
        };
        for cpu in policy.cpus.iter() {
            let capacity = self.sched.arch_scale_cpu_capacity(cpu);
            let left = policy.capacity_within(capacity, highest);
            self.sched.set_cpufreq_pressure(cpu, capacity - left);
        }
    }

    /// `sugov_limits()`: without fast switch the limit counts at once, with it from the next request on.
    pub(crate) fn sugov_limits(&mut self, index: PolicyId) {
        if !self.cpufreq.policy(index).fast_switch {
            self.cpufreq_policy_apply_limits(index);
        }
        self.cpufreq.policy_mut(index).sugov.limits_changed = true;
        self.own.machine_frequency_limits(index);
    }

    /// `cpufreq_policy_apply_limits()`. A driver's call under way is waited for: its end calls this again.
    pub(crate) fn cpufreq_policy_apply_limits(&mut self, index: PolicyId) {
        let policy = self.cpufreq.policy(index);
        let busy = policy.kthread.as_ref().is_some_and(SugovKthread::calls_driver);
        let khz = policy.limits.clamp(policy.cur);
        if khz != policy.cur && !busy {
            self.cpufreq_driver_target(index, khz);
        }
    }

    /// `__cpufreq_driver_target()` from outside the governor: the hardware is asked, and belief follows.
    ///
    /// Differences: at once, where a driver that sleeps takes its time.
    pub(crate) fn cpufreq_driver_target(&mut self, index: PolicyId, khz: Khz) {
        let policy = self.cpufreq.policy(index);
        if policy.cur == khz && policy.requested == khz {
            return;
        }
        let requested_at = self.cx.now;
        self.cpufreq.cpufreq_driver_target_index(index, khz);
        let Kernel { cpufreq, sched, cx, .. } = self;
        cpufreq.cpufreq_freq_transition(index, khz, requested_at, sched, cx);
    }
}
