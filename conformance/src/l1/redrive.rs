//! Re-drives a recording: our PELT, driven by the recorded clocks and events, beside the kernel's.
//!
//! **The idea.** Every entity of the recording (task, fair run queue, RT and deadline signal of a CPU)
//! gets a [`SchedAvg`] of ours, which takes over the recorded state once, at the entity's first record.
//! From then on only *inputs* come from the recording: when an update happened, on which clock, who
//! was queued and who ran. At each printed line the two sides are compared. This runs twice, side by
//! side ([`RUNS`]): the *free run* never looks back; the *step run* takes over the recorded sums at
//! every line, so that each line checks one step to the last bit.
//!
//! **Where updates happen.** A line is only printed when an update crossed a segment, but the last bit
//! also depends on the updates in between, while something runs or is queued. These are known:
//!
//! | event | what the kernel updates, and then changes |
//! |---|---|
//! | a `run` line inside the tick | current entity and its queue |
//! | `sched_switch` | the one that leaves (if still queued) and its queue; then the one that comes; who is current |
//! | `nr` of an enqueue or dequeue | entity and queue; then who is queued ([`Operation`]) |
//! | `run` of a sleep without `nr` | entity and queue; then the entity is delayed |
//! | `nr` −1 without `ue_cfs` | a delayed entity, finished by the pick; then it is not queued |
//! | `sched_migrate_task` of a sleeper | the sleeper, to the time of its old queue; then `removed` |
//! | any `pelt_` line | whatever it names, to its `lut` |
//!
//! An update at a time at which nothing has passed does nothing, so it does not matter that a line
//! and an event may both ask for the same one.
//!
//! **What remains untold** is named by [`Cause`].

use std::collections::BTreeMap;

use schedtwin_kernel::sched::pelt::{
    self, Removed, SchedAvg, UTIL_AVG_UNCHANGED, attach_entity, dequeue_load_avg, detach_entity,
    enqueue_load_avg, fold_removed, init_entity, post_init_entity_util_avg, remove_entity,
    reweight_load_avg, update_dl_rq_load_avg,
    update_load_avg_blocked_se, update_load_avg_cfs_rq, update_load_avg_se, update_rt_rq_load_avg,
    util_est_dequeue, util_est_enqueue, util_est_update,
};

use super::operation::{Fate, Found, Operation, fate, look_ahead};
use super::tally::{Cause, Causes, Kind, Signal, Tally};
use crate::ftrace::{Averages, CPUS_MAX, Event, OtherSignal, Record, RqAt, Trace};

/// The free run and the step run.
const RUNS: usize = 2;
const FREE: usize = 0;
const STEP: usize = 1;

/// Weights by nice −20..=19 (`sched_prio_to_weight`), scaled down.
const PRIO_TO_WEIGHT: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// `arch_scale_cpu_capacity` of the rig's board (its README: 4 + 2 + 2 CPUs). Larger numbers: 1024.
fn arch_capacity(cpu: usize) -> u64 {
    match cpu {
        0..=3 => 124,
        4..=5 => 427,
        _ => 1024,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Idle,
    Fair,
    Rt,
    Dl,
    Stop,
}

fn class_of(pid: i32, prio: i32, stop: bool) -> Class {
    if pid == 0 {
        Class::Idle
    } else if stop {
        Class::Stop
    } else if prio < 0 {
        Class::Dl
    } else if prio < 100 {
        Class::Rt
    } else {
        Class::Fair
    }
}

/// A task's entity.
#[derive(Clone, Debug)]
struct Task {
    avg: [SchedAvg; RUNS],
    /// Its state has been taken from a record (or from its fork).
    known: bool,
    /// … from one since the kernel's own events are recorded.
    started: bool,
    weight: u64,
    cpu: usize,
    on_rq: bool,
    delayed: bool,
    /// `last_update_time == 0`: the next enqueue attaches it.
    detached: bool,
    deadline: u64,
    /// Set where causes arise: per run, since the last record that agreed.
    causes: [Causes; RUNS],
}

impl Task {
    fn new(cpu: usize) -> Task {
        Task {
            avg: Default::default(),
            known: false,
            started: false,
            weight: 1024,
            cpu,
            on_rq: false,
            delayed: false,
            detached: false,
            deadline: 0,
            causes: Default::default(),
        }
    }

    fn update(&mut self, now: u64, running: bool) {
        let (on_rq, runnable, weight) = (self.on_rq, !self.delayed as u64, self.weight);
        for avg in &mut self.avg {
            update_load_avg_se(now, avg, on_rq, runnable * on_rq as u64, running, weight);
        }
    }

    fn update_blocked(&mut self, now: u64) {
        for avg in &mut self.avg {
            update_load_avg_blocked_se(now, avg, self.weight);
        }
    }
}

/// One of a CPU's small signals.
#[derive(Clone, Debug, Default)]
struct Small {
    avg: [SchedAvg; RUNS],
    started: bool,
    causes: [Causes; RUNS],
}

/// A CPU and its fair run queue.
#[derive(Clone, Debug)]
struct Cpu {
    /// It has been seen empty: from then on we know who is queued.
    tracked: bool,
    cfs: [SchedAvg; RUNS],
    cfs_started: bool,
    removed: [Removed; RUNS],
    causes: [Causes; RUNS],
    /// Σ weights of the queued, delayed ones too.
    weight: u64,
    h_nr_queued: u32,
    h_nr_delayed: u32,
    /// `cfs_rq->curr`.
    cfs_curr: Option<i32>,
    curr: i32,
    curr_class: Class,
    /// A current task of another class has printed the `nr` line of its dequeue.
    curr_dequeued: bool,
    rt: Small,
    dl: Small,
    lost: u64,
    /// The PELT clock (`rq_clock_pelt`) at the last line that told it, but not a switch's.
    now: u64,
    /// The PELT clock before the switch that comes next.
    switch_now: u64,
    /// Lines printed *by* this CPU: its tick has fired and `run` not yet been printed.
    tick: bool,
    /// Lines printed *by* this CPU: the operation under way.
    active: Option<Active>,
    /// Printed *by* this CPU: queued tasks on their way, and to where.
    moving: Vec<(i32, usize)>,
    /// A task of this CPU that was dequeued to be changed.
    saved: Option<i32>,
    /// A delayed task whose update was printed since the last change of the queue.
    delayed_hint: Option<i32>,
}

/// An enqueue or dequeue under way.
#[derive(Clone, Copy, Debug)]
struct Active {
    cpu: usize,
    found: Found,
    /// What it does has been done.
    done: bool,
    /// An attach or detach has moved the averages.
    moved: bool,
}

impl Cpu {
    fn new() -> Cpu {
        Cpu {
            tracked: false,
            cfs: Default::default(),
            cfs_started: false,
            removed: Default::default(),
            causes: Default::default(),
            weight: 0,
            h_nr_queued: 0,
            h_nr_delayed: 0,
            cfs_curr: None,
            curr: 0,
            curr_class: Class::Idle,
            curr_dequeued: false,
            rt: Small::default(),
            dl: Small::default(),
            lost: 0,
            now: 0,
            switch_now: 0,
            tick: false,
            active: None,
            moving: Vec::new(),
            saved: None,
            delayed_hint: None,
        }
    }

    /// `update_cfs_rq_load_avg`.
    fn update_cfs(&mut self, now: u64) {
        let runnable = self.h_nr_queued.saturating_sub(self.h_nr_delayed) as u64;
        let running = self.cfs_curr.is_some();
        for (avg, removed) in self.cfs.iter_mut().zip(&mut self.removed) {
            fold_removed(avg, removed);
            update_load_avg_cfs_rq(now, avg, self.weight, runnable, running);
        }
    }

    fn fold(&mut self) {
        for (avg, removed) in self.cfs.iter_mut().zip(&mut self.removed) {
            fold_removed(avg, removed);
        }
    }

    fn cause(&mut self, cause: Cause) {
        for causes in &mut self.causes {
            causes.add(cause);
        }
    }
}

/// What a miss looked like, for whoever hunts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// Trace time, µs.
    pub time_us: u64,
    /// Kind, who, and both sides.
    pub text: String,
}

