// SPDX-License-Identifier: GPL-2.0-or-later
//! The work of a system beside its workload: which timers, works, threads and devices it has, and what each does.
//!
//! A [`SystemDescription`] lists *sources*. A source has a trigger (a timer of the wheel, an hrtimer, a device's interrupt, or another
//! source), a handler (a function, a softirq, a work, a thread), the work that a run takes, and what it triggers when it is
//! done. Mechanisms are those of the kernel: this file only says who asks for them.
//!
//! ```text
//!  trigger            handler                          done
//!  wheel timer ──┐    function: in its context  ──┐    trigger others
//!  hrtimer     ──┼──► softirq: raised           ──┼──► call_rcu()
//!  device      ──┤    work: queued              ──┤    arm the timer again
//!  a source    ──┘    thread: woken             ──┘
//! ```
//!
//! Differences: a run's work is drawn from four quantiles, linearly between them. A thread sleeps only between its runs.
//! Which part of a work is kernel paths that the twin charges itself (wakeups, switches) is not known, so short runs are a
//! few microseconds too long.

pub use crate::rcu::RcuDescription;
use crate::sched::{Class, TaskKind};
pub use crate::softirq::Softirq;
use crate::time::hrtimer::TimerKind;
use crate::time::timer::wheel::TimerId;
use crate::time::timer::{TimerFlags, TimerFunction};
pub use crate::work::workqueue::Queue;
use crate::work::workqueue::WorkStruct;
use crate::{Context, Kernel};
use schedtwin_types::draw::{Draws, from_quantiles, in_range};
use schedtwin_types::{CpuId, CpuMask, Ns, TaskId, TaskState, WakeSource, Work};

/// A source of a booted kernel, by its number: one for each CPU that it is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceId(pub u16);

/// The work of a run: its 10th, 50th, 90th and 99th percentile, in the unit of path costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunWork(pub [Work; 4]);

impl RunWork {
    /// A number drawn from the distribution: linear between the quantiles, flat beyond them.
    pub fn draw(&self, word: u64) -> Work {
        from_quantiles(self.0, word)
    }
}

/// The event that makes a source run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A timer of the wheel, armed again when the run is over.
    Timer {
        /// From the end of a run to the next, ns; whole jiffies are taken.
        delay: Ns,
        /// It wakes no CPU.
        deferrable: bool,
        /// It stays on its CPU.
        pinned: bool,
        /// `round_jiffies_relative()`.
        rounded: bool,
    },
    /// An hrtimer of its CPU, armed again for the next period when it expires.
    Hrtimer {
        /// ns.
        period: Ns,
    },
    /// A device's interrupt, which comes from outside ([`Kernel::source_interrupt`]).
    Interrupt,
    /// Another source, which names this one in its `then`.
    Source,
}

/// The context in which a run happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// A function in the trigger's context.
    Function,
    /// A softirq of the CPU.
    Softirq(Softirq),
    /// A work.
    Work(Queue),
    /// A thread of its own.
    Thread {
        /// Nice value, or a priority of SCHED_FIFO.
        class: ThreadClass,
        /// It may run on its source's CPU only.
        bound: bool,
    },
    /// `cpu_stop_queue_work()`: the stopper of the CPU.
    Stopper,
}

/// The scheduling class of a source's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadClass {
    /// Fair.
    Nice(i8),
    /// SCHED_FIFO with this priority.
    Fifo(i32),
}

/// A source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceDescription {
    /// Its name; of a thread, the thread's.
    pub name: String,
    /// The event that makes it run.
    pub trigger: Trigger,
    /// The context of a run.
    pub handler: Handler,
    /// The work of a run.
    pub work: RunWork,
    /// Callbacks that a run hands to RCU.
    pub rcu_callbacks: u32,
    /// The sources that a run triggers, by their places in the list.
    pub then: Vec<usize>,
    /// One for each of these CPUs; empty: one, which begins on a CPU of `starts_on`.
    pub each: CpuMask,
    /// Where a single one begins.
    pub starts_on: CpuId,
}

/// A system: what it does beside its workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemDescription {
    /// Its sources.
    pub sources: Vec<SourceDescription>,
    /// RCU; `None`: nobody waits for grace periods.
    pub rcu: Option<RcuDescription>,
}

