// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables of CFS, on a machine of eight CPUs: latency 24 ms, granularity 3 ms, wakeup granularity 4 ms.
//!
//! Times in the tables are milliseconds unless they say otherwise; virtual ones too.

use crate::Kernel;
use crate::config::{CfsTunables, Config, FairClass, Features, FrequencyGovernor, IdealRuntime};
use crate::device_tree::DeviceTree;
use crate::observe::DecisionLog;
use crate::sched::TaskKind;
use crate::sched::core::{
    DEQUEUE_MOVE, DEQUEUE_SAVE, DEQUEUE_SLEEP, ENQUEUE_MIGRATED, ENQUEUE_NOCLOCK, ENQUEUE_RESTORE,
    ENQUEUE_WAKEUP, WF_FORK,
};
use crate::sched::fair::weight_of;
use crate::sched::{CfsRq, CfsRqId, EntityId, OnRq};
use schedtwin_types::{CpuId, Policy, SchedAttr, TaskId};

const CPU: CpuId = CpuId(0);
const ROOT: CfsRqId = CfsRqId(0);
const MS: i64 = 1_000_000;
/// Half of 24 ms by the kernel's arithmetic: the inverse of 2048 is truncated.
const HALF: i64 = 11_999_994;
/// Where the virtual time of these tests begins, so that it wraps within them.
const ZERO: u64 = u64::MAX - 20_000_000;

/// 6.12 with CFS in the place of EEVDF.
fn config() -> Config {
    Config {
        cpufreq: FrequencyGovernor::Performance,
        fair: FairClass::Cfs,
        fair_group_sched: true,
        cfs: CfsTunables {
            latency: 6_000_000,
            min_granularity: 750_000,
            wakeup_granularity: 1_000_000,
            idle_min_granularity: 750_000,
        },
        base_slice_unscaled: 0,
        fair_server_runtime: 0,
        features: Features {
            gentle_fair_sleepers: true,
            start_debit: true,
            last_buddy: true,
            alt_period: true,
            base_slice: true,
            wakeup_preemption: true,
            cache_hot_buddy: true,
            ttwu_queue: true,
            util_est: true,
            ..Features::default()
        },
        ..Config::linux_6_12()
    }
}

fn boot(nr_cpus: usize) -> Kernel {
    let cpus = DeviceTree::of_domains(&[(nr_cpus as u16, 1024, &[(1_000_000, 1)])]);
    let device_tree = DeviceTree { nr_threads_hint: 16, ..cpus };
    let mut kernel = Kernel::boot(device_tree, config());
    kernel.cx.now = 1_000_000_000;
    for cpu in kernel.sched.rq.ids() {
        kernel.sched.update_rq_clock(cpu, &kernel.cx);
    }
    kernel
}

/// Policy, nice value, virtual runtime (ms).
type Spec = (Policy, i8, i64);

/// CPU 0 and its tasks.
struct World {
    kernel: Kernel,
    tasks: Vec<TaskId>,
}

/// A task that has never run, at a virtual time relative to a `min_vruntime` of [`ZERO`].
fn task(kernel: &mut Kernel, policy: Policy, nice: i8, vruntime: i64) -> TaskId {
    let task = kernel.new_task(None, TaskKind::User);
    (kernel.sched.tasks[task].policy, kernel.sched.tasks[task].nice) = (policy, nice);
    let se = kernel.sched.se_of(task);
    kernel.sched.se[se].load = weight_of(policy, nice);
    kernel.sched.se[se].vruntime = vruntime as u64;
    task
}

impl World {
    /// Queued tasks, the first one running.
    fn of(specs: &[Spec]) -> World {
        let mut kernel = boot(8);
        kernel.sched.cfs[ROOT].min_vruntime = ZERO;
        let mut world = World { kernel, tasks: Vec::new() };
        for &(policy, nice, vruntime) in specs {
            let task = task(&mut world.kernel, policy, nice, vruntime * MS);
            world.tasks.push(task);
            world.enqueue(task, 0);
        }
        if let Some(&first) = world.tasks.first() {
            world.kernel.set_next_task_fair(CPU, first, true);
            world.kernel.sched.rq[CPU].curr = first;
        }
        world
    }

    /// The same of nice 0 tasks.
    fn at(vruntimes: &[i64]) -> World {
        let specs: Vec<_> = vruntimes.iter().map(|&v| (Policy::Normal, 0, v)).collect();
        World::of(&specs)
    }

