// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for the slow path of placement: functions cut out of a kernel tree's fair.c when the test runs
 * (slow_path_extract.h, written by the test program), around CPUs with all their domains and groups.
 *
 * Reads cases, one a line, as `sched/fair/slow_path/states.rs` of the kernel crate draws them: the state, `=`, our
 * answer. Computes the kernel's answer as text in the same form, and compares.
 *
 *   shim placements      select_task_rq_fair() of a fork, an exec or a wakeup
 *
 * Replaced, not compared here: select_idle_sibling() keeps its target, as it does where no CPUs share a cache; EAS
 * leaves a task where it is or cannot tell; and what ../balance/kernel.h lists as replaced.
 */
#include "../balance/kernel.h"

/* What the balancer's oracle has simpler. */
#undef cpu_load_without
#undef cpu_runnable_without
#undef cpu_util_without
#undef cfs_h_nr_delayed
#undef cpus_share_cache
#ifdef FORM_6_1
#define cfs_h_nr_delayed(rq) 0
#define CONFIG_FAIR_UTIL_EST 1
#else
#define cfs_h_nr_delayed(rq) ((rq)->cfs.h_nr_queued - (rq)->cfs.h_nr_runnable)
#endif
#define cpus_share_cache(a, b) ((a) == (b))
#define cpu_util_cfs tree_cpu_util_cfs
#undef task_util_est
#define task_util(task) ((task)->se.avg.util_avg)
#define FEATURE_UTIL_EST 1
#define UTIL_AVG_UNCHANGED 0x80000000
#define READ_ONCE(value) (value)

#define HZ 250
#define PF_EXITING 4
#define WF_EXEC 0x2
#define WF_FORK 0x4
#define WF_TTWU 0x8
#define WF_SYNC 0x10
#define WF_CURRENT_CPU 0x40
#define SD_WAKE_AFFINE 0x10
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define lockdep_assert_held(lock) ((void)0)
#define __this_cpu_read(variable) per_cpu_##variable[executing_cpu]
#define for_each_domain(cpu, domain) for (domain = cpu_rq(cpu)->sd; domain; domain = domain->parent)
#define rcu_dereference_all(pointer) (pointer)
#ifndef FORM_7_3
#define sched_energy_enabled() energy_aware
#endif

#ifdef FORM_7_3
/* No task moves. */
static void account_llc_enqueue(struct rq *rq, struct task_struct *task) { }
static void account_llc_dequeue(struct rq *rq, struct task_struct *task) { }
#endif

/* Whether EAS is asked for a task that uses nothing, on a machine of unequal CPUs. */
static int eas_knows;

static int find_energy_efficient_cpu(struct task_struct *task, int prev)
{
#ifdef FORM_6_1
	if (cpu_rq(executing_cpu)->rd->overutilized)
		return -1;
#endif
	return eas_knows ? prev : -1;
}

static int select_idle_sibling(struct task_struct *task, int prev, int target)
{
	return target;
}

#include "slow_path_extract.h"
#include "../states/read.h"

#include "../balance/domains.h"

static struct task_struct idle_task;

static void read_cpu(struct rq *rq, struct task_struct *task, struct task_struct *other)
{
	static struct cpuidle_state states[2] = { { 1 }, { 100 } };

	rq->idle = &idle_task;
	rq->cfs.avg.load_avg = number();
	rq->cfs.avg.util_avg = number();
	rq->cfs.avg.runnable_avg = number();
	ESTIMATE(rq->cfs.avg) = number();
	rq->nr_running = number();
	rq->cfs.h_nr_queued = number();
	rq->cfs.h_nr_runnable = number();
	rq->only_sched_idle = number();
	rq->cpu_capacity = number();
	rq->arch_capacity = number();
	int curr = number();
	rq->curr = curr < 0 ? &idle_task : curr == 1 ? task : other;
	rq->ttwu_pending = number();
	int state = number();
	rq->idle_state = state >= 0 ? &states[below(state, 2)] : NULL;
	rq->idle_stamp = number();
}

static void placement(int flags, char *answer)
{
	static struct task_struct task, other;
	struct root_domain rd = { 0 };

	memset(&task, 0, sizeof(task));
	memset(&other, 0, sizeof(other));
	memset(&idle_task, 0, sizeof(idle_task));
	executing_cpu = below(number(), CPUS_MAX);
	int prev = below(number(), CPUS_MAX);
	jiffies = number();
	energy_aware = number();
	rd.overutilized = number();
	eas_knows = number();
	per_cpu_sd_llc_size[executing_cpu] = number();
	task.cpu = prev;
	task.on_rq = flags & WF_EXEC;
	task.mask.bits = number();
	task.cpus_ptr = &task.mask;
	task.nr_cpus_allowed = cpumask_weight(&task.mask);
	task.numa_preferred_nid = -1;
	task.se.avg.load_avg = number();
	task.se.avg.util_avg = number();
	ESTIMATE(task.se.avg) = number();
	unsigned ewma = number();
	task.util_est = max(task.se.avg.util_avg, (unsigned long)max(ESTIMATE(task.se.avg), ewma));
#ifdef FORM_6_1
	task.se.avg.util_est.ewma = ewma;
#endif
	task.se.avg.runnable_avg = number();
	task.se.avg.last_update_time = number();
	task.idle_policy = number();
	other.se.avg.load_avg = number();
	other.flags = number() ? PF_EXITING : 0;
	memset(rqs, 0, sizeof(rqs));
	read_domains();
	for (int cpu = 0; cpu < CPUS; cpu++) {
		cpu_rq(cpu)->cpu = cpu;
		cpu_rq(cpu)->rd = &rd;
		read_cpu(cpu_rq(cpu), &task, &other);
	}
	executing_task = cpu_rq(executing_cpu)->curr;
	executing_task->wakee_flips = number();
	executing_task->wakee_flip_decay_ts = number();
	executing_task->last_wakee = number() ? &task : NULL;
	unsigned flips = number();
	if (executing_task != &task)
		task.wakee_flips = flips;

	int chosen = select_task_rq_fair(&task, prev, flags);

	sprintf(answer, "%d %u %lu", chosen, executing_task->wakee_flips, executing_task->wakee_flip_decay_ts);
}

int main(void)
{
	static char kernels[ANSWER_MAX];
	unsigned long differing = 0;
	int flags;

	/* Without hardware threads each CPU is a core; nothing here asks. */
	for (int cpu = 0; cpu < CPUS_MAX; cpu++)
		smt_masks[cpu].bits = 1ULL << cpu;
	while (scanf("%d", &flags) == 1) {
		case_number++;
		placement(flags, kernels);
		differing += compare(kernels, differing);
	}
	printf("%lu placements compared, %lu differ\n", case_number, differing);
	return differing != 0;
}
