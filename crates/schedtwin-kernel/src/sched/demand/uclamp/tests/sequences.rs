// SPDX-License-Identifier: GPL-2.0-or-later
//! Random sequences of whatever changes clamps: after each step what run queues keep is recomputed from their tasks.
//!
//! `SCHEDTWIN_UCLAMP_STEPS` says how many steps each configuration gets; a million takes some seconds.

use crate::Kernel;
use crate::config::{
    Config, MaxUclampFactor, NegativeBias, Uclamp, UclampAggregation, UclampOrder, UtilBiasHook,
};
use crate::sched::core::{DEQUEUE_SLEEP, ENQUEUE_DELAYED, ENQUEUE_NOCLOCK, ENQUEUE_WAKEUP};
use crate::sched::demand::uclamp::group::capacity_from_percent;
use crate::sched::root_domain::tests::little_and_big;
use crate::sched::{CfsRqId, Class, OnRq, TaskKind, pelt};
use schedtwin_types::rng::Rng;
use schedtwin_types::{CpuId, Policy, SchedAttr, TaskGroupId, TaskId};

/// Counts of what has happened, so that a test can assert that each case has.
#[derive(Debug, Default)]
struct Tally {
    woken: u32,
    requeued: u32,
    slept: u32,
    delayed: u32,
    migrated: u32,
    moved_delayed: u32,
    switched: u32,
    attributes: u32,
    realtime: u32,
    groups: u32,
    group_clamps: u32,
    capped: u32,
    raised: u32,
}

struct Play {
    kernel: Kernel,
    tasks: Vec<TaskId>,
    groups: Vec<TaskGroupId>,
    random: Rng,
    tally: Tally,
}

impl Play {
    fn new(config: Config, seed: u64) -> Play {
        let mut kernel = little_and_big(config);
        kernel.cx.now = 100_000_000;
        let app = kernel.sched.new_task_group(TaskGroupId::ROOT, 1024, &kernel.cx);
        let inner = kernel.sched.new_task_group(app, 1024, &kernel.cx);
        let groups = vec![TaskGroupId::ROOT, app, inner];
        let mut random = Rng::with_state(seed);
        let tasks = (0..10)
            .map(|_| {
                let p = kernel.new_task(None, TaskKind::User);
                let cpu = CpuId(random.below(2) as u16);
                kernel.sched.tasks[p].cpu = cpu;
                let group = groups[random.below(3) as usize];
                (kernel.sched.tasks[p].group, kernel.sched.tasks[p].cgroup) = (group, group);
                kernel.sched.set_task_rq(p, cpu);
                p
            })
            .collect();
        Play { kernel, tasks, groups, random, tally: Tally::default() }
    }

    fn any_cpu(&mut self) -> CpuId {
        CpuId(self.random.below(2) as u16)
    }

    fn passes(&mut self) {
        self.kernel.cx.now += self.random.below(6_000_000);
        for cpu in [CpuId(0), CpuId(1)] {
            self.kernel.sched.update_rq_clock(cpu, &self.kernel.cx);
            let curr = self.kernel.sched.rq[cpu].curr;
            if self.kernel.sched.tasks[curr].class == Class::Fair {
                self.kernel.task_tick_fair(cpu, curr);
            }
        }
    }

    /// The CPU runs another task: a queued one, or none.
    fn switches(&mut self, cpu: CpuId, leave: bool) {
        let k = &mut self.kernel;
        k.sched.update_rq_clock(cpu, &k.cx);
        let prev = k.sched.rq[cpu].curr;
        let realtime = self.tasks.iter().copied().find(|&p| {
            let t = &k.sched.tasks[p];
            t.class == Class::Rt && t.cpu == cpu && t.on_rq == OnRq::Queued
        });
        let next = match realtime {
            _ if leave => None,
            Some(p) => Some(p),
            None => k.pick_task_fair(cpu),
        };
        let next = next.unwrap_or(TaskId::IDLE);
        if next != prev {
            k.put_prev_set_next_task(cpu, prev, next);
            k.sched.rq[cpu].curr = next;
            self.tally.switched += 1;
        }
    }