    fn enqueue(&mut self, task: TaskId, flags: u32) {
        self.kernel.enqueue_task_fair(CPU, task, flags | ENQUEUE_NOCLOCK);
        self.kernel.sched.tasks[task].on_rq = OnRq::Queued;
    }

    fn dequeue(&mut self, task: TaskId, flags: u32) {
        assert!(self.kernel.dequeue_task_fair(CPU, task, flags), "CFS delays no dequeue");
        self.kernel.sched.tasks[task].on_rq = OnRq::No;
    }

    fn se(&self, index: usize) -> EntityId {
        self.kernel.sched.se_of(self.tasks[index])
    }

    fn cfs(&mut self) -> &mut CfsRq {
        &mut self.kernel.sched.cfs[ROOT]
    }

    /// Virtual runtime since [`ZERO`], nanoseconds.
    fn vruntime(&self, index: usize) -> i64 {
        self.kernel.sched.se[self.se(index)].vruntime.wrapping_sub(ZERO) as i64
    }

    fn min_vruntime(&self) -> i64 {
        self.kernel.sched.cfs[ROOT].min_vruntime.wrapping_sub(ZERO) as i64
    }

    fn index_of(&self, se: Option<EntityId>) -> Option<usize> {
        se.map(|se| (0..self.tasks.len()).find(|&i| self.se(i) == se).expect("one of ours"))
    }

    /// Lets the running task run.
    fn run(&mut self, time: i64) {
        self.kernel.cx.now += time as u64;
        self.kernel.sched.update_rq_clock(CPU, &self.kernel.cx);
    }
}

/// SCHED_TUNABLESCALING_LOG: all but the granularity of SCHED_IDLE.
#[test]
fn tunables_scale_with_the_number_of_cpus() {
    for (cpus, factor) in [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (9, 4), (32, 4)] {
        let tunables = boot(cpus).sched.cfs_tunables;
        let expected = CfsTunables {
            latency: factor * 6_000_000,
            min_granularity: factor * 750_000,
            wakeup_granularity: factor * 1_000_000,
            idle_min_granularity: 750_000,
        };
        assert_eq!(tunables, expected, "{cpus} CPUs");
    }
    assert_eq!(boot(8).sched.cfs_tunables.latency, 24_000_000);
    assert_eq!(boot(8).sched.sched_nr_latency(), 8);
}

/// `sched_slice()`, nanoseconds. Inverses of weights are truncated, so some slices lack a few.
#[test]
fn slices() {
    use Policy::{Idle, Normal};
    let table: &[(&str, &[Spec], u64)] = &[
        ("alone: the whole latency", &[(Normal, 0, 0)], 24_000_000),
        ("a half", &[(Normal, 0, 0); 2], 12_000_000),
        ("a third", &[(Normal, 0, 0); 3], 8_000_000),
        ("an eighth", &[(Normal, 0, 0); 8], 3_000_000),
        ("from nine on the period grows", &[(Normal, 0, 0); 9], 3_000_000),
        ("1024 of 1359", &[(Normal, 0, 0), (Normal, 5, 0)], 18_083_885),
        ("335 of 1359", &[(Normal, 5, 0), (Normal, 0, 0)], 5_916_114),
        ("15 of 1039: min_granularity", &[(Normal, 19, 0), (Normal, 0, 0)], 3_000_000),
        ("background: its own floor", &[(Idle, 0, 0), (Normal, 0, 0)], 750_000),
        ("among themselves: the usual floor", &[(Idle, 0, 0); 9], 3_000_000),
    ];
    for (what, specs, expected) in table {
        let world = World::of(specs);
        let slice = world.kernel.sched.sched_slice(ROOT, world.se(0), &world.kernel.cx);
        assert!(slice <= *expected && expected - slice <= 10, "{what}: {slice}");
    }
    // One that is not queued is counted as if it were.
    let mut world = World::at(&[0]);
    let newcomer = task(&mut world.kernel, Policy::Normal, 0, 0);
    let se = world.kernel.sched.se_of(newcomer);
    assert_eq!(world.kernel.sched.sched_slice(ROOT, se, &world.kernel.cx), HALF as u64);
    // The ninth lengthens the period.
    let mut world = World::at(&[0; 8]);
    let newcomer = task(&mut world.kernel, Policy::Normal, -5, 0);
    let se = world.kernel.sched.se_of(newcomer);
    let exact = 27_000_000u64 * 3121 / (3121 + 8 * 1024);
    assert!(world.kernel.sched.sched_slice(ROOT, se, &world.kernel.cx).abs_diff(exact) < 20);
    // Without BASE_SLICE slices get as small as they get.
    world.kernel.cx.config.features.base_slice = false;
    let light = task(&mut world.kernel, Policy::Normal, 19, 0);
    let exact = 27_000_000u64 * 15 / (15 + 8 * 1024);
    assert!(
        world
            .kernel
            .sched
            .sched_slice(ROOT, world.kernel.sched.se_of(light), &world.kernel.cx)
            .abs_diff(exact)
            < 20
    );
}

