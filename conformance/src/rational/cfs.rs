// SPDX-License-Identifier: GPL-2.0-or-later
//! CFS from its definitions.
//!
//! **Terms.** v: a task's virtual runtime; w: its weight; W: Σ w over all that are queued, the running one
//! included; n: how many they are. *Minimum*: the smallest v of the queue, never going back.
//!
//! **Rules.**
//! 1. Running for t costs t·1024/w of virtual time.
//! 2. The task with the smallest v runs; among equals the one queued first, the running one last. Who has
//!    yielded (*skip*) lets the second go first; who has preempted (*next*), or was preempted (*last*), goes
//!    first; each only if it is not ahead of the smallest by more than the wakeup granularity.
//! 3. Everybody may run for its slice, period·w/W. The period is the latency, or n minimal granularities if
//!    these are more. At a tick the running task gives way if it has run for longer than that since it was
//!    switched to, or for the minimal granularity at least and is ahead of the first by more than that.
//! 4. Who wakes preempts if it is behind the running task by more than the granularity, a real time that is
//!    charged at the wakee's weight.
//! 5. Who leaves for another queue takes v − minimum along. A sleeper keeps v, and wakes at least at
//!    minimum − half a latency; a forked task starts at its parent's v, and at least at minimum + slice.
//!
//! Virtual times are counted from where the sequence began, so nothing wraps.

use super::{Model, charge, scaled, weight};
use crate::cfs as world;
use crate::l0::Record;
use schedtwin_kernel::sched::LoadWeight;

/// A task.
#[derive(Clone, Debug)]
struct Task {
    load: LoadWeight,
    /// Virtual runtime; between two queues, relative to the minimum.
    v: i128,
    queued: bool,
    /// On its way to another queue (no sleep).
    moving: bool,
    normal: bool,
    idle: bool,
    batch: bool,
    /// Up to when it has been charged; 0: it has come from another CPU.
    charged_until: i128,
    /// Runtime since it was switched to.
    ran: i128,
    /// When it was inserted, among all insertions: decides between equal v.
    inserted: u64,
}

#[derive(Default)]
struct Features {
    gentle_fair_sleepers: bool,
    start_debit: bool,
    next_buddy: bool,
    last_buddy: bool,
    base_slice: bool,
    wakeup_preemption: bool,
}

/// One CPU.
#[derive(Default)]
pub struct Cfs {
    tasks: Vec<Task>,
    /// The task that runs, or has just blocked and not been switched from.
    curr: Option<usize>,
    next: Option<usize>,
    last: Option<usize>,
    skip: Option<usize>,
    clock: i128,
    /// The minimum.
    minimum: i128,
    latency: i128,
    min_granularity: i128,
    wakeup_granularity: i128,
    idle_min_granularity: i128,
    features: Features,
    reschedule: bool,
    /// The kernel's number for virtual time 0.
    origin: u64,
    insertions: u64,
}

