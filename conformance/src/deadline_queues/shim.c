// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for the queues and timers of the deadline class: a kernel tree's own deadline.c, cpudeadline.c and rbtree.c whole, and
 * rt.c and cpupri.c for what they share, around eight CPUs. Each has beside its deadline tasks a fair task that runs where
 * no other does, and from 6.12 on a fair server, if it has a runtime. Then fair tasks come and go, and what they run is told.
 *
 * Replaced: what `l0/shim/classes.h` says; the core's steps between classes are written after core.c. Root domains do not
 * change. A timer fires when the test program says.
 */
#define WITH_DEADLINE
#include "classes.h"

bool sched_class_above(const struct sched_class *a, const struct sched_class *b);
#include "classes_extract.h"
extern const struct sched_class rt_sched_class, dl_sched_class;
static const struct sched_class fair_sched_class, idle_sched_class;

int cpupri_find(struct cpupri *cp, struct task_struct *p, struct cpumask *lowest_mask);
int cpupri_find_fitness(struct cpupri *cp, struct task_struct *p, struct cpumask *lowest_mask,
			bool (*fitness_fn)(struct task_struct *p, int cpu));
void cpupri_set(struct cpupri *cp, int cpu, int pri);
#include "cpupri.c"
#define sched_clock_irqtime 0
#include "rt.c"

#define IDX_INVALID -1
#define CONFIG_CPU_FREQ_GOV_SCHEDUTIL 1
#define TASK_WAKING 0x200
#define LONG_MAX (~0UL >> 1)
int dl_server_apply_params(struct sched_dl_entity *entity, u64 runtime, u64 period, bool init);
#define arch_scale_freq_capacity(cpu) 1024UL
#define cap_scale(value, scale) ((value) * (scale) >> SCHED_CAPACITY_SHIFT)
#define div64_long(a, b) ((s64)(a) / (long)(b))
#define div64_u64(a, b) ((u64)(a) / (u64)(b))
#define div_u64(a, b) ((u64)(a) / (u32)(b))
#define RCU_LOCKDEP_WARN(...) ((void)0)
#define rcu_read_lock_sched_held() 1
#define rcu_read_lock_sched() ((void)0)
#define rcu_read_unlock_sched() ((void)0)
#define lockdep_is_held(lock) 1
#define lockdep_assert_cpus_held() ((void)0)
#define lockdep_pin_lock(lock) 0
struct dl_bandwidth { raw_spinlock_t dl_runtime_lock; u64 dl_runtime, dl_period; };
bool dl_task_needs_bw_move(struct task_struct *task, const struct cpumask *mask);
#define lockdep_unpin_lock(lock, cookie) ((void)0)
#define __rq_lockp(rq) (rq)
#define sched_clock_tick() ((void)0)
#define task_rq_lock(task, flags) task_rq(task)
#define __task_rq_lock(task, flags) task_rq(task)
#define task_has_dl_policy(task) ((task)->policy == SCHED_DEADLINE)
#define task_rq_unlock(rq, task, flags) ((void)(flags))
#define rq_lock_irqsave(rq, flags) ((void)(flags))
#define rq_unlock_irqrestore(rq, flags) ((void)(flags))
#define scoped_guard(...) for (struct { struct rq_flags rf; int done; } scope = { { 0, 0 }, 0 }; !scope.done; scope.done = 1)
#define guard(lock) (void)
#define dec_dl_tasks_cs(task) ((void)0)
#define inc_dl_tasks_cs(task) ((void)0)
#define cpumask_weight_and(a, b) __builtin_popcountll((a)->bits & (b)->bits)
#define cpumask_first_and(a, b) cpumask_any_and(a, b)
#define cpumask_andnot(out, a, b) ((void)((out)->bits = (a)->bits & ~(b)->bits))
#define cpumask_or(out, a, b) ((void)((out)->bits = (a)->bits | (b)->bits))
#define housekeeping_cpumask(type) (&all_cpus)
#define housekeeping_enabled(type) 0
#define cpuset_cpus_allowed_locked(task, mask) ((void)((mask)->bits = all_cpus.bits))
#define cpuset_cpus_allowed(task, mask) ((void)((mask)->bits = all_cpus.bits))
#define set_cpus_allowed_common(...) ((void)0)
#define ktime_get_ns() clock_now
#define hrtick_enabled_dl(rq) 0
#define hrtick_start(rq, delay) ((void)0)
#define task_pid_nr(task) ((task)->number)
#define global_rt_period() 1000000000ULL
#define global_rt_runtime() RUNTIME_INF
#define dl_bandwidth_enabled() 0
#define sysctl_sched_rt_runtime_unused
#define dl_policy(policy) ((policy) == SCHED_DEADLINE)
#define idle_rq(rq) ((rq)->curr == (rq)->idle && !(rq)->nr_running)
#define trace_sched_dl_replenish_tp(...) ((void)0)
#define trace_sched_dl_throttle_tp(...) ((void)0)
#define trace_sched_dl_update_tp(...) ((void)0)
#define trace_sched_dl_server_start_tp(...) ((void)0)
#define trace_sched_dl_server_stop_tp(...) ((void)0)
#define sched_rt_bandwidth_account(rt_rq) 0
#define raw_spin_is_locked(lock) 1
#define for_each_node_mask(...) for (;0;)
#define __must_hold(lock)
enum { DL_TASK, DL_SERVER_FAIR, DL_SERVER_EXT, DL_OTHER, SCHED_GETATTR_FLAG_DL_DYNAMIC = 1 };
static u64 global_rt_unused;
static struct { int waiters; } cpuset_rwsem;
static u64 to_ratio(u64 period, u64 runtime)
{
	return runtime == RUNTIME_INF ? BW_UNIT : period ? (runtime << BW_SHIFT) / period : 0;
}
int cpudl_find(struct cpudl *cp, struct task_struct *p, struct cpumask *later_mask);
void cpudl_set(struct cpudl *cp, int cpu, u64 dl);
void cpudl_clear(struct cpudl *cp, int cpu, bool online);
#include "sched_extract.h"
#include "cpudeadline.c"
#include "deadline.c"

