// SPDX-License-Identifier: GPL-2.0-or-later
//! The JSON under an rt-app file, read as tolerantly as rt-app and its `workgen` read it.
//!
//! # Idea
//!
//! In an rt-app file the *order* of the keys of an object is the order of execution, and a key may
//! occur twice (`"run"`, `"run"`). Such files also carry comments, trailing commas, and
//! `"suspend",`: a key without a value. `workgen`, a script that people run before rt-app, repairs
//! all of that. We read the files as they are, and keep the position of everything for messages.
//!
//! # Algorithm
//!
//! 1. A scan finds keys without a value (a string where a key must stand, followed by `,` or `}`)
//!    and inserts `:null` after each into a copy of the text, noting where.
//! 2. `jsonc-parser` reads the copy: comments, trailing commas, duplicate keys in order.
//! 3. The tree is copied into [`Value`]s whose positions are those of the *original* text; an
//!    inserted `null` becomes [`Kind::Missing`].
//!
//! ```text
//! original   "suspend", "run" : 5        a position p of the copy is the position
//! copy       "suspend":null, "run" : 5   p - 5 x (insertions before p) of the original
//! ```
//!
//! Differences: missing commas, single-quoted strings, hexadecimal and non-finite numbers are
//! refused although json-c accepts some of them; no published rt-app file uses them. Nesting is
//! refused beyond 512 levels (the parser's own bound).

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind, parse_to_ast};
use std::ops::Range;

/// The text that is inserted after a key that has no value.
const INSERTION: &str = ":null";

/// A JSON value and where it stands.
#[derive(Debug)]
pub(super) struct Value {
    pub span: Range<usize>,
    pub kind: Kind,
}

/// The kind of a value.
#[derive(Debug)]
pub(super) enum Kind {
    /// The key has no value, as in `"suspend",`.
    Missing,
    Null,
    Boolean(bool),
    /// A whole number that fits 64 bits.
    Integer(i64),
    /// Any other number, as it is written.
    OtherNumber(String),
    Text(String),
    Array(Vec<Value>),
    Object(Vec<Member>),
}

/// A key and its value.
#[derive(Debug)]
pub(super) struct Member {
    pub key: String,
    pub key_span: Range<usize>,
    pub value: Value,
}

/// Why a text is not JSON, and where.
#[derive(Debug)]
pub(super) struct SyntaxError {
    pub span: Range<usize>,
    pub message: String,
    pub help: Option<String>,
}

impl Kind {
    /// The kind with its article, for "must be ..., not ...".
    pub fn describe(&self) -> String {
        match self {
            Kind::Missing => "missing".to_owned(),
            Kind::Null => "null".to_owned(),
            Kind::Boolean(value) => format!("the boolean {value}"),
            Kind::Integer(value) => format!("the number {value}"),
            Kind::OtherNumber(text) => format!("the number {}", shorten(text)),
            Kind::Text(text) => format!("the string \"{}\"", shorten(text)),
            Kind::Array(_) => "an array".to_owned(),
            Kind::Object(_) => "an object".to_owned(),
        }
    }
}

/// A text cut to what a message can bear.
pub(super) fn shorten(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        None => text.escape_debug().to_string(),
        Some((end, _)) => format!("{}...", text[..end].escape_debug()),
    }
}

/// Reads a text; `None` if there is nothing in it but blanks and comments.
pub(super) fn parse(text: &str) -> Result<Option<Value>, SyntaxError> {
    let insertions = keys_without_value(text);
    let mut patched = String::with_capacity(text.len() + insertions.len() * INSERTION.len());
    let mut copied = 0;
    for at in &insertions {
        patched.push_str(&text[copied..*at]);
        patched.push_str(INSERTION);
        copied = *at;
    }
    patched.push_str(&text[copied..]);
    let positions = Positions { insertions };

    let options = ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: true,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    match parse_to_ast(&patched, &CollectOptions::default(), &options) {
        Ok(parsed) => Ok(parsed.value.as_ref().map(|value| positions.value(value))),
        Err(error) => {
            let range = error.range();
            let help = match error.kind() {
                ParseErrorKind::UnterminatedObject
                | ParseErrorKind::UnterminatedArray
                | ParseErrorKind::UnterminatedCommentBlock => Some(
                    "what is opened here is never closed: the file seems to be truncated"
                        .to_owned(),
                ),
                ParseErrorKind::String(ParseStringErrorKind::UnterminatedStringLiteral) => {
                    Some("the string that begins here is never closed".to_owned())
                }
                _ if is_placeholder(
                    text.get(positions.original(range.start)..).unwrap_or_default(),
                ) =>
                {
                    Some(PLACEHOLDER.to_owned())
                }
                ParseErrorKind::ExpectedComma => Some("separate the entries with ','".to_owned()),
                _ => None,
            };
            let message = format!("not JSON: {}", lower_first(&error.kind().to_string()));
            Err(SyntaxError {
                span: positions.original(range.start)..positions.original(range.end),
                message,
                help,
            })
        }
    }
}

/// The next step for a file that is no workload yet.
pub(super) const PLACEHOLDER: &str = "this looks like a template: give a value for its placeholder first (sed, or the tool that fills it in)";

/// Whether a text begins as placeholders of templates do: `@LOAD@`, `{{ load }}`, `${LOAD}`, `%(load)s`, `<load>`.
pub(super) fn is_placeholder(text: &str) -> bool {
    let text = text.trim_start_matches(['"', ' ']);
    let braces = text.strip_prefix('{').is_some_and(|rest| {
        rest.starts_with(['{', '%'])
            || rest.trim_start().starts_with(|c: char| c.is_ascii_alphabetic())
    });
    braces || ["@", "${", "$", "%(", "<"].iter().any(|mark| text.starts_with(mark))
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_lowercase().chain(chars).collect())
}

