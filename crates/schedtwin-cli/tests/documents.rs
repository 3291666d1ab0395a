// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the documents: they fit, name what exists, and show what commands print.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn documents() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["", "docs", "benches"]
        .iter()
        .flat_map(|folder| fs::read_dir(root().join(folder)).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect();
    found.sort();
    assert!(found.len() >= 5, "README, ARCHITECTURE, MODEL, CONTRIBUTING and CHANGELOG exist");
    found
}

/// Every item of the list of attacks names a test that exists.
#[test]
fn attacks_and_faults_are_tested() {
    let text = fs::read_to_string(root().join("docs/validation.md")).expect("a document");
    let table = text.split("\n## Attacks and faults\n").nth(1).expect("the section");
    let table = table.split("\n## ").next().expect("its text");
    let mut sources = String::new();
    for file in sources_of(&root().join("crates")) {
        sources.push_str(&fs::read_to_string(file).expect("a source"));
    }
    let rows = table.split("\n- ").skip(1);
    let tests = rows
        .map(|row| row.split("\n\n").next().expect("an item").rsplit('`').nth(1).expect("a test"));
    let mut count = 0;
    for test in tests {
        assert!(
            sources.contains(&format!("#[test]\nfn {test}()"))
                || sources.contains(&format!("#[test]\n    fn {test}()")),
            "{test}"
        );
        count += 1;
    }
    assert!(count >= 14, "{count}");
}

/// The Rust files below a folder.
fn sources_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let of = |path: PathBuf| match path.is_dir() {
        true => sources_of(&path),
        false => vec![path],
    };
    entries.flat_map(of).filter(|path| path.extension().is_some_and(|e| e == "rs")).collect()
}

/// The short paths of the architecture's map exist: of the kernel, of traces, or of the engine behind `engine/`.
#[test]
fn the_map_of_the_architecture_names_what_exists() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the architecture");
    let map = text.split("\n## Map\n").nth(1).expect("the map");
    let mut checked = 0;
    for quoted in map.split('`').skip(1).step_by(2) {
        if !quoted.ends_with(".rs") && !quoted.ends_with('/')
            || quoted.starts_with("crates/")
            || quoted.starts_with("conformance/")
        {
            continue;
        }
        let engine = quoted.strip_prefix("engine/").unwrap_or(quoted);
        let places = [("kernel", quoted), ("trace", quoted), ("engine", engine)];
        let exists = |(name, path): (&str, &str)| {
            root().join(format!("crates/schedtwin-{name}/src/{path}")).exists()
        };
        assert!(places.into_iter().any(exists), "ARCHITECTURE.md: `{quoted}`");
        checked += 1;
    }
    assert!(checked > 50, "only {checked} short paths");
}

/// A path that a document names in backticks exists; `cargo xtask site --check` follows the links.
#[test]
fn documents_name_what_exists() {
    let mut checked = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).expect("a document");
        for quoted in text.split('`').skip(1).step_by(2) {
            let is_path = quoted.contains('/')
                && !quoted.contains([' ', '*', '<', '(', '=', ':', '{'])
                && !quoted.starts_with(['/', '.'])
                && [
                    "crates",
                    "machines",
                    "kernels",
                    "workloads",
                    "docs",
                    "conformance",
                    "benches",
                    "schemas",
                ]
                .iter()
                .any(|top| quoted.starts_with(&format!("{top}/")));
            if is_path {
                checked += 1;
                assert!(root().join(quoted).exists(), "{}: `{quoted}`", document.display());
            }
        }
    }
    assert!(checked > 20, "documents name files: {checked}");
}

/// Lines of more than 100 columns, by number. Left out: program output, the commands that CI takes from the README, lines
/// of one word (a path, an address), and the end of a document that a test writes from declarations.
fn lines_too_long(text: &str) -> Vec<usize> {
    let mut fence = None;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let made = ["<!-- output of schedtwin ", "<!-- declared keys", "<!-- known bugs"];
        if made.iter().any(|mark| line.starts_with(mark)) {
            break;
        }
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(language) };
            continue;
        }
        let output = matches!(fence, Some("" | "text"));
        let for_ci = fence == Some("sh") && line.starts_with("cargo ");
        let one_word = line.split_whitespace().count() == 1;
        if line.chars().count() > 100 && !output && !for_ci && !one_word {
            found.push(number);
        }
    }
    found
}

