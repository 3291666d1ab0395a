// SPDX-License-Identifier: GPL-2.0-or-later
//! Counts the events of a trace.dat: `trace_counts FILE`.
use schedtwin_trace::event::TraceSource;
use schedtwin_trace::trace_dat::TraceDat;
fn main() {
    let path = std::env::args().nth(1).expect("a file");
    let mut source = match TraceDat::open(std::fs::File::open(path).unwrap()) {
        Ok(s) => s,
        Err(e) => {
            println!("{e}");
            return;
        }
    };
    let start = std::time::Instant::now();
    let mut n = 0u64;
    while source.next_event().unwrap().is_some() {
        n += 1;
    }
    let t = start.elapsed().as_secs_f64();
    for (name, c) in source.report().counts(source.names()) {
        println!("{:8} {name}", c.events);
    }
    println!("{n} events, {:.1} M/s", n as f64 / t / 1e6);
    println!("{:?}", source.report().damages);
    println!("{:?}", source.report().lost());
    println!("{:?}", source.header());
}
