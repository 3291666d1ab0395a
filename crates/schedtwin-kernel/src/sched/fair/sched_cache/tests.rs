// SPDX-License-Identifier: GPL-2.0-or-later
//! Running times, occupancy, scans and counts.

use super::*;
use crate::config::LlcBalancing;
use crate::sched::topology::parts::{Part, machine};

const PROCESS: ProcessId = ProcessId(0);
const MS: u64 = 1_000_000;

/// The configuration of 6.12 with this feature, in the limits of 7.3 but for what `change` sets.
fn config(change: impl FnOnce(&mut LlcBalancing)) -> Config {
    let mut limits = LlcBalancing {
        aggr_tolerance: 1,
        epoch_period: None,
        epoch_affinity_timeout: 5,
        overaggr_pct: 50,
        imb_pct: 20,
    };
    change(&mut limits);
    Config { sched_cache: SchedCache::Llc, llc_balancing: limits, ..Config::linux_6_12() }
}

fn cache_of(parts: &[Part], config: &Config) -> Option<CacheAffinity> {
    CacheAffinity::new(config, &Topology::build(&machine(parts), config))
}

/// Two caches of four CPUs and a process of so many threads, at 250 Hz: an epoch is two jiffies.
fn two_caches(threads: u32) -> CacheAffinity {
    let parts = [Part::of(4, 1024), Part::of(4, 1024).llc(1)];
    let mut cache = cache_of(&parts, &config(|_| ())).expect("there are two");
    (0..threads).for_each(|_| cache.fork(Some(PROCESS), 0));
    cache
}

#[test]
fn only_several_caches_that_are_shared_make_a_difference() {
    let of = |count, llc| Part::of(count, 1024).llc(llc);
    for (number, (parts, expected)) in [
        (vec![of(8, 0)], false),
        (vec![of(4, 0), of(4, 1)], true),
        (vec![of(7, 0), of(1, 1)], true),
        (vec![of(1, 0), of(1, 1), of(1, 2)], false),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(cache_of(&parts, &config(|_| ())).is_some(), expected, "{number}");
        assert!(cache_of(&parts, &Config::linux_6_12()).is_none());
    }
}

/// An epoch is a hundredth of a second, in whole jiffies and at least one.
#[test]
fn epochs_follow_the_tick() {
    let parts = [Part::of(4, 1024), Part::of(4, 1024).llc(1)];
    for (hz, given, expected) in
        [(100, None, 1), (250, None, 2), (1000, None, 10), (1000, Some(0), 1), (250, Some(7), 7)]
    {
        let config = Config { hz, ..config(|limits| limits.epoch_period = given) };
        assert_eq!(cache_of(&parts, &config).unwrap().period(), expected, "{hz} {given:?}");
    }
}

/// Threads of a process per cache, behaviour notes 12 §7.
#[test]
fn so_many_running_threads_fit() {
    let largest = |threads, size, tolerance| {
        (0..1000).take_while(|nr| nr_running_fits(*nr, threads, size, tolerance)).last()
    };
    assert_eq!(largest(1, 8, 1), Some(6));
    assert_eq!(largest(2, 16, 1), Some(6));
    assert_eq!(largest(2, 32, 1), Some(12));
    assert_eq!(largest(1, 8, 2), Some(12));
    assert_eq!(largest(1, 8, 0), None);
    assert_eq!(largest(1, 8, 100), Some(999));
}