/// Where values are missing: the byte offsets right after the keys, ascending.
fn keys_without_value(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut open = Vec::new();
    let mut key_expected = false;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = end_of_string(bytes, at);
                if key_expected && open.last() == Some(&b'{') {
                    let next = skip_blanks(bytes, end);
                    if matches!(bytes.get(next), Some(b',' | b'}')) {
                        found.push(end);
                    }
                    key_expected = false;
                }
                at = end;
                continue;
            }
            b'/' => {
                let end = skip_blanks(bytes, at);
                at = end.max(at + 1);
                continue;
            }
            bracket @ (b'{' | b'[') => {
                open.push(bracket);
                key_expected = true;
            }
            b'}' | b']' => {
                open.pop();
                key_expected = false;
            }
            b',' => key_expected = true,
            _ => {}
        }
        at += 1;
    }
    found
}

/// The offset behind the string that opens at `start`; the end of the text if it never closes.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The offset of the first byte at or after `at` that is neither blank nor in a comment.
fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b' ' | b'\t' | b'\n' | b'\r', _) => at += 1,
            (b'/', Some(b'/')) => {
                while at < bytes.len() && !matches!(bytes[at], b'\n' | b'\r') {
                    at += 1;
                }
            }
            (b'/', Some(b'*')) => {
                at += 2;
                while at < bytes.len() && !bytes[at..].starts_with(b"*/") {
                    at += 1;
                }
                at = (at + 2).min(bytes.len());
            }
            _ => return at,
        }
    }
    at
}

/// Translates positions of the patched text into positions of the original.
struct Positions {
    /// Where `INSERTION` was inserted, as offsets of the original text, ascending.
    insertions: Vec<usize>,
}

impl Positions {
    fn original(&self, patched: usize) -> usize {
        // The k-th insertion (from 0) occupies insertions[k] + k*L .. insertions[k] + (k+1)*L.
        let (mut before, mut after) = (0, self.insertions.len());
        while before < after {
            let middle = usize::midpoint(before, after);
            if self.insertions[middle] + middle * INSERTION.len() < patched {
                before = middle + 1;
            } else {
                after = middle;
            }
        }
        if before == 0 {
            return patched;
        }
        let start = self.insertions[before - 1] + (before - 1) * INSERTION.len();
        if patched < start + INSERTION.len() {
            self.insertions[before - 1]
        } else {
            patched - before * INSERTION.len()
        }
    }

    fn span(&self, node: &impl Ranged) -> Range<usize> {
        let range = node.range();
        self.original(range.start)..self.original(range.end)
    }

    fn value(&self, value: &ast::Value) -> Value {
        let span = self.span(value);
        let kind = match value {
            ast::Value::NullKeyword(_) if span.is_empty() => Kind::Missing,
            ast::Value::NullKeyword(_) => Kind::Null,
            ast::Value::BooleanLit(literal) => Kind::Boolean(literal.value),
            ast::Value::NumberLit(literal) => match literal.value.parse() {
                Ok(number) => Kind::Integer(number),
                Err(_) => Kind::OtherNumber(literal.value.to_owned()),
            },
            ast::Value::StringLit(literal) => Kind::Text(literal.value.to_string()),
            ast::Value::Array(array) => {
                Kind::Array(array.elements.iter().map(|v| self.value(v)).collect())
            }
            ast::Value::Object(object) => {
                let member = |property: &ast::ObjectProp| Member {
                    key: property.name.as_str().to_owned(),
                    key_span: self.span(&property.name),
                    value: self.value(&property.value),
                };
                Kind::Object(object.properties.iter().map(member).collect())
            }
        };
        Value { span, kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Vec<(String, String, String)> {
        let value = parse(text).unwrap().unwrap();
        let Kind::Object(members) = value.kind else { panic!("not an object") };
        members
            .into_iter()
            .map(|m| {
                (
                    m.key,
                    text[m.key_span].to_owned(),
                    format!("{} {}", m.value.kind.describe(), &text[m.value.span]),
                )
            })
            .collect()
    }

    #[test]
    fn duplicates_comments_and_missing_values_keep_order_and_position() {
        let text = "{ /* a \", */ \"run\" : 5, \"suspend\" // why \"x\",\n , \"run\": 7, \"s\", \"t\" : \"a\\\",b\", \"yield\" }";
        let found = members(text);
        let expected = [
            ("run", "\"run\"", "the number 5 5"),
            ("suspend", "\"suspend\"", "missing "),
            ("run", "\"run\"", "the number 7 7"),
            ("s", "\"s\"", "missing "),
            ("t", "\"t\"", "the string \"a\\\",b\" \"a\\\",b\""),
            ("yield", "\"yield\"", "missing "),
        ];
        let expected: Vec<_> =
            expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())).into();
        assert_eq!(found, expected);
    }

    #[test]
    fn an_array_of_strings_has_no_missing_values() {
        assert_eq!(keys_without_value(r#"{"a": ["x", "y"], "b": {"c", "d": "e"}}"#), [27]);
    }

    #[test]
    fn a_syntax_error_after_an_insertion_points_into_the_original() {
        let text = "{ \"suspend\", \"run\" 5 }";
        let error = parse(text).unwrap_err();
        assert_eq!(&text[error.span], "5", "{}", error.message);
    }
}
