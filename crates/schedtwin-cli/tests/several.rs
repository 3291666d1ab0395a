// SPDX-License-Identifier: GPL-2.0-or-later
//! Comparisons on several machines and under several workloads: one table of all.

use std::process::{Command, Output};

const KERNELS: &str = "-k linux-6.12 -k linux-6.12:hz=1000";

fn compare(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_schedtwin"))
        .args(["compare", "-q", "--duration", "50ms", "-n", "3"])
        .args(arguments.split(' '))
        .output()
        .expect("the binary starts")
}

fn good(arguments: &str) -> String {
    let output = compare(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn one_table_has_a_row_for_each_machine_and_workload() {
    let asks = format!("-m uniform8 -m pixel6 -w w1 -w periodic {KERNELS} --metric power,ticks");
    let text = good(&asks);
    let rows = |word: &str| text.lines().filter(|line| line.contains(word)).count();
    assert_eq!(
        text.lines().next(),
        Some("4 comparisons, 3 runs each, paired (seeds 1-3), 50 ms simulated")
    );
    assert_eq!(text.lines().filter(|line| line.contains(" vs A")).count(), 1, "one head\n{text}");
    assert_eq!(rows("schedtwin 0"), 1, "one footer\n{text}");
    assert_eq!(rows("B against A:"), 1, "one sentence\n{text}");
    let table: Vec<&str> =
        text.lines().filter(|line| line.contains("  mW  ") || line.contains("  count  ")).collect();
    let names: Vec<(bool, &str, &str)> = table
        .iter()
        .map(|line| {
            let mut words = line.split_whitespace();
            let titled = !line.starts_with(' ');
            if titled {
                words.next();
            }
            (titled, words.next().expect("a machine"), words.next().expect("a workload"))
        })
        .collect();
    let four = [
        (true, "uniform8", "w1"),
        (false, "uniform8", "periodic"),
        (false, "pixel6", "w1"),
        (false, "pixel6", "periodic"),
    ];
    assert_eq!(names, [four, four].concat(), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let inputs = text
        .split("inputs: ")
        .nth(1)
        .expect("hashes")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for input in [
        "machine uniform8 ",
        "machine pixel6 ",
        "workload w1 ",
        "workload periodic ",
        "kernel linux-6.12 ",
    ] {
        assert_eq!(inputs.matches(input).count(), 1, "{input} in {inputs}");
    }
    // The numbers are those of each comparison alone.
    let alone = good(&format!("-m pixel6 -w periodic {KERNELS} --metric power"));
    let numbers = |line: &str| {
        line.split("mW")
            .nth(1)
            .map(|rest| rest.split_whitespace().take(3).map(str::to_string).collect::<Vec<_>>())
    };
    let own = alone.lines().find_map(numbers).expect("a row");
    let in_all = table
        .iter()
        .filter(|line| line.contains("periodic"))
        .filter(|line| line.contains("pixel6"))
        .find_map(|line| numbers(line));
    assert_eq!(in_all, Some(own));

    let each = good(&format!("{asks} --each"));
    assert_eq!(each.matches(" vs A").count(), 4, "{each}");
}

#[test]
fn other_formats_have_all_comparisons() {
    let asks = format!("-m uniform8 -m pixel6 -w w1 {KERNELS} --metric power");
    let markdown = good(&format!("{asks} --format markdown"));
    let rows = markdown.lines().filter(|line| line.starts_with("| power |")).count();
    assert_eq!(rows, 2, "{markdown}");
    assert!(!markdown.contains("\\_"), "{markdown}");
    let json: serde_json::Value =
        serde_json::from_str(&good(&format!("{asks} --format json"))).expect("JSON");
    let all = json.as_array().expect("a list");
    let schema = schedtwin_lab::schema::text("compare").expect("it is shipped");
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    assert!(all.iter().all(|one| jsonschema::is_valid(&schema, one)));
    let machines: Vec<&str> =
        all.iter().filter_map(|one| one["provenance"]["machine"].as_str()).collect();
    assert_eq!(machines, ["uniform8", "pixel6"]);
    let csv = good(&format!("{asks} --format csv"));
    assert_eq!(csv.lines().count(), 1 + 4, "{csv}");
    assert_eq!(csv.matches("model_version").count(), 1, "one head");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("page.html");
    let html = compare(&format!("{asks} --html {}", path.display()));
    assert!(html.status.success(), "{}", String::from_utf8_lossy(&html.stderr));
    let page = std::fs::read_to_string(path).expect("it is written");
    for part in ["2 comparisons", "href=\"#part-1\"", "id=\"part-1\"", "uniform8, w1", "pixel6, w1"]
    {
        assert!(page.contains(part), "{part}");
    }
}

/// A commit message has 72 columns: metrics get a line of their own then. Notes of one machine name it.
#[test]
fn three_machines_fit_a_commit_message() {
    let asks = format!("-m uniform8 -m epyc-milan-2x64 -m xeon-8260-2s -w w1 {KERNELS} --width 72");
    let text = good(&asks);
    let table = text.split("\n\n").nth(3).expect("a table");
    assert!(table.lines().all(|line| line.chars().count() <= 72), "{table}");
    for row in ["power, mW\n  uniform8 ", "\n  epyc-milan-2x64 ", "idle_too_deep, %\n"] {
        assert!(text.contains(row), "{row}: {text}");
    }
    assert!(text.starts_with("3 comparisons under w1, 3 runs each"), "{text}");
    let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let note = "note: epyc-milan-2x64: runs are shorter than 512ms";
    assert!(unwrapped.contains(note), "a note names its machine: {unwrapped}");
}

#[test]
fn verdicts_name_their_place_and_are_in_the_json() {
    let asks = format!("{KERNELS} --fail-if ticks>+1% --fail-if power>+900%");
    let several = compare(&format!("-m uniform8 -m sm8250 -w w1 {asks}"));
    assert_eq!(several.status.code(), Some(1));
    let told = String::from_utf8_lossy(&several.stderr).into_owned();
    for place in ["uniform8, w1: ", "sm8250, w1: "] {
        assert_eq!(told.matches(place).count(), 1, "{told}");
    }
    let one = compare(&format!("-m uniform8 -w w1 {asks} --format json"));
    assert_eq!(one.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&one.stdout).expect("JSON");
    let schema = schedtwin_lab::schema::text("compare").expect("it is shipped");
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    assert!(jsonschema::is_valid(&schema, &json));
    assert_eq!(json["verdicts"][0]["condition"], "ticks>+1%");
    assert_eq!(json["verdicts"][0]["failed"], true);
    assert_eq!(json["verdicts"][0]["findings"].as_array().map(Vec::len), Some(1));
    assert_eq!(json["verdicts"][1]["failed"], false);
}
