// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for max aggregation: a kernel tree's functions of clamps (core.c, sched.h, fair.c, rt.c and, since 6.12,
 * syscalls.c), cut out when the test runs (uclamp_extract.h, written by the test program), around three CPUs, six
 * tasks and four groups. Nothing of the kernel is in this file.
 *
 * The classes are empty: theirs is to say that a task's dequeue is delayed, and to see what a governor that they
 * told would see of the clamps.
 *
 * FORM_6_1: the tree is of before 6.8.
 */
#include "world.h"

#ifdef FORM_6_1
struct util_est { unsigned int enqueued, ewma; };
#define UTIL_AVG_UNCHANGED 0x80000000
#define UTIL_EST(avg) ((avg).util_est.enqueued)
#else
#define UTIL_AVG_UNCHANGED 0x80000000
#define UTIL_EST(avg) ((avg).util_est)
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
enum cpu_util_type { FREQUENCY_UTIL, ENERGY_UTIL };

/* Sizes are of the most buckets; how many there are is the sequence's. */
#define UCLAMP_BUCKETS BUCKETS_MAX
#include "uclamp_structs.h"
#undef UCLAMP_BUCKETS
static unsigned int bucket_count;
#define UCLAMP_BUCKETS bucket_count

#define UCLAMP_FLAG_IDLE 1
struct rq {
	int cpu;
	struct uclamp_rq uclamp[UCLAMP_CNT];
	unsigned int uclamp_flags;
	struct cfs_rq cfs;
	struct { unsigned int nr; } rt;
	struct { u64 running_bw; } dl;
	struct sched_avg avg_rt, avg_dl, avg_irq;
};
struct task_struct;
struct sched_class {
	int uclamp_enabled;
	void (*enqueue_task)(struct rq *rq, struct task_struct *p, int flags);
	bool (*dequeue_task)(struct rq *rq, struct task_struct *p, int flags);
};
struct task_group {
	struct cgroup_subsys_state css;
	struct task_group *parent;
	struct uclamp_se uclamp_req[UCLAMP_CNT], uclamp[UCLAMP_CNT];
	unsigned int uclamp_pct[UCLAMP_CNT];
};
struct task_struct {
	const struct sched_class *sched_class;
	struct { struct sched_avg avg; bool sched_delayed; } se;
	struct uclamp_se uclamp_req[UCLAMP_CNT], uclamp[UCLAMP_CNT];
	struct task_group *group;
	int cpu, queued, prio;
	bool sched_reset_on_fork;
};
struct sched_attr { u64 sched_flags; unsigned int sched_util_min, sched_util_max; };

static struct rq runqueues[CPUS_MAX];
static struct task_group groups[GROUPS_MAX];
static struct task_struct tasks[TASKS_MAX], init_task;
static unsigned long capacities[CPUS_MAX], capacity_left[CPUS_MAX], pressure[CPUS_MAX];

#define root_task_group groups[0]
#define task_group(p) ((p)->group)
#define task_group_is_autogroup(group) false
#define rt_task(p) ((p)->prio < MAX_RT_PRIO)
#define cpu_rq(number) (&runqueues[number])
#define cpu_of(rq) ((rq)->cpu)
#define task_rq(p) cpu_rq((p)->cpu)
#define task_cpu(p) ((p)->cpu)
#define task_on_rq_queued(p) ((p)->queued)
#define current ((struct task_struct *)1)
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < CPUS_MAX; (cpu)++)
#define arch_scale_cpu_capacity(cpu) capacities[cpu]
#define capacity_orig_of(cpu) capacities[cpu]
#define capacity_of(cpu) capacity_left[cpu]
#define hw_load_avg(rq) 0UL
#define cpufreq_get_pressure(cpu) pressure[cpu]
#define arch_scale_thermal_pressure(cpu) pressure[cpu]
#define sched_energy_enabled() true
#define sched_asym_cpucap_active() true
#define sched_feat(feature) true
#define rt_rq_is_runnable(rt_rq) ((rt_rq)->nr != 0)

/* Around the class's enqueue and dequeue. */
#define update_rq_clock(rq) ((void)0)
#define psi_enqueue(...) ((void)0)
#define psi_dequeue(...) ((void)0)
#define sched_info_enqueue(rq, p) ((void)0)
#define sched_info_dequeue(rq, p) ((void)0)
#define sched_core_enabled(rq) false
#define sched_core_enqueue(rq, p) ((void)0)
#define sched_core_dequeue(rq, p, flags) ((void)0)
/* Nobody runs while a sysctl is written. */
#define uclamp_sync_util_min_rt_default() ((void)0)

static struct task_struct *css_task_iter_next(struct css_task_iter *it)
{
	while (it->next < TASKS_MAX) {
		struct task_struct *p = &tasks[it->next++];

		if (p->group == &groups[it->group])
			return p;
	}
	return NULL;
}

/* One CPU at a time is asked about. */
struct cpumask { int cpu; };
#define for_each_cpu(at, mask) for ((at) = (mask)->cpu; (at) == (mask)->cpu; (at) = -1)
struct energy_env { unsigned long cpu_cap; };

