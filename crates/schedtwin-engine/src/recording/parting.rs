// SPDX-License-Identifier: GPL-2.0-or-later
//! Where the replay of a recording parts from the recording, and why.
//!
//! Times always differ a little, so what is compared is what a kernel decides. Of every recorded sleep, and of the
//! thread's job behind it, the replay may differ in four ways ([`Kind`]):
//!
//! 1. the thread does not sleep, as its wakeup came before it got there,
//! 2. it runs next on another CPU than the recorded one, unless both stay where they ran before,
//! 3. it loses its CPU more often while it wants to go on,
//! 4. or less often.
//!
//! The first difference is the one that the replay meets first; later ones may follow from it. The reason is the twin's:
//! the decision that led there, with its rule. Why the recorded kernel decided as it did, no recording tells.
//!
//! Differences: CPUs are not compared where a thread runs for the first time, as nothing is recorded of where it had
//! been; jobs in which a thread waits for a hand-over are not asked how often it lost its CPU.

use super::TraceRecording;
use crate::scenario::Scenario;
use crate::twin::{Observer, Twin};
use schedtwin_trace::TaskInfo;
use schedtwin_trace::explain::Teller;
use schedtwin_types::{
    CpuId, Decision, DecisionRecord, Fact, FactKind, Ns, PowerSource, TaskId, TaskState,
};
use schedtwin_workload::recorded::Moment;
use std::collections::BTreeMap;

/// A way in which a replay differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The thread does not sleep.
    NoSleep,
    /// It runs next on another CPU, and one of both has moved.
    OtherCpu,
    /// It loses its CPU more often than recorded.
    LosesCpu,
    /// It loses its CPU less often.
    KeepsCpu,
}

impl Kind {
    /// All, in the order in which they are told.
    pub const ALL: [Kind; 4] = [Kind::NoSleep, Kind::OtherCpu, Kind::LosesCpu, Kind::KeepsCpu];

    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Kind::NoSleep => "does not sleep",
            Kind::OtherCpu => "runs on another CPU",
            Kind::LosesCpu => "loses its CPU more often",
            Kind::KeepsCpu => "loses its CPU less often",
        }
    }
}

/// The differences of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// How many.
    pub count: u64,
    /// By the name of the thread, and by the twin's reason: the most first.
    pub by_thread: Vec<(String, u64)>,
    /// By reason.
    pub by_reason: Vec<(String, u64)>,
    /// The first one.
    pub first: Option<First>,
}

/// A difference in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct First {
    /// When in the recording's time, ns after its beginning.
    pub at: Ns,
    /// When in the replay's own time, as records have it.
    pub replay_at: Ns,
    /// The thread, and its name in the replay's records.
    pub thread: String,
    /// Its name in the replay's records.
    pub task: String,
    /// What the recording has.
    pub recorded: String,
    /// What the replay does.
    pub replayed: String,
    /// The twin's decision, worded as `explain` does.
    pub decisions: Vec<String>,
}

/// How a replay differs from its recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parting {
    /// Recorded sleeps.
    pub sleeps: u64,
    /// Those that the replay came to.
    pub compared: u64,
    /// By kind.
    pub kinds: BTreeMap<Kind, Differences>,
}

impl Parting {
    /// The kind of the first difference.
    pub fn first(&self) -> Option<Kind> {
        let met = |kind: &Kind| self.kinds[kind].first.as_ref().map(|first| first.replay_at);
        self.kinds.keys().copied().filter(|kind| met(kind).is_some()).min_by_key(|kind| met(kind))
    }
}

/// Facts and decisions of one event.
#[derive(Default)]
struct Event {
    switches: Vec<(Ns, CpuId, TaskId, TaskId, TaskState)>,
    decisions: Vec<DecisionRecord>,
    teller: Teller,
}

