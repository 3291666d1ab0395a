// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for sum aggregation: a tree with the posted series, its pelt.c and pelt.h as a whole and functions cut out of
 * its core.c, fair.c, sched.h and syscalls.c when the test runs (uclamp_extract.h, written by the test
 * program), around three CPUs, six tasks and four groups. Nothing of the kernel is in this file.
 *
 * What the series adds in the middle of enqueue_task_fair() and dequeue_entities() is cut out as functions of their own,
 * bias_joins() and bias_leaves(); the order of the calls around them is this file's.
 */
#include "world.h"

#undef SCHED_CAPACITY_SHIFT
#undef SCHED_CAPACITY_SCALE
#include "pelt_idioms.h"

#define CONFIG_HAVE_SCHED_AVG_IRQ 1
#define CONFIG_FAIR_GROUP_SCHED 1
#define UINT_MAX (~0u)

#include "uclamp_structs.h"

struct sched_avg {
	u64 last_update_time, load_sum, runnable_sum;
	u32 util_sum, period_contrib;
	unsigned long load_avg, runnable_avg;
	unsigned int util_avg;
	int util_avg_bias;
	unsigned int util_est, util_est_uclamp;
};
struct load_weight { unsigned long weight; };
struct cfs_rq;
struct sched_entity {
	struct load_weight load;
	unsigned int on_rq;
	long runnable;
	bool is_task;
	struct sched_entity *parent;
	struct cfs_rq *cfs_rq;
	struct sched_avg avg;
};
struct cfs_rq {
	struct load_weight load;
	unsigned int h_nr_queued, h_nr_delayed;
	struct sched_avg avg;
	struct sched_entity *curr;
	u64 last_update_time_copy;
	int throttle_count;
};
struct task_group {
	struct cgroup_subsys_state css;
	struct task_group *parent;
	struct uclamp_se uclamp_req[UCLAMP_CNT], uclamp[UCLAMP_CNT];
	unsigned int uclamp_pct[UCLAMP_CNT];
};
struct sched_class { int unused; };
static const struct sched_class rt_sched_class, dl_sched_class;
struct task_struct {
	struct sched_entity se;
	const struct sched_class *sched_class;
	struct uclamp_se uclamp_req[UCLAMP_CNT], uclamp[UCLAMP_CNT];
	struct task_group *group;
	int cpu, queued, migrating, prio, pid;
	bool sched_reset_on_fork, idle;
};
struct rq {
	int cpu;
	u64 clock, clock_task, clock_pelt, lost_idle_time, clock_idle, clock_pelt_idle;
	u64 max_uclamp_factor;
	int max_uclamp_factor_pid;
	struct cfs_rq cfs;
	struct { unsigned int nr; } rt;
	struct { u64 running_bw; } dl;
	struct sched_avg avg_rt, avg_dl, avg_irq;
	struct task_struct *curr;
};
struct sched_attr { u64 sched_flags; unsigned int sched_util_min, sched_util_max; };

static struct rq runqueues[CPUS_MAX];
static struct task_group groups[GROUPS_MAX];
static struct task_struct tasks[TASKS_MAX], init_task;
/* A group's entity on a CPU, and the queue in it. */
static struct sched_entity group_se[GROUPS_MAX][CPUS_MAX];
static struct cfs_rq group_cfs[GROUPS_MAX][CPUS_MAX];
static unsigned long capacities[CPUS_MAX], capacity_left[CPUS_MAX];

#define root_task_group groups[0]
#define task_group(p) ((p)->group)
#define task_group_is_autogroup(group) false
#define rt_task(p) ((p)->prio < MAX_RT_PRIO)
#define is_idle_task(p) ((p)->idle)
#define cpu_rq(number) (&runqueues[number])
#define cpu_of(rq) ((rq)->cpu)
#define task_rq(p) cpu_rq((p)->cpu)
#define task_cpu(p) ((p)->cpu)
#define task_on_rq_queued(p) ((p)->queued)
#define task_on_rq_migrating(p) ((p)->migrating)
#define task_of(entity) ((struct task_struct *)(entity))
#define entity_is_task(se) ((se)->is_task)
#define for_each_sched_entity(se) for (; se; se = (se)->parent)
#define cfs_rq_of(se) ((se)->cfs_rq)
/* Only asked of the queue of a root. */
#define rq_of(queue) ((struct rq *)((char *)(queue) - offsetof(struct rq, cfs)))
#define se_weight(se) ((se)->load.weight)
#define se_runnable(se) ((se)->runnable)
#define scale_load_down(weight) (weight)
#define current ((struct task_struct *)1)
#define arch_scale_cpu_capacity(cpu) capacities[cpu]
#define arch_scale_freq_capacity(cpu) SCHED_CAPACITY_SCALE
#define capacity_of(cpu) capacity_left[cpu]
#define sched_energy_enabled() true
#define sched_feat(feature) true
#define rt_rq_is_runnable(rt_rq) ((rt_rq)->nr != 0)
#define sched_clock_cpu(cpu) 0ULL
#define arch_scale_hw_pressure(cpu) 0UL
#define uclamp_sync_util_min_rt_default() ((void)0)
static u64 rq_clock(struct rq *rq) { return rq->clock; }
static u64 rq_clock_task(struct rq *rq) { return rq->clock_task; }

