// SPDX-License-Identifier: GPL-2.0-or-later
//! `netperf`: one byte there, one byte back, over the loopback device (`TCP_RR`, `UDP_RR`).
//!
//! ```text
//! netperf     send ────── recv ............|─ send ──
//! netserver   ....... recv ─ send ── recv ..........
//! ```
//!
//! Each instance is a pair of processes with a connection of its own; the server side is a process that
//! `netserver` has forked for it. A transaction is a job, so that `frame_duration` is the round trip.
//!
//! **Numbers.** User work around the two calls of a transaction: 500 ns at the client, which looks at its timer and
//! counts, 200 ns at the server [E].
//!
//! Differences: the control connection, the setting up and the measuring of CPU utilisation (`-c -C`) are left out;
//! all instances begin at once.

use super::amount::Amount;
use super::benchmark::{Benchmark, Counted};
use super::options::{Values, WorkloadOption};
use super::rate::Rate;
use super::script::{Channel, Script, Step, nice};
use crate::{Host, MAX_THREADS};
use schedtwin_types::metric::{self, DeclaredMetric, Metric};
use schedtwin_types::{Ns, SocketKind, Work};

const NS_PER_S: Ns = 1_000_000_000;
/// User work of a transaction, client and server. [E]
const USER_WORK: [Work; 2] = [500, 200];

const OPTIONS: &[WorkloadOption] = &[
    WorkloadOption {
        short: Some('t'),
        ..WorkloadOption::words(
            "test",
            &["TCP_RR", "UDP_RR"],
            "which test; TCP_RR without it, and of several the first",
        )
    },
    WorkloadOption::count(Some('l'), "testlen", "s", 10, (1, 3600), "how long"),
    WorkloadOption::count(None, "instances", "", 1, (1, 2000), "how many pairs at once"),
    WorkloadOption::count(None, "request", "bytes", 1, (1, 60_000), "the first number of -- -r"),
    WorkloadOption::count(None, "response", "bytes", 1, (1, 60_000), "the second number of -- -r"),
];

/// `netperf`.
#[derive(Debug)]
pub(super) struct Netperf;

impl Benchmark for Netperf {
    fn name(&self) -> &'static str {
        "netperf"
    }

    fn description(&self) -> &'static str {
        "netperf over loopback, requests and responses; by default --instances 1 (10 s)"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        OPTIONS
    }

    fn about(&self) -> &'static str {
        "netperf: send the request, receive the response; again; netserver: the other way round\n"
    }

    fn check(&self, values: &Values) -> Option<String> {
        let all = values.whole("instances") * 2;
        (all > MAX_THREADS as u64)
            .then(|| format!("{all} processes; a workload has at most {MAX_THREADS}"))
    }

    fn metrics(&self) -> &'static [&'static DeclaredMetric] {
        const RATE: &[&DeclaredMetric] = &[&metric::TRANS_RATE];
        RATE
    }

    fn duration(&self, values: &Values) -> Option<Ns> {
        Some(values.whole("testlen") * NS_PER_S)
    }

    fn build(&self, values: &Values, host: &Host) -> Script {
        let mut script = Script::new(host.cpu_capacity.len());
        let rate = Rate::new(&mut script);
        let kind = match values.words("test").first() {
            Some(1) => SocketKind::UdpLoopback,
            _ => SocketKind::TcpLoopback,
        };
        let bytes = ["request", "response"].map(|long| values.whole(long) as u32);
        for _ in 0..values.whole("instances") {
            let [client, server] = script.channel(Channel::Sockets(kind, 0));
            let begin = script.register(0);
            let [client_work, server_work] = USER_WORK.map(|work| Step::Work(Amount::Fixed(work)));
            script
                .thread("netserver", nice(0))
                .then(&[Step::Read(server, bytes[0]), server_work, Step::Write(server, bytes[1])])
                .for_ever();
            script
                .thread("netperf", nice(0))
                .then(&[
                    Step::Clock(begin),
                    Step::Write(client, bytes[0]),
                    Step::Read(client, bytes[1]),
                    client_work,
                ])
                .then(&[Step::Job(begin)])
                .then(&rate.counts(1))
                .for_ever();
        }
        script
    }

    fn results(&self, counted: &Counted) -> Vec<Metric> {
        vec![metric::TRANS_RATE.value("mean", vec![], Rate::of(counted))]
    }
}
