// SPDX-License-Identifier: GPL-2.0-or-later
//! From a finished recording to programs: time becomes work, wakeups become tickets.

use super::builder::{Builder, RawStep, Sleep, SleepEnd, Thread, ThreadFacts, Wakeup};
use super::frames;
use super::jobs::{Collector, Jobs};
use super::moments::Moment;
use super::{
    ANSWER_MOST_NS, FRAME_SLICES, Frames, LATENCIES_LEAST, LATENCY_NAMES, Recorded, RecordedThread,
    Recording, WARMUP, WARMUP_PER_THREAD,
};
use crate::ThreadChanges;
use crate::program::code::{Code, Instruction, Register, TaskCode};
use crate::program::recording::{
    DeviceInterrupt, FrequencyLimits, RecordedThreadCode, RecordingCode, Ticket, attributes,
    clamps_of,
};
use schedtwin_types::fnv::Fnv1a;
use schedtwin_types::{CpuId, CpuMask, MAX_CPUS, Ns, Policy, ThreadId, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

/// The abilities of a recorded CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedCpu {
    /// Its capacity at `max_khz`, 1..=1024.
    pub capacity: u32,
    /// Its highest frequency, kHz, not 0.
    pub max_khz: u32,
}

/// The machine that a recording was made on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silicon {
    /// At least those that the recording names.
    pub cpus: Vec<RecordedCpu>,
    /// The costs that its kernel's paths are taken to have had.
    pub paths: PathCosts,
    /// Its CPUs have the numbers of the machine that replays: allowed CPUs mean the same there.
    pub same_numbers: bool,
}

/// Estimated work of the kernel's paths that a recorded run contains, and that the replaying twin charges itself. Taken off the run
/// in which they lie; where that is shorter, off the thread's next ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCosts {
    /// Of waking somebody up: the system call and `try_to_wake_up`.
    pub wake: Work,
    /// Of going to sleep and coming back: the system call, `schedule` and the switch.
    pub sleep: Work,
    /// Of a fork.
    pub fork: Work,
    /// Of executing another program, up to the choice of a CPU.
    pub exec: Work,
    /// Of an exit.
    pub exit: Work,
    /// Of changing the own priority, which the recorded thread did not do itself.
    pub priority: Work,
}

impl PathCosts {
    fn of(&self, step: &Instruction) -> Work {
        match step {
            Instruction::Post { .. } => self.wake,
            Instruction::Wait { .. } | Instruction::Until { .. } => self.sleep,
            Instruction::Priority(_) | Instruction::Affinity(_) | Instruction::Clamps(..) => {
                self.priority
            }
            Instruction::Clone(_) => self.fork,
            Instruction::Exec => self.exec,
            Instruction::Exit => self.exit,
            // A preemption is recorded there, and the twin charges a sleep.
            Instruction::After(_) => self.sleep,
            _ => 0,
        }
    }
}

/// Of how many hand-overs one has to be answered by a wakeup the other way, so that the waker is taken to wait for an answer. Most
/// answers are not seen: who is preempted does not sleep.
const ANSWERS_OF: u64 = 10;

/// Capacity of the largest CPU at its highest frequency.
const FULL_CAPACITY: u128 = 1024;

impl Silicon {
    /// The work of `cycles` ns × kHz on a CPU.
    fn work_of_cycles(&self, cpu: u16, cycles: u64) -> Work {
        let RecordedCpu { capacity, max_khz } = self.cpus[cpu as usize];
        let work = u128::from(cycles) * u128::from(capacity);
        (work / (FULL_CAPACITY * u128::from(max_khz))) as Work
    }

    /// The work of `ns` at full speed on a CPU.
    fn work_of_time(&self, cpu: u16, ns: Ns) -> Work {
        let work = u128::from(ns) * u128::from(self.cpus[cpu as usize].capacity);
        (work / FULL_CAPACITY) as Work
    }
}

