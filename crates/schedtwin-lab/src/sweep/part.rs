// SPDX-License-Identifier: GPL-2.0-or-later
//! The file of a sweep, or of a shard of it: CSV, one line a run.
//!
//! ```text
//! # schedtwin sweep 0123456789abcdef: 12 runs, version 0.1.0, model 3
//! # machine pixel6: 66b5...
//! # shard 1/3
//! run,machine,kernel,workload,kernel.hz,seed,digest,energy.sum,power.mean,"power.mean{domain=big}",...
//! 0,pixel6,linux-6.12:hz=100,ui-phone,100,1,...
//! ```
//!
//! Metrics are columns in alphabetical order, and stand as `--metric` names them. A field is empty where a run has no such value. Readers of
//! CSV that know comments skip the head: `pandas.read_csv(FILE, comment="#")`. The same as Parquet: [`Format::Parquet`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schedtwin_types::metric::Kind;
use schedtwin_types::printable;

use super::{Shard, Sweep};
use crate::select::Key;

/// The column of a run's number.
pub(super) const NUMBER: &str = "run";

/// The first words of a file.
pub(super) const HEAD: &str = "schedtwin sweep ";
pub(super) const SHARD: &str = "shard ";

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its number in the sweep.
    pub number: u64,
    /// Columns and what stands in them, in any order.
    pub fields: Vec<(String, String)>,
}

impl Run {
    pub(super) fn by_column(&self) -> BTreeMap<&str, &str> {
        self.fields.iter().map(|(column, text)| (column.as_str(), text.as_str())).collect()
    }
}

/// A file as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The lines of its head but for the shard's.
    pub(super) head: Vec<String>,
    /// The columns that every line has, before those of metrics.
    pub(super) own_columns: Vec<String>,
    pub(super) runs: Vec<Run>,
}

/// A metric as a column: `power.mean{domain=big}`, `power.mean[highest of 160 domains]`.
pub fn title((name, stat, labels, kind): Key) -> String {
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let labels =
        if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    let kind = if kind == Kind::One { String::new() } else { format!("[{kind}]") };
    printable::line(&format!("{name}.{stat}{labels}{kind}")).into_owned()
}

/// The file of some runs of a sweep.
pub fn write(sweep: &Sweep, shard: Shard, runs: Vec<Run>, format: Format) -> Vec<u8> {
    let part = Part { head: sweep.head(), own_columns: sweep.own_columns(), runs };
    part.write(shard.text().as_deref(), format)
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text, for everything that reads tables.
    Csv,
    /// Apache Parquet, for data frames: columns have types, absent values are null, the head is the file's metadata `schedtwin`.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Format {
    /// The format that a file's name asks for.
    pub fn of(path: &Path) -> Result<Format, String> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => Ok(Format::Csv),
            #[cfg(feature = "parquet")]
            Some("parquet") => Ok(Format::Parquet),
            #[cfg(not(feature = "parquet"))]
            Some("parquet") => Err("this binary was built without Parquet; `cargo install --path crates/schedtwin-cli \
                                    --features parquet` has it, and .csv holds the same".into()),
            _ => Err("a sweep is written as CSV or Parquet; end the name in .csv or .parquet".into()),
        }
    }
}

impl Part {
    fn write(&self, shard: Option<&str>, format: Format) -> Vec<u8> {
        match format {
            Format::Csv => self.text(shard).into_bytes(),
            #[cfg(feature = "parquet")]
            Format::Parquet => super::parquet::write(self, shard),
        }
    }

    /// The columns of all runs: those that every line has, then those of metrics in alphabetical order.
    pub(super) fn columns(&self) -> Vec<&str> {
        let all = self.runs.iter().flat_map(|run| &run.fields).map(|(column, _)| column.as_str());
        let metrics: BTreeSet<&str> =
            all.filter(|column| !self.own_columns.iter().any(|own| own == column)).collect();
        self.own_columns.iter().map(String::as_str).chain(metrics).collect()
    }

    fn text(&self, shard: Option<&str>) -> String {
        let mut text: String = self.head.iter().map(|line| format!("# {line}\n")).collect();
        if let Some(shard) = shard {
            text.push_str(&format!("# {SHARD}{shard}\n"));
        }
        let columns = self.columns();
        let mut writer = csv::Writer::from_writer(Vec::new());
        let in_memory = "a vector takes every write";
        writer.write_record([NUMBER].iter().chain(&columns)).expect(in_memory);
        for run in &self.runs {
            let fields = run.by_column();
            let number = run.number.to_string();
            let of = |column: &&str| fields.get(column).copied().unwrap_or("");
            let line = columns.iter().map(of);
            writer.write_record(std::iter::once(number.as_str()).chain(line)).expect(in_memory);
        }
        let lines = writer.into_inner().expect(in_memory);
        text + &String::from_utf8(lines).expect("only text was written")
    }

    /// Reads a file.
    pub fn read(bytes: Vec<u8>, format: Format) -> Result<Part, String> {
        match format {
            Format::Csv => match str::from_utf8(&bytes) {
                Ok(text) => Part::read_text(text),
                Err(_) => Err("this is no text".into()),
            },
            #[cfg(feature = "parquet")]
            Format::Parquet => super::parquet::read(bytes),
        }
    }

