// SPDX-License-Identifier: GPL-2.0-or-later
//! Every form of report, printed in full: a change of layout must show in review.

use schedtwin_engine::domains::domains;
use schedtwin_engine::result::{CpuResult, TaskResult};
use serde_json::{Map, Value, json};

use super::*;
use crate::compare::ComparedRow;
use crate::timeline::Timelines;

fn run_report(format: Format, extent: Extent) -> String {
    let (provenance, result) = (example::provenance(), example::run());
    run(
        &RunReport { provenance: &provenance, kernel: "linux-6.12", seed: 7, result: &result },
        format,
        extent,
    )
}

#[test]
fn reports_look_as_expected() {
    for (form, format) in [
        ("text", Format::Text),
        ("markdown", Format::Markdown),
        ("json", Format::Json),
        ("csv", Format::Csv),
    ] {
        let compared = comparison(&example::comparison(), format, Extent::Headlines);
        insta::assert_snapshot!(format!("compare_{form}"), compared);
        insta::assert_snapshot!(format!("run_{form}"), run_report(format, Extent::Headlines));
    }
    insta::assert_snapshot!("run_text_all", run_report(Format::Text, Extent::All));
    let more = comparison(&example::comparison(), Format::Text, Extent::More);
    insta::assert_snapshot!("compare_text_more", more);
}

/// For a commit message: narrower, with deviations, and as mmtests prints it.
#[test]
fn text_has_layouts() {
    let layout = Layout { width: 72, ..Layout::default() };
    for (name, layout) in [
        ("stddev", Layout { stddev: true, ..layout }),
        ("mmtests", Layout { mmtests: true, ..layout }),
        ("mmtests_stddev", Layout { mmtests: true, stddev: true, ..layout }),
    ] {
        let text = comparison_in(&example::comparison(), Format::Text, Extent::Headlines, layout);
        insta::assert_snapshot!(format!("compare_text_{name}"), text);
    }
}

/// Checks that changes beyond chance below the headlines are named in one line, and that changes by
/// chance are not.
#[test]
fn what_else_changed_is_named_below_the_headlines() {
    let line =
        |text: &str| text.lines().find(|l| l.starts_with("also changed: ")).map(String::from);
    let mut compared = example::comparison();
    let text = comparison(&compared, Format::Text, Extent::Headlines);
    let told = line(&text).expect("a line");
    assert!(told.starts_with("also changed: idle_residency cluster=little"), "{told}");
    assert!(told.contains("-6.00 pt"), "{told}");
    assert_eq!(line(&comparison(&compared, Format::Text, Extent::More)), None);
    // Significant by itself, but not among so many.
    for row in &mut compared.rows {
        row.cells[1].difference.iter_mut().for_each(|difference| difference.p = Some(0.04));
    }
    assert_eq!(line(&comparison(&compared, Format::Text, Extent::Headlines)), None);
}

#[test]
fn a_replay_is_a_comparison_with_its_fidelity() {
    let replayed = example::replayed();
    for (form, format) in [
        ("text", Format::Text),
        ("markdown", Format::Markdown),
        ("json", Format::Json),
        ("csv", Format::Csv),
    ] {
        let text = replay(&replayed, format, Extent::Headlines);
        insta::assert_snapshot!(format!("replay_{form}"), text);
        if format == Format::Json {
            let document: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(errors("schedtwin.replay/1", &document), [""; 0]);
            assert!(!errors("schedtwin.compare/1", &document).is_empty());
        }
    }
}

#[test]
fn many_kernels_continue_in_blocks_of_at_most_a_hundred_columns() {
    let many = example::of_kernels(&["linux-5.18", "second", "third", "fourth"]);
    let text = comparison(&many, Format::Text, Extent::All);
    insta::assert_snapshot!("compare_text_many_all", text);
    let long = "linux-5.18:schedutil.rate_limit_us=".to_string() + &"5".repeat(200);
    for line in text
        .lines()
        .chain(comparison(&example::of_kernels(&["a", &long]), Format::Text, Extent::All).lines())
    {
        let is_legend = line.contains(&long);
        assert!(
            is_legend || line.chars().count() <= 100,
            "{} columns: {line}",
            line.chars().count()
        );
        assert!(line.is_ascii() && line.trim_end() == line, "{line:?}");
    }
}

/// Comparing a kernel with nothing, or with one seed, says so instead of showing intervals.
#[test]
fn little_data_is_said_to_be_little() {
    let mut single = example::comparison();
    single.seeds.truncate(1);
    let rows = single.rows.into_iter().map(|row| {
        let mut row = row.row;
        row.samples.iter_mut().for_each(|samples| samples.truncate(1));
        row
    });
    single.rows = crate::compare::judge(rows.collect(), crate::compare::Span::Asked);
    let text = comparison(&single, Format::Text, Extent::Headlines);
    assert!(text.contains("One seed: no interval"), "{text}");
    assert!(!text.contains("+-") && !text.contains("* better"), "{text}");
}

