// SPDX-License-Identifier: GPL-2.0-or-later
//! Frequency domains: `struct cpufreq_policy`, the table, and the switch itself.
//!
//! Two ways lead to the driver. Where it can switch in scheduler context (`fast_switch`), the governor calls
//! it, and belief changes at once; where it cannot, a thread does ([`crate::cpufreq::sugov_kthread`]), and
//! belief changes when the driver has returned. The hardware is asked for `requested` either way, and takes its own
//! time to get there.
//!
//! Kernel: 6.12.95 drivers/cpufreq/cpufreq.c `cpufreq_driver_resolve_freq`, `cpufreq_driver_fast_switch`,
//! `cpufreq_policy_transition_delay_us`; drivers/base/arch_topology.c `topology_set_freq_scale`.
//! Limits are in `limits.rs`.
//! Differences: what performance and powersave set at boot is set before time begins, whatever the driver would take.

use crate::config::{Config, FrequencyGovernor, RateLimitDefault};
use crate::cpufreq::amd_pstate::AmdPstate;
use crate::cpufreq::dbs::{self, sampling::PolicyDbs};
use crate::cpufreq::driver::{self, Driver};
use crate::cpufreq::freq_table::{self, Limits};
use crate::cpufreq::intel_pstate::cpu::PstateCpu;
use crate::cpufreq::schedutil::SugovPolicy;
use crate::cpufreq::sugov_kthread::SugovKthread;
use crate::device_tree::DtPolicy;
use crate::policy::CustomFrequency;
use crate::sched::root_domain::perf_states;
use crate::{Context, Cpufreq, Kernel, Scheduler};
use schedtwin_types::{CpuId, CpuMask, FactKind, Khz, Ns, PolicyId};

/// A frequency domain.
#[derive(Clone, Debug)]
pub struct CpufreqPolicy {
    /// Its CPUs.
    pub cpus: CpuMask,
    /// It has one CPU only.
    pub is_single: bool,
    /// Frequencies, ascending.
    pub table: Vec<Khz>,
    /// Per frequency: skipped when resolving, because a faster one costs no more.
    pub inefficient: Vec<bool>,
    /// `policy->min`, `policy->max`.
    pub limits: Limits,
    /// Those that user space asks for.
    pub user_limits: Limits,
    /// So many of the highest frequencies are taken away (`cpufreq_state` of its cooling device).
    pub cooling_state: u32,
    /// `policy->cur`, as the kernel believes.
    pub cur: Khz,
    /// The frequency that the driver has asked the hardware for.
    pub requested: Khz,
    /// The driver holds the clock at this frequency or above, because another domain's runs so fast; 0: it does not.
    pub(crate) held: Khz,
    /// The driver can switch in scheduler context.
    pub fast_switch: bool,
    /// Any CPU may change it.
    pub dvfs_possible_from_any_cpu: bool,
    /// Its driver has no table of its own: any frequency within the limits may be asked for.
    pub(crate) tableless: bool,
    /// Its driver is asked for performance, not for a frequency.
    pub(crate) adjust_perf: bool,
    /// schedutil's state.
    pub sugov: SugovPolicy,
    /// schedutil's thread, if it has to use one.
    pub kthread: Option<SugovKthread>,
    /// The state of a governor that samples, if there is one.
    pub(crate) dbs: Option<Box<PolicyDbs>>,
    /// The state of intel_pstate, if that is the driver.
    pub(crate) pstate: Option<Box<PstateCpu>>,
    /// The state of amd-pstate, if that is the driver.
    pub(crate) amd: Option<Box<AmdPstate>>,
    /// The user's governor in schedutil's place, if there is one.
    pub(crate) custom: Option<Box<CustomFrequency>>,
}

/// `cpufreq_policy_transition_delay_us()`: what follows from the driver's latency.
///
/// ```
/// use schedtwin_kernel::config::RateLimitDefault::*;
/// use schedtwin_kernel::cpufreq::policy::cpufreq_policy_transition_delay_us as delay;
/// let forms = [LatencyTimes1000Uncapped, LatencyTimes1000, LatencyTimes1000Max2Ms, LatencyAndHalf];
/// assert_eq!(forms.map(|form| delay(form, 500)), [500_000, 10_000, 2_000, 750]);
/// assert_eq!(forms.map(|form| delay(form, 1)), [1_000, 1_000, 1_000, 1]);
/// assert_eq!(forms.map(|form| delay(form, 0)), [1_000, 1_000, 1_000, 1_000]);
/// ```
pub fn cpufreq_policy_transition_delay_us(form: RateLimitDefault, latency_us: u64) -> u64 {
    if latency_us == 0 {
        return 1000;
    }
    match form {
        RateLimitDefault::LatencyTimes1000Uncapped => latency_us.saturating_mul(1000),
        RateLimitDefault::LatencyTimes1000 => latency_us.saturating_mul(1000).min(10_000),
        RateLimitDefault::LatencyTimes1000Max2Ms => latency_us.saturating_mul(1000).min(2_000),
        RateLimitDefault::LatencyAndHalf => latency_us + (latency_us >> 1),
    }
}

