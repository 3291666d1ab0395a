// SPDX-License-Identifier: GPL-2.0-or-later
//! The journal of an interrupted sweep: a file beside its output, `OUTPUT.runs`, with a line for
//! each finished run.
//!
//! The first line is the sweep's head and shard; the journal of another sweep is begun anew. A line that a killed process has
//! left half written is no line: its run is performed again. The file is locked while a process works with it, and goes away once
//! the output is written.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use schedtwin_engine::outside;
use serde_json::{Value, json};

use super::run::{KnownColumns, Run};

/// The journal of a sweep or a shard of it.
pub struct Journal {
    /// With its name; `None`: nothing is kept.
    file: Option<(PathBuf, File)>,
    runs: BTreeMap<u64, Run>,
    columns: KnownColumns,
}

impl Journal {
    /// A journal that keeps nothing beyond the process.
    pub fn in_memory() -> Journal {
        Journal::of(Vec::new())
    }

    /// The same with runs that are done.
    pub fn of(runs: Vec<Run>) -> Journal {
        let runs = runs.into_iter().map(|run| (run.number, run)).collect();
        Journal { file: None, runs, columns: KnownColumns::default() }
    }

    /// The journal of what `head` names, for an output at `path`.
    pub fn open(path: &Path, head: &str) -> io::Result<Journal> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(journal_of(path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = "another process is at work on it; give each an output of its own";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, message));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mut lines = BufReader::new(&file).split(b'\n');
        let known = lines.next().transpose()?.is_some_and(|line| line == head.as_bytes());
        let (mut runs, mut columns) = (BTreeMap::new(), KnownColumns::default());
        let mut good = head.len() as u64 + 1;
        if known {
            for line in lines {
                let line = line?;
                let Some(mut run) = parse(&line) else { break };
                good += line.len() as u64 + 1;
                columns.share(&mut run);
                runs.insert(run.number, run);
            }
            // What follows the last whole line is what a killed process was about to write.
            good = good.min(file.metadata()?.len());
        } else {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            writeln!(file, "{head}")?;
        }
        file.set_len(good)?;
        file.seek(SeekFrom::Start(good))?;
        Ok(Journal { file: Some((journal_of(path), file)), runs, columns })
    }

    /// Whether a run is done.
    pub fn has(&self, run: u64) -> bool {
        self.runs.contains_key(&run)
    }

    /// How many are.
    pub fn len(&self) -> u64 {
        self.runs.len() as u64
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Keeps a run that is done.
    pub fn keep(&mut self, mut run: Run) -> io::Result<()> {
        if let Some((name, file)) = &mut self.file {
            let line = format!("{}\n", json!([run.number, run.fields().collect::<Vec<_>>()]));
            // A process without files keeps it by somebody else's hand.
            let kept = match outside::is_diverted() {
                true => outside::append(name, line.as_bytes()),
                false => file.write_all(line.as_bytes()),
            };
            kept.map_err(|error| {
                let (name, runs) = (name.display(), self.runs.len());
                let message = format!(
                    "failed to write {name}: {error}; it keeps {runs} runs: give the command again to go on"
                );
                io::Error::new(error.kind(), message)
            })?;
        }
        self.columns.share(&mut run);
        self.runs.insert(run.number, run);
        Ok(())
    }

    /// All that are done, in order.
    pub fn runs(&self) -> impl Iterator<Item = &Run> + Clone {
        self.runs.values()
    }

    /// The same, to keep.
    pub fn into_runs(self) -> Vec<Run> {
        self.runs.into_values().collect()
    }

    /// The output at `path` is written: its journal is needed no more.
    pub fn remove(path: &Path) {
        // Where it cannot be removed it does no harm: its runs are the output's.
        let _ = outside::remove(&journal_of(path));
    }
}

/// The journal of an output.
pub fn journal_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".runs");
    name.into()
}

fn parse(line: &[u8]) -> Option<Run> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let [number, fields] = value.as_array()?.as_slice() else { return None };
    let text = |value: &Value| value.as_str().map(String::from);
    let field = |pair: &Value| Some((text(pair.get(0)?)?, text(pair.get(1)?)?));
    let fields = fields.as_array()?.iter().map(field).collect::<Option<Vec<_>>>()?;
    Some(Run::new(number.as_u64()?, fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u64) -> Run {
        Run::new(number, [("power.mean".to_string(), format!("{number}.5"))])
    }

    #[test]
    fn what_is_kept_is_there_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        let mut journal = Journal::open(&path, "sweep 1").unwrap();
        journal.keep(run(3)).unwrap();
        journal.keep(run(1)).unwrap();
        let busy = Journal::open(&path, "sweep 1").err().expect("it is locked");
        assert!(busy.to_string().contains("another process"), "{busy}");
        drop(journal);
        // A process that was killed while it wrote.
        let mut file = OpenOptions::new().append(true).open(journal_of(&path)).unwrap();
        file.write_all(b"[4,[[\"pow").unwrap();
        drop(file);
        let mut journal = Journal::open(&path, "sweep 1").unwrap();
        assert_eq!((journal.len(), journal.has(1), journal.has(4)), (2, true, false));
        journal.keep(run(4)).unwrap();
        assert_eq!(journal.into_runs(), [run(1), run(3), run(4)]);
        let journal = Journal::open(&path, "sweep 1").unwrap();
        assert_eq!(journal.into_runs(), [run(1), run(3), run(4)]);
        // Another sweep begins anew.
        assert!(Journal::open(&path, "sweep 2").unwrap().is_empty());
        Journal::remove(&path);
        assert!(!journal_of(&path).exists());
    }
}