/// Misses that are kept per recording.
const MISSES_KEPT: usize = 4000;

/// Drives one recording.
pub struct Redrive {
    tasks: BTreeMap<i32, Task>,
    cpus: Vec<Cpu>,
    /// The kernel's own events have begun.
    driving: bool,
    /// The counts.
    pub tally: Tally,
    /// The first misses.
    pub misses: Vec<Miss>,
    /// Whether to keep texts of misses.
    pub keep_misses: bool,
}

impl Default for Redrive {
    fn default() -> Redrive {
        Redrive {
            tasks: BTreeMap::new(),
            cpus: Vec::new(),
            driving: false,
            tally: Tally::default(),
            misses: Vec::new(),
            keep_misses: false,
        }
    }
}

impl Redrive {
    /// Drives the whole of `trace`.
    pub fn drive(&mut self, trace: &mut Trace) -> std::io::Result<()> {
        while let Some(record) = trace.next()? {
            self.tally.records += 1;
            self.record(&record, trace);
        }
        Ok(())
    }

    fn cpu(&mut self, cpu: usize) -> &mut Cpu {
        debug_assert!(cpu < CPUS_MAX);
        if cpu >= self.cpus.len() {
            self.cpus.resize_with(cpu + 1, Cpu::new);
        }
        &mut self.cpus[cpu]
    }

    fn task(&mut self, pid: i32, cpu: usize) -> &mut Task {
        self.tasks.entry(pid).or_insert_with(|| Task::new(cpu))
    }

    fn record(&mut self, r: &Record, trace: &Trace) {
        self.cpu(r.cpu);
        match r.event {
            Event::PeltSe { .. } => self.pelt_se(r, trace),
            Event::PeltCfs { cpu, .. } => {
                self.cpu(cpu);
                self.pelt_cfs(r);
            }
            Event::PeltOther {
                signal,
                cpu,
                lut,
                pc,
                us,
                u,
            } => {
                self.cpu(cpu);
                self.pelt_other(r, signal, cpu, (lut, pc, us, u));
            }
            Event::Rq {
                at, cpu, cp, lost, ..
            } => {
                let c = self.cpu(cpu);
                c.lost = lost;
                match at {
                    RqAt::Switch => c.switch_now = cp.wrapping_sub(lost),
                    RqAt::Wake => self.rq_at_wake(r.cpu, cpu, cp.wrapping_sub(lost)),
                }
            }
            Event::Run { pid, cp, .. } => self.run(r, pid, cp),
            Event::Nr { cpu, nr, ch, cp } => {
                self.cpu(cpu);
                if self.driving {
                    self.nr(r, trace, cpu, nr, ch, cp);
                }
            }
            Event::UeCfs { cpu, ue } => {
                self.cpu(cpu);
                if self.driving {
                    self.ue_cfs(r, trace, cpu, ue);
                }
            }
            Event::UeSe { pid, ue, uf, .. } => self.ue_se(r, pid, ue, uf),
            Event::Sugov { cpu, .. } => {
                // Something decayed. If it was not a crossed segment, it was a removal.
                let c = self.cpu(cpu);
                if c.removed[FREE].nr > 0 {
                    c.cause(Cause::RemovedFold);
                    c.fold();
                }
            }
            Event::SchedSwitch { .. } => {
                self.driving = true;
                self.switch(r);
            }
            Event::SchedWakeup {
                pid,
                prio,
                target_cpu,
                ..
            } => {
                self.driving = true;
                if class_of(pid, prio, false) == Class::Fair {
                    self.cpus[r.cpu].active = None;
                }
                self.cpu(target_cpu);
            }
            Event::SchedMigrateTask {
                pid,
                prio,
                orig_cpu,
                dest_cpu,
            } => {
                self.driving = true;
                self.cpu(orig_cpu);
                self.cpu(dest_cpu);
                self.migrate(r, pid, prio, orig_cpu, dest_cpu);
            }
            Event::SchedProcessFork { pid, child_pid } => {
                self.driving = true;
                let weight = self.tasks.get(&pid).map_or(1024, |t| t.weight);
                let mut child = Task::new(r.cpu);
                child.weight = weight;
                child.avg = [init_entity(Some(weight)); RUNS];
                child.known = true;
                child.detached = true;
                self.tasks.insert(child_pid, child);
            }
            Event::HrtimerExpire { tick, .. } => {
                self.driving = true;
                self.cpus[r.cpu].tick = tick;
            }
            Event::SoftirqEntry { vec: 7 } => {
                // SCHED_SOFTIRQ: updates its own CPU, and as the idle balancer idle ones, where
                // nothing accumulates.
                let c = &mut self.cpus[r.cpu];
                if c.weight > 0 {
                    c.cause(Cause::BalanceSoftirq);
                }
            }
            _ => {}
        }
    }