impl Builder {
    /// Ends the recording and makes its programs.
    ///
    /// # Panics
    /// If `silicon` has fewer CPUs than the events named, or one with a highest frequency of 0.
    pub fn finish(mut self, silicon: &Silicon) -> Recording {
        assert!(silicon.cpus.len() >= self.nr_cpus(), "every recorded CPU is described");
        assert!(silicon.cpus.iter().all(|cpu| cpu.max_khz > 0), "clocks tick");
        self.close();
        self.join_facts();
        let threads = std::mem::take(&mut self.threads);
        let recorded = Recorded {
            span_ns: self.span(),
            threads: threads
                .iter()
                .map(|thread| RecordedThread {
                    name: thread.name.clone(),
                    pid: thread.pid,
                    cpu_time_ns: thread.cpu_time_ns,
                    excluded: thread.excluded,
                    prio: thread.first_prio,
                    jobs: Jobs::default(),
                })
                .collect(),
            busy_ns: self.busy_ns().collect(),
            mean_khz: self.mean_khz().collect(),
            idle_ns: self.idle_ns().collect(),
            assumed_frequency_ns: self.assumed_frequency_ns,
            switches: self.switches,
            migrations: self.migrations,
            contradictions: self.contradictions,
            priority_changes: self.priority_changes,
            limit_changes: self.limits.len() as u64,
            ..Recorded::default()
        };
        let mut compiler = Compiler::new(&self, silicon, recorded);
        compiler.find_handovers(&threads);
        compiler.frames();
        for (index, thread) in threads.iter().enumerate() {
            compiler.thread(index as u32, thread);
        }
        compiler.finish()
    }
}

struct Compiler<'a> {
    builder: &'a Builder,
    silicon: &'a Silicon,
    recorded: Recorded,
    instructions: Vec<Instruction>,
    tasks: Vec<TaskCode>,
    /// The count of frames of each slice that end.
    nr_frames: [usize; FRAME_SLICES.len()],
    code: RecordingCode,
    /// Of each recorded thread its number among the replayed ones.
    numbers: Vec<Option<u32>>,
    /// Of each sleep its ticket, if it is tied to a replayed waker.
    tickets: Vec<Option<u32>>,
    /// Of each wakeup the ticket that it posts.
    posts: Vec<Option<u32>>,
    /// Of sleeps that a waker waits for, the number of the hand-over.
    handovers: BTreeMap<u32, u32>,
    /// What became of sleeps, if that is wanted.
    moments: Vec<Moment>,
}

