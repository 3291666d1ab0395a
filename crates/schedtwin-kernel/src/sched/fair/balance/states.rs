// SPDX-License-Identifier: GPL-2.0-or-later
//! Random states of load balancing, and the answers of our code.
//!
//! The states are drawn from a fixed seed: CPUs with tasks, loads and capacities, domains with flags of
//! all kinds. A *decision* is the busiest group and queue and the imbalance, or the target of a fork; a
//! *pass* is a whole pass with every queue afterwards. `sched/fair/states.rs` says what a line is.
//!
//! Families called `cache-...` have what `caches.rs` draws. Families called `threads-...` are of machines
//! whose cores have hardware threads; each CPU's threads and priority stand after the first number of a
//! line.

mod caches;
pub mod capacity;
pub mod nohz;

use super::*;
use crate::Activity;
use crate::config::{
    BalanceDelayed, Config, FindSrcRq, GroupIsOverloaded, GroupMisfit, MigrateIneligible,
    PickBusiestBigger, PreferSibling, SdShared,
};
use crate::sched::CfsRqId;
use crate::sched::TaskKind;
use crate::sched::fair::states::{
    Family, NR_CPUS, Random, balance_as_6_1, balance_as_6_12, balance_as_6_12_117, bits_of,
    draw_threads, insert_threads, mask_of,
};
use crate::sched::pelt::SchedAvg;
use crate::sched::topology::parts::{self, Part};
use crate::sched::topology::{
    GroupId, SD_ASYM_CPUCAPACITY, SD_ASYM_PACKING, SD_NUMA, SD_PREFER_SIBLING,
    SD_SHARE_CPUCAPACITY, SD_SHARE_LLC,
};
use schedtwin_types::Policy;
use std::fmt::Write;

/// The time of all decisions, ns; no signal is older, so none decays.
const NOW: Ns = 10_000_000;

impl Random {
    fn idle(&mut self) -> CpuIdleType {
        self.of(&[CpuIdleType::NotIdle, CpuIdleType::Idle, CpuIdleType::NewlyIdle])
    }
    /// Of a domain.
    fn flags(&mut self, smt: bool) -> u32 {
        let flags = [SD_ASYM_CPUCAPACITY, SD_SHARE_LLC, SD_NUMA];
        let flags = flags.into_iter().filter(|_| self.one_in(3)).sum();
        if !smt {
            return flags;
        }
        let of_threads = if self.one_in(4) { SD_SHARE_CPUCAPACITY } else { 0 };
        flags | of_threads | if self.one_in(2) { SD_ASYM_PACKING } else { 0 }
    }
    /// Of a group.
    fn group_flags(&mut self, smt: bool) -> u32 {
        if smt {
            return self.of(&[0, 0x1217, 0x1297, 0x1297]);
        }
        if self.one_in(3) { 0x1217 } else { 0 }
    }
}

/// One LLC; four of two; three of 1, 2 and 5; two of four. They balance as `balance` makes them.
fn kernels(balance: fn(&mut Config)) -> Vec<Kernel> {
    let llc = |count, llc| Part::of(count, 1024).llc(llc);
    let machines: [Vec<Part>; 4] = [
        vec![llc(8, 0)],
        vec![llc(2, 0), llc(2, 1), llc(2, 2), llc(2, 3)],
        vec![llc(1, 0), llc(2, 1), llc(5, 2)],
        vec![llc(4, 0), llc(4, 1)],
    ];
    let kernel = |parts: &Vec<Part>| {
        let mut kernel = parts::boot(parts, false);
        balance(&mut kernel.cx.config);
        kernel
    };
    machines.iter().map(kernel).collect()
}

/// 6.18 before 6.18.39.
fn balance_as_6_18(config: &mut Config) {
    config.balance_delayed = BalanceDelayed::LoadOnly;
    config.migrate_ineligible = MigrateIneligible::AfterFailure;
}

/// 7.3, as far as decisions and passes go.
fn balance_as_7_3(config: &mut Config) {
    balance_as_6_18(config);
    balance_as_6_12_117(config);
    config.group_is_overloaded = GroupIsOverloaded::ByOverutilization;
    config.group_misfit = GroupMisfit::Helped;
    config.find_src_rq = FindSrcRq::SmallerOrShared;
    config.sd_shared = SdShared::CachesAndCapacities;
}

