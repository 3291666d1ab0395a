// SPDX-License-Identifier: GPL-2.0-or-later
//! `cpu.max` on a machine as a [`Subject`]: the world of `shim.c`, executed with our `sched/fair/bandwidth`.
//!
//! Three CPUs, up to five groups on up to five levels, with limits at any of them, and up to eight tasks. Operations are wakeups,
//! switches, ticks, returns to user space, migrations, changes of tasks and of groups, new limits, the timers of pools on time
//! or late, and the interrupts that unthrottle. Compared after each: of every queue its counters, what it has left, its clocks
//! and who waits in limbo; of every group its pool and timers and who is throttled in which order; of every CPU who runs, who is
//! queued and what is to be unthrottled; of every task its state and virtual times.
//!
//! The kernel's side runs whole functions from `enqueue_task_fair` down, EEVDF included, on all levels of the hierarchy.
//!
//! **Not compared here:** averages and shares (each group weighs as one task of nice 0), balancing, which CPU gets a timer, the
//! arithmetic of a pool at all its edges (L0 `groups`).

mod draw;
mod mutations;
mod taken;

use crate::cfs;
use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{OpSpec, Out, Record, Subject, TREE, TREE_6_1, TREE_6_18, TREE_7_3, mix};
use schedtwin_kernel::Kernel;
use schedtwin_kernel::config::{
    CalcDelta, CfsPeriodTimer, CfsThrottle, CfsThrottledTime, CfsTunables, CfsUnthrottle, Config,
    EevdfForm, FairClass, FrequencyGovernor, GroupShares, GroupTree, LagLimit, PutPrev,
    ReweightEntity,
};
use schedtwin_kernel::device_tree::DeviceTree;
use schedtwin_kernel::sched::fair::bandwidth::conformance::BandwidthSteps;
use schedtwin_kernel::sched::{CfsRq, CfsRqId, OnRq};
use schedtwin_types::rng::Rng;
use schedtwin_types::{CpuId, Policy, TaskGroupId, TaskId};
use std::path::{Path, PathBuf};

// Operation numbers, as in `shim.c`.
const START: usize = 0;
const GROUP: usize = 1;
const TASK: usize = 2;
const WAKE: usize = 3;
const SCHEDULE: usize = 4;
const TICK: usize = 5;
const RETURN: usize = 6;
const MIGRATE: usize = 7;
const REQUEUE: usize = 8;
const MOVE: usize = 9;
const PERIOD: usize = 10;
const SLACK: usize = 11;
const CSD: usize = 12;
const LIMIT: usize = 13;

/// CPUs of the machine.
const CPUS: usize = 3;
const CPU_NAMES: [&str; CPUS] = ["c0", "c1", "c2"];
/// Most groups beside the root.
const GROUPS_MAX: u64 = 5;
const GROUP_NAMES: [&str; 5] = ["g1", "g2", "g3", "g4", "g5"];
/// Most tasks of a sequence.
const TASKS_MAX: u64 = 8;
const TASK_NAMES: [&str; 8] = ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"];
/// `RUNTIME_INF`.
const NO_LIMIT: u64 = u64::MAX;

/// A form of [`BandwidthOf`].
const LINUX_6_12: u8 = 0;
/// A form of [`BandwidthOf`].
const LINUX_6_18: u8 = 1;
/// A form of [`BandwidthOf`].
const LINUX_7_3: u8 = 2;
/// A form of [`BandwidthOf`].
const LINUX_6_1: u8 = 3;

/// The features of 6.1 that are on: all of [`cfs::features`] but NEXT_BUDDY, without util_est.
const FEATURES_6_1: u64 = 0b111_1011;

/// Whether tasks leave a throttled queue one by one.
const fn by_task(form: u8) -> bool {
    matches!(form, LINUX_6_18 | LINUX_7_3)
}

/// Queues leave as a whole. With CFS, and without interrupts that unthrottle.
pub type Bandwidth61 = BandwidthOf<LINUX_6_1>;
/// Queues leave as a whole.
pub type Bandwidth = BandwidthOf<LINUX_6_12>;
/// Tasks leave one by one, and queues are throttled when tasks are picked or put back.
pub type Bandwidth618 = BandwidthOf<LINUX_6_18>;
/// Tasks leave one by one, charges throttle, and there is one timeline for all groups.
pub type Bandwidth73 = BandwidthOf<LINUX_7_3>;

