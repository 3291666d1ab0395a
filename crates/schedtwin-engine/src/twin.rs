// SPDX-License-Identifier: GPL-2.0-or-later
//! The twin: one run of a workload under a kernel on a machine.
//!
//! ```text
//!            ┌───────────── board: the next event ─────────────┐
//!            ▼                                                 │
//!  interrupt, work done, idle step, frequency settled          │
//!            │ entry                                           │
//!         kernel ── wires: timer, IPIs, activity, debt ──► execution ── re-arms slots
//!            │ facts                                           │ segments
//!            └────────────► meter, traces ◄────────────────────┘
//! ```
//!
//! The kernel decides with what it believes; what exists twice is true here: the settled frequency, the
//! entered idle state, the work that is left.
//!
//! **Debt.** After an entry a CPU owes kernel time. Until it is paid its activity does not proceed and
//! interrupts wait; then those that wait are delivered together.
//!
//! **Idle.** A state takes its entry latency to arrive in and its exit latency to leave. An interrupt during
//! the entry aborts it: the CPU is back after the state's abort latency, at the latest when the entry would have been
//! complete. Where states are of clusters or packages, `negotiation.rs` says which CPU is in which
//! state. In the polling state the CPU executes: interrupts come as to a task, and a write to the
//! flag that it watches is seen after the state's exit latency.
//!
//! **Work.** How fast a CPU works depends on its frequency and on the kind of work ([`schedtwin_machine::WorkKind`]),
//! which is the running thread's.
//!
//! Differences: an aborted entry takes as long as a complete one; of caches there is only what a task lacks after it has moved (MODEL.md).

mod block;
mod clocks;
mod devices;
mod governor_calls;
mod hwp;
mod latency;
mod lines;
mod needs;
mod polling;
mod scx;
mod silicon;
mod task_groups;
mod turns;
mod waits;
mod work;

use crate::board::{Board, CpuSlot, FlatBoard, LATEST, Slot, Slots};
use crate::firmware;
use crate::heat::Heat;
use crate::meter::{Activity as Silicon, Meter};
use crate::negotiation::Negotiation;
use crate::power_limit::PowerLimits;
use crate::recording;
use crate::result::SCX_ENDED;
use crate::system_file::SystemFile;
use block::BlockDevices;
use clocks::Clock;
use devices::{BroadcastTimer, SystemDevices};
use schedtwin_kernel::config::Config;
use schedtwin_kernel::hardware::TaskKind;
use schedtwin_kernel::policy::Policies;
use schedtwin_kernel::{Activity, Kernel};
use schedtwin_machine::{Machine, PERMILLE};
use schedtwin_types::arena::{Arena, PerCpu};
use schedtwin_types::draw::{Purpose, draw};
use schedtwin_types::property::{Bounds, Property};
use schedtwin_types::{
    ClockDomainId, CpuId, DecisionRecord, Duration, Fact, FactKind, FutexId, IrqLine, IrqLines,
    Khz, Mode, NEVER, NeedChain, Ns, PolicyId, PowerSource, TaskId, ThreadId, Work,
};
use schedtwin_workload::Programs;
use schedtwin_workload::recorded::Position;
use std::sync::Arc;

/// The most work that is counted at once: 2^42 ns, above an hour; more is done in pieces.
const MAX_PIECE: Work = 1 << 42;

/// Operations that a thread may do at one instant before the twin calls it a bug of the workload: every
/// system call costs time and every event of a program works at least a little.
const MAX_OPS_AT_ONCE: u32 = 1_000_000;

/// A run that takes more than twice its duration and this is told.
const LATE_END: Ns = 200_000_000;

/// Devices of a workload: those that wait at a CPU are a set of bits.
pub(crate) const DEVICES_MAX: usize = 32;

/// Watches a run: traces, records, comparisons.
pub trait Observer {
    /// Whether decisions are wanted.
    const DECISIONS: bool;
    /// A task has been made.
    fn task(&mut self, id: TaskId, name: &str, prio: i32);
    /// A task has got another kernel priority.
    fn task_prio(&mut self, _at: Ns, _id: TaskId, _prio: i32) {}
    /// Something happened. Stamps are those of the executing CPU's local clock, so they may be ahead of
    /// the event's time `now`.
    fn fact(&mut self, fact: &Fact);
    /// The kernel decided something.
    fn decision(&mut self, decision: DecisionRecord);
    /// A need has got its clock, or has gone. Wanted with decisions.
    fn chain(&mut self, _chain: NeedChain) {}
    /// The power of `source` may have changed at `at`.
    fn power(&mut self, at: Ns, source: PowerSource, microwatts: u64);
    /// All that is stamped up to `now` has been told.
    fn settled(&mut self, now: Ns);
    /// Nothing more is wanted: the run may end.
    fn enough(&self) -> bool {
        false
    }
}

