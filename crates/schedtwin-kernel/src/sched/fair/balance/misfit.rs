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
use crate::{Context, Scheduler};
use schedtwin_types::FactKind;

impl Kernel {
    /// `update_misfit_status()`: `task` now runs on `cpu` (`None`: nothing fair does).
    #[inline(always)]
    pub fn update_misfit_status(&mut self, task: Option<TaskId>, cpu: CpuId) {
        if !self.sched.has_asym_cpucapacity() {
            return;
        }
        let misfit = task.filter(|p| {
            let t = &self.sched.tasks[*p];
            let nowhere_bigger = match self.cx.config.misfit_status {
                MisfitStatus::AnyTask => false,
                MisfitStatus::UnlessOnLargestAllowed => {
                    self.sched.arch_scale_cpu_capacity(cpu) == t.max_allowed_capacity
                }
            };
            t.nr_cpus_allowed != 1 && !nowhere_bigger && !self.task_fits_cpu(*p, cpu)
        });
        self.sched.rq[cpu].misfit_task_load =
            misfit.map_or(0, |p| self.sched.balanced_h_load(p, &self.cx));
    }
}

impl Scheduler {
    /// `cpu_overutilized()`; meaningful only with EAS.
    #[inline(never)]
    pub(crate) fn cpu_overutilized(&self, cpu: CpuId, cx: &Context) -> bool {
        self.is_energy_aware() && self.util_exceeds(self.cpu_util_cfs(cpu, cx), cpu, cx)
    }

    /// `is_rd_overutilized()`: balancing decides, not energy. Always so without EAS.
    #[inline]
    pub(crate) fn is_rd_overutilized(&self) -> bool {
        !self.is_energy_aware() || self.rd.overutilized
    }

    /// `set_rd_overutilized()`.
    pub(super) fn set_rd_overutilized(&mut self, on: bool, cx: &mut Context) {
        if self.is_energy_aware() && self.rd.overutilized != on {
            self.rd.overutilized = on;
            cx.fact(FactKind::Overutilized { on });
        }
    }

    /// `check_update_overutilized_status()`.
    #[inline(always)]
    pub(crate) fn check_update_overutilized_status(&mut self, cpu: CpuId, cx: &mut Context) {
        if !self.is_rd_overutilized() && self.cpu_overutilized(cpu, cx) {
            self.set_rd_overutilized(true, cx);
        }
    }

    /// Whether CPUs of a domain differ in capacity.
    #[inline]
    pub(super) fn is_asym(&self, sd: DomainId) -> bool {
        self.topology[sd].flags & SD_ASYM_CPUCAPACITY != 0
    }
}
