// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for EEVDF: a kernel tree's own rbtree.c, and the functions of its fair.c that queue, place,
 * pick, switch, preempt and account, cut out when the test runs (eevdf_extract.h, written by the test
 * program), around one CPU with one run queue and a number of tasks.
 *
 * Whole functions from enqueue_task_fair() down, so that the order of steps is compared too. Nothing
 * of the kernel is in this file. fair_left_out.h has what those functions call and is left out.
 *
 * With FLAT tasks get weights in the timeline that are not their own. With KERNEL_7_3 or KERNEL_6_18 it is for a tree of that
 * release, in which some things have other names (eevdf_idioms.h) and queues a buddy; tasks have a protection, in 7.3 beside
 * their lag and a weight of their own.
 */
#define MAX_T_AS_WRITTEN
#include "kernel_types.h"
#include "protocol.h"

#define CONFIG_SMP 1
#define BITS_PER_LONG 64
#define TASKS_MAX 48

#include "fair_idioms.h"
#include "eevdf_idioms.h"

/* ---- tasks, the run queue ---------------------------------------------------------------------- */

struct task_struct {
	struct sched_entity se;
	int on_rq, policy, in_iowait;
	const struct sched_class *sched_class;
};

struct rq {
	struct cfs_rq cfs;
	unsigned int nr_running;
	unsigned long next_balance;
	struct task_struct *curr;
	/* 7.3: who is charged, which is who runs. */
#define donor curr
	u64 clock_task;
	bool need_resched;
	struct list_head cfs_tasks;
	int fair_server;
};

static struct rq this_rq;
static struct task_struct tasks[TASKS_MAX], idle_task;
static unsigned nr_tasks;
static unsigned long jiffies;
static u64 sysctl_sched_base_slice, tick_nsec, features;

/* One level: no groups. */
#define for_each_sched_entity(se) for (; se; se = NULL)
#define entity_is_task(se) 1
#define parent_entity(se) ((struct sched_entity *)NULL)
#define group_cfs_rq(se) ((struct cfs_rq *)NULL)
#define cfs_rq_of(se) (&this_rq.cfs)
#define task_cfs_rq(task) (&this_rq.cfs)
#define rq_of(cfs) (&this_rq)
#define task_rq(task) (&this_rq)
#define cfs_rq_is_idle(cfs) 0
#define se_is_idle(se) task_has_idle_policy(task_of(se))
#define find_matching_se(se, pse) ((void)0)
#define test_tsk_need_resched(task) (this_rq.need_resched)
#define rq_clock_task(rq) ((rq)->clock_task)
#define update_idle_cfs_rq_clock_pelt(cfs) ((void)0)
#ifdef SINCE_6_18
#define IS_ENABLED(option) 0
#define task_is_throttled(task) false
#define enqueue_throttled_task(task) false
#define dequeue_throttled_task(task, flags) ((void)0)
#define task_throttle_setup_work(task) ((void)0)
#define record_throttle_clock(cfs) ((void)0)
#else
#define set_next_buddy(se) ((void)0)
#endif

#ifdef KERNEL_7_3
#include "eevdf-7.3_extract.h"
#define wakeup_preempts(rq, task, flags) wakeup_preempt_fair(rq, task, flags)
#define picks_task(rq) pick_task_fair(rq, NULL)
#define picks_entity(cfs) pick_eevdf(cfs, true)
#elif defined(KERNEL_6_18)
#include "eevdf-6.18_extract.h"
#define wakeup_preempts(rq, task, flags) check_preempt_wakeup_fair(rq, task, flags)
#define picks_task(rq) pick_task_fair(rq)
#define picks_entity(cfs) pick_eevdf(cfs, true)
#else
#include "eevdf_extract.h"
#define wakeup_preempts(rq, task, flags) check_preempt_wakeup_fair(rq, task, flags)
#define picks_task(rq) pick_task_fair(rq)
#define picks_entity(cfs) pick_eevdf(cfs)
#endif

#if defined(KERNEL_6_18) && !defined(AS_WRITTEN)
#include "eevdf_slices.h"
#endif

/* ---- the world --------------------------------------------------------------------------------- */

static word number_of(const struct task_struct *task)
{
	return task == NULL || task == &idle_task ? 0 : (word)(task - tasks) + 1;
}

static word state_bits(const struct task_struct *task)
{
	const struct sched_entity *se = &task->se;

	return (word)se->on_rq | (word)se->sched_delayed << 1 | (word)se->rel_deadline << 2 |
	       (word)se->custom_slice << 3 | (word)task->on_rq << 4;
}

static void out_task(const struct task_struct *task)
{
	const struct sched_entity *se = &task->se;

	out(se->vruntime);
	out(se->deadline);
	out(se->vlag);
	out(se->slice);
	out(se->exec_start);
	out(se->sum_exec_runtime);
	out(se->prev_sum_exec_runtime);
	out(se->load.weight);
	out(state_bits(task));
#ifdef KERNEL_7_3
	out(se->vprot);
#endif
#ifdef FLAT
	out(se->h_load.weight);
#endif
}

