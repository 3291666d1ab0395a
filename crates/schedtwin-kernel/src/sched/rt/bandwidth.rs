// SPDX-License-Identifier: GPL-2.0-or-later
//! RT throttling: what kept RT tasks from starving the others before the fair server did.
//!
//! Each CPU adds up the time of its RT tasks (`rt_time`). Beyond `rt_runtime`, 950 ms, its whole RT queue is
//! **throttled**: it counts as empty, so fair tasks run, or the CPU idles, which it does even if nobody else
//! wants it. One timer for the whole machine takes 950 ms off every CPU's time each period of 1 s, and
//! unthrottles those that fall below.
//!
//! ```text
//! RT hog from 0, a fair task waiting
//!
//! 0            950 ms   1 s              1.95 s   2 s
//! |-- RT ---------|fair-|-- RT -------------|fair-|--
//!                       ▲ timer: −950 ms          ▲
//! ```
//!
//! The timer runs while some CPU has RT tasks or time to be taken off. An RT task that is queued when it
//! does not run starts it, at once if its last period is over: one interrupt that finds nothing, and marks
//! the grid on which it goes on.
//!
//! Kernel: 6.1.192 kernel/sched/rt.c `update_curr_rt`, `sched_rt_runtime_exceeded`, `sched_rt_period_timer`,
//! `start_rt_bandwidth`; the same in 5.18. 6.12 without RT_GROUP_SCHED has nothing of this.
//! Differences: no RT groups. RT_RUNTIME_SHARE, off by default, is not modelled: CPUs do not borrow.
//! While throttled, tasks can still be pulled by other CPUs, as in Linux.

use crate::config::RtBandwidth;
use crate::cpufreq::hook::CLASS_QUEUE;
use crate::time::hrtimer::{TimerKind, hrtimer_forward};
use crate::{Context, Kernel, Scheduler, Time};
use schedtwin_types::{CpuId, Ns};

/// The timer of all CPUs (`def_rt_bandwidth`).
#[derive(Clone, Debug, Default)]
pub struct RtPeriod {
    /// It is queued, or its handler runs.
    active: bool,
    /// When it is due or, after it has ended, when it would have been.
    expires: Ns,
}

impl RtPeriod {
    /// Whether the timer runs, and when it is or would be due.
    #[cfg(any(test, feature = "conformance"))]
    pub(super) fn opened(&self) -> (bool, Ns) {
        (self.active, self.expires)
    }
}

impl Context {
    /// `rt_runtime` if RT queues are throttled at all.
    #[inline]
    fn rt_throttling(&self) -> Option<Ns> {
        match self.config.rt_bandwidth {
            RtBandwidth::Throttling => self.config.rt_runtime,
            RtBandwidth::FairServer => None,
        }
    }
}

impl Scheduler {
    /// `start_rt_bandwidth()`: an RT task has been queued.
    #[inline]
    pub(super) fn start_rt_bandwidth(&mut self, time: &mut Time, cx: &mut Context) {
        if cx.rt_throttling().is_some() && !self.rd.rt_period.active {
            self.do_start_rt_bandwidth(time, cx);
        }
    }

    /// `do_start_rt_bandwidth()`, on the executing CPU.
    fn do_start_rt_bandwidth(&mut self, time: &mut Time, cx: &mut Context) {
        if self.rd.rt_period.active {
            return;
        }
        // hrtimer_forward_now() by 0 ns: in a nanosecond, unless the last period is not over.
        let expires = hrtimer_forward(self.rd.rt_period.expires, cx.local_clock(), 0);
        self.rd.rt_period = RtPeriod { active: true, expires };
        time.hrtimer_start(cx.this_cpu, expires, expires, TimerKind::RtPeriod, cx);
    }

    /// The end of `update_curr_dl()`: the time of a deadline task counts as if RT tasks had had it, as long as RT tasks are
    /// watched or below their limit (`sched_rt_bandwidth_account`). It throttles nobody by itself.
    pub(crate) fn account_dl_in_rt_time(&mut self, cpu: CpuId, delta: Ns, cx: &Context) {
        let Some(runtime) = cx.rt_throttling() else { return };
        if self.rd.rt_period.active || self.rq[cpu].rt.rt_time < runtime {
            self.rq[cpu].rt.rt_time += delta;
        }
    }

