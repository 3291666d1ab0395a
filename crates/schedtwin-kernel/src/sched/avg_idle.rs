// SPDX-License-Identifier: GPL-2.0-or-later
//! `avg_idle`: how long a CPU is idle on average.
//!
//! **Decides** when an idle time is over that newidle balancing learns from: a pass is tried only if it costs less than
//! `avg_idle`.
//!
//! **Idea.** An idle time begins when newidle balancing finds nothing (`idle_stamp`). Up to 6.12 it lasts until the next
//! *wakeup* on the CPU: a task that is forked there or pulled there runs within it. 7.3 ends it with the switch from the idle
//! task:
//!
//! ```text
//!         newidle          forked here    exits, newidle      wakeup, switch
//!            |─── idle ───────|───── runs ─────|── idle ──────────|
//! at-wakeup   dropped, and begun anew ─────────|──────── 1 ───────|
//! at-switch  |────── 1 ───────|                |──────── 2 ───────|
//! ```
//!
//! The average moves by an eighth of the difference, and stays below twice what the dearest newidle pass may cost.
//!
//! Kernel: 6.12.95 kernel/sched/core.c `ttwu_do_activate`; 7.3.4 kernel/sched/core.c `update_rq_avg_idle`, called by
//! kernel/sched/idle.c `put_prev_task_idle`.

use crate::config::AvgIdle;
use crate::{Context, Scheduler};
use schedtwin_types::CpuId;

impl Scheduler {
    /// The end of `ttwu_do_activate()`: a wakeup has queued a task on `cpu`, whose clock is up to date.
    #[inline]
    pub(crate) fn idle_ends_by_wakeup(&mut self, cpu: CpuId, cx: &Context) {
        if cx.config.avg_idle == AvgIdle::AtWakeup {
            self.update_rq_avg_idle(cpu, cx);
        }
    }

    /// The end of `put_prev_task_idle()`: `cpu` switches from its idle task.
    #[inline]
    pub(crate) fn idle_ends_by_switch(&mut self, cpu: CpuId, cx: &Context) {
        if cx.config.avg_idle == AvgIdle::AtSwitch {
            self.update_rq_avg_idle(cpu, cx);
        }
    }

    /// `update_rq_avg_idle()`.
    fn update_rq_avg_idle(&mut self, cpu: CpuId, cx: &Context) {
        let rq = &mut self.rq[cpu];
        if rq.idle_stamp != 0 {
            let delta = rq.clock - rq.idle_stamp;
            // update_avg(): one eighth of the difference.
            let diff = delta as i64 - rq.avg_idle as i64;
            rq.avg_idle = (rq.avg_idle as i64 + diff / 8) as u64;
            rq.avg_idle = rq.avg_idle.min(2 * rq.max_idle_balance_cost);
            rq.idle_stamp = 0;
            if cx.config.features.sis_prop {
                // What it spends, from this jiffy on.
                rq.wake_stamp = cx.jiffies();
                rq.wake_avg_idle = rq.avg_idle / 2;
            }
        }
    }
}
