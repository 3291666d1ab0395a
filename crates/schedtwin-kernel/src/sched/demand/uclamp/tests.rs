// SPDX-License-Identifier: GPL-2.0-or-later
//! Clamps on a kernel: which tasks are counted when, and what the governor sees.

mod sequences;

use super::*;
use crate::Kernel;
use crate::sched::TaskKind;
use crate::sched::root_domain::tests::{device_tree, kernel};
use crate::sched::{OnRq, core::ENQUEUE_WAKEUP};
use schedtwin_types::{Policy, PolicyId};

const OPPS: &[(u32, u64)] = &[(500_000, 100_000), (1_000_000, 300_000), (2_000_000, 900_000)];
const CPU: CpuId = CpuId(0);

fn boot(uclamp: Uclamp, uclamp_order: UclampOrder) -> Kernel {
    let config = Config {
        fair_server_runtime: 0,
        uclamp,
        uclamp_order,
        // Another default would turn the key on.
        uclamp_min_rt_default: if uclamp == Uclamp::KeyOff { 1024 } else { 700 },
        ..Config::linux_6_12()
    };
    Kernel::boot(device_tree(&[(1, 1024, OPPS)]), config)
}

fn task(kernel: &mut Kernel, request: UclampRequest) -> TaskId {
    let task = kernel.new_task(None, TaskKind::User);
    kernel.sched.tasks[task].uclamp_req = request;
    task
}

fn rt(kernel: &mut Kernel) -> TaskId {
    let task = task(kernel, UclampRequest::default());
    let t = &mut kernel.sched.tasks[task];
    (t.class, t.policy, t.prio) = (Class::Rt, Policy::Fifo, 50);
    task
}

/// A task's own request, else its class's default.
#[test]
fn effective_values() {
    let mut kernel = boot(Uclamp::On, UclampOrder::AfterEnqueue);
    let fair = task(&mut kernel, UclampRequest::default());
    let rt = rt(&mut kernel);
    assert_eq!(kernel.sched.uclamp_eff_value(fair, &kernel.cx), Clamps::NONE);
    assert_eq!(kernel.sched.uclamp_eff_value(rt, &kernel.cx), Clamps { min: 700, max: 1024 });
    assert_eq!(kernel.sched.rt_uclamp_min(rt, &kernel.cx), 700);
    kernel.sched.tasks[rt].uclamp_req = UclampRequest { min: Some(100), max: Some(50) };
    assert_eq!(kernel.sched.uclamp_eff_value(rt, &kernel.cx), Clamps { min: 100, max: 50 });
    // The placement of real-time tasks takes the smaller one.
    assert_eq!(kernel.sched.rt_uclamp_min(rt, &kernel.cx), 50);
    let mut kernel = boot(Uclamp::CompiledOut, UclampOrder::AfterEnqueue);
    let rt = self::rt(&mut kernel);
    assert_eq!(kernel.sched.rt_uclamp_min(rt, &kernel.cx), 0);
}

/// Writing a limit or another default of RT tasks counts as a use of clamps.
#[test]
fn what_turns_the_key_on_at_boot() {
    type Change = fn(&mut Config);
    let cases: [(Change, bool); 5] = [
        (|_| {}, false),
        (|config| config.uclamp_util_min = 1000, true),
        (|config| config.uclamp_util_max = 1000, true),
        (|config| config.uclamp_min_rt_default = 0, true),
        (|config| config.uclamp_min_rt_default = 1023, true),
    ];
    for (number, (change, used)) in cases.into_iter().enumerate() {
        for (uclamp, expected) in
            [(Uclamp::KeyOff, used), (Uclamp::On, true), (Uclamp::CompiledOut, false)]
        {
            let mut config = Config { uclamp, ..Config::linux_6_12() };
            change(&mut config);
            let kernel = Kernel::boot(device_tree(&[(1, 1024, OPPS)]), config);
            assert_eq!(kernel.sched.uclamp_is_used(), expected, "{number} {uclamp:?}");
        }
    }
}