/// Whether all groups but the destination's are to be full, with CPUs that may be bigger: only 6.18's cases have them
/// so often that the rule about bigger groups decides between two.
fn draw_full(k: &Kernel, r: &mut Random) -> bool {
    let among_equal = k.cx.config.pick_busiest_bigger == PickBusiestBigger::AmongEqualTypes;
    among_equal && knows_delayed(k) && r.one_in(6)
}

fn knows_delayed(k: &Kernel) -> bool {
    k.cx.config.balance_delayed == BalanceDelayed::LoadOnly
}

/// The same caches with cores of two threads, one of four, and cores with and without threads.
fn kernels_with_threads(balance: fn(&mut Config)) -> Vec<Kernel> {
    let core = |count, llc, core| Part::of(count, 1024).llc(llc).core(core);
    let machines: [Vec<Part>; 4] = [
        (0..4).map(|n| core(2, 0, n)).collect(),
        (0..4).map(|n| core(2, n / 2, n)).collect(),
        vec![core(4, 0, 0), core(2, 1, 1), core(2, 1, 2)],
        vec![
            core(2, 0, 0),
            core(1, 0, 1),
            core(1, 0, 2),
            core(2, 0, 3),
            core(1, 0, 4),
            core(1, 0, 5),
        ],
    ];
    let kernel = |parts: &Vec<Part>| {
        let mut kernel = parts::boot(parts, false);
        balance(&mut kernel.cx.config);
        kernel
    };
    machines.iter().map(kernel).collect()
}

/// 6.1 asks the domain below whether it prefers siblings: draws and writes that.
fn draw_child(k: &mut Kernel, sd: DomainId, r: &mut Random, line: &mut String) {
    if k.cx.config.prefer_sibling != PreferSibling::ChildDomain {
        return;
    }
    let prefers = r.one_in(2);
    let child = k.sched.topology[sd].child;
    if let Some(child) = child {
        let flags = k.sched.topology[child].flags & !SD_PREFER_SIBLING;
        k.sched.topology[child].flags = flags | if prefers { SD_PREFER_SIBLING } else { 0 };
    }
    write!(line, "{} ", (child.is_some() && prefers) as u8).unwrap();
}

/// 7.3 asks whether there are clusters: draws and writes that.
fn draw_cluster(k: &mut Kernel, r: &mut Random, line: &mut String) {
    if k.cx.config.find_src_rq == FindSrcRq::SmallerOrShared {
        k.sched.topology.cluster = r.one_in(2);
        write!(line, "{} ", k.sched.topology.cluster as u8).unwrap();
    }
}

/// The fair tasks of a CPU, and for 6.18 and 7.3 those that are not delayed.
fn counts(k: &Kernel, cpu: CpuId) -> String {
    let cfs = &k.sched.cfs[CfsRqId::root(cpu)];
    match knows_delayed(k) {
        true => format!("{} {}", cfs.h_nr_queued, cfs.h_nr_runnable),
        false => cfs.h_nr_queued.to_string(),
    }
}

/// Gives a CPU signals that fit its tasks, or do not.
fn draw_signals(k: &mut Kernel, cpu: CpuId, r: &mut Random) -> (u64, u64) {
    let root = CfsRqId::root(cpu);
    let h = k.sched.cfs[root].h_nr_queued as u64;
    let arch = if r.one_in(3) { 400 + r.below(625) } else { 1024 };
    let capacity = if r.one_in(3) { 1 + r.below(arch) } else { arch };
    let avg = &mut k.sched.cfs[root].avg;
    avg.util_avg = match r.below(3) {
        0 => r.below(1100),
        1 => r.below(300),
        _ => (h * 500).min(1024),
    };
    avg.runnable_avg = match r.below(3) {
        0 => r.below(3000),
        1 => avg.util_avg,
        _ => h * 1000,
    };
    avg.load_avg = match r.below(3) {
        0 => r.below(4000),
        1 => h * 1024,
        _ => r.below(200),
    };
    avg.util_est = 0;
    let rq = &mut k.sched.rq[cpu];
    rq.misfit_task_load = if h > 0 && r.one_in(8) { 1 + r.below(1024) } else { 0 };
    rq.arch_capacity = arch;
    rq.cpu_capacity = capacity;
    (arch, capacity)
}

