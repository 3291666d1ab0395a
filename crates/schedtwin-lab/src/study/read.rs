// SPDX-License-Identifier: GPL-2.0-or-later
//! A study from its file: all faults at once, each with its place.
//!
//! ```toml
//! name = "demo"
//! description = "what it is, in one line"
//! published = "where and when"
//! about = "the set-up in words"
//! machine = "pixel6"
//! workload = "ui-phone"
//!
//! [[column]]
//! kernel = "linux-5.18"
//! [[column]]
//! kernel = "linux-5.18+runnable-boost"
//!
//! [[row]]
//! id = "1"
//! metric = "frame_duration"
//! stat = "mean"
//! unit = "ms"
//! better = "lower"
//! cells = [
//!   { kernel = "linux-5.18", role = "base", value = 18.0 },
//!   { kernel = "linux-5.18+runnable-boost", role = "patched", value = 12.7 },
//! ]
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use schedtwin_input::{
    Diagnostics, FromNode, Located, Node, Source, TableReader, TomlDocument, Value, did_you_mean,
    read_source,
};

use crate::study::execution::judge::Executed;
use crate::study::execution::recorded::{self, Recording};
use crate::study::reports::{self, Status};
use crate::study::spec::{Assignment, parse_parameter};
use crate::study::{
    Cell, Column, Direction, Explained, Fit, Noise, OverRuns, Published, Role, Row, Selector,
    Study, Variant, builtin,
};

/// The study of that name, or of that file. Paths in a file that begin with `./` or `../` are as seen from its folder.
pub fn load(name: &str) -> Result<Study, Diagnostics> {
    if name.contains('/') || name.ends_with(".toml") {
        let mut study = read(&read_source(name)?)?;
        if let Some(folder) = name.rfind('/').map(|at| &name[..at + 1]) {
            study.see_paths_from(folder);
        }
        return Ok(study);
    }
    match builtin::source(name) {
        Some(source) => read(&source),
        None => {
            let help = match did_you_mean(name, builtin::names()) {
                Some(near) => format!("did you mean `{near}`? (`schedtwin study list` lists all)"),
                None => "`schedtwin study list` lists them; a path ends in .toml".to_string(),
            };
            let mut faults = Diagnostics::new();
            let source = Source::new("<command line>", name);
            faults.push(&source, 0..name.len(), format!("there is no study `{name}`"), Some(help));
            Err(faults)
        }
    }
}

/// A number, whole or with a fraction.
#[derive(Clone, Copy)]
pub(crate) struct Number {
    pub(crate) value: f64,
    whole: bool,
}

impl FromNode for Number {
    fn from_node(node: &Node, faults: &mut Diagnostics) -> Option<Number> {
        match node.value {
            Value::Integer(value) if value.unsigned_abs() < 1 << 53 => {
                Some(Number { value: value as f64, whole: true })
            }
            Value::Float(value) if value.is_finite() => Some(Number { value, whole: false }),
            _ => {
                faults.push_at(&node.at, "a finite number expected", None);
                None
            }
        }
    }
}

