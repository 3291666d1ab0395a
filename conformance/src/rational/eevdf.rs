// SPDX-License-Identifier: GPL-2.0-or-later
//! EEVDF from its definitions.
//!
//! **Terms.** v: a task's virtual runtime; w: its weight; d: its virtual deadline. V = Σ w·v / Σ w over all
//! that are queued, the running one included. A task is *eligible* if v ≤ V. *Lag* = V − v.
//!
//! **Rules.**
//! 1. Running for t costs t·1024/w of virtual time. A task that reaches d gets a new one, a slice
//!    further on.
//! 2. The eligible task with the earliest d runs; among equals the one queued first, the running one last.
//!    A task that has just been switched to is *protected*: while it is eligible it stays until it reaches d.
//! 3. A task that leaves keeps its lag, at most the larger of two slices and a tick worth, in
//!    either direction. A task that comes is placed such that its lag *afterwards*, when it counts
//!    in V itself, is what it was.
//! 4. A task that falls asleep with v > V stays queued, *delayed*, until it would be chosen or
//!    wakes.
//!
//! Virtual times are counted from where the sequence began, so nothing wraps.
//!
//! Differences from the definitions, all of them the kernel's: V, where it becomes part of a virtual time,
//! is its floor; an empty queue's V is that of the last departure.
//!
//! References: Stoica, Abdel-Wahab, "Earliest Eligible Virtual Deadline First", TR-95-22.

use super::{Fraction, Model, charge, weight};
use crate::eevdf as world;
use crate::l0::Record;
use schedtwin_kernel::sched::LoadWeight;

/// A task.
#[derive(Clone, Debug)]
struct Task {
    load: LoadWeight,
    /// Requested slice; `None`: the base slice of the kernel.
    slice: Option<i128>,
    v: i128,
    /// Virtual deadline; relative to v if `relative`.
    d: i128,
    relative: bool,
    /// Lag that it left with.
    lag: i128,
    queued: bool,
    delayed: bool,
    /// Keeps the CPU until its deadline while eligible.
    protected: bool,
    normal: bool,
    idle: bool,
    /// When it was inserted, among all insertions: decides between equal deadlines.
    inserted: u64,
}

#[derive(Default)]
struct Features {
    place_lag: bool,
    place_deadline_initial: bool,
    place_rel_deadline: bool,
    run_to_parity: bool,
    preempt_short: bool,
    delay_dequeue: bool,
    delay_zero: bool,
    wakeup_preemption: bool,
}

/// One CPU.
pub struct Eevdf {
    tasks: Vec<Task>,
    /// The task that runs, or has just blocked and not been switched from.
    curr: Option<usize>,
    clock: i128,
    /// Up to when the running task has been charged.
    charged_until: i128,
    base_slice: i128,
    tick: i128,
    features: Features,
    reschedule: bool,
    /// The kernel's number for virtual time 0.
    origin: u64,
    /// Floor of V when somebody left last.
    last_v: i128,
    insertions: u64,
}