    /// `sched_rt_runtime_exceeded()`; throttles the queue.
    fn rt_runtime_exceeded(&mut self, cpu: CpuId, runtime: Ns, cx: &Context) -> bool {
        let rt = &mut self.rq[cpu].rt;
        if *rt.throttled {
            return true;
        }
        if runtime >= cx.config.rt_period || rt.rt_time <= runtime {
            return false;
        }
        if runtime == 0 {
            // A runtime of 0 throttles nobody: nothing would ever end it.
            rt.rt_time = 0;
            return false;
        }
        // sched_rt_rq_dequeue()
        let count = rt.nr_running() as u32;
        rt.throttled.change(cpu, &mut self.stale_demands, |throttled| *throttled = true);
        self.sub_nr_running(cpu, count);
        true
    }
}

impl Kernel {
    /// The end of `update_curr_rt()`: RT tasks of `cpu` have run for `delta`.
    pub(super) fn account_rt_time(&mut self, cpu: CpuId, delta: Ns) {
        let Some(runtime) = self.cx.rt_throttling() else { return };
        self.sched.rq[cpu].rt.rt_time += delta;
        if self.sched.rt_runtime_exceeded(cpu, runtime, &self.cx) {
            self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
            self.sched.do_start_rt_bandwidth(&mut self.time, &mut self.cx);
        }
    }

    /// `sched_rt_period_timer()`, on the executing CPU.
    #[inline(never)]
    pub(crate) fn sched_rt_period_timer(&mut self, expires: Ns) {
        let period = self.cx.config.rt_period;
        let next = hrtimer_forward(expires, self.cx.now, period);
        let overrun = (next - expires) / period;
        let idle = self.do_sched_rt_period_timer(overrun);
        self.sched.rd.rt_period = RtPeriod { active: !idle, expires: next };
        if !idle {
            self.time.hrtimer_start(
                self.cx.this_cpu,
                next,
                next,
                TimerKind::RtPeriod,
                &mut self.cx,
            );
        }
    }

    /// `do_sched_rt_period_timer()`; `true`: no CPU needs the timer.
    fn do_sched_rt_period_timer(&mut self, overrun: u64) -> bool {
        let Some(runtime) = self.cx.rt_throttling() else { return true };
        let mut idle = true;
        for cpu in self.cx.platform.device_tree.all_cpus().iter() {
            let rt = &self.sched.rq[cpu].rt;
            let queued = !rt.queue.is_empty();
            if rt.rt_time == 0 && !queued {
                continue;
            }
            self.sched.update_rq_clock(cpu, &self.cx);
            let rq = &mut self.sched.rq[cpu];
            let mut enqueue = false;
            if rq.rt.rt_time != 0 {
                rq.rt.rt_time = rq.rt.rt_time.saturating_sub(overrun * runtime);
                if *rq.rt.throttled && rq.rt.rt_time < runtime {
                    enqueue = true;
                    // rq_clock_cancel_skipupdate(): or the idle time since its wakeup would count as
                    // runtime.
                    if queued && rq.curr.is_idle() {
                        rq.skip_clock_update = false;
                    }
                }
                idle &= rq.rt.rt_time == 0 && !queued;
            } else {
                idle = false;
                enqueue = !*rq.rt.throttled;
            }
            if enqueue {
                self.sched_rt_rq_enqueue(cpu);
            }
        }
        idle
    }

    /// `sched_rt_rq_enqueue()`: the queue counts again, if it did not, and is looked at.
    fn sched_rt_rq_enqueue(&mut self, cpu: CpuId) {
        let rt = &mut self.sched.rq[cpu].rt;
        let was_throttled = rt.throttled.update(cpu, &mut self.sched.stale_demands, std::mem::take);
        let count = rt.nr_running() as u32;
        if count == 0 {
            return;
        }
        if was_throttled {
            self.sched.add_nr_running(cpu, count);
            self.cpufreq_update_util(cpu, CLASS_QUEUE);
        }
        self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
    }
}