/// A source of a booted kernel.
#[derive(Clone, Debug)]
struct Source {
    /// Its place in the description.
    kind: usize,
    /// The CPU that it belongs to, if it is one of several.
    cpu: Option<CpuId>,
    timer: Option<TimerId>,
    thread: Option<TaskId>,
    /// Runs that its work or thread owes; a work owes one at most.
    owes: u32,
    /// Its thread is in a run.
    runs: bool,
    draws: Draws,
    nr_runs: u64,
}

/// The sources of a booted kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct System {
    kinds: Vec<SourceDescription>,
    sources: Vec<Source>,
    /// Per kind: its first source.
    first: Vec<usize>,
    /// The work that the running kernel thread does before its entry is due again.
    kthread_work: Work,
    /// Devices whose interrupts are handled in the entry that follows.
    interrupts: Vec<(SourceId, CpuId)>,
}

impl System {
    fn kind(&self, source: SourceId) -> &SourceDescription {
        &self.kinds[self.sources[usize::from(source.0)].kind]
    }

    fn at(&mut self, source: SourceId) -> &mut Source {
        &mut self.sources[usize::from(source.0)]
    }

    /// The source of a kind that belongs to `cpu`, or the only one.
    fn source_of(&self, kind: usize, cpu: CpuId) -> SourceId {
        let each = &self.kinds[kind].each;
        // A CPU that has none asks that of the nearest lower one.
        let place = each.iter().filter(|other| *other <= cpu).count().saturating_sub(1);
        SourceId((self.first[kind] + place) as u16)
    }

    /// The name of a source's thread.
    pub(crate) fn thread_name(&self, source: SourceId) -> String {
        let name = &self.kind(source).name;
        match self.sources[usize::from(source.0)].cpu {
            Some(cpu) => format!("{name}/{cpu}"),
            None => name.clone(),
        }
    }
}

impl Kernel {
    /// Registers what the system does beside its workload, before time begins. `seed` determines what is drawn.
    pub fn register_system(&mut self, description: &SystemDescription, seed: u64) {
        self.init_timers();
        if let Some(rcu) = &description.rcu {
            self.rcu_init(rcu, seed);
        }
        let nr_works = description.sources.len() * self.sched.nr_cpus();
        self.softirqs.reserve(nr_works);
        self.system.interrupts.reserve(64);
        self.system.kinds = description.sources.clone();
        for (kind, of) in description.sources.iter().enumerate() {
            self.system.first.push(self.system.sources.len());
            if let Handler::Work(queue) = of.handler {
                self.workqueue_init(queue, nr_works);
            }
            let each: Vec<Option<CpuId>> = match of.each.is_empty() {
                true => vec![None],
                false => of.each.iter().map(Some).collect(),
            };
            for cpu in each {
                self.add_source(kind, cpu, seed);
            }
        }
        for index in 0..self.system.sources.len() {
            self.arm_first(SourceId(index as u16));
        }
    }

    fn add_source(&mut self, kind: usize, cpu: Option<CpuId>, seed: u64) {
        let source = SourceId(self.system.sources.len() as u16);
        let of = &self.system.kinds[kind];
        let who = cpu.map_or_else(|| of.name.clone(), |cpu| format!("{}/{cpu}", of.name));
        let (trigger, handler, starts_on) = (of.trigger, of.handler, of.starts_on);
        let timer = match trigger {
            Trigger::Timer { deferrable, pinned, .. } => {
                let flags = TimerFlags { deferrable, pinned };
                Some(self.time.timer_setup(TimerFunction::Source(source), flags))
            }
            _ => None,
        };
        let thread = match handler {
            Handler::Thread { class, bound } => {
                let task = self.new_task(None, TaskKind::Source { source: source.0, bound });
                let first = cpu.unwrap_or(starts_on);
                let all = self.cx.platform.device_tree.all_cpus();
                let mask = if bound { CpuMask::of(first) } else { all };
                self.kthread_setup(task, class, first, mask);
                Some(task)
            }
            _ => None,
        };
        let draws = Draws::new(seed, &who, "run");
        let (owes, runs, nr_runs) = (0, false, 0);
        self.system.sources.push(Source { kind, cpu, timer, thread, owes, runs, draws, nr_runs });
    }

