// SPDX-License-Identifier: GPL-2.0-or-later
//! Tasks that are too big for their CPU, and CPUs that are used up.
//!
//! On machines with CPUs of different capacity a running task whose utilisation exceeds 80 % of its
//! CPU's capacity is a **misfit**, since 6.9 only if a bigger CPU would take it; passes of idle bigger CPUs
//! look for it. A CPU whose whole utilisation exceeds that mark is **overutilized**, and with it the root
//! domain: energy-aware placement then stands back and balancing goes to work. Any CPU may set this;
//! only a pass over the highest domain clears it.
//!
//! Kernel: 6.12.95 and 6.1.192 kernel/sched/fair.c `update_misfit_status`, `cpu_overutilized`,
//! `check_update_overutilized_status`.
//! Differences: clamps as of 6.1 in every form.

use super::*;
use crate::config::MisfitStatus;
use crate::sched::topology::SD_ASYM_CPUCAPACITY;
use schedtwin_types::FactKind;

impl Kernel {
    /// `update_misfit_status()`: `task` now runs on `cpu` (`None`: nothing fair does).
    #[inline(always)]
    pub fn update_misfit_status(&mut self, task: Option<TaskId>, cpu: CpuId) {
        if !self.has_asym_cpucapacity() {
            return;
        }
        let misfit = task.filter(|p| {
            let t = &self.sched.tasks[*p];
            let nowhere_bigger = match self.cx.config.misfit_status {
                MisfitStatus::AnyTask => false,
                MisfitStatus::UnlessOnLargestAllowed => {
                    self.arch_scale_cpu_capacity(cpu) == t.max_allowed_capacity
                }
            };
            t.nr_cpus_allowed != 1 && !nowhere_bigger && !self.task_fits_cpu(*p, cpu)
        });
        // Not 0 even if the load is.
        self.sched.rq[cpu].misfit_task_load = misfit.map_or(0, |p| self.task_h_load(p).max(1));
    }

    /// `cpu_overutilized()`; meaningful only with EAS.
    #[inline(never)]
    pub fn cpu_overutilized(&self, cpu: CpuId) -> bool {
        self.is_energy_aware() && self.util_exceeds(self.cpu_util_cfs(cpu), cpu)
    }

    /// `is_rd_overutilized()`: balancing decides, not energy. Always so without EAS.
    #[inline]
    pub fn is_rd_overutilized(&self) -> bool {
        !self.is_energy_aware() || self.sched.rd.overutilized
    }

    /// `set_rd_overutilized()`.
    pub(super) fn set_rd_overutilized(&mut self, on: bool) {
        if self.is_energy_aware() && self.sched.rd.overutilized != on {
            self.sched.rd.overutilized = on;
            self.fact(FactKind::Overutilized { on });
        }
    }

    /// `check_update_overutilized_status()`.
    #[inline(always)]
    pub fn check_update_overutilized_status(&mut self, cpu: CpuId) {
        if !self.is_rd_overutilized() && self.cpu_overutilized(cpu) {
            self.set_rd_overutilized(true);
        }
    }

    /// Whether CPUs of a domain differ in capacity.
    #[inline]
    pub(super) fn is_asym(&self, sd: DomainId) -> bool {
        self.sched.topology[sd].flags & SD_ASYM_CPUCAPACITY != 0
    }
}
