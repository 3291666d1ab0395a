// SPDX-License-Identifier: GPL-2.0-or-later
//! What a new user stumbles over in the first hours, through the binary.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SCHEDTWIN: &str = env!("CARGO_BIN_EXE_schedtwin");

/// A comparison that takes no time.
const SMALL: &str =
    "compare -m uniform8 -w w1 --duration 20ms -n 3 -k linux-6.12 -k linux-6.12:hz=100";

fn schedtwin(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(SCHEDTWIN);
    command.current_dir(folder).args(arguments.split(' ')).output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Runs each command line: its exit code, and what is in its output or its messages.
fn all(folder: &Path, expected: &[(&str, i32, &str)]) {
    let mut wrong = String::new();
    for (arguments, code, words) in expected {
        let output = schedtwin(folder, arguments);
        let told = format!("{}{}", text(&output.stdout), text(&output.stderr));
        if output.status.code() != Some(*code) || !told.contains(words) {
            wrong.push_str(&format!("{arguments}\n  {words}\n{:?}\n{told}\n", output.status));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn names_of_linux_are_understood_or_explained() {
    all(
        folder().path(),
        &[
            ("run -m uniform8 -w w1 --duration 10ms -k linux-6.13", 0, "linux-6.13"),
            ("run -m uniform8 -w w1 -k linux-5.3", 2, "linux-5.4"),
            ("run -m uniform8 -w w1 -k linux-7.9", 2, "linux-7.3"),
            ("run -m uniform8 -w w1 --duration 10ms -k linux-6.12:RUN_TO_PARITY=false", 0, "w1"),
            ("run -m uniform8 -w w1 --duration 10ms -k linux-6.12:CONFIG_HZ=1000", 0, "w1"),
            ("show kernel linux-6.12:sched_rt_runtime_us=500000", 0, "500000"),
            (
                "run -m uniform8 -w w1 -k linux-6.12:base_slice_ns=3000000",
                2,
                "here it is `eevdf.base_slice_unscaled_ns`",
            ),
            ("run -m uniform8 -w w1 -k linux-6.12:sched_rt_runtime_us=2000000", 2, "more than"),
        ],
    );
}

#[test]
fn endless_work_without_a_duration_is_refused() {
    let folder = folder();
    for (name, duration) in [("zero", "0"), ("minus", "-1"), ("some", "1")] {
        let text = format!(
            r#"{{ "tasks": {{ "a": {{ "loop": -1, "run": 1000, "sleep": 1000 }} }}, "global": {{ "duration": {duration} }} }}"#
        );
        fs::write(folder.path().join(format!("{name}.json")), text).expect("written");
    }
    all(
        folder.path(),
        &[
            ("run -m uniform8 -w zero.json", 2, "give --duration 10s"),
            ("run -m uniform8 -w minus.json", 2, "\"a\" runs for ever"),
            ("check minus.json", 0, "give --duration 10s"),
            ("run -m uniform8 -w minus.json --duration 20ms", 0, "minus, linux-7.3"),
            ("run -m uniform8 -w some.json", 0, "some, linux-7.3"),
        ],
    );
}

#[test]
fn clamps_that_a_kernel_lacks_are_told() {
    let folder = folder();
    let task =
        r#"{ "tasks": { "a": { "loop": 2, "run": 1000, "sleep": 1000, "util_min": 300 } } }"#;
    fs::write(folder.path().join("clamp.json"), task).expect("written");
    let run = "run -m uniform8 -w clamp.json";
    let ignored = "util_min and";
    all(folder.path(), &[(&format!("{run} -k linux-6.12:uclamp=compiled-out"), 0, ignored)]);
    let output = schedtwin(folder.path(), run);
    assert!(!text(&output.stdout).contains(ignored), "the default kernel has clamps");
}

#[test]
fn check_knows_studies_and_calibrations() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    all(
        root,
        &[
            ("check studies/jankbench-pixel6.toml", 0, "studies/jankbench-pixel6.toml: fine"),
            ("check studies/calibrations/jankbench-pixel6.toml", 0, "jankbench-pixel6.toml: fine"),
        ],
    );
    let folder = folder();
    let study =
        fs::read_to_string(root.join("studies/jankbench-pixel6.toml")).expect("it is there");
    fs::write(folder.path().join("s.toml"), study.replace("metric = ", "metrik = "))
        .expect("written");
    all(folder.path(), &[("check s.toml", 1, "did you mean `metric`?")]);
}

#[test]
fn conditions_are_matched_before_anything_runs() {
    let folder = folder();
    for (condition, code, words) in [
        ("power>+1ms", 2, "measured in"),
        ("powr>+5%", 2, "did you mean power?"),
        ("power>+5W", 0, ""),
        ("power>0.001W", 1, "failed: power>0.001W"),
    ] {
        let output = schedtwin(folder.path(), &format!("{SMALL} --fail-if {condition}"));
        assert_eq!(output.status.code(), Some(code), "{condition}");
        assert!(text(&output.stderr).contains(words), "{condition}: {}", text(&output.stderr));
        assert_eq!(output.stdout.is_empty(), code == 2, "{condition}");
    }
}

/// A page that cannot be written is known before the first run, or costs nothing but the page.
#[test]
fn results_are_not_lost_behind_a_bad_name() {
    let folder = folder();
    for html in ["no/such/folder.html", ".", "/proc/page.html"] {
        let output = schedtwin(folder.path(), &format!("{SMALL} --html {html}"));
        assert_eq!(output.status.code(), Some(2), "{html}");
        assert!(text(&output.stderr).contains("failed to write"), "{html}");
        assert!(output.stdout.is_empty(), "{html}: nothing ran");
    }
    let output = schedtwin(folder.path(), &format!("{SMALL} --html /dev/full"));
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("/dev/full"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("wakeup_latency"), "the table is there");
}

/// An interrupted or terminated run leaves no file, and what a killed one left the next one takes away.
#[test]
fn runs_that_are_ended_leave_no_file() {
    let folder = folder();
    let trace = folder.path().join("out.pftrace");
    let entries = || fs::read_dir(folder.path()).expect("readable").count();
    let mut ended = 0;
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let mut child = Command::new(SCHEDTWIN)
            .args(["run", "-m", "uniform8", "-w", "w1", "--duration", "12h", "--trace"])
            .arg(&trace)
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary starts");
        // Half a day takes minutes: the run is still under way when the file has appeared.
        while entries() == 0 && child.try_wait().expect("ours").is_none() {
            std::thread::yield_now();
        }
        ended = child.id();
        let kill = Command::new("kill").args([signal, &ended.to_string()]).status();
        assert!(kill.expect("there is kill").success());
        assert_eq!(child.wait().expect("ours").code(), Some(code));
        assert_eq!(entries(), 0, "{signal}");
    }

    // What a process leaves that was killed: its number belongs to nobody any more.
    let [gone, alive] = [ended, std::process::id()]
        .map(|process| folder.path().join(format!(".out.pftrace.{process}-a1.partial")));
    for partial in [&gone, &alive] {
        fs::write(partial, "half").expect("written");
    }
    let arguments = "run -m uniform8 -w w1 --duration 1ms --trace out.pftrace";
    assert_eq!(schedtwin(folder.path(), arguments).status.code(), Some(0));
    assert!(trace.exists() && alive.exists() && !gone.exists());
}

#[test]
fn nobody_reading_is_no_crash() {
    let shell = format!("{SCHEDTWIN} run -m nowhere -w w1 2>/dev/full; echo $?");
    let output = Command::new("sh").arg("-c").arg(shell).output().expect("there is a shell");
    assert_eq!(text(&output.stdout).trim(), "2", "a message that nobody takes is no panic");
}

/// A clock for each of 160 CPUs is three rows a metric, and a row a CPU for those who ask.
#[test]
fn tables_of_many_cpus_fit() {
    let folder = folder();
    let compare = "compare -m altra-2p160 -w periodic --duration 50ms -n 2 -k linux-6.12 -k linux-6.12:hz=1000";
    for (extent, lines) in [("", 0..60), (" --more", 20..70), (" --per-cpu", 400..700)] {
        let output = schedtwin(folder.path(), &format!("{compare}{extent}"));
        let table = text(&output.stdout);
        assert!(lines.contains(&table.lines().count()), "{extent}: {table}");
        assert_eq!(table.contains("(highest of 160 domains)"), !extent.is_empty(), "{extent}");
    }
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let folder = folder();
    let commands = ["run", "compare", "aa", "explain", "tune", "replay", "convert", "capture"];
    for shell in ["bash", "zsh", "fish"] {
        let output = schedtwin(folder.path(), &format!("completions {shell}"));
        assert_eq!(output.status.code(), Some(0));
        let script = text(&output.stdout);
        commands.iter().for_each(|command| assert!(script.contains(command), "{shell}: {command}"));
    }
    all(folder.path(), &[("man pages/man1", 0, "")]);
    for command in commands {
        let page = folder.path().join(format!("pages/man1/schedtwin-{command}.1"));
        assert!(fs::read_to_string(page).expect(command).contains("Examples:"), "{command}");
    }
    let output = schedtwin(folder.path(), "--help");
    assert!(text(&output.stdout).contains("\n  aa "), "a kernel against itself is in the help");
}

/// The gate's default waits until the runs are sure; the mean alone, or the mere possibility, is asked by name.
#[test]
fn conditions_ask_the_interval_unless_told_otherwise() {
    let folder = folder();
    let output = schedtwin(folder.path(), &format!("{SMALL} --format json"));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["metrics"].as_array().expect("rows");
    let latency = rows.iter().find(|row| {
        row["name"] == "wakeup_latency"
            && row["stat"] == "p99"
            && row["labels"] == serde_json::json!({})
    });
    let value = &latency.expect("the latency is measured")["values"][1];
    let mean = value["diff"].as_f64().expect("a mean");
    let ends = [0, 1].map(|end| value["diff_ci95"][end].as_f64().expect("an interval"));
    assert!(ends[0] < mean && mean < ends[1], "else nothing is tested: {value}");
    let below = |from: f64, to: f64| format!("wakeup_latency.p99>{:+.4}us", (from + to) / 2.0);
    let (between, above) = (below(ends[0], mean), below(mean, ends[1]));
    for (condition, code) in [
        (between.clone(), 0),
        (format!("certain:{between}"), 0),
        (format!("mean:{between}"), 1),
        (format!("possible:{between}"), 1),
        (format!("mean:{above}"), 0),
        (format!("possible:{above}"), 1),
        (below(ends[0], ends[0] - 2.0), 1),
    ] {
        let output = schedtwin(folder.path(), &format!("{SMALL} --fail-if {condition}"));
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{condition}: {told}");
        assert_eq!(told.contains("us (95% from "), code == 1, "{told}");
    }
    let once = SMALL.replace("-n 3", "-n 1");
    all(
        folder.path(),
        &[
            (&format!("{once} --fail-if power>+5%"), 2, "mean:power>+5%, or run more"),
            (&format!("{once} --fail-if mean:power>+500%"), 0, "wakeup_latency"),
        ],
    );
}

/// The figure of the longest wait shows one task under every kernel.
#[test]
fn pages_show_the_same_task_under_every_kernel() {
    let folder = folder();
    let kernels = "-k linux-6.12 -k linux-6.12:hz=1000 -k linux-6.12:cpufreq=performance";
    let run =
        format!("compare -m pixel6 -w ui-phone --duration 100ms -n 2 {kernels} --html p.html");
    assert_eq!(schedtwin(folder.path(), &run).status.code(), Some(0));
    let page = fs::read_to_string(folder.path().join("p.html")).expect("a page");
    let headings = page.split("<h3>").filter_map(|part| part.split("</h3>").next());
    let waits: Vec<&str> = headings
        .filter_map(|heading| heading.split_once(" waits ")?.0.rsplit(": ").next())
        .collect();
    assert_eq!(waits.len(), 3, "{waits:?}");
    assert!(waits.iter().all(|task| *task == waits[0]), "{waits:?}");
}

/// What compare can be asked, a replay can be asked too, and a run has a page.
#[test]
fn replays_and_runs_have_gates_and_pages() {
    let folder = folder();
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/replay/pipeline.txt");
    let one = format!("replay {trace} -m pixel6 -n 2 -k linux-6.12");
    let two = format!("{one} -k linux-6.12:cpufreq=performance");
    all(
        folder.path(),
        &[
            (
                &format!("{two} --fail-if power>+1% --fail-on-doubtful"),
                1,
                "failed: power>+1%: power mean of",
            ),
            (&format!("{two} --fail-if power>+1%"), 0, "Fidelity:"),
            (&format!("{two} --fail-if power>+100000%"), 0, "Fidelity:"),
            (&format!("{two} --fail-if powre>+1%"), 2, "did you mean power?"),
            (&format!("{one} --fail-if power>+1%"), 2, "give -k again"),
            (&format!("{two} --first-difference"), 0, "the first difference is at"),
            (&format!("{one} --first-difference"), 0, "recorded sleeps are compared"),
            (&format!("{two} --html no/page.html"), 2, "there is no directory"),
            (&format!("{two} --html page.html"), 0, "Fidelity:"),
            ("run -m pixel6 -w ui-phone --duration 50ms --html run.html", 0, "power"),
            ("run -m pixel6 -w ui-phone --html no/run.html", 2, "there is no directory"),
        ],
    );
    for (name, words) in [
        ("page.html", "How far the replays are the recording"),
        ("page.html", "The longest wait"),
        ("run.html", "What was measured"),
        ("run.html", "Frequencies"),
    ] {
        let page = fs::read_to_string(folder.path().join(name)).expect(name);
        assert!(page.contains(words), "{name}: {words}");
    }
}

#[test]
fn files_of_another_kind_are_named_and_what_is_not_modelled_is_refused() {
    let folder = folder();
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    for (name, from) in [("m", "machines/uniform8.toml"), ("s", "studies/messaging-altra.toml")] {
        fs::copy(root.join(from), folder.path().join(format!("{name}.toml"))).expect("copied");
    }
    let memory = r#"{ "tasks": { "b": { "loop": 1, "run": 100, "memrun": { "type": "read", "size": 64, "count": 1 } } } }"#;
    fs::write(folder.path().join("mem.json"), memory).expect("written");
    all(
        folder.path(),
        &[
            ("run -m uniform8 -w w1 -k ./m.toml", 2, "is a machine file, not a kernel file"),
            ("run -m uniform8 -w w1 -k ./s.toml", 2, "`schedtwin study run` takes it"),
            ("run -m ./s.toml -w w1", 2, "is a study file, not a machine file"),
            ("run -m uniform8 -w ./m.toml", 2, "-m takes it"),
            ("check mem.json", 1, "is not modelled: memory-bound work"),
            ("run -m uniform8 -w mem.json", 2, "is not modelled: memory-bound work"),
            (
                "run -m uniform8 -w w1 -k linux-6.12:dbs.sampling_rate_us=4000",
                2,
                "exists only with cpufreq=ondemand or conservative",
            ),
            (
                "run -m uniform8 -w w1 -k linux-6.12:features.next_buddy=true",
                2,
                "Linux has it with EEVDF as well",
            ),
            ("show kernel linux-6.12 linux-6.12-debian", 0, "sched_autogroup"),
        ],
    );
}

#[test]
fn rows_are_named_as_tables_name_them() {
    let folder = folder();
    let chosen = |metric: &str| {
        let mut command = Command::new(SCHEDTWIN);
        command.current_dir(folder.path()).args(SMALL.split(' ')).args(["--metric", metric]);
        text(&command.output().expect("the binary starts").stdout)
    };
    let table = chosen("wakeup_latency p99");
    assert!(table.contains("\nwakeup_latency p99  us "), "{table}");
    assert!(!table.contains("headline"), "what is said is about the row: {table}");
    assert_eq!(chosen("wakeup_latency.p99"), table);
    let gate = |condition: &str| {
        let mut command = Command::new(SCHEDTWIN);
        command.current_dir(folder.path()).args(SMALL.split(' ')).args(["--fail-if", condition]);
        command.output().expect("the binary starts")
    };
    for condition in
        ["wakeup_latency p99<+1000%", "power,domain=all<+1000%", "power domain=all<+1000%"]
    {
        assert_eq!(gate(condition).status.code(), Some(1), "{condition}");
    }
    let told = text(&gate("power>+5%,energy>+5%").stderr);
    assert!(told.contains("its own --fail-if"), "{told}");
}

#[test]
fn explain_has_a_legend_json_and_says_where_to_look() {
    let folder = folder();
    let record = "run -q -m uniform8 -w w1 --duration 20ms --record r.rec";
    all(
        folder.path(),
        &[
            (record, 0, "w1"),
            ("explain --legend", 0, "virtual time, ns"),
            ("explain r.rec --at 10ms --legend", 0, "1024 is a whole CPU"),
            (
                "explain r.rec --task rt-app --at 19ms --window 1ns",
                0,
                "; the last before it: --at 0.0",
            ),
        ],
    );
    let part = schedtwin(folder.path(), "explain r.rec --cpu 3 --json");
    fs::write(folder.path().join("part.jsonl"), &part.stdout).expect("written");
    let whole = schedtwin(folder.path(), "explain r.rec --cpu 3");
    let again = schedtwin(folder.path(), "explain part.jsonl --cpu 3");
    assert!(whole.stdout.len() > 1000, "{}", text(&whole.stdout));
    assert_eq!(text(&again.stdout), text(&whole.stdout), "a part is a record itself");
}

#[test]
fn phones_are_told_what_their_start_up_scripts_set() {
    let told = "note: real-time tasks ask for the highest frequency";
    let short = "--duration 20ms";
    for workload in ["ui-phone", "jankbench"] {
        all(folder().path(), &[(&format!("run -m pixel6 -w {workload} {short}"), 0, told)]);
    }
    for (machine, kernel) in [("pixel6", "linux-6.12-gki"), ("uniform8", "linux-6.12")] {
        let run = format!("run -m {machine} -w ui-phone -k {kernel} {short}");
        let output = schedtwin(folder().path(), &run);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(!text(&output.stdout).contains(told), "{machine} {kernel}");
    }
}

#[test]
fn a_record_is_not_written_under_the_name_of_a_trace() {
    let told = "--record writes records (.rec, .record, .jsonl); --trace writes that format";
    for name in ["t.pftrace", "t.txt"] {
        let run = format!("run -m uniform8 -w w1 --duration 1ms --record {name}");
        all(folder().path(), &[(&run, 2, told)]);
    }
}

/// Rows that sum up many parts are no parts: who adds up rows of kind `one` counts each part once.
#[test]
fn sums_over_many_parts_have_a_kind_of_their_own() {
    let run = "run -q -m altra-2p160 -w periodic --duration 20ms -k linux-6.12";
    let json = text(&schedtwin(folder().path(), &format!("{run} --format json")).stdout);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let schema = schedtwin_lab::schema::text("run").expect("it is shipped");
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    assert!(jsonschema::is_valid(&schema, &json));
    let rows: Vec<&serde_json::Value> = json["metrics"]
        .as_array()
        .expect("rows")
        .iter()
        .filter(|row| row["name"] == "freq_mean" && row["labels"]["while"].is_null())
        .filter(|row| row["labels"]["over"].is_null())
        .collect();
    let of_kind = |kind: &str| rows.iter().filter(|row| row["kind"] == kind).count();
    assert_eq!(["one", "mean", "lowest", "highest"].map(of_kind), [160, 1, 1, 1]);
    for row in rows {
        let one = row["kind"] == "one";
        assert_eq!(row["labels"]["domain"].is_string(), one, "{row}");
        assert_eq!(row["of"] == 160 && row["over"] == "domain", !one, "{row}");
    }
    let csv = text(&schedtwin(folder().path(), &format!("{run} --format csv")).stdout);
    assert!(csv.lines().next().expect("a head").ends_with(",hashes,kind,of,over"));
    assert!(csv.lines().any(|line| line.ends_with(",highest,160,domain")), "{csv}");
    let chosen = schedtwin(folder().path(), &format!("{run} --metric freq_mean,row=lowest"));
    assert!(text(&chosen.stdout).contains("freq_mean (lowest of 160 domains)"));
}

#[test]
fn the_page_of_a_server_draws_its_many_clocks_once() {
    let folder = folder();
    let run = "compare -q -m altra-2p160 -w periodic --duration 20ms -n 2 -k linux-6.6 -k linux-6.12 --html page.html";
    let output = schedtwin(folder.path(), run);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = fs::read_to_string(folder.path().join("page.html")).expect("written");
    assert_eq!(page.matches("<h3>mean of 160 ").count(), 2, "its frequencies and its idle states");
    assert!(!page.contains("<h3>cpu7</h3>") && !page.contains("<h3>highest of 160"));
    assert!(page.contains("all domains"), "its power is one bar");
    assert!(page.matches("aria-label=\"CPU ").count() < 40, "idle CPUs have no lane");
}

/// `--value` prints one number and its error: the mean and its interval are the table's.
#[test]
fn one_number_for_optimisers() {
    let folder = folder();
    let numbers = |arguments: &str| -> Vec<f64> {
        let output = schedtwin(folder.path(), arguments);
        let told = text(&output.stdout);
        assert!(output.status.success(), "{arguments}\n{}", text(&output.stderr));
        told.split_whitespace().map(|word| word.parse().expect("a number")).collect()
    };
    let run = "run -m uniform8 -w w1 --duration 20ms";
    let one = numbers(&format!("{run} --value power.mean"));
    assert_eq!(one.len(), 1);
    let mean = numbers(&format!("{run} --value power.mean -n 3"));
    assert_eq!(mean.len(), 2);
    let each: Vec<f64> =
        (1..=3).map(|seed| numbers(&format!("{run} --value power --seed {seed}"))[0]).collect();
    assert!((mean[0] - each.iter().sum::<f64>() / 3.0).abs() < 1e-9 * mean[0]);
    let ticks = numbers(&format!("{SMALL} --value ticks"));
    assert!(ticks.len() == 2 && ticks[0] < 0.0 && ticks[1] >= 0.0, "{ticks:?}");
    all(
        folder.path(),
        &[
            (&format!("{run} --value powre"), 2, "did you mean power?"),
            (&format!("{run} --value cpu_time,task=*"), 2, "numbers, not one"),
            (&format!("{run} --value power,energy"), 2, "these are several metrics"),
            (&format!("{run} -n 3"), 2, "--value"),
            ("--version --licences", 0, "GNU General Public License"),
        ],
    );
}
