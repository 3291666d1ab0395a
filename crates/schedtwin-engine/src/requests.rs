// SPDX-License-Identifier: GPL-2.0-or-later
//! The cost of a request: the CPU time of everything, by the requests that were done in it.

use schedtwin_types::metric::{self, Metric};

/// `cpu_time_per_request` of a run with these metrics: of `cpu_usage` and `throughput`.
pub(crate) fn metrics(of_run: &[Metric], nr_cpus: usize) -> Vec<Metric> {
    let find = |name: &str, labels: &[(&str, &str)]| {
        let alike = |metric: &&Metric| {
            let mut own = metric.labels.iter().map(|(key, value)| (*key, value.as_str()));
            metric.name == name && own.by_ref().eq(labels.iter().copied())
        };
        of_run.iter().find(alike).and_then(|metric| metric.value)
    };
    let per_second = find(metric::THROUGHPUT.name, &[]).filter(|rate| *rate > 0.0);
    let cost = |mode| {
        let percent = find(metric::CPU_USAGE.name, &[("mode", mode)])?;
        // CPU milliseconds a second.
        Some(percent * 10.0 * nr_cpus as f64 / per_second?)
    };
    let modes = ["user", "system"].map(|mode| (mode, cost(mode)));
    let all = modes.iter().map(|(_, cost)| *cost).sum();
    let declared = &metric::CPU_TIME_PER_REQUEST;
    let mut metrics = vec![declared.value("mean", vec![], all)];
    for (mode, cost) in modes {
        metrics.push(declared.value("mean", vec![("mode", mode.to_string())], cost));
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_costs_its_share_of_all_cpus() {
        let run = |rate| {
            let usage = |mode: &str, percent| {
                let labels = vec![("mode", mode.to_string())];
                metric::CPU_USAGE.value("mean", labels, Some(percent))
            };
            let throughput = metric::THROUGHPUT.value("mean", vec![], Some(rate));
            let of_run = [throughput, usage("user", 60.0), usage("system", 20.0)];
            metrics(&of_run, 64).iter().map(|metric| metric.value).collect::<Vec<_>>()
        };
        assert_eq!(run(6400.0), [Some(8.0), Some(6.0), Some(2.0)]);
        assert_eq!(run(0.0), [None, None, None]);
    }
}