impl Observer for () {
    const DECISIONS: bool = false;
    fn task(&mut self, _: TaskId, _: &str, _: i32) {}
    #[inline(always)]
    fn fact(&mut self, _: &Fact) {}
    fn decision(&mut self, _: DecisionRecord) {}
    #[inline(always)]
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    #[inline(always)]
    fn settled(&mut self, _: Ns) {}
}

/// The activity of a CPU's silicon and of its current thread.
#[derive(Clone, Debug)]
struct CpuState {
    phase: Phase,
    /// The kernel is paying debt until then.
    masked_until: Ns,
    /// Interrupts that wait for the debt's end or for the way out of idle.
    pending: IrqLines,
    /// The workload's devices among them.
    pending_devices: u32,
    /// Work is accounted up to here.
    since: Ns,
    /// Work per nanosecond of what it runs, 20 fractional bits.
    rate: u64,
    /// How much it slows the other threads of its core: thousandths of a thread that executes.
    slows: u64,
    /// How late the next timer interrupt will be, and its ordinal.
    timer_latency: Ns,
    timer_ordinal: u64,
    /// How long the next IPI will take, and its ordinal.
    ipi_latency: Ns,
    ipi_ordinal: u64,
    /// The kinds of IPIs whose slots may hold an event, a bit each.
    ipis_armed: u8,
}

impl CpuState {
    /// A CPU in the idle loop, that nothing has interrupted yet.
    fn at_boot() -> CpuState {
        CpuState {
            phase: Phase::IdleLoop,
            masked_until: 0,
            pending: IrqLines::default(),
            pending_devices: 0,
            since: 0,
            rate: 0,
            slows: PERMILLE,
            timer_latency: 0,
            timer_ordinal: 0,
            ipi_latency: 0,
            ipi_ordinal: 0,
            ipis_armed: 0,
        }
    }
}

/// Returns the slots of a machine's event sources, but for heat and limits of power.
fn slots_of(machine: &Machine, kernel: &Kernel, nr_devices: usize) -> Slots {
    let nr_domains = machine.domains.len();
    let hardware = kernel.hardware();
    let may_interrupt = |domain: ClockDomainId| hardware.driver_may_interrupt(domain.policy());
    let nr_drivers = if machine.domains.ids().any(may_interrupt) { nr_domains } else { 0 };
    assert!(nr_devices <= DEVICES_MAX, "a workload has at most {DEVICES_MAX} devices");
    let mut slots = Slots::new(nr_domains, nr_drivers, nr_devices, machine.nr_cpus());
    slots.hwp = hardware.hints(PolicyId(0)).is_some();
    slots.turns = machine.turns.is_some();
    slots.broadcast = machine.broadcast.as_ref().is_some_and(|device| !device.hrtimer);
    slots
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Runs a task (or pays its debt).
    Task(TaskId),
    /// Runs the idle loop.
    IdleLoop,
    /// Has asked for an idle state and still pays the kernel's way there, with interrupts off.
    BeforeIdle { state: u8, asleep_at: Ns },
    /// On the way into an idle state, or in it.
    Idle { state: u8, asleep_at: Ns },
    /// In the polling state; `spins`: the kernel's way there has been paid for.
    Poll { spins: bool },
    /// Woken from the state, and waiting for its package; then the way out takes `exit`.
    Waiting { state: u8, exit: Ns },
    /// On the way out; or back, if silicon has refused the state.
    Waking { refused: bool },
}

/// The work that a task still has to do.
#[derive(Clone, Debug)]
struct TaskState {
    /// Work left, 20 fractional bits.
    remaining: u64,
    /// Whole work beyond that.
    reserve: Work,
    mode: Mode,
    /// Kind of its work, see `Twin::rates`.
    kind: usize,
    /// Share of the time of its work that waits for memory, thousandths.
    stalls: u64,
    /// Its thread in the workload; `None` for the kernel's own tasks.
    thread: Option<ThreadId>,
    /// The kernel's own: busy until then, whatever the CPU's speed.
    busy_until: Ns,
    /// Where its caches are: the CPU that it ran on last; kept where distances cost something.
    ran_on: Option<CpuId>,
    /// Where CPUs take turns: the program passes the turn once it is back from its call.
    passes_turn: bool,
    /// Where CPUs take turns: its work consists of pieces, after each of which it passes the turn.
    in_pieces: bool,
}

