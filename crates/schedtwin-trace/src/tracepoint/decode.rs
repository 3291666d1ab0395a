// SPDX-License-Identifier: GPL-2.0-or-later
//! Records become typed events, by the formats that the file carries.
//!
//! Algorithm:
//! 1. For each tracepoint of the file a *plan* is made once: its row in the table of tracepoints ([`super::table`]), and
//!    the accessors of the fields that this names. A field is found by its name.
//! 2. A record names its tracepoint in `common_type`; its plan is found by that number and read.
//!
//! Nothing is allocated for an event. A known tracepoint without a field that its event needs, or with a
//! field of another type, is refused by name and counted as [`TraceEventKind::Other`].
//!
//! Addresses of functions become names where the file holds the kernel's symbols, else hexadecimal numbers. Reasons of
//! interrupts come from `printk_formats`, where the file has it.

use super::fields::{ByteOrder, Number, Text};
use super::flags;
use super::format::Format;
use super::row::{ABSENT, Field, MACHINE_SUSPEND, Tracepoint, Type, Values, vector};
use crate::event::{EventContext, Left, NameId, Names, TraceEventKind};
use crate::marker;
use std::collections::BTreeMap;

/// Addresses of functions whose text is kept.
const FUNCTIONS_KEPT: usize = 1 << 14;

/// Tracepoints that a file may define.
pub const FORMATS_MAX: usize = 1 << 16;

/// The bit of `prev_state` for "preempted" since Linux 4.14: 0x40 is a parked thread from then on.
const PREEMPTED_SINCE_4_14: u64 = 0x100;
const PARKED: u64 = 0x40;
/// Before 4.14, `TASK_NOLOAD` of an idle kernel thread.
const NO_LOAD_BEFORE_4_14: u64 = 0x400;
const INTERRUPTIBLE: u64 = 1;

/// Makes events of a file's records.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    plans: Vec<Option<Plan>>,
    common: Option<Common>,
    addresses: Addresses,
}

/// Texts of addresses: of functions in hexadecimal, of strings as `printk_formats` has them.
#[derive(Clone, Debug, Default)]
struct Addresses {
    functions: BTreeMap<u64, NameId>,
    strings: BTreeMap<u64, NameId>,
    symbols: Symbols,
}

impl Addresses {
    fn string(&self, address: u64) -> NameId {
        self.strings.get(&address).copied().unwrap_or(NameId::NONE)
    }

    fn function(&mut self, address: u64, names: &mut Names) -> NameId {
        if let Some(name) = self.functions.get(&address) {
            return *name;
        }
        if self.functions.len() >= FUNCTIONS_KEPT {
            return NameId::MANY;
        }
        let name = match self.symbols.name(address) {
            Some(name) => names.intern(name),
            None => names.intern(&format!("{address:#x}")),
        };
        self.functions.insert(address, name);
        name
    }
}

/// The kernel's symbols: the text of `/proc/kallsyms`, and by address the place of each name, found when the first is
/// asked for.
#[derive(Clone, Debug, Default)]
struct Symbols {
    text: Vec<u8>,
    names: Option<Vec<(u64, u32)>>,
}

impl Symbols {
    /// The places of names in lines of `ADDRESS TYPE NAME [MODULE]`, by address.
    fn places(text: &[u8]) -> Vec<(u64, u32)> {
        let mut names = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let mut spaces = memchr::memchr_iter(b' ', line);
            if let (Some(first), Some(second)) = (spaces.next(), spaces.next())
                && let Ok(address) = std::str::from_utf8(&line[..first])
                && let Ok(address @ 1..) = u64::from_str_radix(address, 16)
            {
                names.push((address, (at + second + 1) as u32));
            }
            at += line.len();
        }
        names.sort_unstable();
        names
    }

    /// The function that begins at that address.
    fn name(&mut self, address: u64) -> Option<&str> {
        let names = self.names.get_or_insert_with(|| Symbols::places(&self.text));
        let place = names.binary_search_by_key(&address, |(address, _)| *address).ok()?;
        let rest = &self.text[names[place].1 as usize..];
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        std::str::from_utf8(&rest[..end]).ok()
    }
}

/// A record that has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The tracepoint's name.
    pub name: NameId,
    /// The tracepoint's number.
    pub id: u16,
    /// The context that ran.
    pub context: EventContext,
    /// The event itself.
    pub kind: TraceEventKind,
}

/// Why a record is no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecoded {
    /// The file has no format of this number.
    UnknownId(u16),
    /// It is too short for the common fields, or for those of this tracepoint.
    Short(NameId),
    /// A CPU or a pid in it is out of range.
    OutOfRange(NameId),
}

#[derive(Clone, Copy, Debug)]
struct Common {
    id: Number,
    flags: Option<Number>,
    preempt_count: Option<Number>,
    pid: Number,
}