/// `wakeup_preempt_entity()`: running at 10, waking elsewhere; the granularity is the wakee's.
#[test]
fn granularities() {
    // (nice of the wakee, its lag in ns, result)
    for (nice, behind, expected) in [
        (0, -1, -1),
        (0, 0, -1),
        (0, 1, 0),
        (0, 4_000_000, 0),
        (0, 4_000_001, 1),
        // Heavier: 4 ms · 1024 / 3121.
        (-5, 1_312_399, 0),
        (-5, 1_312_400, 1),
        // Lighter: 4 ms · 1024 / 335.
        (5, 12_226_865, 0),
        (5, 12_226_866, 1),
    ] {
        let mut world = World::of(&[(Policy::Normal, 0, 0), (Policy::Normal, nice, 0)]);
        let (curr, se) = (world.se(0), world.se(1));
        world.kernel.sched.se[curr].vruntime = ZERO.wrapping_add(10_000_000);
        world.kernel.sched.se[se].vruntime = ZERO.wrapping_add((10_000_000 - behind) as u64);
        let result = world.kernel.sched.wakeup_preempt_entity(curr, se);
        assert_eq!(result, expected, "nice {nice}, {behind} ns behind");
    }
}

/// `pick_next_entity()`: task 0 runs.
#[test]
fn picks() {
    use schedtwin_types::PickRule as R;
    struct Case {
        what: &'static str,
        at: &'static [i64],
        buddies: [Option<usize>; 3],
        picked: usize,
        rule: R,
    }
    let case = |what, at, next, last, skip, picked, rule| Case {
        what,
        at,
        buddies: [next, last, skip],
        picked,
        rule,
    };
    for Case { what, at, buddies, picked, rule } in [
        case("the only one", &[5], None, None, None, 0, R::OnlyEntity),
        case("the only one, though it yields", &[5], None, None, Some(0), 0, R::OnlyEntity),
        case("the smallest waits", &[5, 4, 3], None, None, None, 2, R::SmallestVruntime),
        case("the smallest runs", &[2, 4, 3], None, None, None, 0, R::SmallestVruntime),
        case("of equals the one that waits", &[3, 3], None, None, None, 1, R::SmallestVruntime),
        case("of equals the first to come", &[9, 3, 3], None, None, None, 1, R::SmallestVruntime),
        case("next, though another is first", &[9, 1, 5], Some(2), None, None, 2, R::NextBuddy),
        case(
            "next is unfair by more than 4 ms",
            &[9, 1, 6],
            Some(2),
            None,
            None,
            1,
            R::SmallestVruntime,
        ),
        case("last", &[9, 1, 5], None, Some(2), None, 2, R::LastBuddy),
        case("next before last", &[9, 1, 3, 2], Some(2), Some(3), None, 2, R::NextBuddy),
        case("last, as next is unfair", &[9, 1, 6, 2], Some(2), Some(3), None, 3, R::LastBuddy),
        case("next, though it is the running one", &[4, 1], Some(0), None, None, 0, R::NextBuddy),
        case("skip: the second", &[9, 1, 5], None, None, Some(1), 2, R::AfterSkipBuddy),
        case(
            "skip: the running one is second",
            &[4, 1, 5],
            None,
            None,
            Some(1),
            0,
            R::AfterSkipBuddy,
        ),
        case(
            "skip: of equals the one that waits",
            &[4, 1, 4],
            None,
            None,
            Some(1),
            2,
            R::AfterSkipBuddy,
        ),
        case(
            "skip, but the second is unfair",
            &[9, 1, 6],
            None,
            None,
            Some(1),
            1,
            R::SmallestVruntime,
        ),
        case("skip the running one", &[1, 5], None, None, Some(0), 1, R::AfterSkipBuddy),
        case("skip the running one, unfair", &[1, 6], None, None, Some(0), 0, R::SmallestVruntime),
        case(
            "skip somebody who is not first",
            &[9, 1, 2],
            None,
            None,
            Some(2),
            1,
            R::SmallestVruntime,
        ),
        case("next outranks skip", &[9, 1, 2], Some(1), None, Some(1), 1, R::NextBuddy),
    ] {
        let mut world = World::at(at);
        let [next, last, skip] = buddies.map(|index| index.map(|index| world.se(index)));
        let cfs = world.cfs();
        (cfs.next, cfs.last, cfs.skip) = (next, last, skip);
        world.kernel.sched.verify_timeline(ROOT, &world.kernel.cx);
        let mut notes = DecisionLog::default();
        let found = world.index_of(world.kernel.sched.pick_cfs(ROOT, &mut notes));
        assert_eq!((found, notes.pick), (Some(picked), Some(rule)), "{what}");
    }
}

