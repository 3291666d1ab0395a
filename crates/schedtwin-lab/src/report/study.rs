// SPDX-License-Identifier: GPL-2.0-or-later
//! Studies for readers: the published and the twin's numbers side by side, as text and as Markdown.

use super::Studies;
use super::cells::{letter, number, plain_table, provenance_lines, seeds_text, wrap};
use super::change::difference_cells;
use super::markdown::escape;
use crate::crash;
use crate::stats::Difference;
use crate::study::power::{Powers, power};
use crate::study::prepare::{Setup, waits_for};
use crate::study::reports::Head;
use crate::study::run::{Beside, Ran, summary};
use crate::study::{Published, Role, Study};

pub fn text(studies: &Studies, width: usize) -> String {
    let mut text = String::new();
    for ran in &studies.ran {
        text.push_str(&one(ran, width));
        text.push('\n');
    }
    text.push_str(&end(studies).iter().map(|line| wrap(line, width, "  ")).collect::<String>());
    text
}

fn one(ran: &Ran, width: usize) -> String {
    let study = &ran.study;
    let mut text = format!("{}: {}\n", study.name, study.description);
    text.push_str(&wrap(&study.published, width, "  "));
    // A study of executions alone has no runs of its own.
    text.push_str(&match ran.seeds.len() {
        0 => format!("{}\n\n", study.machine),
        count => format!(
            "{}, {}: {count} runs each, paired ({})\n\n",
            study.machine,
            study.workload,
            seeds_text(&ran.seeds)
        ),
    });
    for (number, column) in study.columns.iter().enumerate() {
        let run_as = match &column.run_as {
            Some(run_as) => format!("  (here {run_as})"),
            None => String::new(),
        };
        text.push_str(&format!("  {}  {}{run_as}\n", letter(number), column.kernel));
    }
    text.push('\n');
    let of_base = is_base(study);
    let mut rows = vec![heading()];
    rows.extend(ran.cells.iter().map(|beside| {
        let mut row = cells(study, beside);
        row[0].insert_str(0, "      ");
        row
    }));
    if of_base {
        // Nothing is compared.
        rows.iter_mut().for_each(|row| drop(row.drain(3..7)));
        rows[0][3] = "deviation".to_string();
    }
    let table = plain_table(rows, 1, if of_base { &[3] } else { &[6, 7] });
    let mut lines = table.lines();
    text.extend(lines.next().map(|heading| format!("{heading}\n")));
    // A title stands above its cells: beside them it would make the lines wider than mails are.
    let mut last = None;
    for (beside, line) in ran.cells.iter().zip(lines) {
        if last != Some(beside.row) {
            let [id, title, unit] = names(study, beside);
            let unit = if unit.is_empty() { unit } else { format!(", {unit}") };
            text.push_str(&format!("{id}  {title}{unit}\n"));
            last = Some(beside.row);
        }
        text.push_str(&format!("{line}\n"));
    }
    text.push('\n');
    text.push_str(&super::execution::text(ran, width));
    text.push_str(&notes(ran).iter().map(|note| wrap(note, width, "  ")).collect::<String>());
    text
}

/// Whether a study has base values only.
fn is_base(study: &Study) -> bool {
    study.rows.iter().flat_map(|row| &row.cells).all(|cell| cell.role == Role::Base)
}

fn heading() -> Vec<String> {
    let heading = ["", "published", "twin", "publ.diff", "twin diff", "95%", "robust", "verdict"];
    heading.iter().map(|cell| cell.to_string()).collect()
}

fn names(study: &Study, beside: &Beside) -> [String; 3] {
    let row = &study.rows[beside.row];
    [row.id.clone(), row.title(), row.unit.clone()]
}

