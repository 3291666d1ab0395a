// SPDX-License-Identifier: GPL-2.0-or-later
//! Random states of wakeups, and the answers of our code: `wake_affine`, and `select_idle_sibling`.
//!
//! A line has the chosen CPU, the recently used one, and the values of SIS_PROP: idle time spent and scan
//! cost learnt. `sched/fair/states.rs` says what a line is.

use super::*;
use crate::config::{
    CapacityPressure, Config, IdleCoreUnseen, SchedIdleCpus, SdShared, SelectIdleCapacity,
    SelectIdleCluster, Uclamp,
};
use crate::sched::CfsRqId;
use crate::sched::demand::conformance::DemandSteps;
use crate::sched::demand::uclamp::conformance::ClampSteps;
use crate::sched::fair::states::{
    Family, Random, balance_as_6_1, balance_as_6_12, bits_of, draw_threads, has_idle_cores,
    insert_threads, mask_of,
};
use crate::sched::topology::parts::{self, Part, machine};
use crate::sched::topology::{SD_CLUSTER, Topology};
use schedtwin_types::{Ns, Policy};
use std::fmt::Write;

const TICK: Ns = 4_000_000;

/// One LLC; four of two; three of 1, 2 and 5; two of four; and one LLC with clusters of 2, 2 and 4.
fn plain_machines() -> Vec<Vec<Part>> {
    let llc = |count, llc| Part::of(count, 1024).llc(llc);
    let cluster = |count, cluster| Part::of(count, 1024).cluster(cluster);
    vec![
        vec![llc(8, 0)],
        vec![llc(2, 0), llc(2, 1), llc(2, 2), llc(2, 3)],
        vec![llc(1, 0), llc(2, 1), llc(5, 2)],
        vec![llc(4, 0), llc(4, 1)],
        vec![cluster(2, 0), cluster(2, 1), cluster(4, 2)],
    ]
}

/// Cores of two threads in one LLC; in two; of four and two in two; cores with and without threads; and clusters of two
/// cores.
fn machines_with_threads() -> Vec<Vec<Part>> {
    let core = |count, llc, core| Part::of(count, 1024).llc(llc).core(core);
    vec![
        (0..4).map(|n| core(2, 0, n)).collect(),
        (0..4).map(|n| core(2, n / 2, n)).collect(),
        vec![core(4, 0, 0), core(2, 1, 1), core(2, 1, 2)],
        vec![core(2, 0, 0), core(1, 0, 1), core(1, 0, 2), core(2, 0, 3), core(2, 0, 4)],
        (0..4).map(|n| core(2, 0, n).cluster(n / 2)).collect(),
    ]
}

fn kernels(machines: &[Vec<Part>], balance: fn(&mut Config)) -> Vec<Kernel> {
    let kernel = |parts: &Vec<Part>| {
        let mut kernel = parts::boot(parts, false);
        kernel.cx.config.uclamp = Uclamp::KeyOff;
        balance(&mut kernel.cx.config);
        kernel.sched.set_capacity_pressure(&kernel.cx.config);
        let config = Config { sched_cluster: true, ..(*kernel.cx.config).clone() };
        kernel.sched.topology = Topology::build(&machine(parts), &config);
        if config.sd_shared == SdShared::CachesAndCapacities {
            let own = kernel.sched.topology.shared[0].clone();
            kernel.sched.topology.shared.push(own);
        }
        kernel
    };
    machines.iter().map(kernel).collect()
}

/// 7.3: whether the domain with all capacities, which is the topmost here, has an object of its own.
fn draw_shared_of_capacities(k: &mut Kernel, r: &mut Random) {
    let own = k.sched.topology.shared.len() - 1;
    k.sched.topology.shared[own].nr_idle_scan = r.below(9) as u32;
    let claimed = r.one_in(2).then_some(own);
    for cpu in k.cx.platform.device_tree.all_cpus().iter() {
        let llc = k.sched.topology.sd_llc_shared[cpu.index()];
        let top = k.sched.topology.domains_of(cpu).last().expect("all CPUs have a domain");
        if Some(top) != k.sched.topology.sd_llc[cpu.index()] {
            k.sched.topology[top].shared = claimed;
        }
        k.sched.topology.sd_balance_shared[cpu.index()] = k.sched.topology[top].shared.or(llc);
    }
}

