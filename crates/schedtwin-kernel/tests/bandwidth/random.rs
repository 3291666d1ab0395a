// SPDX-License-Identifier: GPL-2.0-or-later
//! Random groups with random limits and random tasks: what must hold of `cpu.max` whatever happens.
//!
//! The harness recomputes all sums after each event: that a throttled group's tasks count nowhere above is checked there.
//! Here samples are taken beside the kernel's own books: how long tasks ran, and which queues were throttled when.

use super::harness::{Board, MS, device_tree};
use super::{by_task, configs};
use schedtwin_types::rng::Rng;
use schedtwin_types::*;

/// Between two samples.
const STEP: Ns = 250_000;
/// What a CPU may draw at once (`sched_cfs_bandwidth_slice_us`), and by how much a tick is late.
const SLICE: Ns = 5 * MS;
const TICK: Ns = 4 * MS;

/// A group: the one above (0: the root), and its limit.
struct Group {
    above: u32,
    period: Ns,
    quota: Option<Ns>,
    burst: Ns,
}

fn groups(random: &mut Rng) -> Vec<Group> {
    let count = 1 + random.below(4) as u32;
    let group = |number: u32| {
        let period = (10 + random.below(90)) * MS;
        let quota =
            (random.below(4) != 0).then(|| (period * (5 + random.below(150)) / 100).max(MS));
        let burst = quota.filter(|_| random.below(3) == 0).map_or(0, |quota| quota / 2);
        Group { above: random.below(u64::from(number)) as u32, period, quota, burst }
    };
    (1..=count).map(group).collect()
}

/// Tasks by group: hogs, sleepers, pinned ones.
fn scenario(random: &mut Rng, nr_groups: u64, nr_cpus: u64) -> (String, Vec<u32>) {
    let (mut lines, mut group_of) = (String::new(), Vec::new());
    for task in 0..2 + random.below(6) {
        let group = 1 + random.below(nr_groups) as u32;
        let pinned = match random.below(3) {
            0 => format!("cpus {}, ", random.below(nr_cpus)),
            _ => String::new(),
        };
        let life = match random.below(3) {
            0 => "[run 10s]".to_string(),
            1 => format!(
                "[run {}us, sleep {}us]",
                50 + random.below(9_000),
                50 + random.below(20_000)
            ),
            _ => format!("[run {}us, nice {}, yield]", 50 + random.below(3_000), random.below(10)),
        };
        lines
            .push_str(&format!("t{task} @{}ms: group {group}, {pinned}{life}\n", random.below(30)));
        group_of.push(group);
    }
    (lines, group_of)
}

/// The groups below `group`, itself among them.
fn is_below(groups: &[Group], mut group: u32, above: u32) -> bool {
    while group != 0 && group != above {
        group = groups[group as usize - 1].above;
    }
    group == above
}