/// The first request turns the key on; a task that is queued then is counted from its next enqueue,
/// the caller at once.
#[test]
fn a_task_asks() {
    let check = |uclamp, expected: Option<Clamps>| {
        let mut kernel = boot(uclamp, UclampOrder::AfterEnqueue);
        let [other, p] = [(); 2].map(|()| {
            let p = task(&mut kernel, UclampRequest::default());
            kernel.activate_task(CPU, p, ENQUEUE_WAKEUP);
            p
        });
        kernel.put_prev_set_next_task(CPU, TaskId::IDLE, p);
        kernel.sched.rq[CPU].curr = p;
        let mut ask = |util_min, util_max| {
            let attr = SchedAttr { util_min, util_max, ..SchedAttr::default() };
            kernel.sched_setattr(p, attr).unwrap();
            kernel.sched.verify_uclamp(CPU, &kernel.sched.tasks_of(CPU));
            kernel.sched.tasks[p].uclamp.active
        };
        assert_eq!(ask(Some(300), Some(500)), expected);
        // A minimum above the maximum that it has.
        assert_eq!(ask(Some(600), None), expected);
        let raised = expected.map(|clamps| Clamps { max: 800, ..clamps });
        assert_eq!(ask(None, Some(800)), raised);
        assert_eq!(kernel.sched.uclamp_is_used(), expected.is_some());
        let counted = kernel.sched.tasks[other].uclamp.active.is_some();
        assert_eq!(counted, uclamp == Uclamp::On);
        let max = if counted { 1024 } else { 800 };
        let asked = expected.map_or(Clamps::NONE, |_| Clamps { min: 300, max });
        assert_eq!(kernel.sched.rq[CPU].uclamp.clamps(), asked);
    };
    check(Uclamp::KeyOff, Some(Clamps { min: 300, max: 500 }));
    check(Uclamp::On, Some(Clamps { min: 300, max: 500 }));
    check(Uclamp::CompiledOut, None);
}

/// While it is queued, a task's clamps are those of its enqueue.
#[test]
fn the_effective_value_is_frozen() {
    let mut kernel = boot(Uclamp::On, UclampOrder::AfterEnqueue);
    let p = task(&mut kernel, UclampRequest { min: Some(300), max: Some(600) });
    kernel.activate_task(CPU, p, ENQUEUE_WAKEUP);
    kernel.sched.tasks[p].uclamp_req = UclampRequest { min: Some(900), max: None };
    assert_eq!(kernel.sched.uclamp_eff_value(p, &kernel.cx), Clamps { min: 300, max: 600 });
    kernel.sched.verify_uclamp(CPU, &kernel.sched.tasks_of(CPU));
    kernel.deactivate_task(CPU, p, 0);
    assert_eq!(kernel.sched.rq[CPU].uclamp.clamps(), Clamps { min: 0, max: 600 });
    assert_eq!(kernel.sched.uclamp_eff_value(p, &kernel.cx), Clamps { min: 900, max: 1024 });
    kernel.sched.verify_uclamp(CPU, &kernel.sched.tasks_of(CPU));
}

