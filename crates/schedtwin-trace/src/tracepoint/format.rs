// SPDX-License-Identifier: GPL-2.0-or-later
//! The `format` file of a tracepoint: its name, its number in this boot, and its fields.
//!
//! ```text
//! name: sched_waking
//! ID: 375
//! format:
//!         field:unsigned short common_type;  offset:0;  size:2;  signed:0;
//!         ...
//!                                                         (an empty line ends the common fields)
//!         field:char comm[16];    offset:8;   size:16;  signed:0;
//!         field:pid_t pid;        offset:24;  size:4;   signed:1;
//!
//! print fmt: "comm=%s pid=%d ...", REC->comm, REC->pid, ...
//! ```
//!
//! Sizes decide, not the C types: `long` has 4 or 8 bytes, `pid_t` 4. The print format is not
//! interpreted, with one exception: the bit of `prev_state` that means "preempted" has moved between
//! releases, and the print format tells it ([`Format::preempted_bit`]).

/// Longest `format` text that is read; the longest of a current kernel has some 10 KB.
pub const FORMAT_BYTES_MAX: usize = 1 << 20;

/// Fields of a tracepoint that are read.
const FIELDS_MAX: usize = 1024;

/// The way in which a field holds its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number, or an array of other than characters; the size tells them apart.
    Plain,
    /// `char name[N]`, or `char name[]` to the end of the record.
    Chars,
    /// `__data_loc`: the place and length of the value, from the start of the record.
    DataLoc,
    /// `__rel_loc`: the same, from the end of the field.
    RelLoc,
}

/// A field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Bytes before it.
    pub offset: u32,
    /// Bytes that it has.
    pub size: u32,
    /// Whether it is a signed number.
    pub signed: bool,
    /// The way in which it holds its value.
    pub kind: Kind,
}

/// A tracepoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// Its name, without the system.
    pub name: String,
    /// The number that its records carry in `common_type`.
    pub id: u16,
    /// Fields that every record has.
    pub common: Vec<Field>,
    /// Its own fields.
    pub fields: Vec<Field>,
    /// The bit of `prev_state` that the print format shows as `+`; `None` if it shows none.
    pub preempted_bit: Option<u64>,
}

impl Format {
    /// Reads a `format` text, or says what it lacks.
    pub fn parse(text: &str) -> Result<Format, String> {
        let mut name = None;
        let mut id = None;
        let mut common = Vec::new();
        let mut fields = Vec::new();
        let mut common_ended = false;
        let mut preempted_bit = None;
        for line in text.lines() {
            let trimmed = line.trim();
            if let Some(rest) = trimmed.strip_prefix("field:") {
                let field = parse_field(rest)?;
                if common.len() + fields.len() >= FIELDS_MAX {
                    return Err(format!("more than {FIELDS_MAX} fields"));
                }
                // The empty line between them is missing in some old kernels: names tell, too.
                if common_ended || !field.name.starts_with("common_") {
                    fields.push(field);
                } else {
                    common.push(field);
                }
            } else if let Some(rest) = trimmed.strip_prefix("name:") {
                name = Some(rest.trim().to_owned());
            } else if let Some(rest) = trimmed.strip_prefix("ID:") {
                let number = rest.trim();
                id = Some(number.parse::<u16>().map_err(|_| format!("an ID of `{number}`"))?);
            } else if let Some(rest) = trimmed.strip_prefix("print fmt:") {
                preempted_bit = preempted(rest);
                break;
            } else if trimmed.is_empty() && !common.is_empty() {
                common_ended = true;
            }
        }
        Ok(Format {
            name: name.filter(|name| !name.is_empty()).ok_or("no name")?,
            id: id.ok_or("no ID")?,
            common,
            fields,
            preempted_bit,
        })
    }

    /// The field of a name, common ones included.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().chain(&self.common).find(|field| field.name == name)
    }
}

/// Reads `TYPE NAME[N]; offset:O; size:S; signed:B;`.
fn parse_field(text: &str) -> Result<Field, String> {
    let mut parts = text.split(';').map(str::trim);
    let declaration = parts.next().unwrap_or("");
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in parts {
        let number = |text: &str| {
            text.parse::<u32>()
                .ok()
                .filter(|number| *number <= 1 << 16)
                .ok_or_else(|| format!("field `{declaration}`: `{part}` is no number up to 65536"))
        };
        if let Some(value) = part.strip_prefix("offset:") {
            offset = Some(number(value)?);
        } else if let Some(value) = part.strip_prefix("size:") {
            size = Some(number(value)?);
        } else if let Some(value) = part.strip_prefix("signed:") {
            signed = value == "1";
        }
    }
    let lacks = |what| format!("field `{declaration}` has no {what}");
    let (before_array, is_array) = match declaration.find('[') {
        // `__data_loc char[] name`: the brackets belong to the type.
        Some(at) if declaration[at..].ends_with(']') => (&declaration[..at], true),
        _ => (declaration, false),
    };
    let name = before_array.split_whitespace().next_back().ok_or_else(|| lacks("name"))?;
    let kind = if declaration.starts_with("__data_loc") {
        Kind::DataLoc
    } else if declaration.starts_with("__rel_loc") {
        Kind::RelLoc
    } else if (is_array || size == Some(0))
        && before_array.split_whitespace().any(|word| word == "char")
    {
        Kind::Chars
    } else {
        Kind::Plain
    };
    Ok(Field {
        name: name.trim_start_matches('*').to_owned(),
        offset: offset.ok_or_else(|| lacks("offset"))?,
        size: size.ok_or_else(|| lacks("size"))?,
        signed,
        kind,
    })
}

