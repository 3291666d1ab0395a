// SPDX-License-Identifier: GPL-2.0-or-later
//! Executions for readers: each figure of a recording beside the twin's, with its distance and its limit.

use serde_json::{Value, json};

use super::cells::{letter, plain_table, wrap};
use super::markdown::escape;
use crate::study::execution::distance::{Compared, Figure};
use crate::study::execution::judge::{Judged, Summary, summary, unit_of_distance};
use crate::study::run::Ran;

/// The figures of an execution under a kernel: figure, recorded, twin, distance, limit, in or out.
pub fn cells(judged: &Judged) -> Vec<[String; 6]> {
    judged.figures.iter().map(cells_of).collect()
}

fn cells_of(compared: &Compared) -> [String; 6] {
    let figure = compared.figure;
    let unit = |unit: &str| if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let distance = compared.distance.map_or("-".to_string(), |distance| {
        format!("{}{}", rounded(distance), unit(unit_of_distance(figure)))
    });
    let word = match compared.is_in() {
        Some(true) if compared.still_is_in() => "in, still too",
        Some(true) => "in",
        Some(false) => "out",
        None => "no value",
    };
    [
        format!("{}{}", figure.word(), unit(&format!("({})", figure.unit())).replace(" ()", "")),
        list(compared, &compared.board),
        list(compared, &compared.twin),
        distance,
        rounded(compared.limit),
        word.to_string(),
    ]
}

/// `25/25/25/25/0/0`, by frequencies that either had `600:40/1200:60`; `-` of nothing.
fn list(of: &Compared, values: &[f64]) -> String {
    let decimals = |value: &f64| match of.figure {
        Figure::Clock => format!("{value:.0}"),
        _ => rounded(*value),
    };
    let had = |at: usize| [&of.board, &of.twin].iter().any(|all| all.get(at) > Some(&0.0));
    let cells = values.iter().enumerate().filter_map(|(at, value)| match of.levels.get(at) {
        Some(_) if !had(at) => None,
        Some(mhz) => Some(format!("{mhz}:{}", decimals(value))),
        None => Some(decimals(value)),
    });
    let cells: Vec<String> = cells.collect();
    if cells.is_empty() { "-".to_string() } else { cells.join("/") }
}

/// To a tenth: executions are not known better.
fn rounded(x: f64) -> String {
    format!("{x:.1}").trim_end_matches(".0").to_string()
}

/// `S4.3.4 max: eight tasks ..., 5 seeds`.
pub fn title(ran: &Ran, judged: &Judged) -> String {
    let executed = &ran.study.executions[judged.execution];
    let runs = match judged.seeds {
        0 => String::new(),
        1 => " (1 run)".to_string(),
        seeds => format!(" (means of {seeds} runs)"),
    };
    format!("{}  {}{runs}", executed.id, executed.recording.about)
}

/// All executions as text; empty where there are none.
pub fn text(ran: &Ran, width: usize) -> String {
    if ran.executions.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    let heading = ["", "figure", "recorded", "twin", "distance", "limit", ""];
    let mut rows = vec![heading.map(str::to_string).to_vec()];
    for judged in &ran.executions {
        for (at, cells) in cells(judged).into_iter().enumerate() {
            let kernel = if at == 0 { letter(judged.column) } else { String::new() };
            rows.push([vec![format!("      {kernel}")], cells.to_vec()].concat());
        }
    }
    let table = plain_table(rows, 2, &[6]);
    let mut lines = table.lines();
    text.extend(lines.next().map(|heading| format!("{heading}\n")));
    let mut last = None;
    for judged in &ran.executions {
        if last != Some(judged.execution) {
            text.push_str(&wrap(&title(ran, judged), width, "  "));
            last = Some(judged.execution);
        }
        if let Some(why_not) = &judged.why_not {
            text.push_str(&format!("      {}  {why_not}\n", letter(judged.column)));
        }
        let own = lines.by_ref().take(judged.figures.len());
        text.extend(own.map(|line| format!("{line}\n")));
    }
    text.push_str(&format!("{}\n\n", conclusion(ran)));
    text
}

/// How many figures are within their limits, in words.
pub fn conclusion(ran: &Ran) -> String {
    let Summary { inside, inside_if_still, outside, without_value } = summary(&ran.executions);
    let without = match without_value {
        0 => String::new(),
        count => format!(", {count} without a value in the twin"),
    };
    format!(
        "executions: {inside} figures in, {outside} out of the stated limits{without}; {inside_if_still} of those in would be in, too, for a twin \
         in which nothing moves (\"still too\")"
    )
}

/// All executions as a table of Markdown; empty where there are none.
pub fn markdown(ran: &Ran) -> String {
    if ran.executions.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "| | execution | kernel | figure | recorded | twin | distance | limit | |\n|---|---|---|---|---:|---:|---:|---:|---|\n",
    );
    for judged in &ran.executions {
        let executed = &ran.study.executions[judged.execution];
        let kernel = &ran.study.columns[judged.column].kernel;
        let head = [&executed.id, &executed.recording.about, kernel].map(|cell| escape(cell));
        for cells in cells(judged) {
            let cells = cells.map(|cell| escape(&cell));
            text.push_str(&format!("| {} | {} |\n", head.join(" | "), cells.join(" | ")));
        }
        if let Some(why_not) = &judged.why_not {
            text.push_str(&format!("| {} | {} | | | | | |\n", head.join(" | "), escape(why_not)));
        }
    }
    text.push_str(&format!("\n{}.\n\n", conclusion(ran)));
    text
}

/// All executions for programs.
pub fn json(ran: &Ran) -> Value {
    let figure = |one: &Compared| {
        let mut figure = json!({
            "figure": one.figure.word(), "unit": one.figure.unit(), "recorded": one.board, "twin": one.twin,
            "distance": one.distance, "limit": one.limit, "in": one.is_in(), "still_distance": one.still,
        });
        if !one.levels.is_empty() {
            figure["levels_mhz"] = json!(one.levels);
        }
        figure
    };
    let judged = |judged: &Judged| {
        let executed = &ran.study.executions[judged.execution];
        let figures: Vec<Value> = judged.figures.iter().map(figure).collect();
        json!({
            "id": executed.id, "recording": executed.recording.name,
            "kernel": ran.study.columns[judged.column].kernel, "seeds": judged.seeds,
            "figures": figures, "why_not": judged.why_not,
        })
    };
    ran.executions.iter().map(judged).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_by_frequency_say_which() {
        let of = |figure, levels: &[u32], board: &[f64]| Compared {
            figure,
            board: board.to_vec(),
            twin: Vec::new(),
            distance: None,
            limit: 10.0,
            still: None,
            levels: levels.to_vec(),
        };
        let shown = |one: Compared| list(&one, &one.board);
        assert_eq!(shown(of(Figure::CpuShare, &[], &[25.0, 74.96])), "25/75");
        let levels = of(Figure::FreqLevels, &[600, 900, 1200], &[41.92, 0.0, 58.08]);
        assert_eq!(list(&levels, &levels.twin), "-");
        assert_eq!(shown(levels), "600:41.9/1200:58.1", "nobody was at 900");
        assert_eq!(shown(of(Figure::Clock, &[], &[1105.96, 1291.3])), "1106/1291");
    }
}
