// SPDX-License-Identifier: GPL-2.0-or-later
//! What-if on the board: the twin predicts what a change does, and recordings of both sides say what it did.
//!
//! ```text
//! schedtwin-conformance what-if [--seeds N] [--rows] [FOLDER]
//! schedtwin-conformance what-if --predict [FOLDER]        the twin's figures alone, before B is recorded
//! ```
//!
//! FOLDER has `pairs.toml`: for each pair a name, the workloads A and B with their recordings beside them, and what the
//! twin's kernel needs beside the workload (`with`). Both sides of a pair were booted with the same seeds, so that run N of A
//! and run N of B had the same start and the same drawn numbers.
//!
//! **The rule** is that of [`schedtwin_live::judge`], on the figures of [`super::figures`]; it was fixed, with the pairs and the
//! two things that it says here, before any B was recorded:
//!
//! - A difference is *sure* if p < 0.001 by the paired t-test (eight pairs), and if it is larger than the figure can be told.
//!   At 5 %, as on a machine where a run takes its time, a tenth of the sure ones would be chance: of some thousand figures most do
//!   not change. The table with 5 % stands below the first.
//! - A share of time below a thousandth of a CPU on both sides is nothing, and is not judged.

use super::figures::Figure;
use super::scenario::Variant;
use super::{
    SEEDS, beside, figures_of_twin, figures_recorded, number, read_workload, recordings_dir,
    recordings_of,
};
use schedtwin_input::{Diagnostics, Source, TomlDocument, read_source};
use schedtwin_lab::stats;
use schedtwin_live::judge::{self, Counts, Judged, Method, Verdict};
use schedtwin_live::rows::{Key, Rows, WHOLE};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to judge, and what to show.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Runs of the twin for each side of a pair
    #[arg(long, value_name = "N", default_value_t = SEEDS, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Prints the twin's figures of both sides and reads no recording of B
    #[arg(long, conflicts_with = "rows")]
    predict: bool,
    /// Prints each sure difference, not only the counts
    #[arg(long)]
    rows: bool,
    /// Pairs whose name begins so [default: all]
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// A folder with pairs.toml [default: conformance/recordings/what-if]
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Boots of each side: runs of the twin take their starts in turn.
const BOOTS: u64 = 8;

/// A p below which a difference is sure, by the first table.
const SURE: f64 = 0.001;

/// Where the pairs are that a checkout has.
pub fn pairs_dir() -> PathBuf {
    recordings_dir().join("../what-if")
}

/// Two workloads that differ by one change.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The change and the work.
    pub name: String,
    /// `NAME.wl.txt` of A and of B.
    pub workloads: [PathBuf; 2],
    /// What the twin's kernels need beside the workloads.
    pub with: [Variant; 2],
}

/// Reads `pairs.toml` of a folder.
pub fn pairs_in(folder: &Path) -> Result<Vec<Pair>, Diagnostics> {
    let source = read_source(folder.join("pairs.toml"))?;
    parse(&source, folder)
}

fn parse(source: &Arc<Source>, folder: &Path) -> Result<Vec<Pair>, Diagnostics> {
    let document = TomlDocument::parse(source)?;
    let mut faults = Diagnostics::new();
    let mut reader = document.reader();
    let mut pairs = Vec::new();
    for mut table in reader.tables("pair", &mut faults) {
        let name: Option<String> = table.required("name", &mut faults);
        let paths = ["a", "b"].map(|key| table.required::<String>(key, &mut faults));
        let mut with = [const { None }; 2];
        for (key, variant) in ["with_a", "with_b"].into_iter().zip(&mut with) {
            let at = table.location_of(key);
            let spelling: Option<String> = table.optional(key, &mut faults);
            match Variant::of(spelling.as_slice()) {
                Ok(read) => *variant = Some(read),
                Err(message) => faults.push_at(&at, message, None),
            }
        }
        table.finish(&mut faults);
        if let (Some(name), [Some(a), Some(b)], [Some(with_a), Some(with_b)]) = (name, paths, with)
        {
            let workloads = [a, b].map(|path| folder.join(format!("{path}.wl.txt")));
            pairs.push(Pair { name, workloads, with: [with_a, with_b] });
        }
    }
    reader.finish(&mut faults);
    faults.into_result(pairs)
}

/// The twin's figures of one side, by run.
type Runs = Vec<Vec<Figure>>;

