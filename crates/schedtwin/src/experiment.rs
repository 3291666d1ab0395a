// SPDX-License-Identifier: GPL-2.0-or-later
//! What is to be run: every machine with every kernel, every workload and every seed.

use crate::events::Events;
use crate::explanation::{Decision, Explanation};
use crate::isolated::{Measured, Outcome, isolated, prepare};
use crate::table::{Builder, Table};
use crate::{Diagnostics, Duration, Error};
use schedtwin_engine::{RunOptions, Scenario, first_difference};
use schedtwin_input::Source;
use schedtwin_lab::compare::attempt_all;
use schedtwin_lab::given::{Given, GivenKernel, GivenMachine, GivenWorkload, Input};
use schedtwin_lab::moment::moments;
use schedtwin_lab::report::{self, Extent, RunReport};
use schedtwin_lab::timeline::{self, timelines};
use schedtwin_lab::twin::{Column, joint_provenance, provenance};
use schedtwin_lab::verdict::RunTroubles;
use schedtwin_lab::{Progress, many_parts};
use schedtwin_trace::Format;
use schedtwin_trace::explain::Query;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;

/// Seeds whose results are held in memory before they become rows.
const BATCH: u64 = 32;

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
    /// Built-in machines or paths, with settings in place: `pixel6:ambient_c=4`; or texts.
    pub machines: Vec<GivenMachine>,
    /// The kernels, likewise with patches; differences are told against the first.
    pub kernels: Vec<GivenKernel>,
    /// Built-in workloads with their options, or rt-app files as paths or texts.
    pub workloads: Vec<GivenWorkload>,
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
    pub fn machine(mut self, machine: impl Into<GivenMachine>) -> Experiment {
        self.machines.push(machine.into());
        self
    }

    /// Adds machines.
    pub fn machines<T: Into<GivenMachine>>(
        mut self,
        machines: impl IntoIterator<Item = T>,
    ) -> Experiment {
        self.machines.extend(machines.into_iter().map(Into::into));
        self
    }

    /// Adds a kernel.
    pub fn kernel(mut self, kernel: impl Into<GivenKernel>) -> Experiment {
        self.kernels.push(kernel.into());
        self
    }

    /// Adds kernels.
    pub fn kernels<T: Into<GivenKernel>>(
        mut self,
        kernels: impl IntoIterator<Item = T>,
    ) -> Experiment {
        self.kernels.extend(kernels.into_iter().map(Into::into));
        self
    }

    /// Adds a workload.
    pub fn workload(mut self, workload: impl Into<GivenWorkload>) -> Experiment {
        self.workloads.push(workload.into());
        self
    }

    /// Adds workloads.
    pub fn workloads<T: Into<GivenWorkload>>(
        mut self,
        workloads: impl IntoIterator<Item = T>,
    ) -> Experiment {
        self.workloads.extend(workloads.into_iter().map(Into::into));
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
        let scenarios = || groups.iter().flatten().map(|column| &column.scenario);
        let all = isolated(scenarios(), &[], Some(progress), || self.attempt(&groups, progress));
        let mut all = all?.into_iter();
        let mut table = Builder::default();
        for columns in &groups {
            let first = &columns[0].scenario;
            let group = table.group(first, joint_provenance(columns), columns);
            for seed in self.seeds.clone() {
                for kernel in 0..columns.len() {
                    match all.next() {
                        Some(Ok(run)) => table.run(group, kernel, seed, run),
                        Some(Err(crash)) => table.crash(group, crash),
                        None => return Err(io::Error::other("results are missing").into()),
                    }
                }
            }
        }
        Ok(table.finish())
    }

    /// What all runs measured: by group, seed and kernel.
    fn attempt(&self, groups: &[Vec<Column>], progress: &Progress) -> Result<Vec<Outcome>, Error> {
        let mut all = Vec::new();
        for columns in groups {
            let (mut seed, last) = (*self.seeds.start(), *self.seeds.end());
            loop {
                let end = last.min(seed.saturating_add(BATCH - 1));
                let outcomes = attempt_all(columns, seed..=end, progress, |mut result| {
                    many_parts::summarise(&mut result.metrics);
                    result
                })?;
                all.extend(outcomes.into_iter().map(|outcome| {
                    outcome.map(|result| Measured {
                        troubles: RunTroubles::of(&result),
                        digest: result.digest,
                        simulated_ns: result.simulated_ns,
                        notices: result.notices,
                        metrics: result.metrics,
                    })
                }));
                if end == last {
                    break;
                }
                seed = end + 1;
            }
        }
        Ok(all)
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
        let both = [&left.scenario, &right.scenario];
        let found = isolated(both.into_iter(), &[], None, || {
            Ok(first_difference(both[0], both[1], *self.seeds.start()))
        })?;
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
        self.run_first(&groups[0][0].scenario, options, &record)?;
        Explanation::of_record(&record, query)
    }

    /// Runs the kernel of this number with the first seed, on the first machine under the first workload, and tells what it
    /// decided in a window of time, both ends in nanoseconds: at most 1,500 decisions, in words.
    ///
    /// ```
    /// use schedtwin::{Duration, Experiment};
    /// let experiment = Experiment::new()
    ///     .machine("pixel6")
    ///     .kernel("linux-6.12")
    ///     .workload("ui-phone")
    ///     .duration(Duration::from_ms(100));
    /// let decisions = experiment.decisions(0, [50_000_000, 60_000_000])?;
    /// assert!(decisions.iter().any(|decision| decision.words.contains("placement")));
    /// # Ok::<(), schedtwin::Error>(())
    /// ```
    pub fn decisions(&self, kernel: usize, window: [u64; 2]) -> Result<Vec<Decision>, Error> {
        let groups = self.groups()?;
        let Some(column) = groups[0].get(kernel) else {
            let message = format!("there is no kernel {kernel}: the first is 0");
            return Err(fault("kernels", &message).into());
        };
        isolated(std::iter::once(&column.scenario), &[], None, || {
            let told = timeline::decisions(column, *self.seeds.start(), window);
            Ok(told.into_iter().map(Decision::from).collect())
        })
    }

    /// Runs the first kernel with the first seed, on the first machine under the first workload, and takes all events of a
    /// name, `sched_switch` for example.
    ///
    /// ```
    /// use schedtwin::{Duration, Experiment, Field};
    /// let experiment = Experiment::new()
    ///     .machine("uniform8")
    ///     .kernel("linux-7.3")
    ///     .workload("w1")
    ///     .duration(Duration::from_ms(20));
    /// let switches = experiment.events("sched_switch")?;
    /// let names: Vec<&str> = switches.fields.iter().map(|(name, _)| name.as_str()).collect();
    /// assert_eq!(names[..4], ["prev_comm", "prev_pid", "prev_prio", "prev_state"]);
    /// assert!(matches!(&switches.fields[1].1, Field::Numbers(pids) if pids.len() == switches.len()));
    /// assert!(experiment.events("sched_swich").unwrap_err().to_string().contains("`sched_switch`"));
    /// # Ok::<(), schedtwin::Error>(())
    /// ```
    pub fn events(&self, event: &str) -> Result<Events, Error> {
        let groups = self.groups()?;
        let scenario = &groups[0][0].scenario;
        isolated(std::iter::once(scenario), &[], None, || {
            Events::of(scenario, *self.seeds.start(), event)
        })
    }

    /// Runs the first kernel with the first seed, on the first machine under the first workload, and writes what happens to a
    /// file: a trace or a record, as the ending of its name says.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let groups = self.groups()?;
        let file = path;
        let path = Some(path.to_path_buf());
        let options = match path.as_deref().and_then(Format::from_path) {
            Some(Format::Perfetto | Format::FtraceText) => {
                RunOptions { trace: path, ..RunOptions::default() }
            }
            Some(Format::Record | Format::PackedRecord) => {
                RunOptions { record: path, ..RunOptions::default() }
            }
            None => {
                let help = format!("end it in one of {}", Format::ENDINGS);
                let mut faults = Diagnostics::new();
                let message = "the name of the file does not say its format";
                faults.push_whole(&Source::new("path", ""), message, Some(help));
                return Err(faults.into());
            }
        };
        self.run_first(&groups[0][0].scenario, options, file)
    }

    /// Runs a scenario with the first seed, which writes a file.
    fn run_first(
        &self,
        scenario: &Scenario,
        options: RunOptions,
        file: &Path,
    ) -> Result<(), Error> {
        isolated(std::iter::once(scenario), &[file], None, || {
            scenario.run(*self.seeds.start(), options)?;
            Ok(())
        })
    }

    /// A page about the first machine and workload: of several kernels what `schedtwin compare --html` writes about this
    /// table, of one what `schedtwin run --html` writes about the first seed.
    pub fn page(&self, table: &Table) -> Result<String, Error> {
        let groups = self.groups()?;
        let (columns, seed) = (&groups[0], *self.seeds.start());
        let scenarios = columns.iter().map(|column| &column.scenario);
        isolated(scenarios, &[], None, || Experiment::page_of(columns, seed, table))
    }

    fn page_of(columns: &[Column], seed: u64, table: &Table) -> Result<String, Error> {
        let moments = moments(columns, seed);
        let runs = timelines(columns, &moments, seed);
        let domains: Vec<_> = columns.iter().map(|column| column.scenario.domains()).collect();
        let scenario = &columns[0].scenario;
        let names = (scenario.machine_name(), scenario.workload_name());
        if let (true, Some(comparison)) = (columns.len() > 1, table.comparison(names.0, names.1)) {
            return Ok(report::html::comparison(comparison.as_lab(), &runs, &moments, &domains));
        }
        let mut result = scenario.run(seed, RunOptions::default())?;
        many_parts::summarise(&mut result.metrics);
        let (provenance, kernel) = (provenance(scenario), columns[0].kernel.as_str());
        let told = RunReport { provenance: &provenance, kernel, seed, result: &result };
        Ok(report::html::run(&told, &runs, &moments, &domains))
    }

    /// The first run as `schedtwin run` prints it.
    pub fn run_text(&self) -> Result<String, Error> {
        let groups = self.groups()?;
        let (column, seed) = (&groups[0][0], *self.seeds.start());
        isolated(std::iter::once(&column.scenario), &[], None, || {
            let mut result = column.scenario.run(seed, RunOptions::default())?;
            many_parts::summarise(&mut result.metrics);
            let (provenance, kernel) = (provenance(&column.scenario), column.kernel.as_str());
            let told = RunReport { provenance: &provenance, kernel, seed, result: &result };
            Ok(report::run(&told, report::Format::Text, Extent::Headlines))
        })
    }

    /// Whether there is one of each part.
    pub(crate) fn check_parts(&self) -> Result<(), Diagnostics> {
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
        faults.into_result(())
    }

    /// The columns of each machine and workload.
    fn groups(&self) -> Result<Vec<Vec<Column>>, Diagnostics> {
        prepare();
        let mut faults = Diagnostics::new();
        faults.absorb(self.check_parts());
        let machines = loaded(&self.machines, &mut faults);
        let kernels = loaded(&self.kernels, &mut faults);
        let workloads = loaded(&self.workloads, &mut faults);
        let duration = self.duration.map(Duration::ns);
        let mut groups = Vec::new();
        for machine in &machines {
            for workload in &workloads {
                let mut columns = Vec::new();
                for kernel in &kernels {
                    let scenario = Scenario::named(
                        (machine.0, machine.1.clone()),
                        (kernel.0, kernel.1.clone()),
                        (workload.0, workload.1.clone()),
                        duration,
                    );
                    let kernel = kernel.0.to_string();
                    columns.extend(faults.absorb(scenario).map(|s| Column { kernel, scenario: s }));
                }
                groups.push(columns);
            }
        }
        faults.sort();
        faults.into_result(groups)
    }
}

/// What can be loaded, with its name.
fn loaded<'g, T: Input>(all: &'g [Given<T>], faults: &mut Diagnostics) -> Vec<(&'g str, T)> {
    all.iter().filter_map(|given| Some((given.name(), faults.absorb(given.load())?))).collect()
}

fn fault(what: &str, message: &str) -> Diagnostics {
    let mut faults = Diagnostics::new();
    faults.push_whole(&Source::new(what, ""), message, None);
    faults
}
