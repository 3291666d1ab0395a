// SPDX-License-Identifier: GPL-2.0-or-later
//! Notes of `schedtwin record` in a trace.dat: what no tracepoint tells.
//!
//! They are the text of one option ([`OPTION`]) that other readers skip by its size:
//!
//! ```text
//! schedtwin-notes 1
//! note    NAME  VALUE
//! thread  PID TGID POLICY NICE RT_PRIORITY CLAMP_MIN CLAMP_MAX CPUS COMM CGROUP
//! forked  the same, of a thread that was created during the recording
//! ```
//!
//! Fields are separated by tabs; `\t`, `\n` and `\\` stand for these bytes. A field that is not known is `-`.

use crate::event::{StartingThread, TraceHeader};
use schedtwin_types::{CpuId, CpuMask, MAX_CPUS};
use std::fmt::{self, Write};

/// The option's number: `ST` as bytes, far above those that trace-cmd has given out.
pub const OPTION: u16 = 0x5453;

/// The first line.
const FIRST: &str = "schedtwin-notes 1";

/// Lines that are read: threads and notes.
const LINES_MAX: usize = 1 << 20;

/// Fields of a thread.
const FIELDS: usize = 10;

/// Writes the text of the option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotesText(String);

impl Default for NotesText {
    fn default() -> NotesText {
        NotesText(format!("{FIRST}\n"))
    }
}

impl NotesText {
    /// Adds a note.
    pub fn note(&mut self, name: &str, value: impl fmt::Display) {
        self.line("note", &[name.to_owned(), value.to_string()]);
    }

    /// Adds a thread as it is now; `forked`: it was created during the recording.
    pub fn thread(&mut self, thread: &StartingThread, forked: bool) {
        fn or_dash<T: fmt::Display>(value: Option<T>) -> String {
            value.map_or_else(|| "-".to_owned(), |value| value.to_string())
        }
        let fields = [
            thread.pid.to_string(),
            or_dash(thread.tgid),
            or_dash(thread.policy),
            or_dash(thread.nice),
            or_dash(thread.rt_priority),
            or_dash(thread.clamps.map(|clamps| clamps.0)),
            or_dash(thread.clamps.map(|clamps| clamps.1)),
            or_dash(thread.affinity.as_ref().map(cpu_list)),
            thread.comm.clone(),
            or_dash(thread.cgroup.clone()),
        ];
        self.line(if forked { "forked" } else { "thread" }, &fields);
    }

