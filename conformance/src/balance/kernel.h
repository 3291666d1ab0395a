/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the load balancer of fair.c takes for granted, as far as its decisions need it: CPUs with
 * lists of tasks, groups, domains, and signals that are plain numbers. Written for this purpose.
 *
 * Replaced, not compared here: the signals themselves (PELT has an oracle of its own), the refresh
 * of group capacities, activation of tasks (only list and counters move), locks, statistics, NUMA
 * balancing, core scheduling and bandwidth control (all absent).
 */
#ifndef L0_BALANCE_KERNEL_H
#define L0_BALANCE_KERNEL_H

#define MAX_T_AS_WRITTEN
#include "kernel_types.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CPUs fit one word of a mask. */
enum { CPUS_MAX = 64 };

/* ---- configuration --------------------------------------------------------------------------- */

#if defined(FORM_6_18) || defined(FORM_7_3)
#define SINCE_6_18 1
#endif

#define CONFIG_SMP 1
#define CONFIG_NUMA 1
#define CONFIG_SCHED_SMT 1
#define CONFIG_PREEMPTION 1
#define NR_CPUS 512

enum { FEATURE_CACHE_HOT_BUDDY = 1, FEATURE_LB_MIN = 0 };
enum { FEATURE_WA_IDLE = 1, FEATURE_WA_WEIGHT = 1, FEATURE_WA_BIAS = 1 };
/* These a case of a wakeup sets. */
static int FEATURE_SIS_UTIL = 1, FEATURE_SIS_PROP;
#define sched_feat(feature) FEATURE_##feature

#define SCHED_CAPACITY_SCALE 1024L
#define NICE_0_LOAD (1024L << 10)
#define scale_load_down(weight) ((weight) >> 10)
#define SCHED_NR_MIGRATE_BREAK 32
#define NUMA_IMBALANCE_MIN 2
#define capacity_greater(a, b) ((a) * 1024 > (b) * 1078)

static const unsigned sysctl_sched_nr_migrate = 32;
static const s64 sysctl_sched_migration_cost = 500000;

/* ---- C and kernel idioms --------------------------------------------------------------------- */

#undef min
#undef max
#define min(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ > b_ ? a_ : b_; })
#define lsub_positive(pointer, value) do { \
	__typeof__(pointer) at_ = (pointer); \
	*at_ -= min_t(__typeof__(*at_), *at_, value); \
} while (0)
#define do_div(n, base) ({ u32 rest_ = (u64)(n) % (u32)(base); (n) = (u64)(n) / (u32)(base); rest_; })
#define shr_bound(value, shift) ((value) >> ((shift) < 63 ? (shift) : 63))
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define fallthrough __attribute__((fallthrough))
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

#define rcu_dereference(pointer) (pointer)
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define preempt_disable() ((void)0)
#define preempt_enable() ((void)0)
#define local_irq_enable() ((void)0)
#define local_irq_restore(flags) ((void)0)
#define lockdep_assert_rq_held(rq) ((void)0)
#define rq_lock(rq, flags) ((void)(flags))
#define rq_unlock(rq, flags) ((void)0)
#define rq_lock_irq(rq, flags) ((void)(flags))
#define rq_lock_irqsave(rq, flags) ((void)(flags))
#define raw_spin_rq_lock_irqsave(rq, flags) ((void)(flags))
#define raw_spin_rq_unlock_irqrestore(rq, flags) ((void)0)
#define schedstat_inc(counter) do { } while (0)
#define schedstat_add(counter, amount) do { } while (0)
/* A warning is an illegal world, so our fault. */
#define WARN_ON_ONCE(condition) do { \
	if (condition) { \
		fprintf(stderr, "the kernel would warn: %s\n", #condition); \
		exit(2); \
	} \
} while (0)

/* ---- lists: a ring with a head --------------------------------------------------------------- */

struct list_head { struct list_head *next, *prev; };