#[test]
fn documents_fit_100_columns() {
    let long = "word ".repeat(21);
    let sample =
        format!("{long}\n```text\n{long}\n```\n```sh\n{long}\ncargo {long}\n```\n{long}\n");
    assert_eq!(lines_too_long(&sample), [1, 6, 9]);
    let others = ["conformance/board/README.md", "conformance/recordings/README.md"];
    let others = others.iter().chain(["hunt/found/README.md"].iter()).map(|name| root().join(name));
    for document in documents().into_iter().chain(others) {
        let lines = lines_too_long(&fs::read_to_string(&document).expect("a document"));
        assert_eq!(lines, [0; 0], "{}: lines of more than 100 columns", document.display());
    }
}

/// Every `schedtwin ...` line of a document that is complete is a command that the program knows.
#[test]
fn documents_name_commands_that_exist() {
    let mut checked = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).expect("a document");
        for quoted in text.split('`').skip(1).step_by(2) {
            let Some(rest) = quoted.strip_prefix("schedtwin ") else { continue };
            let command = rest.split_whitespace().next().expect("a word");
            if command.chars().all(|c| c.is_ascii_lowercase()) {
                let status = Command::new(env!("CARGO_BIN_EXE_schedtwin"))
                    .args([command, "--help"])
                    .output()
                    .expect("it runs");
                assert!(status.status.success(), "{}: schedtwin {command}", document.display());
                checked += 1;
            }
        }
    }
    assert!(checked > 5, "documents show commands: {checked}");
}

/// Tables of documents that are made of `docs/results`: `BLESS=1` writes them.
#[test]
fn tables_of_documents_are_those_of_their_results() {
    type Made = fn() -> String;
    let tables: [(&str, &str, Made); 4] = [
        ("studies-results.md", "summary", summary_of_studies),
        ("trust.md", "board", table_of_the_board),
        ("trust.md", "what-if", table_of_what_if),
        ("trust.md", "live", table_of_live),
    ];
    for (name, table, made) in tables {
        let path = root().join("docs").join(name);
        let page = fs::read_to_string(&path).unwrap();
        let start =
            format!("<!-- begin: {table}, made by BLESS=1 cargo test --test documents -->\n");
        let start = page.find(&start).expect("it has the mark") + start.len();
        let end = start + page[start..].find("<!-- end -->").expect("it has an end");
        let made = made();
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, format!("{}{made}{}", &page[..start], &page[end..])).unwrap();
            continue;
        }
        assert_eq!(&page[start..end], made, "{name}: run with BLESS=1 to renew {table}");
    }
}

/// A table in Markdown, its first column flush left.
fn markdown(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let body: String = rows.iter().map(|row| line(row)).collect();
    format!("{}|---|{}\n{body}", line(&head), "---:|".repeat(head.len() - 1))
}

fn result(name: &str) -> String {
    fs::read_to_string(root().join("docs/results").join(name)).unwrap()
}

