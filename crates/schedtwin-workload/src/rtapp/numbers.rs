// SPDX-License-Identifier: GPL-2.0-or-later
//! The numbers of an rt-app file's tasks as fields of a form.
//!
//! The reader notes each number of a task that it has read, under the name of its key within phase and event
//! (`scroll/timer.period`). A form has the keys of [`OFFERED`] first, also where the file leaves them out, then all others in
//! the order of the file.

use super::reader::{INT_MAX, read_with_numbers};
use crate::form::{Field, FieldKind, Place};
use schedtwin_input::{Diagnostics, Source};
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// A key of tasks that a form offers of every task.
pub(super) struct Offered {
    pub key: &'static str,
    pub range: RangeInclusive<i64>,
    /// As [`super::reader::Reader::integer`] has it.
    pub unit: &'static str,
}

pub(super) const OFFERED: [Offered; 4] = [
    Offered { key: "instance", range: 0..=INT_MAX, unit: "a number of threads" },
    Offered {
        key: "priority",
        range: -INT_MAX..=INT_MAX,
        unit: "a nice value or a real-time priority",
    },
    Offered { key: "util_min", range: -1..=1024, unit: "a utilization, or -1 for no change" },
    Offered { key: "util_max", range: -1..=1024, unit: "a utilization, or -1 for no change" },
];

/// The numbers of a task.
pub(super) struct TaskNumbers {
    task: String,
    /// Where a key may be put in.
    begin: usize,
    numbers: Vec<Number>,
}

struct Number {
    name: String,
    unit: String,
    span: Range<usize>,
}

impl TaskNumbers {
    /// None yet.
    pub fn new(task: &str, begin: usize) -> TaskNumbers {
        TaskNumbers { task: task.to_owned(), begin, numbers: Vec::new() }
    }

    /// Notes one.
    pub fn note(&mut self, name: String, unit: &str, span: Range<usize>) {
        self.numbers.push(Number { name, unit: unit.to_owned(), span });
    }

    fn fields(mut self, text: &str) -> Vec<Field> {
        self.numbers.sort_by_key(|number| number.span.start);
        let field = |name: String, unit: &str, place: Place| Field {
            of: self.task.clone(),
            name,
            help: unit.to_owned(),
            value: (!place.span.is_empty()).then(|| text[place.span.clone()].to_owned()),
            default: None,
            kind: FieldKind::Number,
            place,
        };
        let given = |span: Range<usize>| Place { span, before: String::new(), after: "" };
        let offered = OFFERED.iter().map(|offered| {
            let found = self.numbers.iter().find(|number| number.name == offered.key);
            let before = format!(" \"{}\": ", offered.key);
            let absent = || Place { span: self.begin..self.begin, before, after: "," };
            let place = found.map_or_else(absent, |number| given(number.span.clone()));
            field(offered.key.to_owned(), offered.unit, place)
        });
        let is_other = |number: &&Number| OFFERED.iter().all(|offered| offered.key != number.name);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let others = self.numbers.iter().filter(is_other).map(|number| {
            let count = counts.entry(&number.name).or_default();
            *count += 1;
            let name = match count {
                1 => number.name.clone(),
                more => format!("{} ({more})", number.name),
            };
            field(name, &number.unit, given(number.span.clone()))
        });
        offered.chain(others).collect()
    }
}

/// The fields of a file.
pub(crate) fn fields(source: &Arc<Source>) -> Result<Vec<Field>, Diagnostics> {
    let (_, tasks) = read_with_numbers(source.clone())?;
    Ok(tasks.into_iter().flat_map(|task| task.fields(&source.text)).collect())
}