impl CpufreqPolicy {
    /// A domain as the governor starts on it.
    pub fn new(dt: &DtPolicy, capacity: u64, config: &Config) -> CpufreqPolicy {
        let table: Vec<Khz> = dt.opps.iter().map(|o| o.0).collect();
        let states = perf_states(config, capacity, &dt.opps);
        let inefficient = states.iter().map(|s| s.inefficient).collect();
        let driver = Driver::new(config);
        let delay_us = match driver.transition_delay_us {
            0 => cpufreq_policy_transition_delay_us(
                config.rate_limit_default,
                dt.transition_latency / 1000,
            ),
            delay_us => delay_us,
        };
        let rate_limit_us = config.schedutil.rate_limit_us.unwrap_or(delay_us);
        // Before a governor runs, firmware has left the highest frequency.
        let left = *table.last().expect("a policy has frequencies");
        let amd = driver::amd_pstate(config, &table);
        let mut policy = CpufreqPolicy {
            cpus: dt.cpus,
            is_single: dt.cpus.weight() == 1,
            limits: Limits::whole(&table),
            user_limits: Limits::whole(&table),
            cooling_state: 0,
            cur: left,
            requested: left,
            held: 0,
            table,
            inefficient,
            fast_switch: dt.fast_switch || driver.own,
            dvfs_possible_from_any_cpu: dt.dvfs_possible_from_any_cpu,
            tableless: driver.tableless,
            adjust_perf: driver.adjust_perf && dt.cpus.weight() == 1,
            sugov: SugovPolicy::new(rate_limit_us * 1000),
            kthread: None,
            dbs: None,
            pstate: None,
            amd,
            custom: None,
        };
        if config.runs_sampling() {
            policy.dbs = Some(dbs::start(config, &policy.cpus, policy.cur, delay_us));
        }
        policy
    }

    /// Returns the capacity left of `capacity` while the CPU's clock runs at `khz` at most.
    pub(crate) fn capacity_within(&self, capacity: u64, khz: Khz) -> u64 {
        // mult_frac(): quotient and remainder apart, which here is the plain product.
        capacity * u64::from(khz.min(self.max())) / u64::from(self.max())
    }

    /// The highest frequency: capacities refer to it (`arch_scale_freq_ref`).
    #[inline(always)]
    pub fn max(&self) -> Khz {
        self.table[self.table.len() - 1]
    }

    /// `cpufreq_driver_resolve_freq()`: the lowest efficient table frequency that is not below `target`, or any that is
    /// not, if that one is above the limit. Of a driver without a table: `target` within the limits.
    #[inline]
    pub fn resolve(&self, target: Khz) -> Khz {
        if self.tableless {
            return self.limits.clamp(target);
        }
        self.resolve_within(target, self.limits)
    }

    /// The same with other limits.
    #[inline(always)]
    pub(crate) fn resolve_within(&self, target: Khz, limits: Limits) -> Khz {
        freq_table::low(&self.table, &self.inefficient, limits, target)
    }

    /// `cpufreq_set()` of the governor userspace: the lowest frequency that is not below `khz`, inefficient or not, within the limits.
    fn at_speed(&self, khz: Khz) -> Khz {
        let khz = self.limits.clamp(khz);
        self.table[self.table.partition_point(|of| *of < khz)]
    }

    /// `freq_qos_read_value()`, `cpufreq_set_policy()`: the limits that follow from the cooling state and from user space.
    pub(crate) fn read_limits(&mut self) {
        let Limits { min, max } = self.user_limits;
        self.limits = Limits::of(&self.table, min, max.min(self.cooled_max()));
    }

    /// The highest frequency that the cooling state leaves.
    pub(crate) fn cooled_max(&self) -> Khz {
        self.table[self.table.len() - 1 - self.cooling_state as usize]
    }
}

