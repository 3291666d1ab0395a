// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for load balancing: functions cut out of a kernel tree's fair.c when the test runs
 * (balance_extract.h, written by the test program), around CPUs with given tasks and signals.
 *
 * Reads cases, one a line, as `sched/fair/balance/states.rs` of the kernel crate draws them: the
 * state, `=`, our answer. Computes the kernel's answer as text in the same form, and compares.
 *
 *   shim decisions   who is the busiest, or where does a fork go: nothing moves
 *   shim passes      a whole sched_balance_rq(), and every queue afterwards
 *   shim wakeups     wake_affine() and select_idle_sibling()
 *   shim newidle     sched_balance_newidle(), as sched/fair/balance/states/nohz.rs draws it
 *   shim idlers      nohz_balancer_kick(), nohz_balance_enter_idle(), _nohz_idle_balance(), sched_balance_domains()
 *
 * With "threads-" before it, cores have hardware threads: after its first number, a case lists of each CPU
 * the threads of its core, its priority, and whether its cache is said to have an idle core. With "cache-" (behind
 * that), it goes on with what is known of caches and of the processes that prefer them.
 *
 * Prints the first differences and a summary; exits with 1 if there are any, 2 on a bad line.
 */
#include "kernel.h"

#ifdef FORM_7_3
struct lb_env;
static inline bool sched_asym(struct sched_domain *sd, int dst_cpu, int src_cpu);
#endif

#include "nohz.h"
#ifndef FORM_7_3
#include "clamps.h"
#endif
#include "balance_extract.h"
#include "../states/read.h"
#include "domains.h"

enum { GROUPS_MAX = 64, TASKS_MAX = 4096 };

static struct sched_group groups[GROUPS_MAX];
static struct sched_group_capacity capacities[GROUPS_MAX];
static struct task_struct tasks[TASKS_MAX];
static struct task_struct idle_task, busy_task;
/* The domain below; 6.1 asks it for SD_PREFER_SIBLING. */
static struct sched_domain child;
static struct cpumask no_cpu;

static void read_child(struct sched_domain *domain)
{
#ifdef FORM_6_1
	child.flags = number() ? SD_PREFER_SIBLING : 0;
	domain->child = &child;
#endif
}

/* 7.3 asks whether some domain is of clusters. */
static void read_cluster(void)
{
#ifdef FORM_7_3
	sched_cluster_active = number();
#endif
}

/* The groups of the domain, by first CPU; the one with `dst` is the domain's own. */
static void read_groups(struct sched_domain *domain, int dst)
{
	int count = below(number(), GROUPS_MAX);

	for (int i = 0; i < count; i++) {
		struct sched_group *group = &groups[i];
		int first = below(number(), CPUS_MAX), weight = below(number(), CPUS_MAX);

		memset(group, 0, sizeof(*group));
		group->flags = hex();
		group->sgc = &capacities[i];
		group->sgc->capacity = number();
		group->sgc->min_capacity = number();
		group->sgc->max_capacity = number();
		group->sgc->imbalance = number();
		group->span.bits = ((1ULL << weight) - 1) << first;
		group->balance_mask = group->span;
		group->group_weight = weight;
		group->asym_prefer_cpu = first;
		for (int cpu = first; cpu < first + weight; cpu++) {
			/* A core counts at the first of its threads that the group has. */
			group->cores += !(smt_masks[cpu].bits & group->span.bits & ((1ULL << cpu) - 1));
			if (sched_asym_prefer(cpu, group->asym_prefer_cpu))
				group->asym_prefer_cpu = cpu;
		}
		group->next = &groups[(i + 1) % count];
		if (cpumask_test_cpu(dst, &group->span))
			domain->groups = group;
	}
}

static int idle_cores[CPUS_MAX];

/* What a case says of hardware threads; without them each CPU is a core. */
static void read_threads(int cpus)
{
	smt_active = cpus > 0;
	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		smt_masks[cpu].bits = cpu < cpus ? number() : 1ULL << cpu;
		asym_priorities[cpu] = cpu < cpus ? number() : 0;
		idle_cores[cpu] = cpu < cpus ? number() : 0;
	}
}

