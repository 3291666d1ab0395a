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
//!
//! Not asked: recordings with utilisation clamps, which the product does not have.

use std::collections::BTreeMap;

use schedtwin_kernel::sched::pelt::SchedAvg;
use schedtwin_types::Khz;

use super::board::{Board, CpuSignals, DOMAINS, NR_CPUS, SERVER_BW, domain_of};
use super::decisions::{Changes, Decisions, Question, Why};
use super::redrive::Redrive;
use super::state::{Class, FREE, RUNS, STEP, Small, arch_capacity, class_of};
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

/// What a recording's description says of schedutil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `rate_limit_us`.
    pub rate_limit_us: u64,
    /// Requests are carried out at once, so that each change stands beside its call.
    pub fast_switch: bool,
    /// There are fair servers: until a line says otherwise, those of the boot still count.
    pub fair_server: bool,
}

impl Settings {
    /// Reads a description (`*.meta.txt`); what it does not say is as on the board by default.
    pub fn parse(text: &str) -> Settings {
        let rate_limit_us = text
            .lines()
            .find_map(|line| line.split_once("schedutil/rate_limit_us = "))
            .and_then(|(_, value)| value.trim().parse().ok())
            // One and a half transition latencies of 500 µs.
            .map_or(750, |us: u64| us.min(1_000_000));
        Settings {
            rate_limit_us,
            fast_switch: !text.contains("vdvfs.fast=0"),
            fair_server: !text.contains("fair_server/cpu0/runtime = 0\n"),
        }
    }
}

/// A frequency domain of the recording.
#[derive(Clone, Debug, Default)]
struct Policy {
    /// Its state has been taken over.
    started: bool,
    /// The frequency last computed and the one last asked for, as recorded.
    raw: Khz,
    khz: Khz,
    /// Until then a differing answer may follow from the last differing one.
    differs_until: u64,
    recorded: Vec<(u64, Khz)>,
    ours: Vec<(u64, Khz)>,
}

/// A wakeup for which EAS compares.
#[derive(Clone, Copy, Debug)]
struct Placement {
    prev: usize,
    /// Ours at the first estimate, per board.
    ours: [Option<usize>; BOARDS],
    /// Ours at the last one.
    later: Option<usize>,
    estimate_differs: bool,
    known: bool,
}

/// The boards, and what of a recording only they need.
pub(super) struct Judge {
    settings: Settings,
    boards: [Board; BOARDS],
    policies: [Policy; DOMAINS.len()],
    /// An RT task has been enqueued, no switch yet.
    rt_waking: [bool; NR_CPUS],
    server: [bool; NR_CPUS],
    /// `rq->cpu_capacity`; `None` until its first change is printed.
    capacity: [Option<u64>; NR_CPUS],
    placements: BTreeMap<i32, Placement>,
    updates: Updates,
    /// Time of the previous line of each CPU, µs.
    previous: [u64; NR_CPUS],
    decisions: Decisions,
}

/// When the signals of a CPU were last printed by which CPU, µs.
type Updates = [[u64; NR_CPUS]; NR_CPUS];

impl Judge {
    pub(super) fn new(settings: Settings) -> Judge {
        let board = Board::new(settings.rate_limit_us);
        Judge {
            settings,
            boards: std::array::from_fn(|_| board.clone()),
            policies: Default::default(),
            rt_waking: Default::default(),
            server: [settings.fair_server; NR_CPUS],
            capacity: Default::default(),
            placements: BTreeMap::new(),
            updates: Default::default(),
            previous: Default::default(),
            decisions: Decisions::default(),
        }
    }

    /// The counts, with the changes paired.
    pub(super) fn decisions(&self) -> Decisions {
        let mut decisions = self.decisions.clone();
        for policy in &self.policies {
            let within = self.settings.rate_limit_us * 1000;
            let changes = Changes::of(&policy.recorded, &policy.ours, within);
            decisions.changes.recorded += changes.recorded;
            decisions.changes.ours += changes.ours;
            decisions.changes.matched += changes.matched;
        }
        decisions
    }
}

