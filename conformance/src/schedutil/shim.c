// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for schedutil: the functions of a kernel tree's cpufreq_schedutil.c, with all that leads to a
 * utilisation (effective_cpu_util(), cpu_util_cfs(), clamps) and from there to a table frequency, cut out
 * when the test runs (schedutil_extract.h, written by the test program), around one frequency domain of up
 * to four CPUs. A fifth CPU is outside of it. Nothing of the kernel is in this file.
 *
 * Where the domain has no fast switch, the thread that calls the driver is a coroutine: it stops inside of
 * the driver, so that hooks come while a call is under way, and after each work.
 *
 * FORM_6_1: the tree is of before 6.8; FORM_7_3: it is of 7.3.
 */
#define MAX_T_AS_WRITTEN
#include "kernel_types.h"
#include "protocol.h"
#include <ucontext.h>

#define CPUS_MAX 5
#define TABLE_MAX 12
#define BIT(n) (1UL << (n))
#define SCHED_CAPACITY_SHIFT 10
#define SCHED_CAPACITY_SCALE 1024L
#define BW_SHIFT 20
#define SCHED_CPUFREQ_IOWAIT 1
/* Constants in a kernel; here the sequence decides. */
#define TICK_NSEC tick_nsec
#define CONFIG_NO_HZ_COMMON 1
#define CONFIG_UCLAMP_TASK 1

#define clamp(value, low, high) \
	({ __typeof__(value) v_ = (value), l_ = (low), h_ = (high); v_ < l_ ? l_ : v_ > h_ ? h_ : v_; })
#define clamp_val(value, low, high) clamp((unsigned int)(value), (unsigned int)(low), (unsigned int)(high))
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#define WARN_ON_ONCE(condition) (condition)
#define smp_mb() ((void)0)
#define smp_wmb() ((void)0)
#define rcu_read_lock() ((void)0)
#define synchronize_rcu() ((void)0)
#define this_cpu_ptr(pointer) (pointer)
#define rcu_dereference_sched(pointer) (pointer)

/* No concurrency. */
typedef int raw_spinlock_t;
#define raw_spin_lock(lock) ((void)(lock))
#define raw_spin_unlock(lock) ((void)(lock))
#define raw_spin_lock_irqsave(lock, flags) ((void)(lock), (flags) = 0)
#define raw_spin_unlock_irqrestore(lock, flags) ((void)(lock), (void)(flags))
struct mutex { int unused; };
#define mutex_lock(mutex) ((void)(mutex))
#define mutex_unlock(mutex) ((void)(mutex))
struct list_head { int unused; };
struct gov_attr_set { int update_lock; };
#define guard(kind) (void)
struct irq_work { unsigned long raised; };
struct kthread_work { bool pending; };
struct kthread_worker { int unused; };
struct task_struct;

/* ---- one domain --------------------------------------------------------------------------------- */

struct cpumask { unsigned long bits; };
#define cpumask_test_cpu(cpu, mask) ((mask)->bits >> (cpu) & 1)
#define for_each_cpu(cpu, mask) for ((cpu) = 0; (cpu) < CPUS_MAX; (cpu)++) if (cpumask_test_cpu(cpu, mask))

struct cpufreq_frequency_table { unsigned int flags, driver_data, frequency; };
enum { CPUFREQ_TABLE_UNSORTED, CPUFREQ_TABLE_SORTED_ASCENDING, CPUFREQ_TABLE_SORTED_DESCENDING };
#define CPUFREQ_ENTRY_INVALID ~0u
#define CPUFREQ_TABLE_END ~1u
#define CPUFREQ_INEFFICIENT_FREQ (1 << 1)
#define cpufreq_table_index_unsorted(...) 0

struct cpufreq_policy {
	struct cpumask cpus[1], related_cpus[1];
	unsigned int cpu, min, max, cur, cached_target_freq, cached_resolved_idx;
	struct { unsigned int max_freq, transition_latency; } cpuinfo;
	bool fast_switch_enabled, dvfs_possible_from_any_cpu, efficiencies_available, update_limits;
	int freq_table_sorted;
	struct cpufreq_frequency_table *freq_table;
	void *governor_data;
};

