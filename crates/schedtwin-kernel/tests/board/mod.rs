// SPDX-License-Identifier: GPL-2.0-or-later
//! A board for tests of the governors, the RT class and the fair server: it hands a kernel its
//! interrupts, lets tasks work and keeps all facts.
//!
//! Work takes its time on every CPU at every frequency (time is what these tests are about), idle states
//! are entered and left at once, interrupts arrive when they are sent, and paths are free except
//! [`IRQ_NS`] per interrupt, so that CPUs do not act at the same nanosecond for ever.

use schedtwin_kernel::config::Config;
use schedtwin_kernel::device_tree::{DeviceTree, DtDomain, DtIdleState, PathCosts};
use schedtwin_kernel::{Activity, Kernel};
use schedtwin_types::{
    CpuId, CpuMask, Fact, IpiKind, IrqLine, IrqLines, Mode, NEVER, Ns, Policy, ProcessId,
    SchedAttr, Syscall, TaskId, ThreadId,
};
use std::collections::BTreeMap;

/// A millisecond.
pub const MS: Ns = 1_000_000;
/// What an interrupt costs.
pub const IRQ_NS: Ns = 1_000;

/// What a task does, over and over from `Again` on.
#[derive(Clone, Debug)]
pub enum Do {
    /// Computes.
    Run(Ns),
    /// Calls the kernel.
    Call(Syscall),
    /// Starts a task with a program of its own.
    Start(Vec<Do>),
    /// Goes back to this place of the program.
    Again(usize),
}

/// A `SCHED_FIFO` priority for oneself.
pub fn fifo(rt_priority: u8) -> Do {
    let attr = SchedAttr { policy: Policy::Fifo, rt_priority, ..SchedAttr::default() };
    Do::Call(Syscall::SchedSetattr(attr))
}

/// Stays on one CPU.
pub fn pin(cpu: u16) -> Do {
    Do::Call(Syscall::SchedSetaffinity { mask: CpuMask::of(CpuId(cpu)) })
}

/// Sleeps.
pub fn sleep(duration: Ns) -> Do {
    Do::Call(Syscall::Nanosleep { duration })
}

/// A device tree of these domains with two idle states; all CPUs share a cache.
pub fn machine(domains: &[DtDomain]) -> DeviceTree {
    DeviceTree {
        idle_tables: vec![vec![DtIdleState::new(1_000, 1_000), DtIdleState::new(200_000, 2 * MS)]],
        path_costs: PathCosts { constant_time: true, interrupt: IRQ_NS, ..PathCosts::default() },
        coherence: None,
        ..DeviceTree::of_domains(domains)
    }
}

/// The same without fast switch: the driver's call takes so long, asleep or spinning.
#[allow(dead_code, reason = "not every test that uses this board has a slow driver")]
pub fn slow(mut device_tree: DeviceTree, driver_latency: Ns, driver_sleeps: bool) -> DeviceTree {
    for policy in &mut device_tree.policies {
        policy.fast_switch = false;
        policy.driver_latency = driver_latency;
        policy.driver_sleeps = driver_sleeps;
    }
    device_tree
}

/// Equal CPUs that share a frequency.
pub fn uniform(count: u16) -> DeviceTree {
    machine(&[(count, 1024, &[(500_000, 100_000), (1_000_000, 300_000), (2_000_000, 900_000)])])
}

struct Program {
    steps: Vec<Do>,
    at: usize,
    /// Work left of the current `Run`.
    left: Option<Ns>,
}

/// The board.
pub struct Board {
    pub kernel: Kernel,
    pub now: Ns,
    pub facts: Vec<Fact>,
    programs: BTreeMap<TaskId, Program>,
    /// Per CPU: since when its task works.
    since: Vec<Ns>,
    /// Per CPU: kernel time until then.
    masked_until: Vec<Ns>,
    /// Kernel threads that wait for hardware, spinning.
    busy_until: BTreeMap<TaskId, Ns>,
}

impl Board {
    /// Boots; `first` runs from the end of the first tick on.
    pub fn new(device_tree: DeviceTree, config: Config, first: Vec<Do>) -> Board {
        let nr_cpus = device_tree.cpus.len();
        let mut kernel = Kernel::boot(device_tree, config);
        let tick = kernel.inside().config.tick_nsec();
        let task = kernel.boot_thread(tick + 10_000);
        let program = Program { steps: first, at: 0, left: None };
        let programs = BTreeMap::from([(task, program)]);
        let (since, masked_until) = (vec![0; nr_cpus], vec![0; nr_cpus]);
        let busy_until = BTreeMap::new();
        Board { kernel, now: 0, facts: Vec::new(), programs, since, masked_until, busy_until }
    }

    fn lines(&self, cpu: CpuId, until: Ns) -> IrqLines {
        let wires = self.kernel.hardware().wires(cpu);
        let mut lines = IrqLines::default();
        if wires.clock_event_at <= until {
            lines.insert(IrqLine::ClockEvent);
        }
        for kind in IpiKind::ALL {
            if wires.ipi_at[kind as usize] <= until {
                lines.insert(IrqLine::ipi(kind));
            }
        }
        if self.device_at(cpu) <= until {
            lines.insert(IrqLine::CpufreqDriver);
        }
        lines
    }