/// A state of the machine, the waker and the wakee, and where the wakee goes.
fn case(kernels: &mut [Kernel], r: &mut Random) -> String {
    let k = &mut kernels[r.below(5) as usize];
    let older = k.cx.config.select_idle_cluster == SelectIdleCluster::WholeLlc;
    let newer = k.cx.config.select_idle_capacity == SelectIdleCapacity::SisUtil;
    if newer {
        draw_shared_of_capacities(k, r);
    }
    let threads = draw_threads(k, r);
    let (this, prev, recent) = (r.cpu(), r.cpu(), r.cpu());
    let sync = r.one_in(3);
    k.cx.now = (100 + r.below(20)) * TICK;
    (k.cx.this_cpu, k.cx.debt) = (this, 0);
    k.cx.config.features.sis_util = r.one_in(2);
    k.cx.config.features.sis_prop = older && r.one_in(2);
    let all = k.cx.platform.device_tree.all_cpus();
    k.sched.topology.asym_cpucapacity = r.one_in(3);
    let asym_sd = r.one_in(2).then(|| k.sched.topology.domains_of(this).last()).flatten();
    k.sched.topology.sd_asym_cpucapacity.fill(asym_sd);
    let asym_span = asym_sd.map_or(0, |sd| bits_of(&k.sched.topology[sd].span));
    let sd = k.sched.topology.base[this.index()].expect("all CPUs have a domain");
    k.sched.topology[sd].imbalance_pct = r.of(&[110, 117, 125]);
    k.cx.platform.device_tree.path_costs.select_per_cpu = r.of(&[0, 50, 700]);
    let rq = &mut k.sched.rq[this];
    rq.wake_stamp = 90 + r.below(40);
    rq.wake_avg_idle = r.of(&[0, 300, 5_000, 100_000, 900_000]);
    let (stamp, avg_idle) = (rq.wake_stamp, rq.wake_avg_idle);
    let mut scan_cost = 0;
    if let Some(llc) = k.sched.topology.sd_llc[this.index()] {
        scan_cost = r.of(&[0, 90, 2_000, 30_000]);
        k.sched.topology[llc].avg_scan_cost = scan_cost;
    }
    let task = TaskId(1);
    let current = TaskId(2);
    let idle_policy = newer && r.one_in(4);
    k.sched.tasks[task].policy = if idle_policy { Policy::Idle } else { Policy::Normal };
    let allowed = if r.one_in(2) { 255 } else { r.mask() };
    k.sched.tasks[task].cpus_mask = mask_of(allowed);
    k.sched.tasks[task].recent_used_cpu = recent;
    let clamped = r.one_in(2);
    DemandSteps(k).turn_uclamp_key(clamped);
    k.sched.tasks[task].uclamp_req = r.uclamp_request();
    let clamps = ClampSteps(k).task(task).effective;
    // So that loads are equal in some states.
    let unloaded = r.one_in(6);
    let (util, load, current_load) = (r.below(1100), r.below(2048), r.below(2048));
    let load = if unloaded { 0 } else { load };
    for (task, util, load) in [(task, util, load), (current, 0, current_load)] {
        let se = k.sched.tasks[task].se;
        k.sched.se[se].avg =
            crate::sched::pelt::SchedAvg { util_avg: util, load_avg: load, ..Default::default() };
    }
    let mut line = format!(
        "{} {this} {prev} {recent} {} {allowed} {util} {load} {current_load} {} {} {} {} {asym_span} {} {} {} {} \
         {stamp} {avg_idle} {scan_cost} {} {} {} ",
        idle_policy as u8,
        sync as u8,
        clamped as u8,
        clamps.min,
        clamps.max,
        k.sched.topology.asym_cpucapacity as u8,
        k.sched.topology[sd].imbalance_pct,
        k.cx.config.features.sis_util as u8,
        k.cx.config.features.sis_prop as u8,
        k.cx.jiffies(),
        k.cx.platform.device_tree.path_costs.select_per_cpu,
        k.sched.topology.cluster as u8,
        all.weight(),
    );
    let crowd = 1 + r.below(8);
    for cpu in all.iter() {
        // Idle, SCHED_IDLE only, or busy.
        let state = if r.one_in(crowd) { r.below(3) } else { 2 };
        let nr = if state == 0 { 0 } else { 1 + r.below(2) as u32 };
        let arch = if r.one_in(2) { 1024 } else { 200 + r.below(800) };
        let rq = &mut k.sched.rq[cpu];
        rq.arch_capacity = arch;
        rq.cpu_capacity = arch - r.below(100);
        rq.avg_hw.load_avg = if r.one_in(2) { 0 } else { r.below(arch) };
        let pressure = if r.one_in(2) { 0 } else { r.below(arch) };
        rq.curr = if state == 0 { TaskId::IDLE } else { current };
        rq.nr_running = nr;
        let root = CfsRqId::root(cpu);
        let cfs = &mut k.sched.cfs[root];
        (cfs.h_nr_queued, cfs.h_nr_runnable) = (nr, nr);
        cfs.h_nr_idle = if state == 1 { nr } else { 0 };
        cfs.avg.load_avg = match unloaded {
            true => r.of(&[0, 0, 500]),
            // All load of the waker's CPU may be the waker's.
            false if cpu == this && r.one_in(4) => current_load,
            false => r.below(3000),
        };
        k.sched.set_cpufreq_pressure(cpu, pressure);
        // Keeps the masks in step.
        k.sched.add_nr_running(cpu, 0);
        if let Some(shared) = k.sched.topology.sd_llc_shared[cpu.index()]
            && k.sched.topology.sd_llc_id[cpu.index()] == cpu
        {
            k.sched.topology.shared[shared].nr_idle_scan = r.below(9) as u32;
        }
        let t = &k.sched.topology;
        let span = t.sd_llc[cpu.index()].map_or(0, |sd| bits_of(&t[sd].span));
        let scan = t.sd_llc_shared[cpu.index()].map_or(0, |shared| t.shared[shared].nr_idle_scan);
        let group = t.sd_llc[cpu.index()].map(|sd| &t[t[sd].groups]);
        let cluster = group.filter(|group| group.flags & SD_CLUSTER != 0);
        let cluster = cluster.map_or(0, |group| bits_of(&group.span));
        let (llc, share) = (t.sd_llc_id[cpu.index()], t.sd_share_id[cpu.index()]);
        let (rq, load) = (&k.sched.rq[cpu], k.sched.cfs[root].avg.load_avg);
        let (capacity, arch, hw) = (rq.cpu_capacity, rq.arch_capacity, rq.avg_hw.load_avg);
        write!(
            line,
            "{state} {nr} {load} {capacity} {arch} {hw} {pressure} {span} {cluster} {llc} {share} {scan} "
        )
        .unwrap();
    }
    if newer {
        let shared = asym_sd.and_then(|sd| k.sched.topology[sd].shared);
        let scan = shared.map_or(-1, |shared| k.sched.topology.shared[shared].nr_idle_scan as i32);
        write!(line, "{scan} ").unwrap();
    }
    let target = match this == prev {
        true => prev,
        false => {
            k.sched
                .wake_affine(sd, task, this, prev, sync, &mut PlacementEffects::default(), &k.cx)
                .0
        }
    };
    let mut effects = PlacementEffects::default();
    let (chosen, _) = k.select_idle_sibling(task, prev, target, &mut effects, &mut ());
    k.sched.commit_placement_effects(task, prev, effects, &mut k.cx);
    write!(line, "= {target} {chosen} {}", k.sched.tasks[task].recent_used_cpu).unwrap();
    if !newer {
        let rq = &k.sched.rq[this];
        let cost = k.sched.topology.sd_llc[this.index()]
            .map_or(0, |sd| k.sched.topology[sd].avg_scan_cost);
        write!(line, " {} {} {cost}", rq.wake_avg_idle, rq.wake_stamp).unwrap();
    }
    if k.sched.topology.smt {
        write!(line, " {}", has_idle_cores(k, target) as u8).unwrap();
    }
    k.clear_facts();
    insert_threads(&mut line, &threads);
    line
}

