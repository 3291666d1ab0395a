/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What rt.c, deadline.c, cpupri.c and cpudeadline.c of a kernel tree take for granted: CPUs with run queues, tasks, masks,
 * lists, domains, timers, and the few steps of the core between classes. Written for this purpose: no concurrency, so locks
 * are nothing, and no CPU is ever offline. The tree's own priority lists are included.
 *
 * FORM: 1 a tree of before 6.4, 12 of 6.12, 73 of 7.3.
 */
#include "kernel_types.h"
#include "protocol.h"
#include <setjmp.h>

#define CONFIG_SMP 1
#define CONFIG_UCLAMP_TASK 1
#define HAVE_RT_PUSH_IPI
#define HZ 250
#define MSEC_PER_SEC 1000L
#define USEC_PER_SEC 1000000L
#undef NSEC_PER_SEC
#define NSEC_PER_SEC 1000000000L
#define MAX_RT_PRIO 100
#define MAX_DL_PRIO 0
#define MAX_PRIO 140
#define RR_TIMESLICE (100 * HZ / 1000)
#define BW_SHIFT 20
#define BW_UNIT (1 << BW_SHIFT)
#define MAX_BW_BITS (64 - BW_SHIFT)
#define MAX_BW ((1ULL << MAX_BW_BITS) - 1)
#define RUNTIME_INF ((u64)~0ULL)
#define SCHED_CAPACITY_SHIFT 10
#define SCHED_CAPACITY_SCALE 1024
#define GFP_KERNEL 0
#define ENOMEM 12
#define EBUSY 16
#define EPERM 1
#define EAGAIN 11

#define ENQUEUE_WAKEUP 0x01
#define ENQUEUE_RESTORE 0x02
#define ENQUEUE_MOVE 0x04
#define ENQUEUE_NOCLOCK 0x08
#define ENQUEUE_INITIAL 0x80
#define DEQUEUE_SLEEP 0x01
#define DEQUEUE_SAVE 0x02
#define DEQUEUE_MOVE 0x04
#define DEQUEUE_NOCLOCK 0x08
#if FORM == 73
#define ENQUEUE_HEAD 0x0010000
#define ENQUEUE_REPLENISH 0x0020000
#define ENQUEUE_MIGRATED 0x0040000
#else
#define ENQUEUE_HEAD 0x10
#define ENQUEUE_REPLENISH 0x20
#define ENQUEUE_MIGRATED 0x40
#endif
#define WF_FORK 0x04
#define WF_TTWU 0x08
#define SD_WAKE_AFFINE 1
#define TASK_ON_RQ_QUEUED 1
#define TASK_ON_RQ_MIGRATING 2

enum { SCHED_NORMAL = 0, SCHED_FIFO = 1, SCHED_RR = 2, SCHED_IDLE = 5, SCHED_DEADLINE = 6 };
enum uclamp_id { UCLAMP_MIN, UCLAMP_MAX };

/* Idioms. */
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#define __clear_bit(bit, words) ((words)[(bit) / 64] &= ~(1ULL << (bit) % 64))
#define __set_bit(bit, words) ((words)[(bit) / 64] |= 1ULL << (bit) % 64)
#define sched_find_first_bit(words) ((words)[0] ? __builtin_ctzll((words)[0]) : 64 + __builtin_ctzll((words)[1]))
#define IS_ENABLED(option) 0
#define DIV_ROUND_UP(a, b) (((a) + (b) - 1) / (b))
#define smp_wmb() ((void)0)
#define smp_rmb() ((void)0)
#define smp_mb__before_atomic() ((void)0)
#define smp_mb__after_atomic() ((void)0)
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define rcu_dereference(pointer) (pointer)
#define preempt_disable() ((void)0)
#define preempt_enable() ((void)0)
#define trace_sched_stat_runtime(...) ((void)0)
#define schedstat_set(...) ((void)0)
#define schedstat_enabled() 0
#define check_schedstat_required() ((void)0)
#define printk_deferred_once(...) ((void)0)
#define lockdep_assert_held(lock) ((void)0)
#define lockdep_assert_rq_held(rq) ((void)0)
#define raw_spin_lock_init(lock) ((void)0)
#define raw_spin_lock(lock) ((void)0)
#define raw_spin_unlock(lock) ((void)0)
#define raw_spin_lock_irqsave(lock, flags) ((void)(flags))
#define raw_spin_unlock_irqrestore(lock, flags) ((void)(flags))
#define raw_spin_rq_lock(rq) ((void)0)
#define raw_spin_rq_unlock(rq) ((void)0)
#define rq_lock(rq, flags) ((void)(flags))
#define rq_unlock(rq, flags) ((void)(flags))
#define rq_unpin_lock(rq, flags) ((void)0)
#define rq_repin_lock(rq, flags) ((void)0)
#define double_lock_balance(a, b) 0
#define double_unlock_balance(a, b) ((void)0)
#define double_rq_lock(a, b) ((void)0)
#define double_rq_unlock(a, b) ((void)0)
#define get_task_struct(task) ((void)0)
#define put_task_struct(task) ((void)0)
#define sched_get_rd(rd) ((void)0)
#define sched_put_rd(rd) ((void)0)
#define account_group_exec_runtime(task, delta) ((void)0)
#define cgroup_account_cputime(task, delta) ((void)0)
#define cpufreq_update_util(rq, flags) ((void)0)
#define task_rlimit(task, limit) (~0UL)
#define task_rlimit_max(task, limit) (~0UL)
#define RLIM_INFINITY (~0UL)
#define posix_cputimers_rt_watchdog(...) ((void)0)

