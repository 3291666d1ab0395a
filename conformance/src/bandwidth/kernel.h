/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the oracle for cpu.max has in place of the rest of the kernel: lists, timers that wait, CPUs, groups and tasks, and empty
 * locks; and the tree's functions themselves. Included after eevdf_idioms.h.
 */
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
struct cfs_bandwidth {
	raw_spinlock_t lock;
	u64 period, quota, runtime, burst, runtime_snap;
	unsigned char idle, period_active, slack_started;
	struct hrtimer period_timer, slack_timer;
	struct list_head throttled_cfs_rq;
	int nr_periods, nr_throttled, nr_burst;
	u64 throttled_time, burst_time;
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

enum { PF_EXITING = 4, PF_KTHREAD = 0x200000, TWA_RESUME = 1 };

static struct rq rqs[CPUS];
static struct task_group groups[GROUPS];
#define root_task_group (groups[0])
static struct task_struct tasks[TASKS_MAX], idle_tasks[CPUS];
static unsigned nr_tasks, nr_groups;
static unsigned long jiffies;
#ifdef KERNEL_6_1
/* Of three CPUs. Their widths are the kernel's. */
static unsigned int sysctl_sched_latency = 12000000, sysctl_sched_min_granularity = 1500000, sched_nr_latency = 8;
static unsigned int sysctl_sched_wakeup_granularity = 2000000, sysctl_sched_idle_min_granularity = 750000;
#endif
static u64 sysctl_sched_base_slice = 700000, tick_nsec = 4000000, features = ~0ULL >> 1 | 1ULL << 62;

#define RUNTIME_INF (~0ULL)

#define for_each_sched_entity(se) for (; se; se = se->parent)
#define entity_is_task(se) (!(se)->my_q)
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
#define task_current_donor(rq, task) ((rq)->curr == (task))
#define test_tsk_need_resched(task) (task_rq(task)->need_resched)
#define rq_clock(rq) ((rq)->clock)
#define rq_clock_task(rq) ((rq)->clock)
#define rq_clock_pelt(rq) ((rq)->clock)
#define update_rq_clock(rq) ((void)((rq)->clock = clock_now))
#define rq_clock_start_loop_update(rq) ((void)0)
#define rq_clock_stop_loop_update(rq) ((void)0)
#define tg_cfs_rq(tg, cpu) ((tg)->cfs_rq[cpu])
#define cfs_rq_se(cfs) ((cfs)->tg->se[(cfs)->rq->cpu])
#define task_group(task) ((task)->sched_task_group)

/* Locks, and what else does nothing here. */
struct guard_flags { unsigned long flags; };
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
#define rq_lock_irq(rq, flags) ((void)0)
#define rq_unlock_irq(rq, flags) ((void)0)
#define raw_spin_lock_irq(lock) ((void)0)
#define raw_spin_unlock_irq(lock) ((void)0)
#define cpus_read_lock() ((void)0)
#define cpus_read_unlock() ((void)0)
#define mutex_lock(lock) ((void)0)
#define mutex_unlock(lock) ((void)0)
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define lockdep_assert_held(lock) ((void)0)
#define lockdep_assert_rq_held(rq) ((void)0)
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
#define IS_ENABLED(option) (option)
#define update_idle_rq_clock_pelt(rq) ((void)0)
static void update_curr(struct cfs_rq *cfs_rq);
static void enqueue_entity(struct cfs_rq *cfs_rq, struct sched_entity *se, int flags);
static void enqueue_task_fair(struct rq *rq, struct task_struct *p, int flags);
#ifdef KERNEL_6_1
enum { SCHED_NORMAL = 0, DEQUEUE_SPECIAL = 0, ENQUEUE_DELAYED = 0 };
static void dequeue_task_fair(struct rq *rq, struct task_struct *p, int flags);
static void put_prev_task(struct rq *rq, struct task_struct *prev);
struct sched_entity *__pick_first_entity(struct cfs_rq *cfs_rq);
#define sched_fair_runnable(rq) ((rq)->cfs.nr_running > 0)
/* The CPU whose timer expires unthrottles. */
#define __cfsb_csd_unthrottle(rq) ((void)0)
#else
static bool dequeue_task_fair(struct rq *rq, struct task_struct *p, int flags);
#endif
static void put_prev_set_next_task(struct rq *rq, struct task_struct *prev, struct task_struct *next);
static inline int cfs_rq_throttled(struct cfs_rq *cfs_rq);
static inline int throttled_hierarchy(struct cfs_rq *cfs_rq);
static void check_enqueue_throttle(struct cfs_rq *cfs_rq);
static void return_cfs_rq_runtime(struct cfs_rq *cfs_rq);
static bool throttle_cfs_rq(struct cfs_rq *cfs_rq);
void unthrottle_cfs_rq(struct cfs_rq *cfs_rq);
static void __refill_of(struct cfs_bandwidth *pool);
void start_cfs_bandwidth(struct cfs_bandwidth *cfs_b);
#ifdef KERNEL_6_1
static void dequeue_entity(struct cfs_rq *cfs_rq, struct sched_entity *se, int flags);
#elif !defined(KERNEL_7_3)
static bool dequeue_entity(struct cfs_rq *cfs_rq, struct sched_entity *se, int flags);
#endif
#ifndef KERNEL_7_3
static bool check_cfs_rq_runtime(struct cfs_rq *cfs_rq);
static void set_next_buddy(struct sched_entity *se);
static int se_is_idle(struct sched_entity *se);
#endif
#ifdef SINCE_6_18
static inline void task_throttle_setup_work(struct task_struct *p);
#endif

#ifdef KERNEL_7_3
#include "bandwidth-7.3_extract.h"
#define wakeup_preempts(rq, task, flags) wakeup_preempt_fair(rq, task, flags)
#elif defined(KERNEL_6_18)
#include "bandwidth-6.18_extract.h"
#define wakeup_preempts(rq, task, flags) check_preempt_wakeup_fair(rq, task, flags)
#elif defined(KERNEL_6_1)
#include "bandwidth-6.1_extract.h"
#define wakeup_preempts(rq, task, flags) check_preempt_wakeup(rq, task, flags)
#else
#include "bandwidth_extract.h"
#define wakeup_preempts(rq, task, flags) check_preempt_wakeup_fair(rq, task, flags)
#endif
