// SPDX-License-Identifier: GPL-2.0-or-later
//! What is to be run: every machine with every kernel, every workload and every seed.

use crate::explanation::Explanation;
use crate::table::{Builder, Table};
use crate::{Diagnostics, Duration, Error};
use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::{RunOptions, Scenario, first_difference};
use schedtwin_input::Source;
use schedtwin_lab::compare::attempt_all;
use schedtwin_lab::twin::{Column, joint_provenance};
use schedtwin_lab::{Progress, many_parts};
use schedtwin_trace::explain::Query;
use std::ops::RangeInclusive;

/// Seeds whose results are held in memory before they become rows.
const BATCH: u64 = 32;

/// A kernel of an experiment.
#[derive(Clone, Debug)]
pub enum Kernel {
    /// As the command line names it: a built-in kernel or the path of a file, with patches and settings:
    /// `linux-5.18+runnable-boost:hz=1000`.
    Named(String),
    /// One that is at hand, such as one with policies of your own.
    File(Box<KernelFile>),
}

impl Kernel {
    fn name(&self) -> &str {
        match self {
            Kernel::Named(name) => name,
            Kernel::File(file) => &file.identity,
        }
    }
}

impl From<&str> for Kernel {
    fn from(name: &str) -> Kernel {
        Kernel::Named(name.to_string())
    }
}

impl From<String> for Kernel {
    fn from(name: String) -> Kernel {
        Kernel::Named(name)
    }
}

impl From<KernelFile> for Kernel {
    fn from(file: KernelFile) -> Kernel {
        Kernel::File(Box::new(file))
    }
}

/// Machines, kernels, workloads and seeds. Each function adds to what is there, or replaces the one value.
///
/// ```
/// use schedtwin::{Duration, Experiment};
/// let experiment = Experiment::new()
///     .machine("pixel6")
///     .kernel("linux-7.3")
///     .workload("ui-phone")
///     .duration(Duration::from_s(1));
/// assert_eq!(experiment.runs(), 10, "seeds 1 to 10 unless others are asked for");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Experiment {
    /// Built-in machines or paths, with settings in place: `pixel6:ambient_c=4`.
    pub machines: Vec<String>,
    /// The kernels; differences are told against the first.
    pub kernels: Vec<Kernel>,
    /// Built-in workloads with their options, or paths of rt-app files.
    pub workloads: Vec<String>,
    /// The seeds, each used for every machine, kernel and workload.
    pub seeds: RangeInclusive<u64>,
    /// How long a run simulates; `None`: as long as its workload says.
    pub duration: Option<Duration>,
}

impl Default for Experiment {
    fn default() -> Experiment {
        Experiment {
            machines: Vec::new(),
            kernels: Vec::new(),
            workloads: Vec::new(),
            seeds: 1..=10,
            duration: None,
        }
    }
}

impl Experiment {
    /// An experiment without a machine, a kernel and a workload.
    pub fn new() -> Experiment {
        Experiment::default()
    }

    /// Adds a machine.
    pub fn machine(mut self, name: impl Into<String>) -> Experiment {
        self.machines.push(name.into());
        self
    }

    /// Adds machines.
    pub fn machines<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Experiment {
        self.machines.extend(names.into_iter().map(Into::into));
        self
    }

    /// Adds a kernel.
    pub fn kernel(mut self, kernel: impl Into<Kernel>) -> Experiment {
        self.kernels.push(kernel.into());
        self
    }

    /// Adds kernels.
    pub fn kernels<T: Into<Kernel>>(mut self, kernels: impl IntoIterator<Item = T>) -> Experiment {
        self.kernels.extend(kernels.into_iter().map(Into::into));
        self
    }

    /// Adds a workload.
    pub fn workload(mut self, name: impl Into<String>) -> Experiment {
        self.workloads.push(name.into());
        self
    }

    /// Adds workloads.
    pub fn workloads<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Experiment {
        self.workloads.extend(names.into_iter().map(Into::into));
        self
    }

    /// Uses these seeds.
    pub fn seeds(mut self, seeds: RangeInclusive<u64>) -> Experiment {
        self.seeds = seeds;
        self
    }

    /// Simulates so long.
    pub fn duration(mut self, duration: Duration) -> Experiment {
        self.duration = Some(duration);
        self
    }

    /// How many runs it has.
    pub fn runs(&self) -> u64 {
        let seeds = match self.seeds.is_empty() {
            true => 0,
            false => (self.seeds.end() - self.seeds.start()).saturating_add(1),
        };
        [self.machines.len(), self.kernels.len(), self.workloads.len()]
            .into_iter()
            .fold(seeds, |runs, count| runs.saturating_mul(count as u64))
    }

    /// Loads and checks everything without running it: every fault at once.
    pub fn check(&self) -> Result<(), Error> {
        self.groups()?;
        Ok(())
    }

    /// Runs it, on all CPUs of this computer.
    pub fn run(&self) -> Result<Table, Error> {
        self.run_with(&Progress::new())
    }

