// SPDX-License-Identifier: GPL-2.0-or-later
//! A minimal executor: plays time forward over the kernel's wires, so that a test is a scenario in text and
//! a timeline in text.
//!
//! A scenario is a line a thread, `name @start: step, step, [step, step]`; what is in brackets repeats for
//! ever, a thread without them exits after its last step, one without `@` waits to be forked:
//!
//! ```text
//! a @0: nice 5, [run 3ms, sleep 2ms]
//! b @4ms: run 1ms, wake 0
//! c @1ms: fifo 10, wait 0, fork d, cpus 1-2
//! d: slice 500us, yield, write 0 512
//! ```
//!
//! Steps: `run T`, `krun T` (kernel mode), `sleep T`, `until T`, `nice N`, `slice T`, `policy P`, `fifo P`, `rr P`,
//! `cpus LIST`, `group N`, `yield`, `wait F`, `wake F [N]`, `read P N`, `write P N`, `fork NAME`.
//!
//! The machine is ideal: equal CPUs at a fixed frequency, interrupts that arrive at once, kernel paths
//! that take no time (a system call takes the 1 ns that it always takes). So what a timeline shows are decisions alone.
//! All of the kernel's sums are verified after each event.

use schedtwin_kernel::config::{
    CfsTunables, Config, FairClass, Features, FrequencyGovernor, IdleGovernor, SingleIdleState,
    TgLoadAvg,
};
use schedtwin_kernel::device_tree::{DeviceTree, DtIdleState, PathCosts};
use schedtwin_kernel::hardware::UserReturn;
use schedtwin_kernel::sched::SchedEntity;
use schedtwin_kernel::{Activity, Kernel};
use schedtwin_types::*;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A millisecond.
pub const MS: Ns = 1_000_000;

/// Where the scenario's time begins: at the first tick, since for PELT time 0 means never.
pub const ORIGIN: Ns = 4 * MS;

#[derive(Clone, Debug)]
enum Step {
    Op(Op),
    Attr(AttrChange),
    Fork(String),
}

#[derive(Clone, Copy, Debug)]
enum AttrChange {
    Nice(i8),
    Slice(Ns),
    Policy(Policy, u8),
}

#[derive(Clone, Debug, Default)]
struct Script {
    steps: Vec<Step>,
    /// Where the repeated part begins.
    repeat_from: Option<usize>,
    start: Option<Ns>,
}

#[derive(Clone, Debug)]
struct Thread {
    name: String,
    at: usize,
    attr: SchedAttr,
    remaining: Ns,
    mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Task(TaskId),
    IdleLoop,
    Idle,
}

#[derive(Clone, Debug)]
struct Cpu {
    phase: Phase,
    /// Until then the kernel is at work: interrupts wait, work does not proceed.
    masked_until: Ns,
    /// Work is accounted up to here.
    since: Ns,
}

/// The executor.
pub struct Board {
    pub kernel: Kernel,
    pub facts: Vec<Fact>,
    cpus: Vec<Cpu>,
    scripts: BTreeMap<String, Script>,
    threads: BTreeMap<TaskId, Thread>,
    main: TaskId,
    /// Threads that the first one starts, latest first.
    to_start: Vec<(Ns, String)>,
    now: Ns,
    /// How long a CPU takes to wake from idle.
    pub idle_exit_ns: Ns,
    /// The step that is under way has entered the kernel, so that its wires tell a new debt.
    entered: bool,
}

fn duration(text: &str) -> Ns {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let value: u64 = digits.parse().unwrap_or_else(|_| panic!("duration {text}"));
    value
        * match &text[digits.len()..] {
            "" if value == 0 => 1,
            "ns" => 1,
            "us" => 1_000,
            "ms" => MS,
            "s" => 1_000 * MS,
            unit => panic!("unit {unit}"),
        }
}

fn cpu_list(text: &str) -> CpuMask {
    let mut mask = CpuMask::EMPTY;
    for part in text.split('+') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        for cpu in low.parse().unwrap()..=high.parse().unwrap() {
            mask.insert(CpuId(cpu));
        }
    }
    mask
}

