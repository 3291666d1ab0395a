// SPDX-License-Identifier: GPL-2.0-or-later
//! What happened in a run, and why.

use crate::{Difference, Error};
use schedtwin_trace::explain::{Query, explain};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use std::fmt;
use std::io;
use std::path::Path;

/// A decision of the scheduler, a governor or the load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Nanoseconds since the start.
    pub at_ns: u64,
    /// The CPU that decided.
    pub cpu: u16,
    /// What it decided and by which values, as `schedtwin explain` tells it.
    pub words: String,
}

impl From<(u64, u16, String)> for Decision {
    fn from((at_ns, cpu, words): (u64, u16, String)) -> Decision {
        Decision { at_ns, cpu, words }
    }
}

/// Why two kernels part, or what a record tells of a time, a task or a CPU. It prints as the command line does.
#[derive(Clone, Debug)]
pub struct Explanation {
    text: String,
    difference: Option<Difference>,
    entries: Vec<Value>,
    matched: u64,
}

impl Explanation {
    /// Reads a record, and tells what `query` asks for.
    ///
    /// Records are what `schedtwin run --record FILE` writes.
    pub fn of_record(path: &Path, query: &Query) -> Result<Explanation, Error> {
        let mut text = Vec::new();
        let summary = explain(path, &Query { json: false, ..query.clone() }, &mut text)?;
        let mut lines = Vec::new();
        explain(path, &Query { json: true, ..query.clone() }, &mut lines)?;
        let mut entries = Vec::new();
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let entry: Value = serde_json::from_slice(line).map_err(io::Error::from)?;
            // The head of the record and its tasks have no time.
            if entry.get("at").is_some() && entry.get("power").is_none() {
                entries.push(entry);
            }
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(Explanation { text, difference: None, entries, matched: summary.matched })
    }

    pub(crate) fn of_difference(kernels: [String; 2], difference: Difference) -> Explanation {
        let Difference { at, left, right, decisions_left, decisions_right, context } = &difference;
        let (seconds, ns) = (at / 1_000_000_000, at % 1_000_000_000);
        let mut text = format!("first difference at {seconds}.{ns:09} s\n");
        text.extend(context.iter().map(|line| format!("  both: {}\n", line.trim())));
        let sides = [(left, decisions_left), (right, decisions_right)];
        for (kernel, (what, why)) in kernels.iter().zip(sides) {
            text.push_str(&format!("{kernel}: {}\n", what.trim()));
            for line in why.iter().flat_map(|decision| decision.lines()) {
                text.push_str(&format!("  {line}\n"));
            }
        }
        Explanation { text, matched: 1, entries: Vec::new(), difference: Some(difference) }
    }

    /// Where two kernels part, if that was asked.
    pub fn difference(&self) -> Option<&Difference> {
        self.difference.as_ref()
    }

    /// Facts, decisions and chains of a record in time order, with the fields of `schedtwin.record/1`, or waits, the longest
    /// first; at most as many as the query's limit.
    pub fn entries(&self) -> &[Value] {
        &self.entries
    }

    /// How many entries matched the query, listed or not.
    pub fn matched(&self) -> u64 {
        self.matched
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// `text`, `matched`, `entries`, and `difference`, which is null for a record.
impl Serialize for Explanation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("text", &self.text)?;
        map.serialize_entry("matched", &self.matched)?;
        map.serialize_entry("entries", &self.entries)?;
        let difference = self.difference.as_ref().map(|difference| {
            serde_json::json!({
                "at_ns": difference.at,
                "left": difference.left,
                "right": difference.right,
                "decisions_left": difference.decisions_left,
                "decisions_right": difference.decisions_right,
                "context": difference.context,
            })
        });
        map.serialize_entry("difference", &difference)?;
        map.end()
    }
}