impl Observer for Event {
    const DECISIONS: bool = true;
    fn task(&mut self, id: TaskId, name: &str, prio: i32) {
        self.teller.task(&TaskInfo { id, name: name.to_string(), prio });
    }
    fn fact(&mut self, fact: &Fact) {
        if let FactKind::Switch { prev, next, prev_state } = fact.kind {
            self.switches.push((fact.at, fact.cpu, prev, next, prev_state));
        }
    }
    fn decision(&mut self, decision: DecisionRecord) {
        self.decisions.push(decision);
    }
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

/// A thread of the replay.
#[derive(Clone, Default)]
struct Thread {
    /// Its moments: the next one, and behind the last.
    next: usize,
    end: usize,
    /// It sleeps at that moment.
    asleep: Option<usize>,
    /// Where it ran last.
    last_cpu: Option<CpuId>,
    /// The moment whose job it does; how often it has lost its CPU in it; whether it waited for a hand-over.
    job: Option<usize>,
    preempted: u32,
    handed_over: bool,
    /// The last decisions about it: where it was placed or moved, and who was to run in its place.
    placed: Option<DecisionRecord>,
    contested: Option<DecisionRecord>,
}

/// What is counted of a kind while the replay runs.
#[derive(Default)]
struct Tally {
    count: u64,
    by_thread: BTreeMap<String, u64>,
    by_reason: BTreeMap<String, u64>,
    first: Option<First>,
}

struct Search<'a> {
    trace: &'a TraceRecording,
    /// Of each replayed thread its number among the recorded ones.
    recorded: Vec<usize>,
    threads: Vec<Thread>,
    /// By CPU, the task that runs there.
    running: Vec<TaskId>,
    tallies: BTreeMap<Kind, Tally>,
    compared: u64,
    /// When the recording begins in the replay.
    begin: Ns,
}

/// Replays a recording that was read with its moments, and compares.
pub fn parting(scenario: &Scenario, trace: &TraceRecording, seed: u64) -> Parting {
    let mut twin: Twin = scenario.twin(seed);
    twin.record_decisions();
    let mut event = Event::default();
    event.teller.header(&scenario.meta(seed));
    twin.introduce(&mut event);
    let mut search = Search::new(trace, scenario.machine().nr_cpus());
    while twin.step(&mut event) {
        search.begin = twin.recording_begins();
        search.event(&twin, &event);
        event.switches.clear();
        event.decisions.clear();
    }
    search.finish()
}

