// SPDX-License-Identifier: GPL-2.0-or-later
//! Work that is done later: in an interrupt that a CPU sends itself, or by a kernel thread.

pub(crate) mod irq_work;
pub(crate) mod vmstat;
pub mod workqueue;

use schedtwin_types::arena::PerCpu;
use schedtwin_types::{CpuId, CpuMask, PolicyId, PolicyMask};

/// Works that wait for their CPU.
#[derive(Clone)]
pub struct IrqWork {
    /// Frequency domains whose irq_work is raised on each CPU (`raised_list`).
    irq_work_raised: PerCpu<PolicyMask>,
    /// CPUs whose interrupt is to switch the frequency of their domain.
    fast_switch_raised: CpuMask,
    /// Statistics of memory; `None` without an interval.
    vmstat: Option<vmstat::Vmstat>,
}

impl IrqWork {
    /// Nothing queued.
    pub(crate) fn new(nr_cpus: usize) -> IrqWork {
        IrqWork {
            irq_work_raised: vec![PolicyMask::EMPTY; nr_cpus].into_iter().collect(),
            fast_switch_raised: CpuMask::EMPTY,
            vmstat: None,
        }
    }

    /// Raises the interrupt that switches the frequency of the domain of `cpu`.
    pub(crate) fn raise_fast_switch(&mut self, cpu: CpuId) {
        self.fast_switch_raised.insert(cpu);
    }

    /// Whether that interrupt is raised.
    pub(crate) fn has_fast_switch(&self, cpu: CpuId) -> bool {
        self.fast_switch_raised.contains(cpu)
    }

    /// The frequency domains whose irq_work is raised on `cpu`.
    #[cfg(any(test, feature = "conformance"))]
    pub(crate) fn raised_on(&self, cpu: CpuId) -> PolicyMask {
        self.irq_work_raised[cpu]
    }

    /// On how many CPUs the irq_work of a frequency domain is raised.
    pub(crate) fn nr_raised(&self, policy: PolicyId) -> usize {
        let raised = |mask: &&PolicyMask| mask.iter().any(|raised| raised == policy);
        self.irq_work_raised.iter().filter(raised).count()
    }
}
