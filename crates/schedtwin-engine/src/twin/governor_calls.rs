// SPDX-License-Identifier: GPL-2.0-or-later
//! Outcomes of the frequency governor's calls: metrics of schedutil, counted since boot.

use crate::result::Metric;
use schedtwin_kernel::hardware::{HardwareView, RequestCounts};
use schedtwin_machine::Machine;
use schedtwin_types::PolicyId;
use schedtwin_types::metric;

/// Nanoseconds in a microsecond.
const NS_PER_US: f64 = 1e3;

/// Metrics of all domains, whose numbers are those of the kernel's policies.
pub(super) fn metrics(hardware: HardwareView, machine: &Machine) -> Vec<Metric> {
    let domains: Vec<(&str, RequestCounts)> = (machine.domains.iter().enumerate())
        .map(|(index, domain)| {
            (domain.name.as_str(), hardware.request_counts(PolicyId(index as u16)))
        })
        .collect();
    let mut all = Vec::new();

    type Count = fn(&RequestCounts) -> u64;
    let outcomes: [(&str, Count); 4] = [
        ("made", |counts| counts.made),
        ("rate-limited", |counts| counts.rate_limited),
        ("equal", |counts| counts.equal),
        ("elsewhere", |counts| counts.elsewhere),
    ];
    for (outcome, of) in outcomes {
        let sum: u64 = domains.iter().map(|(_, counts)| of(counts)).sum();
        let label = ("outcome", outcome.to_owned());
        all.push(metric::FREQ_REQUESTS.value("sum", vec![label.clone()], Some(sum as f64)));
        for (name, counts) in &domains {
            let labels = vec![("domain", (*name).to_owned()), label.clone()];
            all.push(metric::FREQ_REQUESTS.value("sum", labels, Some(of(counts) as f64)));
        }
    }

    let kinds: [(&str, Count); 2] =
        [("sent", |counts| counts.interrupts), ("saved", |counts| counts.interrupts_saved)];
    for (kind, of) in kinds {
        let sum: u64 = domains.iter().map(|(_, counts)| of(counts)).sum();
        let labels = vec![("kind", kind.to_owned())];
        all.push(metric::FREQ_INTERRUPTS.value("sum", labels, Some(sum as f64)));
    }

    let mut latency = |labels: Vec<(&'static str, String)>, remote: u64, ns: u64, max: u64| {
        let some = remote > 0;
        let mean = some.then(|| ns as f64 / remote as f64 / NS_PER_US);
        let max = some.then(|| max as f64 / NS_PER_US);
        all.push(metric::REMOTE_UPDATE_LATENCY.value("mean", labels.clone(), mean));
        all.push(metric::REMOTE_UPDATE_LATENCY.value("max", labels, max));
    };
    let sum = |of: Count| domains.iter().map(|(_, counts)| of(counts)).sum::<u64>();
    let longest = domains.iter().map(|(_, counts)| counts.remote_ns_max).max().unwrap_or(0);
    latency(vec![], sum(|counts| counts.remote), sum(|counts| counts.remote_ns), longest);
    for (name, counts) in &domains {
        let labels = vec![("domain", (*name).to_owned())];
        latency(labels, counts.remote, counts.remote_ns, counts.remote_ns_max);
    }
    all
}
