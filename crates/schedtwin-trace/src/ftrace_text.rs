// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes text as `trace-cmd report -N` prints it.
//!
//! `-N` prints each event by its own format instead of by trace-cmd's plugins
//! (`prev_comm=ui prev_pid=1 ...`, not `ui:1 [120] S ==> ...`): this is what LISA, TRAPpy and
//! Perfetto's text importer read. A line, for the tasks `ui` and the idle task:
//!
//! ```text
//! cpus=8
//!           <idle>-0     [006]     1.234567: sched_switch:         prev_comm=swapper/6 prev_pid=0 ...
//! ^ 16 columns     ^ 5     ^ 3   ^ 5 + 6     ^ 20 and two
//! ```
//!
//! Times are rounded to microseconds, as trace-cmd does without `-t`. The task at the start of a
//! line is the one that runs on the CPU.
//!
//! Names are not cut to the kernel's 15 characters, so one could hold the head of a line of its own, or fields. A
//! name that would be read back as anything but itself is written with `_` in place of what makes it so.
//!
//! Besides the kernel's events there are the ones of LISA's module for what the kernel offers to
//! modules only: `sched_pelt_cfs`, `sched_pelt_se`, `sched_util_est_cfs`, `sched_util_est_se`
//! (without `load`, which no fact carries) and `sched_overutilized`.
//!
//! Differences: power and balance passes have no event and are left out. `Tick` is the expiry of its
//! hrtimer, without the address. An interrupt's number is the bit set of lines delivered together.

use crate::atomic_file::Output;
use crate::event::{TraceEventKind, TraceSource};
use crate::ftrace_read::FtraceSource;
use crate::perfetto::{PWR_EVENT_EXIT, ipi_reason, push_lines};
use crate::tasks::Tasks;
use crate::{Destination, Meta, Sink, TaskInfo};
use schedtwin_types::{CpuId, CpuMask, Fact, FactKind, Ns, TaskId, TaskState, printable};
use std::io::{self, Write};

/// Width that trace-cmd gives to an event's name.
const EVENT_COLUMNS: usize = 20;

/// Characters of a task's name that are written: a line with three names stays shorter than readers accept.
const COMM_CHARS_MAX: usize = 200;

/// A text trace being written; see the module.
pub struct FtraceText<D: Destination> {
    output: Output<D>,
    meta: Meta,
    tasks: Tasks,
    /// The task that runs on each CPU.
    current: Vec<TaskId>,
    /// Lines of the interrupt that each CPU is in, for its end.
    lines: Vec<u16>,
    line: Vec<u8>,
}

impl<D: Destination> FtraceText<D> {
    /// Starts a trace.
    pub fn new(destination: D, meta: Meta) -> FtraceText<D> {
        let mut output = Output::new(destination);
        output.write(format!("cpus={}\n", meta.nr_cpus).as_bytes());
        // Every reader of ftrace text skips lines that begin with '#'.
        output.write(format!("# schedtwin: {}\n", one_line(&meta.title)).as_bytes());
        for (key, value) in &meta.provenance {
            output.write(format!("# {}: {}\n", one_line(key), one_line(value)).as_bytes());
        }
        FtraceText {
            output,
            tasks: Tasks::default(),
            current: vec![TaskId::IDLE; meta.nr_cpus],
            lines: vec![0; meta.nr_cpus],
            line: Vec::new(),
            meta,
        }
    }

    fn write_line(
        &mut self,
        at: Ns,
        cpu: CpuId,
        event: &str,
        fill: impl FnOnce(&Tasks, &mut Vec<u8>),
    ) {
        let line = &mut self.line;
        line.clear();
        let current = self.current[cpu.index()];
        let comm = if current.is_idle() {
            "<idle>"
        } else {
            self.tasks.get(current).map_or("<...>", |info| info.name.as_str())
        };
        let mut seconds = at / 1_000_000_000;
        let mut micros = (at % 1_000_000_000 + 500) / 1_000;
        if micros > 999_999 {
            seconds += 1;
            micros = 0;
        }
        write!(
            line,
            "{comm:>16}-{:<5} [{:03}] {seconds:5}.{micros:06}: {event}: ",
            current.0, cpu.0,
        )
        .expect("memory takes everything");
        // Details begin in one column, unless the event's name is longer than it is wide.
        line.extend(std::iter::repeat_n(b' ', EVENT_COLUMNS.saturating_sub(event.len())));
        fill(&self.tasks, line);
        line.push(b'\n');
        self.output.write(line);
    }