impl Cfs {
    fn queued(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| task.queued)
    }

    fn count(&self) -> i128 {
        self.queued().count() as i128
    }

    fn running(&self) -> Option<usize> {
        self.curr.filter(|&curr| self.tasks[curr].queued)
    }

    /// Returns the waiting tasks, in the order of v.
    fn waiting(&self) -> Vec<usize> {
        let waits = |&number: &usize| self.tasks[number].queued && self.curr != Some(number);
        let mut waiting: Vec<usize> = (0..self.tasks.len()).filter(waits).collect();
        waiting.sort_by_key(|&number| (self.tasks[number].v, self.tasks[number].inserted));
        waiting
    }

    /// How many slices of the minimal granularity fill a latency; so many make a crowd.
    fn crowd(&self) -> i128 {
        (self.latency + self.min_granularity - 1) / self.min_granularity
    }

    /// Rule 3. Who is not queued is counted as if it were.
    fn slice(&self, number: usize) -> i128 {
        let task = &self.tasks[number];
        let (absent, weight_absent) = if task.queued { (0, 0) } else { (1, task.load.weight) };
        let n = self.count() + absent;
        let period = if n > self.crowd() { n * self.min_granularity } else { self.latency };
        let all = self.queued().map(|task| task.load.weight).sum::<u64>() + weight_absent;
        let slice = scaled(period, weight(task.load), LoadWeight { weight: all, inv_weight: 0 });
        if !self.features.base_slice {
            return slice;
        }
        // Of idle tasks beside others, the shorter one.
        let beside = self.count() == 0 || self.queued().any(|task| !task.idle);
        let background = task.idle && beside;
        slice.max(if background { self.idle_min_granularity } else { self.min_granularity })
    }

    fn follow_minimum(&mut self) {
        if let Some(smallest) = self.queued().map(|task| task.v).min() {
            self.minimum = self.minimum.max(smallest);
        }
    }

    /// Rule 1.
    fn run(&mut self) {
        let Some(curr) = self.curr else { return };
        let task = &mut self.tasks[curr];
        let ran = self.clock - task.charged_until;
        if ran > 0 {
            task.charged_until = self.clock;
            task.ran += ran;
            task.v += charge(ran, task.load);
            self.follow_minimum();
        }
    }

    /// Whether `number` is ahead of `of` by more than the granularity.
    fn too_far_ahead(&self, number: usize, of: usize) -> bool {
        let lead = self.tasks[number].v - self.tasks[of].v;
        lead > 0 && lead > charge(self.wakeup_granularity, self.tasks[of].load)
    }

    /// Rule 2.
    fn pick(&self) -> Option<usize> {
        let mut order = self.waiting();
        if let Some(curr) = self.running() {
            let v = self.tasks[curr].v;
            let at = order.partition_point(|&number| self.tasks[number].v <= v);
            order.insert(at, curr);
        }
        let first = *order.first()?;
        let fair = |number: &usize| !self.too_far_ahead(*number, first);
        let second = order.get(1).copied().filter(|_| self.skip == Some(first));
        let preferred = self.next.filter(fair).or(self.last.filter(fair));
        preferred.or(second.filter(fair)).or(Some(first))
    }

    fn forget(&mut self, number: usize) {
        for buddy in [&mut self.next, &mut self.last, &mut self.skip] {
            *buddy = buddy.filter(|&buddy| buddy != number);
        }
    }

    /// Rule 5: a sleeper, or a forked task.
    fn place(&mut self, number: usize, forked: bool) {
        let mut least = self.minimum;
        if forked && self.features.start_debit {
            least += charge(self.slice(number), self.tasks[number].load);
        }
        let task = &self.tasks[number];
        if !forked {
            let credit = if task.idle { self.min_granularity } else { self.latency };
            least -= if self.features.gentle_fair_sleepers { credit / 2 } else { credit };
        }
        // After 104 days a virtual runtime says nothing any more; who has come from elsewhere has no
        // stamp of this CPU's clock.
        let slept = self.clock - task.charged_until;
        let forgotten = task.charged_until != 0 && slept > 1 << 53;
        self.tasks[number].v = if forgotten { least } else { task.v.max(least) };
    }

    fn come(&mut self, number: usize, sleeper: bool, relative: bool, migrated: bool) {
        let running = self.curr == Some(number);
        if relative && running {
            self.tasks[number].v += self.minimum;
        }
        self.run();
        if relative && !running {
            self.tasks[number].v += self.minimum;
        }
        if sleeper {
            self.place(number, false);
        }
        if migrated {
            self.tasks[number].charged_until = 0;
        }
        self.tasks[number].queued = true;
        self.tasks[number].moving = false;
        self.insert(number);
    }

    fn insert(&mut self, number: usize) {
        self.insertions += 1;
        self.tasks[number].inserted = self.insertions;
    }

    /// `returns`: it comes back at once, which must not move the minimum away from it.
    fn leave(&mut self, number: usize, sleeps: bool, returns: bool) {
        self.run();
        self.forget(number);
        self.tasks[number].queued = false;
        if !sleeps {
            self.tasks[number].v -= self.minimum;
        }
        if !returns {
            self.follow_minimum();
        }
    }

    /// Whether who has just come takes the CPU.
    fn preempt(&mut self, number: usize, forked: bool) {
        let Some(curr) = self.curr else {
            self.reschedule = true;
            return;
        };
        if curr == number {
            return;
        }
        let crowded = self.count() >= self.crowd();
        let nominate = |task: usize| (!self.tasks[task].idle).then_some(task);
        let (comes, runs) = (nominate(number), nominate(curr));
        let marked = self.features.next_buddy && crowded && !forked;
        if marked {
            self.next = comes.or(self.next);
        }
        if self.reschedule {
            return;
        }
        let gives_way = self.tasks[curr].idle && !self.tasks[number].idle;
        if !gives_way {
            if !self.tasks[number].normal || !self.features.wakeup_preemption {
                return;
            }
            self.run();
            if !self.too_far_ahead(curr, number) {
                return;
            }
            if !marked {
                self.next = comes.or(self.next);
            }
        }
        self.reschedule = true;
        if self.features.last_buddy && crowded && self.tasks[curr].queued {
            self.last = runs.or(self.last);
        }
    }

    fn schedule(&mut self, sleeps: bool) {
        if let Some(curr) = self.curr.filter(|_| sleeps) {
            self.leave(curr, true, false);
        }
        if self.running().is_some() {
            self.run();
        }
        let next = self.pick();
        self.reschedule = false;
        if next != self.curr {
            self.put_back();
            if let Some(next) = next {
                self.install(next);
            }
        }
    }

    fn put_back(&mut self) {
        if let Some(curr) = self.running() {
            self.run();
            self.insert(curr);
        }
        self.curr = None;
    }

    fn install(&mut self, number: usize) {
        self.forget(number);
        self.curr = Some(number);
        self.tasks[number].charged_until = self.clock;
        self.tasks[number].ran = 0;
    }

    fn tick(&mut self) {
        self.run();
        let Some(&first) = self.waiting().first() else { return };
        let curr = self.running().expect("a task that ticks is queued");
        let slice = self.slice(curr);
        let (ran, lead) = (self.tasks[curr].ran, self.tasks[curr].v - self.tasks[first].v);
        if ran > slice {
            self.reschedule = true;
            self.forget(curr);
        } else if ran >= self.min_granularity && lead > slice {
            self.reschedule = true;
        }
    }

    fn change(&mut self, number: usize, load: LoadWeight, policy: u64, moves: bool) {
        let (queued, running) = (self.tasks[number].queued, self.curr == Some(number));
        if queued {
            self.leave(number, false, !moves);
        }
        if running {
            self.put_back();
        }
        self.tasks[number].load = load;
        self.tasks[number].set_policy(policy);
        if queued {
            self.come(number, false, true, false);
        }
        if running {
            self.install(number);
        }
    }
}