/// The groups of a domain by CPU, as the cases list them.
fn groups_by_cpu(k: &Kernel, sd: DomainId) -> Vec<GroupId> {
    let mut groups: Vec<GroupId> = k.sched.topology.groups_of(sd).collect();
    groups.sort_by_key(|g| k.sched.topology[*g].first_cpu);
    groups
}

fn write_groups(k: &Kernel, groups: &[GroupId], line: &mut String) {
    write!(line, "{} ", groups.len()).unwrap();
    for g in groups {
        let group = &k.sched.topology[*g];
        let sgc = &k.sched.topology.capacities[group.sgc];
        let (first, weight, flags) = (group.first_cpu, group.group_weight, group.flags);
        let (capacity, min, max) = (sgc.capacity, sgc.min_capacity, sgc.max_capacity);
        let imbalance = sgc.imbalance as u8;
        write!(line, "{first} {weight} {flags:x} {capacity} {min} {max} {imbalance} ").unwrap();
    }
}

/// A state for the read-only decisions, and what they say.
fn decision_case(kernels: &mut [Kernel], r: &mut Random) -> String {
    let k = &mut kernels[r.below(4) as usize];
    let threads = draw_threads(k, r);
    let smt = k.sched.topology.smt;
    let dst = r.cpu();
    let all = CpuMask::first(NR_CPUS as usize);
    let sd = k.sched.topology.domains_of(dst).find(|sd| k.sched.topology[*sd].span == all);
    let sd = sd.expect("a domain spans the machine");
    let has_parent = r.one_in(2);
    let llc_sized = r.one_in(2);
    let domain = &mut k.sched.topology[sd];
    domain.flags = r.flags(smt);
    domain.imbalance_pct = r.of(&[110, 117, 117, 125]);
    domain.imb_numa_nr = r.below(6) as u32;
    domain.parent = has_parent.then_some(sd);
    k.sched.rd.energy_aware = r.one_in(3);
    k.sched.rd.overutilized = r.one_in(2);
    k.sched.rd.overloaded = false;
    k.sched.topology.sd_llc_size[dst.index()] = if llc_sized { NR_CPUS as u32 } else { 1 };
    if k.sched.sched_cache.is_none() {
        k.sched.topology.sd_llc_shared[dst.index()] = Some(0);
    }
    k.sched.topology.sd_balance_shared[dst.index()] = Some(0);
    k.sched.topology.shared[0].nr_idle_scan = u32::MAX;
    if k.cx.config.sd_shared == SdShared::CachesAndCapacities {
        k.sched.topology[sd].shared = llc_sized.then_some(0);
    }
    let mut env = LbEnv::new(sd, dst, r.idle());
    env.cpus = all;
    let excluded = r.cpu();
    if r.one_in(4) && excluded != dst {
        env.cpus.remove(excluded);
    }
    let groups = groups_by_cpu(k, sd);
    let even = r.one_in(6).then(|| r.even_loads());
    for g in &groups {
        k.sched.topology[*g].flags = r.group_flags(smt);
        let (weight, sgc) = (k.sched.topology[*g].group_weight as u64, k.sched.topology[*g].sgc);
        let sgc = &mut k.sched.topology.capacities[sgc];
        sgc.min_capacity = 200 + r.below(824);
        sgc.max_capacity = sgc.min_capacity + r.below(1025 - sgc.min_capacity);
        let mean = (sgc.min_capacity + sgc.max_capacity) / 2;
        sgc.capacity = weight * if even.is_some() || r.one_in(2) { 1024 } else { mean };
        sgc.imbalance = r.one_in(12);
    }
    let full = draw_full(k, r);
    if full {
        k.sched.topology[sd].flags |= SD_ASYM_CPUCAPACITY;
    }
    let own_group = k.sched.topology[k.sched.topology[sd].groups].span;
    let fork = r.one_in(2);
    let domain = &k.sched.topology[sd];
    let mut line = format!(
        "{} {:x} {} {} {} {NR_CPUS} {} {} {} {} {} {} ",
        fork as u8,
        domain.flags,
        domain.imbalance_pct,
        env.idle as u8,
        dst,
        k.sched.rd.energy_aware as u8,
        k.sched.rd.overutilized as u8,
        has_parent as u8,
        llc_sized as u8,
        domain.imb_numa_nr,
        bits_of(&env.cpus),
    );
    draw_child(k, sd, r, &mut line);
    draw_cluster(k, r, &mut line);
    write_groups(k, &groups, &mut line);
    // Loads are compared where groups are overloaded.
    let packed = even.is_some() && r.one_in(2);
    let crowd = if packed { 0 } else { r.below(4) };
    for cpu in all.iter() {
        let nr = match crowd {
            _ if full => !own_group.contains(cpu) as u64,
            _ if packed => 2 + r.below(2),
            0 => r.below(2),
            1 => r.below(3),
            2 => 1 + r.below(3),
            _ => r.below(5),
        } as u32;
        let h = if r.one_in(6) { nr.saturating_sub(1) } else { nr };
        let delayed = if knows_delayed(k) && r.one_in(3) { r.below(h as u64 + 1) } else { 0 };
        let cfs = &mut k.sched.cfs[CfsRqId::root(cpu)];
        (cfs.h_nr_queued, cfs.h_nr_delayed) = (h, delayed as u32);
        cfs.h_nr_runnable = h - cfs.h_nr_delayed;
        let (mut arch, mut capacity) = draw_signals(k, cpu, r);
        if let Some(loads) = even {
            (arch, capacity) = (1024, 1024);
            let llc = k.sched.topology.sd_llc_id[cpu.index()];
            let avg = &mut k.sched.cfs[CfsRqId::root(cpu)].avg;
            avg.load_avg = loads[llc.index()];
            if packed {
                avg.runnable_avg = h as u64 * 1000;
            }
        }
        if full {
            k.sched.cfs[CfsRqId::root(cpu)].avg.util_avg = 1024;
        }
        let busy = nr > 0 || r.one_in(5);
        let rq = &mut k.sched.rq[cpu];
        (rq.arch_capacity, rq.cpu_capacity) = (arch, capacity);
        rq.nr_running = nr;
        rq.curr = if busy { TaskId(1) } else { TaskId::IDLE };
        rq.idle_stamp = r.of(&[0, 5, 9]);
        let state = r.below(3) as i32 - 1;
        k.cx.platform.wires[cpu].activity =
            if state < 0 { Activity::IdleLoop } else { Activity::Idle { state: state as u8 } };
        k.sched.refresh_idle(cpu);
        let (rq, avg) = (&k.sched.rq[cpu], &k.sched.cfs[CfsRqId::root(cpu)].avg);
        let (load, util, runnable) = (avg.load_avg, avg.util_avg, avg.runnable_avg);
        let (misfit, stamp, h) = (rq.misfit_task_load, rq.idle_stamp, counts(k, cpu));
        write!(line, "{load} {util} {runnable} {nr} {h} {misfit} {capacity} {arch} ").unwrap();
        write!(line, "{} {state} {stamp} ", busy as u8).unwrap();
    }
    line += &caches::draw(k, sd, dst, r, true);
    let number = |g: GroupId| groups.iter().position(|x| *x == g).unwrap() as i32;
    if fork {
        let task = k.new_task(None, TaskKind::User);
        let (allowed, util) = (if r.one_in(2) { 255 } else { r.mask() }, r.below(1100));
        k.sched.tasks[task].cpus_mask = mask_of(allowed);
        let se = k.sched.tasks[task].se;
        k.sched.se[se].avg.util_avg = util;
        let group = k.find_dst_group(sd, task, dst);
        let cpu = group.map_or(-1, |g| k.sched.find_dst_group_cpu(g, task, dst, &k.cx).0 as i32);
        write!(line, "{allowed} {util} = {} {cpu}", group.map_or(-1, number)).unwrap();
    } else {
        let stats = k.sched.read_sd_lb_stats(&env, &k.cx);
        k.sched.commit_sd_lb_stats(&env, &stats, &mut k.cx);
        let found = k.sched.find_src_group(&env, &stats, &k.cx);
        env.imbalance = found.imbalance;
        env.migration_type = found.migration_type.unwrap_or(env.migration_type);
        let src = found.group.and_then(|g| k.sched.find_src_rq(&env, g, &k.cx));
        write!(
            line,
            "= {} {} {} {} {} {} {}",
            found.group.map_or(-1, number),
            found.imbalance,
            if found.group.is_some() { env.migration_type as i32 } else { -1 },
            src.map_or(-1, |c| c.0 as i32),
            if has_parent { -1 } else { k.sched.rd.overloaded as i32 },
            if k.sched.rd.energy_aware { k.sched.rd.overutilized as i32 } else { -1 },
            k.sched.topology.shared[0].nr_idle_scan as i32,
        )
        .unwrap();
        line += &caches::answer(k);
    }
    k.clear_facts();
    insert_threads(&mut line, &threads);
    line
}

