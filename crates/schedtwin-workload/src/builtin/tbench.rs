// SPDX-License-Identifier: GPL-2.0-or-later
//! `tbench`: the network half of dbench. Clients ask a file server that does nothing but answer.
//!
//! A client goes through the operations of a recorded office workload without a pause: it sends a request of the
//! size that the operation has, the server reads it and answers with as many bytes as a file server would. Both sides
//! read the length first, then the rest. One client process and one server process for each client.
//!
//! ```text
//! tbench       write 59 ─ read 4, read 15016 ...........|─ write 15059 ─ read 4, 51
//! tbench_srv   .......... read 4, read 55 ─ write 15020 ── read 4, ...
//! ```
//!
//! `Throughput` counts the bytes of the operations that read and write files.
//!
//! **Numbers.** How often each operation occurs is that of the totals which dbench prints after any run [S]: of 100,
//! 27 read, 9 write, 6 list a folder, 58 are small (create, close, query). 15000 bytes are the mean of a read or
//! write [D: throughput over operations in published totals], small requests and answers have 100 and 90 bytes, a
//! folder's list 2 KB [E]. User work 300 ns an operation on either side [E].
//!
//! Differences: the mix is a fixed round of 100 operations, not the recorded order of the loadfile.

use super::amount::Amount;
use super::benchmark::{Benchmark, Counted};
use super::options::{Values, WorkloadOption};
use super::rate::Rate;
use super::script::{Channel, End, Script, Step, nice};
use crate::{Host, MAX_THREADS};
use schedtwin_types::metric::{self, DeclaredMetric, Metric};
use schedtwin_types::{Ns, SocketKind, Work};

const NS_PER_S: Ns = 1_000_000_000;
/// User work of an operation, on either side. [E]
const USER_WORK: Work = 300;
/// Bytes that tell the length of what follows.
const HEADER: u32 = 4;

/// An operation.
struct Operation {
    /// Bytes there and back.
    sizes: [u32; 2],
    /// Bytes of a file that it reads or writes.
    payload: u64,
    /// How often in a round.
    count: u32,
}

/// A round.
const OPERATIONS: [Operation; 4] = [
    Operation { sizes: [100, 90], payload: 0, count: 58 },
    Operation { sizes: [59, 15_020], payload: 15_000, count: 27 },
    Operation { sizes: [15_059, 55], payload: 15_000, count: 9 },
    Operation { sizes: [100, 2_000], payload: 0, count: 6 },
];
/// Operations of a round.
const ROUND: u32 = 100;

const OPTIONS: &[WorkloadOption] = &[
    WorkloadOption::count(Some('c'), "clients", "", 1, (1, 2000), "how many clients"),
    WorkloadOption::count(Some('t'), "timelimit", "s", 10, (1, 3600), "how long"),
];

/// `tbench`.
#[derive(Debug)]
pub(super) struct Tbench;

impl Benchmark for Tbench {
    fn name(&self) -> &'static str {
        "tbench"
    }

    fn description(&self) -> &'static str {
        "tbench over loopback: clients of a file server that only answers; by default -c 1 (10 s)"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        OPTIONS
    }

    fn about(&self) -> &'static str {
        "tbench: send a request, receive the answer; again; tbench_srv: the other way round\n"
    }

    fn check(&self, values: &Values) -> Option<String> {
        let all = values.whole("clients") * 2;
        (all > MAX_THREADS as u64)
            .then(|| format!("{all} processes; a workload has at most {MAX_THREADS}"))
    }

    fn metrics(&self) -> &'static [&'static DeclaredMetric] {
        const THROUGHPUT: &[&DeclaredMetric] = &[&metric::TBENCH_THROUGHPUT];
        THROUGHPUT
    }

    fn duration(&self, values: &Values) -> Option<Ns> {
        Some(values.whole("timelimit") * NS_PER_S)
    }

    fn build(&self, values: &Values, host: &Host) -> Script {
        let mut script = Script::new(host.cpu_capacity.len());
        let rate = Rate::new(&mut script);
        let user = Step::Work(Amount::Fixed(USER_WORK));
        for _ in 0..values.whole("clients") {
            let channel = Channel::Sockets(SocketKind::TcpLoopback, 0);
            let [client, server] = script.channel(channel);
            let begin = script.register(0);
            let mut steps = script.thread("tbench_srv", nice(0));
            for Operation { sizes, .. } in round() {
                steps = steps.then(&receive(server, sizes[0]));
                steps = steps.then(&[user, Step::Write(server, sizes[1])]);
            }
            steps.for_ever();
            let mut steps = script.thread("tbench", nice(0));
            for Operation { sizes, payload, .. } in round() {
                steps = steps
                    .then(&[Step::Clock(begin), user, Step::Write(client, sizes[0])])
                    .then(&receive(client, sizes[1]))
                    .then(&[Step::Job(begin)])
                    .then(&rate.counts(*payload));
            }
            steps.for_ever();
        }
        script
    }

    fn results(&self, counted: &Counted) -> Vec<Metric> {
        let megabytes = Rate::of(counted).map(|bytes| bytes / 1e6);
        vec![metric::TBENCH_THROUGHPUT.value("mean", vec![], megabytes)]
    }
}

fn receive(end: End, bytes: u32) -> [Step; 2] {
    [Step::Read(end, HEADER), Step::Read(end, bytes - HEADER)]
}

/// The operations of a round, each spread evenly over it.
fn round() -> impl Iterator<Item = &'static Operation> {
    let mut due = OPERATIONS.each_ref().map(|operation| operation.count / 2);
    (0..ROUND).map(move |_| {
        for (due, operation) in due.iter_mut().zip(&OPERATIONS) {
            *due += operation.count;
        }
        let most = (0..due.len()).max_by_key(|at| due[*at]).expect("operations");
        due[most] = due[most].saturating_sub(ROUND);
        &OPERATIONS[most]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_each_operation_as_often_as_it_says() {
        let counts = OPERATIONS
            .each_ref()
            .map(|operation| round().filter(|other| other.sizes == operation.sizes).count() as u32);
        for (count, operation) in counts.iter().zip(&OPERATIONS) {
            assert!(count.abs_diff(operation.count) <= 1, "{counts:?}");
        }
        assert_eq!(counts.iter().sum::<u32>(), ROUND);
    }
}
