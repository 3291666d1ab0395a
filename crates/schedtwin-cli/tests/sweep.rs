// SPDX-License-Identifier: GPL-2.0-or-later
//! Sweeps through the binary: in one go, in shards, killed and continued.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const SCHEDTWIN: &str = env!("CARGO_BIN_EXE_schedtwin");

/// 1,008 runs of a millisecond.
const THOUSAND: &str =
    "sweep -q --wide --duration 1ms -n 168 -m uniform8 -w w1 -k linux-{6.1,6.12}:hz={100,250,1000}";

/// 48 runs of a few milliseconds.
const SWEEP: &str =
    "sweep -q --duration 20ms -n 4 -m uniform8 -m rig8 -w w1 -k linux-{6.1,6.12}:hz={100,250,1000}";

fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(SCHEDTWIN);
    command.current_dir(folder).args(arguments.split(' '));
    command
}

fn schedtwin(folder: &Path, arguments: &str) -> Output {
    command(folder, arguments).output().expect("the binary starts")
}

fn good(folder: &Path, arguments: &str) -> String {
    let output = schedtwin(folder, arguments);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments}\n{told}");
    String::from_utf8(output.stdout).expect("output is UTF-8")
}

fn bad(folder: &Path, arguments: &str, words: &str) {
    let output = schedtwin(folder, arguments);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments}\n{told}");
    assert!(told.contains(words), "{arguments}\n{told}");
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).expect("it was written")
}

#[test]
fn shards_and_threads_and_interruptions_change_no_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    good(folder, &format!("{SWEEP} --threads 1 -o whole.csv"));
    let whole = read(folder, "whole.csv");
    let runs: std::collections::BTreeSet<&str> =
        whole.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(runs.len(), 48);
    assert!(!folder.join("whole.csv.runs").exists(), "the journal goes away");
    good(folder, &format!("{SWEEP} --threads 2 -o again.csv"));
    assert_eq!(read(folder, "again.csv"), whole);

    for shard in 1..=3 {
        let told = good(folder, &format!("{SWEEP} --shard {shard}/3 -o part-{shard}.csv"));
        assert_eq!(told, "16 of 48 runs\n");
    }
    good(folder, "merge part-3.csv part-1.csv part-2.csv -o merged.csv");
    assert_eq!(read(folder, "merged.csv"), whole);
    bad(folder, "merge part-3.csv part-1.csv -o lacks.csv", "16 of 48 runs are in no part");
    bad(
        folder,
        "merge part-3.csv part-3.csv -o twice.csv",
        "run 2 is in part-3.csv and in part-3.csv",
    );

    // Killed as soon as it has done something, given again until it is through.
    kill_when_it_has_begun(folder, &format!("{SWEEP} --threads 1 -o killed.csv"), "killed.csv");
    good(folder, &format!("{SWEEP} -o killed.csv"));
    assert_eq!(read(folder, "killed.csv"), whole);
}

#[test]
fn a_thousand_runs_in_shards_of_which_one_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    good(folder, &format!("{THOUSAND} -o whole.csv"));
    let second = format!("{THOUSAND} --threads 1 --shard 2/3 -o part-2.csv");
    kill_when_it_has_begun(folder, &second, "part-2.csv");
    assert!(!folder.join("part-2.csv").exists(), "it was killed before it was through");
    for shard in 1..=3 {
        let told = good(folder, &format!("{THOUSAND} --shard {shard}/3 -o part-{shard}.csv"));
        assert_eq!(told, "336 of 1008 runs\n");
    }
    good(folder, "merge part-1.csv part-2.csv part-3.csv -o merged.csv");
    let whole = read(folder, "whole.csv");
    assert_eq!(whole.lines().filter(|line| !line.starts_with('#')).count(), 1 + 1008);
    assert!(read(folder, "merged.csv") == whole, "the same bytes as in one go");
}