static struct cpufreq_policy policy;
static struct cpufreq_frequency_table table[TABLE_MAX + 1];
static unsigned int table_size;
/* What the hardware has been asked for. */
static unsigned int requested;
/* The driver is asked for performance, and what for: a floor and a target. */
static bool adjusts_perf;
static unsigned long asked[2];
static long tick_nsec;
static int this_cpu;
static void *cpufreq_update_util_data = &policy;

#define smp_processor_id() this_cpu
#define policy_is_shared(policy) (((policy)->cpus->bits & ((policy)->cpus->bits - 1)) != 0)
#define cpufreq_driver_has_adjust_perf() adjusts_perf
#define CPUFREQ_NEED_UPDATE_LIMITS 1
#define cpufreq_driver_test_flags(flags) false
#define CPUFREQ_ASYNC_NOTIFICATION 2
#define cpufreq_disabled() false
#define pr_debug(...) ((void)0)
#define pr_err(...) ((void)0)
#define EINVAL 22
#define ENODEV 19
#define cpufreq_add_update_util_hook(cpu, data, function) ((data)->func = (function))
#define arch_scale_freq_invariant() true
#define trace_cpufreq(...) ((void)0)

static unsigned int arch_scale_freq_ref(int cpu) { return policy.cpuinfo.max_freq; }

static unsigned int cpufreq_driver_fast_switch(struct cpufreq_policy *policy, unsigned int target)
{
	policy->cur = requested = target;
	return target;
}

/* ---- the slow path ------------------------------------------------------------------------------ */

struct cpufreq_freqs { unsigned int old, new, flags; };
struct cpufreq_driver {
	unsigned int flags;
	int (*target)(struct cpufreq_policy *policy, unsigned int target, unsigned int relation);
	int (*target_index)(struct cpufreq_policy *policy, unsigned int index);
	unsigned int (*get_intermediate)(struct cpufreq_policy *policy, unsigned int index);
};

static ucontext_t outside, thread;
static char thread_stack[1 << 16];
static unsigned int calling;

int __cpufreq_driver_target(struct cpufreq_policy *policy, unsigned int target, unsigned int relation);

static int __target_intermediate(struct cpufreq_policy *policy, struct cpufreq_freqs *freqs, int index)
{
	abort();
}

static int driver_target_index(struct cpufreq_policy *policy, unsigned int index)
{
	calling = requested = policy->freq_table[index].frequency;
	swapcontext(&thread, &outside);
	calling = 0;
	return 0;
}

static struct cpufreq_driver driver = { .target_index = driver_target_index }, *cpufreq_driver = &driver;

/* What the notifiers do to the policy. */
#define cpufreq_freq_transition_begin(policy, freqs) ((void)0)
static void cpufreq_freq_transition_end(struct cpufreq_policy *policy, struct cpufreq_freqs *freqs, int failed)
{
	if (!failed)
		policy->cur = freqs->new;
}

static bool irq_work_queue(struct irq_work *work)
{
	if (work->raised)
		return false;
	work->raised = BIT(this_cpu);
	return true;
}

static bool kthread_queue_work(struct kthread_worker *worker, struct kthread_work *work)
{
	bool queued = !work->pending;

	work->pending = true;
	return queued;
}

struct update_util_data { void (*func)(struct update_util_data *, u64, unsigned int); };

/* ---- run queues --------------------------------------------------------------------------------- */

