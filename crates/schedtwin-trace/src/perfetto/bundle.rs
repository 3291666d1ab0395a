// SPDX-License-Identifier: GPL-2.0-or-later
//! Ftrace bundles: what happened on one CPU.
//!
//! A bundle has the columns of `sched_switch` and `sched_waking`, a table of the names in them, and the other events one
//! after the other. Those are encoded as they come. Rows of columns wait until the bundle is written: one pass over them
//! fills all columns and numbers the names, and the buffers of that pass serve all CPUs.

use super::{BATCH, PROCESS, SEQUENCE_FTRACE};
use crate::tasks::{DEFAULT_PRIO, Tasks};
use crate::tracepoint::flags::{HARDIRQ, IRQS_OFF, SOFTIRQ};
use crate::wire::{Buffer, Column, Encoded, Space, bytes_len, varint_len};
use schedtwin_types::{
    CpuId, CpuMask, IpiKind, IrqLine, IrqLines, Khz, Ns, PerfettoValue, TaskId, TaskState,
    WakeSource,
};

/// A row of `sched_switch` or `sched_waking`.
#[derive(Clone, Copy)]
struct Row {
    at: Ns,
    /// The task that is switched to or woken, and its priority then.
    task: TaskId,
    prio: i32,
    rest: Rest,
}

/// The fields that only one of them has.
#[derive(Clone, Copy)]
enum Rest {
    Switch { prev_state: TaskState },
    Waking { source: WakeSource, prev_cpu: CpuId },
}

/// Events of a CPU that have not been written.
pub(super) struct Bundle {
    cpu: CpuId,
    /// How many facts.
    facts: usize,
    rows: Vec<Row>,
    /// The other events, as fields of the bundle.
    events: Buffer,
    /// The task that runs: events carry it as their `pid`.
    current: TaskId,
    /// Lines of the interrupt that the CPU is in, for its end.
    lines: u16,
}

impl Bundle {
    pub(super) fn new(cpu: CpuId) -> Bundle {
        Bundle {
            cpu,
            facts: 0,
            rows: Vec::with_capacity(BATCH),
            events: Buffer::default(),
            current: TaskId::IDLE,
            lines: 0,
        }
    }