/// Kills a sweep when a few of its runs are done and it still has others to do.
fn kill_when_it_has_begun(folder: &Path, arguments: &str, output: &str) {
    let journal = folder.join(format!("{output}.runs"));
    let mut child = command(folder, arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let begin = Instant::now();
    let lines = || fs::read_to_string(&journal).map_or(0, |text| text.lines().count());
    while lines() < 3
        && begin.elapsed() < Duration::from_secs(60)
        && child.try_wait().unwrap().is_none()
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
}

#[test]
fn the_table_has_a_row_a_setting() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = good(
        folder.path(),
        &format!("{SWEEP} --metric wakeup_latency.p99 --front power,wakeup_latency.p99"),
    );
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows[0], "12 settings, 4 seeds each: means");
    assert!(rows[2].starts_with("machine"), "{table}");
    for word in ["kernel", "kernel.hz", "power.mean", "wakeup_latency.p99", "front"] {
        assert!(rows[2].contains(word), "{table}");
    }
    assert_eq!(rows[3].split_whitespace().collect::<Vec<_>>(), ["mW", "us"], "{table}");
    assert_eq!(rows[4..].iter().take_while(|row| !row.is_empty()).count(), 12);
    let names: std::collections::BTreeSet<String> = rows[4..16]
        .iter()
        .map(|row| row.split_whitespace().take(3).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(names.len(), 12, "each row says which setting it is: {table}");
    assert!(rows.iter().all(|row| row.len() <= 80), "{table}");
    assert!(rows[3..].iter().any(|row| row.ends_with('*')), "{table}");
}

/// 6.18.44 starves tasks, 6.18.45 does not: the totals of the first one are better, and it is not on the front.
#[test]
fn a_setting_that_is_kept_off_the_front_is_named_with_its_property() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let starvation =
        format!("{}/../schedtwin-lab/tests/starvation.json", env!("CARGO_MANIFEST_DIR"));
    fs::copy(starvation, folder.join("starvation.json")).expect("it is there");
    let asks = "sweep -q -n 2 -m uniform8 -w starvation.json -k linux-6.18 -k linux-6.18:reweight_entity=placed \
                --front power,throughput --html page.html";
    let table = good(folder, asks);
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = "broken: 1 of 2 settings broke a property that another one of the same machine and workload kept \
                linux-6.18:reweight_entity=placed: starvation in 2 of 2 runs, first with seed 1";
    assert!(words.contains(told), "{table}");
    assert_eq!(table.lines().filter(|line| line.ends_with(" broken")).count(), 1, "{table}");
    let page = read(folder, "page.html");
    assert!(page.contains("starvation in 2 of 2 runs, first with seed 1"), "{page}");
}

#[test]
fn the_page_has_a_point_a_setting_and_a_front() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let asks = format!("{SWEEP} --front power,wakeup_latency.p99 --html page.html");
    let table = good(folder, &asks);
    let page = read(folder, "page.html");
    assert_eq!(page.matches("<circle").count(), 12, "{page}");
    let (titles, rest) = page.split_once("</h2>").expect("it has a figure");
    assert!(titles.ends_with("wakeup_latency.p99 [us] over power.mean [mW]"), "{titles}");
    // Who is on the front is marked in the table of the page as in that of the text, and has its number in the figure.
    let marked = table.lines().filter(|line| line.ends_with('*')).count();
    assert!((1..12).contains(&marked), "{table}");
    assert_eq!(page.matches(" *</td>").count(), marked, "{table}");
    assert_eq!(rest.matches("<span style=\"left:").count(), marked);
    assert_eq!(rest.matches("fill=\"var(--seq)\"").count(), marked);
    assert!(page.contains("kernel linux-6.12:hz=250: "), "it says where it comes from");
    assert!(!page.contains("http"), "it loads nothing");
    good(folder, &asks.replace("page.html", "again.html --threads 1"));
    assert_eq!(read(folder, "again.html"), page);
    // Without two metrics it is a table.
    good(folder, &format!("{SWEEP} --metric power --html table.html"));
    let page = read(folder, "table.html");
    assert!(page.contains("<table") && !page.contains("<circle"), "{page}");
}

