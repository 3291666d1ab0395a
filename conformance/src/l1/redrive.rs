// SPDX-License-Identifier: GPL-2.0-or-later
//! Re-drives a recording: our PELT, driven by the recorded clocks and events, beside the kernel's.
//!
//! **The idea.** Every entity of the recording (task, fair run queue, RT, deadline and interrupt signal
//! of a CPU) gets a [`SchedAvg`](pelt::SchedAvg) of ours, which takes over the recorded state once, at the entity's first record.
//! From then on only *inputs* come from the recording: when an update happened, on which clock, who
//! was queued and who ran. At each printed line the two sides are compared. This runs twice, side by
//! side: the *free run* never looks back; the *step run* takes over the recorded sums at
//! every line, so that each line checks one step to the last bit.
//!
//! **Where updates happen.** A line is only printed when an update crossed a segment, but the last bit
//! also depends on the updates in between, while something runs or is queued. These are known:
//!
//! | event | what the kernel updates, and then changes |
//! |---|---|
//! | a `run` line inside the tick | current entity and its queue |
//! | `sched_switch` | the one that leaves (if still queued) and its queue; then the one that comes; who is current |
//! | `nr` of an enqueue or dequeue | entity and queue; then who is queued ([`super::operation`]) |
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
use std::rc::Rc;

use schedtwin_kernel::config::Config;
use schedtwin_kernel::sched::pelt::{
    self, RqClockPelt, init_entity, remove_entity, update_dl_rq_load_avg, update_irq_load_avg,
    update_rt_rq_load_avg,
};

use super::clamps::{Queues, Wish};
use super::fair::judge::Fair;
use super::fair::twin::FairSettings;
use super::interrupts::Interrupts;
use super::judge::Judge;
use super::machine::Machine;
use super::mechanism::{Difference, Table, What};
use super::state::{Class, Cpu, FREE, RUNS, Task, class_of};
use super::tally::{Cause, Tally};
use crate::ftrace::{CPUS_MAX, Event, Record, RqAt, Trace};

/// The details of a miss, to find its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// Trace time, µs.
    pub time_us: u64,
    /// Kind, who, and both sides.
    pub text: String,
}

/// Between a dequeue and going idle there are at most some balancing passes; 1 ms is far more.
const NEWIDLE_MAX_NS: u64 = 1_000_000;
/// Misses that are kept per recording.
const MISSES_KEPT: usize = 4000;

/// Drives one recording.
pub struct Redrive {
    pub(super) machine: Rc<Machine>,
    /// The kernel of ours.
    pub(super) kernel: Config,
    pub(super) tasks: BTreeMap<i32, Task>,
    pub(super) cpus: Vec<Cpu>,
    pub(super) clamps: Queues,
    /// Read ahead: when interrupt time was charged.
    pub(super) interrupts: Interrupts,
    /// Per CPU: the clamps printed last.
    last_clamps: BTreeMap<usize, (u64, u64)>,
    /// The kernel's own events have begun.
    pub(super) driving: bool,
    /// The counts.
    pub tally: Tally,
    /// The first misses.
    pub misses: Vec<Miss>,
    pub(super) keep_misses: bool,
    pub(super) judge: Option<Box<Judge>>,
    pub(super) fair: Box<Fair>,
}

impl Redrive {
    /// Nothing driven yet; `keep_misses`: keep texts of misses, up to some thousand.
    pub fn new(machine: Rc<Machine>, keep_misses: bool) -> Redrive {
        let mut redrive = Redrive {
            kernel: machine.kernel(),
            machine,
            tasks: BTreeMap::new(),
            cpus: Vec::new(),
            clamps: Queues::default(),
            interrupts: Interrupts::default(),
            last_clamps: BTreeMap::new(),
            driving: false,
            tally: Tally::default(),
            misses: Vec::new(),
            keep_misses,
            judge: None,
            fair: Box::new(Fair::new(FairSettings::parse(""))),
        };
        redrive.cpu(redrive.machine.nr_cpus() - 1);
        redrive
    }

    /// The fair class is as a description says.
    pub fn with_fair(mut self, settings: FairSettings) -> Redrive {
        self.fair = Box::new(Fair::new(settings));
        self
    }

    /// With what its tasks ask for.
    pub fn with_wishes(mut self, wishes: BTreeMap<i32, Wish>) -> Redrive {
        self.clamps = Queues::new(&wishes, self.machine.nr_cpus());
        if let Some(judge) = &mut self.judge {
            judge.wakeups.set_wishes(wishes);
        }
        self
    }

