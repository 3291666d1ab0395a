// SPDX-License-Identifier: GPL-2.0-or-later
//! A second implementation of EEVDF, straight from the definitions, and a long random walk over both.
//!
//! The model has no sums and no base: virtual times are whole numbers of unlimited width, V is the exact
//! rational Σ v·w / Σ w, eligible is v ≤ V, and a pick looks at everybody. It is told only *when* the kernel takes
//! an average, since an empty queue remembers the last one.

use crate::Kernel;
use crate::config::{Config, FrequencyGovernor};
use crate::device_tree::DeviceTree;
use crate::sched::TaskKind;
use crate::sched::core::{
    DEQUEUE_NOCLOCK, DEQUEUE_SLEEP, ENQUEUE_DELAYED, ENQUEUE_INITIAL, ENQUEUE_NOCLOCK,
    ENQUEUE_WAKEUP,
};
use crate::sched::fair::{calc_delta_fair, scale_load_down, weight_of};
use crate::sched::{CfsRqId, LoadWeight, OnRq};
use schedtwin_types::rng::Rng;
use schedtwin_types::{CpuId, Policy, SchedAttr, TaskId, TaskState};

const CPU: CpuId = CpuId(0);
const BASE_SLICE: u64 = 2_800_000;
const TICK: u64 = 4_000_000;

/// A task of the model.
#[derive(Clone, Debug)]
struct Entity {
    v: i128,
    deadline: i128,
    vlag: i128,
    load: LoadWeight,
    slice: u64,
    custom_slice: bool,
    rel_deadline: bool,
    on_rq: bool,
    delayed: bool,
}

/// The model of a queue.
struct Model {
    all: Vec<Entity>,
    /// Queued and not running, in order of insertion.
    waiting: Vec<usize>,
    curr: Option<usize>,
    exec_start: u64,
    clock: u64,
    /// The last average that was taken.
    average: i128,
    resched: bool,
}

impl Entity {
    fn weight(&self) -> i128 {
        scale_load_down(self.load.weight) as i128
    }

    fn virtually(&self, time: u64) -> i128 {
        calc_delta_fair(time, &self.load) as i128
    }
}

