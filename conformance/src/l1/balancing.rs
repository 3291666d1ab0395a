// SPDX-License-Identifier: GPL-2.0-or-later
//! Balance passes: who makes them, from which group and from which queue they would pull, by the product's own code.
//!
//! **What is asked.** `should_we_balance()`, `sched_balance_find_src_group()` and `sched_balance_find_src_rq()`
//! ([`Kernel::find_busiest`]), on a kernel of its own whose queues and groups are set to what the pass has printed when it
//! began (`balance`). What the kernel found stands in the lines `src_group` and `src_rq` after it; no line
//! `src_group` says that another CPU is to balance.
//!
//! **Trivial answers:** this CPU balances; no group is busier; of a group, its first CPU.
//!
//! **Not told, and so not the same:** the capacity of the local group, which a pass of an idle or busy CPU brings up to
//! date after it has been printed; what other CPUs write in the meantime. Machines whose CPUs differ in capacity print
//! nothing of misfits, so their passes are not judged.
//!
//! [`Kernel::find_busiest`]: schedtwin_kernel::Kernel::find_busiest

use schedtwin_kernel::sched::CfsRqId;
use schedtwin_kernel::sched::fair::balance::CpuIdleType;
use schedtwin_kernel::sched::pelt::SchedAvg;
use schedtwin_types::{CpuId, TaskId};

use super::board::{Board, CpuSignals};
use super::judge::Judge;
use super::mechanism::{Difference, What};
use super::redrive::Redrive;
use crate::ftrace::{Event, Queues, Record, Trace};

/// Lines of a pass on its CPU between its beginning and what it finds.
const LINES_OF_A_PASS: usize = 12;

/// The group and the queue from which a pass would pull: the group by the first CPU; `None`:
/// another CPU is to balance.
type Found = Option<(Option<usize>, Option<usize>)>;

/// Returns the source that the kernel found. The CPU that executes a pass prints all of it.
fn recorded(r: &Record, trace: &Trace) -> Found {
    let mut found = None;
    for next in trace.ahead(r.cpu).take(LINES_OF_A_PASS) {
        match next.event {
            Event::SrcGroup { first: None } if found.is_none() => return Some((None, None)),
            Event::SrcGroup { first } if found.is_none() => found = Some((first, None)),
            Event::SrcRq { cpu } => return found.map(|(group, _)| (group, cpu)),
            Event::Balance { .. } | Event::SchedSwitch { .. } | Event::CpuIdle { .. } => break,
            _ => {}
        }
    }
    found
}

/// A pass, as the line that begins it tells.
struct Pass<'a> {
    cpu: usize,
    dom: usize,
    idle: CpuIdleType,
    failed: u32,
    /// CPUs that are idle.
    idle_cpus: u64,
    queues: &'a Queues,
}

/// Sets the queues and groups of a kernel, and asks it. The outer `None`: it has no such domain.
fn ask(board: &mut Board, pass: &Pass<'_>) -> Option<Found> {
    let cpu = CpuId(pass.cpu as u16);
    let sd = board.kernel.inside().topology.domains_of(cpu).nth(pass.dom)?;
    for (number, queue) in pass.queues.of.iter().enumerate() {
        let Some(queue) = queue else { continue };
        let at = CpuId(number as u16);
        let cfs = SchedAvg {
            load_avg: queue.load.into(),
            runnable_avg: queue.runnable.into(),
            util_avg: queue.util.into(),
            util_est: queue.util_est.into(),
            ..SchedAvg::default()
        };
        board.set(number, &CpuSignals::of_fair(cfs, queue.capacity.into()));
        let idle = pass.idle_cpus >> number & 1 != 0;
        let inside = board.kernel.inside_mut();
        inside.rq[at].nr_running = queue.nr.into();
        inside.rq[at].curr = if idle { TaskId::IDLE } else { board.task };
        if idle {
            inside.idle_mask.insert(at);
        } else {
            inside.idle_mask.remove(at);
        }
        let cfs = &mut inside.cfs[CfsRqId::root(at)];
        cfs.h_nr_queued = queue.queued.into();
        cfs.h_nr_runnable = queue.told_runnable.unwrap_or(queue.queued).into();
    }
    let inside = board.kernel.inside_mut();
    inside.topology[sd].nr_balance_failed = pass.failed;
    let groups: Vec<_> = inside.topology.groups_of(sd).collect();
    for (group, told) in groups.into_iter().zip(pass.queues.groups.iter().flatten()) {
        let sgc = inside.topology[group].sgc;
        let sgc = &mut inside.topology.capacities[sgc];
        (sgc.capacity, sgc.imbalance) = (told.0.into(), told.1);
    }
    let found = board.kernel.find_busiest(cpu, sd, pass.idle);
    let number = |cpu: Option<CpuId>| cpu.map(|cpu| cpu.index());
    Some(found.map(|(group, queue)| (number(group), number(queue))))
}

impl Redrive {
    /// `balance`: asks what the pass would pull from, and compares with what follows.
    pub(super) fn judge_balance(&mut self, judge: &mut Judge, r: &Record, trace: &Trace) {
        let Event::Balance { cpu, dom, kind, failed, idle, ref queues } = r.event else { return };
        let all = 0..self.machine.nr_cpus();
        let named = queues.of.iter().enumerate().filter(|(_, queue)| queue.is_some());
        if self.machine.is_asymmetric() {
            return;
        }
        if !all.contains(&cpu) || named.clone().any(|(number, _)| !all.contains(&number)) {
            judge.table.row(What::BalanceWho).skip();
            return;
        }
        // 6.12's order of `enum cpu_idle_type`.
        let idle_type = match kind {
            0 => CpuIdleType::NotIdle,
            1 => CpuIdleType::Idle,
            _ => CpuIdleType::NewlyIdle,
        };
        let pass = Pass { cpu, dom, idle: idle_type, failed, idle_cpus: idle, queues };
        let Some(ours) = ask(&mut judge.balancing, &pass) else {
            judge.table.row(What::BalanceWho).skip();
            return;
        };
        let theirs = recorded(r, trace);
        let mut difference = None;
        if ours != theirs {
            difference = Some(self.why(judge, (r, trace), all, false));
            self.miss(r, || format!("balance: {ours:?} for {theirs:?}, {:?}", r.event));
        }
        let why = || difference.unwrap_or(Difference::ModelWrong);
        let equal = ours.is_some() == theirs.is_some();
        judge.table.row(What::BalanceWho).count(equal, theirs.is_some(), why);
        let Some((group, queue)) = theirs else { return };
        let our_group = ours.and_then(|(group, _)| group);
        judge.table.row(What::BalanceGroup).count(our_group == group, group.is_none(), why);
        if group.is_some() {
            let our_queue = ours.and_then(|(_, queue)| queue);
            judge.table.row(What::BalanceQueue).count(our_queue == queue, queue == group, why);
        }
    }
}