impl Task {
    fn set_policy(&mut self, policy: u64) {
        (self.normal, self.batch, self.idle) = (policy == 0, policy == 3, policy == 5);
    }
}

impl Model<world::Cfs> for Cfs {
    fn new() -> Cfs {
        // Where init_cfs_rq() begins.
        Cfs { origin: -(1i64 << 20) as u64, ..Cfs::default() }
    }

    fn operate(&mut self, record: &Record) {
        let [a, b, c, d, e, f] = record.args;
        let load = |weight: u64, inverse: u64| LoadWeight { weight, inv_weight: inverse as u32 };
        if record.op >= world::WAKE {
            self.clock += a as i128;
        }
        let number = b as usize;
        match record.op {
            world::CONFIG => {
                [self.latency, self.min_granularity, self.wakeup_granularity] =
                    [a, b, c].map(i128::from);
                self.idle_min_granularity = d as i128;
                let bit = |number: u32| e >> number & 1 != 0;
                // ALT_PERIOD (bit 4) counts the tasks of all groups, and there are none.
                self.features = Features {
                    gentle_fair_sleepers: bit(0),
                    start_debit: bit(1),
                    next_buddy: bit(2),
                    last_buddy: bit(3),
                    base_slice: bit(5),
                    wakeup_preemption: bit(6),
                };
                self.clock = f as i128;
            }
            world::START => self.origin = a,
            world::TASK => {
                let mut task = Task {
                    load: load(a, b),
                    v: d.wrapping_sub(self.origin) as i64 as i128,
                    queued: false,
                    moving: false,
                    normal: false,
                    idle: false,
                    batch: false,
                    charged_until: e as i128,
                    ran: 0,
                    inserted: 0,
                };
                task.set_policy(c);
                self.tasks.push(task);
            }
            world::WAKE => {
                match c {
                    0 => {}
                    1 => self.tasks[number].v -= self.minimum,
                    _ => self.tasks[number].v = d as i64 as i128,
                }
                self.come(number, true, c != 0, c != 0);
                self.preempt(number, false);
            }
            world::FORK => {
                self.run();
                let parent = self.curr.expect("somebody forks");
                self.tasks[number].v = self.tasks[parent].v;
                self.place(number, true);
                self.tasks[number].v -= self.minimum;
                self.come(number, false, true, false);
                self.preempt(number, true);
            }
            world::SCHEDULE => self.schedule(b != 0),
            world::TICK => self.tick(),
            world::YIELD => {
                if self.count() != 1 {
                    let curr = self.curr.expect("somebody runs");
                    self.forget(curr);
                    if !self.tasks[curr].batch {
                        self.run();
                    }
                    self.skip = Some(curr);
                }
            }
            world::LEAVE => {
                self.leave(number, false, false);
                self.tasks[number].moving = true;
            }
            world::JOIN => {
                self.tasks[number].v = c as i64 as i128;
                let moving = self.tasks[number].moving;
                self.come(number, false, true, moving);
                self.preempt(number, d != 0);
            }
            world::CHANGE => self.change(number, load(c, d), e, f != 0),
            world::PREEMPT => self.preempt(number, false),
            world::BLOCK => self.leave(self.curr.expect("somebody runs"), true, false),
            world::WEIGHT | world::SLICE => {}
            _ => panic!("unknown operation {}", record.op),
        }
    }

