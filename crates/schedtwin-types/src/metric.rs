// SPDX-License-Identifier: GPL-2.0-or-later
//! What can be measured: one declaration per metric, and the value that a run gives it.
//!
//! A metric is declared once, in the list below: its name, unit, direction, section, stats, labels, which of its rows
//! short tables show, and what it means (its documentation is the text of `schedtwin list metrics`). Everything that
//! prints, selects or judges metrics asks the declaration. A value can be made from a declaration only
//! ([`DeclaredMetric::value`]), so no run measures what is not declared.
//!
//! To add a metric: declare it here, and measure it where its inputs are (the meter, a benchmark, the heat).
//!
//! ```
//! use schedtwin_types::metric::{self, Better};
//! let p99 = metric::WAKEUP_LATENCY.value("p99", vec![("task", "ui".into())], Some(120.0));
//! assert_eq!((p99.name, p99.unit, p99.better), ("wakeup_latency", "us", Better::Lower));
//! assert_eq!(metric::declared("energy").unwrap().stats, ["sum"]);
//! ```

use Better::{Higher, Lower, Neutral};
use Section::{Frequency, Idle, Latency, Performance, Power, Scheduling};

/// Whether more or less of a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither: it describes.
    Neutral,
}

impl Better {
    /// The word that the JSON carries; `None` for neutral metrics.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Better::Higher => Some("higher"),
            Better::Lower => Some("lower"),
            Better::Neutral => None,
        }
    }
}

/// What a group of metrics is about. Tables set sections apart, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// How fast the work was done.
    Performance,
    /// How long tasks waited.
    Latency,
    /// Power, energy and heat.
    Power,
    /// What idle CPUs did.
    Idle,
    /// Frequencies.
    Frequency,
    /// What the scheduler did.
    Scheduling,
}

impl Section {
    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Performance => "Performance",
            Latency => "Latency",
            Power => "Power and heat",
            Idle => "Idle",
            Frequency => "Frequency",
            Scheduling => "Scheduling",
        }
    }
}

/// Labels of a value, in a fixed order, e.g. `("task", "ui")`.
pub type Labels = Vec<(&'static str, String)>;

/// Names of stats, e.g. `mean`.
type Stats = &'static [&'static str];

/// What a value stands for: one thing, which its labels name, or many parts of the machine that differ in one label.
///
/// Who adds up values takes those of [`Kind::One`]; the others repeat them.
///
/// ```
/// use schedtwin_types::metric::{Kind, Parts};
/// let kind = Kind::Lowest(Parts { over: "domain", of: 160 });
/// assert_eq!(kind.to_string(), "lowest of 160 domains");
/// assert_eq!((kind.word(), Kind::parse("lowest of 160 domains")), ("lowest", Some(kind)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// What the labels name: the whole, a task, a part.
    #[default]
    One,
    /// The mean of the parts.
    Mean(Parts),
    /// The least of the parts' values.
    Lowest(Parts),
    /// The largest of the parts' values.
    Highest(Parts),
}

/// Many parts of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parts {
    /// The label in which the parts differ: `domain`, `cluster` or `package`.
    pub over: &'static str,
    /// How many there are.
    pub of: u32,
}

impl Parts {
    /// Labels whose values are parts of a machine.
    pub const LABELS: [&'static str; 3] = ["domain", "cluster", "package"];
}

impl Kind {
    /// The words of all kinds, as files have them.
    pub const WORDS: [&'static str; 4] = ["one", "mean", "lowest", "highest"];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Kind::One => "one",
            Kind::Mean(_) => "mean",
            Kind::Lowest(_) => "lowest",
            Kind::Highest(_) => "highest",
        }
    }

    /// The parts that it sums up; `None`: it stands for one thing.
    pub fn parts(self) -> Option<Parts> {
        match self {
            Kind::One => None,
            Kind::Mean(parts) | Kind::Lowest(parts) | Kind::Highest(parts) => Some(parts),
        }
    }

    /// The converse of `to_string`; `None`: it is no kind.
    pub fn parse(text: &str) -> Option<Kind> {
        if text == "one" {
            return Some(Kind::One);
        }
        let (word, parts) = text.split_once(" of ")?;
        let (of, over) = parts.split_once(' ')?;
        let over = Parts::LABELS.into_iter().find(|label| over.strip_suffix('s') == Some(label))?;
        let parts = Parts { over, of: of.parse().ok()? };
        let all = [Kind::Mean(parts), Kind::Lowest(parts), Kind::Highest(parts)];
        all.into_iter().find(|kind| kind.word() == word)
    }
}

