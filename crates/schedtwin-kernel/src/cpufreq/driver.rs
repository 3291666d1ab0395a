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
//! Kernel: 6.1.192 and 6.12.117 drivers/cpufreq/intel_pstate.c `intel_cpufreq_fast_switch`, `intel_cpufreq_adjust_perf`; cpufreq.c `cpufreq_policy_transition_delay_us`; kernel/sched/cpufreq_schedutil.c
//! `sugov_update_single_perf`.
//! Differences: a processor that takes hints runs at the performance that is desired. amd-pstate's highest and nominal levels are 255 and its
//! lowest nonlinear one its lowest, where firmware says other numbers. Requests are rounded up to the machine's table. 7.3 also tells
//! intel_pstate the highest performance that clamps allow, which changes what the processor may choose, not what is desired: left out.

use crate::config::{AmdPstateForm, Config, CpufreqDriver};
use crate::cpufreq::amd_pstate::{AmdPstate, Form, Levels};
use crate::cpufreq::intel_pstate::cpu::SCALING;
use crate::cpufreq::policy::CpufreqPolicy;
use crate::cpufreq::schedutil::FrequencyChoice;
use crate::{Context, Cpufreq, Scheduler};
use schedtwin_types::{CpuId, FrequencyRule, Khz, Ns, PolicyId};

/// `INTEL_CPUFREQ_TRANSITION_DELAY`, `INTEL_CPUFREQ_TRANSITION_DELAY_HWP`, `AMD_PSTATE_TRANSITION_DELAY`: microseconds.
const INTEL_CPUFREQ_DELAY_US: u64 = 500;
const INTEL_CPUFREQ_DELAY_HWP_US: u64 = 5_000;
const AMD_PSTATE_DELAY_US: u64 = 1_000;
/// The highest level of a processor that amd-pstate drives.
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

/// amd-pstate on a policy, if a kernel names it. Firmware says nothing of levels here: all that the machine's frequencies do not say is the
/// highest one.
pub(super) fn amd_pstate(config: &Config, table: &[Khz]) -> Option<Box<AmdPstate>> {
    if config.scaling_driver != CpufreqDriver::AmdPstate {
        return None;
    }
    let form = match config.amd_pstate {
        AmdPstateForm::FloorIsHighest => Form::FloorIsHighest,
        AmdPstateForm::Unlimited => Form::Unlimited,
        AmdPstateForm::Limited => Form::Limited,
        AmdPstateForm::ByNominal => Form::ByNominal,
    };
    let (min_khz, max_khz) = (table[0], table[table.len() - 1]);
    let lowest = (u64::from(min_khz) * AMD_HIGHEST_PERF / u64::from(max_khz)).max(1);
    let levels = Levels {
        highest: AMD_HIGHEST_PERF,
        nominal: AMD_HIGHEST_PERF,
        lowest_nonlinear: lowest,
        lowest,
        max_khz,
        nominal_khz: max_khz,
        boost: true,
    };
    let mut driver = AmdPstate::new(form, levels);
    driver.update_limits(min_khz, max_khz);
    Some(Box::new(driver))
}

impl CpufreqPolicy {
    /// Returns the frequency that a driver without a table makes of one within the limits.
    pub(super) fn tableless_frequency(&self, khz: Khz) -> Khz {
        match &self.pstate {
            Some(pstate) => self.khz_of_pstate(pstate.prepare_request(pstate.of_khz(khz))),
            None => {
                let amd = self.amd.as_ref().expect("a driver without a table");
                self.khz_of_level(amd.update_freq(khz).desired).min(self.limits.max)
            }
        }
    }

    /// Where the machine runs at a level of amd-pstate.
    fn khz_of_level(&self, level: u64) -> Khz {
        let amd = self.amd.as_ref().expect("its driver is amd-pstate");
        self.next_higher(amd.khz_of(level))
    }

    /// `adjust_perf()`: what the driver believes to get for a floor and a target, shares of `capacity`, and what the machine then runs at.
    fn adjusted_frequency(&mut self, floor: u64, target: u64, capacity: u64) -> (Khz, Khz) {
        if let Some(pstate) = &mut self.pstate {
            let (_, _, desired) = pstate.adjust_perf(floor, target, capacity);
            pstate.current = desired;
            let raw_khz = desired as u32 * SCALING;
            return (raw_khz, self.tableless_frequency(raw_khz));
        }
        let amd = self.amd.as_ref().expect("one of the two drivers that have it");
        let request = amd.adjust_perf(floor, target, capacity);
        (request.khz, self.khz_of_level(request.desired))
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
        let (raw_khz, khz) = policy.adjusted_frequency(floor, target, capacity);
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