impl Eevdf {
    fn queued(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| task.queued)
    }

    fn count(&self) -> usize {
        self.queued().count()
    }

    /// V, of a queue that is not empty.
    fn average(&self) -> Option<Fraction> {
        let weights: i128 = self.queued().map(|task| weight(task.load)).sum();
        let sum = self.queued().map(|task| weight(task.load) * task.v).sum();
        (weights != 0).then(|| Fraction::new(sum, weights))
    }

    fn average_floor(&self) -> i128 {
        self.average().map_or(self.last_v, Fraction::floor)
    }

    /// v ≤ V. Where nobody is queued nobody is owed more.
    fn eligible(&self, task: usize) -> bool {
        self.average().is_none_or(|average| average.at_least(self.tasks[task].v))
    }

    fn virtual_slice(&self, task: usize) -> i128 {
        let task = &self.tasks[task];
        charge(task.slice.unwrap_or(self.base_slice), task.load)
    }

    /// Rule 2.
    fn pick(&self) -> Option<usize> {
        let average = self.average()?;
        let eligible =
            |&number: &usize| self.tasks[number].queued && average.at_least(self.tasks[number].v);
        let stays = |number: &usize| self.tasks[*number].protected && self.features.run_to_parity;
        if self.count() > 1
            && let Some(curr) = self.curr.filter(eligible).filter(stays)
        {
            return Some(curr);
        }
        let order = |number: &usize| {
            let task = &self.tasks[*number];
            (task.d, self.curr == Some(*number), task.inserted)
        };
        (0..self.tasks.len()).filter(eligible).min_by_key(order)
    }

    /// Rule 1.
    fn run(&mut self) {
        let Some(curr) = self.curr else { return };
        let ran = self.clock - self.charged_until;
        if ran <= 0 {
            return;
        }
        self.charged_until = self.clock;
        self.tasks[curr].v += charge(ran, self.tasks[curr].load);
        let used_up = self.renew_deadline(curr);
        let overdrawn =
            self.features.preempt_short && !self.tasks[curr].protected && !self.eligible(curr);
        if self.count() != 1 && (used_up || overdrawn) {
            self.reschedule = true;
        }
    }

    fn renew_deadline(&mut self, number: usize) -> bool {
        let used_up = self.tasks[number].v >= self.tasks[number].d;
        if used_up {
            self.tasks[number].d = self.tasks[number].v + self.virtual_slice(number);
            self.tasks[number].protected = false;
            if let Some(average) = self.average() {
                self.last_v = average.floor();
            }
        }
        used_up
    }

    /// Rule 3, who leaves: the lag.
    fn take_lag(&mut self, number: usize) {
        self.last_v = self.average_floor();
        let task = &self.tasks[number];
        let slice = task.slice.unwrap_or(self.base_slice);
        let limit = charge((2 * slice).max(self.tick), task.load);
        let lag = (self.last_v - task.v).clamp(-limit, limit);
        self.tasks[number].lag = lag;
        self.tasks[number].protected = false;
    }

    /// Rule 3, who comes. `others`: whether somebody is there. It counts in V only if it runs.
    fn place(&mut self, number: usize, others: bool, initial: bool) {
        let before = self.average();
        self.last_v = self.average_floor();
        let task = &self.tasks[number];
        let w = weight(task.load);
        let mut v = self.last_v;
        if self.features.place_lag && others {
            let weights = before.map_or(0, |average| average.denominator);
            v -= Fraction::new(task.lag * (weights + w), weights.max(1)).truncated();
            if let Some(before) = before.filter(|_| !task.queued) {
                // V afterwards, v included; the lag is what it was, but for two roundings.
                let after = Fraction::new(before.numerator + v * w, weights + w);
                let lag = Fraction::new(after.numerator - v * after.denominator, after.denominator);
                assert!(lag.between(task.lag - 1, task.lag + 2), "lag {lag:?} for {}", task.lag);
            }
        }
        let slice = self.virtual_slice(number);
        let half = initial && self.features.place_deadline_initial;
        let task = &mut self.tasks[number];
        task.v = v;
        if task.relative && self.features.place_rel_deadline {
            task.d += v;
            task.relative = false;
        } else {
            task.d = v + if half { slice / 2 } else { slice };
        }
        task.protected = false;
    }

    fn insert(&mut self, number: usize) {
        self.insertions += 1;
        self.tasks[number].inserted = self.insertions;
    }

    fn join(&mut self, number: usize, initial: bool) {
        let running = self.curr == Some(number);
        // Who has blocked and wakes before the switch is placed first, then charged.
        if running {
            self.place(number, self.count() != 0, initial);
        }
        self.run();
        if !running {
            self.place(number, self.count() != 0, initial);
        }
        self.tasks[number].queued = true;
        self.insert(number);
    }

    fn leave(&mut self, number: usize, sleeps: bool) {
        self.take_lag(number);
        let keeps_deadline = self.features.place_rel_deadline && !sleeps;
        let task = &mut self.tasks[number];
        if keeps_deadline {
            task.d -= task.v;
            task.relative = true;
        }
        task.queued = false;
    }

    /// Rule 4.
    fn block(&mut self, number: usize, may_delay: bool) {
        self.run();
        if self.features.delay_dequeue && may_delay && !self.eligible(number) {
            self.tasks[number].delayed = true;
        } else {
            self.leave(number, true);
        }
    }

    fn wake(&mut self, number: usize, initial: bool) {
        if !self.tasks[number].queued {
            self.join(number, initial);
        } else {
            if self.features.delay_zero {
                self.take_lag(number);
                if self.tasks[number].lag > 0 {
                    // Its debt is paid, and what it would be owed since is not kept.
                    self.tasks[number].lag = 0;
                    let running = self.curr == Some(number);
                    self.tasks[number].queued = running;
                    self.place(number, self.count() > running as usize, false);
                    self.tasks[number].queued = true;
                    self.insert(number);
                }
            }
            self.tasks[number].delayed = false;
        }
        self.preempt(number);
    }

    /// Whether who has just come takes the CPU.
    fn preempt(&mut self, number: usize) {
        let Some(curr) = self.curr else {
            self.reschedule = true;
            return;
        };
        if curr == number || self.reschedule || !self.features.wakeup_preemption {
            return;
        }
        let (comes, runs) = (&self.tasks[number], &self.tasks[curr]);
        if runs.idle != comes.idle {
            if runs.idle {
                self.tasks[curr].protected = false;
                self.reschedule = true;
            }
            return;
        }
        if !comes.normal {
            return;
        }
        self.run();
        let slice = |number: usize| self.tasks[number].slice.unwrap_or(self.base_slice);
        let shorter = self.features.preempt_short
            && slice(number) < slice(curr)
            && self.eligible(number)
            && (self.tasks[number].d < self.tasks[curr].d || !self.eligible(curr));
        if shorter {
            self.tasks[curr].protected = false;
        }
        self.reschedule |= self.pick() == Some(number);
    }

    fn schedule(&mut self) {
        let next = loop {
            if self.curr.is_some_and(|curr| self.tasks[curr].queued) {
                self.run();
            }
            let next = self.pick();
            let Some(number) = next.filter(|&next| self.tasks[next].delayed) else { break next };
            self.run();
            self.leave(number, true);
            self.tasks[number].delayed = false;
            if self.features.delay_zero {
                self.tasks[number].lag = self.tasks[number].lag.min(0);
            }
        };
        self.reschedule = false;
        if next != self.curr {
            self.put_back();
            if let Some(next) = next {
                self.install(next);
            }
        }
    }

    fn put_back(&mut self) {
        if let Some(curr) = self.curr.filter(|&curr| self.tasks[curr].queued) {
            self.run();
            self.insert(curr);
        }
        self.curr = None;
    }

    fn install(&mut self, number: usize) {
        self.curr = Some(number);
        self.charged_until = self.clock;
        self.tasks[number].protected = self.tasks[number].queued;
    }

    fn change(&mut self, number: usize, load: LoadWeight, slice: u64, policy: u64) {
        let (queued, running) = (self.tasks[number].queued, self.curr == Some(number));
        if queued {
            self.run();
            self.leave(number, false);
        }
        if running {
            self.put_back();
        }
        let task = &mut self.tasks[number];
        // Lag times weight is service, and stays.
        task.lag = Fraction::new(task.lag * weight(task.load), weight(load)).truncated();
        task.load = load;
        task.slice = custom(slice);
        (task.normal, task.idle) = kind(policy);
        if queued {
            self.join(number, false);
        }
        if running {
            self.install(number);
        }
    }
}

