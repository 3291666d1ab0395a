// SPDX-License-Identifier: GPL-2.0-or-later
//! The unit of work of batch engines: some consecutive runs of a sweep, from bytes to bytes.
//!
//! [`run_chunk`] is a function of its arguments. It needs no file, starts no thread, and returns the same bytes in every
//! process on every computer, so an engine may call it anywhere, and again if a worker is lost. Its result is a stream of
//! Apache Arrow (IPC) with the columns of the long file of a sweep, and `crash`: a run that panicked is one row that has
//! the message there.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use arrow_array::builder::{Float64Builder, StringDictionaryBuilder, UInt32Builder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use schedtwin_input::{Diagnostics, Source};

use super::Sweep;
use super::part;
use super::run::{LongRuns, Run};
use crate::Progress;
use crate::crash::Crash;

/// The column of what a run panicked with.
const CRASH: &str = "crash";
/// Columns of text behind those of the run.
const TEXTS: [&str; 6] = ["metric", "stat", "labels", "kind", "over", "unit"];

/// Performs runs `range` of the sweep that [`Sweep::to_bytes`] made `spec` of.
///
/// ```
/// use schedtwin_lab::sweep::{Sweep, SweepSpec, chunk};
/// let spec = SweepSpec::new(&["uniform8".into()], &["linux-7.3:hz={250,1000}".into()], &["w1".into()], Some(5_000_000), (1, 2))?;
/// let bytes = Sweep::of(&spec)?.to_bytes()?;
/// let first = chunk::run_chunk(&bytes, 0..3)?;
/// assert_eq!(first, chunk::run_chunk(&bytes, 0..3)?);
/// let runs = chunk::read(&first)?.runs;
/// assert_eq!(runs.iter().map(|run| run.number).collect::<Vec<_>>(), [0, 1, 2]);
/// # Ok::<(), schedtwin_input::Diagnostics>(())
/// ```
pub fn run_chunk(spec: &[u8], range: Range<u64>) -> Result<Vec<u8>, Diagnostics> {
    let sweep = sweep_of(spec)?;
    if range.start > range.end || range.end > sweep.runs() {
        let message = format!(
            "runs {} to {} of a sweep whose runs are 0 to {}",
            range.start,
            range.end,
            sweep.runs()
        );
        return Err(fault(&message));
    }
    let progress = Progress::new();
    let performed = range.map(|number| Ok((number, sweep.performed(number, &progress)?)));
    let performed: std::io::Result<Vec<(u64, Result<Run, Crash>)>> = performed.collect();
    let performed = performed.map_err(|error| fault(&format!("failed to run: {error}")))?;
    Ok(encoded(&sweep, &performed))
}

/// The sweep of these bytes; that of the last call is kept, since a worker is given many chunks of one sweep.
fn sweep_of(spec: &[u8]) -> Result<Arc<Sweep>, Diagnostics> {
    static LAST: Mutex<Option<(Vec<u8>, Arc<Sweep>)>> = Mutex::new(None);
    let lock = || LAST.lock().expect("nobody panics while it is held");
    if let Some((_, sweep)) = lock().as_ref().filter(|(bytes, _)| bytes == spec) {
        return Ok(sweep.clone());
    }
    let sweep = Arc::new(Sweep::from_bytes(spec)?);
    *lock() = Some((spec.to_vec(), sweep.clone()));
    Ok(sweep)
}

/// What a chunk holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chunk {
    /// Its runs in order.
    pub runs: Vec<Run>,
    /// Runs that panicked: number and message.
    pub crashes: Vec<(u64, String)>,
}

/// Text that repeats itself, and may be absent.
type Texts = StringDictionaryBuilder<Int32Type>;

/// Runs as a record batch with the columns of a sweep's long file.
pub fn batch(sweep: &Sweep, runs: &[Run]) -> RecordBatch {
    let rows = runs.iter().map(|run| (run.number, Ok(run)));
    batch_of(sweep, rows)
}

