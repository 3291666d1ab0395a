// SPDX-License-Identifier: GPL-2.0-or-later
//! Drivers as the core knows them: what a governor has to know about who sets the clock.
//!
//! **Idea.** A governor asks for a frequency, and some drivers are asked for performance instead (`adjust_perf`): a floor, a target and
//! the capacity that they are shares of. Processors that take hints choose the frequency themselves, so there the floor has a meaning of
//! its own. schedutil then neither looks a frequency up nor remembers one: each decision goes to the driver.
//!
//! | driver | table | waits between changes | `adjust_perf` |
//! |---|---|---|---|
//! | the machine's | its own | by its latency | no |
//! | intel_cpufreq | none: multiples of 100 MHz | 500 us; 5 ms with HWP | with HWP |
//! | amd-pstate | none: 255 steps of performance | 1 ms | yes |
//!
//! Kernel: 6.1.192 and 6.12.117 drivers/cpufreq/intel_pstate.c `intel_cpufreq_fast_switch`, `intel_cpufreq_adjust_perf`; amd-pstate.c
//! `amd_pstate_fast_switch`, `amd_pstate_adjust_perf`; cpufreq.c `cpufreq_policy_transition_delay_us`; kernel/sched/cpufreq_schedutil.c
//! `sugov_update_single_perf`.
//! Differences: a processor that takes hints runs at the performance that is desired. amd-pstate's highest performance is 255 and its
//! lowest nonlinear one its lowest, where firmware says other numbers. Requests are rounded up to the machine's table.

use crate::config::{Config, CpufreqDriver};
use crate::cpufreq::intel_pstate::cpu::SCALING;
use crate::cpufreq::policy::CpufreqPolicy;
use crate::cpufreq::schedutil::FrequencyChoice;
use crate::{Context, Cpufreq, Scheduler};
use schedtwin_types::{CpuId, FrequencyRule, Khz, Ns, PolicyId};

/// `INTEL_CPUFREQ_TRANSITION_DELAY`, `INTEL_CPUFREQ_TRANSITION_DELAY_HWP`, `AMD_PSTATE_TRANSITION_DELAY`: microseconds.
const INTEL_CPUFREQ_DELAY_US: u64 = 500;
const INTEL_CPUFREQ_DELAY_HWP_US: u64 = 5_000;
const AMD_PSTATE_DELAY_US: u64 = 1_000;
/// The highest performance that amd-pstate asks for.
const AMD_HIGHEST_PERF: u64 = 255;

/// The core's knowledge of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Driver {
    /// There is no table: what a governor asks for is kept within the limits and left to the driver.
    pub tableless: bool,
    /// `policy->transition_delay_us`; 0: it follows from the latency.
    pub transition_delay_us: u64,
    /// The driver is asked for performance (`cpufreq_driver_has_adjust_perf()`).
    pub adjust_perf: bool,
    /// Governors are heard in scheduler context whatever the machine's driver would do, and begin at the lowest frequency.
    pub own: bool,
    /// Its P-states are those of intel_pstate.
    pub pstates: bool,
}

impl Driver {
    /// The one that a kernel names.
    pub fn new(config: &Config) -> Driver {
        let machine = Driver {
            tableless: false,
            transition_delay_us: 0,
            adjust_perf: false,
            own: false,
            pstates: false,
        };
        match config.scaling_driver {
            CpufreqDriver::Machine | CpufreqDriver::AmdPstateEpp => machine,
            CpufreqDriver::IntelPstate => Driver { pstates: true, ..machine },
            CpufreqDriver::IntelCpufreq => Driver {
                tableless: true,
                transition_delay_us: match config.hwp {
                    true => INTEL_CPUFREQ_DELAY_HWP_US,
                    false => INTEL_CPUFREQ_DELAY_US,
                },
                adjust_perf: config.hwp,
                own: true,
                pstates: true,
            },
            CpufreqDriver::AmdPstate => Driver {
                tableless: true,
                transition_delay_us: AMD_PSTATE_DELAY_US,
                adjust_perf: true,
                own: true,
                pstates: false,
            },
        }
    }
}