#define LIST_HEAD_INIT(name) { &(name), &(name) }
#define list_first_entry(head, type, member) container_of((head)->next, type, member)
#define list_last_entry(head, type, member) container_of((head)->prev, type, member)
#define list_for_each_entry_reverse(at, head, member) \
	for (at = list_last_entry(head, __typeof__(*at), member); &at->member != (head); \
	     at = list_last_entry(&at->member, __typeof__(*at), member))

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline void list_add(struct list_head *entry, struct list_head *after)
{
	entry->next = after->next;
	entry->prev = after;
	after->next->prev = entry;
	after->next = entry;
}

static inline void list_del_init(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	entry->next = entry->prev = entry;
}

static inline void list_move(struct list_head *entry, struct list_head *head)
{
	list_del_init(entry);
	list_add(entry, head);
}

/* ---- masks ------------------------------------------------------------------------------------ */

struct cpumask { u64 bits; };

#define cpumask_test_cpu(cpu, mask) ((int)((mask)->bits >> (cpu) & 1))
/* From `start` upwards, then from 0. */
#define for_each_cpu_wrap(cpu, mask, start) \
	for (int n_ = 0; n_ < CPUS_MAX && ((cpu) = ((start) + n_) % CPUS_MAX, 1); n_++) \
		if (cpumask_test_cpu(cpu, mask))
#define nr_cpumask_bits CPUS_MAX
#define cpumask_first(mask) ((mask)->bits ? __builtin_ctzll((mask)->bits) : CPUS_MAX)
#define cpumask_weight(mask) __builtin_popcountll((mask)->bits)
#define cpumask_intersects(a, b) (((a)->bits & (b)->bits) != 0)
#define cpumask_subset(a, b) (((a)->bits & ~(b)->bits) == 0)
#define cpumask_and(to, a, b) ((void)((to)->bits = (a)->bits & (b)->bits))
#define cpumask_andnot(to, a, b) ((void)((to)->bits = (a)->bits & ~(b)->bits))
#define cpumask_copy(to, from) (*(to) = *(from))
#define __cpumask_clear_cpu(cpu, mask) ((void)((mask)->bits &= ~(1ULL << (cpu))))
#define for_each_cpu(cpu, mask) \
	for ((cpu) = 0; (cpu) < CPUS_MAX; (cpu)++) \
		if (cpumask_test_cpu(cpu, mask))
#define for_each_cpu_and(cpu, a, b) \
	for ((cpu) = 0; (cpu) < CPUS_MAX; (cpu)++) \
		if (cpumask_test_cpu(cpu, a) && cpumask_test_cpu(cpu, b))

/* ---- tasks and run queues ---------------------------------------------------------------------- */

enum cpu_idle_type { CPU_NOT_IDLE, CPU_IDLE, CPU_NEWLY_IDLE };

#ifdef FORM_6_1
struct util_est { unsigned enqueued, ewma; };
#define ESTIMATE(avg) ((avg).util_est.enqueued)
#else
#define ESTIMATE(avg) ((avg).util_est)
#endif
struct sched_avg {
	unsigned long load_avg, runnable_avg, util_avg;
	u64 last_update_time;
#ifdef FORM_6_1
	struct util_est util_est;
#else
	unsigned util_est;
#endif
};

struct cfs_rq;

struct sched_entity {
	struct sched_avg avg;
	u64 exec_start, vruntime;
	int sched_delayed;
	struct list_head group_node;
	struct cfs_rq *cfs_rq;
};

struct cfs_rq {
	struct sched_avg avg;
	unsigned h_nr_queued, h_nr_runnable;
	struct sched_entity *next, *last;
};

struct task_struct {
	struct sched_entity se;
	int id, cpu, on_rq, idle_policy, nr_cpus_allowed, numa_preferred_nid, sched_task_hot;
	int recent_used_cpu;
	unsigned flags, wakee_flips;
	unsigned long wakee_flip_decay_ts;
	struct task_struct *last_wakee;
	u64 util_est;
	struct sched_cache_group *sched_cache_grp;
	int preferred_llc, pref_llc_queued;
	const int *sched_class;
	struct cpumask mask, *cpus_ptr;
	unsigned long clamps[2];
};

/* What a process prefers. */
struct sched_cache_group { int cpu, nr_threads; u64 nr_running_avg; };
struct root_domain { int overloaded, overutilized; unsigned long max_cpu_capacity; void *pd; };
struct cpuidle_state { unsigned exit_latency; };
struct rq_flags { int flags; };