    fn write_task(
        &mut self,
        fact: &Fact,
        event: &str,
        task: TaskId,
        rest: std::fmt::Arguments<'_>,
    ) {
        self.write_line(fact.at, fact.cpu, event, |tasks, line| {
            line.extend_from_slice(b"comm=");
            tasks.push_comm(task, fact.cpu, line);
            let prio = tasks.prio(task);
            write!(line, " pid={task} prio={prio}{rest}").expect("memory takes everything");
        });
    }

    fn write_text(&mut self, fact: &Fact, event: &str, text: std::fmt::Arguments<'_>) {
        self.write_line(fact.at, fact.cpu, event, |_, line| {
            line.write_fmt(text).expect("memory takes everything");
        });
    }
}

/// A comment must stay one, and a name in its line.
fn one_line(text: &str) -> String {
    printable::line(text).into_owned()
}

/// A task's name as lines can hold it: readers find the end of a name by what follows it.
fn comm(name: &str) -> String {
    let mut name: String = printable::line(name).chars().take(COMM_CHARS_MAX).collect();
    if !reads_back(&name) {
        name = name.replace(['[', ':', '=', '#', ' '], "_");
    }
    name
}

/// Whether a reader of the lines in which a task runs and is woken finds its name.
fn reads_back(name: &str) -> bool {
    let switch = format!("prev_comm={name} prev_pid=1 prev_prio=120 prev_state=S ==> ");
    let arguments = [
        format!("sched_switch: {switch}next_comm={name} next_pid=1 next_prio=120"),
        format!("sched_wakeup: comm={name} pid=1 prio=120 target_cpu=000"),
    ];
    let lines = arguments.map(|event| format!("{name:>16}-1     [000]     0.000000: {event}\n"));
    let text = lines.concat();
    let mut source = FtraceSource::new(text.as_bytes());
    let mut found = 0;
    while let Ok(Some(event)) = source.next_event() {
        let is = |comm| source.names().text(comm) == name;
        let same = match event.kind {
            TraceEventKind::Switch { prev: Some(prev), next, .. } => is(prev.comm) && is(next.comm),
            TraceEventKind::Wakeup { task, .. } => is(task.comm),
            _ => false,
        };
        let running = source.names().text(event.context.comm);
        found += u32::from(same && running == name.trim_start_matches(' '));
    }
    source.report().damage_count == 0 && found == 2
}

/// `prev_state` as `sched_switch` prints it.
pub(crate) fn state_letters(state: TaskState) -> &'static str {
    match state {
        TaskState::Running => "R",
        TaskState::Preempted => "R+",
        TaskState::Interruptible => "S",
        TaskState::Uninterruptible => "D",
        TaskState::Dead => "X",
    }
}

impl<D: Destination> Sink for FtraceText<D> {
    fn task(&mut self, info: &TaskInfo) {
        self.tasks.insert(&TaskInfo { name: comm(&info.name), ..*info });
    }

    fn task_prio(&mut self, id: TaskId, prio: i32) {
        self.tasks.set_prio(id, prio);
    }