/* The run queue, the task that the operation was about, and a digest of all tasks and of both orders. */
static void report(word result, const struct task_struct *task)
{
	struct cfs_rq *cfs = &this_rq.cfs;
	word timeline = 0, mru = 0, eligible = 0, everything = 0;

	out(result);
	out(sum_of(cfs));
	out(weights_of(cfs));
	out(cfs->zero_vruntime);
	out(cfs->load.weight);
	out(nr_running_of(cfs));
	out(cfs->h_nr_queued);
	out(cfs->h_nr_runnable);
	out(h_nr_delayed_of(cfs));
	out(idle_h_nr_of(cfs));
	out(this_rq.nr_running);
	out(number_of(this_rq.curr));
	out(cfs->curr ? number_of(task_of(cfs->curr)) : 0);
	out(this_rq.need_resched);
	for (struct rb_node *at = rb_first_cached(&cfs->tasks_timeline); at; at = rb_next(at))
		timeline = fold(timeline, number_of(task_of(__node_2_se(at))));
	out(timeline);
	for (struct list_head *at = this_rq.cfs_tasks.next; at != &this_rq.cfs_tasks; at = at->next)
		mru = fold(mru, number_of(container_of(at, struct task_struct, se.group_node)));
	out(mru);
	for (unsigned i = 0; i < nr_tasks; i++) {
		struct sched_entity *se = &tasks[i].se;

		if (se->on_rq && entity_eligible(cfs, se))
			eligible |= 1ULL << i;
		everything = fold(everything, se->vruntime);
		everything = fold(everything, se->deadline);
		everything = fold(everything, se->vlag);
		everything = fold(everything, se->slice);
		everything = fold(everything, se->sum_exec_runtime);
		everything = fold(everything, state_bits(&tasks[i]));
	}
	out(eligible);
	out(everything);
#ifdef SINCE_6_18
	out(cfs->next ? number_of(task_of(cfs->next)) : 0);
#endif
	if (task)
		out_task(task);
}

static void begin(void)
{
	memset(&this_rq, 0, sizeof(this_rq));
	memset(tasks, 0, sizeof(tasks));
	this_rq.curr = &idle_task;
	idle_task.sched_class = &idle_sched_class;
	this_rq.cfs.tasks_timeline = RB_ROOT_CACHED;
	this_rq.cfs_tasks.next = this_rq.cfs_tasks.prev = &this_rq.cfs_tasks;
	nr_tasks = 0;
	sysctl_sched_base_slice = 700000;
	tick_nsec = 4000000;
	features = ~0ULL >> 1;
}

static struct task_struct *task_by_number(word number)
{
	if (number >= nr_tasks) {
		fprintf(stderr, "no task %llu\n", number);
		exit(2);
	}
	return &tasks[number];
}

static void wakeup_preempt(struct task_struct *task, int flags)
{
	/* The core asks the class only if a task of the same class runs. */
	if (this_rq.curr != &idle_task)
		wakeup_preempts(&this_rq, task, flags);
	else
		resched_curr(&this_rq);
}

/* The running task goes to sleep; 2: in a special state. */
static void block(struct task_struct *task, word sleeps)
{
	int flags = DEQUEUE_SLEEP | DEQUEUE_NOCLOCK | (sleeps == 2 ? DEQUEUE_SPECIAL : 0);

	if (dequeue_task_fair(&this_rq, task, flags))
		task->on_rq = 0;
}

/* The core's part of a switch. `sleeps`: the running task blocks first. */
static struct task_struct *schedule(word sleeps)
{
	struct task_struct *prev = this_rq.curr, *next;

	if (sleeps && prev != &idle_task)
		block(prev, sleeps);
	next = picks_task(&this_rq);
	if (!next)
		next = &idle_task;
	this_rq.need_resched = false;
	if (next != prev) {
		if (prev != &idle_task)
			put_prev_task_fair(&this_rq, prev, next);
		if (next != &idle_task)
			set_next_task_fair(&this_rq, next, true);
	}
	this_rq.curr = next;
	return next;
}

static void wake(struct task_struct *task, int flags)
{
	if (task->on_rq) {
		enqueue_task_fair(&this_rq, task, ENQUEUE_NOCLOCK | ENQUEUE_DELAYED);
	} else {
		enqueue_task_fair(&this_rq, task, flags | ENQUEUE_NOCLOCK);
		task->on_rq = TASK_ON_RQ_QUEUED;
	}
	wakeup_preempt(task, flags & ENQUEUE_INITIAL ? WF_FORK : 0);
}