    /// Entity and queue, as `update_load_avg` does it.
    fn update_load_avg(&mut self, cpu: usize, pid: i32, now: u64) {
        let c = &mut self.cpus[cpu];
        if let Some(t) = self.tasks.get_mut(&pid)
            && !t.detached
        {
            t.update(now, c.cfs_curr == Some(pid));
        }
        c.update_cfs(now);
    }

    // ---- enqueue and dequeue ----------------------------------------------------------------

    fn ue_cfs(&mut self, r: &Record, trace: &Trace, cpu: usize, ue: u32) {
        let q = &self.cpus[r.cpu];
        let moving = q
            .moving
            .iter()
            .rev()
            .find(|(_, dest)| *dest == cpu)
            .map(|(pid, _)| *pid);
        let saved = self.cpus[cpu].saved;
        let mut found = look_ahead(r, cpu, trace.ahead(r.cpu), moving, saved);
        if let Operation::Sleep { pid } = found.operation
            && self.stays_delayed(trace, cpu, pid, &found)
        {
            found.operation = Operation::SleepDelayed { pid };
        }
        let enqueue = matches!(
            found.operation,
            Operation::Wakeup { .. }
                | Operation::RequeueDelayed { .. }
                | Operation::AttachMigrating { .. }
                | Operation::Restore { .. }
        );
        if enqueue && found.nr_after == Some(1) {
            self.seen_empty(cpu);
        }
        if found.operation == Operation::Unknown {
            self.cpus[cpu].cause(Cause::UnknownOperation);
        }
        if let Some(pid) = found.operation.pid() {
            let known = self.tasks.get(&pid).is_some_and(|t| t.known);
            let c = &mut self.cpus[cpu];
            if !known {
                c.cause(Cause::UnknownTask);
            }
            let t = self.tasks.entry(pid).or_insert_with(|| Task::new(cpu));
            if !known && enqueue {
                // The first line that says something of this task: its estimate is what it adds.
                for (avg, cfs) in t.avg.iter_mut().zip(&c.cfs) {
                    avg.util_est = ue.saturating_sub(cfs.util_est);
                }
            }
            for run in 0..RUNS {
                if enqueue {
                    util_est_enqueue(&mut c.cfs[run], &t.avg[run]);
                } else {
                    util_est_dequeue(&mut c.cfs[run], &t.avg[run]);
                }
            }
            if matches!(
                found.operation,
                Operation::Sleep { .. } | Operation::SleepDelayed { .. }
            ) {
                for avg in &mut t.avg {
                    util_est_update(avg, arch_capacity(cpu));
                }
            }
            if let Operation::Wakeup { new: true, .. } = found.operation {
                for run in 0..RUNS {
                    let (util, load) = (c.cfs[run].util_avg, c.cfs[run].load_avg);
                    let weight = t.weight;
                    post_init_entity_util_avg(
                        &mut t.avg[run],
                        util,
                        load,
                        weight,
                        arch_capacity(cpu),
                    );
                }
            }
        }
        self.cpus[r.cpu].active = Some(Active {
            cpu,
            found,
            done: false,
            moved: false,
        });
        let c = &self.cpus[cpu];
        if c.cfs_started {
            let (ours, causes) = (c.cfs[FREE].util_est, c.causes[FREE]);
            let ok = self.tally.value(
                Kind::CfsRq,
                Signal::UtilEst,
                ue as u64,
                ours as u64,
                causes,
            );
            if !ok {
                self.miss(r, || format!("ue_cfs {cpu}: {ours} for {ue}, {found:?}"));
            }
        }
    }

    /// Whether a task that goes to sleep stays queued although a dequeue is printed: then that was
    /// another's, who slept before and is dequeued by the pick that follows.
    fn stays_delayed(&self, trace: &Trace, cpu: usize, pid: i32, found: &Found) -> bool {
        let mut possible = 0;
        let mut others = 0;
        for (other, t) in &self.tasks {
            if t.cpu == cpu && t.on_rq && t.delayed && *other != pid {
                others += 1;
                possible += (fate(*other, trace.ahead_all()) != Fate::StillQueued) as u32;
            }
        }
        if others == 0 {
            return false;
        }
        if found.delayed_first {
            return true;
        }
        // Not enough others for all the dequeues: one of them is its own.
        if possible < found.dequeues {
            return false;
        }
        match fate(pid, trace.ahead_all()) {
            Fate::StillQueued => true,
            Fate::Gone { was_delayed } => was_delayed.unwrap_or(false),
            Fate::Unknown => false,
        }
    }