impl TaskState {
    /// A task that has nothing to do.
    fn new(thread: Option<ThreadId>, mode: Mode, kind: usize) -> TaskState {
        TaskState {
            remaining: 0,
            reserve: 0,
            mode,
            kind,
            stalls: 0,
            thread,
            busy_until: 0,
            ran_on: None,
            passes_turn: false,
            in_pieces: false,
        }
    }
}

/// A run in progress.
#[derive(Clone)]
pub struct Twin<B = FlatBoard> {
    machine: Arc<Machine>,
    kernel: Kernel,
    programs: Programs,
    board: B,
    slots: Slots,
    cpus: PerCpu<CpuState>,
    tasks: Vec<TaskState>,
    domains: Arena<ClockDomainId, Clock>,
    /// The frequency that the hardware of each domain runs at.
    settled: Arena<ClockDomainId, Khz>,
    /// Work per nanosecond now: by CPU, then by kind; kind 0 is work that follows the capacities, the
    /// others are the machine's.
    rates: Vec<u64>,
    nr_kinds: usize,
    /// A CPU's rate may depend on its task, on the other threads of its core, and on where the task was before.
    rates_vary: bool,
    /// Per CPU: the hardware threads of its core, itself included; nobody where it is the only one.
    threads: Vec<Vec<CpuId>>,
    negotiation: Negotiation,
    broadcast: BroadcastTimer,
    heat: Option<Heat>,
    limits: Option<PowerLimits>,
    /// Of each clock whose processor chooses itself; empty where they do as they are told.
    choices: Vec<hwp::Choice>,
    system: SystemDevices,
    block: BlockDevices,
    /// Clocks follow what tasks need; else none is held below it.
    follows_need: bool,
    /// Whose turn it is, where CPUs take turns.
    turns: Option<turns::Turn>,
    meter: Meter,
    /// Buffer for the tasks that the handlers of one interrupt wake.
    device_wakes: Vec<FutexId>,
    seed: u64,
    now: Ns,
    end: Ns,
    /// The duration of the workload, if it has one.
    asked: Option<Ns>,
    events: u64,
    /// The reference twin looks at everything after each event and trusts nothing that is kept.
    eager: bool,
    /// The events after which its sums are verified.
    sums_every: u64,
    notices: Vec<String>,
    /// The name of the scheduler of sched_ext.
    scx_name: Arc<str>,
}

/// The hardware threads of a core that has several.
fn smt_threads(machine: &Machine, cpu: CpuId) -> Vec<CpuId> {
    let threads: Vec<CpuId> = machine.threads_of(cpu).collect();
    if threads.len() > 1 { threads } else { Vec::new() }
}

impl<B: Board> Twin<B> {
    /// Boots a kernel on a machine and gives it a workload. `end`: when the run ends at the latest.
    pub fn new(
        machine: Arc<Machine>,
        config: Config,
        programs: Programs,
        seed: u64,
        end: Ns,
    ) -> Twin<B> {
        Twin::with_policies(machine, (config, &Policies::default()), programs, seed, end)
    }
}

impl<B: Board> Twin<B> {
    /// As [`Twin::new`], with users' policies in the place of what the configuration names.
    pub fn with_policies(
        machine: Arc<Machine>,
        (config, policies): (Config, &Policies),
        programs: Programs,
        seed: u64,
        end: Ns,
    ) -> Twin<B> {
        Twin::with_system(machine, (config, policies), None, programs, seed, end)
    }

