// SPDX-License-Identifier: GPL-2.0-or-later
//! Asks the product for the decisions that a recording shows, with the re-driven signals.
//!
//! **Idea.** Every call of schedutil is in a recording (`sugov`), with the frequency it computed if that is a
//! new one (`resolve`) and the change it made (`cpu_frequency`); and every estimate of EAS (`energy`)
//! and where the task then woke (`sched_wakeup`). At each of these lines the product's kernel
//! ([`super::board`]) is asked the same, with the signals that the free run has at that moment.
//!
//! **What is the recording's.** When the governor is called and by whom; `running_bw` and `cpu_capacity`;
//! who is queued, and the frequencies for the PELT clock. A domain's request, its raw frequency and the time
//! of its last change are taken over once, at the first recorded change, and never again.
//!
//! **Why an answer differs** is found by asking a second board, which has the averages of the step
//! run: those of the last printed lines.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use schedtwin_kernel::sched::core::WF_TTWU;
use schedtwin_kernel::sched::fair::energy::EnergyEstimate;
use schedtwin_kernel::sched::pelt::SchedAvg;
use schedtwin_types::Khz;

use super::board::{Board, CpuSignals, SERVER_BW};
use super::changes::pair;
use super::machine::Machine;
use super::mechanism::{Difference, Table, Unknown, What};
use super::realtime::{RealTime, Waking};
use super::redrive::Redrive;
use super::state::{Class, FREE, RUNS, STEP, Small, class_of};
use super::tally::{Cause, Causes};
use super::wakeups::{Told, Wakeup, Wakeups};
use crate::ftrace::{Event, Record, Trace};

/// One for each run, and one with the interrupt signals as last printed, although one that was not printed
/// since may have decayed.
const BOARDS: usize = RUNS + 1;
const PRINTED: usize = RUNS;
/// How far the lines of one call reach.
const LINES_OF_A_CALL: usize = 24;
/// A CPU stands still while another one is in the kernel: at most some paths long.
const STALL_MAX_US: u64 = 200;
/// From the reading of a domain's signals to the last line that follows from them.
const ESTIMATE_US: u64 = 20;
/// Times beyond this (146 years) are not the kernel's.
const TIME_MAX: u64 = u64::MAX >> 2;

/// A frequency domain of the recording.
#[derive(Clone, Debug, Default)]
struct Policy {
    /// Its state has been taken over.
    started: bool,
    /// The frequency last computed and the one last asked for, as recorded.
    raw: Khz,
    khz: Khz,
    /// Until then a differing answer may follow from the last differing one, which had this reason.
    differs_until: u64,
    difference: Option<Difference>,
    recorded: Vec<(u64, Khz)>,
    ours: Vec<(u64, Khz)>,
    /// Answers that differ: when, and why.
    differences: Vec<(u64, Difference)>,
}

/// How often a CPU has tried to stop its tick (`idle_calls`), which says whether it has been idle since schedutil
/// last looked: once for each time that it entered idle without a tick.
#[derive(Clone, Copy, Debug, Default)]
struct IdleCalls {
    stopped: bool,
    count: u64,
}

impl IdleCalls {
    /// A line of this CPU.
    fn record(&mut self, event: &Event) {
        match event {
            Event::TickStop { success: true } => self.stopped = true,
            Event::CpuIdle { state: 0.., .. } => self.count += self.stopped as u64,
            Event::SchedSwitch { prev_pid: 0, .. } => self.stopped = false,
            _ => {}
        }
    }
}

/// A wakeup for which EAS compares.
#[derive(Clone, Copy, Debug)]
struct Placement {
    prev: usize,
    /// Ours at the first estimate, per board.
    ours: [Option<usize>; BOARDS],
    /// Ours at the last one.
    later: Option<usize>,
    /// Why an estimate differs on which the choice rests.
    estimate: Option<Difference>,
    known: bool,
}