/// Reads the text of a study.
pub fn read(source: &Arc<Source>) -> Result<Study, Diagnostics> {
    let document = TomlDocument::parse(source)?;
    let mut faults = Diagnostics::new();
    let f = &mut faults;
    let mut file = document.reader();
    let name = file.required("name", f);
    let description = file.required("description", f);
    let published = file.required("published", f);
    let about = file.required("about", f);
    let report = file.optional_table("report", f).and_then(|table| reports::head(table, f));
    // A report that cannot run may lack the machine or the workload that would be needed.
    let runs = report.as_ref().is_none_or(|report| report.status == Status::Runs);
    let [machine, workload] = ["machine", "workload"].map(|key| match runs {
        true => file.required(key, f),
        false => Some(file.optional(key, f).unwrap_or_default()),
    });
    let duration_ns = file
        .optional::<Located<String>>("duration", f)
        .and_then(|text| located(&text, parse_duration(&text.value), f));
    let settings = file.tables("setting", f).into_iter().filter_map(|t| setting(t, f)).collect();
    let columns: Vec<Located<Column>> =
        file.tables("column", f).into_iter().filter_map(|t| column(t, f)).collect();
    for (at, one) in columns.iter().enumerate() {
        if columns[..at].iter().any(|other| other.value.kernel == one.value.kernel) {
            f.push_at(&one.at, format!("column `{}` is there twice", one.value.kernel), None);
        }
        if let Some(against) = &one.value.against
            && !columns.iter().any(|other| other.value.kernel == *against)
        {
            f.push_at(&one.at, format!("there is no column `{against}` to compare with"), None);
        }
    }
    let columns: Vec<Column> = columns.into_iter().map(|column| column.value).collect();
    let rows: Vec<Row> =
        file.tables("row", f).into_iter().filter_map(|t| row(t, &columns, f)).collect();
    let recordings: Option<Located<String>> = file.optional("recordings", f);
    let recordings = recordings.and_then(|name| {
        // A path in a file is as seen from the file.
        let folder = source.name.rfind('/').map_or("", |at| &source.name[..at + 1]);
        let dotted = name.value.starts_with("./") || name.value.starts_with("../");
        let path = format!("{}{}", if dotted { folder } else { "" }, name.value);
        let found = recorded::load(&path).map_err(|faults| (name.at.clone(), faults));
        found.map_err(|(at, faults)| f.push_at(&at, faults.to_string(), None)).ok()
    });
    let recordings = recordings.unwrap_or_default();
    let executions: Vec<Executed> = (file.tables("execution", f).into_iter())
        .filter_map(|t| execution(t, &columns, &recordings, f))
        .collect();
    let fits: Vec<Fit> =
        file.tables("fit", f).into_iter().filter_map(|t| fit(t, &columns, &rows, f)).collect();
    let variants = file.tables("variant", f).into_iter().filter_map(|t| variant(t, f)).collect();
    if columns.is_empty() && f.is_empty() {
        f.push_whole(source, "a study has columns: [[column]] kernel = \"...\"", None);
    }
    if rows.is_empty() && executions.is_empty() && f.is_empty() {
        let message = "a study has rows or executions: [[row]] id = \"...\"";
        f.push_whole(source, message, None);
    }
    file.finish(f);
    faults.sort();
    let (
        Some(name),
        Some(description),
        Some(published),
        Some(about),
        Some(machine),
        Some(workload),
        true,
    ) = (name, description, published, about, machine, workload, faults.is_empty())
    else {
        return Err(faults);
    };
    Ok(Study {
        source: source.clone(),
        name,
        description,
        published,
        about,
        machine,
        workload,
        duration_ns,
        settings,
        columns,
        rows,
        executions,
        fits,
        variants,
        report,
    })
}

impl Study {
    /// Puts `folder` (with its slash) before the paths of machines, workloads, kernels and patches that begin with a dot.
    pub(super) fn see_paths_from(&mut self, folder: &str) {
        let dotted = |path: &str| path.starts_with("./") || path.starts_with("../");
        let see = |text: &mut String| {
            // A kernel's patches come after a plus sign; settings and options, after the first of these, are no paths.
            let end = text.find([':', ' ']).unwrap_or(text.len());
            let (paths, rest) = text.split_at(end);
            let seen: Vec<String> = paths
                .split('+')
                .map(|path| if dotted(path) { format!("{folder}{path}") } else { path.to_string() })
                .collect();
            *text = seen.join("+") + rest;
        };
        see(&mut self.machine);
        see(&mut self.workload);
        for row in &mut self.rows {
            row.machine.as_mut().map(see);
            row.workload.as_mut().map(see);
        }
        for execution in &mut self.executions {
            execution.machine.as_mut().map(see);
            execution.workload.as_mut().map(see);
        }
        // What runs, not what it is called: cells name columns.
        for column in &mut self.columns {
            let run_as = column.run_as.get_or_insert_with(|| column.kernel.clone());
            see(run_as);
            if *run_as == column.kernel {
                column.run_as = None;
            }
        }
    }
}

/// The value of a text that was understood; else a fault at its place.
pub(crate) fn located<S, T>(
    at: &Located<S>,
    parsed: Result<T, String>,
    f: &mut Diagnostics,
) -> Option<T> {
    parsed.map_err(|message| f.push_at(&at.at, message, None)).ok()
}

