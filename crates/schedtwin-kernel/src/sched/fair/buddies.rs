// SPDX-License-Identifier: GPL-2.0-or-later
//! Buddies: entities that a run queue is told to prefer, or to skip, at its next pick.
//!
//! `next` shall run next, `last` shall go on after it was preempted (CFS), `skip` has yielded (CFS). Where groups nest, a buddy is
//! one on each level of its hierarchy; with one timeline for all there is one level.
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `set_next_buddy`, `clear_buddies`; 6.1.192 `set_last_buddy`, `set_skip_buddy`.
//! Differences: none known.

use crate::sched::{CfsRq, CfsRqId, EntityId};
use crate::{Context, Scheduler};

impl Scheduler {
    /// `clear_buddies()`: of each kind, up to where it is no longer about `se`.
    #[inline(always)]
    pub(crate) fn clear_buddies(&mut self, cfs_rq: CfsRqId, se: EntityId) {
        let cfs = &self.cfs[cfs_rq];
        if [cfs.last, cfs.next, cfs.skip].contains(&Some(se)) {
            self.clear_buddy(se, |cfs| &mut cfs.last);
            self.clear_buddy(se, |cfs| &mut cfs.next);
            self.clear_buddy(se, |cfs| &mut cfs.skip);
        }
    }

    fn clear_buddy(&mut self, se: EntityId, buddy: impl Fn(&mut CfsRq) -> &mut Option<EntityId>) {
        let mut level = Some(se);
        while let Some(se) = level {
            let cfs_rq = self.timeline_of(se);
            let buddy = buddy(&mut self.cfs[cfs_rq]);
            if *buddy != Some(se) {
                return;
            }
            *buddy = None;
            level = self.se[se].parent.filter(|_| !self.flat_groups());
        }
    }

    /// `set_next_buddy()`.
    pub(super) fn set_next_buddy(&mut self, se: EntityId) {
        self.set_buddy(se, |cfs| &mut cfs.next);
    }

    /// A buddy is set on each level, unless `SCHED_IDLE`.
    pub(super) fn set_buddy(
        &mut self,
        se: EntityId,
        buddy: impl Fn(&mut CfsRq) -> &mut Option<EntityId>,
    ) {
        let mut level = Some(se);
        while let Some(se) = level {
            debug_assert!(self.se[se].on_rq);
            if self.se_is_idle(se) {
                return;
            }
            let cfs_rq = self.timeline_of(se);
            *buddy(&mut self.cfs[cfs_rq]) = Some(se);
            level = self.se[se].parent.filter(|_| !self.flat_groups());
        }
    }

    /// Whether moving `se` elsewhere would waste its cache, since it is to run next or again
    /// (`CACHE_HOT_BUDDY`, the part of `task_hot()`).
    #[inline]
    pub(crate) fn cache_hot_buddy(&self, se: EntityId, cx: &Context) -> bool {
        let cfs = &self.cfs[self.timeline_of(se)];
        cx.config.features.cache_hot_buddy && (cfs.next == Some(se) || cfs.last == Some(se))
    }
}
