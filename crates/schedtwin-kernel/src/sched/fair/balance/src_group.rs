// SPDX-License-Identifier: GPL-2.0-or-later
//! Decides whether tasks are pulled from the busiest group, and how much.
//!
//! | busiest \ local | has_spare | fully_busy | imbalanced | overloaded |
//! |---|---|---|---|---|
//! | has_spare | idle CPUs | – | – | – |
//! | fully_busy | idle CPUs | idle CPUs | – | – |
//! | misfit_task | pull | | | |
//! | imbalanced | pull | pull | pull | pull |
//! | llc_balance | pull or idle CPUs | idle CPUs | idle CPUs | – |
//! | overloaded | pull | pull | pull | by load |
//!
//! "Idle CPUs": only an idle CPU pulls, and only if its group has at least two idle CPUs more than the busiest;
//! from a group of a single CPU it pulls whenever a task waits there. "By load": the CPU pulls if the busiest
//! group's load per capacity exceeds the local group's by `imbalance_pct`, and the local group's is below the
//! average.
//!
//! The unit of the amount. If the local group has spare capacity: tasks; or utilisation, to fill it, if the busiest
//! group is more than fully busy and the domain spans several last-level caches. If not: load. For a misfit: one task
//! where capacities differ, else its load.
//!
//! While EAS places tasks (EAS on, not overutilized) only misfit tasks are pulled.
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `sched_balance_find_src_group`, `calculate_imbalance`,
//! `sibling_imbalance`, `adjust_numa_imbalance`; 6.1.192 `find_busiest_group`.
//! Differences: none known.

use super::stats::{GroupType, SdLbStats};
use super::*;
use crate::config::SiblingImbalance;
use crate::sched::SCHED_CAPACITY_SCALE;
use crate::sched::topology::{GroupId, SD_NUMA, SD_SHARE_CPUCAPACITY, SD_SHARE_LLC};
use crate::{Context, Scheduler};
use schedtwin_types::BalanceRule;

/// The source of a pull, the amount, and the rule that decided.
pub(super) struct SrcGroup {
    /// The group to pull from; `None` if the domain is balanced.
    pub group: Option<GroupId>,
    /// The amount to move, in the unit of `migration_type`.
    pub imbalance: i64,
    /// The unit; `None` keeps the type of the pass so far.
    pub migration_type: Option<MigrationType>,
    /// The rule that decided.
    pub rule: BalanceRule,
}

/// `sibling_imbalance()`: the number of tasks that the busiest group has beyond its share.
///
/// The shares of groups with different numbers of cores are in proportion to these, rounded to the nearest number.
pub(super) fn sibling_imbalance(
    dst_idle: bool,
    (cores_local, nr_local): (u32, u32),
    (cores_busiest, nr_busiest): (u32, u32),
) -> i64 {
    if !dst_idle || nr_busiest == 0 {
        return 0;
    }
    if cores_local == cores_busiest {
        return nr_busiest.saturating_sub(nr_local) as i64;
    }
    let (cores_local, cores_busiest) = (cores_local as i64, cores_busiest as i64);
    let excess = cores_local * nr_busiest as i64 - cores_busiest * nr_local as i64;
    let cores = cores_local + cores_busiest;
    let imbalance = (2 * excess.max(0) + cores) / cores;
    // An empty group should get something.
    if imbalance <= 1 && nr_local == 0 && nr_busiest > 1 { 2 } else { imbalance }
}

/// `adjust_numa_imbalance()`: ignores an imbalance of two tasks while the destination node has few tasks, so that a
/// pair that communicates stays on one node.
pub(in crate::sched::fair) fn adjust_numa_imbalance(
    imbalance: i32,
    dst_running: u32,
    imb_numa_nr: u32,
) -> i64 {
    /// `NUMA_IMBALANCE_MIN`.
    const MIN: i32 = 2;
    if dst_running as i32 > imb_numa_nr as i32 || imbalance > MIN { imbalance as i64 } else { 0 }
}