/// Words of a line that are whole numbers.
fn numbers(line: &str) -> Vec<u32> {
    line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// `77 (96 %)`.
fn with_share(part: u32, of: u32) -> String {
    format!("{part} ({:.0} %)", 100.0 * f64::from(part) / f64::from(of))
}

/// Figures of executions on the board, of the last line of each side by side.
fn table_of_the_board() -> String {
    let rows =
        [("6.12", "side-by-side.txt"), ("7.3", "side-by-side-7.3.txt")].map(|(kernel, file)| {
            let text = result(file);
            let line = text.lines().find(|line| line.starts_with("together: ")).expect("a sum");
            // `together: 298 figures, 215 judged (72 %), 196 in (91 %)`
            let [_, judged, within] = numbers(line)[..] else { panic!("{line}") };
            vec![kernel.to_string(), judged.to_string(), format!("[{within}](results/{file})")]
        });
    markdown(&["kernel", "figures judged", "in"], &rows)
}

/// What-if on the board, where the board is surest: the pairs by kind of change.
fn table_of_what_if() -> String {
    let text = result("what-if.txt");
    let surest = text.split("sure: p < 0.001").nth(1).expect("the first table");
    let surest = surest.split("sure: p < ").next().expect("its lines");
    // The sums of lines that begin so: how many pairs, sure, signs, within a factor of 2.
    let sum = |begins: &[&str]| {
        let lines =
            surest.lines().filter(|line| begins.iter().any(|begin| line.starts_with(begin)));
        lines.fold([0; 4], |[pairs, sure, sign, twice], line| {
            // Behind the name come all differences, then those of the twin, the board's halves, and A beside A: nine numbers.
            let numbers = numbers(line);
            let [_, s, g, t, ..] = numbers[numbers.len() - 9..] else { panic!("{line}") };
            [pairs + 1, sure + s, sign + g, twice + t]
        })
    };
    let kinds: [(&str, &[&str]); 6] = [
        ("EAS off", &["EAS off"]),
        ("clamps, two works", &["clamp "]),
        ("fair servers off", &["fair servers off"]),
        ("base slice, RUN_TO_PARITY", &["base slice", "RUN_TO_PARITY"]),
        ("a patch (no runnable boosting)", &["patch: no runnable boost"]),
        (
            "idle governor, HZ, rate limit, slow switch",
            &["idle governor", "HZ ", "rate limit", "slow switch"],
        ),
    ];
    let mut pairs = 0;
    let mut rows = Vec::new();
    for (kind, begins) in kinds {
        let [of_kind, sure, sign, twice] = sum(begins);
        pairs += of_kind;
        rows.push(
            [kind.to_string()]
                .into_iter()
                .chain([sure, sign, twice].map(|n| n.to_string()))
                .collect(),
        );
    }
    let releases = sum(&["6.12 to 7.3"])[0];
    for (kind, begin) in [
        (format!("all settings and the patch, {pairs} pairs"), "settings and patches"),
        (format!("6.12 to 7.3, {releases} works"), "releases"),
        ("[all](results/what-if.txt)".to_string(), "together"),
    ] {
        let [_, sure, sign, twice] = sum(&[begin]);
        rows.push(vec![kind, sure.to_string(), with_share(sign, sure), with_share(twice, sure)]);
    }
    markdown(&["change", "sure", "right sign", "within a factor of 2"], &rows)
}

/// What-if on a real machine, by work.
fn table_of_live() -> String {
    let text = result("live.txt");
    let (table, by_work) = text.split_once("by work, free and pinned").expect("two tables");
    let row = |of: &str, line: &str| {
        let numbers = numbers(line);
        let [sure, sign, twice, halves, own_sign, own_twice, ..] = numbers[..] else {
            panic!("{line}")
        };
        let (work, from) = match of {
            "mix" => ("rt-app mix", "its file"),
            "chromium" => ("headless Chromium", "a recording"),
            "messages" => ("messages (two programs)", "a recording"),
            "all" => ("[all](results/live.txt)", ""),
            other => (other, "a recording"),
        };
        vec![
            work.to_string(),
            from.to_string(),
            sure.to_string(),
            with_share(sign, sure),
            with_share(twice, sure),
            format!("{own_sign} of {halves} and {own_twice}"),
        ]
    };
    let lines = by_work.lines().filter(|line| !line.is_empty());
    let all = table.lines().find(|line| line.starts_with("all ")).expect("a sum");
    let rows: Vec<Vec<String>> = lines
        .chain([all])
        .map(|line| row(line.split_whitespace().next().expect("a name"), line))
        .collect();
    let head = [
        "work",
        "predicted from",
        "sure",
        "right sign",
        "within a factor of 2",
        "the machine's own halves",
    ];
    markdown(&head, &rows)
}

/// A row for each study with verdicts, of the line `verdicts: ...` of its result and of the lines of the base's values.
fn summary_of_studies() -> String {
    let results = root().join("docs/results");
    let base = fs::read_to_string(results.join("base-values.txt")).unwrap().replace("\n  ", " ");
    let base_of = |study: &str| {
        let line = base
            .lines()
            .find_map(|line| line.strip_prefix(&format!("base values of {study}: of ")));
        let words: Vec<&str> = line.map_or(Vec::new(), |line| line.split(' ').collect());
        let all = words.first().map_or("-", |word| word.trim_end_matches(',')).to_string();
        let before = |word: &str, at: usize| {
            let place = words.windows(2).position(|pair| pair == ["within", word]);
            place.map_or("-".to_string(), |place| words[place - at].to_string())
        };
        [all, before("10", 2), before("25", 1)]
    };
    let mut rows = vec![
        [
            "study",
            "agree",
            "direction",
            "disagree",
            "inconclusive",
            "base values",
            "in 10 %",
            "in 25 %",
        ]
        .map(String::from),
    ];
    let mut files: Vec<_> =
        fs::read_dir(results.join("studies")).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let study = file.file_stem().unwrap().to_str().unwrap();
        let Some(line) = text.lines().find_map(|line| line.strip_prefix("verdicts: ")) else {
            continue;
        };
        let count = |word: &str| {
            let mut parts = line.split([',', ';']).map(str::trim);
            let part = parts.find_map(|part| part.strip_suffix(&format!(" {word}")));
            part.expect("each verdict is counted").to_string()
        };
        let verdicts = ["agree", "direction", "disagree", "inconclusive"].map(count);
        if verdicts.iter().all(|count| count == "0") {
            continue;
        }
        let [agree, direction, disagree, inconclusive] = verdicts;
        let [all, ten, more] = base_of(study);
        rows.push([study.to_string(), agree, direction, disagree, inconclusive, all, ten, more]);
    }
    let [all, ten, more] = base_of("all");
    let sum = |column: usize| {
        let values = rows[1..].iter().map(|row| row[column].parse::<u32>().unwrap());
        values.sum::<u32>().to_string()
    };
    rows.push(["all".to_string(), sum(1), sum(2), sum(3), sum(4), all, ten, more]);
    let [head, rows @ ..] = &rows[..] else { panic!("a head") };
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.to_vec()).collect();
    markdown(&head.each_ref().map(String::as_str), &rows)
}