impl CpufreqPolicy {
    /// Returns the frequency that a driver without a table makes of one within the limits.
    pub(super) fn tableless_frequency(&self, khz: Khz) -> Khz {
        match &self.pstate {
            Some(pstate) => self.khz_of_pstate(pstate.prepare_request(pstate.of_khz(khz))),
            None => {
                let highest = u64::from(self.max());
                let perf = (u64::from(khz) * AMD_HIGHEST_PERF + highest / 2) / highest;
                self.next_higher((perf * highest / AMD_HIGHEST_PERF) as Khz).min(self.limit_max)
            }
        }
    }

    /// `adjust_perf()`: the frequency of the performance that is desired for a floor and a target, shares of `capacity`.
    fn adjusted_frequency(&mut self, min_perf: u64, target_perf: u64, capacity: u64) -> Khz {
        if let Some(pstate) = &mut self.pstate {
            let (_, _, desired) = pstate.adjust_perf(min_perf, target_perf, capacity);
            pstate.current = desired;
            return desired as u32 * SCALING;
        }
        let highest = u64::from(self.max());
        let of = |perf: u64| match perf < capacity {
            true => (AMD_HIGHEST_PERF * perf).div_ceil(capacity),
            false => AMD_HIGHEST_PERF,
        };
        let limit = |khz: Khz| (u64::from(khz) * AMD_HIGHEST_PERF / highest).max(1);
        let (lowest, most) = (limit(self.table[0]), limit(self.limit_max));
        let floor = of(min_perf).max(lowest).min(most);
        let desired = of(target_perf).clamp(floor, most);
        (desired * highest).div_ceil(AMD_HIGHEST_PERF) as Khz
    }

    /// The frequency of the table that is not below `khz`, or the highest.
    pub(super) fn next_higher(&self, khz: Khz) -> Khz {
        let at = self.table.partition_point(|step| *step < khz);
        self.table[at.min(self.table.len() - 1)]
    }
}

impl Cpufreq {
    /// The end of `sugov_update_single_perf()`: `util_before` is what the CPU demanded at the decision before.
    #[cold]
    pub(super) fn sugov_adjust_perf(
        &mut self,
        cpu: CpuId,
        index: PolicyId,
        (time, util_before): (Ns, u64),
        hold: bool,
        sched: &mut Scheduler,
        cx: &mut Context,
    ) {
        if hold && self.sugov_cpus[cpu].util < util_before {
            self.sugov_cpus[cpu].util = util_before;
            // What it really demands is asked anew next time.
            sched.stale_demands_mut().mark(cpu);
        }
        let sg = self.sugov_cpus[cpu];
        let (floor, target) = (cx.sugov_perf(sg.bw_min), cx.sugov_perf(sg.util));
        let capacity = sched.arch_scale_cpu_capacity(cpu);
        let policy = &mut self.policies[index];
        let before = policy.requested;
        let raw_khz = policy.adjusted_frequency(floor, target, capacity);
        let khz = policy.tableless_frequency(raw_khz);
        let sugov = &mut policy.sugov;
        (sugov.last_freq_update_time, sugov.next_freq) = (time, raw_khz);
        (sugov.need_freq_update, sugov.util, sugov.capacity) = (false, sg.util, capacity);
        sugov.counts.count(khz != before);
        if cx.wants_decisions() {
            let rule = match khz == before {
                _ if hold && sg.util == util_before => FrequencyRule::Held,
                true => FrequencyRule::Unchanged,
                false => FrequencyRule::Changed,
            };
            let choice = FrequencyChoice { raw_khz, khz, cached_raw_khz: raw_khz, rule };
            let inputs = vec![self.frequency_input(cpu, sched, cx)];
            self.record_frequency(index, inputs, target, &choice, cx);
        }
        if khz != before {
            self.cpufreq_driver_fast_switch(index, khz, time, sched, cx);
        }
    }
}
