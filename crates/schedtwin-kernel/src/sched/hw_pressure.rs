// SPDX-License-Identifier: GPL-2.0-or-later
//! Hardware pressure: capacity that firmware takes away without being asked.
//!
//! A driver learns from its hardware that clocks are held back, and says so at once. The scheduler does not believe it at
//! once: it ages what it is told as it ages load, half in 32 ms, and takes the greater of that and of what cpufreq's own
//! limits cost off a CPU's capacity.
//!
//! ```text
//!  firmware ── capped frequency ── arch_update_hw_pressure ── hw_pressure ── ticks, blocked load ── avg_hw ──┐
//!  cpufreq's limits ── cpufreq_pressure ── max ◄─────────────────────────────────────────────────────────────┘
//! ```
//!
//! Kernel: 6.12.107 drivers/base/arch_topology.c `topology_update_hw_pressure`; kernel/sched/core.c `sched_tick`;
//! kernel/sched/pelt.c `update_hw_load_avg`, `update_other_load_avgs`; kernel/sched/fair.c `get_actual_cpu_capacity`,
//! `others_have_blocked`.
//! **Three forms** ([`CapacityPressure`]). Before 6.10 both are thermal pressure: cooling devices and firmware write the
//! same number, which EAS and clamps take off at once, while `scale_rt_capacity()` counts its average as used.
//! Before 5.7 nothing of the kind is there.
//!
//! Kernel also: 6.1.192 kernel/sched/fair.c `find_energy_efficient_cpu`, `util_fits_cpu`, `scale_rt_capacity`,
//! `select_idle_capacity`; drivers/thermal/cpufreq_cooling.c `cpufreq_set_cur_state`.
//! Differences: `sched_hw_decay_shift` of a boot is 0. From 5.7 to 5.13 EAS does not look at it yet; here it does.

use crate::config::{CapacityPressure, Config};
use crate::sched::pelt;
use crate::{Cpufreq, Scheduler};
use schedtwin_types::{CpuId, Khz, PolicyId};

/// Returns the form of a configuration.
pub(super) fn form(config: &Config) -> CapacityPressure {
    config.capacity_pressure
}

impl Scheduler {
    /// Takes the form of a configuration.
    pub(crate) fn set_capacity_pressure(&mut self, config: &Config) {
        self.capacity_pressure = form(config);
    }

    /// `get_actual_cpu_capacity()`; before 6.10 the capacity less thermal pressure.
    #[inline(always)]
    pub(crate) fn get_actual_cpu_capacity(&self, cpu: CpuId) -> u64 {
        let rq = &self.rq[cpu];
        let pressure = match self.capacity_pressure {
            CapacityPressure::HwAndCpufreq => rq.cpufreq_pressure.max(rq.avg_hw.load_avg),
            CapacityPressure::Thermal => rq.hw_pressure,
            CapacityPressure::None => 0,
        };
        rq.arch_capacity - pressure
    }

    /// The capacity by which `select_idle_capacity()` compares CPUs that are too slow.
    pub(crate) fn averaged_cpu_capacity(&self, cpu: CpuId) -> u64 {
        match self.capacity_pressure {
            CapacityPressure::Thermal => {
                let rq = &self.rq[cpu];
                rq.arch_capacity - rq.avg_hw.load_avg
            }
            CapacityPressure::HwAndCpufreq | CapacityPressure::None => {
                self.get_actual_cpu_capacity(cpu)
            }
        }
    }

    /// What `scale_rt_capacity()` begins with: a CPU's capacity, and how much of it limits use up.
    pub(crate) fn capacity_and_pressure(&self, cpu: CpuId) -> (u64, u64) {
        match self.capacity_pressure {
            CapacityPressure::Thermal => {
                (self.arch_scale_cpu_capacity(cpu), self.rq[cpu].avg_hw.load_avg)
            }
            CapacityPressure::HwAndCpufreq | CapacityPressure::None => {
                (self.get_actual_cpu_capacity(cpu), 0)
            }
        }
    }

    /// Whether a limit that user space sets takes capacity away, as one of a cooling device does.
    pub(crate) fn user_limits_take_capacity(&self) -> bool {
        self.capacity_pressure == CapacityPressure::HwAndCpufreq
    }

    /// A cooling device limits the frequency, which takes `pressure` of a CPU's capacity
    /// (`cpufreq_update_pressure()`; before 6.10 `arch_update_thermal_pressure()`).
    pub(crate) fn set_cpufreq_pressure(&mut self, cpu: CpuId, pressure: u64) {
        match self.capacity_pressure {
            CapacityPressure::HwAndCpufreq => self.rq[cpu].cpufreq_pressure = pressure,
            CapacityPressure::Thermal => {
                self.rq[cpu].hw_pressure = pressure;
                self.hw_pressure_told = true;
            }
            CapacityPressure::None => {}
        }
    }

