// SPDX-License-Identifier: GPL-2.0-or-later
//! Values of the fields of a record: numbers of any width, and texts in each form that tracepoints use.
//!
//! An accessor is made once from a [`Field`] and then reads any number of records: no search by name,
//! no allocation.
//!
//! | form in the `format` file | accessor reads |
//! |---|---|
//! | `pid_t pid; offset:24; size:4; signed:1` | the number at its offset, sign-extended if signed |
//! | `char comm[16]` | up to the first NUL, at most 16 bytes |
//! | `__data_loc char[] name` | a u32: low half the offset from the record's start, high half the length |
//! | `__rel_loc char[] name` | the same, the offset counted from the end of the u32 |
//! | `char buf[]` of size 0 | to the end of the record |
//!
//! A record that is too short for a field gives `None`: the caller counts it as damaged.

use super::format::{Field, Kind};

/// The byte order of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// That of this computer.
    pub fn of_host() -> ByteOrder {
        if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little }
    }

    /// Reads a u16.
    pub fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        }
    }

    /// Reads a u32.
    pub fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Reads a u64.
    pub fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            ByteOrder::Little => u64::from_le_bytes(bytes),
            ByteOrder::Big => u64::from_be_bytes(bytes),
        }
    }

    /// Reads the u16 at an offset; `None` past the end.
    pub fn u16_at(self, bytes: &[u8], at: usize) -> Option<u16> {
        array_at(bytes, at).map(|raw| self.u16(raw))
    }

    /// Reads the u32 at an offset; `None` past the end.
    pub fn u32_at(self, bytes: &[u8], at: usize) -> Option<u32> {
        array_at(bytes, at).map(|raw| self.u32(raw))
    }

    /// Reads the u64 at an offset; `None` past the end.
    pub fn u64_at(self, bytes: &[u8], at: usize) -> Option<u64> {
        array_at(bytes, at).map(|raw| self.u64(raw))
    }
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Reads one numeric field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    offset: u32,
    size: u8,
    signed: bool,
    order: ByteOrder,
}

impl Number {
    /// The accessor of a field; `None` if it is no number of 1, 2, 4 or 8 bytes.
    pub fn new(field: &Field, order: ByteOrder) -> Option<Number> {
        let size = match (field.kind, field.size) {
            (Kind::Plain, size @ (1 | 2 | 4 | 8)) => size as u8,
            _ => return None,
        };
        Some(Number { offset: field.offset, size, signed: field.signed, order })
    }

    /// The value, sign-extended to 64 bits if the field is signed, zero-extended otherwise.
    #[inline]
    pub fn read(&self, record: &[u8]) -> Option<i64> {
        let at = self.offset as usize;
        let raw = match self.size {
            4 => {
                let raw = self.order.u32_at(record, at)?;
                return Some(if self.signed { i64::from(raw as i32) } else { i64::from(raw) });
            }
            8 => return Some(self.order.u64_at(record, at)? as i64),
            2 => u64::from(self.order.u16_at(record, at)?),
            _ => u64::from(*record.get(at)?),
        };
        let unused = 64 - 8 * u32::from(self.size);
        Some(if self.signed { ((raw << unused) as i64) >> unused } else { raw as i64 })
    }
}

/// Reads one text field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    offset: u32,
    size: u32,
    form: Form,
    order: ByteOrder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Array,
    DataLoc,
    RelLoc,
    ToTheEnd,
}

impl Text {
    /// The accessor of a field; `None` if it is no text.
    pub fn new(field: &Field, order: ByteOrder) -> Option<Text> {
        let form = match (field.kind, field.size) {
            (Kind::Chars, 0) => Form::ToTheEnd,
            (Kind::Chars, _) => Form::Array,
            (Kind::DataLoc, 4) => Form::DataLoc,
            (Kind::RelLoc, 4) => Form::RelLoc,
            _ => return None,
        };
        Some(Text { offset: field.offset, size: field.size, form, order })
    }

