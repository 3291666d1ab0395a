// SPDX-License-Identifier: GPL-2.0-or-later
//! A table as Apache Parquet: times are doubles, numbers 64-bit integers, all else text; an absent value is null.

use super::{BATCH, Cell, Holds, Rows};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::Arc;

pub struct ParquetFile {
    writer: SerializedFileWriter<BufWriter<File>>,
    columns: Vec<Column>,
    rows: usize,
}

/// Values of a column that wait, and which of its rows have one.
struct Column {
    there: Vec<i16>,
    values: Values,
}

enum Values {
    Seconds(Vec<f64>),
    Numbers(Vec<i64>),
    Texts(Vec<ByteArray>),
}

fn failure(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

impl ParquetFile {
    pub fn new(file: File, columns: &[(&'static str, Holds)]) -> io::Result<ParquetFile> {
        let field = |(name, holds): &(&str, Holds)| {
            let (physical, logical) = match holds {
                Holds::Seconds => (Physical::DOUBLE, None),
                Holds::Number => (Physical::INT64, None),
                Holds::Unsigned => (Physical::INT64, Some(LogicalType::integer(64, false))),
                Holds::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            };
            let field = Type::primitive_type_builder(name, physical)
                .with_logical_type(logical)
                .with_repetition(Repetition::OPTIONAL);
            field.build().map(Arc::new)
        };
        let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>().map_err(failure)?;
        let schema = Type::group_type_builder("events").with_fields(fields).build();
        let schema = Arc::new(schema.map_err(failure)?);
        let properties = Arc::new(WriterProperties::builder().build());
        let file = BufWriter::with_capacity(1 << 16, file);
        let writer = SerializedFileWriter::new(file, schema, properties).map_err(failure)?;
        let column = |(_, holds): &(&str, Holds)| Column {
            there: Vec::new(),
            values: match holds {
                Holds::Seconds => Values::Seconds(Vec::new()),
                Holds::Number | Holds::Unsigned => Values::Numbers(Vec::new()),
                Holds::Text => Values::Texts(Vec::new()),
            },
        };
        Ok(ParquetFile { writer, columns: columns.iter().map(column).collect(), rows: 0 })
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for Column { there, values } in &mut self.columns {
            let mut column = group
                .next_column()?
                .ok_or_else(|| ParquetError::General("the schema has as many columns".into()))?;
            match values {
                Values::Seconds(values) => {
                    column.typed::<DoubleType>().write_batch(values, Some(there), None)?;
                    values.clear();
                }
                Values::Numbers(values) => {
                    column.typed::<Int64Type>().write_batch(values, Some(there), None)?;
                    values.clear();
                }
                Values::Texts(values) => {
                    column.typed::<ByteArrayType>().write_batch(values, Some(there), None)?;
                    values.clear();
                }
            }
            column.close()?;
            there.clear();
        }
        self.rows = 0;
        group.close().map(drop)
    }
}

impl Rows for ParquetFile {
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.there.push(i16::from(*cell != Cell::Absent));
            match (&mut column.values, *cell) {
                (Values::Seconds(values), Cell::Seconds(at)) => values.push(at as f64 / 1e9),
                (Values::Numbers(values), Cell::Number(value)) => values.push(value),
                // Parquet keeps unsigned integers in signed ones of the same bits.
                (Values::Numbers(values), Cell::Unsigned(value)) => values.push(value as i64),
                (Values::Texts(values), Cell::Text(text)) => values.push(text.into()),
                (_, Cell::Absent) => {}
                (_, cell) => unreachable!("{cell:?} is of another type than its column"),
            }
        }
        self.rows += 1;
        if self.rows == BATCH { self.flush().map_err(failure) } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        if self.rows > 0 {
            self.flush().map_err(failure)?;
        }
        self.writer.close().map(drop).map_err(failure)
    }
}
