// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables of events are read back by the libraries of their formats.

use schedtwin_trace::event_out::{EventTables, TableFormat, write_events};
use schedtwin_trace::sources;
use std::fs::{self, File};
use std::path::PathBuf;

/// More rows than are written together, of which every other names a target.
fn written(format: TableFormat) -> (tempfile::TempDir, PathBuf) {
    let mut text = String::new();
    for nr in 0..40_000 {
        let target = if nr % 2 == 0 { " target_cpu=001" } else { "" };
        let at = format!("{}.{:06}", 5 + nr / 1000, nr % 1000);
        text.push_str(&format!(
            "-a-7 [001] d..2. {at}: sched_waking: comm=b pid=9 prio=120{target}\n"
        ));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tables");
    let mut source = sources::read(text.as_bytes()).unwrap();
    let sink = EventTables::create(&path, format).unwrap();
    let done = write_events(&mut *source, Box::new(sink)).unwrap();
    assert_eq!((done.events, done.dropped.len()), (40_000, 0));
    let names: Vec<_> = fs::read_dir(&path).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, [&*format!("sched_waking.{}", format.ending())]);
    let file = path.join(&names[0]);
    (folder, file)
}

#[test]
fn csv() {
    let (_folder, path) = written(TableFormat::Csv);
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("Time,__cpu,__pid,__comm,comm,pid,prio,target_cpu"));
    assert_eq!(lines.next(), Some("5.000000000,1,7,'-a,b,9,120,1"));
    assert_eq!(lines.next(), Some("5.000001000,1,7,'-a,b,9,120,"));
    assert_eq!(lines.count(), 39_998);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let (_folder, path) = written(TableFormat::Parquet);
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows: Vec<Vec<(String, Field)>> = reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| row.unwrap().get_column_iter().map(|(n, f)| (n.clone(), f.clone())).collect())
        .collect();
    assert_eq!(rows.len(), 40_000);
    let field = |row: usize, name: &str| {
        rows[row].iter().find(|(known, _)| known == name).unwrap().1.clone()
    };
    assert_eq!(field(1, "Time"), Field::Double(5.000_001));
    assert_eq!(field(39_999, "__pid"), Field::Long(7));
    assert_eq!(field(39_999, "__comm"), Field::Str("-a".into()));
    assert_eq!((field(0, "target_cpu"), field(1, "target_cpu")), (Field::Long(1), Field::Null));
}

#[cfg(feature = "arrow")]
#[test]
fn arrow() {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};
    use arrow_array::{Array, RecordBatch};
    let (_folder, path) = written(TableFormat::Arrow);
    let reader = arrow_ipc::reader::FileReader::try_new(File::open(path).unwrap(), None).unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    assert!(batches.len() > 1);
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 40_000);
    let column = |name: &str| batches[0].column_by_name(name).unwrap();
    assert_eq!(column("Time").as_primitive::<Float64Type>().value(1), 5.000_001);
    assert_eq!(column("__comm").as_string::<i32>().value(0), "-a");
    let targets = column("target_cpu").as_primitive::<Int64Type>();
    assert_eq!((targets.value(0), targets.is_null(1)), (1, true));
}

/// A build without a format says so and leaves nothing behind.
#[cfg(not(feature = "parquet"))]
#[test]
fn a_format_that_was_not_built_in_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = "a-7 [001] d..2. 5.000001: cpu_idle: state=1 cpu_id=1\n";
    let mut source = sources::read(text.as_bytes()).unwrap();
    let sink = EventTables::create(&folder.path().join("t"), TableFormat::Parquet).unwrap();
    let failed = write_events(&mut *source, Box::new(sink)).unwrap_err();
    assert!(format!("{failed:?}").contains("built without the feature `parquet`"), "{failed:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    drop(File::open(folder.path()));
}
