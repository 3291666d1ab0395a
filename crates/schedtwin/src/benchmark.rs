//! What a benchmark says of itself, as metrics: jank by its own rule, late frames, scores.
//!
//! They stand behind the meter's metrics, and only workloads that are benchmarks have them. Frames are
//! counted by the workload, for the rule that calls them jank is the app's; their lengths are the meter's
//! `frame_duration`, which knows every mark.

use crate::result::Metric;
use schedtwin_types::metric::{self, DeclaredMetric};
use schedtwin_workload::{BenchmarkResult, FrameCount};

/// Reads one count of a test.
type CountOf = fn(&FrameCount) -> u64;

/// The metrics of a benchmark.
pub(crate) fn metrics(result: &BenchmarkResult) -> Vec<Metric> {
    let mut metrics = Vec::new();
    let kinds: [(&'static DeclaredMetric, CountOf); 2] = [
        (&metric::JANK, |count| count.janks),
        (&metric::FRAMES_OVER_PERIOD, |count| count.over_period),
    ];
    for (of, part) in kinds {
        if result.frames.is_empty() {
            break;
        }
        let share = |counts: &mut dyn Iterator<Item = &FrameCount>| {
            let (mut some, mut all) = (0, 0);
            for count in counts {
                some += part(count);
                all += count.frames;
            }
            (all > 0).then(|| some as f64 / all as f64 * 100.0)
        };
        let mut add = |labels, value| metrics.push(of.value("mean", labels, value));
        add(vec![], share(&mut result.frames.iter().map(|(_, count)| count)));
        for (test, count) in &result.frames {
            add(vec![("test", test.to_string())], share(&mut std::iter::once(count)));
        }
    }
    for (section, value) in &result.scores {
        let labels = section.iter().map(|section| ("section", section.to_string())).collect();
        metrics.push(metric::SCORE.value("gmean", labels, *value));
    }
    metrics
}