/// The shipped reports with their results, in each form.
#[test]
fn the_scoreboard_is_what_the_schema_says() {
    use crate::study::{builtin, load};

    let names = builtin::reports();
    let studies = names.map(|name| load(name).unwrap_or_else(|faults| panic!("{faults}")));
    let [first, present] = builtin::results();
    let waiting = vec![("x".into(), vec!["workload y".into()])];
    let board = super::Scoreboard { studies: studies.collect(), first, present, waiting };
    let document: Value =
        serde_json::from_str(&super::scoreboard(&board, Format::Json, super::WIDTH)).unwrap();
    assert_eq!(errors("schedtwin.reports/1", &document), [""; 0]);
    let all = &document["first"]["all"];
    let of = |key: &str| all[key].as_u64().expect("a count");
    assert_eq!(of("sign") + of("wrong") + of("inconclusive"), of("sure"));
    assert_eq!(of("reports"), board.studies.len() as u64);
    let text = super::scoreboard(&board, Format::Text, super::WIDTH);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("D30: refused: it measures the cost of a system call"), "{text}");
    let markdown = super::scoreboard(&board, Format::Markdown, super::WIDTH);
    assert!(markdown.contains("| R2 (preemption, 2023) |"), "{markdown}");
}

/// The twin may have moved since a study was fitted.
#[test]
fn a_stale_calibration_is_told() {
    use crate::study::prepare::Registry;
    use crate::study::run::{Calibrated, Ready, Then};
    use crate::study::spec::Assignment;
    use schedtwin_input::Source;

    let study = crate::study::read(&Source::new("demo.toml", crate::study::demo_text())).unwrap();
    let set = Assignment::parse("machine.settle_us=90").unwrap();
    let calibrated =
        vec![Calibrated { fitted_on: vec!["1 base".into()], ..Calibrated::plain(set) }];
    let then = |value, seeds| {
        let then = Then { seeds, values: vec![("1 base".into(), value)] };
        vec![Calibrated { then, ..calibrated[0].clone() }]
    };
    let notices = |calibrated: Vec<Calibrated>| {
        let ready = Ready::new(study.clone(), calibrated, false, &Registry::built_in());
        let iterations = crate::stopping::Iterations::Fixed(2);
        let plan = crate::compare::Plan { first_seed: 1, iterations };
        let ran = ready.run(&plan, &crate::Progress::new()).unwrap();
        let at = ran.cells.iter().find(|one| (one.row, one.cell) == (0, 0)).unwrap();
        (at.twin.as_ref().unwrap().mean, ran.notices)
    };
    let (mean, none) = notices(calibrated.clone());
    assert_eq!(none, [""; 0]);
    assert_eq!(notices(then(mean, 2)).1, [""; 0], "the same values");
    assert_eq!(notices(then(2.0 * mean, 3)).1, [""; 0], "other seeds say nothing");
    let stale = notices(then(2.0 * mean, 2)).1.remove(0);
    assert!(stale.starts_with("stale calibration: 1 of the 1 values"), "{stale}");
    assert!(stale.contains("1 base by -50.0 %; `schedtwin calibrate demo`"), "{stale}");
}

