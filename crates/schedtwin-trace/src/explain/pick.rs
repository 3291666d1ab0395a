// SPDX-License-Identifier: GPL-2.0-or-later
//! Picks: who runs next, from whom it was chosen, and why.

use super::Listing;
use super::words::table;
use crate::record::{PickLine, Text};
use schedtwin_types::TaskId;

impl Listing<'_> {
    /// `lag` and `deadline` are virtual nanoseconds; see [`schedtwin_types::PickCandidate`].
    pub(super) fn pick(
        &self,
        head: impl Fn(&str) -> String,
        (prev, next): (u32, u32),
        rule: &Text,
        candidates: &[PickLine],
    ) -> String {
        let who = |task: u32| self.who(TaskId(task));
        let text = match prev == next {
            true => format!("{} goes on; {rule}", who(next)),
            false => format!("{} after {}; {rule}", who(next), who(prev)),
        };
        let first = head(&text);
        if candidates.len() < 2 {
            return first;
        }
        let titles = ["", "entity", "depth", "lag", "deadline", "eligible"];
        let mut rows = vec![titles.map(str::to_string)];
        rows.extend(candidates.iter().map(|candidate| {
            let PickLine { depth, task, group, picked, curr, lag, deadline, eligible } = candidate;
            let name = task.map_or_else(|| format!("group {group}"), who);
            [
                if *picked { "=>" } else { "" }.to_string(),
                if *curr { format!("{name} (running)") } else { name },
                depth.to_string(),
                lag.to_string(),
                deadline.map_or_else(|| "-".to_string(), |deadline| deadline.to_string()),
                if *eligible { "yes" } else { "no" }.to_string(),
            ]
        }));
        first + &table(&rows, 1)
    }
}