#ifdef FORM_7_3
enum { PROCESSES = 3, LLCS_MAX = 8 };
static struct sched_domain_shared llc_shared[LLCS_MAX];
static struct sched_domain bottoms[CPUS_MAX], other_child;
static struct sched_cache_group groups_of_processes[PROCESSES];
static int with_caches, nr_llcs;

/* Limits, caches and processes; per CPU its cache, and where queues have no tasks, how many prefer which. */
static void read_caches(struct sched_domain *domain, int cpus, int dst, bool counts)
{
	sched_cache_active = 0;
	if (!with_caches)
		return;
	sched_cache_active = number();
	if (!sched_cache_active)
		return;
	llc_overaggr_pct = number();
	llc_imb_pct = number();
	cpu_smt_num_threads = number();
	/* Whether the domain below is the cache's. */
	/* Each CPU has domains of its own: the child of this one is no other CPU's. */
	memset(per_cpu_sd_llc, 0, sizeof(per_cpu_sd_llc));
	per_cpu_sd_llc[dst] = &child;
	domain->child = number() ? &child : &other_child;
	nr_llcs = below(number(), LLCS_MAX + 1);
	for (int llc = 0; llc < nr_llcs; llc++) {
		llc_shared[llc].util_avg = number();
		llc_shared[llc].capacity = number();
	}
	for (int cpu = 0; cpu < cpus; cpu++) {
		per_cpu_sd_llc_id[cpu] = below(number(), LLCS_MAX);
		per_cpu_sd_llc_shared[cpu] = number() ? &llc_shared[per_cpu_sd_llc_id[cpu]] : NULL;
		per_cpu_sd_llc_size[cpu] = number();
		bottoms[cpu].llc_max = nr_llcs;
		for (int llc = 0; llc < nr_llcs; llc++)
			bottoms[cpu].llc_counts[llc] = counts ? number() : 0;
	}
	for (int process = 0; process < PROCESSES; process++) {
		groups_of_processes[process].cpu = number();
		groups_of_processes[process].nr_threads = number();
		groups_of_processes[process].nr_running_avg = number();
	}
}

static void write_caches(char *answer)
{
	answer += strlen(answer);
	if (!sched_cache_active)
		return;
	for (int llc = 0; llc < nr_llcs; llc++)
		answer += sprintf(answer, " %lu,%lu", llc_shared[llc].util_avg, llc_shared[llc].capacity);
	for (int process = 0; process < PROCESSES; process++)
		answer += sprintf(answer, " %d", groups_of_processes[process].cpu);
}
#else
#define read_caches(domain, cpus, dst, counts) ((void)0)
#define write_caches(answer) ((void)0)
#endif

static struct rq *new_rq(int cpu, struct root_domain *rd)
{
	struct rq *rq = cpu_rq(cpu);

	memset(rq, 0, sizeof(*rq));
	rq->cpu = cpu;
	rq->rd = rd;
	rq->curr = rq->idle = &idle_task;
	rq->cfs_tasks.next = rq->cfs_tasks.prev = &rq->cfs_tasks;
#ifdef FORM_7_3
	rq->sd = &bottoms[cpu];
#endif
	return rq;
}

/* The numbers that both kinds of case give of a CPU. */
static void read_signals(struct rq *rq)
{
	rq->cfs.avg.load_avg = number();
	rq->cfs.avg.util_avg = number();
	rq->cfs.avg.runnable_avg = number();
	rq->nr_running = number();
	rq->cfs.h_nr_queued = number();
#ifdef SINCE_6_18
	rq->cfs.h_nr_runnable = number();
#endif
	rq->misfit_task_load = number();
	rq->cpu_capacity = number();
	rq->arch_capacity = number();
}