impl<'a> Search<'a> {
    fn new(trace: &'a TraceRecording, nr_cpus: usize) -> Search<'a> {
        let recorded = trace.recorded.threads.iter().enumerate();
        let recorded: Vec<usize> =
            recorded.filter(|(_, thread)| thread.excluded.is_none()).map(|(at, _)| at).collect();
        let mut threads = vec![Thread::default(); recorded.len()];
        for (number, thread) in threads.iter_mut().enumerate() {
            let of_thread = |moment: &Moment| (moment.thread as usize) < number;
            thread.next = trace.moments.partition_point(of_thread);
            let of_thread = |moment: &Moment| (moment.thread as usize) <= number;
            thread.end = trace.moments.partition_point(of_thread);
        }
        Search {
            trace,
            recorded,
            threads,
            running: vec![TaskId::IDLE; nr_cpus],
            tallies: BTreeMap::new(),
            compared: 0,
            begin: 0,
        }
    }

    fn event(&mut self, twin: &Twin, event: &Event) {
        for decision in &event.decisions {
            self.decided(twin, decision);
        }
        for &(at, cpu, prev, next, prev_state) in &event.switches {
            self.leaves(twin, event, (at, cpu), prev, prev_state);
            self.running[cpu.index()] = next;
            if let Some((index, _)) = twin.position(next) {
                self.runs(event, index, (at, cpu), next);
            }
        }
        for cpu in 0..self.running.len() {
            let task = self.running[cpu];
            if let Some((index, position)) = twin.position(task) {
                self.passes_over(event, (index, task), position.step, twin.now());
            }
        }
    }

    /// Keeps what may be the reason of a difference.
    fn decided(&mut self, twin: &Twin, record: &DecisionRecord) {
        let mut about = |task: TaskId, placed: bool| {
            if let Some((index, _)) = twin.position(task) {
                let thread = &mut self.threads[index];
                let kept = if placed { &mut thread.placed } else { &mut thread.contested };
                *kept = Some(record.clone());
            }
        };
        match &record.decision {
            Decision::Placement { task, .. } => about(*task, true),
            Decision::Balance { moved, .. } => moved.iter().for_each(|task| about(*task, true)),
            Decision::Preemption { curr, .. } => about(*curr, false),
            Decision::Pick { prev, next, .. } if prev != next => about(*prev, false),
            Decision::Pick { .. } | Decision::Frequency { .. } | Decision::Idle { .. } => {}
        }
    }

    /// A task leaves a CPU.
    fn leaves(
        &mut self,
        twin: &Twin,
        event: &Event,
        (at, cpu): (Ns, CpuId),
        task: TaskId,
        state: TaskState,
    ) {
        let Some((index, position)) = twin.position(task) else { return };
        self.passes_over(event, (index, task), position.step, at);
        match state {
            TaskState::Running | TaskState::Preempted => {
                self.threads[index].preempted += 1;
                self.loses_cpu(event, index, (at, cpu), task);
            }
            _ if position.sleeps => {
                self.job_ends(event, index, (at, cpu), task);
                let thread = &mut self.threads[index];
                let here = |moment: &Moment| moment.step == position.step;
                if thread.next < thread.end && here(&self.trace.moments[thread.next]) {
                    thread.asleep = Some(thread.next);
                }
            }
            _ => self.threads[index].handed_over = true,
        }
    }

    /// A task that is at that step has passed over the sleeps before it.
    fn passes_over(&mut self, event: &Event, (index, task): (usize, TaskId), step: u32, at: Ns) {
        let thread = &self.threads[index];
        if thread.asleep.is_some() {
            return;
        }
        while self.threads[index].next < self.threads[index].end {
            let place = self.threads[index].next;
            let moment = self.trace.moments[place];
            if moment.step >= step {
                break;
            }
            self.threads[index].next += 1;
            self.start_job(index, place);
            self.compared += 1;
            let Some(slept_at) = moment.slept_at else { continue };
            let waker = match moment.woken_by {
                Some(by) => self.recorded_name(by as usize),
                None => "an interrupt".to_owned(),
            };
            let late = self.since(at) as i64 - slept_at as i64;
            let recorded = match moment.woken_at {
                Some(woken) => format!(
                    "it sleeps at {} s; {waker} wakes it at {} s",
                    clock(slept_at),
                    clock(woken)
                ),
                None => format!("it sleeps at {} s", clock(slept_at)),
            };
            let replayed = format!(
                "it gets there at {} s, {}; its wakeup has come before",
                clock(self.since(at)),
                lateness(late)
            );
            let reason = format!("woken by {}", reason_of_waker(moment));
            self.differs(
                Kind::NoSleep,
                event,
                (index, task),
                at,
                reason,
                [recorded, replayed],
                None,
            );
        }
    }

    fn start_job(&mut self, index: usize, moment: usize) {
        let thread = &mut self.threads[index];
        (thread.job, thread.preempted, thread.handed_over) = (Some(moment), 0, false);
    }

    /// A task runs on a CPU: its sleep is over, if it has slept.
    fn runs(&mut self, event: &Event, index: usize, (at, cpu): (Ns, CpuId), task: TaskId) {
        let before = self.threads[index].last_cpu.replace(cpu);
        let decision = self.threads[index].placed.take();
        let Some(place) = self.threads[index].asleep.take() else { return };
        let moment = self.trace.moments[place];
        self.threads[index].next = place + 1;
        self.start_job(index, place);
        self.compared += 1;
        if let (Some(prev), Some(ran_at)) = (moment.prev, moment.ran_at)
            && moment.cpu != cpu.0
            && (moment.cpu != prev || before != Some(cpu))
        {
            let recorded = runs_on(moment.cpu, Some(prev), ran_at);
            let replayed = runs_on(cpu.0, before.map(|before| before.0), self.since(at));
            let reason = match decision.as_ref().map(|record| &record.decision) {
                Some(Decision::Placement { rule, .. }) => rule.text().to_owned(),
                Some(Decision::Balance { .. }) => "moved by balancing".to_owned(),
                _ => "not decided anew".to_owned(),
            };
            let what = [recorded, replayed];
            self.differs(Kind::OtherCpu, event, (index, task), at, reason, what, decision);
        }
    }

    /// A task has lost its CPU.
    fn loses_cpu(&mut self, event: &Event, index: usize, (at, cpu): (Ns, CpuId), task: TaskId) {
        let thread = &self.threads[index];
        let Some(moment) = thread.job.map(|job| self.trace.moments[job]) else { return };
        if thread.handed_over || thread.preempted != moment.preempted + 1 {
            return;
        }
        let recorded = match moment.preempted {
            0 => "it keeps its CPU until it sleeps again".to_owned(),
            count => format!("it loses its CPU {} until it sleeps again", times(count)),
        };
        let replayed = format!(
            "it loses CPU {cpu} at {} s, for the {} time",
            clock(self.since(at)),
            ordinal(thread.preempted)
        );
        let decision = thread.contested.clone();
        let reason = contested(decision.as_ref());
        let what = [recorded, replayed];
        self.differs(Kind::LosesCpu, event, (index, task), at, reason, what, decision);
    }

    /// A job is over: the task goes to sleep.
    fn job_ends(&mut self, event: &Event, index: usize, (at, cpu): (Ns, CpuId), task: TaskId) {
        let thread = &self.threads[index];
        let Some(moment) = thread.job.map(|job| self.trace.moments[job]) else { return };
        if thread.handed_over || thread.preempted >= moment.preempted {
            return;
        }
        let had = match thread.preempted {
            0 => "without having lost its CPU".to_owned(),
            count => format!("having lost its CPU {}", times(count)),
        };
        let recorded =
            format!("it loses its CPU {} until it sleeps again", times(moment.preempted));
        let replayed = format!("it sleeps at {} s on CPU {cpu}, {had}", clock(self.since(at)));
        let what = [recorded, replayed];
        let reason = "nobody took it".to_owned();
        self.differs(Kind::KeepsCpu, event, (index, task), at, reason, what, None);
    }

    #[allow(clippy::too_many_arguments, reason = "they are all of one difference")]
    fn differs(
        &mut self,
        kind: Kind,
        event: &Event,
        (index, task): (usize, TaskId),
        at: Ns,
        reason: String,
        [recorded, replayed]: [String; 2],
        decision: Option<DecisionRecord>,
    ) {
        let thread = self.recorded_name(index);
        let since = self.since(at);
        let tally = self.tallies.entry(kind).or_default();
        tally.count += 1;
        let name = self.trace.recorded.threads[self.recorded[index]].name.to_string();
        *tally.by_thread.entry(name).or_default() += 1;
        *tally.by_reason.entry(reason).or_default() += 1;
        tally.first.get_or_insert_with(|| First {
            at: since,
            replay_at: at,
            thread,
            task: event.teller.name(task),
            recorded,
            replayed,
            decisions: decision.iter().map(|record| event.teller.decision(record)).collect(),
        });
    }

    fn recorded_name(&self, index: usize) -> String {
        let thread = &self.trace.recorded.threads[self.recorded[index]];
        format!("{} ({})", thread.name, thread.pid)
    }

    fn since(&self, at: Ns) -> Ns {
        at.saturating_sub(self.begin)
    }

    fn finish(self) -> Parting {
        let most_first = |counts: BTreeMap<String, u64>| {
            let mut counts: Vec<_> = counts.into_iter().collect();
            counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            counts
        };
        let kinds = self.tallies.into_iter().map(|(kind, tally)| {
            let Tally { count, by_thread, by_reason, first } = tally;
            let (by_thread, by_reason) = (most_first(by_thread), most_first(by_reason));
            (kind, Differences { count, by_thread, by_reason, first })
        });
        let kinds = kinds.collect();
        Parting { sleeps: self.trace.moments.len() as u64, compared: self.compared, kinds }
    }
}

/// The reason why a task lost its CPU.
fn contested(decision: Option<&DecisionRecord>) -> String {
    match decision.map(|record| &record.decision) {
        Some(Decision::Preemption { rule, .. }) => rule.text().to_owned(),
        Some(Decision::Pick { rule, .. }) => rule.text().to_owned(),
        _ => "not decided anew".to_owned(),
    }
}

fn runs_on(cpu: u16, before: Option<u16>, at: Ns) -> String {
    let from = match before {
        Some(before) if before == cpu => ", where it ran before".to_owned(),
        Some(before) => format!(", before on CPU {before}"),
        None => String::new(),
    };
    format!("it runs on CPU {cpu} at {} s{from}", clock(at))
}

fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}

fn reason_of_waker(moment: Moment) -> &'static str {
    match (moment.woken_by, moment.woken_at) {
        (Some(_), _) => "a thread",
        (None, Some(_)) => "an interrupt",
        (None, None) => "nobody that is recorded",
    }
}

fn lateness(ns: i64) -> String {
    let us = ns.unsigned_abs() as f64 / 1000.0;
    if ns >= 0 { format!("{us:.1} us later") } else { format!("{us:.1} us earlier") }
}

fn ordinal(number: u32) -> String {
    match number {
        1 => "first".to_owned(),
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        n => format!("{n}th"),
    }
}

/// `1.250000123`.
fn clock(ns: Ns) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}
