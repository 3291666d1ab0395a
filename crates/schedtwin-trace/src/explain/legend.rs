// SPDX-License-Identifier: GPL-2.0-or-later
//! The legend of a listing: the meaning of its words and columns.

/// The legend.
pub const LEGEND: &str = "\
A line is: seconds since the run began, [CPU], event, details. Events with the names of Linux's tracepoints are facts. The others are
decisions, with the rule that decided and, below them, what the kernel looked at; => is what was chosen.

util, util_avg, runnable_avg, util_est, capacity, rt, dl, irq, min, perf, boost
                 1024 is a whole CPU of the fastest kind at its highest frequency; sums (util_est of many tasks, runnable_avg) may be more
placement        use: capacity that the task would leave used, %; energy delta: what the domain's energy grows by, in the energy model's units
                 (comparable among the lines of one decision only); max util: what the
                 domain's CPUs would ask its clock for at most, with headroom, boosts and clamps
pick             lag, deadline: virtual time, ns, from the queue's average on (CFS: lag from min_vruntime on); a lag above 0 is owed
                 time; of those that are eligible the earliest deadline is picked;
                 depth: levels of task groups below the root
frequency        min: what a CPU asks for at least: irq and DEADLINE bandwidth (51 is the fair server's), or the clamps' minimum; max:
                 the clamps' maximum; boost: by how much runnable_avg exceeds the larger of util_avg and util_est;
                 kHz; raw: what the utilisation asks for, table: the operating point that serves it; rate limit: no change before that time
idle             state: 0 is the shallowest; sleep length: until the next timer, as the governor was told; teo: hits: wakeups by timers,
                 intercepts: wakeups before them, each 1024 and less with age; menu: correction factor: of the time to the next timer
balance          level: of the scheduling domain, 0 is the smallest; imbalance: in the unit of what is moved (tasks, load, utilisation)
cpu_idle_miss    the state was too deep or too shallow for how long the CPU rested
chain            from what needed another frequency (need), over who asked (request) and the driver, to the clock (settled), and where the time went
task states      R runs or waits to run, S sleeps, D sleeps and takes no signal, X ends; R+ was preempted
";