    fn step(&mut self) {
        let p = self.tasks[self.random.below(10) as usize];
        let cpu = self.kernel.sched.tasks[p].cpu;
        self.kernel.cx.this_cpu = cpu;
        let delayed = self.kernel.sched.se[self.kernel.sched.tasks[p].se].sched_delayed;
        let running = self.kernel.sched.rq[cpu].curr == p;
        let queued = self.kernel.sched.tasks[p].on_rq == OnRq::Queued;
        match self.random.below(12) {
            0..=2 => self.passes(),
            3..=4 if !queued => {
                let to = self.any_cpu();
                self.kernel.set_task_cpu(p, to);
                self.kernel.activate_task(to, p, ENQUEUE_WAKEUP);
                self.tally.woken += 1;
            }
            3..=4 if delayed => {
                self.kernel.sched.update_rq_clock(cpu, &self.kernel.cx);
                self.kernel.enqueue_task(cpu, p, ENQUEUE_NOCLOCK | ENQUEUE_DELAYED);
                self.tally.requeued += 1;
            }
            5..=6 if queued && !delayed => {
                if self.kernel.dequeue_task(cpu, p, DEQUEUE_SLEEP) {
                    self.kernel.sched.finish_block_task(p);
                    self.tally.slept += 1;
                } else {
                    self.tally.delayed += 1;
                }
                if running {
                    self.switches(cpu, false);
                }
            }
            7 if queued && !running => {
                self.kernel.deactivate_task(cpu, p, 0);
                let to = self.any_cpu();
                self.kernel.set_task_cpu(p, to);
                self.kernel.activate_task(to, p, 0);
                self.tally.migrated += 1;
                self.tally.moved_delayed += u32::from(delayed);
            }
            8 => {
                let leave = self.random.below(8) == 0;
                self.switches(cpu, leave);
            }
            9..=10 if running && !delayed => {
                let attr = self.any_attributes();
                self.kernel.sched_setattr(p, attr).unwrap();
                self.tally.attributes += 1;
                self.tally.realtime += u32::from(attr.policy == Policy::Fifo);
            }
            11 if running && !delayed && self.random.below(2) == 0 => {
                let group = self.groups[self.random.below(3) as usize];
                self.kernel.cpu_cgroup_attach(p, group);
                self.tally.groups += 1;
            }
            11 => {
                let group = self.groups[1 + self.random.below(2) as usize];
                let mut percent = || Some(self.random.below(10_001) as u32);
                let (min, max) = (percent(), percent());
                self.kernel.sched.cpu_uclamp_write(group, min, max, &self.kernel.cx);
                assert!(capacity_from_percent(max.unwrap_or(0)) <= 1024);
                self.tally.group_clamps += 1;
            }
            _ => {}
        }
    }

    fn any_attributes(&mut self) -> SchedAttr {
        let mut clamp = || match self.random.below(6) {
            0 => None,
            1 => Some(SchedAttr::UTIL_CLAMP_RESET),
            2 => Some(1024),
            _ => Some(self.random.below(1025) as u16),
        };
        let (util_min, util_max) = (clamp(), clamp());
        let realtime = self.random.below(5) == 0;
        SchedAttr {
            policy: if realtime { Policy::Fifo } else { Policy::Normal },
            nice: self.random.below(40) as i8 - 20,
            rt_priority: if realtime { 50 } else { 0 },
            util_min,
            util_max,
            ..SchedAttr::default()
        }
    }

