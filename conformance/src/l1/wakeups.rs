// SPDX-License-Identifier: GPL-2.0-or-later
//! Where tasks wake when EAS is not asked: `wake_affine` and `select_idle_sibling`, by the product's own code.
//!
//! **What is asked.** The whole of `select_task_rq_fair()` ([`Kernel::select_task_rq_fair`]), on a kernel of its own whose tasks
//! keep what the kernel's keep between wakeups: the recently used CPU and how often they woke another. Its queues get
//! the re-driven averages, and who is idle.
//!
//! **What is known.** Newer recordings print what the function reads (`select`, with the mask of idle CPUs and the scan's
//! allowance) and what it says (`selected`). Where they do not, idleness is our picture of the queues when `sched_waking`
//! is printed, and the answer is where `sched_wakeup` says; then only the workload's tasks are judged, whose affinity
//! the workload tells. The trivial answer is the previous CPU.
//!
//! **Not events:** tasks with one CPU to choose from, delayed tasks (they wake where they are), and wakeups that EAS
//! decides, which have a row of their own. Forks and execs take the slow path.
//!
//! [`Kernel::select_task_rq_fair`]: schedtwin_kernel::Kernel::select_task_rq_fair

use std::collections::BTreeMap;

use schedtwin_kernel::Kernel;
use schedtwin_kernel::sched::CfsRqId;
use schedtwin_kernel::sched::TaskKind;
use schedtwin_kernel::sched::core::WF_TTWU;
use schedtwin_kernel::sched::demand::uclamp::UclampRequest;
use schedtwin_kernel::sched::pelt::SchedAvg;
use schedtwin_types::{CpuId, CpuMask, TaskId};

use super::board::Board;
use super::clamps::Wish;
use crate::ftrace::CPUS_MAX;

/// The flags of a wakeup that the function looks at, and the product knows.
const FLAGS: u32 = 0x1f;

/// A wakeup, as the function sees it.
#[derive(Clone, Debug)]
pub(super) struct Wakeup {
    pub(super) pid: i32,
    /// The executing CPU, and its running task.
    pub(super) this: usize,
    pub(super) waker: i32,
    pub(super) prev: usize,
    pub(super) flags: u32,
    /// The CPUs it may use.
    pub(super) cpus: u64,
    /// CPUs that are idle.
    pub(super) idle: u64,
    pub(super) overutilized: bool,
    /// `nr_running` of the executing CPU.
    pub(super) nr_this: u32,
    pub(super) avg: SchedAvg,
    pub(super) request: UclampRequest,
    /// `load_avg` of the waker.
    pub(super) load_waker: u64,
    /// Trace time, ns.
    pub(super) now: u64,
}

/// The facts that only `select` and `selected` tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    /// `recent_used_cpu`.
    pub(super) used: usize,
    /// `nr_idle_scan` of the executing and of the previous CPU's cache; below 0: none.
    pub(super) scan: [i32; 2],
    /// `has_idle_cores` of these caches; `None`: not printed.
    pub(super) cores: Option<[bool; 2]>,
    /// `wakee_flips` of waker and task, after the waker's has been counted.
    pub(super) flips: [u32; 2],
}

/// A wakeup that has been asked for and not yet been answered: the CPU of ours, and prev.
pub(super) type Open = (usize, usize);

/// The kernel that is asked, and the wakeups under way.
pub(super) struct Wakeups {
    pub(super) board: Board,
    tasks: BTreeMap<i32, TaskId>,
    wishes: BTreeMap<i32, Wish>,
    pub(super) overutilized: bool,
    /// The recording prints what the function reads.
    pub(super) told: bool,
    /// By task.
    pub(super) open: BTreeMap<i32, Open>,
    /// Tasks on a wake list (`ttwu_pending`), and whose.
    pub(super) pending: BTreeMap<i32, usize>,
    /// `nr_running` of each CPU, as printed last.
    pub(super) nr: Vec<u32>,
}

impl Wakeups {
    pub(super) fn new(board: Board, nr_cpus: usize) -> Wakeups {
        Wakeups {
            board,
            tasks: BTreeMap::new(),
            wishes: BTreeMap::new(),
            overutilized: false,
            told: false,
            open: BTreeMap::new(),
            pending: BTreeMap::new(),
            nr: vec![0; nr_cpus],
        }
    }

    pub(super) fn set_wishes(&mut self, wishes: BTreeMap<i32, Wish>) {
        self.wishes = wishes;
    }

    /// The affinity of a task of the workload; `None`: not one of these.
    pub(super) fn affinity(&self, pid: i32, nr_cpus: usize) -> Option<u64> {
        let all = u64::MAX >> (u64::BITS as usize - nr_cpus.clamp(1, CPUS_MAX.min(64)));
        self.wishes.get(&pid).map(|wish| if wish.mask == 0 { all } else { wish.mask & all })
    }

