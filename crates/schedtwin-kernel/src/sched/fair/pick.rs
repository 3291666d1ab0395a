// SPDX-License-Identifier: GPL-2.0-or-later
//! The record of a pick of the fair class: the candidates, and the rule that chose one.
//!
//! The picks themselves are in `eevdf.rs` and `cfs.rs`; they tell their rule to a [`DecisionObserver`], which nobody
//! reads in the hot path. Where groups nest, each level picks. A level with one entity decides nothing,
//! so the rule kept is that of the lowest level that had more than one. In a flat hierarchy there is one level.
//!
//! ```text
//! root    a, group G      pick_eevdf: earliest eligible deadline → G
//! G       b               only entity of the queue               → b      rule: that of the root
//! ```

use crate::observe::DecisionObserver;
use crate::sched::{CfsRqId, EntityId};
use crate::{Context, Scheduler};
use schedtwin_types::{CpuId, Decision, PickCandidate, PickRule, TaskId};

impl Scheduler {
    /// Notes the entities of a queue and which of them has been picked.
    #[inline(always)]
    pub(super) fn note_pick<S: DecisionObserver>(
        &self,
        see: &mut S,
        cfs_rq: CfsRqId,
        picked: EntityId,
        cx: &Context,
    ) {
        if !S::ON {
            return;
        }
        let cfs = &self.cfs[cfs_rq];
        let curr = self.curr_on_rq(cfs_rq);
        // The picked one keeps a place until it has been listed.
        let (mut left, mut reserved) = (PickCandidate::MOST, 1);
        let entities = curr.into_iter().chain(cfs.timeline.iter().map(|node| node.se));
        let listed = entities.filter(|se| {
            if *se == picked {
                reserved = 0;
            }
            let fits = left > reserved;
            left -= usize::from(fits);
            fits
        });
        for se in listed {
            see.pick_candidate(|| self.pick_candidate(cfs_rq, se, picked, cx));
        }
    }

    fn pick_candidate(
        &self,
        cfs_rq: CfsRqId,
        se: EntityId,
        picked: EntityId,
        cx: &Context,
    ) -> PickCandidate {
        let entity = &self.se[se];
        let is_task = entity.my_q.is_none();
        let (lag, deadline, eligible) = self.virtual_standing(cfs_rq, se, cx);
        PickCandidate {
            depth: if self.flat_groups() { 0 } else { entity.depth },
            task: is_task.then_some(entity.task),
            group: self.cfs[entity.my_q.unwrap_or(entity.cfs_rq)].group,
            picked: se == picked,
            curr: self.cfs[cfs_rq].curr == Some(se),
            lag,
            deadline,
            eligible,
        }
    }

    /// Files the pick of another class than fair, or of nobody.
    #[inline]
    pub(crate) fn record_pick(&self, cpu: CpuId, next: TaskId, rule: PickRule, cx: &mut Context) {
        if cx.wants_decisions() {
            let prev = self.rq[cpu].curr;
            cx.record(Decision::Pick { prev, next, rule, candidates: Vec::new() });
        }
    }
}
