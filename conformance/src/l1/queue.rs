// SPDX-License-Identifier: GPL-2.0-or-later
//! Enqueues and dequeues, as the recording's lines tell them.
//!
//! An operation begins with its `ue_cfs` line ([`Redrive::ue_cfs`]: what is it? the estimates move) and
//! ends with its `nr` line ([`Redrive::nr`]: entity and queue are updated, then who is queued changes).
//! Attach and detach move averages in between, before the last `pelt_cfs` line. Delayed dequeues have no
//! `nr` line at the sleep, and no `ue_cfs` line when the pick finishes them.

use schedtwin_kernel::config::UtilEstUpdate;
use schedtwin_kernel::sched::pelt::{
    UTIL_AVG_UNCHANGED, attach_entity, dequeue_load_avg, detach_entity, enqueue_load_avg,
    post_init_entity_util_avg, reweight_load_avg, util_est_dequeue, util_est_enqueue,
    util_est_limit, util_est_update,
};

use super::fair::twin::{Dequeue, Enqueue, NR_CPUS};
use super::operation::{Operation, look_ahead};
use super::redrive::Redrive;
use super::state::{
    Active, Class, FREE, PRIO_TO_WEIGHT, RUNS, STEP, Task, WEIGHT_IDLE_PRIO, scale_load_down,
};
use super::tally::{Cause, Kind, Signal};
use crate::ftrace::{Event, Record, Trace};

