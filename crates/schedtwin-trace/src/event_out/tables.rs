// SPDX-License-Identifier: GPL-2.0-or-later
//! Events as tables: a CSV file for each tracepoint, with the columns that LISA gives its data frames.
//!
//! `Time` is in seconds; `__cpu`, `__pid` and `__comm` say where and in whose context the event was recorded; the other columns
//! are the tracepoint's fields by the kernel's names. A field that some event does not tell is empty there.

use super::{EventSink, Field, Fields, mark};
use crate::event::{NameId, Names, TraceEvent};
use crate::{AtomicFile, Destination};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Writes a folder of tables.
pub struct EventTables {
    folder: PathBuf,
    tables: BTreeMap<NameId, Table>,
    fields: Fields,
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
        }
    }
}

/// A tracepoint's name as that of a file.
fn file_name(event: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
    format!("{}.csv", event.chars().map(plain).collect::<String>())
}

impl EventSink for EventTables {
    fn event(&mut self, event: &TraceEvent, names: &Names) -> io::Result<bool> {
        let mark = mark(&event.kind, names);
        if mark.is_none() && !self.fields.fill(&event.kind) {
            return Ok(false);
        }
        if !self.tables.contains_key(&event.name) {
            let file = AtomicFile::create(&self.folder.join(file_name(names.text(event.name))))?;
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
