// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables as record batches of Apache Arrow: text as dictionaries, numbers as what they are, null for what is undefined.
//!
//! A word is put into its dictionary once for each run, or each thing that is measured; a row only repeats its key. So a
//! million rows cost a few bytes each.

use crate::comparison::Comparison;
use crate::events::{Events, Field};
use crate::table::Table;
use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, StringDictionaryBuilder, UInt64Builder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    UInt32Array, UInt64Array,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Columns with their names, and whether they may hold null.
#[derive(Default)]
struct Columns(Vec<(String, ArrayRef, bool)>);

impl Columns {
    fn push(&mut self, name: impl Into<String>, array: ArrayRef, may_be_null: bool) {
        self.0.push((name.into(), array, may_be_null));
    }

    fn batch(self) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(self.0)
            .expect("every column has an entry for each row")
    }
}

/// A column of which each entry is a key, or none, into what few things say.
fn words<'w>(
    said: impl Iterator<Item = Option<&'w str>>,
    of_row: impl Iterator<Item = usize>,
) -> ArrayRef {
    let mut known: BTreeMap<&str, i32> = BTreeMap::new();
    let mut words: Vec<&str> = Vec::new();
    let mut key = |word: &'w str| {
        *known.entry(word).or_insert_with(|| {
            words.push(word);
            i32::try_from(words.len() - 1).expect("fewer than 2^31 words")
        })
    };
    let keys: Vec<Option<i32>> = said.map(|word| word.map(&mut key)).collect();
    let keys: Int32Array = of_row.map(|of| keys[of]).collect();
    let words = Arc::new(StringArray::from_iter_values(words));
    Arc::new(DictionaryArray::new(keys, words))
}

/// As [`words`], an entry a row; a column of numbers alone is one of numbers.
fn numbers_or_words(said: &[Option<&str>]) -> ArrayRef {
    let known = || said.iter().flatten();
    if known().next().is_some() && known().all(|text| text.parse::<i64>().is_ok()) {
        let numbers = said.iter().map(|text| text.and_then(|text| text.parse::<i64>().ok()));
        return Arc::new(numbers.collect::<Int64Array>());
    }
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    if known().next().is_some() && known().all(|text| number(text).is_some()) {
        let numbers = said.iter().map(|text| text.and_then(number));
        return Arc::new(numbers.collect::<Float64Array>());
    }
    words(said.iter().copied(), 0..said.len())
}

/// The batch, whose columns of these names are numbers where they hold nothing else.
#[must_use]
pub(crate) fn with_numbers(batch: &RecordBatch, names: &[String]) -> RecordBatch {
    let mut columns = Columns::default();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let texts =
            column.as_dictionary_opt::<Int32Type>().filter(|_| names.contains(field.name()));
        let array = texts.map_or_else(
            || column.clone(),
            |texts| {
                let words = texts.values().as_string::<i32>();
                let said: Vec<Option<&str>> = texts
                    .keys()
                    .iter()
                    .map(|key| key.map(|key| words.value(key as usize)))
                    .collect();
                numbers_or_words(&said)
            },
        );
        columns.push(field.name(), array, field.is_nullable());
    }
    columns.batch()
}

impl Table {
    /// The table as a record batch.
    ///
    /// The columns: `machine`, `kernel`, `workload`, `seed`, `metric`, `stat`, `unit`, `kind`, `of`, `over`, `better`, a
    /// column for each key of a label (`label.task`, `label.domain`, ...), and `value`.
    ///
    /// ```
    /// use schedtwin::{Duration, Experiment};
    /// let table = Experiment::new()
    ///     .machine("pixel6")
    ///     .kernel("linux-7.3")
    ///     .workload("ui-phone")
    ///     .seeds(1..=2)
    ///     .duration(Duration::from_ms(20))
    ///     .run()?;
    /// let batch = table.to_arrow();
    /// assert_eq!(batch.num_rows(), table.len());
    /// assert!(batch.column_by_name("label.domain").is_some());
    /// # Ok::<(), schedtwin::Error>(())
    /// ```
    pub fn to_arrow(&self) -> RecordBatch {
        self.rows_to_arrow(&(0..self.len()).collect::<Vec<usize>>())
    }

