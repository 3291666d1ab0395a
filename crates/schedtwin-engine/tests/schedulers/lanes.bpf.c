/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A scheduler of sched_ext for tests: a queue for each CPU, by virtual time, and one that all CPUs help with. It uses what
 * small schedulers use: maps, storage of tasks, a timer, kicks, stores to a task's slice.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

/* A loader sets these. */
const volatile u64 slice_ns = 5000000;
const volatile u32 nr_cpu_ids = 1;
/* What a test asks for: 1 loses each eighth task, 2 dispatches to a CPU that there is not, 3 divides by zero. */
const volatile u32 misbehave;

#define SHARED (1ULL << 32)
#define TICK_NS (10 * 1000 * 1000)

struct task_ctx {
	u64 runs;
	u64 started_at;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} contexts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u64));
	__uint(max_entries, 2);
} counts SEC(".maps");

struct beat {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct beat);
} beats SEC(".maps");

static u64 vtime_now, nr_beats, nr_enqueued;
UEI_DEFINE(uei);

static void count(u32 which)
{
	u64 *found = bpf_map_lookup_elem(&counts, &which);

	if (found)
		(*found)++;
}

s32 BPF_STRUCT_OPS(lanes_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle) {
		count(0);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
	}
	return cpu;
}

void BPF_STRUCT_OPS(lanes_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 vtime = p->scx.dsq_vtime;
	s32 cpu = scx_bpf_task_cpu(p);

	count(1);
	if (misbehave == 1 && ++nr_enqueued % 8 == 0)
		return;
	if (misbehave == 2) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | 4000, slice_ns, enq_flags);
		return;
	}
	if (misbehave == 3)
		slice_ns / (u64)(p->pid - p->pid) ? (void)vtime_now++ : (void)0;
	if (time_before(vtime, vtime_now - slice_ns))
		vtime = vtime_now - slice_ns;
	if (p->nr_cpus_allowed == 1)
		scx_bpf_dsq_insert_vtime(p, cpu, slice_ns, vtime, enq_flags);
	else
		scx_bpf_dsq_insert_vtime(p, SHARED, slice_ns, vtime, enq_flags);
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

void BPF_STRUCT_OPS(lanes_dispatch, s32 cpu, struct task_struct *prev)
{
	if (scx_bpf_dsq_move_to_local(cpu, 0) || scx_bpf_dsq_move_to_local(SHARED, 0))
		return;
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED))
		prev->scx.slice = slice_ns;
}

void BPF_STRUCT_OPS(lanes_running, struct task_struct *p)
{
	struct task_ctx *context = bpf_task_storage_get(&contexts, p, 0, 0);

	if (!context) {
		scx_bpf_error("task %d has no context", p->pid);
		return;
	}
	context->runs++;
	context->started_at = scx_bpf_now();
	if (time_before(vtime_now, p->scx.dsq_vtime))
		vtime_now = p->scx.dsq_vtime;
}

void BPF_STRUCT_OPS(lanes_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *context = bpf_task_storage_get(&contexts, p, 0, 0);

	if (context)
		p->scx.dsq_vtime += scale_by_task_weight_inverse(p, scx_bpf_now() - context->started_at);
}

void BPF_STRUCT_OPS(lanes_enable, struct task_struct *p)
{
	p->scx.dsq_vtime = vtime_now;
}

s32 BPF_STRUCT_OPS(lanes_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return bpf_task_storage_get(&contexts, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE) ? 0 : -ENOMEM;
}

static int beat(void *map, int *key, struct bpf_timer *timer)
{
	nr_beats++;
	bpf_timer_start(timer, TICK_NS, 0);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(lanes_init)
{
	struct bpf_timer *timer;
	u32 zero = 0;
	s32 error = 0;
	u32 cpu;

	bpf_for(cpu, 0, nr_cpu_ids) {
		error = scx_bpf_create_dsq(cpu, -1);
		if (error)
			return error;
	}
	error = scx_bpf_create_dsq(SHARED, -1);
	timer = bpf_map_lookup_elem(&beats, &zero);
	if (error || !timer)
		return -EINVAL;
	bpf_timer_init(timer, &beats, CLOCK_MONOTONIC);
	bpf_timer_set_callback(timer, beat);
	return bpf_timer_start(timer, TICK_NS, 0);
}

void BPF_STRUCT_OPS(lanes_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

SCX_OPS_DEFINE(lanes_ops,
	       .select_cpu	= (void *)lanes_select_cpu,
	       .enqueue		= (void *)lanes_enqueue,
	       .dispatch	= (void *)lanes_dispatch,
	       .running		= (void *)lanes_running,
	       .stopping	= (void *)lanes_stopping,
	       .enable		= (void *)lanes_enable,
	       .init_task	= (void *)lanes_init_task,
	       .init		= (void *)lanes_init,
	       .exit		= (void *)lanes_exit,
	       .timeout_ms	= 5000,
	       .name		= "lanes");