static int rank(const struct sched_class *class)
{
	return class == &dl_sched_class ? 3 : class == &rt_sched_class ? 2 : class == &fair_sched_class ? 1 : 0;
}

bool sched_class_above(const struct sched_class *a, const struct sched_class *b)
{
	return rank(a) > rank(b);
}

enum { TASKS = 16 };

static struct task_struct tasks[TASKS], idle_tasks[CPUS], fair_tasks[CPUS];
/* Of each CPU, a task that has left the class: it is fair, and waits or runs. */
static struct task_struct *left[CPUS];
static int nr_tasks;
static bool servers;

static void nothing(struct rq *rq, struct task_struct *task, int flags)
{
}

static void nothing_to_update(struct rq *rq)
{
}

static const struct sched_class fair_sched_class = { .wakeup_preempt = nothing, .check_preempt_curr = nothing,
						     .update_curr = nothing_to_update };
#if FORM == 73
static void update_curr_idle(struct rq *rq);
#else
#define update_curr_idle nothing_to_update
#endif
static const struct sched_class idle_sched_class = { .wakeup_preempt = nothing, .check_preempt_curr = nothing,
						     .update_curr = update_curr_idle };
#include "idle_extract.h"

static bool is_dl(const struct task_struct *task)
{
	return task->sched_class == &dl_sched_class;
}

static void enqueue_task(struct rq *rq, struct task_struct *task, int flags)
{
	if (!(flags & ENQUEUE_NOCLOCK))
		update_rq_clock(rq);
	enqueue_task_dl(rq, task, flags);
}

static void dequeue_task(struct rq *rq, struct task_struct *task, int flags)
{
	if (!(flags & DEQUEUE_NOCLOCK))
		update_rq_clock(rq);
	dequeue_task_dl(rq, task, flags);
}

static void set_task_cpu(struct task_struct *task, unsigned int cpu)
{
	if (task->cpu != cpu && is_dl(task))
		migrate_task_rq_dl(task, cpu);
	task->cpu = cpu;
}

static void put_prev(struct rq *rq, struct task_struct *prev, struct task_struct *next)
{
	if (is_dl(prev))
#if FORM == 1
		put_prev_task_dl(rq, prev);
#else
		put_prev_task_dl(rq, prev, next);
#endif
}

static void preempt(struct rq *rq, struct task_struct *task)
{
#if FORM == 1
	check_preempt_curr(rq, task, WF_TTWU);
#else
	wakeup_preempt(rq, task, WF_TTWU);
#endif
}

static void init_task(struct task_struct *task, int cpu, int prio, const struct sched_class *class)
{
	memset(task, 0, sizeof(*task));
	task->cpu = cpu;
	task->prio = task->normal_prio = prio;
	task->sched_class = class;
	task->cpus_mask = all_cpus;
	task->cpus_ptr = &task->cpus_mask;
	task->nr_cpus_allowed = CPUS;
	RB_CLEAR_NODE(&task->dl.rb_node);
	RB_CLEAR_NODE(&task->pushable_dl_tasks);
	task->dl.dl_timer.function = dl_task_timer;
	task->dl.inactive_timer.function = inactive_task_timer;
}

