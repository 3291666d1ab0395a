// SPDX-License-Identifier: GPL-2.0-or-later
//! The additional values of cases on machines with several last-level caches: utilisation of
//! caches, preferences of tasks, and limits.

use super::*;
use crate::config::{LlcBalancing, SchedCache};
use crate::sched::fair::sched_cache::{CacheAffinity, LlcId};
use crate::sched::stop::StopWork;
use schedtwin_types::ProcessId;

const PROCESSES: u32 = 3;

/// Four caches, three, two of a size and two of different sizes, of cores with one hardware thread each, or with more.
pub(super) fn kernels(threads: bool) -> Vec<Kernel> {
    let llc = |count, llc| Part::of(count, 1024).llc(llc);
    let core = |count, llc, core| Part::of(count, 1024).llc(llc).core(core);
    let machines: [Vec<Part>; 4] = match threads {
        false => [
            vec![llc(2, 0), llc(2, 1), llc(2, 2), llc(2, 3)],
            vec![llc(1, 0), llc(2, 1), llc(5, 2)],
            vec![llc(4, 0), llc(4, 1)],
            vec![llc(6, 0), llc(2, 1)],
        ],
        true => [
            (0..4).map(|n| core(2, n / 2, n)).collect(),
            (0..4).map(|n| core(2, n, n)).collect(),
            vec![core(4, 0, 0), core(2, 1, 1), core(2, 1, 2)],
            vec![core(2, 0, 0), core(1, 0, 1), core(1, 0, 2), core(2, 1, 3), core(2, 1, 4)],
        ],
    };
    machines.iter().map(|parts| kernel(parts)).collect()
}

fn kernel(parts: &[Part]) -> Kernel {
    let mut kernel = parts::boot(parts, false);
    balance_as_7_3(&mut kernel.cx.config);
    let llc_balancing = LlcBalancing { aggr_tolerance: 1, ..LlcBalancing::default() };
    let config = Config { sched_cache: SchedCache::Llc, llc_balancing, ..Config::linux_6_12() };
    let mut cache =
        CacheAffinity::new(&config, &kernel.sched.topology).expect("there are several caches");
    // Those that have booted.
    kernel.sched.tasks.ids().for_each(|_| cache.fork(None, 0));
    kernel.sched.sched_cache = Some(Box::new(cache));
    kernel
}

/// A task; where caches matter, of one of a few processes.
pub(super) fn new_task(k: &mut Kernel, r: &mut Random) -> TaskId {
    match k.sched.sched_cache.is_some() {
        true => k.new_task_of(None, TaskKind::User, ProcessId(r.below(PROCESSES as u64) as u32)),
        false => k.new_task(None, TaskKind::User),
    }
}

fn shared_of(k: &Kernel, llc: usize) -> Option<usize> {
    let cache = k.sched.sched_cache.as_ref().expect("there are several caches");
    let cpu = cache.cpus.iter().position(|cpu| cpu.llc.0 as usize == llc).expect("it has CPUs");
    k.sched.topology.sd_llc_shared[cpu]
}