fn batch_of<'r>(
    sweep: &Sweep,
    runs: impl Iterator<Item = (u64, Result<&'r Run, &'r Crash>)>,
) -> RecordBatch {
    let own_columns = sweep.own_columns();
    let mut numbers = UInt64Builder::new();
    let mut seeds = UInt64Builder::new();
    let mut own: Vec<Texts> = own_columns.iter().map(|_| Texts::new()).collect();
    let mut texts: Vec<Texts> = TEXTS.iter().map(|_| Texts::new()).collect();
    let (mut of, mut values) = (UInt32Builder::new(), Float64Builder::new());
    let mut crashes = Texts::new();
    for (number, performed) in runs {
        let known = sweep.own_fields(number);
        let known: BTreeMap<&str, &str> =
            known.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
        let rows: Vec<([&str; 7], Option<f64>)> = match performed {
            Ok(run) => part::long_rows(run).map(|(cells, value)| (cells, Some(value))).collect(),
            Err(_) => vec![([""; 7], None)],
        };
        for (cells, value) in rows {
            numbers.append_value(number);
            for (builder, column) in own.iter_mut().zip(&own_columns) {
                let was =
                    || performed.ok().map(|run| run.was(column)).filter(|was| !was.is_empty());
                builder.append_option(known.get(column.as_str()).copied().or_else(was));
            }
            seeds.append_value(known["seed"].parse().expect("a seed is a number"));
            let [metric, stat, labels, kind, parts, over, unit] = cells;
            let some = |text| Some(text).filter(|text: &&str| !text.is_empty());
            for (builder, text) in texts.iter_mut().zip([metric, stat, labels, kind, over, unit]) {
                builder.append_option(some(text));
            }
            of.append_option(parts.parse().ok());
            values.append_option(value);
            crashes.append_option(performed.err().map(|crash| crash.message.as_str()));
        }
    }
    let mut columns: Vec<(String, ArrayRef, bool)> =
        vec![("run".into(), Arc::new(numbers.finish()), false)];
    for (mut builder, column) in own.into_iter().zip(own_columns) {
        let array: ArrayRef = match column.as_str() {
            "seed" => Arc::new(seeds.finish()),
            _ => Arc::new(builder.finish()),
        };
        let may_be_absent = !matches!(column.as_str(), "machine" | "kernel" | "workload" | "seed");
        columns.push((column, array, may_be_absent));
    }
    for (at, (mut builder, column)) in texts.into_iter().zip(TEXTS).enumerate() {
        columns.push((column.into(), Arc::new(builder.finish()), true));
        if at == 3 {
            columns.push(("of".into(), Arc::new(of.finish()), true));
        }
    }
    columns.push(("value".into(), Arc::new(values.finish()), true));
    columns.push((CRASH.into(), Arc::new(crashes.finish()), true));
    RecordBatch::try_from_iter_with_nullable(columns).expect("every column has an entry a row")
}

fn encoded(sweep: &Sweep, performed: &[(u64, Result<Run, Crash>)]) -> Vec<u8> {
    let batch = batch_of(sweep, performed.iter().map(|(number, run)| (*number, run.as_ref())));
    let in_memory = "a vector takes every batch";
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect(in_memory);
    writer.write(&batch).expect(in_memory);
    writer.into_inner().expect(in_memory)
}

/// Reads what [`run_chunk`] returned.
pub fn read(bytes: &[u8]) -> Result<Chunk, Diagnostics> {
    let damaged = |error| fault(&format!("this is no chunk of a sweep: {error}"));
    let reader = StreamReader::try_new(Cursor::new(bytes), None);
    let (mut runs, mut crashes) = (LongRuns::default(), Vec::new());
    for batch in reader.map_err(|error| damaged(error.to_string()))? {
        let batch = batch.map_err(|error| damaged(error.to_string()))?;
        read_batch(&batch, &mut runs, &mut crashes)
            .ok_or_else(|| damaged("its columns are others".into()))?;
    }
    Ok(Chunk { runs: runs.finish(), crashes })
}

