// SPDX-License-Identifier: GPL-2.0-or-later
//! What a run tells of its scheduler of sched_ext.

use crate::result::SCX_ENDED;
use schedtwin_kernel::Kernel;
use schedtwin_kernel::policy::{Exit, ExitKind, ExtReport};
use schedtwin_types::metric::{self, DeclaredMetric, Metric};
use schedtwin_types::{Duration, Ns, TaskId};

/// The metrics of a scheduler that has run up to `now`; none without one.
pub(super) fn metrics(kernel: &Kernel, now: Ns) -> Vec<Metric> {
    let Some(ExtReport { queues, events, exit }) = kernel.scx_report(now) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    let mut put =
        |metric: &'static DeclaredMetric, stat, label: Option<(&'static str, &str)>, value: f64| {
            let labels = label.iter().map(|(label, name)| (*label, name.to_string())).collect();
            all.push(metric.value(stat, labels, Some(value)));
        };
    for queue in &queues {
        let label = Some(("dsq", queue.name.as_str()));
        let mean = queue.depth_time as f64 / now.max(1) as f64 / f64::from(queue.queues);
        put(&metric::SCX_DSQ_DEPTH, "mean", label, mean);
        put(&metric::SCX_DSQ_DEPTH, "max", label, queue.depth_max.into());
        if queue.left > 0 {
            let mean = queue.waited as f64 / queue.left as f64 / 1000.0;
            put(&metric::SCX_DSQ_WAIT, "mean", label, mean);
            put(&metric::SCX_DSQ_WAIT, "max", label, queue.waited_max as f64 / 1000.0);
        }
    }
    for (path, count) in [
        ("select_cpu", events.from_select_cpu),
        ("enqueue", events.from_enqueue),
        ("dispatch", events.from_dispatch),
        ("move", events.moved),
        ("global", events.from_global),
        ("stale", events.stale_inserts),
        ("keep_last", events.dispatch_keep_last),
    ] {
        put(&metric::SCX_DISPATCHES, "sum", Some(("path", path)), count as f64);
    }
    put(&metric::SCX_OPS, "sum", None, events.ops as f64);
    put(&metric::SCX_KICKS, "sum", None, events.kicks as f64);
    put(&metric::SCX_MIGRATIONS, "sum", None, events.migrations as f64);
    let failed = exit.is_some_and(|exit| exit.kind.is_error());
    put(&metric::SCX_ERRORS, "sum", None, f64::from(u8::from(failed)));
    all
}

/// What is worth knowing of a scheduler that no task of the workload comes to.
pub(super) fn idle(kernel: &Kernel, now: Ns, scheduler: &str) -> Option<String> {
    let report = kernel.scx_report(now).filter(|_| kernel.scx_is_partial())?;
    report.queues.iter().all(|queue| queue.left == 0).then(|| {
        format!(
            "sched_ext: {scheduler} takes tasks of SCHED_EXT only (SCX_OPS_SWITCH_PARTIAL), and the workload has none: \
             the fair class has them all"
        )
    })
}

/// In words, that a scheduler has been unloaded. `name` gives the name of a task.
pub(super) fn end(
    kernel: &Kernel,
    now: Ns,
    scheduler: &str,
    name: impl Fn(TaskId) -> Option<String>,
) -> Option<String> {
    let Exit { kind, code, message, task, at } = kernel.scx_report(now)?.exit?;
    let task = task.map_or_else(String::new, |task| {
        name(task).map_or_else(String::new, |name| format!(" (task {} is {name})", task.0))
    });
    let code = if code == 0 { String::new() } else { format!(", exit code {code}") };
    let at = Duration::from_ns(at - at % 1000);
    let lead = match kind {
        ExitKind::Unreg => "sched_ext: a scheduler was stopped",
        _ => SCX_ENDED,
    };
    let reason = if message.is_empty() { "" } else { ": " };
    let reason = format!("{}{reason}", kind.reason());
    Some(format!(
        "{lead}: {scheduler}, at {at}: {reason}{message}{task}{code}; from then on the fair class had all tasks"
    ))
}