struct rq {
	int cpu;
	struct cfs_rq cfs;
	unsigned nr_running;
	unsigned long cpu_capacity, arch_capacity, misfit_task_load;
	struct sched_avg avg_rt, avg_dl, avg_irq, avg_hw;
	unsigned long pressure, next_balance, last_blocked_load_update_tick;
	u64 avg_idle, max_idle_balance_cost, rng;
	int nohz_flags, nohz_idle_balance, idle_balance, nohz_tick_stopped, has_blocked_load;
	int kicked, still_blocked, resched, nohz_csd;
	struct root_domain *rd;
	struct task_struct *curr, *idle;
	int ttwu_pending, active_balance, push_cpu, active_balance_work, only_sched_idle;
	u64 clock_task, idle_stamp, wake_avg_idle;
	unsigned long wake_stamp;
	struct cpuidle_state *idle_state;
	struct list_head cfs_tasks;
	struct sched_domain *sd;
	unsigned nr_pref_llc_running, nr_llc_running;
};

static struct rq rqs[CPUS_MAX];
static const int fair_sched_class;
/* Whether the root domain uses energy-aware scheduling. */
static int energy_aware;
static unsigned long jiffies;
static int executing_cpu;
static struct task_struct *executing_task;

#define cpu_rq(cpu) (&rqs[cpu])
#define cpu_of(rq) ((rq)->cpu)
#define cpu_active(cpu) 1
#define smp_processor_id() executing_cpu
#define this_rq() cpu_rq(executing_cpu)
#define current executing_task
#define task_cpu(task) ((task)->cpu)
#define task_rq(task) cpu_rq((task)->cpu)
#define task_on_cpu(rq, task) ((rq)->curr == (task))
#define task_on_rq_queued(task) ((task)->on_rq)
#define task_has_idle_policy(task) ((task)->idle_policy)
#define task_group(task) 0
#define cfs_rq_of(se) ((se)->cfs_rq)
#define kthread_is_per_cpu(task) 0
#define throttled_lb_pair(group, src, dst) 0
#define sched_core_cookie_match(rq, task) true
#define sched_group_cookie_match(rq, task, group) true
#define rq_clock_task(rq) ((rq)->clock_task)
#define update_rq_clock(rq) ((void)0)
#define idle_get_state(rq) ((rq)->idle_state)
#define sched_idle_cpu(cpu) sched_idle_rq(cpu_rq(cpu))
/* Of each CPU: the threads of its core, and its priority. */
static struct cpumask smt_masks[CPUS_MAX];
static int asym_priorities[CPUS_MAX], smt_active;
#define cpu_smt_mask(cpu) (&smt_masks[cpu])
#define sched_smt_active() smt_active
#define sched_asym_prefer(a, b) (asym_priorities[a] > asym_priorities[b])
/* Undecided. */
#ifdef SINCE_6_18
#define migrate_degrades_locality(task, env) 0
#else
#define migrate_degrades_locality(task, env) (-1)
#endif
#define fbq_classify_group(stats) all
#define fbq_classify_rq(rq) regular

/* A case says that it has only tasks with SCHED_IDLE, or lists its tasks. */
static int sched_idle_rq(const struct rq *rq)
{
	unsigned count = 0;

	if (rq->only_sched_idle || !rq->cfs_tasks.next)
		return rq->only_sched_idle;
	for (const struct list_head *at = rq->cfs_tasks.next; at != &rq->cfs_tasks; at = at->next) {
		if (!container_of(at, struct task_struct, se.group_node)->idle_policy)
			return 0;
		count++;
	}
	return count && count == rq->nr_running;
}

static int idle_cpu(int cpu)
{
	const struct rq *rq = cpu_rq(cpu);

	return rq->curr == rq->idle && !rq->nr_running && !rq->ttwu_pending;
}

static int available_idle_cpu(int cpu)
{
	return idle_cpu(cpu);
}

