// SPDX-License-Identifier: GPL-2.0-or-later
//! One balance pass over one domain.
//!
//! 1. Is this CPU the one to balance for its group? Newly idle CPUs always are; else it is the group's
//!    first idle CPU, above the threads of a core the first on a core that is idle as a whole (6.6 and later), or if
//!    all are busy, its first CPU.
//! 2. Statistics; the busiest group; in it the busiest queue.
//! 3. If more than the running task is there: move tasks. Tasks that may not run here, but on another
//!    CPU of the group, are moved there in a second round. If none may move at all, try the
//!    next queue.
//! 4. Nothing moved: note the failure; perhaps ask the stopper.
//! 5. Balanced: double the interval. Imbalanced: reset it.
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `sched_balance_rq`, `should_we_balance`; 6.1.192 `load_balance`.
//! Differences: a stopper that has other work waiting is not asked.

use super::*;
use crate::config::MisfitFailure;
use crate::sched::stop::StopWork;
use crate::sched::topology::SD_SHARE_CPUCAPACITY;
use crate::{Context, Scheduler};
use schedtwin_types::{BalanceRule, Decision, FactKind};

/// `MAX_PINNED_INTERVAL`, ms: up to here the interval of a domain of pinned tasks is doubled.
const MAX_PINNED_INTERVAL: u64 = 512;

/// The ways out of a pass.
enum Out {
    /// `out_balanced`.
    Balanced(BalanceRule),
    /// `out_all_pinned`.
    AllPinned,
    /// `out_one_pinned`.
    OnePinned,
    /// Tasks moved, or failed to.
    Done(BalanceRule),
}

impl Kernel {
    /// `sched_balance_rq()`: balances domain `sd` towards its CPU `this_cpu`. Returns how many tasks
    /// moved; `continue_balancing` becomes false if another CPU is to balance from here upwards.
    pub(super) fn sched_balance_rq(
        &mut self,
        this_cpu: CpuId,
        sd: DomainId,
        idle: CpuIdleType,
        continue_balancing: &mut bool,
    ) -> u32 {
        let mut env = LbEnv::new(sd, this_cpu, idle);
        env.dst_grpmask = self.sched.topology[self.sched.topology[sd].groups].balance_mask;
        env.cpus = self.sched.topology[sd].span;
        let mut src = None;
        let mut recorded_imbalance = 0;
        let mut moved = 0;

        let out = loop {
            if !self.sched.should_we_balance(&env, &self.cx) {
                *continue_balancing = false;
                break Out::Balanced(BalanceRule::NotResponsible);
            }
            self.sched.refresh_local_capacity(&env, &self.cx);
            let stats = self.sched.read_sd_lb_stats(&env, &self.cx);
            self.sched.commit_sd_lb_stats(&env, &stats, &mut self.cx);
            let found = self.sched.find_src_group(&env, &stats, &self.cx);
            env.imbalance = found.imbalance;
            env.migration_type = found.migration_type.unwrap_or(env.migration_type);
            recorded_imbalance = env.imbalance;
            let Some(group) = found.group else { break Out::Balanced(found.rule) };
            let Some(busiest) = self.sched.find_src_rq(&env, group, &self.cx) else {
                break Out::Balanced(BalanceRule::NoQueue);
            };
            assert!(busiest != env.dst_cpu, "a CPU does not pull from itself");
            src = Some(busiest);
            env.src_cpu = busiest;
            env.all_pinned = true;
            moved = 0;
            if self.sched.rq[busiest].nr_running > 1 {
                moved = self.move_tasks(&mut env);
                if env.all_pinned {
                    env.cpus.remove(busiest);
                    if env.cpus.is_subset(&env.dst_grpmask) {
                        break Out::AllPinned;
                    }
                    env.loops = 0;
                    env.loop_break = SCHED_NR_MIGRATE_BREAK;
                    continue;
                }
            }
            break self.after_moving(&mut env, this_cpu, moved, found.rule);
        };

        let rule = match out {
            Out::Balanced(rule) | Out::Done(rule) => rule,
            Out::AllPinned => BalanceRule::AllPinned,
            Out::OnePinned => BalanceRule::ActivePinned,
        };
        if let Out::Balanced(_) = out
            && !env.all_pinned
        {
            self.sched.set_group_imbalance(sd, false);
        }
        if let Out::Balanced(_) | Out::AllPinned = out {
            self.sched.topology[sd].nr_balance_failed = 0;
        }
        if !matches!(out, Out::Done(_)) {
            moved = 0;
            let backs_off = self.cx.counts_failures(&env);
            let domain = &mut self.sched.topology[sd];
            let pinned = env.all_pinned && domain.balance_interval < MAX_PINNED_INTERVAL;
            if backs_off && (pinned || domain.balance_interval < domain.max_interval) {
                domain.balance_interval *= 2;
            }
        }
        let level = self.sched.topology[sd].level;
        self.cx.fact(FactKind::Balance { level, idle: idle as u8, moved: moved as u16 });
        if self.cx.wants_decisions() {
            self.cx.record(Decision::Balance {
                dst: this_cpu,
                src,
                level,
                idle: idle.name(),
                migration: env.migration_type.name(),
                imbalance: recorded_imbalance,
                moved: env.moved,
                rule,
            });
        }
        moved
    }