/* A warning or a bug is an illegal world, which follows from a difference. The rest of the sequence is left out. */
static bool warned;
static jmp_buf illegal;
static bool warn(bool condition, const char *text)
{
	if (condition && !warned && out_verbose)
		fprintf(stderr, "the kernel would warn: %s\n", text);
	warned |= condition;
	if (condition)
		longjmp(illegal, 1);
	return condition;
}
#define BUG_ON(condition) ((void)warn(!!(condition), #condition))
#define WARN_ON(condition) warn(!!(condition), #condition)
#define WARN_ON_ONCE(condition) warn(!!(condition), #condition)
#define SCHED_WARN_ON(condition) warn(!!(condition), #condition)
#define WARN(condition, ...) warn(!!(condition), #condition)

typedef struct { int counter; } atomic_t;
#define atomic_read(v) ((v)->counter)
#define atomic_read_acquire(v) ((v)->counter)
#define atomic_set(v, value) ((void)((v)->counter = (value)))
#define atomic_set_release(v, value) ((void)((v)->counter = (value)))
#define atomic_inc(v) ((void)(v)->counter++)
#define atomic_dec(v) ((void)(v)->counter--)
static int atomic_cmpxchg_acquire(atomic_t *v, int old, int new)
{
	int was = v->counter;

	if (was == old)
		v->counter = new;
	return was;
}

typedef struct { int unused; } raw_spinlock_t;

/* Masks of CPUs. */
enum { CPUS = 8 };
struct cpumask { u64 bits; };
typedef struct cpumask cpumask_t;
typedef struct cpumask cpumask_var_t[1];
#define nr_cpu_ids ((unsigned int)CPUS)
static int executing_cpu;
#define smp_processor_id() executing_cpu
#define raw_smp_processor_id() executing_cpu
static const struct cpumask all_cpus = { (1ULL << CPUS) - 1 };
#define cpu_online_mask (&all_cpus)
#define cpu_active_mask (&all_cpus)
#define cpu_online(cpu) 1
#define cpu_active(cpu) 1
#define cpu_present(cpu) 1
#define zalloc_cpumask_var(mask, flags) ((*(mask))->bits = 0, true)
#define zalloc_cpumask_var_node(mask, flags, node) ((void)((*(mask))->bits = 0))
#define free_cpumask_var(mask) ((void)0)
#define cpumask_set_cpu(cpu, mask) ((void)((mask)->bits |= 1ULL << (cpu)))
#define __cpumask_set_cpu(cpu, mask) cpumask_set_cpu(cpu, mask)
#define __cpumask_clear_cpu(cpu, mask) cpumask_clear_cpu(cpu, mask)
#define cpumask_clear_cpu(cpu, mask) ((void)((mask)->bits &= ~(1ULL << (cpu))))
#define cpumask_test_cpu(cpu, mask) ((mask)->bits >> (cpu) & 1)
#define cpumask_empty(mask) ((mask)->bits == 0)
#define cpumask_copy(to, from) ((void)((to)->bits = (from)->bits))
#define cpumask_and(out, a, b) (((out)->bits = (a)->bits & (b)->bits) != 0)
#define cpumask_weight(mask) __builtin_popcountll((mask)->bits)
#define cpumask_subset(a, b) (((a)->bits & ~(b)->bits) == 0)
#define cpumask_intersects(a, b) (((a)->bits & (b)->bits) != 0)
#define cpumask_setall(mask) ((void)((mask)->bits = all_cpus.bits))

