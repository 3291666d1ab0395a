// SPDX-License-Identifier: GPL-2.0-or-later
//! The journal of changes, so that everything can be put back whatever happens.
//!
//! Each change is written to the journal, and the journal to the disk, before the change is made. Undoing goes through it
//! from the end; what is as it was is not touched. (A cgroup is made before its line is written: undoing then never removes another's.) Who was killed in the middle of a change has a journal with one line too many: putting that
//! back writes what is there already.
//!
//! ```text
//! {"journal":"schedtwin settings","boot":"..."}
//! {"file":"/proc/sys/kernel/sched_autogroup_enabled","was":"1","now":"0"}
//! {"group":"/sys/fs/cgroup/work","files":[["cpu.max","20000 100000"]]}
//! {"thread":4711,"start":812345,"name":"hogs-0","policy":0,"nice":0,...}
//! ```

use super::switches::current;
use super::threads::{bind, start_of};
use schedtwin_types::{CpuId, CpuMask, DlReservation, Policy, SchedAttr};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// One change and its converse.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A file's value.
    File {
        /// Which.
        path: PathBuf,
        /// Before.
        was: String,
        /// After.
        now: String,
    },
    /// A cgroup that is made, and removed when it is put back.
    Group {
        /// Its folder.
        path: PathBuf,
        /// Values of its files, in the order in which they are written.
        files: Vec<(String, String)>,
    },
    /// A thread's parameters.
    Thread {
        /// Which.
        tid: u32,
        /// When it started, ticks since boot: another thread may get its number.
        start: u64,
        /// Its name, for people.
        name: String,
        /// Parameters before and after, where they change.
        attr: Option<(SchedAttr, SchedAttr)>,
        /// CPUs before and after, where they change.
        cpus: Option<(CpuMask, CpuMask)>,
    },
}

/// The journal of a process that changes this machine.
#[derive(Debug)]
pub struct Journal {
    file: File,
}

/// A name that changes with each boot: changes do not outlive it.
fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

impl Journal {
    /// Begins a journal; there must be none, for its changes would be forgotten.
    pub fn create(path: &Path) -> io::Result<Journal> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        writeln!(file, "{}", json!({"journal": "schedtwin settings", "boot": boot_id()}))?;
        file.sync_all()?;
        Ok(Journal { file })
    }

    /// Notes a change, makes it and reads it back.
    pub fn make(&mut self, change: &Change) -> io::Result<()> {
        if let Change::Group { path, .. } = change {
            fs::create_dir(path)?;
        }
        writeln!(self.file, "{}", line_of(change))?;
        self.file.sync_all()?;
        make(change, true)
    }
}

/// Puts everything back that the journal names and removes it; returns the number of changes, and what could not be put
/// back. `None`: there is no journal.
pub fn undo(path: &Path) -> io::Result<Option<(usize, Vec<String>)>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut lines = text.lines();
    let strange = |line: &str| {
        io::Error::new(io::ErrorKind::InvalidData, format!("it is no journal of settings: {line}"))
    };
    let head: Value =
        lines.next().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
    if head["journal"] != "schedtwin settings" {
        return Err(strange(&text.chars().take(40).collect::<String>()));
    }
    if head["boot"] != boot_id() {
        fs::remove_file(path)?;
        return Ok(Some((0, Vec::new())));
    }
    let mut changes = Vec::new();
    for line in lines {
        match serde_json::from_str::<Value>(line).ok().and_then(|value| change_of(&value)) {
            Some(change) => changes.push(change),
            // The writer was killed within its last line: that change was not made.
            None if !text.ends_with('\n') => break,
            None => return Err(strange(line)),
        }
    }
    let mut failed = Vec::new();
    for change in changes.iter().rev() {
        if let Err(error) = make(change, false) {
            failed.push(match change {
                Change::File { path, was, .. } => {
                    format!("failed to write {was} to {}: {error}", path.display())
                }
                Change::Group { path, .. } => {
                    format!("failed to remove {}: {error}", path.display())
                }
                Change::Thread { tid, name, .. } => {
                    format!("failed to put thread {tid} ({name}) back: {error}")
                }
            });
        }
    }
    if failed.is_empty() {
        fs::remove_file(path)?;
    }
    Ok(Some((changes.len(), failed)))
}