fn step(text: &str) -> Step {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |at: usize| words.get(at).map_or(1, |w| w.parse::<u32>().unwrap());
    let call = |call| Step::Op(Op::Call(call));
    match words[0] {
        "run" => Step::Op(Op::Compute { work: duration(words[1]), mode: Mode::User }),
        "krun" => Step::Op(Op::Compute { work: duration(words[1]), mode: Mode::Kernel }),
        "sleep" => call(Syscall::Nanosleep { duration: duration(words[1]) }),
        "until" => call(Syscall::NanosleepUntil { until: ORIGIN + duration(words[1]) }),
        "yield" => call(Syscall::SchedYield),
        "wait" => call(Syscall::FutexWait { futex: FutexId(number(1)) }),
        "wake" => call(Syscall::FutexWake { futex: FutexId(number(1)), count: number(2) }),
        "read" => call(Syscall::PipeRead { pipe: PipeId(number(1)), bytes: number(2) }),
        "write" => call(Syscall::PipeWrite { pipe: PipeId(number(1)), bytes: number(2) }),
        "pair" => {
            let [first, second] = [SocketId(2 * number(1)), SocketId(2 * number(1) + 1)];
            let kind = match words[2] {
                "unix" => SocketKind::UnixStream,
                "tcp" => SocketKind::TcpLoopback,
                "udp" => SocketKind::UdpLoopback,
                other => panic!("socket {other}"),
            };
            call(Syscall::Socketpair { first, second, kind, sndbuf: number(3) })
        }
        "send" => call(Syscall::Send { socket: SocketId(number(1)), bytes: number(2) }),
        "recv" => call(Syscall::Recv { socket: SocketId(number(1)), bytes: number(2) }),
        "poll" => call(Syscall::Poll { file: File::Socket(SocketId(number(1))) }),
        "group" => call(Syscall::CgroupAttach { group: TaskGroupId(number(1)) }),
        "exec" => call(Syscall::Execve),
        "setsid" => call(Syscall::Setsid { session: SessionId(number(1)) }),
        "cpus" => call(Syscall::SchedSetaffinity { mask: cpu_list(words[1]) }),
        "nice" => Step::Attr(AttrChange::Nice(words[1].parse().unwrap())),
        "slice" => Step::Attr(AttrChange::Slice(duration(words[1]))),
        "policy" => Step::Attr(AttrChange::Policy(
            match words[1] {
                "normal" => Policy::Normal,
                "batch" => Policy::Batch,
                "idle" => Policy::Idle,
                other => panic!("policy {other}"),
            },
            0,
        )),
        "fifo" => Step::Attr(AttrChange::Policy(Policy::Fifo, words[1].parse().unwrap())),
        "rr" => Step::Attr(AttrChange::Policy(Policy::Rr, words[1].parse().unwrap())),
        "fork" => Step::Fork(words[1].to_string()),
        other => panic!("step {other}"),
    }
}

fn parse(scenario: &str) -> BTreeMap<String, Script> {
    let mut scripts = BTreeMap::new();
    for line in scenario.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let (head, body) = line.split_once(':').expect("name: steps");
        let (name, start) = match head.split_once('@') {
            Some((name, start)) => (name.trim(), Some(ORIGIN + duration(start.trim()))),
            None => (head.trim(), None),
        };
        let mut script = Script { start, ..Script::default() };
        for part in body.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            if part.starts_with('[') {
                script.repeat_from = Some(script.steps.len());
            }
            script.steps.push(step(part.trim_matches(['[', ']'])));
        }
        scripts.insert(name.to_string(), script);
    }
    scripts
}

/// The kernel that the scenarios run under: 6.12.95 at a fixed frequency.
pub fn config() -> Config {
    Config {
        cpufreq: FrequencyGovernor::Performance,
        cpuidle: IdleGovernor::Shallow,
        fair_server_runtime: 0,
        timer_slack: 0,
        single_idle_state: SingleIdleState::Governor,
        ..Config::linux_6_12()
    }
}

/// The same with CFS. Slice and latency are those of `cfs`; nothing that only EEVDF has is on.
pub fn cfs_config(cfs: CfsTunables) -> Config {
    Config {
        fair: FairClass::Cfs,
        tg_load_avg: TgLoadAvg::Always,
        base_slice_unscaled: 0,
        features: cfs_features(),
        cfs,
        ..config()
    }
}

