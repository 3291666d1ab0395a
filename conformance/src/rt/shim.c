// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for the RT class: a kernel tree's own rt.c and cpupri.c whole, and `wakeup_preempt()` of its core.c, around eight
 * CPUs. Each has beside its RT tasks a fair task that runs where no other does, and a deadline task.
 *
 * Replaced: what `l0/shim/classes.h` says; the core's steps between classes (a wakeup, a switch, a change of attributes) are
 * written after core.c. PELT is left out, and so are groups.
 */
#include "classes.h"

bool sched_class_above(const struct sched_class *a, const struct sched_class *b);
#include "classes_extract.h"

static const struct sched_class dl_sched_class, fair_sched_class, idle_sched_class;
int cpupri_find(struct cpupri *cp, struct task_struct *p, struct cpumask *lowest_mask);
int cpupri_find_fitness(struct cpupri *cp, struct task_struct *p, struct cpumask *lowest_mask,
			bool (*fitness_fn)(struct task_struct *p, int cpu));
void cpupri_set(struct cpupri *cp, int cpu, int pri);
#include "cpupri.c"
static void init_cpupri(void)
{
	for (int i = 0; i < CPUPRI_NR_PRIORITIES; i++) {
		rd.cpupri.pri_to_cpu[i].count.counter = 0;
		rd.cpupri.pri_to_cpu[i].mask->bits = 0;
	}
	for (int cpu = 0; cpu < CPUS; cpu++)
		rd.cpupri.cpu_to_pri[cpu] = CPUPRI_INVALID;
}
#define sched_clock_irqtime 0
extern const struct sched_class rt_sched_class;
#include "rt.c"

static int rank(const struct sched_class *class)
{
	return class == &dl_sched_class ? 3 : class == &rt_sched_class ? 2 : class == &fair_sched_class ? 1 : 0;
}

bool sched_class_above(const struct sched_class *a, const struct sched_class *b)
{
	return rank(a) > rank(b);
}

enum { TASKS = 16 };

static struct task_struct tasks[TASKS], idle_tasks[CPUS], fair_tasks[CPUS], dl_tasks[CPUS];
static int nr_tasks;

/* The class of the task that runs is asked only where it may be the RT class. */
static void nothing(struct rq *rq, struct task_struct *task, int flags)
{
}

static const struct sched_class dl_sched_class = { .wakeup_preempt = nothing, .check_preempt_curr = nothing };
static const struct sched_class fair_sched_class = { .wakeup_preempt = nothing, .check_preempt_curr = nothing };
static const struct sched_class idle_sched_class = { .wakeup_preempt = nothing, .check_preempt_curr = nothing };

static bool is_rt(const struct task_struct *task)
{
	return task->sched_class == &rt_sched_class;
}

static void enqueue_task(struct rq *rq, struct task_struct *task, int flags)
{
	update_rq_clock(rq);
	enqueue_task_rt(rq, task, flags);
}

static void dequeue_task(struct rq *rq, struct task_struct *task, int flags)
{
	update_rq_clock(rq);
	dequeue_task_rt(rq, task, flags);
}

static void set_task_cpu(struct task_struct *task, unsigned int cpu)
{
	task->cpu = cpu;
}

static void put_prev(struct rq *rq, struct task_struct *prev, struct task_struct *next)
{
	if (is_rt(prev))
#if FORM == 1
		put_prev_task_rt(rq, prev);
#else
		put_prev_task_rt(rq, prev, next);
#endif
}

static void init_task(struct task_struct *task, int cpu, int prio, const struct sched_class *class)
{
	memset(task, 0, sizeof(*task));
	task->cpu = cpu;
	task->prio = prio;
	task->sched_class = class;
	task->cpus_mask = all_cpus;
	task->cpus_ptr = &task->cpus_mask;
	task->nr_cpus_allowed = CPUS;
	task->rt.time_slice = RR_TIMESLICE;
	INIT_LIST_HEAD(&task->rt.run_list);
	plist_node_init(&task->pushable_tasks, MAX_PRIO);
}

