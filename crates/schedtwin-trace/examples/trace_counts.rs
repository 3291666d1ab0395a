// SPDX-License-Identifier: GPL-2.0-or-later
//! Counts the events of a binary recording, and says how fast they were read: `trace_counts FILE`.

use schedtwin_trace::event::{SourceFault, TraceSource};
use schedtwin_trace::perf_data::{PerfData, is_perf_data};
use schedtwin_trace::perfetto_source::PerfettoTrace;
use schedtwin_trace::trace_dat::TraceDat;
use std::fs::File;
use std::io::{BufReader, Read};
use std::time::Instant;

fn main() -> Result<(), SourceFault> {
    let path = std::env::args().nth(1).expect("a file");
    let mut head = [0; 16];
    let _ = File::open(&path)?.read(&mut head)?;
    let file = File::open(&path)?;
    let mut source: Box<dyn TraceSource> = match is_perf_data(&head) {
        true => Box::new(PerfData::open(file)?),
        false if head[0] == 0x0a => Box::new(PerfettoTrace::open(BufReader::new(file))?),
        false => Box::new(TraceDat::open(file)?),
    };
    let start = Instant::now();
    let mut events = 0_u64;
    while source.next_event()?.is_some() {
        events += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    for (name, count) in source.report().counts(source.names()) {
        println!("{:8} {name}", count.events);
    }
    println!("{events} events, {:.2} million a second", events as f64 / seconds / 1e6);
    println!("{:?}", source.report().damages);
    println!("{:?}, cut {}", source.report().lost(), source.report().cut);
    println!("{:?}", source.header());
    Ok(())
}