/// A running entity that has left the queue is nobody's rival; an empty queue has nobody.
#[test]
fn a_sleeper_is_not_picked() {
    let mut world = World::at(&[1, 5]);
    world.dequeue(world.tasks[0], DEQUEUE_SLEEP);
    assert_eq!(world.index_of(world.kernel.sched.pick_cfs(ROOT, &mut ())), Some(1));
    world.dequeue(world.tasks[1], DEQUEUE_SLEEP);
    assert_eq!(world.kernel.sched.pick_cfs(ROOT, &mut ()), None);
}

/// Entities with the same virtual runtime queue up in order of insertion.
#[test]
fn equals_queue_up() {
    let world = World::at(&[0, 3, 1, 3, 2, 3, 1]);
    let order: Vec<_> =
        world.kernel.sched.cfs[ROOT].timeline.iter().map(|n| world.index_of(Some(n.se))).collect();
    assert_eq!(order, [2, 6, 4, 1, 3, 5].map(Some));
}

/// `check_preempt_tick()`: two or more tasks, of which task 0 has run since it was switched to.
#[test]
fn ticks() {
    // (others at, virtual time of the running task after them (ns), run for (ns), gives way)
    let table: &[(&str, &[i64], i64, i64, bool)] = &[
        ("its slice is exactly used up", &[0], 0, HALF, false),
        ("its slice is used up", &[0], 0, HALF + 1, true),
        ("also if it is far behind", &[99], 0, HALF + 1, true),
        ("ahead by its slice", &[0], HALF, HALF, false),
        ("ahead by more", &[0], HALF + 1, HALF, true),
        ("ahead by more, but just switched to", &[0], HALF + 1, 3 * MS - 1, false),
        ("ahead by more, for min_granularity", &[0], HALF + 1, 3 * MS, true),
        ("ahead of one, behind another", &[0, 99], 9 * MS, 3 * MS, true),
        ("behind", &[20], 13 * MS, 11 * MS, false),
        ("nobody else", &[], 13 * MS, 99 * MS, false),
    ];
    for &(what, others, ahead, ran, expected) in table {
        let at: Vec<i64> = std::iter::once(0).chain(others.iter().copied()).collect();
        let mut world = World::at(&at);
        let se = world.se(0);
        let entity = &mut world.kernel.sched.se[se];
        entity.vruntime = ZERO.wrapping_add(ahead as u64);
        entity.prev_sum_exec_runtime = 5_000;
        entity.sum_exec_runtime = 5_000 + ran as u64;
        world.cfs().last = Some(se);
        world.kernel.sched.check_preempt_tick(
            ROOT,
            se,
            &mut world.kernel.cpuidle,
            &mut world.kernel.cx,
        );
        assert_eq!(world.kernel.sched.rq[CPU].need_resched, expected, "{what}");
        let used_up = ran > HALF && !others.is_empty();
        assert_eq!(world.cfs().last, (!used_up).then_some(se), "{what}: buddy");
    }
}

/// One of nice 0 among ten of nice 19 has 1024 of 1174 parts of 33 ms; from 6.3 on the latency is the limit.
#[test]
fn slices_may_be_limited() {
    for (limit, ran, expected) in [
        (IdealRuntime::SchedSlice, 28_780_000, false),
        (IdealRuntime::SchedSlice, 28_790_000, true),
        (IdealRuntime::AtMostLatency, 24_000_000, false),
        (IdealRuntime::AtMostLatency, 24_000_001, true),
    ] {
        let mut specs = vec![(Policy::Normal, 0, 0)];
        specs.extend(vec![(Policy::Normal, 19, 0); 10]);
        let mut world = World::of(&specs);
        world.kernel.cx.config.ideal_runtime = limit;
        let se = world.se(0);
        world.kernel.sched.se[se].sum_exec_runtime = ran;
        world.kernel.sched.check_preempt_tick(
            ROOT,
            se,
            &mut world.kernel.cpuidle,
            &mut world.kernel.cx,
        );
        assert_eq!(world.kernel.sched.rq[CPU].need_resched, expected, "{limit:?} {ran}");
    }
}