/// A study with values, with words, with what is missing and with what was fitted.
#[test]
fn studies_are_what_the_schema_says() {
    use crate::study::prepare::Registry;
    use crate::study::run::{Calibrated, Ready};
    use crate::study::spec::Assignment;
    use schedtwin_input::Source;

    let text = crate::study::demo_text();
    let study = crate::study::read(&Source::new("demo.toml", text)).unwrap();
    let set = Assignment::parse("machine.settle_us=90").unwrap();
    let calibrated =
        vec![Calibrated { fitted_on: vec!["1 base".into()], ..Calibrated::plain(set) }];
    let ready = Ready::new(study, calibrated, true, &Registry::built_in());
    let plan =
        crate::compare::Plan { first_seed: 1, iterations: crate::stopping::Iterations::Fixed(2) };
    let ran = vec![ready.run(&plan, &crate::Progress::new()).unwrap()];
    let all = Studies { ran, waiting: vec![("x".into(), vec!["workload y".into()])] };
    let document: Value = serde_json::from_str(&studies(&all, Format::Json)).unwrap();
    assert_eq!(errors("schedtwin.study/1", &document), [""; 0]);
    assert_eq!(document["studies"][0]["rows"][0]["role"], json!("base"));
    assert_eq!(document["studies"][0]["rows"][2]["role"], json!("check"));
    assert_eq!(document["studies"][0]["calibrated"][0]["value"], json!(90.0));
    let trust = document["provenance"]["trust"].as_str().unwrap();
    assert!(trust.starts_with("demo: fitted on base values only: machine.settle_us=90"), "{trust}");
    let study = crate::study::stability::predictions(ready.study(), &[]).unwrap();
    let ready = Ready::new(study, Vec::new(), false, &Registry::built_in());
    let iterations = crate::stopping::Iterations::Fixed(2);
    let progress = crate::Progress::new();
    let found = crate::study::stability::stability(&ready, 2, &iterations, 7, &progress).unwrap();
    let rerun = super::Rerun { ready: &ready, reruns: 2, iterations, first_seed: 7, found: &found };
    let document: Value = serde_json::from_str(&super::stability(&rerun, Format::Json)).unwrap();
    assert_eq!(errors("schedtwin.stability/1", &document), [""; 0]);
    assert_eq!(document["rows"][2]["counts"]["inconclusive"], json!(2));
    // A row, its verdict, and how often it was another one.
    let text = super::stability(&rerun, Format::Text);
    assert!(text.contains("100.0%  agree         1 frame_duration mean patched\n"), "{text}");
    let line = super::stability_line(&rerun, &found[1]);
    assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    let mut mixed = found[1].clone();
    let of = |word| crate::study::verdict::Verdict::ALL.iter().position(|v| v.word() == word);
    mixed.counts.fill(0);
    (mixed.counts[of("agree").unwrap()], mixed.counts[of("inconclusive").unwrap()]) = (1, 2);
    let line = super::stability_line(&rerun, &mixed);
    assert!(
        line.starts_with(" 66.7%  inconclusive  2 power ") && line.ends_with("  (agree 1)"),
        "{line}"
    );
    let shown = super::study(ready.study(), &[], super::WIDTH);
    let is_row = |line: &str| line.starts_with("  1 ") && line.contains("frame_duration mean");
    assert!(shown.lines().any(is_row), "{shown}");

    // What was fitted, what each variant says, and how sure that makes it.
    let ran = &all.ran[0];
    let text = studies(&all, Format::Text);
    let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "published twin publ.diff twin diff 95% robust verdict",
        "demo: fitted on base values only: machine.settle_us=90 on 1 base",
        "with slow clocks: 1 B ",
    ] {
        assert!(unwrapped.contains(expected), "{expected}\n{text}");
    }
    let predicted = ran.cells.iter().find(|cell| cell.counting_variants == 1);
    let robust = super::study::robust_text(predicted.expect("a prediction"));
    assert!(robust.ends_with("/1") && text.contains(&robust), "{robust}: {text}");
    assert_eq!(
        (&document_of(&all)["provenance"]["n"], &json!([1, 2])),
        (&json!(2), &document_of(&all)["provenance"]["seeds"])
    );
    let trust = document_of(&all)["provenance"]["trust"].as_str().unwrap().to_string();
    assert!(trust.ends_with(&ran.provenance.trust), "{trust}");
    let table = super::sensitivity(&all, Format::Markdown, super::WIDTH);
    assert_eq!(table.matches("| variant |").count(), 1, "the base is not predicted: {table}");
    assert!(
        super::sensitivity(&all, Format::Text, super::WIDTH)
            .contains("demo: 2 runs of each kernel, 2 in variants\n")
    );
    let page = html::studies(&all, &[]);
    for expected in ["<h1>demo</h1>", "frame_<wbr>duration", "machine.settle_us=90"] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
    let text = studies(&all, Format::Text);
    for expected in ["fitted: ", "check: ", "x waits for: workload y", "verdicts: 3 base"] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(studies(&all, Format::Markdown).contains("| 1 | frame_duration mean"));
    // The table of variants: a line each, one with what the study is, one with the answer.
    let table = super::sensitivity(&all, Format::Markdown, super::WIDTH);
    for expected in [
        "| variant | 1 frame_duration mean |",
        "| as the study is |",
        "| slow clocks: machine.settle_us=300 |",
        "| **robust** |",
    ] {
        assert!(table.contains(expected), "{expected}\n{table}");
    }
    let text = super::sensitivity(&all, Format::Text, super::WIDTH);
    assert!(text.contains("\nas the study is  ") && text.contains("\nslow clocks  "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

fn document_of(all: &Studies) -> Value {
    serde_json::from_str(&studies(all, Format::Json)).unwrap()
}

/// Checks that notes beside the rows are said where they apply and nowhere else.
#[test]
fn notes_are_said_where_they_apply() {
    let headlines = |compared: &Comparison| comparison(compared, Format::Text, Extent::Headlines);
    let mut compared = example::comparison();
    for (same, note) in [
        (5, Some("  (executed exactly as A)\n")),
        (3, Some("  (executed exactly as A with 3 of 5 seeds)\n")),
        (0, None),
    ] {
        compared.identical_executions[1] = same;
        let text = headlines(&compared);
        let told = text.contains("executed exactly");
        assert!(note.map_or(!told, |note| text.contains(note)), "{same}: {text}");
    }
    // One kernel is compared with nothing; of three it is said which one changed.
    assert!(headlines(&compared).contains("95%: half the width"));
    assert!(!headlines(&example::of_kernels(&["alone"])).contains("95%: half the width"));
    let three = headlines(&example::of_kernels(&["a", "b", "c"]));
    let three = three.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        three.contains(" B idle_residency cluster=little state=cpu-sleep -6.00 pt,"),
        "{three}"
    );
    // Where nothing is left out, no further rows are promised.
    assert!(headlines(&compared).contains("more rows: "));
    compared.rows.retain(|row| row.row.name == "jank");
    assert!(!headlines(&compared).contains("more rows: "), "{}", headlines(&compared));
    // Ten names of threads that were left out are too many, one is not.
    let mut replayed = example::replayed();
    let of = |replayed: &Replayed| replay(replayed, Format::Text, Extent::Headlines);
    assert!(of(&replayed).contains(" more ("), "{}", of(&replayed));
    replayed.fidelity.left_out[0].names.truncate(1);
    assert!(of(&replayed).contains("left out: sugov:0 ("), "{}", of(&replayed));
}

#[test]
fn a_change_is_marked_down_to_what_a_table_shows() {
    use schedtwin_types::metric::Better;
    let mut row = example::comparison().rows[1].clone();
    row.row.better = Better::Lower;
    row.row.unit = "ms";
    let difference = row.cells[1].difference.expect("there is one");
    assert!(difference.significant && difference.diff < 0.0);
    for (percent, word) in [(-0.005, "* better"), (-0.0049, ""), (0.005, "* worse")] {
        row.cells[1].difference.as_mut().expect("there is one").diff_pct = Some(percent);
        assert_eq!(change::verdict(&row, 1), word, "{percent}");
        // A doubtful row is not judged.
        row.doubtful = true;
        let doubted = if word.is_empty() { "" } else { "? doubtful" };
        assert_eq!(change::verdict(&row, 1), doubted, "{percent}");
        row.doubtful = false;
        row.not_judged = true;
        let unjudged = if word.is_empty() { "" } else { "? not judged" };
        assert_eq!(change::verdict(&row, 1), unjudged, "{percent}");
        row.not_judged = false;
    }
    assert_eq!([0.0, -1.5, 2.0].map(cells::signed), ["0", "-1.500", "+2.000"]);
}

/// Sixteen of the tasks and CPUs, the busiest, and how many more there are.
#[test]
fn long_lists_are_cut_unless_all_is_asked_for() {
    let (provenance, mut result) = (example::provenance(), example::run());
    let (task, cpu) = (result.tasks[0].clone(), result.cpus[0].clone());
    let name = |n: u32| format!("made-up-{n}");
    result.tasks = (0..20)
        .map(|n| TaskResult { id: n, name: name(n), cpu_time_ns: u64::from(n), ..task.clone() })
        .collect();
    result.cpus = (0..21).map(|n| CpuResult { cpu: n, ..cpu.clone() }).collect();
    let report = RunReport { provenance: &provenance, kernel: "k", seed: 7, result: &result };
    let text = run(&report, Format::Text, Extent::Headlines);
    assert_eq!(text.matches("made-up-").count(), 16);
    assert!(text.contains("made-up-19 ") && !text.contains("made-up-3 "), "{text}");
    assert!(text.contains("... 4 further tasks: --all\n"), "{text}");
    assert!(text.contains("... 5 further CPUs: --all\n"), "{text}");
    let text = run(&report, Format::Text, Extent::All);
    assert_eq!(text.matches("made-up-").count(), 20);
    assert!(!text.contains(": --all\n"), "{text}");
}

/// Every property must be named in the schema, else a new field would go undescribed. The shipped
/// schema itself stays open, as fields may be added.
fn closed(schema: Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let names_properties =
                fields.contains_key("properties") && !fields.contains_key("additionalProperties");
            let mut fields: Map<String, Value> =
                fields.into_iter().map(|(k, v)| (k, closed(v))).collect();
            if names_properties {
                fields.insert("additionalProperties".into(), json!(false));
            }
            Value::Object(fields)
        }
        Value::Array(items) => Value::Array(items.into_iter().map(closed).collect()),
        other => other,
    }
}