static void begin(void)
{
	static int levels[CPUS];
	static struct cpudl_item elements[CPUS];

	memset(&rd, 0, sizeof(rd));
	memset(runqueues, 0, sizeof(runqueues));
	rd.cpupri.cpu_to_pri = levels;
	rd.cpudl.elements = elements;
	rd.span = &rd.span_mask;
	rd.rto_mask = &rd.rto_bits;
	rd.dlo_mask = &rd.dlo_bits;
	rd.span_mask = all_cpus;
	rd.rto_cpu = -1;
	rd.dl_bw.bw = -1;
	rd.cpudl.free_cpus->bits = all_cpus.bits;
	memset(distribute_cpu_mask_prev, 0, sizeof(distribute_cpu_mask_prev));
	memset(dl_push_head, 0, sizeof(dl_push_head));
	memset(dl_pull_head, 0, sizeof(dl_pull_head));
	memset(left, 0, sizeof(left));
	clock_now = nr_tasks = warned = 0;
	capacities_differ = 0;
	for (int cpu = 0; cpu < CPUS; cpu++) {
		struct rq *rq = cpu_rq(cpu);

		levels[cpu] = CPUPRI_INVALID;
		elements[cpu] = (struct cpudl_item){ 0, 0, IDX_INVALID };
		rq->cpu = cpu;
		rq->online = 1;
		rq->rd = &rd;
		rq->dl.root = rq->dl.pushable_dl_tasks_root = RB_ROOT_CACHED;
		init_rt_rq(&rq->rt);
		cpupri_set(&rd.cpupri, cpu, MAX_RT_PRIO - 1);
		init_task(&idle_tasks[cpu], cpu, MAX_PRIO, &idle_sched_class);
		init_task(&fair_tasks[cpu], cpu, 120, &fair_sched_class);
		idle_tasks[cpu].on_rq = TASK_ON_RQ_QUEUED;
		rq->curr = rq->donor = rq->idle = &idle_tasks[cpu];
		rq->next_class = &idle_sched_class;
	}
}

#if FORM != 1
static struct task_struct *pick_fair(struct sched_dl_entity *entity)
{
	return entity->rq->has_fair ? &fair_tasks[entity->rq->cpu] : NULL;
}

static void init_server(struct rq *rq, u64 runtime, u64 period)
{
	struct sched_dl_entity *server = &rq->fair_server;

	RB_CLEAR_NODE(&server->rb_node);
	server->dl_timer.function = dl_task_timer;
	server->inactive_timer.function = inactive_task_timer;
	server->rq = rq;
	server->server_pick_task = (void *)pick_fair;
	dl_server_apply_params(server, runtime, period, true);
	server->dl_server = server->dl_defer = 1;
}

/* The first fair task comes, or the last one leaves. */
static void fair_tasks_come(struct rq *rq, bool come)
{
	struct sched_dl_entity *server = &rq->fair_server;

	update_rq_clock(rq);
	/* What fair tasks run is told. */
	if (rq->curr == &fair_tasks[rq->cpu])
		rq->curr->se.exec_start = rq_clock_task(rq);
	if (come) {
#if FORM == 12
		if (!rq->nr_running)
			dl_server_update_idle_time(rq, rq->curr);
#endif
		if (!server->deadline)
			setup_new_dl_entity(server);
		dl_server_start(server);
	}
	rq->has_fair = come;
	rq->nr_running += come ? 1 : -1;
}

static void idle_ends(struct rq *rq)
{
#if FORM == 12
	dl_server_update_idle_time(rq, rq->idle);
#else
	update_curr_idle(rq);
#endif
}
#endif

static void set_mask(struct task_struct *task, u64 bits)
{
	task->cpus_mask.bits = bits;
	task->nr_cpus_allowed = __builtin_popcountll(bits);
}

static void wake(struct task_struct *task)
{
	int cpu = task->cpu, flags = ENQUEUE_WAKEUP | ENQUEUE_NOCLOCK;
	struct rq *rq;

	BUG_ON(task->on_rq || !is_dl(task));
	task->__state = TASK_WAKING;
	if (task->nr_cpus_allowed > 1)
		cpu = select_task_rq_dl(task, cpu, WF_TTWU);
	if (cpu != task->cpu) {
		flags |= ENQUEUE_MIGRATED;
		set_task_cpu(task, cpu);
	}
	rq = cpu_rq(cpu);
	update_rq_clock(rq);
	activate_task(rq, task, flags);
	task->__state = 0;
	preempt(rq, task);
	task_woken_dl(rq, task);
}

