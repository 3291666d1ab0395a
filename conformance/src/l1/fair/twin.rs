// SPDX-License-Identifier: GPL-2.0-or-later
//! The product's fair class on the recordings' board: every queue of the recording as a queue of a [`Kernel`].
//!
//! The kernel is booted and never runs by itself; each function here is one step of the fair class that
//! the recording tells (`update_curr` at a `run` line, an enqueue, a switch, …), carried out by the kernel's
//! own functions. Only `clock_task` is set from outside. The PELT clock stands still: the averages are re-driven
//! elsewhere, and EEVDF does not read them.
//!
//! **Taken over.** An entity's virtual times at its first record, a queue's `zero_vruntime` at its first, and
//! never again. Until then what depends on them is *not known*, and so is who was placed on such a queue.

use std::collections::BTreeMap;

use schedtwin_kernel::Kernel;
use schedtwin_kernel::config::{Config, EevdfForm, FrequencyGovernor};
use schedtwin_kernel::device_tree::DeviceTree;
use schedtwin_kernel::sched::TaskKind;
use schedtwin_kernel::sched::core::{
    DEQUEUE_DELAYED, DEQUEUE_NOCLOCK, DEQUEUE_SAVE, DEQUEUE_SLEEP, DEQUEUE_SPECIAL,
    ENQUEUE_DELAYED, ENQUEUE_INITIAL, ENQUEUE_MIGRATED, ENQUEUE_NOCLOCK, ENQUEUE_RESTORE,
    ENQUEUE_WAKEUP, WF_FORK,
};
use schedtwin_kernel::sched::fair::conformance::{self, FairSteps};
use schedtwin_kernel::sched::fair::{scale_load_down, weight_of};
use schedtwin_kernel::sched::{CfsRqId, LoadWeight, OnRq, SchedEntity};
use schedtwin_types::{CpuId, Policy, TaskId};

use super::super::machine::{kernel_of, release};

/// CPUs that a recording may have; more of them cost nothing.
pub const NR_CPUS: usize = 16;

/// The settings of the fair class in a recording's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairSettings {
    /// `base_slice_ns`, scaled.
    pub base_slice: u64,
    /// `CONFIG_HZ`.
    pub hz: u32,
    /// The kernel's release; zeros if the description does not say.
    release: [u32; 3],
    /// Features that are off.
    off: [bool; FEATURES.len()],
}

/// The features that EEVDF reads, by name.
const FEATURES: [&str; 8] = [
    "PLACE_LAG",
    "PLACE_DEADLINE_INITIAL",
    "PLACE_REL_DEADLINE",
    "RUN_TO_PARITY",
    "PREEMPT_SHORT",
    "DELAY_DEQUEUE",
    "DELAY_ZERO",
    "WAKEUP_PREEMPTION",
];

impl FairSettings {
    /// Reads a description (`*.meta.txt`); what it does not say is as on the board by default.
    pub fn parse(text: &str) -> FairSettings {
        let number = |key: &str| {
            let value = text.lines().find_map(|line| line.split_once(key))?.1;
            value.trim().parse::<u64>().ok()
        };
        let features = text.lines().find_map(|line| line.split_once("sched/features = "));
        let features = features.map_or("", |(_, names)| names);
        FairSettings {
            base_slice: number("base_slice_ns = ")
                .map_or(2_800_000, |ns| ns.clamp(SLICE_MIN, SLICE_MAX)),
            hz: number("CONFIG_HZ=").map_or(250, |hz| hz.clamp(100, 1000)) as u32,
            release: text
                .lines()
                .find_map(|line| line.split_once("/proc/version = "))
                .map_or([0; 3], |(_, version)| release(version)),
            off: FEATURES.map(|name| {
                features.split_whitespace().any(|word| word.strip_prefix("NO_") == Some(name))
            }),
        }
    }