/* fork: 0 = busiest group and queue and the imbalance; 1 = the target of a fork. */
static void decision(int fork, char *answer)
{
	static struct cpuidle_state states[2] = { { 1 }, { 100 } };
	struct sched_domain domain = { 0 }, parent = { 0 };
	struct sched_domain_shared shared = { -1 };
	struct root_domain rd = { 0 };
	struct cpumask cpus;
	struct sched_group *group;

	domain.flags = hex();
	domain.imbalance_pct = number();
	int idle = number(), dst = below(number(), CPUS_MAX), nr_cpus = below(number(), CPUS_MAX);
	energy_aware = number();
	rd.overutilized = number();
	rd.pd = energy_aware ? &rd : NULL;
	int has_parent = number(), llc_sized = number();
	domain.imb_numa_nr = number();
	cpus.bits = number();
	read_child(&domain);
	read_cluster();
	read_groups(&domain, dst);
	for (int cpu = 0; cpu < nr_cpus; cpu++) {
		struct rq *rq = new_rq(cpu, &rd);

		read_signals(rq);
		rq->curr = number() ? &busy_task : &idle_task;
		int state = number();
		rq->idle_state = state >= 0 ? &states[below(state, 2)] : NULL;
		rq->idle_stamp = number();
	}
	domain.span.bits = (1ULL << nr_cpus) - 1;
	domain.span_weight = nr_cpus;
	domain.parent = has_parent ? &parent : NULL;
	per_cpu_sd_llc_size[dst] = llc_sized ? nr_cpus : 1;
	per_cpu_sd_llc_shared[dst] = &shared;
	read_caches(&domain, nr_cpus, dst, true);
	domain.shared = llc_sized ? &shared : NULL;

	if (fork) {
		struct task_struct task = { .cpu = -1, .numa_preferred_nid = -1 };

		task.mask.bits = number();
		task.util_est = number();
		task.cpus_ptr = &task.mask;
		task.nr_cpus_allowed = cpumask_weight(&task.mask);
		group = sched_balance_find_dst_group(&domain, &task, dst);
		sprintf(answer, "%d %d", group ? (int)(group - groups) : -1,
			group ? sched_balance_find_dst_group_cpu(group, &task, dst) : -1);
	} else {
		struct lb_env env = { .sd = &domain, .dst_cpu = dst, .dst_rq = cpu_rq(dst),
				      .idle = idle, .cpus = &cpus, .fbq_type = all };
		struct rq *busiest = NULL;

		group = sched_balance_find_src_group(&env);
		if (group)
			busiest = sched_balance_find_src_rq(&env, group);
		sprintf(answer, "%d %ld %d %d %d %d %d", group ? (int)(group - groups) : -1,
			env.imbalance, group ? (int)env.migration_type : -1,
			busiest ? busiest->cpu : -1, has_parent ? -1 : rd.overloaded,
			energy_aware ? rd.overutilized : -1, shared.nr_idle_scan);
		write_caches(answer);
	}
}

/* The queue of a CPU, most recently run first.. */
static void read_queue(struct rq *rq, int curr)
{
	int count = below(number(), TASKS_MAX);

	for (int i = 0; i < count; i++) {
		struct task_struct *task = &tasks[below(number(), TASKS_MAX)];

		memset(task, 0, sizeof(*task));
		task->id = task - tasks;
		task->cpu = rq->cpu;
		task->sched_class = &fair_sched_class;
		task->se.cfs_rq = &rq->cfs;
		task->se.avg.load_avg = number();
		task->util_est = number();
		task->se.exec_start = number();
		task->mask.bits = number();
		task->cpus_ptr = &task->mask;
		/* More than one; the mask decides which. */
		task->nr_cpus_allowed = 2;
		task->idle_policy = number();
		task->on_rq = 1;
#ifdef SINCE_6_18
		task->se.sched_delayed = number();
		task->se.vruntime = number();
#endif
		list_add(&task->se.group_node, rq->cfs_tasks.prev);
#ifdef FORM_7_3
		task->preferred_llc = -1;
		if (sched_cache_active) {
			task->sched_cache_grp = &groups_of_processes[below(number(), PROCESSES)];
			task->preferred_llc = number();
			account_llc_enqueue(rq, task);
		}
#endif
		if (task->id == curr)
			rq->curr = task;
	}
}

