// SPDX-License-Identifier: GPL-2.0-or-later
//! Users before Java machines: none of their requests is lost or doubled, and what a request costs adds up.

use crate::scenarios::{run, scenario};
use schedtwin_engine::result::RunResult;

fn value(result: &RunResult, name: &str, stat: &str, label: Option<&str>) -> f64 {
    let found = result.metrics.iter().find(|metric| {
        let own = metric.labels.first().map(|(_, value)| value.as_str());
        metric.name == name && metric.stat == stat && own == label
    });
    found.and_then(|metric| metric.value).unwrap_or_else(|| panic!("no {name} {stat} {label:?}"))
}

/// Little's law: as many requests are under way as there are users, less those on their way there and back. With stops
/// every few requests, one lock that all want, few workers, one queue of the network, and the series' kernel.
#[test]
fn requests_are_neither_lost_nor_doubled() {
    for (machine, kernel, options, users, away_ms) in [
        ("uniform8", "linux-6.12", "-j 1 -u 12 --work-us 900 --net-us 400", 12.0, 0.4),
        ("uniform8", "linux-5.11", "-j 2 -u 12 --gc-every 5 --locks 1 --net-us 400", 12.0, 0.4),
        ("power10-8core", "linux-5.11+idler-llc-v3", "-j 4 -u 80 --nic-queues 1", 80.0, 0.3),
        (
            "power10-8core",
            "linux-5.11+wide-llc",
            "-j 3 -u 20 --think-us 700 --queries 0",
            20.0,
            1.0,
        ),
        ("i7-3630qm", "linux-5.18", "-j 1 -u 30 --workers 3 --gc-threads 1", 30.0, 0.3),
    ] {
        let workload = format!("daytrader {options} --warmup-ms 300 --seconds 2.3");
        let result = run(&scenario(machine, kernel, &workload, None), 1);
        let per_second = value(&result, "throughput", "mean", None);
        let residence_ms = value(&result, "frame_duration", "mean", None);
        let under_way = per_second * (residence_ms + away_ms) / 1000.0;
        let off = (under_way - users).abs() / users;
        assert!(off < 0.03, "{machine} {kernel} {options}: {under_way} of {users} users");
        // User and system time, as shares of all CPUs and by requests.
        let nr_cpus = result.cpus.len() as f64;
        let mut all = 0.0;
        for mode in ["user", "system"] {
            let usage = value(&result, "cpu_usage", "mean", Some(mode));
            let each = value(&result, "cpu_time_per_request", "mean", Some(mode));
            assert!((each * per_second / 10.0 - usage * nr_cpus).abs() < 1e-6, "{mode}");
            all += each;
        }
        let told = value(&result, "cpu_time_per_request", "mean", None);
        assert!((told - all).abs() < 1e-9, "{told} {all}");
    }
}