/// A waking task with a minimum of 512: what the governor is asked for during its enqueue, and next time.
/// A real-time task wants all there is while the key is off, at once.
#[test]
fn the_governor_sees_the_clamps_of_a_waking_task() {
    let requested = |uclamp, order, realtime: bool| {
        let mut kernel = boot(uclamp, order);
        let p = if realtime {
            rt(&mut kernel)
        } else {
            task(&mut kernel, UclampRequest { min: Some(512), max: None })
        };
        kernel.cx.this_cpu = CPU;
        kernel.cx.now = 50_000_000;
        kernel.activate_task(CPU, p, ENQUEUE_WAKEUP);
        let first = kernel.cpufreq.policy(PolicyId(0)).sugov.cached_raw_freq;
        // The rate limit is over.
        kernel.sched.rq[CPU].clock += 50_000_000;
        kernel.cpufreq_update_util(CPU, 0);
        kernel.verify_demand(CPU);
        (first, kernel.cpufreq.policy(PolicyId(0)).sugov.cached_raw_freq)
    };
    for (uclamp, order, realtime, expected) in [
        (Uclamp::On, UclampOrder::BeforeEnqueue, false, (1_000_000, 1_000_000)),
        (Uclamp::On, UclampOrder::AfterEnqueue, false, (0, 1_000_000)),
        (Uclamp::KeyOff, UclampOrder::AfterEnqueue, false, (0, 0)),
        (Uclamp::CompiledOut, UclampOrder::AfterEnqueue, false, (0, 0)),
        // 700 of 1024.
        (Uclamp::On, UclampOrder::BeforeEnqueue, true, (1_367_187, 1_367_187)),
        (Uclamp::On, UclampOrder::AfterEnqueue, true, (0, 1_367_187)),
        (Uclamp::KeyOff, UclampOrder::AfterEnqueue, true, (2_000_000, 2_000_000)),
        (Uclamp::CompiledOut, UclampOrder::AfterEnqueue, true, (2_000_000, 2_000_000)),
    ] {
        let got = requested(uclamp, order, realtime);
        assert_eq!(got, expected, "{uclamp:?} {order:?}, real-time: {realtime}");
    }
}

/// A delayed sleeper is not counted, and counts again when it is woken.
#[test]
fn a_delayed_task_has_left() {
    for order in [UclampOrder::BeforeEnqueue, UclampOrder::AfterEnqueue] {
        let mut kernel = boot(Uclamp::On, order);
        let p = task(&mut kernel, UclampRequest { min: Some(300), max: None });
        kernel.activate_task(CPU, p, ENQUEUE_WAKEUP);
        kernel.sched.uclamp_rq_dec(CPU, p, &kernel.cx);
        let se = kernel.sched.tasks[p].se;
        kernel.sched.se[se].sched_delayed = true;
        assert_eq!(kernel.sched.rq[CPU].uclamp.clamps().min, 0);
        // It moves: counted neither there nor here.
        kernel.sched.uclamp_rq_dec(CPU, p, &kernel.cx);
        kernel.sched.uclamp_rq_inc_before(CPU, p, 0, &kernel.cx);
        kernel.sched.uclamp_rq_inc_after(CPU, p, 0, &kernel.cx);
        assert_eq!(kernel.sched.rq[CPU].uclamp.clamps().min, 0, "{order:?}");
        // It is woken; the class's enqueue stands between the two.
        kernel.sched.uclamp_rq_inc_before(CPU, p, ENQUEUE_DELAYED, &kernel.cx);
        kernel.sched.se[se].sched_delayed = false;
        kernel.sched.uclamp_rq_inc_after(CPU, p, ENQUEUE_DELAYED, &kernel.cx);
        assert_eq!(kernel.sched.rq[CPU].uclamp.clamps().min, 300, "{order:?}");
        kernel.sched.verify_uclamp(CPU, &kernel.sched.tasks_of(CPU));
    }
}

/// A capped CPU has more to do than it may.
#[test]
fn capped() {
    let mut kernel = boot(Uclamp::On, UclampOrder::AfterEnqueue);
    let p = task(&mut kernel, UclampRequest { min: None, max: Some(300) });
    kernel.activate_task(CPU, p, ENQUEUE_WAKEUP);
    for (util, capped) in [(200, false), (280, true)] {
        kernel.sched.cfs[crate::sched::CfsRqId::root(CPU)].avg.util_avg = util;
        kernel.sched.rq[CPU].avg_rt.util_avg = 20;
        assert_eq!(kernel.sched.uclamp_rq_is_capped(CPU, &kernel.cx), capped, "{util}");
    }
    let q = task(&mut kernel, UclampRequest::default());
    kernel.activate_task(CPU, q, ENQUEUE_WAKEUP);
    assert!(!kernel.sched.uclamp_rq_is_capped(CPU, &kernel.cx), "one task without a cap lifts it");
}