/// The boards, and what of a recording only they need.
pub(super) struct Judge {
    machine: Rc<Machine>,
    boards: [Board; BOARDS],
    policies: Vec<Policy>,
    /// An RT task has been enqueued, no switch yet.
    rt_waking: Vec<bool>,
    /// `nr_running` changed by this much at the last line.
    change: Vec<i32>,
    idle: Vec<IdleCalls>,
    /// The affinity of tasks that a `select` line has told.
    allowed: BTreeMap<i32, u64>,
    server: Vec<bool>,
    /// `rq->cpu_capacity`; `None` until its first change is printed.
    capacity: Vec<Option<u64>>,
    placements: BTreeMap<i32, Placement>,
    pub(super) wakeups: Wakeups,
    /// The kernel that is asked about balance passes.
    pub(super) balancing: Board,
    realtime: RealTime,
    /// The last recorded estimate of a domain, without and with the task: energy, highest utilisation, busy time.
    estimates: BTreeMap<(usize, bool), (u64, u64, u64)>,
    updates: Updates,
    /// Time of the previous line of each CPU, µs.
    previous: Vec<u64>,
    pub(super) table: Table,
}

/// When the signals of a CPU were last printed by which CPU, µs.
type Updates = Vec<Vec<u64>>;

impl Judge {
    pub(super) fn new(machine: Rc<Machine>) -> Judge {
        let board = Board::new(&machine);
        let nr_cpus = machine.nr_cpus();
        Judge {
            boards: std::array::from_fn(|_| board.clone()),
            policies: vec![Policy::default(); machine.domains.len()],
            rt_waking: vec![false; nr_cpus],
            change: vec![0; nr_cpus],
            idle: vec![IdleCalls::default(); nr_cpus],
            allowed: BTreeMap::new(),
            server: vec![machine.fair_server; nr_cpus],
            capacity: vec![None; nr_cpus],
            placements: BTreeMap::new(),
            realtime: RealTime::new(board.clone()),
            balancing: board.clone(),
            wakeups: Wakeups::new(board, nr_cpus),
            estimates: BTreeMap::new(),
            updates: vec![vec![0; nr_cpus]; nr_cpus],
            previous: vec![0; nr_cpus],
            table: Table::default(),
            machine,
        }
    }

    /// The counts, with the changes paired.
    pub(super) fn table(&self) -> Table {
        let mut table = self.table.clone();
        let within = self.machine.rate_limit_us * 1000;
        for policy in &self.policies {
            let pairs = pair(&policy.recorded, &policy.ours, within);
            let row = table.row(What::FrequencyChange);
            for _ in 0..pairs.matched {
                row.count(true, false, || Difference::ModelWrong);
            }
            // A change without a partner comes from an answer that differed shortly before or at it.
            let why = |time: u64| {
                let mut near = policy.differences.iter().rev();
                let near = near.find(|(at, _)| at.abs_diff(time) <= within);
                near.map_or(Difference::ModelWrong, |(_, why)| *why)
            };
            for i in pairs.recorded_alone {
                row.count(false, false, || why(policy.recorded[i].0));
            }
            for i in pairs.ours_alone {
                row.count(false, false, || why(policy.ours[i].0));
            }
        }
        table
    }
}

