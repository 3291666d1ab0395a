// SPDX-License-Identifier: GPL-2.0-or-later
//! `periodic`: threads that work and sleep at a fixed frequency, as in studies of idle governors.
//!
//! Each of `threads` threads wakes up `frequency` times a second and works for `duty` per cent of the
//! period, counted at the highest frequency of the strongest CPU: a slower CPU takes longer. A thread that
//! is not through when its next moment comes skips it.
//!
//! ```text
//! -f 100 -d 20      |==........|==........|==........     10 ms each
//! ```
//!
//! The threads' moments are spread evenly over the period, as those of programs that were started one after
//! another; `--together` puts them all on one moment.
//!
//! Differences: the programs in such studies spin in user space in pieces of unknown size, and "very light"
//! load has no published number: the default duty is an estimate [E].

use super::amount::Amount;
use super::benchmark::Benchmark;
use super::options::{Values, WorkloadOption};
use super::script::{Grid, Script, Step};
use crate::Host;
use schedtwin_types::{Ns, SchedAttr};

const NS_PER_S: Ns = 1_000_000_000;
/// Thousandths of a per cent in one.
const DUTY_ONE: u64 = 100_000;

const OPTIONS: &[WorkloadOption] = &[
    WorkloadOption::count(Some('f'), "frequency", "Hz", 73, (1, 10_000), "how often each works"),
    WorkloadOption::count(Some('t'), "threads", "", 1, (0, 1024), "how many threads"),
    WorkloadOption::decimal(
        Some('d'),
        "duty",
        "%",
        1_000,
        (0, 100_000),
        "work a period, at the highest frequency of the strongest CPU",
    ),
    WorkloadOption::count(None, "together", "", 0, (0, 1), "1: all threads wake at one moment"),
    SECONDS,
];

/// Threads that work and sleep at a fixed frequency.
#[derive(Debug)]
pub(super) struct Periodic;

impl Benchmark for Periodic {
    fn name(&self) -> &'static str {
        "periodic"
    }

    fn description(&self) -> &'static str {
        "threads that work and sleep so many times a second; by default -f 73 -t 1 (10 s)"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        OPTIONS
    }

    fn about(&self) -> &'static str {
        "thread N: until its next moment, N/threads of a period after the first thread's; work; again\n"
    }

    fn duration(&self, values: &Values) -> Option<Ns> {
        Some(values.whole("seconds") * NS_PER_S)
    }

    fn build(&self, values: &Values, host: &Host) -> Script {
        build(values, host)
    }
}

/// No threads at all.
#[derive(Debug)]
pub(super) struct Idle;

impl Benchmark for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn description(&self) -> &'static str {
        "nothing but the kernel (10 s)"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        &[SECONDS]
    }

    fn about(&self) -> &'static str {
        "no threads\n"
    }

    fn duration(&self, values: &Values) -> Option<Ns> {
        Periodic.duration(values)
    }

    fn build(&self, _: &Values, host: &Host) -> Script {
        Script::new(host.cpu_capacity.len())
    }
}

const SECONDS: WorkloadOption =
    WorkloadOption::count(None, "seconds", "s", 10, (1, 3600), "how long");

fn build(values: &Values, host: &Host) -> Script {
    let mut script = Script::new(host.cpu_capacity.len());
    let period = NS_PER_S / values.whole("frequency");
    let threads = values.whole("threads");
    let work = period * values.thousandths("duty") / DUTY_ONE;
    for thread in 0..threads {
        let phase = if values.whole("together") == 1 { 0 } else { period * thread / threads };
        let steps = [Step::Until(Grid { period, phase }), Step::Work(Amount::Fixed(work))];
        let name = format!("periodic-{thread}");
        script
            .thread(&name, SchedAttr::default())
            .group("periodic")
            .of("periodic")
            .then(&steps)
            .for_ever();
    }
    script
}
