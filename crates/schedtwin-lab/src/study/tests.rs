// SPDX-License-Identifier: GPL-2.0-or-later
//! The studies as shipped, and a study of two numbers through the whole machinery.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schedtwin_input::Source;

use super::prepare::Registry;
use super::read::{load, read};
use super::run::Ready;
use super::verdict::Verdict;
use super::{Published, Role, Study, builtin, stability};
use crate::Progress;
use crate::compare::Plan;
use crate::report::{self, Studies};
use crate::stopping::Iterations;

/// A study that runs today: a phone's interface, runnable boosting, numbers that nobody published.
const DEMO: &str = r#"
name = "demo"
description = "a study for tests"
published = "nowhere"
about = "made up"
machine = "pixel6:coupling_by_driver=false"
workload = "ui-phone"
duration = "500ms"

[[setting]]
set = "kernel.schedutil.rate_limit_us=500"
why = "so that it is set"

[[column]]
kernel = "base"
run_as = "linux-5.18"
[[column]]
kernel = "patched"
run_as = "linux-5.18+runnable-boost"
[[column]]
kernel = "other"
run_as = "linux-5.18+no-such-patch"

[[row]]
id = "1"
metric = "frame_duration"
stat = "mean"
unit = "us"
better = "lower"
noise = { value = 5000, assumed = "made up" }
cells = [
  { kernel = "base", role = "base", value = 3000 },
  { kernel = "patched", role = "patched", value = 2700.5 },
]
[[row]]
id = "2"
metric = "power"
stat = "mean"
labels = { domain = "cpu" }
twin = "power.mean"
unit = "W"
better = "lower"
over_runs = "gmean"
cells = [
  { kernel = "base", role = "base", value = 0.7 },
  { kernel = "patched", role = "patched", diff_pct = 1.5 },
]
[[row]]
id = "3"
metric = "jank"
stat = "mean"
unit = "%"
better = "lower"
cells = [
  { kernel = "base", role = "base", value = 1 },
  { kernel = "patched", role = "patched", value = 2 },
]
[[row]]
id = "4"
metric = "power"
stat = "mean"
unit = "mW"
better = "lower"
workload = "no-such-workload"
cells = [
  { kernel = "base", role = "base", text = "low" },
  { kernel = "other", role = "patched", text = "lower" },
]
[[fit]]
parameter = "machine.settle_us"
bounds = [10, 300]
start = 100
fitted_on = ["1"]
why = "an estimate"

[[variant]]
name = "slow clocks"
set = ["machine.settle_us=300"]
why = "an estimate"
"#;

/// The text of the study.
pub fn demo_text() -> String {
    DEMO.to_string()
}

fn demo() -> Study {
    read(&Source::new("demo.toml", DEMO)).unwrap()
}

fn published_files() -> Option<[Vec<BTreeMap<String, String>>; 2]> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/published");
    if !folder.is_dir() {
        println!("skipped: ../shared/published is not there");
        return None;
    }
    Some(["tables.csv", "baselines.csv"].map(|name| {
        let mut reader = csv::Reader::from_path(folder.join(name)).expect("a readable table");
        reader.deserialize().collect::<Result<_, _>>().expect("rows of text")
    }))
}

