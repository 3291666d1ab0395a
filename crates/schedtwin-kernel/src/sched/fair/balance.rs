// SPDX-License-Identifier: GPL-2.0-or-later
//! Load balancing: moving tasks that are already queued.
//!
//! A wakeup places one task; what it gets wrong, and what changes afterwards, is left to balancing.
//! Each CPU **pulls**: it looks at its domains bottom-up ([`crate::sched::topology`]), compares its
//! own group with the others of the domain, picks the busiest group and in it the busiest queue, and
//! moves tasks to itself. It does so
//!
//! - **periodically**: the tick raises a softirq when a domain is due (`sched_balance_trigger`),
//! - **newly idle**: before it goes idle (`newidle.rs`),
//! - **for others**: a busy CPU's tick kicks an idle CPU that balances for all CPUs whose tick is
//!   stopped (`nohz.rs`).
//!
//! A running task cannot be pulled. If only running tasks are left to move, the stopper of the
//! busiest CPU pushes it (`active.rs`).
//!
//! ```text
//! tick ─ sched_balance_trigger ─ softirq ─ sched_balance_domains ─┐
//! idle ─ sched_balance_newidle ───────────────────────────────────┼─ sched_balance_rq (pass.rs)
//! kick ─ nohz_csd_func ─ softirq ─ _nohz_idle_balance ────────────┘     │
//!        should_we_balance ─ statistics ─ find_src_group ─ find_src_rq ─ detach_tasks ─ attach_tasks
//!                            (stats.rs)   (src_group.rs)   (src_rq.rs)  (detach.rs)
//! ```
//!
//! Intervals: an idle CPU balances a domain of w CPUs every w..2w ms, a busy one 16 times as
//! rarely; a pass that finds balance doubles the interval, one that finds imbalance resets it.
//!
//! | file | decides |
//! |---|---|
//! | here | when a domain is due |
//! | `newidle.rs` | whether looking for work is worth its time |
//! | `pass.rs` | the steps of one pass |
//! | `stats.rs` | how busy groups are, and which is the busiest |
//! | `src_group.rs` | whether that is an imbalance, and of what |
//! | `src_rq.rs` | from which queue to pull |
//! | `detach.rs` | which tasks |
//! | `active.rs` | when to push the running task instead |
//! | `capacity.rs` | what CPUs and groups can do |
//! | `llc.rs` | whether tasks may leave or join a last-level cache |
//! | `misfit.rs` | tasks too big for their CPU; overutilization |
//! | `idle_scan.rs` | how far wakeups search for an idle CPU |
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `sched_balance_trigger` … `sched_balance_newidle`; 6.1.192
//! `trigger_load_balance` … `newidle_balance`. Names are those of 6.12; before 6.10 it is `load_balance`,
//! `find_busiest_group`, `find_busiest_queue`, `find_idlest_cpu`, ...
//! Differences:
//! - A pass is atomic: nobody queues or takes tasks while it looks. It costs time only afterwards
//!   (`path_costs.balance_per_cpu`, `migrate_task`).
//! - No NUMA balancing: `fbq_type` never excludes a queue.
//! - All CPUs are active and do housekeeping.

mod active;
mod capacity;
mod detach;
mod idle_scan;
#[doc(hidden)]
pub mod llc;
mod misfit;
mod newidle;
mod pass;
pub(in crate::sched::fair) mod src_group;
mod src_rq;
#[cfg(any(test, feature = "conformance"))]
#[doc(hidden)]
pub mod states;
pub(in crate::sched::fair) mod stats;
#[cfg(test)]
mod tests;

use crate::sched::topology::{DomainId, SchedDomain};
use crate::{Context, Cpuidle, Kernel, Scheduler};
use schedtwin_types::{CpuId, CpuMask, Ns, TaskId};

/// `enum cpu_idle_type`: in which state a CPU balances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CpuIdleType {
    /// It runs something.
    NotIdle = 0,
    /// It is idle.
    Idle = 1,
    /// It has just run out of work.
    NewlyIdle = 2,
}

impl CpuIdleType {
    /// Idle in either way.
    fn is_idle(self) -> bool {
        self != CpuIdleType::NotIdle
    }

    /// As decision records name it.
    fn name(self) -> &'static str {
        match self {
            CpuIdleType::NotIdle => "busy",
            CpuIdleType::Idle => "idle",
            CpuIdleType::NewlyIdle => "newidle",
        }
    }
}

/// `enum migration_type`: what `imbalance` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MigrationType {
    Load,
    Util,
    Task,
    Misfit,
    LlcTask,
}

impl MigrationType {
    /// As decision records name it.
    fn name(self) -> &'static str {
        match self {
            MigrationType::Load => "migrate_load",
            MigrationType::Util => "migrate_util",
            MigrationType::Task => "migrate_task",
            MigrationType::Misfit => "migrate_misfit",
            MigrationType::LlcTask => "migrate_llc_task",
        }
    }
}

