// SPDX-License-Identifier: GPL-2.0-or-later
//! Events as tables: a file for each tracepoint, with the columns that LISA gives its data frames.
//!
//! `Time` is in seconds; `__cpu`, `__pid` and `__comm` say where and in whose context the event was recorded; the other columns
//! are the tracepoint's fields, those of its row in the table of tracepoints, by their keys in the kernel's text. A field that
//! some event does not tell is empty there.
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

use super::{EventSink, Rows as EventRows, Taken};
use crate::AtomicFolder;
use crate::event::{Left, NameId, Names, TraceEvent, TraceHeader};
use crate::tracepoint::row::{ABSENT, Field, Tracepoint, Type};
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
    events: EventRows,
    /// Names of the files, without case: some file systems tell none apart by it.
    files: BTreeSet<String>,
}

struct Table {
    rows: Box<dyn Rows>,
    /// The tracepoint; `None`: text of programs.
    of: Option<&'static Tracepoint>,
}

impl EventTables {
    /// Tables that appear in that folder when they are finished.
    pub fn create(folder: &Path, format: TableFormat) -> io::Result<EventTables> {
        Ok(EventTables {
            folder: AtomicFolder::create(folder)?,
            format,
            tables: BTreeMap::new(),
            events: EventRows::default(),
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

/// The column of text of programs.
const MARK: (&str, Holds) = ("buf", Holds::Text);

/// The column of a field, by its key in text, or else by its name in the kernel's format; `None`: its value is not kept.
fn column(field: &Field) -> Option<(&'static str, Holds)> {
    let is_key = field.label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let name = if is_key && field.ty != Type::Mask { field.label } else { field.name };
    let holds = match field.ty {
        Type::Hex | Type::Address | Type::Work | Type::Time | Type::Ticks | Type::Mask => {
            Holds::Unsigned
        }
        Type::Comm | Type::State | Type::Below | Type::Vector => Holds::Text,
        ty if ty.is_text() || ty.is_function() => Holds::Text,
        _ => Holds::Number,
    };
    (field.ty.is_kept() && field.ty != Type::Callsite).then_some((name, holds))
}

/// The cell of a field's value; `before` is the value of the field before it.
fn cell<'a>(field: &Field, value: i64, before: i64, names: &'a Names) -> Option<Cell<'a>> {
    let (_, holds) = column(field)?;
    Some(match (field.ty, holds) {
        (Type::Ticks, _) => Cell::Unsigned(before.wrapping_sub(value) as u64),
        (Type::State, _) => Cell::Text(Left::of_bits(value as u64).letter()),
        (Type::Below, _) => Cell::Text(if value != 0 { "below" } else { "above" }),
        (Type::IdleState, _) => Cell::Number((value as u32).into()),
        (Type::Hex | Type::Address | Type::Work | Type::Time, _) => Cell::Unsigned(value as u64),
        _ if value == ABSENT => Cell::Absent,
        (Type::Mask, _) => 1_u64.checked_shl(value as u32).map_or(Cell::Absent, Cell::Unsigned),
        (_, Holds::Text) => Cell::Text(names.text(NameId(value as u32))),
        _ => Cell::Number(value),
    })
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

impl EventTables {
    /// The table of a tracepoint, which begins with its first event. `None`: its events are of another tracepoint.
    fn table(
        &mut self,
        event: NameId,
        of: Option<&'static Tracepoint>,
        names: &Names,
    ) -> io::Result<Option<&mut Table>> {
        if !self.tables.contains_key(&event) {
            let name = file_name(names.text(event), self.format.ending(), &mut self.files);
            let fields = of.map_or(&[][..], |row| row.fields).iter().filter_map(column);
            let mark = of.is_none().then_some(MARK);
            let all: Vec<_> = FIRST.into_iter().chain(fields).chain(mark).collect();
            let rows = self.format.start(self.folder.file(&name)?, &all)?;
            self.tables.insert(event, Table { rows, of });
        }
        let table = self.tables.get_mut(&event);
        Ok(table.filter(|table| table.of.map(|row| row.name) == of.map(|row| row.name)))
    }
}

impl EventSink for EventTables {
    fn event(&mut self, event: &TraceEvent, names: &Names) -> io::Result<bool> {
        let taken = self.events.take(event, names, |_| true);
        let mut cells = vec![
            Cell::Seconds(event.at),
            Cell::Number(event.cpu.0.into()),
            Cell::Number(event.context.pid.into()),
            Cell::Text(names.text(event.context.comm)),
        ];
        let of = match &taken {
            Taken::Mark(mark) => {
                cells.push(Cell::Text(mark));
                None
            }
            Taken::Row(row, values) => {
                let fields = row.with_values(values);
                cells.extend(
                    fields.filter_map(|(field, value, before)| cell(field, value, before, names)),
                );
                Some(*row)
            }
            Taken::Other => return Ok(false),
        };
        let Some(table) = self.table(event.name, of, names)? else { return Ok(false) };
        table.rows.row(&cells)?;
        Ok(true)
    }

    fn finish(self: Box<Self>, _: &TraceHeader) -> io::Result<()> {
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
