// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for placement by energy: functions cut out of a kernel tree when the test runs (feec_extract.h, written
 * by the test program), around CPUs with given signals, clamps and limits. Nothing of the kernel is in this file.
 *
 * Reads cases, one a line, as `sched/fair/energy/states.rs` of the kernel crate draws them: the state, `=`, our
 * answer. Computes the kernel's answer as text in the same form, and compares. The tree's own code builds the
 * energy models from frequencies and powers.
 *
 *   shim placements      find_energy_efficient_cpu()
 *
 * Replaced, not compared here: PELT's ageing of the task (the signals are given).
 *
 * FORM_MARGIN: the tree is of before 6.0. FORM_6_1: before 6.8.
 */
#define MAX_T_AS_WRITTEN
#include "kernel_types.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CPUS_MAX = 64, CPUS = 8, STATES_MAX = 16, DOMAINS_MAX = 8 };

#define CONFIG_64BIT 1
#define CONFIG_SMP 1
#define CONFIG_UCLAMP_TASK 1
#define CONFIG_ENERGY_MODEL 1
#define CONFIG_HAVE_SCHED_AVG_IRQ 1
#define SCHED_CAPACITY_SCALE 1024L
#define BW_SHIFT 20
#define UTIL_AVG_UNCHANGED 0x80000000
#define GFP_KERNEL 0
#define ENOMEM 12
#define EINVAL 22
#define BIT(n) (1UL << (n))
#define __rcu
#define sched_feat(feature) 1

#undef min
#undef max
#define min(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ > b_ ? a_ : b_; })
#define clamp(value, low, high) min(max(value, low), high)
#define lsub_positive(pointer, value) do { \
	__typeof__(pointer) at_ = (pointer); \
	*at_ -= min_t(__typeof__(*at_), *at_, value); \
} while (0)
#define rcu_dereference(pointer) (pointer)
#define rcu_dereference_all(pointer) (pointer)
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define lockdep_assert(condition) ((void)0)
#define WARN_ONCE(condition, ...) ((void)0)
#define static_branch_likely(key) (*(key))
#define static_branch_unlikely(key) (*(key))
#define kcalloc(count, size, flags) calloc(count, size)
#define kfree(pointer) free(pointer)
#define div64_u64(a, b) ((u64)(a) / (u64)(b))
#define dev_dbg(device, ...) ((void)0)
/* An energy model that the kernel refuses is our fault. */
#define dev_err(device, ...) do { fprintf(stderr, __VA_ARGS__); exit(2); } while (0)

/* ---- masks ------------------------------------------------------------------------------------ */

struct cpumask { u64 bits; };

#define to_cpumask(words) ((struct cpumask *)(words))
#define cpumask_test_cpu(cpu, mask) ((int)((mask)->bits >> (cpu) & 1))
#define cpumask_first(mask) ((mask)->bits ? __builtin_ctzll((mask)->bits) : CPUS_MAX)
#define cpumask_empty(mask) (!(mask)->bits)
#define cpumask_and(to, a, b) (((to)->bits = (a)->bits & (b)->bits) != 0)
#define for_each_cpu(cpu, mask) \
	for ((cpu) = 0; (cpu) < CPUS_MAX; (cpu)++) \
		if (cpumask_test_cpu(cpu, mask))
#define for_each_cpu_and(cpu, a, b) \
	for ((cpu) = 0; (cpu) < CPUS_MAX; (cpu)++) \
		if (cpumask_test_cpu(cpu, a) && cpumask_test_cpu(cpu, b))

/* ---- tasks and run queues ---------------------------------------------------------------------- */

enum uclamp_id { UCLAMP_MIN, UCLAMP_MAX, UCLAMP_CNT };
enum cpu_util_type { FREQUENCY_UTIL, ENERGY_UTIL };
#define UCLAMP_FLAG_IDLE 1
static bool sched_uclamp_used;

#ifdef FORM_6_1
struct util_est { unsigned enqueued, ewma; };
#define ESTIMATE(avg) ((avg).util_est.enqueued)
#else
#define ESTIMATE(avg) ((avg).util_est)
#endif
struct sched_avg {
	unsigned long load_avg, runnable_avg, util_avg;
#ifdef FORM_6_1
	struct util_est util_est;
#else
	unsigned util_est;
#endif
};

struct task_struct {
	struct { struct sched_avg avg; } se;
	int cpu, queued;
	unsigned long clamps[UCLAMP_CNT];
	struct cpumask mask, *cpus_ptr;
};