impl Redrive {
    /// After the re-driver has dealt with a line: asks, and keeps what only the boards need.
    pub(super) fn judge_record(&mut self, r: &Record, trace: &Trace) {
        let Some(mut judge) = self.judge.take() else {
            return;
        };
        let nr_cpus = self.machine.nr_cpus();
        if r.cpu >= nr_cpus {
            self.judge = Some(judge);
            return;
        }
        judge.idle[r.cpu].record(&r.event);
        if let Some(cpu) = updated_cpu(r).filter(|cpu| *cpu < nr_cpus) {
            judge.updates[cpu][r.cpu] = r.time_us;
        }
        if let Event::Rq { cpu, nr, .. } | Event::Nr { cpu, nr, .. } = r.event
            && cpu < nr_cpus
        {
            judge.wakeups.nr[cpu] = nr;
        }
        match r.event {
            Event::Rq { cpu, rbw, .. } if cpu < nr_cpus => judge.server[cpu] = rbw >= SERVER_BW,
            Event::Cap { cpu, cap } if cpu < nr_cpus => judge.capacity[cpu] = Some(cap),
            Event::Nr { cpu, ch, .. } if cpu < nr_cpus && ch > 0 => {
                // RT tasks leave together when one does, and those that stay come back together.
                judge.rt_waking[cpu] |= judge.change[cpu] < -1 || wakes_rt(r.cpu, cpu, trace);
            }
            Event::Nr { cpu, .. } if cpu == r.cpu && self.cpus[cpu].curr == 0 => {
                // On an idle CPU only the fair server can be dequeued: picked, it found no task. A call
                // of the governor says that its bandwidth has gone with it.
                let next = trace.ahead(r.cpu).next().map(|next| next.event);
                if matches!(next, Some(Event::Sugov { cpu: c, .. }) if c == cpu) {
                    judge.server[cpu] = false;
                }
            }
            Event::HrtimerExpire { inactive: true, .. } => {
                // Its bandwidth leaves with its zero-lag time, and a call of the governor says where.
                if let Some(Event::Sugov { cpu, .. }) =
                    trace.ahead(r.cpu).next().map(|next| next.event)
                    && cpu < nr_cpus
                {
                    judge.server[cpu] = false;
                }
            }
            Event::SchedSwitch { .. } => judge.rt_waking[r.cpu] = false,
            Event::Sugov { cpu, time, fl } if self.driving => {
                self.judge_request(&mut judge, r, trace, (cpu, time.min(TIME_MAX), fl));
            }
            Event::Energy { pid, .. } if self.driving => {
                self.judge_estimate(&mut judge, r, trace, pid);
            }
            Event::Overutilized { on } => judge.wakeups.overutilized = on,
            Event::SchedProcessFork { pid, child_pid } => {
                judge.wakeups.fork(pid, child_pid, r.cpu);
            }
            Event::Select { pid, cpus, .. } => {
                judge.allowed.insert(pid, cpus);
                judge.wakeups.told = true;
                self.judge_selection(&mut judge, r, trace);
            }
            Event::Balance { .. } => self.judge_balance(&mut judge, r, trace),
            Event::SchedWaking { pid, prio, target_cpu: prev } => {
                judge.placements.remove(&pid);
                if self.driving && prev < nr_cpus && class_of(pid, prio, false) == Class::Rt {
                    self.ask_realtime(&mut judge, r, (pid, prio, prev));
                }
                if self.driving && class_of(pid, prio, false) == Class::Fair {
                    self.ask_waking(&mut judge, r, pid);
                }
                // Who wakes on another CPU by that one's own hand is on its wake list until then.
                let wakes = |next: &Record| matches!(next.event, Event::SchedWakeup { pid: p, .. } if p == pid);
                let on = (0..nr_cpus).find(|cpu| trace.ahead(*cpu).any(wakes));
                if let Some(cpu) = on.filter(|cpu| *cpu != r.cpu) {
                    judge.wakeups.pending.insert(pid, cpu);
                }
            }
            Event::SchedWakeup { pid, target_cpu, .. } => {
                judge.wakeups.pending.remove(&pid);
                if let Some((ours, prev)) = judge.realtime.open.remove(&pid) {
                    let (equal, trivial) = (ours == target_cpu, prev == target_cpu);
                    let row = judge.table.row(What::RtPlacement);
                    if !row.count(equal, trivial, || Difference::ModelWrong) {
                        self.miss(r, || {
                            format!("wakes rt {pid}: on {ours} for {target_cpu}, prev {prev}")
                        });
                    }
                }
                if let Some((ours, prev)) = judge.wakeups.open.remove(&pid)
                    && !judge.placements.contains_key(&pid)
                {
                    let why = || self.why(&judge, (r, trace), 0..nr_cpus, false);
                    let difference = (ours != target_cpu).then(why);
                    let why = || difference.unwrap_or(Difference::ModelWrong);
                    let row = judge.table.row(What::Sibling);
                    if !row.count(ours == target_cpu, prev == target_cpu, why) {
                        self.miss(r, || {
                            format!("wakes {pid}: on {ours} for {target_cpu}, prev {prev}")
                        });
                    }
                }
                if let Some(placement) = judge.placements.remove(&pid) {
                    self.judge_placement(&mut judge, (r, trace), pid, target_cpu, placement);
                }
            }
            _ => {}
        }
        judge.realtime.record(&r.event);
        if let Event::Nr { cpu, ch, .. } = r.event
            && cpu < nr_cpus
        {
            judge.change[cpu] = ch;
        }
        judge.previous[r.cpu] = r.time_us;
        self.judge = Some(judge);
    }