fn errors(schema: &str, document: &Value) -> Vec<String> {
    let schema: Value =
        serde_json::from_str(&crate::schema::text(schema).expect("shipped")).expect("valid JSON");
    let validator = jsonschema::draft202012::new(&closed(schema)).expect("a valid schema");
    validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

#[test]
fn json_is_what_the_schemas_say() {
    let run: Value = serde_json::from_str(&run_report(Format::Json, Extent::Headlines)).unwrap();
    let text = comparison(&example::comparison(), Format::Json, Extent::Headlines);
    let compared: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(errors("schedtwin.run/1", &run), [""; 0]);
    assert_eq!(errors("schedtwin.compare/1", &compared), [""; 0]);
    // The check must be able to fail.
    assert!(!errors("schedtwin.run/1", &compared).is_empty());
    let mut missing = compared.clone();
    missing["metrics"][0]["values"][1].as_object_mut().unwrap().remove("significant");
    assert_eq!(errors("compare", &missing).len(), 1);
    let mut added = compared.clone();
    added["metrics"][0]["colour"] = json!("blue");
    assert_eq!(errors("compare", &added).len(), 1);
}

#[test]
fn the_study_and_record_schemas_accept_their_examples() {
    let study = json!({
        "schema": "schedtwin.study/1",
        "provenance": {"version": "0.1.0", "model_version": "1", "hashes": {}, "seeds": [1], "n": 1, "trust": ""},
        "studies": [{
            "name": "jankbench-pixel6",
            "calibrated": [{"parameter": "frame_work", "value": 1.25, "fitted_on": ["S1.2"]}],
            "rows": [{
                "id": "S1.2", "metric": "frame_duration", "stat": "mean", "labels": {}, "unit": "ms",
                "kernel": "linux-5.18+runnable-boost", "role": "patched", "published": 12.7, "published_text": null,
                "published_noise": null, "twin": 12.5, "twin_ci95": [12.1, 12.9], "published_diff_pct": -29.43,
                "twin_diff_pct": -30.0, "twin_diff_ci95": [-31.0, -29.0], "robust": true, "verdict": "agree"
            }]
        }],
        "summary": {"agree": 1}
    });
    assert_eq!(errors("study", &study), [""; 0]);
    let mut unknown = study.clone();
    unknown["studies"][0]["rows"][0]["verdict"] = json!("perfect");
    assert_eq!(errors("study", &unknown).len(), 1);
    for line in [
        json!({"schema": "schedtwin.record/1", "title": "w1", "nr_cpus": 2, "domains": ["cpu"],
            "policies": [[0, 1]], "provenance": {"version": "0.1.0"}}),
        json!({"task": 12, "name": "ui", "prio": 120}),
        json!({"task": 12, "prio": 110}),
        json!({"at": 1000, "cpu": 1, "fact": {"sched_switch": {"prev": 0, "next": 12, "prev_state": "R"}}}),
        json!({"at": 1000, "cpu": 1, "fact": "sched_tick"}),
        json!({"at": 1000, "power": {"domain": 0, "mw": 412}}),
        json!({"at": 1000, "chain": {"policy": 0, "more": true, "from_khz": 1, "khz": 2, "need_at": 900,
            "requested_at": 950, "end": "settled", "events": [{"need": {"at": 900, "cpu": 0, "khz": 2, "cause": "tick"}}],
            "events_left_out": 0, "waits": [{"for": "rate limit", "ns": 50}]}}),
    ] {
        assert_eq!(errors("record", &line), [""; 0], "{line}");
    }
    assert!(!errors("record", &json!({"at": 1000})).is_empty());
}

/// Checks that nothing that a name may contain breaks a table or a line.
#[test]
fn odd_names_stay_in_their_cells() {
    let mut odd = example::comparison();
    odd.kernels[1] = "a|b,\"c\"\nd".into();
    odd.provenance.workload = "messaging -t, 'x'".into();
    let csv = comparison(&odd, Format::Csv, Extent::All);
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let kernels: Vec<String> =
        reader.records().map(|record| record.expect("equal columns")[4].to_string()).collect();
    assert_eq!(kernels.len(), 28);
    assert_eq!(kernels[1], odd.kernels[1]);
    let markdown = comparison(&odd, Format::Markdown, Extent::All);
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    let table: Vec<usize> =
        markdown.lines().filter(|line| line.starts_with('|')).map(bars).collect();
    assert!(table.iter().all(|count| *count == table[0]), "{markdown}");
    let json: Value = serde_json::from_str(&comparison(&odd, Format::Json, Extent::All)).unwrap();
    assert_eq!(json["kernels"][1], odd.kernels[1].as_str());
}

/// A file's name that is a formula is text in a spreadsheet; nothing that could act on a terminal is left.
#[test]
fn names_are_no_formulas() {
    for name in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0"] {
        let mut odd = example::comparison();
        odd.kernels[1] = name.into();
        (odd.provenance.machine, odd.provenance.workload) = (name.into(), name.into());
        let csv = comparison(&odd, Format::Csv, Extent::All);
        let replayed = crate::replay::Replayed { comparison: odd, ..example::replayed() };
        let (provenance, result) = (replayed.comparison.provenance.clone(), example::run());
        let report = RunReport { provenance: &provenance, kernel: name, seed: 7, result: &result };
        let of_run = run(&report, Format::Csv, Extent::All);
        for csv in [csv, replay(&replayed, Format::Csv, Extent::All), of_run] {
            let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
            for record in reader.records() {
                for field in record.expect("equal columns").iter() {
                    let is_number = field.parse::<f64>().is_ok();
                    let computes = field.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
                    assert!(is_number || !computes, "{field:?}");
                }
            }
            assert!(!csv.contains(['\r', '\t']) || name.contains('\t'), "{csv:?}");
        }
    }
}