/// `place_entity()`: where a task that had this virtual runtime is placed, `min_vruntime` being 100 ms.
#[test]
fn placement() {
    use Policy::{Idle, Normal};
    let gentle = |on| Features { gentle_fair_sleepers: on, ..config().features };
    let debit = |on| Features { start_debit: on, ..config().features };
    let table = [
        ("a long sleep: half a latency of credit", Normal, 0, false, gentle(true), 10, 88 * MS),
        ("without GENTLE: a whole one", Normal, 0, false, gentle(false), 10, 76 * MS),
        ("whatever its weight", Normal, -10, false, gentle(true), 10, 88 * MS),
        ("SCHED_IDLE: half a min_granularity", Idle, 0, false, gentle(true), 10, 98_500_000),
        ("a short sleep: nobody gains", Normal, 0, false, gentle(true), 89, 89 * MS),
        ("ahead stays ahead", Normal, 0, false, gentle(true), 140, 140 * MS),
        ("a new task waits for a slice", Normal, 0, true, debit(true), 100, 100 * MS + HALF),
        ("behind its parent, if that is ahead", Normal, 0, true, debit(true), 120, 120 * MS),
        ("without debit it does not", Normal, 0, true, debit(false), 100, 100 * MS),
        ("but never gets credit", Normal, 0, true, debit(false), 10, 100 * MS),
    ];
    for (what, policy, nice, initial, features, before, expected) in table {
        let mut world = World::at(&[100]);
        world.kernel.cx.config.features = features;
        world.cfs().min_vruntime = ZERO.wrapping_add(100_000_000);
        let wakee = task(&mut world.kernel, policy, nice, 0);
        world.tasks.push(wakee);
        let se = world.se(1);
        world.kernel.sched.se[se].vruntime = ZERO.wrapping_add((before * MS) as u64);
        world.kernel.sched.place_by_vruntime(ROOT, se, initial, &world.kernel.cx);
        assert_eq!(world.vruntime(1), expected, "{what}");
    }
}

/// A light task's debit is long in its own virtual time: 3 ms of the least slice · 1024 / 335.
#[test]
fn the_debit_is_virtual() {
    let mut world = World::at(&[0; 9]);
    let child = task(&mut world.kernel, Policy::Normal, 5, 0);
    world.tasks.push(child);
    let se = world.se(9);
    world.kernel.sched.se[se].vruntime = ZERO;
    world.kernel.sched.place_by_vruntime(ROOT, se, true, &world.kernel.cx);
    assert_eq!(world.vruntime(9), 9_170_149);
}

/// Beyond 2^53 ns of sleep, comparing virtual runtimes might wrap: the old one is forgotten.
#[test]
fn a_very_long_sleep_is_forgotten() {
    for (slept, expected) in [(1u64 << 53, 50 * MS), ((1 << 53) + 1, -12 * MS)] {
        let mut world = World::at(&[0, 50]);
        let se = world.se(1);
        world.kernel.sched.rq[CPU].clock_task = slept + 7;
        world.kernel.sched.se[se].exec_start = 7;
        world.kernel.sched.place_by_vruntime(ROOT, se, false, &world.kernel.cx);
        assert_eq!(world.vruntime(1), expected, "{slept}");
        // A task that has just migrated has no such time.
        world.kernel.sched.se[se].vruntime = ZERO.wrapping_add(50_000_000);
        world.kernel.sched.se[se].exec_start = 0;
        world.kernel.sched.place_by_vruntime(ROOT, se, false, &world.kernel.cx);
        assert_eq!(world.vruntime(1), 50 * MS);
    }
}

/// `update_min_vruntime()`: the smaller of running and first, and never back.
#[test]
fn min_vruntime_never_goes_back() {
    for (at, min, expected) in
        [(&[3, 5][..], 0, 3), (&[5, 3], 0, 3), (&[5], 0, 5), (&[5, 3], 4, 4), (&[5, -3], 0, 0)]
    {
        let mut world = World::at(at);
        world.cfs().min_vruntime = ZERO.wrapping_add((min * MS) as u64);
        world.kernel.sched.update_min_vruntime(ROOT);
        assert_eq!(world.min_vruntime(), expected * MS, "{at:?}");
    }
    // A running entity that is not queued does not count, and an empty queue changes nothing.
    let mut world = World::at(&[3, 5]);
    world.dequeue(world.tasks[0], DEQUEUE_SLEEP);
    assert_eq!(world.min_vruntime(), 5 * MS);
    world.dequeue(world.tasks[1], DEQUEUE_SLEEP);
    assert_eq!(world.min_vruntime(), 5 * MS);
}