    /// As [`Twin::with_policies`], with what a system does beside the workload.
    pub fn with_system(
        machine: Arc<Machine>,
        (config, policies): (Config, &Policies),
        system: Option<&SystemFile>,
        programs: Programs,
        seed: u64,
        end: Ns,
    ) -> Twin<B> {
        let mut device_tree = firmware::device_tree(&machine, programs.nr_threads());
        firmware::disable_idle_states(&machine, &mut device_tree, &config.cpuidle_disable);
        let tick = config.tick_nsec();
        let follows_need = config.runs_schedutil();
        let mut kernel = Kernel::boot_with(device_tree, config, policies);
        kernel.begin();
        let mut devices = Vec::new();
        if let Some(system) = system {
            let description;
            (description, devices) = system.on(&machine, seed);
            kernel.register_system(&description, seed);
        }
        task_groups::make(&mut kernel, &programs, seed);
        let nr_cpus = machine.nr_cpus();
        // The workload starts somewhere between the second and the third tick, at any nanosecond.
        let phase = draw(seed, 0, Purpose::StartPhase, 0, 0, tick - 1);
        let mut setup = firmware::meter_setup(&machine);
        if programs.warmup() > 0 {
            setup.warmup_ns = tick + phase + programs.warmup();
        }
        let heat = Heat::new(&machine, setup.warmup_ns);
        let domains = clocks::at_boot(&machine, setup.warmup_ns);
        let limits = PowerLimits::new(&machine, setup.warmup_ns);
        if let Some(model) = &machine.heat {
            kernel.register_thermal_zones(&firmware::thermal_zones(model));
        }
        let end = end.min(LATEST - 1);
        let mut meter = Meter::new(setup);
        meter.ends_at(end);
        let first = kernel.boot_thread(tick + phase);
        for c in 0..nr_cpus {
            let random = draw(seed, c as u64, Purpose::KernelRandom, 0, 1, u64::MAX - 1);
            kernel.seed_newidle_random(CpuId(c as u16), random);
        }
        let mut block = BlockDevices::default();
        if programs.uses_block_devices() {
            block = BlockDevices::new(&machine, seed, programs.nr_threads());
            kernel.register_block_devices(&block::drivers(&machine));
        }
        let nr_devices = programs.nr_devices() + devices.len() + block.len();
        let mut slots = slots_of(&machine, &kernel, nr_devices);
        (slots.heat, slots.power_limit) = (heat.is_some(), limits.is_some());
        slots.user_limits = programs.changes_limits();
        if let Some(device) = &machine.broadcast {
            kernel.register_broadcast(firmware::broadcast(device), device.program_ns);
        }
        let mut twin = Twin {
            board: B::new(slots.count()),
            slots,
            cpus: (0..nr_cpus).map(|_| CpuState::at_boot()).collect(),
            tasks: Vec::with_capacity(nr_cpus + 2 + programs.nr_threads()),
            domains,
            settled: machine.domains.iter().map(|d| d.max_khz()).collect(),
            rates: vec![0; nr_cpus * (1 + machine.kinds.len())],
            nr_kinds: 1 + machine.kinds.len(),
            rates_vary: !machine.kinds.is_empty()
                || machine.smt.is_some()
                || machine.distances.is_some()
                || programs.stalls(),
            threads: (0..nr_cpus).map(|c| smt_threads(&machine, CpuId(c as u16))).collect(),
            negotiation: Negotiation::new(&machine),
            broadcast: BroadcastTimer::default(),
            heat,
            limits,
            choices: Vec::new(),
            system: SystemDevices::new(devices),
            block,
            follows_need,
            turns: machine.turns.as_ref().map(turns::Turn::new),
            machine,
            kernel,
            programs,
            meter,
            device_wakes: Vec::with_capacity(DEVICES_MAX),
            seed,
            now: 0,
            end,
            asked: None,
            events: 0,
            eager: false,
            sums_every: 1,
            notices: Vec::new(),
            scx_name: policies.ext_name().into(),
        };
        twin.start(first);
        twin
    }

    /// Announces what exists at boot: tasks, clocks, and the first latencies of each CPU. `first` is the
    /// task of the workload's main thread.
    fn start(&mut self, first: TaskId) {
        self.tasks.push(TaskState::new(None, Mode::Kernel, 0));
        let kernel_threads: Vec<TaskId> = self.kernel.kernel_threads().collect();
        for id in kernel_threads {
            self.add_kernel_thread(id);
        }
        let main = self.programs.main();
        let (name, group) = self.names(main);
        self.add_task(first, &name, &group, Some(main));
        for domain in self.domains.ids() {
            let opp = self.machine.domains[domain].opp_of(self.settled[domain]).unwrap_or(0);
            self.meter.domain_opp(0, domain, opp);
            self.meter.frequency_requested(0, domain, opp);
            for cpu in self.machine.domains[domain].cpus.clone() {
                self.refresh_rates(cpu);
            }
        }
        for c in 0..self.cpus.len() {
            let cpu = CpuId(c as u16);
            self.draw_timer_latency(cpu);
            self.draw_ipi_latency(cpu);
            if self.machine.smt.is_some() {
                self.kernel.thread_speed(cpu, self.thread_speed(cpu));
            }
        }
        self.draw_broadcast_latency();
        (0..self.system.devices.len()).for_each(|device| self.arm_system_device(device));
    }

    /// The reference twin: after each event every CPU is looked at anew and the kernel's sums are verified.
    pub fn eager(self) -> Twin<B> {
        self.eager_with_sums_every(1)
    }

    /// The same, but for the sums, which are verified after every `events` events: they take most of its time, and a
    /// wrong one stays wrong.
    pub fn eager_with_sums_every(mut self, events: u64) -> Twin<B> {
        self.eager = true;
        self.sums_every = events;
        self
    }

    /// Has the kernel record its decisions, and the meter its chains, for the observer.
    pub fn record_decisions(&mut self) {
        self.kernel.record_decisions(true);
        self.meter.log_chains(self.now);
    }

