// SPDX-License-Identifier: GPL-2.0-or-later
//! Records of tracepoints, and the formats that describe these.
//!
//! Fields are those of the table of tracepoints; what [`crate::event::TraceEventKind`] does not keep is left out of a
//! tracepoint's format, not filled in.

use crate::tracepoint::row::{ABSENT, Field, Tracepoint, Type};

/// The form of a field in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
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

/// The form of a field; `None`: records do not have it.
pub fn form(field: &Field) -> Option<Form> {
    Some(match field.ty {
        Type::Unkept | Type::Behind | Type::Mask => return None,
        Type::Comm => Form::Comm,
        Type::Pid | Type::PrevPid | Type::I32 | Type::TaskCpu | Type::Target | Type::Vector => {
            Form::I32
        }
        Type::U32
        | Type::U8
        | Type::U16
        | Type::Flag
        | Type::Below
        | Type::Cpu
        | Type::AnyCpu
        | Type::IdleState => Form::U32,
        Type::State | Type::Hex | Type::Time | Type::Ticks => Form::U64,
        Type::Text => Form::Text,
        Type::Address
        | Type::Work
        | Type::Function
        | Type::NewerFunction
        | Type::WorkFunction
        | Type::Reason
        | Type::Callsite
        | Type::Suspend => Form::Pointer,
    })
}

/// The names and forms of a tracepoint's fields; of `None`, text of programs.
pub fn fields(row: Option<&'static Tracepoint>) -> Vec<(&'static str, Form)> {
    let Some(row) = row else { return vec![("ip", Form::Pointer), ("buf", Form::Rest)] };
    row.fields.iter().filter_map(|field| Some((field.name, form(field)?))).collect()
}

/// Bytes of the common fields.
pub const COMMON_BYTES: usize = 8;

/// `comm` of the kernel.
const COMM_BYTES: usize = 16;

impl Form {
    /// Size and alignment within a record.
    fn size(self) -> (usize, usize) {
        match self {
            Form::Comm => (COMM_BYTES, 1),
            Form::I32 | Form::U32 | Form::Text => (4, 4),
            Form::U64 | Form::Pointer => (8, 8),
            Form::Rest => (0, 1),
        }
    }

    /// The field's declaration and whether it is signed.
    fn declared(self, name: &str) -> (String, u8) {
        match self {
            Form::Comm => (format!("char {name}[{COMM_BYTES}]"), 0),
            Form::I32 => (format!("int {name}"), 1),
            Form::U32 => (format!("u32 {name}"), 0),
            Form::U64 => (format!("u64 {name}"), 0),
            Form::Pointer => (format!("void * {name}"), 0),
            Form::Text => (format!("__data_loc char[] {name}"), 0),
            Form::Rest => (format!("char {name}[]"), 0),
        }
    }

    fn printed(self, name: &str) -> (&'static str, String) {
        match self {
            Form::Comm | Form::Rest => ("%s", format!("REC->{name}")),
            Form::Text => ("%s", format!("__get_str({name})")),
            Form::I32 => ("%d", format!("REC->{name}")),
            Form::U32 => ("%u", format!("REC->{name}")),
            Form::U64 => ("%llu", format!("REC->{name}")),
            Form::Pointer => ("%p", format!("REC->{name}")),
        }
    }
}

/// The offset of each field, and the bytes of all.
pub fn offsets(types: impl Iterator<Item = Form>) -> (Vec<usize>, usize) {
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
pub fn format_text(event: &str, id: u16, fields: &[(&'static str, Form)], flags: bool) -> String {
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
pub fn comm(name: &str) -> [u8; COMM_BYTES] {
    let mut bytes = [0; COMM_BYTES];
    let length = name.len().min(COMM_BYTES - 1);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    bytes
}

/// The number in a field of 32 bits; `None`: a record cannot be without it.
pub fn number(ty: Type, value: i64) -> Option<u32> {
    Some(match ty {
        Type::Vector => 0,
        // WORK_CPU_UNBOUND lies above all CPUs.
        Type::AnyCpu if value == ABSENT => u16::MAX.into(),
        Type::Target | Type::PrevPid | Type::I32 if value == ABSENT => u32::MAX,
        _ if value == ABSENT => return None,
        _ => value as u32,
    })
}
