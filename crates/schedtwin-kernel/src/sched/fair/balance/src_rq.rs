// SPDX-License-Identifier: GPL-2.0-or-later
//! From which queue of the busiest group to pull.
//!
//! The measure follows what is to be moved: load per capacity, utilisation, number of tasks, the
//! biggest misfit, or how many tasks prefer the destination's last-level cache. Of equals the lowest CPU wins.
//!
//! Utilisation cannot tell saturated CPUs apart: all have that of their capacity. With the runnable
//! boost (6.5 and later) the number of waiting tasks shows, for CPUs whose utilisation is still rising.
//!
//! Kernel: 6.12.95 and 7.3.4 kernel/sched/fair.c `sched_balance_find_src_rq`; 6.1.192 `find_busiest_queue`.
//! Differences: no NUMA classes of queues.

use super::capacity::capacity_greater;
use super::*;
use crate::config::FindSrcRq;
use crate::sched::topology::GroupId;
use crate::{Context, Scheduler};

impl Scheduler {
    /// `sched_balance_find_src_rq()`.
    pub(super) fn find_src_rq(&self, env: &LbEnv, group: GroupId, cx: &Context) -> Option<CpuId> {
        let asym = self.is_asym(env.sd);
        let mut busiest = None;
        // What is maximised, strictly; load as a fraction of capacity.
        let (mut busiest_value, mut busiest_capacity) = (0, 1);
        for cpu in self.topology[group].span.and(&env.cpus).iter() {
            let nr = self.h_nr_running(cpu, cx);
            if nr == 0 {
                continue;
            }
            let capacity = self.capacity_of(cpu);
            // Its only task would end up on a CPU that is no bigger.
            if asym
                && nr == 1
                && !capacity_greater(self.capacity_of(env.dst_cpu), capacity)
                && !self.may_have_only_task(env, cpu, cx)
            {
                continue;
            }
            // Nor is a preferred CPU's only task taken away from it.
            if nr == 1 && self.sched_asym(env.sd, cpu, env.dst_cpu, cx) {
                continue;
            }
            let value = match env.migration_type {
                MigrationType::Load => {
                    let load = self.cpu_load(cpu);
                    let too_much = nr == 1 && load > env.imbalance as u64;
                    if too_much && !self.check_cpu_capacity(cpu, env.sd) {
                        continue;
                    }
                    load
                }
                // A single task runs, so it cannot be pulled.
                MigrationType::Util if nr <= 1 => continue,
                MigrationType::Util => self.cpu_util_cfs_boost(cpu, cx),
                MigrationType::Task => nr as u64,
                MigrationType::Misfit => self.rq[cpu].misfit_task_load,
                MigrationType::LlcTask => self.nr_pref_dst_llc(cpu, env.dst_cpu) as u64,
            };
            let by_capacity = env.migration_type == MigrationType::Load;
            let (mine, others) = if by_capacity { (capacity, busiest_capacity) } else { (1, 1) };
            if value * others > busiest_value * mine {
                (busiest_value, busiest_capacity) = (value, mine);
                busiest = Some(cpu);
            }
        }
        busiest
    }

    /// Whether the only task of `cpu` may move to a CPU that is no bigger: a core with several busy threads is a small one,
    /// and clusters of equal CPUs share work out.
    fn may_have_only_task(&self, env: &LbEnv, cpu: CpuId, cx: &Context) -> bool {
        cx.config.find_src_rq == FindSrcRq::SmallerOrShared
            && (self.has_smt() && !self.is_core_idle(cpu)
                || self.has_clusters()
                    && self.get_actual_cpu_capacity(env.dst_cpu)
                        == self.get_actual_cpu_capacity(cpu))
    }
}
