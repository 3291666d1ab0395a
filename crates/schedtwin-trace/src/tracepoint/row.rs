// SPDX-License-Identifier: GPL-2.0-or-later
//! Rows of the table of tracepoints, and the values that an event has between one format and another.
//!
//! Algorithm, for every reader and writer:
//! 1. Find the row: by the tracepoint's name, or by its number in Perfetto.
//! 2. Read the row's fields in their order into [`Values`], each checked by [`Type::checked`]; or take
//!    them from an event ([`Tracepoint::take`]).
//! 3. Make the event of them ([`Tracepoint::make`]); or write the fields in their order.

use super::table::{Strength, TRACEPOINTS};
use crate::event::{CPUS_MAX, EventTask, Left, NameId, TraceEventKind};
use schedtwin_types::CpuId;

/// Most fields of a tracepoint.
pub const FIELDS_MAX: usize = 8;

/// A value that an event does not tell.
pub const ABSENT: i64 = i64::MIN;

/// The state by which the machine is suspended, as `suspend_resume` names it.
pub const MACHINE_SUSPEND: &str = "machine_suspend";

/// A tracepoint: a row of the table.
#[derive(Debug)]
pub struct Tracepoint {
    /// Its name.
    pub name: &'static str,
    /// Its system, the folder in `events/`.
    pub system: &'static str,
    /// The consequence of a line of text that cannot be read.
    pub strength: Strength,
    /// Its number among the fields of Perfetto's `FtraceEvent`; 0: none.
    pub perfetto: u32,
    /// Its fields, in the kernel's order; none: text of a program.
    pub fields: &'static [Field],
    /// Makes the event of its values.
    pub make: fn(&Values) -> TraceEventKind,
    /// Takes the values of an event; `false`: it is of another kind.
    pub take: fn(&TraceEventKind, &mut Values) -> bool,
}

/// A field of a tracepoint.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its type.
    pub ty: Type,
    /// Its name in the kernel's format.
    pub name: &'static str,
    /// Its label in the kernel's text: a key before `=`, or literal text.
    pub label: &'static str,
    /// Its number in Perfetto's message; 0: none.
    pub perfetto: u32,
}

/// The type of a field: the meaning of its value, and with it its range and its form in each format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A thread's name, up to the next field.
    Comm,
    /// A name that is not kept, up to the next field; written as unknown.
    Unkept,
    /// A key that may follow in text, and ends a name. Not written.
    Behind,
    /// A thread's number.
    Pid,
    /// The number of the thread that ran; −1: unknown, which no kernel writes.
    PrevPid,
    /// An `int`.
    I32,
    /// A `u32`.
    U32,
    /// A number of 8 bits.
    U8,
    /// A number of 16 bits, or none.
    U16,
    /// Yes or no.
    Flag,
    /// Yes or no, `below` or `above` in text.
    Below,
    /// A CPU.
    Cpu,
    /// A CPU, as an `int`.
    TaskCpu,
    /// A CPU that some releases do not tell, in three digits, as an `int`.
    Target,
    /// A CPU, or any: a number above all CPUs.
    AnyCpu,
    /// A set of CPUs; kept if it is one.
    Mask,
    /// The state in which a thread leaves: `prev_state`.
    State,
    /// An idle state; −1: left.
    IdleState,
    /// Flags in hexadecimal.
    Hex,
    /// An address, which names an object.
    Address,
    /// The address of a work item.
    Work,
    /// A function: an address in records.
    Function,
    /// A function that older releases do not tell.
    NewerFunction,
    /// A work item's function, which older releases do not tell.
    WorkFunction,
    /// A time, unsigned.
    Time,
    /// Ticks from now to the field before; records have the tick of now.
    Ticks,
    /// A text of any length, the last field.
    Text,
    /// A text in parentheses: the address of a string in records.
    Reason,
    /// The vector in the tracepoint's name, whose number is not kept.
    Vector,
    /// An address that is not kept.
    Callsite,
    /// The step of a suspend: only [`MACHINE_SUSPEND`] is an event.
    Suspend,
}

impl Type {
    /// Whether a field of this type has a value among [`Values`].
    pub fn is_kept(self) -> bool {
        !matches!(self, Type::Unkept | Type::Behind | Type::Suspend)
    }

    /// Whether records of some releases do not have it.
    pub fn is_optional(self) -> bool {
        use Type::{AnyCpu, NewerFunction, Reason, Target, Ticks, WorkFunction};
        matches!(self, AnyCpu | NewerFunction | Reason | Target | Ticks | WorkFunction)
    }