    fn config(&self) -> Config {
        let mut config = kernel_of(self.release);
        config.cpufreq = FrequencyGovernor::Performance;
        config.fair_server_runtime = 0;
        // On eight CPUs or more it is scaled by 4.
        config.base_slice_unscaled = self.base_slice / 4;
        config.hz = self.hz;
        let features = &mut config.features;
        let switches = [
            &mut features.place_lag,
            &mut features.place_deadline_initial,
            &mut features.place_rel_deadline,
            &mut features.run_to_parity,
            &mut features.preempt_short,
            &mut features.delay_dequeue,
            &mut features.delay_zero,
            &mut features.wakeup_preemption,
        ];
        for (switch, off) in switches.into_iter().zip(self.off) {
            *switch = !off;
        }
        config
    }
}

/// Why an entity is enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueue {
    /// It woke up.
    Wakeup,
    /// For the first time.
    New,
    /// It comes from another CPU, where it was queued.
    Migrated,
    /// It was dequeued for a change of its parameters.
    Restore,
}

/// Why an entity is dequeued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue {
    /// It sleeps and really leaves, at once or, delayed, when a pick meets it.
    Leave,
    /// It goes to another CPU.
    Migrating,
    /// Its parameters are to be changed.
    Save,
}

/// The known state of a task's entity.
#[derive(Clone, Copy, Debug)]
struct Known {
    task: TaskId,
    /// Its virtual times have been taken over.
    known: bool,
}

/// The virtual times of an entity as a line shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Virtual {
    /// `vruntime`.
    pub v: u64,
    /// `deadline`.
    pub d: u64,
    /// `vlag`.
    pub vlag: i64,
    /// `slice`, ns.
    pub slice: u64,
}

/// The sums of a queue as a line shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// `zero_vruntime`.
    pub zero: u64,
    /// `avg_vruntime`.
    pub sum: i64,
    /// `avg_load`.
    pub load: u64,
}

/// Later times (2 years) are not the kernel's.
const TIME_MAX: u64 = 1 << 56;
/// Shorter and longer slices are not the kernel's either.
const SLICE_MIN: u64 = 100_000;
const SLICE_MAX: u64 = 100_000_000;
/// More than any weight, scaled down.
const WEIGHT_MAX: u64 = 1 << 20;
/// The PELT clock's standstill; not 0, which would mean "never updated".
const PELT_CLOCK: u64 = 1 << 20;

/// The board's fair queues.
#[derive(Clone)]
pub struct Twin {
    kernel: Kernel,
    tasks: BTreeMap<i32, Known>,
    /// By number of the kernel's task.
    pids: Vec<i32>,
    base_known: [bool; NR_CPUS],
    /// Whether the queued tasks are known, since the queue was seen empty.
    tracked: [bool; NR_CPUS],
    groups: bool,
    base_slice: u64,
}

impl Twin {
    /// Empty queues.
    pub fn new(settings: FairSettings) -> Twin {
        let mut kernel = Kernel::boot(device_tree(), settings.config());
        for cpu in 0..NR_CPUS {
            kernel.inside_mut().rq[CpuId(cpu as u16)].clock_pelt.clock_pelt = PELT_CLOCK;
        }
        Twin {
            pids: vec![0; kernel.inside().tasks.len()],
            kernel,
            tasks: BTreeMap::new(),
            base_known: [false; NR_CPUS],
            tracked: [false; NR_CPUS],
            groups: false,
            base_slice: settings.base_slice,
        }
    }