static void pass(char *answer)
{
	struct sched_domain domain = { 0 };
	struct sched_group_capacity parent_capacity = { 0 };
	struct sched_group parent_group = { .sgc = &parent_capacity };
	struct sched_domain parent = { .groups = &parent_group };
	struct root_domain rd = { 0 };
	int continue_balancing = 1;

	domain.flags = hex();
	domain.imbalance_pct = number();
	int idle = number(), dst = below(number(), CPUS_MAX), nr_cpus = below(number(), CPUS_MAX);
	energy_aware = number();
	rd.overutilized = number();
	rd.pd = energy_aware ? &rd : NULL;
	int has_parent = number();
	domain.imb_numa_nr = number();
	domain.span.bits = number();
	domain.span_weight = cpumask_weight(&domain.span);
	domain.parent = has_parent ? &parent : NULL;
	domain.nr_balance_failed = number();
	domain.cache_nice_tries = number();
	domain.balance_interval = number();
	domain.min_interval = number();
	domain.max_interval = number();
	parent_capacity.imbalance = number();
	read_child(&domain);
	read_cluster();
	read_groups(&domain, dst);
	/* The scan depth of SIS_UTIL is compared by the decisions. */
	per_cpu_sd_llc_size[dst] = 0;
	read_caches(&domain, nr_cpus, dst, false);
	for (int cpu = 0; cpu < nr_cpus; cpu++) {
		struct rq *rq = new_rq(cpu, &rd);

		read_signals(rq);
		int curr = number();
		rq->ttwu_pending = number();
		rq->clock_task = number();
		rq->active_balance = number();
		read_queue(rq, curr);
	}
	stopper = 0;

	int moved = sched_balance_rq(dst, cpu_rq(dst), &domain, idle, &continue_balancing);

	answer += sprintf(answer, "%d %d %u %lu %d %d", moved, continue_balancing,
			  domain.nr_balance_failed, domain.balance_interval,
			  has_parent ? parent_capacity.imbalance : -1, stopper);
	for (int cpu = 0; cpu < nr_cpus; cpu++) {
		struct rq *rq = cpu_rq(cpu);

		answer += sprintf(answer, " |%d,%d", rq->active_balance,
				  rq->active_balance ? rq->push_cpu : -1);
		for (struct list_head *at = rq->cfs_tasks.next; at != &rq->cfs_tasks; at = at->next)
			answer += sprintf(answer, " %d",
				container_of(at, struct task_struct, se.group_node)->id);
	}
	write_caches(answer);
}

/* ---- newidle balancing and CPUs without a tick ------------------------------------------------------ */

enum { NEWIDLE, KICK, ENTER_IDLE, WALK, RUN_IDLE, OWN_PASSES };

static struct sched_domain_shared llc_of_this;

static void read_idlers(struct rq *rq)
{
	read_signals(rq);
	int curr = number();
	rq->ttwu_pending = number();
	rq->clock_task = number();
	rq->active_balance = number();
	rq->next_balance = number();
	rq->avg_idle = number();
	rq->idle_stamp = number();
	rq->max_idle_balance_cost = number();
	rq->nohz_flags = number();
	rq->idle_balance = number();
	rq->nohz_tick_stopped = number();
	rq->has_blocked_load = number();
	rq->last_blocked_load_update_tick = number();
	rq->still_blocked = number();
	rq->rng = number();
	read_queue(rq, curr);
}