impl Cpufreq {
    /// Starts the governors, at boot.
    pub(crate) fn cpufreq_start(&mut self, sched: &mut Scheduler, cx: &mut Context) {
        if cx.config.scaling_driver.needs_own_clocks() {
            self.start_counters(sched, cx);
        }
        if cx.config.processor_decides() {
            self.hints_start(sched, cx);
            return;
        }
        if cx.config.scaling_driver.decides() {
            self.intel_pstate_start(sched, cx);
            return;
        }
        let driver = Driver::new(&cx.config);
        if driver.pstates {
            self.intel_pstate_cpu_init(cx);
        }
        for index in self.policies.ids() {
            let policy = &self.policies[index];
            let khz = match cx.config.cpufreq {
                // The governor's first request decides; until then what firmware left.
                // Drivers that bring their own way begin at the bottom.
                FrequencyGovernor::Schedutil
                | FrequencyGovernor::Ondemand
                | FrequencyGovernor::Conservative
                    if driver.own =>
                {
                    policy.table[0]
                }
                FrequencyGovernor::Schedutil
                | FrequencyGovernor::Performance
                | FrequencyGovernor::Ondemand
                | FrequencyGovernor::Conservative => policy.max(),
                FrequencyGovernor::Powersave => policy.limits.min,
                FrequencyGovernor::Userspace => policy.at_speed(cx.config.scaling_setspeed),
            };
            self.cpufreq_driver_target_index(index, khz);
            self.set_policy_cur(index, khz, sched, cx);
        }
    }

    /// Nobody has asked for more than the lowest frequency for long, where a governor follows the load. While all tasks are in
    /// sched_ext, schedutil does not: the load of its scheduler has asked for the highest, and only the scheduler asks again.
    pub(crate) fn settle(&mut self, sched: &mut Scheduler, cx: &mut Context) {
        let schedutil = cx.config.runs_schedutil() && !sched.scx_switched_all();
        if schedutil || cx.config.runs_sampling() {
            for index in self.policies.ids() {
                let khz = self.policies[index].limits.min;
                self.cpufreq_driver_target_index(index, khz);
                self.set_policy_cur(index, khz, sched, cx);
                if let Some(dbs) = &mut self.policies[index].dbs {
                    dbs.limits(khz);
                }
            }
        }
    }

    /// The driver hands a frequency to the hardware.
    pub(crate) fn cpufreq_driver_target_index(&mut self, index: PolicyId, khz: Khz) {
        self.policies[index].requested = khz;
        self.dirty_policies.insert(index);
        self.policies_dirty = true;
    }

    /// The kernel believes in a frequency from now on: `policy->cur`, `topology_set_freq_scale()`.
    pub(crate) fn set_policy_cur(
        &mut self,
        index: PolicyId,
        khz: Khz,
        sched: &mut Scheduler,
        cx: &mut Context,
    ) {
        let policy = &mut self.policies[index];
        policy.cur = khz;
        let (cpus, max) = (policy.cpus, policy.max());
        let scale = ((khz as u64) << 10) / max as u64;
        let known = !self.reads_counters();
        for cpu in cpus.iter() {
            if known {
                sched.set_freq_scale(cpu, if self.sugov_forms.invariant { scale } else { 1024 });
            }
            sched.refresh_path_speed(cpu, self, cx);
            if !self.sugov_forms.invariant {
                // What a utilisation is worth follows from the clock.
                sched.stale_demands_mut().mark(cpu);
            }
        }
    }

    /// How fast a CPU's clock is believed to run, of 1024.
    pub(crate) fn clock_scale(&self, cpu: CpuId, cx: &Context) -> u64 {
        let policy = &self.policies[cx.policy_of(cpu)];
        (u64::from(policy.cur) << 10) / u64::from(policy.max())
    }

    /// Returns what the driver makes of a frequency that the governor has not looked up in its
    /// table (`CPUFREQ_RELATION_L`).
    #[inline]
    pub(crate) fn driver_frequency(&self, index: PolicyId, khz: Khz) -> Khz {
        let policy = &self.policies[index];
        match policy.tableless {
            true => policy.tableless_frequency(khz),
            false if self.sugov_forms.raw => policy.resolve(khz),
            false => khz,
        }
    }