fn custom(slice: u64) -> Option<i128> {
    (slice != 0).then_some(slice as i128)
}

/// Whether a policy is `SCHED_NORMAL`, and whether it is `SCHED_IDLE`.
fn kind(policy: u64) -> (bool, bool) {
    (policy == 0, policy == 5)
}

impl Model<world::Eevdf> for Eevdf {
    fn new() -> Eevdf {
        Eevdf {
            tasks: Vec::new(),
            curr: None,
            clock: 0,
            charged_until: 0,
            base_slice: 700_000,
            tick: 4_000_000,
            features: Features::default(),
            reschedule: false,
            origin: 0,
            last_v: 0,
            insertions: 0,
        }
    }

    fn operate(&mut self, record: &Record) {
        let [a, b, c, d, e, f] = record.args;
        let load = |weight: u64, inverse: u64| LoadWeight { weight, inv_weight: inverse as u32 };
        if record.op >= world::WAKE {
            self.clock += a as i128;
        }
        let task = b as usize;
        match record.op {
            world::CONFIG => {
                (self.base_slice, self.tick) = (a as i128, b as i128);
                let bit = |number: u32| c >> number & 1 != 0;
                self.features = Features {
                    place_lag: bit(0),
                    place_deadline_initial: bit(1),
                    place_rel_deadline: bit(2),
                    run_to_parity: bit(3),
                    preempt_short: bit(4),
                    delay_dequeue: bit(5),
                    delay_zero: bit(6),
                    wakeup_preemption: bit(7),
                };
                self.origin = d;
                self.clock = e as i128;
            }
            world::TASK => {
                let (normal, idle) = kind(e);
                self.tasks.push(Task {
                    load: load(a, b),
                    slice: custom(c),
                    v: f.wrapping_sub(self.origin) as i64 as i128,
                    d: 0,
                    relative: false,
                    lag: d as i64 as i128,
                    queued: false,
                    delayed: false,
                    protected: false,
                    normal,
                    idle,
                    inserted: 0,
                });
            }
            world::WAKE => self.wake(task, c != 0),
            world::SCHEDULE => {
                if b != 0
                    && let Some(curr) = self.curr
                {
                    self.block(curr, b == 1);
                }
                self.schedule();
            }
            world::TICK => self.run(),
            world::YIELD => {
                if self.count() != 1 {
                    self.run();
                    let curr = self.curr.expect("somebody runs");
                    if self.eligible(curr) {
                        // It goes on as if it had used up its slice.
                        self.tasks[curr].v = self.tasks[curr].d;
                        self.renew_deadline(curr);
                    }
                }
            }
            world::LEAVE => {
                self.run();
                self.leave(task, false);
            }
            world::JOIN => {
                self.tasks[task].lag = c as i64 as i128;
                self.join(task, false);
                self.preempt(task);
            }
            world::CHANGE => self.change(task, load(c, d), e, f),
            world::PREEMPT => self.preempt(task),
            world::BLOCK => self.block(self.curr.expect("somebody runs"), true),
            world::WEIGHT => {}
            _ => panic!("unknown operation {}", record.op),
        }
    }