/// Markdown that a name may hold: tables, emphasis, code, links, pictures, HTML, entities, strikethrough, mathematics.
#[test]
fn names_are_no_markdown() {
    let mut odd = example::comparison();
    odd.kernels[1] = "a|b `c` *d* _e_ ~~f~~ $g$ &lt; <i> ![j](k) \\| \u{1b}[1m\n# l".into();
    odd.provenance.workload = odd.kernels[1].clone();
    let markdown = comparison(&odd, Format::Markdown, Extent::All);
    let shown = "a\\|b \\`c\\` \\*d\\* \\_e\\_ \\~\\~f\\~\\~ \\$g\\$ \\&lt; \\<i> !\\[j](k) \\\\\\| ?\\[1m?# l";
    assert_eq!(markdown.matches(shown).count(), 3, "{markdown}");
}

/// Names come from users: what looks like markup stays a name. Nothing is loaded from anywhere.
#[test]
fn pages_escape_names_and_load_nothing() {
    let odd = "<script>alert('x')</script>";
    let comparison = example::of_kernels(&["linux-5.18", odd]);
    let piece = crate::moment::Piece { span: [0, 900], task: odd.into(), is_waiter: true };
    let moment = crate::moment::Moment {
        kernel: odd.into(),
        seed: 1,
        task: "a & b".into(),
        cpu: 0,
        ready_at: 100,
        runs_at: 600,
        window: [0, 1000],
        lanes: vec![vec![piece]],
        frequencies: vec![("little".into(), vec![(0, 300_000), (500, 600_000)])],
    };
    // A machine whose domains overlap, and another whose do not.
    let ring = "../../conformance/domains/eight.toml:topology=ring";
    let domains = [ring, "pixel6"].map(|machine| domains(machine, "linux-6.12").unwrap());
    let page = html::comparison(&comparison, &Timelines::default(), &[moment], &domains);
    // One script, the page's own.
    assert_eq!(page.matches("<script").count(), 1, "{page}");
    assert!(page.contains("&lt;script&gt;") && page.ends_with("</script></body></html>"), "{page}");
    assert!(page.contains("a &amp; b") && page.contains("H500.0V"), "{page}");
    for outside in ["http:", "https:", "src=", "url(", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
    for nothing in ["NaN", "inf", "Infinity"] {
        assert!(!page.contains(&format!("\"{nothing}")), "{nothing}");
    }
    // Every element that is opened is closed.
    for element in ["svg", "div", "table", "tr", "td", "ul", "rect", "p", "span"] {
        let opened = page.matches(&format!("<{element} ")).count()
            + page.matches(&format!("<{element}>")).count();
        assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
    }
}

/// Kernels with the same domains share a picture. A CPU's threads stand beside each other, whatever their numbers are.
#[test]
fn domains_are_drawn_once_for_kernels_that_agree() {
    let comparison = example::comparison();
    let picture = |machine: &str, kernels: [&str; 2]| {
        let tables = kernels.map(|kernel| domains(machine, kernel).unwrap());
        html::comparison(&comparison, &Timelines::default(), &[], &tables)
    };
    let same = picture("i7-3630qm", ["linux-6.12", "linux-6.12:hz=1000"]);
    assert_eq!(same.matches("aria-label=\"SMT\"").count(), 1, "{same}");
    assert!(same.contains("<title>SMT 0,4, flags 0x1297"), "{same}");
    // Four cores of two threads: the first domain is the first quarter with a gap around it, cut in two.
    assert!(same.contains("x=\"3.0\" y=\"2\" width=\"244.0\""), "{same}");
    assert!(same.contains("x1=\"125.0\""), "{same}");
    let other = picture("altra-2p160", ["linux-6.12", "linux-6.6"]);
    assert_eq!(other.matches("aria-label=\"MC\"").count(), 2, "the level above has another name");
}

/// The example without the task that waits longer.
fn nobody_hurt() -> Comparison {
    let mut comparison = example::comparison();
    comparison.rows.retain(|row| !row.row.labels.iter().any(|(_, value)| value == "bg"));
    comparison
}

/// A kernel that hurts somebody is called better by no sentence.
#[test]
fn who_is_hurt_comes_before_the_headlines() {
    let text = comparison(&example::comparison(), Format::Text, Extent::Headlines);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "B hurts task bg most: wakeup_latency p99 +10.2% (95% +8.66% to +11.8%), +41.00 us; 2 rows of threads and cgroups \
                were looked at. Of the headlines, improved: frame_duration mean -29.4% and jank -2.60 pt; worsened: power \
                domain=cpu +3.71%.";
    assert!(words.contains(said), "{text}");
}

/// Text, Markdown and page begin with what changed, and say it once for each other kernel.
#[test]
fn reports_begin_with_what_changed() {
    let compared = nobody_hurt();
    let text = comparison(&compared, Format::Text, Extent::Headlines);
    let said = "B against A is a trade-off, better: frame_duration mean -29.4% and jank -2.60 pt; worse: power domain=cpu \
                +3.71%.";
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&text).contains(said), "{text}");
    assert!(text.find("B against A").unwrap() < text.find("B vs A").unwrap(), "before the table");
    let markdown = comparison(&compared, Format::Markdown, Extent::Headlines);
    assert!(
        markdown.contains("linux-5.18+runnable-boost against linux-5.18 is a trade-off, better")
    );
    assert!(
        html::comparison(&compared, &Timelines::default(), &[], &[])
            .contains("B against A is a trade-off, better: ")
    );

    let mut three = example::of_kernels(&["a", "b", "c"]);
    three.rows.retain(|row| !row.row.labels.iter().any(|(_, value)| value == "bg"));
    let text = comparison(&three, Format::Text, Extent::Headlines);
    assert!(text.contains("\nB against A is ") && text.contains("\nC against A is "), "{text}");
    // Where nothing is beyond chance, or nothing happened at all, that is what is said.
    let mut chance = nobody_hurt();
    let differences = chance.rows.iter_mut().flat_map(|row| &mut row.cells);
    differences.for_each(|cell| {
        cell.difference.iter_mut().for_each(|difference| difference.significant = false);
    });
    let text = comparison(&chance, Format::Text, Extent::Headlines);
    assert!(text.contains("B against A: no headline changed beyond chance."), "{text}");
    chance.identical_executions[1] = 5;
    let text = comparison(&chance, Format::Text, Extent::Headlines);
    assert!(text.contains("B executed exactly as A: nothing changed."), "{text}");
}