static void schedule(struct rq *rq, int sleeps, int lower)
{
	struct task_struct *prev = rq->curr, *next = NULL;
	struct rq_flags flags = { 0 };

	update_rq_clock(rq);
	if (sleeps && is_dl(prev)) {
		dequeue_task(rq, prev, DEQUEUE_SLEEP | DEQUEUE_NOCLOCK);
		prev->on_rq = 0;
	}
	if (is_dl(prev))
#if FORM == 73
		balance_dl(rq, &flags);
#else
		balance_dl(rq, prev, &flags);
#endif
#if FORM == 1
	put_prev(rq, prev, NULL);
	next = pick_task_dl(rq);
#elif FORM == 73
	next = pick_task_dl(rq, &flags);
#else
	next = pick_task_dl(rq);
#endif
	if (!next)
		next = left[rq->cpu];
	if (servers)
		lower = rq->has_fair;
	if (!next)
		next = lower ? &fair_tasks[rq->cpu] : &idle_tasks[rq->cpu];
	if (next != prev) {
#if FORM != 1
		put_prev(rq, prev, next);
		if (servers && prev == rq->idle)
			idle_ends(rq);
		if (next == rq->idle)
			next->se.exec_start = rq_clock_task(rq);
#endif
		if (is_dl(next))
			set_next_task_dl(rq, next, true);
	}
#if FORM == 1
	else if (is_dl(next)) {
		set_next_task_dl(rq, next, true);
	}
#endif
	rq->need_resched = 0;
	rq->next_class = next->sched_class;
	set_curr(rq, next);
	balance_callbacks(rq);
}