/// `struct lb_env`: what one pass knows.
struct LbEnv {
    sd: DomainId,
    idle: CpuIdleType,
    dst_cpu: CpuId,
    src_cpu: CpuId,
    /// CPUs that may balance for the destination's group.
    dst_grpmask: CpuMask,
    /// Where pinned tasks may go instead, if `dst_pinned`.
    new_dst_cpu: CpuId,
    /// CPUs that the pass still considers.
    cpus: CpuMask,
    /// The amount to be moved, in units of `migration_type`; a `long`, but compared unsigned.
    imbalance: i64,
    migration_type: MigrationType,
    /// Tasks looked at, and when to stop or to take a breath.
    loops: u32,
    loop_break: u32,
    loop_max: u32,
    /// `LBF_ALL_PINNED`: no task was found that may run on the destination.
    all_pinned: bool,
    /// `LBF_SOME_PINNED`: some task may not.
    some_pinned: bool,
    /// `LBF_DST_PINNED`: but on `new_dst_cpu`.
    dst_pinned: bool,
    /// `LBF_NEED_BREAK`.
    need_break: bool,
    /// `LBF_ACTIVE_LB`: the running task is being pushed.
    active_lb: bool,
    /// `LBF_ACTIVE_LB_LLC`: to the last-level cache that it prefers.
    active_lb_llc: bool,
    /// `LBF_LLC_PINNED`: some task was left in the last-level cache that it prefers.
    llc_pinned: bool,
    /// Detached tasks, the last one first, linked by `Task::cfs_tasks_next`.
    tasks: Option<TaskId>,
    /// Tasks moved so far, while decisions are recorded.
    moved: Vec<TaskId>,
}

/// `SCHED_NR_MIGRATE_BREAK` (no `PREEMPT_RT`).
const SCHED_NR_MIGRATE_BREAK: u32 = 32;

impl LbEnv {
    fn new(sd: DomainId, dst_cpu: CpuId, idle: CpuIdleType) -> LbEnv {
        LbEnv {
            sd,
            idle,
            dst_cpu,
            src_cpu: dst_cpu,
            dst_grpmask: CpuMask::EMPTY,
            new_dst_cpu: dst_cpu,
            cpus: CpuMask::EMPTY,
            imbalance: 0,
            migration_type: MigrationType::Load,
            loops: 0,
            loop_break: SCHED_NR_MIGRATE_BREAK,
            loop_max: 0,
            all_pinned: false,
            some_pinned: false,
            dst_pinned: false,
            need_break: false,
            active_lb: false,
            active_lb_llc: false,
            llc_pinned: false,
            tasks: None,
            moved: Vec::new(),
        }
    }
}

/// `update_newidle_stats()`: how often newidle balancing of a domain pulls something. With `now`, how long the tries took
/// counts, too (NI_RATE).
fn update_newidle_stats(sd: &mut SchedDomain, success: u32, now: Option<Ns>) {
    sd.newidle_call += 1;
    sd.newidle_success += success;
    if sd.newidle_call >= 1024 {
        let seldom = now.map_or(0, |now| now.saturating_sub(sd.newidle_stamp) >> 22);
        sd.newidle_stamp = now.unwrap_or(0);
        sd.newidle_ratio = match now {
            Some(_) => (seldom + sd.newidle_success as u64).min(1024) as u32,
            None => sd.newidle_success,
        };
        sd.newidle_call /= 2;
        sd.newidle_success /= 2;
    }
}

/// `update_newidle_cost()`: remembers the longest pass and forgets it by 1 % a second. `true`: it has
/// been decayed now. `cost` 0 is a visit without a pass.
fn update_newidle_cost(
    sd: &mut SchedDomain,
    cost: Ns,
    success: u32,
    now: Option<Ns>,
    (jiffies, hz): (u64, u64),
) -> bool {
    if cost != 0 {
        update_newidle_stats(sd, success, now);
    }
    if cost > sd.max_newidle_lb_cost {
        sd.max_newidle_lb_cost = cost;
        sd.last_decay_max_lb_cost = jiffies;
    } else if jiffies > sd.last_decay_max_lb_cost + hz {
        sd.max_newidle_lb_cost = sd.max_newidle_lb_cost * 253 / 256;
        sd.last_decay_max_lb_cost = jiffies;
        return true;
    }
    false
}

/// `msecs_to_jiffies()`: rounded up.
pub(crate) fn msecs_to_jiffies(ms: u64, hz: u64) -> u64 {
    (ms * hz).div_ceil(1000)
}

/// `get_sd_balance_interval()`, jiffies. A busy CPU waits one jiffy less, so that the periods of
/// levels are not multiples of each other.
fn get_sd_balance_interval(sd: &SchedDomain, busy: bool, hz: u64, max: u64) -> u64 {
    let factor = if busy { sd.busy_factor as u64 } else { 1 };
    let interval = msecs_to_jiffies(sd.balance_interval * factor, hz);
    (interval - busy as u64).clamp(1, max)
}