/* What sched_setattr() does around a change of weight, slice and policy. */
static void change(struct task_struct *task, const word *arg)
{
	bool queued = task_on_rq_queued(task), running = this_rq.curr == task;
	struct load_weight load = { arg[2], arg[3] };

	if (queued)
		dequeue_task_fair(&this_rq, task, DEQUEUE_SAVE | DEQUEUE_NOCLOCK);
	if (running)
		put_prev_task_fair(&this_rq, task, task);
	task->policy = arg[5];
	reweight_task_fair(&this_rq, task, &load);
	task->se.custom_slice = arg[4] != 0;
	task->se.slice = arg[4] ? arg[4] : sysctl_sched_base_slice;
	if (queued)
		enqueue_task_fair(&this_rq, task, ENQUEUE_RESTORE | ENQUEUE_NOCLOCK);
	if (running)
		set_next_task_fair(&this_rq, task, false);
}

static void operate(word op, const word *arg)
{
	struct task_struct *task = NULL;
	word result = 0;

	/* Every operation but those that set the world up begins with some time. */
	if (op >= OP_FIRST + 2)
		this_rq.clock_task += arg[0];
	switch (op) {
	case OP_FIRST + 0:
		sysctl_sched_base_slice = arg[0];
		tick_nsec = arg[1];
		features = arg[2] | 1ULL << 62;
		this_rq.cfs.zero_vruntime = arg[3];
		this_rq.clock_task = arg[4];
		break;
	case OP_FIRST + 1: /* a further task, asleep */
		if (nr_tasks == TASKS_MAX)
			exit(2);
		task = &tasks[nr_tasks++];
		task->se.load.weight = arg[0];
		task->se.load.inv_weight = arg[1];
		task->sched_class = &fair_sched_class;
#ifdef KERNEL_7_3
		task->se.h_load = task->se.load;
#endif
		task->se.custom_slice = arg[2] != 0;
		task->se.slice = arg[2] ? arg[2] : sysctl_sched_base_slice;
		task->se.vlag = arg[3];
		task->policy = arg[4];
		task->se.vruntime = arg[5];
		task->se.group_node.next = task->se.group_node.prev = &task->se.group_node;
		break;
	case OP_FIRST + 2: /* wakes up, from sleep or for the first time */
		task = task_by_number(arg[1]);
		wake(task, arg[2] ? ENQUEUE_INITIAL : ENQUEUE_WAKEUP);
		break;
	case OP_FIRST + 3:
		task = schedule(arg[1]);
		result = number_of(task);
		if (task == &idle_task)
			task = NULL;
		break;
	case OP_FIRST + 4:
		task = this_rq.curr;
		task_tick_fair(&this_rq, task, 0);
		break;
	case OP_FIRST + 5:
		task = this_rq.curr;
		yield_task_fair(&this_rq);
		break;
	case OP_FIRST + 6: /* leaves for another CPU */
		task = task_by_number(arg[1]);
		task->on_rq = TASK_ON_RQ_MIGRATING;
		result = dequeue_task_fair(&this_rq, task, DEQUEUE_NOCLOCK);
		break;
	case OP_FIRST + 7: /* comes (back), with the lag of wherever it was */
		task = task_by_number(arg[1]);
		task->se.vlag = arg[2];
		enqueue_task_fair(&this_rq, task, ENQUEUE_NOCLOCK | ENQUEUE_MIGRATED);
		task->on_rq = TASK_ON_RQ_QUEUED;
		wakeup_preempt(task, 0);
		break;
	case OP_FIRST + 8:
		task = task_by_number(arg[1]);
		change(task, arg);
		break;
	case OP_FIRST + 9: /* the preemption test alone, and the pick alone */
		task = task_by_number(arg[1]);
		wakeup_preempt(task, 0);
		if (nr_running_of(&this_rq.cfs))
			result = number_of(task_of(picks_entity(&this_rq.cfs)));
		break;
	case OP_FIRST + 10: /* a weight of nice, from the kernel's table */
		result = scale_load((u64)sched_prio_to_weight[arg[1] % 40]) ^
			 (u64)sched_prio_to_wmult[arg[1] % 40] << 32;
		break;
	case OP_FIRST + 11: /* the first half of a switch: blocks, and nobody is picked yet */
		task = this_rq.curr;
		block(task, 1);
		break;
	case OP_FIRST + 12: /* a weight in the timeline, as groups above might leave it, or the entity's own */
		task = task_by_number(arg[1]);
#ifdef FLAT
		reweight_eevdf(&this_rq.cfs, &task->se, arg[2], task->se.on_rq);
#else
		reweight_entity(&this_rq.cfs, &task->se, arg[2]);
#endif
		break;
	default:
		fprintf(stderr, "unknown operation %llu\n", op);
		exit(2);
	}
	report(result, task);
}

int main(void)
{
	return serve(begin, operate);
}