/// Before 6.8 a utilisation is clamped by the queue's aggregate, with a task by both; an idle queue's
/// retained maximum does not count then.
#[test]
fn util_with() {
    let mut kernel = boot(Uclamp::On, UclampOrder::BeforeEnqueue);
    let capped = task(&mut kernel, UclampRequest { min: None, max: Some(300) });
    let boosted = task(&mut kernel, UclampRequest { min: Some(500), max: None });
    kernel.activate_task(CPU, capped, ENQUEUE_WAKEUP);
    let with = |k: &Kernel, util, task| k.sched.uclamp_rq_util_with(CPU, util, task, &k.cx);
    assert_eq!(with(&kernel, 800, None), 300);
    assert_eq!(with(&kernel, 800, Some(boosted)), 800);
    assert_eq!(with(&kernel, 100, Some(boosted)), 500);
    kernel.sched.tasks[capped].on_rq = OnRq::Queued;
    kernel.deactivate_task(CPU, capped, 0);
    assert_eq!(with(&kernel, 800, None), 300);
    assert_eq!(with(&kernel, 800, Some(capped)), 300);
    // An inverted pair is its minimum.
    let odd = task(&mut kernel, UclampRequest { min: Some(600), max: Some(400) });
    assert_eq!(with(&kernel, 100, Some(odd)), 600);
    assert_eq!(with(&kernel, 900, Some(odd)), 600);
    // The key is off: nothing happens.
    let kernel = self::kernel(&[(1, 1024, OPPS)]);
    assert_eq!(with(&kernel, 800, None), 800);
}

/// −1 goes back to the default of the class. A change of class gives the new default to a side that nobody asked for,
/// unless the same call gives a clamp: then it stays as it was.
#[test]
fn back_to_the_default() {
    const RESET: Option<u16> = Some(SchedAttr::UTIL_CLAMP_RESET);
    let (normal, fifo) = (Policy::Normal, Policy::Fifo);
    type Call = (Policy, Option<u16>, Option<u16>, (u32, u32));
    let check = |calls: &[Call]| {
        let mut kernel = boot(Uclamp::On, UclampOrder::AfterEnqueue);
        let p = task(&mut kernel, UclampRequest::default());
        kernel.activate_task(CPU, p, ENQUEUE_WAKEUP);
        kernel.put_prev_set_next_task(CPU, TaskId::IDLE, p);
        kernel.sched.rq[CPU].curr = p;
        for (step, &(policy, util_min, util_max, (min, max))) in calls.iter().enumerate() {
            let rt_priority = if policy == fifo { 50 } else { 0 };
            let attr =
                SchedAttr { policy, rt_priority, util_min, util_max, ..SchedAttr::default() };
            kernel.sched_setattr(p, attr).unwrap();
            assert_eq!(
                kernel.sched.uclamp_eff_value(p, &kernel.cx),
                Clamps { min, max },
                "{calls:?}, step {step}"
            );
            kernel.sched.verify_uclamp(CPU, &kernel.sched.tasks_of(CPU));
        }
    };
    check(&[
        (normal, Some(300), Some(600), (300, 600)),
        (normal, RESET, None, (0, 600)),
        (normal, Some(200), RESET, (200, 1024)),
        (normal, RESET, RESET, (0, 1024)),
    ]);
    // By default 700; a request stays in every class.
    check(&[(fifo, None, None, (700, 1024)), (normal, None, None, (0, 1024))]);
    check(&[(fifo, Some(100), None, (100, 1024)), (fifo, RESET, None, (700, 1024))]);
    check(&[(normal, Some(100), None, (100, 1024)), (fifo, None, None, (100, 1024))]);
    // The call gives a maximum, so the minimum is no longer the class's.
    check(&[(fifo, None, Some(500), (0, 500)), (normal, None, None, (0, 500))]);
    check(&[(fifo, None, None, (700, 1024)), (normal, None, Some(800), (700, 800))]);
    check(&[
        (fifo, None, None, (700, 1024)),
        (normal, None, Some(800), (700, 800)),
        (normal, None, Some(600), (700, 800)), // refused: below the minimum
        (fifo, None, None, (700, 800)),
        (normal, None, None, (0, 800)),
    ]);
}