static void begin(void)
{
	int *levels = rd.cpupri.cpu_to_pri;

	memset(&rd, 0, sizeof(rd));
	rd.cpupri.cpu_to_pri = levels ? levels : calloc(CPUS, sizeof(int));
	rd.span = &rd.span_mask;
	rd.rto_mask = &rd.rto_bits;
	rd.span_mask = all_cpus;
	rd.rto_cpu = -1;
	init_cpupri();
	memset(distribute_cpu_mask_prev, 0, sizeof(distribute_cpu_mask_prev));
	memset(rt_push_head, 0, sizeof(rt_push_head));
	memset(rt_pull_head, 0, sizeof(rt_pull_head));
	clock_now = irq_works = 0;
	nr_tasks = warned = 0;
	for (int cpu = 0; cpu < CPUS; cpu++) {
		struct rq *rq = cpu_rq(cpu);

		memset(rq, 0, sizeof(*rq));
		rq->cpu = cpu;
		rq->online = 1;
		rq->rd = &rd;
		init_rt_rq(&rq->rt);
		cpupri_set(&rd.cpupri, cpu, MAX_RT_PRIO - 1);
		init_task(&idle_tasks[cpu], cpu, MAX_PRIO, &idle_sched_class);
		init_task(&fair_tasks[cpu], cpu, 120, &fair_sched_class);
		init_task(&dl_tasks[cpu], cpu, -1, &dl_sched_class);
		idle_tasks[cpu].on_rq = TASK_ON_RQ_QUEUED;
		rq->curr = rq->donor = rq->idle = &idle_tasks[cpu];
		rq->next_class = &idle_sched_class;
	}
#if FORM == 1
	memset(&def_rt_bandwidth, 0, sizeof(def_rt_bandwidth));
#endif
}

static void start(const word *arg)
{
	push_by_interrupt = arg[0];
	capacities_differ = arg[1];
#if FORM == 1
	init_rt_bandwidth(&def_rt_bandwidth, arg[3], arg[2]);
	for (int cpu = 0; cpu < CPUS; cpu++)
		cpu_rq(cpu)->rt.rt_runtime = arg[2];
	sysctl_sched_rt_runtime = (s64)arg[2] / 1000;
	sysctl_sched_rt_period = arg[3] / 1000;
#endif
}

static void set_mask(struct task_struct *task, u64 bits)
{
	task->cpus_mask.bits = bits;
	task->nr_cpus_allowed = __builtin_popcountll(bits);
}

static void preempt(struct rq *rq, struct task_struct *task)
{
#if FORM == 1
	check_preempt_curr(rq, task, WF_TTWU);
#else
	wakeup_preempt(rq, task, WF_TTWU);
#endif
}

static void wake(struct task_struct *task)
{
	int cpu = task->cpu;
	struct rq *rq;

	BUG_ON(task->on_rq || !is_rt(task));
	if (task->nr_cpus_allowed > 1)
		cpu = select_task_rq_rt(task, cpu, WF_TTWU);
	task->cpu = cpu;
	rq = cpu_rq(cpu);
	update_rq_clock(rq);
	activate_task(rq, task, ENQUEUE_WAKEUP | ENQUEUE_NOCLOCK);
	preempt(rq, task);
	task_woken_rt(rq, task);
}

/* A task that has left the class comes back to it when it is switched out, asleep: no fair task is kept here. */
static void forget_fair(struct task_struct *task)
{
	if (task->number && task->sched_class == &fair_sched_class) {
		task->sched_class = &rt_sched_class;
		task->prio = task->normal_prio;
		task->on_rq = 0;
	}
}

/* The classes below the previous task's are asked whether they have anything, its own first. */
static void balance(struct rq *rq, struct task_struct *prev)
{
	struct rq_flags flags = { 0 };

	if (prev->sched_class == &dl_sched_class && sched_dl_runnable(rq))
		return;
	if (rank(prev->sched_class) >= 2)
#if FORM == 73
		balance_rt(rq, &flags);
#else
		balance_rt(rq, prev, &flags);
#endif
}