    fn fits(&self, _world: &world::Cfs) -> bool {
        self.tasks.iter().all(|task| (task.v - self.minimum).abs() < 1 << 62)
    }

    fn compare(&self, world: &mut world::Cfs) -> Result<(), String> {
        let mut differences = String::new();
        let mut check = |what: &str, ours: i128, exact: i128| {
            if ours != exact {
                differences += &format!("  {what}: ours {ours}, exact {exact}\n");
            }
        };
        let number = |task: Option<usize>| task.map_or(0, |number| number as i128 + 1);
        let since = |time: u64| time.wrapping_sub(self.origin) as i64 as i128;
        let curr = world.curr();
        check("curr", world.number_of(curr) as i128, number(self.curr));
        check("need_resched", world.need_resched() as i128, self.reschedule as i128);
        let cfs = world.cfs_rq();
        check("minimum", since(cfs.min_vruntime), self.minimum);
        for (what, ours, exact) in [
            ("next", cfs.next, self.next),
            ("last", cfs.last, self.last),
            ("skip", cfs.skip, self.skip),
        ] {
            check(what, world.number_of_entity(ours) as i128, number(exact));
        }
        if self.count() != 0 {
            let picked = world.steps().pick_next_entity();
            check("pick", world.number_of(picked) as i128, number(self.pick()));
        }
        let numbers: Vec<u64> = world
            .cfs_rq()
            .timeline
            .iter()
            .map(|node| world.number_of_entity(Some(node.se)) - 1)
            .collect();
        let in_order = numbers.iter().map(|&n| n as usize).eq(self.waiting());
        check("order", in_order as i128, 1);
        for (number, task) in self.tasks.iter().enumerate() {
            let id = world.task(number);
            let slice = world.steps().sched_slice(id);
            if let (Some(curr), Some(runs), true) = (curr, self.curr, task.queued) {
                let behind = world.steps().wakeup_preempt_entity(curr, id);
                let exact = match self.tasks[runs].v - task.v {
                    ..=0 => -1,
                    _ => self.too_far_ahead(runs, number) as i128,
                };
                check(&format!("behind {number}"), behind as i128, exact);
            }
            let se = world.entity(id);
            check(&format!("queued {number}"), se.on_rq as i128, task.queued as i128);
            let v = if task.moving { se.vruntime as i64 as i128 } else { since(se.vruntime) };
            check(&format!("v {number}"), v, task.v);
            check(&format!("charged {number}"), se.exec_start as i128, task.charged_until);
            check(&format!("slice {number}"), slice as i128, self.slice(number));
        }
        if differences.is_empty() { Ok(()) } else { Err(differences) }
    }
}
