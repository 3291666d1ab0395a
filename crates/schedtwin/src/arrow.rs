// SPDX-License-Identifier: GPL-2.0-or-later
//! A table as a record batch of Apache Arrow.

use crate::{Kind, Row, Table};
use arrow_array::builder::{Float64Builder, StringDictionaryBuilder, UInt32Builder, UInt64Builder};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Table {
    /// The table as a record batch: text as dictionaries, numbers as what they are, null for what is undefined.
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
        let mut columns: Vec<(String, ArrayRef, bool)> = Vec::new();
        let text = |of: &dyn Fn(Row<'_>) -> Option<String>| -> ArrayRef {
            let mut builder = StringDictionaryBuilder::<Int32Type>::new();
            self.rows().for_each(|row| builder.append_option(of(row)));
            Arc::new(builder.finish())
        };
        let own = |text: &str| Some(text.to_string());
        columns.push(("machine".into(), text(&|row| own(row.machine())), false));
        columns.push(("kernel".into(), text(&|row| own(row.kernel())), false));
        columns.push(("workload".into(), text(&|row| own(row.workload())), false));
        let mut seeds = UInt64Builder::with_capacity(self.len());
        self.rows().for_each(|row| seeds.append_value(row.seed()));
        columns.push(("seed".into(), Arc::new(seeds.finish()), false));
        columns.push(("metric".into(), text(&|row| own(row.metric())), false));
        columns.push(("stat".into(), text(&|row| own(row.stat())), false));
        columns.push(("unit".into(), text(&|row| own(row.unit())), false));
        columns.push(("kind".into(), text(&|row| own(row.kind().word())), false));
        let parts = |kind: Kind| kind.parts();
        let mut of = UInt32Builder::with_capacity(self.len());
        self.rows().for_each(|row| of.append_option(parts(row.kind()).map(|parts| parts.of)));
        columns.push(("of".into(), Arc::new(of.finish()), true));
        let over = text(&|row| parts(row.kind()).and_then(|parts| own(parts.over)));
        columns.push(("over".into(), over, true));
        let better = text(&|row| row.better().word().and_then(own));
        columns.push(("better".into(), better, true));
        let keys: BTreeSet<&str> =
            self.measured.iter().flat_map(|m| m.labels.iter().map(|(key, _)| *key)).collect();
        for key in keys {
            columns.push((format!("label.{key}"), text(&|row| row.label(key).and_then(own)), true));
        }
        let mut values = Float64Builder::with_capacity(self.len());
        self.rows().for_each(|row| values.append_option(row.value()));
        columns.push(("value".into(), Arc::new(values.finish()), true));
        RecordBatch::try_from_iter_with_nullable(columns)
            .expect("every column has an entry for each row")
    }
}