static unsigned int first_from(unsigned int from, u64 bits)
{
	bits = from < 64 ? bits >> from << from : 0;
	return bits ? (unsigned int)__builtin_ctzll(bits) : nr_cpu_ids;
}
#define cpumask_first(mask) first_from(0, (mask)->bits)
#define cpumask_next(cpu, mask) first_from((unsigned int)((cpu) + 1), (mask)->bits)
#define cpumask_next_and(cpu, a, b) first_from((unsigned int)((cpu) + 1), (a)->bits & (b)->bits)
#define cpumask_any(mask) first_from(0, (mask)->bits)
#define cpumask_any_and(a, b) first_from(0, (a)->bits & (b)->bits)
#define for_each_cpu(cpu, mask) \
	for ((cpu) = first_from(0, (mask)->bits); (unsigned int)(cpu) < nr_cpu_ids; (cpu) = cpumask_next(cpu, mask))
#define for_each_cpu_and(cpu, a, b) \
	for ((cpu) = cpumask_any_and(a, b); (unsigned int)(cpu) < nr_cpu_ids; (cpu) = cpumask_next_and(cpu, a, b))
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < CPUS; (cpu)++)
#define cpu_to_node(cpu) 0

/* Each CPU goes round the CPUs of a mask. */
static int distribute_cpu_mask_prev[CPUS];
static unsigned int distribute(u64 bits)
{
	unsigned int next = first_from(distribute_cpu_mask_prev[executing_cpu] + 1, bits);

	if (next >= nr_cpu_ids)
		next = first_from(0, bits);
	if (next < nr_cpu_ids)
		distribute_cpu_mask_prev[executing_cpu] = next;
	return next;
}
#define cpumask_any_and_distribute(a, b) distribute((a)->bits & (b)->bits)
#define cpumask_any_distribute(mask) distribute((mask)->bits)

#define DEFINE_PER_CPU(type, name) __typeof__(type) name[CPUS]
#define per_cpu(name, cpu) (name)[cpu]
#define per_cpu_ptr(name, cpu) (&(name)[cpu])
#define this_cpu_cpumask_var_ptr(name) ((name)[executing_cpu])
#define this_cpu_read(name) ((name)[executing_cpu])

/* Lists. */
struct list_head { struct list_head *next, *prev; };
static void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list->prev = list;
}
static void list_insert(struct list_head *entry, struct list_head *prev, struct list_head *next)
{
	entry->prev = prev;
	entry->next = next;
	prev->next = next->prev = entry;
}
#define list_add(entry, head) list_insert(entry, head, (head)->next)
#define list_add_tail(entry, head) list_insert(entry, (head)->prev, head)
#define list_empty(head) ((head)->next == (head))
static void list_del_init(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	INIT_LIST_HEAD(entry);
}
#define list_move(entry, head) (list_del_init(entry), list_add(entry, head))
#define list_move_tail(entry, head) (list_del_init(entry), list_add_tail(entry, head))
#define list_entry(pointer, type, member) container_of(pointer, type, member)
#define list_next_entry(at, member) list_entry((at)->member.next, __typeof__(*(at)), member)
#define list_for_each_entry(at, head, member) \
	for ((at) = list_entry((head)->next, __typeof__(*(at)), member); &(at)->member != (head); \
	     (at) = list_next_entry(at, member))

struct plist_head { struct list_head node_list; };
struct plist_node { int prio; struct list_head prio_list, node_list; };
#define plist_check_head(head) ((void)0)
#include "plist_extract.h"

/* Timers: when they are due; the test program lets them fire. */
typedef unsigned char u8;
enum hrtimer_restart { HRTIMER_NORESTART, HRTIMER_RESTART };
struct hrtimer {
	ktime_t expires;
	int queued, running;
	enum hrtimer_restart (*function)(struct hrtimer *timer);
};
enum { CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD, HRTIMER_MODE_REL, HRTIMER_MODE_ABS_HARD, HRTIMER_MODE_ABS_PINNED_HARD };
static u64 clock_now;
#define hrtimer_resolution 1
#define ktime_get() ((ktime_t)clock_now)
#define ns_to_ktime(ns) ((ktime_t)(ns))
#define ktime_to_ns(time) ((s64)(time))
#define ktime_sub(a, b) ((a) - (b))
#define ktime_add_ns(time, ns) ((time) + (ktime_t)(ns))
#define ktime_us_delta(a, b) (((a) - (b)) / 1000)
#define hrtimer_init(timer, clock, mode) ((void)0)
#define hrtimer_setup(timer, handler, clock, mode) ((void)((timer)->function = (void *)(handler)))
#define hrtimer_get_expires(timer) ((timer)->expires)
#define hrtimer_set_expires(timer, at) ((void)((timer)->expires = (at)))
#define hrtimer_cb_get_time(timer) ((ktime_t)clock_now)
#define hrtimer_start_expires(timer, mode) ((void)((timer)->queued = 1))
#define hrtimer_start(timer, at, mode) \
	((void)((timer)->expires = (at) + ((mode) <= HRTIMER_MODE_REL ? clock_now : 0), (timer)->queued = 1))
