// SPDX-License-Identifier: GPL-2.0-or-later
//! The file of a sweep as Apache Parquet: the columns of the CSV, with types.
//!
//! Numbers of runs and seeds are unsigned integers, metrics doubles, all else is text. A value that a run does not have is null. The lines of
//! the head are in the file's metadata under `schedtwin`, the shard under `schedtwin.shard`. Nothing is compressed but by dictionaries, so
//! that no further library is needed.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::Field;
use parquet::schema::types::Type;

use crate::crash;

use super::part::{Form, HEAD, LONG, NUMBER, OF, Part, VALUE, long_rows, wide_title};
use super::run::{KnownColumns, LongRuns, Run};

const SEED: &str = "seed";
const DIGEST: &str = "digest";
const HEAD_KEY: &str = "schedtwin";
const SHARD_KEY: &str = "schedtwin.shard";

/// The type of a column's values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Count,
    /// A count that a row may lack.
    Parts,
    Text,
    Measured,
}

impl Part {
    fn typed_columns(&self) -> Vec<(&str, Holds)> {
        let is_own = |column: &str| self.own_columns.iter().any(|name| name == column);
        let holds = |column: &str| match (column, self.form) {
            (SEED, _) => Holds::Count,
            (own, _) if is_own(own) => Holds::Text,
            (OF, Form::Long) => Holds::Parts,
            (VALUE, Form::Long) | (_, Form::Wide) => Holds::Measured,
            (_, Form::Long) => Holds::Text,
        };
        let columns = match self.form {
            Form::Wide => self.columns(),
            Form::Long => self.own_columns.iter().map(String::as_str).chain(LONG).collect(),
        };
        let columns = columns.into_iter().map(|column| (column, holds(column)));
        std::iter::once((NUMBER, Holds::Count)).chain(columns).collect()
    }
}

/// Runs whose cells are in memory at once, each a row group of the file.
const RUNS_AT_ONCE: usize = 256;

/// Content of a column that is no metric's, if there is any.
fn was<'r>(run: &'r Run, column: &str) -> Option<Cow<'r, str>> {
    let text = match column {
        NUMBER => Cow::Owned(run.number.to_string()),
        _ => Cow::Borrowed(run.was(column)),
    };
    Some(text).filter(|text| !text.is_empty())
}

/// The texts of a column, by line.
fn texts<'r>(form: Form, runs: &'r [Run], column: &str) -> Vec<Option<Cow<'r, str>>> {
    let place = LONG.iter().position(|name| *name == column);
    let of_run = |run: &'r Run| -> Vec<Option<Cow<'r, str>>> {
        let some = |text: &'r str| Some(Cow::Borrowed(text)).filter(|text| !text.is_empty());
        match (form, place) {
            (Form::Wide, _) => vec![was(run, column)],
            (Form::Long, Some(place)) => {
                long_rows(run).map(|(cells, _)| some(cells[place])).collect()
            }
            (Form::Long, None) => vec![was(run, column); long_rows(run).count()],
        }
    };
    runs.iter().flat_map(of_run).collect()
}

/// The numbers of a column of what was measured, by line.
fn numbers(form: Form, runs: &[Run], column: &str) -> Vec<Option<f64>> {
    let of_run = |run: &Run| -> Vec<Option<f64>> {
        match form {
            Form::Wide => vec![run.value(column)],
            Form::Long => long_rows(run).map(|(_, value)| Some(value)).collect(),
        }
    };
    runs.iter().flat_map(of_run).collect()
}

/// Writes the whole file.
pub fn write(part: &Part, shard: Option<&str>, out: &mut (impl Write + Send)) -> io::Result<()> {
    try_write(part, shard, out).map_err(|error| match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    })
}

fn try_write(
    part: &Part,
    shard: Option<&str>,
    out: &mut (impl Write + Send),
) -> Result<(), ParquetError> {
    let columns = part.typed_columns();
    let field = |(name, holds): &(&str, Holds)| {
        let (physical, logical, repetition) = match holds {
            Holds::Count => {
                (Physical::INT64, Some(LogicalType::integer(64, false)), Repetition::REQUIRED)
            }
            Holds::Parts => {
                (Physical::INT64, Some(LogicalType::integer(64, false)), Repetition::OPTIONAL)
            }
            Holds::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::OPTIONAL),
            Holds::Measured => (Physical::DOUBLE, None, Repetition::OPTIONAL),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition);
        field.build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("runs").with_fields(fields).build()?;
    let mut metadata = vec![KeyValue::new(HEAD_KEY.to_string(), part.head.join("\n"))];
    metadata.extend(shard.map(|shard| KeyValue::new(SHARD_KEY.to_string(), shard.to_string())));
    let properties = WriterProperties::builder().set_key_value_metadata(Some(metadata)).build();
    let mut writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
    for runs in part.runs.chunks(RUNS_AT_ONCE) {
        let mut rows = writer.next_row_group()?;
        for (column, holds) in &columns {
            let mut column_writer =
                rows.next_column()?.ok_or_else(|| ParquetError::General("a column".into()))?;
            match holds {
                Holds::Measured => {
                    let (values, there) = apart(numbers(part.form, runs, column));
                    column_writer.typed::<DoubleType>().write_batch(&values, Some(&there), None)?;
                }
                Holds::Text => {
                    let (values, there) = apart(texts(part.form, runs, column));
                    let values: Vec<ByteArray> =
                        values.iter().map(|text| ByteArray::from(&**text)).collect();
                    column_writer.typed::<ByteArrayType>().write_batch(
                        &values,
                        Some(&there),
                        None,
                    )?;
                }
                Holds::Count | Holds::Parts => {
                    let (values, there) = apart(texts(part.form, runs, column));
                    // Parquet keeps unsigned integers in signed ones of the same bits.
                    let values: Vec<i64> = values
                        .iter()
                        .map(|text| number::<u64>(text).map(|n| n as i64))
                        .collect::<Result<_, _>>()?;
                    let there = (*holds == Holds::Parts).then_some(&there[..]);
                    column_writer.typed::<Int64Type>().write_batch(&values, there, None)?;
                }
            }
            column_writer.close()?;
        }
        rows.close()?;
    }
    writer.finish().map(drop)
}

