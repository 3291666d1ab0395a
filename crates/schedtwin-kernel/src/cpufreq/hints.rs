// SPDX-License-Identifier: GPL-2.0-or-later
//! Drivers that leave the choice to the processor: intel_pstate in active mode with HWP, amd-pstate-epp.
//!
//! **Idea.** The driver writes the least and the highest frequency and a preference between performance and energy (EPP), and the
//! processor does the rest. What it does with them is not Linux's: a machine's truth.
//!
//! | governor | least | highest | EPP |
//! |---|---|---|---|
//! | performance | the limit | the limit | 0 |
//! | any other (powersave) | the lowest, or `min_perf_pct` | the limit, or `max_perf_pct` | `energy_performance_preference` |
//!
//! Kernel: 6.12.117 drivers/cpufreq/intel_pstate.c `intel_pstate_hwp_set`; amd-pstate.c `amd_pstate_epp_update_limit`.
//! Differences: no `hwp_dynamic_boost` (off in Linux but for some servers). Hints count at once.

use crate::cpufreq::counts::Counts;
use crate::cpufreq::driver::Driver;
use crate::cpufreq::intel_pstate::cpu::SCALING;
use crate::{Context, Cpufreq, Kernel, Scheduler};
use schedtwin_types::{CpuId, Khz, Ns, PolicyId};

/// Hints of a driver to a processor that chooses its frequency itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hints {
    /// The least frequency.
    pub min: Khz,
    /// The highest frequency.
    pub max: Khz,
    /// Preference between performance (0) and energy (255).
    pub epp: u8,
}

impl Cpufreq {
    /// Returns the hints that a policy's driver has written; `None`: processors follow requests.
    pub(crate) fn hints(&self, index: PolicyId, cx: &Context) -> Option<Hints> {
        if !cx.config.processor_decides() {
            return None;
        }
        let policy = &self.policies[index];
        let (min, max) = match &policy.pstate {
            Some(pstate) => {
                let khz = |ratio: i32| policy.next_higher(ratio.max(0) as u32 * SCALING);
                (khz(pstate.min_perf_ratio), khz(pstate.max_perf_ratio))
            }
            None => (policy.limits.min, policy.limits.max),
        };
        let max = max.min(policy.limits.max);
        Some(match cx.config.pins_pstate() {
            true => Hints { min: max, max, epp: 0 },
            false => Hints { min: min.min(max), max, epp: cx.config.epp as u8 },
        })
    }

    /// The drivers start, at boot.
    pub(crate) fn hints_start(&mut self, sched: &mut Scheduler, cx: &mut Context) {
        if Driver::new(&cx.config).pstates {
            self.intel_pstate_cpu_init(cx);
        }
        for index in self.policies.ids() {
            let khz = self.hints(index, cx).expect("processors decide").min;
            self.cpufreq_driver_target_index(index, khz);
            self.set_policy_cur(index, khz, sched, cx);
        }
    }
}

impl Kernel {
    /// The registers of any CPU, as the processor itself sees them.
    pub fn counters_of(&mut self, cpu: CpuId, now: Ns) -> Counts {
        self.cpufreq.counters[cpu.index()].read(now)
    }
}