    /// The bytes before the first NUL.
    #[inline]
    pub fn read<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let at = self.offset as usize;
        let bytes = match self.form {
            Form::Array => record.get(at..at.checked_add(self.size as usize)?)?,
            Form::ToTheEnd => record.get(at..)?,
            Form::DataLoc | Form::RelLoc => {
                let location = self.order.u32_at(record, at)?;
                let base = if self.form == Form::RelLoc { at + 4 } else { 0 };
                let start = base + (location & 0xffff) as usize;
                record.get(start..start + (location >> 16) as usize)?
            }
        };
        Some(&bytes[..bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracepoint::Format;

    const FORMAT: &str = "name: t\nID: 9\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:s8 tiny;\toffset:2;\tsize:1;\tsigned:1;\n\
        \tfield:short little;\toffset:4;\tsize:2;\tsigned:1;\n\
        \tfield:unsigned int word;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:u64 wide;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:char comm[4];\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:__data_loc char[] name;\toffset:28;\tsize:4;\tsigned:0;\n\
        \tfield:__rel_loc char[] rel;\toffset:32;\tsize:4;\tsigned:0;\n\
        \tfield:char buf[];\toffset:36;\tsize:0;\tsigned:0;\n\n\
        print fmt: \"\"\n";

    fn record(order: ByteOrder) -> Vec<u8> {
        let both =
            |little: Vec<u8>, big: Vec<u8>| if order == ByteOrder::Little { little } else { big };
        let mut bytes = both(9u16.to_le_bytes().into(), 9u16.to_be_bytes().into());
        bytes.extend([0xfe, 0]);
        bytes.extend(both((-3i16).to_le_bytes().into(), (-3i16).to_be_bytes().into()));
        bytes.extend([0; 2]);
        bytes.extend(both(u32::MAX.to_le_bytes().into(), u32::MAX.to_be_bytes().into()));
        bytes.extend([0; 4]);
        bytes.extend(both(7u64.to_le_bytes().into(), 7u64.to_be_bytes().into()));
        bytes.extend(b"abcd");
        let data: u32 = 3 << 16 | 36;
        let rel: u32 = 3 << 16 | 3;
        bytes.extend(both(data.to_le_bytes().into(), data.to_be_bytes().into()));
        bytes.extend(both(rel.to_le_bytes().into(), rel.to_be_bytes().into()));
        bytes.extend(b"xy\0uvw");
        bytes
    }

    #[test]
    fn each_form_of_a_field_is_read_in_both_byte_orders() {
        let format = Format::parse(FORMAT).unwrap();
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let bytes = record(order);
            let number = |name| {
                Number::new(format.field(name).unwrap(), order).unwrap().read(&bytes).unwrap()
            };
            let text =
                |name| Text::new(format.field(name).unwrap(), order).unwrap().read(&bytes).unwrap();
            assert_eq!(number("common_type"), 9);
            assert_eq!(number("tiny"), -2);
            assert_eq!(number("little"), -3);
            assert_eq!(number("word"), i64::from(u32::MAX));
            assert_eq!(number("wide"), 7);
            assert_eq!(text("comm"), b"abcd", "no NUL: the length bounds it");
            assert_eq!(text("name"), b"xy");
            assert_eq!(text("rel"), b"uvw");
            assert_eq!(text("buf"), b"xy");
        }
    }

    #[test]
    fn a_field_beyond_the_record_is_none() {
        let format = Format::parse(FORMAT).unwrap();
        let bytes = record(ByteOrder::Little);
        for length in 0..bytes.len() {
            let cut = &bytes[..length];
            for field in format.common.iter().chain(&format.fields) {
                let end = (field.offset + field.size) as usize;
                if let Some(number) = Number::new(field, ByteOrder::Little) {
                    assert_eq!(number.read(cut).is_some(), length >= end, "{}", field.name);
                }
                if let Some(text) = Text::new(field, ByteOrder::Little) {
                    assert!(text.read(cut).is_none() || length >= end, "{}", field.name);
                }
            }
        }
    }

    #[test]
    fn a_number_is_no_text_and_a_text_no_number() {
        let format = Format::parse(FORMAT).unwrap();
        assert!(Text::new(format.field("word").unwrap(), ByteOrder::Little).is_none());
        assert!(Number::new(format.field("comm").unwrap(), ByteOrder::Little).is_none());
        assert!(Number::new(format.field("name").unwrap(), ByteOrder::Little).is_none());
    }
}
