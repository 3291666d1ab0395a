// SPDX-License-Identifier: GPL-2.0-or-later
//! Queues and levels of the RT class, and throttling.

use super::*;
use crate::config::{BalanceFair, Config, RtBandwidth, Uclamp};
use crate::sched::TaskKind;
use crate::sched::root_domain::tests::{device_tree, kernel};

const OPPS: &[(u32, u64)] = &[(1_000_000, 100_000)];

fn rt_task(kernel: &mut Kernel, cpu: u16, prio: i32) -> TaskId {
    let task = kernel.new_task(None, TaskKind::User);
    let t = &mut kernel.sched.tasks[task];
    (t.class, t.policy, t.prio, t.cpu) = (Class::Rt, Policy::Fifo, prio, CpuId(cpu));
    task
}

fn queue(kernel: &mut Kernel, task: TaskId) {
    let cpu = kernel.sched.tasks[task].cpu;
    kernel.enqueue_task_rt(cpu, task, 0);
    kernel.sched.tasks[task].on_rq = OnRq::Queued;
}

#[test]
fn levels_of_cpupri() {
    let mut kernel = kernel(&[(2, 1024, OPPS)]);
    assert_eq!(kernel.cx.rr_time_slice(), 25);
    let task = rt_task(&mut kernel, 1, 49);
    queue(&mut kernel, task);
    assert_eq!(kernel.sched.rq[CpuId(1)].rt.cpupri, 50);
    // A better RT task overwrites the mark of a deadline entity (a quirk), a worse one does not.
    kernel.sched.cpupri_deadline_queued(CpuId(1));
    let worse = rt_task(&mut kernel, 1, 60);
    queue(&mut kernel, worse);
    assert_eq!(kernel.sched.rq[CpuId(1)].rt.cpupri, 100);
    let better = rt_task(&mut kernel, 1, 40);
    queue(&mut kernel, better);
    assert_eq!(kernel.sched.rq[CpuId(1)].rt.cpupri, 59);
    kernel.sched.cpupri_deadline_gone(CpuId(1));
    kernel.dequeue_task_rt(CpuId(1), better, 0);
    assert_eq!(kernel.sched.rq[CpuId(1)].rt.cpupri, 50);
}

/// A preempted task keeps its place in the queue but is the last of its priority to be pushed.
#[test]
fn the_pushable_list_has_an_order_of_its_own() {
    let mut kernel = kernel(&[(2, 1024, OPPS)]);
    let cpu = CpuId(0);
    let running = rt_task(&mut kernel, 0, 50);
    queue(&mut kernel, running);
    // Woken and not yet running: the CPU counts as overloaded already.
    assert!(kernel.sched.rd.rto_mask.contains(cpu));
    kernel.sched.set_next_task_rt(cpu, TaskId::IDLE, running, true, &kernel.cx);
    kernel.sched.rq[cpu].curr = running;
    assert!(!kernel.sched.rd.rto_mask.contains(cpu) && !kernel.sched.rq[cpu].push_pending);
    let other = rt_task(&mut kernel, 0, 50);
    queue(&mut kernel, other);
    let better = rt_task(&mut kernel, 0, 40);
    queue(&mut kernel, better);
    kernel.put_prev_task_rt(cpu, running, better);
    let order = |list: &[(i32, TaskId)]| list.iter().map(|e| e.1).collect::<Vec<_>>();
    assert_eq!(order(&kernel.sched.rq[cpu].rt.queue), [better, running, other]);
    assert_eq!(order(&kernel.sched.rq[cpu].rt.pushable), [better, other, running]);
}

/// The lowest level wins; on asymmetric machines the lowest level that has a CPU of full capacity.
#[test]
fn lowest_mask() {
    let mut kernel = kernel(&[(2, 300, OPPS), (2, 1024, OPPS)]);
    let task = rt_task(&mut kernel, 0, 50);
    let mask = |k: &Kernel, fit| {
        k.sched.lowest_mask(task, fit, &k.cx).iter().map(|c| c.0).collect::<Vec<_>>()
    };
    assert_eq!(mask(&kernel, false), [0, 1, 2, 3]);
    assert_eq!(mask(&kernel, true), [2, 3]);
    for (cpu, prio) in [(2, 60), (3, 50)] {
        let busy = rt_task(&mut kernel, cpu, prio);
        queue(&mut kernel, busy);
    }
    // CPU 2's is worse than the task, CPU 3's is not.
    assert_eq!(mask(&kernel, true), [2]);
    let busy = rt_task(&mut kernel, 2, 10);
    queue(&mut kernel, busy);
    assert_eq!(mask(&kernel, true), [0, 1], "none fits: any will do");
}

