// SPDX-License-Identifier: GPL-2.0-or-later
//! The file of a sweep, or of a shard of it: CSV, long or wide.
//!
//! Long, one line for each run and metric:
//!
//! ```text
//! run,machine,kernel,workload,kernel.hz,seed,digest,metric,stat,labels,kind,of,over,unit,value,from
//! 0,pixel6,linux-6.12:hz=100,ui-phone,100,1,...,energy,sum,,one,,,mJ,3487,schedtwin sweep 0123456789abcdef: 12 runs...
//! 0,pixel6,linux-6.12:hz=100,ui-phone,100,1,...,power,mean,domain=big,one,,,mW,191.5,
//! ```
//!
//! Where the results come from stands in the first line alone, under `from`. Labels are spelled as `--metric` has them.
//! A metric that a run does not have has no line.
//!
//! Wide, one line a run:
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
//! CSV that know comments skip the head: `pandas.read_csv(FILE, comment="#")`. The same as Parquet: `Format::Parquet`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use schedtwin_types::metric::{Kind, declared};
use schedtwin_types::printable;

use super::run::{KnownColumns, LongRuns, Run, distinct_columns};
use super::{Shard, Sweep};
use crate::select::Key;

/// The column of a run's number.
pub(super) const NUMBER: &str = "run";

/// The first words of a file.
pub(super) const HEAD: &str = "schedtwin sweep ";
pub(super) const SHARD: &str = "shard ";

/// Which lines a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One for each run and metric.
    Long,
    /// One for each run, with a column a metric.
    Wide,
}

/// The columns of a long file behind those of the run.
pub(super) const LONG: [&str; 8] =
    ["metric", "stat", "labels", "kind", "of", "over", "unit", VALUE];
pub(super) const VALUE: &str = "value";
#[cfg(feature = "parquet")]
pub(super) const OF: &str = "of";

/// The column of a long CSV file that says, in its first line, where the results come from.
const FROM: &str = "from";

/// The separator between the lines of a head under [`FROM`].
const BETWEEN: &str = "; ";

/// A metric's column of a wide file as the cells of a long one, but for the value.
fn long_cells(title: &str) -> Option<[&str; 7]> {
    let (named, kind) = match title.strip_suffix(']').and_then(|title| title.rsplit_once('[')) {
        Some((named, kind)) => (named, kind),
        None => (title, "one"),
    };
    let (metric, rest) = named.split_once('.')?;
    let (stat, labels) = match rest.split_once('{') {
        Some((stat, labels)) => (stat, labels.strip_suffix('}')?),
        None => (rest, ""),
    };
    // `lowest of 160 domains`
    let mut words = kind.split(' ');
    let (kind, of) = (words.next()?, words.nth(1).unwrap_or(""));
    let over = words.next().and_then(|parts| parts.strip_suffix('s')).unwrap_or("");
    let unit = declared(metric).map_or("", |metric| metric.unit);
    Some([metric, stat, labels, kind, of, over, unit])
}

/// The metrics of a run with their cells in a long file.
pub(super) fn long_rows(run: &Run) -> impl Iterator<Item = ([&str; 7], f64)> {
    run.metrics().filter_map(|(title, value)| Some((long_cells(title)?, value)))
}

/// The converse of [`long_cells`].
pub(super) fn wide_title([metric, stat, labels, kind, of, over]: [&str; 6]) -> String {
    let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    let kind = match kind {
        "one" => String::new(),
        kind => format!("[{kind} of {of} {over}s]"),
    };
    format!("{metric}.{stat}{labels}{kind}")
}

/// A file as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The lines of its head but for the shard's.
    pub(super) head: Vec<String>,
    /// The columns that every line has, before those of metrics.
    pub(super) own_columns: Vec<String>,
    pub(super) runs: Vec<Run>,
    pub(super) form: Form,
}

/// A metric as a column: `power.mean{domain=big}`, `power.mean[highest of 160 domains]`.
pub fn title((name, stat, labels, kind): Key) -> String {
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let labels =
        if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    let kind = if kind == Kind::One { String::new() } else { format!("[{kind}]") };
    printable::line(&format!("{name}.{stat}{labels}{kind}")).into_owned()
}