impl Scheduler {
    /// `sched_balance_find_src_group()`, after the statistics.
    pub(super) fn find_src_group(&self, env: &LbEnv, sds: &SdLbStats, cx: &Context) -> SrcGroup {
        let balanced = |rule| SrcGroup { group: None, imbalance: 0, migration_type: None, rule };
        let Some(group) = sds.busiest else {
            return balanced(BalanceRule::NobodyToPull);
        };
        let force = |rule| {
            let (migration_type, imbalance) = self.calculate_imbalance(env, sds, cx);
            SrcGroup {
                group: (imbalance != 0).then_some(group),
                imbalance,
                migration_type,
                rule: if imbalance == 0 { BalanceRule::NoImbalance } else { rule },
            }
        };
        let (busiest, local) = (&sds.busiest_stat, &sds.local_stat);
        if busiest.group_type == GroupType::MisfitTask {
            return force(BalanceRule::Misfit);
        }
        if !self.is_rd_overutilized() {
            return balanced(BalanceRule::EasPlaces);
        }
        if busiest.group_type == GroupType::AsymPacking {
            return force(BalanceRule::AsymPacking);
        }
        if busiest.group_type == GroupType::Imbalanced {
            return force(BalanceRule::ImbalancedByAffinity);
        }
        if local.group_type > busiest.group_type {
            return balanced(BalanceRule::LocalBusier);
        }
        if local.group_type == GroupType::Overloaded {
            if local.avg_load >= busiest.avg_load {
                return balanced(BalanceRule::LocalMoreLoad);
            }
            if local.avg_load >= sds.avg_load() {
                return balanced(BalanceRule::LocalAboveAverage);
            }
            let pct = self.topology[env.sd].imbalance_pct as u64;
            if 100 * busiest.avg_load <= pct * local.avg_load {
                return balanced(BalanceRule::WithinImbalancePct);
            }
        }
        if sds.prefer_sibling && local.group_type == GroupType::HasSpare {
            if busiest.group_type == GroupType::LlcBalance {
                return force(BalanceRule::LlcBalance);
            }
            if self.sibling_imbalance(env, sds, group, cx) > 1 {
                return force(BalanceRule::SiblingsHaveFewer);
            }
        }
        if busiest.group_type != GroupType::Overloaded {
            if !env.idle.is_idle() {
                return balanced(BalanceRule::LeaveToIdle);
            }
            if busiest.group_type == GroupType::SmtBalance
                && self.smt_vs_nonsmt_groups(sds.local, group)
            {
                return force(BalanceRule::SmtBalance);
            }
            if busiest.group_weight > 1 && local.idle_cpus <= busiest.idle_cpus.wrapping_add(1) {
                return balanced(BalanceRule::AsManyIdle);
            }
            if busiest.sum_h_nr_running == 1 {
                return balanced(BalanceRule::NobodyWaits);
            }
            return force(match busiest.group_type {
                GroupType::LlcBalance => BalanceRule::LlcBalance,
                _ => BalanceRule::MoreIdleHere,
            });
        }
        force(BalanceRule::Overloaded)
    }

    /// `smt_vs_nonsmt_groups()`: whether one group is a core with several hardware threads and the other is not.
    fn smt_vs_nonsmt_groups(&self, a: GroupId, b: GroupId) -> bool {
        (self.topology[a].flags ^ self.topology[b].flags) & SD_SHARE_CPUCAPACITY != 0
    }

    fn sibling_imbalance(
        &self,
        env: &LbEnv,
        sds: &SdLbStats,
        busiest: GroupId,
        cx: &Context,
    ) -> i64 {
        let (nr_local, nr_busiest) =
            (sds.local_stat.sum_nr_running, sds.busiest_stat.sum_nr_running);
        if cx.config.sibling_imbalance == SiblingImbalance::Difference {
            return nr_busiest.saturating_sub(nr_local) as i64;
        }
        let (local, busiest) = (&self.topology[sds.local], &self.topology[busiest]);
        sibling_imbalance(env.idle.is_idle(), (local.cores, nr_local), (busiest.cores, nr_busiest))
    }

