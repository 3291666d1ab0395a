// SPDX-License-Identifier: GPL-2.0-or-later
//! Sum aggregation on a kernel: what joins the sums and leaves them, and what is made of them.

use super::*;
use crate::config::{Config, RunnableBoost, Uclamp};
use crate::sched::TaskKind;
use crate::sched::core::{DEQUEUE_SLEEP, ENQUEUE_WAKEUP};
use crate::sched::demand::fits::Fits;
use crate::sched::demand::uclamp::UclampRequest;
use crate::sched::root_domain::tests::little_and_big;

const LITTLE: CpuId = CpuId(0);
const BIG: CpuId = CpuId(1);

fn boot(change: impl FnOnce(&mut Config)) -> Kernel {
    let mut config = Config {
        uclamp: Uclamp::On,
        uclamp_aggregation: crate::config::UclampAggregation::Sum,
        util_est_uclamp: UtilEstUclamp::Tracked,
        negative_bias: NegativeBias::Propagated,
        max_uclamp_factor: MaxUclampFactor::Absent,
        enqueue_hook: UtilBiasHook::Boosted,
        ..Config::linux_6_12()
    };
    change(&mut config);
    let mut kernel = little_and_big(config);
    // A task with signals of time 0 counts as attached nowhere.
    kernel.cx.now = 100_000_000;
    kernel
}

/// A task on `cpu` that has used `util` of it; its bias is up to date.
fn task(kernel: &mut Kernel, cpu: CpuId, util: u64, min: u16, max: u16) -> TaskId {
    let p = kernel.new_task(None, TaskKind::User);
    kernel.sched.tasks[p].uclamp_req = UclampRequest { min: Some(min), max: Some(max) };
    kernel.sched.tasks[p].cpu = cpu;
    kernel.sched.set_task_rq(p, cpu);
    let se = kernel.sched.tasks[p].se;
    // Attached, and as old as its queue.
    kernel.sched.update_rq_clock(cpu, &kernel.cx);
    kernel.attach_entity_cfs_rq(se);
    let divider = pelt::get_pelt_divider(&kernel.sched.se[se].avg);
    let root = CfsRqId::root(cpu);
    let own = &mut kernel.sched.se[se].avg;
    (own.util_avg, own.util_sum) = (util, util as u32 * divider);
    kernel.sched.cfs[root].avg.util_avg += util;
    kernel.sched.cfs[root].avg.util_sum += util as u32 * divider;
    kernel.sched.util_bias_update(p, &kernel.cx);
    p
}

fn wake(kernel: &mut Kernel, cpu: CpuId, task: TaskId) {
    kernel.activate_task(cpu, task, ENQUEUE_WAKEUP);
}

fn sums(kernel: &Kernel, cpu: CpuId) -> UclampRq {
    match &*kernel.sched.rq[cpu].uclamp {
        RqClamps::Sum(sums) => *sums,
        RqClamps::Max(_) => panic!("sums"),
    }
}

/// The clamped utilisation of a CPU, without boosting.
fn clamped_util(kernel: &Kernel, cpu: CpuId) -> u64 {
    kernel.sched.cpu_util_uclamp(cpu, &sums(kernel, cpu), None, None, false, &kernel.cx)
}

/// The check values: 300 capped at 110 has a bias of −190, and four of them sum up to 440, which does not fit
/// the little CPU; a task whose maximum is 1024 has none.
#[test]
fn biases_add_up() {
    let mut kernel = boot(|_| {});
    let capped: Vec<TaskId> = (0..4).map(|_| task(&mut kernel, BIG, 300, 0, 110)).collect();
    for &p in &capped {
        assert_eq!(kernel.sched.tasks[p].uclamp.sums.bias, -190);
        wake(&mut kernel, BIG, p);
        kernel.sched.verify_uclamp(BIG, &kernel.sched.tasks_of(BIG));
    }
    assert_eq!(sums(&kernel, BIG).bias, -760);
    assert_eq!(kernel.sched.cfs[CfsRqId::root(BIG)].avg.util_avg, 1200);
    assert_eq!(clamped_util(&kernel, BIG), 440);
    let full = task(&mut kernel, LITTLE, 1024, 0, 1024);
    assert_eq!(kernel.sched.tasks[full].uclamp.sums.bias, 0);
    let raised = task(&mut kernel, LITTLE, 50, 200, 1024);
    assert_eq!(kernel.sched.tasks[raised].uclamp.sums.bias, 150);
}