/// A kernel whose frames are shorter and whose power may have risen is not called better without a word of that.
#[test]
fn better_says_of_which_other_metric_nothing_is_decided() {
    let mut compared = nobody_hurt();
    compared.rows.retain(|row| ["frame_duration", "jank", "power"].contains(&row.row.name));
    let power = compared.rows.iter_mut().find(|row| row.row.name == "power").unwrap();
    power.row.labels.clear();
    let said = |power: [f64; 2], doubtful| {
        let mut compared = compared.clone();
        let row =
            compared.rows.iter_mut().find(|row| row.row.is_whole() && row.row.name == "power");
        let row = row.unwrap();
        row.doubtful = doubtful;
        let difference = row.cells[1].difference.as_mut().unwrap();
        (difference.significant, difference.ci95_pct) = (false, Some(power));
        difference.diff_pct = Some((power[0] + power[1]) / 2.0);
        summary::sentences(&compared, Extent::Headlines, cells::letter).join(" ")
    };
    let better = "B against A is better: frame_duration mean -29.4% and jank -2.60 pt";
    let open = said([-3.0, 4.0], false);
    assert!(
        open.starts_with(&format!("{better}; not decided: power (-3.00% to +4.00%).")),
        "{open}"
    );
    // It may have lost as much as counts.
    let lost = said([-3.0, 8.0], false);
    let improved = better.replace(" is better", ": improved");
    assert!(
        lost.starts_with(&format!("{improved}; not decided: power (-3.00% to +8.00%).")),
        "{lost}"
    );
    let doubtful = said([-3.0, 8.0], true);
    assert!(
        doubtful.starts_with(&format!("{better}; not decided: power (doubtful).")),
        "{doubtful}"
    );
    // What is known not to have become worse by a hundredth is decided.
    let known = said([-3.0, 0.5], false);
    assert!(known.starts_with(&format!("{better}.")), "{known}");
}

