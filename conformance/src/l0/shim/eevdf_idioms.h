/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the oracles of EEVDF and of cpu.max share: entities and queues as each release has them, the names of counters, features,
 * flags, and what a release calls and the oracles leave out. Included after fair_idioms.h.
 *
 * KERNEL_7_3, KERNEL_6_18, KERNEL_6_1: the tree is of that release, otherwise of 6.12. WITH_BANDWIDTH: groups with limits.
 */
#if defined(KERNEL_7_3) || defined(KERNEL_6_18)
#define SINCE_6_18 1
#endif

struct load_weight { unsigned long weight; u32 inv_weight; };
struct sched_avg { unsigned long load_avg; u64 load_sum; };

struct cfs_rq;
struct rq;
struct task_group;
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
#ifdef WITH_BANDWIDTH
	int depth;
	struct sched_entity *parent;
	struct cfs_rq *cfs_rq, *my_q;
#endif
};

#if defined(SINCE_6_18)
#define nr_running_of(cfs) ((cfs)->nr_queued)
#define h_nr_queued_of(cfs) ((cfs)->h_nr_queued)
#define h_nr_runnable_of(cfs) ((cfs)->h_nr_runnable)
#define h_nr_delayed_of(cfs) ((cfs)->h_nr_queued - (cfs)->h_nr_runnable)
#define idle_h_nr_of(cfs) ((cfs)->h_nr_idle)
#define sum_of(cfs) ((cfs)->sum_w_vruntime)
#define weights_of(cfs) ((cfs)->sum_weight)
#define pelt_clock_throttled_of(cfs) ((cfs)->pelt_clock_throttled)
#elif defined(KERNEL_6_1)
#define nr_running_of(cfs) ((cfs)->nr_running)
#define h_nr_queued_of(cfs) ((cfs)->h_nr_running)
#define h_nr_runnable_of(cfs) ((cfs)->h_nr_running)
#define h_nr_delayed_of(cfs) 0
#define idle_h_nr_of(cfs) ((cfs)->idle_h_nr_running)
#define pelt_clock_throttled_of(cfs) ((cfs)->throttle_count != 0)
#else
#define nr_running_of(cfs) ((cfs)->nr_running)
#define h_nr_queued_of(cfs) ((cfs)->h_nr_queued)
#define h_nr_runnable_of(cfs) ((cfs)->h_nr_runnable)
#define h_nr_delayed_of(cfs) ((cfs)->h_nr_delayed)
#define idle_h_nr_of(cfs) ((cfs)->idle_h_nr_running)
#define sum_of(cfs) ((cfs)->avg_vruntime)
#define weights_of(cfs) ((cfs)->avg_load)
#define pelt_clock_throttled_of(cfs) ((cfs)->throttle_count != 0)
#endif
struct cfs_rq {
	struct load_weight load;
#if defined(SINCE_6_18)
	unsigned int nr_queued, h_nr_queued, h_nr_runnable, h_nr_idle, sum_shift;
	s64 sum_w_vruntime;
	u64 sum_weight, zero_vruntime;
	struct sched_entity *h_curr;
	struct list_head throttled_limbo_list;
#elif defined(KERNEL_6_1)
	unsigned int nr_running, h_nr_running, idle_nr_running, idle_h_nr_running;
	u64 min_vruntime;
	struct sched_entity *last, *skip;
#else
	unsigned int nr_running, h_nr_queued, h_nr_runnable, h_nr_delayed;
	unsigned int idle_nr_running, idle_h_nr_running;
	s64 avg_vruntime;
	u64 avg_load, zero_vruntime;
#endif
	struct rb_root_cached tasks_timeline;
	struct sched_entity *curr, *next;
	/* Bandwidth control names these also where nothing reads them. */
	u64 throttled_clock, throttled_clock_self, throttled_clock_pelt;
	bool pelt_clock_throttled;
#ifdef WITH_BANDWIDTH
	struct rq *rq;
	struct task_group *tg;
	int idle, on_list, runtime_enabled;
	s64 runtime_remaining;
	u64 throttled_pelt_idle, throttled_clock_pelt_time, throttled_clock_self_time;
	bool throttled;
	int throttle_count;
	struct list_head throttled_list, throttled_csd_list;
#endif
};

struct sched_class { int unused; };
const struct sched_class fair_sched_class, idle_sched_class;

/* Policies by numbers: Linux's own names are the tree's. */
enum { POLICY_NORMAL = 0, POLICY_BATCH = 3, POLICY_IDLE = 5 };
enum { TASK_ON_RQ_QUEUED = 1, TASK_ON_RQ_MIGRATING = 2 };

#define TICK_NSEC tick_nsec
#define NICE_0_LOAD (1024UL << 10)

