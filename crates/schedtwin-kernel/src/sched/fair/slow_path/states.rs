// SPDX-License-Identifier: GPL-2.0-or-later
//! Random states of forks, execs and wakeups, and the answers of our code: `select_task_rq_fair` with the whole
//! walk down the domains.
//!
//! A state is a machine of eight CPUs with all its domains and groups, overlapping ones of NUMA nodes among
//! them, whose flags are drawn. No CPU shares a cache here, so that `select_idle_sibling` keeps its target: it has states
//! of its own. A line has the chosen CPU, and how many the waker is said to have woken.
//! `sched/fair/states.rs` says what a line is.

use super::*;
use crate::config::{BalanceDelayed, Config, GroupIsOverloaded, SchedIdleCpus, UtilEstForm};
use crate::sched::core::{WF_EXEC, WF_FORK, WF_SYNC, WF_TTWU};
use crate::sched::fair::balance::states::capacity::hierarchies;
use crate::sched::fair::states::{
    Family, NR_CPUS, Random, balance_as_6_1, balance_as_6_12_117, mask_of, write_domains,
};
use crate::sched::pelt::SchedAvg;
use crate::sched::topology::{SD_BALANCE_EXEC, SD_BALANCE_WAKE, SD_WAKE_AFFINE};
use crate::sched::{CfsRqId, TaskKind};
use schedtwin_types::{Ns, Policy};
use std::fmt::Write;

const TICK: Ns = 4_000_000;
/// The time of all averages; none is older, so none decays.
const LAST_UPDATE: Ns = 1000;

fn kernels(form: fn(&mut Config)) -> Vec<Kernel> {
    let mut kernels = hierarchies(form);
    for kernel in &mut kernels {
        let topology = &mut kernel.sched.topology;
        topology.sd_llc.fill(None);
        topology.sd_llc_shared.fill(None);
        topology.sd_balance_shared.fill(None);
        topology.sd_llc_id = (0..NR_CPUS).map(CpuId).collect();
        topology.sd_share_id = topology.sd_llc_id.clone();
        kernel.new_task(None, TaskKind::User);
        kernel.new_task(None, TaskKind::User);
    }
    kernels
}

/// Flags and numbers of every domain, and what groups have.
fn draw_domains(k: &mut Kernel, even: bool, r: &mut Random) {
    const TOGGLED: [u32; 5] =
        [SD_BALANCE_FORK, SD_BALANCE_EXEC, SD_BALANCE_WAKE, SD_WAKE_AFFINE, SD_ASYM_CPUCAPACITY];
    for domain in &mut k.sched.topology.domains {
        for flag in TOGGLED {
            // Mostly as Linux builds it.
            let as_built = if flag & (SD_BALANCE_WAKE | SD_ASYM_CPUCAPACITY) == 0 { 6 } else { 0 };
            let set = r.below(8) < as_built + 1;
            domain.flags = domain.flags & !flag | if set { flag } else { 0 };
        }
        domain.imbalance_pct = r.of(&[110, 117, 117, 125]);
        domain.imb_numa_nr = r.below(6) as u32;
    }
    for sgc in &mut k.sched.topology.capacities {
        sgc.max_capacity = 200 + r.below(825);
        sgc.capacity = if r.one_in(2) { 2048 } else { 200 + r.below(4000) };
        sgc.imbalance = r.one_in(10);
    }
    if even {
        let topology = &mut k.sched.topology;
        for group in &topology.groups {
            topology.capacities[group.sgc].capacity = 1024 * group.group_weight as u64;
        }
    }
}

