// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for cpu.max on a machine: the functions of a kernel tree's own fair.c and core.c that charge, throttle, hand out and
 * unthrottle, and those of the fair class that queue, pick and switch, cut out when the test runs, around a few CPUs, a tree of
 * groups with limits, and tasks.
 *
 * Replaced: locks, PELT (its clock is the CPU's), shares (each group weighs the same everywhere), the order of the list of leaf
 * queues. A timer fires when the test program says; an interrupt to another CPU is a list that the test program empties.
 *
 * KERNEL_7_3, KERNEL_6_18: the tree is of that release, and tasks leave a throttled queue one by one.
 */
#if defined(KERNEL_7_3) || defined(KERNEL_6_18)
#define SINCE_6_18 1
#endif
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

#include "fair_idioms.h"

/* ---- lists ------------------------------------------------------------------------------------- */

#define INIT_LIST_HEAD(list) ((list)->next = (list)->prev = (list))
#define LIST_HEAD(name) struct list_head name = { &(name), &(name) }
#define list_empty(list) ((list)->next == (list))
#define list_entry(pointer, type, member) container_of(pointer, type, member)
static void list_add_tail(struct list_head *entry, struct list_head *head)
{
	list_add(entry, head->prev);
}
/* As the kernel's: the entry still points at its neighbours, for who walks the list. */
static void list_del_rcu(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
}
#define list_add_tail_rcu(entry, head) list_add_tail(entry, head)
static void list_splice(struct list_head *from, struct list_head *head)
{
	struct list_head *first = from->next, *last = from->prev, *at = head->next;

	if (list_empty(from))
		return;
	first->prev = head;
	head->next = first;
	last->next = at;
	at->prev = last;
}
static void list_splice_init(struct list_head *from, struct list_head *head)
{
	list_splice(from, head);
	INIT_LIST_HEAD(from);
}
#define list_for_each_entry_rcu(at, head, member) \
	for (at = list_entry((head)->next, __typeof__(*at), member); &at->member != (head); \
	     at = list_entry(at->member.next, __typeof__(*at), member))
#define list_for_each_entry_safe(at, after, head, member) \
	for (at = list_entry((head)->next, __typeof__(*at), member), \
	     after = list_entry(at->member.next, __typeof__(*at), member); \
	     &at->member != (head); \
	     at = after, after = list_entry(after->member.next, __typeof__(*after), member))

/* ---- timers ------------------------------------------------------------------------------------ */

static u64 clock_now, bandwidth_slice;
static int executing_cpu;

enum hrtimer_restart { HRTIMER_NORESTART, HRTIMER_RESTART };
enum { HRTIMER_MODE_REL, HRTIMER_MODE_ABS_PINNED };
struct hrtimer { u64 expires; bool queued, running; };
#define ns_to_ktime(ns) (ns)
#define ktime_to_ns(time) (time)
#define hrtimer_callback_running(timer) ((timer)->running)
#define hrtimer_expires_remaining(timer) ((s64)(timer)->expires - (s64)clock_now)
#define hrtimer_start(timer, ns, mode) ((void)((timer)->expires = clock_now + (ns), (timer)->queued = true))
#define hrtimer_start_expires(timer, mode) ((void)((timer)->queued = true))
static u64 hrtimer_forward_now(struct hrtimer *timer, u64 period)
{
	u64 periods;

	if (clock_now < timer->expires)
		return 0;
	periods = (clock_now - timer->expires) / period + 1;
	timer->expires += periods * period;
	return periods;
}

/* ---- entities, tasks, queues, groups ----------------------------------------------------------- */

typedef struct { int unused; } raw_spinlock_t;
struct callback_head { struct callback_head *next; };
struct load_weight { unsigned long weight; u32 inv_weight; };
struct sched_avg { unsigned long load_avg; u64 load_sum; };

struct cfs_rq;
struct sched_entity {
	struct load_weight load;
	struct rb_node run_node;
	u64 deadline, min_vruntime, min_slice, vruntime, slice;
#ifdef KERNEL_7_3
	s64 vlag;
	struct load_weight h_load;
	u64 max_slice, vprot;
#else
	union { s64 vlag; u64 vprot; };
	u64 max_slice;
#endif
	u64 exec_start, sum_exec_runtime, prev_sum_exec_runtime;
	struct list_head group_node;
	unsigned char on_rq, sched_delayed, rel_deadline, custom_slice;
	struct sched_avg avg;
	int depth;
	struct sched_entity *parent;
	struct cfs_rq *cfs_rq, *my_q;
};

struct cfs_bandwidth {
	raw_spinlock_t lock;
	u64 period, quota, runtime, burst, runtime_snap;
	unsigned char idle, period_active, slack_started;
	struct hrtimer period_timer, slack_timer;
	struct list_head throttled_cfs_rq;
	int nr_periods, nr_throttled, nr_burst;
	u64 throttled_time, burst_time;
};
struct task_group;
struct rq;

#ifdef SINCE_6_18
#define nr_running_of(cfs) ((cfs)->nr_queued)
#define h_nr_delayed_of(cfs) ((cfs)->h_nr_queued - (cfs)->h_nr_runnable)
#define idle_h_nr_of(cfs) ((cfs)->h_nr_idle)
#define pelt_clock_throttled_of(cfs) ((cfs)->pelt_clock_throttled)
#else
#define nr_running_of(cfs) ((cfs)->nr_running)
#define h_nr_delayed_of(cfs) ((cfs)->h_nr_delayed)
#define idle_h_nr_of(cfs) ((cfs)->idle_h_nr_running)
#define pelt_clock_throttled_of(cfs) ((cfs)->throttle_count != 0)
#endif
struct cfs_rq {
	struct load_weight load;
#ifdef SINCE_6_18
	unsigned int nr_queued, h_nr_queued, h_nr_runnable, h_nr_idle, sum_shift;
	s64 sum_w_vruntime;
	u64 sum_weight, zero_vruntime;
	struct sched_entity *h_curr;
	bool pelt_clock_throttled;
	struct list_head throttled_limbo_list;
#else
	unsigned int nr_running, h_nr_queued, h_nr_runnable, h_nr_delayed;
	unsigned int idle_nr_running, idle_h_nr_running;
	s64 avg_vruntime;
	u64 avg_load, zero_vruntime;
#endif
	struct rb_root_cached tasks_timeline;
	struct sched_entity *curr, *next;
	struct rq *rq;
	struct task_group *tg;
	int idle, on_list, runtime_enabled;
	s64 runtime_remaining;
	u64 throttled_pelt_idle, throttled_clock, throttled_clock_pelt, throttled_clock_pelt_time;
	u64 throttled_clock_self, throttled_clock_self_time;
	bool throttled;
	int throttle_count;
	struct list_head throttled_list, throttled_csd_list;
};

struct task_group {
	struct task_group *parent;
	struct list_head children, siblings;
	struct cfs_rq *cfs_rq[CPUS];
	struct sched_entity *se[CPUS];
	struct cfs_bandwidth cfs_bandwidth;
	/* Their own of each CPU. */
	struct cfs_rq queues[CPUS];
	struct sched_entity entities[CPUS];
};

struct sched_class { int unused; };
const struct sched_class fair_sched_class, idle_sched_class;

struct task_struct {
	struct sched_entity se;
	int on_rq, policy, in_iowait, flags, cpu;
	const struct sched_class *sched_class;
	struct task_group *sched_task_group;
	struct callback_head sched_throttle_work;
	struct list_head throttle_node;
	bool throttled;
};

struct rq {
	struct cfs_rq cfs;
	unsigned int nr_running;
	unsigned long next_balance;
	struct task_struct *curr, *idle;
#define donor curr
	u64 clock;
	bool need_resched;
	struct list_head cfs_tasks, cfsb_csd_list;
	int fair_server, cpu, cfsb_csd;
};

enum { POLICY_NORMAL = 0, POLICY_BATCH = 3, POLICY_IDLE = 5 };
enum { TASK_ON_RQ_QUEUED = 1, TASK_ON_RQ_MIGRATING = 2 };
enum { PF_EXITING = 4, PF_KTHREAD = 0x200000, TWA_RESUME = 1 };

static struct rq rqs[CPUS];
static struct task_group groups[GROUPS];
#define root_task_group (groups[0])
static struct task_struct tasks[TASKS_MAX], idle_tasks[CPUS];
static unsigned nr_tasks, nr_groups;
static unsigned long jiffies;
static u64 sysctl_sched_base_slice = 700000, tick_nsec = 4000000, features = ~0ULL >> 1 | 1ULL << 62;

#define TICK_NSEC tick_nsec
#define NICE_0_LOAD (1024UL << 10)
#define RUNTIME_INF (~0ULL)

enum { BIT_PLACE_LAG, BIT_PLACE_DEADLINE_INITIAL, BIT_PLACE_REL_DEADLINE, BIT_RUN_TO_PARITY,
       BIT_PREEMPT_SHORT, BIT_DELAY_DEQUEUE, BIT_DELAY_ZERO, BIT_WAKEUP_PREEMPTION };
#define BIT_NEXT_BUDDY 63
#define BIT_PARANOID_AVG 63
#define BIT_PICK_BUDDY 62
#define sched_feat(feature) (features >> BIT_##feature & 1)

#define SCHED_CPUFREQ_IOWAIT 1
#define UPDATE_TG 1
#define DO_ATTACH 4
#define DO_DETACH 8
#define WF_FORK 4
#define WF_SYNC 16
#define WF_TTWU 8
#define WF_RQ_SELECTED 128
#define UPDATE_UTIL_EST 16

#define for_each_sched_entity(se) for (; se; se = se->parent)
#define entity_is_task(se) (!(se)->my_q)
#define task_of(entity) container_of(entity, struct task_struct, se)
#define parent_entity(se) ((se)->parent)
#define group_cfs_rq(se) ((se)->my_q)
#define cfs_rq_of(se) ((se)->cfs_rq)
#define task_cfs_rq(task) ((task)->se.cfs_rq)
#define rq_of(cfs) ((cfs)->rq)
#define task_rq(task) (&rqs[(task)->cpu])
#define cpu_rq(number) (&rqs[number])
#define cpu_of(rq) ((rq)->cpu)
#define this_rq() (&rqs[executing_cpu])
#define smp_processor_id() executing_cpu
#define current (this_rq()->curr)
#define cfs_rq_is_idle(cfs) 0
#define task_has_idle_policy(task) ((task)->policy == POLICY_IDLE)
#define normal_policy(policy) ((policy) == POLICY_NORMAL)
#define task_on_rq_queued(task) ((task)->on_rq == TASK_ON_RQ_QUEUED)
#define task_on_rq_migrating(task) ((task)->on_rq == TASK_ON_RQ_MIGRATING)
#define task_current_donor(rq, task) ((rq)->curr == (task))
#define test_tsk_need_resched(task) (task_rq(task)->need_resched)
#define resched_curr(rq) ((void)((rq)->need_resched = true))
#define rq_clock(rq) ((rq)->clock)
#define rq_clock_task(rq) ((rq)->clock)
#define rq_clock_pelt(rq) ((rq)->clock)
#define update_rq_clock(rq) ((void)((rq)->clock = clock_now))
#define rq_clock_start_loop_update(rq) ((void)0)
#define rq_clock_stop_loop_update(rq) ((void)0)
#define add_nr_running(rq, count) ((void)((rq)->nr_running += (count)))
#define sub_nr_running(rq, count) ((void)((rq)->nr_running -= (count)))
#define __block_task(rq, task) ((void)((task)->on_rq = 0))
#define tg_cfs_rq(tg, cpu) ((tg)->cfs_rq[cpu])
#define cfs_rq_se(cfs) ((cfs)->tg->se[(cfs)->rq->cpu])
#define task_group(task) ((task)->sched_task_group)

/* Locks, and what else does nothing here. */
struct guard_flags { unsigned long flags; };
struct rq_flags { int unused; };
#define CLASS(type, name) struct guard_flags name = { 0 }; (void)
#define guard(name) guard_##name
#define guard_rcu() ((void)0)
#define guard_cpus_read_lock() ((void)0)
#define guard_mutex(lock) ((void)0)
#define guard_rq_lock(rq) ((void)0)
#define guard_rq_lock_irq(rq) ((void)0)
#define guard_rq_lock_irqsave(rq) ((void)0)
#define guard_raw_spinlock(lock) ((void)0)
#define scoped_guard(...) \
	for (struct { struct rq *rq; bool done; } scope = { scope_of(__VA_ARGS__, 0), false }; !scope.done; scope.done = true)
#define scope_of(name, ...) scope_##name(__VA_ARGS__)
#define scope_task_rq_lock(task, ...) task_rq(task)
#define scope_raw_spinlock(...) NULL
#define scope_raw_spinlock_irq(...) NULL
#define scope_raw_spinlock_irqsave(...) NULL
#define scope_rcu(...) NULL
#define scope_irqsave(...) NULL
#define raw_spin_lock(lock) ((void)0)
#define raw_spin_unlock(lock) ((void)0)
#define raw_spin_lock_irqsave(lock, flags) ((void)(flags))
#define raw_spin_unlock_irqrestore(lock, flags) ((void)(flags))
#define rq_lock(rq, flags) ((void)0)
#define rq_unlock(rq, flags) ((void)0)
#define rq_lock_irqsave(rq, flags) ((void)0)
#define rq_unlock_irqrestore(rq, flags) ((void)0)
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define lockdep_assert_held(lock) ((void)0)
#define lockdep_assert_rq_held(rq) ((void)0)
#define __must_hold(lock)
#define pr_warn_ratelimited(...) ((void)0)
#define smp_call_function_single_async(cpu, csd) ((void)0)
#define cfs_bandwidth_used() 1
#define cfs_bandwidth_usage_inc() ((void)0)
#define cfs_bandwidth_usage_dec() ((void)0)
#define __cfs_schedulable(group, period, quota) 0
#define sched_cfs_bandwidth_slice() bandwidth_slice
#define max_bw_quota_period_us 1000000
#define max_cfs_quota_period (1000 * NSEC_PER_MSEC)
#define min_cfs_quota_period (1 * NSEC_PER_MSEC)
#define max_bw_runtime_us (~0ULL >> 1)
#define min_bw_quota_period_us 1000
#define max_cfs_runtime (~0ULL >> 20)
#define for_each_online_cpu(cpu) for (cpu = 0; cpu < CPUS; cpu++)
#define EINVAL 22
#define u64_u32_store(variable, value) ((void)((variable) = (value)))
#define u64_u32_load(variable) (variable)
#define detach_task_cfs_rq(task) ((void)0)
#define init_task_work(work, function) ((void)0)
#define task_work_add(task, work, how) ((void)((work)->next = NULL))
typedef int (*tg_visitor)(struct task_group *, void *);

/* The list of leaf queues: who is on it, and who has nothing left. */
static bool list_add_leaf_cfs_rq(struct cfs_rq *cfs)
{
	cfs->on_list = 1;
	return false;
}
#define list_del_leaf_cfs_rq(cfs) ((void)((cfs)->on_list = 0))
#define cfs_rq_is_decayed(cfs) ((cfs)->load.weight == 0)

#define __put_prev_set_next_dl_server(rq, prev, next) ((void)0)
#define RETRY_TASK ((struct task_struct *)-1)
#define sched_balance_newidle(rq, flags) 0
#define update_idle_rq_clock_pelt(rq) ((void)0)
#ifdef SINCE_6_18
#define div64_long(a, b) ((s64)(a) / (s64)(b))
#define max(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ > b_ ? a_ : b_; })
#define MIN_SHARES (1UL << 1)
#define fallthrough ((void)0)
#define sum_w_vruntime_add_paranoid(cfs, se) ((void)0)
#define CONFIG_64BIT 1
#define CONFIG_ARCH_SUPPORTS_INT128 1
#define IS_ENABLED(option) (option)
#define normalized_sysctl_sched_base_slice sysctl_sched_base_slice
#define sysctl_sched_migration_cost 500000
#define resched_curr_lazy(rq) resched_curr(rq)
#define sched_core_enabled(rq) 0
#define account_llc_enqueue(rq, task) ((void)0)
#define account_llc_dequeue(rq, task) ((void)0)
#define pref_llc_running_inc(rq, task) ((void)0)
#define pref_llc_running_dec(rq, task) ((void)0)
#define trace_sched_stat_runtime(task, delta) ((void)0)
#define account_group_exec_runtime(task, delta) ((void)0)
#define account_mm_sched(rq, task, delta) ((void)0)
#define cgroup_account_cputime(task, delta) ((void)0)
#define task_tick_cache(rq, task) ((void)0)
#else
#define CONFIG_6_12 1
#endif

#include "fair_left_out.h"
#define update_load_avg(cfs, se, flags) ((void)0)
#define util_est_enqueue(cfs, task) ((void)0)
#define util_est_dequeue(cfs, task) ((void)0)
#define util_est_update(cfs, task, sleep) ((void)0)
#define dequeue_load_avg(cfs, se) ((void)0)
#define enqueue_load_avg(cfs, se) ((void)0)
#define get_pelt_divider(avg) 1
#define se_weight(se) 0

u64 avg_vruntime(struct cfs_rq *cfs_rq);
static void update_curr(struct cfs_rq *cfs_rq);
static void enqueue_entity(struct cfs_rq *cfs_rq, struct sched_entity *se, int flags);
static void enqueue_task_fair(struct rq *rq, struct task_struct *p, int flags);
static bool dequeue_task_fair(struct rq *rq, struct task_struct *p, int flags);
static void put_prev_set_next_task(struct rq *rq, struct task_struct *prev, struct task_struct *next);
static void clear_buddies(struct cfs_rq *cfs_rq, struct sched_entity *se);
static inline int cfs_rq_throttled(struct cfs_rq *cfs_rq);
static inline int throttled_hierarchy(struct cfs_rq *cfs_rq);
static void check_enqueue_throttle(struct cfs_rq *cfs_rq);
static void return_cfs_rq_runtime(struct cfs_rq *cfs_rq);
static bool throttle_cfs_rq(struct cfs_rq *cfs_rq);
void unthrottle_cfs_rq(struct cfs_rq *cfs_rq);
static void __refill_of(struct cfs_bandwidth *pool);
void start_cfs_bandwidth(struct cfs_bandwidth *cfs_b);
struct sched_entity *__pick_root_entity(struct cfs_rq *cfs_rq);
#ifdef KERNEL_7_3
static bool __dequeue_task(struct rq *rq, struct task_struct *p, int flags);
#else
static bool dequeue_entity(struct cfs_rq *cfs_rq, struct sched_entity *se, int flags);
static int dequeue_entities(struct rq *rq, struct sched_entity *se, int flags);
static void requeue_delayed_entity(struct sched_entity *se);
static bool check_cfs_rq_runtime(struct cfs_rq *cfs_rq);
#endif
#ifdef SINCE_6_18
static u64 cfs_rq_max_slice(struct cfs_rq *cfs_rq);
static inline void task_throttle_setup_work(struct task_struct *p);
#endif
#ifdef KERNEL_6_18
static u64 cfs_rq_min_slice(struct cfs_rq *cfs_rq);
#endif
#ifndef KERNEL_7_3
static void set_next_buddy(struct sched_entity *se);
static int se_is_idle(struct sched_entity *se);
#endif

#ifdef KERNEL_7_3
#include "bandwidth-7.3_extract.h"
#define wakeup_preempts(rq, task, flags) wakeup_preempt_fair(rq, task, flags)
#elif defined(KERNEL_6_18)
#include "bandwidth-6.18_extract.h"
#define wakeup_preempts(rq, task, flags) check_preempt_wakeup_fair(rq, task, flags)
#else
#include "bandwidth_extract.h"
#define wakeup_preempts(rq, task, flags) check_preempt_wakeup_fair(rq, task, flags)
#endif

/* As the core has it. */
static void put_prev_set_next_task(struct rq *rq, struct task_struct *prev, struct task_struct *next)
{
	if (prev == next)
		return;
	if (prev != rq->idle)
		put_prev_task_fair(rq, prev, next);
	set_next_task_fair(rq, next, true);
}

#if defined(KERNEL_6_18)
/* Of the entities that are there, not of what nodes remember. */
static u64 extreme_slice(struct cfs_rq *cfs, bool longest)
{
	struct rb_node *at = rb_first_cached(&cfs->tasks_timeline);
	u64 found = longest ? 0 : ~0ULL;

	for (struct sched_entity *se = cfs->curr && cfs->curr->on_rq ? cfs->curr : NULL; se || at;) {
		if (!se) {
			se = __node_2_se(at);
			at = rb_next(at);
		}
		if (longest ? se->slice > found : se->slice < found)
			found = se->slice;
		se = NULL;
	}
	return found;
}

static u64 cfs_rq_min_slice(struct cfs_rq *cfs) { return extreme_slice(cfs, false); }
static u64 cfs_rq_max_slice(struct cfs_rq *cfs) { return extreme_slice(cfs, true); }
#endif

/* ---- the world --------------------------------------------------------------------------------- */

static word fold(word digest, word value)
{
	digest = (digest ^ value) * 0x9e3779b97f4a7c15ULL;
	return digest ^ digest >> 32;
}

static word number_of(const struct task_struct *task)
{
	return task >= tasks && task < tasks + TASKS_MAX ? (word)(task - tasks) + 1 : 0;
}

static word counts_of(const struct cfs_rq *cfs)
{
	return (word)cfs->h_nr_queued | (word)cfs->h_nr_runnable << 8 | (word)h_nr_delayed_of(cfs) << 16 |
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
	out(cfs->throttled_clock);
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
	cfs->zero_vruntime = -(1LL << 20);
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
	if (sleeps && prev != rq->idle && dequeue_task_fair(rq, prev, flags))
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
		if (prev != next)
			put_prev_task_fair(rq, prev, NULL);
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
	put_prev_task_fair(rq, task, NULL);
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

int main(void)
{
	return serve(begin, operate);
}
