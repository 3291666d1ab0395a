// SPDX-License-Identifier: GPL-2.0-or-later
//! What always holds between two steps.

use super::{BUILT_IN, ExtClass, Place};
use schedtwin_engine::policy::SCX_DSQ_LOCAL_ON;
use schedtwin_types::{CpuId, TaskId};

impl ExtClass {
    /// What always holds between two steps.
    pub(super) fn verify(&self) {
        if self.ended {
            return;
        }
        for (dsq_id, queue) in &self.queues {
            for task in &queue.tasks {
                let t = &self.tasks[task];
                assert_eq!(t.place, Place::Queue(*dsq_id), "ext class: {task:?} is in two places");
                let cpu = CpuId((dsq_id & 0xffff) as u16);
                let local = dsq_id & SCX_DSQ_LOCAL_ON == SCX_DSQ_LOCAL_ON;
                assert!(
                    !local || t.cpu == cpu && (t.displaced || t.cpus.contains(cpu)),
                    "ext class: {task:?} waits on cpu{}",
                    cpu.0
                );
            }
            let vtime = |task: &TaskId| self.tasks[task].vtime;
            let sorted = queue
                .tasks
                .windows(2)
                .all(|two| (vtime(&two[1]).wrapping_sub(vtime(&two[0])) as i64) >= 0);
            assert!(!queue.by_vtime || sorted, "ext class: {dsq_id:#x} is not in order");
        }
        for (id, t) in &self.tasks {
            if let Place::Queue(dsq_id) = t.place {
                assert!(
                    self.queues[&dsq_id].tasks.contains(id),
                    "ext class: {id:?} is lost out of {dsq_id:#x}"
                );
                assert_eq!(t.custody, dsq_id & BUILT_IN == 0, "ext class: custody of {id:?}");
            }
            assert!(
                !t.running || t.place == Place::Nowhere || t.queued,
                "ext class: {id:?} runs and waits"
            );
            assert!(
                t.queued || matches!(t.place, Place::Nowhere),
                "ext class: {id:?} waits and sleeps"
            );
        }
    }
}