    fn read_text(text: &str) -> Result<Part, String> {
        let comments = text.lines().map_while(|line| line.strip_prefix("# "));
        let head: Vec<String> =
            comments.filter(|line| !line.starts_with(SHARD)).map(String::from).collect();
        if !head.first().is_some_and(|line| line.starts_with(HEAD)) {
            return Err(
                "this is no file of a sweep: it does not begin with `# schedtwin sweep`".into()
            );
        }
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
        let columns: Vec<String> =
            reader.headers().map_err(|e| e.to_string())?.iter().map(String::from).collect();
        let digest = columns.iter().position(|column| column == "digest");
        let (Some(digest), Some(NUMBER)) = (digest, columns.first().map(String::as_str)) else {
            return Err("its columns are not those of a sweep".into());
        };
        let mut runs = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| error.to_string())?;
            let number = record[0].parse().map_err(|_| format!("`{}` is no run", &record[0]))?;
            let fields = columns.iter().zip(&record).skip(1).filter(|(_, text)| !text.is_empty());
            let fields = fields.map(|(column, text)| (column.clone(), text.to_string())).collect();
            runs.push(Run { number, fields });
        }
        Ok(Part { head, own_columns: columns[1..=digest].to_vec(), runs })
    }

    /// How many runs the whole sweep has.
    fn whole(&self) -> Option<u64> {
        let (_, rest) = self.head[0].split_once(": ")?;
        rest.split(' ').next()?.parse().ok()
    }
}

/// Puts the parts of a sweep together; each has a name for messages. What is wrong is told with the names of the files.
pub fn merge(parts: &[(String, Part)], format: Format) -> Result<Vec<u8>, String> {
    let (first_name, first) = parts.first().ok_or("nothing to merge")?;
    let mut by_number: BTreeMap<u64, (&str, &Run)> = BTreeMap::new();
    for (name, part) in parts {
        if part.head != first.head {
            return Err(format!("{name} and {first_name} are of different sweeps"));
        }
        for run in &part.runs {
            if let Some((other, _)) = by_number.insert(run.number, (name, run)) {
                return Err(format!("run {} is in {other} and in {name}", run.number));
            }
        }
    }
    let whole = first.whole().ok_or_else(|| format!("{first_name}: how many runs are there?"))?;
    let missing: Vec<u64> = (0..whole).filter(|run| !by_number.contains_key(run)).take(4).collect();
    if let Some((run, (name, _))) = by_number.last_key_value().filter(|(run, _)| **run >= whole) {
        return Err(format!("{name}: run {run} of {whole}, which are counted from 0"));
    }
    if !missing.is_empty() {
        let count = whole - by_number.len() as u64;
        let some: Vec<String> = missing.iter().map(u64::to_string).collect();
        let more = if count as usize > some.len() { ", ..." } else { "" };
        return Err(format!("{count} of {whole} runs are in no part: {}{more}", some.join(", ")));
    }
    let runs = by_number.into_values().map(|(_, run)| run.clone()).collect();
    Ok(Part { runs, ..first.clone() }.write(None, format))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(numbers: &[u64]) -> Part {
        let run = |number: &u64| Run {
            number: *number,
            fields: [("seed", "1"), ("digest", "00")]
                .iter()
                .chain(&[("energy.sum", "7")][..usize::from(*number == 1)])
                .chain(&[("power.mean{domain=a,b}", "2.5")])
                .map(|(column, text)| (column.to_string(), text.to_string()))
                .collect(),
        };
        Part {
            head: vec!["schedtwin sweep 12: 4 runs, version 0".into(), "machine m: 3".into()],
            own_columns: vec!["seed".into(), "digest".into()],
            runs: numbers.iter().map(run).collect(),
        }
    }

    #[test]
    fn parts_make_the_whole_byte_for_byte() {
        let whole = part(&[0, 1, 2, 3]).text(None);
        assert_eq!(
            whole,
            "# schedtwin sweep 12: 4 runs, version 0\n# machine m: 3\n\
             run,seed,digest,energy.sum,\"power.mean{domain=a,b}\"\n\
             0,1,00,,2.5\n1,1,00,7,2.5\n2,1,00,,2.5\n3,1,00,,2.5\n"
        );
        assert_eq!(Part::read_text(&whole).unwrap(), part(&[0, 1, 2, 3]));
        merges(Format::Csv);
        #[cfg(feature = "parquet")]
        merges(Format::Parquet);
    }

    fn merges(format: Format) {
        let parts = [("a", &[1, 3][..]), ("b", &[0, 2])].map(|(name, numbers)| {
            let written = part(numbers).write(Some("1/2"), format);
            (name.to_string(), Part::read(written, format).unwrap())
        });
        assert_eq!(merge(&parts, format).unwrap(), part(&[0, 1, 2, 3]).write(None, format));
    }

    #[test]
    fn parts_that_are_no_whole() {
        let merged = |parts: &[&[u64]]| {
            let parts: Vec<(String, Part)> =
                parts.iter().map(|numbers| (format!("{numbers:?}"), part(numbers))).collect();
            merge(&parts, Format::Csv).unwrap_err()
        };
        assert_eq!(merged(&[&[0, 2]]), "2 of 4 runs are in no part: 1, 3");
        assert_eq!(merged(&[&[0, 2], &[2]]), "run 2 is in [0, 2] and in [2]");
        assert_eq!(merged(&[&[0, 9]]), "[0, 9]: run 9 of 4, which are counted from 0");
        let mut other = part(&[0]);
        other.head[1].push('4');
        let parts = [("a".to_string(), part(&[1])), ("b".to_string(), other)];
        assert_eq!(merge(&parts, Format::Csv).unwrap_err(), "b and a are of different sweeps");
        assert!(Part::read_text("run,seed\n1,2\n").unwrap_err().contains("no file of a sweep"));
        assert!(Part::read_text("# schedtwin sweep 1: 2 runs\nx,digest\n").is_err());
        assert!(Part::read_text("# schedtwin sweep 1: 2 runs\nrun,digest\nx,1\n").is_err());
    }
}
