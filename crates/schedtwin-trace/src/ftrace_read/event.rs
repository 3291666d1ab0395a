// SPDX-License-Identifier: GPL-2.0-or-later
//! Arguments of tracepoints in text, read by the rows of the table of tracepoints.
//!
//! | event | the kernel's own format | `trace-cmd report` without `-N` |
//! |---|---|---|
//! | `sched_switch` | `prev_comm=a prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=b ...` | `a:5 [120] S ==> b:6 [120]` |
//! | `sched_waking`, `sched_wakeup`, `sched_wakeup_new` | `comm=b pid=6 prio=120 target_cpu=002` | `b:6 [120] CPU:002` |
//! | `suspend_resume` | `machine_suspend[3] begin` | the same |
//! | all others | `key=value` | the same |
//! | `print`, `tracing_mark_write` | `B\|7\|name`, `cpu_frequency: state=1 cpu_id=0` | the same |
//!
//! Keys are the labels of the kernel's text, or the names of its fields (the option `fields`,
//! `trace-cmd report -R`). Text of programs is read by [`crate::marker`].
//!
//! An event that a replay is built from must be readable; others that are not become [`TraceEventKind::Other`].

use super::line::{Fields, hex};
use crate::event::{CPUS_MAX, Left, Names, TraceEventKind};
use crate::marker;
use crate::tracepoint::row::{ABSENT, Field, MACHINE_SUSPEND, Tracepoint, Type, Values, vector};
use crate::tracepoint::table::Strength;

/// Returns the event of a line, or the name of the field that cannot be read.
pub(super) fn read(
    row: &Tracepoint,
    event: &str,
    arguments: &str,
    names: &mut Names,
) -> Result<TraceEventKind, String> {
    if row.is_mark() {
        return Ok(mark(arguments, names));
    }
    let mut a = Arguments { event, all: arguments, f: Fields::new(event, arguments), names };
    match a.values(row) {
        Ok(Some(values)) => Ok((row.make)(&values)),
        Err(why) if row.strength == Strength::Strict => Err(why),
        Ok(None) | Err(_) => Ok(TraceEventKind::Other),
    }
}

/// The arguments of a line, being read.
struct Arguments<'a> {
    event: &'a str,
    all: &'a str,
    f: Fields<'a>,
    names: &'a mut Names,
}