impl<'a> Compiler<'a> {
    fn new(builder: &'a Builder, silicon: &'a Silicon, recorded: Recorded) -> Compiler<'a> {
        let mut count: u32 = 0;
        let mut numbers = Vec::with_capacity(recorded.threads.len());
        for thread in &recorded.threads {
            numbers.push(thread.excluded.is_none().then_some(count));
            count += u32::from(thread.excluded.is_none());
        }
        let mut code = RecordingCode { span: recorded.span_ns, ..RecordingCode::default() };
        let start = builder.start.unwrap_or(0);
        let mut tickets = Vec::with_capacity(builder.sleeps.len());
        let mut posts = vec![None; builder.wakeups.len()];
        for sleep in &builder.sleeps {
            let mut ticket = None;
            if let SleepEnd::Wakeup(wakeup) = sleep.end
                && let Some(sleeper) = numbers[sleep.thread as usize]
            {
                let Wakeup { at, by, device_cpu } = builder.wakeups[wakeup as usize];
                let next = code.tickets.len() as u32;
                let mut answer = None;
                if by.is_some_and(|by| numbers[by as usize].is_some()) {
                    ticket = Some(next);
                    posts[wakeup as usize] = ticket;
                } else if let Some(cpu) = device_cpu {
                    ticket = Some(next);
                    answer = answer_ns(sleep, at).map(|ns| (cpu, ns));
                    let at = at.saturating_sub(start);
                    code.interrupts.push(DeviceInterrupt { at, cpu, ticket: next });
                }
                code.tickets.extend(ticket.map(|_| Ticket { sleeper, answer }));
            }
            tickets.push(ticket);
        }
        code.interrupts.sort_unstable();
        code.limits = builder
            .limits
            .iter()
            .map(|change| FrequencyLimits {
                at: change.at.saturating_sub(start),
                cpu: change.cpu,
                min_khz: change.min_khz,
                max_khz: change.max_khz,
                of_khz: match silicon.same_numbers {
                    true => None,
                    false => Some(silicon.cpus[usize::from(change.cpu)].max_khz),
                },
            })
            .collect();
        Compiler {
            builder,
            silicon,
            recorded,
            instructions: Vec::new(),
            tasks: Vec::new(),
            nr_frames: [0; FRAME_SLICES.len()],
            code,
            numbers,
            tickets,
            posts,
            handovers: BTreeMap::new(),
            moments: Vec::new(),
        }
    }

    /// Numbers the sleeps that wakers wait for: of pairs that answer each other, if both threads are replayed.
    fn find_handovers(&mut self, threads: &[Thread]) {
        let pairs = self.answering_pairs(threads);
        for (index, thread) in threads.iter().enumerate() {
            for step in &thread.steps {
                if let RawStep::After(sleep) = *step
                    && let sleeper = self.builder.sleeps[sleep as usize].thread
                    && pairs.contains(&(index as u32, sleeper))
                    && let Some(sleeper) = self.numbers[sleeper as usize]
                {
                    let next = self.code.handovers.len() as u32;
                    self.handovers.entry(sleep).or_insert_with(|| {
                        self.code.handovers.push((sleeper, u32::MAX));
                        next
                    });
                }
            }
        }
    }

    /// Sums up the recorded frames.
    fn frames(&mut self) {
        let frames = &self.builder.frames;
        for slice in 0..FRAME_SLICES.len() {
            let of_slice = frames.iter().filter(|frame| usize::from(frame.slice) == slice);
            let mut begins: Vec<_> = of_slice.map(|frame| (frame.thread, frame.began)).collect();
            self.code.frame_periods[slice] = frames::period(&mut begins);
        }
        let durations = frames.iter().map(|frame| (frame.slice, frame.ns));
        self.recorded.frames = Frames::of(durations, &self.code.frame_periods);
    }

    /// Pairs of a waker and a thread that preempts it, of which the latter wakes the former, too: at least once in
    /// [`ANSWERS_OF`] hand-overs.
    fn answering_pairs(&self, threads: &[Thread]) -> BTreeSet<(u32, u32)> {
        let mut pairs: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
        for (waker, thread) in threads.iter().enumerate() {
            for step in &thread.steps {
                if let RawStep::After(sleep) = *step {
                    let sleeper = self.builder.sleeps[sleep as usize].thread;
                    pairs.entry((waker as u32, sleeper)).or_default().0 += 1;
                }
            }
        }
        for sleep in &self.builder.sleeps {
            if let SleepEnd::Wakeup(wakeup) = sleep.end
                && let Some(by) = self.builder.wakeups[wakeup as usize].by
                && let Some((_, answers)) = pairs.get_mut(&(sleep.thread, by))
            {
                *answers += 1;
            }
        }
        pairs.retain(|_, (handovers, answers)| *answers * ANSWERS_OF >= *handovers);
        pairs.into_keys().filter(|(waker, _)| self.numbers[*waker as usize].is_some()).collect()
    }

    /// Adds a recorded thread, unless it is left out.
    fn thread(&mut self, index: u32, thread: &Thread) {
        let Some(number) = self.numbers[index as usize] else { return };
        let entry = self.instructions.len() as u32;
        self.instructions.extend([Instruction::Bind, Instruction::Assume]);
        let mut run = Run { paths: self.silicon.paths, work: 0, owed: 0, taken_off: 0, worked: 0 };
        let forked = thread.forked.filter(|(parent, _)| self.numbers[*parent as usize].is_some());
        if forked.is_none() && !matches!(thread.steps.first(), Some(RawStep::Sleep(_))) {
            // Who runs at the beginning begins with it; a child of a thread that is left out, at its birth.
            let start = self.builder.start.unwrap_or(0);
            let born = thread.forked.map_or(0, |(_, at)| at.saturating_sub(start));
            self.instructions.push(Instruction::Until { at: born, least: 0 });
        }
        let first = self.builder.start.unwrap_or(0);
        let begins = thread.forked.map(|(_, at)| at.saturating_sub(first));
        let mut jobs = Collector::new(start_of(self.builder, thread), begins);
        for raw in &thread.steps {
            let work = match *raw {
                RawStep::Cycles { cpu, cycles } => self.silicon.work_of_cycles(cpu, cycles),
                RawStep::Time { cpu, ns } => self.silicon.work_of_time(cpu, ns),
                _ => 0,
            };
            self.recorded.work += work;
            run.work += work;
            jobs.step(raw, work, self.builder);
            let step = self.step(number, raw);
            if let Some(step) = step {
                run.flush_before(step, &mut self.instructions);
                let at = self.instructions.len() as u32;
                self.instructions.push(step);
                if let RawStep::Sleep(sleep) = *raw {
                    let notes = &self.builder.notes;
                    let moment = notes.moment(sleep, (number, at), self.builder, &self.numbers);
                    self.moments.extend(moment);
                }
            }
            if let RawStep::Sleep(sleep) = raw
                && let Some(handover) = self.handovers.get(sleep)
            {
                // A sleep without end is the end of the code.
                run.flush(&mut self.instructions);
                let at = self.instructions.len() as u32 - u32::from(step.is_some());
                self.code.handovers[*handover as usize].1 = at;
            }
        }
        run.flush(&mut self.instructions);
        self.instructions.push(Instruction::Over);
        self.code.work += run.worked;
        self.recorded.threads[index as usize].jobs = jobs.finish();
        self.recorded.paths_taken_off += run.taken_off;
        let (affinity, policy, clamps) = self.facts(thread);
        self.recorded.forked += u64::from(forked.is_some());
        self.recorded.first_seen += u64::from(forked.is_none());
        let changes = ThreadChanges::default();
        let prio = thread.first_prio;
        self.code.threads.push(RecordedThreadCode { prio, affinity, policy, clamps, changes });
        self.tasks.push(TaskCode {
            name: thread.name.to_string(),
            comm: Some(thread.name.clone()),
            entry,
            later: forked.is_some(),
            // Recordings do not say which threads are of one process, so each is one of its own.
            process: None,
            ..TaskCode::default()
        });
    }

    /// The allowed CPUs, the policy and the clamps that a thread starts with.
    fn facts(&mut self, thread: &Thread) -> (Option<u32>, Option<Policy>, Option<(u16, u16)>) {
        let ThreadFacts { policy, affinity, clamps } = thread.facts;
        let all = CpuMask::first(self.silicon.cpus.len());
        self.recorded.affinities += u64::from(affinity.is_some());
        let bound = affinity.filter(|cpus| !all.is_subset(cpus));
        self.recorded.bound += u64::from(bound.is_some());
        let mut by_name = || {
            let cpu = cpu_in_name(&thread.name).filter(|cpu| usize::from(*cpu) < MAX_CPUS)?;
            self.recorded.pinned += 1;
            Some(CpuMask::of(CpuId(cpu)))
        };
        let cpus = match affinity.filter(|_| self.silicon.same_numbers) {
            Some(_) => bound,
            None => by_name(),
        };
        let suggested = attributes(thread.first_prio, None).policy;
        let policy = policy.filter(|policy| *policy != suggested);
        self.recorded.policies += u64::from(policy.is_some());
        let limits = |clamps: (u16, u16)| clamps != clamps_of(thread.first_prio);
        self.recorded.clamped += u64::from(clamps.is_some_and(limits));
        (cpus.and_then(|cpus| self.mask(cpus)), policy, clamps)
    }

    /// The number of a set of CPUs, `None` of none.
    fn mask(&mut self, cpus: CpuMask) -> Option<u32> {
        if cpus.is_empty() {
            return None;
        }
        let masks = &mut self.code.masks;
        let known = masks.iter().position(|mask| *mask == cpus);
        Some(known.unwrap_or_else(|| {
            masks.push(cpus);
            masks.len() - 1
        }) as u32)
    }

    /// Returns the step that a recorded step becomes, if it is more than work.
    fn step(&mut self, number: u32, raw: &RawStep) -> Option<Instruction> {
        let start = self.builder.start.unwrap_or(0);
        Some(match *raw {
            RawStep::Cycles { .. } | RawStep::Time { .. } => return None,
            RawStep::Wake(wakeup) => Instruction::Post { ticket: self.posts[wakeup as usize]? },
            RawStep::Sleep(sleep) => match self.builder.sleeps[sleep as usize].end {
                SleepEnd::Wakeup(wakeup) => match self.tickets[sleep as usize] {
                    Some(ticket) => {
                        let by_device = self.posts[wakeup as usize].is_none();
                        self.recorded.tied_to_waker += u64::from(!by_device);
                        self.recorded.tied_to_time += u64::from(by_device);
                        self.recorded.by_device += u64::from(by_device);
                        Instruction::Wait { ticket }
                    }
                    None => {
                        self.recorded.tied_to_time += 1;
                        let at = self.builder.wakeups[wakeup as usize].at;
                        let least =
                            answer_ns(&self.builder.sleeps[sleep as usize], at).unwrap_or(0);
                        Instruction::Until { at: at.saturating_sub(start), least }
                    }
                },
                SleepEnd::Unmatched { at, first } => {
                    self.recorded.unmatched += u64::from(!first);
                    Instruction::Until { at: at.saturating_sub(start), least: 0 }
                }
                SleepEnd::Open => {
                    // The last step: behind it a thread sleeps for ever.
                    self.recorded.unended += 1;
                    return None;
                }
            },
            RawStep::Priority(prio) => Instruction::Priority(prio),
            RawStep::Affinity(mask) => {
                let cpus = self.builder.masks[mask as usize];
                Instruction::Affinity(self.mask(cpus).filter(|_| self.silicon.same_numbers)?)
            }
            RawStep::Clamps(min, max) => Instruction::Clamps(min, max),
            RawStep::Clone(child) => {
                Instruction::Clone(ThreadId(self.numbers[child as usize]? + 1))
            }
            RawStep::Exec => {
                self.recorded.executed += 1;
                Instruction::Exec
            }
            RawStep::Exit => Instruction::Exit,
            RawStep::FrameBegin(slice) => Instruction::Clock(frame_register(number, slice)),
            RawStep::FrameEnd(slice) => {
                self.nr_frames[usize::from(slice)] += 1;
                Instruction::Record(u16::from(slice), frame_register(number, slice))
            }
            RawStep::After(sleep) => {
                let handover = *self.handovers.get(&sleep)?;
                self.recorded.handovers += 1;
                Instruction::After(handover)
            }
        })
    }

    fn finish(mut self) -> Recording {
        let latencies = self.builder.latencies.iter();
        let replayed = latencies.filter(|(thread, _)| self.numbers[*thread as usize].is_some());
        self.recorded.waking_latency_ns = replayed.map(|(_, ns)| *ns).collect();
        self.recorded.waking_latency_ns.sort_unstable();
        self.recorded.latency_by_name = self.latency_by_name();
        let (count, span) = (self.tasks.len(), self.code.span);
        let warmup = WARMUP + WARMUP_PER_THREAD * count as Ns;
        let main = self.instructions.len() as u32;
        self.instructions.extend([
            Instruction::Begin(warmup),
            Instruction::StartThreads,
            Instruction::SleepUntil(span),
            Instruction::Finish,
        ]);
        let code = Code {
            instructions: self.instructions,
            start: (0..count as u32).collect(),
            tasks: self.tasks,
            main_name: "replay".into(),
            main,
            work_kind: "recorded",
            first_futex: 1,
            warmup,
            registers: vec![0; count * FRAME_SLICES.len()],
            records: self.nr_frames.to_vec(),
            recording: Some(self.code),
            ..Code::default()
        };
        let fingerprint = fingerprint(&code);
        let (code, recorded) = (Arc::new(code), Arc::new(self.recorded));
        Recording { code, recorded, fingerprint, moments: self.moments.into() }
    }
}