/// Three CPUs, groups and tasks.
pub struct BandwidthOf<const FORM: u8> {
    kernel: Kernel,
    tasks: Vec<TaskId>,
    now: u64,
    /// Generator only: groups, tasks and operations to come.
    planned: [u64; 3],
}

impl<const FORM: u8> BandwidthOf<FORM> {
    fn boot(slice_us: u64) -> Kernel {
        let mut config = Config::linux_6_12();
        config.fair_group_sched = true;
        config.group_shares = GroupShares::Up;
        config.cfs_period_timer = CfsPeriodTimer::Aligned;
        config.cfs_bandwidth_slice = slice_us * 1000;
        config.cpufreq = FrequencyGovernor::Performance;
        config.fair_server_runtime = 0;
        config.irq_time_accounting = false;
        // With three CPUs that is 700 us.
        config.base_slice_unscaled = 350_000;
        config.hz = 250;
        if FORM == LINUX_6_1 {
            config.fair = FairClass::Cfs;
            config.cfs = CfsTunables {
                latency: 6_000_000,
                min_granularity: 750_000,
                wakeup_granularity: 1_000_000,
                idle_min_granularity: 750_000,
            };
            config.features = cfs::features(FEATURES_6_1);
            config.put_prev = PutPrev::BeforePick;
            config.cfs_unthrottle = CfsUnthrottle::Remote;
            config.cfs_throttled_time = CfsThrottledTime::Whole;
        }
        if by_task(FORM) {
            config.lag_limit = LagLimit::MaxSliceAndTick;
        }
        if FORM == LINUX_6_18 {
            config.eevdf_form = EevdfForm::V6_18;
            config.reweight_entity = ReweightEntity::Placed;
            config.cfs_throttle = CfsThrottle::TaskAtPick;
        }
        if FORM == LINUX_7_3 {
            config.eevdf_form = EevdfForm::V7_3;
            config.calc_delta = CalcDelta::Division;
            config.group_tree = GroupTree::Flat;
            config.cfs_throttle = CfsThrottle::TaskAtCharge;
        }
        let machine = DeviceTree::of_domains(&[(CPUS as u16, 1024, &[(1_000_000, 1000)])]);
        Kernel::boot(DeviceTree { nr_threads_hint: TASKS_MAX as usize, ..machine }, config)
    }