impl Redrive {
    /// After the re-driver has dealt with a line: asks, and keeps what only the boards need.
    pub(super) fn judge_record(&mut self, r: &Record, trace: &Trace) {
        let Some(mut judge) = self.judge.take() else {
            return;
        };
        if let Some(cpu) = updated_cpu(r).filter(|cpu| *cpu < NR_CPUS && r.cpu < NR_CPUS) {
            judge.updates[cpu][r.cpu] = r.time_us;
        }
        match r.event {
            Event::Rq { cpu, rbw, .. } if cpu < NR_CPUS => judge.server[cpu] = rbw >= SERVER_BW,
            Event::Cap { cpu, cap } if cpu < NR_CPUS => judge.capacity[cpu] = Some(cap),
            Event::Nr { cpu, ch, .. } if cpu < NR_CPUS && ch > 0 => {
                judge.rt_waking[cpu] |= wakes_rt(r.cpu, cpu, trace);
            }
            Event::Nr { cpu, .. } if cpu == r.cpu && cpu < NR_CPUS && self.cpus[cpu].curr == 0 => {
                // On an idle CPU only the fair server can be dequeued: picked, it found no task. A call
                // of the governor says that its bandwidth has gone with it.
                let next = trace.ahead(r.cpu).next().map(|next| next.event);
                if matches!(next, Some(Event::Sugov { cpu: c, .. }) if c == cpu) {
                    judge.server[cpu] = false;
                }
            }
            Event::SchedSwitch { .. } if r.cpu < NR_CPUS => judge.rt_waking[r.cpu] = false,
            Event::Sugov { cpu, time, fl } if self.driving => {
                self.judge_request(&mut judge, r, trace, (cpu, time.min(TIME_MAX), fl));
            }
            Event::Energy { pid, .. } if self.driving => {
                self.judge_estimate(&mut judge, r, trace, pid);
            }
            Event::SchedWaking { pid, .. } => drop(judge.placements.remove(&pid)),
            Event::SchedWakeup { pid, target_cpu, .. } => {
                if let Some(placement) = judge.placements.remove(&pid) {
                    self.judge_placement(&mut judge, (r, trace), pid, target_cpu, placement);
                }
            }
            _ => {}
        }
        if let Some(previous) = judge.previous.get_mut(r.cpu) {
            *previous = r.time_us;
        }
        self.judge = Some(judge);
    }

    /// Hands a board the signals of `cpus`.
    fn set_signals(&self, judge: &mut Judge, board: usize, cpus: std::ops::Range<usize>) {
        let run = board.min(STEP);
        for (number, cpu) in self.cpus.iter().enumerate().take(cpus.end).skip(cpus.start) {
            let rt_runs = cpu.curr_class == Class::Rt && !cpu.curr_dequeued;
            judge.boards[board].set(
                number,
                &CpuSignals {
                    cfs: cpu.cfs[run],
                    rt: known(&cpu.rt, run),
                    dl: known(&cpu.dl, run),
                    irq: if board == PRINTED { cpu.irq.printed } else { known(&cpu.irq, run) },
                    server: judge.server[number],
                    rt_runnable: rt_runs || judge.rt_waking[number],
                    capacity: judge.capacity[number].unwrap_or(arch_capacity(number)),
                },
            );
        }
    }