/// Figures of both sides of a pair.
pub struct Sides {
    /// Recorded, by seed.
    pub recorded: [Runs; 2],
    /// The twin's.
    pub twin: [Runs; 2],
}

impl Pair {
    /// Whether its sides are of two releases, not of one with another setting or patch.
    pub fn is_of_releases(&self) -> bool {
        matches!(self.with.each_ref().map(|with| &with.name), [Some(a), Some(b)] if a != b)
    }

    /// The recordings of a side.
    fn recordings(&self, side: usize) -> Result<Vec<PathBuf>, String> {
        let path = &self.workloads[side];
        let files = recordings_of(path).map_err(|error| format!("{}: {error}", path.display()))?;
        match files.is_empty() {
            true => Err(format!("{}: no recordings beside it", path.display())),
            false => Ok(files),
        }
    }

    /// What the twin says, of both sides. Only the workloads are read, and the release of A's recordings unless `with` names one.
    pub fn predict(&self, seeds: u64) -> Result<[Runs; 2], String> {
        let a = recordings_of(&self.workloads[0]).unwrap_or_default();
        let mut sides = [const { Vec::new() }; 2];
        for (side, runs) in sides.iter_mut().enumerate() {
            let workload =
                read_workload(&self.workloads[side]).map_err(|faults| faults.to_string())?;
            let variant = beside(&self.with[side], &a)?;
            *runs = figures_of_twin(&workload, seeds, BOOTS, &variant)
                .map_err(|faults| faults.to_string())?;
        }
        Ok(sides)
    }

    /// Both sides, recorded and by the twin.
    pub fn sides(&self, seeds: u64) -> Result<Sides, String> {
        let mut recorded = [const { Vec::new() }; 2];
        for (side, runs) in recorded.iter_mut().enumerate() {
            let workload =
                read_workload(&self.workloads[side]).map_err(|faults| faults.to_string())?;
            *runs = figures_recorded(&self.recordings(side)?, &workload)?;
        }
        Ok(Sides { recorded, twin: self.predict(seeds)? })
    }
}

/// A key that keeps the order of the list.
fn key(index: usize, figure: &Figure) -> Key {
    Key { class: WHOLE.into(), metric: format!("{index:03} {}", figure.name), stat: String::new() }
}

fn rows(runs: &[Vec<Figure>]) -> Vec<Rows> {
    let of = |figures: &Vec<Figure>| {
        let value = |(index, figure): (usize, &Figure)| Some((key(index, figure), figure.value?));
        figures.iter().enumerate().filter_map(value).collect()
    };
    runs.iter().map(of).collect()
}

/// The verdicts on a pair, where the machine is sure if p is below `sure`.
pub fn judge(sides: &Sides, sure: f64) -> Vec<Judged> {
    let [a, b] = sides.recorded.each_ref().map(|runs| rows(runs));
    let twin = sides.twin.each_ref().map(|runs| rows(runs));
    let judged = judge::judge([&a, &b], [&twin[0], &twin[1]], Method::File);
    settle(judged, &sides.recorded[0][0], sure)
}

/// The board as its own prophet: the runs of odd places predict, the others are measured.
fn floor(sides: &Sides, sure: f64) -> Vec<Judged> {
    let [a, b] = sides.recorded.each_ref().map(|runs| rows(runs));
    settle(judge::floor([&a, &b]), &sides.recorded[0][0], sure)
}

/// A against A: its odd seeds beside its even ones; how many figures, and how many are called different.
fn control(runs: &[Vec<Figure>], sure: f64) -> [usize; 2] {
    let all = rows(runs);
    let half = |odd: usize, key: &Key| -> Vec<Option<f64>> {
        all.iter().skip(odd).step_by(2).map(|rows| rows.get(key).copied()).collect()
    };
    let mut counts = [0; 2];
    for (index, figure) in runs[0].iter().enumerate() {
        let key = key(index, figure);
        let Some(difference) = stats::welch(&half(0, &key), &half(1, &key)) else { continue };
        if is_nothing(figure, stats::estimate(&half(0, &key)).map_or(0.0, |e| e.mean)) {
            continue;
        }
        counts[0] += 1;
        counts[1] += usize::from(difference.p.is_some_and(|p| p < sure));
    }
    counts
}

fn is_nothing(figure: &Figure, value: f64) -> bool {
    value.abs() <= figure.nothing()
}