impl Redrive {
    pub(super) fn ue_cfs(&mut self, r: &Record, trace: &Trace, cpu: usize, ue: u32) {
        let q = &self.cpus[r.cpu];
        let moving = q.moving.iter().rev().find(|(_, dest)| *dest == cpu).map(|(pid, _)| *pid);
        let saved = self.cpus[cpu].saved;
        let tasks = &self.tasks;
        let delayed = |pid| tasks.get(&pid).is_some_and(|t| t.cpu == cpu && t.on_rq && t.delayed);
        let found = look_ahead(r, cpu, trace.ahead(r.cpu), moving, saved, delayed);
        self.fair_begin(r, trace, cpu, found.operation, found.clock_task.is_some());
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
        match found.operation {
            Operation::Sleep { pid } | Operation::SleepDelayed { pid } => {
                self.clamps.leave(cpu, pid);
            }
            Operation::Save { pid } => {
                self.clamps.leave(cpu, pid);
                self.clamps.changed(pid);
            }
            Operation::DetachMigrating { pid } => self.clamps.leave(cpu, pid),
            _ => {}
        }
        let sleeps =
            matches!(found.operation, Operation::Sleep { .. } | Operation::SleepDelayed { .. });
        let mut told_here = false;
        let capacity = self.machine.capacity(cpu);
        if let Some(pid) = found.operation.pid() {
            let known = self.tasks.get(&pid).is_some_and(|t| t.known);
            let c = &mut self.cpus[cpu];
            if !known {
                c.cause(Cause::UnknownTask);
            }
            let t = self.tasks.entry(pid).or_insert_with(|| Task::new(cpu));
            if !known && enqueue {
                // The first line that says something of this task: its estimate is what it adds.
                told_here = true;
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
            if sleeps && self.kernel.util_est_update != UtilEstUpdate::InDequeue {
                let limit = util_est_limit(self.kernel.util_est_update, capacity);
                for avg in &mut t.avg {
                    util_est_update(avg, limit);
                }
            }
            if let Operation::Wakeup { new: true, .. } = found.operation {
                for run in 0..RUNS {
                    let (util, load) = (c.cfs[run].util_avg, c.cfs[run].load_avg);
                    let weight = t.weight;
                    post_init_entity_util_avg(&mut t.avg[run], util, load, weight, capacity);
                }
            }
        }
        let learns = sleeps && self.kernel.util_est_update == UtilEstUpdate::InDequeue;
        self.cpus[r.cpu].active = Some(Active { cpu, found, done: false, moved: false, learns });
        let c = &self.cpus[cpu];
        if c.cfs_started && !told_here {
            let (ours, causes) = (c.cfs[FREE].util_est, c.causes[FREE]);
            let ok = self.tally.value(
                (Kind::CfsRq, cpu, Signal::UtilEst),
                ue as u64,
                ours as u64,
                causes,
            );
            if !ok {
                self.miss(r, || format!("ue_cfs {cpu}: {ours} for {ue}, {found:?}"));
            }
        } else {
            self.tally.skip(Kind::CfsRq, cpu, Signal::UtilEst, ue as u64);
        }
    }

    /// Since 7.3 a task learns at the end of the update that its sleep makes.
    fn learn(&mut self, by: usize, pid: i32) {
        let Some(active) = self.cpus[by].active.as_mut().filter(|a| a.learns) else { return };
        if active.found.operation.pid() != Some(pid) {
            return;
        }
        active.learns = false;
        let cpu = active.cpu;
        self.update_load_avg(cpu, pid, self.cpus[cpu].now);
        let limit = util_est_limit(self.kernel.util_est_update, self.machine.capacity(cpu));
        if let Some(t) = self.tasks.get_mut(&pid) {
            for avg in &mut t.avg {
                util_est_update(avg, limit);
            }
        }
    }

    pub(super) fn ue_se(&mut self, r: &Record, pid: i32, ue: u32, uf: bool) {
        self.learn(r.cpu, pid);
        let Some(t) = self.tasks.get_mut(&pid) else {
            return;
        };
        if !t.started || !self.driving {
            for avg in &mut t.avg {
                avg.util_est = ue | if uf { UTIL_AVG_UNCHANGED } else { 0 };
            }
            if self.driving {
                self.tally.skip(Kind::Task, pid as usize, Signal::UtilEst, ue as u64);
            }
            return;
        }
        let ours = t.avg[FREE].util_est & !UTIL_AVG_UNCHANGED;
        let causes = t.causes[FREE];
        t.avg[STEP].util_est = ue | if uf { UTIL_AVG_UNCHANGED } else { 0 };
        let ok = self.tally.value(
            (Kind::Task, pid as usize, Signal::UtilEst),
            ue as u64,
            ours as u64,
            causes,
        );
        if !ok {
            self.miss(r, || format!("ue_se {pid}: {ours} for {ue}"));
        }
    }

    pub(super) fn nr(&mut self, r: &Record, trace: &Trace, cpu: usize, nr: u32, ch: i32, cp: u64) {
        let now = cp.wrapping_sub(self.cpus[cpu].lost);
        self.cpus[cpu].now = now;
        let mut active = self.cpus[r.cpu].active.filter(|a| a.cpu == cpu && !a.done);
        if ch < 0
            && active.is_some_and(|a| matches!(a.found.operation, Operation::RequeueDelayed { .. }))
        {
            // The wakeup of one delayed task has met another.
            self.rq_at_wake(r, trace, cpu, now);
            active = None;
        }
        if let Some(active) = &mut active
            && let Operation::Sleep { pid } = active.found.operation
            && self.fair_stays(r, cpu, pid)
        {
            // The printed dequeue is another's, who slept before and whom the pick that follows has met.
            active.found.operation = Operation::SleepDelayed { pid };
            self.cpus[r.cpu].active = Some(*active);
        }
        if let Some(active) = active {
            let fits = match active.found.operation {
                Operation::Wakeup { .. }
                | Operation::AttachMigrating { .. }
                | Operation::Restore { .. } => ch > 0,
                Operation::Sleep { .. }
                | Operation::DetachMigrating { .. }
                | Operation::Save { .. }
                | Operation::Inactive { .. } => ch < 0,
                Operation::Unknown => true,
                Operation::RequeueDelayed { .. } | Operation::SleepDelayed { .. } => false,
            };
            if fits {
                self.finish(r, trace, active, now);
                self.check_count(r, cpu, nr);
                return;
            }
        }
        if ch < 0 {
            let back = trace.ahead(r.cpu).next().and_then(|next| match next.event {
                Event::Nr { cpu: c, ch, .. } if c == cpu && ch > 0 => Some(ch),
                _ => None,
            });
            let c = &mut self.cpus[cpu];
            if let Some(back) = back {
                // RT takes all that it has queued out, and back, with one more or one fewer.
                c.restacked = Some(ch + back);
                if ch + back < 0 {
                    c.others = c.others.saturating_sub(1);
                    c.curr_dequeued |= r.cpu == cpu;
                }
                return;
            }
            let other_class = !matches!(c.curr_class, Class::Fair | Class::Idle);
            if other_class && !c.curr_dequeued && r.cpu == cpu {
                c.curr_dequeued = true;
                c.others = c.others.saturating_sub(1);
                return;
            }
            // A queued task that is delayed and moved skips `ue_cfs`.
            let mut ahead = trace.ahead(r.cpu);
            if let Some(pid) = migrates(&mut ahead, cpu)
                && let Some(detached) = self.tasks.get(&pid).filter(|t| t.on_rq).map(|t| t.detached)
            {
                if !detached {
                    self.update_load_avg(cpu, pid, now);
                    self.detach(cpu, pid);
                }
                self.dequeued(cpu, pid, Dequeue::Migrating);
                return;
            }
            if r.cpu == cpu {
                // The pick comes after the sleep, and may meet the sleeper itself.
                self.delay(r, trace, now, true);
            }
            self.finish_delayed(r, cpu, now);
        } else {
            if self.cpus[cpu].restacked.take().is_some_and(|change| change <= 0) {
                return;
            }
            if let Some(at) = self.cpus[r.cpu].moving.iter().rposition(|m| m.1 == cpu) {
                // The same task arrives, still delayed.
                let (pid, _) = self.cpus[r.cpu].moving.remove(at);
                if self.tasks.get(&pid).is_some_and(|t| t.delayed) {
                    self.attach(cpu, pid, now);
                    self.enqueued(cpu, pid, Enqueue::Migrated);
                    self.fair_arrived(r, trace, cpu, pid, false);
                    return;
                }
            }
            self.cpus[cpu].others += 1;
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

    /// A delayed task that is moved is detached and attached before the last `pelt_cfs` line, like others, but no
    /// `ue_cfs` line has announced it: the `nr` line after this one does.
    pub(super) fn move_delayed(&mut self, r: &Record, trace: &Trace, cpu: usize) {
        if self.cpus[r.cpu].active.is_some_and(|a| a.cpu == cpu && !a.done) {
            return;
        }
        let mut ahead = trace.ahead(r.cpu);
        let nr = ahead.by_ref().find_map(|next| match next.event {
            Event::Sugov { .. } | Event::Resolve { .. } | Event::CpuFrequency { .. } => None,
            Event::Nr { cpu: c, ch, cp, .. } if c == cpu => Some(Some((ch, cp))),
            _ => Some(None),
        });
        let Some(Some((ch, cp))) = nr else { return };
        let now = cp.wrapping_sub(self.cpus[cpu].lost);
        let delayed = |pid: &i32| self.tasks.get(pid).filter(|t| t.delayed);
        if ch < 0 {
            let leaves = migrates(&mut ahead, cpu);
            if let Some(pid) = leaves.filter(|pid| delayed(pid).is_some_and(|t| t.on_rq)) {
                self.update_load_avg(cpu, pid, now);
                self.detach(cpu, pid);
            }
        } else {
            let comes = self.cpus[r.cpu].moving.iter().rev().find(|m| m.1 == cpu).map(|m| m.0);
            if let Some(pid) = comes.filter(|pid| delayed(pid).is_some_and(|t| !t.on_rq)) {
                self.attach(cpu, pid, now);
            }
        }
    }

    /// The kernel's `nr_running` counts all classes: never less than the fair ones.
    pub(super) fn check_count(&mut self, r: &Record, cpu: usize, nr: u32) {
        let c = &self.cpus[cpu];
        if c.tracked && c.h_nr_queued > nr {
            let ours = c.h_nr_queued;
            self.tally.picture_wrong += 1;
            self.miss(r, || format!("queue {cpu}: {ours} fair ones of {nr}"));
        }
    }

    /// The `nr` line of an operation.
    pub(super) fn finish(&mut self, r: &Record, trace: &Trace, active: Active, now: u64) {
        let (by, cpu) = (r.cpu, active.cpu);
        if let Some(a) = &mut self.cpus[by].active {
            a.done = true;
        }
        match active.found.operation {
            Operation::Wakeup { pid, new } => {
                if !active.moved {
                    self.attach(cpu, pid, now);
                }
                self.enqueued(cpu, pid, if new { Enqueue::New } else { Enqueue::Wakeup });
                self.clamps.join(cpu, pid);
                self.fair_arrived(r, trace, cpu, pid, new);
            }
            Operation::AttachMigrating { pid } => {
                if !active.moved {
                    self.attach(cpu, pid, now);
                }
                self.cpus[by].moving.retain(|m| m.0 != pid);
                self.enqueued(cpu, pid, Enqueue::Migrated);
                if self.tasks.get(&pid).is_some_and(|t| !t.delayed) {
                    self.clamps.join(cpu, pid);
                }
                self.fair_arrived(r, trace, cpu, pid, false);
            }
            Operation::Restore { pid } => {
                self.update_load_avg(cpu, pid, now);
                self.reweight(trace, cpu, pid);
                self.enqueued(cpu, pid, Enqueue::Restore);
                self.clamps.join(cpu, pid);
                self.cpus[cpu].saved = None;
            }
            Operation::Sleep { pid } => {
                self.update_load_avg(cpu, pid, now);
                self.learn(by, pid);
                self.fair_sleep(r, trace, cpu, pid, false);
                self.dequeued(cpu, pid, Dequeue::Leave);
            }
            Operation::DetachMigrating { pid } => {
                if !active.moved {
                    self.update_load_avg(cpu, pid, now);
                    self.detach(cpu, pid);
                }
                self.dequeued(cpu, pid, Dequeue::Migrating);
            }
            Operation::Save { pid } => {
                self.update_load_avg(cpu, pid, now);
                self.dequeued(cpu, pid, Dequeue::Save);
                self.cpus[cpu].saved = Some(pid);
            }
            Operation::Inactive { pid } => {
                self.update_load_avg(cpu, pid, now);
                self.dequeued(cpu, pid, Dequeue::Leave);
                if let Some(t) = self.tasks.get_mut(&pid) {
                    t.delayed = false;
                }
            }
            Operation::RequeueDelayed { .. }
            | Operation::SleepDelayed { .. }
            | Operation::Unknown => {}
        }
    }

    /// Between its save and restore a task's weight and slice may have changed. The next line that has them tells, and of the
    /// weight the priority at a switch before that line.
    pub(super) fn reweight(&mut self, trace: &Trace, cpu: usize, pid: i32) {
        // Of several changes in a row, whose first lines come after the last, that is what changed it: a thread
        // of the board sets its affinity before its nice value.
        let mut left = false;
        for next in trace.ahead(cpu) {
            match next.event {
                Event::Nr { cpu: c, ch, .. } if c == cpu && ch < 0 => left = true,
                Event::Nr { cpu: c, ch, .. } if c == cpu && ch > 0 && left => return,
                Event::SchedSwitch { .. } => break,
                Event::PeltSe { pid: who, .. } | Event::Ent { who, .. } if who == pid => break,
                _ => {}
            }
        }
        let told = trace.ahead_all().find_map(|r| match r.event {
            Event::PeltSe { pid: who, w, sl, .. } | Event::Ent { who, w, sl, .. } if who == pid => {
                Some((scale_load_down(w), sl))
            }
            _ => None,
        });
        if let Some((_, slice)) = told {
            self.fair.twin.set_slice(pid, slice);
        }
        // The line's weight may come from a change after the switch. SCHED_IDLE has no priority of its own.
        let by_priority = || {
            let prio = trace.ahead_all().find_map(|r| match r.event {
                Event::PeltSe { pid: who, .. } | Event::Ent { who, .. } if who == pid => Some(None),
                Event::SchedSwitch { prev_pid, prev_prio, .. } if prev_pid == pid => {
                    Some(Some(prev_prio))
                }
                Event::SchedSwitch { next_pid, next_prio, .. } if next_pid == pid => {
                    Some(Some(next_prio))
                }
                _ => None,
            });
            PRIO_TO_WEIGHT.get(usize::try_from(prio?? - 100).ok()?).copied()
        };
        let told = told.map(|(weight, _)| weight);
        let weight =
            told.filter(|weight| *weight == WEIGHT_IDLE_PRIO).or_else(by_priority).or(told);
        let (Some(weight), Some(t)) = (weight, self.tasks.get_mut(&pid)) else {
            return;
        };
        if weight == t.weight {
            return;
        }
        let c = &mut self.cpus[cpu];
        c.stretch = None;
        for run in 0..RUNS {
            dequeue_load_avg(&mut c.cfs[run], &t.avg[run], t.weight);
            reweight_load_avg(&mut t.avg[run], weight);
            enqueue_load_avg(&mut c.cfs[run], &t.avg[run], weight, self.kernel.attach_floor);
        }
        t.weight = weight;
        self.fair.twin.reweight(pid, weight);
    }

    /// Updates for an enqueue, and attaches if it comes from elsewhere.
    pub(super) fn attach(&mut self, cpu: usize, pid: i32, now: u64) {
        self.update_load_avg(cpu, pid, now);
        let c = &mut self.cpus[cpu];
        let t = self.tasks.entry(pid).or_insert_with(|| Task::new(cpu));
        t.cpu = cpu;
        if t.detached {
            t.detached = false;
            c.stretch = None;
            if !t.known {
                c.cause(Cause::UnknownTask);
                return;
            }
            for run in 0..RUNS {
                attach_entity(&mut c.cfs[run], &mut t.avg[run], t.weight, self.kernel.attach_floor);
                if !t.started {
                    t.causes[run].add(Cause::FirstUtilisation);
                }
                let causes = c.causes[run];
                t.causes[run].merge(causes);
                c.causes[run].merge(t.causes[run]);
            }
        }
    }

    pub(super) fn detach(&mut self, cpu: usize, pid: i32) {
        let c = &mut self.cpus[cpu];
        c.stretch = None;
        if let Some(t) = self.tasks.get_mut(&pid) {
            t.detached = true;
            for run in 0..RUNS {
                detach_entity(&mut c.cfs[run], &t.avg[run], t.weight);
                c.causes[run].merge(t.causes[run]);
            }
        }
    }

    pub(super) fn enqueued(&mut self, cpu: usize, pid: i32, why: Enqueue) {
        let t = self.tasks.entry(pid).or_insert_with(|| Task::new(cpu));
        if t.on_rq {
            self.tally.picture_wrong += 1;
            return;
        }
        t.cpu = cpu;
        self.fair_enqueue(cpu, pid, why);
        let c = &mut self.cpus[cpu];
        let Some(t) = self.tasks.get_mut(&pid) else {
            return;
        };
        t.on_rq = true;
        c.weight += t.weight;
        c.h_nr_queued += 1;
        c.h_nr_delayed += t.delayed as u32;
    }

    pub(super) fn dequeued(&mut self, cpu: usize, pid: i32, why: Dequeue) {
        self.fair_dequeue(cpu, pid, why);
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

    /// The pick met a delayed entity and dequeues it: the eligible one with the earliest deadline. The
    /// line does not say which. (Or the fair server has stopped, which prints the same.)
    pub(super) fn finish_delayed(&mut self, r: &Record, cpu: usize, now: u64) {
        let delayed = |t: &Task| t.cpu == cpu && t.on_rq && t.delayed;
        let c = &mut self.cpus[cpu];
        if c.others > 0 && !self.tasks.values().any(delayed) {
            c.others -= 1;
            return;
        }
        let Some(pid) = self.fair_finished(r, cpu) else {
            if self.cpus[cpu].tracked {
                self.cpus[cpu].cause(Cause::UnknownOperation);
                self.tally.picture_wrong += 1;
                self.miss(r, || format!("queue {cpu}: a dequeue and nobody delayed"));
            }
            return;
        };
        self.update_load_avg(cpu, pid, now);
        self.dequeued(cpu, pid, Dequeue::Leave);
        if let Some(t) = self.tasks.get_mut(&pid) {
            t.delayed = false;
        }
    }

    /// A sleep that leaves its task queued: the update, and at the switch the flag, which the lines
    /// of the update do not show yet.
    pub(super) fn delay(&mut self, r: &Record, trace: &Trace, now: u64, at_switch: bool) {
        let by = r.cpu;
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
        self.learn(by, pid);
        if let Some(a) = &mut self.cpus[by].active {
            a.done = true;
        }
        self.fair_sleep(r, trace, active.cpu, pid, true);
        if let Some(t) = self.tasks.get_mut(&pid).filter(|t| t.on_rq && !t.delayed) {
            t.delayed = true;
            self.cpus[active.cpu].h_nr_delayed += 1;
        }
    }

    /// The clock of a wakeup: the only one that tells when a delayed task was requeued.
    pub(super) fn rq_at_wake(&mut self, r: &Record, trace: &Trace, cpu: usize, now: u64) {
        let by = r.cpu;
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
        self.clamps.join(cpu, pid);
        self.fair_arrived(r, trace, cpu, pid, false);
        if let Some(t) = self.tasks.get_mut(&pid).filter(|t| t.delayed) {
            t.delayed = false;
            let c = &mut self.cpus[cpu];
            c.h_nr_delayed = c.h_nr_delayed.saturating_sub(1);
        } else {
            self.tally.picture_wrong += 1;
        }
    }

    /// The queue of `cpu` is empty.
    pub(super) fn seen_empty(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        if c.tracked && c.h_nr_queued == 0 {
            return;
        }
        if c.tracked {
            self.tally.picture_wrong += 1;
        }
        c.tracked = true;
        if cpu < NR_CPUS {
            self.fair.twin.clear(cpu);
        }
        let c = &mut self.cpus[cpu];
        c.weight = 0;
        c.h_nr_queued = 0;
        c.h_nr_delayed = 0;
        for t in self.tasks.values_mut().filter(|t| t.cpu == cpu) {
            t.on_rq = false;
            t.delayed = false;
        }
    }
}

/// Returns the task that leaves `cpu` in one of the next two lines.
fn migrates<'a>(ahead: &mut impl Iterator<Item = &'a Record>, cpu: usize) -> Option<i32> {
    ahead.take(2).find_map(|next| match next.event {
        Event::SchedMigrateTask { pid, orig_cpu, .. } if orig_cpu == cpu => Some(pid),
        _ => None,
    })
}
