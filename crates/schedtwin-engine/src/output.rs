// SPDX-License-Identifier: GPL-2.0-or-later
//! Traces and records of a run: puts facts into time order and hands them to their files.
//!
//! Facts are stamped with the executing CPU's local clock, which may run a few microseconds ahead of the
//! event that they belong to. What is stamped up to the time of the board can no longer be preceded by
//! anything, so it is handed on; the rest waits. Waiting facts stay where they are put; what is kept in order is a short
//! list of their times and places. What waits is bounded, whatever kind it is of.

use crate::twin::Observer;
use bytesize::ByteSize;
use schedtwin_trace::{GrowingFile, Sink, TaskInfo};
use schedtwin_types::{DecisionRecord, Duration, Fact, NeedChain, Ns, PowerSource, TaskId};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Facts that may wait before they are handed on.
const BATCH: usize = 256;

/// Facts among which the place of a new one is looked for first: a power of two.
const NEAR: usize = 64;

/// How large a file of a run may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxSize {
    /// The file ends, whole, soon after it has so many bytes.
    pub bytes: u64,
    /// The run ends with it.
    pub ends_run: bool,
}

/// Files that a run is written to.
#[derive(Default)]
pub struct Output {
    /// Each with a word for it: trace or record.
    files: Vec<(&'static str, GrowingFile)>,
    max_size: Option<MaxSize>,
    /// The size of all files, for who watches the run.
    watched: Option<Arc<AtomicU64>>,
    /// Files that ended before the run.
    notices: Vec<String>,
    /// A file that could not be ended.
    failure: Option<io::Error>,
    /// The run is to end.
    enough: bool,
    /// Facts that wait, as they came.
    facts: Vec<Fact>,
    /// Their times and places in `facts`, in time order.
    order: Vec<(Ns, u32)>,
    /// Buffer for those that go on to wait while others are handed on.
    later: Vec<Fact>,
    decisions: Vec<DecisionRecord>,
    /// Whether one of the files keeps decisions.
    wants_decisions: bool,
    /// Chains that wait with the facts, by their ends.
    chains: Vec<NeedChain>,
    /// Power that waits with the facts: when, of which number, microwatts.
    power: Vec<(Ns, u16, u64)>,
    /// Power by number as told last, microwatts.
    power_uw: Vec<u64>,
    /// Files number clock domains first, then power domains.
    nr_clocks: usize,
}

impl Output {
    /// Writes to a trace and a record of a machine with `nr_clocks` clock domains.
    pub fn new(
        trace: Option<GrowingFile>,
        record: Option<GrowingFile>,
        nr_clocks: usize,
    ) -> Output {
        let files = [("trace", trace), ("record", record)];
        let files = files.into_iter().filter_map(|(what, file)| Some((what, file?)));
        let files: Vec<_> = files.collect();
        Output {
            wants_decisions: files.iter().any(|(_, file)| file.sink.wants_decisions()),
            files,
            facts: Vec::with_capacity(2 * BATCH),
            order: Vec::with_capacity(2 * BATCH),
            later: Vec::with_capacity(2 * BATCH),
            nr_clocks,
            ..Output::default()
        }
    }

    /// Bounds the files, and tells their size to who watches the run.
    pub fn bounded(mut self, max_size: Option<MaxSize>, watched: Option<Arc<AtomicU64>>) -> Output {
        (self.max_size, self.watched) = (max_size, watched);
        self
    }

    /// Ends the files that are large enough.
    #[cold]
    fn look_at_sizes(&mut self, now: Ns) {
        let size = |file: &GrowingFile| file.bytes.load(Ordering::Relaxed);
        if let Some(watched) = &self.watched {
            watched.store(self.files.iter().map(|(_, file)| size(file)).sum(), Ordering::Relaxed);
        }
        let Some(max) = self.max_size else { return };
        for (what, file) in self.files.extract_if(.., |(_, file)| size(file) >= max.bytes) {
            let at = Duration::from_ns(now - now % 1_000);
            let bytes = ByteSize::b(max.bytes).display().si();
            self.notices.push(format!(
                "the {what} ends at {at} of the run, where it had its largest size, {bytes}{}",
                if max.ends_run {
                    "; so does the run"
                } else {
                    "; the figures are of the whole run"
                },
            ));
            self.enough |= max.ends_run;
            if let Err(error) = file.sink.finish() {
                self.failure.get_or_insert(error);
            }
        }
        self.wants_decisions = self.files.iter().any(|(_, file)| file.sink.wants_decisions());
    }