/// A kernel is not called better where a headline is marked worse, though it is not clear among all of them.
#[test]
fn nothing_is_better_beside_a_mark_for_worse() {
    let mut compared = nobody_hurt();
    compared.rows.retain(|row| ["frame_duration", "jank", "power"].contains(&row.row.name));
    compared.rows.iter_mut().for_each(|row| {
        if row.row.name == "power" {
            row.row.labels.clear();
        }
        let difference = row.cells[1].difference.as_mut().unwrap();
        if row.row.name != "frame_duration" {
            (difference.significant, difference.p) = (true, Some(0.04));
        }
        if row.row.name == "power" {
            (difference.ci95_pct, difference.diff_pct) = (Some([1.0, 15.0]), Some(8.0));
        }
    });
    let said = summary::sentences(&compared, Extent::Headlines, cells::letter).join(" ");
    assert!(said.contains("improved: frame_duration") && !said.contains("is better"), "{said}");
    assert!(said.contains("perhaps worsened, marked in the table: power +8.00%"), "{said}");
}

/// Where cpu.max throttles, a wakeup that is picked sooner is no better for it if the task then waits as long for its group.
#[test]
fn a_wait_that_moved_behind_the_first_pick_is_not_better() {
    let mut compared = nobody_hurt();
    let row = compared.rows.iter().find(|row| row.row.name == "frame_duration").unwrap().clone();
    let of = |name: &str, stat: &'static str| {
        let metric = schedtwin_types::metric::declared(name).unwrap();
        let mut copy = row.clone();
        (copy.row.name, copy.row.stat, copy.row.better) = (metric.name, stat, metric.better);
        copy.row.labels.clear();
        copy
    };
    let unchanged = |mut row: ComparedRow| {
        let difference = row.cells[1].difference.as_mut().unwrap();
        (difference.significant, difference.p, difference.diff_pct) = (false, Some(0.6), Some(0.3));
        row
    };
    compared.rows = vec![of("wakeup_latency", "mean"), unchanged(of("run_delay", "sum"))];
    let said = |compared: &Comparison| {
        summary::sentences(compared, Extent::Chosen, cells::letter).join(" ")
    };
    assert!(said(&compared).contains("is better: wakeup_latency mean"), "{}", said(&compared));
    compared.rows.push(unchanged(of("nr_throttled", "sum")));
    assert!(said(&compared).contains("is better: wakeup_latency mean"), "both throttle alike");
    compared.throttles_alike = vec![true, false];
    let moved = said(&compared);
    assert!(moved.contains("not said to be better: wakeup_latency mean -29.4%"), "{moved}");
    assert!(moved.contains("run_delay, which counts that wait, too, changed by +0.30%"), "{moved}");
    compared.rows[1] = of("run_delay", "sum");
    assert!(said(&compared).contains("is better: wakeup_latency mean"), "{}", said(&compared));
}