    /// The rows that `selector` means, as [`Table::select`] has it.
    pub fn select_to_arrow(&self, selector: &str) -> Result<RecordBatch, crate::Error> {
        Ok(self.rows_to_arrow(&self.selected(selector)?))
    }

    fn rows_to_arrow(&self, rows: &[usize]) -> RecordBatch {
        let mut columns = Columns::default();
        let runs = || rows.iter().map(|row| self.run[*row] as usize);
        let what = || rows.iter().map(|row| self.what[*row] as usize);
        let of_run = |text: fn(&crate::Run) -> &str| {
            words(self.runs().iter().map(|run| Some(text(run))), runs())
        };
        columns.push("machine", of_run(|run| &run.machine), false);
        columns.push("kernel", of_run(|run| &run.kernel), false);
        columns.push("workload", of_run(|run| &run.workload), false);
        let seeds: UInt64Array = runs().map(|run| Some(self.runs()[run].seed)).collect();
        columns.push("seed", Arc::new(seeds), false);
        let measured = &self.measured;
        columns.push("metric", words(measured.iter().map(|m| Some(m.name)), what()), false);
        columns.push("stat", words(measured.iter().map(|m| Some(m.stat)), what()), false);
        columns.push("unit", words(measured.iter().map(|m| Some(m.unit)), what()), false);
        columns.push("kind", words(measured.iter().map(|m| Some(m.kind.word())), what()), false);
        let of = what().map(|at| measured[at].kind.parts().map(|parts| parts.of));
        columns.push("of", Arc::new(of.collect::<UInt32Array>()), true);
        let over = measured.iter().map(|m| m.kind.parts().map(|parts| parts.over));
        columns.push("over", words(over, what()), true);
        columns.push("better", words(measured.iter().map(|m| m.better.word()), what()), true);
        let keys: BTreeSet<&str> =
            measured.iter().flat_map(|m| m.labels.iter().map(|(key, _)| *key)).collect();
        for key in keys {
            let label = measured.iter().map(|m| {
                m.labels.iter().find(|(known, _)| *known == key).map(|(_, value)| value.as_str())
            });
            columns.push(format!("label.{key}"), words(label, what()), true);
        }
        let values: Float64Array = rows.iter().map(|row| self.value[*row]).collect();
        columns.push("value", Arc::new(values), true);
        columns.batch()
    }
}

impl Comparison {
    /// The comparison as a record batch, a row for each metric and kernel: `metric`, `stat`, `unit`, `labels`, `kernel`, the
    /// mean over the seeds with its 95 % interval, and the difference to the first kernel with its interval.
    pub fn to_arrow(&self) -> RecordBatch {
        let mut texts: [StringDictionaryBuilder<Int32Type>; 5] = Default::default();
        let mut numbers: [Float64Builder; 8] = Default::default();
        let mut n = UInt64Builder::new();
        let mut significant = BooleanBuilder::new();
        for row in self.rows() {
            let labels: Vec<String> =
                row.row.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let kind = match row.row.kind {
                crate::Kind::One => String::new(),
                kind => format!("[{kind}]"),
            };
            let labels = format!("{}{kind}", labels.join(","));
            for (at, (kernel, cell)) in self.kernels().iter().zip(&row.cells).enumerate() {
                let said = [row.row.name, row.row.stat, row.row.unit, &labels, kernel];
                texts.iter_mut().zip(said).for_each(|(column, text)| column.append_value(text));
                let mean = cell.estimate.as_ref();
                let difference = row.told(at);
                let ends = |ends: Option<[f64; 2]>| [ends.map(|e| e[0]), ends.map(|e| e[1])];
                let [low, high] = ends(mean.and_then(|mean| mean.ci95));
                let [diff_low, diff_high] = ends(difference.and_then(|diff| diff.ci95));
                let values = [
                    mean.map(|mean| mean.mean),
                    low,
                    high,
                    difference.map(|diff| diff.diff),
                    diff_low,
                    diff_high,
                    difference.and_then(|diff| diff.diff_pct),
                    difference.and_then(|diff| diff.p),
                ];
                numbers.iter_mut().zip(values).for_each(|(column, value)| {
                    column.append_option(value.filter(|value| value.is_finite()));
                });
                n.append_value(mean.map_or(0, |mean| mean.n as u64));
                significant.append_option(difference.map(|diff| diff.significant));
            }
        }
        let mut columns = Columns::default();
        let names = ["metric", "stat", "unit", "labels", "kernel"];
        for (name, mut column) in names.into_iter().zip(texts) {
            columns.push(name, Arc::new(column.finish()), false);
        }
        columns.push("n", Arc::new(n.finish()), false);
        let names = ["mean", "low", "high", "diff", "diff_low", "diff_high", "diff_pct", "p"];
        for (name, mut column) in names.into_iter().zip(numbers) {
            columns.push(name, Arc::new(column.finish()), true);
        }
        columns.push("significant", Arc::new(significant.finish()), true);
        columns.batch()
    }
}