/// A tracepoint of the file.
#[derive(Clone, Debug)]
struct Plan {
    name: NameId,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    Other,
    /// Text of a program.
    Mark(Text),
    Row {
        row: &'static Tracepoint,
        /// Of each field of the row.
        accessors: Box<[Accessor]>,
        /// `prev_state` is that of Linux 4.14 or newer.
        modern: bool,
    },
}

/// Reads a field of a record.
#[derive(Clone, Copy, Debug)]
enum Accessor {
    /// The field is not kept.
    Skip,
    /// The value is the same in every record.
    Fixed(i64),
    Number(Number),
    Text(Text),
}

impl Decoder {
    /// Adds a tracepoint of the file. Says why a known one cannot be used; its events are counted then, not read.
    pub fn add(
        &mut self,
        system: &str,
        format: &Format,
        order: ByteOrder,
        names: &mut Names,
    ) -> Result<(), String> {
        let fields = Fields { format, order };
        if self.common.is_none() {
            self.common = Some(Common {
                id: fields.number("common_type")?,
                pid: fields.number("common_pid")?,
                flags: fields.number("common_flags").ok(),
                preempt_count: fields.number("common_preempt_count").ok(),
            });
        }
        let (body, result) = match body(system, &fields, names) {
            Ok(body) => (body, Ok(())),
            Err(lacks) => (Body::Other, Err(format!("event {} {lacks}", format.name))),
        };
        let index = usize::from(format.id);
        if self.plans.len() <= index {
            self.plans.resize(index + 1, None);
        }
        self.plans[index] = Some(Plan { name: names.intern(&format.name), body });
        result
    }

    /// Adds the strings of `printk_formats`: lines of `0xADDRESS : "TEXT"`.
    pub fn add_strings(&mut self, printk_formats: &str, names: &mut Names) {
        for line in printk_formats.lines().take(FUNCTIONS_KEPT) {
            let Some((address, text)) = line.split_once(" : ") else { continue };
            let address = address.trim().trim_start_matches("0x");
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            let text = text.trim().trim_start_matches('"').trim_end_matches('"');
            self.addresses.strings.insert(address, names.intern(text));
        }
    }

    /// Whether records of a tracepoint name a function by its address.
    pub fn names_functions(&self) -> bool {
        let named = |accessor: &Accessor| matches!(accessor, Accessor::Number(_));
        self.plans.iter().flatten().any(|plan| match &plan.body {
            Body::Row { row, accessors, .. } => {
                let mut fields = row.fields.iter().zip(accessors);
                fields.any(|(field, accessor)| field.ty.is_function() && named(accessor))
            }
            _ => false,
        })
    }

    /// Takes the text of `/proc/kallsyms`.
    pub fn add_symbols(&mut self, kallsyms: Vec<u8>) {
        self.addresses.symbols = Symbols { text: kallsyms, names: None };
    }

    /// Whether any tracepoint is known.
    pub fn is_empty(&self) -> bool {
        self.plans.is_empty()
    }

    /// The number of the tracepoint of this name.
    pub fn id_of(&self, name: &str, names: &Names) -> Option<u16> {
        let name = names.find(name)?;
        let index = self
            .plans
            .iter()
            .position(|plan| plan.as_ref().is_some_and(|plan| plan.name == name))?;
        u16::try_from(index).ok()
    }

    /// Reads a record.
    #[inline]
    pub fn decode(&mut self, record: &[u8], names: &mut Names) -> Result<Decoded, Undecoded> {
        let short = Undecoded::Short(NameId::NONE);
        let common = self.common.ok_or(short)?;
        let id = common.id.read(record).ok_or(short)? as u16;
        let Some(Some(plan)) = self.plans.get(usize::from(id)) else {
            return Err(Undecoded::UnknownId(id));
        };
        let context = context(&common, record).ok_or(Undecoded::Short(plan.name))?;
        let kind = match &plan.body {
            Body::Other => TraceEventKind::Other,
            Body::Mark(text) => {
                let text = text.read(record).ok_or(Undecoded::Short(plan.name))?;
                marker::parse(text, names).unwrap_or(TraceEventKind::Other)
            }
            Body::Row { row, accessors, modern } => {
                match values(row, accessors, *modern, record, &mut self.addresses, names) {
                    Ok(values) => (row.make)(&values),
                    Err(Fault::NoEvent) => TraceEventKind::Other,
                    Err(Fault::Short) => return Err(Undecoded::Short(plan.name)),
                    Err(Fault::OutOfRange) => return Err(Undecoded::OutOfRange(plan.name)),
                }
            }
        };
        Ok(Decoded { name: plan.name, id, context, kind })
    }
}

/// Why a record has no values.
enum Fault {
    /// It is no event.
    NoEvent,
    Short,
    OutOfRange,
}