    /// Whether it is the address of a function in records.
    pub fn is_function(self) -> bool {
        matches!(self, Type::Function | Type::NewerFunction | Type::WorkFunction)
    }

    /// Whether it is a text in Perfetto's message.
    pub fn is_text(self) -> bool {
        matches!(self, Type::Comm | Type::Text | Type::Reason | Type::Suspend)
    }

    /// The value of a number that was read; `None`: it is out of range.
    #[inline]
    pub fn checked(self, number: i64) -> Option<i64> {
        let if_cpu = (0..CPUS_MAX as i64).contains(&number).then_some(number);
        let within = |last: u32| (0..=i64::from(last)).contains(&number).then_some(number);
        match self {
            Type::PrevPid if number == -1 => Some(ABSENT),
            Type::Pid | Type::PrevPid | Type::U32 => within(u32::MAX),
            Type::I32 => {
                (i64::from(i32::MIN)..=u32::MAX.into()).contains(&number).then_some(number)
            }
            Type::U8 => within(u8::MAX.into()),
            Type::U16 => Some(within(u16::MAX.into()).unwrap_or(ABSENT)),
            Type::Flag | Type::Below => Some((number != 0).into()),
            Type::Cpu | Type::TaskCpu => if_cpu,
            Type::Target | Type::AnyCpu => Some(if_cpu.unwrap_or(ABSENT)),
            Type::Mask => {
                let cpus = number as u32;
                Some(if cpus.is_power_of_two() { cpus.trailing_zeros().into() } else { ABSENT })
            }
            // PWR_EVENT_EXIT is -1, which most take as an unsigned number.
            Type::IdleState if number == -1 || number == i64::from(u32::MAX) => Some(-1),
            Type::IdleState => within(u32::MAX),
            _ => Some(number),
        }
    }
}

/// The values of an event's fields, in the order of its row: numbers, or the numbers of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values(pub [i64; FIELDS_MAX]);

impl Default for Values {
    fn default() -> Values {
        Values([ABSENT; FIELDS_MAX])
    }
}

impl Tracepoint {
    /// The tracepoint of that name.
    pub fn named(name: &str) -> Option<&'static Tracepoint> {
        TRACEPOINTS.iter().find(|row| row.name == name)
    }

    /// The tracepoint of that name, or the interrupt vector: these differ between machines, and any name with the ending of
    /// an entry or exit may be one.
    pub fn named_or_vector(name: &str) -> Option<&'static Tracepoint> {
        Tracepoint::named(name).or_else(|| match name {
            _ if name.ends_with("_entry") => Tracepoint::named("reschedule_entry"),
            _ if name.ends_with("_exit") => Tracepoint::named("reschedule_exit"),
            _ => None,
        })
    }

    /// The tracepoint of that system and name.
    pub fn of(system: &str, name: &str) -> Option<&'static Tracepoint> {
        let row = Tracepoint::named_or_vector(name)?;
        (row.system == system || row.system != "irq_vectors").then_some(row)
    }

    /// Whether it is text of a program.
    pub fn is_mark(&self) -> bool {
        self.fields.is_empty()
    }

    /// Its fields, each with its value and the one before it; 0 where a field has none.
    pub fn with_values<'a>(
        &'a self,
        values: &'a Values,
    ) -> impl Iterator<Item = (&'a Field, i64, i64)> {
        let mut kept = 0;
        self.fields.iter().map(move |field| {
            let before = if kept > 0 { values.0[kept - 1] } else { 0 };
            if !field.ty.is_kept() {
                return (field, 0, before);
            }
            kept += 1;
            (field, values.0[kept - 1], before)
        })
    }
}

/// Values that parts of an event are taken from, or put into, one after the other.
#[derive(Debug)]
pub struct Cursor<V> {
    values: V,
    next: usize,
}

impl<V> Cursor<V> {
    /// Begins at the first value.
    pub fn new(values: V) -> Cursor<V> {
        Cursor { values, next: 0 }
    }
}

impl Cursor<&Values> {
    #[inline]
    fn next(&mut self) -> i64 {
        self.next += 1;
        self.values.0[self.next - 1]
    }
}

impl Cursor<&mut Values> {
    fn put(&mut self, value: i64) {
        self.values.0[self.next] = value;
        self.next += 1;
    }
}

/// A part of an event, made of the values of one field or several.
pub trait Part {
    /// Makes it of the next values.
    fn get(from: &mut Cursor<&Values>) -> Self;
    /// Puts its values.
    fn put(self, to: &mut Cursor<&mut Values>);
}

