// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for PELT: a kernel tree's own pelt.c and pelt.h, and functions cut out of its fair.c and
 * sched.h when the test runs (fair_extract.h, written by the test program), around one CPU with one
 * entity `se`, its runqueue `cfs`, and a child group's runqueue `gcfs`.
 *
 * FORM_6_1: of a tree before 6.8, whose util_est is two numbers and whose "hw" is called "thermal".
 * FORM_6_18, FORM_7_3: of one whose pelt.h wants to include all of sched.h, and which knows whom the CPU's time is charged to.
 *
 * Nothing of the kernel is in this file. The structures have the fields that those functions touch.
 */
#include "protocol.h"
#include "kernel_types.h"

#define CONFIG_SMP 1
#ifdef FORM_6_1
#define CONFIG_SCHED_THERMAL_PRESSURE 1
#define avg_thermal avg_hw
#define update_thermal_load_avg update_hw_load_avg
#define thermal_load_avg hw_load_avg
#define arch_scale_thermal_pressure arch_scale_hw_pressure
#define trace_pelt_thermal_tp(x) ((void)0)
#define rq_clock_thermal(rq) rq_clock_task(rq)
#define capacity_orig_of(cpu) arch_scale_cpu_capacity(cpu)
#define h_nr_running h_nr_queued
#else
#define CONFIG_SCHED_HW_PRESSURE 1
#endif
#if defined(FORM_6_18) || defined(FORM_7_3)
#define _KERNEL_SCHED_SCHED_H
#define __signed_scalar_typeof(x) __typeof__(__builtin_choose_expr(sizeof(x) == 8, (s64)0, (s32)0))
#define rcu_dereference_all(pointer) (pointer)
#define WARN_ON_ONCE(condition) ((void)0)
#define h_curr curr
#define donor curr
#endif
#define CONFIG_HAVE_SCHED_AVG_IRQ 1
#define CONFIG_CFS_BANDWIDTH 1

#include "pelt_idioms.h"

struct sched_class { int unused; };
static const struct sched_class fair_sched_class, rt_sched_class, dl_sched_class;

#ifdef FORM_6_1
struct util_est { unsigned int enqueued, ewma; };
#define UTIL_EST_TYPE struct util_est
#define UTIL_EST(avg) ((avg)->util_est.enqueued)
#else
#define UTIL_EST_TYPE unsigned int
#define UTIL_EST(avg) ((avg)->util_est)
#endif

struct sched_avg {
	u64 last_update_time, load_sum, runnable_sum;
	u32 util_sum, period_contrib;
	unsigned long load_avg, runnable_avg, util_avg;
	UTIL_EST_TYPE util_est;
};

struct load_weight { unsigned long weight; };

struct sched_entity {
	struct load_weight load;
	unsigned int on_rq;
	long runnable;
	bool is_task;
	struct sched_avg avg;
};

struct cfs_rq {
	struct load_weight load;
	unsigned int h_nr_queued, h_nr_delayed, h_nr_runnable;
	struct sched_avg avg;
	struct sched_entity *curr;
	struct {
		int lock, nr;
		unsigned long load_avg, util_avg, runnable_avg;
	} removed;
	long propagate, prop_runnable_sum;
	int throttle_count, pelt_clock_throttled;
	u64 throttled_clock_pelt, throttled_clock_pelt_time, throttled_pelt_idle;
	u64 last_update_time_copy;
};

struct task_struct {
	const struct sched_class *sched_class;
	bool idle;
};

struct rq {
	u64 clock, clock_task, clock_pelt, lost_idle_time, clock_idle, clock_pelt_idle;
	struct cfs_rq cfs;
	struct sched_avg avg_rt, avg_dl, avg_hw, avg_irq;
	struct task_struct *curr;
};

/*
 * The kernel reaches an entity both through its task (p->se) and on its own; here both are the same
 * object, so a task is little more than an entity.
 */
struct task_of_fair {
	const struct sched_class *sched_class;
	struct sched_entity se;
};