#[test]
fn what_cannot_be_swept() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (arguments, words) in [
        ("sweep -m uniform8 -w w1 -k linux-6.12:hz={100,", "a list without its other end"),
        ("sweep -m uniform8 -w w1 -k linux-6.12:hz={100,7}", "hz"),
        ("sweep -m uniform8 -w w1 -k linux-6.12 -o runs.xlsx", "end the name in .csv or .parquet"),
        ("sweep -m uniform8 -w w1 -k linux-6.12 --shard 4/3 -o a.csv", "a shard is written K/N"),
        (
            "sweep -m uniform8 -w w1 -k linux-6.12 --front power",
            "--front takes two metrics and was given 1",
        ),
        ("sweep -m uniform8 -w w1 -k linux-6.12 --metric powr", "did you mean power"),
        ("sweep -m uniform8 -w w1 -k linux-6.12 --html no/page.html", "no/page.html"),
        (
            "sweep -m uniform8 -w w1 -k linux-6.12 --html a.csv -o a.csv",
            "--html names the same file",
        ),
        (
            "sweep -m uniform8 -w w1 -k linux-6.12 --html a --shard 1/2 -o a.csv",
            "cannot be used with",
        ),
        ("merge nothing.csv -o a.csv", "failed to read nothing.csv"),
    ] {
        bad(folder, arguments, words);
    }
    fs::write(folder.join("a.csv"), "run,seed\n1,2\n").expect("the folder is writable");
    bad(folder, "merge a.csv -o b.csv", "a.csv: this is no file of a sweep");
}

/// A line for each run and metric, which needs no skipping of comments; `--metric` narrows it, `--wide` turns it round.
#[test]
fn the_long_form_and_the_wide_one_say_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    good(folder, &format!("{SWEEP} -o long.csv"));
    good(folder, &format!("{SWEEP} --wide -o wide.csv"));
    good(folder, &format!("{SWEEP} --metric power,energy -o some.csv"));
    let (long, wide, some) =
        (read(folder, "long.csv"), read(folder, "wide.csv"), read(folder, "some.csv"));
    let head = "run,machine,kernel,workload,kernel.hz,seed,digest,metric,stat,labels,kind,of,over,unit,value,from";
    assert_eq!(long.lines().next(), Some(head));
    assert!(long.lines().nth(1).expect("a line").contains("schedtwin sweep "), "whence it comes");
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(wide.as_bytes());
    let columns: Vec<String> =
        reader.headers().expect("a head").iter().skip(7).map(String::from).collect();
    let mut expected = Vec::new();
    for record in reader.records().map(|record| record.expect("a line")) {
        let values =
            columns.iter().zip(record.iter().skip(7)).filter(|(_, value)| !value.is_empty());
        expected.extend(values.map(|(c, v)| (record[0].to_string(), c.clone(), v.to_string())));
    }
    let mut reader = csv::Reader::from_reader(long.as_bytes());
    let found: Vec<(String, String, String)> = reader
        .records()
        .map(|record| record.expect("a line"))
        .map(|cells| {
            let labels = match &cells[9] {
                "" => String::new(),
                labels => format!("{{{labels}}}"),
            };
            assert_eq!(&cells[10], "one");
            let title = format!("{}.{}{labels}", &cells[7], &cells[8]);
            (cells[0].to_string(), title, cells[14].to_string())
        })
        .collect();
    assert_eq!(found, expected);
    let metrics: Vec<&str> = some.lines().skip(1).filter_map(|l| l.split(',').nth(7)).collect();
    assert_eq!(metrics, ["energy", "power"].repeat(48));
}

#[test]
fn a_sweep_as_parquet() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    if !cfg!(feature = "parquet") {
        bad(folder, &format!("{SWEEP} -o whole.parquet"), "--features parquet");
        return;
    }
    good(folder, &format!("{SWEEP} -o whole.parquet"));
    let whole = fs::read(folder.join("whole.parquet")).expect("it was written");
    for shard in 1..=3 {
        good(folder, &format!("{SWEEP} --shard {shard}/3 -o part-{shard}.parquet"));
    }
    good(folder, "merge part-3.parquet part-1.parquet part-2.parquet -o merged.parquet");
    assert_eq!(fs::read(folder.join("merged.parquet")).expect("it was written"), whole);
    // The two formats say the same.
    good(folder, "merge whole.parquet -o whole.csv");
    good(folder, &format!("{SWEEP} -o direct.csv"));
    assert_eq!(read(folder, "whole.csv"), read(folder, "direct.csv"));
    bad(folder, "merge whole.csv -o whole.xlsx", "end the name in .csv or .parquet");
}