    fn steps(&mut self) -> BandwidthSteps<'_> {
        BandwidthSteps(&mut self.kernel)
    }

    fn curr(&self, cpu: usize) -> TaskId {
        self.kernel.inside().rq[CpuId(cpu as u16)].curr
    }

    /// A task's number: 1 and up; 0: none of the tasks.
    fn number_of(&self, task: TaskId) -> u64 {
        self.tasks.iter().position(|&other| other == task).map_or(0, |at| at as u64 + 1)
    }

    fn nr_groups(&self) -> usize {
        self.kernel.inside().groups.len() - 1
    }

    fn queue(&self, group: usize, cpu: usize) -> (CfsRqId, &CfsRq) {
        let inside = self.kernel.inside();
        let id = inside.groups[TaskGroupId(group as u32)].cfs_rq[cpu];
        (id, &inside.cfs[id])
    }

    fn report_cpu(&mut self, cpu: usize, out: &mut Out) {
        let (id, name) = (CpuId(cpu as u16), CPU_NAMES[cpu]);
        let csd = self.steps().csd_list(id).collect::<Vec<_>>();
        let inside = self.kernel.inside();
        let rq = &inside.rq[id];
        out.word(name, "counts", counts(&inside.cfs[CfsRqId(cpu as u32)]));
        let curr = self.number_of(rq.curr);
        out.word(name, "rq", curr | (rq.need_resched as u64) << 8 | (rq.nr_running as u64) << 16);
        let next = |task: &TaskId| inside.tasks[*task].cfs_tasks_next;
        let by_run = std::iter::successors(rq.cfs_tasks_head, next);
        out.word(name, "cfs_tasks", by_run.fold(0, |sum, task| mix(sum, self.number_of(task))));
        let csd = csd.iter().map(|queue| u64::from(inside.cfs[*queue].group.0));
        out.word(name, "cfsb_csd_list", csd.fold(0, mix));
    }

    fn report_pool(&mut self, group: usize, out: &mut Out) {
        let (id, name) = (TaskGroupId(group as u32), GROUP_NAMES[group - 1]);
        let timers = self.steps().timers(id);
        let inside = self.kernel.inside();
        let pool = &inside.groups[id].bandwidth;
        out.word(name, "runtime", pool.runtime);
        let slack_started = timers.slack.is_some();
        let flags = [pool.idle, pool.period_active, slack_started];
        out.word(name, "flags", (0..).zip(flags).map(|(bit, set)| (set as u64) << bit).sum());
        out.word(name, "period_timer", timers.period);
        out.word(name, "slack_timer", timers.slack.unwrap_or(0));
        let stat = pool.stat;
        let counted = [stat.nr_throttled, stat.nr_bursts, stat.burst_time];
        out.word(name, "stat", counted.into_iter().fold(stat.nr_periods, mix));
        out.word(name, "throttled_time", stat.throttled_time);
        let cpus = pool.throttled.iter().map(|queue| u64::from(inside.cfs[*queue].cpu.0) + 1);
        out.word(name, "throttled_cfs_rq", cpus.fold(0, mix));
    }

    fn report_queue(&mut self, group: usize, cpu: usize, out: &mut Out) {
        let (id, _) = self.queue(group, cpu);
        let clocks = self.steps().clocks(id);
        let inside = self.kernel.inside();
        let (cfs, name) = (&inside.cfs[id], GROUP_NAMES[group - 1]);
        let se = &inside.se[inside.groups[cfs.group].se[cpu]];
        let own = &cfs.bandwidth;
        let field = |field: &str| format!("{}.{field}", CPU_NAMES[cpu]);
        out.word(name, &field("counts"), counts(cfs));
        out.word(name, &field("runtime_remaining"), own.runtime_remaining as u64);
        let flags = [
            own.throttled as u64,
            (own.runtime_enabled as u64) << 1,
            (own.pelt_clock_throttled as u64) << 2,
            (clocks.csd_queued as u64) << 3,
            (own.throttle_count as u64) << 4,
            (se.on_rq as u64) << 12,
            (se.sched_delayed as u64) << 13,
            ((own.throttled_pelt_idle == u64::MAX) as u64) << 14,
        ];
        out.word(name, &field("state"), flags.into_iter().sum());
        out.word(name, &field("throttled_clock"), clocks.throttled_clock);
        let clock = mix(clocks.throttled_clock_pelt, clocks.throttled_clock_pelt_time);
        out.word(name, &field("pelt_and_load"), mix(clock, cfs.load_weight));
        let limbo = cfs.throttled_limbo_list.iter().rev();
        out.word(name, &field("limbo"), limbo.fold(0, |sum, task| mix(sum, self.number_of(*task))));
    }

    fn report(&mut self, out: &mut Out) {
        for cpu in 0..CPUS {
            self.report_cpu(cpu, out);
        }
        for group in 1..=self.nr_groups() {
            self.report_pool(group, out);
            for cpu in 0..CPUS {
                self.report_queue(group, cpu, out);
            }
        }
        for (task, name) in self.tasks.iter().zip(TASK_NAMES) {
            let inside = self.kernel.inside();
            let t = &inside.tasks[*task];
            let se = &inside.se[t.se];
            let on_rq = match t.on_rq {
                OnRq::No => 0,
                OnRq::Queued => 1,
                OnRq::Migrating => 2,
            };
            let flags = [se.on_rq, se.sched_delayed, t.throttled, t.throttle_work];
            let flags = (2..).zip(flags).map(|(bit, set)| (set as u64) << bit).sum::<u64>();
            out.word(name, "state", on_rq | flags | (t.cpu.0 as u64) << 8);
            out.word(name, "times", mix(mix(se.vruntime, se.deadline), se.sum_exec_runtime));
        }
    }
}

/// The numbers of tasks of a queue.
fn counts(cfs: &CfsRq) -> u64 {
    let numbers =
        [cfs.h_nr_queued, cfs.h_nr_runnable, cfs.h_nr_delayed, cfs.h_nr_idle, cfs.nr_queued];
    (0..).zip(numbers).map(|(at, number)| u64::from(number) << (8 * at)).sum()
}