/// The values that are there, and by line whether one is.
fn apart<T>(cells: Vec<Option<T>>) -> (Vec<T>, Vec<i16>) {
    let there = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    (cells.into_iter().flatten().collect(), there)
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, ParquetError> {
    text.parse().map_err(|_| ParquetError::General(format!("`{text}` is no number")))
}

/// Reads a file.
pub fn read(bytes: Vec<u8>) -> Result<Part, String> {
    // The library panics on some damaged files.
    crash::caught(|| try_read(bytes))
        .unwrap_or_else(|said| Err(format!("it cannot be read as Parquet: {said}")))
}

fn try_read(bytes: Vec<u8>) -> Result<Part, String> {
    let broken = |error: ParquetError| format!("it cannot be read as Parquet: {error}");
    let reader = SerializedFileReader::new(Bytes::from(bytes)).map_err(broken)?;
    let metadata = reader.metadata().file_metadata().key_value_metadata();
    let head = metadata.into_iter().flatten().find(|pair| pair.key == HEAD_KEY);
    let head = head.and_then(|pair| pair.value.as_deref()).unwrap_or_default();
    if !head.starts_with(HEAD) {
        return Err("this is no file of a sweep: its metadata have no `schedtwin`".into());
    }
    let head = head.lines().map(String::from).collect();
    let columns = reader.metadata().file_metadata().schema_descr().columns();
    let columns: Vec<String> = columns.iter().map(|column| column.name().to_string()).collect();
    let digest = columns.iter().position(|column| column == DIGEST);
    let (Some(digest), Some(NUMBER)) = (digest, columns.first().map(String::as_str)) else {
        return Err("its columns are not those of a sweep".into());
    };
    let form = match columns.get(digest + 1).map(String::as_str) {
        Some(first) if first == LONG[0] => Form::Long,
        _ => Form::Wide,
    };
    let (mut runs, mut known, mut long_runs) =
        (Vec::new(), KnownColumns::default(), LongRuns::default());
    for row in reader.get_row_iter(None).map_err(broken)? {
        let row = row.map_err(broken)?;
        let (mut number, mut fields) = (None, Vec::new());
        for (column, field) in row.get_column_iter() {
            let text = match field {
                Field::Null => continue,
                Field::Str(text) => text.clone(),
                Field::ULong(value) => value.to_string(),
                Field::Double(value) => value.to_string(),
                _ => return Err(format!("`{column}` has a type that no column of a sweep has")),
            };
            match column.as_str() {
                NUMBER => number = text.parse().ok(),
                _ => fields.push((column.clone(), text)),
            }
        }
        let number = number.ok_or("a line has no number")?;
        if form == Form::Wide {
            let mut run = Run::new(number, fields);
            known.share(&mut run);
            runs.push(run);
            continue;
        }
        let long = fields.split_off(fields.iter().take_while(|(c, _)| *c != LONG[0]).count());
        let cell = |name: &str| {
            let found = long.iter().find(|(column, _)| column == name);
            found.map_or("", |(_, text)| text.as_str())
        };
        let title = wide_title(std::array::from_fn(|at| cell(LONG[at])));
        let value = cell(VALUE).parse().map_err(|_| "a line has no value".to_string())?;
        long_runs.line::<String>(number, || Ok(fields), title, value)?;
    }
    runs.extend(long_runs.finish());
    Ok(Part { head, own_columns: columns[1..=digest].to_vec(), runs, form })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_sweep_is_refused_and_does_not_panic() {
        for bytes in
            [&b""[..], b"PAR1", b"PAR1\0\0\0\0PAR1", b"PAR1\xff\xff\xff\x7fPAR1", b"run,seed\n"]
        {
            assert!(read(bytes.to_vec()).unwrap_err().contains("Parquet"), "{bytes:?}");
        }
        let head = vec!["schedtwin sweep 1: 2 runs".to_string()];
        let fields =
            ["machine", SEED, DIGEST, "power.mean"].map(|name| (name.to_string(), "1".to_string()));
        let own_columns = fields[..3].iter().map(|(name, _)| name.clone()).collect();
        let part =
            Part { head, own_columns, runs: vec![Run::new(1, fields.to_vec())], form: Form::Wide };
        let mut good = Vec::new();
        write(&part, None, &mut good).unwrap();
        assert_eq!(read(good.clone()).unwrap(), part);
        // Every byte turned, every length: an error or some part, never more than the file could hold.
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x55;
            let _ = read(bad);
            let _ = read(good[..at].to_vec()).unwrap_err();
        }
    }
}
