// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for wakeup placement of 7.3: functions cut out of a kernel tree's fair.c when the test runs
 * (wakeups_extract.h, written by the test program), around CPUs with given tasks and signals.
 *
 * Reads cases, one a line, as `sched/fair/wakeup/states.rs` of the kernel crate draws them: the state, `=`, our
 * answer. Computes the kernel's answer as text in the same form, and compares.
 *
 *   shim wakeups            wake_affine() and select_idle_sibling()
 *   shim threads-wakeups    cores have hardware threads: after its first number, a case lists of each CPU the threads of its
 *                   core, its priority, and whether it is said to have an idle core near
 *
 * Prints the first differences and a summary; exits with 1 if there are any, 2 on a bad line.
 */
#include "../balance/kernel.h"
#include "../balance/clamps.h"

/* What 7.3 asks otherwise than the kernels of the balancer's oracle. */
#undef test_idle_cores
#undef set_idle_cores
#define rcu_dereference_all(pointer) (pointer)
#define READ_ONCE(value) (value)
#define WRITE_ONCE(place, value) ((void)((place) = (value)))
#define sched_cpu_cookie_match(rq, task) true
#define __select_idle_cpu select_idle_cpu_of_7_3
#define nr_cpumask_bits 64u
/* It says whether anything is left. */
#undef cpumask_and
#define cpumask_and(out, a, b) (((out)->bits = (a)->bits & (b)->bits) != 0)

static struct sched_domain_shared *per_cpu_sd_balance_shared[CPUS_MAX];

#include "wakeups_extract.h"
#include "../states/read.h"

enum { CPUS = 8 };

static struct task_struct idle_task;
static int idle_cores[CPUS_MAX];

static int cpu_number(void)
{
	return below(number(), CPUS_MAX);
}

static void read_threads(int cpus)
{
	smt_active = cpus > 0;
	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		smt_masks[cpu].bits = cpu < cpus ? number() : 1ULL << cpu;
		asym_priorities[cpu] = cpu < cpus ? number() : 0;
		idle_cores[cpu] = cpu < cpus ? number() : 0;
	}
}

static void wakeup(int idle_policy, char *answer)
{
	static struct sched_domain llcs[CPUS_MAX], asym;
	static struct sched_group clusters[CPUS_MAX];
	static struct sched_domain_shared shared[CPUS_MAX], of_capacities;
	struct sched_domain domain = { 0 };
	struct task_struct task = { 0 }, waker = { 0 };
	struct root_domain rd = { 0 };
	int this = cpu_number(), prev = cpu_number();

	task.idle_policy = idle_policy;
	task.recent_used_cpu = cpu_number();
	int sync = number();
	task.mask.bits = number();
	task.cpus_ptr = &task.mask;
	task.util_est = number();
	task.se.avg.load_avg = number();
	waker.se.avg.load_avg = number();
	uclamp_used = number();
	task.clamps[UCLAMP_MIN] = number();
	task.clamps[UCLAMP_MAX] = number();
	asym_capacities = number();
	asym.span.bits = number();
	domain.imbalance_pct = number();
	FEATURE_SIS_UTIL = number();
	/* SIS_PROP, jiffies, its stamp, its idle time, its cost and the time of a scan: not there. */
	for (int gone = 0; gone < 6; gone++)
		number();
	sched_cluster_active = number();
	int nr_cpus = cpu_number();

	for (int cpu = 0; cpu < nr_cpus; cpu++) {
		struct rq *rq = cpu_rq(cpu);
		int state = number();

		memset(rq, 0, sizeof(*rq));
		rq->cpu = cpu;
		rq->rd = &rd;
		rq->idle = &idle_task;
		rq->nr_running = rq->cfs.h_nr_queued = number();
		rq->cfs.avg.load_avg = number();
		rq->cpu_capacity = number();
		rq->arch_capacity = number();
		rq->avg_hw.load_avg = number();
		rq->pressure = number();
		llcs[cpu].span.bits = number();
		llcs[cpu].span_weight = cpumask_weight(&llcs[cpu].span);
		llcs[cpu].groups = &clusters[cpu];
		clusters[cpu].span.bits = number();
		clusters[cpu].flags = clusters[cpu].span.bits ? SD_CLUSTER : 0;
		per_cpu_sd_llc_id[cpu] = number();
		share_id[cpu] = number();
		shared[cpu].nr_idle_scan = number();
		llcs[cpu].shared = &shared[cpu];
		rq->only_sched_idle = state == 1;
		rq->curr = state ? &waker : &idle_task;
		per_cpu_sd_llc[cpu] = llcs[cpu].span.bits ? &llcs[cpu] : NULL;
		per_cpu_sd_asym_cpucapacity[cpu] = asym.span.bits ? &asym : NULL;
		/* A case says of each CPU what the object knows, whichever that is; only the target's is looked at. */
		per_cpu_sd_balance_shared[cpu] = &shared[cpu];
		shared[cpu].has_idle_cores = idle_cores[cpu];
	}
	of_capacities.nr_idle_scan = number();
	asym.shared = of_capacities.nr_idle_scan < 0 ? NULL : &of_capacities;
	executing_cpu = this;
	executing_task = cpu_rq(this)->curr;

	int target = this == prev ? prev : wake_affine(&domain, &task, this, prev, sync);
	int chosen = select_idle_sibling(&task, prev, target);

	answer += sprintf(answer, "%d %d %d", target, chosen, task.recent_used_cpu);
	if (smt_active)
		sprintf(answer, " %d", test_idle_cores(target));
}

int main(int argc, char **argv)
{
	static char kernels[ANSWER_MAX];
	unsigned long differing = 0;
	int idle_policy, threads = argc > 1 && !strncmp(argv[1], "threads-", 8);

	while (scanf("%d", &idle_policy) == 1) {
		case_number++;
		read_threads(threads ? CPUS : 0);
		wakeup(idle_policy, kernels);
		differing += compare(kernels, differing);
	}
	printf("%lu wakeups%s compared, %lu differ\n", case_number, threads ? " with threads" : "", differing);
	return differing != 0;
}
