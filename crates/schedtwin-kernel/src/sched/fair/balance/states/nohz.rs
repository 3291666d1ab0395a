// SPDX-License-Identifier: GPL-2.0-or-later
//! Random states of newidle balancing and of balancing for CPUs without a tick, and the answers of our code.
//!
//! *Newidle*: a CPU runs out of work: which domains it looks at, what they cost and how often they help
//! (`sched_balance_newidle`). *Idlers*: the kick at a busy tick, a CPU that stops its tick, the idle load balancer's
//! walk, a CPU's own passes. Whole passes are made where a domain is due, on a machine with all its domains.
//!
//! A pass costs 1 ns here, and active balancing is under way everywhere, so that no stopper begins.

use super::*;
use crate::config::{BalanceFair, FindNewIlb, NewidleRate};
use crate::device_tree::PathCosts;
use crate::sched::fair::states::write_domains;
use crate::sched::topology::SD_BALANCE_NEWIDLE;
use schedtwin_types::{IpiKind, NEVER};

/// The time of all of this, ns: there have been ticks before.
const LATE: Ns = 4_000_000_000;

/// The kinds of a line.
const NEWIDLE: u64 = 0;
const KICK: u64 = 1;
const ENTER_IDLE: u64 = 2;
const WALK: u64 = 3;
const RUN_IDLE: u64 = 4;
const OWN_PASSES: u64 = 5;

/// The domains and CPUs as a balancer finds them.
fn draw_machine(k: &mut Kernel, this: CpuId, r: &mut Random) {
    let all = k.cx.platform.device_tree.all_cpus();
    let jiffies = k.cx.jiffies();
    for cpu in all.iter() {
        let (arch, capacity) = draw_signals(k, cpu, r);
        k.sched.rq[cpu].avg_rt.util_avg = arch - capacity;
        let blocked = r.one_in(2);
        let rq = &mut k.sched.rq[cpu];
        if !blocked && rq.nr_running == 0 {
            rq.avg_rt.util_avg = 0;
            rq.cpu_capacity = arch;
            *k.sched.cfs[CfsRqId::root(cpu)].avg =
                SchedAvg { last_update_time: LATE, ..SchedAvg::default() };
        }
        // Nothing is older than now, so nothing decays.
        k.sched.cfs[CfsRqId::root(cpu)].avg.last_update_time = LATE;
        let rq = &mut k.sched.rq[cpu];
        rq.avg_rt.last_update_time = LATE;
        rq.ttwu_pending = r.one_in(12);
        rq.active_balance = true;
        rq.next_balance = jiffies + r.below(40) - 20;
        rq.avg_idle = r.of(&[0, 1, 3, 6, 600_000]);
        rq.idle_stamp = r.below(1000);
        rq.max_idle_balance_cost = r.of(&[0, 2, 500_000]);
        rq.nohz_flags = r.of(&[0, 0, 4, 4, 2, 8, 6, 12]);
        rq.idle_balance = r.one_in(4);
        rq.has_blocked_load = r.one_in(2);
        rq.last_blocked_load_update_tick = jiffies - r.below(2);
        rq.newidle_rnd = r.below(1 << 40);
        rq.nohz_tick_stopped = r.one_in(2);
        let stopped = rq.nohz_tick_stopped;
        k.sched.nohz.idle_cpus_mask.set(cpu, stopped);
        // Keeps the masks in step.
        k.sched.add_nr_running(cpu, 0);
        k.sched.refresh_idle(cpu);
    }
    let nohz = &mut k.sched.nohz;
    nohz.nr_cpus = nohz.idle_cpus_mask.weight();
    (nohz.has_blocked, nohz.needs_update) = (r.one_in(2), r.one_in(2));
    nohz.next_balance = jiffies + r.below(6) - 3;
    nohz.next_blocked = jiffies + r.below(6) - 3;
    k.sched.rd.energy_aware = r.one_in(4);
    (k.sched.rd.overutilized, k.sched.rd.overloaded) = (r.one_in(2), !r.one_in(4));
    k.sched.rd.max_cpu_capacity = 1024;
    k.cx.config.features.ni_random = r.one_in(2);
    k.sched.topology.asym_cpucapacity = r.one_in(2);
    // At most one domain is due: a pass changes averages, which the other side does not follow.
    let due = r.below(k.sched.topology.domains.len() as u64) as usize;
    for (index, domain) in k.sched.topology.domains.iter_mut().enumerate() {
        if r.one_in(5) {
            domain.flags ^= SD_BALANCE_NEWIDLE;
        }
        domain.nr_balance_failed = r.below(3) as u32;
        domain.balance_interval = r.of(&[1, 8, 16, 64]);
        let (before, after) = (r.below(30), r.below(30));
        domain.last_balance = if index == due { jiffies - before } else { jiffies + after };
        domain.max_newidle_lb_cost = r.of(&[0, 0, 1, 2, 300_000]);
        domain.newidle_call = r.of(&[0, 512, 1022, 1023]);
        domain.newidle_success = r.below(1200) as u32;
        domain.newidle_ratio = r.of(&[0, 256, 512, 1000, 1024]);
        domain.newidle_stamp = LATE - r.below(9_000_000);
        domain.last_decay_max_lb_cost = jiffies - r.of(&[0, 100, 250, 251, 400]);
        domain.nohz_idle = r.one_in(2);
    }
    for group in &k.sched.topology.groups {
        let capacities = group.span.iter().map(|c| k.sched.rq[c].cpu_capacity);
        let (sum, min, max) = capacities
            .fold((0, u64::MAX, 0), |(sum, min, max), c| (sum + c, min.min(c), max.max(c)));
        let sgc = &mut k.sched.topology.capacities[group.sgc];
        (sgc.capacity, sgc.min_capacity, sgc.max_capacity) = (sum, min, max);
        sgc.imbalance = false;
    }
    for shared in &mut k.sched.topology.shared {
        shared.nr_busy_cpus = 1 + r.below(3) as u32;
    }
    let chain: Vec<DomainId> = k.sched.topology.domains_of(this).collect();
    let t = &mut k.sched.topology;
    let packing = r.one_in(3).then(|| r.of(&chain));
    t.sd_asym_packing[this.index()] = packing;
    if let Some(sd) = packing {
        t[sd].flags |= SD_ASYM_PACKING;
    }
    t.sd_asym_cpucapacity[this.index()] = r.one_in(3).then(|| r.of(&chain));
}