/// Writes the file of some runs of a sweep.
pub fn write(
    sweep: &Sweep,
    shard: Shard,
    runs: Vec<Run>,
    (form, format): (Form, Format),
    out: &mut (impl Write + Send),
) -> io::Result<()> {
    let part = Part { head: sweep.head(), own_columns: sweep.own_columns(), runs, form };
    part.write(shard.text().as_deref(), format, out)
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
    /// Writes the file.
    pub fn write(
        &self,
        shard: Option<&str>,
        format: Format,
        out: &mut (impl Write + Send),
    ) -> io::Result<()> {
        match format {
            Format::Csv => match self.form {
                Form::Long => self.long_text(shard, out),
                Form::Wide => self.text(shard, out),
            },
            #[cfg(feature = "parquet")]
            Format::Parquet => super::parquet::write(self, shard, out),
        }
    }

    /// The columns of all runs: those that every line has, then those of metrics in alphabetical order.
    pub(super) fn columns(&self) -> Vec<&str> {
        let lists = distinct_columns(self.runs.iter());
        let metrics: BTreeSet<&str> = lists.into_iter().flatten().map(String::as_str).collect();
        self.own_columns.iter().map(String::as_str).chain(metrics).collect()
    }

    fn long_text(&self, shard: Option<&str>, out: &mut impl Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        let own = || self.own_columns.iter().map(String::as_str);
        let columns = std::iter::once(NUMBER).chain(own()).chain(LONG).chain([FROM]);
        writer.write_record(columns)?;
        let shard = shard.map(|shard| format!("{SHARD}{shard}"));
        let head: Vec<&str> = self.head.iter().chain(&shard).map(String::as_str).collect();
        let mut from = head.join(BETWEEN);
        for run in &self.runs {
            let number = run.number.to_string();
            for (cells, value) in long_rows(run) {
                let value = value.to_string();
                let own = own().map(|column| run.was(column));
                let line = std::iter::once(number.as_str()).chain(own).chain(cells);
                writer.write_record(line.chain([value.as_str(), &from]))?;
                from.clear();
            }
        }
        if !from.is_empty() {
            // A shard without a run still says whose shard it is.
            let columns = self.own_columns.len() + 1 + LONG.len();
            writer.write_record(std::iter::repeat_n("", columns).chain([from.as_str()]))?;
        }
        writer.flush()
    }

    fn text(&self, shard: Option<&str>, out: &mut impl Write) -> io::Result<()> {
        for line in &self.head {
            writeln!(out, "# {line}")?;
        }
        if let Some(shard) = shard {
            writeln!(out, "# {SHARD}{shard}")?;
        }
        let columns = self.columns();
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record([NUMBER].iter().chain(&columns))?;
        let (own, metrics) = columns.split_at(self.own_columns.len());
        for run in &self.runs {
            let number = run.number.to_string();
            let value = |column: &&str| run.value(column).map(|value| value.to_string());
            let values: Vec<String> =
                metrics.iter().map(|column| value(column).unwrap_or_default()).collect();
            let own = own.iter().map(|column| run.was(column));
            let line = std::iter::once(number.as_str()).chain(own);
            writer.write_record(line.chain(values.iter().map(String::as_str)))?;
        }
        writer.flush()
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
        if !text.starts_with('#') {
            return Part::read_long(text);
        }
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
        let (mut runs, mut known) = (Vec::new(), KnownColumns::default());
        for record in reader.records() {
            let record = record.map_err(|error| error.to_string())?;
            let number = record[0].parse().map_err(|_| format!("`{}` is no run", &record[0]))?;
            let fields = columns.iter().zip(&record).skip(1).filter(|(_, text)| !text.is_empty());
            let fields = fields.map(|(column, text)| (column.clone(), text.to_string()));
            let mut run = Run::new(number, fields);
            known.share(&mut run);
            runs.push(run);
        }
        Ok(Part { head, own_columns: columns[1..=digest].to_vec(), runs, form: Form::Wide })
    }

    fn read_long(text: &str) -> Result<Part, String> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let columns: Vec<String> =
            reader.headers().map_err(|e| e.to_string())?.iter().map(String::from).collect();
        let own = columns.len().checked_sub(LONG.len() + 1);
        let own = own.filter(|own| {
            let (behind, last) = (&columns[*own..columns.len() - 1], columns.last());
            behind == LONG && last.is_some_and(|l| l == FROM) && columns[0] == NUMBER
        });
        let Some(own) = own else {
            return Err("this is no file of a sweep: its columns are not those of one".into());
        };
        let mut head: Vec<String> = Vec::new();
        let mut runs = LongRuns::default();
        for record in reader.records() {
            let record = record.map_err(|error| error.to_string())?;
            let cells: Vec<&str> = record.iter().collect();
            if head.is_empty() {
                let lines = cells[columns.len() - 1].split(BETWEEN);
                head = lines.filter(|line| !line.starts_with(SHARD)).map(String::from).collect();
            }
            if cells[0].is_empty() {
                continue;
            }
            let number = cells[0].parse().map_err(|_| format!("`{}` is no run", cells[0]))?;
            let was = || {
                let fields = columns[1..own].iter().zip(&cells[1..own]);
                let fields = fields.filter(|(_, text)| !text.is_empty());
                Ok(fields.map(|(column, text)| (column.clone(), text.to_string())).collect())
            };
            let title: [&str; 6] = cells[own..own + 6].try_into().expect("six of them");
            let value = cells[own + 7].parse::<f64>();
            let value = value.map_err(|_| format!("`{}` is no number", cells[own + 7]))?;
            runs.line::<String>(number, was, wide_title(title), value)?;
        }
        if !head.first().is_some_and(|line| line.starts_with(HEAD)) {
            return Err(format!("this is no file of a sweep: `{FROM}` does not say of which"));
        }
        let own_columns = columns[1..own].to_vec();
        Ok(Part { head, own_columns, runs: runs.finish(), form: Form::Long })
    }

    /// How many runs the whole sweep has.
    fn whole(&self) -> Option<u64> {
        let (_, rest) = self.head[0].split_once(": ")?;
        rest.split(' ').next()?.parse().ok()
    }
}

