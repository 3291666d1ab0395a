/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A scheduler of sched_ext for tests that goes by topological numbers of CPUs: an idle one near the last one is taken, others
 * wait in one queue. What does not add up is an error of it.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

const volatile u64 slice_ns = 4000000;

#define SHARED 1
#define MOST 1024

static bool idle[MOST];
/* The set of a task, as it was told last. */
struct context {
	u64 bits[MOST / 64];
	u64 tid;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct context);
} contexts SEC(".maps");

static u64 nr_reenqueued;
UEI_DEFINE(uei);

s32 BPF_STRUCT_OPS(cids_select_cid, struct task_struct *p, s32 prev_cid, u64 wake_flags)
{
	struct context *context = bpf_task_storage_get(&contexts, p, 0, 0);
	s32 i, cid, count = scx_bpf_nr_cids();

	if (!context || context->tid != p->scx.tid || scx_bpf_tid_to_task(context->tid) != p) {
		scx_bpf_error("task %d is not known", p->pid);
		return prev_cid;
	}
	bpf_for(i, 0, count) {
		cid = (prev_cid + i) % count;
		if (cid < MOST && idle[cid] && context->bits[cid / 64] >> cid % 64 & 1) {
			idle[cid] = false;
			scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | cid, slice_ns, 0);
			return cid;
		}
	}
	return prev_cid;
}

void BPF_STRUCT_OPS(cids_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (enq_flags & SCX_ENQ_REENQ)
		nr_reenqueued++;
	scx_bpf_dsq_insert(p, SHARED, slice_ns, enq_flags);
	scx_bpf_kick_cid(scx_bpf_task_cid(p), SCX_KICK_IDLE);
}

void BPF_STRUCT_OPS(cids_dispatch, s32 cid, struct task_struct *prev)
{
	if (cid != scx_bpf_this_cid())
		scx_bpf_error("dispatch for %d on %d", cid, scx_bpf_this_cid());
	scx_bpf_dsq_move_to_local(SHARED, 0);
}

void BPF_STRUCT_OPS(cids_tick, struct task_struct *p)
{
	s32 cid = scx_bpf_task_cid(p);

	if (scx_bpf_cpu_to_cid(scx_bpf_cid_to_cpu(cid)) != cid)
		scx_bpf_error("%d is not its own", cid);
	scx_bpf_cidperf_set(cid, scx_bpf_cidperf_cap(cid));
	if (cid == 0)
		scx_bpf_dsq_reenq(SHARED, 0);
}

void BPF_STRUCT_OPS(cids_update_idle, s32 cid, bool is_idle)
{
	if (cid >= 0 && cid < MOST)
		idle[cid] = is_idle;
}

void BPF_STRUCT_OPS(cids_set_cmask, struct task_struct *p, const struct scx_cmask *cmask)
{
	struct context *context = bpf_task_storage_get(&contexts, p, 0, 0);
	u32 i;

	if (!context || cmask->base || cmask->nr_cids != scx_bpf_nr_cids()) {
		scx_bpf_error("a set of %u from %u", cmask->nr_cids, cmask->base);
		return;
	}
	bpf_for(i, 0, (cmask->nr_cids + 63) / 64)
		context->bits[i] = cmask->bits[i];
}

s32 BPF_STRUCT_OPS_SLEEPABLE(cids_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct context *context = bpf_task_storage_get(&contexts, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!context || context->tid)
		return -ENOMEM;
	context->tid = p->scx.tid;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(cids_init)
{
	return scx_bpf_nr_cids() > MOST ? -EINVAL : scx_bpf_create_dsq(SHARED, -1);
}

void BPF_STRUCT_OPS(cids_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

SCX_OPS_CID_DEFINE(cids_ops,
		   .select_cid = (void *)cids_select_cid,
		   .enqueue = (void *)cids_enqueue,
		   .dispatch = (void *)cids_dispatch,
		   .tick = (void *)cids_tick,
		   .update_idle = (void *)cids_update_idle,
		   .set_cmask = (void *)cids_set_cmask,
		   .init_task = (void *)cids_init_task,
		   .init = (void *)cids_init,
		   .exit = (void *)cids_exit,
		   .flags = SCX_OPS_TID_TO_TASK,
		   .timeout_ms = 5000,
		   .name = "cids");