static void schedule(struct rq *rq, int sleeps, int lower)
{
	struct task_struct *prev = rq->curr, *next = NULL;

	update_rq_clock(rq);
	if (sleeps && is_rt(prev)) {
		dequeue_task(rq, prev, DEQUEUE_SLEEP | DEQUEUE_NOCLOCK);
		prev->on_rq = 0;
	}
	balance(rq, prev);
#if FORM == 1
	put_prev(rq, prev, NULL);
#endif
	if (sched_dl_runnable(rq))
		next = &dl_tasks[rq->cpu];
	if (!next)
#if FORM == 73
		next = pick_task_rt(rq, NULL);
#else
		next = pick_task_rt(rq);
#endif
	/* A task that has left the class goes on until another is preferred. */
	if (!next && prev->number && prev->sched_class == &fair_sched_class)
		next = prev;
	if (!next)
		next = lower ? &fair_tasks[rq->cpu] : &idle_tasks[rq->cpu];
	if (next != prev) {
#if FORM != 1
		put_prev(rq, prev, next);
#endif
		if (is_rt(next))
			set_next_task_rt(rq, next, true);
		forget_fair(prev);
	}
#if FORM == 1
	else if (is_rt(next)) {
		set_next_task_rt(rq, next, true);
	}
#endif
	rq->need_resched = 0;
	rq->next_class = next->sched_class;
	set_curr(rq, next);
	balance_callbacks(rq);
}

/* Its own, that runs. */
static void set_priority(struct rq *rq, int prio, unsigned int policy)
{
	struct task_struct *task = rq->curr;
	int old = task->prio;
	bool same_class = is_rt(task);

	update_rq_clock(rq);
	if (same_class) {
		int moves = prio != old ? DEQUEUE_MOVE : 0;

		dequeue_task(rq, task, DEQUEUE_SAVE | moves | DEQUEUE_NOCLOCK);
		put_prev(rq, task, task);
		task->prio = prio;
		task->policy = policy;
		enqueue_task(rq, task, ENQUEUE_RESTORE | moves | ENQUEUE_NOCLOCK | (old < prio ? ENQUEUE_HEAD : 0));
		set_next_task_rt(rq, task, false);
		if (prio != old)
			prio_changed_rt(rq, task, old);
	} else {
		task->prio = prio;
		task->policy = policy;
		task->sched_class = &rt_sched_class;
		enqueue_task(rq, task, ENQUEUE_RESTORE | ENQUEUE_MOVE | ENQUEUE_NOCLOCK);
		set_next_task_rt(rq, task, false);
		switched_to_rt(rq, task);
#if FORM == 73
		wakeup_preempt(rq, task, 0);
#endif
	}
	balance_callbacks(rq);
}

static void leave_class(struct rq *rq)
{
	struct task_struct *task = rq->curr;

	update_rq_clock(rq);
	dequeue_task(rq, task, DEQUEUE_SAVE | DEQUEUE_MOVE | DEQUEUE_NOCLOCK);
	put_prev(rq, task, task);
#if FORM == 73
	switched_from_rt(rq, task);
#endif
	task->normal_prio = task->prio;
	task->prio = 120;
	task->sched_class = &fair_sched_class;
#if FORM == 73
	wakeup_preempt(rq, task, 0);
#else
	switched_from_rt(rq, task);
#endif
	resched_curr(rq);
	balance_callbacks(rq);
}

static void set_affinity(struct rq *rq, u64 bits)
{
	struct task_struct *task = rq->curr;

	update_rq_clock(rq);
	dequeue_task(rq, task, DEQUEUE_SAVE | DEQUEUE_NOCLOCK);
	put_prev(rq, task, task);
	set_mask(task, bits);
	enqueue_task(rq, task, ENQUEUE_RESTORE | ENQUEUE_NOCLOCK);
	set_next_task_rt(rq, task, false);
	balance_callbacks(rq);
}