struct cfs_rq { struct sched_avg avg; };
struct perf_domain;
struct root_domain { int overutilized; struct perf_domain *pd; };

struct rq {
	int cpu;
	struct root_domain *rd;
	struct cfs_rq cfs;
	struct sched_avg avg_rt, avg_dl, avg_irq;
	struct { u64 running_bw; } dl;
	struct { int runnable; } rt;
	struct { unsigned value; } uclamp[UCLAMP_CNT];
	unsigned uclamp_flags;
	unsigned long cpu_capacity, cpu_capacity_orig, hw_pressure, frequency_pressure;
};

static struct rq rqs[CPUS_MAX];
static int executing_cpu;
static struct task_struct *executing_task;

#define cpu_rq(number) (&rqs[number])
#define this_rq() cpu_rq(executing_cpu)
#define smp_processor_id() executing_cpu
#define current executing_task
#define task_cpu(task) ((task)->cpu)
#define task_on_rq_queued(task) ((task)->queued)
#define rt_rq_is_runnable(rt) ((rt)->runnable)
#define uclamp_eff_value(task, id) ((task)->clamps[id])
#define sync_entity_load_avg(se) ((void)0)
#define arch_scale_cpu_capacity(cpu) (cpu_rq(cpu)->cpu_capacity_orig)
#define hw_load_avg(rq) ((rq)->hw_pressure)
#define cpufreq_get_pressure(cpu) (cpu_rq(cpu)->frequency_pressure)
#define arch_scale_thermal_pressure(cpu) (cpu_rq(cpu)->frequency_pressure)

/* ---- domains ------------------------------------------------------------------------------------ */

struct sched_domain { struct sched_domain *parent; struct cpumask span; };

static struct sched_domain *sd_asym_cpucapacity;
static struct cpumask select_rq_mask, every_cpu = { ~0ULL };
#define this_cpu_ptr(variable) (variable)
#define this_cpu_cpumask_var_ptr(mask) (&(mask))
#define sched_domain_span(domain) (&(domain)->span)
#define cpu_online_mask (&every_cpu)

struct list_head { struct list_head *next, *prev; };
struct rcu_head { int unused; };
struct kref { int unused; };
struct device;
struct em_perf_domain;
struct perf_domain { struct em_perf_domain *em_pd; struct perf_domain *next; };
#define _is_cpu_device(device) true
#define trace_sched_compute_energy_tp(...) ((void)0)

/* The energies that were computed, each with where the task was: what the task adds is part of the answer. */
static struct { int dst; unsigned long energy; } computed[4 * DOMAINS_MAX];
static int computed_count;

static unsigned long note_energy(int dst, unsigned long energy)
{
	computed[computed_count].dst = dst;
	computed[computed_count++].energy = energy;
	return energy;
}

#include "feec_extract.h"
#include "../states/read.h"

/* ---- energy models ------------------------------------------------------------------------------ */

static unsigned long frequencies[STATES_MAX], powers[STATES_MAX];

/* The lowest state from a frequency on. */
static int active_power(struct device *device, unsigned long *power, unsigned long *frequency)
{
	int state = 0;

	while (frequencies[state] < *frequency)
		state++;
	*frequency = frequencies[state];
	*power = powers[state];
	return 0;
}

static struct em_perf_domain *read_model(void)
{
	struct em_perf_domain *model = calloc(1, sizeof(*model) + sizeof(struct cpumask));
	struct em_data_callback callback = { .active_power = active_power };
	int first = below(number(), CPUS_MAX), weight = below(number(), CPUS_MAX), inefficient = 0;
	unsigned long capacity = number();
	int skip = number(), states = below(number(), STATES_MAX);

	to_cpumask(model->cpus)->bits = ((1ULL << weight) - 1) << first;
	for (int cpu = first; cpu < first + weight; cpu++)
		cpu_rq(cpu)->cpu_capacity_orig = capacity;
	for (int state = 0; state < states; state++) {
		frequencies[state] = number();
		powers[state] = number();
#ifdef FORM_MARGIN
		/* Milliwatts. */
		powers[state] /= 1000;
#endif
	}
	frequencies[states] = ULONG_MAX;
	model->nr_perf_states = states;
#ifdef FORM_6_1
	em_create_perf_table(NULL, model, states, &callback, 0);
	struct em_perf_state *table = model->table;
#else
	model->em_table = calloc(1, sizeof(*model->em_table) + states * sizeof(struct em_perf_state));
	struct em_perf_state *table = model->em_table->state;
	em_create_perf_table(NULL, model, table, &callback, 0);
#endif
#ifdef HAS_LIMITS
	model->max_perf_state = states - 1;
#endif
	for (int state = 0; state < states; state++)
		inefficient |= !!(table[state].flags & EM_PERF_STATE_INEFFICIENT);
	if (skip && !inefficient) {
		fprintf(stderr, "case %lu: no state is inefficient\n", case_number);
		exit(2);
	}
	model->flags = skip ? EM_PERF_DOMAIN_SKIP_INEFFICIENCIES : 0;
	return model;
}