    /// Also asks the product for the decisions that the recording shows.
    pub fn judging(mut self) -> Redrive {
        self.judge = Some(Box::new(Judge::new(Rc::clone(&self.machine))));
        self
    }

    /// Returns the result by mechanism.
    pub fn table(&self) -> Table {
        let mut table = self.tally.table.clone();
        if !self.cpus.iter().any(|cpu| cpu.irq_told) {
            table.rename(What::PeltIrq, What::PeltIrqUntold);
        }
        if let Some(judge) = &self.judge {
            table.merge(&judge.table());
        }
        table.merge(&super::fair::table(self.fair_rows()));
        table
    }

    /// Drives the whole of `trace`.
    pub fn drive(&mut self, trace: &mut Trace) -> std::io::Result<()> {
        while let Some(record) = trace.next_record()? {
            self.tally.records += 1;
            self.record(&record, trace);
        }
        Ok(())
    }

    pub(super) fn cpu(&mut self, cpu: usize) -> &mut Cpu {
        assert!(cpu < CPUS_MAX, "the reader lets no such CPU through");
        if cpu >= self.cpus.len() {
            self.cpus.resize_with(cpu + 1, Cpu::new);
        }
        &mut self.cpus[cpu]
    }

    pub(super) fn task(&mut self, pid: i32, cpu: usize) -> &mut Task {
        self.tasks.entry(pid).or_insert_with(|| Task::new(cpu))
    }

