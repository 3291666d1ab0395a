/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The built-in `scx=simple` once more, in C: one queue for all CPUs, by virtual time or in turn. */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

const volatile bool in_turn;

#define SHARED 0

static u64 vtime_now;
UEI_DEFINE(uei);

s32 BPF_STRUCT_OPS(shared_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
	return cpu;
}

void BPF_STRUCT_OPS(shared_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 vtime = p->scx.dsq_vtime;

	if (in_turn) {
		scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
		return;
	}
	if (time_before(vtime, vtime_now - SCX_SLICE_DFL))
		vtime = vtime_now - SCX_SLICE_DFL;
	scx_bpf_dsq_insert_vtime(p, SHARED, SCX_SLICE_DFL, vtime, enq_flags);
}

void BPF_STRUCT_OPS(shared_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(SHARED);
}

void BPF_STRUCT_OPS(shared_running, struct task_struct *p)
{
	if (time_before(vtime_now, p->scx.dsq_vtime))
		vtime_now = p->scx.dsq_vtime;
}

void BPF_STRUCT_OPS(shared_stopping, struct task_struct *p, bool runnable)
{
	if (!in_turn)
		p->scx.dsq_vtime += (SCX_SLICE_DFL - p->scx.slice) * 100 / p->scx.weight;
}

void BPF_STRUCT_OPS(shared_enable, struct task_struct *p)
{
	p->scx.dsq_vtime = vtime_now;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(shared_init)
{
	return scx_bpf_create_dsq(SHARED, -1);
}

void BPF_STRUCT_OPS(shared_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

SCX_OPS_DEFINE(shared_ops,
	       .select_cpu	= (void *)shared_select_cpu,
	       .enqueue		= (void *)shared_enqueue,
	       .dispatch	= (void *)shared_dispatch,
	       .running		= (void *)shared_running,
	       .stopping	= (void *)shared_stopping,
	       .enable		= (void *)shared_enable,
	       .init		= (void *)shared_init,
	       .exit		= (void *)shared_exit,
	       .name		= "shared");