impl Compiler<'_> {
    /// Latencies of the names with the most of them, ascending.
    fn latency_by_name(&self) -> Vec<(Arc<str>, Vec<u32>)> {
        let mut by_name: BTreeMap<Arc<str>, Vec<u32>> = BTreeMap::new();
        for &(thread, ns) in &self.builder.latencies {
            if let Some(number) = self.numbers[thread as usize] {
                let name = self.tasks[number as usize].comm.clone().unwrap_or_default();
                by_name.entry(name).or_default().push(ns);
            }
        }
        let mut by_name: Vec<_> = by_name.into_iter().collect();
        by_name.retain(|(_, latencies)| latencies.len() >= LATENCIES_LEAST);
        by_name.sort_by_key(|(_, latencies)| std::cmp::Reverse(latencies.len()));
        by_name.truncate(LATENCY_NAMES);
        by_name.iter_mut().for_each(|(_, latencies)| latencies.sort_unstable());
        by_name
    }
}

/// When a thread begins its first job.
fn start_of(builder: &Builder, thread: &Thread) -> Ns {
    thread.forked.map_or(builder.start.unwrap_or(0), |(_, at)| at)
}

/// How long after its beginning a sleep is ended by an answer; `None`: by something else.
fn answer_ns(sleep: &Sleep, ended: Ns) -> Option<u32> {
    let ns = ended.checked_sub(sleep.began?)?;
    (ns <= ANSWER_MOST_NS).then_some(ns as u32)
}

