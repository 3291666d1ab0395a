//! `schedtwin explain`: what happened and why, out of a record.

use std::io::{self, BufWriter, Write};

use schedtwin_trace::explain::{self as trace, Query};
use schedtwin_types::CpuId;

use crate::arguments::Explain;
use crate::failure::Failure;
use crate::output;

pub fn explain(arguments: Explain) -> Result<(), Failure> {
    let Explain { record, at, task, cpu, window, limit } = arguments;
    let at = match at.as_deref().map(trace::parse_time).transpose() {
        Ok(at) => at,
        Err(message) => {
            return Err(Failure::bad(format!("failed to understand --at: {message}")));
        }
    };
    if record.is_dir() {
        return Err(Failure::bad(format!(
            "failed to read {}: it is a directory",
            record.display()
        )));
    }
    // Opened here to tell a file that cannot be read from an output that cannot be written.
    std::fs::File::open(&record).map_err(|error| Failure::of_file("read", &record, &error))?;
    let query = Query { at, window_ns: window, task: task.clone(), cpu: cpu.map(CpuId), limit };
    let mut out = BufWriter::new(io::stdout().lock());
    let summary = match trace::explain(&record, &query, &mut out) {
        Ok(summary) => summary,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Err(Failure::NobodyReads);
        }
        Err(error) => return Err(Failure::of_file("explain", &record, &error)),
    };
    out.flush().map_err(output::failure)?;
    for problem in &summary.problems {
        eprintln!("warning: {}: {problem}", record.display());
    }
    let told = summary.problems.len() as u64;
    if summary.problem_count > told {
        eprintln!("warning: and {} more lines", summary.problem_count - told);
    }
    match (task, summary.matched) {
        (Some(task), _) if !summary.task_found => {
            Err(Failure::bad(format!("{} has no task {task:?}", record.display())))
        }
        (_, 0) => {
            let hint = if at.is_some() { "; --window looks further around --at" } else { "" };
            eprintln!("note: nothing matches{hint}");
            Ok(())
        }
        (_, matched) => {
            if matched > summary.listed {
                eprintln!(
                    "note: {} further entries match; --limit shows more",
                    matched - summary.listed
                );
            }
            Ok(())
        }
    }
}