/// A task that leaves for another queue takes its distance to `min_vruntime` along; a sleeper keeps
/// its virtual runtime. Task 1 leaves a queue of two at 10 and 6 ms whose `min_vruntime` is 4 ms.
#[test]
fn leaving() {
    // (flags, virtual runtime afterwards, min_vruntime afterwards); update_curr() moves it to 6 first.
    for (flags, vruntime, min) in [
        (DEQUEUE_SLEEP, Ok(6), 11),
        (0, Err(0), 11),
        (DEQUEUE_SAVE | DEQUEUE_MOVE, Err(0), 11),
        (DEQUEUE_SAVE, Err(0), 6),
    ] {
        let mut world = World::at(&[10, 6]);
        world.cfs().min_vruntime = ZERO.wrapping_add(4_000_000);
        world.run(MS);
        world.dequeue(world.tasks[1], flags);
        match vruntime {
            Ok(absolute) => assert_eq!(world.vruntime(1), absolute * MS, "{flags}"),
            Err(relative) => {
                let se = world.se(1);
                assert_eq!(world.kernel.sched.se[se].vruntime as i64, relative * MS, "{flags}");
            }
        }
        assert_eq!(world.min_vruntime(), min * MS, "{flags}");
    }
}

/// A task that joins is placed at that distance, after the queue's time has been accounted. The
/// queue has one running task at 10 ms that has run for 3 ms more.
#[test]
fn joining() {
    for (flags, before, expected) in [
        // Relative: another queue, a change of attributes, a fork.
        (0, 2 * MS, 15 * MS),
        (ENQUEUE_RESTORE, -MS, 12 * MS),
        (ENQUEUE_MIGRATED, 2 * MS, 15 * MS),
        // Woken here: absolute.
        (ENQUEUE_WAKEUP, (ZERO as i64).wrapping_add(11 * MS), 11 * MS),
        (ENQUEUE_WAKEUP, (ZERO as i64).wrapping_add(-11 * MS), MS),
        // Woken elsewhere: relative, and placed.
        (ENQUEUE_WAKEUP | ENQUEUE_MIGRATED, 2 * MS, 15 * MS),
        (ENQUEUE_WAKEUP | ENQUEUE_MIGRATED, -50 * MS, MS),
    ] {
        let mut world = World::at(&[10]);
        world.run(3 * MS);
        let newcomer = task(&mut world.kernel, Policy::Normal, 0, 0);
        world.tasks.push(newcomer);
        let se = world.se(1);
        world.kernel.sched.se[se].vruntime = before as u64;
        world.enqueue(newcomer, flags);
        assert_eq!(world.min_vruntime(), 13 * MS);
        assert_eq!(world.vruntime(1), expected, "{flags:#x}");
    }
}

/// A sleeper that is woken on another CPU leaves the virtual time of the old one behind.
#[test]
fn a_sleeper_migrates() {
    let mut world = World::at(&[10, 7]);
    let wakee = world.tasks[1];
    world.dequeue(wakee, DEQUEUE_SLEEP);
    assert_eq!(world.min_vruntime(), 10 * MS);
    world.kernel.sched.cfs[CfsRqId(1)].min_vruntime = 1 << 40;
    world.kernel.set_task_cpu(wakee, CpuId(1));
    world.kernel.activate_task(CpuId(1), wakee, ENQUEUE_WAKEUP | ENQUEUE_MIGRATED);
    assert_eq!(world.kernel.sched.se[world.se(1)].vruntime, (1 << 40) - 3_000_000);
}

/// `task_fork_fair()`: a slice behind the parent's queue, and relative until it is woken.
#[test]
fn forks() {
    for (min, expected) in [(10, HALF), (2, 8 * MS)] {
        let mut world = World::at(&[10]);
        world.cfs().min_vruntime = ZERO.wrapping_add((min * MS) as u64);
        world.kernel.cx.this_cpu = CPU;
        // update_curr() moves min_vruntime to the parent, unless somebody else holds it back.
        if min == 2 {
            let other = task(&mut world.kernel, Policy::Normal, 0, 0);
            world.tasks.push(other);
            world.enqueue(other, 0);
        }
        let parent = world.tasks[0];
        let child = world.kernel.new_task(Some(parent), TaskKind::User);
        let se = world.kernel.sched.se_of(child);
        // Beside one other a third of 24 ms is no further than the parent at 10.
        assert_eq!(world.kernel.sched.se[se].vruntime as i64, expected, "{min}");
        assert!(!world.kernel.sched.se[se].on_rq);
    }
}