impl Part {
    /// The runs, if they are of this sweep.
    pub fn runs_of(self, swept: &Sweep) -> Result<Vec<Run>, String> {
        if self.head != swept.head() {
            return Err("it is of another sweep, or of another version: the head of a sweep is in its first line".into());
        }
        Ok(self.runs)
    }
}

/// Puts the parts of a sweep together; each has a name for messages. What is wrong is told with the names of the files.
pub fn merge(parts: Vec<(String, Part)>) -> Result<Part, String> {
    let (first_name, first) = parts.first().ok_or("nothing to merge")?;
    let mut by_number: BTreeMap<u64, &str> = BTreeMap::new();
    for (name, part) in &parts {
        if part.head != first.head {
            return Err(format!("{name} and {first_name} are of different sweeps"));
        }
        if part.form != first.form {
            return Err(format!("{name} and {first_name}: one is wide, the other is not"));
        }
        for run in &part.runs {
            if let Some(other) = by_number.insert(run.number, name) {
                return Err(format!("run {} is in {other} and in {name}", run.number));
            }
        }
    }
    let whole = first.whole().ok_or_else(|| format!("{first_name}: how many runs are there?"))?;
    let missing: Vec<u64> = (0..whole).filter(|run| !by_number.contains_key(run)).take(4).collect();
    if let Some((run, name)) = by_number.last_key_value().filter(|(run, _)| **run >= whole) {
        return Err(format!("{name}: run {run} of {whole}, which are counted from 0"));
    }
    if !missing.is_empty() {
        let count = whole - by_number.len() as u64;
        let some: Vec<String> = missing.iter().map(u64::to_string).collect();
        let more = if count as usize > some.len() { ", ..." } else { "" };
        return Err(format!("{count} of {whole} runs are in no part: {}{more}", some.join(", ")));
    }
    let mut parts = parts.into_iter().map(|(_, part)| part);
    let mut merged = parts.next().expect("there is a first");
    merged.runs.extend(parts.flat_map(|part| part.runs));
    merged.runs.sort_by_key(|run| run.number);
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(numbers: &[u64]) -> Part {
        measured(numbers, &[])
    }

    fn measured(numbers: &[u64], more: &[(&str, &str)]) -> Part {
        let run = |number: &u64| {
            let fields = [("seed", "1"), ("digest", "00"), ("power.mean{domain=a,b}", "2.5")];
            let energy = &[("energy.sum", "7")][..usize::from(*number == 1)];
            let fields = fields.iter().chain(energy).chain(more);
            Run::new(*number, fields.map(|(column, text)| (column.to_string(), text.to_string())))
        };
        Part {
            head: vec!["schedtwin sweep 12: 4 runs, version 0".into(), "machine m: 3".into()],
            own_columns: vec!["seed".into(), "digest".into()],
            runs: numbers.iter().map(run).collect(),
            form: Form::Wide,
        }
    }

    fn long(numbers: &[u64]) -> Part {
        let lowest = [("freq_mean.mean[lowest of 20 domains]", "9")];
        Part { form: Form::Long, ..measured(numbers, &lowest) }
    }

    fn written(part: &Part, shard: Option<&str>, format: Format) -> Vec<u8> {
        let mut bytes = Vec::new();
        part.write(shard, format, &mut bytes).unwrap();
        bytes
    }

    fn text(part: &Part, shard: Option<&str>) -> String {
        String::from_utf8(written(part, shard, Format::Csv)).unwrap()
    }

    #[test]
    fn long_parts_make_the_whole_byte_for_byte() {
        let whole = text(&long(&[0, 1]), None);
        assert_eq!(
            whole,
            "run,seed,digest,metric,stat,labels,kind,of,over,unit,value,from\n\
             0,1,00,freq_mean,mean,,lowest,20,domain,MHz,9,\
             \"schedtwin sweep 12: 4 runs, version 0; machine m: 3\"\n\
             0,1,00,power,mean,\"domain=a,b\",one,,,mW,2.5,\n\
             1,1,00,energy,sum,,one,,,mJ,7,\n\
             1,1,00,freq_mean,mean,,lowest,20,domain,MHz,9,\n\
             1,1,00,power,mean,\"domain=a,b\",one,,,mW,2.5,\n"
        );
        for numbers in [&[0, 1, 2, 3][..], &[2], &[]] {
            let read = Part::read_text(&text(&long(numbers), Some("1/2"))).unwrap();
            assert_eq!(text(&read, None), text(&long(numbers), None));
        }
        let parts = [("a", &[1, 3][..]), ("b", &[0, 2]), ("c", &[])].map(|(name, numbers)| {
            let written = written(&long(numbers), Some("1/3"), Format::Csv);
            (name.to_string(), Part::read(written, Format::Csv).unwrap())
        });
        let merged = merge(parts.to_vec()).unwrap();
        assert_eq!(text(&merged, None), text(&long(&[0, 1, 2, 3]), None));
        #[cfg(feature = "parquet")]
        {
            let written = written(&long(&[0, 1, 2, 3]), None, Format::Parquet);
            let read = Part::read(written, Format::Parquet).unwrap();
            assert_eq!(text(&read, None), text(&long(&[0, 1, 2, 3]), None));
        }
        let mixed = [("a".to_string(), long(&[0, 1])), ("b".to_string(), part(&[2, 3]))];
        assert!(merge(mixed.to_vec()).unwrap_err().contains("one is wide"));
        assert!(Part::read_text("run,metric,value\n").unwrap_err().contains("no file of a sweep"));
    }

    #[test]
    fn parts_make_the_whole_byte_for_byte() {
        let whole = text(&part(&[0, 1, 2, 3]), None);
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
            let written = written(&part(numbers), Some("1/2"), format);
            (name.to_string(), Part::read(written, format).unwrap())
        });
        let merged = merge(parts.to_vec()).unwrap();
        assert_eq!(written(&merged, None, format), written(&part(&[0, 1, 2, 3]), None, format));
    }

    #[test]
    fn parts_that_are_no_whole() {
        let merged = |parts: &[&[u64]]| {
            let parts: Vec<(String, Part)> =
                parts.iter().map(|numbers| (format!("{numbers:?}"), part(numbers))).collect();
            merge(parts).unwrap_err()
        };
        assert_eq!(merged(&[&[0, 2]]), "2 of 4 runs are in no part: 1, 3");
        assert_eq!(merged(&[&[0, 2], &[2]]), "run 2 is in [0, 2] and in [2]");
        assert_eq!(merged(&[&[0, 9]]), "[0, 9]: run 9 of 4, which are counted from 0");
        let mut other = part(&[0]);
        other.head[1].push('4');
        let parts = [("a".to_string(), part(&[1])), ("b".to_string(), other)];
        assert_eq!(merge(parts.to_vec()).unwrap_err(), "b and a are of different sweeps");
        assert!(Part::read_text("run,seed\n1,2\n").unwrap_err().contains("no file of a sweep"));
        assert!(Part::read_text("# schedtwin sweep 1: 2 runs\nx,digest\n").is_err());
        assert!(Part::read_text("# schedtwin sweep 1: 2 runs\nrun,digest\nx,1\n").is_err());
    }
}
