//! Whether a CPU is large enough for a utilisation and the clamps that go with it.
//!
//! **Idea.** A CPU should keep a fifth of its capacity, so that a task that grows does not fill it before
//! somebody notices. Clamps change the question: a capped task fits wherever its cap is reached, and a boosted one
//! does not fit where its minimum cannot be.
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `util_fits_cpu`, `task_fits_cpu`.

use crate::Kernel;
use crate::sched::SCHED_CAPACITY_SCALE;
use crate::sched::demand::uclamp::max::Clamps;
use schedtwin_types::{CpuId, TaskId};

impl Kernel {
    /// `arch_scale_cpu_capacity()`.
    #[inline(always)]
    pub fn arch_scale_cpu_capacity(&self, cpu: CpuId) -> u64 {
        self.rq[cpu].arch_capacity
    }

    /// `get_actual_cpu_capacity()`: there is no hardware pressure.
    #[inline(always)]
    pub fn get_actual_cpu_capacity(&self, cpu: CpuId) -> u64 {
        self.rq[cpu].arch_capacity - self.rq[cpu].cpufreq_pressure
    }

    /// `capacity_of()`.
    #[inline(always)]
    pub fn capacity_of(&self, cpu: CpuId) -> u64 {
        self.rq[cpu].cpu_capacity
    }

    /// `util_fits_cpu()` without utilisation clamps: 80 % of what is left of the CPU.
    #[inline(always)]
    pub fn util_fits_cpu(&self, util: u64, cpu: CpuId) -> bool {
        util * 1280 < self.capacity_of(cpu) * 1024
    }

    /// `util_fits_cpu()`: 1 if `util` fits, 0 if not, −1 if it does but the CPU cannot be as fast as the
    /// minimum wants. A capped utilisation fits every CPU that is as large as its cap, except for the cap
    /// 1024 of the largest CPUs, which caps nothing.
    ///
    /// Before 6.1 the clamped utilisation had to fit instead, which only EAS does here.
    #[inline(always)]
    pub fn util_fits_cpu_clamped(&self, util: u64, clamps: Clamps, cpu: CpuId) -> i32 {
        let fits = self.util_fits_cpu(util, cpu);
        if !self.uclamp_is_used() {
            return fits as i32;
        }
        let (min, max) = (clamps.min.min(clamps.max) as u64, clamps.max as u64);
        let capacity = self.arch_scale_cpu_capacity(cpu);
        let uncapped = capacity == SCHED_CAPACITY_SCALE && max == SCHED_CAPACITY_SCALE;
        let fits = fits || (!uncapped && max <= capacity);
        if fits && util < min && min > self.get_actual_cpu_capacity(cpu) {
            return -1;
        }
        fits as i32
    }

    /// `task_fits_cpu()`.
    #[inline(always)]
    pub fn task_fits_cpu(&self, task: TaskId, cpu: CpuId) -> bool {
        let util = self.task_util_est(task);
        if !self.uclamp_is_used() {
            return self.util_fits_cpu(util, cpu);
        }
        self.util_fits_cpu_clamped(util, self.uclamp_eff_value(task), cpu) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Uclamp};
    use crate::sched::root_domain::tests::device_tree;

    const OPPS: &[(u32, u64)] = &[(1_000_000, 300_000), (2_000_000, 900_000)];

    fn boot(config: Config) -> Kernel {
        let config = Config { fair_server_runtime: 0, ..config };
        Kernel::boot(device_tree(&[(1, 383, OPPS), (1, 1024, OPPS)]), config)
    }

    #[test]
    fn fitness() {
        let kernel = boot(Config { uclamp: Uclamp::On, ..Config::linux_6_12() });
        let key_off = boot(Config::linux_6_12());
        let (little, big) = (CpuId(0), CpuId(1));
        for (util, min, max, cpu, fits, without_clamps) in [
            (1000, 0, 110, little, 1, 0),
            (300, 0, 1024, little, 1, 1), // 300 · 1.25 = 375
            (310, 0, 1024, little, 0, 0),
            (50, 400, 1024, little, -1, 1),
            (50, 400, 300, little, 1, 1), // the smaller one counts as the minimum
            (50, 383, 1024, little, 1, 1),
            (390, 385, 1024, little, 0, 0),
            (1000, 0, 1024, big, 0, 0),
            (1000, 0, 1023, big, 1, 0),
            (1000, 1024, 1024, big, 0, 0),
        ] {
            let case = (util, min, max, cpu);
            let of = |k: &Kernel| k.util_fits_cpu_clamped(util, Clamps { min, max }, cpu);
            assert_eq!(of(&kernel), fits, "{case:?}");
            assert_eq!(of(&key_off), without_clamps, "{case:?}, key off");
        }
    }
}
