// SPDX-License-Identifier: GPL-2.0-or-later
//! Events as records of tracepoints, and the formats that describe these.
//!
//! Names of systems, tracepoints and fields are the kernel's. Fields that [`TraceEventKind`] does not keep are left out of a
//! tracepoint's format, not filled in.

use crate::event::{EventTask, Left, NameId, Names, TraceEventKind};

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `char [16]`.
    Comm,
    I32,
    U32,
    U64,
    /// An address.
    Pointer,
    /// `__data_loc char[]`.
    Text,
    /// Text to the end of the record.
    Rest,
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Number(i64),
    Name(NameId),
    /// The address of a function or a string, which is made up if it is a name.
    Address(NameId),
}

/// The fields of a record: names, types and values.
pub type Row = Vec<(&'static str, Type, Value)>;

/// `TASK_*` of the kernel since 4.14, as `prev_state` has them.
fn state(left: Left) -> i64 {
    match left {
        Left::Runnable => 0,
        Left::Asleep => 1,
        Left::Blocked => 2,
        Left::Dead => 0x10,
    }
}

fn push_task(row: &mut Row, [comm, pid, prio]: [&'static str; 3], task: EventTask) {
    row.push((comm, Type::Comm, Value::Name(task.comm)));
    row.push((pid, Type::I32, Value::Number(task.pid.into())));
    row.push((prio, Type::I32, Value::Number(task.prio.into())));
}

/// Fills in the row of an event; `false`: no tracepoint of the kernel has it, or not as it is known here. Marks of programs are
/// written by the caller.
pub fn fill(kind: &TraceEventKind, row: &mut Row) -> bool {
    use TraceEventKind as Kind;
    row.clear();
    let mut number = |name, ty, value: i64| row.push((name, ty, Value::Number(value)));
    match *kind {
        Kind::Switch { prev: Some(prev), left, next } => {
            push_task(row, ["prev_comm", "prev_pid", "prev_prio"], prev);
            row.push(("prev_state", Type::U64, Value::Number(state(left))));
            push_task(row, ["next_comm", "next_pid", "next_prio"], next);
        }
        Kind::Waking { task, target }
        | Kind::Wakeup { task, target }
        | Kind::WakeupNew { task, target } => {
            push_task(row, ["comm", "pid", "prio"], task);
            if let Some(target) = target {
                row.push(("target_cpu", Type::I32, Value::Number(target.0.into())));
            }
        }
        Kind::Migrate { task, from, to } => {
            push_task(row, ["comm", "pid", "prio"], task);
            row.push(("orig_cpu", Type::I32, Value::Number(from.0.into())));
            row.push(("dest_cpu", Type::I32, Value::Number(to.0.into())));
        }
        Kind::Fork { parent, child_comm, child } => {
            number("parent_pid", Type::I32, parent.into());
            row.push(("child_comm", Type::Comm, Value::Name(child_comm)));
            row.push(("child_pid", Type::I32, Value::Number(child.into())));
        }
        Kind::Exit { pid } | Kind::Free { pid } => number("pid", Type::I32, pid.into()),
        Kind::Exec { pid, old_pid } => {
            number("pid", Type::I32, pid.into());
            number("old_pid", Type::I32, old_pid.into());
        }
        Kind::NewTask { pid, comm, clone_flags } => {
            number("pid", Type::I32, pid.into());
            row.push(("comm", Type::Comm, Value::Name(comm)));
            row.push(("clone_flags", Type::U64, Value::Number(clone_flags as i64)));
        }
        Kind::Rename { pid, comm } => {
            number("pid", Type::I32, pid.into());
            row.push(("newcomm", Type::Comm, Value::Name(comm)));
        }
        Kind::PiPriority { pid, from, to } => {
            number("pid", Type::I32, pid.into());
            number("oldprio", Type::I32, from.into());
            number("newprio", Type::I32, to.into());
        }
        Kind::Affinity { pid, cpus } => {
            number("pid", Type::I32, pid.into());
            number("cpu_affinity", Type::U64, cpus as i64);
        }
        Kind::Clamp { pid, min: Some(min), max: Some(max) } => {
            number("pid", Type::I32, pid.into());
            number("uclamp_min", Type::U32, min.into());
            number("uclamp_max", Type::U32, max.into());
        }
        Kind::Frequency { cpu, khz } => {
            number("state", Type::U32, khz.into());
            number("cpu_id", Type::U32, cpu.0.into());
        }
        Kind::FrequencyLimits { cpu, min_khz, max_khz } => {
            number("min_freq", Type::U32, min_khz.into());
            number("max_freq", Type::U32, max_khz.into());
            number("cpu_id", Type::U32, cpu.0.into());
        }
        Kind::Idle { cpu, state } => {
            number("state", Type::U32, state.unwrap_or(u32::MAX).into());
            number("cpu_id", Type::U32, cpu.0.into());
        }
        Kind::IdleMiss { cpu, state, below } => {
            number("cpu_id", Type::U32, cpu.0.into());
            number("state", Type::U32, state.into());
            number("below", Type::U32, below.into());
        }
        Kind::IrqEntry { irq, handler } => {
            number("irq", Type::I32, irq.into());
            row.push(("name", Type::Text, Value::Name(handler)));
        }
        Kind::IrqExit { irq } => number("irq", Type::I32, irq.into()),
        Kind::SoftirqRaise { vector }
        | Kind::SoftirqEntry { vector }
        | Kind::SoftirqExit { vector } => number("vec", Type::U32, vector.into()),
        _ => return fill_timers(kind, row),
    }
    true
}

/// Timers, work items, and interrupts between CPUs.
fn fill_timers(kind: &TraceEventKind, row: &mut Row) -> bool {
    use TraceEventKind as Kind;
    let address = |value: u64| (Type::Pointer, Value::Number(value as i64));
    let mut push = |name, (ty, value)| row.push((name, ty, value));
    let function = |name: NameId| (Type::Pointer, Value::Address(name));
    match *kind {
        Kind::HrtimerStart { timer, function: name, expires } => {
            push("hrtimer", address(timer));
            push("function", function(name));
            push("expires", (Type::U64, Value::Number(expires as i64)));
        }
        Kind::HrtimerCancel { timer } | Kind::HrtimerDone { timer } => {
            push("hrtimer", address(timer));
        }
        Kind::HrtimerExpire { timer, function: name } => {
            push("hrtimer", address(timer));
            push("function", function(name));
        }
        Kind::TimerStart { timer, function: name, expires, ticks } => {
            push("timer", address(timer));
            push("function", function(name));
            push("expires", (Type::U64, Value::Number(expires as i64)));
            push("now", (Type::U64, Value::Number((expires as i64).wrapping_sub(ticks))));
        }
        Kind::TimerCancel { timer } | Kind::TimerDone { timer } => push("timer", address(timer)),
        Kind::TimerExpire { timer, function: name } => {
            push("timer", address(timer));
            push("function", function(name));
        }
        Kind::WorkQueue { work, function: name, cpu } => {
            push("work", address(work));
            push("function", function(name));
            // WORK_CPU_UNBOUND lies above all CPUs.
            let cpu = cpu.map_or(u16::MAX, |cpu| cpu.0);
            push("req_cpu", (Type::U32, Value::Number(cpu.into())));
        }
        Kind::WorkStart { work, function: name } => {
            push("work", address(work));
            push("function", function(name));
        }
        Kind::WorkEnd { work } => push("work", address(work)),
        Kind::BlockedReason { pid, io_wait } => {
            push("pid", (Type::I32, Value::Number(pid.into())));
            push("io_wait", (Type::U32, Value::Number(io_wait.into())));
        }
        _ => return false,
    }
    true
}

/// As [`fill`], of interrupts whose fields depend on the tracepoint's name.
pub fn fill_interrupt(kind: &TraceEventKind, event: &str, row: &mut Row) -> bool {
    use TraceEventKind as Kind;
    row.clear();
    match *kind {
        Kind::VectorEntry { name } | Kind::VectorExit { name } if event.starts_with("ipi_") => {
            row.push(("reason", Type::Pointer, Value::Address(name)));
        }
        Kind::VectorEntry { .. } | Kind::VectorExit { .. } => {
            row.push(("vector", Type::I32, Value::Number(0)));
        }
        Kind::IpiSend { to: Some(to), .. } if event == "ipi_send_cpu" => {
            row.push(("cpu", Type::U32, Value::Number(to.0.into())));
        }
        Kind::IpiSend { reason, .. } if event == "ipi_raise" => {
            row.push(("reason", Type::Pointer, Value::Address(reason)));
        }
        Kind::IpiSend { .. } if event == "ipi_send_cpumask" => {
            row.push(("callsite", Type::Pointer, Value::Number(0)));
        }
        _ => return false,
    }
    true
}

/// The system of a tracepoint.
pub fn system_of(event: &str, kind: &TraceEventKind) -> &'static str {
    use TraceEventKind as Kind;
    match kind {
        Kind::VectorEntry { .. } | Kind::VectorExit { .. } if !event.starts_with("ipi_") => {
            "irq_vectors"
        }
        Kind::VectorEntry { .. } | Kind::VectorExit { .. } | Kind::IpiSend { .. } => "ipi",
        Kind::NewTask { .. } | Kind::Rename { .. } => "task",
        Kind::Frequency { .. }
        | Kind::FrequencyLimits { .. }
        | Kind::Idle { .. }
        | Kind::IdleMiss { .. } => "power",
        Kind::IrqEntry { .. }
        | Kind::IrqExit { .. }
        | Kind::SoftirqRaise { .. }
        | Kind::SoftirqEntry { .. }
        | Kind::SoftirqExit { .. } => "irq",
        Kind::HrtimerStart { .. }
        | Kind::HrtimerCancel { .. }
        | Kind::HrtimerExpire { .. }
        | Kind::HrtimerDone { .. }
        | Kind::TimerStart { .. }
        | Kind::TimerCancel { .. }
        | Kind::TimerExpire { .. }
        | Kind::TimerDone { .. } => "timer",
        Kind::WorkQueue { .. } | Kind::WorkStart { .. } | Kind::WorkEnd { .. } => "workqueue",
        _ => "sched",
    }
}

/// Bytes of the common fields.
pub const COMMON_BYTES: usize = 8;

/// `comm` of the kernel.
const COMM_BYTES: usize = 16;

impl Type {
    /// Size and alignment within a record.
    fn size(self) -> (usize, usize) {
        match self {
            Type::Comm => (COMM_BYTES, 1),
            Type::I32 | Type::U32 | Type::Text => (4, 4),
            Type::U64 | Type::Pointer => (8, 8),
            Type::Rest => (0, 1),
        }
    }

    /// The field's declaration and whether it is signed.
    fn declared(self, name: &str) -> (String, u8) {
        match self {
            Type::Comm => (format!("char {name}[{COMM_BYTES}]"), 0),
            Type::I32 => (format!("int {name}"), 1),
            Type::U32 => (format!("u32 {name}"), 0),
            Type::U64 => (format!("u64 {name}"), 0),
            Type::Pointer => (format!("void * {name}"), 0),
            Type::Text => (format!("__data_loc char[] {name}"), 0),
            Type::Rest => (format!("char {name}[]"), 0),
        }
    }

    fn printed(self, name: &str) -> (&'static str, String) {
        match self {
            Type::Comm | Type::Rest => ("%s", format!("REC->{name}")),
            Type::Text => ("%s", format!("__get_str({name})")),
            Type::I32 => ("%d", format!("REC->{name}")),
            Type::U32 => ("%u", format!("REC->{name}")),
            Type::U64 => ("%llu", format!("REC->{name}")),
            Type::Pointer => ("%p", format!("REC->{name}")),
        }
    }
}

/// The offset of each field, and the bytes of all.
pub fn offsets(types: impl Iterator<Item = Type>) -> (Vec<usize>, usize) {
    let mut end = COMMON_BYTES;
    let offsets = types
        .map(|ty| {
            let (size, align) = ty.size();
            let at = end.next_multiple_of(align);
            end = at + size;
            at
        })
        .collect();
    (offsets, end.next_multiple_of(4))
}

/// The text of a tracepoint's format. `flags`: whether records have `common_flags`, which say what was interrupted.
pub fn format_text(event: &str, id: u16, fields: &[(&'static str, Type)], flags: bool) -> String {
    let mut text = format!("name: {event}\nID: {id}\nformat:\n");
    let mut field = |declared: &str, offset: usize, size: usize, signed: u8| {
        text.push_str(&format!(
            "\tfield:{declared};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n"
        ));
    };
    field("unsigned short common_type", 0, 2, 0);
    if flags {
        field("unsigned char common_flags", 2, 1, 0);
        field("unsigned char common_preempt_count", 3, 1, 0);
    }
    field("int common_pid", 4, 4, 1);
    text.push('\n');
    let (offsets, _) = offsets(fields.iter().map(|(_, ty)| *ty));
    let mut print = Vec::new();
    for ((name, ty), offset) in fields.iter().zip(offsets) {
        let (declared, signed) = ty.declared(name);
        let (size, _) = ty.size();
        text.push_str(&format!(
            "\tfield:{declared};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n"
        ));
        print.push((*name, ty.printed(name)));
    }
    text.push_str("\nprint fmt: \"");
    for (at, (name, (letter, _))) in print.iter().enumerate() {
        let between = match *name {
            _ if at == 0 => "",
            "next_comm" => " ==> ",
            _ => " ",
        };
        match *name {
            "buf" => text.push_str(letter),
            "prev_state" => text.push_str(&format!("{between}{name}=%s")),
            _ => text.push_str(&format!("{between}{name}={letter}")),
        }
    }
    text.push('"');
    for (name, (_, argument)) in &print {
        match *name {
            "prev_state" => text.push_str(&format!(
                ", __print_symbolic({argument}, {{ 0, \"R\" }}, {{ 1, \"S\" }}, {{ 2, \"D\" }}, {{ 16, \"X\" }})"
            )),
            _ => text.push_str(&format!(", {argument}")),
        }
    }
    text.push('\n');
    text
}

/// A name as `comm` holds it.
pub fn comm(names: &Names, name: NameId) -> [u8; COMM_BYTES] {
    let mut bytes = [0; COMM_BYTES];
    let text = names.text(name).as_bytes();
    let length = text.len().min(COMM_BYTES - 1);
    bytes[..length].copy_from_slice(&text[..length]);
    bytes
}