    fn fact(&mut self, fact: &Fact) {
        let cpu = fact.cpu;
        match fact.kind {
            FactKind::Switch { prev, next, prev_state } => {
                self.current[cpu.index()] = prev;
                self.write_line(fact.at, cpu, "sched_switch", |tasks, line| {
                    line.extend_from_slice(b"prev_comm=");
                    tasks.push_comm(prev, cpu, line);
                    let (prio, state) = (tasks.prio(prev), state_letters(prev_state));
                    write!(line, " prev_pid={prev} prev_prio={prio} prev_state={state} ==> ")
                        .expect("memory takes everything");
                    line.extend_from_slice(b"next_comm=");
                    tasks.push_comm(next, cpu, line);
                    write!(line, " next_pid={next} next_prio={}", tasks.prio(next))
                        .expect("memory takes everything");
                });
                self.current[cpu.index()] = next;
            }
            FactKind::Waking { task, prev_cpu, .. } => {
                let rest = format_args!(" target_cpu={:03}", prev_cpu.0);
                self.write_task(fact, "sched_waking", task, rest);
            }
            FactKind::Wakeup { task, target, new } => {
                let event = if new { "sched_wakeup_new" } else { "sched_wakeup" };
                self.write_task(fact, event, task, format_args!(" target_cpu={:03}", target.0));
            }
            FactKind::Migrate { task, from, to } => {
                let rest = format_args!(" orig_cpu={from} dest_cpu={to}");
                self.write_task(fact, "sched_migrate_task", task, rest);
            }
            FactKind::Exit { task } => {
                self.write_task(fact, "sched_process_exit", task, format_args!(""));
            }
            FactKind::IdleEnter { state, .. } => {
                self.write_text(fact, "cpu_idle", format_args!("state={state} cpu_id={cpu}"));
            }
            FactKind::IdleExit { .. } => {
                let text = format_args!("state={PWR_EVENT_EXIT} cpu_id={cpu}");
                self.write_text(fact, "cpu_idle", text);
            }
            FactKind::IdleMiss { state, below } => {
                let side = if below { "below" } else { "above" };
                let text = format_args!("cpu_id={cpu} state={state} type={side}");
                self.write_text(fact, "cpu_idle_miss", text);
            }
            FactKind::Frequency { policy, khz, .. } => {
                let listed = self.meta.policy_cpus.get(policy.index()).copied();
                for cpu in listed.unwrap_or(CpuMask::of(cpu)).iter() {
                    let text = format_args!("state={khz} cpu_id={cpu}");
                    self.write_text(fact, "cpu_frequency", text);
                }
            }
            FactKind::Tick => {
                // tick_sched_timer before 6.8.
                let text = format_args!("hrtimer=0x0 function=tick_nohz_handler now={}", fact.at);
                self.write_text(fact, "hrtimer_expire_entry", text);
            }
            FactKind::Ipi { target, kind } => {
                let words = self.meta.nr_cpus.div_ceil(32).max(1);
                self.write_line(fact.at, cpu, "ipi_raise", |_, line| {
                    line.extend_from_slice(b"target_mask=");
                    for word in (0..words).rev() {
                        let inside = target.index() / 32 == word;
                        let bits = if inside { 1u32 << (target.0 % 32) } else { 0 };
                        let comma = if word == 0 { "" } else { "," };
                        write!(line, "{bits:08x}{comma}").expect("memory takes everything");
                    }
                    write!(line, " ({})", ipi_reason(kind)).expect("memory takes everything");
                });
            }
            FactKind::IrqEntry { lines } => {
                let irq = u16::from(lines);
                self.lines[cpu.index()] = irq;
                self.write_line(fact.at, cpu, "irq_handler_entry", |_, line| {
                    write!(line, "irq={irq} name=").expect("memory takes everything");
                    push_lines(lines, line);
                });
            }
            FactKind::IrqExit { .. } => {
                let irq = self.lines[cpu.index()];
                self.write_text(fact, "irq_handler_exit", format_args!("irq={irq} ret=handled"));
            }
            FactKind::Overutilized { on } => {
                let text = format_args!("overutilized={}", u8::from(on));
                self.write_text(fact, "sched_overutilized", text);
            }
            FactKind::CpuSignals { util_avg, runnable_avg, util_est } => {
                let text = format_args!("cpu={cpu} path=/ runnable={runnable_avg} util={util_avg}");
                self.write_text(fact, "sched_pelt_cfs", text);
                let text = format_args!("cpu={cpu} path=/ enqueued={util_est} util={util_avg}");
                self.write_text(fact, "sched_util_est_cfs", text);
            }
            FactKind::TaskSignals { task, util_avg, util_est, runnable_avg } => {
                let comm = self.tasks.comm(task, cpu);
                let who = format!("cpu={cpu} path=(null) comm={comm} pid={task}");
                let text = format_args!("{who} runnable={runnable_avg} util={util_avg}");
                self.write_text(fact, "sched_pelt_se", text);
                let text = format_args!("{who} enqueued={util_est} util={util_avg}");
                self.write_text(fact, "sched_util_est_se", text);
            }
            // A pass over a domain and a throttled task have no event, and R+ says that a task was preempted.
            FactKind::Balance { .. }
            | FactKind::DlThrottled { .. }
            | FactKind::Preempted { .. } => {}
        }
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.output.finish()
    }
}