pub(crate) fn parse_duration(text: &str) -> Result<u64, String> {
    // The parser of the command line: what a study may say, a command may, too.
    text.parse().map(schedtwin_types::Duration::ns)
}

fn assignments(reader: &mut TableReader, key: &str, f: &mut Diagnostics) -> Vec<Assignment> {
    let texts: Vec<Located<String>> = reader.optional(key, f).unwrap_or_default();
    texts.iter().filter_map(|text| located(text, Assignment::parse(&text.value), f)).collect()
}

fn setting(mut reader: TableReader, f: &mut Diagnostics) -> Option<Explained> {
    let set: Option<Located<String>> = reader.required("set", f);
    let why = reader.required("why", f);
    reader.finish(f);
    let set = set.and_then(|set| located(&set, Assignment::parse(&set.value), f));
    Some(Explained { set: set?, why: why? })
}

fn variant(mut reader: TableReader, f: &mut Diagnostics) -> Option<Variant> {
    let name = reader.required("name", f);
    let at = reader.location_of("set");
    let settings = assignments(&mut reader, "set", f);
    if settings.is_empty() {
        f.push_at(&at, "a variant sets something: set = [\"machine.KEY=VALUE\"]", None);
    }
    let why = reader.required("why", f);
    let ruled_out = reader.optional("ruled_out", f);
    reader.finish(f);
    Some(Variant { name: name?, settings, why: why?, ruled_out })
}

fn column(mut reader: TableReader, f: &mut Diagnostics) -> Option<Located<Column>> {
    let kernel: Option<Located<String>> = reader.required("kernel", f);
    let run_as = reader.optional("run_as", f);
    let against = reader.optional("against", f);
    reader.finish(f);
    let kernel = kernel?;
    Some(Located { value: Column { kernel: kernel.value, run_as, against }, at: kernel.at })
}

fn labels(reader: &mut TableReader, f: &mut Diagnostics) -> Vec<(String, String)> {
    let Some(mut table) = reader.optional_table("labels", f) else { return Vec::new() };
    let mut labels = Vec::new();
    for key in ["domain", "cluster", "cpu", "task", "section", "part", "state", "mode"] {
        let value: Option<String> = table.optional(key, f);
        labels.extend(value.map(|value| (key.to_string(), value)));
    }
    table.finish(f);
    labels
}

fn row(mut reader: TableReader, columns: &[Column], f: &mut Diagnostics) -> Option<Row> {
    let id: Option<Located<String>> = reader.required("id", f);
    let metric = reader.required("metric", f);
    let stat = reader.required("stat", f);
    let labels = labels(&mut reader, f);
    let unit = reader.required("unit", f);
    let better = reader.required::<Located<String>>("better", f).and_then(|text| {
        let better = match text.value.as_str() {
            "higher" => Ok(Direction::Higher),
            "lower" => Ok(Direction::Lower),
            "none" => Ok(Direction::None),
            _ => Err("`higher`, `lower` or `none` is better".to_string()),
        };
        located(&text, better, f)
    });
    let over_runs = match reader.optional::<Located<String>>("over_runs", f) {
        None => Some(OverRuns::Mean),
        Some(text) => {
            let over_runs = match text.value.as_str() {
                "mean" => Ok(OverRuns::Mean),
                "gmean" => Ok(OverRuns::Gmean),
                _ => Err("runs are combined by `mean` or `gmean`".to_string()),
            };
            located(&text, over_runs, f)
        }
    };
    let twin = reader
        .optional::<Located<String>>("twin", f)
        .and_then(|text| located(&text, parse_selector(&text.value), f));
    let occasion = reader.optional("occasion", f);
    let machine = reader.optional("machine", f);
    let workload = reader.optional("workload", f);
    let settings = assignments(&mut reader, "set", f);
    let noise = reader.optional_table("noise", f).and_then(|mut table| {
        let half_width = half_width(&mut table, "value", f);
        let assumed = table.optional("assumed", f);
        if half_width.is_none() {
            f.push_at(table.location(), "a noise has a `value`, its half-width", None);
        }
        table.finish(f);
        Some(Noise { half_width: half_width?, assumed })
    });
    let used_by = reader.optional("used_by", f);
    let note = reader.optional("note", f);
    let cells: Vec<Cell> =
        reader.tables("cells", f).into_iter().filter_map(|t| cell(t, columns, f)).collect();
    for (at, cell) in cells.iter().enumerate() {
        if cells[..at].iter().any(|other| other.column == cell.column) {
            f.push_at(&cell.at, "this row has two cells of that kernel", None);
        }
    }
    reader.finish(f);
    Some(Row {
        id: id?.value,
        metric: metric?,
        stat: stat?,
        labels,
        unit: unit?,
        better: better?,
        occasion,
        machine,
        workload,
        settings,
        twin,
        over_runs: over_runs?,
        noise,
        used_by,
        note,
        cells,
    })
}