/// The run of a thread that is being added up.
struct Run {
    paths: PathCosts,
    work: Work,
    /// Path costs that are still to be taken off.
    owed: Work,
    taken_off: Work,
    /// Work of the run's instructions.
    worked: u128,
}

impl Run {
    fn flush_before(&mut self, step: Instruction, instructions: &mut Vec<Instruction>) {
        self.owed += self.paths.of(&step);
        self.flush(instructions);
    }

    fn flush(&mut self, instructions: &mut Vec<Instruction>) {
        let off = self.work.min(self.owed);
        let work = std::mem::take(&mut self.work) - off;
        self.owed -= off;
        self.taken_off += off;
        if work > 0 {
            instructions.push(Instruction::Work(work));
            self.worked += u128::from(work);
        }
    }
}

/// The CPU that a kernel thread is bound to by its name. Others that end in a number (`rcuop/2`) run anywhere.
fn cpu_in_name(comm: &str) -> Option<u16> {
    let (kind, rest) = comm.split_once('/')?;
    if !["kworker", "ksoftirqd", "watchdog", "cpuhp", "rcuc", "idle_inject"].contains(&kind) {
        return None;
    }
    // kworker/1:2H; an unbound one is kworker/u16:3.
    rest.split(':').next()?.parse().ok()
}