fn write_machine(k: &Kernel, this: CpuId, line: &mut String) {
    let t = &k.sched.topology;
    let index = |id: Option<DomainId>| id.map_or(-1, |id| id.0 as i32);
    let (rd, nohz) = (&k.sched.rd, &k.sched.nohz);
    write!(
        line,
        "{} {} {} {} {} {} {} {} {} {} {} {} {} {} ",
        k.cx.jiffies(),
        LATE,
        rd.energy_aware as u8,
        rd.overutilized as u8,
        rd.overloaded as u8,
        k.cx.config.features.ni_random as u8,
        t.asym_cpucapacity as u8,
        t.cluster as u8,
        bits_of(&nohz.idle_cpus_mask),
        nohz.has_blocked as u8,
        nohz.needs_update as u8,
        nohz.next_balance,
        nohz.next_blocked,
        index(t.sd_asym_packing[this.index()]),
    )
    .unwrap();
    let llc = t.sd_llc[this.index()];
    let busy = t.sd_llc_shared[this.index()].map_or(-1, |s| t.shared[s].nr_busy_cpus as i32);
    write!(line, "{} {} {busy} ", index(t.sd_asym_cpucapacity[this.index()]), index(llc)).unwrap();
    write_domains(k, line);
    for d in &t.domains {
        let (cost, call, success) = (d.max_newidle_lb_cost, d.newidle_call, d.newidle_success);
        let (ratio, stamp, decay) = (d.newidle_ratio, d.newidle_stamp, d.last_decay_max_lb_cost);
        write!(line, "{cost} {call} {success} {ratio} {stamp} {decay} {} ", d.nohz_idle as u8)
            .unwrap();
    }
    for cpu in k.cx.platform.device_tree.all_cpus().iter() {
        let (rq, cfs) = (&k.sched.rq[cpu], &k.sched.cfs[CfsRqId::root(cpu)]);
        let curr = if rq.curr.is_idle() { -1 } else { rq.curr.0 as i32 };
        let (load, util, runnable) = (cfs.avg.load_avg, cfs.avg.util_avg, cfs.avg.runnable_avg);
        let blocked = load != 0 || util != 0 || rq.avg_rt.util_avg != 0;
        let (nr, h, misfit) = (rq.nr_running, counts(k, cpu), rq.misfit_task_load);
        let (capacity, arch, clock) = (rq.cpu_capacity, rq.arch_capacity, rq.clock_task);
        write!(line, "{load} {util} {runnable} {nr} {h} {misfit} {capacity} {arch} ").unwrap();
        write!(line, "{curr} {} {clock} {} ", rq.ttwu_pending as u8, rq.active_balance as u8)
            .unwrap();
        let (next, idle, stamp) = (rq.next_balance, rq.avg_idle, rq.idle_stamp);
        let (cost, flags, rnd) = (rq.max_idle_balance_cost, rq.nohz_flags, rq.newidle_rnd);
        let (tick, last) = (rq.nohz_tick_stopped as u8, rq.last_blocked_load_update_tick);
        let (kicked, has) = (rq.idle_balance as u8, rq.has_blocked_load as u8);
        write!(line, "{next} {idle} {stamp} {cost} {flags} {kicked} {tick} {has} {last} ").unwrap();
        write!(line, "{} {rnd} ", blocked as u8).unwrap();
        write_queue(k, cpu, line);
    }
}

