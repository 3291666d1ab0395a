// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for CFS: the rbtree.c and pelt.c of a kernel tree before 6.6, and the functions of its fair.c that
 * queue, place, pick, switch, preempt, fork and account, PELT and util_est included, cut out when the test runs (cfs_extract.h, written by the
 * test program), around one CPU with one run queue and a number of tasks. Nothing of the kernel is in this
 * file.
 */
#include "kernel_types.h"
#include "protocol.h"

#define CONFIG_SMP 1
#define BITS_PER_LONG 64
#define TASKS_MAX 48

#include "fair_idioms.h"
#include "pelt_idioms.h"

/* ---- entities, tasks, queues ------------------------------------------------------------------- */

struct load_weight { unsigned long weight; u32 inv_weight; };
struct util_est { unsigned int enqueued, ewma; };
struct sched_avg {
	u64 last_update_time, load_sum, runnable_sum;
	u32 util_sum, period_contrib;
	unsigned long load_avg, runnable_avg, util_avg;
	struct util_est util_est;
};

struct sched_entity {
	struct load_weight load;
	struct rb_node run_node;
	u64 vruntime, exec_start, sum_exec_runtime, prev_sum_exec_runtime;
	struct list_head group_node;
	unsigned int on_rq;
	struct sched_avg avg;
};

struct cfs_rq {
	struct load_weight load;
	unsigned int nr_running, h_nr_running, idle_nr_running, idle_h_nr_running;
	u64 min_vruntime, last_update_time_copy;
	struct rb_root_cached tasks_timeline;
	struct sched_entity *curr, *next, *last, *skip;
	struct sched_avg avg;
	struct {
		int lock, nr;
		unsigned long load_avg, util_avg, runnable_avg;
	} removed;
};

struct task_struct {
	struct sched_entity se;
	int on_rq, policy, in_iowait;
	unsigned int __state;
};

struct rq {
	struct cfs_rq cfs;
	unsigned int nr_running;
	unsigned long next_balance;
	struct task_struct *curr, *idle;
	u64 clock, clock_task, clock_pelt, lost_idle_time, clock_idle, clock_pelt_idle;
	struct sched_avg avg_rt, avg_dl;
	bool need_resched;
	struct list_head cfs_tasks;
};

enum { SCHED_NORMAL = 0, SCHED_BATCH = 3, SCHED_IDLE = 5 };
enum { TASK_ON_RQ_QUEUED = 1, TASK_ON_RQ_MIGRATING = 2 };
enum { TASK_WAKING = 512 };

static struct rq this_rq_;
static struct task_struct tasks[TASKS_MAX], idle_task;
static unsigned nr_tasks;
/* The sequence has come to something impossible. */
static bool lost;
static unsigned long jiffies;
static u64 features;
/* Their widths are the kernel's. */
static unsigned int sysctl_sched_latency, sysctl_sched_min_granularity, sysctl_sched_wakeup_granularity;
static unsigned int sysctl_sched_idle_min_granularity, sched_nr_latency;

#define NICE_0_LOAD (1024UL << 10)
#define sysctl_sched_child_runs_first 0

/* The bits of `features`, in the order of the test program. */
enum { BIT_GENTLE_FAIR_SLEEPERS, BIT_START_DEBIT, BIT_NEXT_BUDDY, BIT_LAST_BUDDY, BIT_ALT_PERIOD,
       BIT_BASE_SLICE, BIT_WAKEUP_PREEMPTION, BIT_UTIL_EST_FASTUP, BIT_UTIL_EST };
#define sched_feat(feature) (features >> BIT_##feature & 1)

#define SCHED_CPUFREQ_IOWAIT 1
#define UPDATE_TG 1
#define SKIP_AGE_LOAD 2
#define DO_ATTACH 4
#define DO_DETACH 8
#define WF_FORK 4

