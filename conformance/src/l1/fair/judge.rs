// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class's decisions in a recording, asked of the [`Twin`].
//!
//! Each is: say what the recording did, ask the twin, compare, and let the twin do what was recorded, so
//! that one wrong answer does not make the next ones wrong.

use std::collections::{BTreeMap, BTreeSet};

use schedtwin_kernel::sched::fair::calc_delta_fair;

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

/// The twin, and what came of the questions.
pub(in crate::l1) struct Fair {
    pub(in crate::l1) twin: Twin,
    pub(in crate::l1) rows: BTreeMap<&'static str, Mechanism>,
    /// By the CPU that does the work.
    asked: [Option<Asked>; NR_CPUS],
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
    /// Who ran when a wakeup was asked about, and its times before that may have ended its protection.
    before_check: [Option<(i32, Virtual)>; NR_CPUS],
    /// Entities that may have been given another slice: the next line shows it.
    changed: BTreeSet<i32>,
}

impl Fair {
    pub(in crate::l1) fn new(settings: FairSettings) -> Fair {
        Fair {
            twin: Twin::new(settings),
            rows: BTreeMap::new(),
            asked: [None; NR_CPUS],
            resched: [false; NR_CPUS],
            waking: [None; NR_CPUS],
            printed: BTreeMap::new(),
            printed_sums: [Sums::default(); NR_CPUS],
            placed: BTreeMap::new(),
            parted: BTreeSet::new(),
            untold: BTreeMap::new(),
            changed: BTreeSet::new(),
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

/// What a pick did.
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

    /// An operation begins.
    pub(in crate::l1) fn fair_begin(
        &mut self,
        r: &Record,
        trace: &Trace,
        cpu: usize,
        operation: Operation,
    ) {
        if cpu >= NR_CPUS || r.cpu >= NR_CPUS {
            return;
        }
        self.fair.asked[r.cpu] = None;
        self.fair.picking[r.cpu] = false;
        let (pid, arrives) = match operation {
            Operation::Wakeup { pid, .. } | Operation::RequeueDelayed { pid } => (pid, false),
            Operation::AttachMigrating { pid } => (pid, true),
            _ => return,
        };
        if !arrives {
            let delayed = matches!(operation, Operation::RequeueDelayed { .. });
            self.sleeper_wakes(r, cpu, pid, delayed);
        }
        let pending = self.fair.resched[cpu];
        let twin = &mut self.fair.twin;
        twin.set_need_resched(cpu, pending);
        if !pending && twin.curr_queued(cpu) && twin.curr(cpu) != Some(pid) && self.driving {
            let preempts = preempts(r, trace, cpu, operation, arrives);
            self.fair.asked[r.cpu] = Some(Asked { cpu, pid, preempts });
        }
        if matches!(operation, Operation::RequeueDelayed { .. }) {
            let times = self.fair.twin.times(pid);
            self.fair.placed.insert(pid, times);
            self.fair.twin.requeue(cpu, pid);
        }
    }

    /// An entity has been enqueued (or requeued) by `by`: is it to run at once?
    pub(in crate::l1) fn fair_arrived(&mut self, r: &Record, cpu: usize, pid: i32) {
        if cpu >= NR_CPUS || r.cpu >= NR_CPUS {
            return;
        }
        let keep = self.keep_misses;
        let twin = &mut self.fair.twin;
        let before = if keep { twin.text(cpu) } else { String::new() };
        let curr = twin.curr(cpu);
        self.fair.before_check[cpu] = curr.and_then(|curr| Some((curr, twin.times(curr)?)));
        twin.wakeup_preempt(cpu, pid);
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
    pub(in crate::l1) fn fair_woken(&mut self, r: &Record, pid: i32, cpu: usize) {
        if cpu >= NR_CPUS || r.cpu >= NR_CPUS {
            return;
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
        self.fair_arrived(r, cpu, pid);
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
            self.fair.twin.dequeue(cpu, pid, why);
            self.fair.placed.remove(&pid);
        }
    }

    /// The pick met a delayed entity: whom?
    pub(in crate::l1) fn fair_finished(&mut self, r: &Record, cpu: usize) -> Option<i32> {
        if cpu >= NR_CPUS {
            return None;
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
        let equal = ours == recorded || checked == Some((pid, recorded));
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
                vruntime = vruntime.wrapping_add(calc_delta_fair(ran, &load));
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

/// What the recording answers: whether a wakeup or arrival on `cpu` makes the running task give way.
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