/// The README's first command prints what the README says. `BLESS=1` writes it there.
#[test]
fn the_readme_shows_what_its_first_command_prints() {
    let path = root().join("README.md");
    let readme = fs::read_to_string(&path).expect("README.md");
    let command = readme
        .lines()
        .find_map(|l| l.strip_prefix("cargo run --release -p schedtwin-cli -- "))
        .expect("the README has a first command");
    let printed = printed(&command.split_whitespace().collect::<Vec<_>>());
    let marker = "<!-- output of the first command -->\n```text\n";
    let start = readme.find(marker).expect("the README shows the output") + marker.len();
    let end = start + readme[start..].find("```\n").expect("the block ends");
    if std::env::var_os("BLESS").is_some() {
        let blessed = format!("{}{}{}", &readme[..start], printed, &readme[end..]);
        fs::write(&path, blessed).expect("README.md can be written");
        return;
    }
    assert_eq!(&readme[start..end], printed, "run with BLESS=1 to renew the README");
}

/// Runs a command of the twin, which has to succeed; returns what it prints.
fn printed(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_schedtwin")).args(arguments).output().expect("it runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Each change of the README's table that needs no file of the reader's can be compared.
#[test]
fn the_changes_of_the_readme_run() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    let rows = readme.lines().filter_map(|line| line.strip_suffix("` |")?.rsplit_once("`-k "));
    let mut ran = 0;
    for (_, kernels) in rows.filter(|(_, kernels)| !kernels.contains('~')) {
        let place = ["compare", "-m", "pixel6", "-w", "ui-phone", "--duration", "100ms", "-n", "2"];
        let kernels: Vec<&str> = kernels.split(" -k ").flat_map(|kernel| ["-k", kernel]).collect();
        assert!(printed(&[&place[..], &kernels].concat()).contains("\n  B  "), "{kernels:?}");
        ran += 1;
    }
    assert!(ran >= 5, "{ran}");
}

