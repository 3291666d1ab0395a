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

use crate::sched::{CfsRqId, pelt};
use crate::{Context, Cpufreq, Kernel, Scheduler};
use schedtwin_types::{CpuId, Ns};

impl Scheduler {
    /// `update_rq_clock()`: brings the clocks of a run queue to the time of the entry.
    #[inline]
    pub(crate) fn update_rq_clock(&mut self, cpu: CpuId, cx: &Context) {
        let running = cx.platform.device_tree.path_costs.running_clocks;
        let now = if running { cx.local_clock() } else { cx.now };
        let rq = &mut self.rq[cpu];
        let capacity = rq.arch_capacity;
        let delta = now as i64 - rq.clock as i64;
        if delta <= 0 {
            return;
        }
        rq.clock = now;
        let mut delta = delta as u64;
        let mut irq_delta = 0;
        if cx.config.irq_time_accounting {
            irq_delta = (rq.irq_time - rq.prev_irq_time).min(delta);
            rq.prev_irq_time += irq_delta;
            delta -= irq_delta;
        }
        rq.clock_task += delta;
        if irq_delta != 0 && cx.config.features.nontask_capacity {
            rq.avg_irq.update(cpu, &mut self.stale_demands, |avg| {
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
    pub(crate) fn rq_clock_pelt(&self, cpu: CpuId) -> u64 {
        self.rq[cpu].clock_pelt.rq_clock_pelt()
    }

    /// Going idle: gives back stolen idle time, or loses it if the CPU was saturated.
    pub(crate) fn update_idle_rq_clock_pelt(&mut self, cpu: CpuId) {
        let cfs_util_sum = self.cfs[CfsRqId::root(cpu)].avg.util_sum;
        let rq = &mut self.rq[cpu];
        rq.clock_pelt.update_idle_rq_clock_pelt(
            rq.clock_task,
            rq.clock,
            cfs_util_sum,
            rq.avg_rt.util_sum,
            rq.avg_dl.util_sum,
        );
    }

    /// A path of the executing CPU costs `work`: longer on a slow CPU at a low frequency.
    #[inline(always)]
    pub(crate) fn charge(&mut self, work: u64, cx: &mut Context) {
        self.owe(cx.time_of(work), cx);
    }

    /// The executing CPU spends `time` in the kernel.
    #[inline(always)]
    pub(crate) fn owe(&mut self, time: Ns, cx: &mut Context) {
        cx.debt += time;
        if cx.in_irq {
            if cx.platform.device_tree.path_costs.running_clocks {
                cx.irq_time_unaccounted += time;
            } else {
                self.rq[cx.this_cpu].irq_time += time;
            }
        }
    }

    /// `irqtime_account_irq()`. It is called at the end of an interrupt, so a clock that is read within one has
    /// counted its time, and loses it afterwards. Clocks that read the entry's time have none to lose: theirs is counted
    /// at once.
    #[inline(always)]
    pub(crate) fn account_irq_time(&mut self, cx: &mut Context) {
        let time = std::mem::take(&mut cx.irq_time_unaccounted);
        self.rq[cx.this_cpu].irq_time += time;
    }

    /// Recomputes how long a unit of work takes on `cpu`, after a change of frequency or of what its core's threads do.
    pub(crate) fn refresh_path_speed(&self, cpu: CpuId, cpufreq: &Cpufreq, cx: &mut Context) {
        let rq = &self.rq[cpu];
        let freq_scale =
            if cpufreq.forms().invariant { rq.freq_scale } else { cpufreq.clock_scale(cpu, cx) };
        let speed = ((rq.arch_capacity * freq_scale) >> 10).max(1);
        let shared = cx.platform.thread_speed_permille[cpu.index()];
        cx.platform.ns_per_work_shift_10[cpu] = if cx.platform.device_tree.path_costs.constant_time
        {
            1 << 10
        } else {
            (1000 << 20) / (speed * shared)
        };
    }
}

impl Context {
    /// `jiffies`. Differences: counted by the clock, not by whichever CPU keeps the tick, so it never
    /// lags while all CPUs sleep.
    #[inline(always)]
    pub(crate) fn jiffies(&self) -> u64 {
        self.initial_jiffies + self.now / self.tick_nsec
    }

    /// When a jiffy begins; of one that never comes the end of time.
    #[inline(always)]
    pub(crate) fn time_of_jiffy(&self, jiffy: u64) -> Ns {
        (jiffy - self.initial_jiffies).saturating_mul(self.tick_nsec)
    }

    /// The uptime of the machine when the clock begins, ns.
    pub(crate) fn uptime_at_start(&self) -> Ns {
        self.initial_jiffies * self.tick_nsec
    }

    /// `local_clock()` in the middle of a path: the entry's time plus the debt so far.
    #[inline(always)]
    pub(crate) fn local_clock(&self) -> Ns {
        self.now + self.debt
    }

    /// Time that a path of that much work takes on the executing CPU.
    #[inline(always)]
    pub(crate) fn time_of(&self, work: u64) -> Ns {
        (work * self.platform.ns_per_work_shift_10[self.this_cpu]) >> 10
    }
}

impl Kernel {
    /// Hardware: from now on `cpu` does so many thousandths (1..=1000) of what it does as its core's only thread. Nothing
    /// in the kernel knows; its paths take longer.
    pub fn thread_speed(&mut self, cpu: CpuId, permille: u64) {
        assert!((1..=1000).contains(&permille), "a share of a lone thread's speed");
        self.cx.platform.thread_speed_permille[cpu.index()] = permille;
        self.sched.refresh_path_speed(cpu, &self.cpufreq, &mut self.cx);
    }
}