/// The register for the beginning of a thread's frame of that slice.
fn frame_register(number: u32, slice: u8) -> Register {
    Register(number * FRAME_SLICES.len() as u32 + u32::from(slice))
}

/// The recording that code was compiled from.
///
/// # Panics
/// If it is none.
pub(super) fn recording(code: &Code) -> &RecordingCode {
    code.recording.as_ref().expect("a recording is compiled into its code")
}

/// A digest over the text of all that is replayed: names the input. The text has the form of earlier versions, so that a
/// recording keeps its name; the instructions that each thread begins and ends with are no part of it.
fn fingerprint(code: &Code) -> String {
    let mut hash = Fnv1a::new();
    write_text(&mut hash, code).expect("a hash takes everything");
    format!("{hash:016x}")
}

fn write_text(text: &mut Fnv1a, code: &Code) -> std::fmt::Result {
    let of = recording(code);
    // A thread's beginning and end are three instructions.
    let numbered = |number: usize, at: u32| at - 3 * number as u32 - 2;
    let ends = code.tasks.iter().skip(1).map(|task| task.entry).chain([code.main]);
    let ends: Vec<u32> = ends.collect();
    write!(text, "Code {{ threads: [")?;
    for (number, (thread, task)) in of.threads.iter().zip(&code.tasks).enumerate() {
        let RecordedThreadCode { prio, affinity, policy, clamps, changes } = thread;
        let (first, end) = (numbered(number, task.entry + 2), numbered(number, ends[number] - 1));
        write!(
            text,
            "{}ThreadCode {{ name: {:?}, first: {first}, end: {end}, prio: {prio}, affinity: {affinity:?}, policy: {policy:?}, \
             clamps: {clamps:?}, forked: {}, changes: {changes:?} }}",
            if number > 0 { ", " } else { "" },
            task.name,
            task.later,
        )?;
    }
    write!(text, "], steps: [")?;
    let mut separator = "";
    for instruction in &code.instructions[..code.main as usize] {
        match instruction {
            Instruction::Bind | Instruction::Assume | Instruction::Over => continue,
            Instruction::Clock(Register(register)) => {
                write!(text, "{separator}FrameBegin({})", *register as usize % FRAME_SLICES.len())?;
            }
            Instruction::Record(slice, _) => write!(text, "{separator}FrameEnd({slice})")?,
            other => write!(text, "{separator}{other:?}")?,
        }
        separator = ", ";
    }
    let handovers = of.handovers.iter().map(|&(thread, at)| match at {
        u32::MAX => (thread, at),
        at => (thread, numbered(thread as usize, at)),
    });
    write!(
        text,
        "], tickets: {:?}, masks: {:?}, handovers: {:?}, nr_frames: {}, frame_periods: {:?}, interrupts: {:?}, span: {}, \
         warmup: {}, work: {} }}",
        of.tickets,
        of.masks,
        handovers.collect::<Vec<_>>(),
        code.records.iter().sum::<usize>(),
        of.frame_periods,
        of.interrupts,
        of.span,
        code.warmup,
        of.work,
    )?;
    // Recordings without limits keep the digests that they had before limits were read.
    match of.limits.is_empty() {
        true => Ok(()),
        false => write!(text, " limits: {:?}", of.limits),
    }
}