/// The tasks of a CPU, most recently run first.
fn cfs_tasks(k: &Kernel, cpu: CpuId) -> Vec<TaskId> {
    std::iter::successors(k.sched.rq[cpu].cfs_tasks_head, |t| k.sched.tasks[*t].cfs_tasks_next)
        .collect()
}

/// The tasks of a CPU as a line lists them.
fn write_queue(k: &Kernel, cpu: CpuId, line: &mut String) {
    let queued = cfs_tasks(k, cpu);
    write!(line, "{} ", queued.len()).unwrap();
    for task in queued {
        let (t, se) = (&k.sched.tasks[task], &k.sched.se[k.sched.tasks[task].se]);
        let (load, util, idle) = (se.avg.load_avg, se.avg.util_avg, t.policy == Policy::Idle);
        let (start, mask) = (se.exec_start, bits_of(&t.cpus_mask));
        write!(line, "{task} {load} {util} {start} {mask} {} ", idle as u8).unwrap();
        if knows_delayed(k) {
            write!(line, "{} {} ", se.sched_delayed as u8, se.vruntime as i64).unwrap();
        }
        *line += &caches::of_task(k, task);
    }
}

/// Queues random tasks on all CPUs.
fn draw_tasks(k: &mut Kernel, r: &mut Random) {
    let crowd = if r.one_in(40) { 5 } else { r.below(5) };
    let pinning = r.below(3);
    for cpu in k.cx.platform.device_tree.all_cpus().iter() {
        k.cx.this_cpu = cpu;
        k.sched.update_rq_clock(cpu, &k.cx);
        let nr = match crowd {
            0 => r.below(2),
            1 => r.below(3),
            2 => 1 + r.below(3),
            3 if cpu.0 == 2 => 4,
            3 => r.below(2),
            4 => r.below(6),
            // More than a pass looks at.
            _ if cpu.0 == 3 => 40,
            _ => 0,
        };
        let mut queued = Vec::new();
        for _ in 0..nr {
            let task = caches::new_task(k, r);
            let se = k.sched.tasks[task].se;
            k.sched.tasks[task].cpu = cpu;
            k.sched.se[se].cfs_rq = CfsRqId::root(cpu);
            k.activate_task(cpu, task, 0);
            queued.push(task);
        }
        if nr > 0 && !r.one_in(4) {
            let curr = r.of(&queued);
            k.put_prev_set_next_task(cpu, TaskId::IDLE, curr);
            k.sched.rq[cpu].curr = curr;
        }
        for task in queued {
            let own = 1 << cpu.0;
            let mask = match pinning {
                0 => 255,
                1 => r.mask(),
                _ if r.one_in(2) => own,
                _ => r.mask(),
            };
            k.sched.tasks[task].cpus_mask = mask_of(if r.one_in(3) { mask | own } else { mask });
            if r.one_in(12) {
                k.sched.tasks[task].policy = Policy::Idle;
                k.sched.cfs[CfsRqId::root(cpu)].h_nr_idle += 1;
            }
            let se = k.sched.tasks[task].se;
            let entity = &mut k.sched.se[se];
            entity.avg.load_avg = r.below(1100);
            entity.avg.util_avg = r.below(1000);
            entity.avg.util_est = 0;
            entity.exec_start = k.cx.now - r.below(1_000_000);
            if knows_delayed(k) {
                draw_virtual_time(k, cpu, task, r);
            }
        }
    }
}