/// A CPU fits a capped task if the capped utilisation fits; a CPU that fits the real utilisation
/// alone is too slow. Twice as much of the same does not fit.
#[test]
fn what_fits() {
    let mut kernel = boot(|_| {});
    for (util, min, max, cpu, expected) in [
        (1000, 0, 110, LITTLE, Fits::Yes),
        (300, 0, 1024, LITTLE, Fits::Yes),
        (310, 0, 1024, LITTLE, Fits::No),
        (50, 400, 1024, LITTLE, Fits::TooSlow),
        (50, 400, 1024, BIG, Fits::Yes),
        (1000, 0, 1023, BIG, Fits::No),
    ] {
        let p = task(&mut kernel, cpu, util, min, max);
        let demand = kernel.task_demand(p);
        assert_eq!(kernel.sched.fits_cpu(&demand, cpu), expected, "{util} {min} {max} {cpu:?}");
    }
    let mut kernel = boot(|_| {});
    for (n, exceeds) in [false, false, true].into_iter().enumerate() {
        let p = task(&mut kernel, LITTLE, 500, 0, 110);
        wake(&mut kernel, LITTLE, p);
        let util = kernel.sched.cpu_util_cfs(LITTLE, &kernel.cx);
        assert_eq!(
            kernel.sched.util_exceeds(util, LITTLE, &kernel.cx),
            exceeds,
            "{} capped tasks",
            n + 1
        );
    }
}

/// A sleeper's utilisation is part of its CPU's, its bias is not; so a CPU with it is the same before and after it
/// wakes, and one without it is what the others need.
#[test]
fn a_cpu_with_a_task_and_without() {
    let mut kernel = boot(|_| {});
    let other = task(&mut kernel, BIG, 200, 0, 1024);
    let p = task(&mut kernel, BIG, 300, 0, 110);
    wake(&mut kernel, BIG, other);
    let of = |k: &Kernel, cpu, dst| {
        k.sched.cpu_util_uclamp(cpu, &sums(k, cpu), Some(p), Some(dst), false, &k.cx)
    };
    for asleep in [true, false] {
        if !asleep {
            wake(&mut kernel, BIG, p);
        }
        assert_eq!(of(&kernel, BIG, BIG), 310, "asleep: {asleep}");
        assert_eq!(of(&kernel, BIG, LITTLE), 200, "asleep: {asleep}");
        assert_eq!(of(&kernel, LITTLE, LITTLE), 110, "asleep: {asleep}");
    }
}

/// Runnable boosting multiplies what the clamps leave: 400 of 800 runnable, capped to 100, are 200.
#[test]
fn runnable_boosting_in_proportion() {
    for (form, expected) in [(RunnableBoost::Off, 100), (RunnableBoost::On, 200)] {
        let mut kernel = boot(|config| config.runnable_boost = form);
        let p = task(&mut kernel, BIG, 400, 0, 100);
        wake(&mut kernel, BIG, p);
        kernel.sched.cfs[CfsRqId::root(BIG)].avg.runnable_avg = 800;
        assert_eq!(
            kernel.sched.demanded_cpu_util(BIG, None, None, &kernel.cx),
            expected,
            "{form:?}"
        );
        // Utilisation that is all waiting is not boosted: there is nothing to multiply.
        kernel.sched.cfs[CfsRqId::root(LITTLE)].avg.runnable_avg = 800;
        assert_eq!(kernel.sched.demanded_cpu_util(LITTLE, None, None, &kernel.cx), 0, "{form:?}");
    }
}

/// A task of utilisation 1024 with a cap of 200 falls asleep: with its bias alone gone its CPU jumps to 1024; if it takes
/// along what the cap hid, the CPU stays at 200 and decays.
#[test]
fn negative_bias() {
    for (form, expected) in [(NegativeBias::Removed, 1024), (NegativeBias::Propagated, 200)] {
        let mut kernel = boot(|config| config.negative_bias = form);
        let p = task(&mut kernel, BIG, 1024, 0, 200);
        wake(&mut kernel, BIG, p);
        assert_eq!(clamped_util(&kernel, BIG), 200);
        assert!(kernel.dequeue_task(BIG, p, DEQUEUE_SLEEP));
        kernel.sched.finish_block_task(p);
        kernel.sched.verify_uclamp(BIG, &kernel.sched.tasks_of(BIG));
        assert_eq!(clamped_util(&kernel, BIG), expected, "{form:?}");
        assert_eq!(kernel.sched.task_util(p), expected, "{form:?}");
        // The sum never says less than the average.
        let avg = &kernel.sched.cfs[CfsRqId::root(BIG)].avg;
        assert!(avg.util_sum >= avg.util_avg as u32 * pelt::PELT_MIN_DIVIDER);
    }
}