fn execution(
    mut reader: TableReader,
    columns: &[Column],
    recordings: &[Recording],
    f: &mut Diagnostics,
) -> Option<Executed> {
    let id = reader.required("id", f);
    let recording = reader.required::<Located<String>>("recording", f).and_then(|name| {
        let found = recordings.iter().find(|recording| recording.name == name.value);
        if found.is_none() {
            let near = did_you_mean(&name.value, recordings.iter().map(|r| r.name.as_str()));
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`recordings` of the study names the file that has it".to_string(),
            };
            f.push_at(&name.at, format!("there is no recording `{}`", name.value), Some(help));
        }
        found.cloned()
    });
    let machine = reader.optional("machine", f);
    let workload = reader.optional("workload", f);
    let kernels: Vec<Located<String>> = reader.required("kernels", f).unwrap_or_default();
    reader.finish(f);
    let columns = kernels.iter().filter_map(|kernel| column_of(kernel, columns, f)).collect();
    Some(Executed { id: id?, recording: recording?, machine, workload, columns })
}

/// The number of the column that a file names.
fn column_of(kernel: &Located<String>, columns: &[Column], f: &mut Diagnostics) -> Option<usize> {
    let found = columns.iter().position(|column| column.kernel == kernel.value);
    if found.is_none() {
        let near = did_you_mean(&kernel.value, columns.iter().map(|c| c.kernel.as_str()));
        let help = near.map(|near| format!("did you mean `{near}`?"));
        f.push_at(&kernel.at, format!("there is no [[column]] `{}`", kernel.value), help);
    }
    found
}

fn half_width(reader: &mut TableReader, key: &str, f: &mut Diagnostics) -> Option<f64> {
    let noise: Located<Number> = reader.optional(key, f)?;
    let ok = noise.value.value > 0.0;
    let fault = || "a half-width is above 0".to_string();
    located(&noise, ok.then_some(noise.value.value).ok_or_else(fault), f)
}

fn cell(mut reader: TableReader, columns: &[Column], f: &mut Diagnostics) -> Option<Cell> {
    let at = reader.location().clone();
    let column = reader
        .required::<Located<String>>("kernel", f)
        .and_then(|kernel| column_of(&kernel, columns, f));
    let role = reader.required::<Located<String>>("role", f).and_then(|role| {
        let known = match role.value.as_str() {
            "base" => Ok(Role::Base),
            "patched" => Ok(Role::Patched),
            _ => Err("a role is `base` or `patched`".to_string()),
        };
        located(&role, known, f)
    });
    let value: Option<Number> = reader.optional("value", f);
    let diff_pct: Option<Number> = reader.optional("diff_pct", f);
    let text: Option<String> = reader.optional("text", f);
    let noise = half_width(&mut reader, "noise", f);
    reader.finish(f);
    let published = match (value, diff_pct, text) {
        (Some(value), None, None) => Published::Value(value.value),
        (None, Some(diff), None) => Published::DiffPct(diff.value),
        (None, None, Some(text)) => Published::Text(text),
        _ => {
            f.push_at(&at, "a cell has one of `value`, `diff_pct` and `text`", None);
            return None;
        }
    };
    Some(Cell { column: column?, role: role?, published, noise, at })
}