/* The governor is told. */
static unsigned int told;
#define cpufreq_update_util(rq, flags) ((void)told++)

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

#include "uclamp_before_pelt.h"
#include "pelt.h"
#include "pelt.c"
#include "uclamp_extract.h"

/* ---- operations --------------------------------------------------------------------------------- */

static void out_util(const struct sched_avg *sa)
{
	out(sa->util_avg);
	out(sa->util_sum);
}

static void report(word result, int cpu)
{
	int i;

	out(result);
	for (i = 0; i < CPUS_MAX; i++) {
		struct rq *rq = &runqueues[i];

		out_util(&rq->cfs.avg);
		out(rq->cfs.avg.util_avg_bias);
		out(rq->cfs.avg.util_est);
		out(rq->cfs.avg.util_est_uclamp);
		out(rq->max_uclamp_factor);
		out(rq->max_uclamp_factor_pid);
	}
	for (i = 0; i < TASKS_MAX; i++) {
		struct task_struct *p = &tasks[i];

		out_util(&p->se.avg);
		out(p->se.avg.util_avg_bias);
		out(p->se.avg.util_est);
		out(p->se.avg.util_est_uclamp);
		out(uclamp_eff_value(p, UCLAMP_MIN));
		out(uclamp_eff_value(p, UCLAMP_MAX));
	}
	for (i = 1; i < GROUPS_MAX; i++) {
		out_util(&group_se[i][cpu].avg);
		out_util(&group_cfs[i][cpu].avg);
	}
}

static struct cfs_rq *queue_of(int group, int cpu)
{
	return group ? &group_cfs[group][cpu] : &runqueues[cpu].cfs;
}

static void set_task_rq(struct task_struct *p, int cpu)
{
	int group = p->group->css.number;

	p->cpu = cpu;
	p->se.cfs_rq = queue_of(group, cpu);
	p->se.parent = group ? &group_se[group][cpu] : NULL;
}

static void begin(void)
{
	static const int parents[GROUPS_MAX] = { -1, 0, 1, 0 };
	int i, cpu;

	memset(runqueues, 0, sizeof(runqueues));
	memset(tasks, 0, sizeof(tasks));
	memset(groups, 0, sizeof(groups));
	memset(group_se, 0, sizeof(group_se));
	memset(group_cfs, 0, sizeof(group_cfs));
	memcpy(group_parent, parents, sizeof(parents));
	sched_uclamp_used = false;
	for (cpu = 0; cpu < CPUS_MAX; cpu++) {
		runqueues[cpu].cpu = cpu;
		runqueues[cpu].max_uclamp_factor_pid = -1;
		runqueues[cpu].clock_pelt = 1 << 20;
		capacities[cpu] = capacity_left[cpu] = SCHED_CAPACITY_SCALE;
		for (i = 0; i < GROUPS_MAX; i++) {
			queue_of(i, cpu)->avg.last_update_time = 1 << 20;
			if (i == 0)
				continue;
			group_se[i][cpu].avg.last_update_time = 1 << 20;
			group_se[i][cpu].cfs_rq = queue_of(parents[i], cpu);
			group_se[i][cpu].parent = parents[i] ? &group_se[parents[i]][cpu] : NULL;
		}
	}
}