    /// Has the kernel tell the signals of CPUs and tasks, for the observer.
    pub fn report_signals(&mut self) {
        self.kernel.report_signals(true);
    }

    /// The kernel, for tests that look inside.
    #[doc(hidden)]
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The kernel, for tests that change something behind the twin's back.
    #[doc(hidden)]
    pub fn kernel_mut(&mut self) -> &mut Kernel {
        &mut self.kernel
    }

    /// Where a task is that is a thread of a recording: its number among those, and its step.
    pub fn position(&self, task: TaskId) -> Option<(usize, Position)> {
        let thread = self.tasks.get(task.index())?.thread?;
        Some((thread.index().checked_sub(1)?, self.programs.position(thread)?))
    }

    /// When a recording begins, behind the start of its threads.
    pub fn recording_begins(&self) -> Ns {
        self.programs.recording_begins()
    }

    /// Tells an observer of the tasks that exist already.
    pub fn introduce(&self, observer: &mut impl Observer) {
        for (index, task) in self.tasks.iter().enumerate().skip(1) {
            let id = TaskId(index as u32);
            let name = match task.thread {
                Some(thread) => self.programs.thread_name(thread).to_string(),
                None => self.kernel_thread_name(id),
            };
            observer.task(id, &name, self.kernel.task_stat(id).prio);
        }
    }

    fn names(&self, thread: ThreadId) -> (String, String) {
        (self.programs.thread_name(thread).to_string(), self.programs.task_name(thread))
    }

    /// `migration/N` of a CPU, `sugov:N` of a frequency domain that begins with that CPU.
    fn kernel_thread_name(&self, id: TaskId) -> String {
        match self.kernel.task_stat(id).kind {
            TaskKind::Stopper { cpu } => format!("migration/{cpu}"),
            TaskKind::Sugov { policy } => {
                let first = self.machine.domains[policy.clock_domain()].cpus.iter().min();
                format!("sugov:{}", first.expect("a domain has CPUs"))
            }
            kind => {
                let name = self.kernel.kthread_name(id);
                name.unwrap_or_else(|| panic!("{kind:?} is no kernel thread"))
            }
        }
    }

    fn add_kernel_thread(&mut self, id: TaskId) {
        let name = self.kernel_thread_name(id);
        let group = name.split(['/', ':']).next().unwrap_or_default().to_string();
        self.add_task(id, &name, &group, None);
    }

    fn add_task(&mut self, id: TaskId, name: &str, group: &str, thread: Option<ThreadId>) {
        assert_eq!(id.index(), self.tasks.len(), "tasks are made in order");
        self.meter.task_created(id, name, group);
        let mode = if thread.is_some() {
            self.meter.task_prio(id, self.kernel.task_stat(id).prio);
            Mode::User
        } else {
            self.meter.kernel_thread(id);
            Mode::Kernel
        };
        let kind = thread.and_then(|thread| self.machine.kind(self.programs.work_kind(thread)));
        let kind = kind.map_or(0, |kind| kind + 1);
        self.tasks.push(TaskState::new(thread, mode, kind));
    }

