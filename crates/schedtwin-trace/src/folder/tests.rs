// SPDX-License-Identifier: GPL-2.0-or-later
//! Small folders, whole and with something missing.

use super::*;
use crate::event::TraceSource;
use crate::event::listing::{read_to_the_end, shown};
use crate::tracepoint::fixtures;

fn put(folder: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Times, CPUs and names of a folder's events, or why it cannot be read.
fn events(folder: &Path) -> Result<String, String> {
    let source = open_source(folder).map_err(|fault| fault.to_string())?;
    let (events, source) = read_to_the_end(source).map_err(|fault| fault.to_string())?;
    assert_eq!(source.report().damages, []);
    Ok(shown(&events, &source))
}

#[test]
fn a_perf_directory_has_the_records_of_all_its_parts_in_order() {
    let folder = tempfile::tempdir().unwrap();
    for (index, part) in crate::perf_data::tests::parts().into_iter().enumerate() {
        let name = if index == 0 { "data".to_owned() } else { format!("data.{}", index - 1) };
        put(folder.path(), &name, part);
    }
    put(folder.path(), "kcore_dir/kcore", "of perf record --kcore");
    let expected = "100 0 sched_waking\n200 1 sched_switch\n290 1 sched_switch\n300 0 sched_switch\n\
                    400 1 sched_switch\n500 0 sched_switch\n";
    assert_eq!(events(folder.path()).unwrap(), expected);
}

#[test]
fn raw_buffers_are_read_by_the_formats_beside_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (cpu, pages) in crate::trace_dat::tests::cpus().into_iter().enumerate() {
        put(path, &format!("per_cpu/cpu{cpu}/trace_pipe_raw"), pages);
    }
    let told = events(path).unwrap_err();
    assert!(told.contains("copy events/header_page and events/*/*/format"), "{told}");
    put(path, "events/sched/sched_switch/format", fixtures::switch_format());
    let told = events(path).unwrap_err();
    assert!(told.contains("events/header_page cannot be used"), "{told}");
    put(path, "events/header_page", fixtures::HEADER_PAGE);
    put(path, "events/header_event", fixtures::HEADER_EVENT);
    put(path, "events/sched/sched_waking/format", fixtures::waking_format());
    put(path, "events/ftrace/print/format", fixtures::print_format());
    let expected = "100 0 sched_waking\n200 2 sched_switch\n300 0 sched_switch\n500 0 lost Some(5)\n\
                    500 0 print\n600 2 sched_switch\n700 0 sched_switch\n";
    assert_eq!(events(path).unwrap(), expected);
    let source = open_source(path).unwrap();
    assert_eq!(source.header().format, "raw buffers of tracefs");
    // A buffer that was cut within a page keeps the pages before.
    let cpu = path.join("per_cpu/cpu0/trace_pipe_raw");
    let pages = fs::read(&cpu).unwrap();
    fs::write(&cpu, &pages[..5000]).unwrap();
    let (events, source) = read_to_the_end(open_source(path).unwrap()).unwrap();
    assert_eq!((events.len(), source.report().cut), (4, 1));
}

#[test]
fn the_only_recording_of_a_folder_is_read_and_of_several_one_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    assert!(events(path).unwrap_err().contains("no file of this folder looks like"));
    put(path, "plat_info.yml", "cpus: 4\n");
    assert!(events(path).unwrap_err().contains("no file of this folder looks like"));
    put(path, "trace.txt", "ui-7 [001] d..2 5.000001: cpu_idle: state=1 cpu_id=1\n");
    assert_eq!(events(path).unwrap(), "5000001000 1 cpu_idle\n");
    put(path, "b.txt", "ui-7 [001] d..2 5.000001: cpu_idle: state=1 cpu_id=1\n");
    assert_eq!(
        events(path).unwrap_err(),
        "it has 2 recordings: b.txt, trace.txt; name one, as in FOLDER/b.txt"
    );
}
