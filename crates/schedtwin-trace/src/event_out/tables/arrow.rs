// SPDX-License-Identifier: GPL-2.0-or-later
//! A table as a file of Arrow's IPC format: times are doubles, numbers 64-bit integers, all else text; an absent value is null.

use super::{BATCH, Cell, Holds, Rows};
use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::FileWriter;
use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::Arc;

pub struct ArrowFile {
    writer: FileWriter<BufWriter<File>>,
    columns: Vec<(&'static str, Values)>,
    rows: usize,
}

enum Values {
    Seconds(Float64Builder),
    Numbers(Int64Builder),
    Unsigned(UInt64Builder),
    Texts(StringBuilder),
}

/// The rows that wait.
fn batch(columns: &mut [(&'static str, Values)]) -> RecordBatch {
    let arrays = columns.iter_mut().map(|(name, values)| {
        let array: ArrayRef = match values {
            Values::Seconds(values) => Arc::new(values.finish()),
            Values::Numbers(values) => Arc::new(values.finish()),
            Values::Unsigned(values) => Arc::new(values.finish()),
            Values::Texts(values) => Arc::new(values.finish()),
        };
        (*name, array, true)
    });
    RecordBatch::try_from_iter_with_nullable(arrays).expect("every column has an entry a row")
}

impl ArrowFile {
    pub fn new(file: File, columns: &[(&'static str, Holds)]) -> io::Result<ArrowFile> {
        let column = |(name, holds): &(&'static str, Holds)| {
            let values = match holds {
                Holds::Seconds => Values::Seconds(Float64Builder::new()),
                Holds::Number => Values::Numbers(Int64Builder::new()),
                Holds::Unsigned => Values::Unsigned(UInt64Builder::new()),
                Holds::Text => Values::Texts(StringBuilder::new()),
            };
            (*name, values)
        };
        let mut columns: Vec<_> = columns.iter().map(column).collect();
        let schema = batch(&mut columns).schema();
        let file = BufWriter::with_capacity(1 << 16, file);
        let writer = FileWriter::try_new(file, &schema).map_err(io::Error::other)?;
        Ok(ArrowFile { writer, columns, rows: 0 })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.rows = 0;
        self.writer.write(&batch(&mut self.columns)).map_err(io::Error::other)
    }
}

impl Rows for ArrowFile {
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for ((_, values), cell) in self.columns.iter_mut().zip(cells) {
            match (values, *cell) {
                (Values::Seconds(values), Cell::Seconds(at)) => {
                    values.append_value(at as f64 / 1e9);
                }
                (Values::Numbers(values), Cell::Number(value)) => values.append_value(value),
                (Values::Unsigned(values), Cell::Unsigned(value)) => values.append_value(value),
                (Values::Texts(values), Cell::Text(text)) => values.append_value(text),
                (Values::Seconds(values), Cell::Absent) => values.append_null(),
                (Values::Numbers(values), Cell::Absent) => values.append_null(),
                (Values::Unsigned(values), Cell::Absent) => values.append_null(),
                (Values::Texts(values), Cell::Absent) => values.append_null(),
                (_, cell) => unreachable!("{cell:?} is of another type than its column"),
            }
        }
        self.rows += 1;
        if self.rows == BATCH { self.flush() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        if self.rows > 0 {
            self.flush()?;
        }
        self.writer.finish().map_err(io::Error::other)
    }
}