    /// Simulated time.
    pub fn now(&self) -> Ns {
        self.now
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Digest over all facts and segments so far.
    pub fn digest(&self) -> u64 {
        self.meter.digest()
    }

    /// Takes the next event. `false`: the run is over.
    pub fn step<O: Observer>(&mut self, observer: &mut O) -> bool {
        if self.events == 0 {
            self.silicon_begins(observer);
        }
        let Some((at, slot)) = self.board.next() else { return false };
        if at > self.end {
            return false;
        }
        debug_assert!(at >= self.now, "time goes forward");
        self.now = at;
        self.events += 1;
        let source = self.slots.name(slot);
        if self.turns.is_some() && self.waits_for_turn(source, slot) {
            return true;
        }
        match source {
            Slot::Domain(domain) => self.clock_step(domain, observer),
            // Linux leaves interrupts that nobody moves to the first CPU.
            Slot::Driver => {
                self.interrupt_arrives(CpuId(0), IrqLine::CpufreqDriver, slot, observer)
            }
            Slot::Device(device) => self.device_fires(device, slot, observer),
            Slot::Broadcast => self.broadcast_fires(slot, observer),
            Slot::Cpu(cpu, CpuSlot::ClockEvent) => {
                self.interrupt_arrives(cpu, IrqLine::ClockEvent, slot, observer);
            }
            Slot::Cpu(cpu, CpuSlot::Ipi(kind)) => {
                self.interrupt_arrives(cpu, IrqLine::ipi(kind), slot, observer);
            }
            Slot::Cpu(cpu, CpuSlot::Unmask) => {
                self.board.set(slot, NEVER);
                self.deliver(cpu, observer);
            }
            Slot::Cpu(cpu, CpuSlot::Work) => self.work_done(cpu, observer),
            Slot::Cpu(cpu, CpuSlot::Idle) => self.idle_step(cpu, observer),
            Slot::Heat => self.heat_step(observer),
            Slot::PowerLimit => self.power_limit_step(),
            Slot::Hwp => self.hwp_step(),
            Slot::TurnEnd => self.turn_ends(),
            Slot::UserLimits => self.user_limits_change(observer),
        }
        if self.turns.is_some() {
            self.look_at_turn(source);
        }
        if self.eager {
            self.look_at_everything();
        }
        if O::DECISIONS {
            self.tell_chains(observer);
        }
        observer.settled(self.now);
        true
    }

    // ---- interrupts ---------------------------------------------------------------------------

    /// An interrupt whose event is in `slot` comes to a CPU.
    fn interrupt_arrives(
        &mut self,
        cpu: CpuId,
        line: IrqLine,
        slot: usize,
        observer: &mut impl Observer,
    ) {
        let now = self.now;
        if line == IrqLine::CpufreqDriver {
            self.board.set(slot, NEVER);
        }
        let c = &mut self.cpus[cpu];
        c.pending.insert(line);
        let executes = matches!(c.phase, Phase::Task(_) | Phase::IdleLoop | Phase::Poll { .. });
        let has_turn = self.turns.as_ref().is_none_or(|turn| turn.takes(cpu, line));
        if executes && now >= c.masked_until && has_turn {
            // The line's slot is set again when its wires are read after the entry.
            self.deliver(cpu, observer);
            return;
        }
        self.board.set(slot, NEVER);
        match c.phase {
            Phase::Task(_) | Phase::IdleLoop | Phase::Poll { .. } if self.turns.is_some() => {
                self.comes_in_turn(cpu);
            }
            Phase::Task(_) | Phase::IdleLoop | Phase::Poll { .. } => {
                let until = c.masked_until;
                self.board.set(self.slots.cpu(cpu, CpuSlot::Unmask), until);
            }
            // The end of the debt notices it, even if it comes at that very instant.
            Phase::BeforeIdle { .. } => {}
            Phase::Idle { state, asleep_at } => {
                let aborted = now < asleep_at;
                let refuses = self.machine.idle_states(cpu)[state as usize].refuses_pending;
                c.phase = Phase::Waking { refused: aborted && refuses };
                let next = if aborted {
                    self.entry_aborted(cpu, state, asleep_at)
                } else {
                    now + self.rest_ends(cpu, state, line, observer)
                };
                self.board.set(self.slots.cpu(cpu, CpuSlot::Idle), next);
            }
            Phase::Waiting { .. } | Phase::Waking { .. } => {}
        }
    }

    /// Hands the pending interrupts to the kernel.
    fn deliver(&mut self, cpu: CpuId, observer: &mut impl Observer) {
        let lines = self.take_pending(cpu);
        if lines.is_empty() {
            return;
        }
        self.account_work(cpu);
        let mode = match self.cpus[cpu].phase {
            Phase::Task(task) => self.tasks[task.index()].mode,
            _ => Mode::Kernel,
        };
        self.kernel.interrupt(cpu, self.now, lines, mode);
        self.after_entry(Some(cpu), observer);
    }

    #[inline(always)]
    fn take_pending(&mut self, cpu: CpuId) -> IrqLines {
        let lines = std::mem::take(&mut self.cpus[cpu].pending);
        if lines.contains(IrqLine::ClockEvent) {
            self.draw_timer_latency(cpu);
        }
        if lines.intersects(IrqLines::IPIS) {
            self.draw_ipi_latency(cpu);
        }
        if lines.contains(IrqLine::Peripheral) {
            self.handle_devices(cpu);
        }
        if lines.contains(IrqLine::BroadcastDevice) {
            self.broadcast.pending = false;
            self.draw_broadcast_latency();
        }
        lines
    }

    // ---- after an entry -----------------------------------------------------------------------

    /// Reads the wires of all CPUs that an entry touched. `executed`: the CPU that executed it.
    fn after_entry<O: Observer>(&mut self, executed: Option<CpuId>, observer: &mut O) {
        self.sync_devices();
        self.sync_block_devices();
        if let Some(cpu) = executed {
            self.take_up_activity(cpu, observer);
        }
        self.kernel.take_dirty().iter().for_each(|cpu| self.sync_wires(cpu));
        for fact in self.kernel.facts() {
            self.meter.fact(fact);
            observer.fact(fact);
            if let FactKind::Frequency { policy, .. } = fact.kind {
                // A driver that took its time tells when the hardware knows already whether it follows.
                let domain = &self.domains[policy.clock_domain()];
                let requested = self.kernel.hardware().requested(policy);
                let told = requested == domain.requested;
                if told && domain.target != domain.requested {
                    self.meter.frequency_overridden(self.now, policy.clock_domain());
                }
            }
        }
        if O::DECISIONS {
            self.log_facts();
        }
        self.kernel.clear_facts();
        if self.meter.has_questions() {
            self.judge_waits();
        }
        if self.kernel.broadcast_changed() {
            self.sync_broadcast();
        }
        if self.kernel.records_decisions() {
            self.tell_decisions(observer);
        }
        self.look_at_needs();
        if self.kernel.has_dirty_policies() {
            self.ask_for_frequencies();
        }
        if O::DECISIONS {
            self.log_entry_ends();
        }
    }

    /// The CPU that executed an entry does what its wires say, after its debt.
    #[inline]
    fn take_up_activity(&mut self, cpu: CpuId, observer: &mut impl Observer) {
        let wires = self.kernel.hardware().wires(cpu);
        let paid_at = self.now + wires.debt;
        let activity = wires.activity;
        let work_slot = self.slots.cpu(cpu, CpuSlot::Work);
        let idle_slot = self.slots.cpu(cpu, CpuSlot::Idle);
        let polls_on = matches!(activity, Activity::Poll { .. });
        match self.cpus[cpu].phase {
            Phase::Poll { spins } if polls_on => {
                // An interrupt is within the stay.
                self.cpus[cpu].masked_until = paid_at;
                match spins {
                    true => self.poll_goes_on(cpu),
                    false => self.board.set(idle_slot, paid_at),
                }
                return;
            }
            Phase::Waking { .. } | Phase::Poll { spins: true } => {
                self.silicon(cpu, Silicon::Active, observer);
            }
            _ => {}
        }
        let c = &mut self.cpus[cpu];
        c.masked_until = paid_at;
        c.since = paid_at;
        match activity {
            Activity::Task(task) => {
                c.phase = Phase::Task(task);
                if self.rates_vary {
                    self.choose_rate(cpu);
                    self.task_arrives(cpu, task);
                }
                let at = self.work_done_at(cpu);
                self.board.set(work_slot, at);
                self.board.set(idle_slot, NEVER);
                if self.turns.is_some() {
                    self.piece_begins(cpu);
                }
            }
            Activity::IdleLoop => {
                c.phase = Phase::IdleLoop;
                self.board.set(work_slot, NEVER);
                self.board.set(idle_slot, paid_at);
            }
            Activity::Idle { state } => {
                let entry = self.machine.idle_states(cpu)[state as usize].entry_latency_ns;
                let asleep_at = paid_at + entry;
                self.board.set(work_slot, NEVER);
                if paid_at > self.now {
                    // An idle balance on the way costs time, in which the CPU still executes.
                    c.phase = Phase::BeforeIdle { state, asleep_at };
                    self.board.set(idle_slot, paid_at);
                } else {
                    c.phase = Phase::Idle { state, asleep_at };
                    self.enter_idle(cpu, state, asleep_at, observer);
                }
            }
            Activity::Poll { .. } => {
                c.phase = Phase::Poll { spins: false };
                self.board.set(work_slot, NEVER);
                if paid_at > self.now {
                    self.board.set(idle_slot, paid_at);
                } else {
                    self.begin_poll(cpu, observer);
                }
            }
        }
    }

    /// Re-arms a CPU's interrupt slots.
    #[inline(always)]
    fn sync_wires(&mut self, cpu: CpuId) {
        let wires = self.kernel.hardware().wires(cpu);
        let c = &self.cpus[cpu];
        let clock_event = self.slots.cpu(cpu, CpuSlot::ClockEvent);
        if !c.pending.contains(IrqLine::ClockEvent) {
            let at = match wires.clock_event_at {
                NEVER => NEVER,
                at => (at + c.timer_latency).max(self.now),
            };
            self.board.set(clock_event, at);
        }
        if let Phase::Poll { spins: true } = c.phase {
            // Somebody may have set the flag that the loop watches.
            self.poll_goes_on(cpu);
        }
        let (wires, c) = (self.kernel.hardware().wires(cpu), &self.cpus[cpu]);
        // Nearly always none is in flight and none was: then there is nothing to write.
        let in_flight = wires.ipi_at.iter().fold(NEVER, |all, at| all & at) != NEVER;
        if in_flight || c.ipis_armed != 0 || self.eager {
            self.sync_ipis(cpu);
        }
    }

    /// The reference twin's extra work: re-arms every slot of every CPU, recomputes the time of its work,
    /// and has the kernel and the meter verify their sums.
    fn look_at_everything(&mut self) {
        for c in 0..self.cpus.len() {
            let cpu = CpuId(c as u16);
            self.sync_wires(cpu);
            let at = self.work_done_at(cpu);
            self.board.set(self.slots.cpu(cpu, CpuSlot::Work), at);
        }
        if self.slots.broadcast {
            self.sync_broadcast();
        }
        if self.events.is_multiple_of(self.sums_every) {
            self.kernel.verify();
            self.meter.verify(self.now);
        }
        self.negotiation.verify(&self.machine);
        for (c, state) in self.cpus.iter().enumerate() {
            let cpu = CpuId(c as u16);
            let may_rest =
                matches!(state.phase, Phase::Idle { asleep_at, .. } if asleep_at <= self.now);
            assert!(
                may_rest || !self.negotiation.has_asked(cpu),
                "cpu{c} is awake and asks for rest"
            );
        }
    }

    /// The run ends with the paths of the kernel that are under way.
    pub fn end_soon(&mut self) {
        let paid = self.cpus.iter().map(|c| c.masked_until).max().unwrap_or(self.now);
        self.end = paid.clamp(self.now, self.end);
        self.meter.ends_at(self.end);
    }

    /// The intervals that break a property are those longer than its bound. Before the run begins.
    pub fn bounded_by(mut self, bounds: &Bounds) -> Twin<B> {
        let mut bounds = bounds.clone();
        if !self.follows_need {
            bounds.lift(Property::ClockHeld);
            bounds.lift(Property::ClockAbove);
        }
        self.meter.bound_by(bounds);
        self
    }

    /// A run that takes much longer than this tells so.
    pub fn asked_for(mut self, duration: Option<Ns>) -> Twin<B> {
        self.asked = duration;
        self
    }

    /// What the user should know of a run that took much longer than it was asked for.
    fn late_end(&self) -> Option<String> {
        let asked = self.asked.filter(|asked| self.end > 2 * asked + LATE_END)?;
        let time = |ns: Ns| Duration::from_ns(ns - ns % 1_000_000);
        Some(format!(
            "{} were simulated for a duration of {}: it counts from when all threads have started, and the run ends \
             when each has finished what it was at",
            time(self.end),
            time(asked),
        ))
    }

    /// Ends the run: the meter's results.
    pub fn finish(mut self) -> crate::result::RunResult {
        let simulated_ns = self.end;
        let mut ended: Vec<String> =
            self.programs.limit_reached().map(str::to_string).into_iter().collect();
        ended.extend(self.late_end());
        self.notices.extend(scx::idle(&self.kernel, self.now, &self.scx_name));
        let named = |task| self.meter.task_name(task);
        let unloaded = scx::end(&self.kernel, self.end, &self.scx_name, named);
        let failed = unloaded.as_ref().filter(|notice| notice.starts_with(SCX_ENDED)).cloned();
        self.notices.extend(ended.iter().cloned().chain(unloaded));
        ended.extend(failed);
        let digest = self.meter.digest();
        self.now = simulated_ns;
        for c in 0..self.cpus.len() {
            self.account_work(CpuId(c as u16));
        }
        self.heat_flows(simulated_ns);
        let stalls = self.stall_metrics();
        self.meter.waits_end(simulated_ns);
        self.judge_waits();
        self.name_cgroups();
        self.tell_what_is_open(simulated_ns);
        self.tell_of_limits();
        let (mut metrics, tasks, cpus) = self.meter.finish(simulated_ns);
        let broken = self.meter.broken(simulated_ns);
        metrics.extend(governor_calls::metrics(self.kernel.hardware(), &self.machine));
        metrics.extend(task_groups::metrics(&self.kernel, &self.programs));
        metrics.extend(scx::metrics(&self.kernel, simulated_ns));
        metrics.extend(self.iowait_metric(simulated_ns));
        metrics.extend(self.line_wait_metrics(simulated_ns));
        metrics.extend(self.programs.results());
        if self.programs.counts_requests() {
            metrics.extend(crate::requests::metrics(&metrics, self.cpus.len()));
        }
        metrics.extend(self.heat.iter().flat_map(|heat| heat.metrics()));
        metrics.extend(self.limits.iter().flat_map(|limits| limits.metrics()));
        metrics.extend(stalls);
        if let Some(done) = self.programs.replayed(|thread| self.left_of(thread)) {
            metrics.extend(recording::metrics(&done));
        }
        crate::result::RunResult {
            metrics,
            tasks,
            cpus,
            digest,
            simulated_ns,
            events: self.events,
            ended,
            broken,
            notices: self.notices,
        }
    }
}