/// From the kernel's letter to the verdict.
pub fn cells(study: &Study, beside: &Beside) -> Vec<String> {
    let cell = &study.rows[beside.row].cells[beside.cell];
    let published = match &cell.published {
        Published::Value(value) => number(*value),
        Published::DiffPct(_) => String::new(),
        Published::Text(_) => "words".to_string(),
    };
    let twin = beside.twin.map_or("-".to_string(), |twin| number(twin.mean));
    let of_base = cell.role == Role::Base;
    let (change, half) = match of_base {
        true => Default::default(),
        false => difference_cells(beside.difference.as_ref(), "", "+-"),
    };
    let significant = beside.difference.is_some_and(|d| d.significant);
    let robust = if of_base { String::new() } else { robust_text(beside) };
    let verdict = match of_base {
        true => base_text(study, beside),
        false if beside.words => "words only".to_string(),
        false => beside.verdict.word().to_string(),
    };
    vec![
        letter(cell.column),
        published,
        twin,
        beside.published_diff_pct.map_or(String::new(), percent),
        change + if significant { " *" } else { "" },
        half,
        robust,
        verdict,
    ]
}

/// `yes 12/15`: all variants have the sign, and twelve of the fifteen know it.
pub fn robust_text(beside: &Beside) -> String {
    let word = match beside.robust {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    };
    match beside.counting_variants {
        0 => word.to_string(),
        all => format!("{word} {}/{all}", beside.known_in_variants),
    }
}

/// A difference with half the width of its interval: `-13.4% +-5.1`.
pub fn difference_text(difference: &Difference) -> String {
    let (change, half) = difference_cells(Some(difference), "", "+-");
    if half.is_empty() { change } else { format!("{change} {half}") }
}

/// Returns the role of a base value: fitted, or a check and how far off.
fn base_text(study: &Study, beside: &Beside) -> String {
    let what = if beside.fitted { "fitted" } else { "check" };
    match base_deviation_pct(study, beside) {
        Some(deviation) => format!("{what}: {}", percent(deviation)),
        None => "base".to_string(),
    }
}