    fn fits(&self, world: &world::Eevdf) -> bool {
        let base = world.sums().0.wrapping_sub(self.origin) as i64 as i128;
        let load: i128 = self.queued().map(|task| weight(task.load)).sum();
        self.queued().all(|task| (task.v - base).abs() * load < 1 << 62)
    }

    fn compare(&self, world: &mut world::Eevdf) -> Result<(), String> {
        let mut differences = String::new();
        let mut check = |what: String, ours: i128, exact: i128| {
            if ours != exact {
                differences += &format!("  {what}: ours {ours}, exact {exact}\n");
            }
        };
        let number = |task: Option<usize>| task.map_or(0, |number| number as i128 + 1);
        let curr = world.curr();
        check("curr".into(), world.number_of(curr) as i128, number(self.curr));
        check("need_resched".into(), world.need_resched() as i128, self.reschedule as i128);
        if self.count() != 0 {
            let picked = world.steps().pick_eevdf();
            check("pick".into(), world.number_of(picked) as i128, number(self.pick()));
        }
        for (number, task) in self.tasks.iter().enumerate() {
            let id = world.task(number);
            let eligible = world.steps().eligible(id);
            let se = world.entity(id);
            let since = |time: u64| time.wrapping_sub(self.origin) as i64 as i128;
            check(format!("queued {number}"), se.on_rq as i128, task.queued as i128);
            check(format!("delayed {number}"), se.sched_delayed as i128, task.delayed as i128);
            if task.queued {
                check(format!("v {number}"), since(se.vruntime), task.v);
                check(format!("d {number}"), since(se.deadline), task.d);
                let exact = self.eligible(number);
                check(format!("eligible {number}"), eligible as i128, exact as i128);
            } else {
                check(format!("lag {number}"), se.vlag as i128, task.lag);
                if task.relative {
                    check(format!("d − v {number}"), se.deadline as i64 as i128, task.d);
                }
            }
        }
        // The sums that ours keeps relative to a moving base are Σ w and Σ w·v of those not running.
        let waiting = || {
            let waits = |(number, task): &(usize, &Task)| task.queued && self.curr != Some(*number);
            self.tasks.iter().enumerate().filter(waits).map(|(_, task)| task)
        };
        let (base, sum, load) = world.sums();
        let base = base.wrapping_sub(self.origin) as i64 as i128;
        let exact = waiting().map(|task| weight(task.load) * task.v).sum();
        check("Σ w".into(), load as i128, waiting().map(|task| weight(task.load)).sum());
        check("Σ w·v".into(), sum as i128 + base * load as i128, exact);
        if differences.is_empty() { Ok(()) } else { Err(differences) }
    }
}
