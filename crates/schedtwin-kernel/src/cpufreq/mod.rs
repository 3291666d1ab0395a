// SPDX-License-Identifier: GPL-2.0-or-later
//! `drivers/cpufreq/` and `kernel/sched/cpufreq*.c`: who chooses frequencies, and how.

pub mod amd_pstate;
pub mod counters;
pub mod counts;
pub mod dbs;
pub(crate) mod driver;
pub(crate) mod forms;
pub mod freq_table;
pub mod hints;
pub mod hook;
pub mod intel_pstate;
mod limits;
pub mod policy;
pub mod schedutil;
pub mod sugov_kthread;

use crate::Context;
use crate::cpufreq::forms::SugovForms;
use crate::sched::demand::need::Needs;
use hook::FrequencyHook;
use policy::CpufreqPolicy;
use schedtwin_types::arena::{Arena, PerCpu};
use schedtwin_types::{CpuId, Ns, PolicyId, PolicyMask};
use schedutil::SugovCpu;

/// Frequency domains, their governors, and who hears of utilisation.
#[derive(Clone)]
pub struct Cpufreq {
    /// The receiver of changes of utilisation.
    frequency_hook: FrequencyHook,
    /// schedutil's forms.
    sugov_forms: SugovForms,
    /// schedutil's data of each CPU.
    sugov_cpus: PerCpu<SugovCpu>,
    /// Frequency domains.
    policies: Arena<PolicyId, CpufreqPolicy>,
    /// Whether there are dirty or wishing policies.
    policies_dirty: bool,
    /// The counters of each CPU; none where nobody reads them.
    counters: Vec<counters::Counters>,
    /// Per CPU: flags of a call of the hook that is remembered until the CPU has switched; 0: none.
    callbacks: PerCpu<u32>,
    /// Frequency domains whose driver was asked for another frequency since hardware last looked.
    dirty_policies: PolicyMask,
    /// Frequency domains whose governor wants another frequency that the driver will be asked for
    /// later.
    wishing_policies: PolicyMask,
}

impl Cpufreq {
    /// Domains without a governor at work yet: it starts when the kernel boots.
    pub(crate) fn new(
        policies: Arena<PolicyId, CpufreqPolicy>,
        frequency_hook: FrequencyHook,
        sugov_forms: SugovForms,
        nr_cpus: usize,
    ) -> Cpufreq {
        Cpufreq {
            policies,
            counters: Vec::new(),
            sugov_cpus: (0..nr_cpus).map(|_| SugovCpu::default()).collect(),
            frequency_hook,
            sugov_forms,
            callbacks: vec![0; nr_cpus].into_iter().collect(),
            dirty_policies: PolicyMask::EMPTY,
            wishing_policies: PolicyMask::EMPTY,
            policies_dirty: false,
        }
    }

    /// A frequency domain.
    #[inline(always)]
    pub(crate) fn policy(&self, policy: PolicyId) -> &CpufreqPolicy {
        &self.policies[policy]
    }

    /// As [`Cpufreq::policy`], for cooling devices and users' governors.
    #[inline(always)]
    pub(crate) fn policy_mut(&mut self, policy: PolicyId) -> &mut CpufreqPolicy {
        &mut self.policies[policy]
    }

    /// All frequency domains.
    pub(crate) fn policy_ids(&self) -> impl Iterator<Item = PolicyId> + use<> {
        self.policies.ids()
    }

    /// schedutil's data of a CPU.
    #[inline(always)]
    pub(crate) fn sugov_cpu(&self, cpu: CpuId) -> &SugovCpu {
        &self.sugov_cpus[cpu]
    }

    /// As [`Cpufreq::sugov_cpu`], for users' governors.
    pub(crate) fn sugov_cpu_mut(&mut self, cpu: CpuId) -> &mut SugovCpu {
        &mut self.sugov_cpus[cpu]
    }

    /// schedutil's forms.
    #[inline(always)]
    pub(crate) fn forms(&self) -> SugovForms {
        self.sugov_forms
    }

    /// The function that hears of utilisation.
    #[inline(always)]
    pub(crate) fn hook(&self) -> FrequencyHook {
        self.frequency_hook
    }

    /// Puts another function in its place; returns the former one.
    pub(crate) fn replace_hook(&mut self, hook: FrequencyHook) -> FrequencyHook {
        std::mem::replace(&mut self.frequency_hook, hook)
    }

    /// Whether a call of the hook is remembered until `cpu` has switched.
    #[inline(always)]
    pub(crate) fn has_callback(&self, cpu: CpuId) -> bool {
        self.callbacks[cpu] != 0
    }

    /// The counters of `cpu` begin or cease to count at `at`.
    pub(crate) fn counter_works(&mut self, cpu: CpuId, at: Ns, works: bool) {
        self.counters[cpu.index()].works(at, works);
    }

    /// Whether there are dirty or wishing policies.
    #[inline(always)]
    pub(crate) fn is_dirty(&self) -> bool {
        self.policies_dirty
    }

    /// Takes the domains whose governor has yet to ask the driver.
    #[inline]
    pub(crate) fn take_wishing(&mut self) -> PolicyMask {
        std::mem::take(&mut self.wishing_policies)
    }

    /// Takes the domains whose driver was asked.
    #[inline]
    pub(crate) fn take_dirty(&mut self) -> PolicyMask {
        self.policies_dirty = false;
        std::mem::take(&mut self.dirty_policies)
    }

    /// Takes schedutil's forms and the hook from another configuration.
    pub(crate) fn reconfigure(&mut self, cx: &Context) {
        self.sugov_forms = SugovForms::new(&cx.config, &cx.platform.device_tree);
        if matches!(self.frequency_hook, FrequencyHook::Schedutil | FrequencyHook::Early) {
            self.frequency_hook = FrequencyHook::schedutil(self.sugov_forms);
        }
    }

    /// Returns the needs of CPUs of these domains under another configuration.
    pub(crate) fn needs_for_config(&self, needs: &Needs, cx: &Context) -> Needs {
        needs.for_config(&self.policies, &cx.platform.device_tree, &cx.config)
    }
}

crate::inside::opened!(Cpufreq { policies: Arena<PolicyId, CpufreqPolicy>, });