/// Drops what is nothing on both sides; a difference that cannot be told, or is not sure enough, is inconclusive.
fn settle(judged: Vec<Judged>, figures: &[Figure], sure: f64) -> Vec<Judged> {
    let by_key: BTreeMap<Key, &Figure> =
        figures.iter().enumerate().map(|(index, figure)| (key(index, figure), figure)).collect();
    let mut settled = Vec::new();
    for mut row in judged {
        let figure = by_key[&row.key];
        if row.measured.iter().all(|value| is_nothing(figure, *value)) {
            continue;
        }
        let told = figure.resolution.around(row.measured[0]);
        if row.difference.diff.abs() <= told || row.difference.p.is_none_or(|p| p >= sure) {
            row.verdict = Verdict::Inconclusive;
        }
        settled.push(row);
    }
    settled
}

/// The counts of a pair, or of all.
#[derive(Clone, Copy, Default)]
struct Totals {
    twin: Counts,
    floor: Counts,
    control: [usize; 2],
}

impl Totals {
    fn of(sides: &Sides, sure: f64) -> Totals {
        Totals {
            twin: Counts::of(&judge(sides, sure)),
            floor: Counts::of(&floor(sides, sure)),
            control: control(&sides.recorded[0], sure),
        }
    }

    fn plus(self, other: Totals) -> Totals {
        Totals {
            twin: self.twin.plus(other.twin),
            floor: self.floor.plus(other.floor),
            control: std::array::from_fn(|at| self.control[at] + other.control[at]),
        }
    }

    fn print(&self, name: &str) {
        let [sure, sign, within] = self.twin.sure();
        let [own, own_sign, own_within] = self.floor.sure();
        println!(
            "{name:<44} {:>5} {sure:>5} {sign:>5} {within:>5}   {own:>5} {own_sign:>5} {own_within:>5}   \
             {:>5} {:>5}",
            self.twin.all(),
            self.control[0],
            self.control[1]
        );
    }
}

fn heading(sure: f64) {
    println!("sure: p < {sure}");
    println!("{:<44} {:>23}   {:>17}   {:>11}", "", "the twin", "the board's halves", "A beside A");
    println!(
        "{:<44} {:>5} {:>5} {:>5} {:>5}   {:>5} {:>5} {:>5}   {:>5} {:>5}",
        "pair", "all", "sure", "sign", "x2", "sure", "sign", "x2", "all", "diff"
    );
}

fn share(part: usize, all: usize) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

fn print_rows(pair: &Pair, judged: &[Judged], figures: &[Figure]) {
    println!("{}", pair.name);
    let sure = judged.iter().filter(|row| row.verdict != Verdict::Inconclusive);
    for row in sure {
        let name = row.key.metric.split_once(' ').map_or("", |(_, name)| name);
        let unit = figures.iter().find(|figure| figure.name == name).map_or("", |f| f.unit);
        let cell = |value: Option<f64>| value.map_or("-".into(), number);
        println!(
            "  {name:<28} {unit:>4}  {:>9} {:>9}   {:>9} {:>9}  {}",
            number(row.measured[0]),
            number(row.measured[1]),
            cell(row.predicted[0]),
            cell(row.predicted[1]),
            row.verdict
        );
    }
}

fn print_predictions(pairs: &[Pair], seeds: u64) -> Result<(), String> {
    println!("# the twin's means of {seeds} runs: pair, figure, unit, A, B");
    for pair in pairs {
        let sides = pair.predict(seeds)?;
        for (index, figure) in sides[0][0].iter().enumerate() {
            let mean = |runs: &Runs| {
                let values: Vec<Option<f64>> = runs.iter().map(|run| run[index].value).collect();
                stats::estimate(&values).map_or("-".into(), |estimate| number(estimate.mean))
            };
            let [a, b] = sides.each_ref().map(mean);
            if [&a, &b].iter().any(|value| !["-", "0"].contains(&value.as_str())) {
                println!("{},{},{},{a},{b}", pair.name, figure.name, figure.unit);
            }
        }
    }
    Ok(())
}