static struct rq this_rq;
static struct cfs_rq gcfs;
static struct task_struct this_curr;
static struct task_of_fair task;
static unsigned long shim_cpu_scale, shim_freq_scale, shim_hw_pressure;
static u64 shim_sched_clock;
static bool shim_fastup;

#define arch_scale_cpu_capacity(cpu) (shim_cpu_scale)
#define arch_scale_freq_capacity(cpu) (shim_freq_scale)
#define arch_scale_hw_pressure(cpu) (shim_hw_pressure)
#define cpu_of(rq) 0
#define rq_of(cfs) (&this_rq)
#define cfs_rq_of(se) (&this_rq.cfs)
#define group_cfs_rq(se) (&gcfs)
#define entity_is_task(se) ((se)->is_task)
#define is_idle_task(task) ((task)->idle)
#define sched_clock_cpu(cpu) (shim_sched_clock)
/* Weights arrive scaled down. */
#define scale_load_down(weight) (weight)
#define se_weight(se) scale_load_down((se)->load.weight)
#define se_runnable(se) ((se)->runnable)
#define sched_feat(feature) feature_##feature
#define feature_UTIL_EST 1
#define feature_ATTACH_AGE_LOAD 1
#define feature_UTIL_EST_FASTUP shim_fastup

#define SCHED_WARN_ON(condition) ((void)0)
static u64 rq_clock(struct rq *rq) { return rq->clock; }
static u64 rq_clock_task(struct rq *rq) { return rq->clock_task; }

#include "pelt.h"
#include "pelt.c"

#define task_struct task_of_fair
#include "fair_extract.h"
#undef task_struct

/* What an operation touched, in the order in which it is reported. */
enum { SE = 1, CFS = 2, RT = 4, DL = 8, HW = 16, IRQ = 32, CLOCK = 64, REMOVED = 128, PROP = 256,
       GCFS = 512, EVERYTHING = 1023 };

static void out_avg(const struct sched_avg *sa)
{
	out(sa->last_update_time);
	out(sa->load_sum);
	out(sa->runnable_sum);
	out(sa->util_sum);
	out(sa->period_contrib);
	out(sa->load_avg);
	out(sa->runnable_avg);
	out(sa->util_avg);
	out(UTIL_EST(sa));
#ifdef FORM_6_1
	out(sa->util_est.ewma);
#endif
}

static void report(word result, unsigned touched)
{
	struct sched_avg *avgs[] = { &task.se.avg, &this_rq.cfs.avg, &this_rq.avg_rt, &this_rq.avg_dl, &this_rq.avg_hw,
				     &this_rq.avg_irq };

	out(result);
	for (unsigned i = 0; i < 6; i++)
		if (touched & (1u << i))
			out_avg(avgs[i]);
	if (touched & CLOCK) {
		out(this_rq.clock_pelt);
		out(this_rq.lost_idle_time);
		out(this_rq.clock_idle);
		out(this_rq.clock_pelt_idle);
	}
	if (touched & REMOVED) {
		out(this_rq.cfs.removed.nr);
		out(this_rq.cfs.removed.load_avg);
		out(this_rq.cfs.removed.util_avg);
		out(this_rq.cfs.removed.runnable_avg);
	}
	if (touched & PROP) {
		out(this_rq.cfs.prop_runnable_sum);
		out(gcfs.prop_runnable_sum);
	}
	if (touched & GCFS)
		out_avg(&gcfs.avg);
}

static struct sched_avg *avg_by_number(word number)
{
	struct sched_avg *avgs[] = { &task.se.avg, &this_rq.cfs.avg, &this_rq.avg_rt, &this_rq.avg_dl, &this_rq.avg_hw,
				     &this_rq.avg_irq, &gcfs.avg };

	return avgs[number % 7];
}

static unsigned bit_by_number(word number)
{
	return number % 7 == 6 ? GCFS : 1u << (number % 7);
}