impl Model {
    /// All entities that count.
    fn queued(&self) -> impl Iterator<Item = usize> + '_ {
        let curr = self.curr.filter(|&c| self.all[c].on_rq);
        self.waiting.iter().copied().chain(curr)
    }

    /// V as numerator and denominator.
    fn exact(&self) -> (i128, i128) {
        self.queued().fold((0, 0), |(sum, weights), id| {
            let e = &self.all[id];
            (sum + e.v * e.weight(), weights + e.weight())
        })
    }

    fn take_average(&mut self) -> i128 {
        let (sum, weights) = self.exact();
        if weights != 0 {
            self.average = sum.div_euclid(weights);
        }
        self.average
    }

    fn eligible(&self, id: usize) -> bool {
        let (sum, weights) = self.exact();
        self.all[id].v * weights <= sum
    }

    fn protected(&self, id: usize) -> bool {
        self.all[id].vlag == self.all[id].deadline
    }

    fn update_lag(&mut self, id: usize) {
        let average = self.take_average();
        let e = &mut self.all[id];
        let limit = e.virtually((2 * e.slice).max(TICK));
        e.vlag = (average - e.v).clamp(-limit, limit);
    }

    fn place(&mut self, id: usize, nr_others: usize, initial: bool) {
        let average = self.take_average();
        let (_, weights) = self.exact();
        let e = &mut self.all[id];
        if !e.custom_slice {
            e.slice = BASE_SLICE;
        }
        let lag = if nr_others > 0 { e.vlag * (weights + e.weight()) / weights } else { 0 };
        e.v = average - lag;
        if e.rel_deadline {
            e.rel_deadline = false;
            e.deadline += e.v;
            return;
        }
        let request = e.virtually(e.slice);
        e.deadline = e.v + if initial { request / 2 } else { request };
    }

    fn update_deadline(&mut self, id: usize) -> bool {
        let e = &mut self.all[id];
        if e.v < e.deadline {
            return false;
        }
        if !e.custom_slice {
            e.slice = BASE_SLICE;
        }
        e.deadline = e.v + e.virtually(e.slice);
        self.take_average();
        true
    }

    fn update_curr(&mut self) {
        let Some(id) = self.curr else { return };
        if self.clock <= self.exec_start {
            return;
        }
        let delta = self.clock - self.exec_start;
        self.exec_start = self.clock;
        self.all[id].v += self.all[id].virtually(delta);
        let used_up = self.update_deadline(id);
        if self.queued().count() != 1 && (used_up || (!self.protected(id) && !self.eligible(id))) {
            self.resched = true;
        }
    }

    /// The earliest deadline of the eligible entities; of equal ones the running, then the first to
    /// come.
    fn pick(&self) -> Option<usize> {
        if self.queued().count() == 1 {
            return self.queued().next();
        }
        let curr = self.curr.filter(|&c| self.all[c].on_rq && self.eligible(c));
        if let Some(curr) = curr
            && self.protected(curr)
        {
            return Some(curr);
        }
        let waiting = self.waiting.iter().copied().filter(|&w| self.eligible(w));
        let best = waiting.min_by_key(|&w| self.all[w].deadline);
        match (best, curr) {
            (Some(best), Some(curr)) if self.all[curr].deadline < self.all[best].deadline => {
                Some(curr)
            }
            (Some(best), _) => Some(best),
            (None, curr) => curr,
        }
    }

    fn enqueue(&mut self, id: usize, initial: bool) {
        self.update_curr();
        let nr = self.queued().count();
        self.place(id, nr, initial);
        self.waiting.push(id);
        self.all[id].on_rq = true;
    }

    /// Out of the queue; `sleep`: not to come back at once.
    fn dequeue(&mut self, id: usize, sleep: bool) {
        self.update_curr();
        self.update_lag(id);
        let e = &mut self.all[id];
        if !sleep {
            e.deadline -= e.v;
            e.rel_deadline = true;
        }
        e.on_rq = false;
        self.waiting.retain(|w| *w != id);
    }

    /// `false`: it stays, delayed.
    fn block(&mut self, id: usize) -> bool {
        self.update_curr();
        if !self.eligible(id) {
            self.all[id].delayed = true;
            return false;
        }
        self.dequeue(id, true);
        true
    }

    fn wake_delayed(&mut self, id: usize) {
        self.update_lag(id);
        if self.all[id].vlag > 0 {
            let nr_others = self.queued().count() - 1;
            self.waiting.retain(|w| *w != id);
            self.all[id].vlag = 0;
            self.place(id, nr_others, false);
            self.waiting.push(id);
        }
        self.all[id].delayed = false;
    }

    fn preempt(&mut self, id: usize) {
        let Some(curr) = self.curr else {
            self.resched = true;
            return;
        };
        if curr == id || self.resched {
            return;
        }
        self.update_curr();
        let shorter = self.all[id].slice < self.all[curr].slice && self.eligible(id);
        if shorter
            && (self.all[id].deadline < self.all[curr].deadline || !self.eligible(curr))
            && self.protected(curr)
        {
            self.all[curr].vlag = self.all[curr].deadline + 1;
        }
        if self.pick() == Some(id) {
            self.resched = true;
        }
    }

    fn schedule(&mut self) -> Option<usize> {
        let next = loop {
            if self.queued().next().is_none() {
                break None;
            }
            if self.curr.is_some_and(|c| self.all[c].on_rq) {
                self.update_curr();
            }
            let best = self.pick().expect("somebody is eligible");
            if !self.all[best].delayed {
                break Some(best);
            }
            self.dequeue(best, true);
            let e = &mut self.all[best];
            e.delayed = false;
            e.vlag = e.vlag.min(0);
        };
        if next != self.curr {
            if let Some(prev) = self.curr
                && self.all[prev].on_rq
            {
                self.update_curr();
                self.waiting.push(prev);
            }
            self.curr = None;
            if let Some(next) = next {
                self.set(next);
            }
        }
        self.resched = false;
        next
    }

    fn set(&mut self, id: usize) {
        self.waiting.retain(|w| *w != id);
        self.all[id].vlag = self.all[id].deadline;
        self.curr = Some(id);
        self.exec_start = self.clock;
    }
}

fn one_of(random: &mut Rng, all: &[usize]) -> Option<usize> {
    if all.is_empty() { None } else { Some(random.pick(all)) }
}

/// Kernel and model side by side.
struct Both {
    kernel: Kernel,
    tasks: Vec<TaskId>,
    model: Model,
    /// Out for migration.
    moving: Vec<usize>,
}