/// Makes a change and reads it back, or puts it back.
pub(super) fn make(change: &Change, forth: bool) -> io::Result<()> {
    match change {
        // The change may have been refused, and putting it back would be, too.
        Change::File { path, was, .. } if !forth && holds(path, was) => Ok(()),
        Change::File { path, was, now } => match write(path, if forth { now } else { was }) {
            // A setting that has gone with its CPU or governor has nothing to be put back.
            Err(error) if !forth && error.kind() == io::ErrorKind::NotFound => Ok(()),
            written => written,
        },
        Change::Group { path, files } if forth => files.iter().try_for_each(|(name, value)| {
            write(&path.join(name), value)
                .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))
        }),
        Change::Group { path, .. } => remove_group(path),
        Change::Thread { tid, start, attr, cpus, .. } => {
            if start_of(*tid) != Some(*start) {
                return Ok(());
            }
            if let Some((was, now)) = cpus {
                bind(*tid, if forth { *now } else { *was })?;
            }
            let Some((was, now)) = attr else { return Ok(()) };
            schedtwin_attributes::set_exactly(*tid, if forth { now } else { was })
        }
    }
}

/// Writes a value into a file that is there, and reads it back.
fn write(path: &Path, value: &str) -> io::Result<()> {
    // No new file: `fs::write` would make one.
    OpenOptions::new().write(true).truncate(true).open(path)?.write_all(value.as_bytes())?;
    if holds(path, value) {
        return Ok(());
    }
    let has = fs::read_to_string(path)?;
    Err(io::Error::other(format!("the kernel made {:?} of it", current(path, value, &has))))
}

fn holds(path: &Path, value: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|text| current(path, value, &text) == value)
}

/// Removes a cgroup; processes that the work left behind go to the group above.
fn remove_group(path: &Path) -> io::Result<()> {
    let members = match fs::read_to_string(path.join("cgroup.procs")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        members => members?,
    };
    let above = path.parent().unwrap_or(path).join("cgroup.procs");
    for member in members.lines() {
        // It may have ended.
        let _ = fs::write(&above, member);
    }
    fs::remove_dir(path)
}

fn attr_json(attr: &SchedAttr) -> Value {
    let DlReservation { runtime, deadline, period } = attr.dl;
    json!([
        attr.policy.number(),
        attr.nice,
        attr.rt_priority,
        attr.slice,
        runtime,
        deadline,
        period,
        attr.util_min,
        attr.util_max
    ])
}

fn attr_of(value: &Value) -> Option<SchedAttr> {
    let number = |at: usize| value.get(at)?.as_i64();
    let policy = Policy::of_number(number(0)?)?;
    Some(SchedAttr {
        policy,
        nice: number(1)? as i8,
        rt_priority: number(2)? as u8,
        slice: number(3)? as u64,
        dl: DlReservation {
            runtime: number(4)? as u64,
            deadline: number(5)? as u64,
            period: number(6)? as u64,
        },
        util_min: number(7).map(|clamp| clamp as u16),
        util_max: number(8).map(|clamp| clamp as u16),
    })
}

fn cpus_json(cpus: &CpuMask) -> Value {
    Value::from(cpus.iter().map(|cpu| cpu.0).collect::<Vec<u16>>())
}

fn cpus_of(value: &Value) -> Option<CpuMask> {
    let numbers = value.as_array()?.iter().map(|cpu| Some(CpuId(cpu.as_u64()? as u16)));
    numbers.collect()
}