#ifndef FORM_6_1
/* Its definition is inline, and this makes it one of its own. */
bool dequeue_task(struct rq *rq, struct task_struct *p, int flags);
#endif
#include "uclamp_extract.h"

/* ---- classes ------------------------------------------------------------------------------------ */

static unsigned long seen[UCLAMP_CNT];
static bool delays;

static void enqueue_class(struct rq *rq, struct task_struct *p, int flags)
{
	seen[UCLAMP_MIN] = uclamp_rq_get(rq, UCLAMP_MIN);
	seen[UCLAMP_MAX] = uclamp_rq_get(rq, UCLAMP_MAX);
	if (flags & ENQUEUE_DELAYED)
		p->se.sched_delayed = false;
	p->queued = true;
}

static bool dequeue_class(struct rq *rq, struct task_struct *p, int flags)
{
	if (delays)
		p->se.sched_delayed = true;
	else
		p->queued = false;
	return !delays;
}

static const struct sched_class fair = { 1, enqueue_class, dequeue_class };
static const struct sched_class rt = { 1, enqueue_class, dequeue_class };

/* ---- operations --------------------------------------------------------------------------------- */

static void report(word result, struct rq *rq)
{
	unsigned int id, i;

	out(result);
	out(sched_uclamp_used);
	for (i = 0; i < CPUS_MAX; i++) {
		out(runqueues[i].uclamp[UCLAMP_MIN].value);
		out(runqueues[i].uclamp[UCLAMP_MAX].value);
		out(runqueues[i].uclamp_flags);
	}
	for (i = 0; i < TASKS_MAX; i++) {
		struct task_struct *p = &tasks[i];

		for (id = 0; id < UCLAMP_CNT; id++) {
			out(p->uclamp_req[id].value);
			out(p->uclamp_req[id].user_defined);
			out(p->uclamp[id].active);
			out(uclamp_eff_value(p, id));
		}
	}
	for (i = 0; i < bucket_count; i++) {
		out(rq->uclamp[UCLAMP_MIN].bucket[i].value << 8 | rq->uclamp[UCLAMP_MIN].bucket[i].tasks);
		out(rq->uclamp[UCLAMP_MAX].bucket[i].value << 8 | rq->uclamp[UCLAMP_MAX].bucket[i].tasks);
	}
}

static void begin(void)
{
	int i;

	memset(runqueues, 0, sizeof(runqueues));
	memset(tasks, 0, sizeof(tasks));
	memset(groups, 0, sizeof(groups));
	sched_uclamp_used = false;
	bucket_count = 5;
	for (i = 0; i < CPUS_MAX; i++) {
		runqueues[i].cpu = i;
		capacities[i] = capacity_left[i] = SCHED_CAPACITY_SCALE;
		pressure[i] = 0;
	}
}

static void boot(const word *arg)
{
	static const int parents[GROUPS_MAX] = { -1, 0, 1, 0 };
	struct ctl_table written = {
		.value = { &sysctl_sched_uclamp_util_min_rt_default, &sysctl_sched_uclamp_util_min,
			   &sysctl_sched_uclamp_util_max },
		.written = { arg[2], arg[3], arg[4] },
	};
	int i, id;

	bucket_count = arg[0];
	memcpy(group_parent, parents, sizeof(parents));
	for (i = 0; i < GROUPS_MAX; i++)
		groups[i].css.number = i;
	sysctl_sched_uclamp_util_min = sysctl_sched_uclamp_util_max = SCHED_CAPACITY_SCALE;
	/* Another default of RT tasks would turn the key on, too; here the sequence says whether it is. */
	sysctl_sched_uclamp_util_min_rt_default = arg[2];
	init_uclamp();
	sysctl_sched_uclamp_handler(&written, 1, NULL, NULL, NULL);
	sched_uclamp_used |= arg[1];
	for (i = 1; i < GROUPS_MAX; i++) {
		groups[i].parent = &groups[parents[i]];
		alloc_uclamp_sched_group(&groups[i], groups[i].parent);
		cpu_util_update_eff(&groups[i].css);
	}
	for (i = 0; i < TASKS_MAX; i++) {
		tasks[i].sched_class = &fair;
		tasks[i].group = &groups[0];
		tasks[i].prio = 120;
		for (id = 0; id < UCLAMP_CNT; id++)
			uclamp_se_set(&tasks[i].uclamp_req[id], uclamp_none(id), false);
	}
}

static word set_attributes(struct task_struct *p, const word *arg)
{
	struct sched_attr attr = { arg[2], (unsigned int)arg[3], (unsigned int)arg[4] };
	bool queued = p->queued;

	if (attr.sched_flags & SCHED_FLAG_UTIL_CLAMP && uclamp_validate(p, &attr))
		return 0;
	if (queued)
		dequeue_task(task_rq(p), p, DEQUEUE_SAVE | DEQUEUE_NOCLOCK);
	p->sched_class = arg[1] ? &rt : &fair;
	p->prio = arg[1] ? 49 : 120;
	__setscheduler_uclamp(p, &attr);
	if (queued)
		enqueue_task(task_rq(p), p, ENQUEUE_RESTORE | ENQUEUE_NOCLOCK);
	return 1;
}