    /// `cpufreq_driver_fast_switch()`: in scheduler context, at once as the kernel believes.
    pub(super) fn cpufreq_driver_fast_switch(
        &mut self,
        index: PolicyId,
        khz: Khz,
        requested_at: Ns,
        sched: &mut Scheduler,
        cx: &mut Context,
    ) {
        let cost = cx.platform.device_tree.path_costs.frequency_switch;
        sched.charge(cost, cx);
        self.cpufreq_driver_target_index(index, khz);
        self.cpufreq_freq_transition(index, khz, requested_at, sched, cx);
    }

    /// The driver has changed the clock, or found that it runs as it is to: `cpufreq_freq_transition_end()`. Where it holds the clock higher
    /// than was asked for, nothing changes.
    pub(crate) fn cpufreq_freq_transition(
        &mut self,
        index: PolicyId,
        khz: Khz,
        requested_at: Ns,
        sched: &mut Scheduler,
        cx: &mut Context,
    ) {
        let policy = &self.policies[index];
        let now = khz.max(policy.held);
        if policy.held != 0 && now == policy.cur {
            return;
        }
        cx.fact(FactKind::Frequency { policy: index, khz: now, requested_at });
        self.set_policy_cur(index, now, sched, cx);
    }
}

/// Calls of hardware and of who stands for a driver's insides.
impl Kernel {
    /// Another domain's clock has changed, and the driver therefore holds this policy's at `khz` or above: it changes the clock as if it had
    /// been asked to, and the kernel learns of it.
    pub fn clock_held(&mut self, index: PolicyId, khz: Khz, now: Ns) {
        self.cx.begin_on_no_cpu(now);
        let policy = self.cpufreq.policy_mut(index);
        policy.held = khz;
        let khz = policy.requested.max(khz);
        // The end of a call that is under way looks at it.
        let busy = policy.kthread.as_ref().is_some_and(SugovKthread::calls_driver);
        if khz == policy.cur || busy {
            return;
        }
        self.cx.this_cpu = policy.cpus.lowest().unwrap_or(CpuId(0));
        self.cx.fact(FactKind::Frequency { policy: index, khz, requested_at: now });
        self.cpufreq.set_policy_cur(index, khz, &mut self.sched, &mut self.cx);
    }
}

impl Kernel {
    /// `cpufreq_governor_limits()`: the policy's limit has changed.
    pub(crate) fn cpufreq_governor_limits(&mut self, index: PolicyId) {
        if self.cx.config.processor_decides() {
            self.cpufreq.set_pstate_limits(index);
            return;
        }
        if self.cx.config.scaling_driver.decides() {
            self.intel_pstate_limits(index);
            return;
        }
        self.cpufreq.set_pstate_limits(index);
        match self.cx.config.cpufreq {
            FrequencyGovernor::Schedutil => self.sugov_limits(index),
            FrequencyGovernor::Performance => {
                let khz = self.cpufreq.policies[index].limits.max;
                self.cpufreq_driver_target(index, khz);
            }
            FrequencyGovernor::Powersave => {
                let khz = self.cpufreq.policies[index].limits.min;
                self.cpufreq_driver_target(index, khz);
            }
            FrequencyGovernor::Ondemand | FrequencyGovernor::Conservative => self.dbs_limits(index),
            FrequencyGovernor::Userspace => {
                let khz = self.cpufreq.policies[index].at_speed(self.cx.config.scaling_setspeed);
                self.cpufreq_driver_target(index, khz);
            }
        }
    }

    /// The governor has chosen `khz`, at `requested_at` on the run queue's clock: the end of
    /// `sugov_update_shared()` and `sugov_update_single_freq()`.
    #[inline]
    pub(crate) fn cpufreq_driver_request(&mut self, index: PolicyId, khz: Khz, requested_at: Ns) {
        if self.cpufreq.policies[index].fast_switch {
            let khz = self.cpufreq.driver_frequency(index, khz);
            self.cpufreq.cpufreq_driver_fast_switch(
                index,
                khz,
                requested_at,
                &mut self.sched,
                &mut self.cx,
            );
        } else {
            // The driver is asked later, and the meter hears of the wish now.
            self.cpufreq.wishing_policies.insert(index);
            self.cpufreq.policies_dirty = true;
            self.sugov_deferred_update(index);
        }
    }
}

impl Context {
    /// The domain of a CPU.
    #[inline(always)]
    pub(crate) fn policy_of(&self, cpu: CpuId) -> PolicyId {
        PolicyId(self.platform.device_tree.cpus[cpu.index()].policy as u16)
    }
}
