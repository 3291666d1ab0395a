// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin list`: names to choose from.

use schedtwin_engine::kernel_file::{Kind as SettingKind, With, settings};
use schedtwin_lab::schema;
use schedtwin_types::Duration;
use schedtwin_types::metric::METRICS;
use schedtwin_types::property::Property;

use crate::arguments::Kind;
use crate::failure::Failure;
use crate::{output, study};

pub fn list(what: Option<Kind>) -> Result<(), Failure> {
    let text = match what {
        Some(Kind::Points) => points(),
        Some(Kind::Metrics) => metrics(),
        Some(Kind::Properties) => properties(),
        Some(Kind::Studies) => study::list(),
        Some(kind) => names(&entries(kind), ""),
        None => [
            ("Machines (-m)", Kind::Machines),
            ("Kernels (-k)", Kind::Kernels),
            ("Patches (-k KERNEL+PATCH)", Kind::Patches),
            ("Workloads (-w)", Kind::Workloads),
            ("Systems (-w 'WORKLOAD --system NAME')", Kind::Systems),
        ]
        .map(|(title, kind)| format!("{title}\n{}", names(&entries(kind), "  ")))
        .join("\n"),
    };
    output::print_fit(&text)
}

/// Name and description of everything of a kind.
pub fn entries(kind: Kind) -> Vec<(String, String)> {
    match kind {
        Kind::Machines => schedtwin_engine::list_machines(),
        Kind::Kernels => schedtwin_engine::list_releases(),
        Kind::Patches => schedtwin_engine::list_patches(),
        Kind::Workloads => schedtwin_engine::list_workloads(),
        Kind::Systems => schedtwin_engine::list_systems(),
        Kind::Suites => schedtwin_lab::score::list(),
        Kind::Schemas => schema::names().map(|name| (name.to_string(), String::new())).collect(),
        Kind::Points | Kind::Properties | Kind::Metrics | Kind::Studies => Vec::new(),
    }
}

/// Every property: its bound, the metric that counts its breaches, and what it forbids.
pub fn properties() -> String {
    let line = |property: &Property| {
        let bound = Duration::from_ns(property.default_bound());
        format!(
            "{:<19} longer than {bound:<6} {:<18} {}\n",
            property.name(),
            property.metric().name,
            property.means()
        )
    };
    Property::ALL.iter().map(line).collect()
}

/// Every setting, as a list that reads well in a terminal and as Markdown: choices with their arms, numbers with
/// their ranges.
pub fn points() -> String {
    let mut text = String::new();
    for setting in settings() {
        let mut line = format!("- `{}`, {}: {}", setting.path, setting.known_by, setting.help);
        if let SettingKind::Integer { min, max, unit, none } = &setting.kind {
            line.push_str(format!(" {min}..={max} {unit}").trim_end());
            if let Some((none, means)) = none {
                line.push_str(&format!(", or `{none}`: {means}"));
            }
            if let Some(bound) = setting.at_most {
                line.push_str(&format!(", at most `{bound}`"));
            }
            line.push('.');
        }
        if let Some(only) = &setting.only {
            line.push_str(&format!(" {}.", with(only)));
        }
        if let Some(default_if_absent) = &setting.default_if_absent {
            line.push_str(&format!(" Unless named: `{default_if_absent}`."));
        }
        for (value, releases) in &setting.releases {
            line.push_str(&format!(" `{value}`: {releases}."));
        }
        text.push_str(&line);
        text.push('\n');
        let SettingKind::Choice { arms, .. } = &setting.kind else { continue };
        for arm in arms {
            let only = arm.only.as_ref().map(|only| format!(" {}.", with(only)));
            let only = only.unwrap_or_default();
            text.push_str(&format!("  - `{}` ({}): {}{only}\n", arm.word, arm.releases, arm.means));
        }
    }
    text
}

fn with(only: &With) -> String {
    let words: Vec<String> = only.words.iter().map(|word| format!("`{word}`")).collect();
    format!("Only with `{}` {}", only.path, words.join(" or "))
}

/// Every metric by section: name, unit, which direction is better, stats and labels, meaning.
fn metrics() -> String {
    let mut sorted = METRICS.to_vec();
    sorted.sort_by_key(|metric| metric.section);
    let mut text = String::new();
    for section in sorted.chunk_by(|a, b| a.section == b.section) {
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{gap}{}\n", section[0].section.title()));
        for metric in section {
            let better = metric.better.word().map_or(String::new(), |b| format!(", {b} is better"));
            let only = metric.only.map_or(String::new(), |only| format!("; of {only}"));
            let labels: Vec<String> = metric
                .labels
                .iter()
                .filter(|set| !set.is_empty())
                .map(|set| set.join("+"))
                .collect();
            let by = if labels.is_empty() {
                String::new()
            } else {
                format!("; by {}", labels.join(", "))
            };
            text.push_str(&format!(
                "  {:22} {}\n  {:22} {}{better}; {}{by}{only}\n",
                metric.name,
                metric.means,
                "",
                metric.unit,
                metric.stats.join(" "),
            ));
        }
    }
    text
}

pub fn names(entries: &[(String, String)], indent: &str) -> String {
    let width = entries.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let line = |(name, description): &(String, String)| {
        let line = format!("{indent}{name:width$}  {description}");
        format!("{}\n", line.trim_end())
    };
    entries.iter().map(line).collect()
}