static void read_machine(int this, struct root_domain *rd)
{
	jiffies = number();
	clock_now = number();
	clock_reads = 0;
	energy_aware = number();
	rd->overutilized = number();
	rd->overloaded = number();
	rd->pd = energy_aware ? rd : NULL;
	rd->max_cpu_capacity = 1024;
	FEATURE_NI_RANDOM = number();
	asym_capacities = number();
	sched_cluster_active = number();
	FEATURE_SIS_UTIL = 0;
	nohz_mask.bits = number();
	nohz.nr_cpus = cpumask_weight(&nohz_mask);
	nohz.has_blocked = number();
	nohz.needs_update = number();
	nohz.next_balance = number();
	nohz.next_blocked = number();
	long long packing = number(), asym = number(), llc = number(), busy = number();

	for (int cpu = 0; cpu < CPUS; cpu++)
		new_rq(cpu, rd);
	read_domains();
	memset(per_cpu_sd_asym_packing, 0, sizeof(per_cpu_sd_asym_packing));
	memset(per_cpu_sd_asym_cpucapacity, 0, sizeof(per_cpu_sd_asym_cpucapacity));
	memset(per_cpu_sd_llc_shared, 0, sizeof(per_cpu_sd_llc_shared));
	memset(per_cpu_sd_llc, 0, sizeof(per_cpu_sd_llc));
	memset(per_cpu_sd_llc_size, 0, sizeof(per_cpu_sd_llc_size));
	per_cpu_sd_asym_packing[this] = domain_of(packing);
	per_cpu_sd_asym_cpucapacity[this] = domain_of(asym);
	per_cpu_sd_llc[this] = domain_of(llc);
	llc_of_this.nr_busy_cpus = busy;
	per_cpu_sd_llc_shared[this] = busy >= 0 ? &llc_of_this : NULL;
	for (int i = 0; i < nr_domains; i++) {
		domains[i].max_newidle_lb_cost = number();
		domains[i].newidle_call = number();
		domains[i].newidle_success = number();
		domains[i].newidle_ratio = number();
		domains[i].newidle_stamp = number();
		domains[i].last_decay_max_lb_cost = number();
		domains[i].nohz_idle = number();
	}
	if (per_cpu_sd_llc[this])
		per_cpu_sd_llc[this]->shared = &llc_of_this;
	for (int cpu = 0; cpu < CPUS; cpu++)
		read_idlers(cpu_rq(cpu));
}

static void write_machine(char *answer)
{
	answer += sprintf(answer, " %llu %d %d %lu %lu %d", (unsigned long long)nohz_mask.bits,
			  nohz.has_blocked, nohz.needs_update, nohz.next_balance, nohz.next_blocked,
			  llc_of_this.nr_busy_cpus);
	for (int i = 0; i < nr_domains; i++) {
		struct sched_domain *sd = &domains[i];

		answer += sprintf(answer, " %llu,%u,%u,%u,%llu,%lu,%u,%lu,%lu,%d", sd->max_newidle_lb_cost,
				  sd->newidle_call, sd->newidle_success, sd->newidle_ratio,
				  (u64)STAMP_OF(sd), sd->last_decay_max_lb_cost,
				  sd->nr_balance_failed, sd->balance_interval, sd->last_balance,
				  sd->nohz_idle);
	}
	for (int cpu = 0; cpu < CPUS; cpu++) {
		struct rq *rq = cpu_rq(cpu);

		answer += sprintf(answer, " |%lu,%llu,%llu,%d,%lu,%d,%d", rq->next_balance, rq->idle_stamp,
				  rq->max_idle_balance_cost, rq->nohz_flags, rq->misfit_task_load,
				  rq->has_blocked_load, rq->kicked);
		for (struct list_head *at = rq->cfs_tasks.next; at != &rq->cfs_tasks; at = at->next)
			answer += sprintf(answer, " %d",
				container_of(at, struct task_struct, se.group_node)->id);
	}
}

static void idlers(int kind, char *answer)
{
	static char changed[ANSWER_MAX];
	struct root_domain rd = { 0 };
	struct rq_flags rf;
	int this = below(number(), CPUS), flags = number(), resched = number(), pulled = 0;
	struct rq *rq = cpu_rq(this);

	read_machine(this, &rd);
	rq->resched = resched;
	executing_cpu = this;
	executing_task = rq->curr;
	switch (kind) {
	case NEWIDLE:
		pulled = sched_balance_newidle(rq, &rf);
		break;
	case KICK:
		nohz_balancer_kick(rq);
		break;
	case ENTER_IDLE:
		nohz_balance_enter_idle(this);
		break;
	case WALK:
		_nohz_idle_balance(rq, flags);
		break;
	case RUN_IDLE:
		nohz_run_idle_balance(this);
		break;
	default:
		sched_balance_domains(rq, idle_cpu(this) ? CPU_IDLE : CPU_NOT_IDLE);
	}
	write_machine(changed);
	sprintf(answer, "%d%s", pulled, changed);
}