    /// The number of facts that wait.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.facts
    }

    /// A switch to `next`, whose priority is `prio`.
    #[inline(always)]
    pub(super) fn switch(&mut self, at: Ns, next: TaskId, prev_state: TaskState, prio: i32) {
        self.facts += 1;
        self.rows.push(Row { at, task: next, prio, rest: Rest::Switch { prev_state } });
        self.current = next;
    }

    /// `task`, whose priority is `prio`, is being woken.
    #[inline(always)]
    pub(super) fn waking(
        &mut self,
        at: Ns,
        task: TaskId,
        source: WakeSource,
        prev_cpu: CpuId,
        prio: i32,
    ) {
        self.facts += 1;
        self.rows.push(Row { at, task, prio, rest: Rest::Waking { source, prev_cpu } });
    }

    /// A frequency for `cpus`: an event for each.
    pub(super) fn frequency(&mut self, time: &Encoded, khz: Khz, cpus: &CpuMask) {
        self.facts += 1;
        for cpu in cpus.iter() {
            self.event(time, 11, |space| {
                space.uint(1, u64::from(khz));
                space.uint(2, u64::from(cpu.0));
            });
        }
    }

    /// An event of numbers without columns: its payload is field `number`.
    #[inline(always)]
    pub(super) fn of_cpu<const N: usize>(
        &mut self,
        time: &Encoded,
        number: u16,
        fields: [(u8, PerfettoValue); N],
    ) {
        self.facts += 1;
        self.event(time, number, |space| push_fields(space, fields, time, None));
    }

    /// An event without columns that concerns `task`: its payload is field `number`, and the task's
    /// name field 1 of that.
    #[inline(always)]
    pub(super) fn of_task<const N: usize>(
        &mut self,
        time: &Encoded,
        number: u16,
        task: TaskId,
        fields: [(u8, PerfettoValue); N],
        tasks: &Tasks,
    ) {
        self.facts += 1;
        let info = tasks.get(task).filter(|_| !task.is_idle());
        let mut other = Vec::new();
        let comm = match info {
            Some(info) => info.name.as_bytes(),
            None => {
                tasks.push_comm(task, self.cpu, &mut other);
                &other
            }
        };
        let prio = info.map_or(DEFAULT_PRIO, |info| info.prio);
        self.event_with_text(
            time,
            number,
            |_| (),
            (1, comm),
            |space| push_fields(space, fields, time, Some((task, prio))),
        );
    }

    /// `ipi_raise`.
    pub(super) fn ipi(&mut self, time: &Encoded, target: CpuId, kind: IpiKind) {
        self.facts += 1;
        // The event has a 32-bit set; farther CPUs are named in the reason.
        let near = 1u32.checked_shl(u32::from(target.0)).unwrap_or(0);
        let far;
        let reason = match near {
            0 => {
                far = format!("{} to CPU {target}", kind.reason());
                &far
            }
            _ => kind.reason(),
        };
        let before = |space: &mut Space| space.uint(1, u64::from(near));
        self.event_with_text(time, 23, before, (2, reason.as_bytes()), |_| ());
    }

    /// `irq_handler_entry`.
    #[inline(always)]
    pub(super) fn irq_entry(&mut self, time: &Encoded, lines: IrqLines) {
        self.facts += 1;
        self.lines = lines.into();
        let number = self.lines;
        let several;
        let name = match IrqLine::ALL.get(number.trailing_zeros() as usize) {
            Some(line) if number.is_power_of_two() => line.name(),
            _ => {
                several = lines.to_string();
                &several
            }
        };
        let before = |space: &mut Space| space.uint(1, u64::from(number));
        self.event_with_text(time, 36, before, (2, name.as_bytes()), |_| ());
    }

    /// `irq_handler_exit`.
    #[inline(always)]
    pub(super) fn irq_exit(&mut self, time: &Encoded) {
        self.facts += 1;
        let lines = self.lines;
        self.event(time, 37, |space| {
            space.uint(1, u64::from(lines));
            space.uint(2, 1);
        });
    }

    /// Appends an event whose payload, of numbers, is field `number`.
    #[inline(always)]
    fn event(&mut self, time: &Encoded, number: u16, fill: impl FnOnce(&mut Space)) {
        let current = self.current;
        self.events.append(|space| {
            event_begins(space, time, current, number);
            let payload = space.len();
            fill(space);
            space.put(payload - 1, (space.len() - payload) as u8);
            space.put(1, (space.len() - 2) as u8);
        });
    }

    /// Appends an event whose payload, of numbers, a text and numbers, is field `number`.
    #[inline(always)]
    fn event_with_text(
        &mut self,
        time: &Encoded,
        number: u16,
        before: impl FnOnce(&mut Space),
        (field, text): (u8, &[u8]),
        after: impl FnOnce(&mut Space),
    ) {
        let (current, start) = (self.current, self.events.len());
        let mut payload = 0;
        self.events.append(|space| {
            event_begins(space, time, current, number);
            payload = space.len();
            before(space);
            space.raw([field << 3 | 2]);
            space.varint(text.len() as u64);
        });
        self.events.extend(text);
        self.events.append(after);
        self.events.message_ends(start + payload - 1);
        self.events.message_ends(start + 1);
    }

    /// Appends the bundle's packet and begins the next bundle.
    pub(super) fn flush(&mut self, columns: &mut Columns, tasks: &Tasks, packets: &mut Buffer) {
        columns.fill(&self.rows, self.cpu, tasks);
        let fields = columns.fields();
        let lengths = fields.clone().map(|(_, column)| bytes_len(column.len()));
        let compact = lengths.sum::<usize>() + columns.table.len();
        // Messages are inside one another, and each begins with its length.
        let mut bundle = 1 + varint_len(usize::from(self.cpu.0)) + self.events.len();
        if compact > 0 {
            bundle += bytes_len(compact);
        }
        packets.append(|space| {
            space.raw([1 << 3 | 2]);
            space.varint((2 + bytes_len(bundle)) as u64);
            space.uint(10, u64::from(SEQUENCE_FTRACE));
            space.raw([1 << 3 | 2]);
            space.varint(bundle as u64);
            space.uint(1, u64::from(self.cpu.0));
        });
        packets.extend(self.events.as_bytes());
        if compact > 0 {
            packets.append(|space| {
                space.raw([4 << 3 | 2]);
                space.varint(compact as u64);
            });
            fields.for_each(|(number, column)| packets.bytes(number, column));
            packets.extend(columns.table.as_bytes());
        }
        self.facts = 0;
        self.rows.clear();
        self.events.clear();
    }
}

/// Appends an event's fields: of the fact at `time`, about `task` and its priority.
#[inline(always)]
fn push_fields<const N: usize>(
    space: &mut Space,
    fields: [(u8, PerfettoValue); N],
    time: &Encoded,
    task: Option<(TaskId, i32)>,
) {
    let of_task = || task.expect("the event is one of a task");
    for (number, value) in fields {
        match value {
            PerfettoValue::Number(value) => space.uint(number, value),
            PerfettoValue::At => {
                space.raw([number << 3]);
                space.piece(time);
            }
            PerfettoValue::Pid => space.uint(number, u64::from(of_task().0.0)),
            PerfettoValue::Prio => space.int(number, i64::from(of_task().1)),
            PerfettoValue::Process => space.int(number, i64::from(PROCESS)),
        }
    }
}

