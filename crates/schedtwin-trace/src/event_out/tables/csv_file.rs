// SPDX-License-Identifier: GPL-2.0-or-later
//! A table as CSV.

use super::{Cell, Holds, Rows};
use schedtwin_types::printable;
use std::borrow::Cow;
use std::fs::File;
use std::io;

pub struct CsvFile(csv::Writer<File>);

impl CsvFile {
    pub fn new(file: File, columns: &[(&'static str, Holds)]) -> io::Result<CsvFile> {
        let mut rows = csv::Writer::from_writer(file);
        rows.write_record(columns.iter().map(|(name, _)| name))?;
        Ok(CsvFile(rows))
    }
}

/// Text that nobody who shows it obeys. A spreadsheet computes what begins like a formula, also in a file that somebody sent: an
/// apostrophe says that it is text. What would act on a terminal is shown as `?`.
fn inert(text: &str) -> Cow<'_, str> {
    let text = printable::line(text);
    match text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) {
        true => format!("'{text}").into(),
        false => text,
    }
}

impl Rows for CsvFile {
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for cell in cells {
            match *cell {
                Cell::Seconds(at) => {
                    let (seconds, ns) = (at / 1_000_000_000, at % 1_000_000_000);
                    self.0.write_field(format!("{seconds}.{ns:09}"))?;
                }
                Cell::Number(value) => self.0.write_field(value.to_string())?,
                Cell::Unsigned(value) => self.0.write_field(value.to_string())?,
                Cell::Text(text) => self.0.write_field(&*inert(text))?,
                Cell::Absent => self.0.write_field("")?,
            }
        }
        Ok(self.0.write_record(None::<&[u8]>)?)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_formulas() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("+x", "'+x"),
            ("-bash", "'-bash"),
            ("@x", "'@x"),
            ("kworker/0:1", "kworker/0:1"),
            ("a\u{1b}[2Jb\u{7}", "a?[2Jb?"),
            ("", ""),
        ] {
            assert_eq!(inert(text), expected);
        }
    }
}