    fn line(&mut self, kind: &str, fields: &[String]) {
        self.0.push_str(kind);
        for field in fields {
            self.0.push('\t');
            for letter in field.chars() {
                match letter {
                    '\t' => self.0.push_str("\\t"),
                    '\n' => self.0.push_str("\\n"),
                    '\\' => self.0.push_str("\\\\"),
                    other => self.0.push(other),
                }
            }
        }
        self.0.push('\n');
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reads the text into a header: notes as options, threads as threads.
pub fn read(text: &str, header: &mut TraceHeader) -> Result<(), String> {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or("");
    if first != FIRST {
        return Err(format!(
            "they begin with `{}`, and only `{FIRST}` is known",
            first.escape_default()
        ));
    }
    for (index, line) in lines.enumerate().take(LINES_MAX) {
        let damaged = || format!("line {} is damaged", index + 2);
        let mut fields = line.split('\t');
        let kind = fields.next().unwrap_or("");
        let fields: Vec<String> = fields.take(FIELDS + 1).map(unescaped).collect();
        match (kind, &fields[..]) {
            ("note", [name, value]) => header.options.push((name.clone(), value.clone())),
            ("thread" | "forked", fields) if fields.len() == FIELDS => {
                header.threads.push(thread(fields).ok_or_else(damaged)?);
            }
            // A later writer may say more.
            ("note" | "thread" | "forked", _) => return Err(damaged()),
            _ => {}
        }
    }
    Ok(())
}

fn thread(fields: &[String]) -> Option<StartingThread> {
    fn number<T: std::str::FromStr>(field: &str) -> Option<Option<T>> {
        if field == "-" { Some(None) } else { field.parse().ok().map(Some) }
    }
    let clamps = (number(&fields[5])?, number(&fields[6])?);
    Some(StartingThread {
        pid: fields[0].parse().ok()?,
        tgid: number(&fields[1])?,
        policy: number(&fields[2])?,
        nice: number(&fields[3])?,
        rt_priority: number(&fields[4])?,
        clamps: match clamps {
            (Some(min), Some(max)) => Some((min, max)),
            _ => None,
        },
        affinity: match fields[7].as_str() {
            "-" => None,
            list => parse_cpu_list(list)?,
        },
        comm: fields[8].clone(),
        cgroup: Some(fields[9].clone()).filter(|group| group != "-"),
    })
}

fn unescaped(field: &str) -> String {
    let mut text = String::new();
    let mut letters = field.chars();
    while let Some(letter) = letters.next() {
        text.push(match letter {
            '\\' => match letters.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    text
}

/// CPUs as the kernel lists them: `0-3,6`.
pub fn cpu_list(cpus: &CpuMask) -> String {
    let mut list = String::new();
    let mut run: Option<(u16, u16)> = None;
    let mut put = |(first, last): (u16, u16)| {
        let comma = if list.is_empty() { "" } else { "," };
        let _ = match first == last {
            true => write!(list, "{comma}{first}"),
            false => write!(list, "{comma}{first}-{last}"),
        };
    };
    for cpu in cpus.iter() {
        run = match run {
            Some((first, last)) if last + 1 == cpu.0 => Some((first, cpu.0)),
            Some(ended) => {
                put(ended);
                Some((cpu.0, cpu.0))
            }
            None => Some((cpu.0, cpu.0)),
        };
    }
    run.into_iter().for_each(put);
    list
}

/// CPUs from such a list: `None` if it is none, `Some(None)` if it names CPUs beyond those that a mask holds.
pub fn parse_cpu_list(list: &str) -> Option<Option<CpuMask>> {
    let mut cpus = CpuMask::EMPTY;
    let mut fits = true;
    for part in list.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
        fits &= usize::from(last) < MAX_CPUS;
        (first..=last.min(MAX_CPUS as u16 - 1)).for_each(|cpu| cpus.insert(CpuId(cpu)));
    }
    Some(fits.then_some(cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back_as_they_were_written() {
        let mut text = NotesText::default();
        let full = StartingThread {
            pid: 7,
            tgid: Some(5),
            comm: "a\tb\\n\nc".to_owned(),
            policy: Some(1),
            nice: Some(-5),
            rt_priority: Some(40),
            affinity: parse_cpu_list("0-2,5,7-8").unwrap(),
            clamps: Some((100, 1024)),
            cgroup: Some("/top-app".to_owned()),
        };
        let bare = StartingThread { pid: 8, comm: "-x".to_owned(), ..StartingThread::default() };
        text.note("lost", 3);
        text.thread(&full, false);
        text.thread(&bare, true);
        let mut header = TraceHeader::default();
        read(text.as_str(), &mut header).unwrap();
        assert_eq!(header.options, [("lost".to_owned(), "3".to_owned())]);
        assert_eq!(header.threads, [full.clone(), bare]);
        assert_eq!(cpu_list(&full.affinity.unwrap()), "0-2,5,7-8");
    }

    #[test]
    fn damaged_notes_are_told_with_their_line() {
        for (text, message) in [
            ("", "they begin with ``, and only `schedtwin-notes 1` is known"),
            ("schedtwin-notes 1\nnote\ta\n", "line 2 is damaged"),
            ("schedtwin-notes 1\n\nthread\t1\t2\n", "line 3 is damaged"),
            ("schedtwin-notes 1\nthread\tx\t-\t-\t-\t-\t-\t-\t-\tc\t-\n", "line 2 is damaged"),
            ("schedtwin-notes 1\nthread\t1\t-\t-\t-\t-\t-\t-\t1-x\tc\t-\n", "line 2 is damaged"),
        ] {
            assert_eq!(read(text, &mut TraceHeader::default()).unwrap_err(), message, "{text}");
        }
        assert!(read("schedtwin-notes 1\nfuture\t1\n", &mut TraceHeader::default()).is_ok());
    }

    #[test]
    fn a_list_of_cpus_beyond_the_mask_is_not_cut_short() {
        assert_eq!(parse_cpu_list("0-65000"), Some(None));
        assert_eq!(parse_cpu_list("3-x"), None);
    }
}