    /// As [`Experiment::run`], and tells `progress` how far it is.
    pub fn run_with(&self, progress: &Progress) -> Result<Table, Error> {
        let groups = self.groups()?;
        progress.expect_runs(self.runs());
        let mut table = Builder::default();
        for columns in &groups {
            let first = &columns[0].scenario;
            let group = table.group(first, joint_provenance(columns), columns);
            let (mut seed, last) = (*self.seeds.start(), *self.seeds.end());
            loop {
                let end = last.min(seed.saturating_add(BATCH - 1));
                let outcomes = attempt_all(columns, seed..=end, progress, |mut result| {
                    many_parts::summarise(&mut result.metrics);
                    result
                })?;
                for (number, outcome) in outcomes.into_iter().enumerate() {
                    let (kernel, seed) =
                        (number % columns.len(), seed + (number / columns.len()) as u64);
                    match outcome {
                        Ok(result) => table.run(group, kernel, seed, result),
                        Err(crash) => table.crash(group, crash),
                    }
                }
                if end == last {
                    break;
                }
                seed = end + 1;
            }
        }
        Ok(table.finish())
    }

    /// Runs the first two kernels side by side with the first seed, on the first machine under the first workload, and
    /// tells where they part. `None`: they do not.
    ///
    /// ```
    /// use schedtwin::{Duration, Experiment};
    /// let experiment = Experiment::new()
    ///     .machine("uniform8")
    ///     .kernels(["linux-6.12", "linux-6.12:hz=1000"])
    ///     .workload("w1")
    ///     .duration(Duration::from_ms(20));
    /// let parting = experiment.first_difference()?.expect("ticks come at other times");
    /// let difference = parting.difference().unwrap();
    /// assert!(difference.left != difference.right || difference.decisions_left != difference.decisions_right);
    /// println!("{parting}");
    /// # Ok::<(), schedtwin::Error>(())
    /// ```
    pub fn first_difference(&self) -> Result<Option<Explanation>, Error> {
        let groups = self.groups()?;
        let [left, right, ..] = groups[0].as_slice() else {
            return Err(fault("kernels", "a difference is between two kernels").into());
        };
        let found = first_difference(&left.scenario, &right.scenario, *self.seeds.start());
        let names = [&left.kernel, &right.kernel].map(String::clone);
        Ok(found.map(|difference| Explanation::of_difference(names, difference)))
    }

    /// Runs the first kernel with the first seed, on the first machine under the first workload, and tells what happened
    /// and why: of all that the run did, what `query` asks for.
    ///
    /// ```
    /// use schedtwin::{Duration, Experiment, Query};
    /// let experiment = Experiment::new()
    ///     .machine("uniform8")
    ///     .kernel("linux-6.12")
    ///     .workload("w1")
    ///     .duration(Duration::from_ms(20));
    /// let query = Query { at: Some(10_000_000), window_ns: 10_000_000, limit: 20, ..Query::default() };
    /// let told = experiment.explain(&query)?;
    /// assert_eq!(told.entries().len(), 20);
    /// assert!(told.matched() >= 20);
    /// println!("{told}");
    /// # Ok::<(), schedtwin::Error>(())
    /// ```
    pub fn explain(&self, query: &Query) -> Result<Explanation, Error> {
        let groups = self.groups()?;
        let folder = tempfile::tempdir()?;
        let record = folder.path().join("run.record.jsonl");
        let options = RunOptions { record: Some(record.clone()), ..RunOptions::default() };
        groups[0][0].scenario.run(*self.seeds.start(), options)?;
        Explanation::of_record(&record, query)
    }

    /// The columns of each machine and workload.
    fn groups(&self) -> Result<Vec<Vec<Column>>, Diagnostics> {
        let mut faults = Diagnostics::new();
        for (what, missing) in [
            ("machines", self.machines.is_empty()),
            ("kernels", self.kernels.is_empty()),
            ("workloads", self.workloads.is_empty()),
            ("seeds", self.seeds.is_empty()),
        ] {
            if missing {
                faults.absorb::<()>(Err(fault(what, &format!("an experiment has {what}"))));
            }
        }
        let kernels: Vec<_> = self
            .kernels
            .iter()
            .map(|kernel| match kernel {
                Kernel::Named(name) => faults.absorb(KernelFile::load(name)),
                Kernel::File(file) => Some((**file).clone()),
            })
            .collect();
        let duration = self.duration.map(Duration::ns);
        let mut groups = Vec::new();
        for machine in &self.machines {
            for workload in &self.workloads {
                let mut columns = Vec::new();
                for (kernel, file) in self.kernels.iter().zip(&kernels) {
                    let scenario = match file {
                        Some(file) => {
                            Scenario::with_kernel(machine, file.clone(), workload, duration)
                        }
                        // Told above; what else is wrong is told with a kernel that is right.
                        None => Scenario::new(machine, "linux-6.12", workload, duration),
                    };
                    let name = kernel.name().to_string();
                    let scenario = faults.absorb(scenario);
                    columns.extend(scenario.map(|scenario| Column { kernel: name, scenario }));
                }
                groups.push(columns);
            }
        }
        faults.sort();
        faults.into_result(groups)
    }
}

fn fault(what: &str, message: &str) -> Diagnostics {
    let mut faults = Diagnostics::new();
    faults.push_whole(&Source::new(what, ""), message, None);
    faults
}