impl<const FORM: u8> Subject for BandwidthOf<FORM> {
    const NAME: &'static str =
        ["bandwidth", "bandwidth-6.18", "bandwidth-7.3", "bandwidth-6.1"][FORM as usize];
    const TREE: &'static str = [TREE, TREE_6_18, TREE_7_3, TREE_6_1][FORM as usize];
    const OPS: &'static [OpSpec] = &[
        OpSpec { name: "start", args: &["slice_us"] },
        OpSpec { name: "group", args: &["parent"] },
        OpSpec { name: "task", args: &["group", "cpu", "weight", "inv_weight", "policy", "nice"] },
        OpSpec { name: "wake", args: &["now", "this", "task"] },
        OpSpec { name: "schedule", args: &["now", "cpu", "sleeps"] },
        OpSpec { name: "tick", args: &["now", "cpu"] },
        OpSpec { name: "return", args: &["now", "cpu"] },
        OpSpec { name: "migrate", args: &["now", "this", "task", "to"] },
        OpSpec { name: "requeue", args: &["now", "this", "task"] },
        OpSpec { name: "move", args: &["now", "cpu", "group"] },
        OpSpec { name: "period", args: &["now", "this", "group"] },
        OpSpec { name: "slack", args: &["now", "this", "group"] },
        OpSpec { name: "csd", args: &["now", "cpu"] },
        OpSpec { name: "limit", args: &["now", "this", "quota", "period", "burst", "group"] },
    ];
    const SOURCES: Sources =
        Sources { modules: &["fair", "eevdf", "cfs", "bandwidth"], kernel: None };
    const MUTATIONS: &'static [Mutation] = match FORM {
        LINUX_6_1 => mutations::BANDWIDTH_6_1,
        LINUX_6_12 => mutations::BANDWIDTH,
        LINUX_6_18 => mutations::BANDWIDTH_6_18,
        _ => mutations::BANDWIDTH_7_3,
    };
    const GOLDEN_SHOWN: u64 = 1;
    const GOLDEN_CASES: u64 = 4_000;

    fn new() -> Self {
        BandwidthOf { kernel: Self::boot(5_000), tasks: Vec::new(), now: 0, planned: [0; 3] }
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let arg = &record.args;
        let this = CpuId(arg[1] as u16);
        if record.op >= WAKE {
            self.now = arg[0];
            self.steps().enter(arg[0], this);
        }
        let group = TaskGroupId(arg[2] as u32);
        let task = |world: &Self| world.tasks[arg[2] as usize];
        match record.op {
            START => {
                self.kernel = Self::boot(arg[0]);
                return;
            }
            GROUP => {
                self.kernel.new_task_group(TaskGroupId(arg[0] as u32), 1024);
                return;
            }
            TASK => {
                let (group, cpu) = (TaskGroupId(arg[0] as u32), CpuId(arg[1] as u16));
                let policy = if arg[4] == 5 { Policy::Idle } else { Policy::Normal };
                let task = self.steps().new_task(group, cpu, arg[5] as i64 as i8, policy);
                self.tasks.push(task);
                return;
            }
            WAKE => {
                let task = task(self);
                self.steps().wake(task);
            }
            SCHEDULE => self.steps().schedule(this, arg[2]),
            TICK => self.steps().tick(this),
            RETURN => self.steps().return_to_user(this),
            MIGRATE => {
                let task = task(self);
                self.steps().migrate(task, CpuId(arg[3] as u16));
            }
            REQUEUE => {
                let task = task(self);
                self.steps().requeue(task);
            }
            MOVE => self.steps().move_group(this, group),
            PERIOD => self.steps().period_timer(group),
            SLACK => self.steps().slack_timer(group),
            CSD => self.steps().csd_unthrottle(this),
            LIMIT => {
                let quota = Some(arg[2]).filter(|quota| *quota != NO_LIMIT);
                let group = TaskGroupId(arg[5] as u32);
                self.kernel.tg_set_cfs_bandwidth(group, arg[3], quota, arg[4]);
            }
            _ => unreachable!("an operation of the list"),
        }
        self.report(out);
        self.kernel.clear_facts();
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        self.draw(step as u64, rng)
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        taken::build::<FORM>(tree, build_dir, flags, Self::NAME)
    }
}
