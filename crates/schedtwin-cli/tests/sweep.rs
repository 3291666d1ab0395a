//! Sweeps through the binary: in one go, in shards, killed and continued.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const SCHEDTWIN: &str = env!("CARGO_BIN_EXE_schedtwin");

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
    assert_eq!(whole.lines().filter(|line| !line.starts_with('#')).count(), 1 + 48);
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
    let journal = folder.join("killed.csv.runs");
    let mut child = command(folder, &format!("{SWEEP} --threads 1 -o killed.csv"))
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
    good(folder, &format!("{SWEEP} -o killed.csv"));
    assert_eq!(read(folder, "killed.csv"), whole);
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
    for word in ["kernel.hz", "wakeup_latency.p99 [us]", "front"] {
        assert!(rows[2].contains(word), "{table}");
    }
    assert_eq!(rows[3..].iter().take_while(|row| !row.is_empty()).count(), 12);
    assert!(rows[3..].iter().any(|row| row.ends_with('*')), "{table}");
}

#[test]
fn what_cannot_be_swept() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (arguments, words) in [
        ("sweep -m uniform8 -w w1 -k linux-6.12:hz={100,", "a list without its other end"),
        ("sweep -m uniform8 -w w1 -k linux-6.12:hz={100,7}", "hz"),
        ("sweep -m uniform8 -w w1 -k linux-6.12 -o runs.parquet", "end the name in .csv"),
        ("sweep -m uniform8 -w w1 -k linux-6.12 --shard 4/3 -o a.csv", "a shard is written K/N"),
        ("sweep -m uniform8 -w w1 -k linux-6.12 --front power", "--front has two metrics"),
        ("sweep -m uniform8 -w w1 -k linux-6.12 --metric powr", "did you mean power"),
        ("merge nothing.csv -o a.csv", "failed to read nothing.csv"),
    ] {
        bad(folder, arguments, words);
    }
    fs::write(folder.join("a.csv"), "run,seed\n1,2\n").expect("the folder is writable");
    bad(folder, "merge a.csv -o b.csv", "a.csv: this is no file of a sweep");
}
