// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduler as it boots (`sched_init()`, `sched_init_smp()`): idle CPUs, empty queues, domains built.

use super::deadline::{DlRq, FairServer, to_ratio};
use super::demand::need::Needs;
use super::demand::signal::{Signal, StaleDemands};
use super::demand::uclamp::group::GroupClamps;
use super::demand::uclamp::{RqClamps, UclampKey};
use super::fair::bandwidth::CfsRqBandwidth;
use super::fair::group::TaskGroup;
use super::fair::sched_cache::CacheAffinity;
use super::hw_pressure;
use super::pelt::{Removed, RqClockPelt, SchedAvg};
use super::root_domain::RootDomain;
use super::rt::RtRq;
use super::topology::Topology;
use super::{CfsRq, CfsRqId, Class, OnRq, Rq, Scheduler};
use crate::arena::Arena;
use crate::config::{CfsTunables, Config};
use crate::device_tree::DeviceTree;
use schedtwin_types::{CpuId, CpuMask, TaskGroupId, TaskId};

impl Scheduler {
    /// Builds domains and empty run queues for the machine. No task exists yet.
    pub(crate) fn new(device_tree: &DeviceTree, config: &Config, needs: Needs) -> Scheduler {
        let nr_cpus = device_tree.cpus.len();
        let topology = Topology::build(device_tree, config);
        let asymmetric = topology.sd_asym_cpucapacity.iter().any(|sd| sd.is_some());
        let rd = RootDomain::build(device_tree, config, asymmetric, topology.smt);
        // Linux scales slices by 1 + log2 of the CPUs, at most 8 (SCHED_TUNABLESCALING_LOG).
        let factor = 1 + (nr_cpus.min(8) as u32).ilog2() as u64;
        let hint = device_tree.nr_threads_hint;
        let cpus = || (0..nr_cpus).map(|c| CpuId(c as u16));
        let all_cpus = device_tree.all_cpus();
        Scheduler {
            tasks: Arena::new(),
            se: Arena::new(),
            cfs: cpus().map(|cpu| CfsRq::new(cpu, hint, config)).collect(),
            groups: std::iter::once(TaskGroup::root(nr_cpus, GroupClamps::root(config))).collect(),
            autogroups: Vec::new(),
            rq: cpus().map(|cpu| Rq::new(cpu, device_tree, config)).collect(),
            sched_cache: CacheAffinity::new(config, &topology).map(Box::new),
            topology,
            rd,
            nohz: Default::default(),
            hw_pressure_told: false,
            capacity_pressure: hw_pressure::form(config),
            cfs_bandwidth_used: false,
            flat_groups: false,
            ext: None,
            ext_unloaded: None,
            sched_uclamp_used: UclampKey::new(config),
            stale_demands: StaleDemands::all(all_cpus),
            needs,
            idle_mask: all_cpus,
            idle_changes: Default::default(),
            sched_idle_mask: CpuMask::EMPTY,
            base_slice: config.base_slice_unscaled * factor,
            cfs_tunables: CfsTunables {
                latency: config.cfs.latency * factor,
                min_granularity: config.cfs.min_granularity * factor,
                wakeup_granularity: config.cfs.wakeup_granularity * factor,
                ..config.cfs
            },
        }
    }

    /// Makes a task the idle task: queued, as far as `wakeup_preempt()` can see (`init_idle()`).
    pub(crate) fn init_idle(&mut self, idle: TaskId) {
        let t = &mut self.tasks[idle];
        t.class = Class::Idle;
        t.on_rq = OnRq::Queued;
    }

    /// Makes a task the stopper of `cpu`, which looks like `SCHED_FIFO` 99 (`sched_set_stop_task()`).
    pub(crate) fn set_stop_task(&mut self, cpu: CpuId, stopper: TaskId) {
        self.kthread_bind_mask(stopper, cpu, CpuMask::of(cpu));
        let t = &mut self.tasks[stopper];
        t.class = Class::Stop;
        t.prio = 0;
        self.rq[cpu].stopper = stopper;
    }
}