static void begin(void)
{
	memset(&this_rq, 0, sizeof(this_rq));
	memset(&gcfs, 0, sizeof(gcfs));
	memset(&task, 0, sizeof(task));
	memset(&this_curr, 0, sizeof(this_curr));
	this_rq.curr = &this_curr;
	task.sched_class = &fair_sched_class;
	task.se.is_task = true;
	shim_sched_clock = 0;
	shim_cpu_scale = shim_freq_scale = 1024;
	shim_hw_pressure = 0;
}

static void operate(word op, const word *arg)
{
	struct sched_entity *se = &task.se;
	struct sched_avg *sa;

	switch (op) {
	case OP_FIRST + 0: /* averages of one signal */
		sa = avg_by_number(arg[0]);
		sa->load_avg = arg[1];
		sa->runnable_avg = arg[2];
		sa->util_avg = arg[3];
		UTIL_EST(sa) = arg[4];
#ifdef FORM_6_1
		sa->util_est.ewma = arg[5];
#endif
		report(0, bit_by_number(arg[0]));
		break;
	case OP_FIRST + 1: /* sums of one signal */
		sa = avg_by_number(arg[0]);
		sa->last_update_time = arg[1];
		sa->load_sum = arg[2];
		sa->runnable_sum = arg[3];
		sa->util_sum = arg[4];
		sa->period_contrib = arg[5];
		report(0, bit_by_number(arg[0]));
		break;
	case OP_FIRST + 2:
		se->load.weight = arg[1];
		report(__update_load_avg_blocked_se(arg[0], se), SE);
		break;
	case OP_FIRST + 3:
		se->on_rq = arg[1];
		se->runnable = arg[2];
		this_rq.cfs.curr = arg[3] ? se : NULL;
		se->load.weight = arg[4];
		report(__update_load_avg_se(arg[0], &this_rq.cfs, se), SE);
		break;
	case OP_FIRST + 4:
		this_rq.cfs.load.weight = arg[1];
		this_rq.cfs.h_nr_queued = this_rq.cfs.h_nr_runnable = arg[2];
		this_rq.cfs.h_nr_delayed = 0;
		this_rq.cfs.curr = arg[3] ? se : NULL;
		report(__update_load_avg_cfs_rq(arg[0], &this_rq.cfs), CFS);
		break;
	case OP_FIRST + 5:
		report(update_rt_rq_load_avg(arg[0], &this_rq, arg[1]), RT);
		break;
	case OP_FIRST + 6:
		report(update_dl_rq_load_avg(arg[0], &this_rq, arg[1]), DL);
		break;
	case OP_FIRST + 7:
		report(update_hw_load_avg(arg[0], &this_rq, arg[1]), HW);
		break;
	case OP_FIRST + 8:
		this_rq.clock = arg[0];
		shim_freq_scale = arg[2];
		shim_cpu_scale = arg[3];
		report(update_irq_load_avg(&this_rq, arg[1]) != 0, IRQ);
		break;
	case OP_FIRST + 9:
		this_rq.clock_task = arg[1];
		this_rq.clock = arg[2];
		shim_cpu_scale = arg[3];
		shim_freq_scale = arg[4];
		this_curr.idle = arg[5];
		update_rq_clock_pelt(&this_rq, arg[0]);
		report(rq_clock_pelt(&this_rq), CLOCK);
		break;
	case OP_FIRST + 10:
		this_rq.clock_task = arg[0];
		this_rq.clock = arg[1];
		update_idle_rq_clock_pelt(&this_rq);
		report(rq_clock_pelt(&this_rq), CLOCK);
		break;
	case OP_FIRST + 11:
		this_rq.clock_task = arg[0];
		this_rq.clock = arg[1];
		this_curr.sched_class = arg[2] == 1 ? &rt_sched_class :
				   arg[2] == 2 ? &dl_sched_class : &fair_sched_class;
		shim_hw_pressure = arg[3];
#ifdef FORM_6_1
		report(__update_blocked_others(&this_rq, &(bool){ true }), RT | DL | HW | IRQ);
#else
		report(update_other_load_avgs(&this_rq), RT | DL | HW | IRQ);
#endif
		break;
	case OP_FIRST + 12:
		se->load.weight = arg[0];
		attach_entity_load_avg(&this_rq.cfs, se);
		report(0, SE | CFS | PROP);
		break;
	case OP_FIRST + 13:
		se->load.weight = arg[0];
		detach_entity_load_avg(&this_rq.cfs, se);
		report(0, SE | CFS | PROP);
		break;
	case OP_FIRST + 14:
		se->load.weight = arg[0];
		remove_entity_load_avg(se);
		report(0, SE | REMOVED);
		break;
	case OP_FIRST + 15:
		this_rq.cfs.load.weight = arg[1];
		this_rq.cfs.h_nr_queued = this_rq.cfs.h_nr_runnable = arg[2];
		this_rq.cfs.h_nr_delayed = 0;
		this_rq.cfs.curr = arg[3] ? se : NULL;
		report(update_cfs_rq_load_avg(arg[0], &this_rq.cfs), CFS | REMOVED | PROP);
		break;
	case OP_FIRST + 16:
		se->load.weight = arg[0];
		shim_sched_clock = arg[1];
		this_rq.cfs.throttled_pelt_idle = arg[2];
		this_curr.idle = arg[3];
		migrate_se_pelt_lag(se);
		report(load_avg_is_decayed(&se->avg), SE);
		break;
	case OP_FIRST + 17:
		gcfs.propagate = 1;
		gcfs.prop_runnable_sum = arg[0];
		gcfs.load.weight = arg[1];
		se->load.weight = arg[2];
		se->is_task = false;
		report(propagate_entity_load_avg(se), SE | CFS | PROP);
		se->is_task = true;
		break;
	case OP_FIRST + 18:
		se->is_task = arg[0];
		se->load.weight = arg[1];
		init_entity_runnable_average(se);
		se->is_task = true;
		report(0, SE);
		break;
	case OP_FIRST + 19:
		se->load.weight = arg[0];
#ifdef FORM_6_1
		/* The one place that takes the weight as it is, not scaled down. */
		se->load.weight <<= 10;
#endif
		shim_cpu_scale = arg[1];
		post_init_entity_util_avg(&task);
		report(0, SE);
		break;
	case OP_FIRST + 20:
		shim_cpu_scale = arg[0];
		shim_fastup = arg[1];
#ifdef FORM_7_3
		util_est_update(se);
#else
		util_est_update(&this_rq.cfs, &task, true);
#endif
		report(task_util_est(&task), SE);
		break;
	case OP_FIRST + 21:
		util_est_enqueue(&this_rq.cfs, &task);
		report(_task_util_est(&task), CFS);
		break;
	case OP_FIRST + 22:
		util_est_dequeue(&this_rq.cfs, &task);
		report(0, CFS);
		break;
	case OP_FIRST + 23:
		report(decay_load(arg[0], arg[1]), 0);
		break;
	case OP_FIRST + 24:
		report(scale_irq_capacity(arg[0], arg[1], arg[2]), 0);
		break;
	case OP_FIRST + 25: /* the load part of reweight_entity: not to be cut out, written anew */
		se->load.weight = arg[0];
		dequeue_load_avg(&this_rq.cfs, se);
		se->load.weight = arg[1];
		se->avg.load_avg = arg[1] * se->avg.load_sum / get_pelt_divider(&se->avg);
		enqueue_load_avg(&this_rq.cfs, se);
		report(0, SE | CFS);
		break;
	case OP_FIRST + 26:
		se->load.weight = arg[0];
		set_task_rq_fair(se, &this_rq.cfs, &gcfs);
		report(0, SE);
		break;
	case OP_FIRST + 27:
		report(runnable_avg_yN_inv[arg[0] % 32], EVERYTHING);
		break;
	default:
		fprintf(stderr, "unknown operation %llu\n", op);
		exit(2);
	}
}

int main(void)
{
	return serve(begin, operate);
}