static void report(void)
{
	for (int cpu = 0; cpu < CPUS; cpu++) {
		struct rq *rq = cpu_rq(cpu);
		word queue = 0, pushable = 0, state = rq->need_resched | rq->nr_running << 1;
		struct task_struct *task;

		for (int prio = 0; prio < MAX_RT_PRIO; prio++) {
			struct sched_rt_entity *se;

			list_for_each_entry(se, &rq->rt.active.queue[prio], run_list)
				queue = (queue ^ container_of(se, struct task_struct, rt)->number) * 0x9e3779b97f4a7c15ULL;
		}
		plist_for_each_entry(task, &rq->rt.pushable_tasks, pushable_tasks)
			pushable = (pushable ^ task->number) * 0x9e3779b97f4a7c15ULL;
		out(queue);
		out(pushable);
		out(rd.cpupri.cpu_to_pri[cpu]);
		out(rq->curr->number);
		out(state);
#if FORM == 1
		out(rq->rt.rt_throttled);
		out(rq->rt.rt_time);
#endif
	}
	out(rd.rto_bits.bits);
	out(rd.rto_cpu);
	out(irq_works);
#if FORM == 1
	out(def_rt_bandwidth.rt_period_active);
	out(def_rt_bandwidth.rt_period_timer.expires);
#endif
}

static void operate(word op, const word *arg)
{
	struct task_struct *task;
	struct rq *rq;

	if (warned || setjmp(illegal)) {
		out(warned);
		return;
	}
	op -= OP_FIRST;
	if (op >= 3) {
		clock_now = arg[0];
		executing_cpu = arg[1];
	}
	rq = cpu_rq(executing_cpu);
	switch (op) {
	case 0: /* start */
		start(arg);
		return;
	case 1: /* CPU */
		rq = cpu_rq(arg[0]);
		rq->capacity = arg[1];
		rq->nr_domains = 0;
		for (int level = 0; level < 3 && arg[2 + level]; level++) {
			rq->domains[level].span.bits = arg[2 + level] & 0xff;
			rq->domains[level].flags = arg[2 + level] >> 63;
			rq->nr_domains++;
		}
		set_mask(&fair_tasks[arg[0]], arg[5] & 1 ? 1ULL << arg[0] : all_cpus.bits);
		set_mask(&dl_tasks[arg[0]], arg[5] & 2 ? 1ULL << arg[0] : all_cpus.bits);
		return;
	case 2: /* task */
		task = &tasks[nr_tasks++];
		init_task(task, arg[0], arg[1], &rt_sched_class);
		task->number = nr_tasks;
		task->policy = arg[2];
		set_mask(task, arg[3]);
		task->uclamp_min = arg[4];
		return;
	case 3: /* wake */
		wake(&tasks[arg[2]]);
		break;
	case 4: /* schedule */
		schedule(rq, arg[2], arg[3]);
		break;
	case 5: /* tick */
		BUG_ON(!is_rt(rq->curr));
		update_rq_clock(rq);
		for (word count = arg[2]; count; count--)
			task_tick_rt(rq, rq->curr, 0);
		break;
	case 6: /* yield */
		BUG_ON(!is_rt(rq->curr));
		update_rq_clock(rq);
		yield_task_rt(rq);
		break;
	case 7: /* affinity */
		BUG_ON(!is_rt(rq->curr));
		set_affinity(rq, arg[2]);
		break;
	case 8: /* priority */
		BUG_ON(!rq->curr->number);
		set_priority(rq, arg[2], arg[3]);
		break;
	case 9: /* leave */
		BUG_ON(!is_rt(rq->curr));
		leave_class(rq);
		break;
	case 10: /* interrupt */
		irq_works &= ~(1ULL << executing_cpu);
		rto_push_irq_work_func(&rd.rto_push_work);
		break;
	case 11: /* deadline */
		update_rq_clock(rq);
		rq->dl.dl_nr_running = arg[2];
		if (arg[2]) {
			rq->nr_running++;
			cpupri_set(&rd.cpupri, executing_cpu, MAX_RT_PRIO);
			preempt(rq, &dl_tasks[executing_cpu]);
		} else {
			rq->nr_running--;
			cpupri_set(&rd.cpupri, executing_cpu, rq->rt.highest_prio.curr);
			resched_curr(rq);
		}
		break;
	case 12: /* find */
		out(find_lowest_rq(&tasks[arg[2]]));
		break;
#if FORM == 1
	case 13: /* period */
		def_rt_bandwidth.rt_period_timer.queued = 0;
		if (sched_rt_period_timer(&def_rt_bandwidth.rt_period_timer) == HRTIMER_RESTART)
			def_rt_bandwidth.rt_period_timer.queued = 1;
		break;
#endif
	}
	report();
}

int main(void)
{
	return serve(begin, operate);
}
