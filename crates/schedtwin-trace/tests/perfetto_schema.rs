// SPDX-License-Identifier: GPL-2.0-or-later
//! The hand-written Perfetto messages against the official schema, by the official decoder.
//!
//! Skipped, and saying so, where there is no `python3` with the PyPI package `perfetto`. Another
//! interpreter can be named in `SCHEDTWIN_PYTHON`.

mod sample;

use schedtwin_trace::perfetto_messages::FIELDS;
use schedtwin_trace::tracepoint::table::TRACEPOINTS;
use schedtwin_trace::{Perfetto, Sink};
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn the_official_schema_agrees() {
    let path =
        std::env::temp_dir().join(format!("schedtwin-schema-{}.pftrace", std::process::id()));
    let mut bytes = Vec::new();
    let mut sink = Box::new(Perfetto::new(&mut bytes, sample::meta()).with_decisions());
    sample::feed(&mut *sink);
    sink.finish().expect("memory takes everything");
    std::fs::write(&path, bytes).expect("the temporary directory is writable");

    let python = std::env::var("SCHEDTWIN_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let spawned = Command::new(&python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/perfetto_schema.py"))
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        std::fs::remove_file(&path).expect("removed");
        eprintln!("skipped the_official_schema_agrees: no {python}");
        return;
    };
    let mut fields = String::new();
    for (message, field, number, kind) in FIELDS {
        let number = number.trim_matches('"');
        fields.push_str(&format!("{message} {field} {number} {kind}\n"));
    }
    let of_table = rows_of_the_table();
    fields.push_str(&of_table);
    // A script that skips does not read its input: that pipe may be broken.
    let _ = child.stdin.take().expect("piped").write_all(fields.as_bytes());
    let output = child.wait_with_output().expect("a result");
    std::fs::remove_file(&path).expect("removed");
    let answer = String::from_utf8_lossy(&output.stdout);
    if let Some(reason) = answer.strip_prefix("skip: ") {
        eprintln!("skipped the_official_schema_agrees: {}", reason.trim_end());
        return;
    }
    let expected = format!(
        "ok {} TYPE_COUNTER=11 TYPE_INSTANT=10 cpu_frequency=4 cpu_idle=3 hrtimer_expire_entry=1 \
         ipi_raise=2 irq_handler_entry=1 irq_handler_exit=1 sched_migrate_task=1 \
         sched_process_exit=1 sched_switch=6 sched_wakeup=1 sched_wakeup_new=1 sched_waking=3\n",
        FIELDS.len() + of_table.lines().count(),
    );
    assert_eq!(answer, expected, "{python} exited with {}", output.status);
}

/// The numbers in the table of tracepoints, in lines as the script reads them.
fn rows_of_the_table() -> String {
    let mut lines = String::new();
    // The text of programs has messages that the marker's reader knows.
    for row in TRACEPOINTS.iter().filter(|row| row.perfetto != 0 && !row.is_mark()) {
        let words = row.name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
        let message = words.collect::<String>() + "FtraceEvent";
        lines += &format!("FtraceEvent {} {} message, optional\n", row.name, row.perfetto);
        for field in row.fields.iter().filter(|field| field.perfetto != 0) {
            let kind = if field.ty.is_text() { "string" } else { "varint" };
            lines += &format!("{message} {} {} {kind}, optional\n", field.name, field.perfetto);
        }
    }
    lines
}
