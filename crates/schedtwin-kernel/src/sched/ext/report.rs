// SPDX-License-Identifier: GPL-2.0-or-later
//! What a run tells of its scheduler: queues, dispatches, how it ended.

use super::{Events, Exit};
use crate::Kernel;
use schedtwin_types::Ns;

/// Most user DSQs that are told apart.
const USERS_MAX: usize = 16;

/// A queue, or several of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DsqReport {
    /// `local`, `global`, the ID of a user's, or `others`.
    pub name: String,
    /// Tasks that have left it.
    pub left: u64,
    /// The most tasks that it had at once; of several queues, the most in one.
    pub depth_max: u32,
    /// Tasks times time.
    pub depth_time: u128,
    /// How many queues these are.
    pub queues: u32,
    /// The time that tasks were in it, together.
    pub waited: Ns,
    /// The longest.
    pub waited_max: Ns,
}

/// A scheduler's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtReport {
    /// Its queues: the CPUs', the nodes', the users'.
    pub queues: Vec<DsqReport>,
    /// Counters.
    pub events: Events,
    /// Why it was unloaded, if it was.
    pub exit: Option<Exit>,
}

impl Kernel {
    /// Whether a scheduler is loaded that leaves tasks of other policies than `SCHED_EXT` to the fair class.
    pub fn scx_is_partial(&self) -> bool {
        self.sched.ext.as_ref().is_some_and(|ext| !ext.switching_all)
    }

    /// What a scheduler of sched_ext has done up to `now`; `None`: none was loaded.
    pub fn scx_report(&self, now: Ns) -> Option<ExtReport> {
        let mut ext = self.sched.ext.as_ref().or(self.sched.ext_unloaded.as_ref())?.clone();
        if self.sched.ext.is_some() {
            ext.account(now);
        }
        let mut queues: Vec<DsqReport> = Vec::new();
        for (index, dsq) in ext.dsqs.iter() {
            let mut name = match (ext.dsqs.is_local(index), ext.dsqs.is_global(index)) {
                (true, _) => "local".to_string(),
                (_, true) => "global".to_string(),
                _ if ext.dsqs.bypass_cpu(index).is_some() => "bypass".to_string(),
                _ => format!("{:#x}", dsq.id),
            };
            if queues.len() >= USERS_MAX + 2 && queues.iter().all(|known| known.name != name) {
                name = "others".to_string();
            }
            let known = queues.iter().position(|known| known.name == name);
            let at = known.unwrap_or_else(|| {
                queues.push(DsqReport {
                    name,
                    left: 0,
                    depth_max: 0,
                    depth_time: 0,
                    queues: 0,
                    waited: 0,
                    waited_max: 0,
                });
                queues.len() - 1
            });
            let report = &mut queues[at];
            report.left += dsq.left;
            report.depth_max = report.depth_max.max(dsq.nr_max);
            report.depth_time += dsq.nr_time;
            report.queues += 1;
            report.waited += dsq.waited;
            report.waited_max = report.waited_max.max(dsq.waited_max);
        }
        Some(ExtReport { queues, events: ext.events, exit: ext.exit.clone() })
    }
}