fn answer(k: &Kernel, this: CpuId, line: &mut String) {
    let (t, nohz) = (&k.sched.topology, &k.sched.nohz);
    let busy = t.sd_llc_shared[this.index()].map_or(-1, |s| t.shared[s].nr_busy_cpus as i32);
    let (mask, blocked) = (bits_of(&nohz.idle_cpus_mask), nohz.has_blocked as u8);
    let (update, next) = (nohz.needs_update as u8, nohz.next_balance);
    write!(line, " {mask} {blocked} {update} {next} {} {busy}", nohz.next_blocked).unwrap();
    for d in &t.domains {
        let (cost, call, success) = (d.max_newidle_lb_cost, d.newidle_call, d.newidle_success);
        let (ratio, stamp, decay) = (d.newidle_ratio, d.newidle_stamp, d.last_decay_max_lb_cost);
        // Before 7.3 nobody looks at the stamp.
        let by_time = k.cx.config.newidle_rate == NewidleRate::SuccessAndTime;
        let stamp = if by_time { stamp } else { 0 };
        let (failed, interval, last) = (d.nr_balance_failed, d.balance_interval, d.last_balance);
        let idle = d.nohz_idle as u8;
        write!(line, " {cost},{call},{success},{ratio},{stamp},{decay},{failed},{interval},{last}")
            .unwrap();
        write!(line, ",{idle}").unwrap();
    }
    for cpu in k.cx.platform.device_tree.all_cpus().iter() {
        let rq = &k.sched.rq[cpu];
        let (next, stamp, cost) = (rq.next_balance, rq.idle_stamp, rq.max_idle_balance_cost);
        let ipi = k.cx.platform.wires[cpu].ipi_at[IpiKind::NohzKick as usize] != NEVER;
        let (flags, misfit, has) = (rq.nohz_flags, rq.misfit_task_load, rq.has_blocked_load as u8);
        write!(line, " |{next},{stamp},{cost},{flags},{misfit},{has},{}", ipi as u8).unwrap();
        for task in cfs_tasks(k, cpu) {
            write!(line, " {task}").unwrap();
        }
    }
}