    /// Gives a new kernel thread its class and its CPUs. A user's scheduler that is loaded already is told, as of threads that
    /// were made before it.
    pub(crate) fn kthread_setup(
        &mut self,
        task: TaskId,
        class: ThreadClass,
        first: CpuId,
        mask: CpuMask,
    ) {
        let in_ext = self.sched.task(task).class == Class::Ext;
        match class {
            ThreadClass::Fifo(priority) => {
                if in_ext {
                    self.scx_disable_task(task);
                }
                self.sched.make_fifo(task, priority);
                self.sched.kthread_bind_mask(task, first, mask);
            }
            ThreadClass::Nice(nice) => {
                self.sched.set_kthread_nice(task, nice);
                self.sched.kthread_bind_mask(task, first, mask);
                if in_ext {
                    self.scx_reweight_task(task);
                    self.scx_set_cpumask(task);
                }
            }
        }
    }

    /// Arms a source's timer for the first time: at any point of its period.
    fn arm_first(&mut self, source: SourceId) {
        let Source { kind, cpu, timer, draws, .. } = self.system.sources[usize::from(source.0)];
        let of = &self.system.kinds[kind];
        let cpu = cpu.unwrap_or(of.starts_on);
        match of.trigger {
            Trigger::Timer { delay, rounded, .. } => {
                let most = jiffies_of(delay, &self.cx).max(1);
                let first = in_range(draws.nth(u64::MAX), 1, most);
                let at = if rounded { self.round_jiffies_after(first, cpu) } else { first };
                self.add_timer_on(timer.expect("its trigger is a timer"), at.max(1), cpu);
            }
            Trigger::Hrtimer { period } => {
                let at = in_range(draws.nth(u64::MAX), 1, period);
                let kind = TimerKind::Source(source);
                self.time.base_mut(cpu).reserve(1);
                self.time.hrtimer_start(cpu, at, at, kind, &mut self.cx);
            }
            Trigger::Interrupt | Trigger::Source => {}
        }
    }

    /// An hrtimer of the system has expired.
    pub(crate) fn source_hrtimer(&mut self, source: SourceId, expires: Ns) {
        let cpu = self.cx.this_cpu;
        if let Trigger::Hrtimer { period } = self.system.kind(source).trigger {
            let next = crate::time::hrtimer::hrtimer_forward(expires, self.cx.now, period);
            self.time.hrtimer_start(cpu, next, next, TimerKind::Source(source), &mut self.cx);
        }
        self.source_fires(source);
    }

    /// A device of the system interrupts `cpu` in the next entry that has [`schedtwin_types::IrqLine::Peripheral`] among its lines.
    pub fn source_interrupt(&mut self, kind: usize, cpu: CpuId) {
        let source = self.system.source_of(kind, cpu);
        self.system.interrupts.push((source, cpu));
    }

    /// Handles the interrupts of the system's devices.
    pub(crate) fn handle_source_interrupts(&mut self) {
        for at in 0..self.system.interrupts.len() {
            let (source, _) = self.system.interrupts[at];
            self.source_fires(source);
        }
        self.system.interrupts.clear();
    }

    /// A source is triggered.
    pub(crate) fn source_fires(&mut self, source: SourceId) {
        let this = self.cx.this_cpu;
        let Source { kind, cpu, thread, .. } = self.system.sources[usize::from(source.0)];
        match self.system.kinds[kind].handler {
            Handler::Function => self.source_runs(source),
            Handler::Softirq(softirq) => self.softirqs.raise_source(this, softirq, source),
            Handler::Work(queue) => {
                if self.system.at(source).owes == 0 {
                    self.system.at(source).owes = 1;
                    self.queue_work_on(WorkStruct::Source(source), queue, cpu.unwrap_or(this));
                }
            }
            Handler::Thread { .. } => {
                let owes = &mut self.system.at(source).owes;
                *owes = owes.saturating_add(1);
                let task = thread.expect("its handler is a thread");
                self.wake_up_kthread(task, WakeSource::Kernel);
            }
            Handler::Stopper => {
                self.stop_one_cpu_nowait_if_free(cpu.unwrap_or(this));
                self.source_done(source);
            }
        }
    }