impl<'a> Arguments<'a> {
    /// The values of a row's fields; `None`: it is no event.
    fn values(&mut self, row: &Tracepoint) -> Result<Option<Values>, String> {
        let mut values = Values::default();
        let first = &row.fields[0];
        let begins_with = |key: &str| {
            self.all.strip_prefix(key).is_some_and(|rest| rest.as_bytes().first() == Some(&b'='))
        };
        let by_label = begins_with(first.label);
        if !by_label && let Some(short) = short_form(row) {
            let read = short(self, &mut values);
            return read.ok_or_else(|| self.unknown_form());
        }
        let key: fn(&Field) -> &'static str = match !by_label && begins_with(first.name) {
            true => |field| field.name,
            false => |field| field.label,
        };
        let mut kept = 0;
        for (index, field) in row.fields.iter().enumerate() {
            let next = row.fields.get(index + 1).map_or("", key);
            let value = match field.ty {
                Type::Unkept => {
                    self.f.name(key(field), next)?;
                    continue;
                }
                Type::Suspend if self.f.text(key(field))? != MACHINE_SUSPEND => return Ok(None),
                Type::Suspend | Type::Behind => continue,
                ty => match self.value(ty, key(field), next) {
                    // A name at the end of the line.
                    Err(_) if ty == Type::Comm && index + 2 == row.fields.len() => {
                        self.last_name(key(field))?
                    }
                    value => value?,
                },
            };
            values.0[kept] = value;
            kept += 1;
        }
        Ok(Some(values))
    }

    /// The value of a field.
    #[inline]
    fn value(&mut self, ty: Type, key: &str, next: &str) -> Result<i64, String> {
        Ok(match ty {
            Type::Comm => {
                let name = self.f.name(key, next)?;
                self.named(name)
            }
            Type::State => {
                let state = left(self.f.digits(key)?).ok_or_else(|| self.f.bad(key))?;
                // `==> ` stands behind it in most releases.
                let rest = self.f.rest();
                self.f = Fields::new(self.event, rest.strip_prefix("==> ").unwrap_or(rest));
                state
            }
            Type::Target | Type::AnyCpu => self.cpu_if_any(key),
            Type::Hex | Type::Address => self.f.hex(key)? as i64,
            Type::Time => self.f.number::<u64>(key)? as i64,
            Type::Function | Type::NewerFunction => {
                let name = self.f.text(key)?;
                self.named(name)
            }
            Type::Below => (self.f.text(key)? == "below").into(),
            Type::Ticks => {
                let ticks = self.f.text(key)?.trim_end_matches(']');
                ticks.parse().map_err(|_| self.f.bad(key))?
            }
            Type::Text => self.last_name(key).unwrap_or(0),
            Type::Reason => {
                let text = self.all.rsplit_once('(').map_or("", |(_, text)| text);
                self.named(text.trim_end_matches(')'))
            }
            Type::Mask => self.one_of(key)?,
            Type::Work => self.work()?,
            Type::WorkFunction => self.work_function(),
            Type::Vector => {
                let name = vector(self.event);
                self.named(name)
            }
            Type::Callsite => ABSENT,
            _ => {
                let number: i64 = self.f.number(key)?;
                ty.checked(number).ok_or_else(|| self.f.bad(key))?
            }
        })
    }

    fn last_name(&mut self, key: &str) -> Result<i64, String> {
        let name = self.f.rest().strip_prefix(key).and_then(|name| name.strip_prefix('='));
        let name = name.ok_or_else(|| self.f.bad(key))?;
        Ok(self.named(name))
    }

    fn named(&mut self, name: &str) -> i64 {
        self.names.intern(name).0.into()
    }

    fn unknown_form(&self) -> String {
        format!("event {} has an unknown form", self.event)
    }

    /// `target_cpu=002`, or `CPU:002` of trace-cmd; not every release prints it.
    fn cpu_if_any(&self, key: &str) -> i64 {
        if let Some(cpu) = self.f.cpu_if_any(key) {
            return cpu.0.into();
        }
        let mut words = self.f.rest().split(' ');
        let cpu = words.find_map(|word| word.strip_prefix("CPU:")?.parse::<u16>().ok());
        cpu.filter(|cpu| usize::from(*cpu) < CPUS_MAX).map_or(ABSENT, i64::from)
    }

    /// The CPU of a mask, if it is one: `target_mask=00000000,00000010`.
    fn one_of(&mut self, key: &str) -> Result<i64, String> {
        let mask = self.f.text(key)?;
        let mut to = None;
        for (at, word) in mask.split(',').rev().enumerate() {
            let bits = u32::from_str_radix(word, 16).map_err(|_| self.f.bad(key))?;
            match (bits.count_ones(), to) {
                (0, _) => {}
                (1, None) => to = Some(at * 32 + bits.trailing_zeros() as usize),
                // Several.
                _ => return Ok(ABSENT),
            }
        }
        Ok(to.filter(|cpu| *cpu < CPUS_MAX).map_or(ABSENT, |cpu| cpu as i64))
    }

    /// `work struct=0x12 function=f ...` or `work struct 0x12: function f`.
    fn work(&mut self) -> Result<i64, String> {
        let rest = self.all.strip_prefix("work struct").ok_or_else(|| self.unknown_form())?;
        let rest = rest.trim_start_matches([' ', '=']);
        let end = rest.find([':', ' ']).unwrap_or(rest.len());
        let work = hex(&rest[..end]).ok_or_else(|| self.unknown_form())?;
        self.f = Fields::new(self.event, rest[end..].trim_start_matches(':'));
        Ok(work as i64)
    }

    /// The end of a work item's line: `function=f`, `function f` or nothing.
    fn work_function(&mut self) -> i64 {
        let function = self.f.rest().strip_prefix("function").unwrap_or("");
        let function = function.trim_start_matches([' ', '=']);
        let end = function.find(' ').unwrap_or(function.len());
        self.named(&function[..end])
    }
}

