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
use crate::tasks::Tasks;
use crate::{Destination, Meta, Sink, TaskInfo};
use schedtwin_types::{
    CpuId, CpuMask, Fact, FtraceForm, IpiKind, IrqLines, Khz, Ns, PolicyId, TaskId, TaskState,
    printable,
};
use std::fmt::Arguments;
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
    // Ours tells names from fields by their length; others take the first field.
    if [" pid=", " prev_pid=", " next_pid="].iter().any(|field| name.contains(field)) {
        return false;
    }
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

/// One fact on its way into the text.
struct Lines<'a, D: Destination> {
    trace: &'a mut FtraceText<D>,
    at: Ns,
    cpu: CpuId,
}

impl<D: Destination> Lines<'_, D> {
    fn line(&mut self, event: &str, fill: impl FnOnce(&Tasks, &mut Vec<u8>)) {
        self.trace.write_line(self.at, self.cpu, event, fill);
    }
}

impl<D: Destination> FtraceForm for Lines<'_, D> {
    fn event(&mut self, event: &str, fields: Arguments<'_>) {
        self.line(event, |_, line| line.write_fmt(fields).expect("memory takes everything"));
    }

    fn task_event(&mut self, event: &str, task: TaskId, rest: Arguments<'_>) {
        let cpu = self.cpu;
        self.line(event, |tasks, line| {
            line.extend_from_slice(b"comm=");
            tasks.push_comm(task, cpu, line);
            let prio = tasks.prio(task);
            write!(line, " pid={task} prio={prio}{rest}").expect("memory takes everything");
        });
    }

    fn switch(&mut self, prev: TaskId, next: TaskId, prev_state: TaskState) {
        let cpu = self.cpu;
        self.trace.current[cpu.index()] = prev;
        self.line("sched_switch", |tasks, line| {
            line.extend_from_slice(b"prev_comm=");
            tasks.push_comm(prev, cpu, line);
            let (prio, state) = (tasks.prio(prev), prev_state.letters());
            write!(line, " prev_pid={prev} prev_prio={prio} prev_state={state} ==> ")
                .expect("memory takes everything");
            line.extend_from_slice(b"next_comm=");
            tasks.push_comm(next, cpu, line);
            write!(line, " next_pid={next} next_prio={}", tasks.prio(next))
                .expect("memory takes everything");
        });
        self.trace.current[cpu.index()] = next;
    }

    fn frequency(&mut self, policy: PolicyId, khz: Khz) {
        let listed = self.trace.meta.policy_cpus.get(policy.index()).copied();
        for cpu in listed.unwrap_or(CpuMask::of(self.cpu)).iter() {
            self.event("cpu_frequency", format_args!("state={khz} cpu_id={cpu}"));
        }
    }

    fn tick(&mut self) {
        let at = self.at;
        let text = format_args!("hrtimer=0x0 function=tick_nohz_handler now={at}");
        self.event("hrtimer_expire_entry", text);
    }

    fn ipi(&mut self, target: CpuId, kind: IpiKind) {
        let words = self.trace.meta.nr_cpus.div_ceil(32).max(1);
        self.line("ipi_raise", |_, line| {
            line.extend_from_slice(b"target_mask=");
            for word in (0..words).rev() {
                let inside = target.index() / 32 == word;
                let bits = if inside { 1u32 << (target.0 % 32) } else { 0 };
                let comma = if word == 0 { "" } else { "," };
                write!(line, "{bits:08x}{comma}").expect("memory takes everything");
            }
            write!(line, " ({})", kind.reason()).expect("memory takes everything");
        });
    }

    fn irq_entry(&mut self, lines: IrqLines) {
        let irq = u16::from(lines);
        self.trace.lines[self.cpu.index()] = irq;
        self.event("irq_handler_entry", format_args!("irq={irq} name={lines}"));
    }

    fn irq_exit(&mut self) {
        let irq = self.trace.lines[self.cpu.index()];
        self.event("irq_handler_exit", format_args!("irq={irq} ret=handled"));
    }

    fn comm(&self, task: TaskId) -> String {
        self.trace.tasks.comm(task, self.cpu)
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
        let (at, cpu) = (fact.at, fact.cpu);
        fact.kind.ftrace(&mut Lines { trace: self, at, cpu }, cpu);
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.output.finish()
    }
}