    /// `arch_update_hw_pressure()`: firmware lets the CPUs of a policy run at `capped_khz` at most.
    pub(crate) fn arch_update_hw_pressure(
        &mut self,
        policy: PolicyId,
        capped_khz: Khz,
        cpufreq: &Cpufreq,
    ) {
        if self.capacity_pressure == CapacityPressure::None {
            return;
        }
        let policy = cpufreq.policy(policy);
        for cpu in policy.cpus.iter() {
            let capacity = self.arch_scale_cpu_capacity(cpu);
            self.rq[cpu].hw_pressure = capacity - policy.capacity_within(capacity, capped_khz);
        }
        self.hw_pressure_told = true;
    }

    /// `update_hw_load_avg()` of a CPU whose clock is up to date; whether the signal was refreshed.
    #[inline(always)]
    pub(crate) fn update_hw_load_avg(&mut self, cpu: CpuId) -> bool {
        self.hw_pressure_told && self.update_told_hw_load_avg(cpu)
    }

    #[inline(never)]
    fn update_told_hw_load_avg(&mut self, cpu: CpuId) -> bool {
        let rq = &mut self.rq[cpu];
        pelt::update_hw_load_avg(rq.clock_task, &mut rq.avg_hw, rq.hw_pressure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::root_domain::tests::kernel;

    const OPPS: &[(u32, u64)] = &[(500_000, 100_000), (1_000_000, 300_000), (2_000_000, 900_000)];

    /// Half of a CPU is taken away: its capacity follows with PELT's half-life, and comes back likewise.
    #[test]
    fn capacity_follows_with_the_half_life() {
        let mut kernel = kernel(&[(2, 1024, OPPS)]);
        let (cpu, policy) = (CpuId(1), PolicyId(0));
        let mut capacity_at = |ms: u64, capped: u32| {
            kernel.sched.arch_update_hw_pressure(policy, capped, &kernel.cpufreq);
            kernel.sched.rq[cpu].clock_task = ms << 20;
            kernel.sched.update_hw_load_avg(cpu);
            kernel.sched.get_actual_cpu_capacity(cpu)
        };
        assert_eq!(capacity_at(1, 2_000_000), 1024);
        assert_eq!(capacity_at(2, 3_000_000), 1024, "a cap above the highest frequency");
        let halfway = 1024 - 512 / 2;
        assert!((halfway - 8..=halfway + 8).contains(&capacity_at(2 + 32, 1_000_000)));
        assert!((512..=514).contains(&capacity_at(2 + 32 + 400, 1_000_000)));
        assert!((halfway - 8..=halfway + 8).contains(&capacity_at(2 + 32 + 400 + 32, 2_000_000)));
        assert!((1022..=1024).contains(&capacity_at(2 + 32 + 400 + 500, 2_000_000)));
    }

    /// Half of a CPU is taken away by a cooling device, just now and three half-lives ago. Before 6.10 EAS sees it at once
    /// and balancing by and by, as something that uses the CPU; later both see it at once.
    #[test]
    fn forms_of_pressure() {
        let cpu = CpuId(0);
        for (form, now, at_first, later) in [
            (CapacityPressure::None, 1024, (1024, 0), (1024, 0)),
            (CapacityPressure::Thermal, 512, (1024, 0), (1024, 449)),
            (CapacityPressure::HwAndCpufreq, 512, (512, 0), (512, 0)),
        ] {
            let mut kernel = kernel(&[(1, 1024, OPPS)]);
            kernel.sched.capacity_pressure = form;
            kernel.sched.rq[cpu].clock_task = 1 << 20;
            kernel.sched.update_hw_load_avg(cpu);
            kernel.sched.set_cpufreq_pressure(cpu, 512);
            assert_eq!(kernel.sched.get_actual_cpu_capacity(cpu), now, "{form:?}");
            assert_eq!(kernel.sched.capacity_and_pressure(cpu), at_first, "{form:?}");
            kernel.sched.rq[cpu].clock_task = 97 << 20;
            kernel.sched.update_hw_load_avg(cpu);
            assert_eq!(kernel.sched.capacity_and_pressure(cpu), later, "{form:?}");
        }
    }

    /// The greater of both pressures counts, not their sum.
    #[test]
    fn the_greater_pressure_counts() {
        let mut kernel = kernel(&[(1, 1024, OPPS)]);
        let cpu = CpuId(0);
        kernel.sched.rq[cpu].cpufreq_pressure = 100;
        assert_eq!(kernel.sched.get_actual_cpu_capacity(cpu), 924);
        kernel.sched.rq[cpu].avg_hw.load_avg = 300;
        assert_eq!(kernel.sched.get_actual_cpu_capacity(cpu), 724);
        kernel.sched.rq[cpu].avg_hw.load_avg = 50;
        assert_eq!(kernel.sched.get_actual_cpu_capacity(cpu), 924);
    }
}