/// Running time counts half after an epoch: 8 ms in epoch 0, 4 ms in epoch 1.
#[test]
fn running_time_is_halved_each_epoch() {
    let mut cache = two_caches(2);
    let cpu = CpuId(0);
    cache.account_mm_sched(cpu, PROCESS, 8 * MS, 0);
    assert_eq!(cache.cpus[0].time, CacheTime { runtime: 8 * MS, epoch: 0 });
    // The first epoch begins with the first jiffy after boot, and every second one is the next.
    cache.account_mm_sched(cpu, PROCESS, 4 * MS, 1);
    assert_eq!(cache.cpus[0].time, CacheTime { runtime: 8 * MS, epoch: 1 });
    cache.account_mm_sched(cpu, PROCESS, 0, 2);
    assert_eq!(cache.cpus[0].time.epoch, 1);
    cache.account_mm_sched(cpu, PROCESS, 0, 3);
    assert_eq!(cache.cpus[0].time, CacheTime { runtime: 4 * MS, epoch: 2 });
    assert_eq!(cache.group(PROCESS).times[0], cache.cpus[0].time);
    // Long after.
    cache.account_mm_sched(cpu, PROCESS, 1, 1000);
    assert_eq!(cache.cpus[0].time, CacheTime { runtime: 1, epoch: 500 });
}

/// A third of a CPU's time is a third of 2^20, truncated.
#[test]
fn occupancy_is_a_part_of_the_cpus_running_time() {
    let mut cache = two_caches(2);
    let other = ProcessId(1);
    cache.fork(Some(other), 0);
    cache.account_mm_sched(CpuId(1), PROCESS, MS, 0);
    cache.account_mm_sched(CpuId(1), other, 2 * MS, 0);
    assert_eq!(cache.fraction_mm_sched(CpuId(1), PROCESS, 0), (1 << 20) * MS / (3 * MS + 1));
    assert_eq!(cache.fraction_mm_sched(CpuId(1), other, 0), 699_050);
    assert_eq!(cache.fraction_mm_sched(CpuId(2), PROCESS, 0), 0);
}

/// Runs the process on CPUs for so many ms each, then scans.
fn scan(cache: &mut CacheAffinity, jiffies: u64, runs: &[(u16, u64)]) -> Option<u16> {
    for (cpu, ms) in runs {
        cache.account_mm_sched(CpuId(*cpu), PROCESS, ms * MS, jiffies);
    }
    let epoch = cache.cpus[runs[0].0 as usize].time.epoch;
    cache.group_mut(PROCESS).epoch = epoch;
    let on: Vec<u16> = runs.iter().map(|run| run.0).collect();
    let first = CpuId(runs[0].0);
    cache.task_cache_work(first, PROCESS, jiffies, |_, cpu| on.contains(&cpu.0));
    cache.group(PROCESS).cpu.map(|cpu| cpu.0)
}

/// Another cache is preferred from more than twice the occupancy.
#[test]
fn the_preferred_cache_changes_at_twice_the_occupancy() {
    let mut cache = two_caches(3);
    assert_eq!(scan(&mut cache, 0, &[(2, 8)]), Some(2));
    // 1 CPU there, 2 here: exactly twice is not more. What ran alone on its CPU occupies all of it however old it is.
    assert_eq!(scan(&mut cache, 3, &[(4, 8), (5, 8)]), Some(2));
    // Another process takes CPU 2.
    cache.fork(Some(ProcessId(1)), 0);
    cache.account_mm_sched(CpuId(2), ProcessId(1), 8 * MS, 6);
    assert_eq!(scan(&mut cache, 6, &[(4, 8), (5, 8)]), Some(4));
    // No scan before the next epoch.
    assert_eq!(cache.group(PROCESS).next_scan, 8);
    let read = cache.task_cache_work(CpuId(4), PROCESS, 7, |_, _| true);
    assert_eq!(read, 0);
}