/// Every number is what was published, none is missing, and none was added.
#[test]
fn every_number_is_the_published_one() {
    let Some([tables, baselines]) = published_files() else { return };
    let studies: Vec<Study> = builtin::names().map(|name| load(name).unwrap()).collect();
    let mut used = BTreeSet::new();
    let (mut numbers, mut of_baselines) = (0, 0);
    for study in &studies {
        for row in &study.rows {
            for cell in &row.cells {
                let kernel = &study.columns[cell.column].kernel;
                let what = format!("{} {} {kernel}", study.name, row.id);
                if row.id.starts_with('B') {
                    let Published::Value(value) = cell.published else {
                        panic!("{what}: a further base value is a number");
                    };
                    assert_eq!(cell.role, Role::Base, "{what}");
                    let residencies = || {
                        let of_cluster =
                            format!("residency_{}_", row.labels.first().map_or("", |l| &l.1));
                        baselines.iter().filter(move |line| {
                            line["workload"] == study.workload
                                && line["metric"].starts_with(&of_cluster)
                        })
                    };
                    let seconds =
                        |line: &BTreeMap<String, String>| line["value"].parse::<f64>().unwrap();
                    let sum: f64 = residencies().map(seconds).sum();
                    // Published in seconds, checked as shares.
                    let share = |line| (seconds(line) / sum * 100.0 - value).abs() < 0.0051;
                    assert!(
                        baselines.iter().any(|line| {
                            line["machine"] == study.machine
                                && line["kernel"] == *kernel
                                && line["value"].parse() == Ok(value)
                                && line["unit"].starts_with(&row.unit)
                        }) || row.metric == "cluster_residency" && residencies().any(share),
                        "{what}: {value} is in no line of the base measurements"
                    );
                    of_baselines += 1;
                    continue;
                }
                let mut labels: Vec<String> =
                    row.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let in_label = |line: &BTreeMap<String, String>, occasion: &str| {
                    line["labels"].ends_with(&format!("({occasion})"))
                };
                let found = tables.iter().enumerate().find(|(_, line)| {
                    let occasion = row.occasion.as_deref().filter(|o| in_label(line, o));
                    let of = |key: &str| line[key].as_str();
                    labels.retain(|label| !label.starts_with('('));
                    labels.extend(occasion.map(|occasion| format!("({occasion})")));
                    of("study") == study.name
                        && of("id") == row.id
                        && of("metric") == row.metric
                        && of("stat") == row.stat
                        && of("kernel") == kernel
                        && of("labels") == labels.join(" ")
                });
                // Rows S2.1r to S2.4r follow from published ones by arithmetic.
                let derived = study.name == "daytrader-power10" && row.id.ends_with('r');
                let Some((number, line)) = found else {
                    assert!(
                        derived
                            || matches!(&cell.published, Published::Text(text) if text == "not published")
                            || study.name == "uclamp-enqueue-order",
                        "{what} is not in the published tables"
                    );
                    continue;
                };
                used.insert(number);
                assert_eq!(line["role"], cell.role.word(), "{what}");
                // A table of words only has no unit and no direction.
                let words_only = line["unit"].is_empty() && line["value"].is_empty();
                assert!(words_only || line["unit"] == row.unit, "{what}: unit");
                let better = match row.better {
                    super::Direction::Higher => "higher",
                    super::Direction::Lower => "lower",
                    super::Direction::None => "none",
                };
                assert!(words_only || line["better"] == better, "{what}: direction");
                assert_eq!(line["machine"], row.machine(study), "{what}");
                match &cell.published {
                    Published::Value(value) | Published::DiffPct(value) => {
                        assert_eq!(line["value"].parse(), Ok(*value), "{what}");
                        let is_diff = matches!(cell.published, Published::DiffPct(_));
                        assert_eq!(line["stat"] == "diff_pct", is_diff, "{what}");
                        numbers += 1;
                    }
                    Published::Text(text) => {
                        let words = [&line["text"], &line["note"]];
                        assert!(words.contains(&text), "{what}: {text}");
                    }
                }
                check_noise(&what, &line["note"], cell);
            }
        }
    }
    let unused: Vec<_> = (0..tables.len()).filter(|at| !used.contains(at)).collect();
    assert!(unused.is_empty(), "lines without a cell: {unused:?}");
    assert_eq!(numbers, tables.iter().filter(|line| !line["value"].is_empty()).count());
    assert!(of_baselines >= 30, "{of_baselines}");
}

/// `+-0.0173 (10 runs)` is in the unit, `+-0.14 % of 30 runs` in percent.
fn check_noise(what: &str, note: &str, cell: &super::Cell) {
    let printed = note.strip_prefix("+-").and_then(|rest| {
        let (number, rest) = rest.split_once(' ')?;
        let number: f64 = number.parse().ok()?;
        let Published::Value(value) = cell.published else { return None };
        Some(if rest.starts_with('%') { value * number / 100.0 } else { number })
    });
    match (printed, cell.noise) {
        (None, None) => {}
        (Some(printed), Some(noise)) => {
            assert!((printed - noise).abs() < 1e-5, "{what}: {printed} {noise}")
        }
        (printed, noise) => panic!("{what}: printed {printed:?}, in the file {noise:?}"),
    }
}