/// `one`, or `mean of 160 domains`.
impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.parts() {
            None => f.write_str(self.word()),
            Some(Parts { over, of }) => write!(f, "{} of {of} {over}s", self.word()),
        }
    }
}

/// One measured value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metric {
    /// What, e.g. `wakeup_latency`. Names are stable.
    pub name: &'static str,
    /// Unit, e.g. `us`.
    pub unit: &'static str,
    /// `sum`, `mean`, `gmean`, `min`, `max`, `p50`, `p90`, `p95`, `p99`, `p99.9`, ...
    pub stat: &'static str,
    /// What it is restricted to; none: the whole machine and workload.
    pub labels: Labels,
    /// Whether it is the value of one thing, or sums up many.
    pub kind: Kind,
    /// The value; `None` where it is undefined (no samples).
    pub value: Option<f64>,
    /// Which direction is better.
    pub better: Better,
}

/// Which stats of a metric a table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Of the whole machine.
    pub whole: Stats,
    /// Of its parts: clusters, frequency domains, packages.
    pub parts: Stats,
}

/// No row.
const NONE: Rows = Rows { whole: &[], parts: &[] };

/// The declaration of a metric.
#[derive(Debug, PartialEq, Eq)]
pub struct DeclaredMetric {
    /// Its stable name.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// Where tables show it.
    pub section: Section,
    /// All stats that it may have.
    pub stats: Stats,
    /// All sets of label keys that it may have, each in the order of the values; the empty one is the whole.
    pub labels: &'static [&'static [&'static str]],
    /// Its rows in the default table: what a reader of a cover letter needs.
    pub headline: Rows,
    /// Its rows in the longer table, besides the headlines.
    pub more: Rows,
    /// Whether the search for a precision waits for its total.
    pub primary: bool,
    /// It tells why, and not how well: no verdict is on it.
    pub side: bool,
    /// Which runs measure it; `None`: all.
    pub only: Option<&'static str>,
    /// What it is, in one line.
    pub means: &'static str,
}

/// Stats of a metric of many samples.
const DISTRIBUTION: Stats = &["mean", "p50", "p90", "p95", "p99", "p99.9", "max"];
const MEAN: Stats = &["mean"];
const MEAN_MAX: Stats = &["mean", "max"];
const SUM: Stats = &["sum"];
/// The labels of the whole machine and workload.
const WHOLE: &[&str] = &[];

/// A mean of the whole that no short table shows: the beginning of every declaration.
const fn metric(
    name: &'static str,
    unit: &'static str,
    better: Better,
    section: Section,
) -> DeclaredMetric {
    DeclaredMetric {
        name,
        unit,
        better,
        section,
        stats: MEAN,
        labels: &[WHOLE],
        headline: NONE,
        more: NONE,
        primary: false,
        side: false,
        only: None,
        means: "",
    }
}

impl DeclaredMetric {
    const fn stats(mut self, stats: Stats) -> Self {
        self.stats = stats;
        self
    }

