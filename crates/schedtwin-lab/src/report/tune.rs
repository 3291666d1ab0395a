// SPDX-License-Identifier: GPL-2.0-or-later
//! The report of a search for a setting's value.

use schedtwin_types::printable;

use crate::report::cells::{number, signed};
use crate::tune::Tuned;

/// A line per value, the closest marked. `parameter` is what was searched, `like` the kernel that set the goal.
pub fn tuned(tuned: &Tuned, parameter: &str, like: Option<&str>, seeds: u64) -> String {
    let Tuned { metric, unit, goal, points, best } = tuned;
    let goal = match like {
        Some(like) => format!("{} {unit}, that of {}", number(*goal), printable::line(like)),
        None => format!("{} {unit}", number(*goal)),
    };
    let mut text = format!("wanted: {} = {goal}; {seeds} seeds each\n\n", printable::line(metric));
    let width = points.iter().map(|point| point.value.len()).max().unwrap_or(0);
    let width = width.max(parameter.len());
    text.push_str(&format!("{parameter:>width$}  {unit:>10}  {:>10}  95% interval\n", "away by"));
    for (at, point) in points.iter().enumerate() {
        let interval = match point.from_goal.ci95 {
            Some([low, high]) => format!("{} .. {}", signed(low), signed(high)),
            None => "-".to_string(),
        };
        let mark = if *best == Some(at) { "  <- closest" } else { "" };
        text.push_str(&format!(
            "{:>width$}  {:>10}  {:>10}  {interval}{mark}\n",
            point.value,
            number(point.estimate.mean),
            signed(point.from_goal.diff)
        ));
    }
    text
}
