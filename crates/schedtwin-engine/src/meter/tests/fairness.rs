// SPDX-License-Identifier: GPL-2.0-or-later
//! What tasks are owed by those beside them.

use super::*;
use schedtwin_kernel::hardware::TaskShare;
use schedtwin_types::property::Property;

const MS: Ns = 1_000_000;

/// Three tasks that are queued on CPU 0 from 1 ms on, and looked at each 25 ms: `ran` ms of each between two looks, with `weights`.
fn owed(weights: [u64; 3], ran: [u64; 3], looks: u64, queues: [u32; 3]) -> Option<(String, Ns)> {
    let mut meter = meter(0);
    meter.ends_at(10_000 * MS);
    for task in 1..=3 {
        feed(&mut meter, &wakeup(MS, 0, task, false));
    }
    for look in 1..=looks {
        let share = |task: TaskId| {
            let at = task.index() - 1;
            let ran = ran[at] * look * MS;
            Some(TaskShare { queue: queues[at], weight: weights[at], ran })
        };
        meter.look_at_shares(look * 25 * MS, CpuId(0), share);
    }
    let broken = meter.broken_waits();
    let found = broken.iter().find(|breach| breach.property == Property::Fairness)?;
    Some((found.who.clone(), found.longest))
}

#[test]
fn a_task_is_owed_what_its_weight_gives_it() {
    // By weight: 10, 10 and 5 of 25 ms. The second one lacks 2 ms each time, after the first look.
    let weights = [2048, 2048, 1024];
    let found = owed(weights, [12, 8, 5], 300, [0; 3]);
    assert_eq!(found, Some(("ui-1".to_string(), 299 * 2 * MS)));
    assert_eq!(owed(weights, [12, 8, 5], 251, [0; 3]), None, "500 ms are not beyond 500 ms");
    assert_eq!(owed(weights, [10, 10, 5], 1000, [0; 3]), None);
    // In another cgroup nobody owes it anything.
    assert_eq!(owed(weights, [12, 8, 5], 300, [0, 1, 0]), None);
}
