// SPDX-License-Identifier: GPL-2.0-or-later
//! Clocks of a run queue, and the time that kernel paths take.
//!
//! `rq.clock` is wall time, `rq.clock_task` leaves interrupt time out, `rq.clock_pelt` runs at the
//! speed of capacity × frequency and jumps forward when the CPU goes idle (`pelt/clock.rs`).
//!
//! Kernel: 6.12.95 kernel/sched/core.c `update_rq_clock`, `update_rq_clock_task`.
//! Differences: unless the machine's clocks run within paths (`PathCosts::running_clocks`), a clock reads the time of
//! the entry, so that what comes after it, the way out of an interrupt and the switch, is charged to the
//! task that is switched to. A path's cost becomes time at the frequency believed when it is charged, not at
//! frequencies that change while it is paid (a few microseconds; nobody looks there). So with what the other threads of
//! its core do.

use crate::Kernel;
use crate::sched::{CfsRqId, pelt};
use schedtwin_types::{CpuId, Ns};

impl Kernel {
    /// `update_rq_clock()`: brings the clocks of a run queue to the time of the entry.
    #[inline]
    pub fn update_rq_clock(&mut self, cpu: CpuId) {
        let running = self.cx.platform.device_tree.path_costs.running_clocks;
        let now = if running { self.local_clock() } else { self.cx.now };
        let rq = &mut self.sched.rq[cpu];
        let capacity = rq.arch_capacity;
        let delta = now as i64 - rq.clock as i64;
        if delta <= 0 {
            return;
        }
        rq.clock = now;
        let mut delta = delta as u64;
        let mut irq_delta = 0;
        if self.cx.config.irq_time_accounting {
            irq_delta = (rq.irq_time - rq.prev_irq_time).min(delta);
            rq.prev_irq_time += irq_delta;
            delta -= irq_delta;
        }
        rq.clock_task += delta;
        if irq_delta != 0 && self.cx.config.features.nontask_capacity {
            rq.avg_irq.update(cpu, &mut self.sched.stale_demands, |avg| {
                pelt::update_irq_load_avg(avg, rq.clock, irq_delta, rq.freq_scale, capacity)
            });
        }
        let idle = rq.curr.is_idle();
        rq.clock_pelt.update_rq_clock_pelt(
            delta,
            rq.clock_task,
            rq.clock,
            capacity,
            rq.freq_scale,
            idle,
        );
    }

    /// `rq_clock_pelt()`.
    #[inline(always)]
    pub fn rq_clock_pelt(&self, cpu: CpuId) -> u64 {
        self.sched.rq[cpu].clock_pelt.rq_clock_pelt()
    }

    /// Going idle: gives back stolen idle time, or loses it if the CPU was saturated.
    pub(crate) fn update_idle_rq_clock_pelt(&mut self, cpu: CpuId) {
        let cfs_util_sum = self.sched.cfs[CfsRqId::root(cpu)].avg.util_sum;
        let rq = &mut self.sched.rq[cpu];
        rq.clock_pelt.update_idle_rq_clock_pelt(
            rq.clock_task,
            rq.clock,
            cfs_util_sum,
            rq.avg_rt.util_sum,
            rq.avg_dl.util_sum,
        );
    }

    /// `jiffies`. Differences: counted by the clock, not by whichever CPU keeps the tick, so it never
    /// lags while all CPUs sleep.
    #[inline(always)]
    pub fn jiffies(&self) -> u64 {
        self.cx.now / self.cx.tick_nsec
    }

    /// `local_clock()` in the middle of a path: the entry's time plus the debt so far.
    #[inline(always)]
    pub fn local_clock(&self) -> Ns {
        self.cx.now + self.cx.debt
    }

    /// A path of the executing CPU costs `work`: longer on a slow CPU at a low frequency.
    #[inline(always)]
    pub(crate) fn charge(&mut self, work: u64) {
        self.owe(self.time_of(work));
    }

    /// How long a path of that much work takes on the executing CPU.
    #[inline(always)]
    pub(crate) fn time_of(&self, work: u64) -> Ns {
        (work * self.cx.platform.ns_per_work_shift_10[self.cx.this_cpu]) >> 10
    }

    /// The executing CPU spends `time` in the kernel.
    #[inline(always)]
    pub(crate) fn owe(&mut self, time: Ns) {
        self.cx.debt += time;
        if self.cx.in_irq {
            if self.cx.platform.device_tree.path_costs.running_clocks {
                self.cx.irq_time_unaccounted += time;
            } else {
                self.sched.rq[self.cx.this_cpu].irq_time += time;
            }
        }
    }

    /// `irqtime_account_irq()`. It is called at the end of an interrupt, so a clock that is read within one has
    /// counted its time, and loses it afterwards. Clocks that read the entry's time have none to lose: theirs is counted
    /// at once.
    #[inline(always)]
    pub(crate) fn account_irq_time(&mut self) {
        let time = std::mem::take(&mut self.cx.irq_time_unaccounted);
        self.sched.rq[self.cx.this_cpu].irq_time += time;
    }

    /// Hardware: from now on `cpu` does so many thousandths (1..=1000) of what it does as its core's only thread. Nothing
    /// in the kernel knows; its paths take longer.
    pub fn thread_speed(&mut self, cpu: CpuId, permille: u64) {
        assert!((1..=1000).contains(&permille), "a share of a lone thread's speed");
        self.cx.platform.thread_speed_permille[cpu.index()] = permille;
        self.refresh_path_speed(cpu);
    }

    /// Recomputes how long a unit of work takes on `cpu`, after a change of frequency or of what its core's threads do.
    pub(crate) fn refresh_path_speed(&mut self, cpu: CpuId) {
        let rq = &self.sched.rq[cpu];
        let freq_scale =
            if self.cpufreq.sugov_forms.invariant { rq.freq_scale } else { self.clock_scale(cpu) };
        let speed = ((rq.arch_capacity * freq_scale) >> 10).max(1);
        let shared = self.cx.platform.thread_speed_permille[cpu.index()];
        self.cx.platform.ns_per_work_shift_10[cpu] =
            if self.cx.platform.device_tree.path_costs.constant_time {
                1 << 10
            } else {
                (1000 << 20) / (speed * shared)
            };
    }
}
