// SPDX-License-Identifier: GPL-2.0-or-later
//! `perf bench sched pipe`: two tasks, two pipes, four bytes there and back.
//!
//! ```text
//! first    write ─ read ............|─ write ─
//! second   ....... read ─ write ─ read .......
//! ```
//!
//! An operation is one turn of the loop: there and back. A turn is a job.
//!
//! **Numbers.** User work of a turn: 20 ns at each side [E]: a loop around two system calls.
//!
//! Kernel: tools/perf/bench/sched-pipe.c. Differences: both begin at once; non-blocking mode and cgroups of each side are
//! left out.

use super::amount::Amount;
use super::benchmark::{Benchmark, Counted};
use super::options::{Values, WorkloadOption};
use super::rate::Rate;
use super::script::{Channel, Script, Step, nice};
use crate::Host;
use schedtwin_types::Work;
use schedtwin_types::metric::{self, DeclaredMetric, Metric};

/// `sizeof(int)`.
const BYTES: u32 = 4;
/// [E]
const USER_WORK: Work = 20;

const OPTIONS: &[WorkloadOption] = &[
    WorkloadOption::count(Some('l'), "loop", "", 1_000_000, (1, 100_000_000), "how many turns"),
    WorkloadOption::flag(Some('T'), "threaded", "threads of one process, not two processes"),
];

/// `perf bench sched pipe`.
#[derive(Debug)]
pub(super) struct SchedPipe;

impl Benchmark for SchedPipe {
    fn name(&self) -> &'static str {
        "sched-pipe"
    }

    fn description(&self) -> &'static str {
        "perf bench sched pipe: two tasks that wake each other through pipes; by default -l 1000000"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        OPTIONS
    }

    fn about(&self) -> &'static str {
        "first: write to the second, read from it; second: the other way round\n"
    }

    fn metrics(&self) -> &'static [&'static DeclaredMetric] {
        const RATE: &[&DeclaredMetric] = &[&metric::TRANS_RATE];
        RATE
    }

    fn build(&self, values: &Values, host: &Host) -> Script {
        let mut script = Script::new(host.cpu_capacity.len());
        let rate = Rate::new(&mut script);
        let [there, back] = std::array::from_fn(|_| script.channel(Channel::Pipe));
        let [begin, first, second] = std::array::from_fn(|_| script.register(0));
        let loops = values.whole("loop");
        let work = Step::Work(Amount::Fixed(USER_WORK));
        let one = script.thread("sched-pipe", nice(0)).group("first");
        let one = if values.is_set("threaded") { one.of("main") } else { one };
        one.times(first, loops, |turn| {
            turn.then(&[
                Step::Clock(begin),
                work,
                Step::Write(there[1], BYTES),
                Step::Read(back[0], BYTES),
                Step::Job(begin),
            ])
            .then(&rate.counts(1))
        })
        .then(&[Step::End])
        .for_ever();
        let two = script.thread("sched-pipe", nice(0)).group("second");
        let two = if values.is_set("threaded") { two.of("main") } else { two };
        two.times(second, loops, |turn| {
            turn.then(&[work, Step::Read(there[0], BYTES), Step::Write(back[1], BYTES)])
        })
        .then(&[Step::Leave])
        .for_ever();
        script
    }

    fn results(&self, counted: &Counted) -> Vec<Metric> {
        vec![metric::TRANS_RATE.value("mean", vec![], Rate::of(counted))]
    }
}