    /// `wake_up_process()` of a kernel thread that several may wake, unless it is on its way already (`TASK_WAKING`).
    pub(crate) fn wake_up_kthread(&mut self, task: TaskId, source: WakeSource) {
        let cpu = self.sched.task(task).cpu;
        let mut wake_list = self.sched.rq(cpu).wake_list.iter();
        if !wake_list.any(|entry| entry.task == task) {
            self.try_to_wake_up(task, 0, source);
        }
    }

    /// A run in an interrupt or a softirq.
    pub(crate) fn source_runs(&mut self, source: SourceId) {
        let work = self.draw_work(source);
        self.sched.charge(work, &mut self.cx);
        self.source_done(source);
    }

    fn draw_work(&mut self, source: SourceId) -> Work {
        let work = self.system.kind(source).work;
        let of = self.system.at(source);
        of.nr_runs += 1;
        work.draw(of.draws.nth(of.nr_runs))
    }

    /// A kworker begins a work: it may be queued again from here on.
    pub(crate) fn source_starts(&mut self, source: SourceId) {
        self.system.at(source).owes = 0;
        self.system.kthread_work = self.draw_work(source).max(1);
    }

    /// A run is over.
    pub(crate) fn source_done(&mut self, source: SourceId) {
        let this = self.cx.this_cpu;
        let Source { kind, cpu, timer, .. } = self.system.sources[usize::from(source.0)];
        let of = &self.system.kinds[kind];
        let (trigger, callbacks, nr_then) = (of.trigger, of.rcu_callbacks, of.then.len());
        if callbacks > 0 {
            self.call_rcu(callbacks);
        }
        for at in 0..nr_then {
            let next = self.system.kinds[kind].then[at];
            let next = self.system.source_of(next, this);
            self.source_fires(next);
        }
        if let (Trigger::Timer { delay, pinned, rounded, .. }, Some(timer)) = (trigger, timer) {
            let delay = jiffies_of(delay, &self.cx);
            let at = match rounded {
                true => self.round_jiffies_after(delay, cpu.unwrap_or(this)),
                false => self.cx.jiffies() + delay,
            };
            match cpu.filter(|_| pinned) {
                Some(cpu) => self.add_timer_on(timer, at, cpu),
                None => self.mod_timer(timer, at),
            }
        }
    }

    /// The thread of a source: it has been switched to, or has done a run.
    pub(crate) fn source_thread(&mut self, source: SourceId) {
        let cpu = self.cx.this_cpu;
        if std::mem::take(&mut self.system.at(source).runs) {
            self.source_done(source);
        }
        let of = self.system.at(source);
        if of.owes > 0 {
            // One run serves all that came before it.
            (of.owes, of.runs) = (0, true);
            self.system.kthread_work = self.draw_work(source).max(1);
            return;
        }
        let task = self.sched.rq(cpu).curr;
        self.sched.set_task_state(task, TaskState::Interruptible);
        self.schedule(false);
    }

    /// The work that the kernel thread which has just run does before its entry is due again.
    #[inline]
    pub fn take_kthread_work(&mut self) -> Work {
        std::mem::take(&mut self.system.kthread_work)
    }

    /// Gives the running kernel thread work to do before its entry is due again.
    pub(crate) fn set_kthread_work(&mut self, work: Work) {
        self.system.kthread_work = work;
    }

    /// The name of a kernel thread that belongs to the system.
    pub fn kthread_name(&self, task: TaskId) -> Option<String> {
        match self.sched.task(task).kind {
            TaskKind::Kworker { worker, .. } => {
                Some(self.workqueues.name(worker.into(), self.sched.nr_cpus()))
            }
            TaskKind::Source { source, .. } => Some(self.system.thread_name(SourceId(source))),
            TaskKind::Rcu { thread } => Some(self.rcu.thread_name(thread)),
            TaskKind::Ksoftirqd { cpu } => Some(format!("ksoftirqd/{cpu}")),
            TaskKind::ExtProgram => Some("scx_userland".to_string()),
            _ => None,
        }
    }
}

/// `nsecs_to_jiffies()`, at least one.
fn jiffies_of(delay: Ns, cx: &Context) -> u64 {
    delay.div_ceil(cx.tick_nsec).max(1)
}