/// A state, and everything that changes in it. `newidle`: a CPU runs out of work.
fn case(kernels: &[Kernel], newidle: bool, r: &mut Random) -> String {
    let mut kernel = kernels[r.below(kernels.len() as u64) as usize].clone();
    let k = &mut kernel;
    k.cx.now = LATE;
    let threads = draw_threads(k, r);
    draw_tasks(k, r);
    let has_tasks = |k: &Kernel, cpu: CpuId| k.sched.rq[cpu].nr_running != 0;
    let mut this = r.cpu();
    if newidle {
        // Its tasks have just left.
        let empty = |k: &Kernel| (0..NR_CPUS).map(CpuId).find(|cpu| !has_tasks(k, *cpu));
        match empty(k) {
            Some(cpu) => this = cpu,
            None => return case(kernels, newidle, r),
        }
    }
    k.cx.this_cpu = this;
    draw_machine(k, this, r);
    let mut kind = if newidle { NEWIDLE } else { 1 + r.below(5) };
    // The balancer is idle, or there is something for it to do.
    let resched = r.one_in(2);
    k.sched.rq[this].need_resched = resched;
    if kind == WALK && !resched && !k.sched.idle_cpu(this) {
        kind = KICK;
    }
    // Whether it balances while tasks of higher classes are runnable.
    let higher = k.cx.config.balance_fair == BalanceFair::NoFairTask;
    if kind == NEWIDLE && higher && r.one_in(8) {
        // A task of a higher class.
        k.sched.rq[this].nr_running += 1;
        k.sched.refresh_idle(this);
    }
    let flags = match kind {
        // Balancing comes with a refresh of averages.
        WALK => r.of(&[2, 3, 8, 10, 11]),
        _ => 0,
    };
    let mut line = format!("{kind} {this} {flags} {} ", resched as u8);
    write_machine(k, this, &mut line);
    k.cx.debt = 0;
    let mut pulled = 0;
    match kind {
        NEWIDLE => pulled = k.sched_balance_newidle(this),
        KICK => k.sched.nohz_balancer_kick(this, &mut k.cpuidle, &mut k.cx),
        ENTER_IDLE => k.sched.nohz_balance_enter_idle(this, &k.cx),
        WALK => k.walk_for_idle_cpus(this, flags as u32),
        RUN_IDLE => k.nohz_run_idle_balance(this),
        OWN_PASSES => {
            let idle =
                if k.sched.idle_cpu(this) { CpuIdleType::Idle } else { CpuIdleType::NotIdle };
            k.sched_balance_domains(this, idle);
        }
        _ => unreachable!("all kinds are above"),
    }
    write!(line, "= {pulled}").unwrap();
    answer(k, this, &mut line);
    k.clear_facts();
    insert_threads(&mut line, &threads);
    line
}

fn states(mut kernels: Vec<Kernel>, newidle: bool, seed: u64) -> Lines {
    for k in &mut kernels {
        k.cx.config.features.sis_util = false;
        k.cx.platform.device_tree.path_costs =
            PathCosts { constant_time: true, ..PathCosts::default() };
        for cpu in k.cx.platform.device_tree.all_cpus().iter() {
            k.sched.rq[cpu].fair_server = crate::sched::deadline::FairServer::new(0, 1_000_000_000);
        }
    }
    let mut r = Random::new(2_236_067_977_499_789, seed);
    Box::new(move || case(&kernels, newidle, &mut r))
}

/// Machines without hardware threads.
fn plain(form: fn(&mut Config)) -> Vec<Kernel> {
    let mut kernels = capacity::hierarchies(form);
    kernels.retain(|k| !k.sched.topology.smt);
    for k in &mut kernels {
        k.sched.topology.asym_priority.fill(0);
    }
    kernels
}

/// 7.3.
fn as_7_3(config: &mut Config) {
    balance_as_7_3(config);
    config.newidle_rate = NewidleRate::SuccessAndTime;
    config.find_new_ilb = FindNewIlb::IdleCore;
    config.balance_fair = BalanceFair::InPick;
}

/// Makes a kernel of 6.12.95 one of another form.
type Change = fn(&mut Config);

/// What families change in a kernel of 6.12.95, by the built-in kernel nearest to them.
pub const FORMS: &[(&str, Change)] = &[
    ("linux-6.1", balance_as_6_1),
    ("linux-6.12", balance_as_6_12_117),
    ("linux-6.18", balance_as_6_18),
    ("linux-7.3", as_7_3),
];

/// Declares the families of a form.
macro_rules! families {
    ($( $name:ident = $form:path; )*) => {
        $(
            #[allow(missing_docs, reason = "named after the kernel that the families are of")]
            pub const $name: &[Family] = &[
                Family { name: "", states: "newidle", share: 4, start: |seed| states(plain($form), true, seed) },
                Family { name: "", states: "idlers", share: 4, start: |seed| states(plain($form), false, seed) },
                Family {
                    name: "threads-", states: "newidle", share: 4,
                    start: |seed| states(kernels_with_threads($form), true, seed),
                },
                Family {
                    name: "threads-", states: "idlers", share: 4,
                    start: |seed| states(kernels_with_threads($form), false, seed),
                },
            ];
        )*
    };
}

families! {
    LINUX_6_1 = balance_as_6_1;
    LINUX_6_12 = balance_as_6_12_117;
    LINUX_6_18 = balance_as_6_18;
    LINUX_7_3 = as_7_3;
}
