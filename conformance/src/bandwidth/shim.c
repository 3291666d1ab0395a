// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for cpu.max on a machine: the functions of a kernel tree's own fair.c and core.c that charge, throttle, hand out and
 * unthrottle, and those of the fair class that queue, pick and switch, cut out when the test runs, around a few CPUs, a tree of
 * groups with limits, and tasks.
 *
 * Replaced: locks, PELT (its clock is the CPU's), shares (each group weighs the same everywhere), the order of the list of leaf
 * queues. A timer fires when the test program says; an interrupt to another CPU is a list that the test program empties.
 *
 * KERNEL_7_3, KERNEL_6_18: the tree is of that release, and tasks leave a throttled queue one by one. KERNEL_6_1: it is of 6.1,
 * with CFS on all levels, and a timer's CPU unthrottles the queues of all CPUs.
 */
#define WITH_BANDWIDTH 1
#define WARNING_ENDS_SEQUENCE 1
#define MAX_T_AS_WRITTEN
#include "kernel_types.h"
#include "protocol.h"

#define CONFIG_SMP 1
#define CONFIG_FAIR_GROUP_SCHED 1
#define CONFIG_CFS_BANDWIDTH 1
#define BITS_PER_LONG 64
#undef NSEC_PER_MSEC
#define NSEC_PER_MSEC 1000000ULL
enum { CPUS = 3, GROUPS = 6, TASKS_MAX = 8 };

#include <signal.h>
#include "fair_idioms.h"
#include "eevdf_idioms.h"
#include "kernel.h"

/* As the core has it. */
#ifdef KERNEL_6_1
static void put_prev_task(struct rq *rq, struct task_struct *prev)
{
	if (prev != rq->idle)
		put_prev_task_fair(rq, prev);
}

/* Sleepers leave at once. */
static bool dequeues(struct rq *rq, struct task_struct *task, int flags)
{
	dequeue_task_fair(rq, task, flags);
	return true;
}
#else
#define dequeues(rq, task, flags) dequeue_task_fair(rq, task, flags)
static void put_prev_task(struct rq *rq, struct task_struct *prev)
{
	if (prev != rq->idle)
		put_prev_task_fair(rq, prev, NULL);
}

static void put_prev_set_next_task(struct rq *rq, struct task_struct *prev, struct task_struct *next)
{
	if (prev == next)
		return;
	if (prev != rq->idle)
		put_prev_task_fair(rq, prev, next);
	set_next_task_fair(rq, next, true);
}
#endif

#ifdef KERNEL_6_18
#include "eevdf_slices.h"
#endif

/* ---- the world --------------------------------------------------------------------------------- */

static word number_of(const struct task_struct *task)
{
	return task >= tasks && task < tasks + TASKS_MAX ? (word)(task - tasks) + 1 : 0;
}

static word counts_of(const struct cfs_rq *cfs)
{
	return (word)h_nr_queued_of(cfs) | (word)h_nr_runnable_of(cfs) << 8 | (word)h_nr_delayed_of(cfs) << 16 |
	       (word)idle_h_nr_of(cfs) << 24 | (word)nr_running_of(cfs) << 32;
}

static void report_queue(struct task_group *group, int cpu)
{
	const struct cfs_rq *cfs = group->cfs_rq[cpu];
	const struct sched_entity *se = group->se[cpu];
	word limbo = 0;

	out(counts_of(cfs));
	out(cfs->runtime_remaining);
	out((word)cfs->throttled | (word)(cfs->runtime_enabled != 0) << 1 | (word)pelt_clock_throttled_of(cfs) << 2 |
	    (word)!list_empty(&cfs->throttled_csd_list) << 3 | (word)cfs->throttle_count << 4 | (word)se->on_rq << 12 |
	    (word)se->sched_delayed << 13 | (word)(cfs->throttled_pelt_idle == U64_MAX) << 14);
#ifdef KERNEL_6_1
	/* It is not reset. */
	out(cfs->throttled ? cfs->throttled_clock : 0);
#else
	out(cfs->throttled_clock);
#endif
	out(fold(fold(cfs->throttled_clock_pelt, cfs->throttled_clock_pelt_time), cfs->load.weight));
#ifdef SINCE_6_18
	for (struct list_head *at = cfs->throttled_limbo_list.next; at != &cfs->throttled_limbo_list; at = at->next)
		limbo = fold(limbo, number_of(container_of(at, struct task_struct, throttle_node)));
#endif
	out(limbo);
}

static void report_pool(const struct task_group *group)
{
	const struct cfs_bandwidth *pool = &group->cfs_bandwidth;
	word list = 0;

	out(pool->runtime);
	out((word)(pool->idle != 0) | (word)(pool->period_active != 0) << 1 | (word)(pool->slack_started != 0) << 2);
	out(pool->period_timer.expires);
	out(pool->slack_timer.queued ? pool->slack_timer.expires : 0);
	out(fold(fold(fold(pool->nr_periods, pool->nr_throttled), pool->nr_burst), pool->burst_time));
	out(pool->throttled_time);
	for (const struct list_head *at = pool->throttled_cfs_rq.next; at != &pool->throttled_cfs_rq; at = at->next)
		list = fold(list, container_of(at, struct cfs_rq, throttled_list)->rq->cpu + 1);
	out(list);
}

static void report(void)
{
	for (int cpu = 0; cpu < CPUS; cpu++) {
		const struct rq *rq = &rqs[cpu];
		word mru = 0, csd = 0;

		out(counts_of(&rq->cfs));
		out(number_of(rq->curr) | (word)rq->need_resched << 8 | (word)rq->nr_running << 16);
		for (const struct list_head *at = rq->cfs_tasks.next; at != &rq->cfs_tasks; at = at->next)
			mru = fold(mru, number_of(container_of(at, struct task_struct, se.group_node)));
		out(mru);
		for (const struct list_head *at = rq->cfsb_csd_list.next; at != &rq->cfsb_csd_list; at = at->next)
			csd = fold(csd, container_of(at, struct cfs_rq, throttled_csd_list)->tg - groups);
		out(csd);
	}
	for (unsigned number = 1; number < nr_groups; number++) {
		report_pool(&groups[number]);
		for (int cpu = 0; cpu < CPUS; cpu++)
			report_queue(&groups[number], cpu);
	}
	for (unsigned number = 0; number < nr_tasks; number++) {
		const struct task_struct *task = &tasks[number];

		out((word)task->on_rq | (word)task->se.on_rq << 2 | (word)task->se.sched_delayed << 3 | (word)task->throttled << 4 |
		    (word)(task->sched_throttle_work.next != &task->sched_throttle_work) << 5 | (word)task->cpu << 8);
		out(fold(fold(task->se.vruntime, task->se.deadline), task->se.sum_exec_runtime));
	}
}

static void begin_queue(struct cfs_rq *cfs, struct rq *rq, struct task_group *group)
{
	cfs->tasks_timeline = RB_ROOT_CACHED;
#ifdef KERNEL_6_1
	cfs->min_vruntime = -(1LL << 20);
#else
	cfs->zero_vruntime = -(1LL << 20);
#endif
	cfs->rq = rq;
	cfs->tg = group;
	INIT_LIST_HEAD(&cfs->throttled_list);
	INIT_LIST_HEAD(&cfs->throttled_csd_list);
#ifdef SINCE_6_18
	INIT_LIST_HEAD(&cfs->throttled_limbo_list);
#endif
}

static void begin_group(struct task_group *group)
{
	INIT_LIST_HEAD(&group->children);
	INIT_LIST_HEAD(&group->cfs_bandwidth.throttled_cfs_rq);
	group->cfs_bandwidth.quota = RUNTIME_INF;
	group->cfs_bandwidth.period = 100 * NSEC_PER_MSEC;
}

static void begin(void)
{
	memset(rqs, 0, sizeof(rqs));
	memset(tasks, 0, sizeof(tasks));
	memset(groups, 0, sizeof(groups));
	memset(idle_tasks, 0, sizeof(idle_tasks));
	begin_group(&root_task_group);
	for (int cpu = 0; cpu < CPUS; cpu++) {
		struct rq *rq = &rqs[cpu];

		begin_queue(&rq->cfs, rq, &root_task_group);
		root_task_group.cfs_rq[cpu] = &rq->cfs;
		rq->cpu = idle_tasks[cpu].cpu = cpu;
		rq->curr = rq->idle = &idle_tasks[cpu];
		rq->curr->sched_class = &idle_sched_class;
		rq->curr->flags = PF_KTHREAD;
		INIT_LIST_HEAD(&rq->cfs_tasks);
		INIT_LIST_HEAD(&rq->cfsb_csd_list);
	}
	nr_tasks = warned = 0;
	nr_groups = 1;
	bandwidth_slice = 5000000;
	clock_now = 0;
}

static void new_group(struct task_group *parent)
{
	struct task_group *group = &groups[nr_groups++];

	begin_group(group);
	group->parent = parent;
	list_add(&group->siblings, &parent->children);
	for (int cpu = 0; cpu < CPUS; cpu++) {
		struct sched_entity *se = &group->entities[cpu];

		begin_queue(&group->queues[cpu], &rqs[cpu], group);
		group->cfs_rq[cpu] = &group->queues[cpu];
		group->se[cpu] = se;
		se->parent = parent->se[cpu];
		se->depth = se->parent ? se->parent->depth + 1 : 0;
		se->cfs_rq = parent->cfs_rq[cpu];
		se->my_q = group->cfs_rq[cpu];
		se->load.weight = NICE_0_LOAD;
		se->slice = sysctl_sched_base_slice;
	}
}

static void set_task_rq(struct task_struct *task, struct task_group *group, int cpu)
{
	task->cpu = cpu;
	task->sched_task_group = group;
	task->se.cfs_rq = group->cfs_rq[cpu];
	task->se.parent = group->se[cpu];
	task->se.depth = task->se.parent ? task->se.parent->depth + 1 : 0;
}

static void new_task(const word *arg)
{
	struct task_struct *task = &tasks[nr_tasks++];

	set_task_rq(task, &groups[arg[0]], arg[1]);
	task->se.load.weight = arg[2];
	task->se.load.inv_weight = arg[3];
	task->policy = arg[4];
	task->sched_class = &fair_sched_class;
	task->se.slice = sysctl_sched_base_slice;
#ifdef KERNEL_7_3
	task->se.h_load = task->se.load;
#endif
	INIT_LIST_HEAD(&task->se.group_node);
	INIT_LIST_HEAD(&task->throttle_node);
	task->sched_throttle_work.next = &task->sched_throttle_work;
}

static void wakeup_preempt(struct rq *rq, struct task_struct *task)
{
	if (rq->curr != rq->idle)
		wakeup_preempts(rq, task, 0);
	else
		resched_curr(rq);
}

static void wake(struct task_struct *task)
{
	struct rq *rq = task_rq(task);

	update_rq_clock(rq);
	if (task->on_rq) {
		enqueue_task_fair(rq, task, ENQUEUE_NOCLOCK | ENQUEUE_DELAYED);
	} else {
		enqueue_task_fair(rq, task, ENQUEUE_WAKEUP | ENQUEUE_NOCLOCK);
		task->on_rq = TASK_ON_RQ_QUEUED;
	}
	wakeup_preempt(rq, task);
}

static void schedule(struct rq *rq, word sleeps)
{
	struct task_struct *prev = rq->curr, *next;
	int flags = DEQUEUE_SLEEP | DEQUEUE_NOCLOCK | (sleeps == 2 ? DEQUEUE_SPECIAL : 0);

	update_rq_clock(rq);
	if (sleeps && prev != rq->idle && dequeues(rq, prev, flags))
		prev->on_rq = 0;
#ifdef KERNEL_7_3
	next = pick_task_fair(rq, NULL);
	if (next)
		put_prev_set_next_task(rq, prev, next);
#else
	next = pick_next_task_fair(rq, prev, NULL);
#endif
	if (!next) {
		next = rq->idle;
		put_prev_task(rq, prev);
	}
	rq->need_resched = false;
	rq->curr = next;
}

static void migrate(struct task_struct *task, int to)
{
	struct rq *rq = task_rq(task);

	update_rq_clock(rq);
	update_rq_clock(&rqs[to]);
	task->on_rq = TASK_ON_RQ_MIGRATING;
	dequeue_task_fair(rq, task, DEQUEUE_NOCLOCK);
	set_task_rq(task, task->sched_task_group, to);
	enqueue_task_fair(&rqs[to], task, ENQUEUE_NOCLOCK | ENQUEUE_MIGRATED);
	task->on_rq = TASK_ON_RQ_QUEUED;
	wakeup_preempt(&rqs[to], task);
}

static void move_group(struct rq *rq, struct task_group *group)
{
	struct task_struct *task = rq->curr;

	if (task->sched_task_group == group)
		return;
	update_rq_clock(rq);
	dequeue_task_fair(rq, task, DEQUEUE_SAVE | DEQUEUE_MOVE | DEQUEUE_NOCLOCK);
	put_prev_task(rq, task);
	set_task_rq(task, group, rq->cpu);
	enqueue_task_fair(rq, task, ENQUEUE_RESTORE | ENQUEUE_MOVE | ENQUEUE_NOCLOCK);
	set_next_task_fair(rq, task, false);
	resched_curr(rq);
}

static void fire_period(struct cfs_bandwidth *pool)
{
	pool->period_timer.queued = false;
	pool->period_timer.running = true;
	if (sched_cfs_period_timer(&pool->period_timer) == HRTIMER_RESTART)
		pool->period_timer.queued = true;
	pool->period_timer.running = false;
}

static void limit(struct task_group *group, const word *arg)
{
#ifdef LIMITS_IN_US
	tg_set_cfs_bandwidth(group, arg[3] / 1000, arg[2] == RUNTIME_INF ? RUNTIME_INF : arg[2] / 1000, arg[4] / 1000);
#else
	tg_set_cfs_bandwidth(group, arg[3], arg[2], arg[4]);
#endif
}

static void operate(word op, const word *arg)
{
	struct rq *rq;

	if (warned || setjmp(illegal)) {
		out(warned);
		return;
	}
	op -= OP_FIRST;
	if (op >= 3) {
		clock_now = arg[0];
		executing_cpu = arg[1];
		rq = &rqs[executing_cpu];
	}
	switch (op) {
	case 0: /* start */
		bandwidth_slice = arg[0] * NSEC_PER_USEC;
		return;
	case 1: /* group */
		new_group(&groups[arg[0]]);
		return;
	case 2: /* task */
		new_task(arg);
		return;
	case 3: /* wake */
		wake(&tasks[arg[2]]);
		break;
	case 4: /* schedule */
		schedule(rq, arg[2]);
		break;
	case 5: /* tick */
		update_rq_clock(rq);
		task_tick_fair(rq, rq->curr, 0);
		break;
	case 6: /* return to user */
#ifdef SINCE_6_18
		if (task_has_throttle_work(rq->curr))
			throttle_cfs_rq_work(&rq->curr->sched_throttle_work);
#endif
		break;
	case 7: /* migrate */
		migrate(&tasks[arg[2]], arg[3]);
		break;
	case 8: /* requeue */
		update_rq_clock(task_rq(&tasks[arg[2]]));
		dequeue_task_fair(task_rq(&tasks[arg[2]]), &tasks[arg[2]], DEQUEUE_SAVE | DEQUEUE_NOCLOCK);
		enqueue_task_fair(task_rq(&tasks[arg[2]]), &tasks[arg[2]], ENQUEUE_RESTORE | ENQUEUE_NOCLOCK);
		break;
	case 9: /* group of the running task */
		move_group(rq, &groups[arg[2]]);
		break;
	case 10: /* period timer */
		fire_period(&groups[arg[2]].cfs_bandwidth);
		break;
	case 11: /* slack timer */
		groups[arg[2]].cfs_bandwidth.slack_timer.queued = false;
		do_sched_cfs_slack_timer(&groups[arg[2]].cfs_bandwidth);
		break;
	case 12: /* the interrupt that unthrottles */
		__cfsb_csd_unthrottle(rq);
		break;
	case 13: /* limit */
		limit(&groups[arg[5]], arg);
		break;
	}
	report();
}

/* A world that differs may also be one in which the kernel reads what is not there. */
static void illegal_access(int signal)
{
	warned = true;
	longjmp(illegal, 1);
}

int main(void)
{
	struct sigaction action = { .sa_handler = illegal_access, .sa_flags = SA_NODEFER };

	sigaction(SIGSEGV, &action, NULL);
	return serve(begin, operate);
}