    /// Moves tasks from the source, also to other CPUs of the destination's group if only they may
    /// have them. Returns how many.
    fn move_tasks(&mut self, env: &mut LbEnv) -> u32 {
        env.loop_max = self.cx.config.nr_migrate.min(self.sched.rq[env.src_cpu].nr_running);
        let mut moved = 0;
        // Bounded: each round takes a break after 32 of at most loop_max tasks, or excludes one more
        // CPU of the group.
        loop {
            self.sched.update_rq_clock(env.src_cpu, &self.cx);
            let detached = self.detach_tasks(env);
            if detached != 0 {
                self.attach_tasks(env);
                moved += detached;
            }
            if env.need_break {
                env.need_break = false;
                continue;
            }
            if env.dst_pinned && env.imbalance > 0 {
                env.cpus.remove(env.dst_cpu);
                env.dst_cpu = env.new_dst_cpu;
                env.dst_pinned = false;
                env.loops = 0;
                env.loop_break = SCHED_NR_MIGRATE_BREAK;
                continue;
            }
            break;
        }
        if env.some_pinned && env.imbalance > 0 {
            self.sched.set_group_imbalance(env.sd, true);
        }
        moved
    }

    /// Steps 4 and 5 for an imbalanced domain.
    fn after_moving(
        &mut self,
        env: &mut LbEnv,
        this_cpu: CpuId,
        moved: u32,
        found: BalanceRule,
    ) -> Out {
        let mut rule = found;
        let mut started = false;
        if moved != 0 {
            self.sched.topology[env.sd].nr_balance_failed = 0;
        } else {
            if self.cx.counts_failures(env) && !env.llc_pinned {
                self.sched.topology[env.sd].nr_balance_failed += 1;
            }
            if let Some(reason) = self.need_active_balance(env) {
                rule = reason;
                let curr = self.sched.rq[env.src_cpu].curr;
                if !self.sched.may_be_pushed(curr, env.src_cpu, this_cpu) {
                    return Out::OnePinned;
                }
                env.all_pinned = false;
                let rq = &mut self.sched.rq[env.src_cpu];
                // A stopper holds one piece of work here: if it is about to move a task whose
                // affinity has changed, the next pass asks again. Linux queues both.
                if !rq.active_balance && rq.stop_work.is_none() {
                    rq.active_balance = true;
                    rq.push_cpu = this_cpu;
                    started = true;
                    let llc = env.migration_type == MigrationType::LlcTask;
                    self.stop_one_cpu_nowait(env.src_cpu, StopWork::ActiveBalance { llc });
                }
            }
        }
        if !started || self.need_active_balance(env).is_some() {
            let domain = &mut self.sched.topology[env.sd];
            domain.balance_interval = domain.min_interval;
        }
        Out::Done(rule)
    }
}

impl Scheduler {
    /// Finds the source of a pass over `sd` that began now: nothing is moved. For comparisons with
    /// recordings, which print what the kernel found. The tables may be those of any moment.
    ///
    /// `None`: `cpu` is not the one to balance. Else the busiest group by its first CPU, and its busiest queue.
    #[doc(hidden)]
    pub(crate) fn find_busiest(
        &self,
        cpu: CpuId,
        sd: DomainId,
        idle: CpuIdleType,
        cx: &Context,
    ) -> Option<(Option<CpuId>, Option<CpuId>)> {
        let mut env = LbEnv::new(sd, cpu, idle);
        env.dst_grpmask = self.topology[self.topology[sd].groups].balance_mask;
        env.cpus = self.topology[sd].span;
        if !self.should_we_balance(&env, cx) {
            return None;
        }
        let stats = self.read_sd_lb_stats(&env, cx);
        let found = self.find_src_group(&env, &stats, cx);
        env.imbalance = found.imbalance;
        env.migration_type = found.migration_type.unwrap_or(env.migration_type);
        let queue = found.group.and_then(|group| self.find_src_rq(&env, group, cx));
        Some((found.group.map(|group| self.topology[group].first_cpu), queue))
    }

    /// `should_we_balance()`.
    fn should_we_balance(&self, env: &LbEnv, cx: &Context) -> bool {
        if !env.cpus.contains(env.dst_cpu) {
            return false;
        }
        if env.idle == CpuIdleType::NewlyIdle {
            let rq = &self.rq[env.dst_cpu];
            return rq.nr_running == 0 && !rq.ttwu_pending;
        }
        let group = &self.topology[self.topology[env.sd].groups];
        if group.group_weight == 1 {
            return group.first_cpu == env.dst_cpu;
        }
        let idle = group.balance_mask.and(&env.cpus).and(&self.idle_mask);
        let between_cores =
            self.balances_cores(cx) && self.topology[env.sd].flags & SD_SHARE_CPUCAPACITY == 0;
        if between_cores && let Some(cpu) = idle.iter().find(|cpu| self.is_core_idle(*cpu)) {
            return cpu == env.dst_cpu;
        }
        idle.lowest().or(group.balance_mask.lowest()) == Some(env.dst_cpu)
    }

    /// The parent domain's group learns that affinity kept this domain from balancing.
    pub(super) fn set_group_imbalance(&mut self, sd: DomainId, imbalance: bool) {
        if let Some(parent) = self.topology[sd].parent {
            let sgc = self.topology[self.topology[parent].groups].sgc;
            self.topology.capacities[sgc].imbalance = imbalance;
        }
    }

    /// Whether `curr` of `src` is allowed on `dst`. By now that may be the idle task, if the queue's
    /// tasks have only just been woken; it is one task here, but bound to each CPU.
    fn may_be_pushed(&self, curr: TaskId, src: CpuId, dst: CpuId) -> bool {
        if curr.is_idle() { src == dst } else { self.tasks[curr].cpus_mask.contains(dst) }
    }
}

impl Context {
    /// Whether a pass without success is a reason to try harder next time, and a pass without need one to
    /// look less often. Newly idle CPUs look too often for that, and a misfit says little about the
    /// other tasks.
    fn counts_failures(&self, env: &LbEnv) -> bool {
        env.idle != CpuIdleType::NewlyIdle
            && (env.migration_type != MigrationType::Misfit
                || self.config.misfit_failure == MisfitFailure::Counted)
    }
}