/// As posted: A without a cap and B with a cap of 1 share a CPU, 512 each. B's cap would take the CPU down to 513, of
/// which A gets half; so B counts with as much as A.
#[test]
fn a_capped_task_does_not_throttle_its_neighbour() {
    let tracked = |config: &mut Config| config.max_uclamp_factor = MaxUclampFactor::Tracked;
    for (form, expected) in [(MaxUclampFactor::Absent, 513), (MaxUclampFactor::Tracked, 1023)] {
        let mut kernel = boot(|config| config.max_uclamp_factor = form);
        let a = task(&mut kernel, BIG, 512, 0, 1024);
        let b = task(&mut kernel, BIG, 512, 0, 1);
        for p in [a, b] {
            wake(&mut kernel, BIG, p);
            kernel.sched.util_bias_update(p, &kernel.cx);
        }
        // 512 · wmult · weight >> 32 is 512; C's clamp makes no cap of what reaches it, rounding aside.
        let util = clamped_util(&kernel, BIG);
        assert!(util.abs_diff(expected) <= 1, "{form:?}: {util}");
        kernel.sched.verify_uclamp(BIG, &kernel.sched.tasks_of(BIG));
    }
    // A is gone, and B notes its own demand at its next refresh.
    let mut kernel = boot(tracked);
    let [a, b] = [1024, 1].map(|max| task(&mut kernel, BIG, 512, 0, max));
    for p in [a, b] {
        wake(&mut kernel, BIG, p);
        kernel.sched.util_bias_update(p, &kernel.cx);
    }
    assert_eq!(sums(&kernel, BIG).max_factor_of, Some(a));
    assert!(kernel.dequeue_task(BIG, a, DEQUEUE_SLEEP));
    assert_eq!((sums(&kernel, BIG).max_factor, sums(&kernel, BIG).max_factor_of), (0, None));
    kernel.sched.util_bias_update(b, &kernel.cx);
    assert_eq!(kernel.sched.tasks[b].uclamp.sums.bias, 1 - 512);
    assert_eq!(sums(&kernel, BIG).max_factor_of, Some(b));
}

/// The weight counts: beside a task of nice 0 that demands 512, one of nice 5 (335) is not throttled below 167.
#[test]
fn the_share_follows_the_weight() {
    let mut sums = UclampRq::default();
    let (weight, wmult) = crate::sched::fair::prio_weight(20);
    assert_eq!((weight, wmult), (1024, 4_194_304));
    assert_eq!(sums.allowed(TaskId(1), 512, weight, wmult, 1024), 1024);
    let (weight, wmult) = crate::sched::fair::prio_weight(25);
    assert_eq!(sums.allowed(TaskId(2), 1, weight, wmult, 1), 167); // 512 · 335 / 1024
    assert_eq!(sums.allowed(TaskId(2), 1, weight, wmult, 300), 300);
    // The first one's demand falls: what it notes is its present one.
    let (weight, wmult) = crate::sched::fair::prio_weight(20);
    assert_eq!(sums.allowed(TaskId(1), 100, weight, wmult, 1024), 1024);
    let (weight, wmult) = crate::sched::fair::prio_weight(25);
    assert_eq!(sums.allowed(TaskId(2), 1, weight, wmult, 1), 32);
}

/// The estimate is clamped when it is stored, and counted while the task is queued.
#[test]
fn estimates_are_clamped() {
    for (form, expected) in [(UtilEstUclamp::Absent, 0), (UtilEstUclamp::Tracked, 110)] {
        let mut kernel = boot(|config| {
            config.util_est_uclamp = form;
            config.negative_bias = NegativeBias::Removed;
        });
        let p = task(&mut kernel, BIG, 300, 0, 110);
        wake(&mut kernel, BIG, p);
        assert_eq!(sums(&kernel, BIG).util_est, 0, "it has not slept yet");
        assert!(kernel.dequeue_task(BIG, p, DEQUEUE_SLEEP));
        kernel.sched.finish_block_task(p);
        assert_eq!(kernel.sched.tasks[p].uclamp.sums.util_est, expected, "{form:?}");
        wake(&mut kernel, BIG, p);
        assert_eq!(sums(&kernel, BIG).util_est, expected, "{form:?}");
        assert_eq!(kernel.sched.cfs[CfsRqId::root(BIG)].avg.util_est, 300);
        kernel.sched.verify_uclamp(BIG, &kernel.sched.tasks_of(BIG));
    }
}