/* The running task asks for a reservation. */
static void reserve(struct rq *rq, const struct sched_attr *attr)
{
	struct task_struct *task = rq->curr;
	bool same_class = is_dl(task);
	u64 old_deadline = 0;

	update_rq_clock(rq);
	BUG_ON(sched_dl_overflow(task, SCHED_DEADLINE, attr));
#if FORM == 73
	if (same_class)
		old_deadline = get_prio_dl(rq, task);
#endif
	if (same_class) {
		dequeue_task(rq, task, DEQUEUE_SAVE | DEQUEUE_MOVE | DEQUEUE_NOCLOCK);
		put_prev(rq, task, task);
	}
	__setparam_dl(task, attr);
	task->policy = SCHED_DEADLINE;
	task->prio = task->normal_prio = -1;
	task->sched_class = &dl_sched_class;
	enqueue_task(rq, task, ENQUEUE_RESTORE | ENQUEUE_MOVE | ENQUEUE_NOCLOCK);
	set_next_task_dl(rq, task, false);
	if (same_class) {
		prio_changed_dl(rq, task, old_deadline);
	} else {
		left[rq->cpu] = NULL;
		switched_to_dl(rq, task);
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
	switched_from_dl(rq, task);
#endif
	task->policy = SCHED_NORMAL;
	task->prio = task->normal_prio = 120;
	task->sched_class = &fair_sched_class;
	left[rq->cpu] = task;
#if FORM == 73
	wakeup_preempt(rq, task, 0);
#else
	switched_from_dl(rq, task);
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
	set_next_task_dl(rq, task, false);
	balance_callbacks(rq);
}

static void fire(struct hrtimer *timer)
{
	BUG_ON(!timer->queued || timer->expires > clock_now);
	timer->queued = 0;
	timer->running = 1;
	if (timer->function(timer) == HRTIMER_RESTART)
		timer->queued = 1;
	timer->running = 0;
}

static void report(void)
{
	for (int cpu = 0; cpu < CPUS; cpu++) {
		struct rq *rq = cpu_rq(cpu);
		word queue = 0, pushable = 0;
		struct rb_node *node;
		int at = rd.cpudl.elements[cpu].idx;

		for (node = rb_first(&rq->dl.root.rb_root); node; node = rb_next(node)) {
			struct sched_dl_entity *entity = rb_entry(node, struct sched_dl_entity, rb_node);
			int number = entity->dl_server ? 99 : container_of(entity, struct task_struct, dl)->number;

			queue = (queue ^ number) * 0x9e3779b97f4a7c15ULL;
		}
		for (node = rb_first(&rq->dl.pushable_dl_tasks_root.rb_root); node; node = rb_next(node)) {
			int number = rb_entry(node, struct task_struct, pushable_dl_tasks)->number;

			pushable = (pushable ^ number) * 0x9e3779b97f4a7c15ULL;
		}
		out(queue);
		out(pushable);
		out(at == IDX_INVALID ? 0 : rd.cpudl.elements[at].dl);
		out(rd.cpupri.cpu_to_pri[cpu]);
		out(rq->curr->number);
		out(rq->need_resched | rq->nr_running << 1);
		out(rq->dl.this_bw);
		out(rq->dl.running_bw);
#if FORM != 1
		if (servers) {
			const struct sched_dl_entity *server = &rq->fair_server;

			out(server->runtime);
			out(server->deadline);
			out(server->dl_server_active | server->dl_throttled << 1 | server->dl_defer_armed << 2 |
			    server->dl_defer_running << 3 | server->dl_defer_idle << 4 |
			    server->dl_non_contending << 5);
			out(server->dl_timer.queued ? server->dl_timer.expires : 0);
			out(server->inactive_timer.queued ? server->inactive_timer.expires : 0);
		}
#endif
	}
	out(rd.dlo_bits.bits);
	out(rd.dl_bw.total_bw);
	for (int number = 0; number < nr_tasks; number++) {
		struct task_struct *task = &tasks[number];
		struct sched_dl_entity *dl = &task->dl;

		out(dl->runtime);
		out(dl->deadline);
		out(task->cpu | dl->dl_throttled << 8 | dl->dl_yielded << 9 | dl->dl_non_contending << 10 |
		    on_dl_rq(dl) << 11);
		out(dl->dl_timer.queued ? dl->dl_timer.expires : 0);
		out(dl->inactive_timer.queued ? dl->inactive_timer.expires : 0);
	}
}

static void operate(word op, const word *arg)
{
	struct task_struct *task;
	struct sched_attr attr = { 0 };
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
		capacities_differ = arg[0];
		servers = arg[2] != 0;
#if FORM != 1
		for (int cpu = 0; servers && cpu < CPUS; cpu++)
			init_server(cpu_rq(cpu), arg[2], arg[3]);
#endif
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
		return;
	case 2: /* task */
		task = &tasks[nr_tasks++];
		init_task(task, arg[0], -1, &dl_sched_class);
		task->number = nr_tasks;
		task->policy = SCHED_DEADLINE;
		set_mask(task, arg[1]);
		attr.sched_runtime = arg[2];
		attr.sched_deadline = arg[3];
		attr.sched_period = arg[4];
		__setparam_dl(task, &attr);
		rd.dl_bw.total_bw += task->dl.dl_bw;
		add_rq_bw(&task->dl, &task_rq(task)->dl);
		return;
	case 3: /* wake */
		wake(&tasks[arg[2]]);
		break;
	case 4: /* schedule */
		schedule(rq, arg[2], arg[3]);
		break;
	case 5: /* tick */
		BUG_ON(!is_dl(rq->curr));
		update_rq_clock(rq);
		task_tick_dl(rq, rq->curr, 0);
		break;
	case 6: /* yield */
		BUG_ON(!is_dl(rq->curr));
		update_rq_clock(rq);
		yield_task_dl(rq);
		break;
	case 7: /* affinity */
		BUG_ON(!is_dl(rq->curr));
		set_affinity(rq, arg[2]);
		break;
	case 8: /* reserve */
		BUG_ON(!rq->curr->number);
		attr.sched_runtime = arg[2];
		attr.sched_deadline = arg[3];
		attr.sched_period = arg[4];
		reserve(rq, &attr);
		break;
	case 9: /* leave */
		BUG_ON(!is_dl(rq->curr));
		leave_class(rq);
		break;
	case 10: /* replenish */
		fire(&tasks[arg[2]].dl.dl_timer);
		break;
	case 11: /* zero lag */
		fire(&tasks[arg[2]].dl.inactive_timer);
		break;
	case 12: /* find */
		out(find_later_rq(&tasks[arg[2]]));
		break;
#if FORM != 1
	case 13: /* fair tasks come or go */
		fair_tasks_come(rq, arg[2]);
		break;
	case 14: /* fair tasks have run */
		update_rq_clock(rq);
		if (rq->fair_server.dl_server_active)
			dl_server_update(&rq->fair_server, arg[2]);
		break;
	case 15: /* the idle task's tick */
		update_rq_clock(rq);
		update_curr_idle(rq);
		break;
	case 16: /* a server's timer */
		fire(&rq->fair_server.dl_timer);
		break;
	case 17: /* its zero-lag time */
		fire(&rq->fair_server.inactive_timer);
		break;
#endif
	}
	report();
}

int main(void)
{
	return serve(begin, operate);
}