/* Only what later decisions look at. */
#define DEQUEUE_NOCLOCK 0
#define ENQUEUE_NOCLOCK 0
#ifdef FORM_7_3
static void account_llc_enqueue(struct rq *rq, struct task_struct *task);
static void account_llc_dequeue(struct rq *rq, struct task_struct *task);
#else
#define account_llc_enqueue(rq, task) ((void)0)
#define account_llc_dequeue(rq, task) ((void)0)
#endif
static void deactivate_task(struct rq *rq, struct task_struct *task, int flags)
{
	int was_sched_idle = sched_idle_rq(rq);

	account_llc_dequeue(rq, task);
	list_del_init(&task->se.group_node);
	rq->nr_running--;
	rq->cfs.h_nr_queued--;
	rq->cfs.h_nr_runnable -= !task->se.sched_delayed;
	if (!was_sched_idle && sched_idle_rq(rq))
		rq->next_balance = jiffies;
}

static void attach_task(struct rq *rq, struct task_struct *task)
{
	account_llc_enqueue(rq, task);
	list_add(&task->se.group_node, &rq->cfs_tasks);
	rq->nr_running++;
	rq->cfs.h_nr_queued++;
	rq->cfs.h_nr_runnable += !task->se.sched_delayed;
	rq->resched |= rq->curr == rq->idle;
	/* A migrated task is not cache hot. */
	task->se.exec_start = 0;
}

static void set_task_cpu(struct task_struct *task, int cpu)
{
	task->cpu = cpu;
	task->se.cfs_rq = &cpu_rq(cpu)->cfs;
}

/* ---- signals ----------------------------------------------------------------------------------- */

#define cpu_load(rq) ((rq)->cfs.avg.load_avg)
#define cpu_runnable(rq) ((rq)->cfs.avg.runnable_avg)
#define capacity_of(cpu) (cpu_rq(cpu)->cpu_capacity)
#define arch_scale_cpu_capacity(cpu) (cpu_rq(cpu)->arch_capacity)
/* The task to be placed has left nothing on any CPU. */
#define cpu_load_without(rq, task) cpu_load(rq)
#define cpu_runnable_without(rq, task) cpu_runnable(rq)
#define cpu_util_without(cpu, task) cpu_util_cfs(cpu)
#define task_h_load(task) ((task)->se.avg.load_avg)
#define task_util_est(task) ((unsigned long)(task)->util_est)
#define sync_entity_load_avg(se) ((void)0)

static unsigned long cpu_util_cfs(int cpu)
{
	return min(cpu_rq(cpu)->cfs.avg.util_avg, arch_scale_cpu_capacity(cpu));
}

static unsigned long cpu_util_cfs_boost(int cpu)
{
	const struct sched_avg *avg = &cpu_rq(cpu)->cfs.avg;

	return min(max(avg->util_avg, avg->runnable_avg), arch_scale_cpu_capacity(cpu));
}

/* A fifth of the capacity is kept free. */
static bool leaves_a_fifth(unsigned long util, int cpu)
{
	return util * 1280 < capacity_of(cpu) * 1024;
}

#define task_fits_cpu(task, cpu) leaves_a_fifth((task)->util_est, cpu)
#define cpu_overutilized(cpu) (energy_aware && !leaves_a_fifth(cpu_util_cfs(cpu), cpu))
#define is_rd_overutilized(rd) (!energy_aware || (rd)->overutilized)
#define set_rd_overutilized(rd, value) ((void)(energy_aware && ((rd)->overutilized = (value))))
#define set_rd_overloaded(root, value) ((void)((root)->overloaded = (value)))

/* ---- domains ------------------------------------------------------------------------------------ */

#define SD_BALANCE_FORK 0x4
#define SD_ASYM_CPUCAPACITY 0x20
#define SD_SHARE_CPUCAPACITY 0x80
#define SD_CLUSTER 0x100
#define SD_SHARE_LLC 0x200
#define SD_SERIALIZE 0x400
#define SD_ASYM_PACKING 0x800
#define SD_PREFER_SIBLING 0x1000
#define SD_NUMA 0x4000

struct sched_group_capacity {
	unsigned long capacity, min_capacity, max_capacity, next_update;
	int imbalance;
};