    const fn labels(mut self, labels: &'static [&'static [&'static str]]) -> Self {
        self.labels = labels;
        self
    }

    const fn headline(mut self, whole: Stats, parts: Stats) -> Self {
        self.headline = Rows { whole, parts };
        self
    }

    const fn more(mut self, whole: Stats, parts: Stats) -> Self {
        self.more = Rows { whole, parts };
        self
    }

    const fn primary(mut self) -> Self {
        self.primary = true;
        self
    }

    const fn side(mut self) -> Self {
        self.side = true;
        self
    }

    const fn only(mut self, runs: &'static str) -> Self {
        self.only = Some(runs);
        self
    }

    const fn means(mut self, means: &'static str) -> Self {
        self.means = means;
        self
    }

    /// Whether a value of that stat grows with the time that is measured, as energy and counts do: runs of different length
    /// are compared per second.
    ///
    /// ```
    /// use schedtwin_types::metric;
    /// assert!(metric::ENERGY.grows_with_time("sum") && metric::RUN_DELAY.grows_with_time("sum"));
    /// assert!(!metric::POWER.grows_with_time("mean") && !metric::STARVED.grows_with_time("sum"));
    /// ```
    pub fn grows_with_time(&self, stat: &str) -> bool {
        let a_breach = crate::property::Property::ALL.iter().any(|p| p.metric().name == self.name);
        stat == "sum" && self.section != Performance && !a_breach
    }

    /// Whether a value may be below zero: time left before a deadline, and temperatures.
    pub fn may_be_negative(&self) -> bool {
        self.name == SLACK.name || self.unit == TEMPERATURE.unit
    }

    /// A value of it.
    ///
    /// # Panics
    /// If the stat or the labels are not declared.
    pub fn value(&self, stat: &'static str, labels: Labels, value: Option<f64>) -> Metric {
        let DeclaredMetric { name, unit, better, .. } = *self;
        assert!(self.stats.contains(&stat), "{name} declares no stat {stat}");
        let keys = || labels.iter().map(|(key, _)| *key);
        let known = self.labels.iter().any(|set| set.iter().copied().eq(keys()));
        assert!(known, "{name} declares no labels {:?}", keys().collect::<Vec<_>>());
        Metric { name, unit, stat, labels, kind: Kind::One, value, better }
    }

    /// A value that another process has measured; `None`: the metric declares no such stat, or no such label.
    pub fn read(
        &self,
        stat: &str,
        labels: Vec<(String, String)>,
        kind: Kind,
        value: Option<f64>,
    ) -> Option<Metric> {
        let DeclaredMetric { name, unit, better, .. } = *self;
        let stat = self.stats.iter().find(|known| **known == stat)?;
        let keys = || self.labels.iter().flat_map(|set| set.iter());
        let label = |(key, text)| Some((*keys().find(|known| **known == key)?, text));
        let labels = labels.into_iter().map(label).collect::<Option<Labels>>()?;
        Some(Metric { name, unit, stat, labels, kind, value, better })
    }
}

impl Metric {
    /// Whether it is the value of the whole machine and workload.
    pub fn is_whole(&self) -> bool {
        self.labels.is_empty() && self.kind == Kind::One
    }
}

/// The declaration of the metric with this name.
pub fn declared(name: &str) -> Option<&'static DeclaredMetric> {
    METRICS.iter().copied().find(|metric| metric.name == name)
}

macro_rules! metrics {
    ($($(#[doc = $means:literal])+ $constant:ident = $declaration:expr;)*) => {
        $($(#[doc = $means])+
        pub static $constant: DeclaredMetric = $declaration.means(concat!($($means),+).trim_ascii());)*

        /// Every metric, in the order in which runs list them.
        pub static METRICS: &[&DeclaredMetric] = &[$(&$constant),*];
    };
}

metrics! {
    /// simulated time that was measured
    // Neutral: less is better where the work is fixed, but most workloads last as long as their file says.
    ELAPSED = metric("elapsed", "s", Neutral, Performance).stats(SUM).more(SUM, &[]).primary();
    /// simulated time before the measured time (warm-up)
    WARMUP = metric("warmup", "s", Neutral, Performance).stats(SUM);
    /// jobs that ended, per second
    THROUGHPUT = metric("throughput", "1/s", Higher, Performance)
        .labels(&[WHOLE, &["task"]])
        .headline(MEAN, &[])
        .primary();
    /// time from a job's release to its end; task=ui or the like: an app's own frames
    FRAME_DURATION = metric("frame_duration", "ms", Lower, Performance)
        .stats(DISTRIBUTION)
        .labels(&[WHOLE, &["task"]])
        .headline(&["mean", "p99"], &[])
        .more(&["p90", "max"], &[])
        .only("all but replays of a trace")
        .primary();
    /// time from the end of a recorded sleep to the beginning of the next
    JOB_DURATION = metric("job_duration", "ms", Lower, Performance)
        .stats(DISTRIBUTION)
        .labels(&[WHOLE, &["task"]])
        .headline(&["mean", "p99"], &[])
        .more(&["p90", "max"], &[])
        .only("replays of a trace");
    /// share of jobs that end after their period (slack below zero)
    MISSED_PERIODS = metric("missed_periods", "%", Lower, Performance)
        .labels(&[WHOLE, &["task"]])
        .headline(MEAN, &[]);
    /// time from a job's end to its deadline, the end of its period
    SLACK = metric("slack", "ms", Higher, Performance)
        .stats(&["mean", "min"])
        .labels(&[WHOLE, &["task"]])
        .more(&["mean", "min"], &[]);
    /// rt-app's wakeup latency: how late a thread runs after its timer
    WU_LAT = metric("wu_lat", "us", Lower, Latency)
        .stats(DISTRIBUTION)
        .labels(&[WHOLE, &["task"]]);
    /// mean power, of all and of each frequency domain, package, cluster and CPU
    POWER = metric("power", "mW", Lower, Power)
        .labels(&[WHOLE, &["domain"], &["cluster"], &["package"], &["cpu"]])
        .headline(MEAN, MEAN)
        .more(MEAN, MEAN)
        .primary();
    /// energy over the measured time, with the labels of power
    ENERGY = metric("energy", "mJ", Lower, Power)
        .stats(SUM)
        .labels(&[WHOLE, &["domain"], &["cluster"], &["package"], &["cpu"]])
        .headline(SUM, &[])
        .primary();
    /// time from sched_waking to the switch to the task
    WAKING_LATENCY = metric("waking_latency", "us", Lower, Latency)
        .stats(DISTRIBUTION)
        .labels(&[WHOLE, &["task"], &["cluster"], &["source"]]);
    /// time from sched_wakeup to the switch to the task, so without a remote wakeup's way
    WAKEUP_LATENCY = metric("wakeup_latency", "us", Lower, Latency)
        .stats(DISTRIBUTION)
        .labels(&[WHOLE, &["task"], &["cluster"], &["source"]])
        .headline(&["mean", "p99"], &[])
        .more(&["max"], &["p99"]);
    /// runnable time without a CPU, preempted time included (run_delay of schedstat), all tasks
    RUN_DELAY = metric("run_delay", "ms", Lower, Latency)
        .stats(&["sum", "max"])
        .labels(&[WHOLE, &["task"], &["class"], &["group"], &["cpu"]])
        .more(&["max"], &[]);
    /// share of time with a task that waits for a CPU, as PSI's cpu "some" in /proc/pressure
    PSI_CPU_SOME = metric("psi_cpu_some", "%", Lower, Latency);
    /// jobs that had begun and were not done at the end
    OPEN_JOBS = metric("open_jobs", "count", Neutral, Performance)
        .stats(SUM)
        .labels(&[WHOLE, &["task"]]);
    /// property starvation: waits for a CPU beyond its bound, also those that never ended
    STARVED = metric("starved", "count", Lower, Latency)
        .stats(SUM)
        .labels(&[WHOLE, &["task"]]);
    /// property lock-held: threads that wait at the end for a lock that was not given back
    LOCK_HELD = metric("lock_held", "count", Lower, Latency).stats(SUM);
    /// property latency-bound: waits beyond its bound that slices and weights do not explain
    LATE = metric("late", "count", Lower, Latency).stats(SUM);
    /// property throttled-early: cgroups throttled for long with usage below their cpu.max
    THROTTLED_EARLY = metric("throttled_early", "count", Lower, Scheduling).stats(SUM);
    /// property bandwidth: cgroups that used more than their cpu.max, beyond its bound
    BANDWIDTH_EXCEEDED = metric("bandwidth_exceeded", "count", Lower, Scheduling).stats(SUM);
    /// property fairness: tasks that were owed CPU time by those beside them, beyond its bound
    OWED = metric("owed", "count", Lower, Scheduling).stats(SUM);
    /// property priority-inversion: RT or DEADLINE tasks that waited while a fair one ran
    PRIORITY_INVERTED = metric("priority_inverted", "count", Lower, Latency).stats(SUM);
    /// property work-conservation: idle CPUs beside a queue, beyond its bound
    CPUS_WASTED = metric("cpus_wasted", "count", Lower, Scheduling).stats(SUM);
    /// longest time that a task waited behind another one beside an idle CPU that it may use
    WASTED_CPU_TIME = metric("wasted_cpu_time", "ms", Lower, Scheduling).stats(&["sum", "max"]);
    /// property clock-held: times at which a clock stayed below the need, beyond its bound
    CLOCK_HELD = metric("clock_held", "count", Lower, Frequency).stats(SUM);
    /// property clock-above: times at which a clock stayed far above the need of busy CPUs
    CLOCK_ABOVE = metric("clock_above", "count", Lower, Frequency).stats(SUM);
    /// property idle-stuck: shallow idle periods with a stopped tick, beyond its bound
    IDLE_STUCK = metric("idle_stuck", "count", Lower, Idle).stats(SUM);
    /// share of time that CPUs were idle while a task that slept there waited for I/O
    IOWAIT = metric("iowait", "%", Neutral, Idle).more(MEAN, &[]).only("workloads with block I/O");
    /// share of idle periods that ended before their state paid off; of=all: of those of all CPUs
    IDLE_TOO_DEEP = metric("idle_too_deep", "%", Lower, Idle)
        .labels(&[WHOLE, &["cluster"], &["cluster", "of"]])
        .headline(MEAN, &[])
        .side();
    /// share of idle periods in which a deeper state would have paid off; of=all as above
    IDLE_TOO_SHALLOW = metric("idle_too_shallow", "%", Lower, Idle)
        .labels(&[WHOLE, &["cluster"], &["cluster", "of"]])
        .headline(MEAN, &[])
        .side();
    /// share of time in each idle state
    IDLE_RESIDENCY = metric("idle_residency", "%", Neutral, Idle)
        .labels(&[&["cluster", "state"]])
        .more(MEAN, MEAN);
    /// share of time in each state of a cluster: the shallowest state of its CPUs
    CLUSTER_RESIDENCY = metric("cluster_residency", "%", Neutral, Idle)
        .labels(&[&["cluster", "state"]]);
    /// share of time that a package or cluster is in an idle state
    POWER_DOMAIN_RESIDENCY = metric("power_domain_residency", "%", Neutral, Idle)
        .labels(&[&["cluster", "state"], &["package", "state"]])
        .only("machines with power domains");
    /// share of time at each frequency
    FREQ_RESIDENCY = metric("freq_residency", "%", Neutral, Frequency)
        .labels(&[&["domain", "khz"]]);
    /// mean frequency; while=active: while CPUs execute; over=changes: mean over the changes
    FREQ_MEAN = metric("freq_mean", "MHz", Neutral, Frequency)
        .labels(&[&["domain"], &["domain", "while"], &["domain", "over"]])
        .more(&[], MEAN);
    /// frequency changes
    FREQ_TRANSITIONS = metric("freq_transitions", "count", Neutral, Frequency)
        .stats(SUM)
        .labels(&[WHOLE, &["domain"]])
        .more(SUM, &[]);
    /// time from a change of utilisation to the settled frequency that it led to
    FREQ_UPDATE_LATENCY = metric("freq_update_latency", "us", Lower, Frequency)
        .stats(DISTRIBUTION)
        .labels(&[WHOLE, &["domain"]])
        .more(MEAN, &[]);
    /// schedutil's calls since boot, by their result
    FREQ_REQUESTS = metric("freq_requests", "count", Neutral, Frequency)
        .stats(SUM)
        .labels(&[&["outcome"], &["domain", "outcome"]]);
    /// interrupts that make another CPU change its clock; kind=saved: it switches tasks anyway
    FREQ_INTERRUPTS = metric("freq_interrupts", "count", Neutral, Frequency)
        .stats(SUM)
        .labels(&[&["kind"]]);
    /// time in which tasks stood still because their clock changed, summed over CPUs
    FREQ_STALL_TIME = metric("freq_stall_time", "ms", Lower, Frequency)
        .stats(SUM)
        .labels(&[WHOLE, &["domain"]])
        .only("machines with stall_us");
    /// time from a remote change of a busy CPU's utilisation to schedutil's next decision
    REMOTE_UPDATE_LATENCY = metric("remote_update_latency", "us", Lower, Frequency)
        .stats(&["mean", "max"])
        .labels(&[WHOLE, &["domain"]]);
    /// time from the need for another frequency to the request for it; to=less: a lower one
    NEED_TO_REQUEST = metric("need_to_request", "us", Lower, Frequency)
        .stats(DISTRIBUTION)
        .labels(&[WHOLE, &["domain"], &["to"], &["domain", "to"]])
        .more(MEAN, &[]);
    /// time from the governor's request to the clock at the needed frequency
    REQUEST_TO_SETTLED = metric("request_to_settled", "us", Lower, Frequency)
        .stats(DISTRIBUTION)
        .labels(&[WHOLE, &["domain"], &["to"], &["domain", "to"]]);
    /// time from the need for another frequency to that clock: the sum of the two above
    NEED_TO_SETTLED = metric("need_to_settled", "us", Lower, Frequency)
        .stats(DISTRIBUTION)
        .labels(&[WHOLE, &["domain"], &["to"], &["domain", "to"]])
        .more(&["mean", "p99"], &[]);
    /// share of needs for another frequency that ended before a request, or whose request ended
    NEEDS_PASSED = metric("needs_passed", "%", Neutral, Frequency)
        .labels(&[WHOLE, &["domain"], &["to"], &["domain", "to"]]);
    /// share of active time at a lower frequency than the CPU needed; of=work: of the work
    UNDER_PROVISIONED = metric("under_provisioned", "%", Lower, Frequency)
        .labels(&[WHOLE, &["of"], &["cluster"], &["cluster", "of"]])
        .more(MEAN, &[]);
    /// share of active time at a higher frequency than the CPU needed; of=work: of the work
    OVER_PROVISIONED = metric("over_provisioned", "%", Lower, Frequency)
        .labels(&[WHOLE, &["of"], &["cluster"], &["cluster", "of"]])
        .more(MEAN, &[]);
    /// sched_switch events
    CONTEXT_SWITCHES = metric("context_switches", "count", Neutral, Scheduling)
        .stats(SUM)
        .labels(&[WHOLE, &["task"]])
        .more(SUM, &[]);
    /// tasks put on another CPU
    MIGRATIONS = metric("migrations", "count", Neutral, Scheduling)
        .stats(SUM)
        .labels(&[WHOLE, &["task"]])
        .headline(SUM, &[]);
    /// preemptions: tasks that lost their CPU while runnable
    PREEMPTIONS = metric("preemptions", "count", Neutral, Scheduling)
        .stats(SUM)
        .labels(&[WHOLE, &["task"]])
        .more(SUM, &[]);
    /// jobs of SCHED_DEADLINE threads that ended later than the thread's deadline
    DEADLINE_MISSES = metric("deadline_misses", "count", Lower, Scheduling)
        .stats(SUM)
        .labels(&[WHOLE, &["task"]])
        .more(SUM, &[])
        .only("workloads with SCHED_DEADLINE");
    /// times at which a SCHED_DEADLINE thread waited for its next period, its runtime used up
    DL_THROTTLES = metric("dl_throttles", "count", Lower, Scheduling)
        .stats(SUM)
        .labels(&[WHOLE, &["task"]])
        .only("workloads with SCHED_DEADLINE");
    /// scheduler ticks
    TICKS = metric("ticks", "count", Neutral, Scheduling).stats(SUM);
    /// interrupts from CPU to CPU, by kind
    IPIS = metric("ipis", "count", Neutral, Scheduling).stats(SUM).labels(&[WHOLE, &["kind"]]);
    /// load balancing passes, by the CPU's state: busy, idle, newly idle
    BALANCE_PASSES = metric("balance_passes", "count", Neutral, Scheduling)
        .stats(SUM)
        .labels(&[WHOLE, &["idle"]]);
    /// tasks that load balancing moved
    BALANCE_MOVED = metric("balance_moved", "count", Neutral, Scheduling).stats(SUM);
    /// share of time in which the root domain was overutilized: no EAS
    OVERUTILIZED = metric("overutilized", "%", Neutral, Scheduling).more(MEAN, &[]);
    /// share of CPU time spent in interrupts
    IRQ_TIME = metric("irq_time", "%", Lower, Scheduling)
        .labels(&[WHOLE, &["cluster"]])
        .more(MEAN, &[]);
    /// share of CPU time in which tasks ran, by mode: user, or system with interrupts
    CPU_USAGE = metric("cpu_usage", "%", Neutral, Scheduling).labels(&[&["mode"]]);
    /// share of CPU time in which kernel paths wait for others' cache lines or a queue's lock
    LINE_WAIT = metric("line_wait", "%", Lower, Scheduling)
        .labels(&[WHOLE, &["lines"]])
        .more(MEAN, MEAN)
        .only("machines with overlap_permille in [distance]");
    /// share of CPU time with two or more runnable tasks on the CPU
    CONTENTION = metric("contention", "%", Lower, Scheduling)
        .labels(&[WHOLE, &["cluster"]])
        .more(MEAN, MEAN);
    /// share of the capacity at the highest frequencies that was used
    UTILIZATION = metric("utilization", "%", Neutral, Scheduling)
        .labels(&[WHOLE, &["cluster"]])
        .more(MEAN, &[]);
    /// time in which CPUs, a task's threads or a cgroup (usage_usec) executed; cpu=N: of replays
    CPU_TIME = metric("cpu_time", "s", Neutral, Scheduling)
        .stats(SUM)
        .labels(&[WHOLE, &["task"], &["group"], &["cluster"], &["cpu"]]);
    /// sched_ext: tasks in a dispatch queue; `local` and `global`: those of all CPUs and nodes
    SCX_DSQ_DEPTH = metric("scx_dsq_depth", "count", Neutral, Scheduling)
        .stats(MEAN_MAX)
        .labels(&[&["dsq"]])
        .only("schedulers of sched_ext");
    /// sched_ext: how long tasks were in a dispatch queue
    SCX_DSQ_WAIT = metric("scx_dsq_wait", "us", Lower, Scheduling)
        .stats(MEAN_MAX)
        .labels(&[&["dsq"]])
        .only("schedulers of sched_ext");
    /// sched_ext: dispatches by path (docs/sched-ext.md)
    SCX_DISPATCHES = metric("scx_dispatches", "count", Neutral, Scheduling)
        .stats(SUM)
        .labels(&[&["path"]])
        .only("schedulers of sched_ext");
    /// sched_ext: calls of the scheduler
    SCX_OPS = metric("scx_ops", "count", Neutral, Scheduling)
        .stats(SUM)
        .only("schedulers of sched_ext");
    /// sched_ext: kicks that made a CPU reschedule
    SCX_KICKS = metric("scx_kicks", "count", Neutral, Scheduling)
        .stats(SUM)
        .only("schedulers of sched_ext");
    /// sched_ext: tasks moved to another CPU's local DSQ
    SCX_MIGRATIONS = metric("scx_migrations", "count", Lower, Scheduling)
        .stats(SUM)
        .only("schedulers of sched_ext");
    /// sched_ext: 1 if the scheduler was unloaded with an error
    SCX_ERRORS = metric("scx_errors", "count", Lower, Scheduling)
        .stats(SUM)
        .only("schedulers of sched_ext");
    /// task groups with cpu.max: periods (nr_periods of cpu.stat)
    NR_PERIODS = metric("nr_periods", "count", Neutral, Scheduling)
        .stats(SUM)
        .labels(&[&["group"]])
        .only("workloads with cpu.max");
    /// task groups with cpu.max: periods at whose end the group was throttled (nr_throttled)
    NR_THROTTLED = metric("nr_throttled", "count", Lower, Scheduling)
        .stats(SUM)
        .labels(&[&["group"]])
        .more(&[], SUM)
        .only("workloads with cpu.max");
    /// task groups with cpu.max: time in which queues were throttled, summed over CPUs
    THROTTLED_USEC = metric("throttled_usec", "us", Lower, Scheduling)
        .stats(SUM)
        .labels(&[&["group"]])
        .more(&[], SUM)
        .only("workloads with cpu.max");
    /// frame benchmarks: share of frames that the benchmark's own rule calls jank, also by test
    JANK = metric("jank", "%", Lower, Performance)
        .labels(&[WHOLE, &["test"]])
        .headline(MEAN, &[])
        .only("benchmarks of frames");
    /// frame benchmarks: share of frames longer than one period in whole ms
    FRAMES_OVER_PERIOD = metric("frames_over_period", "%", Lower, Performance)
        .labels(&[WHOLE, &["test"]])
        .more(MEAN, &[])
        .only("benchmarks of frames");
    /// benchmarks with a score: the score, also by section
    SCORE = metric("score", "pts", Higher, Performance)
        .stats(&["gmean"])
        .labels(&[WHOLE, &["section"]])
        .headline(&["gmean"], &[])
        .more(&[], &["gmean"])
        .only("benchmarks that have a score")
        .primary();
    /// messaging and hackbench: their "Time:", from the start signal to the last thread's end
    TIME = metric("time", "s", Lower, Performance)
        .stats(SUM)
        .headline(SUM, &[])
        .only("messaging and hackbench")
        .primary();
    /// schbench: percentiles of wakeup latencies and of requests, named as schbench prints them
    SCHBENCH = metric("schbench", "us", Lower, Latency)
        .stats(&["percentile"])
        .labels(&[&["of", "nth"]])
        .headline(&[], &["percentile"])
        .only("schbench");
    /// schbench: requests per second, its "average rps"
    AVERAGE_RPS = metric("average_rps", "1/s", Higher, Performance)
        .headline(MEAN, &[])
        .only("schbench")
        .primary();
    /// netperf: transactions per second, of all instances; sched-pipe: operations
    TRANS_RATE = metric("trans_rate", "1/s", Higher, Performance)
        .headline(MEAN, &[])
        .only("netperf, sched-pipe")
        .primary();
    /// tbench: its "Throughput", summed over clients
    TBENCH_THROUGHPUT = metric("tbench_throughput", "MB/s", Higher, Performance)
        .headline(MEAN, &[])
        .only("tbench")
        .primary();
    /// CPU time per completed request, by mode: user, or system with interrupts
    CPU_TIME_PER_REQUEST = metric("cpu_time_per_request", "ms", Lower, Performance)
        .labels(&[WHOLE, &["mode"]])
        .headline(MEAN, &[])
        .only("workloads whose jobs are requests");
    /// temperature of each heat node, and of the warmest one
    TEMPERATURE = metric("temperature", "C", Lower, Power)
        .stats(&["mean", "max"])
        .labels(&[WHOLE, &["node"]])
        .headline(&["max"], &[])
        .more(&[], &["max"])
        .only("machines whose heat is modelled");
    /// share of time in which a thermal limit held a frequency domain back
    THROTTLED = metric("throttled", "%", Lower, Power)
        .labels(&[&["domain"]])
        .headline(&[], MEAN)
        .only("machines whose heat is modelled");
    /// share of time in which a power limit held a clock below the requested frequency
    POWER_LIMITED = metric("power_limited", "%", Lower, Power)
        .labels(&[&["domain"]])
        .headline(&[], MEAN)
        .only("machines with limits of power");
    /// replays: share of the recorded work that was done
    REPLAYED_WORK = metric("replayed_work", "%", Higher, Performance)
        .stats(&["share"])
        .headline(&["share"], &[])
        .only("replays of a trace");
    /// replays: recorded sleeps that the replay had, too
    REPLAYED_SLEEPS = metric("replayed_sleeps", "count", Neutral, Performance)
        .stats(SUM)
        .only("replays of a trace");
    /// of a replay: recorded sleeps passed over, as what ends them came before; also by thread
    REPLAYED_EARLY_WAKEUPS = metric("replayed_early_wakeups", "count", Neutral, Performance)
        .stats(SUM)
        .labels(&[&[], &["task"]])
        .only("replays of a trace");
    /// of a replay: from the beginning of a frame's slice to its end, by the slice of atrace
    REPLAYED_FRAME_DURATION = metric("replayed_frame_duration", "ms", Lower, Performance)
        .stats(&["p50", "p90", "p99"])
        .labels(&[&["slice"]])
        .headline(&[], &["p90"])
        .more(&[], &["p50", "p99"])
        .only("replays of a trace");
    /// of a replay: frames that take longer than the recorded time from one to the next
    REPLAYED_JANK = metric("replayed_jank", "%", Lower, Performance)
        .stats(&["share"])
        .labels(&[&["slice"]])
        .headline(&[], &["share"])
        .only("replays of a trace");
    /// replays: CPU time that a CPU of capacity 1024 at its highest frequency would need
    WORK = metric("work", "s", Neutral, Performance).stats(SUM).only("replays of a trace");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_agree_with_themselves() {
        for (at, metric) in METRICS.iter().enumerate() {
            let name = metric.name;
            assert_eq!(declared(name), Some(*metric), "{name} is declared twice");
            assert!(METRICS[..at].iter().all(|other| other.means != metric.means), "{name}");
            assert!(!metric.means.is_empty() && metric.means.len() <= 90, "{name}");
            assert!(!metric.unit.is_empty() && !metric.labels.is_empty(), "{name}");
            for rows in [metric.headline, metric.more] {
                for stat in rows.whole.iter().chain(rows.parts) {
                    assert!(metric.stats.contains(stat), "{name} shows a stat it has not: {stat}");
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "energy declares no stat p99")]
    fn an_undeclared_stat_is_a_bug() {
        let _ = ENERGY.value("p99", vec![], None);
    }

    #[test]
    #[should_panic(expected = "energy declares no labels [\"task\"]")]
    fn undeclared_labels_are_a_bug() {
        let _ = ENERGY.value("sum", vec![("task", "ui".into())], None);
    }
}