static void boot(const word *arg)
{
	struct ctl_table written = {
		.value = { &sysctl_sched_uclamp_util_min_rt_default, &sysctl_sched_uclamp_util_min,
			   &sysctl_sched_uclamp_util_max },
		.written = { SCHED_CAPACITY_SCALE, arg[1], arg[2] },
	};
	int i, id;

	for (i = 0; i < GROUPS_MAX; i++)
		groups[i].css.number = i;
	sysctl_sched_uclamp_util_min = sysctl_sched_uclamp_util_max = SCHED_CAPACITY_SCALE;
	sysctl_sched_uclamp_util_min_rt_default = SCHED_CAPACITY_SCALE;
	init_uclamp();
	sysctl_sched_uclamp_handler(&written, 1, NULL, NULL, NULL);
	sched_uclamp_used |= arg[0];
	for (i = 1; i < GROUPS_MAX; i++) {
		groups[i].parent = &groups[group_parent[i]];
		alloc_uclamp_sched_group(&groups[i], groups[i].parent);
		cpu_util_update_eff(&groups[i].css);
	}
	for (i = 0; i < TASKS_MAX; i++) {
		tasks[i].se.is_task = true;
		tasks[i].se.load.weight = 1024;
		tasks[i].se.avg.last_update_time = 1 << 20;
		tasks[i].group = &groups[0];
		tasks[i].prio = 120;
		tasks[i].pid = i;
		for (id = 0; id < UCLAMP_CNT; id++)
			uclamp_se_set(&tasks[i].uclamp_req[id], uclamp_none(id), false);
		set_task_rq(&tasks[i], 0);
		uclamp_fork(&tasks[i]);
	}
}

/* Enqueue of one that is queued nowhere, or wakeup of one whose dequeue was delayed. */
static void enqueue(struct task_struct *p, bool wakes)
{
	struct rq *rq = task_rq(p);

	util_est_enqueue(&rq->cfs, p);
	p->queued = true;
	p->se.runnable = 1;
	if (wakes)
		return;
	p->se.on_rq = 1;
	bias_joins(rq, p);
}

enum { MOVES, SLEEPS, DELAYS, ENDS, CHANGES };

static void dequeue(struct task_struct *p, int how)
{
	struct rq *rq = task_rq(p);

	if (how != ENDS) {
		util_est_dequeue(&rq->cfs, p);
		util_est_update(&rq->cfs, p, how == SLEEPS || how == DELAYS);
	}
	if (how == DELAYS) {
		p->se.runnable = 0;
		return;
	}
	p->migrating = how == MOVES;
	p->se.on_rq = 0;
	p->se.runnable = 0;
	bias_leaves(rq, p);
	p->queued = p->migrating = false;
}

static word set_attributes(struct task_struct *p, const word *arg)
{
	struct sched_attr attr = { arg[1], (unsigned int)arg[2], (unsigned int)arg[3] };
	bool queued = p->queued;

	if (uclamp_validate(p, &attr))
		return 0;
	if (queued)
		dequeue(p, CHANGES);
	p->prio = 120 + (int)arg[4];
	p->se.load.weight = sched_prio_to_weight[p->prio - MAX_RT_PRIO];
	__setscheduler_uclamp(p, &attr);
	if (queued)
		enqueue(p, false);
	return 1;
}

/* Time passes for a task and its queue. */
static void age(struct task_struct *p, u64 delta, bool runs)
{
	struct rq *rq = task_rq(p);
	struct cfs_rq *cfs = p->se.cfs_rq;

	rq->clock_pelt += delta;
	cfs->curr = runs ? &p->se : NULL;
	__update_load_avg_se(rq->clock_pelt, cfs, &p->se);
	__update_load_avg_cfs_rq(rq->clock_pelt, cfs);
	cfs->curr = NULL;
}

static void ask(struct task_struct *p, int cpu)
{
	struct cpumask mask = { cpu };
	struct energy_env env = { -1UL };
	unsigned long util;

	out(task_fits_cpu(p, cpu));
	out(util_fits_cpu(task_util_est(p), task_util_est_uclamp(p), cpu));
	out(cpu_overutilized(cpu));
	out(task_util_est_uclamp(p));
	out(cpu_util_uclamp(cpu, NULL, -1, 0));
	out(cpu_util_uclamp(cpu, NULL, -1, 1));
	out(cpu_util_uclamp(cpu, p, cpu, 0));
	out(cpu_util_uclamp(cpu, p, cpu, 1));
	out(cpu_util_uclamp(cpu, p, -1, 0));
	out(cpu_util_uclamp(cpu, p, -1, 1));
	util = cpu_util(cpu, p, cpu, 0);
	out(util_fits_cpu(util, uclamp_is_used() ? cpu_util_uclamp(cpu, p, cpu, 0) : util, cpu));
	out(eenv_pd_max_util(&env, &mask, p, cpu));
	out(eenv_pd_max_util(&env, &mask, p, -1));
}

