// SPDX-License-Identifier: GPL-2.0-or-later
//! Users' frequency governors that are one for all domains and ask for what they want to know, as the C of a kernel does.
//!
//! **Idea.** A [`FrequencyGovernor`](super::FrequencyGovernor) is told everything before it decides. A governor of Linux looks first whether it
//! is time to decide at all, and asks for utilisation only then, CPU by CPU. So this one is told what the hook is told,
//! the CPU, the time and the flags, and gets a [`GovernorView`] to ask.
//!
//! **Demands are kept.** schedutil asks for every CPU of a domain at each decision, though few have changed. What the answers
//! follow from is a [`Signal`](crate::sched::demand::signal), so those that nobody has made stale are still right: the kernel keeps an
//! [`EffectiveDemand`] of each CPU and computes the stale ones of a domain when the governor first asks in a call.
//!
//! **What is whose.** The governor's: rate limit, boost after I/O, holding of a frequency, what it remembers. The
//! kernel's: what utilisation is, the frequency table with its limits, and the way of a decision to the driver,
//! a thread included ([`crate::cpufreq::sugov_kthread`]).

use super::{OwnPolicies, boxed};
use crate::Kernel;
use crate::cpufreq::schedutil::FrequencyChoice;
use schedtwin_types::{CpuId, FrequencyRule, Khz, Ns, PolicyId};
use std::cell::Cell;

/// A call of the hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookCall {
    /// The CPU whose utilisation may have changed.
    pub cpu: CpuId,
    /// Its domain.
    pub policy: PolicyId,
    /// Its run queue's clock.
    pub time: Ns,
    /// `SCHED_CPUFREQ_IOWAIT` or nothing.
    pub flags: u32,
}

/// The answer of `effective_cpu_util()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CpuPerformance {
    /// How much is used, 0..=capacity.
    pub util: u64,
    /// At least this is wanted.
    pub min: u64,
    /// At most this.
    pub max: u64,
}

/// The values that a governor asks for about every CPU of a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct EffectiveDemand {
    /// `cpu_util_cfs_boost()`.
    pub util_cfs: u64,
    /// `effective_cpu_util()` of that.
    pub performance: CpuPerformance,
}

/// The kernel as a governor may ask it, at the moment of a call.
pub struct GovernorView<'a> {
    kernel: &'a Kernel,
    /// By CPU; those of the domain in `told` are up to date.
    demands: &'a [Cell<EffectiveDemand>],
    told: Cell<Option<PolicyId>>,
    /// It has asked for utilisation: it decides.
    decides: Cell<bool>,
    /// It was told that the executing CPU may not change the domain.
    elsewhere: Cell<bool>,
    /// What it wanted before the table, last.
    raw_khz: Cell<Option<Khz>>,
}

