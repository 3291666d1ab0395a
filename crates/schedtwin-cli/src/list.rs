//! `schedtwin list`: names to choose from.

use schedtwin_lab::glossary::METRICS;
use schedtwin_lab::schema;

use crate::arguments::Kind;
use crate::failure::Failure;
use crate::{output, study};

pub fn list(what: Option<Kind>) -> Result<(), Failure> {
    let text = match what {
        Some(Kind::Points) => points(),
        Some(Kind::Metrics) => metrics(),
        Some(Kind::Studies) => study::list(),
        Some(kind) => names(&entries(kind), ""),
        None => [
            ("Machines (-m)", Kind::Machines),
            ("Kernels (-k)", Kind::Kernels),
            ("Patches (-k KERNEL+PATCH)", Kind::Patches),
            ("Workloads (-w)", Kind::Workloads),
        ]
        .map(|(title, kind)| format!("{title}\n{}", names(&entries(kind), "  ")))
        .join("\n"),
    };
    output::print(&text)
}

/// Name and description of everything of a kind.
pub fn entries(kind: Kind) -> Vec<(String, String)> {
    match kind {
        Kind::Machines => schedtwin::list_machines(),
        Kind::Kernels => schedtwin::list_kernels(),
        Kind::Patches => schedtwin::list_patches(),
        Kind::Workloads => schedtwin::list_workloads(),
        Kind::Schemas => schema::names().map(|name| (name.to_string(), String::new())).collect(),
        Kind::Points | Kind::Metrics | Kind::Studies => Vec::new(),
    }
}

/// Every variation point with its arms, as a list that reads well in a terminal and as Markdown.
pub fn points() -> String {
    let mut text = String::new();
    for point in schedtwin::kernel_file::variation_points() {
        text.push_str(&format!("- `{}`: {}\n", point.key, point.known_by));
        for (word, releases, means) in point.arms {
            text.push_str(&format!("  - `{word}` ({releases}): {means}\n"));
        }
    }
    text
}

/// Every metric with its unit and meaning.
fn metrics() -> String {
    let width = METRICS.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
    let line =
        |(name, unit, means): &(&str, &str, &str)| format!("{name:width$}  {unit:5}  {means}\n");
    METRICS.iter().map(line).collect()
}

fn names(entries: &[(String, String)], indent: &str) -> String {
    let width = entries.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let line = |(name, description): &(String, String)| {
        let line = format!("{indent}{name:width$}  {description}");
        format!("{}\n", line.trim_end())
    };
    entries.iter().map(line).collect()
}
