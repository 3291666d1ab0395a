// SPDX-License-Identifier: GPL-2.0-or-later
//! Counts the events of a recording, and says how fast they were read: `trace_counts FILE`.

use schedtwin_trace::event::SourceFault;
use schedtwin_trace::sources;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), SourceFault> {
    let path = std::env::args().nth(1).expect("a file");
    let mut source = sources::open(Path::new(&path))?;
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