#define hrtimer_is_queued(timer) ((timer)->queued)
#define hrtimer_active(timer) ((timer)->queued || (timer)->running)
#define hrtimer_callback_running(timer) ((timer)->running)
static int hrtimer_try_to_cancel(struct hrtimer *timer)
{
	int was = timer->queued;

	/* Its handler may have armed it, which it alone can undo. */
	if (timer->running)
		return -1;
	timer->queued = 0;
	return was;
}
#define hrtimer_cancel(timer) hrtimer_try_to_cancel(timer)
static u64 hrtimer_forward(struct hrtimer *timer, ktime_t now, ktime_t interval)
{
	u64 overrun = 1;
	ktime_t delta = now - timer->expires;

	if (delta < 0)
		return 0;
	if (interval < hrtimer_resolution)
		interval = hrtimer_resolution;
	if (delta >= interval) {
		overrun = delta / interval;
		timer->expires += interval * overrun;
		if (timer->expires > now)
			return overrun;
		overrun++;
	}
	timer->expires += interval;
	return overrun;
}
#define hrtimer_forward_now(timer, interval) hrtimer_forward(timer, clock_now, interval)

struct irq_work { int unused; };
struct rq;
struct task_struct;
struct rq_flags { int cookie; unsigned long flags; };
struct affinity_context { const struct cpumask *new_mask; };
struct cpu_stop_work { int unused; };
struct ctl_table;
struct seq_file;
struct task_group;
struct cgroup_taskset;
struct balance_callback {
	struct balance_callback *next;
	void (*func)(struct rq *rq);
};

struct sched_class {
	int uclamp_enabled;
	const void *enqueue_task, *dequeue_task, *yield_task, *pick_next_task, *pick_task, *put_prev_task, *set_next_task,
		*balance, *select_task_rq, *migrate_task_rq, *task_woken, *set_cpus_allowed, *rq_online, *rq_offline,
		*find_lock_rq, *task_tick, *task_fork, *task_dead, *switched_from, *switched_to, *prio_changed, *get_prio,
		*get_rr_interval, *task_is_throttled;
	/* Called through the class by what is taken out of core.c. */
	void (*wakeup_preempt)(struct rq *rq, struct task_struct *task, int flags);
	void (*check_preempt_curr)(struct rq *rq, struct task_struct *task, int flags);
	void (*update_curr)(struct rq *rq);
};
#define DEFINE_SCHED_CLASS(name) const struct sched_class name##_sched_class

#define TASK_INTERRUPTIBLE 1
#define TASK_UNINTERRUPTIBLE 2
#define __schedstat_set(...) ((void)0)
#define __update_stats_wait_start(...) ((void)0)
#define __update_stats_wait_end(...) ((void)0)
#define __update_stats_enqueue_sleeper(...) ((void)0)
struct sched_statistics { u64 sleep_start, block_start, exec_max; };
struct sched_entity { u64 exec_start, sum_exec_runtime; };
struct sched_rt_entity {
	struct list_head run_list;
	unsigned long timeout, watchdog_stamp;
	unsigned int time_slice;
	unsigned short on_rq, on_list;
	struct sched_rt_entity *back;
};

#ifdef WITH_DEADLINE
#include "classes_deadline.h"
#else
struct sched_dl_entity { u64 deadline; };
struct dl_rq { unsigned int dl_nr_running; };
struct cpudl { int unused; };
#endif

struct task_struct {
	int number, cpu, on_rq, on_cpu, prio, normal_prio;
	unsigned int policy, rt_priority;
	const struct sched_class *sched_class;
	struct sched_entity se;
	struct sched_rt_entity rt;
	struct sched_dl_entity dl;
	int nr_cpus_allowed;
	struct cpumask cpus_mask;
	const struct cpumask *cpus_ptr;
	struct plist_node pushable_tasks;
	unsigned long uclamp_min;
	unsigned int __state;
	struct sched_statistics stats;
#ifdef WITH_DEADLINE
	struct rb_node pushable_dl_tasks;
#endif
};