    /// Hands a board the signals of `cpus`.
    fn set_signals(&self, judge: &mut Judge, board: usize, cpus: Range<usize>) {
        judge.boards[board].turn_key(self.clamps.key_on);
        for cpu in cpus {
            let signals = self.signals(judge, board, cpu);
            judge.boards[board].set(cpu, &signals);
        }
    }

    /// Hands the kernel that is asked about wakeups the signals of `cpus`.
    fn set_signals_of(&self, judge: &mut Judge, cpus: Range<usize>) {
        judge.wakeups.board.turn_key(self.clamps.key_on);
        for cpu in cpus {
            let signals = self.signals(judge, FREE, cpu);
            judge.wakeups.board.set(cpu, &signals);
        }
    }

    fn signals(&self, judge: &Judge, board: usize, number: usize) -> CpuSignals {
        let run = board.min(STEP);
        let cpu = &self.cpus[number];
        let rt_runs = cpu.curr_class == Class::Rt && !cpu.curr_dequeued;
        CpuSignals {
            cfs: cpu.cfs[run],
            rt: known(&cpu.rt, run),
            dl: known(&cpu.dl, run),
            irq: if board == PRINTED { cpu.irq.printed } else { cpu.irq.avg[run] },
            server: judge.server[number],
            rt_runnable: rt_runs || judge.rt_waking[number],
            clamps: self.clamps.of(number).cloned().unwrap_or_default(),
            capacity: judge.capacity[number].unwrap_or(self.machine.capacity(number)),
        }
    }

    /// Whether all that an answer for these CPUs needs is known: who is queued, and the queues' averages.
    fn known_cpus(&self, cpus: &Range<usize>) -> bool {
        self.cpus[cpus.clone()].iter().all(|cpu| cpu.tracked && cpu.cfs_started)
    }

    /// Why an answer for some CPUs differs; `printed`: with the interrupt averages as printed it is equal.
    pub(super) fn why(
        &self,
        judge: &Judge,
        (r, trace): (&Record, &Trace),
        cpus: Range<usize>,
        printed: bool,
    ) -> Difference {
        if printed {
            // What made it equal: averages of the queues, for their reason, or else those of interrupts.
            let other = self.cpus[cpus.clone()].iter().find(|cpu| {
                let [free, step] = [FREE, STEP].map(|run| {
                    let avg = &cpu.cfs[run];
                    (avg.util_avg, avg.runnable_avg, avg.util_est, cpu.rt.avg[run].util_avg)
                });
                free != step
            });
            // A new task's first utilisation is wrong from the beginning, whatever came after it.
            let why = |causes: Causes| match causes.has(Cause::FirstUtilisation) {
                true => Cause::FirstUtilisation.into(),
                false => causes.first().into(),
            };
            match other.map(|cpu| why(cpu.causes[FREE])) {
                None => return Difference::UnknownInput(Unknown::InterruptTime),
                Some(Difference::ModelWrong) => {}
                Some(why) => return why,
            }
        }
        let in_flight =
            || (0..self.machine.nr_cpus()).any(|by| by != r.cpu && in_update(r, trace, by, &cpus));
        let since = judge.previous[r.cpu].min(r.time_us.saturating_sub(ESTIMATE_US));
        let just_done = || {
            judge.updates[cpus.clone()].iter().any(|by| {
                let mut others = by.iter().enumerate().filter(|(by, _)| *by != r.cpu);
                others.any(|(_, time)| *time > since)
            })
        };
        if just_done() || in_flight() {
            return Difference::UnknownInput(Unknown::OtherCpu);
        }
        if self.cpus[cpus].iter().any(|cpu| !cpu.irq.started) {
            return Difference::UnknownInput(Unknown::BeforeRecording);
        }
        Difference::ModelWrong
    }

    /// For the search after the cause of a miss.
    fn signals_text(&self, judge: &Judge, cpus: Range<usize>) -> String {
        let mut text = String::new();
        for (number, cpu) in self.cpus.iter().enumerate().take(cpus.end).skip(cpus.start) {
            let cfs = &cpu.cfs[FREE];
            let irq = [FREE, STEP].map(|run| cpu.irq.avg[run].util_avg);
            text += &format!(
                "\n   cpu {number}: util {} runnable {} util_est {} rt {} dl {} irq {irq:?} server {} rt runs {}",
                cfs.util_avg,
                cfs.runnable_avg,
                cfs.util_est,
                cpu.rt.avg[FREE].util_avg,
                cpu.dl.avg[FREE].util_avg,
                judge.server[number],
                judge.rt_waking[number] || cpu.curr_class == Class::Rt,
            );
        }
        text
    }