impl GovernorView<'_> {
    /// The demands of all CPUs by their number, of which those of this domain are what the kernel would answer now.
    pub fn demands(&self, policy: PolicyId) -> &[Cell<EffectiveDemand>] {
        self.decides.set(true);
        let kernel = self.kernel;
        let cpus = &kernel.cpufreq.policy(policy).cpus;
        let mut next = Some(0);
        while let Some(word) = next {
            for cpu in kernel.sched.stale_demands().among(cpus, word) {
                let util_cfs = kernel.sched.sugov_util(cpu, &kernel.cx);
                let performance = kernel.sched.cpu_performance(cpu, util_cfs);
                self.demands[cpu.index()].set(EffectiveDemand { util_cfs, performance });
            }
            next = kernel.sched.stale_demands().next_word(word);
        }
        self.told.set(Some(policy));
        self.demands
    }

    /// `smp_processor_id()`.
    pub fn this_cpu(&self) -> CpuId {
        self.kernel.cx.this_cpu
    }

    /// `cpufreq_this_cpu_can_update()`.
    pub fn this_cpu_can_update(&self, policy: PolicyId) -> bool {
        let may = self.kernel.cpufreq.may_update(policy, &self.kernel.cx);
        self.elsewhere.set(!may);
        may
    }

    /// `cpu_util_cfs_boost()`.
    pub fn cpu_util_cfs_boost(&self, cpu: CpuId) -> u64 {
        self.decides.set(true);
        self.kernel.sched.sugov_util(cpu, &self.kernel.cx)
    }

    /// `cpu_util_cfs()`.
    pub fn cpu_util_cfs(&self, cpu: CpuId) -> u64 {
        self.decides.set(true);
        self.kernel.sched.cpu_util_cfs(cpu, &self.kernel.cx)
    }

    /// `effective_cpu_util()`.
    pub fn effective_cpu_util(&self, cpu: CpuId, util_cfs: u64) -> CpuPerformance {
        self.decides.set(true);
        self.kernel.sched.cpu_performance(cpu, util_cfs)
    }

    /// `cpu_bw_dl()`.
    pub fn cpu_bw_dl(&self, cpu: CpuId) -> u64 {
        self.kernel.sched.cpu_bw_dl(cpu)
    }

    /// `uclamp_rq_is_capped()`.
    pub fn uclamp_rq_is_capped(&self, cpu: CpuId) -> bool {
        self.kernel.sched.uclamp_rq_is_capped(cpu, &self.kernel.cx)
    }

    /// `tick_nohz_get_idle_calls_cpu()`.
    pub fn idle_calls(&self, cpu: CpuId) -> u64 {
        self.kernel.cpuidle.cpu(cpu).tick.idle_calls
    }

    /// `arch_scale_cpu_capacity()`.
    pub fn capacity(&self, cpu: CpuId) -> u64 {
        self.kernel.sched.arch_scale_cpu_capacity(cpu)
    }

    /// `cpufreq_driver_resolve_freq()`.
    pub fn resolve(&self, policy: PolicyId, khz: Khz) -> Khz {
        self.raw_khz.set(Some(khz));
        self.kernel.cpufreq.policy(policy).resolve(khz)
    }

    /// `policy->cur`.
    pub fn current_khz(&self, policy: PolicyId) -> Khz {
        self.kernel.cpufreq.policy(policy).cur
    }

    /// `policy->max`.
    pub fn limit_khz(&self, policy: PolicyId) -> Khz {
        self.kernel.cpufreq.policy(policy).limits.max
    }

    /// `arch_scale_freq_invariant()`.
    pub fn invariant(&self) -> bool {
        self.kernel.cpufreq.forms().invariant
    }
}

/// A frequency domain as such a governor is started on it.
#[derive(Clone, Debug)]
pub struct GovernedDomain {
    /// The input of every governor.
    pub domain: super::FrequencyDomain,
    /// The driver can switch in scheduler context.
    pub fast_switch: bool,
    /// Any CPU may change it.
    pub dvfs_possible_from_any_cpu: bool,
    /// The capacity of its CPUs.
    pub capacity: u64,
}

/// Chooses frequencies of all domains: one instance for the machine.
pub trait MachineFrequencyGovernor: CloneMachineFrequencyGovernor + Send + Sync {
    /// Utilisation may have changed. `Some`: the driver is asked for this frequency, within the table and its limits already;
    /// `None`: nothing is asked for.
    fn update_util(&mut self, call: &HookCall, view: &GovernorView) -> Option<Khz>;

    /// The limits of a domain have changed (`governor->limits()`).
    fn limits(&mut self, policy: PolicyId);

    /// Returns the rule that records name for its decisions.
    fn rule(&self) -> &'static str;
}

boxed!(MachineFrequencyGovernor, CloneMachineFrequencyGovernor, CustomMachineFrequency);