/* Of 7.3 they are not compared yet. */
#ifndef FORM_7_3
static void wakeup(char *answer)
{
	static struct sched_domain llcs[CPUS_MAX], asym;
	static struct sched_group clusters[CPUS_MAX];
	static struct sched_domain_shared shared[CPUS_MAX];
	struct sched_domain domain = { 0 };
	struct task_struct task = { 0 }, waker = { 0 };
	struct root_domain rd = { 0 };
	int this = below(number(), CPUS_MAX), prev = below(number(), CPUS_MAX);

	task.recent_used_cpu = below(number(), CPUS_MAX);
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
	FEATURE_SIS_PROP = number();
	jiffies = number();
	unsigned long stamp = number(), avg_idle = number();
	u64 scan_cost = number();
	scan_ns = number();
	scanned = 0;
	sched_cluster_active = number();
	int nr_cpus = below(number(), CPUS_MAX);

	for (int cpu = 0; cpu < nr_cpus; cpu++) {
		struct rq *rq = new_rq(cpu, &rd);
		int state = number();

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
		shared[cpu].has_idle_cores = idle_cores[cpu];
		rq->only_sched_idle = state == 1;
		rq->curr = state ? &waker : &idle_task;
		per_cpu_sd_llc[cpu] = llcs[cpu].span.bits ? &llcs[cpu] : NULL;
		per_cpu_sd_llc_shared[cpu] = llcs[cpu].span.bits ? &shared[cpu] : NULL;
		per_cpu_sd_asym_cpucapacity[cpu] = asym.span.bits ? &asym : NULL;
	}
	executing_cpu = this;
	executing_task = cpu_rq(this)->curr;
	cpu_rq(this)->wake_stamp = stamp;
	cpu_rq(this)->wake_avg_idle = avg_idle;
	sd_llc = per_cpu_sd_llc[this];
	if (sd_llc)
		sd_llc->avg_scan_cost = scan_cost;

	int target = this == prev ? prev : wake_affine(&domain, &task, this, prev, sync);
	int chosen = select_idle_sibling(&task, prev, target);

	answer += sprintf(answer, "%d %d %d %llu %lu %llu", target, chosen, task.recent_used_cpu,
		(unsigned long long)cpu_rq(this)->wake_avg_idle, cpu_rq(this)->wake_stamp,
		(unsigned long long)(sd_llc ? sd_llc->avg_scan_cost : 0));
	if (smt_active)
		sprintf(answer, " %d", test_idle_cores(target));
}
#endif

int main(int argc, char **argv)
{
	static char kernels[ANSWER_MAX];
	unsigned long differing = 0;
	const char *what = argc > 1 ? argv[1] : "decisions";
	int kind, threads = !strncmp(what, "threads-", 8);

	what += threads ? 8 : 0;
#ifdef FORM_7_3
	with_caches = !strncmp(what, "cache-", 6);
	what += with_caches ? 6 : 0;
#endif
	idle_task.cpus_ptr = &no_cpu;
	idle_task.on_rq = busy_task.on_rq = 1;
	while (scanf("%d", &kind) == 1) {
		case_number++;
		/* All cases are of eight CPUs. */
		read_threads(threads ? 8 : 0);
		if (!strcmp(what, "passes"))
			pass(kernels);
		else if (!strcmp(what, "newidle") || !strcmp(what, "idlers"))
			idlers(kind, kernels);
#ifndef FORM_7_3
		else if (!strcmp(what, "wakeups"))
			wakeup(kernels);
#endif
		else
			decision(kind, kernels);
		differing += compare(kernels, differing);
	}
	printf("%lu %s compared, %lu differ\n", case_number, what, differing);
	return differing != 0;
}
