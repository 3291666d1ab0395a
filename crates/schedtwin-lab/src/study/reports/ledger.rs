// SPDX-License-Identifier: GPL-2.0-or-later
//! The results of reports as data: `studies/reports/first-results.csv` and `present-results.csv`.
//!
//! A line is a published cell of a report beside what the twin gave. The first result of a cell
//! stays for ever: [`Ledger::add_missing`] never touches a line that is there. The present results
//! are replaced ([`Ledger::replace`]).

use std::cmp::Ordering;

use schedtwin_input::{Diagnostics, Source};

use crate::study::verdict::Verdict;

/// The columns of the files.
const COLUMNS: [&str; 11] = [
    "report", "row", "kernel", "date", "model", "seeds", "diff_pct", "half_pct", "level",
    "verdict", "note",
];

/// The twin's result for a published cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The report.
    pub report: String,
    /// The row of the report.
    pub row: String,
    /// The kernel of the cell, as the report names it.
    pub kernel: String,
    /// The day of the run, `2026-11-28`.
    pub date: String,
    /// The model's version.
    pub model: String,
    /// How many seeds.
    pub seeds: usize,
    /// The twin's difference to the base, in percent; none for a base cell.
    pub diff_pct: Option<f64>,
    /// Half the width of its 95 % interval, in points.
    pub half_pct: Option<f64>,
    /// The twin's value divided by the published one, for a base cell.
    pub level: Option<f64>,
    /// The verdict; `base` for a base cell.
    pub verdict: Verdict,
    /// A remark on how it was run, if that was another way than today's.
    pub note: String,
}

/// The results of many cells, in the order of reports, rows and kernels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// One of each cell.
    pub entries: Vec<Entry>,
}

impl Entry {
    /// The cell that it belongs to.
    pub fn cell(&self) -> (&str, &str, &str) {
        (&self.report, &self.row, &self.kernel)
    }

    fn fields(&self) -> [String; 11] {
        let number = |x: Option<f64>, decimals: usize| {
            x.map_or(String::new(), |x| format!("{x:.decimals$}"))
        };
        [
            self.report.clone(),
            self.row.clone(),
            self.kernel.clone(),
            self.date.clone(),
            self.model.clone(),
            self.seeds.to_string(),
            number(self.diff_pct, 2),
            number(self.half_pct, 2),
            number(self.level, 3),
            self.verdict.word().to_string(),
            self.note.clone(),
        ]
    }

    fn parse(fields: &[&str]) -> Result<Entry, String> {
        let [report, row, kernel, date, model, seeds, diff, half, level, verdict, note] = fields
        else {
            return Err(format!("a line has {} fields: {}", COLUMNS.len(), COLUMNS.join(",")));
        };
        let number = |text: &str| match text {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| format!("`{text}` is no number")),
        };
        let known = Verdict::ALL.into_iter().find(|known| known.word() == *verdict);
        Ok(Entry {
            report: report.to_string(),
            row: row.to_string(),
            kernel: kernel.to_string(),
            date: date.to_string(),
            model: model.to_string(),
            seeds: seeds.parse().map_err(|_| format!("`{seeds}` is no number of seeds"))?,
            diff_pct: number(diff)?,
            half_pct: number(half)?,
            level: number(level)?,
            verdict: known.ok_or_else(|| format!("there is no verdict `{verdict}`"))?,
            note: note.to_string(),
        })
    }
}

impl Ledger {
    /// Reads a file of results; an empty one has none.
    pub fn read(name: &str, text: &str) -> Result<Ledger, Diagnostics> {
        let source = Source::new(name, text);
        let mut faults = Diagnostics::new();
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
        let mut ledger = Ledger::default();
        for (number, record) in reader.records().enumerate() {
            let entry = record
                .map_err(|error| error.to_string())
                .and_then(|record| Entry::parse(&record.iter().collect::<Vec<_>>()));
            match entry {
                Ok(entry) => ledger.entries.push(entry),
                Err(message) => {
                    let message = format!("result {}: {message}", number + 1);
                    faults.push_whole(&source, &message, None);
                }
            }
        }
        faults.into_result(ledger)
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let written = "memory takes what is written";
        writer.write_record(COLUMNS).expect(written);
        for entry in &self.entries {
            writer.write_record(entry.fields()).expect(written);
        }
        let bytes = writer.into_inner().expect(written);
        String::from_utf8(bytes).expect("fields are text")
    }

    /// The result of a cell.
    pub fn find(&self, report: &str, row: &str, kernel: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.cell() == (report, row, kernel))
    }

    /// Adds results of cells that have none: those that are there stay. Returns how many it added.
    pub fn add_missing(&mut self, entries: &[Entry]) -> usize {
        let before = self.entries.len();
        for entry in entries {
            let (report, row, kernel) = entry.cell();
            if self.find(report, row, kernel).is_none() {
                self.entries.push(entry.clone());
            }
        }
        self.sort();
        self.entries.len() - before
    }

    /// Puts these results in place of those of the same reports.
    pub fn replace(&mut self, entries: &[Entry]) {
        self.entries.retain(|old| !entries.iter().any(|new| new.report == old.report));
        self.entries.extend_from_slice(entries);
        self.sort();
    }

    fn sort(&mut self) {
        self.entries.sort_by(|a, b| by_id(&a.report, &b.report));
    }
}

/// The order of ids: by their letters, then by their number, so that R2 stands before R10.
pub fn by_id(a: &str, b: &str) -> Ordering {
    let split = |id: &str| {
        let digits = id.find(|c: char| c.is_ascii_digit()).unwrap_or(id.len());
        (id[..digits].to_string(), id[digits..].parse::<u64>().unwrap_or(0), id.to_string())
    };
    split(a).cmp(&split(b))
}