/// One thread is never gathered, and a process that runs on too many CPUs no more.
#[test]
fn small_and_large_processes_prefer_nothing() {
    let mut single = two_caches(1);
    assert_eq!(scan(&mut single, 0, &[(2, 8)]), None);
    let mut many = two_caches(8);
    let everywhere: Vec<(u16, u64)> = (0..8).map(|cpu| (cpu, 4)).collect();
    // The average rises by halves: 4, 6; from 4 on (four fifths of four CPUs are 3) the process is too large.
    assert_eq!(scan(&mut many, 0, &everywhere), Some(0));
    assert_eq!(many.group(PROCESS).nr_running_avg, 4);
    assert_eq!(scan(&mut many, 3, &everywhere), None);
    // Nobody scans any more, so that stays.
    assert_eq!(many.group(PROCESS).nr_running_avg, 4);
    let mut three = two_caches(2);
    scan(&mut three, 0, &[(2, 8)]);
    three.exit(TaskId(1));
    assert_eq!(three.account_mm_sched(CpuId(2), PROCESS, 1, 0), None);
}

/// The average follows in steps that are truncated toward it.
#[test]
fn how_many_run_is_averaged() {
    for (llc_size, expected) in [(4, [5, 7, 8, 9]), (16, [2, 4, 5, 6]), (64, [1, 2, 3, 3])] {
        let mut avg = 0;
        let all = expected.map(|_| {
            update_avg_scale(&mut avg, 10, llc_size);
            avg
        });
        assert_eq!(all, expected, "{llc_size}");
    }
    let mut avg = 10;
    update_avg_scale(&mut avg, 1, 4);
    assert_eq!(avg, 6);
}

/// After five epochs without a scan nothing is preferred.
#[test]
fn a_preference_wears_out() {
    let mut cache = two_caches(2);
    scan(&mut cache, 0, &[(2, 8)]);
    let prefers = |cache: &mut CacheAffinity, jiffies| {
        cache.account_mm_sched(CpuId(2), PROCESS, 1, jiffies).map(|llc| llc.0)
    };
    // Epoch 5, then 6.
    assert_eq!(prefers(&mut cache, 10), Some(0));
    assert_eq!(prefers(&mut cache, 11), None);
}

/// The first tick in a new epoch queues a scan, once for all threads.
#[test]
fn one_thread_an_epoch_scans() {
    let mut cache = two_caches(2);
    let queued =
        |cache: &CacheAffinity| [0, 1].map(|task| cache.scan_of(TaskId(task)) == Scan::Queued);
    cache.task_tick_cache(CpuId(0), TaskId(0));
    assert_eq!(queued(&cache), [false, false]);
    cache.account_mm_sched(CpuId(0), PROCESS, 1, 1);
    cache.task_tick_cache(CpuId(0), TaskId(0));
    cache.task_tick_cache(CpuId(0), TaskId(1));
    assert_eq!(queued(&cache), [true, false]);
    // A CPU that has not run anything since is still in an older epoch.
    cache.task_tick_cache(CpuId(1), TaskId(1));
    assert_eq!(queued(&cache), [true, false]);
}

/// Counts by preference: of the queue, and of those that are runnable and at home.
#[test]
fn queues_count_by_preference() {
    let mut cache = two_caches(2);
    let (home, away, task) = (CpuId(1), CpuId(5), TaskId(0));
    let counts = |cache: &CacheAffinity, cpu: CpuId| {
        let cpu = &cache.cpus[cpu.index()];
        (cpu.llc_counts.clone(), cpu.nr_pref_llc_running)
    };
    cache.account_llc_enqueue(home, task, false);
    assert_eq!(counts(&cache, home), (vec![0, 0], 0));
    cache.prefer(home, task, Some(LlcId(0)), false);
    assert_eq!(counts(&cache, home), (vec![1, 0], 1));
    cache.delayed(home, task, true);
    assert_eq!(counts(&cache, home), (vec![1, 0], 0));
    cache.account_llc_dequeue(home, task, true);
    assert_eq!(counts(&cache, home), (vec![0, 0], 0));
    cache.account_llc_enqueue(away, task, false);
    assert_eq!(counts(&cache, away), (vec![1, 0], 0));
    cache.prefer(away, task, None, false);
    assert_eq!(counts(&cache, away), (vec![0, 0], 0));
}