static void fork_task(struct task_struct *parent, struct task_struct *p)
{
	*p = *parent;
	p->queued = 0;
	p->se.sched_delayed = false;
	uclamp_fork(p);
	uclamp_post_fork(p);
}

static void write_group(struct task_group *group, unsigned int id, word percent)
{
	struct kernfs_open_file file = { &group->css };

	written_percent = percent;
	cpu_uclamp_write(&file, percent == 10000 ? "max" : "percent", 1, 0, id);
}

/* What is made of the clamps, for a task and a CPU. */
static void ask(struct task_struct *p, struct rq *rq, unsigned long util)
{
	struct cpumask mask = { rq->cpu };
	struct energy_env env = { -1UL };
	unsigned long with, without;

	out(util_fits_cpu(util, uclamp_eff_value(p, UCLAMP_MIN), uclamp_eff_value(p, UCLAMP_MAX), rq->cpu));
	out(util_fits_cpu(util, uclamp_rq_get(rq, UCLAMP_MIN), uclamp_rq_get(rq, UCLAMP_MAX), rq->cpu));
	out(task_fits_cpu(p, rq->cpu));
	out(cpu_overutilized(rq->cpu));
	out(uclamp_rq_is_capped(rq));
	out(rt_task_fits_capacity(p, rq->cpu));
	with = eenv_pd_max_util(&env, &mask, p, rq->cpu);
	without = eenv_pd_max_util(&env, &mask, p, -1);
#ifdef FORM_6_1
	out(map_util_perf(with));
	out(map_util_perf(without));
	out(uclamp_rq_util_with(rq, util, NULL));
	out(uclamp_rq_util_with(rq, util, p));
#else
	out(with);
	out(without);
#endif
}

static void operate(word op, const word *arg)
{
	struct task_struct *p = &tasks[arg[0] % TASKS_MAX];
	struct rq *rq = &runqueues[0];
	word result = 0;

	switch (op) {
	case OP_FIRST + 0:
		boot(arg);
		break;
	case OP_FIRST + 1: /* task, CPU, whether it is a delayed one that wakes */
		p->cpu = arg[1];
		rq = task_rq(p);
		enqueue_task(rq, p, ENQUEUE_NOCLOCK | (arg[2] ? ENQUEUE_DELAYED : 0));
		result = seen[UCLAMP_MIN] << 16 | seen[UCLAMP_MAX];
		break;
	case OP_FIRST + 2: /* task, whether the class delays its dequeue */
		rq = task_rq(p);
		delays = arg[1];
		dequeue_task(rq, p, DEQUEUE_NOCLOCK);
		delays = false;
		break;
	case OP_FIRST + 3: /* task, class, flags, minimum, maximum */
		rq = task_rq(p);
		result = set_attributes(p, arg);
		break;
	case OP_FIRST + 4: /* task, group */
		rq = task_rq(p);
		result = p->queued;
		if (result)
			dequeue_task(rq, p, DEQUEUE_SAVE | DEQUEUE_NOCLOCK);
		p->group = &groups[arg[1]];
		if (result)
			enqueue_task(rq, p, ENQUEUE_RESTORE | ENQUEUE_NOCLOCK);
		break;
	case OP_FIRST + 5: /* group, clamp, hundredths of a percent */
		write_group(&groups[arg[0]], arg[1], arg[2]);
		break;
	case OP_FIRST + 6: /* parent, child */
		fork_task(p, &tasks[arg[1]]);
		break;
	case OP_FIRST + 7: /* CPU: utilisation, estimate, RT, DEADLINE, interrupts */
		rq = &runqueues[arg[0]];
		rq->cfs.avg.util_avg = arg[1];
		UTIL_EST(rq->cfs.avg) = arg[2];
		rq->avg_rt.util_avg = arg[3];
		rq->avg_dl.util_avg = arg[4];
		rq->avg_irq.util_avg = arg[5];
		break;
	case OP_FIRST + 8: /* CPU: its capacity, what is left of it, what a slower clock takes, RT tasks, bandwidth */
		rq = &runqueues[arg[0]];
		capacities[arg[0]] = arg[1];
		capacity_left[arg[0]] = arg[2];
		pressure[arg[0]] = arg[3];
		rq->rt.nr = arg[4];
		rq->dl.running_bw = arg[5];
		break;
	case OP_FIRST + 9: /* task: utilisation, estimate */
		p->se.avg.util_avg = arg[1];
		UTIL_EST(p->se.avg) = arg[2];
		break;
	case OP_FIRST + 10: /* task, CPU, utilisation */
		rq = &runqueues[arg[1]];
		ask(p, rq, arg[2]);
		return;
	default:
		fprintf(stderr, "unknown operation %llu\n", op);
		exit(2);
	}
	report(result, rq);
}

int main(void)
{
	return serve(begin, operate);
}