fn print_judgement(pairs: &[Pair], options: &Options) -> Result<bool, String> {
    let sides: Vec<Sides> =
        pairs.iter().map(|pair| pair.sides(options.seeds)).collect::<Result<_, _>>()?;
    if options.rows {
        println!("{:<34} {:>22}   {:>18}", "", "recorded A, B", "the twin's A, B");
        for (pair, sides) in pairs.iter().zip(&sides) {
            print_rows(pair, &judge(sides, SURE), &sides.recorded[0][0]);
        }
        println!();
    }
    let mut passes = false;
    for limit in [SURE, stats::SIGNIFICANCE] {
        heading(limit);
        let (mut of_settings, mut of_releases) = (Totals::default(), Totals::default());
        for (pair, sides) in pairs.iter().zip(&sides) {
            let totals = Totals::of(sides, limit);
            totals.print(&pair.name);
            let sum = if pair.is_of_releases() { &mut of_releases } else { &mut of_settings };
            *sum = sum.plus(totals);
        }
        let all = of_settings.plus(of_releases);
        of_settings.print("settings and patches");
        of_releases.print("releases");
        all.print("together");
        let [sure, sign, within] = all.twin.sure();
        let (sign, within) = (share(sign, sure), share(within, sure));
        println!("right sign {sign:.1} %, within a factor of 2 {within:.1} %\n");
        if limit == SURE {
            passes = sure > 0 && sign >= SIGN_MIN && within >= WITHIN_MIN;
        }
    }
    println!(
        "bars, of the first table: sign {SIGN_MIN} %, within a factor of 2 {WITHIN_MIN} %: {}",
        if passes { "met" } else { "missed" }
    );
    Ok(passes)
}

/// Least share of sure differences with the right sign, %.
const SIGN_MIN: f64 = 98.0;
/// Least share within a factor of 2, %.
const WITHIN_MIN: f64 = 85.0;

/// The command; returns the exit code.
pub fn main(options: &Options) -> i32 {
    let folder = options.folder.clone().unwrap_or_else(pairs_dir);
    let work = || -> Result<bool, String> {
        let mut pairs = pairs_in(&folder).map_err(|faults| faults.to_string())?;
        if let Some(only) = &options.only {
            pairs.retain(|pair| pair.name.starts_with(only));
        }
        match options.predict {
            true => print_predictions(&pairs, options.seeds).map(|()| true),
            false => print_judgement(&pairs, options),
        }
    };
    match work() {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(message) => {
            eprintln!("{message}");
            2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::l2::figures::Resolution;

    #[test]
    fn pairs_are_read_with_their_faults() {
        let text =
            "[[pair]]\nname = \"HZ\"\na = \"../x\"\nb = \"y\"\nwith_b = \"linux-7.3:hz=1000\"\n";
        let pairs = parse(&Source::new("pairs.toml", text), Path::new("f")).unwrap();
        assert_eq!(pairs[0].workloads[1], Path::new("f/y.wl.txt"));
        assert_eq!(pairs[0].with[1].kernel, [("hz".to_string(), "1000".to_string())]);
        let text = "[[pair]]\nname = \"HZ\"\nb = \"y\"\nwith_a = \"pixel6:a=1\"\nwhat = 1\n";
        let faults = parse(&Source::new("pairs.toml", text), Path::new("f")).unwrap_err();
        assert_eq!(faults.0.len(), 3, "{faults}");
    }

    fn runs(values: &[f64], unit: &'static str) -> Runs {
        let figure = |value: &f64| Figure {
            name: "x".into(),
            unit,
            value: Some(*value),
            resolution: Resolution::Absolute(1.0),
        };
        values.iter().map(|value| vec![figure(value)]).collect()
    }

    #[test]
    fn what_cannot_be_told_is_inconclusive() {
        let a = [10.0, 10.1, 9.9, 10.0];
        for (b, unit, expected) in [
            ([20.0, 20.2, 19.9, 20.0], "us", Some(Verdict::Agree)),
            // Sure by the test, and less than the resolution.
            ([10.5, 10.6, 10.4, 10.5], "us", Some(Verdict::Inconclusive)),
            ([20.0, 26.0, 12.0, 18.0], "us", Some(Verdict::Inconclusive)),
        ] {
            let sides = Sides {
                recorded: [runs(&a, unit), runs(&b, unit)],
                twin: [runs(&[10.0], unit), runs(&[18.0], unit)],
            };
            let judged = judge(&sides, SURE);
            assert_eq!(judged.first().map(|row| row.verdict), expected, "{b:?}");
        }
        let nothing = Sides {
            recorded: [runs(&[0.01; 4], "% t"), runs(&[0.09; 4], "% t")],
            twin: [runs(&[0.0], "% t"), runs(&[0.0], "% t")],
        };
        assert!(judge(&nothing, SURE).is_empty());
    }
}