/// The values of a record.
#[inline]
fn values(
    row: &Tracepoint,
    accessors: &[Accessor],
    modern: bool,
    record: &[u8],
    addresses: &mut Addresses,
    names: &mut Names,
) -> Result<Values, Fault> {
    let mut values = Values::default();
    let mut kept = 0;
    for (field, accessor) in row.fields.iter().zip(accessors) {
        values.0[kept] = match accessor {
            Accessor::Skip => continue,
            Accessor::Fixed(value) => *value,
            Accessor::Text(text) => {
                names.intern_bytes(text.read(record).ok_or(Fault::Short)?).0.into()
            }
            Accessor::Number(number) => {
                let number = number.read(record).ok_or(Fault::Short)?;
                match field.ty {
                    Type::State => left(number as u64, modern).bits() as i64,
                    Type::Function | Type::NewerFunction | Type::WorkFunction => {
                        addresses.function(number as u64, names).0.into()
                    }
                    Type::Reason => addresses.string(number as u64).0.into(),
                    Type::Ticks => values.0[kept - 1].wrapping_sub(number),
                    Type::Suspend => {
                        let step = addresses.string(number as u64);
                        if names.text(step) != MACHINE_SUSPEND {
                            return Err(Fault::NoEvent);
                        }
                        continue;
                    }
                    ty => ty.checked(number).ok_or(Fault::OutOfRange)?,
                }
            }
        };
        kept += 1;
    }
    Ok(values)
}

/// How a task leaves, from the raw `prev_state`; the meaning of some bits changed with Linux 4.14.
pub fn left(bits: u64, modern: bool) -> Left {
    Left::of_bits(match modern {
        true if bits & PARKED != 0 => bits & !PARKED | INTERRUPTIBLE,
        false if bits & NO_LOAD_BEFORE_4_14 != 0 => INTERRUPTIBLE,
        _ => bits,
    })
}

#[inline]
fn context(common: &Common, record: &[u8]) -> Option<EventContext> {
    let flags = match &common.flags {
        Some(flags) => Some(flags.read(record)? as u8),
        None => None,
    };
    let preempt_count = match &common.preempt_count {
        // The upper half counts disabled migration.
        Some(count) => Some((count.read(record)? & 0xf) as u8),
        None => None,
    };
    Some(EventContext {
        pid: u32::try_from(common.pid.read(record)?).unwrap_or(0),
        preempt_count,
        ..flags::context(flags)
    })
}

/// Finds fields by name.
struct Fields<'a> {
    format: &'a Format,
    order: ByteOrder,
}

impl Fields<'_> {
    fn number(&self, name: &str) -> Result<Number, String> {
        let field = self.format.field(name).ok_or_else(|| format!("has no field {name}"))?;
        Number::new(field, self.order)
            .ok_or_else(|| format!("has a field {name} that is no number"))
    }

    fn text(&self, name: &str) -> Result<Text, String> {
        let field = self.format.field(name).ok_or_else(|| format!("has no field {name}"))?;
        Text::new(field, self.order).ok_or_else(|| format!("has a field {name} that is no text"))
    }

    /// The accessor of a row's field.
    fn accessor(&self, field: &Field, names: &mut Names) -> Result<Accessor, String> {
        Ok(match field.ty {
            Type::Unkept | Type::Behind => Accessor::Skip,
            Type::Mask | Type::Callsite => Accessor::Fixed(ABSENT),
            Type::Vector => {
                let name = names.intern(vector(&self.format.name));
                Accessor::Fixed(name.0.into())
            }
            Type::Comm | Type::Text => Accessor::Text(self.text(field.name)?),
            // Some releases have the CPU where the work was queued.
            Type::AnyCpu => {
                let number = self.number(field.name).or_else(|_| self.number("cpu"));
                number.map_or(Accessor::Fixed(ABSENT), Accessor::Number)
            }
            ty => match self.number(field.name) {
                Ok(number) => Accessor::Number(number),
                Err(_) if ty == Type::Ticks => Accessor::Fixed(0),
                Err(_) if ty.is_optional() => Accessor::Fixed(ABSENT),
                Err(lacks) => return Err(lacks),
            },
        })
    }
}

/// The plan of a tracepoint, or which field it lacks.
fn body(system: &str, f: &Fields, names: &mut Names) -> Result<Body, String> {
    let name = f.format.name.as_str();
    let Some(row) = Tracepoint::of(system, name) else { return Ok(Body::Other) };
    if row.is_mark() {
        return Ok(match name {
            "print" if system == row.system => Body::Mark(f.text("buf")?),
            "tracing_mark_write" if f.format.field("buf").is_some() => Body::Mark(f.text("buf")?),
            _ => Body::Other,
        });
    }
    let accessors: Result<_, String> =
        row.fields.iter().map(|field| f.accessor(field, names)).collect();
    let modern = f.format.preempted_bit.is_none_or(|bit| bit == PREEMPTED_SINCE_4_14);
    Ok(Body::Row { row, accessors: accessors?, modern })
}