    fn ue_se(&mut self, r: &Record, pid: i32, ue: u32, uf: bool) {
        let Some(t) = self.tasks.get_mut(&pid) else {
            return;
        };
        if !t.started || !self.driving {
            for avg in &mut t.avg {
                avg.util_est = ue | if uf { UTIL_AVG_UNCHANGED } else { 0 };
            }
            return;
        }
        let ours = t.avg[FREE].util_est & !UTIL_AVG_UNCHANGED;
        let causes = t.causes[FREE];
        t.avg[STEP].util_est = ue | if uf { UTIL_AVG_UNCHANGED } else { 0 };
        let ok = self
            .tally
            .value(Kind::Task, Signal::UtilEst, ue as u64, ours as u64, causes);
        if !ok {
            self.miss(r, || format!("ue_se {pid}: {ours} for {ue}"));
        }
    }

    fn nr(&mut self, r: &Record, trace: &Trace, cpu: usize, nr: u32, ch: i32, cp: u64) {
        let now = cp.wrapping_sub(self.cpus[cpu].lost);
        self.cpus[cpu].now = now;
        let active = self.cpus[r.cpu].active.filter(|a| a.cpu == cpu && !a.done);
        if let Some(active) = active {
            let fits = match active.found.operation {
                Operation::Wakeup { .. }
                | Operation::AttachMigrating { .. }
                | Operation::Restore { .. } => ch > 0,
                Operation::Sleep { .. }
                | Operation::DetachMigrating { .. }
                | Operation::Save { .. } => ch < 0,
                Operation::Unknown => true,
                Operation::RequeueDelayed { .. } | Operation::SleepDelayed { .. } => false,
            };
            if fits {
                self.finish(trace, r.cpu, active, now);
                self.check_count(r, cpu, nr);
                return;
            }
        }
        if ch < 0 {
            let c = &mut self.cpus[cpu];
            let other_class = !matches!(c.curr_class, Class::Fair | Class::Idle);
            if other_class && !c.curr_dequeued && r.cpu == cpu {
                c.curr_dequeued = true;
                return;
            }
            // A queued task that is delayed and moved skips `ue_cfs`.
            let moved = trace.ahead(r.cpu).take(2).find_map(|r| match r.event {
                Event::SchedMigrateTask { pid, orig_cpu, .. } if orig_cpu == cpu => Some(pid),
                _ => None,
            });
            if let Some(pid) = moved
                && self.tasks.get(&pid).is_some_and(|t| t.on_rq)
            {
                self.update_load_avg(cpu, pid, now);
                self.detach(cpu, pid);
                self.dequeued(cpu, pid);
                return;
            }
            if r.cpu == cpu {
                self.delay(cpu, now, true);
            }
            self.finish_delayed(r, trace, cpu, now);
        } else {
            if let Some(at) = self.cpus[r.cpu].moving.iter().rposition(|m| m.1 == cpu) {
                // The same task arrives, still delayed.
                let (pid, _) = self.cpus[r.cpu].moving.remove(at);
                if self.tasks.get(&pid).is_some_and(|t| t.delayed) {
                    self.attach(cpu, pid, now);
                    self.enqueued(cpu, pid);
                    return;
                }
            }
            if let Some(pid) = self.cpus[cpu].saved.take() {
                // Dequeued as fair, enqueued as another class: `switched_from_fair` detaches it.
                self.update_load_avg(cpu, pid, now);
                self.detach(cpu, pid);
                let c = &mut self.cpus[cpu];
                if c.curr == pid {
                    c.curr_class = Class::Rt;
                    c.cfs_curr = None;
                    c.curr_dequeued = false;
                }
            }
        }
    }

    /// The kernel's `nr_running` counts all classes: never less than the fair ones.
    fn check_count(&mut self, r: &Record, cpu: usize, nr: u32) {
        let c = &self.cpus[cpu];
        if c.tracked && c.h_nr_queued > nr {
            let ours = c.h_nr_queued;
            self.tally.picture_wrong += 1;
            self.miss(r, || format!("queue {cpu}: {ours} fair ones of {nr}"));
        }
    }

    /// The `nr` line of an operation.
    fn finish(&mut self, trace: &Trace, by: usize, active: Active, now: u64) {
        let cpu = active.cpu;
        if let Some(a) = &mut self.cpus[by].active {
            a.done = true;
        }
        match active.found.operation {
            Operation::Wakeup { pid, .. } => {
                if !active.moved {
                    self.attach(cpu, pid, now);
                }
                self.enqueued(cpu, pid);
            }
            Operation::AttachMigrating { pid } => {
                if !active.moved {
                    self.attach(cpu, pid, now);
                }
                self.cpus[by].moving.retain(|m| m.0 != pid);
                self.enqueued(cpu, pid);
            }
            Operation::Restore { pid } => {
                self.update_load_avg(cpu, pid, now);
                self.reweight(trace, by, cpu, pid);
                self.enqueued(cpu, pid);
                self.cpus[cpu].saved = None;
            }
            Operation::Sleep { pid } => {
                self.update_load_avg(cpu, pid, now);
                self.dequeued(cpu, pid);
            }
            Operation::DetachMigrating { pid } => {
                if !active.moved {
                    self.update_load_avg(cpu, pid, now);
                    self.detach(cpu, pid);
                }
                self.dequeued(cpu, pid);
            }
            Operation::Save { pid } => {
                self.update_load_avg(cpu, pid, now);
                self.dequeued(cpu, pid);
                self.cpus[cpu].saved = Some(pid);
            }
            Operation::RequeueDelayed { .. }
            | Operation::SleepDelayed { .. }
            | Operation::Unknown => {}
        }
    }

