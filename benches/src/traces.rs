// SPDX-License-Identifier: GPL-2.0-or-later
//! The cost of reading a recording: events a second on one thread, by format and wrapper.
//!
//! The recording is the twin's own ftrace text of a built-in workload, in memory; the real ones beside the repository are read as
//! well where they are there, and those that the command line names. The bar is two million events a second from text that
//! is not packed, and five from binary formats.

use crate::measure::{median, peak_kib, timed};
use crate::w1::table;
use schedtwin_engine::{RunOptions, Scenario};
use schedtwin_trace::event::TraceSource;
use schedtwin_trace::event_out::{EventPerfetto, EventSink, EventTraceDat, write_events};
use schedtwin_trace::sources;
use std::io;
use std::path::{Path, PathBuf};

/// Events a second from text.
pub const BAR: f64 = 2e6;

/// Events a second from binary formats.
pub const BINARY_BAR: f64 = 5e6;

/// Rounds; the median counts.
const ROUNDS: usize = 5;

/// Binary recordings of devices that are read where they are.
const BINARY_RECORDINGS: [&str; 2] =
    ["ipynb_tutorial_example_rtapp_trace.dat.xz", "tests_assets_sched_load_trace.dat.xz"];

/// Text of devices, read where it is.
const RECORDINGS: [&str; 2] = [
    "trace_input_blog_list_jank.ftrace.txt.xz",
    "xiaomi_launcher_scroll_all_the_time.ftrace.txt.xz",
];

/// Prints the table; `others`: further files to read.
pub fn report(others: &[PathBuf]) -> io::Result<()> {
    let mut rows = table(["recording", "MB", "events", "events/s", "bar"]);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("trace.txt");
    let scenario = Scenario::new("pixel6", "linux-6.12", "ui-phone", Some(10_000_000_000))
        .map_err(|faults| io::Error::other(faults.to_string()))?;
    let options = RunOptions { trace: Some(path.clone()), ..RunOptions::default() };
    scenario.run(1, options).map_err(|error| io::Error::other(error.to_string()))?;
    let text = std::fs::read(&path)?;
    rows.add_row(row("the twin's text", &text, Some(BAR))?);
    let perf = perf_script(&text);
    rows.add_row(row("the same as of perf script", &perf, Some(BAR))?);
    let perfetto = folder.path().join("trace.pftrace");
    let options = RunOptions { trace: Some(perfetto.clone()), ..RunOptions::default() };
    scenario.run(1, options).map_err(|error| io::Error::other(error.to_string()))?;
    rows.add_row(row("a run's Perfetto trace", &std::fs::read(&perfetto)?, None)?);
    for (name, file) in
        [("the twin's as Perfetto", "a.pftrace"), ("the twin's as trace.dat", "a.dat")]
    {
        let to = folder.path().join(file);
        let mut source = sources::read(&text[..]).map_err(io::Error::other)?;
        let header = source.header().clone();
        let sink: Box<dyn EventSink> = match file {
            "a.dat" => Box::new(EventTraceDat::create(&to, &header)?),
            _ => Box::new(EventPerfetto::create(&to, &header)?),
        };
        write_events(&mut *source, sink)
            .map_err(|failed| io::Error::other(format!("{failed:?}")))?;
        rows.add_row(row(name, &std::fs::read(&to)?, Some(BINARY_BAR))?);
    }
    for path in others {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        rows.add_row(row(&name, &std::fs::read(path)?, None)?);
    }
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/traces");
    for name in BINARY_RECORDINGS {
        let Ok(packed) = std::fs::read(recordings.join(name)) else {
            println!("skipped: {name} is not there");
            continue;
        };
        let mut content = Vec::new();
        io::copy(&mut schedtwin_trace::packed::unpack(&packed[..])?.reader, &mut content)?;
        // Nearly all of these small files are the formats of the kernel's tracepoints: no bar.
        rows.add_row(row(name.trim_end_matches(".xz"), &content, None)?);
    }
    for name in RECORDINGS {
        let Ok(packed) = std::fs::read(recordings.join(name)) else {
            println!("skipped: {name} is not there");
            continue;
        };
        rows.add_row(row(name, &packed, None)?);
        let mut content = Vec::new();
        io::copy(&mut schedtwin_trace::packed::unpack(&packed[..])?.reader, &mut content)?;
        rows.add_row(row(name.trim_end_matches(".xz"), &content, Some(BAR))?);
    }
    println!("{rows}");
    println!("peak memory {} MiB", peak_kib().unwrap_or(0) >> 10);
    Ok(())
}

/// Reads a file several times.
fn row(name: &str, file: &[u8], bar: Option<f64>) -> io::Result<Vec<String>> {
    let mut rates = Vec::new();
    let mut events = 0;
    for _ in 0..ROUNDS {
        let (seconds, read) = timed(|| read(file));
        events = read?;
        rates.push(events as f64 / seconds);
    }
    let rate = median(&rates);
    Ok(vec![
        name.to_owned(),
        format!("{:.1}", file.len() as f64 / 1e6),
        events.to_string(),
        format!("{:.2} M", rate / 1e6),
        bar.map_or("-".to_owned(), |bar| {
            format!("{:.1} M: {}", bar / 1e6, if rate >= bar { "met" } else { "missed" })
        }),
    ])
}

fn read(file: &[u8]) -> io::Result<u64> {
    let mut source = sources::read(file).map_err(io::Error::other)?;
    while source.next_event().map_err(io::Error::other)?.is_some() {}
    Ok(source.report().events)
}

/// The text as perf script would print it: `comm pid [cpu] time: sched:event: arguments`.
fn perf_script(text: &[u8]) -> Vec<u8> {
    let mut perf = Vec::new();
    for line in String::from_utf8_lossy(text).lines().filter(|line| !line.starts_with('#')) {
        let Ok(line) = schedtwin_trace::ftrace_read::parse_line(line) else { continue };
        let (seconds, us) = (line.at / 1_000_000_000, line.at / 1000 % 1_000_000);
        let head =
            format!("{:>16} {:>5} [{:03}] {seconds:>5}.{us:06}: ", line.comm, line.pid, line.cpu);
        perf.extend(head.into_bytes());
        perf.extend(
            format!("{:>26}: {}\n", format!("sched:{}", line.event), line.arguments).into_bytes(),
        );
    }
    perf
}