/// All that can be wrong with the shipped studies is that parts do not exist yet.
/// A patch that one of two kernels has is looked for in the studies: on the machine first.
#[test]
fn studies_are_found_by_the_patch_that_they_measured() {
    let of = |machine, a, b| builtin::studies_of_the_difference(machine, a, b);
    let boosted = "linux-6.12-gki+runnable-boost:hz=250";
    let found = of("pixel6:idle=none", "linux-6.12-gki", boosted).unwrap();
    assert!(found.starts_with("runnable-boost was measured on this machine: "), "{found}");
    assert!(found.ends_with(" of jankbench-pixel6"), "{found}");
    let found = of("rpi4", boosted, "linux-6.12-gki").unwrap();
    assert!(found.contains("on other machines") && found.contains("jankbench-pixel6"), "{found}");
    for same in ["linux-6.12", boosted, "linux-6.12+./own.toml"] {
        assert_eq!(of("pixel6", same, same), None);
    }
    assert_eq!(of("pixel6", "linux-6.12", "linux-6.12+./own.toml"), None);
}

#[test]
fn the_shipped_studies_run_or_say_what_they_wait_for() {
    let registry = Registry::built_in();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let files = std::fs::read_dir(folder).unwrap().flatten();
    let files: BTreeSet<String> = files
        .filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".toml")?.to_string()))
        .collect();
    assert_eq!(files, builtin::names().map(str::to_string).collect());
    for name in builtin::names() {
        let study = load(name).unwrap();
        assert_eq!(study.name, name);
        let ready = Ready::new(study, Vec::new(), true, &registry);
        for waits in ready.waits_for() {
            let kinds = ["machine ", "kernel ", "patch ", "workload "];
            let is_part = kinds.iter().any(|kind| waits.starts_with(kind));
            assert!(is_part || waits.contains("there is no"), "{name}: {waits}");
        }
    }
}

fn ran(threads: usize) -> super::run::Ran {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let ready = Ready::new(demo(), Vec::new(), true, &Registry::built_in());
        assert_eq!(ready.waits_for(), ["patch no-such-patch", "workload no-such-workload"]);
        assert!(ready.can_run());
        let plan = Plan { first_seed: 1, iterations: Iterations::Fixed(3) };
        let progress = Progress::new();
        progress.expect_runs(ready.first_runs(&plan));
        let ran = ready.run(&plan, &progress).unwrap();
        assert_eq!(progress.done_runs(), progress.expected_runs());
        ran
    })
}

#[test]
fn a_study_runs_and_stands_beside_the_publication() {
    let one = ran(1);
    assert_eq!(one, ran(2), "the number of threads changes nothing");
    let by = |id: &str| {
        let of = |cell: &&super::run::Beside| one.study.rows[cell.row].id == id;
        one.cells.iter().filter(of).collect::<Vec<_>>()
    };
    let [base, patched] = by("1")[..] else { panic!("two cells") };
    // The publication's unit is microseconds here, the twin's milliseconds.
    assert!((500.0..50_000.0).contains(&base.twin.unwrap().mean), "{base:?}");
    assert_eq!((base.verdict, base.difference, base.robust), (Verdict::Base, None, None));
    assert!((patched.published_diff_pct.unwrap() + 9.983).abs() < 0.001, "{patched:?}");
    assert!((patched.noise_pct.unwrap() - 166.667).abs() < 0.001);
    assert_eq!(patched.in_variants.len(), 1);
    let (main, variant) = (patched.difference.unwrap(), patched.in_variants[0].unwrap());
    assert_eq!(variant.n, 3, "it has the seeds of the study");
    let known = variant.significant && (main.diff > 0.0) == (variant.diff > 0.0);
    assert_eq!(patched.known_in_variants, usize::from(known));
    // 5 ms of noise around 3 ms: what the twin finds in three runs lies within.
    assert_eq!(patched.verdict, Verdict::Agree);
    let [base, patched] = by("2")[..] else { panic!("two cells") };
    assert!((0.1..5.0).contains(&base.twin.unwrap().mean), "in W: {base:?}");
    assert_eq!(patched.published_diff_pct, Some(1.5));
    let [_, missing] = by("3")[..] else { panic!("two cells") };
    assert_eq!(missing.verdict, Verdict::Inconclusive);
    assert_eq!(missing.why_not.as_deref(), Some("the twin does not measure jank mean"));
    let [_, waiting] = by("4")[..] else { panic!("two cells") };
    assert!(waiting.why_not.as_ref().unwrap().starts_with("waits for: patch no-such-patch"));
}