impl Both {
    fn new(nr_tasks: usize, random: &mut Rng) -> Both {
        let cpu = DeviceTree::of_domains(&[(1, 1024, &[(1_000_000, 1)])]);
        let device_tree = DeviceTree { nr_threads_hint: nr_tasks, ..cpu };
        let mut kernel = Kernel::boot(
            device_tree,
            Config {
                base_slice_unscaled: BASE_SLICE,
                cpufreq: FrequencyGovernor::Performance,
                fair_server_runtime: 0,
                ..Config::linux_6_12()
            },
        );
        kernel.cx.now = 5_000_000;
        kernel.sched.update_rq_clock(CPU, &kernel.cx);
        let tasks: Vec<TaskId> =
            (0..nr_tasks).map(|_| kernel.new_task(None, TaskKind::User)).collect();
        let mut all = Vec::new();
        for &task in &tasks {
            let nice = [0, 0, 0, -20, 19, 5, -7][random.below(7) as usize];
            let load = match random.below(8) {
                0 => weight_of(Policy::Idle, 0),
                _ => weight_of(Policy::Normal, nice),
            };
            let (slice, custom_slice) = match random.below(3) {
                0 => (100_000 + random.below(6_000_000), true),
                _ => (BASE_SLICE, false),
            };
            kernel.sched.tasks[task].nice = nice;
            kernel.sched.tasks[task].prio = 120 + nice as i32;
            kernel.sched.tasks[task].state = TaskState::Interruptible;
            let se = kernel.sched.se_of(task);
            kernel.sched.se[se].load = load;
            kernel.sched.se[se].slice = slice;
            kernel.sched.se[se].custom_slice = custom_slice;
            all.push(Entity {
                v: 0,
                deadline: 0,
                vlag: 0,
                load,
                slice,
                custom_slice,
                rel_deadline: false,
                on_rq: false,
                delayed: false,
            });
        }
        let model = Model {
            all,
            waiting: Vec::new(),
            curr: None,
            exec_start: 0,
            clock: 5_000_000,
            average: -(1 << 20),
            resched: false,
        };
        Both { kernel, tasks, model, moving: Vec::new() }
    }

    fn step(&mut self, random: &mut Rng) {
        let time = match random.below(4) {
            0 => 0,
            1 => random.below(20_000),
            2 => random.below(2_000_000),
            _ => random.below(9_000_000),
        };
        self.kernel.cx.now += time;
        self.kernel.sched.update_rq_clock(CPU, &self.kernel.cx);
        self.model.clock += time;
        let ids = |want: &dyn Fn(usize, &Entity) -> bool| -> Vec<usize> {
            let all = self.model.all.iter().enumerate();
            all.filter(|(id, e)| want(*id, e)).map(|(id, _)| id).collect()
        };
        let curr = self.model.curr;
        let moving = self.moving.clone();
        let asleep = ids(&|id, e| !e.on_rq && !moving.contains(&id));
        let delayed = ids(&|id, e| e.delayed && e.on_rq && curr != Some(id));
        let waiting = ids(&|id, e| e.on_rq && curr != Some(id));
        match random.below(16) {
            0..=3 => {
                let Some(id) = one_of(random, &asleep) else { return };
                let initial = random.below(4) == 0;
                let flag = if initial { ENQUEUE_INITIAL } else { ENQUEUE_WAKEUP };
                self.kernel.activate_task(CPU, self.tasks[id], flag | ENQUEUE_NOCLOCK);
                self.model.enqueue(id, initial);
                self.preempt(id);
            }
            4 | 5 => {
                let Some(id) = one_of(random, &delayed) else { return };
                self.kernel.enqueue_task(CPU, self.tasks[id], ENQUEUE_NOCLOCK | ENQUEUE_DELAYED);
                self.model.wake_delayed(id);
                self.preempt(id);
            }
            6..=8 => {
                let Some(id) = curr else { return };
                let task = self.tasks[id];
                let left = self.kernel.dequeue_task(CPU, task, DEQUEUE_SLEEP | DEQUEUE_NOCLOCK);
                if left {
                    self.kernel.sched.finish_block_task(task);
                }
                assert_eq!(left, self.model.block(id), "leaves");
                self.schedule();
            }
            9 | 10 => self.schedule(),
            11 | 12 => {
                let Some(id) = curr else { return };
                self.kernel.task_tick_fair(CPU, self.tasks[id]);
                self.model.update_curr();
                if self.model.resched {
                    self.schedule();
                }
            }
            13 => {
                let Some(id) = curr else { return };
                self.kernel.yield_task_fair(CPU);
                if self.model.queued().count() > 1 {
                    self.model.update_curr();
                    if self.model.eligible(id) {
                        self.model.all[id].v = self.model.all[id].deadline;
                        self.model.update_deadline(id);
                    }
                }
                self.schedule();
            }
            14 => {
                let Some(id) = curr else { return };
                self.renice(id, random);
            }
            _ => {
                if random.below(2) == 0
                    && let Some(id) = one_of(random, &waiting)
                {
                    self.kernel.deactivate_task(CPU, self.tasks[id], DEQUEUE_NOCLOCK);
                    self.kernel.sched.migrate_task_rq_fair(self.tasks[id], &self.kernel.cx);
                    self.model.dequeue(id, false);
                    self.moving.push(id);
                } else if let Some(id) = self.moving.pop() {
                    self.kernel.activate_task(CPU, self.tasks[id], ENQUEUE_NOCLOCK);
                    self.model.enqueue(id, false);
                    self.preempt(id);
                }
            }
        }
    }