impl CfsRq {
    /// An empty fair run queue of `cpu`, with memory reserved for `hint` entities.
    pub(crate) fn new(cpu: CpuId, hint: usize, config: &Config) -> CfsRq {
        CfsRq {
            avg: Default::default(),
            load_weight: 0,
            nr_queued: 0,
            h_nr_queued: 0,
            h_nr_runnable: 0,
            h_nr_delayed: 0,
            h_nr_idle: 0,
            avg_vruntime: 0,
            avg_load: 0,
            // init_cfs_rq(): a little before the wrap, so that wrapping code is exercised.
            zero_vruntime: (-(1i64 << 20)) as u64,
            discipline: crate::sched::fair::discipline::of(config),
            full_weights: crate::sched::fair::eevdf::sums_full_weights(config),
            min_vruntime: (-(1i64 << 20)) as u64,
            curr: None,
            next: None,
            last: None,
            skip: None,
            timeline: Vec::with_capacity(hint.min(1024) + 8),
            removed: Removed::default(),
            cpu,
            group: TaskGroupId::ROOT,
            idle: false,
            propagate: false,
            prop_runnable_sum: 0,
            tg_load_avg_contrib: 0,
            tg_runnable_avg_contrib: 0,
            last_update_tg_load_avg: 0,
            on_list: false,
            throttled_limbo_list: Vec::new(),
            bandwidth: CfsRqBandwidth::default(),
        }
    }
}

impl Rq {
    /// The run queue of a CPU that has just come up, idle.
    pub(super) fn new(cpu: CpuId, dt: &DeviceTree, config: &Config) -> Rq {
        Rq {
            cpu,
            nr_running: 0,
            nr_iowait: 0,
            curr: TaskId::IDLE,
            next_class: Class::Idle,
            need_resched: false,
            need_resched_lazy: false,
            skip_clock_update: false,
            clock: 0,
            clock_task: 0,
            clock_pelt: RqClockPelt::default(),
            irq_time: 0,
            prev_irq_time: 0,
            arch_capacity: dt.cpus[cpu.index()].capacity as u64,
            cpufreq_pressure: 0,
            hw_pressure: 0,
            freq_scale: 1024,
            cpu_capacity: dt.cpus[cpu.index()].capacity as u64,
            avg_rt: Default::default(),
            avg_dl: Default::default(),
            avg_irq: Default::default(),
            avg_hw: SchedAvg::default(),
            rt: RtRq::default(),
            fair_server: FairServer::new(config.fair_server_runtime, config.fair_server_period),
            dl: DlRq::new(to_ratio(config.fair_server_period, config.fair_server_runtime)),
            push_pending: false,
            hrtick: Default::default(),
            cfs_tasks_head: None,
            cfs_tasks_tail: None,
            leaf_cfs_rqs: Vec::new(),
            timeline: CfsRqId::root(cpu),
            misfit_task_load: 0,
            idle_stamp: 0,
            avg_idle: 2 * config.migration_cost,
            wake_avg_idle: 2 * config.migration_cost,
            wake_stamp: 0,
            max_idle_balance_cost: config.migration_cost,
            next_balance: 0,
            idle_balance: false,
            sched_softirq: false,
            nohz_flags: 0,
            nohz_tick_stopped: false,
            is_idle: true,
            has_blocked_load: false,
            last_blocked_load_update_tick: 0,
            wake_list: Vec::with_capacity(dt.nr_threads_hint.max(16)),
            unthrottle_list: Vec::new(),
            ttwu_pending: false,
            active_balance: false,
            push_cpu: CpuId(0),
            stopper: TaskId::IDLE,
            stop_work: Default::default(),
            stop_queued: false,
            idle_exec_start: 0,
            uclamp: Signal::new(RqClamps::new(config)),
            newidle_rnd: 0x9e37_79b9_7f4a_7c15 ^ (cpu.0 as u64) << 32,
        }
    }
}