/// The README's sentences about the twin, beside its commands, are true.
#[test]
fn the_claims_of_the_readme_hold() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    let says = |words: &str| assert!(readme.contains(words), "the README says no more: {words}");
    let in_words = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    // In words what its table says in numbers.
    let change = |row: &str| -> f64 {
        let line = readme.lines().find(|line| line.starts_with(row)).expect("a row");
        let cell = line.split_whitespace().find_map(|cell| cell.strip_suffix('%'));
        cell.expect("a difference").parse().expect("a number")
    };
    assert!(in_words.contains("almost a third less time, and the CPUs draw almost a quarter more"));
    assert!((-34.0..-28.0).contains(&change("frame_duration mean")));
    assert!((21.0..25.0).contains(&change("power   ")));
    says("with ten lessons");
    assert_eq!(fs::read_dir(root().join("web/lessons")).expect("lessons").count(), 10);
    // Each row of the table is explained.
    let metrics = printed(&["list", "metrics"]);
    for row in
        ["throughput", "frame_duration", "missed_periods", "wakeup_latency", "power", "energy"]
    {
        assert!(metrics.lines().any(|line| line.trim_start().starts_with(row)), "{row}");
    }
    // Governors and releases are there.
    let points = printed(&["list", "points"]);
    for governor in "schedutil, ondemand, conservative, teo, menu, ladder, haltpoll".split(", ") {
        says(governor);
        assert!(points.contains(governor), "{governor}");
    }
    let kernels = printed(&["list", "kernels"]);
    says("6.6, 6.3, 6.1, 6.0, 5.18, 5.11, 4.7 and, composed of known forms,\nothers since 4.19");
    for release in
        ["7.3", "6.18", "6.12", "6.6", "6.3", "6.1", "6.0", "5.18", "5.11", "4.7", "4.19"]
    {
        assert!(
            kernels.lines().any(|line| line.starts_with(&format!("linux-{release} "))),
            "{release}"
        );
    }
    assert!(printed(&["capture"]).starts_with("#!/bin/sh"));
    // Limits are those of the page.
    let limits = fs::read_to_string(root().join("docs/limits.md")).expect("the limits");
    for limit in ["256 CPUs", "16,384 threads"] {
        says(limit);
        assert!(limits.contains(limit.split(' ').next().expect("a number")), "{limit}");
    }
    says("The `--help` of each command has examples.");
    let help = printed(&["--help"]);
    let commands = help.split("Commands:\n").nth(1).expect("a list of commands");
    for line in commands.lines().take_while(|line| !line.is_empty()) {
        let Some(name) = line.strip_prefix("  ").and_then(|line| line.split(' ').next()) else {
            continue;
        };
        if !name.is_empty() && name != "help" {
            assert!(printed(&[name, "--help"]).contains("xample"), "{name}");
        }
    }
}

/// The machine that docs/machine-files.md shows as a whole is one: it is checked, and runs.
#[test]
fn the_machine_of_the_guide_runs() {
    let guide = fs::read_to_string(root().join("docs/machine-files.md")).expect("the guide");
    let start = guide.find("```toml\n").expect("a machine") + "```toml\n".len();
    let end = start + guide[start..].find("```").expect("the block ends");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("two-plus-two.toml");
    fs::write(&path, &guide[start..end]).expect("it can be written");
    let path = path.to_str().expect("a path in UTF-8");
    for arguments in [
        &["check", path][..],
        &["run", "-m", path, "-w", "periodic -f 100 -t 4", "--duration", "200ms"],
    ] {
        printed(arguments);
    }
}

/// Where a document links to a result, the numbers in the words of the link are in that result. So a figure that a
/// new run no longer prints cannot stay in a document.
#[test]
fn numbers_beside_links_to_results_are_in_them() {
    let mut checked = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).expect("a document");
        for link in text.split('[').skip(1) {
            let Some((words, rest)) = link.split_once("](") else { continue };
            let target = rest.split(')').next().unwrap_or("");
            if words.contains(']') || !target.contains("results/") || target.ends_with(".svg") {
                continue;
            }
            let path = document.parent().expect("a folder").join(target);
            let result = fs::read_to_string(&path).expect("a result that a document links to");
            // A word that begins with a digit is a number; in a name such as jankbench-pixel6 digits come later.
            let numbers =
                words.split_whitespace().filter(|w| w.starts_with(|c: char| c.is_ascii_digit()));
            for number in numbers.map(|n| n.trim_end_matches([',', ';', ':'])) {
                checked += 1;
                let found = result.contains(number) || result.contains(&number.replace(',', ""));
                assert!(found, "{}: `{number}` is not in {target}", document.display());
            }
        }
    }
    assert!(checked >= 4, "documents quote results: {checked}");
}