/// Reads another form of a tracepoint's text into values; the inner `None`: it is no event.
type ShortForm = fn(&mut Arguments<'_>, &mut Values) -> Option<Option<Values>>;

/// The other form of the text of a tracepoint.
fn short_form(row: &Tracepoint) -> Option<ShortForm> {
    Some(match row.fields {
        [Field { ty: Type::Suspend, .. }, ..] => |a, values| Some(suspend(a.all, *values)),
        [Field { ty: Type::Comm, .. }, Field { ty: Type::PrevPid, .. }, ..] => short_switch,
        [.., Field { ty: Type::Target, .. }] => |a, values| {
            let (task, rest) = short_task(a.all)?;
            a.f = Fields::new(a.event, rest);
            put_task(&mut values.0, task, a.names);
            values.0[3] = a.cpu_if_any("target_cpu");
            Some(Some(*values))
        },
        _ => return None,
    })
}

/// A task as `comm:pid [prio]` names it.
type ShortTask<'a> = (&'a str, u32, i32);

fn put_task(values: &mut [i64], (comm, pid, prio): ShortTask<'_>, names: &mut Names) {
    values[..3].copy_from_slice(&[names.intern(comm).0.into(), pid.into(), prio.into()]);
}

/// `a:5 [120] S ==> b:6 [120]`.
fn short_switch(a: &mut Arguments<'_>, values: &mut Values) -> Option<Option<Values>> {
    let text = a.all;
    // A name may hold an arrow as well, so every one is tried.
    let (prev, state, next) = text.match_indices(" ==> ").find_map(|(at, arrow)| {
        let (prev, state) = short_task(&text[..at])?;
        let (next, _) = short_task(&text[at + arrow.len()..])?;
        Some((prev, left(state)?, next))
    })?;
    put_task(&mut values.0, prev, a.names);
    values.0[3] = state;
    put_task(&mut values.0[4..], next, a.names);
    Some(Some(*values))
}

/// `comm:pid [prio] rest`.
fn short_task(text: &str) -> Option<(ShortTask<'_>, &str)> {
    text.match_indices(" [").find_map(|(at, _)| {
        let (comm, pid) = text[..at].rsplit_once(':')?;
        let (prio, rest) = text[at + 2..].split_once(']')?;
        Some(((comm, pid.parse().ok()?, prio.parse().ok()?), rest.trim_start_matches(' ')))
    })
}

/// The state in which a task leaves, from the number or the letters in `prev_state`, as a value.
fn left(state: &str) -> Option<i64> {
    let bits = match state.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => state.parse::<u64>().ok(),
    };
    Some(bits.map(Left::of_bits).or_else(|| Left::of_letters(state))?.bits() as i64)
}

/// `machine_suspend[3] begin`; the other steps of a suspend are no time without a machine.
fn suspend(text: &str, mut values: Values) -> Option<Values> {
    let step = text.strip_prefix(MACHINE_SUSPEND)?.trim_end();
    values.0[0] = step.ends_with(" begin").into();
    (values.0[0] != 0 || step.ends_with(" end")).then_some(values)
}

/// Text that a program wrote into the trace; what only looks like a mark is not at fault.
fn mark(text: &str, names: &mut Names) -> TraceEventKind {
    let text = text.strip_prefix("tracing_mark_write:").unwrap_or(text);
    let text = text.trim_start_matches(' ');
    let kind = marker::parse_text(text, names).or_else(|| {
        // An address or a symbol may come first.
        let (place, text) = text.split_once(": ")?;
        (!place.contains(' ')).then(|| marker::parse_text(text, names)).flatten()
    });
    kind.unwrap_or(TraceEventKind::Other)
}