/// Which CPUs are big enough for an RT task follows its default clamp, if there are clamps.
#[test]
fn the_default_clamp_says_what_fits() {
    let table = [
        (Uclamp::CompiledOut, 1024, [true, true, true]),
        (Uclamp::KeyOff, 1024, [false, false, true]),
        (Uclamp::On, 1024, [false, false, true]),
        (Uclamp::KeyOff, 600, [false, true, true]),
        (Uclamp::KeyOff, 0, [true, true, true]),
    ];
    for (uclamp, default, expected) in table {
        let config = Config { uclamp, uclamp_min_rt_default: default, ..Config::linux_6_12() };
        let domains = [(1, 300, OPPS), (1, 600, OPPS), (1, 1024, OPPS)];
        let mut kernel = Kernel::boot(device_tree(&domains), config);
        let task = rt_task(&mut kernel, 0, 50);
        let fits =
            [0, 1, 2].map(|cpu| kernel.sched.rt_task_fits_capacity(task, CpuId(cpu), &kernel.cx));
        assert_eq!(fits, expected, "{uclamp:?} {default}");
    }
}

/// A throttled queue counts as empty for all callers, and takes and loses tasks silently.
#[test]
fn a_throttled_queue_counts_nothing() {
    let mut kernel = kernel(&[(2, 1024, OPPS)]);
    kernel.cx.config.rt_bandwidth = RtBandwidth::Throttling;
    let cpu = CpuId(0);
    let (first, second) = (rt_task(&mut kernel, 0, 50), rt_task(&mut kernel, 0, 40));
    queue(&mut kernel, first);
    assert_eq!(kernel.sched.rq[cpu].nr_running, 1);
    kernel.account_rt_time(cpu, 950_000_000);
    assert!(!*kernel.sched.rq[cpu].rt.throttled, "the whole runtime may be used");
    kernel.account_rt_time(cpu, 1);
    queue(&mut kernel, second);
    assert_eq!((kernel.sched.rq[cpu].nr_running, kernel.sched.rq[cpu].rt.nr_running()), (0, 0));
    assert_eq!(kernel.sched.pick_task_rt(cpu), None);
    kernel.dequeue_task_rt(cpu, first, 0);
    assert_eq!(kernel.sched.rq[cpu].nr_running, 0);
    // The timer comes a period late, and so forgives two.
    kernel.sched.rq[cpu].rt.rt_time = 2_600_000_000;
    kernel.cx.now = 2_500_000_000;
    kernel.sched_rt_period_timer(1_500_000_000);
    assert_eq!(
        (kernel.sched.rq[cpu].rt.rt_time, kernel.sched.rq[cpu].nr_running),
        (700_000_000, 1)
    );
    assert_eq!(kernel.sched.pick_task_rt(cpu), Some(second));
}

/// A CPU whose last fair task falls asleep while an RT task waits for it (its interrupt is on the way) looks
/// for other fair tasks in 6.12 only; with a throttled RT queue it is about to idle, and looks always.
#[test]
fn an_rt_task_that_waits_keeps_fair_ones_from_being_pulled() {
    for (point, expected) in [(BalanceFair::NoTask, false), (BalanceFair::NoFairTask, true)] {
        let mut kernel = kernel(&[(2, 1024, OPPS)]);
        (kernel.cx.config.balance_fair, kernel.cx.config.rt_bandwidth) =
            (point, RtBandwidth::Throttling);
        let cpu = CpuId(0);
        assert!(kernel.sched.balance_fair_looks(cpu, &kernel.cx), "{point:?}: nobody");
        let task = rt_task(&mut kernel, 0, 50);
        queue(&mut kernel, task);
        assert_eq!(kernel.sched.balance_fair_looks(cpu, &kernel.cx), expected, "{point:?}");
        kernel.account_rt_time(cpu, 950_000_001);
        assert!(kernel.sched.balance_fair_looks(cpu, &kernel.cx), "{point:?}: throttled");
    }
}
