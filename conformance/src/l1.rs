//! L1: recordings of the real kernel, re-driven.
pub mod operation;
pub mod redrive;
pub mod tally;
use std::path::Path;
/// Dev.
pub fn main(args: &[String]) -> i32 {
    let mut total = tally::Tally::default();
    let debug = std::env::var("MISSES").is_ok();
    for f in args {
        let mut t = crate::ftrace::Trace::open(Path::new(f)).unwrap();
        let mut d = redrive::Redrive::default(); d.keep_misses = debug;
        d.drive(&mut t).unwrap();
        println!("== {f} {:?}", t.bad_lines());
        for m in &d.misses { println!("{} {}", m.time_us, m.text); }
        print(&d.tally);
        total.merge(&d.tally);
    }
    println!("== total"); print(&total);
    0
}
fn print(t: &tally::Tally) {
    println!("records {} picture wrong {} starts {:?} resyncs {:?}", t.records, t.picture_wrong, t.starts, t.resyncs);
    for ((k, s), r) in &t.rows { println!("{k:7} {s:9} {:7} within {:8.4} exact {:8.4} max {} {:?}", r.judged, r.within as f64*100./r.judged as f64, r.exact as f64*100./r.judged as f64, r.error_max, r.causes); }
    for (k, s) in &t.steps { println!("step {k:7} {} met {:.4} max {} {:?}", s.judged, s.met as f64*100./s.judged as f64, s.error_max_milli, s.causes); }
}