    /// What is not known, or not exact, of the signals of some CPUs; `equal`: with the printed averages
    /// the answer is equal.
    fn why(
        &self,
        (updates, previous): (&Updates, &[u64; NR_CPUS]),
        (r, trace): (&Record, &Trace),
        cpus: std::ops::Range<usize>,
        equal: bool,
    ) -> Why {
        let in_flight = || (0..NR_CPUS).any(|by| by != r.cpu && in_update(r, trace, by, &cpus));
        let updates_since = previous.get(r.cpu).copied().unwrap_or_default();
        let just_done = || {
            let mut of_cpus = updates.iter().take(cpus.end).skip(cpus.start);
            of_cpus.any(|by| {
                let others = by.iter().enumerate().filter(|(by, _)| *by != r.cpu);
                let since = updates_since.min(r.time_us.saturating_sub(ESTIMATE_US));
                others.into_iter().any(|(_, time)| *time > since)
            })
        };
        if !equal && (just_done() || in_flight()) {
            return Why::Raced;
        }
        let mut cpus = self.cpus.iter().take(cpus.end).skip(cpus.start);
        if cpus.clone().any(|cpu| !cpu.tracked || !cpu.cfs_started) {
            return Why::QueueUnknown;
        }
        if !equal && cpus.clone().any(|cpu| !cpu.irq.started) {
            return Why::BeforeRecording;
        }
        if !equal {
            return Why::Unexplained;
        }
        let signal = cpus.any(|cpu| {
            let [free, step] = [FREE, STEP].map(|run| {
                let avg = &cpu.cfs[run];
                (avg.util_avg, avg.runnable_avg, avg.util_est, cpu.rt.avg[run].util_avg)
            });
            free != step
        });
        if signal { Why::Signal } else { Why::InterruptTime }
    }