fn wakeups(
    machines: &[Vec<Part>],
    balance: fn(&mut Config),
    seed: u64,
) -> Box<dyn FnMut() -> String> {
    let mut kernels = kernels(machines, balance);
    let mut r = Random::new(3_141_592_653_589_793, seed);
    Box::new(move || case(&mut kernels, &mut r))
}

fn wake_as_6_1(config: &mut Config) {
    balance_as_6_1(config);
    config.capacity_pressure = CapacityPressure::Thermal;
}

/// Makes wakeups of a kernel of 6.12.95 those of 7.3.4, where the topmost domain may claim an object of its own.
fn wake_as_7_3(config: &mut Config) {
    config.select_idle_capacity = SelectIdleCapacity::SisUtil;
    config.sched_idle_cpus = SchedIdleCpus::ForOthers;
    config.sd_shared = SdShared::CachesAndCapacities;
    config.idle_core_unseen = IdleCoreUnseen::Kept;
}

/// Declares the families of a form: machines without and with hardware threads.
macro_rules! families {
    ($( $name:ident = $balance:path; )*) => {
        $(
            #[allow(missing_docs, reason = "named after the kernel that the families are of")]
            pub const $name: &[Family] = &[
                Family {
                    name: "", states: "wakeups", share: 1, start: |seed| wakeups(&plain_machines(), $balance, seed),
                },
                Family {
                    name: "threads-", states: "wakeups", share: 1,
                    start: |seed| wakeups(&machines_with_threads(), $balance, seed),
                },
            ];
        )*
    };
}

families! {
    LINUX_6_1 = wake_as_6_1;
    LINUX_6_12 = balance_as_6_12;
    LINUX_7_3 = wake_as_7_3;
}