struct sched_group {
	struct sched_group *next;
	struct cpumask span;
	struct cpumask balance_mask;
	unsigned group_weight, cores;
	struct sched_group_capacity *sgc;
	int asym_prefer_cpu, flags;
};

struct sched_domain_shared { int nr_idle_scan, has_idle_cores, nr_busy_cpus; unsigned long util_avg, capacity; };

struct sched_domain {
	struct sched_domain *parent, *child;
	struct sched_group *groups;
	struct cpumask span;
	int flags, imb_numa_nr;
	unsigned imbalance_pct, span_weight, nr_balance_failed, cache_nice_tries;
	unsigned long balance_interval, min_interval, max_interval, last_balance;
	unsigned busy_factor, newidle_call, newidle_success, newidle_ratio;
	u64 max_newidle_lb_cost, newidle_stamp;
	unsigned long last_decay_max_lb_cost;
	int nohz_idle;
	u64 avg_scan_cost;
	struct sched_domain_shared *shared;
	unsigned llc_max, llc_counts[CPUS_MAX];
};

#ifdef FORM_6_1
/* Names before 6.10 and what only they have. */
#define h_nr_running h_nr_queued
#define cpu_capacity_orig arch_capacity
#define overload overloaded
#define SD_SHARE_PKG_RESOURCES SD_SHARE_LLC
#define SG_OVERLOAD 1
#define SG_OVERUTILIZED 2
#define sched_energy_enabled() energy_aware
#define set_rd_overutilized_status(rd, status) set_rd_overutilized(rd, !!(status))
#define sched_balance_find_dst_group find_idlest_group
#define sched_balance_find_dst_group_cpu find_idlest_group_cpu
#define sched_balance_find_src_group find_busiest_group
#define sched_balance_find_src_rq find_busiest_queue
#define sched_balance_rq load_balance
#endif

#ifdef SINCE_6_18
/* What only 6.18 and 7.3 ask for. Proxies, throttled groups and NUMA balancing are absent. */
enum { FEATURE_PLACE_LAG = 1 };
#define WARN_ON(condition) WARN_ON_ONCE(condition)
#define READ_ONCE(value) (value)
#define task_current(rq, task) ((rq)->curr == (task))
#define task_current_donor(rq, task) ((rq)->curr == (task))
#define task_is_blocked(task) 0
#define lb_throttled_hierarchy(task, cpu) 0
#define update_lb_imbalance_stat(env, domain, idle) ((void)0)
/* Nobody else balances meanwhile. */
static int sched_balance_running;
#define atomic_try_cmpxchg_acquire(at, old, new) (*(at) == *(old) && (*(at) = (new)))
#define atomic_set_release(at, value) ((void)(*(at) = (value)))
#define nr_cpu_ids CPUS_MAX
#define cpumask_first_and_and(a, b, c) \
	cpumask_first(&(struct cpumask){ (a)->bits & (b)->bits & (c)->bits })
#endif

#ifdef FORM_6_18
/* The queue of a task's group, of which there is one. */
#define task_cfs_rq(task) (&task_rq(task)->cfs)
#define nr_queued h_nr_queued
#endif

#ifdef FORM_7_3
/* What only 7.3 asks for. */
#define CONFIG_SCHED_CACHE 1
#define __maybe_unused __attribute__((unused))
#define rcu_dereference_all(pointer) (pointer)
/* Whether a machine has several caches, its limits, and what processes prefer. */
static int sched_cache_active;
static unsigned cpu_smt_num_threads = 1, llc_aggr_tolerance = 1, llc_imb_pct, llc_overaggr_pct;
#define sched_cache_enabled() sched_cache_active
#define get_nr_threads(task) ((task)->sched_cache_grp->nr_threads)
#define task_llc(task) per_cpu(sd_llc_id, task_cpu(task))
#define task_util(task) ((unsigned long)(task)->util_est)
#define task_has_sched_core(task) 0
typedef int (*cpu_stop_fn_t)(void *);
#define sched_energy_enabled() energy_aware
#define scoped_guard(lock, object) if (1)
#define cpumask_weight_and(a, b) cpumask_weight(&(struct cpumask){ (a)->bits & (b)->bits })
#endif