fn line_of(change: &Change) -> Value {
    match change {
        Change::File { path, was, now } => {
            json!({"file": path.to_string_lossy(), "was": was, "now": now})
        }
        Change::Group { path, files } => json!({"group": path.to_string_lossy(), "files": files}),
        Change::Thread { tid, start, name, attr, cpus } => {
            let mut line = json!({"thread": tid, "start": start, "name": name});
            if let Some((was, now)) = attr {
                line["was"] = attr_json(was);
                line["now"] = attr_json(now);
            }
            if let Some((was, now)) = cpus {
                line["cpus_were"] = cpus_json(was);
                line["cpus"] = cpus_json(now);
            }
            line
        }
    }
}

fn change_of(line: &Value) -> Option<Change> {
    let text = |key: &str| Some(line.get(key)?.as_str()?.to_owned());
    if let Some(path) = text("file") {
        return Some(Change::File { path: path.into(), was: text("was")?, now: text("now")? });
    }
    if let Some(path) = text("group") {
        let pair =
            |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned()));
        let files = line.get("files")?.as_array()?.iter().map(pair).collect::<Option<_>>()?;
        return Some(Change::Group { path: path.into(), files });
    }
    let pair = |was: &str, now: &str| line.get(was).zip(line.get(now));
    Some(Change::Thread {
        tid: line.get("thread")?.as_u64()? as u32,
        start: line.get("start")?.as_u64()?,
        name: text("name")?,
        attr: pair("was", "now").and_then(|(was, now)| Some((attr_of(was)?, attr_of(now)?))),
        cpus: pair("cpus_were", "cpus").and_then(|(was, now)| Some((cpus_of(was)?, cpus_of(now)?))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_undone_from_the_end_and_the_journal_goes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("knob");
        fs::write(&file, "1").unwrap();
        let path = folder.path().join("a/journal");
        let mut journal = Journal::create(&path).unwrap();
        for (was, now) in [("1", "2"), ("2", "3")] {
            let change = Change::File { path: file.clone(), was: was.into(), now: now.into() };
            journal.make(&change).unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "3");
        assert!(Journal::create(&path).is_err(), "what is changed already is not forgotten");
        assert_eq!(undo(&path).unwrap(), Some((2, vec![])));
        assert_eq!(fs::read_to_string(&file).unwrap(), "1");
        assert_eq!(undo(&path).unwrap(), None);
    }

    #[test]
    fn a_value_that_the_kernel_made_something_else_of_is_an_error() {
        let null = Change::File { path: "/dev/null".into(), was: "1".into(), now: "2".into() };
        let why = make(&null, true).unwrap_err().to_string();
        assert_eq!(why, "the kernel made \"\" of it");
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().join("cgroup.subtree_control");
        fs::write(&group, "cpu").unwrap();
        let control = Change::File { path: group, was: "-cpu".into(), now: "+cpu".into() };
        // This is no kernel: the file holds "+cpu" then, and not the controller.
        let why = make(&control, true).unwrap_err().to_string();
        assert_eq!(why, "the kernel made \"-cpu\" of it");
        make(&control, false).unwrap();
    }

    #[test]
    fn a_torn_last_line_is_no_change_and_another_file_is_no_journal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        drop(Journal::create(&path).unwrap());
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{{\"file\":\"/no")).unwrap();
        assert_eq!(undo(&path).unwrap(), Some((0, vec![])));
        fs::write(&path, "something\n").unwrap();
        assert!(undo(&path).is_err());
        assert!(path.exists());
    }

    #[test]
    fn changes_are_read_back_as_they_were_written() {
        let attr = SchedAttr {
            policy: schedtwin_types::Policy::Fifo,
            rt_priority: 9,
            ..SchedAttr::default()
        };
        let change = Change::Thread {
            tid: 7,
            start: 99,
            name: "a".into(),
            attr: Some((SchedAttr { util_min: Some(3), ..SchedAttr::default() }, attr)),
            cpus: Some((CpuMask::first(4), CpuMask::first(1))),
        };
        assert_eq!(change_of(&line_of(&change)), Some(change));
        let files = vec![("cpu.max".into(), "max 100000".into())];
        let group = Change::Group { path: "/g".into(), files };
        assert_eq!(change_of(&line_of(&group)), Some(group));
    }
}