    /// When frequency drivers that are waited for interrupt a CPU: always CPU 0.
    fn device_at(&self, cpu: CpuId) -> Ns {
        let threads = self.kernel.inside().policies.iter().filter_map(|p| p.kthread.as_ref());
        let at = threads.filter(|_| cpu == CpuId(0)).filter_map(|thread| thread.interrupt_at());
        at.min().unwrap_or(NEVER)
    }

    /// When a CPU does something next, and whether it is an interrupt.
    fn next_of(&self, cpu: CpuId) -> (Ns, bool) {
        let wires = self.kernel.hardware().wires(cpu);
        let free = self.masked_until[cpu.index()];
        let timer = wires.clock_event_at.min(self.device_at(cpu));
        let interrupt = wires.ipi_at.iter().copied().fold(timer, Ns::min);
        let interrupt = if interrupt == NEVER { NEVER } else { interrupt.max(free) };
        let own = match wires.activity {
            Activity::IdleLoop => free,
            Activity::Idle { .. } => NEVER,
            Activity::Poll { until } => free.max(until),
            Activity::Task(task) => match self.programs.get(&task) {
                Some(p) => free.max(self.since[cpu.index()]) + p.left.unwrap_or(0),
                None => free.max(self.busy_until.get(&task).copied().unwrap_or(0)),
            },
        };
        if interrupt <= own { (interrupt, true) } else { (own, false) }
    }

    /// Runs until `end`.
    pub fn run_until(&mut self, end: Ns) {
        for _ in 0..2_000_000 {
            let cpus = self.kernel.inside().rq.ids();
            let ((at, interrupt), cpu) =
                cpus.map(|c| (self.next_of(c), c)).min_by_key(|((at, _), c)| (*at, c.0)).unwrap();
            if at > end {
                self.now = end;
                return;
            }
            self.now = at;
            self.step(cpu, interrupt);
            self.kernel.verify();
        }
        panic!("the kernel goes round in circles at {}", self.now);
    }

    fn account(&mut self, cpu: CpuId) {
        let since = self.since[cpu.index()].max(self.masked_until[cpu.index()]);
        if let Activity::Task(task) = self.kernel.hardware().wires(cpu).activity
            && let Some(Program { left: Some(left), .. }) = self.programs.get_mut(&task)
        {
            *left -= self.now.saturating_sub(since).min(*left);
        }
        self.since[cpu.index()] = self.now;
    }

    fn step(&mut self, cpu: CpuId, interrupt: bool) {
        self.account(cpu);
        if interrupt {
            let lines = self.lines(cpu, self.now);
            match self.kernel.hardware().wires(cpu).activity {
                Activity::Idle { .. } => self.kernel.idle_exit(cpu, self.now, lines),
                _ => self.kernel.interrupt(cpu, self.now, lines, Mode::User),
            }
        } else {
            match self.kernel.hardware().wires(cpu).activity {
                Activity::IdleLoop => self.kernel.idle_enter(cpu, self.now),
                Activity::Task(task) if self.programs.contains_key(&task) => {
                    self.work_done(cpu, task)
                }
                Activity::Task(task) => {
                    let until = self.kernel.kthread(cpu, self.now);
                    self.busy_until.insert(task, until);
                }
                Activity::Poll { .. } => self.kernel.poll_end(cpu, self.now),
                Activity::Idle { .. } => unreachable!("a sleeping CPU does nothing"),
            }
        }
        for cpu in self.kernel.take_dirty().iter() {
            // An entry's debt begins where it was entered; others have none of it.
            if cpu == *self.kernel.inside().this_cpu {
                self.masked_until[cpu.index()] = self.now + self.kernel.hardware().wires(cpu).debt;
                self.since[cpu.index()] = self.masked_until[cpu.index()];
            }
        }
        self.facts.extend_from_slice(self.kernel.facts());
        self.kernel.clear_facts();
    }

    /// The task's next step.
    fn work_done(&mut self, cpu: CpuId, task: TaskId) {
        let p = self.programs.get_mut(&task).expect("a task with a program");
        p.left = None;
        let Some(step) = p.steps.get(p.at).cloned() else {
            self.programs.remove(&task);
            return self.kernel.exit(cpu, self.now);
        };
        p.at += 1;
        match step {
            Do::Run(work) => p.left = Some(work),
            Do::Again(to) => p.at = to,
            Do::Call(call) => {
                self.kernel.syscall(cpu, self.now, call);
            }
            Do::Start(steps) => {
                let call = Syscall::Clone { thread: ThreadId(0), process: ProcessId(0) };
                let child =
                    self.kernel.syscall(cpu, self.now, call).child.expect("a new task").task;
                self.programs.insert(child, Program { steps, at: 0, left: None });
            }
        }
    }

    /// Time that each task had a CPU, in `from..to`, by task number.
    pub fn cpu_time(&self, from: Ns, to: Ns) -> BTreeMap<u32, Ns> {
        use schedtwin_types::FactKind;
        let mut times = BTreeMap::new();
        let mut runs: BTreeMap<u16, (TaskId, Ns)> = BTreeMap::new();
        let mut end = |(task, since): (TaskId, Ns), at: Ns| {
            let (a, b) = (since.clamp(from, to), at.clamp(from, to));
            *times.entry(task.0).or_insert(0) += b - a;
        };
        for fact in &self.facts {
            if let FactKind::Switch { next, .. } = fact.kind
                && let Some(run) = runs.insert(fact.cpu.0, (next, fact.at))
            {
                end(run, fact.at);
            }
        }
        for run in runs.into_values() {
            end(run, self.now);
        }
        times
    }
}