/// The scheduler's features under CFS.
pub fn cfs_features() -> Features {
    Features {
        place_lag: false,
        place_deadline_initial: false,
        place_rel_deadline: false,
        run_to_parity: false,
        preempt_short: false,
        delay_dequeue: false,
        delay_zero: false,
        gentle_fair_sleepers: true,
        start_debit: true,
        last_buddy: true,
        alt_period: true,
        base_slice: true,
        ..Config::linux_6_12().features
    }
}

/// Equal CPUs that share a cache and a frequency domain.
pub fn device_tree(nr_cpus: usize) -> DeviceTree {
    DeviceTree {
        idle_tables: vec![vec![DtIdleState::new(0, 0)]],
        path_costs: PathCosts { constant_time: true, ..PathCosts::default() },
        coherence: None,
        ..DeviceTree::of_domains(&[(nr_cpus as u16, 1024, &[(1_000_000, 100_000)])])
    }
}

impl Board {
    pub fn new(nr_cpus: usize, scenario: &str) -> Board {
        Board::with(device_tree(nr_cpus), config(), scenario)
    }

    /// With groups, each (group above, shares); the first is number 1.
    pub fn with_groups(
        nr_cpus: usize,
        config: &Config,
        groups: &[(u32, u64)],
        scenario: &str,
    ) -> Board {
        let mut board = Board::with(device_tree(nr_cpus), config.clone(), scenario);
        for (index, (parent, shares)) in groups.iter().enumerate() {
            let id = board.kernel.new_task_group(TaskGroupId(*parent), *shares);
            assert_eq!(id, TaskGroupId(index as u32 + 1));
        }
        board
    }

    pub fn with(device_tree: DeviceTree, config: Config, scenario: &str) -> Board {
        let nr_cpus = device_tree.cpus.len();
        let mut kernel = Kernel::boot(device_tree, config);
        let scripts = parse(scenario);
        let mut to_start: Vec<(Ns, String)> =
            scripts.iter().filter_map(|(name, s)| Some((s.start?, name.clone()))).collect();
        to_start.sort_by(|a, b| b.cmp(a));
        let main = kernel.boot_thread(to_start.last().map_or(0, |s| s.0));
        let mut threads = BTreeMap::new();
        threads.insert(main, Thread::new("main"));
        Board {
            kernel,
            facts: Vec::new(),
            cpus: vec![Cpu { phase: Phase::IdleLoop, masked_until: 0, since: 0 }; nr_cpus],
            scripts,
            threads,
            main,
            to_start,
            now: 0,
            idle_exit_ns: 0,
            entered: false,
        }
    }

    /// The task of a name.
    pub fn task(&self, name: &str) -> TaskId {
        *self
            .threads
            .iter()
            .find(|t| t.1.name == name)
            .unwrap_or_else(|| panic!("no task {name}"))
            .0
    }

    /// The entity of a name.
    pub fn se(&self, name: &str) -> &SchedEntity {
        &self.kernel.inside().se[self.kernel.inside().tasks[self.task(name)].se]
    }

    fn name_of(&self, task: TaskId) -> String {
        match self.threads.get(&task) {
            Some(thread) => thread.name.clone(),
            None if task.is_idle() => ".".to_string(),
            None => "#".to_string(),
        }
    }

    /// Plays until `end`.
    pub fn run_until(&mut self, end: Ns) -> &mut Board {
        let end = ORIGIN + end;
        while self.step(end) {}
        self.now = end;
        self
    }

    /// When the lines of a CPU next interrupt it.
    fn interrupt_at(&self, cpu: usize) -> Ns {
        let wires = self.kernel.hardware().wires(CpuId(cpu as u16));
        let c = &self.cpus[cpu];
        let line = wires.ipi_at.iter().copied().min().unwrap().min(wires.clock_event_at);
        if line == NEVER {
            return NEVER;
        }
        let at = line.max(c.masked_until).max(self.now);
        if c.phase == Phase::Idle { at + self.idle_exit_ns } else { at }
    }

