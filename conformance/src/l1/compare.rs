// SPDX-License-Identifier: GPL-2.0-or-later
//! Printed averages beside ours.

use schedtwin_kernel::sched::pelt::{self, SchedAvg, update_load_avg, update_load_sum};

use super::operation::Operation;
use super::redrive::Redrive;
use super::state::{Active, Class, FREE, RUNS, STEP, Task, scale_load_down, taken_over};
use super::tally::{Cause, Causes, Kind, Signal};
use crate::ftrace::{Averages, Event, OtherSignal, Record, Trace};

/// How far an update's own lines may reach.
const LINES_OF_AN_UPDATE: usize = 24;

impl Redrive {
    pub(super) fn pelt_se(&mut self, r: &Record) {
        let Event::PeltSe { pid, cpu, avg, uf, w, on, dly, .. } = r.event else {
            return;
        };
        let weight = scale_load_down(w);
        let waking = self.cpus[r.cpu]
            .active
            .is_some_and(|a| !a.done && a.found.operation.pid() == Some(pid));
        let driving = self.driving;
        self.cpu(cpu);
        let running = self.cpus[cpu].cfs_curr == Some(pid);
        let tracked = self.cpus[cpu].tracked;
        let t = self.task(pid, cpu);
        let (asleep, detached) = (!t.on_rq && !waking, t.detached);
        let c = &mut self.cpus[cpu];
        if driving && asleep && !detached && c.weight == 0 && avg.lut > c.cfs[FREE].last_update_time
        {
            // A sleeper is aged to the time of its queue: so an idle balancer has updated that one,
            // without crossing a segment. Nothing accumulates there, but a removal is folded in.
            c.update_cfs(avg.lut);
        }
        let t = self.task(pid, cpu);
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
                self.skip(Kind::Task, pid as usize, &avg);
            }
            return;
        }
        if tracked && (t.on_rq != on || t.delayed != dly) {
            let (ours_on, ours_dly) = (t.on_rq, t.delayed);
            self.tally.picture_wrong += 1;
            self.miss(r, || format!("task {pid}: on {ours_on} delayed {ours_dly} for {on} {dly}"));
        }
        let t = self.tasks.entry(pid).or_insert_with(|| Task::new(cpu));
        if t.weight != weight {
            // A nice change that no operation told.
            let c = &mut self.cpus[cpu];
            if t.on_rq {
                c.weight = c.weight.saturating_sub(t.weight) + weight;
            }
            c.cause(Cause::UnknownOperation);
            t.weight = weight;
            self.tally.picture_wrong += 1;
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
        let within = self.compare((Kind::Task, pid as usize), &avg, &ours, causes);
        let met = self.compare_step(Kind::Task, &avg, &step, step_causes, weight);
        if within && let Some(t) = self.tasks.get_mut(&pid) {
            t.causes[FREE] = Causes::default();
        }
        if !within || !met {
            self.miss(r, || {
                format!(
                    "task {pid}: free {ours:?}\n   step {step:?} {:?}\n   for {avg:?}",
                    step_causes.first()
                )
            });
        }
    }

    pub(super) fn pelt_cfs(&mut self, r: &Record, trace: &Trace) {
        let Event::PeltCfs { cpu, avg, hq, hd, cur, .. } = r.event else {
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
            self.skip(Kind::CfsRq, cpu, &avg);
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
        if let Some(active) = moves {
            self.move_averages(r.cpu, active);
        }
        self.move_delayed(r, trace, cpu);
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
            self.skip(Kind::CfsRq, cpu, &avg);
            return;
        }
        let (ours, causes) = (c.cfs[FREE], c.causes[FREE]);
        let (step, mut step_causes) = (c.cfs[STEP], c.causes[STEP]);
        let mut causes = causes;
        let sums = (step.load_sum, step.runnable_sum, step.util_sum, step.period_contrib);
        if let Some(stretch) = c.stretch.take().filter(|s| s.now.wrapping_sub(avg.lut) < 1024)
            && sums != (avg.ls, avg.rs, avg.us, avg.pc)
            && let Some(hidden) = stretch.find(&avg)
        {
            let free = stretch.with(FREE, hidden);
            if (free.load_avg, free.runnable_avg, free.util_avg) == (avg.l, avg.r, avg.u) {
                causes = Causes::from(Cause::UnprintedUpdate);
            }
            step_causes = Causes::from(Cause::UnprintedUpdate);
            c.cfs[FREE] = SchedAvg { util_est: ours.util_est, ..free };
        }
        c.cfs[STEP] = taken_over(&avg, false);
        c.causes[STEP] = Causes::default();
        let within = self.compare((Kind::CfsRq, cpu), &avg, &ours, causes);
        let met = self.compare_step(Kind::CfsRq, &avg, &step, step_causes, 1);
        if within {
            self.cpus[cpu].causes[FREE] = Causes::default();
        }
        if !within || !met {
            self.miss(r, || {
                format!(
                    "cfs_rq {cpu}: free {ours:?}\n   step {step:?} {:?}\n   for {avg:?}",
                    step_causes.first()
                )
            });
        }
    }

    /// An attach or detach moves the averages, before the last `pelt_cfs` line of its operation and before
    /// the call of schedutil that stands in front of that line.
    pub(super) fn move_averages(&mut self, by: usize, active: Active) {
        let cpu = active.cpu;
        let Some(cp) = active.found.clock_pelt else {
            return;
        };
        let now = cp.wrapping_sub(self.cpus[cpu].lost);
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
        if let Some(active) = &mut self.cpus[by].active {
            active.moved = moved;
        }
    }

    pub(super) fn pelt_other(
        &mut self,
        r: &Record,
        trace: &Trace,
        signal: OtherSignal,
        cpu: usize,
        sums: (u64, u32, u32, u64),
    ) {
        let (lut, pc, us, u) = sums;
        if !self.driving {
            return;
        }
        let kind = match signal {
            OtherSignal::Rt => Kind::Rt,
            OtherSignal::Dl => Kind::Dl,
            OtherSignal::Irq => Kind::Irq,
        };
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
        let class = self.cpus[cpu].curr_class;
        match signal {
            OtherSignal::Rt => self.update_rt(cpu, lut, class == Class::Rt),
            OtherSignal::Dl => self.update_dl(cpu, lut, class == Class::Dl),
            OtherSignal::Irq => {
                if self.cpus[cpu].freq_scale.is_none() {
                    // What is charged depends on the frequency: until a first change tells it, the line is all.
                    let irq = &mut self.cpus[cpu].irq;
                    irq.printed = taken;
                    irq.avg = [taken; RUNS];
                    self.tally.skip(kind, cpu, Signal::Util, u);
                    return;
                }
                let told = self.interrupt_time(r, trace, cpu, lut);
                let guessed = || {
                    let clock = lut.wrapping_add(512);
                    self.interrupts.total(cpu, clock).map(|total| (clock, total))
                };
                if let Some((clock, total)) = told.or_else(guessed) {
                    self.update_irq(cpu, clock, total);
                }
                for avg in &mut self.cpus[cpu].irq.avg {
                    update_load_sum(lut, avg, 0, 0, 0);
                    update_load_avg(avg, 1);
                }
            }
        }
        let irq_told = self.cpus[cpu].irq_told;
        let c = &mut self.cpus[cpu];
        let small = match signal {
            OtherSignal::Rt => &mut c.rt,
            OtherSignal::Dl => &mut c.dl,
            OtherSignal::Irq => &mut c.irq,
        };
        if signal == OtherSignal::Irq && !irq_told {
            small.causes.iter_mut().for_each(|c| c.add(Cause::InterruptTime));
        }
        small.printed = taken;
        if !small.started {
            small.started = true;
            small.avg = [taken; RUNS];
            *self.tally.starts.entry(kind).or_default() += 1;
            self.tally.skip(kind, cpu, Signal::Util, u);
            return;
        }
        let (ours, causes) = (small.avg[FREE], small.causes[FREE]);
        let (step, step_causes) = (small.avg[STEP], small.causes[STEP]);
        small.avg[STEP] = taken;
        small.causes = Default::default();
        let within = self.tally.value((kind, cpu, Signal::Util), u, ours.util_avg, causes);
        let met = (step.last_update_time, step.period_contrib, step.util_sum) == (lut, pc, us);
        let error = step.util_sum.abs_diff(us) as u64 * 1000 / pelt::LOAD_AVG_MAX as u64;
        self.tally.step(kind, met, error, step_causes);
        if !within || !met {
            self.miss(r, || format!("{kind} {cpu}: free {ours:?}\n  step {step:?} for {sums:?}"));
        }
    }

    /// Returns the clock, and how much interrupt time it had seen in all, at the update that
    /// printed a
    /// `pelt_irq` line. The line has the clock to 1024 ns; `clock_task` is what the clock has without
    /// interrupts, and one of the next lines of the same CPU has that.
    fn interrupt_time(
        &self,
        r: &Record,
        trace: &Trace,
        cpu: usize,
        lut: u64,
    ) -> Option<(u64, u64)> {
        let mut clock = lut.wrapping_add(512);
        let c = &self.cpus[cpu];
        let curr = c.curr;
        for next in trace.ahead(r.cpu).take(LINES_OF_AN_UPDATE) {
            match next.event {
                Event::Sugov { cpu: c, time, .. } if c == cpu && time.wrapping_sub(lut) < 1024 => {
                    clock = time;
                }
                Event::Rq { cpu: c, clk, irq, .. } if c == cpu => {
                    return (clk.wrapping_sub(lut) < 1024).then_some((clk, irq));
                }
                Event::Run { pid, ct, .. } if pid == curr => {
                    return Some((clock, clock.wrapping_sub(ct)));
                }
                // Idle, the PELT clock is the task clock.
                Event::Nr { cpu: c, cp, .. } if c == cpu && curr == 0 => {
                    return Some((clock, clock.wrapping_sub(cp)));
                }
                Event::PeltOther { signal: OtherSignal::Irq, cpu: c, .. } if c == cpu => {
                    return None;
                }
                _ => {}
            }
        }
        None
    }

    /// Three values that ours cannot be compared with yet.
    fn skip(&mut self, kind: Kind, id: usize, avg: &Averages) {
        for (signal, recorded) in
            [(Signal::Util, avg.u), (Signal::Runnable, avg.r), (Signal::Load, avg.l)]
        {
            self.tally.skip(kind, id, signal, recorded);
        }
    }

    pub(super) fn compare(
        &mut self,
        (kind, id): (Kind, usize),
        recorded: &Averages,
        ours: &SchedAvg,
        causes: Causes,
    ) -> bool {
        let mut all = true;
        for (signal, recorded, ours) in [
            (Signal::Util, recorded.u, ours.util_avg),
            (Signal::Runnable, recorded.r, ours.runnable_avg),
            (Signal::Load, recorded.l, ours.load_avg),
        ] {
            all &= self.tally.value((kind, id, signal), recorded, ours, causes);
        }
        all
    }

    pub(super) fn compare_step(
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
        ) == (recorded.lut, recorded.pc, recorded.ls, recorded.rs, recorded.us);
        let max = pelt::LOAD_AVG_MAX as u64;
        let error =
            (ours.load_sum.abs_diff(recorded.ls).saturating_mul(weight).saturating_mul(1000) / max)
                .max(ours.runnable_sum.abs_diff(recorded.rs).saturating_mul(1000) / max)
                .max(ours.util_sum.abs_diff(recorded.us) as u64 * 1000 / max);
        self.tally.step(kind, met, error, causes);
        met
    }
}