    fn task(&mut self, pid: i32) -> TaskId {
        if pid == 0 {
            return TaskId::IDLE;
        }
        let kernel = &mut self.board.kernel;
        *self.tasks.entry(pid).or_insert_with(|| kernel.new_task(None, TaskKind::User))
    }

    /// A task is created on a CPU.
    pub(super) fn fork(&mut self, parent: i32, child: i32, cpu: usize) {
        let (parent, child) = (self.task(parent), self.task(child));
        let flips =
            if parent.is_idle() { 0 } else { self.board.kernel.inside().tasks[parent].wakee_flips };
        let task = &mut self.board.kernel.inside_mut().tasks[child];
        task.recent_used_cpu = CpuId(cpu as u16);
        task.wakee_flips = flips;
    }

    /// Where ours would wake the task. The board has the queues' averages.
    pub(super) fn ask(&mut self, wakeup: &Wakeup, told: Option<Told>) -> usize {
        let (task, waker) = (self.task(wakeup.pid), self.task(wakeup.waker));
        let (this, prev) = (CpuId(wakeup.this as u16), CpuId(wakeup.prev as u16));
        let kernel = &mut self.board.kernel;
        let inside = kernel.inside_mut();
        *inside.now = (*inside.now).max(wakeup.now);
        *kernel.inside_mut().this_cpu = this;
        kernel.inside_mut().rd.overutilized = wakeup.overutilized;
        for cpu in kernel.inside().device_tree.all_cpus().iter() {
            set_idle(kernel, cpu, wakeup.idle >> cpu.index() & 1 != 0, task);
        }
        kernel.inside_mut().rq[this].curr = waker;
        kernel.inside_mut().rq[this].nr_running = wakeup.nr_this;
        let idle = kernel.idle_cpu(this);
        set_mask(kernel.inside_mut().idle_mask, this, idle);

        let se = kernel.se_of(task);
        kernel.inside_mut().se[se].avg = wakeup.avg;
        kernel.inside_mut().se[se].cfs_rq = CfsRqId::root(prev);
        let waker_se = kernel.se_of(waker);
        if !waker.is_idle() {
            kernel.inside_mut().se[waker_se].avg.load_avg = wakeup.load_waker;
        }
        let allowed = CpuMask::from_cpus(
            kernel
                .inside()
                .device_tree
                .all_cpus()
                .iter()
                .filter(|cpu| wakeup.cpus >> cpu.index() & 1 != 0),
        );
        let t = &mut kernel.inside_mut().tasks[task];
        t.cpu = prev;
        t.cpus_mask = allowed;
        t.nr_cpus_allowed = allowed.weight();
        t.uclamp_req = wakeup.request;
        if let Some(Told { used, scan, cores, flips }) = told {
            t.recent_used_cpu = CpuId(used as u16);
            t.wakee_flips = flips[1];
            for (number, cpu) in [this, prev].into_iter().enumerate() {
                let Some(shared) = kernel.inside().topology.sd_balance_shared[cpu.index()] else {
                    continue;
                };
                let shared = &mut kernel.inside_mut().topology.shared[shared];
                if let Ok(scan) = u32::try_from(scan[number]) {
                    shared.nr_idle_scan = scan;
                }
                if let Some(cores) = cores {
                    shared.has_idle_cores = cores[number];
                }
            }
            // The waker's flips are those after this wakeup has been counted.
            let jiffies = kernel.jiffies();
            if waker.is_idle() {
                let idle = &mut kernel.inside_mut().cpus[this].wakees;
                (idle.last_wakee, idle.wakee_flips, idle.wakee_flip_decay_ts) =
                    (task, flips[0], jiffies);
            } else {
                let waker = &mut kernel.inside_mut().tasks[waker];
                (waker.last_wakee, waker.wakee_flips, waker.wakee_flip_decay_ts) =
                    (task, flips[0], jiffies);
            }
        }
        let cpu = kernel.select_task_rq_fair(task, prev, WF_TTWU | wakeup.flags & FLAGS);
        kernel.clear_facts();
        cpu.index()
    }
}

/// Makes a CPU idle, or busy with a task that is not looked at.
fn set_idle(kernel: &mut Kernel, cpu: CpuId, idle: bool, somebody: TaskId) {
    let rq = &mut kernel.inside_mut().rq[cpu];
    rq.curr = if idle { TaskId::IDLE } else { somebody };
    rq.nr_running = !idle as u32;
    set_mask(kernel.inside_mut().idle_mask, cpu, idle);
}

fn set_mask(mask: &mut CpuMask, cpu: CpuId, on: bool) {
    if on {
        mask.insert(cpu);
    } else {
        mask.remove(cpu);
    }
}