/// Draws all that is known of caches and processes for a pass over `sd` towards `dst`, and writes it. The queues' counts are drawn
/// where there are no tasks that could be counted.
pub(super) fn draw(
    k: &mut Kernel,
    sd: DomainId,
    dst: CpuId,
    r: &mut Random,
    counts: bool,
) -> String {
    let Some(mut cache) = k.sched.sched_cache.take() else { return String::new() };
    cache.limits.overaggr_pct = r.of(&[50, 50, 30, 100]) as u32;
    cache.limits.imb_pct = r.of(&[20, 20, 0, 60]) as u32;
    let nr_llcs = cache.cpus[0].llc_counts.len();
    let records = k.sched.topology[sd].child == k.sched.topology.sd_llc[dst.index()];
    let (overaggr, imb, smt) =
        (cache.limits.overaggr_pct, cache.limits.imb_pct, cache.smt_threads());
    let mut text = format!("1 {overaggr} {imb} {smt} {} {nr_llcs} ", records as u8);
    k.sched.sched_cache = Some(cache);
    for llc in 0..nr_llcs {
        let cpus = k.sched.sched_cache.as_ref().expect("put back").cpus.iter();
        let capacity = 1024 * cpus.filter(|cpu| cpu.llc.0 as usize == llc).count() as u64;
        let (util, capacity) =
            if r.one_in(12) { (0, 0) } else { (r.below(capacity * 9 / 8), capacity) };
        match shared_of(k, llc) {
            Some(shared) => {
                let shared = &mut k.sched.topology.shared[shared];
                (shared.util_avg, shared.capacity) = (util, capacity);
                write!(text, "{util} {capacity} ").unwrap();
            }
            None => text += "0 0 ",
        }
    }
    let cache = k.sched.sched_cache.as_mut().expect("put back");
    for (cpu, own) in cache.cpus.iter_mut().enumerate() {
        let shared = k.sched.topology.sd_llc_shared[cpu].is_some() as u8;
        write!(text, "{} {shared} {} ", own.llc.0, own.llc_size).unwrap();
        if counts {
            for count in &mut own.llc_counts {
                *count = if r.one_in(2) { 0 } else { r.below(4) as u32 };
                write!(text, "{count} ").unwrap();
            }
        }
    }
    for process in 0..PROCESSES {
        let exists =
            k.sched.tasks.ids().any(|task| cache.process_of(task) == Some(ProcessId(process)));
        if !exists || counts {
            text += "-1 0 0 ";
            continue;
        }
        let group = cache.group_mut(ProcessId(process));
        group.cpu = if r.one_in(4) { None } else { Some(r.cpu()) };
        group.nr_threads = 1 + r.below(3) as u32;
        group.nr_running_avg = r.below(6);
        let cpu = group.cpu.map_or(-1, |cpu| cpu.0 as i32);
        write!(text, "{cpu} {} {} ", group.nr_threads, group.nr_running_avg).unwrap();
    }
    text
}

/// Draws which caches the queued tasks prefer: mostly that of their process.
pub(super) fn draw_preferences(k: &mut Kernel, r: &mut Random) {
    for cpu in k.cx.platform.device_tree.all_cpus().iter() {
        for task in cfs_tasks(k, cpu) {
            let delayed = k.sched.se[k.sched.tasks[task].se].sched_delayed;
            let Some(cache) = &mut k.sched.sched_cache else { return };
            let process = cache.process_of(task).expect("all are of processes");
            let own = cache.group(process).cpu.map(|cpu| cache.cpus[cpu.index()].llc);
            let nr_llcs = cache.cpus[0].llc_counts.len() as u64;
            let any = r.below(nr_llcs + 1).checked_sub(1).map(|llc| LlcId(llc as u16));
            cache.prefer(cpu, task, if r.one_in(4) { any } else { own }, delayed);
        }
    }
}

/// Returns the additional fields of a queued task in a line.
pub(super) fn of_task(k: &Kernel, task: TaskId) -> String {
    let Some(cache) = &k.sched.sched_cache else { return String::new() };
    let process = cache.process_of(task).expect("all are of processes").0;
    let preferred = cache.preferred_llc(task).map_or(-1, |llc| llc.0 as i32);
    format!("{process} {preferred} ")
}

/// The end of an answer: what a pass has told of caches, and which processes still prefer one.
pub(super) fn answer(k: &Kernel) -> String {
    let Some(cache) = &k.sched.sched_cache else { return String::new() };
    let mut text = String::new();
    for llc in 0..cache.cpus[0].llc_counts.len() {
        let stats = shared_of(k, llc).map(|shared| &k.sched.topology.shared[shared]);
        let (util, capacity) = stats.map_or((0, 0), |shared| (shared.util_avg, shared.capacity));
        write!(text, " {util},{capacity}").unwrap();
    }
    for process in 0..PROCESSES {
        let mut tasks = k.sched.tasks.ids();
        let exists = tasks.any(|task| cache.process_of(task) == Some(ProcessId(process)));
        let cpu = exists.then(|| cache.group(ProcessId(process)).cpu).flatten();
        write!(text, " {}", cpu.map_or(-1, |cpu| cpu.0 as i32)).unwrap();
    }
    text
}

/// CPU number + 1 of the stopper that was asked, and 100 if it is to push to a cache; 0: none was.
pub(super) fn stopper(k: &Kernel) -> u16 {
    let asked = k.sched.rq.ids().find(|cpu| k.sched.rq[*cpu].stop_work.is_some());
    asked.map_or(0, |cpu| {
        let llc =
            k.sched.rq[cpu].stop_work.clone().pop() == Some(StopWork::ActiveBalance { llc: true });
        cpu.0 + 1 + 100 * llc as u16
    })
}
