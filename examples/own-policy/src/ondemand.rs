// SPDX-License-Identifier: GPL-2.0-or-later
//! A frequency governor that samples, as Linux's ondemand does: full speed above 80 % load, else in proportion.

use schedtwin_engine::policy::{FrequencyDecision, FrequencyGovernor, PolicyView};

/// `sampling_rate`: 10 ms.
const SAMPLING_NS: u64 = 10_000_000;
/// `up_threshold`, percent.
const UP_THRESHOLD: u64 = 80;

/// Remembers the last sample: when, and how long each CPU had been idle by then.
#[derive(Clone, Default)]
pub struct Ondemand {
    sampled_at: u64,
    idle_ns: Vec<u64>,
}

impl FrequencyGovernor for Ondemand {
    fn update_util(&mut self, view: &PolicyView) -> Option<FrequencyDecision> {
        let wall_ns = view.now - self.sampled_at;
        if wall_ns < SAMPLING_NS {
            return None;
        }
        self.idle_ns.resize(view.cpus.len(), 0);
        let idle_before = self.idle_ns.iter();
        let shares = view.cpus.iter().zip(idle_before).map(|(cpu, before)| {
            let idle_ns = (cpu.idle_ns - before).min(wall_ns);
            100 * (wall_ns - idle_ns) / wall_ns
        });
        let load = shares.max().unwrap_or(0);
        self.sampled_at = view.now;
        self.idle_ns = view.cpus.iter().map(|cpu| cpu.idle_ns).collect();
        if load > UP_THRESHOLD {
            return Some(FrequencyDecision {
                khz: view.max_khz,
                rule: "ondemand: above the threshold",
            });
        }
        let (lowest, highest) = (u64::from(view.table[0]), u64::from(view.max_khz));
        let khz = lowest + load * (highest - lowest) / 100;
        Some(FrequencyDecision { khz: khz as u32, rule: "ondemand: in proportion to the load" })
    }
}