/// Of many changes those of main metrics and then the clearest are named, and of what did not change too.
#[test]
fn a_sentence_names_a_few() {
    let mut compared = nobody_hurt();
    let row = compared.rows.iter().find(|row| row.row.name == "frame_duration").unwrap().clone();
    let names = ["missed_periods", "throughput", "energy", "migrations", "jank"];
    for (at, name) in names.iter().enumerate() {
        let metric = schedtwin_types::metric::declared(name).unwrap();
        let mut copy = row.clone();
        (copy.row.name, copy.row.stat, copy.row.better) =
            (metric.name, metric.stats[0], schedtwin_types::metric::Better::Lower);
        copy.cells[1].difference.as_mut().unwrap().p = Some(0.01 / (at + 1) as f64);
        compared.rows.push(copy);
    }
    let text = summary::sentences(&compared, Extent::Headlines, cells::letter).join(" ");
    assert!(text.contains(" and 3 more"), "{text}");
    assert!(!text.contains("missed_periods"), "the least clear of them: {text}");
    assert!(text.contains("throughput") && text.contains("energy"), "main ones: {text}");
}

/// Seven kernels have seven colours, in light and in dark, and names stay in sight.
#[test]
fn pages_tell_kernels_apart() {
    let style = include_str!("html/style.css");
    let schemes: Vec<&str> = style.split("prefers-color-scheme: dark").collect();
    for scheme in schemes {
        let colour = |kernel: usize| {
            let at = scheme.find(&format!("--k{kernel}: ")).expect("a colour");
            scheme[at + 6..at + 13].to_string()
        };
        let mut colours: Vec<String> = (0..html::COLOURS).map(colour).collect();
        colours.sort();
        colours.dedup();
        assert_eq!(colours.len(), 7);
    }
    let seven = example::of_kernels(&["a", "b", "c", "d", "e", "f", "g"]);
    let page = html::comparison(&seven, &Timelines::default(), &[], &[]);
    assert!(page.contains("var(--k6)") && page.contains("position: sticky"));
    // A bar that goes on beyond its scale says so: -29.4 % on a scale that holds nine of ten.
    assert!(
        !html::comparison(&example::comparison(), &Timelines::default(), &[], &[])
            .contains("class=\"beyond\"")
    );
    let mut wild = example::comparison();
    let difference = wild.rows[1].cells[1].difference.as_mut().unwrap();
    (difference.diff_pct, difference.ci95_pct) = (Some(150.0), Some([90.0, 210.0]));
    let page = html::comparison(&wild, &Timelines::default(), &[], &[]);
    assert_eq!(page.matches("class=\"beyond\"").count(), 2, "on the first screen and among all");
}

/// The hashes of the inputs are in a file once, not in each of its lines.
#[test]
fn files_have_hashes_once() {
    for text in [
        comparison(&example::comparison(), Format::Csv, Extent::All),
        comparison(&example::comparison(), Format::Json, Extent::All),
        run_report(Format::Csv, Extent::All),
        replay(&example::replayed(), Format::Csv, Extent::All),
    ] {
        assert_eq!(text.matches("f00d").count(), 1, "{text}");
    }
}
