// SPDX-License-Identifier: GPL-2.0-or-later
//! Softirqs: what an interrupt leaves to be done right after it, and `ksoftirqd`, which does it when there is too much.
//!
//! 1. A handler raises a softirq of its CPU. At the end of the interrupt all raised ones run, in the order of their numbers.
//! 2. What they raise themselves runs in another round, if no task waits for the CPU, two milliseconds are not over and
//!    it is not the eleventh round.
//! 3. Else `ksoftirqd/N` does it, a fair task like others.
//!
//! ```text
//!  interrupt ──► TIMER ─ wakes a task ─ raises RCU ──► need_resched: ksoftirqd/N ──► RCU
//! ```
//!
//! Kernel: 6.12.95 kernel/softirq.c `handle_softirqs`, `run_ksoftirqd`.
//! Differences: SCHED is kept by the scheduler. The two milliseconds are counted by the clock, not in jiffies. In
//! 6.1 interrupts leave softirqs to a `ksoftirqd` that is runnable; the model's 6.1 does not. A kernel without timers of the wheel
//! has no `ksoftirqd`, and needs none: it raises SCHED only.

use crate::Kernel;
use crate::sched::TaskKind;
use crate::system::{SourceId, ThreadClass};
use crate::time::timer::initial_jiffies;
use schedtwin_types::{CpuId, CpuMask, Ns, TaskId, TaskState, WakeSource};

/// `MAX_SOFTIRQ_TIME`.
const MAX_SOFTIRQ_TIME: Ns = 2_000_000;
/// `MAX_SOFTIRQ_RESTART`.
const MAX_SOFTIRQ_RESTART: u32 = 10;

/// A softirq beside SCHED, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Softirq {
    /// Timers of the wheel.
    Timer = 1,
    /// Packets that came.
    NetRx = 3,
    /// Completed requests of block devices.
    Block = 4,
    /// Tasklets.
    Tasklet = 6,
    /// RCU on CPUs that are not offloaded.
    Rcu = 9,
}

impl Softirq {
    const BEFORE_SCHED: [Softirq; 4] =
        [Softirq::Timer, Softirq::NetRx, Softirq::Block, Softirq::Tasklet];
}

/// The raised softirqs of each CPU.
#[derive(Clone, Debug)]
pub(crate) struct Softirqs {
    /// A bit for each number.
    pending: Vec<u16>,
    /// The sources whose handlers a CPU's softirqs run.
    sources: Vec<Vec<(Softirq, SourceId)>>,
    /// `ksoftirqd/N`; none without timers of the wheel.
    ksoftirqd: Vec<TaskId>,
}

impl Softirqs {
    pub(crate) fn new(nr_cpus: usize) -> Softirqs {
        Softirqs {
            pending: vec![0; nr_cpus],
            sources: vec![Vec::new(); nr_cpus],
            ksoftirqd: Vec::new(),
        }
    }

    /// `local_softirq_pending()`, but for SCHED.
    #[inline(always)]
    pub(crate) fn is_pending(&self, cpu: CpuId) -> bool {
        self.pending[cpu.index()] != 0
    }

    /// `raise_softirq()`.
    #[inline]
    pub(crate) fn raise(&mut self, cpu: CpuId, softirq: Softirq) {
        self.pending[cpu.index()] |= 1 << softirq as u8;
    }

    /// Raises the softirq that runs the handler of a source.
    pub(crate) fn raise_source(&mut self, cpu: CpuId, softirq: Softirq, source: SourceId) {
        self.raise(cpu, softirq);
        self.sources[cpu.index()].push((softirq, source));
    }

    /// Makes space for `count` sources on each CPU.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.sources.iter_mut().for_each(|sources| sources.reserve(count));
    }
}

impl Kernel {
    /// Makes the timer wheel, before its first timer, and the threads of the softirq that runs it.
    pub(crate) fn init_timers(&mut self) {
        let at_start = initial_jiffies(self.cx.hz());
        self.time.init_timers(at_start - self.cx.initial_jiffies, &self.cx);
        self.spawn_ksoftirqd();
    }

    /// Makes `ksoftirqd/N`, unless there are some.
    fn spawn_ksoftirqd(&mut self) {
        if !self.softirqs.ksoftirqd.is_empty() {
            return;
        }
        for c in 0..self.sched.nr_cpus() {
            let cpu = CpuId(c as u16);
            let task = self.new_task(None, TaskKind::Ksoftirqd { cpu });
            self.kthread_setup(task, ThreadClass::Nice(0), cpu, CpuMask::of(cpu));
            self.softirqs.ksoftirqd.push(task);
        }
    }

    /// `handle_softirqs()` at the end of an interrupt.
    pub(crate) fn do_softirq(&mut self, cpu: CpuId) {
        let end = self.cx.local_clock() + MAX_SOFTIRQ_TIME;
        for _ in 0..MAX_SOFTIRQ_RESTART {
            self.softirq_round(cpu);
            if !self.softirqs.is_pending(cpu) {
                return;
            }
            if self.cx.local_clock() >= end || self.sched.rq(cpu).need_resched {
                break;
            }
        }
        if let Some(task) = self.softirqs.ksoftirqd.get(cpu.index()).copied() {
            self.wake_up_kthread(task, WakeSource::Kernel);
        }
    }

    /// Runs what is raised, each once.
    fn softirq_round(&mut self, cpu: CpuId) {
        let pending = std::mem::take(&mut self.softirqs.pending[cpu.index()]);
        let is_pending = |softirq: Softirq| pending >> softirq as u8 & 1 != 0;
        for softirq in Softirq::BEFORE_SCHED {
            if !is_pending(softirq) {
                continue;
            }
            match softirq {
                Softirq::Timer => self.run_timer_softirq(cpu),
                Softirq::Block => {
                    self.blk_done_softirq(cpu);
                    self.run_softirq_sources(cpu, softirq);
                }
                _ => self.run_softirq_sources(cpu, softirq),
            }
        }
        if self.sched.take_sched_softirq(cpu) {
            self.sched_balance_softirq(cpu);
        }
        if is_pending(Softirq::Rcu) {
            self.rcu_core(cpu);
        }
    }

    fn run_softirq_sources(&mut self, cpu: CpuId, softirq: Softirq) {
        // What is raised meanwhile is for the next round.
        let mut left = self.softirqs.sources[cpu.index()].len();
        let mut at = 0;
        while left > 0 {
            left -= 1;
            if self.softirqs.sources[cpu.index()][at].0 == softirq {
                let (_, source) = self.softirqs.sources[cpu.index()].remove(at);
                self.source_runs(source);
            } else {
                at += 1;
            }
        }
    }

    /// `run_ksoftirqd()`, on the running thread.
    pub(crate) fn run_ksoftirqd(&mut self) {
        let cpu = self.cx.this_cpu;
        if self.softirqs.is_pending(cpu) {
            let cost = self.cx.platform.device_tree.path_costs.interrupt;
            self.sched.charge(cost, &mut self.cx);
            self.softirq_round(cpu);
        }
        let task = self.sched.rq(cpu).curr;
        if self.softirqs.is_pending(cpu) {
            if self.sched.rq(cpu).need_resched {
                self.schedule(true);
            }
            return;
        }
        self.sched.set_task_state(task, TaskState::Interruptible);
        self.schedule(false);
    }
}
