// SPDX-License-Identifier: GPL-2.0-or-later
//! Workqueues: works, the pools that they wait in, and the kworkers that do them.
//!
//! **Idea.** A work needs a thread only while it runs, so works share threads. A pool keeps just as many awake as are
//! needed to have one running.
//!
//! **Terms.** *Bound pool*: of one CPU, whose workers never leave it; one with nice 0 and one with nice −20. *Unbound
//! pool*: its workers may run anywhere; the scheduler places them like other tasks. `nr_running`: the workers of a bound
//! pool that do works and do not sleep. Those of an unbound pool do not count.
//!
//! **Algorithm.**
//! 1. A work goes to the pool of the CPU that queues it, or that was named. If it waits already, nothing happens.
//! 2. If the pool has works and `nr_running` is 0, the worker that went idle last is woken (`kick_pool`).
//! 3. A worker takes the works one after the other, as long as it is the only running one. With each work it kicks the
//!    pool again, which has an effect in unbound pools only.
//! 4. If nothing is left, it goes to the head of the idle ones and sleeps.
//!
//! ```text
//!  queue_work A ─ wake ─► kworker/2:1  [ A ][ B ]           B is queued while A runs: nobody else is woken
//!  unbound:   A ─ wake ─► kworker/u8:0 [ A      ]
//!             B ─ wake ─► kworker/u8:1     [ B  ]           each work has a worker
//! ```
//!
//! Kernel: 6.12.95 kernel/workqueue.c `__queue_work`, `kick_pool`, `worker_thread`, `process_one_work`.
//! Differences: workers are made at boot, two in a bound pool and eight in an unbound one, and none ends; if all
//! of an unbound pool are busy, works wait, where Linux makes another worker. No work sleeps, so a bound pool never has
//! two running ones. No CPU_INTENSIVE, no rescuers, no BH pools, no strict affinity scopes; one unbound pool for all CPUs,
//! where 6.6 and later have one for each last-level cache to start workers in.

use crate::Kernel;
use crate::sched::TaskKind;
use crate::system::{SourceId, ThreadClass};
use crate::work::vmstat;
use schedtwin_types::{CpuId, CpuMask, TaskId, TaskState, WakeSource, Work};
use std::collections::VecDeque;

/// Workers of a bound pool.
const BOUND_WORKERS: usize = 2;
/// Workers of an unbound pool.
const UNBOUND_WORKERS: usize = 8;
/// `HIGHPRI_NICE_LEVEL`.
const HIGHPRI_NICE_LEVEL: i8 = -20;

/// The queue that a work goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// A per-CPU queue (`system_wq`).
    PerCpu {
        /// `WQ_HIGHPRI`.
        high: bool,
    },
    /// `WQ_UNBOUND`.
    Unbound {
        /// `WQ_HIGHPRI`.
        high: bool,
    },
}

/// A work (`struct work_struct`): its function, and what that is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkStruct {
    /// A source of the system's description.
    Source(SourceId),
    /// `vmstat_shepherd`.
    VmstatShepherd,
    /// `vmstat_update` of a CPU.
    VmstatUpdate(CpuId),
    /// `crng_reseed`.
    CrngReseed,
}

/// `struct worker_pool`.
#[derive(Clone, Debug)]
struct WorkerPool {
    /// Its CPU; `None`: unbound.
    cpu: Option<CpuId>,
    high: bool,
    worklist: VecDeque<WorkStruct>,
    /// The idle workers, in the order in which they went idle.
    idle: Vec<usize>,
    nr_running: u32,
}

/// `struct worker`.
#[derive(Clone, Debug)]
struct Worker {
    task: TaskId,
    pool: usize,
    /// Its number in its pool.
    id: usize,
    current: Option<WorkStruct>,
    /// It is among the idle ones, perhaps woken already.
    idle: bool,
}

impl WorkStruct {
    /// The queue of a delayed work (`delayed_work.wq`).
    fn queue(self) -> Queue {
        match self {
            WorkStruct::VmstatShepherd | WorkStruct::VmstatUpdate(_) => vmstat::QUEUE,
            WorkStruct::CrngReseed => crate::random::QUEUE,
            WorkStruct::Source(_) => unreachable!("a source has a timer of its own"),
        }
    }
}

/// All pools and workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workqueues {
    pools: Vec<WorkerPool>,
    workers: Vec<Worker>,
}

impl Workqueues {
    fn pool(&self, queue: Queue, cpu: CpuId) -> usize {
        let wanted = match queue {
            Queue::PerCpu { high } => (Some(cpu), high),
            Queue::Unbound { high } => (None, high),
        };
        let found = self.pools.iter().position(|pool| (pool.cpu, pool.high) == wanted);
        found.expect("pools are made for all queues that are used")
    }

    /// The name of a worker: `kworker/2:0`, `kworker/2:1H`, `kworker/u8:3`.
    pub(crate) fn name(&self, worker: usize, nr_cpus: usize) -> String {
        let Worker { pool, id, .. } = self.workers[worker];
        let WorkerPool { cpu, high, .. } = self.pools[pool];
        let high = if high { "H" } else { "" };
        match cpu {
            Some(cpu) => format!("kworker/{cpu}:{id}{high}"),
            None => format!("kworker/u{}:{id}{high}", 2 * nr_cpus),
        }
    }