/// `check_preempt_wakeup()`: the wakee is task 1, at 0; the running one at `curr_at`; `crowd` others at 50.
#[test]
fn wakeups() {
    use Policy::{Batch, Idle, Normal};
    let on = Features { wakeup_preemption: true, last_buddy: true, ..Features::default() };
    let next_buddy = Features { next_buddy: true, ..on };
    let off = Features { wakeup_preemption: false, ..on };
    let no_last = Features { last_buddy: false, ..on };
    // (curr, wakee, curr_at, crowd, features, flags) → (preempts, next, last)
    let table = [
        ((Normal, Normal, 5, 0, on, 0), (true, Some(1), None)),
        ((Normal, Normal, 4, 0, on, 0), (false, None, None)),
        ((Normal, Normal, 5, 5, on, 0), (true, Some(1), None)),
        // Eight are queued, the wakee included.
        ((Normal, Normal, 5, 6, on, 0), (true, Some(1), Some(0))),
        ((Normal, Normal, 4, 6, on, 0), (false, None, None)),
        ((Normal, Normal, 5, 6, no_last, 0), (true, Some(1), None)),
        ((Normal, Batch, 5, 6, on, 0), (false, None, None)),
        ((Batch, Normal, 5, 6, on, 0), (true, Some(1), Some(0))),
        ((Normal, Idle, 5, 6, on, 0), (false, None, None)),
        ((Idle, Idle, 5, 6, on, 0), (false, None, None)),
        // SCHED_IDLE gives way at once, is no buddy, and the wakee needs none.
        ((Idle, Normal, 0, 6, on, 0), (true, None, None)),
        ((Idle, Batch, 0, 0, off, 0), (true, None, None)),
        ((Normal, Normal, 5, 0, off, 0), (false, None, None)),
        // NEXT_BUDDY: also without preemption, but in a crowd only and not after a fork.
        ((Normal, Normal, 4, 6, next_buddy, 0), (false, Some(1), None)),
        ((Normal, Normal, 4, 6, next_buddy, WF_FORK), (false, None, None)),
        ((Normal, Normal, 4, 5, next_buddy, 0), (false, None, None)),
        ((Normal, Normal, 5, 6, next_buddy, WF_FORK), (true, Some(1), Some(0))),
        ((Normal, Batch, 5, 6, next_buddy, 0), (false, Some(1), None)),
        ((Normal, Idle, 5, 6, next_buddy, 0), (false, None, None)),
    ];
    for ((curr, wakee, curr_at, crowd, features, flags), expected) in table {
        let mut specs = vec![(curr, 0, curr_at), (wakee, 0, 0)];
        specs.extend(vec![(Normal, 0, 50); crowd]);
        let mut world = World::of(&specs);
        world.kernel.cx.config.features = features;
        let (task, running) = (world.tasks[1], world.tasks[0]);
        world.kernel.check_preempt_wakeup_fair(CPU, task, flags);
        let (next, last) = (world.cfs().next, world.cfs().last);
        let found =
            (world.kernel.sched.rq[CPU].need_resched, world.index_of(next), world.index_of(last));
        assert_eq!(found, expected, "{curr:?} at {curr_at}, {wakee:?}, {crowd}, {flags}");
        // A second wakeup, while the switch is pending, changes nothing.
        if expected.0 {
            (world.cfs().next, world.cfs().last) = (None, None);
            world.kernel.cx.config.features.next_buddy = false;
            world.kernel.check_preempt_wakeup_fair(CPU, task, flags);
            assert_eq!((world.cfs().next, world.cfs().last), (None, None));
        }
        assert_eq!(world.kernel.sched.rq[CPU].curr, running);
    }
}

/// A running task that has just blocked is no last buddy; nor is a task that is tested against
/// itself.
#[test]
fn a_blocked_task_is_no_buddy() {
    let mut world = World::at(&[20, 0, 5, 5, 5, 5, 5, 5, 5, 5]);
    let (running, task) = (world.tasks[0], world.tasks[1]);
    world.kernel.check_preempt_wakeup_fair(CPU, running, 0);
    assert!(!world.kernel.sched.rq[CPU].need_resched);
    world.dequeue(running, DEQUEUE_SLEEP);
    world.kernel.check_preempt_wakeup_fair(CPU, task, 0);
    assert!(world.kernel.sched.rq[CPU].need_resched);
    assert_eq!(
        (world.cfs().last, world.index_of(world.kernel.sched.cfs[ROOT].next)),
        (None, Some(1))
    );
}