impl Events {
    /// The events as a record batch: `Time` in seconds, `time_ns`, `__cpu`, `__pid`, `__comm`, then the event's fields.
    pub fn to_arrow(&self) -> RecordBatch {
        let mut columns = Columns::default();
        let every = || 0..self.len();
        let seconds = self.time_ns.iter().map(|ns| Some(*ns as f64 / 1e9));
        columns.push("Time", Arc::new(seconds.collect::<Float64Array>()), false);
        columns.push("time_ns", Arc::new(UInt64Array::from(self.time_ns.clone())), false);
        columns.push("__cpu", Arc::new(UInt32Array::from(self.cpu.clone())), false);
        let mut pids = Int64Builder::new();
        pids.append_slice(&self.pid);
        columns.push("__pid", Arc::new(pids.finish()), false);
        columns.push("__comm", words(self.comm.iter().map(|comm| Some(&**comm)), every()), false);
        for (name, field) in &self.fields {
            let array: ArrayRef = match field {
                Field::Numbers(numbers) => {
                    let mut column = Int64Builder::with_capacity(numbers.len());
                    numbers.iter().for_each(|number| column.append_option(*number));
                    Arc::new(column.finish())
                }
                Field::Texts(texts) => words(texts.iter().map(Option::as_deref), every()),
            };
            columns.push(name, array, true);
        }
        columns.batch()
    }
}

impl crate::sweep::Performed {
    /// Every setting by two metrics, as a record batch: what the setting is (numbers where all its values are), the means with the half widths of their 95 %
    /// intervals, `front`, and in `breaks` the properties for which a setting is kept off it, which a rival keeps.
    pub fn points_to_arrow(&self, x: &str, y: &str) -> Result<RecordBatch, crate::Error> {
        let told = self.points(x, y)?;
        let sweep = self.sweep();
        let points = || told.points.iter();
        let of = |text: &dyn Fn(&crate::sweep::Setting) -> &str| {
            let said: Vec<&str> =
                points().map(|point| text(&sweep.settings[point.setting])).collect();
            words(said.into_iter().map(Some), 0..told.points.len())
        };
        let mut columns = Columns::default();
        columns.push("machine", of(&|setting| &setting.machine), false);
        columns.push("kernel", of(&|setting| &setting.kernel), false);
        columns.push("workload", of(&|setting| &setting.workload), false);
        for (at, key) in sweep.varies.iter().enumerate() {
            let said: Vec<Option<&str>> = points()
                .map(|point| Some(sweep.settings[point.setting].values[at].as_str()))
                .collect();
            columns.push(key, numbers_or_words(&said), false);
        }
        for (at, title) in told.titles.iter().enumerate() {
            let means: Float64Array =
                points().map(|point| Some(point.estimates[at].mean)).collect();
            columns.push(title, Arc::new(means), false);
            let halves: Float64Array = points()
                .map(|point| point.estimates[at].ci95.map(|[low, high]| (high - low) / 2.0))
                .collect();
            columns.push(format!("{title} +-"), Arc::new(halves), true);
        }
        let mut front = BooleanBuilder::new();
        points().for_each(|point| front.append_value(point.on_front));
        columns.push("front", Arc::new(front.finish()), false);
        let names = |breaks: &[schedtwin_types::property::Property]| {
            breaks.iter().map(|property| property.name()).collect::<Vec<_>>().join(" ")
        };
        let breaks: Vec<String> = points().map(|point| names(&point.breaks)).collect();
        let said = breaks.iter().map(|names| Some(names.as_str()));
        columns.push("breaks", words(said, 0..breaks.len()), false);
        Ok(columns.batch())
    }
}