struct rt_prio_array {
	u64 bitmap[2];
	struct list_head queue[MAX_RT_PRIO];
};

struct rt_rq {
	struct rt_prio_array active;
	unsigned int rt_nr_running, rr_nr_running;
	struct { int curr, next; } highest_prio;
	unsigned int rt_nr_migratory, rt_nr_total;
	bool overloaded;
	struct plist_head pushable_tasks;
	int rt_queued, rt_throttled;
	u64 rt_time, rt_runtime;
	raw_spinlock_t rt_runtime_lock;
};

struct rt_bandwidth {
	raw_spinlock_t rt_runtime_lock;
	ktime_t rt_period;
	u64 rt_runtime;
	struct hrtimer rt_period_timer;
	unsigned int rt_period_active;
};

#define CPUPRI_NR_PRIORITIES (MAX_RT_PRIO + 1)
#define CPUPRI_INVALID -1
#define CPUPRI_NORMAL 0
#define CPUPRI_HIGHER 100
struct cpupri_vec {
	atomic_t count;
	cpumask_var_t mask;
};
struct cpupri {
	struct cpupri_vec pri_to_cpu[CPUPRI_NR_PRIORITIES];
	int *cpu_to_pri;
};

struct root_domain {
	struct cpumask span_mask, rto_bits, dlo_bits;
	struct cpumask *span, *rto_mask, *dlo_mask;
	atomic_t rto_count, dlo_count;
	struct cpupri cpupri;
	struct cpudl cpudl;
#ifdef WITH_DEADLINE
	struct dl_bw dl_bw;
	u64 visit_gen, visit_cookie;
#endif
	struct irq_work rto_push_work;
	raw_spinlock_t rto_lock;
	int rto_loop, rto_cpu;
	atomic_t rto_loop_next, rto_loop_start;
};

struct sched_domain { struct cpumask span; int flags; };
#define sched_domain_span(sd) (&(sd)->span)
enum { DOMAINS_MAX = 4 };

struct rq {
	int cpu, online, push_busy, need_resched;
	unsigned int nr_running;
	struct task_struct *curr, *donor, *idle, *stop;
	const struct sched_class *next_class;
	u64 clock, clock_task;
	raw_spinlock_t __lock;
	struct rt_rq rt;
	struct dl_rq dl;
	struct root_domain *rd;
	struct balance_callback *balance_callback;
	struct cpu_stop_work push_work;
	unsigned long capacity;
	struct sched_domain domains[DOMAINS_MAX];
	int nr_domains;
#ifdef WITH_DEADLINE
	struct sched_dl_entity fair_server, *dl_server;
	bool has_fair;
#endif
};

static struct rq runqueues[CPUS];
static struct root_domain rd;
static bool push_by_interrupt, capacities_differ;
static u64 irq_works;

#define scheduler_running 1
#define rt_bandwidth_enabled() (sysctl_sched_rt_runtime >= 0)
#define sched_feat(name) sched_feat_##name
#define sched_feat_RT_PUSH_IPI push_by_interrupt
#define sched_feat_RT_RUNTIME_SHARE 0
#define cpu_rq(number) (&runqueues[number])
#define this_rq() (&runqueues[executing_cpu])
#define cpu_of(rq) ((rq)->cpu)
#define task_rq(task) (&runqueues[(task)->cpu])
#define task_cpu(task) ((task)->cpu)
#define for_each_domain(number, sd) \
	for ((sd) = runqueues[number].domains; (sd) < runqueues[number].domains + runqueues[number].nr_domains; (sd)++)