/// A CPU's queue and signals; what runs on it is `curr`, if anything.
fn draw_cpu(
    k: &mut Kernel,
    cpu: CpuId,
    curr: TaskId,
    (tasks, load): (u32, Option<u64>),
    r: &mut Random,
    line: &mut String,
) {
    let root = CfsRqId::root(cpu);
    let least = (!curr.is_idle()) as u32;
    let nr = least.max(tasks);
    let h = if nr > least && r.one_in(6) { nr - 1 } else { nr };
    let knows_delayed = k.cx.config.balance_delayed == BalanceDelayed::LoadOnly;
    // The one that runs is not delayed.
    let delayed = if knows_delayed && r.one_in(3) {
        r.below(u64::from(h.saturating_sub(least)) + 1) as u32
    } else {
        0
    };
    let only_idle_policy = h == nr && nr > 0 && r.one_in(8);
    let cfs = &mut k.sched.cfs[root];
    (cfs.h_nr_queued, cfs.h_nr_delayed, cfs.h_nr_runnable) = (h, delayed, h - delayed);
    cfs.h_nr_idle = if only_idle_policy { nr } else { 0 };
    *cfs.avg = SchedAvg {
        load_avg: load.unwrap_or(r.below(4000)),
        util_avg: r.below(1100),
        runnable_avg: if load.is_some() { 3000 } else { r.below(3000) },
        util_est: r.below(1100) as u32,
        last_update_time: LAST_UPDATE,
        ..SchedAvg::default()
    };
    let avg = *cfs.avg;
    let arch = if load.is_some() || r.one_in(2) { 1024 } else { 200 + r.below(825) };
    let rq = &mut k.sched.rq[cpu];
    rq.arch_capacity = arch;
    rq.cpu_capacity = if load.is_none() && r.one_in(3) { 1 + r.below(arch) } else { arch };
    rq.nr_running = nr;
    rq.curr = curr;
    rq.ttwu_pending = r.one_in(12);
    rq.idle_stamp = r.of(&[0, 5, 9, 13]);
    let capacity = rq.cpu_capacity;
    let (stamp, pending) = (rq.idle_stamp, rq.ttwu_pending as u8);
    let state = r.below(3) as i32 - 1;
    k.cx.platform.wires[cpu].activity =
        if state < 0 { Activity::IdleLoop } else { Activity::Idle { state: state as u8 } };
    k.sched.add_nr_running(cpu, 0);
    k.sched.refresh_idle(cpu);
    let (load, util, runnable, estimate) =
        (avg.load_avg, avg.util_avg, avg.runnable_avg, avg.util_est);
    write!(
        line,
        "{load} {util} {runnable} {estimate} {nr} {h} {} {} {capacity} {arch} {} {pending} {state} {stamp} ",
        h - delayed,
        only_idle_policy as u8,
        if curr.is_idle() { -1 } else { curr.0 as i32 },
    )
    .unwrap();
}

/// How many tasks a waker has woken, and when that was last halved.
fn draw_wakees(
    k: &mut Kernel,
    this: CpuId,
    waker: TaskId,
    task: TaskId,
    r: &mut Random,
    line: &mut String,
) {
    let (flips, ts) = (r.below(40) as u32, 40 + r.below(300));
    let same = r.one_in(2);
    let last = if same { task } else { TaskId::IDLE };
    if waker.is_idle() {
        let wakees = &mut k.cpuidle.cpu_mut(this).wakees;
        (wakees.last_wakee, wakees.wakee_flips, wakees.wakee_flip_decay_ts) = (last, flips, ts);
    } else {
        let t = &mut k.sched.tasks[waker];
        (t.last_wakee, t.wakee_flips, t.wakee_flip_decay_ts) = (last, flips, ts);
    }
    let own = r.below(12) as u32;
    if waker != task {
        k.sched.tasks[task].wakee_flips = own;
    }
    write!(line, "{flips} {ts} {} {own} ", same as u8).unwrap();
}