static void free_model(struct em_perf_domain *model)
{
#ifdef FORM_6_1
	free(model->table);
#else
	free(model->em_table);
#endif
	free(model);
}

/* ---- cases -------------------------------------------------------------------------------------- */

static void read_cpu(struct rq *rq)
{
	rq->cfs.avg.util_avg = number();
	ESTIMATE(rq->cfs.avg) = number();
	rq->cfs.avg.runnable_avg = number();
	rq->avg_rt.util_avg = number();
	rq->avg_dl.util_avg = number();
	rq->avg_irq.util_avg = number();
	rq->dl.running_bw = number();
	rq->rt.runnable = number();
	rq->uclamp[UCLAMP_MIN].value = number();
	rq->uclamp[UCLAMP_MAX].value = number();
	rq->uclamp_flags = number() ? UCLAMP_FLAG_IDLE : 0;
	rq->hw_pressure = number();
	rq->frequency_pressure = number();
	rq->cpu_capacity = number();
}

static void read_task(struct task_struct *task)
{
	task->cpu = below(number(), CPUS_MAX);
	task->queued = number();
	executing_task = number() ? task : NULL;
	task->mask.bits = number();
	task->cpus_ptr = &task->mask;
	task->se.avg.util_avg = number();
	ESTIMATE(task->se.avg) = number();
	unsigned ewma = number();
#ifdef FORM_6_1
	task->se.avg.util_est.ewma = ewma;
#endif
	task->se.avg.runnable_avg = number();
	task->clamps[UCLAMP_MIN] = number();
	task->clamps[UCLAMP_MAX] = number();
}

static void placement(int clamped, char *answer)
{
	static struct sched_domain chain[DOMAINS_MAX];
	static struct perf_domain pds[DOMAINS_MAX];
	struct root_domain rd = { 0, pds };
	struct task_struct task = { 0 };

	sched_uclamp_used = clamped;
	executing_cpu = below(number(), CPUS_MAX);
	int prev = below(number(), CPUS_MAX);
	int levels = below(number(), DOMAINS_MAX);
	for (int level = 0; level < levels; level++) {
		chain[level].span.bits = number();
		chain[level].parent = level + 1 < levels ? &chain[level + 1] : NULL;
	}
	sd_asym_cpucapacity = levels ? chain : NULL;
	memset(rqs, 0, sizeof(rqs));
	int count = below(number(), DOMAINS_MAX);
	for (int at = 0; at < count; at++) {
		pds[at].em_pd = read_model();
		pds[at].next = at + 1 < count ? &pds[at + 1] : NULL;
	}
	for (int cpu = 0; cpu < CPUS; cpu++) {
		cpu_rq(cpu)->cpu = cpu;
		cpu_rq(cpu)->rd = &rd;
		read_cpu(cpu_rq(cpu));
	}
	read_task(&task);
	computed_count = 0;

	int chosen = find_energy_efficient_cpu(&task, prev), domains = 0;
	unsigned long base = 0;

	for (int at = 0; at < computed_count; at++)
		domains += computed[at].dst < 0;
	answer += sprintf(answer, "%d %d", chosen, domains);
	for (int at = 0; at < computed_count; at++) {
		unsigned long energy = computed[at].energy;

		if (computed[at].dst < 0)
			base = energy;
		else if (energy >= base)
			answer += sprintf(answer, " %d+%lu", computed[at].dst, energy - base);
	}
	for (int at = 0; at < count; at++)
		free_model(pds[at].em_pd);
}

int main(void)
{
	static char kernels[ANSWER_MAX];
	unsigned long differing = 0;
	int clamped;

	while (scanf("%d", &clamped) == 1) {
		case_number++;
		placement(clamped, kernels);
		differing += compare(kernels, differing);
	}
	printf("%lu placements compared, %lu differ\n", case_number, differing);
	return differing != 0;
}