    fn preempt(&mut self, id: usize) {
        self.kernel.wakeup_preempt(CPU, self.tasks[id], 0);
        self.model.preempt(id);
        if self.model.curr.is_none() {
            self.schedule();
        }
    }

    fn schedule(&mut self) {
        let prev = self.kernel.sched.rq[CPU].curr;
        let next = self.kernel.pick_task_fair(CPU).unwrap_or(TaskId::IDLE);
        self.kernel.put_prev_set_next_task(CPU, prev, next);
        self.kernel.sched.rq[CPU].curr = next;
        self.kernel.sched.rq[CPU].need_resched = false;
        let expected = self.model.schedule().map_or(TaskId::IDLE, |id| self.tasks[id]);
        assert_eq!(next, expected, "who runs next");
    }

    fn renice(&mut self, id: usize, random: &mut Rng) {
        let nice = random.below(40) as i8 - 20;
        let slice = if random.below(2) == 0 { 0 } else { 200_000 + random.below(3_000_000) };
        let old_prio = self.kernel.sched.tasks[self.tasks[id]].prio;
        let attr = SchedAttr { nice, slice, ..SchedAttr::default() };
        self.kernel.sched_setattr(self.tasks[id], attr).unwrap();
        let model = &mut self.model;
        model.dequeue(id, false);
        model.curr = None;
        let new = weight_of(Policy::Normal, nice);
        let e = &mut model.all[id];
        e.vlag = e.vlag * e.load.weight as i128 / new.weight as i128;
        e.load = new;
        e.custom_slice = slice != 0;
        e.slice = if slice == 0 { BASE_SLICE } else { slice };
        model.enqueue(id, false);
        model.set(id);
        if 120 + nice as i32 > old_prio && model.queued().count() != 1 {
            model.resched = true;
        }
    }

    fn compare(&mut self, average_too: bool) {
        let root = CfsRqId::root(CPU);
        for (id, e) in self.model.all.iter().enumerate() {
            let se = self.kernel.sched.se_of(self.tasks[id]);
            let k = &self.kernel.sched.se[se];
            assert_eq!(k.vruntime, e.v as u64, "v of {id}");
            assert_eq!(k.deadline, e.deadline as u64, "deadline of {id}");
            assert_eq!(k.vlag, e.vlag as i64, "vlag of {id}");
            assert_eq!((k.on_rq, k.sched_delayed), (e.on_rq, e.delayed), "state of {id}");
            if e.on_rq {
                let eligible = self.kernel.sched.entity_eligible(root, se);
                assert_eq!(eligible, self.model.eligible(id), "is {id} eligible");
            }
        }
        assert_eq!(self.kernel.sched.rq[CPU].need_resched, self.model.resched, "resched");
        if self.model.queued().next().is_some() {
            let expected = self.model.pick().map(|id| self.kernel.sched.se_of(self.tasks[id]));
            assert_eq!(
                self.kernel.sched.pick_eevdf(root, true, &mut (), &self.kernel.cx),
                expected,
                "pick"
            );
        }
        if average_too {
            assert_eq!(self.kernel.sched.avg_vruntime(root), self.model.take_average() as u64, "V");
        }
        for (id, task) in self.tasks.iter().enumerate() {
            let moving = self.moving.contains(&id);
            assert_eq!(
                self.kernel.sched.tasks[*task].on_rq == OnRq::Migrating,
                moving,
                "{id} moves"
            );
        }
    }
}

/// 120,000 operations on queues of 2 … 12 tasks of all weights and slices.
#[test]
fn kernel_and_definition_agree() {
    for seed in 1..=12u64 {
        let mut random = Rng::with_state(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut both = Both::new(1 + seed as usize, &mut random);
        for _ in 0..10_000 {
            both.step(&mut random);
            let average_too = random.below(8) == 0;
            both.compare(average_too);
        }
    }
}

/// The product with the inverse is the quotient, rounded down, up to one part in 2^21 (the table's
/// rounding of the inverse, and of the factor for weights above 1024).
#[test]
fn virtual_time_is_the_quotient() {
    let mut random = Rng::with_state(7);
    for nice in -20..20i8 {
        let load = weight_of(Policy::Normal, nice);
        for _ in 0..1000 {
            let bits = 1 + random.below(40);
            let delta = random.below(1 << bits);
            let exact = delta as u128 * 1024 / scale_load_down(load.weight) as u128;
            let found = calc_delta_fair(delta, &load) as u128;
            let slack = 1 + (exact >> 15);
            assert!(found.abs_diff(exact) <= slack, "nice {nice}: {delta} → {found}, {exact}");
        }
    }
}
