// SPDX-License-Identifier: GPL-2.0-or-later
//! The capacity of CPUs and groups of CPUs for fair tasks.
//!
//! A CPU's capacity is what its microarchitecture and thermal limits leave, minus what RT, deadline
//! and interrupts use. It is computed only by balance passes of the CPU's lowest domain, run by the
//! CPU or on its behalf; everybody else reads the value of then. A group's capacity is the sum over
//! its groups below, refreshed by passes of the CPUs in it.
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `scale_rt_capacity`, `update_cpu_capacity`,
//! `update_group_capacity`, `check_cpu_capacity`.
//! Differences: none known.

use super::*;
use crate::sched::pelt::scale_irq_capacity;
use crate::sched::topology::SD_OVERLAP;
use crate::{Context, Scheduler};

/// `capacity_greater()`: by more than 5 %.
#[inline]
pub(super) fn capacity_greater(a: u64, b: u64) -> bool {
    a * 1024 > b * 1078
}

impl Scheduler {
    /// `scale_rt_capacity()`: what is left of a CPU for fair tasks.
    fn scale_rt_capacity(&self, cpu: CpuId) -> u64 {
        let (max, pressure) = self.capacity_and_pressure(cpu);
        let rq = &self.rq[cpu];
        let irq = rq.avg_irq.util_avg;
        let used = rq.avg_rt.util_avg + rq.avg_dl.util_avg + pressure;
        if irq >= max || used >= max {
            return 1;
        }
        scale_irq_capacity(max - used, irq, max)
    }

    /// `update_cpu_capacity()`: of `cpu`, and of the group that it is in its lowest domain.
    pub(crate) fn update_cpu_capacity(&mut self, sd: DomainId, cpu: CpuId) {
        let capacity = self.scale_rt_capacity(cpu).max(1);
        self.rq[cpu].cpu_capacity = capacity;
        let sgc = self.topology[self.topology[sd].groups].sgc;
        let sgc = &mut self.topology.capacities[sgc];
        sgc.capacity = capacity;
        sgc.min_capacity = capacity;
        sgc.max_capacity = capacity;
    }

    /// `update_group_capacity()`: of the own group of a domain of `cpu`.
    pub(crate) fn update_group_capacity(&mut self, sd: DomainId, cpu: CpuId, cx: &Context) {
        let (jiffies, hz, max) = self.balance_times(cx);
        let interval = msecs_to_jiffies(self.topology[sd].balance_interval, hz).clamp(1, max);
        let sgc = self.topology[self.topology[sd].groups].sgc;
        self.topology.capacities[sgc].next_update = jiffies + interval;
        let Some(child) = self.topology[sd].child else {
            self.update_cpu_capacity(sd, cpu);
            return;
        };
        let (mut capacity, mut min_capacity, mut max_capacity) = (0, u64::MAX, 0);
        let mut add = |sum: u64, min: u64, max: u64| {
            capacity += sum;
            min_capacity = min_capacity.min(min);
            max_capacity = max_capacity.max(max);
        };
        if self.topology[child].flags & SD_OVERLAP != 0 {
            // The groups below overlap, so they cannot be added up.
            for cpu in self.topology[self.topology[sd].groups].span.iter() {
                let below = self.capacity_of(cpu);
                add(below, below, below);
            }
        } else {
            for sg in self.topology.groups_of(child) {
                let below = &self.topology.capacities[self.topology[sg].sgc];
                add(below.capacity, below.min_capacity, below.max_capacity);
            }
        }
        let sgc = &mut self.topology.capacities[sgc];
        sgc.capacity = capacity;
        sgc.min_capacity = min_capacity;
        sgc.max_capacity = max_capacity;
    }

    /// At boot: group capacities, from the highest CPU down, so that a group's parts are known before
    /// its first CPU adds them up.
    ///
    /// Differences: after the removal of levels, Linux before it. The sums are the same.
    pub(crate) fn init_balance(&mut self, cx: &Context) {
        for cpu in cx.platform.device_tree.all_cpus().iter().collect::<Vec<_>>().into_iter().rev() {
            let mut at = self.topology.base[cpu.index()];
            while let Some(sd) = at {
                at = self.topology[sd].parent;
                let group = self.topology[sd].groups;
                if self.topology[group].balance_mask.lowest() == Some(cpu) {
                    self.update_group_capacity(sd, cpu, cx);
                }
            }
        }
    }

    /// `check_cpu_capacity()`: other classes and interrupts take noticeably much of the CPU.
    #[inline]
    pub(crate) fn check_cpu_capacity(&self, cpu: CpuId, sd: DomainId) -> bool {
        let pct = self.topology[sd].imbalance_pct as u64;
        self.rq[cpu].cpu_capacity * pct < self.arch_scale_cpu_capacity(cpu) * 100
    }
}