    fn record(&mut self, r: &Record, trace: &Trace) {
        // The next task after an exited one takes it off; an interrupt may come before that.
        if let Some(pid) = self.cpu(r.cpu).dead.take_if(|_| !r.hardirq && !r.softirq) {
            self.leave(r.cpu, pid);
        }
        self.fair_before(r);
        match r.event {
            Event::PeltSe { .. } => {
                self.fair_times(r);
                self.pelt_se(r);
            }
            Event::PeltCfs { cpu, .. } => {
                self.cpu(cpu);
                self.pelt_cfs(r, trace);
                self.fair_sums(r, trace);
            }
            Event::Queue { .. } => self.fair_queue(r, trace),
            Event::Ent { .. } => self.fair_times(r),
            Event::PeltOther { signal, cpu, lut, pc, us, u } => {
                self.cpu(cpu);
                self.pelt_other(r, trace, signal, cpu, (lut, pc, us, u));
            }
            Event::IrqTime { cpu, clk, d, .. } => {
                self.cpu(cpu).irq_told = true;
                self.charge_irq(cpu, clk, d);
            }
            Event::Rq { at, cpu, clk, ct, cp, lost, irq, umin, umax, .. } => {
                self.cpu(cpu);
                self.update_irq(cpu, clk, irq);
                let c = self.cpu(cpu);
                c.lost = lost;
                match at {
                    RqAt::Switch => {
                        self.clock(cpu, ct, cp);
                        let c = &mut self.cpus[cpu];
                        c.switch_now = cp.wrapping_sub(lost);
                        c.switch_clock_task = ct;
                    }
                    RqAt::Wake => self.rq_at_wake(r, trace, cpu, cp.wrapping_sub(lost)),
                }
                self.compare_clamps(r, cpu, (umin, umax));
            }
            Event::Run { pid, ct, cp } => self.run(r, trace, pid, ct, cp),
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
            Event::Sugov { cpu, time, .. } => {
                // Something decayed. If it was not a crossed segment, it was a removal. But RT calls, too, after it has
                // counted its task; the fair class does before.
                let by_rt = self.cpu(r.cpu).counted == Some(cpu);
                let c = self.cpu(cpu);
                if c.removed[FREE].nr > 0 && !by_rt {
                    c.cause(Cause::RemovedFold);
                    c.fold();
                }
                if let Some(active) = self.cpus[r.cpu].active
                    && active.cpu == cpu
                    && !active.done
                    && !active.moved
                    && active.found.cfs_lines == 1
                {
                    self.move_averages(r.cpu, active);
                }
                self.irq_at_call(r, cpu, time);
            }
            Event::SchedSwitch { .. } => {
                self.driving = true;
                self.switch(r, trace);
            }
            Event::SchedWaking { pid, target_cpu, .. } => self.fair_waking(r, pid, target_cpu),
            Event::SchedWakeup { pid, prio, target_cpu, .. } => {
                self.driving = true;
                self.fair_woken(r, trace, pid, target_cpu);
                if class_of(pid, prio, false) == Class::Fair {
                    self.cpus[r.cpu].active = None;
                }
                self.cpu(target_cpu);
            }
            Event::SchedMigrateTask { pid, prio, orig_cpu, dest_cpu } => {
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
                self.fair.twin.fork(pid, child_pid);
            }
            Event::CpuFrequency { cpu, khz } => {
                let scale = ((khz as u64) << 10) / self.machine.frequency_max(cpu);
                self.cpu(cpu).freq_scale = Some(scale);
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
        self.cpus[r.cpu].counted = match r.event {
            Event::Nr { cpu, .. } => Some(cpu),
            _ => None,
        };
        self.fair_after(r, trace);
        self.judge_record(r, trace);
    }

    /// Compares a run queue's clamps, once somebody has asked for some.
    fn compare_clamps(&mut self, r: &Record, cpu: usize, recorded: (u64, u64)) {
        let last = self.last_clamps.insert(cpu, recorded);
        let Some(queue) = self.clamps.of(cpu).filter(|_| self.clamps.key_on) else {
            return;
        };
        let clamps = queue.clamps();
        let ours = (clamps.min as u64, clamps.max as u64);
        let row = self.tally.table.row(What::Uclamp);
        if !row.count(ours == recorded, last == Some(recorded), || Difference::ModelWrong) {
            self.miss(r, || format!("clamps {cpu}: {ours:?} for {recorded:?}"));
        }
    }

    /// Entity and queue, as `update_load_avg` does it.
    pub(super) fn update_load_avg(&mut self, cpu: usize, pid: i32, now: u64) {
        let c = &mut self.cpus[cpu];
        if let Some(t) = self.tasks.get_mut(&pid)
            && !t.detached
        {
            t.update(now, c.cfs_curr == Some(pid));
        }
        c.update_cfs(now);
    }

    pub(super) fn run(&mut self, r: &Record, trace: &Trace, pid: i32, ct: u64, cp: u64) {
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
        self.cpus[cpu].run_clock_task = ct;
        self.fair_charge(r, trace, cpu, pid, ct);
        self.clock(cpu, ct, cp);
        if !self.driving || !own {
            return;
        }
        let in_operation = self.cpus[r.cpu].active.is_some_and(|a| !a.done);
        if in_operation {
            self.delay(r, trace, now, false);
        } else if r.hardirq && std::mem::take(&mut self.cpus[r.cpu].tick) {
            match self.cpus[cpu].curr_class {
                Class::Fair => self.update_load_avg(cpu, pid, now),
                Class::Rt => self.update_rt(cpu, now, true),
                Class::Dl => self.update_dl(cpu, now, true),
                Class::Stop | Class::Idle => {}
            }
        }
    }

    /// Compares the PELT clock with ours, from the last line that told it to this one.
    ///
    /// Going idle moves it, so the line of that switch is left out and the next begins anew. Each
    /// update of the clock rounds down twice: unprinted updates between the two lines show as a few ns
    /// less than ours, and as more where the frequency changed after one.
    fn clock(&mut self, cpu: usize, clock_task: u64, clock_pelt: u64) {
        let capacity = self.machine.capacity(cpu);
        let c = &mut self.cpus[cpu];
        let before = c.clock.replace((clock_task, clock_pelt));
        let (Some((task_before, pelt_before)), Some(freq_scale)) = (before, c.freq_scale) else {
            return;
        };
        if c.curr == 0 || clock_task == clock_pelt || clock_task == task_before {
            return;
        }
        let mut ours = RqClockPelt { clock_pelt: pelt_before, ..RqClockPelt::default() };
        let delta = clock_task.wrapping_sub(task_before);
        ours.update_rq_clock_pelt(delta, clock_task, 0, capacity, freq_scale, false);
        let short = ours.clock_pelt.wrapping_sub(clock_pelt);
        self.tally.clock(short as i64);
    }

    pub(super) fn update_rt(&mut self, cpu: usize, now: u64, running: bool) {
        for avg in &mut self.cpus[cpu].rt.avg {
            update_rt_rq_load_avg(now, avg, running);
        }
    }

    /// The clock of `cpu` has moved to `clock` and seen `total` ns of interrupts since boot.
    pub(super) fn update_irq(&mut self, cpu: usize, clock: u64, total: u64) {
        let c = &mut self.cpus[cpu];
        let (Some(given), Some(_), false) = (c.interrupt_total, c.freq_scale, c.irq_told) else {
            c.interrupt_total = Some(total);
            return;
        };
        let news = total.wrapping_sub(given);
        // A waking prints the clock of a CPU that it does not hold: an old one says nothing new.
        if clock < c.irq.avg[FREE].last_update_time || clock < c.irq_clock {
            return;
        }
        let since = clock - std::mem::replace(&mut c.irq_clock, clock);
        if news as i64 <= 0 {
            return;
        }
        // An update charges no more than the time since the one before.
        let news = news.min(since);
        c.interrupt_total = Some(given.wrapping_add(news));
        self.charge_irq(cpu, clock, news);
    }

    /// An update of the clock has found `news` ns of interrupts.
    fn charge_irq(&mut self, cpu: usize, clock: u64, news: u64) {
        let capacity = self.machine.capacity(cpu);
        let c = &mut self.cpus[cpu];
        let Some(freq_scale) = c.freq_scale.filter(|_| clock < u64::MAX / 2) else { return };
        for avg in &mut c.irq.avg {
            update_irq_load_avg(avg, clock, news, freq_scale, capacity);
        }
    }

    /// The interrupt signal at a call of schedutil at `time`. Its line is not printed where the sum has
    /// decayed to nothing.
    fn irq_at_call(&mut self, r: &Record, cpu: usize, time: u64) {
        if time >= u64::MAX / 2 {
            return;
        }
        if let Some(total) = self.interrupts.total(cpu, time) {
            self.update_irq(cpu, time, total);
        }
        let in_operation = self.cpus[r.cpu].active.is_some_and(|a| a.cpu == cpu && !a.done);
        let balances = r.softirq || cpu != r.cpu || self.cpus[cpu].curr == 0;
        if in_operation || !balances {
            return;
        }
        // A balancer's update of a CPU also ages this signal, without any news.
        for avg in &mut self.cpus[cpu].irq.avg {
            if time >= avg.last_update_time && pelt::update_load_sum(time, avg, 0, 0, 0) {
                pelt::update_load_avg(avg, 1);
            }
        }
    }

    pub(super) fn update_dl(&mut self, cpu: usize, now: u64, running: bool) {
        for avg in &mut self.cpus[cpu].dl.avg {
            update_dl_rq_load_avg(now, avg, running);
        }
    }

    pub(super) fn switch(&mut self, r: &Record, trace: &Trace) {
        let Event::SchedSwitch { prev_pid, prev_prio, prev_state, next_pid, next_prio, next_stop } =
            r.event
        else {
            return;
        };
        let cpu = r.cpu;
        let stop = self.cpus[cpu].curr_class == Class::Stop;
        let prev_class = class_of(prev_pid, prev_prio, stop);
        let now = if next_pid == 0 {
            self.before_idle(cpu, prev_class)
        } else {
            self.cpus[cpu].switch_now
        };
        self.delay(r, trace, now, true);
        let next_class = class_of(next_pid, next_prio, next_stop);
        let next_fair = (next_class == Class::Fair).then_some(next_pid);
        self.fair_switch(r, next_fair, self.cpus[cpu].switch_clock_task);
        match prev_class {
            Class::Fair => {
                if self.tasks.get(&prev_pid).is_some_and(|t| t.on_rq) {
                    self.update_load_avg(cpu, prev_pid, now);
                }
                if matches!(prev_state, b'X' | b'Z') {
                    self.cpus[cpu].dead = Some(prev_pid);
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
        c.run_clock_task = c.switch_clock_task;
    }

    /// The PELT clock when the last task of a CPU leaves it. The switch's line does not tell: going
    /// idle has moved the clock on to `clock_task`. After the dequeue, newidle balancing may have
    /// updated the clock once more, and then also the (empty) queue; the rest of the task's time is
    /// scaled as the kernel does it.
    pub(super) fn before_idle(&mut self, cpu: usize, prev: Class) -> u64 {
        let capacity = self.machine.capacity(cpu);
        let c = &mut self.cpus[cpu];
        let rest = c.switch_clock_task.wrapping_sub(c.run_clock_task);
        let Some(freq_scale) = c.freq_scale else {
            return c.now;
        };
        if prev == Class::Idle || rest == 0 || rest > NEWIDLE_MAX_NS {
            return c.now;
        }
        let mut clock = RqClockPelt { clock_pelt: c.now, ..RqClockPelt::default() };
        clock.update_rq_clock_pelt(rest, 0, 0, capacity, freq_scale, false);
        let now = clock.clock_pelt;
        if c.weight == 0 {
            c.update_cfs(now);
        }
        now
    }

    /// A sleeping task leaves its queue (`remove_entity_load_avg`).
    pub(super) fn leave(&mut self, cpu: usize, pid: i32) {
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

    pub(super) fn migrate(&mut self, r: &Record, pid: i32, prio: i32, orig: usize, dest: usize) {
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

    pub(super) fn miss(&mut self, r: &Record, text: impl FnOnce() -> String) {
        if self.keep_misses && self.misses.len() < MISSES_KEPT {
            self.misses.push(Miss { time_us: r.time_us, text: text() });
        }
    }
}