fn percent(x: f64) -> String {
    let decimals = match x.abs() {
        ..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    format!("{x:+.decimals$}%")
}

/// Returns the fitted values in one line; `None` if nothing was fitted.
pub fn fitted_text(ran: &Ran) -> Option<String> {
    if ran.calibrated.is_empty() {
        return None;
    }
    // Parameters that were fitted together share their base values, which are named once.
    let mut fits: Vec<(Vec<String>, &[String])> = Vec::new();
    for one in &ran.calibrated {
        match fits.iter_mut().find(|(_, on)| *on == one.fitted_on) {
            Some((sets, _)) => sets.push(one.set.text()),
            None => fits.push((vec![one.set.text()], &one.fitted_on)),
        }
    }
    let one =
        |(sets, on): &(Vec<String>, &[String])| format!("{} on {}", sets.join(", "), on.join(", "));
    let all: Vec<String> = fits.iter().map(one).collect();
    Some(format!("{}: fitted on base values only: {}", ran.study.name, all.join("; ")))
}

/// Returns the notes of a study below its table.
pub fn notes(ran: &Ran) -> Vec<String> {
    let mut notes = Vec::new();
    match fitted_text(ran) {
        Some(fitted) => notes.push(fitted),
        None => notes.push("nothing is calibrated".to_string()),
    }
    let warnings = ran.calibrated.iter().flat_map(|one| &one.warnings);
    notes.extend(warnings.map(|warning| format!("warning: {warning}")));
    for row in &ran.study.rows {
        let used = row.used_by.iter().map(|by| format!("{}: {by} rests on it", row.title()));
        notes.extend(used.filter(|used| !notes.contains(used)).collect::<Vec<_>>());
    }
    let settings: Vec<String> =
        ran.study.settings.iter().map(|one| format!("{} ({})", one.set.text(), one.why)).collect();
    if !settings.is_empty() {
        notes.push(format!("set as in the publication: {}", settings.join("; ")));
    }
    let mut reasons: Vec<&String> = ran.cells.iter().filter_map(|c| c.why_not.as_ref()).collect();
    reasons.sort();
    reasons.dedup();
    notes.extend(reasons.into_iter().map(|reason| format!("no value: {reason}")));
    let asked = ran.cells.iter().any(|cell| !cell.in_variants.is_empty());
    if asked {
        let counting = ran.study.variants.iter().filter(|v| v.ruled_out.is_none());
        let names: Vec<&str> = counting.map(|v| v.name.as_str()).collect();
        notes.push(format!(
            "robust: the sign is the same with {}; k/n: k of these n know it beyond their own intervals",
            names.join(", ")
        ));
        notes.extend(ran.study.variants.iter().enumerate().map(|(at, variant)| {
            let in_it: Vec<String> =
                ran.cells.iter().filter_map(|b| in_variant(ran, b, at)).collect();
            let ruled_out = if variant.ruled_out.is_some() { " (ruled out)" } else { "" };
            format!("with {}{ruled_out}: {}", variant.name, in_it.join(", "))
        }));
    }
    notes.extend(crash::lines(&ran.crashes));
    notes.extend(ran.notices.iter().map(|notice| format!("note: {notice}")));
    let last = provenance_lines(&ran.provenance);
    notes.extend(last.into_iter().filter(|line| line.starts_with("inputs")));
    notes
}

/// A difference in a variant: row, kernel, percent; with a star where its sign is known.
fn in_variant(ran: &Ran, beside: &Beside, variant: usize) -> Option<String> {
    let difference = (*beside.in_variants.get(variant)?)?;
    let row = &ran.study.rows[beside.row];
    let star = if difference.significant { " *" } else { "" };
    let diff = percent(difference.diff_pct?);
    Some(format!("{} {} {diff}{star}", row.id, letter(row.cells[beside.cell].column)))
}

/// Returns the notes that are said once for all studies.
fn end(studies: &Studies) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, waits) in &studies.waiting {
        lines.push(format!("{name} waits for: {}", waits.join(", ")));
    }
    if studies.ran.is_empty() {
        return lines;
    }
    lines.extend(base_values(&studies.ran));
    let of = studies.ran.first().map(|ran| provenance_lines(&ran.provenance)).unwrap_or_default();
    let provenance = of.into_iter().filter(|line| !line.starts_with("inputs"));
    if studies.ran.iter().all(|ran| is_base(&ran.study)) {
        lines.extend(provenance);
        return lines;
    }
    let counts: Vec<String> = summary(studies.ran.iter().flat_map(|ran| &ran.cells))
        .into_iter()
        .map(|(verdict, count)| format!("{count} {}", verdict.word()))
        .collect();
    let words = studies.ran.iter().flat_map(|ran| &ran.cells).filter(|cell| cell.words).count();
    let words = match words {
        0 => String::new(),
        words => format!("; {words} more have words only, which no verdict can be set beside"),
    };
    lines.push(format!("verdicts: {}{words}", counts.join(", ")));
    lines.push(
        "*: p < 0.05 in the paired t-test. 95%: half the width of the interval of the twin's difference, in % of the base."
            .to_string(),
    );
    lines.push(
        "agree: same sign and 0.5 to 2 times the published difference, or both within the noise. direction: same sign only."
            .to_string(),
    );
    lines.extend(provenance);
    lines
}

/// How many base values the twin meets, by study and of all.
fn base_values(ran: &[Ran]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut all = [0; 4];
    for one in ran {
        let mut of = [0; 4];
        for beside in &one.cells {
            let Some(deviation) = base_deviation_pct(&one.study, beside) else { continue };
            let is = [true, deviation.abs() <= 10.0, deviation.abs() <= 25.0, beside.fitted];
            of.iter_mut().zip(is).for_each(|(count, is)| *count += is as usize);
        }
        if of[0] > 0 {
            lines.push(format!("base values of {}: {}", one.study.name, base_counts(of)));
        }
        all.iter_mut().zip(of).for_each(|(count, of)| *count += of);
    }
    if lines.len() > 1 {
        lines.push(format!("base values of all: {}", base_counts(all)));
    }
    lines
}

fn base_counts([all, near, far, fitted]: [usize; 4]) -> String {
    let share = |count: usize| 100 * count / all;
    format!(
        "of {all}, {near} are within 10 % ({} %) and {far} within 25 % ({} %); {fitted} were fitted",
        share(near),
        share(far)
    )
}