#ifdef FORM_6_1
struct util_est { unsigned int enqueued, ewma; };
#define ESTIMATE util_est.enqueued
#else
#define ESTIMATE util_est
#endif
struct sched_avg {
	unsigned long runnable_avg, util_avg;
#ifdef FORM_6_1
	struct util_est util_est;
#else
	unsigned int util_est;
#endif
};
struct cfs_rq { struct sched_avg avg; };
enum uclamp_id { UCLAMP_MIN, UCLAMP_MAX, UCLAMP_CNT };
enum cpu_util_type { FREQUENCY_UTIL, ENERGY_UTIL };
#define UCLAMP_FLAG_IDLE 1
struct rq {
	int cpu;
	struct cfs_rq cfs;
	struct { unsigned int nr; } rt;
	struct { u64 running_bw; } dl;
	struct sched_avg avg_rt, avg_dl, avg_irq;
	struct { unsigned int value; } uclamp[UCLAMP_CNT];
	unsigned int uclamp_flags;
};

static struct rq runqueues[CPUS_MAX];
static unsigned long capacity[CPUS_MAX], idle_calls[CPUS_MAX];
static bool sched_uclamp_used;

#define cpu_rq(number) (&runqueues[number])
#define cpu_of(rq) ((rq)->cpu)
#define arch_scale_cpu_capacity(cpu) capacity[cpu]
#define capacity_orig_of(cpu) capacity[cpu]
#define rt_rq_is_runnable(rt_rq) ((rt_rq)->nr != 0)
#define static_branch_likely(key) (*(key))
#define sched_feat(feature) true
#define scx_cpuperf_target(cpu) 0
#define scx_switched_all() false
/* Of a task, which these calls never have. */
#define uclamp_eff_value(task, id) 0
#define task_cpu(task) 0
#define task_util(task) 0
#define _task_util_est(task) 0
#define task_on_rq_queued(task) false
#define current ((struct task_struct *)1)
struct task_struct { struct { struct sched_avg avg; } se; };

static unsigned long tick_nohz_get_idle_calls_cpu(int cpu) { return idle_calls[cpu]; }

#define DEFINE_PER_CPU(type, name) type name[CPUS_MAX]
#define per_cpu(name, cpu) name[cpu]

#ifdef FORM_7_3
#define cpufreq_driver_adjust_perf(policy, floor, target, most, capacity) (asked[0] = (floor), asked[1] = (target))
#else
#define cpufreq_driver_adjust_perf(cpu, floor, target, capacity) (asked[0] = (floor), asked[1] = (target))
#endif

#include "schedutil_extract.h"

static struct sugov_policy sg_policy;
static struct sugov_tunables tunables;

#ifdef FORM_6_1
#define FLOOR bw_dl
#else
#define FLOOR bw_min
#endif

static void report(void)
{
	unsigned int cpu;

	out(adjusts_perf ? 0 : sg_policy.next_freq);
	out(adjusts_perf ? 0 : sg_policy.cached_raw_freq);
	out(sg_policy.last_freq_update_time);
#ifdef FORM_7_3
	out(sg_policy.limits_changed || sg_policy.need_freq_update);
#else
	out(sg_policy.limits_changed);
	out(!adjusts_perf && sg_policy.need_freq_update);
#endif
	if (adjusts_perf) {
		out(asked[0]);
		out(asked[1]);
	} else {
		out(policy.cur);
		out(requested);
		out(sg_policy.work_in_progress);
		out(sg_policy.irq_work.raised);
		out(sg_policy.work.pending);
		out(calling);
	}
	for_each_cpu(cpu, policy.cpus) {
		out(sugov_cpu[cpu].iowait_boost);
		out(sugov_cpu[cpu].iowait_boost_pending);
		out(sugov_cpu[cpu].last_update);
		out(sugov_cpu[cpu].util);
		out(sugov_cpu[cpu].FLOOR);
		out(sugov_cpu[cpu].saved_idle_calls);
	}
}

/* The thread: as often as it is let, what is queued. */
static void work(void)
{
	for (;; swapcontext(&thread, &outside)) {
		if (!sg_policy.work.pending)
			continue;
		sg_policy.work.pending = false;
		sugov_work(&sg_policy.work);
	}
}