    /// Whether one of the files keeps decisions.
    pub fn wants_decisions(&self) -> bool {
        self.wants_decisions
    }

    fn flush(&mut self, until: Ns) {
        let facts = self.order.partition_point(|(at, _)| *at <= until);
        let decisions = self.decisions.partition_point(|d| d.at <= until);
        let power = self.power.partition_point(|p| p.0 <= until);
        let chains = self.chains.partition_point(|chain| chain.end_at <= until);
        for (_, file) in &mut self.files {
            hand_on(
                file.sink.as_mut(),
                self.order[..facts].iter().map(|(_, place)| &self.facts[*place as usize]),
                &self.decisions[..decisions],
                &self.power[..power],
                &self.chains[..chains],
            );
        }
        self.chains.drain(..chains);
        self.order.drain(..facts);
        for (later, (_, place)) in self.order.iter_mut().enumerate() {
            self.later.push(self.facts[*place as usize]);
            *place = later as u32;
        }
        std::mem::swap(&mut self.facts, &mut self.later);
        self.later.clear();
        self.decisions.drain(..decisions);
        self.power.drain(..power);
    }

    /// Hands on what is left and closes the files. Returns what the user should know of them.
    pub fn finish(mut self) -> io::Result<Vec<String>> {
        self.flush(Ns::MAX);
        for (_, file) in self.files {
            file.sink.finish()?;
        }
        self.failure.map_or(Ok(self.notices), Err)
    }
}

/// Hands all of it to a sink in time order. At one instant: power, then why, then what has been waited for, then what.
fn hand_on<'a>(
    sink: &mut dyn Sink,
    facts: impl Iterator<Item = &'a Fact>,
    decisions: &[DecisionRecord],
    power: &[(Ns, u16, u64)],
    chains: &[NeedChain],
) {
    let (mut decisions, mut power) = (decisions.iter().peekable(), power.iter().peekable());
    let mut chains = chains.iter().peekable();
    // Returns when there is more to hand on.
    let mut until = |at: Ns, sink: &mut dyn Sink| loop {
        let decided_at = decisions.peek().map_or(Ns::MAX, |d| d.at);
        let ended_at = chains.peek().map_or(Ns::MAX, |chain| chain.end_at);
        let next = at.min(decided_at).min(ended_at);
        if let Some((at, number, microwatts)) = power.next_if(|p| p.0 <= next) {
            sink.power_uw(*at, *number, *microwatts);
        } else if let Some(decision) = decisions.next_if(|d| d.at <= at.min(ended_at)) {
            sink.decision(decision);
        } else if let Some(chain) = chains.next_if(|chain| chain.end_at <= at) {
            sink.chain(chain);
        } else {
            return power.peek().map_or(Ns::MAX, |p| p.0).min(decided_at).min(ended_at);
        }
    };
    let mut more_at = 0;
    for fact in facts {
        if more_at <= fact.at {
            more_at = until(fact.at, sink);
        }
        sink.fact(fact);
    }
    until(Ns::MAX, sink);
}

/// Where a fact of time `at` belongs that is not the last: behind all that are not later.
#[inline(always)]
fn place_of(order: &[(Ns, u32)], at: Ns) -> usize {
    match order.last_chunk::<NEAR>() {
        Some(near) if near[0].0 <= at => {
            // The last is later, so the place is one of `NEAR`: a bit of it a step, without a branch.
            let mut place = 0;
            let mut step = NEAR / 2;
            while step > 0 {
                let behind = near[(place + step - 1) % NEAR].0 <= at;
                place += if behind { step } else { 0 };
                step /= 2;
            }
            order.len() - NEAR + place
        }
        _ => order.partition_point(|entry| entry.0 <= at),
    }
}

impl Observer for Output {
    const DECISIONS: bool = true;

    fn task(&mut self, id: TaskId, name: &str, prio: i32) {
        for (_, file) in &mut self.files {
            file.sink.task(&TaskInfo { id, name: name.to_string(), prio });
        }
    }

