// SPDX-License-Identifier: GPL-2.0-or-later
//! Events as tables: a file for each tracepoint, with the columns that LISA gives its data frames.
//!
//! `Time` is in seconds; `__cpu`, `__pid` and `__comm` say where and in whose context the event was recorded; the other columns
//! are the tracepoint's fields by the kernel's names. A field that some event does not tell is empty there.
//!
//! | [`TableFormat`] | file | needs |
//! |---|---|---|
//! | `Csv` | text; what a spreadsheet would compute has an apostrophe before it | - |
//! | `Parquet` | Apache Parquet, typed | feature `parquet` |
//! | `Arrow` | Arrow's IPC file, typed | feature `arrow` |
//!
//! Rows wait in memory, [`BATCH`] of a tracepoint at most where columns are typed.

#[cfg(feature = "arrow")]
mod arrow;
mod csv_file;
#[cfg(feature = "parquet")]
mod parquet;

use super::{EventSink, Field, Fields, mark};
use crate::AtomicFolder;
use crate::event::{NameId, Names, TraceEvent};
use schedtwin_types::Ns;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::Path;

/// Rows of a typed table that are written together.
#[cfg(any(feature = "arrow", feature = "parquet"))]
const BATCH: usize = 1 << 15;

/// The format of the files of a folder of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableFormat {
    /// `.csv`.
    #[default]
    Csv,
    /// `.parquet`.
    Parquet,
    /// `.arrow`.
    Arrow,
}

impl TableFormat {
    /// The ending of its files.
    pub fn ending(self) -> &'static str {
        match self {
            TableFormat::Csv => "csv",
            TableFormat::Parquet => "parquet",
            TableFormat::Arrow => "arrow",
        }
    }

    fn start(self, file: File, columns: &[(&'static str, Holds)]) -> io::Result<Box<dyn Rows>> {
        match self {
            TableFormat::Csv => Ok(Box::new(csv_file::CsvFile::new(file, columns)?)),
            #[cfg(feature = "parquet")]
            TableFormat::Parquet => Ok(Box::new(parquet::ParquetFile::new(file, columns)?)),
            #[cfg(feature = "arrow")]
            TableFormat::Arrow => Ok(Box::new(arrow::ArrowFile::new(file, columns)?)),
            #[allow(unreachable_patterns, reason = "with all features nothing is left")]
            other => {
                let name = other.ending();
                let message = format!("this schedtwin was built without the feature `{name}`");
                Err(io::Error::new(io::ErrorKind::Unsupported, message))
            }
        }
    }
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Seconds,
    Number,
    Unsigned,
    Text,
}

/// A cell of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell<'a> {
    Seconds(Ns),
    Number(i64),
    Unsigned(u64),
    Text(&'a str),
    Absent,
}

/// Takes the rows of a table; a cell is of its column's type or absent.
trait Rows {
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()>;
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Writes a folder of tables.
pub struct EventTables {
    folder: AtomicFolder,
    format: TableFormat,
    tables: BTreeMap<NameId, Table>,
    fields: Fields,
    /// Names of the files, without case: some file systems tell none apart by it.
    files: BTreeSet<String>,
}

struct Table {
    rows: Box<dyn Rows>,
    /// After the first four.
    columns: Vec<(&'static str, Holds)>,
}

impl EventTables {
    /// Tables that appear in that folder when they are finished.
    pub fn create(folder: &Path, format: TableFormat) -> io::Result<EventTables> {
        Ok(EventTables {
            folder: AtomicFolder::create(folder)?,
            format,
            tables: BTreeMap::new(),
            fields: Fields::default(),
            files: BTreeSet::new(),
        })
    }
}

/// The columns that every table begins with.
const FIRST: [(&str, Holds); 4] = [
    ("Time", Holds::Seconds),
    ("__cpu", Holds::Number),
    ("__pid", Holds::Number),
    ("__comm", Holds::Text),
];

impl Field {
    fn holds(self) -> Holds {
        match self {
            Field::Number(_) | Field::Cpu3(_) => Holds::Number,
            Field::Hex(_) => Holds::Unsigned,
            Field::Name(_) | Field::Word(_) => Holds::Text,
        }
    }

    fn cell(self, names: &Names) -> Cell<'_> {
        match self {
            Field::Number(value) => Cell::Number(value),
            Field::Cpu3(cpu) => Cell::Number(cpu.0.into()),
            Field::Hex(value) => Cell::Unsigned(value),
            Field::Name(name) => Cell::Text(names.text(name)),
            Field::Word(word) => Cell::Text(word),
        }
    }
}

/// A tracepoint's name as that of a file which is not among `taken` yet.
fn file_name(event: &str, ending: &str, taken: &mut BTreeSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
    let name: String = event.chars().map(plain).collect();
    let numbers = (2..).map(|number| format!("_{number}"));
    let names =
        [String::new()].into_iter().chain(numbers).map(|end| format!("{name}{end}.{ending}"));
    let mut free = names.filter(|name| taken.insert(name.to_ascii_lowercase()));
    free.next().expect("numbers do not end")
}

impl EventSink for EventTables {
    fn event(&mut self, event: &TraceEvent, names: &Names) -> io::Result<bool> {
        let mark = mark(&event.kind, names);
        if mark.is_none() && !self.fields.fill(&event.kind) {
            return Ok(false);
        }
        if !self.tables.contains_key(&event.name) {
            let ending = self.format.ending();
            let name = file_name(names.text(event.name), ending, &mut self.files);
            let columns: Vec<(&str, Holds)> = match &mark {
                Some(_) => vec![("buf", Holds::Text)],
                None => self.fields.0.iter().map(|(name, field)| (*name, field.holds())).collect(),
            };
            let all: Vec<_> = FIRST.iter().chain(&columns).copied().collect();
            let rows = self.format.start(self.folder.file(&name)?, &all)?;
            self.tables.insert(event.name, Table { rows, columns });
        }
        let table = self.tables.get_mut(&event.name).expect("it was just made");
        let mut cells = vec![
            Cell::Seconds(event.at),
            Cell::Number(event.cpu.0.into()),
            Cell::Number(event.context.pid.into()),
            Cell::Text(names.text(event.context.comm)),
        ];
        for (column, holds) in &table.columns {
            let field = self
                .fields
                .0
                .iter()
                .find(|(name, field)| name == column && field.holds() == *holds);
            cells.push(match (&mark, field) {
                (Some(mark), _) => Cell::Text(mark),
                (None, Some((_, field))) => field.cell(names),
                (None, None) => Cell::Absent,
            });
        }
        table.rows.row(&cells)?;
        Ok(true)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        for table in self.tables.into_values() {
            table.rows.finish()?;
        }
        self.folder.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_the_folder_and_each_event_has_a_file_of_its_own() {
        let taken = &mut BTreeSet::new();
        for (event, file) in [
            ("sched_switch", "sched_switch.csv"),
            ("../../etc/passwd", "______etc_passwd.csv"),
            ("a:b", "a_b.csv"),
            ("a_b", "a_b_2.csv"),
            ("A_B", "A_B_3.csv"),
        ] {
            assert_eq!(file_name(event, "csv", taken), file, "{event}");
        }
    }
}