/// Appends what an event begins with that is at the encoded `time`, while `current` runs, and has its payload in field
/// `number`. The second byte and the last one are reserved for the lengths.
#[inline(always)]
fn event_begins(space: &mut Space, time: &Encoded, current: TaskId, number: u16) {
    // Field 2 of the bundle, and the time as field 1 of that.
    space.raw([2 << 3 | 2, 0, 1 << 3]);
    space.piece(time);
    space.uint(2, u64::from(current.0));
    let tag = number << 3 | 2;
    if number < 16 {
        space.raw([tag as u8, 0]);
    } else {
        space.raw([tag as u8 | 0x80, (tag >> 7) as u8, 0]);
    }
}

/// The columns of one bundle after the other. All buffers are reused.
#[derive(Default)]
pub(super) struct Columns {
    /// Of `sched_switch`: time, state, pid, priority, name.
    switch: [Column; 5],
    /// Of `sched_waking`: time, pid, CPU, priority, name, flags.
    waking: [Column; 6],
    /// The table of names, as fields of `compact_sched`.
    table: Buffer,
    /// By task: the generation of the table it was last put in, and its place there.
    interned: Vec<(u64, u32)>,
    generation: u64,
    names: u32,
    name: Vec<u8>,
}

impl Columns {
    /// The columns with their numbers in `compact_sched`: none without rows.
    fn fields(&self) -> impl Iterator<Item = (u8, &[u8])> + Clone {
        let columns =
            [1, 2, 3, 4, 6].into_iter().zip(&self.switch).chain((7..=12).zip(&self.waking));
        columns
            .map(|(number, column)| (number, column.as_bytes()))
            .filter(|(_, column)| !column.is_empty())
    }

    /// Makes the columns of a bundle.
    fn fill(&mut self, rows: &[Row], cpu: CpuId, tasks: &Tasks) {
        self.switch.iter_mut().chain(&mut self.waking).for_each(|column| column.begin(rows.len()));
        self.table.clear();
        self.generation += 1;
        self.names = 0;
        let (mut switched_at, mut woken_at): (Ns, Ns) = (0, 0);
        for row in rows {
            let place = u64::from(self.intern(row.task, cpu, tasks));
            let (number, prio) = (u64::from(row.task.0), i64::from(row.prio) as u64);
            match row.rest {
                Rest::Switch { prev_state } => {
                    let [time, state, pid, prios, name] = &mut self.switch;
                    // A reader adds with wrap-around, so that even a step back survives.
                    time.push_long(row.at.wrapping_sub(switched_at));
                    state.push(raw_prev_state(prev_state));
                    pid.push(number);
                    prios.push(prio);
                    name.push(place);
                    switched_at = row.at;
                }
                Rest::Waking { source, prev_cpu } => {
                    let [time, pid, target, prios, name, flags] = &mut self.waking;
                    time.push_long(row.at.wrapping_sub(woken_at));
                    pid.push(number);
                    target.push(u64::from(prev_cpu.0));
                    prios.push(prio);
                    name.push(place);
                    flags.push(u64::from(match source {
                        WakeSource::Task => IRQS_OFF,
                        WakeSource::Timer => IRQS_OFF | HARDIRQ,
                        WakeSource::Kernel => IRQS_OFF | SOFTIRQ,
                    }));
                    woken_at = row.at;
                }
            }
        }
    }

    /// The task's place in this bundle's table.
    #[inline(always)]
    fn intern(&mut self, task: TaskId, cpu: CpuId, tasks: &Tasks) -> u32 {
        match self.interned.get(task.index()) {
            Some((generation, place)) if *generation == self.generation => *place,
            _ => self.put_into_table(task, cpu, tasks),
        }
    }

    #[inline(never)]
    fn put_into_table(&mut self, task: TaskId, cpu: CpuId, tasks: &Tasks) -> u32 {
        if self.interned.len() <= task.index() {
            self.interned.resize(task.index() + 1, (0, 0));
        }
        let place = self.names;
        self.interned[task.index()] = (self.generation, place);
        self.names += 1;
        self.name.clear();
        tasks.push_comm(task, cpu, &mut self.name);
        self.table.bytes(5, &self.name);
        place
    }
}

/// `prev_state` as `sched_switch` records it since 4.14: `TASK_REPORT` bits, and `TASK_REPORT_MAX`
/// for a preempted task.
#[inline(always)]
fn raw_prev_state(state: TaskState) -> u64 {
    match state {
        TaskState::Running => 0,
        TaskState::Interruptible => 0x01,
        TaskState::Uninterruptible => 0x02,
        TaskState::Dead => 0x10,
        TaskState::Preempted => 0x100,
    }
}
