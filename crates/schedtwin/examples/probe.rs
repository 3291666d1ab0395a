fn main() {
    let a: Vec<String> = std::env::args().collect();
    let s = schedtwin::Scenario::new(&a[1], &a[2], &a[3], a.get(4).map(|d| d.parse::<f64>().unwrap()).map(|d| (d * 1e9) as u64)).unwrap_or_else(|e| panic!("{e}"));
    let verify = std::env::var("VERIFY").is_ok();
    let t = std::time::Instant::now();
    let r = s.run(1, schedtwin::RunOptions { verify, ..Default::default() }).unwrap();
    println!("{:?} events {} digest {:x} sim {}", t.elapsed(), r.events, r.digest, r.simulated_ns);
    if std::env::var("M").is_ok() {
        for m in &r.metrics { println!("{} {} {} {:?} {:?}", m.name, m.stat, m.unit, m.labels, m.value); }
        for t in &r.tasks { println!("{:?}", t); }
    }
}