/// By how much a base value is missed, in percent of what was published.
fn base_deviation_pct(study: &Study, beside: &Beside) -> Option<f64> {
    let is_base = study.rows[beside.row].cells[beside.cell].role == Role::Base;
    let (twin, published) = beside.twin.zip(beside.published).filter(|_| is_base)?;
    (published != 0.0).then(|| 100.0 * (twin.mean - published) / published.abs())
}

pub fn markdown(studies: &Studies) -> String {
    let mut text = String::new();
    for ran in &studies.ran {
        let study = &ran.study;
        text.push_str(&format!(
            "### {}: {}\n\n{}. **{}**, **{}**: {} runs each, paired ({}).\n\n",
            escape(&study.name),
            escape(&study.description),
            escape(&study.published),
            escape(&study.machine),
            escape(&study.workload),
            ran.seeds.len(),
            seeds_text(&ran.seeds)
        ));
        text.push_str("| | metric | unit | kernel | published | twin | published difference | twin's difference | robust | verdict |\n");
        text.push_str("|---|---|---|---|---:|---:|---:|---:|---|---|\n");
        for beside in &ran.cells {
            let [id, title, unit] = names(study, beside);
            let cells = cells(study, beside);
            let kernel = &study.columns[study.rows[beside.row].cells[beside.cell].column].kernel;
            let [_, published, twin, publ_diff, change, half, robust, verdict] = &cells[..] else {
                unreachable!("the cells of a row are eight");
            };
            let half = half.replace("+-", " ±");
            let row = [&id, &title, &unit, kernel, published, twin, publ_diff];
            let row: Vec<String> = row.iter().map(|cell| escape(cell)).collect();
            let change = escape(change);
            text.push_str(&format!(
                "| {} | {change}{half} | {robust} | {verdict} |\n",
                row.join(" | ")
            ));
        }
        text.push('\n');
        text.push_str(&super::execution::markdown(ran));
        text.extend(notes(ran).iter().map(|note| format!("- {}\n", escape(note))));
        text.push('\n');
    }
    text.extend(end(studies).iter().map(|line| format!("- {}\n", escape(line))));
    text
}