/// Implements [`Part`] for what is made of one value.
macro_rules! parts {
    ($( $type:ty: $get:expr, $put:expr; )*) => { $(
        impl Part for $type {
            #[inline]
            fn get(from: &mut Cursor<&Values>) -> $type {
                let get: fn(i64) -> $type = $get;
                get(from.next())
            }

            fn put(self, to: &mut Cursor<&mut Values>) {
                let put: fn($type) -> i64 = $put;
                to.put(put(self));
            }
        }
    )* };
}

parts! {
    u8: |value| value as u8, i64::from;
    u32: |value| value as u32, i64::from;
    i32: |value| value as i32, i64::from;
    u64: |value| value as u64, |part| part as i64;
    i64: |value| value, |part| part;
    bool: |value| value != 0, i64::from;
    NameId: |value| if value == ABSENT { NameId::NONE } else { NameId(value as u32) }, |part| part.0.into();
    CpuId: |value| CpuId(value as u16), |part| part.0.into();
    Option<CpuId>: |value| (value != ABSENT).then_some(CpuId(value as u16)),
        |part| part.map_or(ABSENT, |cpu| cpu.0.into());
    Option<u16>: |value| (value != ABSENT).then_some(value as u16),
        |part| part.map_or(ABSENT, i64::from);
    // An idle state.
    Option<u32>: |value| u32::try_from(value).ok(), |part| part.map_or(-1, i64::from);
    Left: |value| Left::of_bits(value as u64), |part| part.bits() as i64;
}

impl Part for EventTask {
    #[inline]
    fn get(from: &mut Cursor<&Values>) -> EventTask {
        EventTask { comm: Part::get(from), pid: Part::get(from), prio: Part::get(from) }
    }

    fn put(self, to: &mut Cursor<&mut Values>) {
        self.comm.put(to);
        self.pid.put(to);
        self.prio.put(to);
    }
}

impl Part for Option<EventTask> {
    #[inline]
    fn get(from: &mut Cursor<&Values>) -> Option<EventTask> {
        let unknown = from.values.0[from.next + 1] == ABSENT;
        let task = EventTask::get(from);
        (!unknown).then_some(task)
    }

    fn put(self, to: &mut Cursor<&mut Values>) {
        match self {
            Some(task) => task.put(to),
            None => (0..3).for_each(|_| to.put(ABSENT)),
        }
    }
}

/// The table: see `table.rs` for the form of a row.
macro_rules! tracepoints {
    ($(
        ($name:literal, $system:ident, $strength:ident, $number:literal) $kind:ident {
            $( $part:ident: [
                $( $type:ident $field:ident $(as $label:literal)? $($field_number:literal)? ),*
            ] ),* $(,)?
        }
    )*) => {
        /// Every tracepoint that is read or written.
        pub static TRACEPOINTS: &[Tracepoint] = &[ $( Tracepoint {
            name: $name,
            system: stringify!($system),
            strength: $strength,
            perfetto: $number,
            fields: &[ $( $( Field {
                ty: Type::$type,
                name: stringify!($field),
                label: [$($label,)? stringify!($field)][0],
                perfetto: [$($field_number,)? 0][0],
            }, )* )* ],
            #[allow(unused_mut, unused_variables, reason = "text of programs has no fields")]
            make: |values| {
                let mut from = Cursor::new(values);
                $( let $part = part!(get from $($type)*); )*
                TraceEventKind::$kind { $($part),* }
            },
            #[allow(unused_mut, unused_variables, reason = "text of programs has no fields")]
            take: |kind, values| {
                let mut to = Cursor::new(values);
                let TraceEventKind::$kind { $($part),* } = *kind else { return false };
                $( part!(put to $part $($type)*); )*
                true
            },
        }, )* ];
    };
}

/// Gets or puts a part; one without fields is absent.
macro_rules! part {
    (get $from:ident) => {
        Default::default()
    };
    (get $from:ident $($type:ident)+) => {
        Part::get(&mut $from)
    };
    (put $to:ident $part:ident) => {
        let _ = $part;
    };
    (put $to:ident $part:ident $($type:ident)+) => {
        Part::put($part, &mut $to)
    };
}

pub(super) use {part, tracepoints};

/// The vector of an entry or exit, which is its name without the ending.
pub fn vector(event: &str) -> &str {
    event.strip_suffix("_entry").or_else(|| event.strip_suffix("_exit")).unwrap_or(event)
}
