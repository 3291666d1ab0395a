// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for the deadline class: functions cut out of a kernel tree's own kernel/sched/deadline.c, core.c and
 * cpudeadline.c around one entity, one CPU's clock, one root domain's limit and one heap of CPUs.
 *
 * Replaced: timers (a start is recorded), priority inheritance (none), the sums of bandwidths of a CPU, locks.
 */
#include "kernel_types.h"
#include "protocol.h"

enum { CPUS = 16 };

#define SCHED_CAPACITY_SHIFT 10
#define BW_SHIFT 20
#define BW_UNIT (1 << BW_SHIFT)
#define RUNTIME_INF (~0ULL)
#define SCHED_FLAG_RECLAIM 0x02
#define SCHED_FLAG_SUGOV 0x10000000
#define SCHED_DL_FLAGS 0x07
#define HRTIMER_MODE_REL_HARD 0
#define TASK_DEAD 0x80

/* A warning is an illegal world, so our fault. */
#define WARN_ON(condition) do { if (condition) abort(); } while (0)
#define WARN_ON_ONCE(condition) WARN_ON(condition)
#define printk_deferred_once(text) ((void)0)
#define div64_u64(a, b) ((u64)(a) / (u64)(b))
#define div64_long(a, b) ((s64)(a) / (s64)(b))

struct hrtimer { int started; s64 relative; };
struct dl_rq { u64 running_bw; };
struct rq { u64 clock; struct dl_rq dl; };
struct dl_bw { u64 bw, total_bw; };
struct sched_attr { u64 sched_runtime, sched_deadline, sched_period, sched_flags; };
struct sched_dl_entity {
	u64 dl_runtime, dl_deadline, dl_period, dl_bw, dl_density;
	s64 runtime;
	u64 deadline;
	unsigned flags;
	unsigned dl_throttled, dl_yielded, dl_non_contending, dl_defer, dl_defer_armed, dl_defer_running;
	struct hrtimer dl_timer, inactive_timer;
	struct rq *rq;
};
struct task_struct { struct sched_dl_entity dl; unsigned __state; };

static struct rq the_rq;
static struct task_struct the_task;
static struct dl_bw the_limit;
static u64 scale_freq_now, scale_cpu_now;
static int replenishment_asked, active_given_up;

#define rq_clock(rq) ((rq)->clock)
#define cpu_of(rq) 0
#define arch_scale_freq_capacity(cpu) scale_freq_now
#define arch_scale_cpu_capacity(cpu) scale_cpu_now
#define dl_server(entity) 0
#define dl_task_of(entity) (&the_task)
#define rq_of_dl_se(entity) (&the_rq)
#define rq_of_dl_rq(queue) (&the_rq)
#define dl_rq_of_se(entity) (&the_rq.dl)
#define pi_of(entity) (entity)
#define is_dl_boosted(entity) 0
#define grub_reclaim(delta, rq, entity) (delta)
#define dl_task(task) 1
#define task_cpu(task) 0
#define dl_bw_of(cpu) (&the_limit)
#define dl_bw_cpus(cpu) 1
#define raw_spin_lock(lock) ((void)0)
#define raw_spin_unlock(lock) ((void)0)
#define sub_rq_bw(entity, queue) ((void)0)
#define __dl_sub(limit, bw, cpus) ((void)0)
#define __dl_clear_params(entity) ((void)0)
#define get_task_struct(task) ((void)0)
#define ns_to_ktime(ns) (ns)
#define hrtimer_active(timer) 0
#define hrtimer_try_to_cancel(timer) 0
#define sub_running_bw(entity, queue) ((void)(active_given_up = 1))

static void hrtimer_start(struct hrtimer *timer, s64 relative, int mode)
{
	timer->started = 1;
	timer->relative = relative;
}

static int start_dl_timer(struct sched_dl_entity *entity)
{
	replenishment_asked = 1;
	return 0;
}