fn read_batch(
    batch: &RecordBatch,
    runs: &mut LongRuns,
    crashes: &mut Vec<(u64, String)>,
) -> Option<()> {
    let column = |name: &str| batch.column_by_name(name);
    let numbers = column("run")?.as_primitive_opt::<UInt64Type>()?;
    let values = column("value")?.as_primitive_opt::<Float64Type>()?;
    let of = column("of")?.as_primitive_opt::<UInt32Type>()?;
    let text = |name: &str| -> Option<_> {
        let of = column(name)?.as_dictionary_opt::<Int32Type>()?;
        let words = of.values().as_string_opt::<i32>()?;
        Some(move |row: usize| of.key(row).map_or("", |key| words.value(key)))
    };
    let [metric, stat, labels] = [text("metric")?, text("stat")?, text("labels")?];
    let [kind, over, crash] = [text("kind")?, text("over")?, text(CRASH)?];
    let schema = batch.schema();
    let before = schema.fields().iter().skip(1).map(|field| field.name().as_str());
    let own: Vec<&str> = before.take_while(|name| *name != TEXTS[0]).collect();
    for row in 0..batch.num_rows() {
        let number = numbers.value(row);
        if !crash(row).is_empty() {
            crashes.push((number, crash(row).to_string()));
            continue;
        }
        let was = || {
            let told = |name: &&str| -> Option<(String, String)> {
                let told = match *name {
                    "seed" => {
                        column(name)?.as_primitive_opt::<UInt64Type>()?.value(row).to_string()
                    }
                    _ => text(name)?(row).to_string(),
                };
                Some((name.to_string(), told))
            };
            own.iter().map(told).collect::<Option<Vec<_>>>().ok_or(())
        };
        let parts = if of.is_null(row) { String::new() } else { of.value(row).to_string() };
        let title =
            part::wide_title([metric(row), stat(row), labels(row), kind(row), &parts, over(row)]);
        runs.line(number, was, title, values.value(row)).ok()?;
    }
    Some(())
}

fn fault(message: &str) -> Diagnostics {
    let mut faults = Diagnostics::new();
    faults.push_whole(&Source::new("chunk", ""), message, None);
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::journal::Journal;
    use crate::sweep::part::{Form, Format};
    use crate::sweep::{Shard, SweepSpec};

    #[test]
    fn chunks_make_the_file_that_one_go_makes() {
        let kernels = ["linux-7.3:hz={250,1000}".into(), "linux-6.12".into()];
        let spec =
            SweepSpec::new(&["pixel6".into()], &kernels, &["w1".into()], Some(3_000_000), (1, 3));
        let sweep = Sweep::of(&spec.unwrap()).unwrap();
        let bytes = sweep.to_bytes().unwrap();
        let whole =
            sweep.perform(Shard::WHOLE, Journal::in_memory(), None, &Progress::new()).unwrap();
        let file = |runs| {
            let mut bytes = Vec::new();
            let how = (Form::Long, Format::Csv);
            part::write(&sweep, Shard::WHOLE, runs, how, &mut bytes).unwrap();
            bytes
        };
        let mut runs = Vec::new();
        for range in [0..4, 4..5, 5..5, 5..9] {
            runs.extend(read(&run_chunk(&bytes, range).unwrap()).unwrap().runs);
        }
        assert_eq!(file(runs), file(whole));
        assert!(run_chunk(&bytes, 8..10).unwrap_err().to_string().contains("runs 8 to 10"));
        assert!(run_chunk(b"{}", 0..1).unwrap_err().to_string().contains("no sweep"));
        assert!(read(b"ARROW").unwrap_err().to_string().contains("no chunk"));
    }

    #[test]
    fn another_version_or_another_file_is_refused() {
        let spec = |name: &str| {
            SweepSpec::new(
                &["uniform8".into()],
                &["linux-6.12".into()],
                &[name.into()],
                Some(1000),
                (1, 1),
            )
        };
        let bytes = Sweep::of(&spec("w1").unwrap()).unwrap().to_bytes().unwrap();
        let other = String::from_utf8(bytes).unwrap().replace("model ", "model 9");
        let refused = Sweep::from_bytes(other.as_bytes()).err().unwrap().to_string();
        assert!(refused.contains("this computer makes another sweep of it"), "{refused}");
    }
}