pub fn show(study: &Study, setups: &[Setup], width: usize) -> String {
    let mut text = format!("{}\n{}\n", study.name, study.description);
    text.push_str(&wrap(&study.published, width, "  "));
    text.push('\n');
    text.push_str(&wrap(&study.about.replace('\n', " "), width, ""));
    text.extend(study.report.as_ref().map(|head| report_head(head, width)));
    let waits = waits_for(setups);
    if !waits.is_empty() {
        text.push_str(&format!("\nwaits for: {}\n", waits.join(", ")));
    }
    text.push_str("\nkernels\n");
    for (number, column) in study.columns.iter().enumerate() {
        text.push_str(&format!("  {}  {}", letter(number), column.kernel));
        text.extend(column.run_as.as_ref().map(|run_as| format!("  (here {run_as})")));
        text.extend(column.against.as_ref().map(|against| format!("  against {against}")));
        text.push('\n');
    }
    if !setups.is_empty() {
        text.push_str("\nwhat runs\n");
    }
    for setup in setups {
        text.push_str(&format!("  -m '{}' -w '{}'\n", setup.machine, setup.workload));
        text.extend(setup.scenarios.iter().map(|column| format!("    -k '{}'\n", column.kernel)));
        text.extend(setup.waits_for.iter().map(|waits| format!("    waits for: {waits}\n")));
    }
    text.push_str("\npublished\n");
    let heading = ["", "", "", "", "", "published", "noise", "detectable", ""];
    let mut rows = vec![heading.map(str::to_string).to_vec()];
    for row in &study.rows {
        for (at, cell) in row.cells.iter().enumerate() {
            let [id, title, unit] = match at {
                0 => [format!("  {}", row.id), row.title(), row.unit.clone()],
                _ => Default::default(),
            };
            let published = match &cell.published {
                Published::Value(value) => value.to_string(),
                Published::DiffPct(diff) => format!("{diff:+}%"),
                Published::Text(text) => format!("\"{text}\""),
            };
            let noise = row.noise_of(cell).map_or(String::new(), |noise| {
                let assumed = if noise.assumed.is_some() { " assumed" } else { "" };
                format!("+-{}{assumed}", noise.half_width)
            });
            let role = cell.role.word().to_string();
            let power = power(study, row, cell);
            let least = power.least_pct().map_or(String::new(), |least| format!("{least:.1}%"));
            let word = power.word().to_string();
            rows.push(vec![
                id,
                title,
                unit,
                letter(cell.column),
                role,
                published,
                noise,
                least,
                word,
            ]);
        }
    }
    if is_base(study) {
        rows.iter_mut().for_each(|row| row.truncate(7));
    }
    let nr_columns = rows[0].len();
    text.push_str(&plain_table(rows, 5, if nr_columns > 7 { &[5, 6, 7] } else { &[5, 6] }));
    let told = Powers::of(study).sentence();
    text.extend(told.map(|told| format!("\n{}", wrap(&told, width, "  "))));
    for (title, lines) in [
        (
            "set as in the publication",
            study
                .settings
                .iter()
                .map(|s| format!("{}: {}", s.set.text(), s.why))
                .collect::<Vec<_>>(),
        ),
        (
            "may be fitted",
            study
                .fits
                .iter()
                .map(|fit| {
                    let on: Vec<&str> = fit.fitted_on.iter().map(|on| on.value.as_str()).collect();
                    let [low, high] = fit.bounds;
                    format!(
                        "{} in {low} .. {high}, on {}: {}",
                        fit.parameter.value,
                        on.join(", "),
                        fit.why
                    )
                })
                .collect(),
        ),
        (
            "variants that no sign shall depend on",
            study
                .variants
                .iter()
                .map(|variant| {
                    let sets: Vec<String> = variant.settings.iter().map(|set| set.text()).collect();
                    let ruled_out = variant.ruled_out.as_ref();
                    let ruled_out =
                        ruled_out.map_or(String::new(), |why| format!("; ruled out: {why}"));
                    format!("{} ({}): {}{ruled_out}", variant.name, sets.join(", "), variant.why)
                })
                .collect(),
        ),
        (
            "notes",
            study
                .rows
                .iter()
                .filter_map(|r| Some(format!("{}: {}", r.id, r.note.as_ref()?)))
                .collect(),
        ),
    ] {
        if !lines.is_empty() {
            text.push_str(&format!("\n{title}\n"));
            text.extend(lines.iter().map(|line| format!("  {}", wrap(line, width - 2, "    "))));
        }
    }
    text
}

/// The table `[report]` in words.
fn report_head(head: &Head, width: usize) -> String {
    let kept = if head.kept_aside { ", kept aside" } else { "" };
    let kind = head.kind.word();
    let mut text = format!("\nreport: {kind}, {}, {}{kept}\n", head.year, head.status.word());
    let mut line = |title: &str, items: &[String]| {
        if !items.is_empty() {
            text.push_str(&wrap(&format!("{title}: {}", items.join("; ")), width, "  "));
        }
    };
    line("why", &head.status.why().map(str::to_string).into_iter().collect::<Vec<_>>());
    line("not known", &head.unknown);
    line("assumed", &head.assumed);
    text.extend(head.sources.iter().map(|address| format!("{address}\n")));
    text
}

#[cfg(test)]
mod tests {
    use super::percent;

    /// Three digits at least, and two decimals at most.
    #[test]
    fn percent_has_as_many_decimals_as_it_needs() {
        let shown = [-0.004, 9.994, -9.994, 10.0, -99.94, 100.0, 1234.5].map(percent);
        let expected = ["-0.00%", "+9.99%", "-9.99%", "+10.0%", "-99.9%", "+100%", "+1234%"];
        assert_eq!(shown, expected);
    }
}
