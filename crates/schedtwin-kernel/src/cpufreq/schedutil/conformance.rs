// SPDX-License-Identifier: GPL-2.0-or-later
//! schedutil's hook and what it reads, for the differential test against the kernel's own C.
//!
//! The test (`conformance/`, L0 `schedutil`) sets the signals ([`crate::sched::demand::conformance`]) and calls the
//! hook; this is the narrow interface for it. Nothing else uses it, and it decides nothing.
//!
//! On the slow path it has the thread's steps taken one by one. The thread is awake from the start: putting
//! it on a run queue would alter the signals.

use super::SugovCpu;
use crate::Kernel;
use crate::config::{Config, CpufreqDriver};
use crate::cpufreq::driver;
use schedtwin_types::{CpuId, Khz, Ns, PolicyId, TaskState};

/// A kernel whose signals are set from outside.
pub struct SugovSteps<'a>(pub &'a mut Kernel);

impl SugovSteps<'_> {
    /// A CPU's state.
    pub fn sugov_cpu(&self, cpu: CpuId) -> SugovCpu {
        self.0.cpufreq.sugov_cpus[cpu]
    }

    /// The hook of `cpu`, called by `this_cpu`; and the demands that are remembered are the right ones.
    pub fn hook(&mut self, this_cpu: CpuId, cpu: CpuId, time: Ns, flags: u32) {
        let kernel = &mut *self.0;
        kernel.cx.this_cpu = this_cpu;
        kernel.cx.now = time;
        kernel.sched.set_clock(cpu, time);
        kernel.cpufreq_update_util(cpu, flags);
        kernel.cx.facts.clear();
        let cpus = kernel.cpufreq.policies[kernel.cx.policy_of(cpu)].cpus;
        cpus.iter().for_each(|j| kernel.verify_demand(j));
    }

    /// An RT or DEADLINE task runs on `cpu`, in the form of 4.7.
    pub fn trigger(&mut self, cpu: CpuId, time: Ns) {
        let kernel = &mut *self.0;
        (kernel.cx.this_cpu, kernel.cx.now) = (cpu, time);
        kernel.sched.set_clock(cpu, time);
        kernel.cpufreq_trigger_update(cpu);
        kernel.cx.facts.clear();
    }

    /// The first domain's driver is asked for performance from now on: amd-pstate, whose clock nobody looks at.
    pub fn set_adjust_perf(&mut self) {
        let config =
            Config { scaling_driver: CpufreqDriver::AmdPstate, ..Config::clone(&self.0.cx.config) };
        let policy = &mut self.0.cpufreq.policies[PolicyId(0)];
        policy.adjust_perf = true;
        policy.amd = driver::amd_pstate(&config, &[1, 1_000_000]);
    }

    /// What it was asked for last on behalf of `cpu`: the floor and the target.
    pub fn performance(&self, cpu: CpuId) -> [u64; 2] {
        let sg = self.sugov_cpu(cpu);
        [sg.bw_min, sg.util].map(|util| self.0.cx.sugov_perf(util))
    }

    /// How far the work of the first domain is.
    pub fn slow_path(&self) -> SlowPath {
        let kernel = &*self.0;
        let cpus = (0..kernel.sched.nr_cpus()).map(|cpu| CpuId(cpu as u16));
        let raised = cpus.filter(|&cpu| kernel.work.raised_on(cpu).iter().next().is_some());
        let thread = kernel.cpufreq.policies[PolicyId(0)].kthread.as_ref();
        SlowPath {
            raised: raised.fold(0, |mask, cpu| mask | 1 << cpu.0),
            queued: thread.is_some_and(|thread| thread.queued),
            calling: thread.and_then(|thread| thread.call).map_or(0, |call| call.khz),
        }
    }

    /// The interrupt that CPUs send themselves comes to `cpu`.
    pub fn irq_work(&mut self, cpu: CpuId) {
        let kernel = &mut *self.0;
        kernel.cx.this_cpu = cpu;
        if let Some(thread) = &kernel.cpufreq.policies[PolicyId(0)].kthread {
            kernel.sched.set_task_state(thread.task, TaskState::Running);
        }
        kernel.irq_work_run(cpu);
        kernel.cx.facts.clear();
    }

    /// The thread takes up what is queued, unless the driver keeps it.
    pub fn work(&mut self) {
        let kernel = &mut *self.0;
        let Some(thread) = &mut kernel.cpufreq.policies[PolicyId(0)].kthread else { return };
        if thread.call.is_none() && std::mem::take(&mut thread.queued) {
            kernel.sugov_work(PolicyId(0));
        }
    }

    /// The driver is done.
    pub fn driver_returns(&mut self) {
        let kernel = &mut *self.0;
        let Some(thread) = &kernel.cpufreq.policies[PolicyId(0)].kthread else { return };
        kernel.cx.now = thread.call.map_or(0, |call| call.until);
        kernel.sugov_driver_returns(PolicyId(0));
        kernel.cx.facts.clear();
    }
}

/// The work of a domain, between the governor and the driver.
#[derive(Clone, Copy, Debug)]
pub struct SlowPath {
    /// CPUs on which its irq_work is queued, a bit each.
    pub raised: u64,
    /// It is queued for the thread.
    pub queued: bool,
    /// The frequency that the driver is being asked for; 0: it has not been called.
    pub calling: Khz,
}