/// Whether the governor is asked again when the bias has joined: with a cap only in the first version.
#[test]
fn the_governor_is_told_of_the_bias() {
    for (hook, min, max, expected) in [
        (UtilBiasHook::Always, 512, 1024, 512),
        (UtilBiasHook::Boosted, 512, 1024, 512),
        (UtilBiasHook::Boosted, 0, 1024, 0),
    ] {
        let mut kernel = boot(|config| config.enqueue_hook = hook);
        let p = task(&mut kernel, BIG, 10, min, max);
        kernel.cx.this_cpu = BIG;
        kernel.cx.now = 150_000_000;
        wake(&mut kernel, BIG, p);
        let policy = kernel.cx.policy_of(BIG);
        let asked = kernel.cpufreq.policy(policy).sugov.cached_raw_freq;
        let khz = if expected == 0 { 0 } else { 1_250_000 };
        assert!(asked.abs_diff(khz) <= 30_000, "{hook:?} {min}: {asked}");
    }
}

/// A capped task lowers its CPU's demand when its bias joins. Only the first version tells the governor of that; the
/// second one tells it of raised demands alone.
#[test]
fn the_governor_is_told_of_a_cap_by_the_first_version_alone() {
    for (hook, told) in [(UtilBiasHook::Always, true), (UtilBiasHook::Boosted, false)] {
        let mut kernel = boot(|config| config.enqueue_hook = hook);
        let p = task(&mut kernel, BIG, 800, 0, 300);
        let policy = kernel.cx.policy_of(BIG);
        kernel.cpufreq.policy_mut(policy).sugov.freq_update_delay_ns = 0;
        kernel.cx.this_cpu = BIG;
        kernel.cx.now = 101_000_000;
        wake(&mut kernel, BIG, p);
        assert!(sums(&kernel, BIG).bias < 0);
        assert_eq!(!kernel.sched.stale_demands.contains(BIG), told, "{hook:?}");
        // 300 with headroom; a governor that is not told goes on asking for what the enqueue found
        // before.
        assert_eq!(kernel.cpufreq.sugov_cpu(BIG).util == 375, told, "{hook:?}");
    }
}

/// The task with the highest factor is queued: `verify` finds an owner that has left, and a factor
/// without an owner.
#[test]
fn verify_finds_a_factor_whose_owner_has_left() {
    let found = |break_it: fn(&mut UclampRq, TaskId)| {
        let mut kernel = boot(|config| config.max_uclamp_factor = MaxUclampFactor::Tracked);
        let [here, away] = [512, 300].map(|util| task(&mut kernel, BIG, util, 0, 1024));
        wake(&mut kernel, BIG, here);
        kernel.sched.util_bias_update(here, &kernel.cx);
        assert_eq!(sums(&kernel, BIG).max_factor_of, Some(here));
        kernel.sched.change_sums(BIG, |sums| break_it(sums, away));
        let here = kernel.sched.tasks_of(BIG);
        let verified = std::panic::AssertUnwindSafe(|| kernel.sched.verify_uclamp(BIG, &here));
        std::panic::catch_unwind(verified).is_err()
    };
    assert!(!found(|_, _| {}));
    assert!(found(|sums, away| sums.max_factor_of = Some(away)));
    assert!(found(|sums, _| sums.max_factor_of = None));
}

/// Until somebody uses a clamp there are none, and a real-time task fits anywhere, as posted.
#[test]
fn the_key_is_off() {
    let mut kernel = boot(|config| config.uclamp = Uclamp::KeyOff);
    let p = task(&mut kernel, BIG, 300, 0, 110);
    assert_eq!(kernel.sched.tasks[p].uclamp.sums.bias, 0);
    wake(&mut kernel, BIG, p);
    assert_eq!(clamped_util(&kernel, BIG), 300);
    kernel.sched.tasks[p].class = crate::sched::Class::Rt;
    assert_eq!(kernel.sched.rt_uclamp_min(p, &kernel.cx), 0);
}
