//! What the metrics are: one line each, for `schedtwin list metrics`.
//!
//! A test of the command holds this table against what runs print, so that no metric goes without a
//! line and no unit is told wrongly.

/// A metric: its name, its unit, and what it is in one line.
pub type Meaning = (&'static str, &'static str, &'static str);

/// Every metric, in the order in which results list them.
pub const METRICS: &[Meaning] = &[
    ("elapsed", "s", "simulated time that was measured"),
    ("warmup", "s", "simulated time before it, which is not measured"),
    ("throughput", "1/s", "jobs done in a second"),
    ("frame_duration", "ms", "from the moment a job may begin to its end"),
    ("slack", "ms", "time left when a job is done: to its deadline, the end of its period"),
    ("wu_lat", "us", "rt-app's wakeup latency: how late a thread runs after its timer"),
    ("power", "mW", "mean power, of all and of each frequency domain, package, cluster and CPU"),
    ("energy", "mJ", "the same over the measured time"),
    ("waking_latency", "us", "from sched_waking to the switch that gives the task a CPU"),
    ("wakeup_latency", "us", "from sched_wakeup to that switch: without the way to the CPU"),
    ("idle_too_deep", "%", "idle periods that ended before their state paid; of=all: of all CPUs'"),
    ("idle_too_shallow", "%", "the same in which a deeper state would have paid"),
    ("idle_residency", "%", "share of time in each idle state"),
    ("cluster_residency", "%", "share of time by the shallowest state of a cluster's CPUs"),
    ("power_domain_residency", "%", "share of time that a package or cluster is in an idle state"),
    ("freq_residency", "%", "share of time at each frequency"),
    ("freq_mean", "MHz", "mean; while=active: while executing; over=changes: of the changes"),
    ("freq_transitions", "count", "frequency changes"),
    ("freq_update_latency", "us", "from a request to the hardware running at the new frequency"),
    ("context_switches", "count", "sched_switch events"),
    ("migrations", "count", "tasks put on another CPU"),
    ("preemptions", "count", "tasks that lost their CPU though they could run on"),
    ("ticks", "count", "scheduler ticks"),
    ("ipis", "count", "interrupts from CPU to CPU, by kind"),
    ("balance_passes", "count", "load balancing passes, by what the CPU was doing"),
    ("balance_moved", "count", "tasks that load balancing moved"),
    ("overutilized", "%", "share of time in which the root domain was overutilized: no EAS"),
    ("irq_time", "%", "share of CPU time spent in interrupts"),
    ("contention", "%", "share of CPU time with two or more runnable tasks on the CPU"),
    ("utilization", "%", "share of the capacity at the highest frequencies that was used"),
    ("cpu_time", "s", "time in which CPUs, or a task's threads, executed"),
    ("temperature", "C", "of each node of the machine's heat, and of the warmest"),
    ("throttled", "%", "share of time in which heat held back a frequency domain"),
    ("jank", "%", "of a benchmark of frames: share that its own rule calls jank, also by test"),
    ("frames_over_period", "%", "the same: share of frames longer than one period in whole ms"),
    ("score", "pts", "of a benchmark: its score, also by section"),
    ("replayed_work", "%", "of a replay: share of the recorded work that was done"),
    ("replayed_sleeps", "count", "of a replay: recorded sleeps that were gone through"),
];