/// Draws the state that 6.18 and 7.3 also look at: where tasks stand in virtual time, and whether one waits
/// for a better lag only.
fn draw_virtual_time(k: &mut Kernel, cpu: CpuId, task: TaskId, r: &mut Random) {
    let (root, se) = (CfsRqId::root(cpu), k.sched.tasks[task].se);
    let runs = k.sched.rq[cpu].curr == task;
    if !runs {
        k.sched.timeline_remove(root, se);
    }
    k.sched.se[se].vruntime = k.sched.se[se].vruntime.wrapping_add(r.below(3_000_000));
    if runs {
        // No time has passed that would move it on.
        k.sched.se[se].exec_start = k.sched.rq[cpu].clock_task;
        return;
    }
    k.sched.timeline_insert(root, se);
    if r.one_in(5) {
        k.sched.set_delayed(se);
    }
}

/// A state, and everything that a pass changes in it.
fn pass_case(kernels: &[Kernel], r: &mut Random) -> String {
    let mut kernel = kernels[r.below(4) as usize].clone();
    let k = &mut kernel;
    k.cx.now = NOW;
    let threads = draw_threads(k, r);
    let smt = k.sched.topology.smt;
    draw_tasks(k, r);
    let all = k.cx.platform.device_tree.all_cpus();
    for cpu in all.iter() {
        let (arch, capacity) = draw_signals(k, cpu, r);
        // What refreshing the capacity will find.
        k.sched.rq[cpu].avg_rt.util_avg = arch - capacity;
        k.sched.rq[cpu].ttwu_pending = r.one_in(10);
        k.sched.rq[cpu].active_balance = r.one_in(10);
        k.sched.refresh_idle(cpu);
    }
    let dst = r.cpu();
    k.cx.this_cpu = dst;
    let chain: Vec<DomainId> = k.sched.topology.domains_of(dst).collect();
    let sd = r.of(&chain);
    let idle = r.idle();
    k.sched.rd.energy_aware = r.one_in(4);
    k.sched.rd.overutilized = r.one_in(2);
    let domain = &mut k.sched.topology[sd];
    domain.flags = r.flags(smt);
    domain.imbalance_pct = r.of(&[110, 117, 117, 125]);
    domain.imb_numa_nr = r.below(6) as u32;
    domain.nr_balance_failed = r.below(6) as u32;
    if k.cx.config.migrate_ineligible == MigrateIneligible::AfterFailure && r.one_in(2) {
        domain.nr_balance_failed = 0;
    }
    domain.cache_nice_tries = r.below(3) as u32;
    domain.balance_interval = r.of(&[8, 16, 64, 512]);
    let (span, parent) = (domain.span, domain.parent);
    for group in &k.sched.topology.groups {
        let capacities = group.span.iter().map(|c| k.sched.rq[c].cpu_capacity);
        let (sum, min, max) = capacities
            .fold((0, u64::MAX, 0), |(sum, min, max), c| (sum + c, min.min(c), max.max(c)));
        let sgc = &mut k.sched.topology.capacities[group.sgc];
        (sgc.capacity, sgc.min_capacity, sgc.max_capacity) = (sum, min, max);
    }
    let parent_imbalance = |k: &Kernel| {
        parent.map_or(-1, |p| {
            let group = k.sched.topology[p].groups;
            k.sched.topology.capacities[k.sched.topology[group].sgc].imbalance as i32
        })
    };
    if r.one_in(2) {
        k.sched.set_group_imbalance(sd, true);
    }
    let groups = groups_by_cpu(k, sd);
    for g in &groups {
        k.sched.topology[*g].flags = r.group_flags(smt);
        let sgc = k.sched.topology[*g].sgc;
        k.sched.topology.capacities[sgc].imbalance = r.one_in(12);
    }
    let domain = &k.sched.topology[sd];
    let mut line = format!(
        "0 {:x} {} {} {dst} {NR_CPUS} {} {} {} {} {} {} {} {} {} {} {} ",
        domain.flags,
        domain.imbalance_pct,
        idle as u8,
        k.sched.rd.energy_aware as u8,
        k.sched.rd.overutilized as u8,
        parent.is_some() as u8,
        domain.imb_numa_nr,
        bits_of(&span),
        domain.nr_balance_failed,
        domain.cache_nice_tries,
        domain.balance_interval,
        domain.min_interval,
        domain.max_interval,
        parent_imbalance(k).max(0),
    );
    draw_child(k, sd, r, &mut line);
    draw_cluster(k, r, &mut line);
    write_groups(k, &groups, &mut line);
    line += &caches::draw(k, sd, dst, r, false);
    caches::draw_preferences(k, r);
    for cpu in all.iter() {
        let (rq, cfs) = (&k.sched.rq[cpu], &k.sched.cfs[CfsRqId::root(cpu)]);
        let curr = if rq.curr.is_idle() { -1 } else { rq.curr.0 as i32 };
        let (load, util, runnable) = (cfs.avg.load_avg, cfs.avg.util_avg, cfs.avg.runnable_avg);
        let (nr, h, misfit) = (rq.nr_running, counts(k, cpu), rq.misfit_task_load);
        let (capacity, arch, clock) = (rq.cpu_capacity, rq.arch_capacity, rq.clock_task);
        let (pending, active) = (rq.ttwu_pending as u8, rq.active_balance as u8);
        write!(line, "{load} {util} {runnable} {nr} {h} {misfit} {capacity} {arch} ").unwrap();
        write!(line, "{curr} {pending} {clock} {active} ").unwrap();
        write_queue(k, cpu, &mut line);
    }
    let mut continue_balancing = true;
    let moved = k.sched_balance_rq(dst, sd, idle, &mut continue_balancing);
    let stopper = caches::stopper(k);
    let domain = &k.sched.topology[sd];
    write!(
        line,
        "= {moved} {} {} {} {} {stopper}",
        continue_balancing as u8,
        domain.nr_balance_failed,
        domain.balance_interval,
        parent_imbalance(k),
    )
    .unwrap();
    for cpu in all.iter() {
        let rq = &k.sched.rq[cpu];
        let push = if rq.active_balance { rq.push_cpu.0 as i32 } else { -1 };
        write!(line, " |{},{push}", rq.active_balance as u8).unwrap();
        for task in cfs_tasks(k, cpu) {
            write!(line, " {task}").unwrap();
        }
    }
    line += &caches::answer(k);
    insert_threads(&mut line, &threads);
    line
}

