// SPDX-License-Identifier: GPL-2.0-or-later
//! The cgroups of a workload: made before it starts, and what their `cpu.stat` says in the end.

use crate::result::Metric;
use schedtwin_kernel::Kernel;
use schedtwin_kernel::hardware::DEFAULT_CFS_PERIOD;
use schedtwin_types::TaskGroupId;
use schedtwin_types::draw::{Purpose, draw};
use schedtwin_types::metric::{self, DeclaredMetric};
use schedtwin_workload::Programs;

/// `cpu.shares` of a new cgroup that asks for nothing (`cpu.weight` 100).
const DEFAULT_SHARES: u64 = 1024;

/// Makes the workload's groups, writes their files, and makes its sessions.
pub(super) fn make(kernel: &mut Kernel, programs: &Programs, seed: u64) {
    for above in programs.task_groups() {
        let group = kernel.new_task_group(*above, DEFAULT_SHARES);
        let who = u64::from(group.0);
        let offset = draw(seed, who, Purpose::CfsPeriod, 0, 0, DEFAULT_CFS_PERIOD - 1);
        kernel.seed_cfs_period(group, offset);
    }
    kernel.boot_task_groups(programs.task_group_files());
    for nice in programs.sessions() {
        kernel.new_session(*nice);
    }
}

/// Metrics of the groups that have a limit: one metric after the other, each of all groups that have a limit.
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
