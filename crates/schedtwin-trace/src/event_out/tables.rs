// SPDX-License-Identifier: GPL-2.0-or-later
//! Events as tables: a CSV file for each tracepoint, with the columns that LISA gives its data frames.
//!
//! `Time` is in seconds; `__cpu`, `__pid` and `__comm` say where and in whose context the event was recorded; the other columns
//! are the tracepoint's fields by the kernel's names. A field that some event does not tell is empty there.

use super::{EventSink, Field, Fields, mark};
use crate::event::{NameId, Names, TraceEvent};
use crate::{AtomicFile, Destination};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// Writes a folder of tables.
pub struct EventTables {
    folder: PathBuf,
    tables: BTreeMap<NameId, Table>,
    fields: Fields,
    /// Names of the files, without case: some file systems tell none apart by it.
    files: BTreeSet<String>,
}

struct Table {
    rows: csv::Writer<AtomicFile>,
    /// After the first four.
    columns: Vec<&'static str>,
}

impl EventTables {
    /// Tables that appear in that folder, which exists, when they are finished.
    pub fn create(folder: &Path) -> EventTables {
        EventTables {
            folder: folder.to_owned(),
            tables: BTreeMap::new(),
            fields: Fields::default(),
            files: BTreeSet::new(),
        }
    }
}

/// A tracepoint's name as that of a file which is not among `taken` yet.
fn file_name(event: &str, taken: &mut BTreeSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
    let name: String = event.chars().map(plain).collect();
    let numbers = (2..).map(|number| format!("_{number}"));
    let names = [String::new()].into_iter().chain(numbers).map(|end| format!("{name}{end}.csv"));
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
            let name = file_name(names.text(event.name), &mut self.files);
            let file = AtomicFile::create(&self.folder.join(name))?;
            let mut rows = csv::Writer::from_writer(file);
            let columns: Vec<&str> = match &mark {
                Some(_) => vec!["buf"],
                None => self.fields.0.iter().map(|(name, _)| *name).collect(),
            };
            rows.write_record(["Time", "__cpu", "__pid", "__comm"].iter().chain(&columns))?;
            self.tables.insert(event.name, Table { rows, columns });
        }
        let table = self.tables.get_mut(&event.name).expect("it was just made");
        let (seconds, ns) = (event.at / 1_000_000_000, event.at % 1_000_000_000);
        table.rows.write_field(format!("{seconds}.{ns:09}"))?;
        table.rows.write_field(event.cpu.0.to_string())?;
        table.rows.write_field(event.context.pid.to_string())?;
        table.rows.write_field(names.text(event.context.comm))?;
        for column in &table.columns {
            if let Some(mark) = &mark {
                table.rows.write_field(mark)?;
                continue;
            }
            let field = self.fields.0.iter().find(|(name, _)| name == column);
            match field.map(|(_, field)| *field) {
                None => table.rows.write_field("")?,
                Some(Field::Number(value)) => table.rows.write_field(value.to_string())?,
                Some(Field::Hex(value)) => table.rows.write_field(value.to_string())?,
                Some(Field::Cpu3(cpu)) => table.rows.write_field(cpu.0.to_string())?,
                Some(Field::Name(name)) => table.rows.write_field(names.text(name))?,
                Some(Field::Word(word)) => table.rows.write_field(word)?,
            }
        }
        table.rows.write_record(None::<&[u8]>)?;
        Ok(true)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        for table in self.tables.into_values() {
            let file = table.rows.into_inner().map_err(|error| error.into_error())?;
            file.commit()?;
        }
        Ok(())
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
            assert_eq!(file_name(event, taken), file, "{event}");
        }
    }
}