    /// Asserts that no work is forgotten.
    pub(crate) fn verify(&self, is_awake: impl Fn(TaskId) -> bool) {
        for (index, pool) in self.pools.iter().enumerate() {
            let running = self.workers.iter().filter(|w| w.pool == index && !w.idle).count();
            if pool.cpu.is_some() {
                assert_eq!(running as u32, pool.nr_running, "pool {index}: running workers");
            }
            let on_its_way = pool.idle.iter().any(|w| is_awake(self.workers[*w].task));
            let served = pool.worklist.is_empty() || running > 0 || on_its_way;
            assert!(served, "pool {index}: works wait and nobody is woken");
        }
    }
}

impl Kernel {
    /// Makes the pools of a queue with their workers, unless there are some.
    pub(crate) fn workqueue_init(&mut self, queue: Queue, nr_works: usize) {
        let nr_cpus = self.sched.nr_cpus();
        let (cpus, high, count): (Vec<Option<CpuId>>, bool, usize) = match queue {
            Queue::PerCpu { high } => {
                ((0..nr_cpus).map(|c| Some(CpuId(c as u16))).collect(), high, BOUND_WORKERS)
            }
            Queue::Unbound { high } => (vec![None], high, UNBOUND_WORKERS),
        };
        for cpu in cpus {
            if self.workqueues.pools.iter().any(|pool| (pool.cpu, pool.high) == (cpu, high)) {
                continue;
            }
            let pool = self.workqueues.pools.len();
            let worklist = VecDeque::with_capacity(nr_works);
            let idle = Vec::with_capacity(count);
            self.workqueues.pools.push(WorkerPool { cpu, high, worklist, idle, nr_running: 0 });
            for id in 0..count {
                let worker = self.workqueues.workers.len();
                let bound = cpu.is_some();
                let kind = TaskKind::Kworker { worker: worker as u16, bound };
                let task = self.new_task(None, kind);
                let all = self.cx.platform.device_tree.all_cpus();
                let mask = cpu.map_or(all, CpuMask::of);
                let nice = if high { HIGHPRI_NICE_LEVEL } else { 0 };
                self.kthread_setup(task, ThreadClass::Nice(nice), cpu.unwrap_or(CpuId(0)), mask);
                self.workqueues.workers.push(Worker { task, pool, id, current: None, idle: true });
                self.workqueues.pools[pool].idle.push(worker);
            }
        }
    }

    /// The workers that there are were made on CPU 0, where the kernel boots, and have slept since, but for those of CPU 0
    /// itself, which have run often.
    pub(crate) fn kworkers_were_born(&mut self) {
        for worker in &self.workqueues.workers {
            if self.workqueues.pools[worker.pool].cpu != Some(CpuId(0)) {
                self.sched.slept_since_birth(worker.task, CpuId(0));
            }
        }
    }

    /// `__queue_work()` of a work that does not wait yet, for the pool of `cpu` if that is a bound one.
    pub(crate) fn queue_work_on(&mut self, work: WorkStruct, queue: Queue, cpu: CpuId) {
        let mut pool = self.workqueues.pool(queue, cpu);
        // The same work never runs twice at once.
        let doing = self.workqueues.workers.iter().find(|w| w.current == Some(work));
        if let Some(worker) = doing {
            pool = worker.pool;
        }
        self.workqueues.pools[pool].worklist.push_back(work);
        self.kick_pool(pool);
    }

    /// `delayed_work_timer_fn()`.
    pub(crate) fn delayed_work_timer_fn(&mut self, work: WorkStruct) {
        self.queue_work_on(work, work.queue(), self.cx.this_cpu);
    }

    /// A work of the kernel's own begins: it costs `cost`, and takes time whatever the machine says.
    pub(crate) fn charge_work(&mut self, cost: Work) {
        self.sched.charge(cost, &mut self.cx);
        self.cx.debt = self.cx.debt.max(1);
    }

    /// `kick_pool()`.
    fn kick_pool(&mut self, pool: usize) {
        let WorkerPool { worklist, idle, nr_running, .. } = &self.workqueues.pools[pool];
        if worklist.is_empty() || *nr_running > 0 {
            return;
        }
        if let Some(worker) = idle.last().copied() {
            let task = self.workqueues.workers[worker].task;
            self.wake_up_kthread(task, WakeSource::Kernel);
        }
    }

    /// `worker_thread()`: the running worker has been switched to, or has done its work.
    pub(crate) fn worker_thread(&mut self, worker: usize) {
        let cpu = self.cx.this_cpu;
        let pool = self.workqueues.workers[worker].pool;
        if let Some(work) = self.workqueues.workers[worker].current.take() {
            self.work_done(work);
            if self.sched.rq(cpu).need_resched {
                self.schedule(true);
                return;
            }
        } else if std::mem::take(&mut self.workqueues.workers[worker].idle) {
            let of = &mut self.workqueues.pools[pool];
            of.idle.retain(|idle| *idle != worker);
            if of.cpu.is_some() {
                of.nr_running += 1;
            }
        }
        // keep_working()
        let of = &mut self.workqueues.pools[pool];
        let next = if of.nr_running <= 1 { of.worklist.pop_front() } else { None };
        if let Some(work) = next {
            self.workqueues.workers[worker].current = Some(work);
            self.work_starts(work);
            self.kick_pool(pool);
            return;
        }
        let of = &mut self.workqueues.pools[pool];
        if of.cpu.is_some() {
            of.nr_running -= 1;
        }
        of.idle.push(worker);
        let Worker { task, ref mut idle, .. } = self.workqueues.workers[worker];
        *idle = true;
        self.sched.set_task_state(task, TaskState::Interruptible);
        self.schedule(false);
    }
}