/// Who builds a model sees base values only, and how many of them are met.
#[test]
fn base_values_stand_alone() {
    for name in super::builtin::names() {
        let study = load(name).unwrap();
        let base = study.base_only();
        let cells = || base.rows.iter().flat_map(|row| &row.cells);
        let numbers = |study: &Study| {
            let cells = study.rows.iter().flat_map(|row| &row.cells);
            let of_base = cells.filter(|cell| {
                cell.role == Role::Base && matches!(cell.published, Published::Value(_))
            });
            of_base.count()
        };
        assert!(cells().all(|cell| cell.role == Role::Base), "{name}");
        assert_eq!(cells().count(), numbers(&study), "{name}");
        assert!(base.about.is_empty() && base.variants.is_empty(), "{name}");
    }
    let all = ran(1);
    let registry = Registry::built_in();
    let ready = Ready::new(demo().base_only(), Vec::new(), true, &registry);
    let plan = Plan { first_seed: 1, iterations: Iterations::Fixed(3) };
    let alone = ready.run(&plan, &Progress::new()).unwrap();
    let values = |ran: &super::run::Ran| {
        let has = ran.cells.iter().filter(|beside| beside.verdict == Verdict::Base);
        let has = has.filter(|beside| beside.published.is_some());
        has.map(|beside| (beside.published, beside.twin)).collect::<Vec<_>>()
    };
    assert_eq!(alone.cells.len(), 3);
    assert_eq!(values(&alone), values(&all), "the other columns change nothing");
    let text =
        report::studies(&Studies { ran: vec![alone], waiting: Vec::new() }, report::Format::Text);
    assert!(text.contains("base values of demo: of "), "{text}");
    assert!(!text.contains("publ.diff") && !text.contains("verdicts:"), "{text}");
}

#[test]
fn faults_of_a_study_are_told_all_at_once() {
    let text = DEMO
        .replace(
            "kernel = \"patched\", role = \"patched\", value = 2 }",
            "kernel = \"pached\", role = \"pathed\" }",
        )
        .replace("parameter = \"machine.settle_us\"", "parameter = \"settle_us\"")
        .replace("bounds = [10, 300]", "bounds = [300, 10]")
        .replace("fitted_on = [\"1\"]", "fitted_on = [\"7\"]")
        .replace(
            "better = \"lower\"\nover_runs = \"gmean\"",
            "better = \"less\"\nover_runs = \"median\"",
        )
        .replace("workload = \"ui-phone\"", "wrkload = \"ui-phone\"");
    let faults = read(&Source::new("demo.toml", text)).unwrap_err().to_string();
    for expected in [
        "there is no key `wrkload`\n  help: did you mean `workload`?",
        "there is no [[column]] `pached`\n  help: did you mean `patched`?",
        "a role is `base` or `patched`",
        "a cell has one of `value`, `diff_pct` and `text`",
        "a parameter begins with machine., kernel. or workload.",
        "bounds are [LEAST, GREATEST]",
        "`7` names no base cell with a number",
        "`higher`, `lower` or `none` is better",
        "runs are combined by `mean` or `gmean`",
    ] {
        assert!(faults.contains(expected), "{expected}\n{faults}");
    }
    let unknown = load("jankbench-pixel").unwrap_err().to_string();
    assert!(unknown.contains("did you mean `jankbench-pixel6`?"), "{unknown}");
}

