// SPDX-License-Identifier: GPL-2.0-or-later
//! The signals of a CPU, set from outside, for comparisons with the kernel's own C and with recordings.
//!
//! The twin changes signals by running tasks. A comparison (`conformance/`, L0 `schedutil`, L1)
//! sets them and asks for the results. Nothing else uses this interface, and it decides nothing.

use super::uclamp::RqClamps;
use super::uclamp::max::UclampRq;
use crate::Kernel;
use crate::sched::CfsRqId;
use crate::sched::Scheduler;
use crate::sched::pelt::SchedAvg;
use schedtwin_types::CpuId;

/// A kernel whose signals are set from outside.
pub struct DemandSteps<'a>(pub &'a mut Kernel);

/// The averages of a CPU that its demand follows from.
#[derive(Debug)]
pub struct Averages<'a> {
    /// Of the root's fair queue.
    pub cfs: &'a mut SchedAvg,
    /// Of RT.
    pub rt: &'a mut SchedAvg,
    /// Of DEADLINE.
    pub dl: &'a mut SchedAvg,
    /// Of interrupts.
    pub irq: &'a mut SchedAvg,
}

impl DemandSteps<'_> {
    /// Changes averages of `cpu`.
    pub fn change_averages(&mut self, cpu: CpuId, change: impl FnOnce(Averages)) {
        let Scheduler { rq, cfs, stale_demands, .. } = &mut self.0.sched;
        let (rq, cfs) = (&mut rq[cpu], &mut cfs[CfsRqId::root(cpu)]);
        let mut averages = [*cfs.avg, *rq.avg_rt, *rq.avg_dl, *rq.avg_irq];
        let [cfs_avg, rt, dl, irq] = &mut averages;
        change(Averages { cfs: cfs_avg, rt, dl, irq });
        let signals = [&mut cfs.avg, &mut rq.avg_rt, &mut rq.avg_dl, &mut rq.avg_irq];
        for (signal, avg) in signals.into_iter().zip(averages) {
            signal.change(cpu, stale_demands, |signal| *signal = avg);
        }
    }

    /// `arch_scale_cpu_capacity()`, 1..=1024.
    pub fn set_capacity(&mut self, cpu: CpuId, capacity: u64) {
        self.0.sched.rq[cpu].arch_capacity = capacity;
        self.0.sched.stale_demands.mark(cpu);
    }

    /// Sets the clamps that the tasks of `cpu` ask for.
    pub fn set_clamps(&mut self, cpu: CpuId, clamps: UclampRq) {
        let Scheduler { rq, stale_demands, .. } = &mut self.0.sched;
        rq[cpu].uclamp.change(cpu, stale_demands, |uclamp| *uclamp = RqClamps::Max(clamps));
    }

    /// `dl_rq.running_bw`: 2^20 = a whole CPU.
    pub fn set_running_bw(&mut self, cpu: CpuId, running_bw: u64) {
        let kernel = &mut *self.0;
        kernel.sched.rq[cpu].dl.set_running_bw(cpu, &mut kernel.sched.stale_demands, running_bw);
    }

    /// A real-time task is queued or is not, and the governor has not been told.
    pub fn set_rt_runnable(&mut self, cpu: CpuId, runnable: bool) {
        let kernel = &mut *self.0;
        kernel.sched.rq[cpu].rt.set_runnable(cpu, &mut kernel.sched.stale_demands, runnable);
    }

    /// Somebody has used a clamp, or not yet (`sched_uclamp_used`).
    pub fn turn_uclamp_key(&mut self, on: bool) {
        self.0.sched.set_uclamp_key(on, &self.0.cx);
    }
}