/// A cache serves other sweeps of the same runs, performs what is new, and changes no byte; a damaged entry is run again.
#[test]
fn a_cache_performs_only_what_is_new() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let entries = || -> Vec<std::path::PathBuf> {
        let folders = fs::read_dir(folder.join("kept")).expect("the cache").flatten();
        folders
            .flat_map(|f| fs::read_dir(f.path()).expect("a folder").flatten())
            .map(|e| e.path())
            .collect()
    };
    let narrow = SWEEP.replace(":hz={100,250,1000}", ":hz={100,250}");
    good(folder, &format!("{narrow} --cache kept -o narrow.csv"));
    assert_eq!(entries().len(), 32);
    let entry = entries().remove(0);
    let written = || fs::metadata(&entry).expect("an entry").modified().expect("a time");
    let before = written();
    good(folder, &format!("{SWEEP} --cache kept -o wide.csv"));
    good(folder, &format!("{SWEEP} -o without.csv"));
    assert_eq!(read(folder, "wide.csv"), read(folder, "without.csv"));
    assert_eq!(entries().len(), 48);
    assert_eq!(written(), before, "it was not run again");
    fs::write(&entry, "half").expect("written");
    good(folder, &format!("{SWEEP} --cache kept -o again.csv"));
    assert_eq!(read(folder, "again.csv"), read(folder, "without.csv"));
    bad(folder, &format!("{SWEEP} --cache wide.csv"), "wide.csv");
}

/// A setting that a rival beats for certain gets few runs, the others all, and the front is that of the whole sweep.
#[test]
fn a_race_finds_the_front_with_fewer_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let sweep = "sweep -q --duration 500ms -n 20 -m pixel6 -w ui-phone --front power,wakeup_latency.p99 --metric power \
                 -k linux-7.3:cpufreq={schedutil,powersave},cpuidle={menu,teo}";
    let sweep = sweep.split_whitespace().collect::<Vec<_>>().join(" ");
    let front = |table: &str| -> Vec<String> {
        let marked = table.lines().filter(|line| line.ends_with('*'));
        marked.map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect()
    };
    let (whole, raced) =
        (good(folder, &sweep), good(folder, &format!("{sweep} --race --threads 1")));
    assert!(!front(&whole).is_empty());
    assert_eq!(front(&raced), front(&whole), "{raced}\n{whole}");
    assert!(raced.starts_with("4 settings, ") && raced.contains(" to 20 seeds each, "), "{raced}");
    assert_eq!(raced, good(folder, &format!("{sweep} --race --threads 3")));
    let kept = format!("{sweep} --race --cache kept");
    assert_eq!(good(folder, &kept), raced);
    assert_eq!(good(folder, &kept), raced, "from the cache");
    bad(folder, "sweep -m uniform8 -w w1 -k linux-6.12 --race", "--front");
}

/// Shards of two computers become one table and one figure, without a run.
#[test]
fn a_merged_file_becomes_a_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for shard in ["1/2", "2/2"] {
        let output = shard.replace('/', "-");
        good(folder, &format!("{SWEEP} --shard {shard} -o {output}.csv"));
    }
    good(folder, "merge 1-2.csv 2-2.csv -o all.csv");
    let front = "--front power,wakeup_latency.p99";
    let from = format!("{SWEEP} --from all.csv {front}");
    let table = good(folder, &format!("{from} --html all.html"));
    assert_eq!(table, good(folder, &format!("{SWEEP} {front}")));
    assert!(read(folder, "all.html").contains("All settings"));
    let told = String::from_utf8(schedtwin(folder, &from.replace("-q ", "")).stderr).expect("text");
    assert!(told.contains("48 of 48 runs are done already"), "{told}");
    bad(folder, &from.replace("-n 4", "-n 5"), "all.csv: it is of another sweep");
}