type Lines = Box<dyn FnMut() -> String>;

fn decisions(mut kernels: Vec<Kernel>, seed: u64) -> Lines {
    let mut r = Random::new(88_172_645_463_325_252, seed);
    Box::new(move || decision_case(&mut kernels, &mut r))
}

fn passes(mut kernels: Vec<Kernel>, seed: u64) -> Lines {
    for k in &mut kernels {
        // These write to what is compared, or count as running.
        k.cx.config.features.sis_util = false;
        for cpu in k.cx.platform.device_tree.all_cpus().iter() {
            k.sched.rq[cpu].fair_server = crate::sched::deadline::FairServer::new(0, 1_000_000_000);
        }
    }
    let mut r = Random::new(1_311_768_467_463_790_321, seed);
    Box::new(move || pass_case(&kernels, &mut r))
}

/// Declares the families of a form: decisions and passes on the machines named.
macro_rules! families {
    ($( $name:ident = [$( $kind:literal: $machines:expr ),* $(,)?]; )*) => {
        $(
            #[allow(missing_docs, reason = "named after the kernel that the families are of")]
            pub const $name: &[Family] = &[$(
                Family { name: $kind, states: "decisions", share: 1, start: |seed| decisions($machines, seed) },
                Family { name: $kind, states: "passes", share: 4, start: |seed| passes($machines, seed) },
            )*];
        )*
    };
}

families! {
    LINUX_6_1 = ["": kernels(balance_as_6_1), "threads-": kernels_with_threads(balance_as_6_1)];
    LINUX_6_12_95 = ["": kernels(balance_as_6_12)];
    LINUX_6_12 = [
        "": kernels(balance_as_6_12_117), "threads-": kernels_with_threads(balance_as_6_12_117),
    ];
    LINUX_6_18 = ["": kernels(balance_as_6_18), "threads-": kernels_with_threads(balance_as_6_18)];
    LINUX_7_3 = [
        "": kernels(balance_as_7_3), "threads-": kernels_with_threads(balance_as_7_3),
        "cache-": caches::kernels(false), "threads-cache-": caches::kernels(true),
    ];
}