    /// Between its save and restore a task's nice value may have changed; the next switch shows it.
    fn reweight(&mut self, trace: &Trace, by: usize, cpu: usize, pid: i32) {
        let prio = trace.ahead(by).find_map(|r| match r.event {
            Event::SchedSwitch { prev_pid, prev_prio, .. } => Some((prev_pid, prev_prio)),
            _ => None,
        });
        let Some((prev, prio)) = prio else { return };
        let nice_index = usize::try_from(prio - 100).ok();
        let weight = nice_index.and_then(|i| PRIO_TO_WEIGHT.get(i).copied());
        let (Some(weight), Some(t)) = (weight, self.tasks.get_mut(&pid)) else {
            return;
        };
        if prev != pid || weight == t.weight {
            return;
        }
        let c = &mut self.cpus[cpu];
        for run in 0..RUNS {
            dequeue_load_avg(&mut c.cfs[run], &t.avg[run], t.weight);
            reweight_load_avg(&mut t.avg[run], weight);
            enqueue_load_avg(&mut c.cfs[run], &t.avg[run], weight);
        }
        t.weight = weight;
    }

    /// Updates for an enqueue, and attaches if it comes from elsewhere.
    fn attach(&mut self, cpu: usize, pid: i32, now: u64) {
        self.update_load_avg(cpu, pid, now);
        let c = &mut self.cpus[cpu];
        let t = self.tasks.entry(pid).or_insert_with(|| Task::new(cpu));
        t.cpu = cpu;
        if t.detached {
            t.detached = false;
            if !t.known {
                c.cause(Cause::UnknownTask);
                return;
            }
            for run in 0..RUNS {
                attach_entity(&mut c.cfs[run], &mut t.avg[run], t.weight);
                t.causes[run].add(Cause::Attach);
                let causes = c.causes[run];
                t.causes[run].merge(causes);
                c.causes[run].merge(t.causes[run]);
            }
        }
    }

    fn detach(&mut self, cpu: usize, pid: i32) {
        let c = &mut self.cpus[cpu];
        if let Some(t) = self.tasks.get_mut(&pid) {
            t.detached = true;
            for run in 0..RUNS {
                detach_entity(&mut c.cfs[run], &t.avg[run], t.weight);
                c.causes[run].merge(t.causes[run]);
            }
        }
    }

    fn enqueued(&mut self, cpu: usize, pid: i32) {
        let c = &mut self.cpus[cpu];
        let t = self.tasks.entry(pid).or_insert_with(|| Task::new(cpu));
        if t.on_rq {
            self.tally.picture_wrong += 1;
            return;
        }
        t.on_rq = true;
        t.cpu = cpu;
        c.weight += t.weight;
        c.h_nr_queued += 1;
        c.h_nr_delayed += t.delayed as u32;
    }

    fn dequeued(&mut self, cpu: usize, pid: i32) {
        let c = &mut self.cpus[cpu];
        let Some(t) = self.tasks.get_mut(&pid).filter(|t| t.on_rq) else {
            if c.tracked {
                self.tally.picture_wrong += 1;
            }
            return;
        };
        t.on_rq = false;
        c.weight = c.weight.saturating_sub(t.weight);
        c.h_nr_queued = c.h_nr_queued.saturating_sub(1);
        c.h_nr_delayed = c.h_nr_delayed.saturating_sub(t.delayed as u32);
    }

    /// The pick met a delayed entity and dequeues it: the eligible one with the earliest deadline.
    ///
    /// The line does not say which. One that the pick's own update printed it is; one that is seen
    /// queued later it is not; if several remain they will all be gone by the time anything shows.
    fn finish_delayed(&mut self, r: &Record, trace: &Trace, cpu: usize, now: u64) {
        let hint = self.cpus[cpu].delayed_hint.take();
        let candidates: Vec<i32> = self
            .tasks
            .iter()
            .filter(|(_, t)| t.cpu == cpu && t.on_rq && t.delayed)
            .map(|(pid, _)| *pid)
            .collect();
        let pid = match (candidates.as_slice(), hint) {
            ([], _) => {
                if self.cpus[cpu].tracked {
                    self.cpus[cpu].cause(Cause::UnknownOperation);
                    self.tally.picture_wrong += 1;
                    self.miss(r, || format!("queue {cpu}: a dequeue and nobody delayed"));
                }
                return;
            }
            ([pid], _) => *pid,
            (several, Some(pid)) if several.contains(&pid) => pid,
            (several, _) => {
                let deadline = |pid: &&i32| self.tasks[*pid].deadline;
                let possible: Vec<&i32> = several
                    .iter()
                    .filter(|pid| fate(**pid, trace.ahead_all()) != Fate::StillQueued)
                    .collect();
                let pid = possible.iter().copied().min_by_key(deadline);
                if possible.len() != 1 {
                    self.cpus[cpu].cause(Cause::UnknownOperation);
                }
                *pid.unwrap_or(&several[0])
            }
        };
        self.update_load_avg(cpu, pid, now);
        self.dequeued(cpu, pid);
        if let Some(t) = self.tasks.get_mut(&pid) {
            t.delayed = false;
        }
    }

    /// A sleep that leaves its task queued: the update, and at the switch the flag, which the lines
    /// of the update do not show yet.
    fn delay(&mut self, by: usize, now: u64, at_switch: bool) {
        let Some(active) = self.cpus[by].active.filter(|a| !a.done) else {
            return;
        };
        let Operation::SleepDelayed { pid } = active.found.operation else {
            return;
        };
        self.update_load_avg(active.cpu, pid, now);
        if !at_switch {
            return;
        }
        if let Some(a) = &mut self.cpus[by].active {
            a.done = true;
        }
        if let Some(t) = self.tasks.get_mut(&pid).filter(|t| t.on_rq && !t.delayed) {
            t.delayed = true;
            self.cpus[active.cpu].h_nr_delayed += 1;
        }
    }

