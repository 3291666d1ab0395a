// SPDX-License-Identifier: GPL-2.0-or-later
//! Scenarios of the deadline class.

use super::*;
use crate::sched::OnRq;
use crate::sched::TaskKind;
use crate::sched::core::WF_TTWU;
use crate::sched::root_domain::tests::kernel;
use schedtwin_types::CpuMask;

const OPPS: &[(u32, u64)] = &[(1_000_000, 100_000)];

fn special(kernel: &mut Kernel, cpu: u16, mask: &[u16]) -> TaskId {
    let task = kernel.new_task(None, TaskKind::User);
    kernel.sched.make_special_dl(task);
    let t = &mut kernel.sched.tasks[task];
    t.cpu = CpuId(cpu);
    t.cpus_mask = CpuMask::from_cpus(mask.iter().map(|c| CpuId(*c)));
    t.nr_cpus_allowed = mask.len() as u32;
    task
}

fn wake(kernel: &mut Kernel, task: TaskId) {
    let cpu = kernel.sched.tasks[task].cpu;
    kernel.enqueue_task_dl(cpu, task, ENQUEUE_WAKEUP);
    kernel.sched.tasks[task].on_rq = OnRq::Queued;
    kernel.sched.verify_dl(cpu, &kernel.sched.tasks_of(cpu), &kernel.time);
}

/// The rate of what is left is compared in steps of 1024 ns, so two wakeups of one instant share a deadline.
#[test]
fn a_wakeup_moves_the_deadline() {
    for (deadline, clock, expected) in [
        (0, 5_000_000, 15_000_000),
        (15_000_000, 5_000_000, 15_000_000),
        (15_000_000, 5_000_512, 15_000_000),
        (15_000_000, 5_002_000, 15_002_000),
        (15_000_000, 15_000_001, 25_000_001),
    ] {
        let mut dl = DlEntity { runtime: 1_000_000, deadline, ..DlEntity::default() };
        dl.set_reservation(&SUGOV);
        dl.update(clock);
        assert_eq!((dl.deadline, dl.runtime), (expected, 1_000_000), "{deadline} at {clock}");
    }
}

#[test]
fn the_earliest_deadline_runs() {
    let mut kernel = kernel(&[(2, 1024, OPPS)]);
    let cpu = CpuId(0);
    let (late, early) = (special(&mut kernel, 0, &[0, 1]), special(&mut kernel, 0, &[0, 1]));
    kernel.sched.rq[cpu].clock = 2_000_000;
    wake(&mut kernel, late);
    kernel.sched.rq[cpu].clock = 1_000_000;
    wake(&mut kernel, early);
    assert_eq!(kernel.sched.rq[cpu].dl.queue, [early, late].map(DlNode::Task));
    assert_eq!(kernel.sched.pick_next_dl_entity(cpu), Some(DlNode::Task(early)));
    assert_eq!(kernel.sched.rq[cpu].nr_running, 2);
    kernel.dequeue_task_dl(cpu, early, DEQUEUE_SLEEP);
    assert_eq!(
        (kernel.sched.pick_next_dl_entity(cpu), kernel.sched.rd.cpudl.deadline_of(cpu)),
        (Some(DlNode::Task(late)), Some(12_000_000))
    );
}

/// A special task stays on its CPU, whichever task runs there, unless that is a deadline task that
/// cannot move or the CPU is too small for 1 ms in 10; then it goes to a CPU without deadline
/// entities.
#[test]
fn where_a_special_task_wakes() {
    let mut kernel = kernel(&[(3, 100, OPPS), (2, 1024, OPPS)]);
    let free = special(&mut kernel, 3, &[3, 4]);
    assert_eq!(kernel.sched.select_task_rq_dl(free, CpuId(3), WF_TTWU, &mut kernel.cx), CpuId(3));
    let pinned = special(&mut kernel, 3, &[3]);
    wake(&mut kernel, pinned);
    kernel.sched.rq[CpuId(3)].curr = pinned;
    assert_eq!(kernel.sched.select_task_rq_dl(free, CpuId(3), WF_TTWU, &mut kernel.cx), CpuId(4));
    assert_eq!(
        kernel.sched.select_task_rq_dl(free, CpuId(3), 0, &mut kernel.cx),
        CpuId(3),
        "a fork stays"
    );
    // None of its CPUs is large enough: its own is as good as any, if no other entity has it.
    let small = special(&mut kernel, 1, &[0, 1, 2]);
    assert_eq!(kernel.sched.select_task_rq_dl(small, CpuId(1), WF_TTWU, &mut kernel.cx), CpuId(1));
    let other = special(&mut kernel, 1, &[1]);
    wake(&mut kernel, other);
    assert_eq!(kernel.sched.select_task_rq_dl(small, CpuId(1), WF_TTWU, &mut kernel.cx), CpuId(0));
}

/// A second, plain implementation of the server: wide numbers, no wrapping, rules as the papers state them.
mod plain {
    #[derive(Clone, Debug)]
    pub struct Server {
        pub q: i128,
        pub d: i128,
        pub p: i128,
        pub runtime: i128,
        pub deadline: i128,
        pub throttled: bool,
        pub yielded: bool,
    }