impl Kernel {
    /// `cpufreq_update_util()` where a governor for all domains stands in schedutil's place.
    #[cold]
    pub(crate) fn machine_frequency_update(&mut self, cpu: CpuId, flags: u32) {
        let index = self.cx.policy_of(cpu);
        self.cpufreq.note_remote_change(cpu, &self.sched, &self.cx);
        // What a change is dated to, as schedutil's are.
        let time = self.sched.rq(cpu).clock;
        let mut custom = self.own.machine_frequency.take().expect("the hook is this governor's");
        let mut kept = std::mem::take(&mut self.own.machine_demands);
        let view = GovernorView {
            kernel: self,
            demands: Cell::from_mut(kept.as_mut_slice()).as_slice_of_cells(),
            told: Cell::new(None),
            decides: Cell::new(false),
            elsewhere: Cell::new(false),
            raw_khz: Cell::new(None),
        };
        let call = HookCall { cpu, policy: index, time, flags };
        let decided = custom.policy.update_util(&call, &view);
        let GovernorView { decides, elsewhere, told, raw_khz, .. } = view;
        if let Some(told) = told.get() {
            self.keep_demands(told, &kept);
        }
        self.own.machine_demands = kept;
        let rule = FrequencyRule::Custom(custom.policy.rule());
        self.own.machine_frequency = Some(custom);
        let busy = self.sched.rq(cpu).nr_running > 0;
        let policy = self.cpufreq.policy_mut(index);
        let khz = decided.unwrap_or(policy.sugov.next_freq);
        let decides = decides.get() || decided.is_some();
        match (decides, elsewhere.get()) {
            (true, _) => {
                policy.sugov.counts.decided(self.cx.now, busy);
                policy.sugov.counts.count(decided.is_some());
            }
            (false, true) => policy.sugov.counts.elsewhere += 1,
            (false, false) => policy.sugov.counts.rate_limited += 1,
        }
        if self.cx.wants_decisions() && decides {
            let cpus = self.cpufreq.policy(index).cpus;
            let inputs: Vec<_> = cpus
                .iter()
                .map(|cpu| self.cpufreq.frequency_input(cpu, &self.sched, &self.cx))
                .collect();
            // Its own utilisation stays in the governor.
            let raw_khz = raw_khz.get().unwrap_or(khz);
            let choice = FrequencyChoice { raw_khz, khz, cached_raw_khz: raw_khz, rule };
            self.cpufreq.record_frequency(index, inputs, None, &choice, &mut self.cx);
        }
        if decided.is_some() {
            let sugov = &mut self.cpufreq.policy_mut(index).sugov;
            (sugov.next_freq, sugov.last_freq_update_time) = (khz, time);
            self.cpufreq_driver_request(index, khz, time);
        }
    }

    /// The governor has been told the demands of a domain: they are up to date until a signal changes.
    fn keep_demands(&mut self, index: PolicyId, demands: &[EffectiveDemand]) {
        let mut next = Some(0);
        while let Some(word) = next {
            for cpu in self.sched.stale_demands().among(&self.cpufreq.policy(index).cpus, word) {
                let (util, bw_min) =
                    self.sched.demand_with(cpu, &demands[cpu.index()].performance, &self.cx);
                let sg = self.cpufreq.sugov_cpu_mut(cpu);
                (sg.util, sg.bw_min) = (util, bw_min);
                self.sched.stale_demands_mut().computed(cpu);
            }
            next = self.sched.stale_demands().next_word(word);
        }
    }

    /// Asserts that what the governor was told of a CPU is what the signals say, unless its demand is stale.
    pub(crate) fn verify_machine_demand(&self, cpu: CpuId) {
        if !self.sched.stale_demands().contains(cpu) {
            let util_cfs = self.sched.sugov_util(cpu, &self.cx);
            let performance = self.sched.cpu_performance(cpu, util_cfs);
            let told = EffectiveDemand { util_cfs, performance };
            assert_eq!(self.own.machine_demands[cpu.index()], told, "{cpu:?}: what was told");
        }
    }
}

impl OwnPolicies {
    /// `governor->limits()` of a governor for all domains.
    pub(crate) fn machine_frequency_limits(&mut self, index: PolicyId) {
        if let Some(custom) = &mut self.machine_frequency {
            custom.policy.limits(index);
        }
    }
}