    /// The clock of a wakeup: the only one that tells when a delayed task was requeued.
    fn rq_at_wake(&mut self, by: usize, cpu: usize, now: u64) {
        let Some(active) = self.cpus[by].active.filter(|a| a.cpu == cpu && !a.done) else {
            return;
        };
        let Operation::RequeueDelayed { pid } = active.found.operation else {
            return;
        };
        self.update_load_avg(cpu, pid, now);
        if let Some(a) = &mut self.cpus[by].active {
            a.done = true;
        }
        if let Some(t) = self.tasks.get_mut(&pid).filter(|t| t.delayed) {
            t.delayed = false;
            let c = &mut self.cpus[cpu];
            c.h_nr_delayed = c.h_nr_delayed.saturating_sub(1);
        } else {
            self.tally.picture_wrong += 1;
        }
    }

    /// The queue of `cpu` is empty.
    fn seen_empty(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        if c.tracked && c.h_nr_queued == 0 {
            return;
        }
        if c.tracked {
            self.tally.picture_wrong += 1;
        }
        c.tracked = true;
        c.weight = 0;
        c.h_nr_queued = 0;
        c.h_nr_delayed = 0;
        for t in self.tasks.values_mut().filter(|t| t.cpu == cpu) {
            t.on_rq = false;
            t.delayed = false;
        }
    }

    // ---- clocks -----------------------------------------------------------------------------

    fn run(&mut self, r: &Record, pid: i32, cp: u64) {
        // A remote enqueue charges another CPU's current task.
        let own = self.cpus[r.cpu].curr == pid;
        let cpu = if own {
            r.cpu
        } else {
            match self.cpus.iter().position(|c| c.curr == pid) {
                Some(cpu) => cpu,
                None => return,
            }
        };
        let now = cp.wrapping_sub(self.cpus[cpu].lost);
        self.cpus[cpu].now = now;
        if !self.driving || !own {
            return;
        }
        let in_operation = self.cpus[r.cpu].active.is_some_and(|a| !a.done);
        if in_operation {
            self.delay(r.cpu, now, false);
        } else if r.hardirq && std::mem::take(&mut self.cpus[r.cpu].tick) {
            match self.cpus[cpu].curr_class {
                Class::Fair => self.update_load_avg(cpu, pid, now),
                Class::Rt => self.update_rt(cpu, now, true),
                Class::Dl => self.update_dl(cpu, now, true),
                Class::Stop | Class::Idle => {}
            }
        }
    }

    fn update_rt(&mut self, cpu: usize, now: u64, running: bool) {
        for avg in &mut self.cpus[cpu].rt.avg {
            update_rt_rq_load_avg(now, avg, running);
        }
    }

    fn update_dl(&mut self, cpu: usize, now: u64, running: bool) {
        for avg in &mut self.cpus[cpu].dl.avg {
            update_dl_rq_load_avg(now, avg, running);
        }
    }

    fn switch(&mut self, r: &Record) {
        let Event::SchedSwitch {
            prev_pid,
            prev_prio,
            prev_state,
            next_pid,
            next_prio,
            next_stop,
        } = r.event
        else {
            return;
        };
        let cpu = r.cpu;
        // Going idle has moved the clock on already.
        let now = if next_pid == 0 {
            self.cpus[cpu].now
        } else {
            self.cpus[cpu].switch_now
        };
        self.delay(cpu, now, true);
        let stop = self.cpus[cpu].curr_class == Class::Stop;
        let prev_class = class_of(prev_pid, prev_prio, stop);
        let next_class = class_of(next_pid, next_prio, next_stop);
        match prev_class {
            Class::Fair => {
                if self.tasks.get(&prev_pid).is_some_and(|t| t.on_rq) {
                    self.update_load_avg(cpu, prev_pid, now);
                }
                if matches!(prev_state, b'X' | b'Z') {
                    self.leave(cpu, prev_pid);
                }
            }
            Class::Rt => self.update_rt(cpu, now, true),
            Class::Dl => self.update_dl(cpu, now, true),
            Class::Stop | Class::Idle => {}
        }
        self.cpus[cpu].cfs_curr = None;
        match next_class {
            Class::Fair => {
                let t = self.task(next_pid, cpu);
                t.cpu = cpu;
                if t.on_rq {
                    self.update_load_avg(cpu, next_pid, now);
                } else if self.cpus[cpu].tracked {
                    self.tally.picture_wrong += 1;
                    self.miss(r, || format!("switch to {next_pid}, not queued"));
                }
                self.cpus[cpu].cfs_curr = Some(next_pid);
            }
            Class::Rt if prev_class != Class::Rt => self.update_rt(cpu, now, false),
            Class::Dl if prev_class != Class::Dl => self.update_dl(cpu, now, false),
            Class::Idle => self.seen_empty(cpu),
            Class::Rt | Class::Dl | Class::Stop => {}
        }
        let c = &mut self.cpus[cpu];
        c.curr = next_pid;
        c.curr_class = next_class;
        c.curr_dequeued = false;
        c.active = None;
        c.saved = None;
        c.now = c.switch_now;
    }

    /// A sleeping task leaves its queue (`remove_entity_load_avg`).
    fn leave(&mut self, cpu: usize, pid: i32) {
        let c = &mut self.cpus[cpu];
        c.cause(Cause::RemovedFold);
        let Some(t) = self.tasks.get_mut(&pid) else {
            c.cause(Cause::UnknownTask);
            return;
        };
        if !t.known {
            c.cause(Cause::UnknownTask);
            return;
        }
        for run in 0..RUNS {
            let lut = c.cfs[run].last_update_time;
            remove_entity(&mut c.removed[run], &mut t.avg[run], t.weight, lut);
            c.causes[run].merge(t.causes[run]);
        }
    }

