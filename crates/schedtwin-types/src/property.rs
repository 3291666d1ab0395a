// SPDX-License-Identifier: GPL-2.0-or-later
//! Properties that every scheduler owes its tasks, and the breach of one.
//!
//! # The idea
//!
//! A total can improve while somebody starves. So each property is an *interval* with a bound: "no runnable task waits longer
//! than 1 s". A longer interval is a breach, whether it has ended or not: what never ends counts with its age, as a lower
//! bound. Of fairness and bandwidth it is an amount of CPU time.
//!
//! # Bounds
//!
//! Linux itself breaks tighter bounds by design: a hot task waits for two balancing passes, EAS does not balance while nothing
//! is overutilized, the fair server takes 50 ms of a second from RT tasks. The bounds below lie above what those rules can
//! give, and can be set.
//!
//! ```
//! use schedtwin_types::property::{Bounds, Property};
//! let mut bounds = Bounds::default();
//! assert_eq!(bounds.of(Property::Starvation), 1_000_000_000);
//! bounds.set("starvation=250ms").unwrap();
//! assert_eq!(bounds.of(Property::Starvation), 250_000_000);
//! assert!(bounds.set("hunger=1s").unwrap_err().contains("starvation"));
//! ```
//!
//! References: Lozi et al., The Linux Scheduler: a Decade of Wasted Cores (EuroSys 2016); kernel/sched/stats.h `sched_info`
//! (`run_delay`); kernel/sched/ext.c `check_rq_for_timeouts` (the watchdog of sched_ext); drivers/cpuidle/governors.

use crate::Ns;
use crate::metric::{self, DeclaredMetric};
use std::fmt;

macro_rules! properties {
    ($($(#[doc = $means:literal])+ $variant:ident = $name:literal, $metric:ident, $bound:literal ms;)*) => {
        /// A property: an interval that must not exceed a bound.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Property {
            $($(#[doc = $means])+ $variant,)*
        }

        impl Property {
            /// All of them, the gravest first: the order in which a verdict names them.
            pub const ALL: &'static [Property] = &[$(Property::$variant),*];

            /// Its name, as `--bound` and `--property` take it.
            pub fn name(self) -> &'static str {
                match self { $(Property::$variant => $name),* }
            }

            /// The metric that counts its breaches.
            pub fn metric(self) -> &'static DeclaredMetric {
                match self { $(Property::$variant => &metric::$metric),* }
            }

            /// The bound where nothing else is said.
            pub fn default_bound(self) -> Ns {
                match self { $(Property::$variant => $bound * 1_000_000),* }
            }

            /// What it forbids, in one line.
            pub fn means(self) -> &'static str {
                match self { $(Property::$variant => concat!($($means),+).trim_ascii()),* }
            }
        }
    };
}

properties! {
    /// a runnable task waits for a CPU for longer than weights and priorities explain; time in which its cgroup is throttled does not count
    Starvation = "starvation", STARVED, 1000 ms;
    /// a thread waits for a lock that its holder does not give back before the run ends
    LockHeld = "lock-held", LOCK_HELD, 1000 ms;
    /// a fair task waits for longer than ten turns of everybody on its CPU, by slices and weights
    LatencyBound = "latency-bound", LATE, 250 ms;
    /// a task is owed CPU time by tasks of its cgroup that are queued beside it, as their weights divide it
    Fairness = "fairness", OWED, 500 ms;
    /// a cgroup is throttled in periods in which it used less than its cpu.max
    ThrottledEarly = "throttled-early", THROTTLED_EARLY, 200 ms;
    /// a cgroup uses more CPU time than its cpu.max
    Bandwidth = "bandwidth", BANDWIDTH_EXCEEDED, 20 ms;
    /// an RT or DEADLINE task waits on a CPU that runs a fair task
    PriorityInversion = "priority-inversion", PRIORITY_INVERTED, 100 ms;
    /// a task waits behind another one while a CPU that it may use is idle
    WorkConservation = "work-conservation", CPUS_WASTED, 100 ms;
    /// a clock is below what its busy CPUs need, and firmware would let it run faster
    ClockHeld = "clock-held", CLOCK_HELD, 100 ms;
    /// a clock is far above what its busy CPUs need, and the governor could lower it
    ClockAbove = "clock-above", CLOCK_ABOVE, 100 ms;
    /// a CPU stays in a shallow idle state with its tick stopped, while a deeper one would pay off
    IdleStuck = "idle-stuck", IDLE_STUCK, 100 ms;
}

impl Property {
    /// The property with this name.
    pub fn named(name: &str) -> Option<Property> {
        Property::ALL.iter().copied().find(|property| property.name() == name)
    }

    /// All names, for messages.
    pub fn names() -> String {
        let names: Vec<&str> = Property::ALL.iter().map(|property| property.name()).collect();
        names.join(", ")
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The bound of each property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds([Ns; Property::ALL.len()]);

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds(std::array::from_fn(|at| Property::ALL[at].default_bound()))
    }
}

impl Bounds {
    /// The bound of a property, ns.
    #[inline]
    pub fn of(&self, property: Property) -> Ns {
        self.0[property as usize]
    }

    /// The property cannot be judged: no interval is too long.
    pub fn lift(&mut self, property: Property) {
        self.0[property as usize] = Ns::MAX;
    }

    /// Takes `NAME=TIME`; what is wrong with it, if it is none.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let Some((name, time)) = text.split_once('=') else {
            return Err(format!("{text:?} is not PROPERTY=TIME, such as starvation=500ms"));
        };
        let property = Property::named(name.trim())
            .ok_or_else(|| format!("{name:?} is no property; there are {}", Property::names()))?;
        let bound: crate::Duration =
            time.trim().parse().map_err(|fault: String| format!("{time:?} is no time: {fault}"))?;
        if bound.ns() == 0 {
            return Err("a bound is above 0".to_string());
        }
        self.0[property as usize] = bound.ns();
        Ok(())
    }
}

/// The longest interval that broke a property, and how many did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The property.
    pub property: Property,
    /// Intervals beyond the bound.
    pub count: u64,
    /// The longest of them.
    pub longest: Ns,
    /// Whether it was still going on when the run ended: `longest` is a lower bound then.
    pub open: bool,
    /// When it began.
    pub since: Ns,
    /// Who was hurt: a thread's name, a clock domain's, or a CPU.
    pub who: String,
    /// The name of the task group (a task of the workload with all its threads) of `who`; empty: none.
    pub group: String,
    /// Where, and what ran instead: the end of a sentence.
    pub how: String,
    /// The bound.
    pub bound: Ns,
}