/* One level: no groups. */
#define for_each_sched_entity(se) for (; se; se = NULL)
#define entity_is_task(se) 1
#define task_of(entity) container_of(entity, struct task_struct, se)
#define parent_entity(se) ((struct sched_entity *)NULL)
#define group_cfs_rq(se) ((struct cfs_rq *)NULL)
#define cfs_rq_of(se) (&this_rq_.cfs)
#define task_cfs_rq(task) (&this_rq_.cfs)
#define rq_of(cfs) (&this_rq_)
#define task_rq(task) (&this_rq_)
#define this_rq() (&this_rq_)
#define current (this_rq_.curr)
#define cfs_rq_is_idle(cfs) 0
#define find_matching_se(se, pse) ((void)0)
#define task_has_idle_policy(task) ((task)->policy == SCHED_IDLE)
#define task_on_rq_queued(task) ((task)->on_rq == TASK_ON_RQ_QUEUED)
#define task_on_rq_migrating(task) ((task)->on_rq == TASK_ON_RQ_MIGRATING)
#define test_tsk_need_resched(task) (this_rq_.need_resched)
#define resched_curr(rq) ((void)((rq)->need_resched = true))
#define rq_clock_task(rq) ((rq)->clock_task)
#define rq_clock(rq) ((rq)->clock)
#define assert_clock_updated(rq) ((void)0)
#define is_idle_task(task) ((task) == &idle_task)
#define cpu_of(rq) 0
#define arch_scale_cpu_capacity(cpu) 1024UL
#define arch_scale_freq_capacity(cpu) 1024UL
#define capacity_orig_of(cpu) 1024UL
#define se_weight(se) scale_load_down((se)->load.weight)
#define se_runnable(se) (!!(se)->on_rq)
#define propagate_entity_load_avg(se) 0
#define add_tg_cfs_propagate(cfs, runnable) ((void)0)
#define update_tg_load_avg(cfs) ((void)0)
#define add_nr_running(rq, count) ((void)((rq)->nr_running += (count)))
#define sub_nr_running(rq, count) ((void)((rq)->nr_running -= (count)))
struct rq_flags { int unused; };
#define rq_lock(rq, flags) ((void)(flags))
#define rq_unlock(rq, flags) ((void)(flags))
#define u64_u32_load(variable) (variable)
#define u64_u32_store(variable, value) ((variable) = (value))

#include "fair_left_out.h"
#define account_group_exec_runtime(task, delta) ((void)0)
#define cgroup_account_cputime(task, delta) ((void)0)
#define trace_sched_stat_runtime(task, delta, vruntime) ((void)0)
#define schedstat_add(variable, amount) ((void)0)
#define check_spread(cfs, se) ((void)0)
#define remove_entity_load_avg(se) ((void)0)
#define migrate_se_pelt_lag(se) ((void)0)
#define update_scan_period(task, cpu) ((void)0)

static void clear_buddies(struct cfs_rq *cfs_rq, struct sched_entity *se);
static void set_next_buddy(struct sched_entity *se);
static int se_is_idle(struct sched_entity *se);
struct sched_entity *__pick_first_entity(struct cfs_rq *cfs_rq);

#include "cfs_macros.h"
#include "pelt.h"
#include "pelt.c"
#include "cfs_extract.h"

/* ---- the world --------------------------------------------------------------------------------- */

static word number_of(const struct task_struct *task)
{
	return task == NULL || task == &idle_task ? 0 : (word)(task - tasks) + 1;
}

static word number_of_entity(const struct sched_entity *se)
{
	return se ? number_of(task_of(se)) : 0;
}

static void out_avg(const struct sched_avg *sa)
{
	out(sa->last_update_time);
	out(sa->load_sum);
	out(sa->runnable_sum);
	out(sa->util_sum);
	out(sa->period_contrib);
	out(sa->load_avg);
	out(sa->runnable_avg);
	out(sa->util_avg);
	out(sa->util_est.enqueued);
	out(sa->util_est.ewma);
}

/* The run queue, the task that the operation was about, and a digest of all tasks and of both orders. */
static void report(word result, const struct task_struct *task)
{
	struct cfs_rq *cfs = &this_rq_.cfs;
	struct sched_entity *curr = cfs->curr && cfs->curr->on_rq ? cfs->curr : NULL;
	word timeline = 0, mru = 0, everything = 0;

	out(result);
	out(cfs->min_vruntime);
	out(cfs->load.weight);
	out(cfs->nr_running);
	out(cfs->h_nr_running);
	out(cfs->idle_h_nr_running);
	out(this_rq_.nr_running);
	out(number_of(this_rq_.curr));
	out(number_of_entity(cfs->curr));
	out(number_of_entity(cfs->next));
	out(number_of_entity(cfs->last));
	out(number_of_entity(cfs->skip));
	out(this_rq_.need_resched);
	out(cfs->nr_running ? number_of_entity(pick_next_entity(cfs, curr)) : 0);
	for (struct rb_node *at = rb_first_cached(&cfs->tasks_timeline); at; at = rb_next(at))
		timeline = fold(timeline, number_of_entity(__node_2_se(at)));
	out(timeline);
	for (struct list_head *at = this_rq_.cfs_tasks.next; at != &this_rq_.cfs_tasks; at = at->next)
		mru = fold(mru, number_of(container_of(at, struct task_struct, se.group_node)));
	out(mru);
	for (unsigned i = 0; i < nr_tasks; i++) {
		struct sched_entity *se = &tasks[i].se;

		everything = fold(everything, se->vruntime);
		everything = fold(everything, se->sum_exec_runtime);
		everything = fold(everything, (word)se->on_rq | (word)tasks[i].on_rq << 1);
	}
	out(everything);
	out_avg(&cfs->avg);
	if (task) {
		const struct sched_entity *se = &task->se;

		out(se->vruntime);
		out(se->exec_start);
		out(se->sum_exec_runtime);
		out(se->prev_sum_exec_runtime);
		out(se->load.weight);
		out((word)se->on_rq | (word)task->on_rq << 1);
		out_avg(&se->avg);
	}
}

