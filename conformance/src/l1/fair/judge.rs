// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class's decisions in a recording, asked of the [`Twin`].
//!
//! Each is: say what the recording did, ask the twin, compare, and let the twin do what was recorded, so
//! that one wrong answer does not make the next ones wrong.

use std::collections::{BTreeMap, BTreeSet};

use super::super::mechanism::{Difference, Mechanism};
use super::super::operation::Operation;
use super::super::redrive::Redrive;
use super::super::state::scale_load_down;
use super::sleepers::Untold;
use super::twin::{Dequeue, Enqueue, FairSettings, NR_CPUS, Sums, Twin, Virtual};
use crate::ftrace::{Event, Record, RqAt, Trace};

/// Rows of the table.
pub const PICK: &str = "pick";
/// Does a wakee (or an arrival) make the running task give way?
pub const WAKEUP: &str = "wakeup preemption";
/// Does a tick?
pub const TICK: &str = "tick preemption";
/// Does a sleeper stay queued?
pub const DELAY: &str = "delayed dequeue";
/// Where does an enqueued entity start?
pub const PLACE: &str = "EEVDF, placement";
/// `vruntime`, `deadline`, `vlag`, slice at every line.
pub const TIMES: &str = "EEVDF, virtual times";
/// `zero_vruntime`, `avg_vruntime`, `avg_load` at every line.
pub const SUMS: &str = "EEVDF, queue sums";

/// A wakeup or arrival at a queue whose running task is fair and has not been told to give way.
#[derive(Clone, Copy, Debug)]
struct Asked {
    cpu: usize,
    pid: i32,
    /// The recording's answer.
    preempts: bool,
}

/// An operation on an entity of a CPU.
#[derive(Clone, Copy, Debug)]
struct Begun {
    cpu: usize,
    pid: i32,
    /// A delayed task is woken; else somebody leaves.
    requeue: bool,
}

/// The task that has arrived at a queue, and whether it was just forked.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    cpu: usize,
    pid: i32,
    new: bool,
}

/// The twin, and what came of the questions.
pub(in crate::l1) struct Fair {
    pub(in crate::l1) twin: Twin,
    pub(in crate::l1) rows: BTreeMap<&'static str, Mechanism>,
    /// By the CPU that does the work.
    asked: [Option<Asked>; NR_CPUS],
    /// By the CPU that does it: what an operation does next, once the running task has been charged.
    begun: [Option<Begun>; NR_CPUS],
    /// By the CPU that does the work: who has arrived, and is asked about after the queue has been printed.
    arrived: [Option<Arrived>; NR_CPUS],
    /// By our answers the picks of a wakeup have finished these delayed dequeues, CPU and task; no line has told it yet.
    finished: Vec<(usize, i32)>,
    /// Told, and out of our queue already.
    gone: BTreeSet<i32>,
    /// `TIF_NEED_RESCHED` as recorded.
    resched: [bool; NR_CPUS],
    /// By the CPU that wakes: whom, and whether who runs there had been told to give way before.
    waking: [Option<(i32, bool)>; NR_CPUS],
    printed: BTreeMap<i32, Virtual>,
    printed_sums: [Sums; NR_CPUS],
    /// Enqueued, with these times before, and not printed since.
    placed: BTreeMap<i32, Option<Virtual>>,
    /// Entities whose times have differed: told once.
    parted: BTreeSet<i32>,
    pub(super) untold: BTreeMap<i32, Untold>,
    /// Queues are printed before each question.
    pub(super) lists_queues: bool,
    /// By printing CPU: whose queue was printed last, and whether for a pick since its last operation or switch.
    listed: [usize; NR_CPUS],
    pub(super) picking: [bool; NR_CPUS],
    /// The task that ran when a wakeup was asked about, and its times before that may have ended
    /// its protection.
    before_check: [Option<(i32, Virtual)>; NR_CPUS],
    /// Entities taken over while they ran: how long they are protected is still to be taken over.
    protection: BTreeSet<i32>,
    /// Entities that may have been given another slice: the next line shows it.
    changed: BTreeSet<i32>,
}