static void begin(void)
{
	int cpu;

	requested = calling = 0;
	asked[0] = asked[1] = 0;
	getcontext(&thread);
	thread.uc_stack.ss_sp = thread_stack;
	thread.uc_stack.ss_size = sizeof(thread_stack);
	makecontext(&thread, work, 0);
	memset(&policy, 0, sizeof(policy));
	memset(&sg_policy, 0, sizeof(sg_policy));
	memset(runqueues, 0, sizeof(runqueues));
	memset(sugov_cpu, 0, sizeof(sugov_cpu));
	memset(idle_calls, 0, sizeof(idle_calls));
	table_size = 0;
	for (cpu = 0; cpu < CPUS_MAX; cpu++) {
		runqueues[cpu].cpu = cpu;
		runqueues[cpu].uclamp[UCLAMP_MAX].value = SCHED_CAPACITY_SCALE;
		capacity[cpu] = SCHED_CAPACITY_SCALE;
	}
	policy.freq_table = table;
	policy.freq_table_sorted = CPUFREQ_TABLE_SORTED_ASCENDING;
	policy.governor_data = &sg_policy;
	sg_policy.policy = &policy;
	sg_policy.tunables = &tunables;
}

static void operate(word op, const word *arg)
{
	struct rq *rq = &runqueues[arg[0] % CPUS_MAX];
	struct update_util_data *hook;

	switch (op) {
	case OP_FIRST + 0:
		policy.cpus->bits = BIT(arg[0]) - 1;
		tunables.rate_limit_us = arg[1];
		tick_nsec = arg[2];
		policy.dvfs_possible_from_any_cpu = arg[3];
		sched_uclamp_used = arg[4];
		policy.fast_switch_enabled = arg[5];
		adjusts_perf = arg[5] == 2;
		break;
	case OP_FIRST + 1: /* a further operating point */
		if (table_size == TABLE_MAX)
			exit(2);
		table[table_size].frequency = arg[0];
		table[table_size].flags = arg[1] ? CPUFREQ_INEFFICIENT_FREQ : 0;
		policy.efficiencies_available |= arg[1];
		table[++table_size].frequency = CPUFREQ_TABLE_END;
		policy.min = table[0].frequency;
		policy.max = policy.cpuinfo.max_freq = policy.cur = requested = arg[0];
		break;
	case OP_FIRST + 2: /* the core asks the governor for its limits right after the start */
		sugov_start(&policy);
		sugov_limits(&policy);
		break;
	case OP_FIRST + 3:
		capacity[arg[0]] = arg[1];
		break;
	case OP_FIRST + 4:
		rq->cfs.avg.util_avg = arg[1];
		rq->cfs.avg.runnable_avg = arg[2];
		rq->cfs.avg.ESTIMATE = arg[3];
		break;
	case OP_FIRST + 5:
		rq->avg_rt.util_avg = arg[1];
		rq->avg_dl.util_avg = arg[2];
		rq->avg_irq.util_avg = arg[3];
		rq->rt.nr = arg[4];
		rq->dl.running_bw = arg[5];
		break;
	case OP_FIRST + 6:
		rq->uclamp[UCLAMP_MIN].value = arg[1];
		rq->uclamp[UCLAMP_MAX].value = arg[2];
		break;
	case OP_FIRST + 7: /* the hook of a CPU */
		idle_calls[arg[0]] = arg[3];
		this_cpu = arg[4];
		hook = &sugov_cpu[arg[0]].update_util;
		hook->func(hook, arg[1], arg[2]);
		break;
	case OP_FIRST + 8:
		sugov_limits(&policy);
		break;
	case OP_FIRST + 9: /* the interrupt of a CPU */
		if (sg_policy.irq_work.raised & BIT(arg[0])) {
			sg_policy.irq_work.raised = 0;
			sugov_irq_work(&sg_policy.irq_work);
		}
		break;
	case OP_FIRST + 10: /* the thread takes up what is queued */
		if (!calling)
			swapcontext(&outside, &thread);
		break;
	case OP_FIRST + 11: /* the driver returns to it */
		if (calling)
			swapcontext(&outside, &thread);
		break;
	default:
		fprintf(stderr, "unknown operation %llu\n", op);
		exit(2);
	}
	report();
}

int main(void)
{
	return serve(begin, operate);
}