    fn judge_request(
        &mut self,
        judge: &mut Judge,
        r: &Record,
        trace: &Trace,
        (cpu, time, flags): (usize, u64, u32),
    ) {
        let Some(domain) = self.machine.domain_of(cpu) else {
            return;
        };
        let cpus = self.machine.domains[domain].cpus.clone();
        let first = cpus.start;
        if let Some(server) = server_after(r.cpu, cpu, trace) {
            judge.server[cpu] = server;
        }
        let mut ahead = trace.ahead(r.cpu);
        let computed = match ahead.next().map(|next| next.event) {
            Some(Event::Resolve { cpu, khz }) if cpu == first => Some(khz),
            _ => None,
        };
        let changed = computed.and_then(|_| match ahead.next()?.event {
            Event::CpuFrequency { cpu, khz } if cpu == first => Some(khz),
            _ => None,
        });
        let table_khz = |khz| judge.boards[FREE].policy(domain).resolve(khz);
        let policy = &judge.policies[domain];
        // A CPU with a clock of its own keeps its frequency as long as it has not idled, and then forgets what
        // it computed.
        let lower = computed.is_some_and(|khz| table_khz(khz) < policy.khz);
        let held = self.machine.fast_switch && cpus.len() == 1 && lower && changed.is_none();
        let raw = computed.filter(|_| !held).unwrap_or(policy.raw);
        let khz = if self.machine.fast_switch {
            changed.unwrap_or(policy.khz)
        } else {
            computed.map_or(policy.khz, table_khz)
        };

        let before = judge.boards[FREE].policy(domain).sugov.next_freq;
        for board in 0..BOARDS {
            self.set_signals(judge, board, cpus.clone());
            let calls = judge.idle[cpu].count;
            judge.boards[board].call_governor(r.cpu, (cpu, calls), time, flags);
        }
        let policy = &mut judge.policies[domain];
        if !policy.started {
            // The first change tells all three; without fast switch, the second request that is known.
            policy.started = khz != policy.khz && (changed.is_some() || policy.khz != 0);
            (policy.raw, policy.khz) = (raw, khz);
            if policy.started {
                for board in &mut judge.boards {
                    board.start_policy(domain, raw, khz, time);
                }
            }
            judge.table.row(What::SugovRaw).skip();
            judge.table.row(What::SugovRequest).skip();
            return;
        }
        let [ours, others @ ..] = [FREE, STEP, PRINTED].map(|board| {
            let sugov = &judge.boards[board].policy(domain).sugov;
            (sugov.cached_raw_freq, sugov.next_freq)
        });
        if khz != policy.khz {
            policy.recorded.push((time, khz));
        }
        if ours.1 != before {
            policy.ours.push((time, ours.1));
        }
        let (raw_before, khz_before) = (policy.raw, policy.khz);
        (policy.raw, policy.khz) = (raw, khz);
        let policy = &judge.policies[domain];
        let known = self.known_cpus(&cpus);
        let why = || match self.why(judge, (r, trace), cpus.clone(), others.contains(&(raw, khz))) {
            Difference::ModelWrong if time < policy.differs_until => {
                policy.difference.unwrap_or(Difference::ModelWrong)
            }
            why => why,
        };
        let equal = ours == (raw, khz);
        let difference = (!equal).then(why);
        for (what, recorded, ours, before) in [
            (What::SugovRaw, raw, ours.0, raw_before),
            (What::SugovRequest, khz, ours.1, khz_before),
        ] {
            let row = judge.table.row(what);
            if known {
                let why = || difference.unwrap_or(Difference::ModelWrong);
                row.count(ours == recorded, before == recorded, why);
            } else {
                row.skip();
            }
        }
        let Some(difference) = difference else { return };
        let difference =
            if known { difference } else { Difference::UnknownInput(Unknown::BeforeRecording) };
        let policy = &mut judge.policies[domain];
        policy.differences.push((time, difference));
        if time >= policy.differs_until {
            policy.differs_until = time + self.machine.rate_limit_us * 1000;
            policy.difference = Some(difference);
        }
        let signals = self.signals_text(judge, cpus);
        self.miss(r, || {
            format!("sugov {cpu}: {ours:?} for {:?}, {difference}{signals}", (raw, khz))
        });
    }