static int per_cpu_sd_llc_size[CPUS_MAX], per_cpu_sd_llc_id[CPUS_MAX];
static struct sched_domain_shared *per_cpu_sd_llc_shared[CPUS_MAX];
static struct cpumask select_rq_mask, load_balance_mask, should_we_balance_tmpmask;
static struct cpumask every_cpu = { ~0ULL };

#define per_cpu(variable, cpu) per_cpu_##variable[cpu]
#define this_cpu_cpumask_var_ptr(mask) (&(mask))
#define cpu_active_mask (&every_cpu)
#define sched_group_span(group) (&(group)->span)
#define sched_domain_span(domain) (&(domain)->span)
#define group_balance_mask(group) (&(group)->span)
#define group_balance_cpu(group) cpumask_first(&(group)->span)
#define update_group_capacity(domain, cpu) ((void)0)

/* ---- wakeups -------------------------------------------------------------------------------------- */

static int asym_capacities, sched_cluster_active, share_id[CPUS_MAX];
static struct sched_domain *sd_llc, *per_cpu_sd_llc[CPUS_MAX], *per_cpu_sd_asym_cpucapacity[CPUS_MAX];
/* CPUs looked at by a scan, and the time that each takes. */
static u64 scanned, scan_ns;

#define this_cpu_ptr(variable) (variable)
#define cpu_clock(cpu) (scanned * scan_ns)
#define static_branch_unlikely(key) (*(key))
#define sched_asym_cpucap_active() asym_capacities
#define cpus_share_cache(a, b) ((a) == (b) || per_cpu_sd_llc_id[a] == per_cpu_sd_llc_id[b])
#define cpus_share_resources(a, b) ((a) == (b) || share_id[a] == share_id[b])
#define lockdep_assert_irqs_disabled() ((void)0)
#define is_per_cpu_kthread(task) 0
#define in_task() 1
#define test_idle_cores(cpu) (per_cpu_sd_llc_shared[cpu] && per_cpu_sd_llc_shared[cpu]->has_idle_cores)
/* All CPUs of a cache share it; only the target's is looked at. */
#define set_idle_cores(cpu, value) ((void)(per_cpu_sd_llc_shared[cpu] && \
	(per_cpu_sd_llc_shared[cpu]->has_idle_cores = (value))))
#define UCLAMP_MIN 0
#define UCLAMP_MAX 1
#define get_actual_cpu_capacity(cpu) arch_scale_cpu_capacity(cpu)
#define capacity_orig_of(cpu) arch_scale_cpu_capacity(cpu)
#define thermal_load_avg(rq) 0
/* No case has tasks whose dequeue is delayed. */
#define cfs_h_nr_delayed(rq) 0
#define div_u64(a, b) ((a) / (b))

static void update_avg(u64 *average, u64 sample)
{
	*average += (s64)(sample - *average) / 8;
}

static int __select_idle_cpu(int cpu, struct task_struct *task)
{
	scanned++;
	return available_idle_cpu(cpu) || sched_idle_cpu(cpu) ? cpu : -1;
}

#ifdef SINCE_6_18
/* Whether the queue's average virtual runtime has reached the entity's; all weigh the same. */
static int entity_eligible(struct cfs_rq *cfs, struct sched_entity *se)
{
	struct rq *rq = container_of(cfs, struct rq, cfs);
	struct sched_entity *other;
	s64 sum = 0;

	list_for_each_entry_reverse(other, &rq->cfs_tasks, group_node)
		sum += (s64)(other->vruntime - se->vruntime);
	return sum >= 0;
}
#endif

/* CPU number + 1 of the stopper that was asked to push a task, or 0; 100 more if to the cache that it prefers. */
static int stopper;
static int active_load_balance_cpu_stop(void *data)
{
	return 0;
}
#ifdef FORM_7_3
static int active_load_balance_llc_cpu_stop(void *data)
{
	return 1;
}
#endif
#define stop_one_cpu_nowait(cpu, function, argument, work) \
	((void)(stopper = (cpu) + 1 + 100 * (function)(NULL)))

#endif