fn fit(
    mut reader: TableReader,
    columns: &[Column],
    rows: &[Row],
    f: &mut Diagnostics,
) -> Option<Fit> {
    let parameter: Option<Located<String>> = reader.required("parameter", f);
    if let Some(parameter) = &parameter {
        located(parameter, parse_parameter(&parameter.value), f);
    }
    let span = span(&mut reader, f);
    let fitted_on: Vec<Located<String>> = reader.required("fitted_on", f).unwrap_or_default();
    let why = reader.required("why", f);
    reader.finish(f);
    for wanted in &fitted_on {
        if base_cells(&wanted.value, columns, rows).is_empty() {
            let message = format!("`{}` names no base cell with a number", wanted.value);
            let help = "write ID, or ID KERNEL".to_string();
            f.push_at(&wanted.at, message, Some(help));
        }
    }
    let (bounds, choices, start, whole) = span?;
    Some(Fit { parameter: parameter?, bounds, choices, start, whole, fitted_on, why: why? })
}

/// What a parameter may be: `bounds` and `start` of a number, or `choices`, of which the search begins with the first. The bounds, the
/// choices, the start, and whether it takes whole numbers only.
fn span(
    reader: &mut TableReader,
    f: &mut Diagnostics,
) -> Option<([f64; 2], Vec<String>, f64, bool)> {
    let choices: Option<Located<Vec<String>>> = reader.optional("choices", f);
    if let Some(choices) = choices {
        let different: BTreeSet<&String> = choices.value.iter().collect();
        let fault = || "two different choices at least".to_string();
        let enough = different.len() > 1 && different.len() == choices.value.len();
        located(&choices, enough.then_some(()).ok_or_else(fault), f)?;
        return Some(([0.0, (choices.value.len() - 1) as f64], choices.value, 0.0, true));
    }
    let bounds: Option<Located<Vec<Number>>> = reader.required("bounds", f);
    let start: Option<Located<Number>> = reader.optional("start", f);
    let bounds = bounds?;
    let pair = match bounds.value.as_slice() {
        [low, high] if low.value < high.value => Ok((*low, *high)),
        _ => Err("bounds are [LEAST, GREATEST]".to_string()),
    };
    let (low, high) = located(&bounds, pair, f)?;
    let start = match start {
        None => (low.value + high.value) / 2.0,
        Some(start) => {
            let within = (low.value..=high.value).contains(&start.value.value);
            let fault = || "the start lies outside the bounds".to_string();
            located(&start, within.then_some(start.value.value).ok_or_else(fault), f)?
        }
    };
    let whole = low.whole && high.whole;
    let start = if whole { start.round() } else { start };
    Some(([low.value, high.value], Vec::new(), start, whole))
}

/// The base cells that `ID` or `ID KERNEL` names: numbers of row and cell.
pub(crate) fn base_cells(wanted: &str, columns: &[Column], rows: &[Row]) -> Vec<(usize, usize)> {
    let (id, kernel) = match wanted.split_once(' ') {
        Some((id, kernel)) => (id, Some(kernel.trim())),
        None => (wanted, None),
    };
    let mut found = Vec::new();
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| row.id == id) {
        for (number, cell) in row.cells.iter().enumerate() {
            let named = kernel.is_none_or(|kernel| columns[cell.column].kernel == kernel);
            let is_number = matches!(cell.published, Published::Value(_));
            if named && is_number && cell.role == Role::Base {
                found.push((at, number));
            }
        }
    }
    found
}

/// `NAME[.STAT][{LABEL=VALUE,...}]`.
fn parse_selector(text: &str) -> Result<Selector, String> {
    let fault = || "write NAME, NAME.STAT or NAME.STAT{LABEL=VALUE,...}".to_string();
    let (head, labels) = match text.split_once('{') {
        None => (text, Vec::new()),
        Some((head, rest)) => {
            let inside = rest.strip_suffix('}').ok_or_else(fault)?;
            let pair = |pair: &str| {
                let (key, value) = pair.split_once('=').ok_or_else(fault)?;
                Ok((key.trim().to_string(), value.trim().to_string()))
            };
            (head, inside.split(',').map(pair).collect::<Result<Vec<_>, String>>()?)
        }
    };
    let (name, stat) = match head.split_once('.') {
        None => (head, None),
        Some((name, stat)) => (name, Some(stat.trim().to_string())),
    };
    if name.trim().is_empty() || stat.as_ref().is_some_and(String::is_empty) {
        return Err(fault());
    }
    Ok(Selector { name: name.trim().to_string(), stat, labels })
}