    fn judge_estimate(&mut self, judge: &mut Judge, r: &Record, trace: &Trace, pid: i32) {
        let Event::Energy { dst, e, max, busy, .. } = r.event else {
            return;
        };
        let nr_cpus = self.machine.nr_cpus();
        let Some(task) = self.tasks.get(&pid).filter(|task| task.cpu < nr_cpus) else {
            return;
        };
        let (prev, avg, known) = (task.cpu, task.avg, task.known);
        let request = self.clamps.request(pid);
        let allowed = judge.allowed.get(&pid).copied().unwrap_or(u64::MAX);
        // A base estimate does not name its domain; the estimate that it is for comes next.
        let placed = usize::try_from(dst).ok();
        let cpu = placed.or_else(|| {
            trace.ahead(r.cpu).take(LINES_OF_A_CALL).find_map(|next| match next.event {
                Event::Energy { pid: p, dst, .. } if p == pid => usize::try_from(dst).ok(),
                _ => None,
            })
        });
        let Some(domain) = cpu.and_then(|cpu| self.machine.domain_of(cpu)) else {
            for what in [What::EasMaxUtil, What::EasBusy, What::EasEnergy] {
                judge.table.row(what).skip();
            }
            return;
        };
        let cpus = self.machine.domains[domain].cpus.clone();
        let cpu = cpu.unwrap_or(cpus.start);
        let answers = [FREE, STEP, PRINTED].map(|board| {
            self.set_signals(judge, board, 0..nr_cpus);
            let run = board.min(STEP);
            let board = &mut judge.boards[board];
            board.set_sleeper(prev, avg[run], request, allowed);
            (board.estimate(prev, cpu, placed.is_some()), board.place(r.cpu, prev))
        });
        let choices = answers.map(|(_, choice)| choice);
        let [(Some(ours), _), (Some(step), _), (Some(printed), _)] = answers else {
            return;
        };
        let placement = judge.placements.entry(pid).or_insert(Placement {
            prev,
            ours: choices,
            later: choices[FREE],
            estimate: None,
            known,
        });
        placement.later = choices[FREE];
        let recorded = (e, max, busy);
        let before = judge.estimates.insert((domain, placed.is_some()), recorded);
        let answer = |o: EnergyEstimate| (o.energy, o.max_util, o.busy);
        let explained = [step, printed].into_iter().any(|o| answer(o) == recorded);
        let difference = (answer(ours) != recorded)
            .then(|| self.why(judge, (r, trace), cpus.clone(), explained));
        let before = before.unwrap_or_default();
        for (what, recorded, ours, before) in [
            (What::EasMaxUtil, max, ours.max_util, before.1),
            (What::EasBusy, busy, ours.busy, before.2),
            (What::EasEnergy, e, ours.energy, before.0),
        ] {
            let row = judge.table.row(what);
            if known && self.known_cpus(&cpus) {
                let why = || difference.unwrap_or(Difference::ModelWrong);
                row.count(ours == recorded, before == recorded, why);
            } else {
                row.skip();
            }
        }
        if let Some(why) = difference {
            if let Some(placement) = judge.placements.get_mut(&pid) {
                placement.estimate = Some(why);
            }
            let signals = self.signals_text(judge, cpus);
            self.miss(r, || {
                format!("energy {pid} on {dst}, prev {prev}: {ours:?} {step:?} {printed:?} for {recorded:?}, {why}{signals}")
            });
        }
    }

    /// `sched_waking` of a real-time task: asks where it would wake, if it may choose.
    fn ask_realtime(&self, judge: &mut Judge, r: &Record, (pid, prio, prev): (i32, i32, usize)) {
        let nr_cpus = self.machine.nr_cpus();
        let allowed = |pid| judge.wakeups.affinity(pid, nr_cpus);
        if allowed(pid).is_none_or(|cpus| cpus.count_ones() < 2) {
            return;
        }
        let currs: Vec<_> = self.cpus[..nr_cpus].iter().map(|c| (c.curr, c.curr_class)).collect();
        let waking = Waking { pid, prio, prev, this: r.cpu, currs: &currs };
        let ours = judge.realtime.ask(&waking, allowed);
        judge.realtime.open.insert(pid, (ours, prev));
    }