    fn step(&mut self, end: Ns) -> bool {
        // Order at one instant: interrupts, then work, then the idle loop; low CPUs first.
        let mut next = (NEVER, 0, 0);
        for (index, c) in self.cpus.iter().enumerate() {
            next = next.min((self.interrupt_at(index), 0, index));
            next = match c.phase {
                Phase::Task(task) => {
                    let left = self.threads.get(&task).map_or(0, |t| t.remaining);
                    next.min((c.since + left, 1, index))
                }
                Phase::IdleLoop => next.min((c.masked_until, 2, index)),
                Phase::Idle => next,
            };
        }
        let (at, what, index) = next;
        if at > end {
            return false;
        }
        assert!(at >= self.now, "time goes forward");
        self.now = at;
        let cpu = CpuId(index as u16);
        self.account(index);
        self.entered = true;
        match what {
            0 => self.interrupt(cpu),
            1 => self.work_done(cpu),
            _ => self.kernel.idle_enter(cpu, at),
        }
        self.facts.extend_from_slice(self.kernel.facts());
        self.kernel.clear_facts();
        let wires = self.kernel.hardware().wires(cpu);
        let paid_at = at + if self.entered { wires.debt } else { 0 };
        let phase = match wires.activity {
            Activity::Task(task) => Phase::Task(task),
            Activity::IdleLoop => Phase::IdleLoop,
            Activity::Idle { .. } | Activity::Poll { .. } => Phase::Idle,
        };
        self.cpus[index] = Cpu { phase, masked_until: paid_at, since: paid_at };
        self.kernel.take_dirty();
        self.kernel.take_dirty_policies();
        self.kernel.verify();
        true
    }

    fn account(&mut self, index: usize) {
        let c = &mut self.cpus[index];
        if let Phase::Task(task) = c.phase
            && let Some(thread) = self.threads.get_mut(&task)
        {
            thread.remaining -= self.now.saturating_sub(c.since).min(thread.remaining);
            c.since = self.now.max(c.since);
        }
    }

    fn interrupt(&mut self, cpu: CpuId) {
        let mut lines = IrqLines::default();
        let wires = self.kernel.hardware().wires(cpu);
        if wires.clock_event_at <= self.now {
            lines.insert(IrqLine::ClockEvent);
        }
        for kind in IpiKind::ALL {
            if wires.ipi_at[kind as usize] <= self.now {
                lines.insert(IrqLine::ipi(kind));
            }
        }
        match self.cpus[cpu.index()].phase {
            Phase::Idle => self.kernel.idle_exit(cpu, self.now, lines),
            Phase::IdleLoop => self.kernel.interrupt(cpu, self.now, lines, Mode::Kernel),
            Phase::Task(task) => {
                let mode = self.threads.get(&task).map_or(Mode::Kernel, |t| t.mode);
                self.kernel.interrupt(cpu, self.now, lines, mode);
            }
        }
    }

    fn work_done(&mut self, cpu: CpuId) {
        let Phase::Task(task) = self.cpus[cpu.index()].phase else { unreachable!() };
        let now = self.now;
        if !self.threads.contains_key(&task) {
            self.kernel.kthread(cpu, now);
        } else if self.kernel.return_to_user(cpu, now) == UserReturn::InKernel {
            // The wires say what comes of it.
        } else if task == self.main {
            self.main_step(cpu);
        } else {
            self.thread_step(cpu, task);
        }
    }

    /// The first thread starts the others and leaves.
    fn main_step(&mut self, cpu: CpuId) {
        match self.to_start.last().cloned() {
            None => self.kernel.exit(cpu, self.now),
            Some((start, _)) if start > self.now => {
                self.kernel.syscall(cpu, self.now, Syscall::NanosleepUntil { until: start });
            }
            Some((_, name)) => {
                self.to_start.pop();
                self.fork(cpu, &name);
            }
        }
    }

    fn fork(&mut self, cpu: CpuId, name: &str) {
        let parent = self.kernel.inside().rq[cpu].curr;
        let thread = ThreadId(self.threads.len() as u32);
        let call = Syscall::Clone { thread, process: ProcessId(0) };
        let task = self.kernel.syscall(cpu, self.now, call).child.expect("a new task").task;
        let attr = self.threads[&parent].attr;
        self.threads.insert(task, Thread { attr, ..Thread::new(name) });
    }