static void begin(void)
{
	memset(&this_rq_, 0, sizeof(this_rq_));
	memset(tasks, 0, sizeof(tasks));
	this_rq_.curr = this_rq_.idle = &idle_task;
	this_rq_.cfs.min_vruntime = -(1LL << 20);
	this_rq_.cfs.tasks_timeline = RB_ROOT_CACHED;
	this_rq_.cfs_tasks.next = this_rq_.cfs_tasks.prev = &this_rq_.cfs_tasks;
	nr_tasks = 0;
	lost = false;
}

static void pass(u64 delta)
{
	this_rq_.clock += delta;
	this_rq_.clock_task += delta;
	update_rq_clock_pelt(&this_rq_, delta);
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
	if (this_rq_.curr != &idle_task)
		check_preempt_wakeup(&this_rq_, task, flags);
	else
		resched_curr(&this_rq_);
}

static void come(struct task_struct *task, int flags, int wake_flags)
{
	enqueue_task_fair(&this_rq_, task, flags | ENQUEUE_NOCLOCK);
	task->on_rq = TASK_ON_RQ_QUEUED;
	wakeup_preempt(task, wake_flags);
}

static void block(struct task_struct *task)
{
	task->on_rq = 0;
	dequeue_task_fair(&this_rq_, task, DEQUEUE_SLEEP | DEQUEUE_NOCLOCK);
}

/* The core's part of a switch. `sleeps`: the running task blocks first. */
static struct task_struct *schedule(word sleeps)
{
	struct task_struct *prev = this_rq_.curr, *next;

	if (sleeps && prev != &idle_task)
		block(prev);
	next = pick_task_fair(&this_rq_);
	if (!next)
		next = &idle_task;
	this_rq_.need_resched = false;
	if (next != prev) {
		if (prev != &idle_task)
			put_prev_task_fair(&this_rq_, prev);
		if (next != &idle_task)
			set_next_task_fair(&this_rq_, next, true);
	}
	this_rq_.curr = next;
	return next;
}

/* What a change of nice or policy does around it. */
static void change(struct task_struct *task, const word *arg)
{
	bool queued = task_on_rq_queued(task), running = this_rq_.curr == task;
	struct load_weight load = { arg[2], arg[3] };
	int move = arg[5] ? DEQUEUE_MOVE : 0;

	if (queued)
		dequeue_task_fair(&this_rq_, task, DEQUEUE_SAVE | move | DEQUEUE_NOCLOCK);
	if (running)
		put_prev_task_fair(&this_rq_, task);
	task->policy = arg[4];
	reweight_task(task, &load);
	if (queued)
		enqueue_task_fair(&this_rq_, task, ENQUEUE_RESTORE | move | ENQUEUE_NOCLOCK);
	if (running)
		set_next_task_fair(&this_rq_, task, false);
}

/* set_task_cpu() of a task that is being woken. */
static void migrate_sleeper(struct task_struct *task)
{
	task->__state = TASK_WAKING;
	migrate_task_rq_fair(task, 0);
	task->__state = 0;
}

/*
 * Whether an operation makes sense here. The test program aims at its own world, so once the two differ it
 * need not; from then on this sequence has no answers.
 */
static bool makes_sense(word op, const word *arg)
{
	bool about_task = op == OP_FIRST + 3 || op == OP_FIRST + 4 || (op >= OP_FIRST + 8 && op <= OP_FIRST + 11);
	struct task_struct *curr = this_rq_.curr, *task = about_task ? task_by_number(arg[1]) : NULL;

	switch (op) {
	case OP_FIRST + 3:
	case OP_FIRST + 9:
		return !task->se.on_rq;
	case OP_FIRST + 4:
		return !task->se.on_rq && curr->se.on_rq;
	case OP_FIRST + 5:
		return !arg[1] || curr == &idle_task || curr->se.on_rq;
	case OP_FIRST + 6:
	case OP_FIRST + 7:
	case OP_FIRST + 13:
		return curr->se.on_rq;
	case OP_FIRST + 8:
		return task->se.on_rq && task != curr;
	case OP_FIRST + 10:
		return task != curr || task->se.on_rq;
	case OP_FIRST + 11:
		return task->se.on_rq;
	}
	return true;
}