    /// `sched_waking`: asks where the task would wake, if EAS is not asked and the recording does not print
    /// more.
    fn ask_waking(&self, judge: &mut Judge, r: &Record, pid: i32) {
        let nr_cpus = self.machine.nr_cpus();
        judge.wakeups.open.remove(&pid);
        if judge.wakeups.told || (!judge.wakeups.overutilized && self.machine.is_asymmetric()) {
            return;
        }
        let Some(cpus) = judge.wakeups.affinity(pid, nr_cpus).filter(|cpus| cpus.count_ones() > 1)
        else {
            return;
        };
        let task = self.tasks.get(&pid).filter(|task| !task.on_rq && task.cpu < nr_cpus);
        let Some(task) = task else { return };
        let pending = &judge.wakeups.pending;
        let idle_cpu = |cpu: &usize| {
            self.cpus[*cpu].curr == 0
                && judge.wakeups.nr[*cpu] == 0
                && pending.values().all(|pending| pending != cpu)
        };
        let wakeup = Wakeup {
            pid,
            this: r.cpu,
            waker: self.cpus[r.cpu].curr,
            prev: task.cpu,
            flags: 0,
            cpus,
            idle: (0..nr_cpus).filter(idle_cpu).fold(0, |mask, cpu| mask | 1 << cpu),
            overutilized: judge.wakeups.overutilized,
            nr_this: judge.wakeups.nr[r.cpu],
            avg: task.avg[FREE],
            request: self.clamps.request(pid),
            load_waker: self.tasks.get(&self.cpus[r.cpu].curr).map_or(0, |t| t.avg[FREE].load_avg),
            now: r.time_us.saturating_mul(1000).min(TIME_MAX),
        };
        self.set_signals_of(judge, 0..nr_cpus);
        let ours = judge.wakeups.ask(&wakeup, None);
        judge.wakeups.open.insert(pid, (ours, wakeup.prev));
    }

    /// `select`: what the function reads is printed, and what it says soon after.
    fn judge_selection(&mut self, judge: &mut Judge, r: &Record, trace: &Trace) {
        let Event::Select {
            pid,
            this,
            prev,
            fl,
            cpus,
            idle,
            over,
            used,
            nr,
            sthis,
            sprev,
            cores,
            ..
        } = r.event
        else {
            return;
        };
        let nr_cpus = self.machine.nr_cpus();
        let eas = !over && self.machine.is_asymmetric();
        // Not a wakeup, or one of EAS's; or CPUs that are not there.
        if fl & WF_TTWU == 0 || eas || [this, prev, used].iter().any(|cpu| *cpu >= nr_cpus) {
            return;
        }
        let answer = trace.ahead(r.cpu).take(LINES_OF_A_CALL).find_map(|next| match next.event {
            Event::Selected { pid: p, cpu, wf, pf, .. } if p == pid => Some((cpu, [wf, pf])),
            _ => None,
        });
        let known =
            self.tasks.get(&pid).filter(|task| task.known && self.known_cpus(&(0..nr_cpus)));
        let (Some((cpu, flips)), Some(task)) = (answer, known) else {
            judge.table.row(What::Sibling).skip();
            return;
        };
        let waker = self.cpus[r.cpu].curr;
        let wakeup = Wakeup {
            pid,
            this,
            waker,
            prev,
            flags: fl,
            cpus,
            idle,
            overutilized: over,
            nr_this: nr,
            avg: task.avg[FREE],
            request: self.clamps.request(pid),
            load_waker: self.tasks.get(&waker).map_or(0, |t| t.avg[FREE].load_avg),
            now: r.time_us.saturating_mul(1000).min(TIME_MAX),
        };
        self.set_signals_of(judge, 0..nr_cpus);
        let told = Told { used, scan: [sthis, sprev], cores, flips };
        let ours = judge.wakeups.ask(&wakeup, Some(told));
        let why = || self.why(judge, (r, trace), 0..nr_cpus, false);
        let difference = (ours != cpu).then(why);
        let why = || difference.unwrap_or(Difference::ModelWrong);
        if !judge.table.row(What::Sibling).count(ours == cpu, prev == cpu, why) {
            self.miss(r, || format!("wakes {pid}: on {ours} for {cpu}, {wakeup:?}"));
        }
    }