    /// The rule of 6.16 counts an estimate from an enqueue of a task that is not delayed, or is being woken, to a
    /// dequeue of one that is not delayed: the runnable ones. Those of 6.12, which look at moves instead, count the same.
    fn verify_util_est(&self, cpu: CpuId) {
        let k = &self.kernel;
        let runnable = |&&p: &&TaskId| {
            let t = &k.sched.tasks[p];
            let queued = t.cpu == cpu && t.on_rq == OnRq::Queued && t.class == Class::Fair;
            queued && !k.sched.se[t.se].sched_delayed
        };
        let estimates = self.tasks.iter().filter(runnable);
        let estimates =
            estimates.map(|&p| pelt::_task_util_est(&k.sched.se[k.sched.tasks[p].se].avg));
        let counted = k.sched.cfs[CfsRqId::root(cpu)].avg.util_est;
        assert_eq!(u64::from(counted), estimates.sum::<u64>(), "{cpu:?}: util_est");
    }

    fn verify(&mut self) {
        for cpu in [CpuId(0), CpuId(1)] {
            self.kernel.sched.verify_uclamp(cpu, &self.kernel.sched.tasks_of(cpu));
            self.kernel.verify_demand(cpu);
            self.verify_util_est(cpu);
        }
        for &p in &self.tasks {
            let bias = self.kernel.sched.tasks[p].uclamp.sums.bias;
            self.tally.capped += u32::from(bias < 0);
            self.tally.raised += u32::from(bias > 0);
            assert!((-1100..=1024).contains(&bias), "{p:?}: bias {bias}");
        }
    }
}

fn steps() -> u64 {
    let asked = std::env::var("SCHEDTWIN_UCLAMP_STEPS").ok();
    asked.map_or(6_000, |steps| steps.parse().expect("a number of steps"))
}

fn play(name: &str, seed: u64, change: impl FnOnce(&mut Config)) -> Tally {
    let mut config =
        Config { uclamp: Uclamp::KeyOff, fair_group_sched: true, ..Config::linux_6_12() };
    change(&mut config);
    let mut play = Play::new(config, seed);
    for step in 0..steps() {
        play.step();
        let verified = std::panic::AssertUnwindSafe(|| play.verify());
        if let Err(cause) = std::panic::catch_unwind(verified) {
            eprintln!("{name}, seed {seed}, step {step}");
            std::panic::resume_unwind(cause);
        }
    }
    let t = &play.tally;
    let happened =
        [t.woken, t.requeued, t.slept, t.delayed, t.migrated, t.switched, t.moved_delayed];
    assert!(happened.iter().all(|count| *count > 20), "{name}: {t:?}");
    let changed = [t.attributes, t.realtime, t.groups, t.group_clamps];
    assert!(changed.iter().all(|count| *count > 20), "{name}: {t:?}");
    play.tally
}

#[test]
fn max_aggregation() {
    for (seed, buckets) in [(1, 5), (2, 7), (3, 20)] {
        for order in [UclampOrder::BeforeEnqueue, UclampOrder::AfterEnqueue] {
            let tally = play(&format!("max, {buckets} buckets, {order:?}"), seed, |config| {
                config.uclamp_buckets = buckets;
                config.uclamp_order = order;
            });
            assert_eq!((tally.capped, tally.raised), (0, 0), "no sums");
        }
    }
}

#[test]
fn sum_aggregation() {
    for (seed, negative_bias) in [(4, NegativeBias::Removed), (5, NegativeBias::Propagated)] {
        for factor in [MaxUclampFactor::Absent, MaxUclampFactor::Tracked] {
            for hook in [UtilBiasHook::Always, UtilBiasHook::Boosted] {
                let name = format!("sum, {negative_bias:?}, factor {factor:?}, {hook:?}");
                let tally = play(&name, seed, |config| {
                    config.uclamp_aggregation = UclampAggregation::Sum;
                    config.util_est_uclamp = crate::config::UtilEstUclamp::Tracked;
                    config.negative_bias = negative_bias;
                    config.max_uclamp_factor = factor;
                    config.enqueue_hook = hook;
                });
                assert!(tally.capped > 100 && tally.raised > 100, "{name}: {tally:?}");
            }
        }
    }
}
