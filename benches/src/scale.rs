// SPDX-License-Identifier: GPL-2.0-or-later
//! Many runs at once: does the work of two cores take half the time?
//!
//! The wall clock says so only on a computer that does nothing else. What the runs themselves lose to one
//! another (caches, memory, the allocator) shows in the CPU time of a run, which should not grow.

use crate::measure::process_seconds;
use crate::w1::{Files, KERNEL, run, scenario, table};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Runs W1 with `runs` seeds on 1, 2, … `threads` threads and prints how long that takes.
pub fn report(runs: u64, threads: usize, seconds: u64) {
    let scenario = scenario(KERNEL, seconds);
    run(&scenario, 0, Files::None);
    let mut table = table(["threads", "wall, ms", "speed-up", "of ideal", "CPU ms a run"]);
    let mut alone = 0.0;
    let mut digests = Vec::new();
    for count in 1..=threads {
        let next = AtomicU64::new(0);
        let (started, cpu) = (Instant::now(), process_seconds());
        let mut found: Vec<(u64, u64)> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..count)
                .map(|_| {
                    scope.spawn(|| {
                        let mut found = Vec::new();
                        loop {
                            let seed = next.fetch_add(1, Ordering::Relaxed);
                            if seed >= runs {
                                break found;
                            }
                            found.push((seed, run(&scenario, seed, Files::None).digest));
                        }
                    })
                })
                .collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().expect("a run does not panic"))
                .collect()
        });
        let (wall, cpu) = (started.elapsed().as_secs_f64(), process_seconds() - cpu);
        found.sort_unstable();
        digests.push(found);
        if count == 1 {
            alone = wall;
        }
        table.add_row([
            count.to_string(),
            format!("{:.0}", wall * 1e3),
            format!("{:.2}", alone / wall),
            format!("{:.0} %", 100.0 * alone / wall / count as f64),
            format!("{:.0}", cpu * 1e3 / runs as f64),
        ]);
    }
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]), "threads change nothing");
    println!("{runs} runs of W1, {seconds} simulated seconds each\n\n{table}");
}