impl Fair {
    pub(in crate::l1) fn new(settings: FairSettings) -> Fair {
        Fair {
            twin: Twin::new(settings),
            rows: BTreeMap::new(),
            asked: [None; NR_CPUS],
            begun: [None; NR_CPUS],
            arrived: [None; NR_CPUS],
            finished: Vec::new(),
            gone: BTreeSet::new(),
            resched: [false; NR_CPUS],
            waking: [None; NR_CPUS],
            printed: BTreeMap::new(),
            printed_sums: [Sums::default(); NR_CPUS],
            placed: BTreeMap::new(),
            parted: BTreeSet::new(),
            untold: BTreeMap::new(),
            changed: BTreeSet::new(),
            protection: BTreeSet::new(),
            lists_queues: false,
            listed: [0; NR_CPUS],
            picking: [false; NR_CPUS],
            before_check: [None; NR_CPUS],
        }
    }

    pub(super) fn row(&mut self, name: &'static str) -> &mut Mechanism {
        self.rows.entry(name).or_default()
    }
}

/// The effect of a pick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Picked {
    Task(i32),
    /// A delayed one, whose dequeue it finished.
    Delayed,
}

impl Redrive {
    /// The counts by mechanism.
    pub fn fair_rows(&self) -> &BTreeMap<&'static str, Mechanism> {
        &self.fair.rows
    }

    /// Before a line is dealt with.
    pub(in crate::l1) fn fair_before(&mut self, r: &Record) {
        if let Event::Reschedule { cpu } | Event::Preempt { cpu, now: true, .. } = r.event
            && cpu < NR_CPUS
            && cpu != r.cpu
        {
            self.fair.resched[cpu] = true;
        }
        if r.cpu >= NR_CPUS {
            return;
        }
        if !matches!(r.event, Event::Queue { .. } | Event::Ent { .. })
            && let Some(arrived) = self.fair.arrived[r.cpu].take()
        {
            self.fair_check(r, arrived);
        }
        let switches =
            matches!(r.event, Event::SchedSwitch { .. } | Event::Rq { at: RqAt::Switch, .. });
        if self.fair.resched[r.cpu] && !r.need_resched && !switches {
            self.picked_again(r);
        }
        if !switches {
            self.fair.resched[r.cpu] = r.need_resched;
        }
    }

    /// After a line has been dealt with: was it the last one before the running task was picked again?
    pub(in crate::l1) fn fair_after(&mut self, r: &Record, trace: &Trace) {
        if r.cpu >= NR_CPUS || !self.fair.resched[r.cpu] {
            return;
        }
        let Some(next) = trace.ahead(r.cpu).next() else { return };
        let switches =
            matches!(next.event, Event::SchedSwitch { .. } | Event::Rq { at: RqAt::Switch, .. });
        if !next.need_resched && !switches {
            self.picked_again(r);
        }
    }

    fn picked_again(&mut self, r: &Record) {
        self.fair.resched[r.cpu] = false;
        if let Some(curr) = self.fair.twin.curr(r.cpu)
            && self.fair.twin.curr_queued(r.cpu)
        {
            self.judge_pick(r, r.cpu, Picked::Task(curr));
        }
        self.fair.twin.set_need_resched(r.cpu, false);
    }

    fn judge_pick(&mut self, r: &Record, cpu: usize, recorded: Picked) -> Option<i32> {
        let twin = &mut self.fair.twin;
        let ours = twin.pick(cpu);
        if twin.nr_queued(cpu) < 2 || !self.driving {
            return ours;
        }
        if !twin.sure(cpu) {
            self.fair.row(PICK).skip();
            return ours;
        }
        let equal = match (recorded, ours) {
            (Picked::Task(pid), ours) => ours == Some(pid),
            (Picked::Delayed, Some(ours)) => twin.delayed(ours),
            (Picked::Delayed, None) => false,
        };
        let trivial = twin.curr(cpu).is_some_and(|curr| recorded == Picked::Task(curr));
        if !equal {
            let queue = twin.text(cpu);
            self.miss(r, || format!("fair: {PICK} {cpu}: {ours:?} for {recorded:?}{queue}"));
        }
        self.fair.row(PICK).count(equal, trivial, || Difference::ModelWrong);
        ours
    }

    /// The running task is charged; in its tick that may end its turn.
    pub(in crate::l1) fn fair_charge(
        &mut self,
        r: &Record,
        trace: &Trace,
        cpu: usize,
        pid: i32,
        clock_task: u64,
    ) {
        if cpu >= NR_CPUS || r.cpu >= NR_CPUS {
            return;
        }
        let keep = self.keep_misses;
        self.fair.before_check[cpu] = None;
        let twin = &mut self.fair.twin;
        let tick = r.cpu == cpu && r.hardirq && self.cpus[cpu].tick;
        let in_operation = self.cpus[r.cpu].active.is_some_and(|active| !active.done);
        if !tick || in_operation || twin.curr(cpu) != Some(pid) || r.need_resched {
            twin.charge(cpu, pid, clock_task);
            self.fair_goes_on(r.cpu, cpu);
            let asked = r.cpu != cpu || r.hardirq || r.softirq || r.need_resched;
            if !in_operation && !asked && self.fair_yields(trace, cpu) {
                self.fair.twin.yields(cpu);
            }
            return;
        }
        let (others, sure) = (twin.nr_queued(cpu) >= 2, twin.sure(cpu));
        let before = if keep { twin.text(cpu) } else { String::new() };
        twin.set_need_resched(cpu, false);
        twin.charge(cpu, pid, clock_task);
        let ours = twin.need_resched(cpu);
        if !others {
            return;
        }
        // The tick sets its timer again at its end.
        let mut over = false;
        let handler = trace.ahead(cpu).take_while(|next| {
            let other_work = matches!(
                next.event,
                Event::HrtimerExpire { .. } | Event::SchedWaking { .. } | Event::UeCfs { .. }
            );
            let goes_on = next.hardirq && !over && !other_work;
            over = matches!(next.event, Event::HrtimerStart { tick: true });
            goes_on
        });
        let recorded = handler.into_iter().any(|next| next.need_resched);
        if !sure {
            return self.fair.row(TICK).skip();
        }
        if ours != recorded {
            let queue = twin.text(cpu);
            self.miss(r, || {
                format!(
                    "fair: {TICK} {cpu}: {ours} for {recorded}\n  before{before}\n  after{queue}"
                )
            });
        }
        self.fair.twin.set_need_resched(cpu, recorded);
        self.fair.row(TICK).count(ours == recorded, !recorded, || Difference::ModelWrong);
    }

    /// The running task has been charged in an operation: what it does then.
    fn fair_goes_on(&mut self, by: usize, cpu: usize) {
        let Some(Begun { pid, requeue, .. }) = self.fair.begun[by].take_if(|b| b.cpu == cpu) else {
            return;
        };
        if requeue {
            let times = self.fair.twin.times(pid);
            self.fair.placed.insert(pid, times);
            self.fair.twin.requeue(cpu, pid);
        } else {
            self.fair.twin.begin_dequeue(cpu, pid);
        }
    }

    /// An operation begins; `charges`: it will charge the running task.
    pub(in crate::l1) fn fair_begin(
        &mut self,
        r: &Record,
        trace: &Trace,
        cpu: usize,
        operation: Operation,
        charges: bool,
    ) {
        if cpu >= NR_CPUS || r.cpu >= NR_CPUS {
            return;
        }
        self.fair.asked[r.cpu] = None;
        self.fair.picking[r.cpu] = false;
        let fixes_lag = self.fair.twin.fixes_lag();
        let requeue = matches!(operation, Operation::RequeueDelayed { .. });
        self.fair.begun[r.cpu] = match operation {
            Operation::Wakeup { .. }
            | Operation::AttachMigrating { .. }
            | Operation::Restore { .. } => None,
            _ => operation.pid().filter(|_| requeue || fixes_lag).map(|pid| Begun {
                cpu,
                pid,
                requeue,
            }),
        };
        if !requeue && !charges {
            self.fair_goes_on(r.cpu, cpu);
        }
        let (pid, arrives) = match operation {
            Operation::Wakeup { pid, .. } | Operation::RequeueDelayed { pid } => (pid, false),
            Operation::AttachMigrating { pid } => (pid, true),
            _ => return,
        };
        if !arrives {
            self.sleeper_wakes(r, cpu, pid, requeue);
        }
        let pending = self.fair.resched[cpu];
        let twin = &mut self.fair.twin;
        twin.set_need_resched(cpu, pending);
        if !pending && twin.curr_queued(cpu) && twin.curr(cpu) != Some(pid) && self.driving {
            let preempts = preempts(r, trace, cpu, operation, arrives);
            self.fair.asked[r.cpu] = Some(Asked { cpu, pid, preempts });
        }
        // 6.12 places it before it charges the running task.
        if requeue && !(fixes_lag && charges) {
            self.fair_goes_on(r.cpu, cpu);
        }
    }

    /// An entity has been enqueued (or requeued) by `by`: is it to run at once? The queue may be printed before it is asked.
    pub(in crate::l1) fn fair_arrived(
        &mut self,
        r: &Record,
        trace: &Trace,
        cpu: usize,
        pid: i32,
        new: bool,
    ) {
        if cpu >= NR_CPUS || r.cpu >= NR_CPUS {
            return;
        }
        let arrived = Arrived { cpu, pid, new };
        let next = trace.ahead(r.cpu).next().map(|next| &next.event);
        if matches!(next, Some(Event::Queue { cpu: c, pick: false, .. }) if *c == cpu) {
            self.fair.arrived[r.cpu] = Some(arrived);
        } else {
            self.fair_check(r, arrived);
        }
    }

    fn fair_check(&mut self, r: &Record, Arrived { cpu, pid, new }: Arrived) {
        let keep = self.keep_misses;
        let twin = &mut self.fair.twin;
        let before = if keep { twin.text(cpu) } else { String::new() };
        let curr = twin.curr(cpu);
        self.fair.before_check[cpu] = curr.and_then(|curr| Some((curr, twin.times(curr)?)));
        let finished = twin.wakeup_preempt(cpu, pid, new);
        self.fair.finished.extend(finished.into_iter().map(|pid| (cpu, pid)));
        let twin = &self.fair.twin;
        let asked = self.fair.asked[r.cpu].take();
        let Some(asked) = asked.filter(|asked| asked.cpu == cpu && asked.pid == pid) else {
            return;
        };
        let Asked { preempts, .. } = asked;
        if !twin.sure(cpu) {
            return self.fair.row(WAKEUP).skip();
        }
        let ours = twin.need_resched(cpu);
        if ours != preempts {
            self.miss(r, || {
                format!("fair: {WAKEUP} {pid} on {cpu}: {ours} for {preempts}{before}")
            });
        }
        self.fair.twin.set_need_resched(cpu, preempts);
        self.fair.row(WAKEUP).count(ours == preempts, !preempts, || Difference::ModelWrong);
    }

    /// A wakeup begins.
    pub(in crate::l1) fn fair_waking(&mut self, r: &Record, pid: i32, cpu: usize) {
        if cpu < NR_CPUS && r.cpu < NR_CPUS {
            let pending = self.fair.resched[cpu];
            self.fair.twin.set_need_resched(cpu, pending);
            self.fair.waking[r.cpu] = Some((pid, pending));
        }
    }

    /// A wakeup ends. One that enqueued nothing found its task queued, on the way to a sleep that it was kept from:
    /// that, too, asks whether it is to run at once.
    pub(in crate::l1) fn fair_woken(&mut self, r: &Record, trace: &Trace, pid: i32, cpu: usize) {
        if cpu >= NR_CPUS || r.cpu >= NR_CPUS {
            return;
        }
        // Whose dequeue was finished by our answer, but not by the kernel's.
        for (_, pid) in self.fair.finished.extract_if(.., |(of, _)| *of == cpu).collect::<Vec<_>>()
        {
            self.miss(r, || format!("fair: {PICK} {cpu}: a wakeup makes {pid} leave"));
            self.fair.row(PICK).count(false, true, || Difference::ModelWrong);
            self.fair.twin.lose(pid);
        }
        let waking = self.fair.waking[r.cpu].take();
        let active = self.cpus[r.cpu].active;
        let enqueued = active.is_some_and(|active| active.found.operation.pid() == Some(pid));
        let twin = &self.fair.twin;
        if enqueued || !twin.queued(cpu, pid) || twin.delayed(pid) || twin.curr(cpu) == Some(pid) {
            return;
        }
        let asks = waking == Some((pid, false)) && twin.curr_queued(cpu) && self.driving;
        if asks {
            let preempts = self.fair.resched[cpu];
            self.fair.asked[r.cpu] = Some(Asked { cpu, pid, preempts });
        }
        self.fair_arrived(r, trace, cpu, pid, false);
    }

    /// Places an entity that is enqueued.
    pub(in crate::l1) fn fair_enqueue(&mut self, cpu: usize, pid: i32, why: Enqueue) {
        if cpu < NR_CPUS {
            let twin = &mut self.fair.twin;
            let times = twin.times(pid);
            self.fair.sleeper_placed(cpu, pid);
            self.fair.twin.enqueue(cpu, pid, why);
            self.fair.placed.insert(pid, times);
            if why == Enqueue::Restore {
                self.fair.changed.insert(pid);
            }
            if why == Enqueue::Restore && self.cpus[cpu].curr == pid {
                self.fair.twin.install(cpu, pid);
            }
        }
    }

    /// An entity leaves.
    pub(in crate::l1) fn fair_dequeue(&mut self, cpu: usize, pid: i32, why: Dequeue) {
        if cpu < NR_CPUS {
            if !self.fair.gone.remove(&pid) {
                self.fair.twin.dequeue(cpu, pid, why);
            }
            self.fair.placed.remove(&pid);
        }
    }

    /// The pick met a delayed entity: whom?
    pub(in crate::l1) fn fair_finished(&mut self, r: &Record, cpu: usize) -> Option<i32> {
        if cpu >= NR_CPUS {
            return None;
        }
        if let Some(at) = self.fair.finished.iter().position(|(of, _)| *of == cpu) {
            // A pick of a wakeup's has met it, ours too.
            let (_, pid) = self.fair.finished.remove(at);
            if self.fair.twin.knows(pid) {
                self.fair.row(PICK).count(true, false, || Difference::ModelWrong);
            } else {
                self.fair.row(PICK).skip();
            }
            self.fair.gone.insert(pid);
            return Some(pid);
        }
        let ours = self.judge_pick(r, cpu, Picked::Delayed);
        let twin = &self.fair.twin;
        let found = ours.filter(|pid| twin.delayed(*pid)).or_else(|| twin.delayed_ones(cpu).next());
        if let Some(untold) = found.and_then(|pid| self.fair.untold.get_mut(&pid)) {
            untold.left = true;
        }
        found
    }

    /// A switch; `next`: the fair task that comes, if it is one.
    pub(in crate::l1) fn fair_switch(&mut self, r: &Record, next: Option<i32>, clock_task: u64) {
        if r.cpu >= NR_CPUS {
            return;
        }
        if let Some(pid) = next {
            self.fair.protection.remove(&pid);
            self.fair.sleeper_installed(pid);
            self.judge_pick(r, r.cpu, Picked::Task(pid));
        }
        self.fair.twin.switch(r.cpu, next, clock_task);
        self.fair.picking[r.cpu] = false;
        self.fair.before_check[r.cpu] = None;
        self.fair.resched[r.cpu] = false;
    }

    /// A line of an entity.
    pub(in crate::l1) fn fair_times(&mut self, r: &Record) {
        let (pid, cpu, on, w, recorded) = match r.event {
            Event::PeltSe { pid, cpu, on, w, v, d, vlag, sl, .. } => {
                (pid, cpu, on, w, Virtual { v, d, vlag, slice: sl })
            }
            Event::Ent { who, v, d, vlag, sl, w, .. } if r.cpu < NR_CPUS => {
                (who, self.fair.listed[r.cpu], true, w, Virtual { v, d, vlag, slice: sl })
            }
            _ => return,
        };
        if pid <= 0 {
            return;
        }
        if let Event::Ent { vp: Some(vprot), .. } = r.event
            && self.fair.protection.remove(&pid)
        {
            self.fair.twin.protect(pid, vprot);
        }
        let before = self.fair.printed.insert(pid, recorded);
        let twin = &mut self.fair.twin;
        if twin.weight(pid).is_some_and(|weight| weight != scale_load_down(w)) {
            // Its weight has changed, and no line has told when.
            twin.lose(pid);
        }
        let ours = twin.times(pid);
        let Some(ours) = ours.filter(|_| self.driving) else {
            if cpu < NR_CPUS {
                twin.adopt(cpu, pid, recorded, scale_load_down(w), on);
                match r.event {
                    Event::Ent { vp: Some(vprot), .. } => twin.protect(pid, vprot),
                    _ => _ = self.fair.protection.insert(pid),
                }
                if self.fair.changed.remove(&pid) {
                    twin.set_slice(pid, recorded.slice);
                }
            }
            self.fair.placed.remove(&pid);
            if self.driving {
                self.fair.row(TIMES).skip();
            } else {
                // Its weight and slice hold.
                twin.forget(pid);
            }
            return;
        };
        let mut ours = ours;
        if ours.slice != recorded.slice && self.fair.changed.remove(&pid) {
            // sched_setattr() may also have given it another slice.
            twin.set_slice(pid, recorded.slice);
            ours.slice = recorded.slice;
        }
        let checked = self.fair.before_check.get(cpu).copied().flatten();
        // A line of a dequeue may come after it has begun.
        let leaving = |twin: &mut Twin| {
            cpu < NR_CPUS && twin.fixes_lag() && twin.times_in_dequeue(cpu, pid) == Some(recorded)
        };
        let equal =
            ours == recorded || checked == Some((pid, recorded)) || leaving(&mut self.fair.twin);
        if self.cpus[r.cpu].active.is_none_or(|active| active.done) {
            self.sleeper_seen(r, (cpu, pid), on, recorded.vlag, equal);
        }
        let why = || Difference::ModelWrong;
        self.fair.row(TIMES).count(equal, before == Some(recorded), why);
        if on && let Some(placed) = self.fair.placed.remove(&pid) {
            let trivial =
                placed.is_some_and(|placed| (placed.v, placed.d) == (recorded.v, recorded.d));
            self.fair.row(PLACE).count(equal, trivial, why);
        }
        if !equal && self.fair.parted.insert(pid) {
            self.miss(r, || format!("fair: {TIMES} {pid}: {ours:?} for {recorded:?}"));
        }
    }

    /// Whether the running task, which nobody has asked to, gives way although it goes on wanting to run. The next line
    /// of it, if queues are printed, has it where it has not run to; else there is only the switch.
    fn fair_yields(&self, trace: &Trace, cpu: usize) -> bool {
        let twin = &self.fair.twin;
        let Some(curr) = twin.curr(cpu) else { return false };
        let Some((mut vruntime, mut ran_to, load)) = twin.running(curr) else { return false };
        let lists_queues = self.fair.lists_queues;
        let gives_way = trace.ahead(cpu).find_map(|next| match next.event {
            Event::Ent { who, v, .. } if who == curr => Some(v != vruntime),
            Event::SchedSwitch { prev_pid, prev_state, .. } => {
                Some(!lists_queues && prev_pid == curr && prev_state == b'R')
            }
            Event::Run { pid, ct, .. } if pid == curr => {
                let ran = ct.saturating_sub(ran_to);
                vruntime = vruntime.wrapping_add(twin.virtual_time(ran, &load));
                ran_to = ct;
                None
            }
            _ if lists_queues => None,
            // The kernel's own line of the charge, and those of the switch.
            Event::Other
            | Event::PeltSe { .. }
            | Event::PeltCfs { .. }
            | Event::PeltOther { .. }
            | Event::Rq { at: RqAt::Switch, .. } => None,
            _ => Some(false),
        });
        gives_way == Some(true)
    }

    /// A queue and its entities are printed, before a question is put to it.
    pub(in crate::l1) fn fair_queue(&mut self, r: &Record, trace: &Trace) {
        let Event::Queue { cpu, root, pick, av, al, zv, .. } = r.event else { return };
        if cpu >= NR_CPUS || r.cpu >= NR_CPUS {
            return;
        }
        self.fair.lists_queues = true;
        self.fair.listed[r.cpu] = cpu;
        self.fair.picking[r.cpu] |= pick;
        if !root {
            self.fair.twin.give_up();
        }
        let twin = &mut self.fair.twin;
        let sleeps = self.cpus[cpu].active.is_some_and(|active| !active.done);
        if pick && r.cpu == cpu && !r.need_resched && !sleeps && twin.curr_queued(cpu) {
            // Nobody asked for this pick, and no charge has shown it.
            if self.fair_yields(trace, cpu) {
                self.fair.twin.yields(cpu);
            }
        }
        self.judge_sums(r, cpu, Sums { zero: zv, sum: av, load: al }, &[(None, None)]);
    }

    /// A line of a queue.
    pub(in crate::l1) fn fair_sums(&mut self, r: &Record, trace: &Trace) {
        let Event::PeltCfs { cpu, av, al, zv, .. } = r.event else { return };
        if cpu >= NR_CPUS {
            return;
        }
        let recorded = Sums { zero: zv, sum: av, load: al };
        let twin = &self.fair.twin;
        // Between pick and switch, who ran may be back in the queue, and who comes may have left it.
        let prev = twin.curr(cpu).filter(|_| r.cpu == cpu);
        let mut ahead = trace.ahead(cpu);
        let next = ahead.find_map(|next| match next.event {
            Event::SchedSwitch { next_pid, .. } => Some(Some(next_pid)),
            Event::PeltSe { .. }
            | Event::PeltCfs { .. }
            | Event::PeltOther { .. }
            | Event::Sugov { .. }
            | Event::Resolve { .. }
            | Event::CpuFrequency { .. }
            | Event::Rq { .. } => None,
            _ => Some(None),
        });
        let next = next.flatten().filter(|_| r.cpu == cpu);
        let stages = [(None, None), (prev, None), (prev, next)];
        let stages = &stages[..if next.is_some() { 3 } else { 1 }];
        self.judge_sums(r, cpu, recorded, stages);
    }

    /// `stages`: entities that may already be back in the queue or have left it.
    fn judge_sums(
        &mut self,
        r: &Record,
        cpu: usize,
        recorded: Sums,
        stages: &[(Option<i32>, Option<i32>)],
    ) {
        if !self.driving {
            return;
        }
        let before = std::mem::replace(&mut self.fair.printed_sums[cpu], recorded);
        let twin = &self.fair.twin;
        let Some(now) = twin.sums(cpu, None, None) else {
            self.fair.row(SUMS).skip();
            self.fair.twin.adopt_base(cpu, recorded.zero);
            return;
        };
        let equal =
            stages.iter().any(|(with, without)| twin.sums(cpu, *with, *without) == Some(recorded));
        if !equal {
            let text = twin.text(cpu);
            self.miss(r, || format!("fair: {SUMS} {cpu}: {now:?} for {recorded:?}{text}"));
        }
        self.fair.row(SUMS).count(equal, before == recorded, || Difference::ModelWrong);
    }
}

/// Returns the recording's answer: whether a wakeup or arrival on `cpu` makes the running task give
/// way.
fn preempts(r: &Record, trace: &Trace, cpu: usize, operation: Operation, arrives: bool) -> bool {
    let mut last = false;
    let mut told = r.cpu == cpu && r.need_resched;
    for next in trace.ahead(r.cpu) {
        if let Event::Preempt { cpu: c, pid, now } = next.event
            && (c, Some(pid)) == (cpu, operation.pid())
        {
            return now;
        }
        if next.cpu == cpu {
            told |= next.need_resched;
        } else if let Event::Reschedule { cpu: c } = next.event {
            told |= c == cpu;
        }
        match next.event {
            // The question is put after this line of a new one, and before that of another.
            Event::SchedWakeup { new: true, .. } => last = true,
            Event::SchedWakeup { pid, .. } if Some(pid) == operation.pid() => break,
            Event::Nr { cpu: c, ch, .. } if arrives && c == cpu && ch > 0 => last = true,
            Event::SchedSwitch { .. } => break,
            // The queue may be printed with the question.
            Event::Queue { .. } | Event::Ent { .. } => {}
            _ if last => break,
            _ => {}
        }
    }
    told
}