/* The bits of `features`, in the order of the test program. */
enum { BIT_PLACE_LAG, BIT_PLACE_DEADLINE_INITIAL, BIT_PLACE_REL_DEADLINE, BIT_RUN_TO_PARITY,
       BIT_PREEMPT_SHORT, BIT_DELAY_DEQUEUE, BIT_DELAY_ZERO, BIT_WAKEUP_PREEMPTION,
       /* CFS. */
       BIT_GENTLE_FAIR_SLEEPERS, BIT_START_DEBIT, BIT_LAST_BUDDY, BIT_ALT_PERIOD, BIT_BASE_SLICE };
/* Off by default; and in 6.12 no entity is ever nominated. */
#define BIT_NEXT_BUDDY 63
#define BIT_PARANOID_AVG 63
#if defined(SINCE_6_18) || defined(WITH_BANDWIDTH)
#define BIT_PICK_BUDDY 62
#else
#define BIT_PICK_BUDDY 63
#endif
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

#define task_of(entity) container_of(entity, struct task_struct, se)
#define task_has_idle_policy(task) ((task)->policy == POLICY_IDLE)
#define normal_policy(policy) ((policy) == POLICY_NORMAL)
#define task_on_rq_queued(task) ((task)->on_rq == TASK_ON_RQ_QUEUED)
#define task_on_rq_migrating(task) ((task)->on_rq == TASK_ON_RQ_MIGRATING)
#define resched_curr(rq) ((void)((rq)->need_resched = true))
#define add_nr_running(rq, count) ((void)((rq)->nr_running += (count)))
#define sub_nr_running(rq, count) ((void)((rq)->nr_running -= (count)))
#define __block_task(rq, task) ((void)((task)->on_rq = 0))
#define RETRY_TASK ((struct task_struct *)-1)
#define sched_balance_newidle(rq, flags) 0
#define __must_hold(lock)
struct rq_flags { int unused; };

#ifdef SINCE_6_18
#define div64_long(a, b) ((s64)(a) / (s64)(b))
#define max(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ > b_ ? a_ : b_; })
#define MIN_SHARES (1UL << 1)
#define fallthrough ((void)0)
#define sum_w_vruntime_add_paranoid(cfs, se) ((void)0)
#define CONFIG_64BIT 1
#define CONFIG_ARCH_SUPPORTS_INT128 1
#define normalized_sysctl_sched_base_slice sysctl_sched_base_slice
#define sysctl_sched_migration_cost 500000
#define resched_curr_lazy(rq) resched_curr(rq)
#define sched_core_enabled(rq) 0
#define account_llc_enqueue(rq, task) ((void)0)
#define account_llc_dequeue(rq, task) ((void)0)
#define pref_llc_running_inc(rq, task) ((void)0)
#define pref_llc_running_dec(rq, task) ((void)0)
#define account_mm_sched(rq, task, delta) ((void)0)
#define task_tick_cache(rq, task) ((void)0)
#endif
#ifdef KERNEL_6_1
#define trace_sched_stat_runtime(task, delta, vruntime) ((void)0)
#define schedstat_add(variable, amount) ((void)0)
#define check_spread(cfs, se) ((void)0)
#elif defined(SINCE_6_18)
#define trace_sched_stat_runtime(task, delta) ((void)0)
#endif
#define account_group_exec_runtime(task, delta) ((void)0)
#define cgroup_account_cputime(task, delta) ((void)0)

#include "fair_left_out.h"
#define update_load_avg(cfs, se, flags) ((void)0)
#define util_est_enqueue(cfs, task) ((void)0)
#define util_est_dequeue(cfs, task) ((void)0)
#define util_est_update(cfs, task, sleep) ((void)0)
#define dequeue_load_avg(cfs, se) ((void)0)
#define enqueue_load_avg(cfs, se) ((void)0)
#define get_pelt_divider(avg) 1
#define se_weight(se) 0

/* What the tree's functions call before they are defined. */
u64 avg_vruntime(struct cfs_rq *cfs_rq);
static void clear_buddies(struct cfs_rq *cfs_rq, struct sched_entity *se);
struct sched_entity *__pick_root_entity(struct cfs_rq *cfs_rq);
#if defined(KERNEL_7_3)
struct task_struct;
static bool __dequeue_task(struct rq *rq, struct task_struct *p, int flags);
#elif !defined(KERNEL_6_1)
static int dequeue_entities(struct rq *rq, struct sched_entity *se, int flags);
static void requeue_delayed_entity(struct sched_entity *se);
#endif
#ifdef SINCE_6_18
static u64 cfs_rq_max_slice(struct cfs_rq *cfs_rq);
#endif
#ifdef KERNEL_6_18
static u64 cfs_rq_min_slice(struct cfs_rq *cfs_rq);
#endif
