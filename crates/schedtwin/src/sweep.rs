// SPDX-License-Identifier: GPL-2.0-or-later
//! Many settings, a row for each run and metric: names may have lists, `linux-7.3:hz={100,250,1000}`.
//!
//! [`Experiment::sweep`] makes a [`Sweep`] of an experiment. [`Sweep::to_bytes`] and `run_chunk` (feature `arrow`) let a batch
//! engine perform it anywhere; [`Performed`] is its result, wherever the runs came from.

use crate::isolated::{isolated, prepare};
use crate::{Error, Experiment, Progress};
use schedtwin_input::{Diagnostics, Source};
use schedtwin_lab::report;
use schedtwin_lab::selector::Selector;
use schedtwin_lab::sweep::journal::Journal;
use schedtwin_lab::sweep::part::{self, Form, Format};
use schedtwin_types::Duration;
use std::fmt;
use std::path::Path;

pub use schedtwin_lab::report::{Point, Points};
pub use schedtwin_lab::sweep::cache::Cache;
#[cfg(feature = "arrow")]
pub use schedtwin_lab::sweep::chunk::{Chunk, read as read_chunk};
pub use schedtwin_lab::sweep::run::Run as SweepRun;
pub use schedtwin_lab::sweep::{Setting, Shard, Sweep, SweepSpec};

/// Performs runs `range` of the sweep that [`Sweep::to_bytes`] made `spec` of, from bytes to bytes
/// ([`schedtwin_lab::sweep::chunk::run_chunk`]); kernels with C of the user's in a confined process.
///
/// # Errors
/// If these bytes are no such sweep, it has no such runs, or C of the user's does not let them end.
#[cfg(feature = "arrow")]
pub fn run_chunk(spec: &[u8], range: std::ops::Range<u64>) -> Result<Vec<u8>, Diagnostics> {
    use schedtwin_lab::sweep::chunk;
    prepare();
    // Where no kernel can name C, the bytes need not be read twice.
    let may_have_c = ["tree", "scx", "extends"]
        .iter()
        .any(|word| spec.windows(word.len()).any(|at| at == word.as_bytes()));
    if !may_have_c {
        return chunk::run_chunk(spec, range);
    }
    let sweep = Sweep::from_bytes(spec)?;
    let done = isolated(sweep.scenarios(), &[], None, || {
        // Bytes as text: each as the character of its number.
        Ok(chunk::run_chunk(spec, range)?.into_iter().map(char::from).collect::<String>())
    });
    let done = done.map_err(|error| match error {
        Error::Input(faults) => faults,
        Error::Io(error) => {
            let mut faults = Diagnostics::new();
            faults.push_whole(&Source::new("chunk", ""), error.to_string(), None);
            faults
        }
    });
    Ok(done?.chars().filter_map(|byte| u8::try_from(byte).ok()).collect())
}

/// The runs of a sweep, in order. It prints as `schedtwin sweep` does.
#[derive(Clone)]
pub struct Performed {
    sweep: Sweep,
    runs: Vec<SweepRun>,
}

impl Experiment {
    /// The experiment as a sweep: each setting that its names stand for with each seed.
    ///
    /// ```
    /// use schedtwin::{Duration, Experiment, Progress, sweep::Performed};
    /// let sweep = Experiment::new()
    ///     .machine("pixel6")
    ///     .kernel("linux-7.3:schedutil.rate_limit_us={500,2000}")
    ///     .workload("ui-phone")
    ///     .seeds(1..=2)
    ///     .duration(Duration::from_ms(50))
    ///     .sweep()?;
    /// let performed = Performed::here(&sweep, None, &Progress::new())?;
    /// let points = performed.points("power", "wakeup_latency.p99")?;
    /// assert_eq!((performed.runs().len(), points.points.len()), (4, 2));
    /// assert!(points.points.iter().any(|point| point.on_front));
    /// # Ok::<(), schedtwin::Error>(())
    /// ```
    pub fn sweep(&self) -> Result<Sweep, Error> {
        prepare();
        self.check_parts()?;
        let seeds = (*self.seeds.start(), self.seeds.end() - self.seeds.start() + 1);
        let duration = self.duration.map(Duration::ns);
        let spec = SweepSpec::new(&self.machines, &self.kernels, &self.workloads, duration, seeds)?;
        Ok(Sweep::of(&spec)?)
    }
}