    fn steps(&mut self, cpu: usize) -> FairSteps<'_> {
        let cpu = CpuId(cpu as u16);
        *self.kernel.inside_mut().this_cpu = cpu;
        self.kernel.clear_facts();
        FairSteps(&mut self.kernel, cpu)
    }

    fn task(&mut self, pid: i32) -> TaskId {
        if let Some(known) = self.tasks.get(&pid) {
            return known.task;
        }
        self.add(pid, None, false)
    }

    /// Something happened to it that our picture does not have.
    pub fn forget(&mut self, pid: i32) {
        if let Some(known) = self.tasks.get_mut(&pid) {
            known.known = false;
        }
    }

    /// Something happened to it that those in its queue have felt.
    pub fn lose(&mut self, pid: i32) {
        self.forget(pid);
        let Some(se) = self.entity(pid).filter(|se| se.on_rq) else { return };
        let Some(cpu) = (0..NR_CPUS).find(|cpu| se.cfs_rq == root(*cpu)) else { return };
        self.base_known[cpu] = false;
        let cfs = &self.kernel.inside().cfs[root(cpu)];
        let queued: Vec<_> = cfs.timeline.iter().map(|node| node.se).chain(cfs.curr).collect();
        for se in queued {
            self.forget(self.pid_of(self.kernel.inside().se[se].task));
        }
    }

    /// A known entity's weight, scaled down.
    pub fn weight(&self, pid: i32) -> Option<u64> {
        let se = self.entity(pid).filter(|_| self.knows(pid))?;
        Some(scale_load_down(se.load.weight))
    }

    fn add(&mut self, pid: i32, parent: Option<TaskId>, known: bool) -> TaskId {
        let task = self.kernel.new_task(parent, TaskKind::User);
        self.pids.resize(self.kernel.inside().tasks.len(), 0);
        self.pids[task.0 as usize] = pid;
        self.tasks.insert(pid, Known { task, known });
        task
    }

    fn entity(&self, pid: i32) -> Option<&SchedEntity> {
        let task = self.tasks.get(&pid)?.task;
        Some(&self.kernel.inside().se[self.kernel.inside().tasks[task].se])
    }

    fn entity_mut(&mut self, task: TaskId) -> &mut SchedEntity {
        let inside = self.kernel.inside_mut();
        &mut inside.se[inside.tasks[task].se]
    }

    fn pid_of(&self, task: TaskId) -> i32 {
        self.pids[task.0 as usize]
    }

    /// The fair task that runs on a CPU.
    pub fn curr(&self, cpu: usize) -> Option<i32> {
        let se = self.kernel.inside().cfs[root(cpu)].curr?;
        Some(self.pid_of(self.kernel.inside().se[se].task))
    }

    /// Whether it is still queued.
    pub fn curr_queued(&self, cpu: usize) -> bool {
        self.kernel.inside().cfs[root(cpu)].curr.is_some_and(|se| self.kernel.inside().se[se].on_rq)
    }

    /// Whether a task is queued (or runs) on a CPU.
    pub fn queued(&self, cpu: usize, pid: i32) -> bool {
        self.entity(pid).is_some_and(|se| se.on_rq && se.cfs_rq == root(cpu))
    }

    /// Whether it sleeps, but is still queued.
    pub fn delayed(&self, pid: i32) -> bool {
        self.entity(pid).is_some_and(|se| se.on_rq && se.sched_delayed)
    }

    /// Entities of a queue, the running one included.
    pub fn nr_queued(&self, cpu: usize) -> u32 {
        self.kernel.inside().cfs[root(cpu)].nr_queued
    }

    /// The delayed ones of a queue, by deadline; not the running one.
    pub fn delayed_ones(&self, cpu: usize) -> impl Iterator<Item = i32> {
        let timeline = self.kernel.inside().cfs[root(cpu)].timeline.iter();
        timeline
            .map(|node| &self.kernel.inside().se[node.se])
            .filter(|se| se.sched_delayed)
            .map(|se| self.pid_of(se.task))
    }

    /// Whether everything is known that the queue's decisions depend on.
    pub fn sure(&self, cpu: usize) -> bool {
        self.base_known[cpu] && self.tracked[cpu] && !self.groups && self.all_known(cpu)
    }

    fn all_known(&self, cpu: usize) -> bool {
        let cfs = &self.kernel.inside().cfs[root(cpu)];
        let queued = cfs.timeline.iter().map(|node| node.se);
        let mut queued = queued.chain(cfs.curr.filter(|&se| self.kernel.inside().se[se].on_rq));
        queued.all(|se| self.knows(self.pid_of(self.kernel.inside().se[se].task)))
    }

    /// Whether an entity's state has been taken over.
    pub fn knows(&self, pid: i32) -> bool {
        self.tasks.get(&pid).is_some_and(|known| known.known)
    }

    /// `TIF_NEED_RESCHED` of what runs on a CPU.
    pub fn need_resched(&self, cpu: usize) -> bool {
        self.kernel.inside().rq[CpuId(cpu as u16)].need_resched
    }

    /// Sets it to what the recording shows.
    pub fn set_need_resched(&mut self, cpu: usize, need: bool) {
        self.kernel.inside_mut().rq[CpuId(cpu as u16)].need_resched = need;
    }

    /// An entity's virtual times, if known.
    pub fn times(&self, pid: i32) -> Option<Virtual> {
        let se = self.entity(pid).filter(|_| self.knows(pid))?;
        Some(Virtual { v: se.vruntime, d: se.deadline, vlag: se.vlag, slice: se.slice })
    }

    /// Of a known entity that runs: its `vruntime`, up to when that counts, and its weight.
    pub fn running(&self, pid: i32) -> Option<(u64, u64, LoadWeight)> {
        let se = self.entity(pid).filter(|_| self.knows(pid))?;
        Some((se.vruntime, se.exec_start, se.load))
    }

    /// A queue's sums, if known; `with`, `without`: also with, without this entity.
    pub fn sums(&self, cpu: usize, with: Option<i32>, without: Option<i32>) -> Option<Sums> {
        if !self.sure(cpu) {
            return None;
        }
        let cfs = &self.kernel.inside().cfs[root(cpu)];
        let mut sums = Sums { zero: cfs.zero_vruntime, sum: cfs.avg_vruntime, load: cfs.avg_load };
        for (pid, sign) in [(with, 1), (without, -1)] {
            if let Some(se) = pid.and_then(|pid| self.entity(pid)).filter(|se| se.on_rq) {
                let weight = cfs.weight_in_sums(se) as i64 * sign;
                let key = se.vruntime.wrapping_sub(cfs.zero_vruntime) as i64;
                sums.sum = sums.sum.wrapping_add(key.wrapping_mul(weight));
                sums.load = sums.load.wrapping_add(weight as u64);
            }
        }
        Some(sums)
    }

    /// Takes over an entity; from now on known if it is queued where we believe it is.
    pub fn adopt(&mut self, cpu: usize, pid: i32, times: Virtual, weight: u64, on_rq: bool) {
        let task = self.task(pid);
        let queued = self.queued(cpu, pid);
        if self.entity_mut(task).on_rq != queued {
            // We have it in another queue.
            return self.forget(pid);
        }
        let load = load_of(weight);
        if self.entity_mut(task).load != load {
            // Its weight is part of the queue's sums.
            let curr = queued && self.curr(cpu) == Some(pid);
            if queued {
                self.dequeue(cpu, pid, Dequeue::Save);
            }
            self.entity_mut(task).load = load;
            self.kernel.inside_mut().tasks[task].policy = policy_of(weight);
            if queued {
                self.enqueue(cpu, pid, Enqueue::Restore);
            }
            if curr {
                self.steps(cpu).set_next(task, false);
            }
        }
        self.entity_mut(task).slice = times.slice.clamp(SLICE_MIN, SLICE_MAX);
        self.steps(cpu).adopt(task, times.v, times.d, times.vlag);
        if let Some(known) = self.tasks.get_mut(&pid) {
            known.known = queued == on_rq;
        }
    }

    /// Takes over up to where an entity may run.
    pub fn protect(&mut self, pid: i32, vprot: u64) {
        let task = self.task(pid);
        self.entity_mut(task).vprot = vprot;
    }

    /// Takes over a slice that `sched_setattr()` has given. Only then it is the task's own: one that a task has from
    /// the beginning is the base slice of when it was made, when fewer CPUs were up.
    pub fn set_slice(&mut self, pid: i32, slice: u64) {
        let task = self.task(pid);
        let base_slice = self.base_slice;
        let entity = self.entity_mut(task);
        entity.slice = slice.clamp(SLICE_MIN, SLICE_MAX);
        entity.custom_slice = slice != base_slice;
    }

    /// Takes over where a queue's sums have their base, if that is not known and everybody in it is.
    pub fn adopt_base(&mut self, cpu: usize, zero: u64) {
        if self.base_known[cpu] || !self.tracked[cpu] || !self.all_known(cpu) {
            return;
        }
        self.base_known[cpu] = true;
        let inside = self.kernel.inside_mut();
        let cfs = &mut inside.cfs[root(cpu)];
        cfs.zero_vruntime = zero;
        cfs.avg_vruntime = 0;
        for node in &cfs.timeline {
            let weight = cfs.weight_in_sums(&inside.se[node.se]) as i64;
            let key = node.vruntime.wrapping_sub(zero) as i64;
            cfs.avg_vruntime = cfs.avg_vruntime.wrapping_add(key.wrapping_mul(weight));
        }
    }

    /// A task has forked.
    pub fn fork(&mut self, parent: i32, child: i32) {
        let of = self.task(parent);
        let known = self.knows(parent);
        let deadline = self.entity_mut(of).deadline;
        let task = self.add(child, Some(of), known);
        self.entity_mut(task).deadline = deadline;
    }

    /// The running task has run up to `clock_task` (`update_curr`).
    pub fn charge(&mut self, cpu: usize, pid: i32, clock_task: u64) {
        if self.curr(cpu) == Some(pid) && clock_task < TIME_MAX {
            self.kernel.inside_mut().rq[CpuId(cpu as u16)].clock_task = clock_task;
            self.steps(cpu).update_curr();
        } else {
            self.forget(pid);
        }
    }

    /// `enqueue_task_fair`; nothing if it is queued already.
    pub fn enqueue(&mut self, cpu: usize, pid: i32, why: Enqueue) {
        let task = self.task(pid);
        if self.entity_mut(task).on_rq {
            return self.forget(pid);
        }
        let sure = self.sure(cpu);
        let flags = match why {
            Enqueue::Wakeup => ENQUEUE_WAKEUP,
            Enqueue::New => ENQUEUE_INITIAL,
            Enqueue::Migrated => ENQUEUE_MIGRATED,
            Enqueue::Restore => ENQUEUE_RESTORE,
        };
        self.kernel.set_task_cpu(task, CpuId(cpu as u16));
        self.steps(cpu).enqueue(task, flags | ENQUEUE_NOCLOCK);
        self.kernel.inside_mut().tasks[task].on_rq = OnRq::Queued;
        // An unknown one moves the base.
        self.base_known[cpu] &= self.knows(pid);
        if !sure {
            self.forget(pid);
        }
    }

    /// A delayed task is woken where it is.
    pub fn requeue(&mut self, cpu: usize, pid: i32) {
        let task = self.task(pid);
        if self.queued(cpu, pid) && self.delayed(pid) {
            self.steps(cpu).enqueue(task, ENQUEUE_NOCLOCK | ENQUEUE_DELAYED);
        }
    }

    /// `dequeue_task_fair`; nothing if it is not queued there.
    pub fn dequeue(&mut self, cpu: usize, pid: i32, why: Dequeue) {
        let task = self.task(pid);
        if !self.queued(cpu, pid) {
            return self.forget(pid);
        }
        let flags = match why {
            Dequeue::Leave if self.delayed(pid) => DEQUEUE_SLEEP | DEQUEUE_DELAYED,
            // Whether it leaves has been decided.
            Dequeue::Leave => DEQUEUE_SLEEP | DEQUEUE_SPECIAL,
            Dequeue::Migrating => {
                self.kernel.inside_mut().tasks[task].on_rq = OnRq::Migrating;
                0
            }
            Dequeue::Save => DEQUEUE_SAVE,
        };
        let sure = self.sure(cpu);
        self.steps(cpu).dequeue(task, flags | DEQUEUE_NOCLOCK);
        if flags & DEQUEUE_SLEEP != 0 {
            self.kernel.inside_mut().tasks[task].on_rq = OnRq::No;
        }
        if why == Dequeue::Save && self.curr(cpu) == Some(pid) {
            self.steps(cpu).put_prev(task);
        }
        if !sure {
            self.forget(pid);
        }
    }

    /// The running task was only dequeued for a change, and goes on.
    pub fn install(&mut self, cpu: usize, pid: i32) {
        let task = self.task(pid);
        if self.queued(cpu, pid) && self.curr(cpu).is_none() {
            self.steps(cpu).set_next(task, false);
        }
    }

    /// Marks a sleeper that stays queued.
    pub fn delay(&mut self, cpu: usize, pid: i32) {
        let task = self.task(pid);
        if self.queued(cpu, pid) && !self.delayed(pid) {
            self.entity_mut(task).sched_delayed = true;
            let cfs = &mut self.kernel.inside_mut().cfs[root(cpu)];
            cfs.h_nr_runnable -= 1;
            cfs.h_nr_delayed += 1;
        }
    }

    /// Another weight, while the task is off the queue.
    pub fn reweight(&mut self, pid: i32, weight: u64) {
        let task = self.task(pid);
        if !self.entity_mut(task).on_rq {
            let load = load_of(weight);
            self.kernel.inside_mut().tasks[task].policy = policy_of(weight);
            self.steps(0).reweight(task, load);
        }
    }

    /// Whether a task that goes to sleep would stay queued.
    pub fn delays(&mut self, cpu: usize, pid: i32) -> bool {
        let task = self.task(pid);
        let delays = self.kernel.inside().config.features.delay_dequeue;
        delays && self.queued(cpu, pid) && !self.steps(cpu).eligible(task)
    }

    /// Returns the task that `pick_eevdf` picks now.
    pub fn pick(&mut self, cpu: usize) -> Option<i32> {
        let task = self.steps(cpu).pick_eevdf()?;
        Some(self.pid_of(task))
    }

    /// The running task yields.
    pub fn yields(&mut self, cpu: usize) {
        if self.curr_queued(cpu) {
            self.steps(cpu).yield_task();
        }
    }

    /// `check_preempt_wakeup_fair`, if a fair task runs; sets [`Twin::need_resched`]. Returns the delayed tasks whose
    /// dequeue its picks have finished.
    pub fn wakeup_preempt(&mut self, cpu: usize, pid: i32, new: bool) -> Vec<i32> {
        let task = self.task(pid);
        if self.curr(cpu).is_none() || !self.queued(cpu, pid) {
            return Vec::new();
        }
        let mut delayed: Vec<i32> = self.delayed_ones(cpu).collect();
        self.steps(cpu).wakeup_preempt_flags(task, if new { WF_FORK } else { 0 });
        delayed.retain(|pid| !self.queued(cpu, *pid));
        for &pid in &delayed {
            let task = self.task(pid);
            self.kernel.inside_mut().tasks[task].on_rq = OnRq::No;
        }
        delayed
    }

    /// Whether a lag is measured when a dequeue begins, before it is known whether it will be delayed.
    pub fn fixes_lag(&self) -> bool {
        self.kernel.inside().config.eevdf_form == EevdfForm::V7_3
    }

    /// The beginning of a dequeue.
    pub fn begin_dequeue(&mut self, cpu: usize, pid: i32) {
        let task = self.task(pid);
        if self.queued(cpu, pid) {
            self.steps(cpu).begin_dequeue(task);
        }
    }

    /// The virtual times of a delayed entity once its dequeue has begun, if they are known.
    pub fn times_in_dequeue(&mut self, cpu: usize, pid: i32) -> Option<Virtual> {
        if !self.delayed(pid) || !self.queued(cpu, pid) {
            return None;
        }
        let before = self.times(pid)?;
        self.begin_dequeue(cpu, pid);
        let times = self.times(pid);
        let task = self.task(pid);
        self.entity_mut(task).vlag = before.vlag;
        times
    }

    /// Returns the virtual time of a task for `ran` ns.
    pub fn virtual_time(&self, ran: u64, load: &LoadWeight) -> u64 {
        conformance::calc_delta_fair(&self.kernel, ran, load)
    }

    /// A switch at `clock_task`; `next`: the fair task that comes, if it is one.
    pub fn switch(&mut self, cpu: usize, next: Option<i32>, clock_task: u64) {
        if let Some(prev) = self.curr(cpu) {
            let prev = self.task(prev);
            self.steps(cpu).put_prev(prev);
        }
        if clock_task < TIME_MAX {
            self.kernel.inside_mut().rq[CpuId(cpu as u16)].clock_task = clock_task;
        }
        self.set_need_resched(cpu, false);
        let mut curr = TaskId::IDLE;
        match next {
            Some(pid) if self.queued(cpu, pid) => {
                curr = self.task(pid);
                self.steps(cpu).set_next(curr, true);
            }
            Some(pid) => self.forget(pid),
            None => {}
        }
        self.kernel.inside_mut().rq[CpuId(cpu as u16)].curr = curr;
    }

    /// The recording has task groups, which are not followed: nothing is known any more.
    pub fn give_up(&mut self) {
        self.groups = true;
    }

    /// Returns a queue as text, to find the cause of a miss.
    pub fn text(&self, cpu: usize) -> String {
        let cfs = &self.kernel.inside().cfs[root(cpu)];
        let mut text = format!(
            " zero {} nr {} need_resched {} clock {}",
            cfs.zero_vruntime,
            cfs.nr_queued,
            self.need_resched(cpu),
            self.kernel.inside().rq[CpuId(cpu as u16)].clock_task,
        );
        for se in cfs.curr.into_iter().chain(cfs.timeline.iter().map(|node| node.se)) {
            let se = &self.kernel.inside().se[se];
            let rel = |at: u64| at.wrapping_sub(cfs.zero_vruntime) as i64;
            let pid = self.pid_of(se.task);
            text += &format!(
                "\n   {pid}: v {} d {} vlag {} w {} slice {} on {} delayed {} known {} exec_start {}",
                rel(se.vruntime),
                rel(se.deadline),
                if se.vlag.unsigned_abs() > 1 << 27 { rel(se.vlag as u64) } else { se.vlag },
                scale_load_down(se.load.weight),
                se.slice,
                se.on_rq,
                se.sched_delayed,
                self.knows(pid),
                se.exec_start,
            );
        }
        text
    }

    /// The queue is empty, whatever we believed.
    pub fn clear(&mut self, cpu: usize) {
        let queued: Vec<i32> =
            self.tasks.keys().copied().filter(|pid| self.queued(cpu, *pid)).collect();
        for pid in queued {
            self.dequeue(cpu, pid, Dequeue::Leave);
            self.forget(pid);
        }
        self.tracked[cpu] = true;
    }
}