/// The study that the documentation shows is a study, can be calibrated and can run.
#[test]
fn the_documented_study_runs() {
    let page = include_str!("../../../../docs/studies.md");
    let (_, rest) = page.split_once("```toml\n").expect("an example");
    let (text, _) = rest.split_once("```").expect("its end");
    let study = read(&Source::new("docs/studies.md", text)).unwrap();
    let base = crate::calibrate::BaseOnly::of(&study).unwrap();
    assert_eq!(base.targets()[0].half_width, 12.0);
    let set = base.settings(&base.start()).into_iter().map(super::run::Calibrated::plain);
    let ready = Ready::new(study, set.collect(), true, &Registry::built_in());
    assert_eq!(ready.waits_for(), [""; 0]);
    let plan = Plan { first_seed: 1, iterations: Iterations::Fixed(2) };
    let ran = ready.run(&plan, &Progress::new()).unwrap();
    assert!(ran.cells.iter().all(|cell| cell.twin.is_some()), "{:?}", ran.cells);
}

/// Checks that paths with a dot in a file are relative to its folder, wherever they stand.
#[test]
fn paths_are_as_seen_from_the_file() {
    let text = DEMO
        .replace(
            "machine = \"pixel6:coupling_by_driver=false\"",
            "machine = \"./phone.toml:settle_us=50\"",
        )
        .replace("\"linux-5.18+runnable-boost\"", "\"./k.toml+../p.toml+runnable-boost:hz=100\"")
        .replace("workload = \"no-such-workload\"", "workload = \"../app.json\"")
        .replace("workload = \"ui-phone\"", "workload = \"jankbench --tests ./x\"");
    let mut study = read(&Source::new("a/mine.toml", text)).unwrap();
    study.see_paths_from("a/");
    assert_eq!(study.machine, "a/./phone.toml:settle_us=50");
    assert_eq!(study.workload, "jankbench --tests ./x");
    assert_eq!(study.rows[3].workload.as_deref(), Some("a/../app.json"));
    let run_as = study.columns[1].run_as.as_deref();
    assert_eq!(run_as, Some("a/./k.toml+a/../p.toml+runnable-boost:hz=100"));
    assert_eq!(study.columns[0].run_as.as_deref(), Some("linux-5.18"));
}

#[test]
fn reruns_count_every_verdict() {
    let progress = Progress::new();
    let rerun = |ids: &[&str], iterations| {
        let ids: Vec<String> = ids.iter().map(|id| id.to_string()).collect();
        let study = stability::predictions(&demo(), &ids).unwrap();
        let ready = Ready::new(study, Vec::new(), false, &Registry::built_in());
        (stability::stability(&ready, 3, iterations, 1, &progress).unwrap(), ready)
    };
    let (all, ready) = rerun(&[], &Iterations::Fixed(2));
    assert_eq!(progress.done_runs(), progress.expected_runs());
    // Words are no prediction that can be judged: that row and its kernel do not run, nor does its workload.
    assert_eq!((all.len(), ready.study().rows.len(), ready.setups().len()), (3, 3, 1));
    assert_eq!(progress.done_runs(), 3 * 2 * 2, "two kernels, two seeds, three times");
    assert!(all.iter().all(|one| one.counts.iter().sum::<usize>() == 3), "{all:?}");
    // What the twin does not measure is inconclusive each time.
    assert_eq!(all[2].commonest(), (Verdict::Inconclusive, 100.0));
    // One row alone gives what it gave among the others.
    let (one, _) = rerun(&["2"], &Iterations::Fixed(2));
    assert_eq!((one.len(), one[0].counts), (1, all[1].counts));
    // A precision that is met at once: as if its first seeds had been asked for, of stretches that do not overlap.
    let precise = Iterations::Precision { half_width_pct: 1e9, most: 12 };
    assert_eq!(rerun(&["2"], &precise).0[0].counts.iter().sum::<usize>(), 3);
    let unknown = stability::predictions(&demo(), &["4".into()]).unwrap_err().to_string();
    assert!(unknown.contains("`4` is no row of demo with a prediction to judge"), "{unknown}");
}
