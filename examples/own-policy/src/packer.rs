// SPDX-License-Identifier: GPL-2.0-or-later
//! A placement that packs: wakeups go to the busiest CPU that still has room, so that others sleep on.

use schedtwin_engine::policy::{Placement, PlacementDecision, PlacementKind, WakeupCpu, WakeupView};

/// Percent of a CPU's capacity that it fills.
const FULL: u64 = 60;

/// Remembers nothing.
#[derive(Clone)]
pub struct Packer;

impl Placement for Packer {
    fn select_task_rq(&mut self, view: &WakeupView) -> Option<PlacementDecision> {
        if view.kind != PlacementKind::Wakeup || view.overutilized() {
            return None;
        }
        let has_room = |cpu: &WakeupCpu| {
            100 * (cpu.util + view.task.util_est) <= FULL * cpu.capacity && cpu.nr_running <= 1
        };
        // Of the smallest CPUs with room the fullest; the first of equal ones.
        let order = |cpu: &WakeupCpu| (cpu.capacity_max, u64::MAX - cpu.util);
        let best = view.cpus().filter(has_room).min_by_key(order)?;
        Some(PlacementDecision { cpu: best.cpu, rule: "packer: fullest small CPU with room" })
    }
}