#[test]
fn limits_hold_whatever_happens() {
    let (mut throttled_runs, mut reached) = (0, 0);
    for seed in 0..150 {
        let mut random = Rng::with_state(seed);
        let config = &configs()[seed as usize % 5];
        let nr_cpus = 1 + random.below(4);
        let groups = groups(&mut random);
        let (text, group_of) = scenario(&mut random, groups.len() as u64, nr_cpus);
        let mut board = Board::with(device_tree(nr_cpus as usize), config.clone(), &text);
        for group in &groups {
            let id = board.kernel.new_task_group(TaskGroupId(group.above), 1024);
            if group.quota.is_some() {
                board.kernel.tg_set_cfs_bandwidth(id, group.period, group.quota, group.burst);
            }
        }
        let mut used: Vec<Vec<Ns>> = vec![Vec::new(); groups.len()];
        let mut throttled_ns = vec![0; groups.len()];
        let mut changes = vec![0; groups.len()];
        let mut was = vec![vec![false; nr_cpus as usize]; groups.len()];
        for sample in 1..=(600 * MS / STEP) {
            board.run_until(sample * STEP);
            if sample * STEP < 40 * MS {
                // Not all tasks have been started.
                continue;
            }
            let ran = |task: usize| board.se(&format!("t{task}")).sum_exec_runtime;
            let time: Vec<Ns> = (0..group_of.len()).map(ran).collect();
            let inside = board.kernel.inside();
            for at in 0..groups.len() {
                let id = TaskGroupId(at as u32 + 1);
                let below = |task: &usize| is_below(&groups, group_of[*task], id.0);
                used[at].push((0..time.len()).filter(below).map(|task| time[task]).sum());
                for (cpu, was) in was[at].iter_mut().enumerate() {
                    let queue = &inside.cfs[inside.groups[id].cfs_rq[cpu]];
                    let throttled = queue.bandwidth.throttled;
                    let entity = &inside.se[inside.groups[id].se[cpu]];
                    let weighs = throttled && entity.on_rq;
                    assert!(by_task(config) || !weighs, "seed {seed}: {id:?} weighs something");
                    // What waits is on the queue, or has left it for a limbo list, there or further down.
                    let in_limbo = |at: usize| {
                        let group = &inside.groups[TaskGroupId(at as u32 + 1)];
                        let limbo = &inside.cfs[group.cfs_rq[cpu]].throttled_limbo_list;
                        is_below(&groups, at as u32 + 1, id.0) && !limbo.is_empty()
                    };
                    let waits = match by_task(config) {
                        true => throttled && (0..groups.len()).any(in_limbo),
                        false => throttled && queue.nr_queued != 0,
                    };
                    throttled_ns[at] += if waits { STEP } else { 0 };
                    changes[at] += u64::from(std::mem::replace(was, waits) != waits);
                }
            }
        }
        for (at, group) in groups.iter().enumerate() {
            let stat = board.kernel.inside().groups[TaskGroupId(at as u32 + 1)].bandwidth.stat;
            let Some(quota) = group.quota else {
                assert_eq!((stat.nr_throttled, stat.throttled_time), (0, 0), "seed {seed}");
                continue;
            };
            // The most that any window can have: a period's quota at its beginning and one at its end, what CPUs had
            // drawn before, and what ticks are late; runtime is booked at ticks, too.
            let reserve = group.burst + nr_cpus * (SLICE + 2 * TICK);
            for (from, before) in used[at].iter().enumerate().step_by(7) {
                for (to, after) in used[at].iter().enumerate().skip(from).step_by(11) {
                    let window = (to - from) as u64 * STEP;
                    let most = quota * (window / group.period + 2) + reserve;
                    assert!(
                        after - before <= most,
                        "seed {seed} group {at}: {before} {after} in {window}"
                    );
                }
            }
            assert!(stat.nr_throttled <= stat.nr_periods, "seed {seed}: {stat:?}");
            assert!(stat.nr_periods <= 600 * MS / group.period + 1, "seed {seed}: {stat:?}");
            assert!(stat.burst_time <= stat.nr_bursts * group.burst, "seed {seed}: {stat:?}");
            // Queues that still wait are not in the sum yet.
            let open = was[at].iter().filter(|waits| **waits).count() as u64;
            let error =
                STEP * (changes[at] + 2 * stat.nr_periods * nr_cpus + 2) + nr_cpus * 40 * MS;
            assert!(stat.throttled_time <= throttled_ns[at] + error, "seed {seed}: {stat:?}");
            // A task that left for a limit further down has not left for this one.
            let id = at as u32 + 1;
            let limited = |g: u32| g != id && groups[g as usize - 1].quota.is_some();
            let further_down = (1..=groups.len() as u32)
                .any(|group| is_below(&groups, group, id) && limited(group));
            assert!(
                by_task(config) && further_down
                    || throttled_ns[at]
                        <= stat.throttled_time + error + open * group.period.max(200 * MS),
                "seed {seed}: {stat:?}, sampled {}",
                throttled_ns[at]
            );
            throttled_runs += u32::from(stat.nr_throttled > 0);
            reached += u32::from(stat.nr_throttled >= 3);
        }
    }
    assert!(throttled_runs > 20 && reached > 10, "{throttled_runs} {reached}");
}
