// SPDX-License-Identifier: GPL-2.0-or-later
//! Chrome's JSON: the kernel's trace is the text in its member `systemTraceEvents`.
//!
//! ```json
//! {"traceEvents": [...], "systemTraceEvents": "# tracer: nop\\n#\\n  ui-7 [001] ..."}
//! ```
//!
//! The text is taken out while the file is read, so memory does not grow with it. Chrome's own events do not tell who ran when.

use std::io::{self, BufRead, Read};

/// The member that holds the trace.
const KEY: &[u8] = b"\"systemTraceEvents\"";
/// Bytes that are taken at a time.
const CHUNK: usize = 8192;
const WITHOUT: &str =
    "it is JSON without `systemTraceEvents`: events of programs alone do not tell who ran when";

/// Whether a file with these first bytes is JSON.
pub fn is_chrome_json(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    match head {
        [b'{', ..] => true,
        [b'[', rest @ ..] => rest.trim_ascii_start().starts_with(b"{"),
        _ => false,
    }
}

/// Where the reader is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// In front of the trace; so many bytes of the key are matched.
    Key(usize),
    /// Behind the key: `: "` comes.
    Value,
    Text,
    /// Behind a backslash.
    Escape,
    /// In `\uXXXX`: how many digits were read, and their number.
    Unicode(u32, u32),
    End,
}

/// The text of the trace within a JSON file.
pub struct SystemTraceEvents<R> {
    input: R,
    at: At,
    /// The first half of a pair of UTF-16.
    high: Option<u32>,
    /// Text that was taken out, and how much of it was given on.
    text: Vec<u8>,
    given: usize,
}

impl<R: BufRead> SystemTraceEvents<R> {
    /// Of that file.
    pub fn new(input: R) -> SystemTraceEvents<R> {
        let (text, given) = (Vec::new(), 0);
        SystemTraceEvents { input, at: At::Key(0), high: None, text, given }
    }

    /// Takes a byte of the file; writes what it stands for.
    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) -> io::Result<()> {
        self.at = match self.at {
            At::Key(matched) if KEY[matched] == byte => match matched + 1 {
                all if all == KEY.len() => At::Value,
                more => At::Key(more),
            },
            At::Key(_) => At::Key(usize::from(byte == KEY[0])),
            At::Value if byte == b'"' => At::Text,
            At::Value if byte == b':' || byte.is_ascii_whitespace() => At::Value,
            At::Value => {
                return Err(io::Error::other("its `systemTraceEvents` is no text"));
            }
            At::Text if byte == b'\\' => At::Escape,
            At::Text if byte == b'"' => At::End,
            At::Text => {
                out.push(byte);
                At::Text
            }
            At::Escape if byte == b'u' => At::Unicode(0, 0),
            At::Escape => {
                out.push(match byte {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'b' => 8,
                    b'f' => 12,
                    other => other,
                });
                At::Text
            }
            At::Unicode(digits, number) => {
                let digit = char::from(byte).to_digit(16);
                let digit = digit.ok_or_else(|| io::Error::other("its text has a bad escape"))?;
                let number = number << 4 | digit;
                match digits {
                    3 => {
                        self.unit(number, out);
                        At::Text
                    }
                    _ => At::Unicode(digits + 1, number),
                }
            }
            At::End => At::End,
        };
        Ok(())
    }

    /// Takes a unit of UTF-16.
    fn unit(&mut self, unit: u32, out: &mut Vec<u8>) {
        let number = match (self.high.take(), unit) {
            (_, 0xd800..=0xdbff) => {
                self.high = Some(unit);
                return;
            }
            (Some(high), 0xdc00..=0xdfff) => 0x1_0000 + ((high - 0xd800) << 10) + (unit - 0xdc00),
            _ => unit,
        };
        let letter = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

impl<R: BufRead> Read for SystemTraceEvents<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() && self.at != At::End {
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                return match self.at {
                    At::Key(_) => Err(io::Error::other(WITHOUT)),
                    _ => Ok(0),
                };
            }
            let bytes = bytes[..bytes.len().min(CHUNK)].to_vec();
            let mut text = std::mem::take(&mut self.text);
            text.clear();
            for byte in &bytes {
                self.byte(*byte, &mut text)?;
            }
            self.input.consume(bytes.len());
            (self.text, self.given) = (text, 0);
        }
        let count = into.len().min(self.text.len() - self.given);
        into[..count].copy_from_slice(&self.text[self.given..][..count]);
        self.given += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Result<String, String> {
        let mut text = String::new();
        let read = SystemTraceEvents::new(json.as_bytes()).read_to_string(&mut text);
        read.map(|_| text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_trace_is_the_text_of_its_member() {
        for (json, expected) in [
            (
                r#"{"systemTraceEvents": "a\n\"b\" \\ \u00e9\ud83d\ude00 é", "x": 1}"#,
                "a\n\"b\" \\ é😀 é",
            ),
            (r#"{"traceEvents":[{"n":"systemTrace"}],"systemTraceEvents":"x"}"#, "x"),
            (r#"{"systemTraceEvents":"cut in its mid"#, "cut in its mid"),
        ] {
            assert_eq!(text(json).as_deref(), Ok(expected), "{json}");
        }
        assert_eq!(text(r#"{"traceEvents": []}"#).unwrap_err(), WITHOUT);
        assert!(text(r#"{"systemTraceEvents": [1]}"#).unwrap_err().contains("no text"));
    }

    #[test]
    fn json_is_told_by_its_beginning() {
        assert!(is_chrome_json(b" {\"traceEvents\"") && is_chrome_json(b"[\n{\"ph\""));
        assert!(!is_chrome_json(b"# tracer: nop") && !is_chrome_json(b"[001] 5.0: x"));
    }
}