    fn migrate(&mut self, r: &Record, pid: i32, prio: i32, orig: usize, dest: usize) {
        let cfs_luts: [[u64; 2]; RUNS] = std::array::from_fn(|run| {
            [orig, dest].map(|cpu| self.cpus[cpu].cfs[run].last_update_time)
        });
        let t = self.task(pid, orig);
        if class_of(pid, prio, false) != Class::Fair {
            t.cpu = dest;
            for (avg, [from, to]) in t.avg.iter_mut().zip(cfs_luts) {
                pelt::set_task_rq(avg, t.weight, from, to);
            }
            return;
        }
        if t.detached {
            // It was detached while queued, or migrates once more before it is enqueued.
            self.cpus[r.cpu].moving.push((pid, dest));
        } else {
            self.leave(orig, pid);
        }
        let t = self.task(pid, orig);
        t.detached = true;
        // `cpu` stays the old one until the attach: an estimate of the idle time on the old CPU may
        // still age the task, and prints the old CPU's number.
    }

    // ---- comparisons --------------------------------------------------------------------------

    fn pelt_se(&mut self, r: &Record, _trace: &Trace) {
        let Event::PeltSe {
            pid,
            cpu,
            avg,
            uf,
            w,
            on,
            dly,
            d,
            ..
        } = r.event
        else {
            return;
        };
        let weight = scale_load_down(w);
        self.cpu(cpu).delayed_hint = (on && dly && r.cpu == cpu).then_some(pid);
        let waking = self.cpus[r.cpu].active.is_some_and(|a| {
            !a.done && a.found.operation.pid() == Some(pid)
        });
        let driving = self.driving;
        self.cpu(cpu);
        let running = self.cpus[cpu].cfs_curr == Some(pid);
        let tracked = self.cpus[cpu].tracked;
        let t = self.task(pid, cpu);
        t.deadline = d;
        if !driving || !t.known || !t.started {
            let taken = taken_over(&avg, uf);
            t.avg = [taken; RUNS];
            t.known = true;
            t.started = driving;
            t.cpu = cpu;
            if !tracked {
                t.on_rq = on;
                t.delayed = dly;
            }
            t.weight = weight;
            if driving {
                *self.tally.starts.entry(Kind::Task).or_default() += 1;
            }
            return;
        }
        if tracked && (t.on_rq != on || t.delayed != dly) {
            let (ours_on, ours_dly) = (t.on_rq, t.delayed);
            self.tally.picture_wrong += 1;
            self.miss(r, || format!("task {pid}: on {ours_on} delayed {ours_dly} for {on} {dly}"));
        }
        let c = &mut self.cpus[cpu];
        let t = self.tasks.entry(pid).or_insert_with(|| Task::new(cpu));
        if !t.on_rq && !waking && !t.detached && c.weight == 0 && avg.lut > c.cfs[FREE].last_update_time {
            // A sleeper is aged to the time of its queue: so an idle balancer has updated that one,
            // without crossing a segment. Nothing accumulates there, but a removal is folded in.
            c.update_cfs(avg.lut);
        }
        if t.weight != weight {
            t.weight = weight;
        }
        if t.on_rq || waking {
            t.update(avg.lut, running);
        } else {
            t.update_blocked(avg.lut);
        }
        let (ours, causes) = (t.avg[FREE], t.causes[FREE]);
        let (step, step_causes) = (t.avg[STEP], t.causes[STEP]);
        t.avg[STEP] = taken_over(&avg, uf);
        t.causes[STEP] = Causes::default();
        let within = self.compare(Kind::Task, &avg, &ours, causes);
        let met = self.compare_step(Kind::Task, &avg, &step, step_causes, weight);
        if within && let Some(t) = self.tasks.get_mut(&pid) {
            t.causes[FREE] = Causes::default();
        }
        if !within || !met {
            self.miss(r, || {
                format!("task {pid}: free {ours:?}\n   step {step:?} {:?}\n   for {avg:?}", step_causes.first())
            });
        }
    }

    fn pelt_cfs(&mut self, r: &Record) {
        let Event::PeltCfs {
            cpu,
            avg,
            hq,
            hd,
            cur,
            ..
        } = r.event
        else {
            return;
        };
        if !self.driving {
            // What a queue shows now still holds when the events begin, unless a later line says
            // otherwise: a new task's first utilisation is a share of it.
            self.cpus[cpu].cfs = [taken_over(&avg, false); RUNS];
            return;
        }
        if hq == 0 && cur == 0 {
            self.seen_empty(cpu);
        }
        if !self.cpus[cpu].tracked {
            self.cpus[cpu].cfs = [taken_over(&avg, false); RUNS];
            return;
        }
        // The last such line of an attach or detach shows the queue after it.
        let mut moves = None;
        if let Some(active) = &mut self.cpus[r.cpu].active
            && active.cpu == cpu
            && !active.done
        {
            active.found.cfs_lines = active.found.cfs_lines.saturating_sub(1);
            if active.found.cfs_lines == 0 && !active.moved {
                moves = Some(*active);
            }
        }
        let lost = self.cpus[cpu].lost;
        if let Some(active) = moves
            && let Some(cp) = active.found.clock_pelt
        {
            let now = cp.wrapping_sub(lost);
            let moved = match active.found.operation {
                Operation::Wakeup { pid, .. } | Operation::AttachMigrating { pid } => {
                    let detached = self.tasks.get(&pid).is_some_and(|t| t.detached);
                    if detached {
                        self.attach(cpu, pid, now);
                    }
                    detached
                }
                Operation::DetachMigrating { pid } => {
                    self.update_load_avg(cpu, pid, now);
                    self.detach(cpu, pid);
                    true
                }
                _ => false,
            };
            if let Some(active) = &mut self.cpus[r.cpu].active {
                active.moved = moved;
            }
        }
        let c = &mut self.cpus[cpu];
        let ours_curr = c.cfs_curr.unwrap_or(0);
        let picture = (c.h_nr_queued, c.h_nr_delayed, ours_curr);
        if c.cfs_started && picture != (hq, hd, cur) && !(c.h_nr_queued == 0 && hq == 0) {
            self.tally.picture_wrong += 1;
            self.miss(r, || format!("queue {cpu}: {picture:?} for {:?}", (hq, hd, cur)));
        }
        let c = &mut self.cpus[cpu];
        c.update_cfs(avg.lut);
        if !c.cfs_started {
            c.cfs = [taken_over(&avg, false); RUNS];
            c.cfs_started = true;
            c.removed = Default::default();
            c.causes = Default::default();
            *self.tally.starts.entry(Kind::CfsRq).or_default() += 1;
            return;
        }
        let (ours, causes) = (c.cfs[FREE], c.causes[FREE]);
        let (step, step_causes) = (c.cfs[STEP], c.causes[STEP]);
        c.cfs[STEP] = taken_over(&avg, false);
        c.causes[STEP] = Causes::default();
        let within = self.compare(Kind::CfsRq, &avg, &ours, causes);
        let met = self.compare_step(Kind::CfsRq, &avg, &step, step_causes, 1);
        if within {
            self.cpus[cpu].causes[FREE] = Causes::default();
        }
        if !within || !met {
            self.miss(r, || {
                format!("cfs_rq {cpu}: free {ours:?}\n   step {step:?} {:?}\n   for {avg:?}", step_causes.first())
            });
        }
    }

