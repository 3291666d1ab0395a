// SPDX-License-Identifier: GPL-2.0-or-later
//! Prints what a fact costs in each format: nanoseconds and bytes.
//!
//! `cargo run --release -p schedtwin-trace --example trace_bench [FILE]`

#[path = "../tests/sample/mod.rs"]
mod sample;

use schedtwin_trace::explain::{Query, explain};
use schedtwin_trace::{Format, TaskInfo};
use schedtwin_types::{CpuId, Fact, FactKind, TaskId};
use std::time::Instant;

const FACTS: usize = 2_000_000;

fn main() -> std::io::Result<()> {
    let keep = std::env::args().nth(1);
    let scratch = || std::env::temp_dir().join("schedtwin-bench.trace").display().to_string();
    let path = keep.clone().unwrap_or_else(scratch);
    let mut facts = Vec::with_capacity(FACTS);
    sample::stream(FACTS, 8, 64, |fact| facts.push(fact));
    let signals: Vec<Fact> = facts
        .iter()
        .enumerate()
        .map(|(index, fact)| {
            let value = (index * 7 % 1024) as u32;
            let kind =
                FactKind::CpuSignals { util_avg: value, runnable_avg: value + 1, util_est: 9 };
            Fact { at: fact.at, cpu: CpuId(index as u16 % 8), kind }
        })
        .collect();
    for (name, format, facts) in [
        ("perfetto, events", Format::Perfetto, &facts),
        ("perfetto, CPU signals", Format::Perfetto, &signals),
        ("ftrace text", Format::FtraceText, &facts),
        ("record", Format::Record, &facts),
    ] {
        for _ in 0..3 {
            let mut meta = sample::meta();
            meta.nr_cpus = 8;
            meta.policy_cpus.clear();
            let start = Instant::now();
            let mut sink = schedtwin_trace::create(
                path.as_ref(),
                format,
                meta,
                schedtwin_trace::Detail::Facts,
            )?;
            for id in 1..=64 {
                sink.task(&TaskInfo { id: TaskId(id), name: format!("worker/{id}"), prio: 120 });
            }
            facts.iter().for_each(|fact| sink.fact(fact));
            sink.finish()?;
            let ns = start.elapsed().as_nanos() as f64 / facts.len() as f64;
            let bytes = std::fs::metadata(&path)?.len() as f64 / facts.len() as f64;
            println!("{name:<22} {ns:6.1} ns/fact {bytes:6.1} bytes/fact");
        }
    }
    // The record was written last.
    let query = Query { cpu: Some(CpuId(3)), limit: 10, ..Query::default() };
    let start = Instant::now();
    let summary = explain(path.as_ref(), &query, &mut std::io::sink())?;
    let ns = start.elapsed().as_nanos() as f64 / FACTS as f64;
    println!("{:<22} {ns:6.1} ns/fact, {} matched", "explain a record", summary.matched);
    if keep.is_none() {
        std::fs::remove_file(&path)?;
    }
    Ok(())
}