/* Averages with sums that fit them. */
static void set_averages(struct sched_avg *sa, unsigned int util, unsigned long runnable)
{
	u32 divider = get_pelt_divider(sa);

	sa->util_avg = util;
	sa->util_sum = util * divider;
	sa->runnable_avg = runnable;
	sa->runnable_sum = (u64)runnable * divider;
}

static void operate(word op, const word *arg)
{
	struct task_struct *p = &tasks[arg[0] % TASKS_MAX];
	struct kernfs_open_file file;
	struct sched_avg *sa;
	word result = 0;
	int cpu = p->cpu;

	switch (op) {
	case OP_FIRST + 0:
		boot(arg);
		cpu = 0;
		break;
	case OP_FIRST + 1: /* task, CPU, whether it is a delayed one that wakes */
		cpu = arg[1];
		if (!arg[2]) {
			set_task_rq(p, cpu);
			p->se.avg.last_update_time = p->se.cfs_rq->avg.last_update_time;
		}
		told = 0;
		enqueue(p, arg[2]);
		result = told;
		break;
	case OP_FIRST + 2: /* task, why */
		dequeue(p, arg[1]);
		break;
	case OP_FIRST + 3: /* task, flags, minimum, maximum, nice value */
		result = set_attributes(p, arg);
		break;
	case OP_FIRST + 4: /* task, group */
		result = p->queued;
		if (result)
			dequeue(p, CHANGES);
		p->group = &groups[arg[1]];
		set_task_rq(p, p->cpu);
		p->se.avg.last_update_time = p->se.cfs_rq->avg.last_update_time;
		uclamp_update_active_nolock(p);
		if (result)
			enqueue(p, false);
		break;
	case OP_FIRST + 5: /* group, clamp, hundredths of a percent */
		file.css = &groups[arg[0]].css;
		written_percent = arg[2];
		cpu_uclamp_write(&file, arg[2] == 10000 ? "max" : "percent", 1, 0, arg[1]);
		cpu = 0;
		break;
	case OP_FIRST + 6: /* parent, child */
		cpu = 0;
		result = tasks[arg[1]].pid;
		tasks[arg[1]] = *p;
		p = &tasks[arg[1]];
		p->pid = result;
		p->queued = p->se.on_rq = p->se.runnable = 0;
		memset(&p->se.avg, 0, sizeof(p->se.avg));
		p->se.avg.last_update_time = p->se.cfs_rq->avg.last_update_time;
		uclamp_fork(p);
		break;
	case OP_FIRST + 7: /* task, time, whether it runs */
		age(p, arg[1], arg[2]);
		break;
	case OP_FIRST + 8: /* a sleeping task, as old as its queue */
		__update_load_avg_blocked_se(p->se.cfs_rq->avg.last_update_time, &p->se);
		break;
	case OP_FIRST + 9: /* task: utilisation, runnable, estimate */
		set_averages(&p->se.avg, arg[1], arg[2]);
		p->se.avg.util_est = arg[3];
		break;
	case OP_FIRST + 10: /* CPU, group: utilisation, runnable of the queue and of the group's entity */
		cpu = arg[0];
		sa = &queue_of(arg[1], cpu)->avg;
		set_averages(sa, arg[2], arg[3]);
		if (arg[1])
			set_averages(&group_se[arg[1]][cpu].avg, arg[2], arg[3]);
		break;
	case OP_FIRST + 11: /* CPU: its capacity, what is left of it, RT tasks, bandwidth, interrupts */
		cpu = arg[0];
		capacities[cpu] = arg[1];
		capacity_left[cpu] = arg[2];
		runqueues[cpu].rt.nr = arg[3];
		runqueues[cpu].dl.running_bw = arg[4];
		runqueues[cpu].avg_irq.util_avg = arg[5];
		break;
	case OP_FIRST + 12: /* task, CPU */
		ask(p, arg[1]);
		return;
	default:
		fprintf(stderr, "unknown operation %llu\n", op);
		exit(2);
	}
	report(result, cpu);
}

int main(void)
{
	return serve(begin, operate);
}