/* cpudeadline.c */
struct cpumask { u64 bits; };
typedef struct cpumask cpumask_var_t[1];
typedef int raw_spinlock_t;
#define cpu_present(cpu) 1
#define raw_spin_lock_irqsave(lock, flags) ((void)(flags))
#define raw_spin_unlock_irqrestore(lock, flags) ((void)(flags))
#define __cpumask_set_cpu(cpu, mask) ((void)((mask)->bits |= 1ULL << (cpu)))
#define __cpumask_clear_cpu(cpu, mask) ((void)((mask)->bits &= ~(1ULL << (cpu))))

#include "deadline_extract.h"

static struct cpudl_item heap_items[CPUS];
static struct cpudl heap;

static void begin(void)
{
	memset(&the_rq, 0, sizeof(the_rq));
	memset(&the_task, 0, sizeof(the_task));
	memset(heap_items, 0, sizeof(heap_items));
	memset(&heap, 0, sizeof(heap));
	heap.elements = heap_items;
	heap.free_cpus->bits = (1ULL << CPUS) - 1;
	for (int cpu = 0; cpu < CPUS; cpu++)
		heap_items[cpu].idx = IDX_INVALID;
}

static void report_entity(void)
{
	const struct sched_dl_entity *dl = &the_task.dl;

	out(dl->runtime);
	out(dl->deadline);
	out(dl->dl_throttled);
	out(dl->dl_yielded);
}

static void report_heap(void)
{
	out(heap.size ? heap.elements[0].cpu : -1);
	out(heap.size ? heap.elements[0].dl : 0);
	out(heap.free_cpus->bits);
	for (int cpu = 0; cpu < CPUS; cpu++) {
		int at = heap.elements[cpu].idx;

		out(at == IDX_INVALID ? 0 : heap.elements[at].dl);
	}
}

static void operate(word op, const word *arg)
{
	struct sched_dl_entity *dl = &the_task.dl, other;
	struct sched_attr attr = { arg[0], arg[1], arg[2] };
	struct dl_bw limit = { arg[0], arg[1] };

	switch (op - OP_FIRST) {
	case 0: /* reserve */
		__setparam_dl(&the_task, &attr);
		out(dl->dl_runtime);
		out(dl->dl_deadline);
		out(dl->dl_period);
		out(dl->dl_bw);
		out(dl->dl_density);
		break;
	case 1: /* state */
		dl->runtime = arg[0];
		dl->deadline = arg[1];
		dl->dl_throttled = arg[2];
		dl->dl_yielded = arg[3];
		break;
	case 2: /* update */
		the_rq.clock = arg[0];
		update_dl_entity(dl);
		report_entity();
		break;
	case 3: /* replenish */
		the_rq.clock = arg[0];
		replenish_dl_entity(dl);
		report_entity();
		break;
	case 4: /* setup */
		the_rq.clock = arg[0];
		setup_new_dl_entity(dl);
		report_entity();
		break;
	case 5: /* constrained */
		the_rq.clock = arg[0];
		replenishment_asked = 0;
		dl_check_constrained_dl(dl);
		out(replenishment_asked);
		out(dl_next_period(dl));
		break;
	case 6: /* sleep */
		the_rq.clock = arg[0];
		active_given_up = dl->inactive_timer.started = dl->dl_non_contending = 0;
		task_non_contending(dl);
		out(active_given_up);
		out(dl->inactive_timer.started ? dl->inactive_timer.relative : 0);
		break;
	case 7: /* charge */
		scale_freq_now = arg[1];
		scale_cpu_now = arg[2];
		out(dl_scaled_delta_exec(&the_rq, dl, arg[0]));
		break;
	case 8: /* preempt */
		other = *dl;
		other.deadline = arg[0];
		dl->flags = arg[1] ? SCHED_FLAG_SUGOV : 0;
		out(dl_entity_preempt(dl, &other));
		dl->flags = 0;
		break;
	case 9: /* admit */
		out(__dl_overflow(&limit, arg[2], arg[3], arg[4]));
		break;
	case 10: /* queue */
		cpudl_set(&heap, arg[0], arg[1]);
		report_heap();
		break;
	case 11: /* clear */
		cpudl_clear(&heap, arg[0], true);
		report_heap();
		break;
	}
}

int main(void)
{
	return serve(begin, operate);
}
