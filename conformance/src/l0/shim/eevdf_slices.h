/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * 6.18: the shortest and the longest slice of a queue, of the entities that are there, not of what nodes of the tree remember.
 * Included after the tree's functions.
 */
static u64 extreme_slice(struct cfs_rq *cfs, bool longest)
{
	struct rb_node *at = rb_first_cached(&cfs->tasks_timeline);
	u64 found = longest ? 0 : ~0ULL;

	for (struct sched_entity *se = cfs->curr && cfs->curr->on_rq ? cfs->curr : NULL; se || at;) {
		if (!se) {
			se = __node_2_se(at);
			at = rb_next(at);
		}
		if (longest ? se->slice > found : se->slice < found)
			found = se->slice;
		se = NULL;
	}
	return found;
}

static u64 cfs_rq_min_slice(struct cfs_rq *cfs) { return extreme_slice(cfs, false); }
static u64 cfs_rq_max_slice(struct cfs_rq *cfs) { return extreme_slice(cfs, true); }