impl Performed {
    /// Performs a sweep on all CPUs of this computer; a cache spares the runs that it has. With C of a tree it is not used: that C
    /// could forge what is kept.
    pub fn here(
        sweep: &Sweep,
        cache: Option<&Cache>,
        progress: &Progress,
    ) -> Result<Performed, Error> {
        progress.expect_runs(sweep.runs());
        let cache = cache.filter(|_| !sweep.has_foreign_code());
        let (runs, crashes) = isolated(sweep.scenarios(), &[], Some(progress), || {
            let runs = sweep.perform(Shard::WHOLE, Journal::in_memory(), cache, progress)?;
            Ok((runs, progress.crashes()))
        })?;
        progress.crashed_elsewhere(crashes);
        Ok(Performed::of(sweep, runs))
    }

    /// The sweep of runs that were performed elsewhere, in any order. Numbers that it does not have are passed over: what comes from
    /// another process may say anything.
    pub fn of(sweep: &Sweep, mut runs: Vec<SweepRun>) -> Performed {
        runs.retain(|run| run.number < sweep.runs());
        runs.sort_by_key(|run| run.number);
        runs.dedup_by_key(|run| run.number);
        Performed { sweep: sweep.clone(), runs }
    }

    /// The sweep.
    pub fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    /// The runs in the order of their numbers; those that panicked are not among them.
    pub fn runs(&self) -> &[SweepRun] {
        &self.runs
    }

    /// Every setting by two metrics, spelled as `--front` has them, and which settings no other one beats in both.
    pub fn points(&self, x: &str, y: &str) -> Result<Points, Error> {
        Ok(report::sweep_points(&self.sweep, &self.runs, &front(x, y)?)?)
    }

    /// A page with the table of all settings, and a figure if two metrics are named.
    pub fn page(&self, axes: Option<(&str, &str)>) -> Result<String, Error> {
        let axes = axes.map(|(x, y)| front(x, y)).transpose()?;
        let axes: &[Selector] = axes.as_ref().map_or(&[], |axes| axes);
        Ok(report::html::sweep(&self.sweep, &self.runs, &[], axes)?)
    }

    /// The content of the file that `schedtwin sweep --output` writes under this name.
    pub fn file(&self, path: &Path) -> Result<Vec<u8>, String> {
        let format = Format::of(path)?;
        let mut bytes = Vec::new();
        let how = (Form::Long, format);
        part::write(&self.sweep, Shard::WHOLE, self.runs.clone(), how, &mut bytes)
            .expect("a vector takes every write");
        Ok(bytes)
    }

    /// A record batch with the columns of that file; settings whose values are all numbers are columns of numbers.
    #[cfg(feature = "arrow")]
    pub fn to_arrow(&self) -> arrow_array::RecordBatch {
        let batch = schedtwin_lab::sweep::chunk::batch(&self.sweep, &self.runs);
        crate::arrow::with_numbers(&batch, &self.sweep.varies)
    }
}

fn front(x: &str, y: &str) -> Result<[Selector; 2], Error> {
    let one = |text: &str| {
        let mut list = Selector::parse_list(text)?;
        if list.len() != 1 {
            let mut faults = Diagnostics::new();
            faults.push(
                &Source::new("metric", text),
                0..text.len(),
                "this is not one metric",
                None,
            );
            return Err(faults);
        }
        Ok(list.remove(0))
    };
    Ok([one(x)?, one(y)?])
}

impl fmt::Display for Performed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match report::sweep(&self.sweep, &self.runs, &[], &[]) {
            Ok(text) => f.write_str(&text),
            Err(faults) => faults.fmt(f),
        }
    }
}
