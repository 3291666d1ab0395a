// SPDX-License-Identifier: GPL-2.0-or-later
//! Active balancing: the running task of a CPU is pushed away by its stopper.
//!
//! Pulling takes queued tasks only. If a pass finds an imbalance and moves nothing, the reason may be
//! that the busiest CPU runs its only movable task. Then, after some failures, or at once for a misfit
//! or where other classes take the CPU, the pass asks the stopper of that CPU, which preempts the task
//! and so makes it movable.
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `need_active_balance`, `active_load_balance_cpu_stop`.
//! Differences: none known.

use super::*;
use schedtwin_types::BalanceRule;

impl Kernel {
    /// `need_active_balance()`: is it time for the stopper? Returns the reason.
    pub(super) fn need_active_balance(&self, env: &LbEnv) -> Option<BalanceRule> {
        // asym_active_balance()
        if env.idle.is_idle()
            && self.sched.sched_use_asym_prio(env.sd, env.dst_cpu, &self.cx)
            && (self.sched.topology.sched_asym_prefer(env.dst_cpu, env.src_cpu)
                || !self.sched.sched_use_asym_prio(env.sd, env.src_cpu, &self.cx))
        {
            return Some(BalanceRule::ActiveAsymPacking);
        }
        if self.alb_break_llc(env) {
            return None;
        }
        let sd = &self.sched.topology[env.sd];
        if env.migration_type == MigrationType::Task
            && sd.nr_balance_failed > sd.cache_nice_tries + 2
        {
            return Some(BalanceRule::ActiveFailed);
        }
        let src_nr = self.sched.h_nr_running(env.src_cpu, &self.cx);
        if env.idle.is_idle() && src_nr == 1 && self.sched.check_cpu_capacity(env.src_cpu, env.sd) {
            let pct = sd.imbalance_pct as u64;
            if self.sched.capacity_of(env.src_cpu) * pct < self.sched.capacity_of(env.dst_cpu) * 100
            {
                return Some(BalanceRule::ActiveReducedCapacity);
            }
        }
        if env.migration_type == MigrationType::Misfit {
            return Some(BalanceRule::ActiveMisfit);
        }
        if env.migration_type == MigrationType::LlcTask {
            return Some(BalanceRule::ActiveLlcBalance);
        }
        None
    }

    /// `active_load_balance_cpu_stop()`: the stopper of `busiest_cpu` pushes one task, the one that it
    /// preempted unless another was waiting longer, to `push_cpu`. `llc`: one that prefers the last-level cache there
    /// (`active_load_balance_llc_cpu_stop()`).
    pub fn active_load_balance_cpu_stop(&mut self, busiest_cpu: CpuId, llc: bool) {
        let target_cpu = self.sched.rq[busiest_cpu].push_cpu;
        let mut pushed = None;
        // The stopper itself counts as running.
        if self.sched.rq[busiest_cpu].active_balance && self.sched.rq[busiest_cpu].nr_running > 1 {
            assert!(busiest_cpu != target_cpu, "nobody pushes to itself");
            let sd = self
                .sched
                .topology
                .domains_of(target_cpu)
                .find(|sd| self.sched.topology[*sd].span.contains(busiest_cpu));
            if let Some(sd) = sd {
                let mut env = LbEnv::new(sd, target_cpu, CpuIdleType::Idle);
                env.src_cpu = busiest_cpu;
                env.active_lb = true;
                env.active_lb_llc = llc;
                self.sched.update_rq_clock(busiest_cpu, &self.cx);
                pushed = self.detach_one_task(&mut env);
                if pushed.is_some() {
                    self.sched.topology[sd].nr_balance_failed = 0;
                }
            }
        }
        self.sched.rq[busiest_cpu].active_balance = false;
        if let Some(task) = pushed {
            self.sched.update_rq_clock(target_cpu, &self.cx);
            self.attach_task(target_cpu, task);
        }
    }
}
