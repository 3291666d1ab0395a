// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for schedutil's first form: the functions of 4.7's cpufreq_schedutil.c, cut out when the test runs
 * (schedutil_extract.h, written by the test program), around one frequency domain of up to four CPUs. Nothing of
 * the kernel is in this file. The driver and its table are written for this purpose: 4.7's drivers have a search
 * each, and a lowest frequency that is not below the target is what they agree on.
 *
 * The work that calls the driver is a coroutine: it stops inside of the driver, so that hooks come meanwhile.
 */
#include "kernel_types.h"
#include "protocol.h"
#include <limits.h>
#include <ucontext.h>

#define CPUS_MAX 5
#define TABLE_MAX 12
#define BIT(n) (1UL << (n))
#define TICK_NSEC tick_nsec
#define CPUFREQ_ENTRY_INVALID ~0u
#define CPUFREQ_RELATION_L 0
#define CPUFREQ_RELATION_H 1
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

/* No concurrency. */
typedef int raw_spinlock_t;
#define raw_spin_lock(lock) ((void)(lock))
#define raw_spin_unlock(lock) ((void)(lock))
struct mutex { int unused; };
#define mutex_lock(mutex) ((void)(mutex))
#define mutex_unlock(mutex) ((void)(mutex))
struct list_head { int unused; };
struct gov_attr_set { int unused; };
struct irq_work { unsigned long raised; };
struct work_struct { bool pending; };

struct cpumask { unsigned long bits; };
#define for_each_cpu(cpu, mask) for ((cpu) = 0; (cpu) < CPUS_MAX; (cpu)++) if ((mask)->bits >> (cpu) & 1)
#define policy_is_shared(policy) (((policy)->cpus->bits & ((policy)->cpus->bits - 1)) != 0)

struct cpufreq_policy {
	struct cpumask cpus[1];
	unsigned int min, max, cur;
	struct { unsigned int max_freq; } cpuinfo;
	bool fast_switch_enabled;
	void *governor_data;
};

static struct cpufreq_policy policy;
static unsigned int table[TABLE_MAX], table_size, requested, calling;
static long tick_nsec;
static int this_cpu;
static bool invariant;

#define smp_processor_id() this_cpu
#define arch_scale_freq_invariant() invariant
#define trace_cpu_frequency(khz, cpu) ((void)0)
#define DEFINE_PER_CPU(type, name) type name[CPUS_MAX]
#define per_cpu(name, cpu) name[cpu]

struct update_util_data { void (*func)(struct update_util_data *, u64 time, unsigned long util, unsigned long max); };
#define cpufreq_add_update_util_hook(cpu, data, function) ((data)->func = (function))

static unsigned int lookup(unsigned int target)
{
	unsigned int i = 0;

	if (target < policy.min)
		target = policy.min;
	if (target > policy.max)
		target = policy.max;
	while (i + 1 < table_size && table[i] < target)
		i++;
	return table[i];
}

static unsigned int cpufreq_driver_fast_switch(struct cpufreq_policy *policy, unsigned int target)
{
	return requested = lookup(target);
}

static ucontext_t outside, thread;
static char thread_stack[1 << 16];

static int __cpufreq_driver_target(struct cpufreq_policy *policy, unsigned int target, unsigned int relation)
{
	unsigned int khz = lookup(target);

	if (khz == policy->cur)
		return 0;
	calling = requested = khz;
	swapcontext(&thread, &outside);
	calling = 0;
	policy->cur = khz;
	return 0;
}

static bool irq_work_queue(struct irq_work *work)
{
	if (work->raised)
		return false;
	work->raised = BIT(this_cpu);
	return true;
}

static bool schedule_work_on(int cpu, struct work_struct *work)
{
	bool queued = !work->pending;

	work->pending = true;
	return queued;
}

#include "schedutil_extract.h"

static struct sugov_policy sg_policy;
static struct sugov_tunables tunables;
static unsigned long capacity[CPUS_MAX], util[CPUS_MAX];

static void report(void)
{
	unsigned int cpu;

	/* Nothing has been asked for: ours says 0. */
	out(sg_policy.next_freq == UINT_MAX ? 0 : sg_policy.next_freq);
	out(sg_policy.last_freq_update_time);
	out(sg_policy.need_freq_update);
	out(policy.cur);
	out(requested);
	out(sg_policy.work_in_progress);
	out(sg_policy.irq_work.raised);
	out(sg_policy.work.pending);
	out(calling);
	if (!policy_is_shared(&policy))
		return;
	for_each_cpu(cpu, policy.cpus) {
		out(sugov_cpu[cpu].util);
		out(sugov_cpu[cpu].util == ULONG_MAX ? 0 : sugov_cpu[cpu].max);
		out(sugov_cpu[cpu].last_update);
	}
}

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

	requested = calling = table_size = 0;
	getcontext(&thread);
	thread.uc_stack.ss_sp = thread_stack;
	thread.uc_stack.ss_size = sizeof(thread_stack);
	makecontext(&thread, work, 0);
	memset(&policy, 0, sizeof(policy));
	memset(&sg_policy, 0, sizeof(sg_policy));
	memset(sugov_cpu, 0, sizeof(sugov_cpu));
	memset(util, 0, sizeof(util));
	for (cpu = 0; cpu < CPUS_MAX; cpu++) {
		capacity[cpu] = 1024;
		/* As sugov_start() will set it. */
		sugov_cpu[cpu].util = ULONG_MAX;
	}
	policy.governor_data = &sg_policy;
	sg_policy.policy = &policy;
	sg_policy.tunables = &tunables;
}

static void operate(word op, const word *arg)
{
	struct update_util_data *hook = &sugov_cpu[arg[0] % CPUS_MAX].update_util;
	unsigned long max = capacity[arg[0] % CPUS_MAX];

	switch (op) {
	case OP_FIRST + 0:
		policy.cpus->bits = BIT(arg[0]) - 1;
		tunables.rate_limit_us = arg[1];
		tick_nsec = arg[2];
		invariant = arg[3];
		policy.fast_switch_enabled = arg[4];
		break;
	case OP_FIRST + 1: /* a further operating point */
		if (table_size == TABLE_MAX)
			exit(2);
		table[table_size++] = arg[0];
		policy.min = table[0];
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
		util[arg[0]] = arg[1];
		break;
	case OP_FIRST + 5: /* what the scheduler says of fair tasks */
		this_cpu = arg[0];
		hook->func(hook, arg[1], min(util[arg[0]], max), max);
		break;
	case OP_FIRST + 6: /* what it says while RT and DEADLINE tasks run */
		this_cpu = arg[0];
		hook->func(hook, arg[1], ULONG_MAX, 0);
		break;
	case OP_FIRST + 7:
		sugov_limits(&policy);
		break;
	case OP_FIRST + 8: /* the interrupt of a CPU */
		if (sg_policy.irq_work.raised & BIT(arg[0])) {
			this_cpu = arg[0];
			sg_policy.irq_work.raised = 0;
			sugov_irq_work(&sg_policy.irq_work);
		}
		break;
	case OP_FIRST + 9: /* the kworker takes up what is queued */
		if (!calling)
			swapcontext(&outside, &thread);
		break;
	case OP_FIRST + 10: /* the driver returns to it */
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