    fn pelt_other(&mut self, r: &Record, signal: OtherSignal, cpu: usize, sums: (u64, u32, u32, u64)) {
        let (lut, pc, us, u) = sums;
        if !self.driving {
            return;
        }
        let kind = match signal {
            OtherSignal::Rt => Kind::Rt,
            OtherSignal::Dl => Kind::Dl,
            OtherSignal::Irq => return,
        };
        let class = self.cpus[cpu].curr_class;
        match kind {
            Kind::Rt => self.update_rt(cpu, lut, class == Class::Rt),
            _ => self.update_dl(cpu, lut, class == Class::Dl),
        }
        let c = &mut self.cpus[cpu];
        let small = if kind == Kind::Rt { &mut c.rt } else { &mut c.dl };
        // These signals have one sum: load, runnable and utilisation are the same.
        let taken = SchedAvg {
            last_update_time: lut,
            period_contrib: pc,
            util_sum: us,
            util_avg: u,
            load_sum: us as u64 >> 10,
            runnable_sum: us as u64,
            ..SchedAvg::default()
        };
        if !small.started {
            small.started = true;
            small.avg = [taken; RUNS];
            *self.tally.starts.entry(kind).or_default() += 1;
            return;
        }
        let (ours, causes) = (small.avg[FREE], small.causes[FREE]);
        let (step, step_causes) = (small.avg[STEP], small.causes[STEP]);
        small.avg[STEP] = taken;
        small.causes = Default::default();
        let within = self
            .tally
            .value(kind, Signal::Util, u, ours.util_avg, causes);
        let met = (step.last_update_time, step.period_contrib, step.util_sum) == (lut, pc, us);
        let error = step.util_sum.abs_diff(us) as u64 * 1000 / pelt::LOAD_AVG_MAX as u64;
        self.tally.step(kind, met, error, step_causes);
        if !within || !met {
            self.miss(r, || format!("{kind} {cpu}: free {ours:?}\n  step {step:?} for {sums:?}"));
        }
    }

    fn compare(&mut self, kind: Kind, recorded: &Averages, ours: &SchedAvg, causes: Causes) -> bool {
        let mut all = true;
        for (signal, recorded, ours) in [
            (Signal::Util, recorded.u, ours.util_avg),
            (Signal::Runnable, recorded.r, ours.runnable_avg),
            (Signal::Load, recorded.l, ours.load_avg),
        ] {
            all &= self.tally.value(kind, signal, recorded, ours, causes);
        }
        all
    }

    fn compare_step(
        &mut self,
        kind: Kind,
        recorded: &Averages,
        ours: &SchedAvg,
        causes: Causes,
        weight: u64,
    ) -> bool {
        let met = (
            ours.last_update_time,
            ours.period_contrib,
            ours.load_sum,
            ours.runnable_sum,
            ours.util_sum,
        ) == (
            recorded.lut,
            recorded.pc,
            recorded.ls,
            recorded.rs,
            recorded.us,
        );
        let max = pelt::LOAD_AVG_MAX as u64;
        let error = (ours.load_sum.abs_diff(recorded.ls).saturating_mul(weight) * 1000 / max)
            .max(ours.runnable_sum.abs_diff(recorded.rs).saturating_mul(1000) / max)
            .max(ours.util_sum.abs_diff(recorded.us) as u64 * 1000 / max);
        self.tally.step(kind, met, error, causes);
        met
    }

    fn miss(&mut self, r: &Record, text: impl FnOnce() -> String) {
        if self.keep_misses && self.misses.len() < MISSES_KEPT {
            self.misses.push(Miss {
                time_us: r.time_us,
                text: text(),
            });
        }
    }
}

/// `scale_load_down` on a 64-bit machine.
fn scale_load_down(weight: u64) -> u64 {
    if weight == 0 { 0 } else { (weight >> 10).max(2) }
}

/// A recorded state as ours.
fn taken_over(avg: &Averages, unchanged: bool) -> SchedAvg {
    SchedAvg {
        last_update_time: avg.lut,
        load_sum: avg.ls,
        runnable_sum: avg.rs,
        util_sum: avg.us,
        period_contrib: avg.pc,
        load_avg: avg.l,
        runnable_avg: avg.r,
        util_avg: avg.u,
        util_est: avg.ue | if unchanged { UTIL_AVG_UNCHANGED } else { 0 },
    }
}