impl Scheduler {
    /// The end of a tick: is some domain of `cpu` due, or should an idle CPU be kicked?
    pub(crate) fn sched_balance_trigger(
        &mut self,
        cpu: CpuId,
        cpuidle: &mut Cpuidle,
        cx: &mut Context,
    ) {
        let idle = self.idle_cpu(cpu);
        self.rq[cpu].idle_balance = idle;
        if self.topology.base[cpu.index()].is_none() {
            return;
        }
        if cx.jiffies() >= self.rq[cpu].next_balance {
            self.rq[cpu].sched_softirq = true;
        }
        self.nohz_balancer_kick(cpu, cpuidle, cx);
    }

    /// `update_next_balance()`: when `sd` is due for an idle CPU, if that is before `next`.
    fn update_next_balance(&self, sd: DomainId, next: u64, cx: &Context) -> u64 {
        let (_, hz, max) = self.balance_times(cx);
        let domain = &self.topology[sd];
        next.min(domain.last_balance + get_sd_balance_interval(domain, false, hz, max))
    }

    /// Jiffies now and per second, and `max_load_balance_interval`: a tenth of a second per CPU.
    fn balance_times(&self, cx: &Context) -> (u64, u64, u64) {
        let hz = cx.config.hz as u64;
        // Never 0: HZ is at least 100.
        (cx.jiffies(), hz, hz * self.rq.len() as u64 / 10)
    }
}

impl Kernel {
    /// Runs SCHED_SOFTIRQ, which was raised on `cpu`: for CPUs without a tick if this one was kicked
    /// and is idle, else for itself.
    pub fn sched_balance_softirq(&mut self, cpu: CpuId) {
        self.sched.rq[cpu].sched_softirq = false;
        self.sched.charge(self.cx.platform.device_tree.path_costs.softirq, &mut self.cx);
        let idle =
            if self.sched.rq[cpu].idle_balance { CpuIdleType::Idle } else { CpuIdleType::NotIdle };
        if self.nohz_idle_balance(cpu, idle) {
            return;
        }
        self.read_blocked_averages(cpu);
        self.sched_balance_domains(cpu, idle);
    }

    /// Ages a CPU's averages on behalf of balancing, at the price of reading one CPU.
    pub(crate) fn read_blocked_averages(&mut self, cpu: CpuId) {
        self.sched.charge(self.cx.platform.device_tree.path_costs.balance_per_cpu, &mut self.cx);
        self.update_blocked_averages(cpu);
    }

    /// `sched_balance_domains()`: a pass for each domain of `cpu` that is due.
    pub(crate) fn sched_balance_domains(&mut self, cpu: CpuId, idle: CpuIdleType) {
        let (jiffies, hz, max) = self.sched.balance_times(&self.cx);
        let mut idle = idle;
        let mut busy = idle != CpuIdleType::Idle && !self.sched.sched_idle_cpu(cpu);
        let far = jiffies + 60 * hz;
        let mut next_balance = far;
        let mut continue_balancing = true;
        let mut need_decay = false;
        let mut max_cost = 0;
        let mut at = self.sched.topology.base[cpu.index()];
        while let Some(sd) = at {
            at = self.sched.topology[sd].parent;
            need_decay =
                update_newidle_cost(&mut self.sched.topology[sd], 0, 0, None, (jiffies, hz));
            max_cost += self.sched.topology[sd].max_newidle_lb_cost;
            // Another CPU of the group balances at this level and above.
            if !continue_balancing {
                if need_decay {
                    continue;
                }
                break;
            }
            let mut interval = get_sd_balance_interval(&self.sched.topology[sd], busy, hz, max);
            // SD_SERIALIZE: passes are atomic, so the lock is never taken by anybody else, neither here nor, in 7.3, in the
            // pass.
            if jiffies >= self.sched.topology[sd].last_balance + interval {
                if self.sched_balance_rq(cpu, sd, idle, &mut continue_balancing) != 0 {
                    // The pass may have moved tasks to another CPU of the group.
                    let now_idle = self.sched.idle_cpu(cpu);
                    idle = if now_idle { CpuIdleType::Idle } else { CpuIdleType::NotIdle };
                    busy = !now_idle && !self.sched.sched_idle_cpu(cpu);
                }
                self.sched.topology[sd].last_balance = jiffies;
                interval = get_sd_balance_interval(&self.sched.topology[sd], busy, hz, max);
            }
            next_balance = next_balance.min(self.sched.topology[sd].last_balance + interval);
        }
        if need_decay {
            self.sched.rq[cpu].max_idle_balance_cost = self.cx.config.migration_cost.max(max_cost);
        }
        if next_balance < far {
            self.sched.rq[cpu].next_balance = next_balance;
        }
    }
}