/// A state, and where the task goes.
fn case(kernels: &mut [Kernel], r: &mut Random) -> String {
    let k = &mut kernels[r.below(5) as usize];
    let (task, other) = (TaskId(1), TaskId(2));
    let kind = r.of(&[WF_FORK, WF_FORK, WF_EXEC, WF_TTWU, WF_TTWU]);
    let this = r.cpu();
    // Who executes does so here; a child begins where its parent is.
    let prev = if kind == WF_TTWU { r.cpu() } else { this };
    let flags = kind | if kind == WF_TTWU && r.one_in(3) { WF_SYNC } else { 0 };
    k.cx.now = (100 + r.below(300)) * TICK;
    (k.cx.this_cpu, k.cx.debt) = (this, 0);
    // So that loads of groups are equal, or differ by just a percentage.
    let even = r.one_in(4).then(|| r.even_loads());
    // The lowest domains of most of these machines are pairs, their nodes have four.
    let block = r.of(&[2, 4]);
    draw_domains(k, even.is_some(), r);
    k.sched.rd.energy_aware = r.one_in(3);
    k.sched.rd.overutilized = r.one_in(2);
    // Without utilisation EAS leaves a task where it is, if it is asked.
    let eas = k.sched.rd.energy_aware && r.one_in(2);
    let top = k.sched.topology.domains_of(this).last();
    k.sched.topology.sd_asym_cpucapacity[this.index()] = top.filter(|_| eas);
    k.sched.topology.sd_llc_size[this.index()] = 1 + r.below(6) as u32;
    let allowed = if even.is_some() || r.one_in(2) { 255 } else { r.mask() };
    let counted = kind == WF_EXEC || !r.one_in(3);
    let two_numbers = k.cx.config.util_est == UtilEstForm::EnqueuedAndEwma;
    let ewma = if eas || !two_numbers { 0 } else { r.below(1100) as u32 };
    let avg = SchedAvg {
        load_avg: r.below(2000),
        util_avg: if eas { 0 } else { r.below(1100) },
        util_est: if eas { 0 } else { r.below(1100) as u32 },
        util_est_ewma: ewma,
        runnable_avg: r.below(1100),
        last_update_time: if counted { LAST_UPDATE } else { 0 },
        ..SchedAvg::default()
    };
    let idle_policy = r.one_in(4);
    let t = &mut k.sched.tasks[task];
    (t.cpu, t.cpus_mask) = (prev, mask_of(allowed));
    t.policy = if idle_policy { Policy::Idle } else { Policy::Normal };
    t.on_rq = if kind == WF_EXEC { OnRq::Queued } else { OnRq::No };
    k.sched.se[t.se].avg = avg;
    let other_load = r.below(2000);
    let se = k.sched.tasks[other].se;
    k.sched.se[se].avg = SchedAvg { load_avg: other_load, ..SchedAvg::default() };
    let exiting = r.one_in(8);
    k.sched.tasks[other].exiting = exiting;

    let mut line = format!(
        "{flags} {this} {prev} {} {} {} {} {} {allowed} {} {} {} {ewma} {} {} {} {other_load} {} ",
        k.cx.jiffies(),
        k.sched.rd.energy_aware as u8,
        k.sched.rd.overutilized as u8,
        eas as u8,
        k.sched.topology.sd_llc_size[this.index()],
        avg.load_avg,
        avg.util_avg,
        avg.util_est,
        avg.runnable_avg,
        avg.last_update_time,
        idle_policy as u8,
        exiting as u8,
    );
    write_domains(k, &mut line);
    let crowd = r.below(4);
    for cpu in k.cx.platform.device_tree.all_cpus().iter() {
        // Loads are compared where groups are overloaded.
        let tasks = match crowd {
            _ if even.is_some() => 2 + r.below(2),
            0 => r.below(2),
            1 => r.below(3),
            2 => 1 + r.below(3),
            _ => r.below(5),
        } as u32;
        let curr = match kind {
            WF_EXEC if cpu == this => task,
            WF_FORK if cpu == this => other,
            _ if r.one_in(3) => TaskId::IDLE,
            _ => other,
        };
        let load = even.map(|loads| loads[cpu.index() / block]);
        draw_cpu(k, cpu, curr, (tasks, load), r, &mut line);
    }
    let waker = k.sched.rq[this].curr;
    draw_wakees(k, this, waker, task, r, &mut line);
    k.cx.want_decisions = false;
    let chosen = k.select_task_rq_fair(task, prev, flags);
    let (flips, ts) = if waker.is_idle() {
        let wakees = &k.cpuidle.cpu(this).wakees;
        (wakees.wakee_flips, wakees.wakee_flip_decay_ts)
    } else {
        (k.sched.tasks[waker].wakee_flips, k.sched.tasks[waker].wakee_flip_decay_ts)
    };
    write!(line, "= {chosen} {flips} {ts}").unwrap();
    k.clear_facts();
    line
}

fn placements(form: fn(&mut Config), seed: u64) -> Box<dyn FnMut() -> String> {
    let mut kernels = kernels(form);
    let mut r = Random::new(1_414_213_562_373_095, seed);
    Box::new(move || case(&mut kernels, &mut r))
}

fn as_6_1(config: &mut Config) {
    balance_as_6_1(config);
    config.util_est = UtilEstForm::EnqueuedAndEwma;
}

fn as_6_18(config: &mut Config) {
    config.dst_group_stats = DstGroupStats::AllCpus;
    config.balance_delayed = BalanceDelayed::LoadOnly;
}

fn as_7_3(config: &mut Config) {
    balance_as_6_12_117(config);
    config.balance_delayed = BalanceDelayed::LoadOnly;
    config.group_is_overloaded = GroupIsOverloaded::ByOverutilization;
    config.sched_idle_cpus = SchedIdleCpus::ForOthers;
}

/// Declares the family of a form.
macro_rules! families {
    ($( $name:ident = $form:path; )*) => {
        $(
            #[allow(missing_docs, reason = "named after the kernel that the family is of")]
            pub const $name: &[Family] = &[
                Family { name: "", states: "placements", share: 1, start: |seed| placements($form, seed) },
            ];
        )*
    };
}

families! {
    LINUX_6_1 = as_6_1;
    LINUX_6_12 = balance_as_6_12_117;
    LINUX_6_18 = as_6_18;
    LINUX_7_3 = as_7_3;
}