    fn task_prio(&mut self, at: Ns, id: TaskId, prio: i32) {
        self.flush(at);
        for (_, file) in &mut self.files {
            file.sink.task_prio(id, prio);
        }
    }

    #[inline]
    fn fact(&mut self, fact: &Fact) {
        let entry = (fact.at, self.facts.len() as u32);
        self.facts.push(*fact);
        match self.order.last() {
            Some(last) if last.0 > fact.at => {
                let place = place_of(&self.order, fact.at);
                self.order.insert(place, entry);
            }
            _ => self.order.push(entry),
        }
    }

    fn decision(&mut self, decision: DecisionRecord) {
        if self.wants_decisions {
            let mut at = self.decisions.len();
            while at > 0 && self.decisions[at - 1].at > decision.at {
                at -= 1;
            }
            self.decisions.insert(at, decision);
        }
    }

    fn chain(&mut self, chain: NeedChain) {
        if self.wants_decisions {
            // Chains of several domains may end at one instant; the time of the board only goes forward.
            self.chains.push(chain);
        }
    }

    fn power(&mut self, at: Ns, source: PowerSource, microwatts: u64) {
        let number = source.number(self.nr_clocks);
        let index = usize::from(number);
        if self.power_uw.len() <= index {
            self.power_uw.resize(index + 1, u64::MAX);
        }
        if self.power_uw[index] != microwatts {
            self.power_uw[index] = microwatts;
            self.power.push((at, number, microwatts));
        }
    }

    #[inline]
    fn settled(&mut self, now: Ns) {
        let waiting = self.facts.len() + self.power.len();
        if waiting + self.decisions.len() + self.chains.len() >= BATCH {
            self.flush(now);
            self.look_at_sizes(now);
        }
    }

    fn enough(&self) -> bool {
        self.enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_types::draw::{Purpose, draw};
    use schedtwin_types::{CpuId, Decision, FactKind, IdleRule};
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Keeps the times and the CPUs of facts.
    struct Kept(Rc<RefCell<Vec<(Ns, u16)>>>);

    impl Sink for Kept {
        fn task(&mut self, _: &TaskInfo) {}
        fn task_prio(&mut self, _: TaskId, _: i32) {}
        fn fact(&mut self, fact: &Fact) {
            self.0.borrow_mut().push((fact.at, fact.cpu.0));
        }
        fn finish(self: Box<Self>) -> io::Result<()> {
            Ok(())
        }
    }

    /// Facts that come up to `ahead` before their turn; those of one time stay in the order in which they came.
    fn check(ahead: u64) {
        let kept = Rc::new(RefCell::new(Vec::new()));
        let mut output =
            Output::new(Some(GrowingFile::none(Box::new(Kept(kept.clone())))), None, 1);
        let mut expected = Vec::new();
        for number in 0..5_000u16 {
            let now = u64::from(number / 3);
            let at = now + draw(ahead, number.into(), Purpose::StartPhase, 0, 0, ahead);
            // The number of the CPU says which fact it is.
            output.fact(&Fact { at, cpu: CpuId(number), kind: FactKind::Tick });
            output.settled(now - now.min(1));
            expected.push((at, number));
        }
        output.finish().expect("nothing can fail");
        expected.sort_by_key(|(at, _)| *at);
        assert_eq!(*kept.borrow(), expected, "{ahead} ahead");
    }

    #[test]
    fn facts_are_handed_on_in_time_order() {
        for ahead in [0, 1, 5, 20, 64, 200, 1_000, 10_000] {
            check(ahead);
        }
    }

    /// A task that yields alone is picked again and again, and no fact comes of it.
    #[test]
    fn decisions_do_not_pile_up_without_facts() {
        let kept = Rc::new(RefCell::new(Vec::new()));
        let mut output = Output::new(None, Some(GrowingFile::none(Box::new(Kept(kept)))), 1);
        for at in 0..10_000 {
            let decision = Decision::Idle {
                state: 0,
                stop_tick: false,
                sleep_length_ns: None,
                rule: IdleRule::Ladder,
                tick_rule: None,
                input: Default::default(),
            };
            output.decision(DecisionRecord { at, cpu: CpuId(0), decision });
            output.settled(at);
            assert!(output.decisions.len() <= BATCH);
        }
    }
}