    impl Server {
        fn fresh(&mut self, now: i128) {
            self.deadline = now + self.d;
            self.runtime = self.q;
        }

        pub fn wakeup(&mut self, now: i128) {
            if now > self.deadline {
                return self.fresh(now);
            }
            // runtime / (deadline − now) > q / d, each in steps of 1024 ns.
            let steps = |ns: i128| ns.div_euclid(1024);
            let left = steps(self.deadline - now);
            if steps(self.runtime) * steps(self.d) <= left * steps(self.q) {
                return;
            }
            if self.d == self.p {
                self.fresh(now);
            } else {
                self.runtime = ((self.q << 20) / self.d * (self.deadline - now)) >> 20;
            }
        }

        pub fn replenish(&mut self, now: i128) {
            if self.yielded {
                self.runtime = self.runtime.min(0);
            }
            if self.runtime <= 0 {
                let periods = -self.runtime / self.q + 1;
                self.runtime += periods * self.q;
                self.deadline += periods * self.p;
            }
            if self.deadline < now {
                self.fresh(now);
            }
            (self.throttled, self.yielded) = (false, false);
        }

        pub fn zero_lag(&self) -> i128 {
            self.deadline - self.runtime * self.p / self.q
        }
    }
}

#[test]
fn the_server_agrees_with_a_plain_one() {
    let mut random = 7u64;
    let mut below = |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
        (random >> 24) % limit
    };
    let (mut revised, mut renewed, mut kept, mut between) = (0, 0, 0, 0);
    for _ in 0..2_000 {
        let period = 100_000 + below(2_000_000_000);
        let deadline = if below(2) == 0 { period } else { period / 10 + below(period * 9 / 10) };
        let runtime = 1024 + below(deadline - 1024);
        let mut now = below(10_000_000_000);
        let mut dl = DlEntity::default();
        dl.set_reservation(&DlReservation { runtime, deadline, period });
        let (q, d, p) = (runtime as i128, deadline as i128, period as i128);
        let mut plain =
            plain::Server { q, d, p, runtime: 0, deadline: 0, throttled: false, yielded: false };
        for _ in 0..60 {
            now += below(period * 2);
            match below(4) {
                0 => {
                    let ran = below(runtime * 2) as i64;
                    dl.runtime -= ran;
                    plain.runtime -= ran as i128;
                }
                1 if dl.deadline != 0 => {
                    dl.yielded = below(3) == 0;
                    (dl.throttled, plain.throttled, plain.yielded) = (true, true, dl.yielded);
                    dl.replenish(now);
                    plain.replenish(now as i128);
                }
                _ => {
                    match dl.update(now) {
                        Update::Kept => kept += 1,
                        Update::Revised => revised += 1,
                        Update::NewPeriod => renewed += 1,
                    }
                    plain.wakeup(now as i128);
                }
            }
            let state = (dl.runtime as i128, dl.deadline as i128, dl.throttled, dl.yielded);
            let expected = (plain.runtime, plain.deadline, plain.throttled, plain.yielded);
            assert_eq!(state, expected, "{plain:?} at {now}");
            // Beyond 63 bits C's product wraps, as ours does.
            if (plain.runtime * p).abs() < 1 << 63 {
                assert_eq!(dl.zero_lag_in(now) as i128, plain.zero_lag() - now as i128);
            }
            let waits = plain.deadline < now as i128 && (now as i128) < plain.deadline - d + p;
            assert_eq!(dl.is_between_periods(now), waits);
            between += waits as u32;
        }
    }
    assert!(revised > 100 && renewed > 100 && kept > 100 && between > 100);
}

/// The heap's maximum is a latest deadline, and its sets are what was set.
#[test]
fn cpudl_knows_the_latest() {
    let mut random = 1u64;
    let mut below = |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % limit
    };
    let mut cpudl = Cpudl::new(CpuMask::first(9));
    let mut plain: [Option<u64>; 9] = [None; 9];
    for _ in 0..20_000 {
        let cpu = below(9) as usize;
        if below(3) == 0 {
            plain[cpu] = None;
            cpudl.clear(CpuId(cpu as u16));
        } else {
            // Near the wrap, and often equal.
            let deadline = (u64::MAX - 3).wrapping_add(below(8));
            plain[cpu] = Some(deadline);
            cpudl.set(CpuId(cpu as u16), deadline);
        }
        cpudl.verify();
        let latest = plain.iter().flatten().copied();
        let latest = latest.reduce(|a, b| if dl_time_before(a, b) { b } else { a });
        assert_eq!(cpudl.maximum().map(|(deadline, _)| deadline), latest);
        for (cpu, deadline) in plain.iter().enumerate() {
            assert_eq!(cpudl.deadline_of(CpuId(cpu as u16)), *deadline);
            assert_eq!(cpudl.free_cpus().contains(CpuId(cpu as u16)), deadline.is_none());
        }
    }
}
