//! What `cpu.stat` says of task groups with a limit, as metrics.

use crate::result::Metric;
use schedtwin_kernel::Kernel;
use schedtwin_types::TaskGroupId;
use schedtwin_types::metric::{self, DeclaredMetric};
use schedtwin_workload::Programs;

/// One metric after the other, each of all groups that have a limit.
pub(super) fn metrics(kernel: &Kernel, programs: &Programs) -> Vec<Metric> {
    let groups = programs.task_group_paths().iter().enumerate();
    let stats: Vec<_> = groups
        .filter_map(|(at, path)| Some((path, kernel.cpu_stat(TaskGroupId(at as u32 + 1))?)))
        .collect();
    let of = |metric: &'static DeclaredMetric, path: &str, value: u64| {
        metric.value("sum", vec![("group", path.to_owned())], Some(value as f64))
    };
    let periods = stats.iter().map(|(path, s)| of(&metric::NR_PERIODS, path, s.nr_periods));
    let throttled = stats.iter().map(|(path, s)| of(&metric::NR_THROTTLED, path, s.nr_throttled));
    let time =
        stats.iter().map(|(path, s)| of(&metric::THROTTLED_USEC, path, s.throttled_time / 1000));
    periods.chain(throttled).chain(time).collect()
}
