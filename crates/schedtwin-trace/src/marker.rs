// SPDX-License-Identifier: GPL-2.0-or-later
//! Text that programs write into a trace: atrace's slices and counters, and devlib's frequencies.
//!
//! | text | is |
//! |---|---|
//! | `B\|tgid\|name` | a slice of the writing thread begins; the name may hold `\|` |
//! | `E\|tgid`, `E` | its innermost slice ends |
//! | `S\|tgid\|name\|cookie`, `F\|...` | a slice of no thread begins, ends |
//! | `G\|tgid\|track\|name\|cookie`, `H\|tgid\|track\|cookie` | the same on a named track: found again by track and cookie |
//! | `C\|tgid\|name\|value` | a counter |
//! | `I\|tgid\|name`, `N\|tgid\|track\|name` | a moment |
//! | `cpu_frequency: state=K cpu_id=N` | a frequency, as devlib writes it at the ends of a recording |
//!
//! Any other text is no event here. The same text arrives from `trace_marker` in every binary format.

use crate::event::{CPUS_MAX, Names, TraceEventKind};
use schedtwin_types::CpuId;

/// Parses the text of a marker; returns `None` if it has none of the known forms.
pub fn parse(text: &[u8], names: &mut Names) -> Option<TraceEventKind> {
    match std::str::from_utf8(text) {
        Ok(text) => parse_text(text, names),
        Err(_) => parse_text(&String::from_utf8_lossy(text), names),
    }
}

/// As [`parse`], of text.
pub fn parse_text(text: &str, names: &mut Names) -> Option<TraceEventKind> {
    let text = text.trim_ascii_end();
    let (kind, rest) = text.split_at_checked(1)?;
    let Some(rest) = rest.strip_prefix('|').or_else(|| rest.is_empty().then_some("")) else {
        return frequency(text);
    };
    let (tgid, tail) = rest.split_once('|').unwrap_or((rest, ""));
    let tgid = tgid.trim_ascii().parse().ok();
    Some(match kind {
        "B" => TraceEventKind::SliceBegin { tgid: tgid?, name: names.intern_minor(tail) },
        "E" => TraceEventKind::SliceEnd { tgid: tgid.unwrap_or(0) },
        "S" | "F" | "G" | "H" => {
            let (name, cookie) = name_and_number(tail)?;
            let tgid = tgid?;
            // `G` names track and slice, `H` only the track: they meet by the track.
            let name = if kind == "G" { name.split_once('|')?.0 } else { name };
            let name = names.intern_minor(name);
            match kind {
                "S" | "G" => TraceEventKind::AsyncBegin { tgid, name, cookie },
                _ => TraceEventKind::AsyncEnd { tgid, name, cookie },
            }
        }
        "C" => {
            let (name, value) = name_and_number(tail)?;
            TraceEventKind::Counter { tgid: tgid?, name: names.intern_minor(name), value }
        }
        "I" => TraceEventKind::Instant { tgid: tgid?, name: names.intern_minor(tail) },
        "N" => {
            let (_, name) = tail.split_once('|')?;
            TraceEventKind::Instant { tgid: tgid?, name: names.intern_minor(name) }
        }
        _ => return None,
    })
}

/// Parses `name|number`. A name may hold the separator: the number is cut from the right.
fn name_and_number(text: &str) -> Option<(&str, i64)> {
    let (name, number) = text.rsplit_once('|')?;
    Some((name, number.trim_ascii().parse().ok()?))
}

/// A frequency of devlib.
fn frequency(text: &str) -> Option<TraceEventKind> {
    let (name, fields) = text.split_once(':')?;
    let key = match name {
        "cpu_frequency" => "state",
        "cpu_frequency_devlib" => "frequency",
        _ => return None,
    };
    let value = |key: &str| {
        let mut words = fields.split_whitespace();
        words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))?.parse::<u32>().ok()
    };
    let cpu = value("cpu_id").filter(|cpu| (*cpu as usize) < CPUS_MAX)?;
    Some(TraceEventKind::Frequency { cpu: CpuId(cpu as u16), khz: value(key)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_becomes_its_event_and_other_text_none() {
        let names = &mut Names::new();
        let id = |names: &mut Names, text: &str| names.intern(text);
        let draw = id(names, "draw|frame");
        let track = id(names, "track");
        let load = id(names, "load");
        for (text, kind) in [
            ("B|7|draw|frame\n", Some(TraceEventKind::SliceBegin { tgid: 7, name: draw })),
            ("E|7", Some(TraceEventKind::SliceEnd { tgid: 7 })),
            ("E", Some(TraceEventKind::SliceEnd { tgid: 0 })),
            (
                "S|7|draw|frame|-3",
                Some(TraceEventKind::AsyncBegin { tgid: 7, name: draw, cookie: -3 }),
            ),
            (
                "F|7|draw|frame|-3",
                Some(TraceEventKind::AsyncEnd { tgid: 7, name: draw, cookie: -3 }),
            ),
            (
                "G|7|track|draw|4",
                Some(TraceEventKind::AsyncBegin { tgid: 7, name: track, cookie: 4 }),
            ),
            ("H|7|track|4", Some(TraceEventKind::AsyncEnd { tgid: 7, name: track, cookie: 4 })),
            ("C|7|load|12", Some(TraceEventKind::Counter { tgid: 7, name: load, value: 12 })),
            ("I|7|load", Some(TraceEventKind::Instant { tgid: 7, name: load })),
            ("N|7|track|load", Some(TraceEventKind::Instant { tgid: 7, name: load })),
            (
                "cpu_frequency: state=450000 cpu_id=3",
                Some(TraceEventKind::Frequency { cpu: CpuId(3), khz: 450_000 }),
            ),
            ("cpu_frequency: state=450000 cpu_id=99999", None),
            ("B|x|draw", None),
            ("S|7|draw", None),
            ("Z|7|draw", None),
            ("hello", None),
            ("", None),
            ("B", None),
            ("|", None),
        ] {
            assert_eq!(parse(text.as_bytes(), names), kind, "{text}");
        }
    }
}