    fn thread_step(&mut self, cpu: CpuId, task: TaskId) {
        let thread = self.threads.get_mut(&task).unwrap();
        let script = &self.scripts[&thread.name];
        if thread.at == script.steps.len() {
            match script.repeat_from {
                Some(from) => thread.at = from,
                None => return self.kernel.exit(cpu, self.now),
            }
        }
        let step = script.steps[thread.at].clone();
        thread.at += 1;
        match step {
            Step::Op(Op::Compute { work, mode }) => {
                // The wires still say that the task runs; they are read again after this step. Their debt is paid.
                thread.remaining = work;
                thread.mode = mode;
                self.entered = false;
            }
            Step::Op(Op::Call(call)) => {
                thread.mode = Mode::Kernel;
                self.kernel.syscall(cpu, self.now, call);
            }
            Step::Op(_) => unreachable!("no such step"),
            Step::Attr(change) => {
                match change {
                    AttrChange::Nice(nice) => thread.attr.nice = nice,
                    AttrChange::Slice(slice) => thread.attr.slice = slice,
                    AttrChange::Policy(policy, rt_priority) => {
                        thread.attr.policy = policy;
                        thread.attr.rt_priority = rt_priority;
                    }
                }
                let attr = thread.attr;
                self.kernel.syscall(cpu, self.now, Syscall::SchedSetattr(attr));
            }
            Step::Fork(name) => self.fork(cpu, &name),
        }
    }

    /// Who runs where, a row a CPU, a column every `column` from `from` to `to`: the first letter of whoever
    /// runs in the middle of the column, `.` idle, `#` the stopper.
    pub fn timeline(&self, column: Ns, from: Ns, to: Ns) -> String {
        let mut text = String::new();
        for cpu in 0..self.cpus.len() {
            let mut row = String::new();
            let mut switches = self.switches(cpu).into_iter().peekable();
            let mut current = TaskId::IDLE;
            let mut at = from + column / 2;
            while at < to {
                while switches.peek().is_some_and(|s| s.0 <= at) {
                    current = switches.next().unwrap().1;
                }
                row.push(self.name_of(current).chars().next().unwrap());
                at += column;
            }
            writeln!(text, "cpu{cpu} {row}").unwrap();
        }
        text
    }

    /// The switches of a CPU: when, to whom.
    pub fn switches(&self, cpu: usize) -> Vec<(Ns, TaskId)> {
        let of_cpu = self.facts.iter().filter(|f| f.cpu.index() == cpu);
        of_cpu
            .filter_map(|f| match f.kind {
                FactKind::Switch { next, .. } => Some((f.at - ORIGIN, next)),
                _ => None,
            })
            .collect()
    }

    /// The switches of a CPU in words, `12.345 a` (milliseconds, microsecond steps).
    pub fn switch_list(&self, cpu: usize) -> String {
        let mut text = String::new();
        for (at, task) in self.switches(cpu) {
            writeln!(text, "{:.3} {}", at as f64 / MS as f64, self.name_of(task)).unwrap();
        }
        text
    }

    /// In which order tasks became runnable.
    pub fn wakeups(&self) -> String {
        let names = self.facts.iter().filter_map(|f| match f.kind {
            FactKind::Wakeup { task, new: false, .. } => Some(self.name_of(task)),
            _ => None,
        });
        names.collect::<Vec<_>>().join(" ")
    }

    /// CPU time of a task, by the switches.
    pub fn cpu_time(&self, name: &str) -> Ns {
        let task = self.task(name);
        let mut sum = 0;
        for cpu in 0..self.cpus.len() {
            let mut since = None;
            for (at, next) in self.switches(cpu) {
                if let Some(since) = since.take() {
                    sum += at - since;
                }
                since = (next == task).then_some(at);
            }
            sum += since.map_or(0, |since| self.now - ORIGIN - since);
        }
        sum
    }
}

impl Thread {
    fn new(name: &str) -> Thread {
        Thread {
            name: name.to_string(),
            at: 0,
            attr: SchedAttr::default(),
            remaining: 0,
            mode: Mode::User,
        }
    }
}

/// The time at which the thread `name` is switched to for the first time after the start, us.
pub fn first_runs_at(config: Config, scenario: &str, name: &str) -> u64 {
    let mut board = Board::with(device_tree(1), config, scenario);
    board.run_until(40 * MS);
    let task = board.task(name);
    let ran = board.switches(0).into_iter().filter(|s| s.1 == task && s.0 > MS).map(|s| s.0);
    ran.min().expect("it ran") / 1_000
}
