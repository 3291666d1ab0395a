// SPDX-License-Identifier: GPL-2.0-or-later
/* Candidates of the ranking that the kernel's tree does not have: a few ways to queue, chosen by variables before it is loaded.
 *
 * A task that wakes up goes to an idle CPU if the kernel's selection finds one. Else it waits:
 *
 *   as it is        in one queue for all CPUs, ordered by virtual time: time on a CPU divided by weight
 *   own_queues      in a queue of the CPU that was chosen, first come first served
 *   steals          (with own_queues) a CPU whose queue is empty takes from the next CPU's that has some
 *   preempts        it runs at once on the CPU that was chosen; the task that ran there waits
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

const volatile u64 slice_ns = 20000000;
const volatile u32 own_queues;
const volatile u32 steals;
const volatile u32 preempts;

#define ALL 1000	/* the queue for all CPUs; the others have their CPU's number */

static u64 virtual_now;
UEI_DEFINE(uei);

s32 BPF_STRUCT_OPS(ranked_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);

	if (idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
	return cpu;
}

void BPF_STRUCT_OPS(ranked_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 virtual_time = p->scx.dsq_vtime;

	if (preempts && (enq_flags & SCX_ENQ_WAKEUP)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags | SCX_ENQ_PREEMPT);
		return;
	}
	if (own_queues) {
		scx_bpf_dsq_insert(p, scx_bpf_task_cpu(p), slice_ns, enq_flags);
		return;
	}
	/* Sleep earns one slice at most. */
	if (time_before(virtual_time, virtual_now - slice_ns))
		virtual_time = virtual_now - slice_ns;
	scx_bpf_dsq_insert_vtime(p, ALL, slice_ns, virtual_time, enq_flags);
}

void BPF_STRUCT_OPS(ranked_dispatch, s32 cpu, struct task_struct *prev)
{
	s32 cpus = scx_bpf_nr_cpu_ids(), i;

	if (!own_queues) {
		scx_bpf_dsq_move_to_local(ALL, 0);
		return;
	}
	if (scx_bpf_dsq_move_to_local(cpu, 0) || !steals)
		return;
	bpf_for(i, 1, cpus)
		if (scx_bpf_dsq_move_to_local((u32)(cpu + i) % (u32)cpus, 0))
			return;
}

void BPF_STRUCT_OPS(ranked_running, struct task_struct *p)
{
	if (time_before(virtual_now, p->scx.dsq_vtime))
		virtual_now = p->scx.dsq_vtime;
}

void BPF_STRUCT_OPS(ranked_stopping, struct task_struct *p, bool runnable)
{
	u64 used = slice_ns - p->scx.slice;

	scx_bpf_task_set_dsq_vtime(p, p->scx.dsq_vtime + scale_by_task_weight_inverse(p, used));
}

void BPF_STRUCT_OPS(ranked_enable, struct task_struct *p)
{
	scx_bpf_task_set_dsq_vtime(p, virtual_now);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(ranked_init)
{
	s32 cpus = scx_bpf_nr_cpu_ids(), i, failed = scx_bpf_create_dsq(ALL, -1);

	if (failed)
		return failed;
	bpf_for(i, 0, cpus) {
		failed = scx_bpf_create_dsq(i, -1);
		if (failed)
			return failed;
	}
	return 0;
}

void BPF_STRUCT_OPS(ranked_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

SCX_OPS_DEFINE(ranked_ops,
	       .select_cpu		= (void *)ranked_select_cpu,
	       .enqueue			= (void *)ranked_enqueue,
	       .dispatch		= (void *)ranked_dispatch,
	       .running			= (void *)ranked_running,
	       .stopping		= (void *)ranked_stopping,
	       .enable			= (void *)ranked_enable,
	       .init			= (void *)ranked_init,
	       .exit			= (void *)ranked_exit,
	       .name			= "ranked");