static void operate(word op, const word *arg)
{
	struct task_struct *task = NULL;
	word result = 0;

	lost = lost || !makes_sense(op, arg);
	if (lost) {
		out(~0ULL);
		return;
	}

	/* Every operation but those that set the world up begins with some time. */
	if (op >= OP_FIRST + 3)
		pass(arg[0]);
	switch (op) {
	case OP_FIRST + 0:
		sysctl_sched_latency = arg[0];
		sysctl_sched_min_granularity = arg[1];
		sysctl_sched_wakeup_granularity = arg[2];
		sysctl_sched_idle_min_granularity = arg[3];
		sched_nr_latency = (arg[0] + arg[1] - 1) / arg[1];
		features = arg[4];
		pass(arg[5]);
		break;
	case OP_FIRST + 1:
		this_rq_.cfs.min_vruntime = arg[0];
		break;
	case OP_FIRST + 2: /* a further task, asleep */
		if (nr_tasks == TASKS_MAX)
			exit(2);
		task = &tasks[nr_tasks++];
		task->se.load.weight = arg[0];
		task->se.load.inv_weight = arg[1];
		task->policy = arg[2];
		task->se.vruntime = arg[3];
		task->se.exec_start = arg[4];
		task->se.group_node.next = task->se.group_node.prev = &task->se.group_node;
		break;
	case OP_FIRST + 3: /* wakes up; 1: on another queue than it slept on, which looks the same; 2: which does not */
		task = task_by_number(arg[1]);
		if (arg[2] == 1)
			migrate_sleeper(task);
		if (arg[2] == 2) {
			task->se.vruntime = arg[3];
			task->se.avg.last_update_time = 0;
		}
		come(task, ENQUEUE_WAKEUP | (arg[2] ? ENQUEUE_MIGRATED : 0), 0);
		break;
	case OP_FIRST + 4: /* the running task forks it */
		task = task_by_number(arg[1]);
		task_fork_fair(task);
		come(task, 0, WF_FORK);
		break;
	case OP_FIRST + 5:
		task = schedule(arg[1]);
		result = number_of(task);
		if (task == &idle_task)
			task = NULL;
		break;
	case OP_FIRST + 6:
		task = this_rq_.curr;
		task_tick_fair(&this_rq_, task, 0);
		break;
	case OP_FIRST + 7:
		task = this_rq_.curr;
		yield_task_fair(&this_rq_);
		break;
	case OP_FIRST + 8: /* leaves for another CPU */
		task = task_by_number(arg[1]);
		task->on_rq = TASK_ON_RQ_MIGRATING;
		dequeue_task_fair(&this_rq_, task, DEQUEUE_NOCLOCK);
		/* set_task_cpu() */
		task->se.avg.last_update_time = 0;
		break;
	case OP_FIRST + 9: /* comes (back), or was forked elsewhere: relative to wherever it was */
		task = task_by_number(arg[1]);
		task->se.vruntime = arg[2];
		come(task, task->on_rq ? ENQUEUE_MIGRATED : 0, arg[3] ? WF_FORK : 0);
		break;
	case OP_FIRST + 10:
		task = task_by_number(arg[1]);
		change(task, arg);
		break;
	case OP_FIRST + 11: /* the preemption test alone */
		task = task_by_number(arg[1]);
		wakeup_preempt(task, 0);
		break;
	case OP_FIRST + 12: /* a weight of nice, from the kernel's table */
		result = scale_load((u64)sched_prio_to_weight[arg[1] % 40]) ^
			 (u64)sched_prio_to_wmult[arg[1] % 40] << 32;
		break;
	case OP_FIRST + 13: /* the first half of a switch: blocks, and nobody is picked yet */
		task = this_rq_.curr;
		block(task);
		break;
	case OP_FIRST + 14: /* how long it may run, and whether it would preempt another */
		task = task_by_number(arg[1]);
		result = sched_slice(&this_rq_.cfs, &task->se) ^
			 (word)(wakeup_preempt_entity(&task_by_number(arg[2])->se, &task->se) + 1) << 60;
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