/// The bit before `? "+"` in a print format: a number, or an expression of constants.
fn preempted(print: &str) -> Option<u64> {
    let before = print[..print.find("? \"+\"")?].trim_end();
    // The operand of the last `&` outside of parentheses.
    let mut depth = 0_i32;
    let at = before.bytes().rposition(|byte| {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        byte == b'&' && depth == 0
    })?;
    let mut expression = Expression { rest: &before.as_bytes()[at + 1..], depth: 0 };
    let value = expression.sum_or_shift()?;
    (expression.peek().is_none() && value.is_power_of_two()).then_some(value)
}

/// Evaluates `|`, `+`, `-` and `<<` over numbers; the kernel parenthesises wherever precedence matters.
struct Expression<'a> {
    rest: &'a [u8],
    depth: u32,
}

impl Expression<'_> {
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    fn sum_or_shift(&mut self) -> Option<u64> {
        let mut value = self.operand()?;
        loop {
            let (operator, width) = match self.peek() {
                Some(b'<') if self.rest.starts_with(b"<<") => (b'<', 2),
                Some(operator @ (b'|' | b'+' | b'-')) => (operator, 1),
                _ => return Some(value),
            };
            self.rest = &self.rest[width..];
            let right = self.operand()?;
            value = match operator {
                b'|' => value | right,
                b'+' => value.checked_add(right)?,
                b'-' => value.checked_sub(right)?,
                _ => value.checked_shl(u32::try_from(right).ok()?)?,
            };
        }
    }

    fn operand(&mut self) -> Option<u64> {
        if self.peek()? == b'(' {
            // Deeper nesting than any kernel's is no expression of interest.
            if self.depth == 32 {
                return None;
            }
            self.depth += 1;
            self.rest = &self.rest[1..];
            let value = self.sum_or_shift()?;
            if self.peek()? != b')' {
                return None;
            }
            self.depth -= 1;
            self.rest = &self.rest[1..];
            return Some(value);
        }
        let end = self.rest.iter().position(|byte| !byte.is_ascii_alphanumeric());
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        let word = std::str::from_utf8(word).ok()?.trim_end_matches(['U', 'L', 'u', 'l']);
        match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(print: &str) -> String {
        format!(
            "name: sched_switch\nID: 372\nformat:\n\
             \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
             \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
             \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
             \tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:0;\n\
             \tfield:const char * pointer;\toffset:32;\tsize:8;\tsigned:0;\n\
             \tfield:unsigned long sp[2];\toffset:40;\tsize:16;\tsigned:0;\n\n\
             print fmt: {print}\n"
        )
    }

    #[test]
    fn fields_have_their_places_and_forms() {
        let format = Format::parse(&switch("\"\"")).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("sched_switch", 372));
        assert_eq!(format.common.len(), 2);
        let kinds: Vec<_> = format
            .fields
            .iter()
            .map(|field| (field.name.as_str(), field.kind, field.size))
            .collect();
        assert_eq!(
            kinds,
            [
                ("prev_comm", Kind::Chars, 16),
                ("name", Kind::DataLoc, 4),
                ("pointer", Kind::Plain, 8),
                ("sp", Kind::Plain, 16),
            ]
        );
        assert!(format.field("common_pid").unwrap().signed);
    }

    #[test]
    fn the_preempted_bit_is_learnt_from_the_print_format() {
        for (print, bit) in [
            (r#""%s%s", REC->prev_state & 2048 ? "+" : "", REC->next_comm"#, Some(2048)),
            (r#"(REC->prev_state & 0x400UL) ? "+" : """#, None),
            (
                r#"REC->prev_state & (((0x0 | 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x20 | 0x40) + 1) << 1) ? "+" : """#,
                Some(0x100),
            ),
            (r#"REC->prev_state & (1 << 200) ? "+" : """#, None),
            (r#"REC->prev_state & (1 ? "+" : """#, None),
            ("\"no state\"", None),
        ] {
            assert_eq!(Format::parse(&switch(print)).unwrap().preempted_bit, bit, "{print}");
        }
    }

    #[test]
    fn damaged_texts_say_what_they_lack() {
        for (text, message) in [
            ("", "no name"),
            ("name: a\n", "no ID"),
            ("name: a\nID: 70000\n", "an ID of `70000`"),
            ("name: a\nID: 1\n field:int x; size:4;\n", "field `int x` has no offset"),
            (
                "name: a\nID: 1\n field:int x; offset:4000000000; size:4;\n",
                "field `int x`: `offset:4000000000` is no number up to 65536",
            ),
            ("name: a\nID: 1\n field:; offset:4; size:4;\n", "field `` has no name"),
        ] {
            assert_eq!(Format::parse(text).unwrap_err(), message, "{text}");
        }
    }
}