#define rq_clock(rq) ((rq)->clock)
#define rq_clock_task(rq) ((rq)->clock_task)
#define rq_clock_pelt(rq) ((rq)->clock)
#define update_rq_clock(rq) ((void)((rq)->clock = (rq)->clock_task = clock_now))
#define rq_clock_skip_update(rq) ((void)0)
#define rq_clock_cancel_skipupdate(rq) ((void)0)
#define sched_clock_cpu(cpu) clock_now
#define update_rt_rq_load_avg(clock, rq, running) ((void)0)
#define update_dl_rq_load_avg(clock, rq, running) ((void)0)
#define test_tsk_need_resched(task) (task_rq(task)->need_resched)
#define sched_asym_cpucap_active() capacities_differ
#define arch_scale_cpu_capacity(cpu) (runqueues[cpu].capacity)
#define capacity_orig_of(cpu) (runqueues[cpu].capacity)
#define uclamp_eff_value(task, which) ((which) == UCLAMP_MIN ? (task)->uclamp_min : 1024UL)
#define is_migration_disabled(task) 0
#define task_is_blocked(task) 0
#define get_push_task(rq) ((struct task_struct *)NULL)
#define push_cpu_stop NULL
#define stop_one_cpu_nowait(...) abort()
#define task_current(rq, task) ((rq)->curr == (task))
#define task_current_donor(rq, task) ((rq)->donor == (task))
#define task_on_cpu(rq, task) ((rq)->curr == (task))
#define task_running(rq, task) ((rq)->curr == (task))
#define task_is_pushable(rq, task, cpu) (!task_on_cpu(rq, task) && cpumask_test_cpu(cpu, &(task)->cpus_mask))
#define task_on_rq_queued(task) ((task)->on_rq == TASK_ON_RQ_QUEUED)
#define task_on_rq_migrating(task) ((task)->on_rq == TASK_ON_RQ_MIGRATING)
#define sched_stop_runnable(rq) 0
#define sched_rt_runnable(rq) ((rq)->rt.rt_queued > 0)
#define sched_dl_runnable(rq) ((rq)->dl.dl_nr_running > 0)
#define add_nr_running(rq, count) ((void)((rq)->nr_running += (count)))
#define sub_nr_running(rq, count) ((void)((rq)->nr_running -= (count)))
#define set_cpus_allowed_common NULL
#define print_rt_rq(...) ((void)0)
#define print_dl_rq(...) ((void)0)
#define for_each_online_cpu(cpu) for ((cpu) = 0; (cpu) < CPUS; (cpu)++)
#define irq_work_queue_on(work, cpu) ((void)(irq_works |= 1ULL << (cpu)))
#define kcalloc(count, size, flags) calloc(count, size)
#define kzalloc_objs(type, count) calloc(count, sizeof(type))
#define kfree(pointer) free(pointer)

static void resched_curr(struct rq *rq)
{
	rq->need_resched = 1;
}

static void queue_balance_callback(struct rq *rq, struct balance_callback *head, void (*func)(struct rq *rq))
{
	if (head->next || rq->balance_callback == head)
		return;
	head->func = func;
	head->next = rq->balance_callback;
	rq->balance_callback = head;
}

static void balance_callbacks(struct rq *rq)
{
	struct balance_callback *head = rq->balance_callback;

	rq->balance_callback = NULL;
	while (head) {
		struct balance_callback *next = head->next;

		head->next = NULL;
		head->func(rq);
		head = next;
	}
}

static s64 update_curr_common(struct rq *rq)
{
	struct sched_entity *se = &rq->curr->se;
	s64 delta = rq_clock_task(rq) - se->exec_start;

	if (delta > 0) {
		se->exec_start += delta;
		se->sum_exec_runtime += delta;
	}
	return delta;
}

static void update_current_exec_runtime(struct task_struct *curr, u64 now, u64 delta)
{
	curr->se.sum_exec_runtime += delta;
	curr->se.exec_start = now;
}

static void enqueue_task(struct rq *rq, struct task_struct *task, int flags);
static void dequeue_task(struct rq *rq, struct task_struct *task, int flags);
static void set_task_cpu(struct task_struct *task, unsigned int cpu);

static void deactivate_task(struct rq *rq, struct task_struct *task, int flags)
{
	task->on_rq = TASK_ON_RQ_MIGRATING;
	dequeue_task(rq, task, flags);
}

static void activate_task(struct rq *rq, struct task_struct *task, int flags)
{
	if (task_on_rq_migrating(task))
		flags |= ENQUEUE_MIGRATED;
	enqueue_task(rq, task, flags);
	task->on_rq = TASK_ON_RQ_QUEUED;
}

static void move_queued_task_locked(struct rq *from, struct rq *to, struct task_struct *task)
{
	deactivate_task(from, task, 0);
	set_task_cpu(task, to->cpu);
	activate_task(to, task, 0);
}

/* A running task is put back, or goes on. */
static void set_curr(struct rq *rq, struct task_struct *next)
{
	rq->curr->on_cpu = 0;
	rq->curr = rq->donor = next;
	next->on_cpu = 1;
}