/// CPUs like each other: the fair class does not look at capacities.
fn device_tree() -> DeviceTree {
    let cpus = DeviceTree::of_domains(&[(NR_CPUS as u16, 1024, &[(1_000_000, 1000)])]);
    DeviceTree { nr_threads_hint: 64, ..cpus }
}

fn root(cpu: usize) -> CfsRqId {
    CfsRqId::root(CpuId(cpu as u16))
}

/// `SCHED_IDLE` is known by its weight.
fn policy_of(weight: u64) -> Policy {
    if weight == 3 { Policy::Idle } else { Policy::Normal }
}

/// A printed weight, scaled down, with the inverse that the kernel's table has for it.
fn load_of(weight: u64) -> LoadWeight {
    let nice = (-20..20).map(|nice| weight_of(Policy::Normal, nice));
    let mut table = nice.chain([weight_of(Policy::Idle, 0)]);
    let found = table.find(|load| scale_load_down(load.weight) == weight);
    found.unwrap_or(LoadWeight { weight: weight.clamp(2, WEIGHT_MAX) << 10, inv_weight: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_tells_slice_tick_and_features() {
        let usual =
            FairSettings { base_slice: 2_800_000, hz: 250, release: [0; 3], off: [false; 8] };
        assert_eq!(FairSettings::parse(""), usual);
        let text = "/sys/sched/features = PLACE_LAG NO_RUN_TO_PARITY DELAY_ZERO \n\
            /sys/sched/base_slice_ns = 3000000\nCONFIG_HZ=1000\n";
        let told = FairSettings::parse(text);
        assert_eq!((told.base_slice, told.hz), (3_000_000, 1000));
        let features = told.config().features;
        assert!(features.place_lag && features.delay_zero && !features.run_to_parity);
    }

    #[test]
    fn weights_have_the_tables_inverses() {
        for (weight, inverse) in [(1024, 4194304), (335, 12820798), (3, 1431655765), (777, 0)] {
            let load = load_of(weight);
            assert_eq!((load.weight, load.inv_weight), (weight << 10, inverse));
        }
    }
}