    /// For whoever hunts a miss.
    fn signals_text(&self, judge: &Judge, cpus: std::ops::Range<usize>) -> String {
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
        let Some(domain) = domain_of(cpu).filter(|_| r.cpu < NR_CPUS) else {
            return;
        };
        let (first, count) = DOMAINS[domain];
        let cpus = first..first + count;
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
        let raw = computed.unwrap_or(policy.raw);
        let khz = if judge.settings.fast_switch {
            changed.unwrap_or(policy.khz)
        } else {
            computed.map_or(policy.khz, table_khz)
        };

        let before = judge.boards[FREE].policy(domain).sugov.next_freq;
        for board in 0..BOARDS {
            self.set_signals(judge, board, cpus.clone());
            judge.boards[board].call_governor(r.cpu, cpu, time, flags);
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
        let follows = time < policy.differs_until;
        let why = |equal: bool| match self.why(
            (&judge.updates, &judge.previous),
            (r, trace),
            cpus.clone(),
            equal,
        ) {
            Why::Unexplained if follows => Why::Follows,
            why => why,
        };
        let mut count = |question, recorded: Khz, ours: Khz, others: [Khz; RUNS], before: Khz| {
            judge.decisions.answers.entry(question).or_default().count(
                ours == recorded,
                before == recorded,
                || why(others.contains(&recorded)),
            )
        };
        let equal = count(Question::Raw, raw, ours.0, others.map(|o| o.0), policy.raw)
            & count(Question::Request, khz, ours.1, others.map(|o| o.1), policy.khz);
        if !equal && !follows {
            policy.differs_until = time + judge.settings.rate_limit_us * 1000;
        }
        (policy.raw, policy.khz) = (raw, khz);
        if !equal {
            let why = why(others.contains(&(raw, khz)));
            let signals = self.signals_text(judge, cpus);
            self.miss(r, || format!("sugov {cpu}: {ours:?} for {:?}, {why}{signals}", (raw, khz)));
        }
    }

    fn judge_estimate(&mut self, judge: &mut Judge, r: &Record, trace: &Trace, pid: i32) {
        let Event::Energy { dst, e, max, busy, .. } = r.event else {
            return;
        };
        let Some(task) = self.tasks.get(&pid).filter(|task| task.cpu < NR_CPUS) else {
            return;
        };
        let (prev, avg, known) = (task.cpu, task.avg, task.known);
        // A base estimate does not name its domain; the estimate that it is for comes next.
        let placed = usize::try_from(dst).ok();
        let cpu = placed.or_else(|| {
            trace.ahead(r.cpu).take(LINES_OF_A_CALL).find_map(|next| match next.event {
                Event::Energy { pid: p, dst, .. } if p == pid => usize::try_from(dst).ok(),
                _ => None,
            })
        });
        let Some(cpu) = cpu.filter(|cpu| *cpu < NR_CPUS && r.cpu < NR_CPUS) else {
            return;
        };
        let answers = [FREE, STEP, PRINTED].map(|board| {
            self.set_signals(judge, board, 0..NR_CPUS);
            let run = board.min(STEP);
            let board = &mut judge.boards[board];
            board.set_sleeper(prev, avg[run]);
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
            estimate_differs: false,
            known,
        });
        placement.later = choices[FREE];
        let (first, count) = domain_of(cpu).map_or((0, NR_CPUS), |domain| DOMAINS[domain]);
        let why = |equal| {
            if known {
                self.why((&judge.updates, &judge.previous), (r, trace), first..first + count, equal)
            } else {
                Why::TaskUnknown
            }
        };
        let mut equal = true;
        for (question, recorded, ours, others) in [
            (Question::MaxUtil, max, ours.max_util, [step.max_util, printed.max_util]),
            (Question::Busy, busy, ours.busy, [step.busy, printed.busy]),
            (Question::Energy, e, ours.energy, [step.energy, printed.energy]),
        ] {
            let answers = judge.decisions.answers.entry(question).or_default();
            equal &= answers.count(ours == recorded, false, || why(others.contains(&recorded)));
        }
        if !equal {
            placement.estimate_differs = true;
            let explained = [step, printed].iter().any(|o| o.busy == busy && o.max_util == max);
            let (why, signals) = (why(explained), self.signals_text(judge, first..first + count));
            let recorded = (e, max, busy);
            self.miss(r, || {
                format!("energy {pid} on {dst}, prev {prev}: {ours:?} {step:?} {printed:?} for {recorded:?}, {why}{signals}")
            });
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
        let Placement { prev, ours, later, estimate_differs, known } = placement;
        let why = || match self.why(
            (&judge.updates, &judge.previous),
            (r, trace),
            0..NR_CPUS,
            ours[STEP..].contains(&Some(target)),
        ) {
            _ if !known => Why::TaskUnknown,
            Why::Unexplained if estimate_differs => Why::Estimate,
            Why::Unexplained if later == Some(target) => Why::Raced,
            Why::Unexplained if judge.capacity.iter().any(Option::is_none) => Why::BeforeRecording,
            why => why,
        };
        let answers = judge.decisions.answers.entry(Question::Placement).or_default();
        if !answers.count(ours[FREE] == Some(target), prev == target, why) {
            let why = why();
            self.miss(r, || format!("choice {pid}: {ours:?} for {target}, prev {prev}, {why}"));
        }
    }
}

/// Whether the CPU `by` is amidst an update of one of `cpus` at line `r`: what it prints next is part of
/// one, and the averages in memory may be further than the lines.
fn in_update(r: &Record, trace: &Trace, by: usize, cpus: &std::ops::Range<usize>) -> bool {
    let updates = |next: &Record| updated_cpu(next).is_some_and(|cpu| cpus.contains(&cpu));
    // Or it makes a whole one before the asking CPU gets on.
    let resumes = trace.ahead(r.cpu).next().map_or(0, |next| next.time_us);
    let first = trace.ahead(by).next();
    first.is_some_and(|next| next.time_us < r.time_us.saturating_add(STALL_MAX_US) && updates(next))
        || trace.ahead(by).take_while(|next| next.time_us < resumes).any(updates)
}

/// Whose signals a line is about.
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

/// A small signal; before its first line nothing was there to print.
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
            Event::SchedSwitch { .. } | Event::UeCfs { .. } => return false,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_from_a_description() {
        let text =
            "/proc/cmdline = quiet vdvfs.fast=0\n/sys/policy0/schedutil/rate_limit_us = 7500\n";
        let slow = Settings { rate_limit_us: 7500, fast_switch: false, fair_server: true };
        assert_eq!(Settings::parse(text), slow);
        let usual = Settings { rate_limit_us: 750, fast_switch: true, fair_server: true };
        assert_eq!(Settings::parse("nothing of it"), usual);
        let off = Settings::parse("/sys/fair_server/cpu0/runtime = 0\n");
        assert_eq!(off, Settings { fair_server: false, ..usual });
    }
}