    /// `calculate_imbalance()`.
    fn calculate_imbalance(
        &self,
        env: &LbEnv,
        sds: &SdLbStats,
        cx: &Context,
    ) -> (Option<MigrationType>, i64) {
        let of = |migration_type, imbalance| (Some(migration_type), imbalance);
        let (busiest, mut local) = (&sds.busiest_stat, sds.local_stat);
        let domain = &self.topology[env.sd];
        if busiest.group_type == GroupType::MisfitTask {
            return if self.is_asym(env.sd) {
                of(MigrationType::Misfit, 1)
            } else {
                of(MigrationType::Load, busiest.group_misfit_task_load as i64)
            };
        }
        if busiest.group_type == GroupType::AsymPacking {
            return of(MigrationType::Task, busiest.sum_h_nr_running as i64);
        }
        if busiest.group_type == GroupType::LlcBalance {
            return of(MigrationType::LlcTask, 1);
        }
        if matches!(busiest.group_type, GroupType::SmtBalance | GroupType::Imbalanced) {
            return of(MigrationType::Task, 1);
        }
        if local.group_type == GroupType::HasSpare {
            let spans_caches = domain.flags & SD_SHARE_LLC == 0;
            if busiest.group_type > GroupType::FullyBusy
                && (spans_caches || cx.config.bugs.util_imbalance_in_llc)
            {
                let room = local.group_capacity.saturating_sub(local.group_util);
                if room == 0 && env.idle.is_idle() {
                    return of(MigrationType::Task, 1);
                }
                return of(MigrationType::Util, room as i64);
            }
            let mut imbalance = if busiest.group_weight == 1 || sds.prefer_sibling {
                let group = sds.busiest.expect("there is a busiest group");
                self.sibling_imbalance(env, sds, group, cx)
            } else {
                // The difference is computed as unsigned int: a negative one becomes about 2^32. It
                // takes an overloaded busiest group with more idle CPUs than the local one.
                local.idle_cpus.wrapping_sub(busiest.idle_cpus) as i64
            };
            if domain.flags & SD_NUMA != 0 {
                imbalance = adjust_numa_imbalance(
                    imbalance as i32,
                    local.sum_nr_running + 1,
                    domain.imb_numa_nr,
                );
            }
            return of(MigrationType::Task, imbalance >> 1);
        }
        let average = sds.avg_load();
        if local.group_type < GroupType::Overloaded {
            // Pulling will overload it, so load is what to compare.
            local.avg_load = local.load_per_capacity();
            let above_average = local.avg_load >= average && !cx.config.bugs.imbalance_overflows;
            if local.avg_load >= busiest.avg_load || above_average {
                return (None, 0);
            }
        }
        let surplus = busiest.avg_load.wrapping_sub(average).wrapping_mul(busiest.group_capacity);
        let room = average.wrapping_sub(local.avg_load).wrapping_mul(local.group_capacity);
        of(MigrationType::Load, (surplus.min(room) / SCHED_CAPACITY_SCALE) as i64)
    }
}

impl SdLbStats {
    /// Returns the domain's load per capacity.
    fn avg_load(&self) -> u64 {
        self.total_load * SCHED_CAPACITY_SCALE / self.total_capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check values of behaviour notes 04 §12.
    #[test]
    fn sibling_imbalances() {
        let table = [
            // cores local, cores busiest, tasks local, tasks busiest, expected
            (4, 4, 1, 4, 3),
            (4, 2, 0, 2, 3),
            (2, 4, 0, 4, 3),
            (4, 2, 4, 2, 1),
            (4, 2, 2, 2, 2),
            (4, 4, 3, 1, 0),
            (2, 8, 0, 2, 2),
        ];
        for (lc, bc, local, busiest, expected) in table {
            let got = sibling_imbalance(true, (lc, local), (bc, busiest));
            assert_eq!(got, expected, "{lc} {bc} {local} {busiest}");
            assert_eq!(sibling_imbalance(false, (lc, local), (bc, busiest)), 0);
        }
    }

    /// Of the overloaded group's load what is above the average, though the local group is above it, too.
    #[test]
    fn who_is_above_the_average_pulls_nothing() {
        use crate::sched::fair::balance::stats::SgLbStats;
        use crate::sched::topology::parts::{self, Part};
        let mut k = parts::boot(&[Part::of(1, 1024), Part::of(1, 1024)], false);
        let sd = k.sched.topology.base[0].expect("two CPUs");
        let env = LbEnv::new(sd, CpuId(0), CpuIdleType::NotIdle);
        let stats = |group_type, load| SgLbStats {
            group_type,
            group_load: load,
            group_capacity: 1024,
            avg_load: load,
            ..SgLbStats::ZERO
        };
        let local = k.sched.topology[sd].groups;
        let mut sds = k.sched.read_sd_lb_stats(&env, &k.cx);
        (sds.local, sds.busiest) = (local, Some(k.sched.topology[local].next));
        sds.local_stat = stats(GroupType::FullyBusy, 3000);
        sds.busiest_stat = stats(GroupType::Overloaded, 4000);
        // A third group is idle.
        (sds.total_load, sds.total_capacity) = (7000, 3 * 1024);
        let mut pulls = |overflows| {
            k.cx.config.bugs.imbalance_overflows = overflows;
            k.sched.calculate_imbalance(&env, &sds, &k.cx).1
        };
        assert_eq!([false, true].map(&mut pulls), [0, 4000 - 7000 / 3]);
    }

    #[test]
    fn a_pair_of_tasks_may_stay_on_a_node() {
        assert_eq!(adjust_numa_imbalance(2, 1, 4), 0);
        assert_eq!(adjust_numa_imbalance(3, 1, 4), 3);
        assert_eq!(adjust_numa_imbalance(2, 5, 4), 2);
        assert_eq!(adjust_numa_imbalance(-3, 1, 4), 0);
    }
}