    fn judge_placement(
        &mut self,
        judge: &mut Judge,
        (r, trace): (&Record, &Trace),
        pid: i32,
        target: usize,
        placement: Placement,
    ) {
        let Placement { prev, ours, later, estimate, known } = placement;
        let all = 0..self.machine.nr_cpus();
        if !known || !self.known_cpus(&all) {
            judge.table.row(What::EasChoice).skip();
            return;
        }
        let printed = ours[STEP..].contains(&Some(target));
        let equal = ours[FREE] == Some(target);
        let why = || match self.why(judge, (r, trace), all, printed) {
            Difference::ModelWrong if estimate.is_some() => {
                estimate.unwrap_or(Difference::ModelWrong)
            }
            Difference::ModelWrong if later == Some(target) => {
                Difference::UnknownInput(Unknown::OtherCpu)
            }
            Difference::ModelWrong if judge.capacity.iter().any(Option::is_none) => {
                Difference::UnknownInput(Unknown::BeforeRecording)
            }
            why => why,
        };
        let difference = (!equal).then(why);
        let why = || difference.unwrap_or(Difference::ModelWrong);
        judge.table.row(What::EasChoice).count(equal, prev == target, why);
        if let Some(why) = difference {
            self.miss(r, || format!("choice {pid}: {ours:?} for {target}, prev {prev}, {why}"));
        }
    }
}

/// Whether the CPU `by` is amidst an update of one of `cpus` at line `r`: what it prints next is part of
/// one, and the averages in memory may be further than the lines.
fn in_update(r: &Record, trace: &Trace, by: usize, cpus: &Range<usize>) -> bool {
    let updates = |next: &Record| updated_cpu(next).is_some_and(|cpu| cpus.contains(&cpu));
    // Or it makes a whole one before the asking CPU gets on.
    let resumes = trace.ahead(r.cpu).next().map_or(0, |next| next.time_us);
    let first = trace.ahead(by).next();
    first.is_some_and(|next| next.time_us < r.time_us.saturating_add(STALL_MAX_US) && updates(next))
        || trace.ahead(by).take_while(|next| next.time_us < resumes).any(updates)
}

/// Returns the CPU whose signals a line is about.
fn updated_cpu(r: &Record) -> Option<usize> {
    match r.event {
        Event::PeltSe { cpu, .. }
        | Event::PeltCfs { cpu, .. }
        | Event::PeltOther { cpu, .. }
        | Event::UeCfs { cpu, .. }
        | Event::Sugov { cpu, .. } => Some(cpu),
        Event::UeSe { .. } | Event::Run { .. } => Some(r.cpu),
        _ => None,
    }
}

/// A class's signal; before its first line nothing was there to print.
fn known(signal: &Small, run: usize) -> SchedAvg {
    if signal.started { signal.avg[run] } else { SchedAvg::default() }
}

/// Whether the enqueue on `cpu` whose `nr` line is read is an RT task's.
fn wakes_rt(by: usize, cpu: usize, trace: &Trace) -> bool {
    for next in trace.ahead(by).take(LINES_OF_A_CALL) {
        match next.event {
            Event::SchedWakeup { pid, prio, target_cpu, .. } if target_cpu == cpu => {
                return class_of(pid, prio, false) == Class::Rt;
            }
            // A wakeup that begins later has another enqueue.
            Event::SchedSwitch { .. } | Event::UeCfs { .. } | Event::SchedWaking { .. } => {
                return false;
            }
            _ => {}
        }
    }
    false
}

/// Whether the fair server's bandwidth counts from this call on: the start and the end of that call the
/// governor, and the next line of the queue's clocks shows it. It is the last call before that line.
fn server_after(by: usize, cpu: usize, trace: &Trace) -> Option<bool> {
    for next in trace.ahead(by).take(LINES_OF_A_CALL) {
        match next.event {
            Event::Sugov { cpu: c, .. } if c == cpu => return None,
            Event::Rq { cpu: c, rbw, .. } if c == cpu => return Some(rbw >= SERVER_BW),
            _ => {}
        }
    }
    None
}