/// A task that leaves, or is switched to, is no longer a buddy.
#[test]
fn buddies_are_forgotten() {
    for leaves in [false, true] {
        let mut world = World::at(&[0, 1, 2]);
        let se = world.se(1);
        let cfs = world.cfs();
        (cfs.next, cfs.last, cfs.skip) = (Some(se), Some(se), Some(se));
        assert!(world.kernel.sched.cache_hot_buddy(se, &world.kernel.cx));
        let (running, task) = (world.tasks[0], world.tasks[1]);
        if leaves {
            world.dequeue(task, 0);
        } else {
            world.kernel.put_prev_task_fair(CPU, running);
            world.kernel.set_next_task_fair(CPU, task, true);
        }
        let cfs = world.cfs();
        assert_eq!((cfs.next, cfs.last, cfs.skip), (None, None, None));
        assert!(!world.kernel.sched.cache_hot_buddy(se, &world.kernel.cx));
    }
    // The skip buddy alone is not hot, and without CACHE_HOT_BUDDY nobody is.
    let mut world = World::at(&[0, 1, 2]);
    let (first, second) = (world.se(1), world.se(2));
    (world.cfs().skip, world.cfs().last) = (Some(first), Some(second));
    assert!(
        !world.kernel.sched.cache_hot_buddy(first, &world.kernel.cx)
            && world.kernel.sched.cache_hot_buddy(second, &world.kernel.cx)
    );
    world.kernel.cx.config.features.cache_hot_buddy = false;
    assert!(!world.kernel.sched.cache_hot_buddy(second, &world.kernel.cx));
}

/// `yield_task_fair()`: accounts (but for SCHED_BATCH), gives up no virtual time, and asks to be skipped.
#[test]
fn yields() {
    for (policy, others, skipped, accounted) in [
        (Policy::Normal, 1, true, 2 * MS),
        (Policy::Idle, 1, true, 2 * MS * 1024 / 3),
        (Policy::Batch, 1, true, 0),
        (Policy::Normal, 0, false, 0),
    ] {
        let mut specs = vec![(policy, 0, 0)];
        specs.extend(vec![(Policy::Normal, 0, 1); others]);
        let mut world = World::of(&specs);
        let se = world.se(0);
        let cfs = world.cfs();
        (cfs.next, cfs.last) = (Some(se), Some(se));
        world.kernel.cx.now += 2 * MS as u64;
        world.kernel.yield_task_fair(CPU);
        assert_eq!(world.cfs().skip, skipped.then_some(se), "{policy:?}");
        assert_eq!(world.cfs().next, (!skipped).then_some(se), "{policy:?}");
        assert_eq!(world.kernel.sched.rq[CPU].skip_clock_update, accounted != 0, "{policy:?}");
        assert!((world.vruntime(0) - accounted).abs() < 10, "{policy:?} {}", world.vruntime(0));
    }
}

/// A running task that is picked again moves to the front of the most recently run.
#[test]
fn whoever_is_picked_again_ran_last() {
    // Its slice goes on with groups; without them it is put back and switched to.
    for (fair_group_sched, slice_from) in [(true, 0), (false, MS as u64)] {
        let mut world = World::at(&[0, 5]);
        world.kernel.cx.config.fair_group_sched = fair_group_sched;
        let (running, other) = (world.tasks[0], world.tasks[1]);
        world.kernel.sched.cfs_tasks_move_to_head(CPU, other);
        let ran_from = world.kernel.sched.se[world.se(0)].prev_sum_exec_runtime;
        world.run(MS);
        let pick = world.kernel.pick_next_task_fair(CPU, running);
        assert_eq!(pick, crate::sched::fair::Pick::Task(running));
        assert_eq!(world.kernel.sched.rq[CPU].cfs_tasks_head, Some(running));
        let se = &world.kernel.sched.se[world.se(0)];
        assert_eq!(se.prev_sum_exec_runtime, ran_from + slice_from, "{fair_group_sched}");
        assert_eq!(world.min_vruntime(), MS);
    }
}

/// `sched_setattr()` knows no slices: asking for one is no change.
#[test]
fn slices_are_not_asked_for() {
    let world = World::at(&[0]);
    for slice in [0, 1_000_000] {
        let attr = SchedAttr { slice, ..SchedAttr::default() };
        assert!(!world.kernel.sched.slice_changes(world.se(0), &attr, &world.kernel.cx));
    }
}
