// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for task groups: functions cut out of a kernel tree's own kernel/sched/fair.c around one group and its queue
 * on one CPU.
 *
 * Replaced: lists (a queue is on one or not), timers (a start is recorded), locks; what else a throttled queue that
 * goes on does.
 *
 * FORM_6_1: the tree is of before 6.4. FORM_7_3: it has cgroup_mode.
 */
#include "kernel_types.h"
#include "protocol.h"

#define RUNTIME_INF (~0ULL)
#define MIN_SHARES 2
#define CONFIG_SMP 1
#define scale_load_down(weight) ((weight) >> 10)
#define clamp_t(type, value, low, high) ({ type v_ = (value); v_ < (type)(low) ? (type)(low) : v_ > (type)(high) ? (type)(high) : v_; })
#undef max
#define max(a, b) ({ unsigned long a_ = (a), b_ = (b); a_ > b_ ? a_ : b_; })
#undef NSEC_PER_MSEC
#define NSEC_PER_MSEC 1000000ULL

struct load_weight { unsigned long weight; };
struct sched_avg { unsigned long load_avg, runnable_avg; };
struct list_head { int used; };
struct cfs_bandwidth {
	u64 quota, runtime, burst, runtime_snap;
	int idle;
	int nr_periods, nr_throttled, nr_burst;
	u64 throttled_time, burst_time;
	struct list_head throttled_cfs_rq;
};
struct cgroup { int cpus; };
struct task_group {
	unsigned long shares;
	long load_avg, runnable_avg;
	struct { struct cgroup *cgroup; } css;
	struct cfs_bandwidth cfs_bandwidth;
};
struct rq { int cpu; struct list_head cfsb_csd_list; };
struct cfs_rq {
	struct load_weight load;
	struct sched_avg avg;
	unsigned long tg_load_avg_contrib, tg_runnable_avg_contrib;
	u64 last_update_tg_load_avg;
	s64 runtime_remaining;
	int throttled, h_curr;
	struct list_head throttled_csd_list;
	struct task_group *tg;
};
struct rq_flags { int flags; };

static struct task_group root_task_group, group;
static struct cfs_rq queue;
static struct rq the_rq;
static u64 clock_now, slice;
static int slack_timer_started, goes_on;

#define atomic_long_read(pointer) (*(pointer))
#define atomic_long_add(delta, pointer) ((void)(*(pointer) += (delta)))
#define abs(value) ((value) < 0 ? -(value) : (value))
#define cpu_active(cpu) 1
#define cpu_of(rq) ((rq)->cpu)
#define rq_of(queue) (&the_rq)
#define sched_clock_cpu(cpu) clock_now
#define lockdep_assert_held(lock) ((void)0)
#define raw_spin_lock(lock) ((void)0)
#define raw_spin_unlock(lock) ((void)0)
#define raw_spin_lock_irqsave(lock, flags) ((void)(flags))
#define raw_spin_unlock_irqrestore(lock, flags) ((void)(flags))
#define rq_lock_irqsave(rq, flags) ((void)(flags))
#define rq_unlock_irqrestore(rq, flags) ((void)(flags))
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define SCHED_WARN_ON(condition) do { if (condition) abort(); } while (0)
#define WARN_ON_ONCE(condition) SCHED_WARN_ON(condition)
#define smp_processor_id() 0
#define tg_cfs_bandwidth(tg) (&(tg)->cfs_bandwidth)
#define start_cfs_bandwidth(bandwidth) ((void)0)
#define start_cfs_slack_bandwidth(bandwidth) ((void)(slack_timer_started = 1))
#define sched_cfs_bandwidth_slice() slice
#define min_cfs_rq_runtime 1000000LL
#define cfs_rq_throttled(queue) ((queue)->throttled)
#define LIST_HEAD(name) struct list_head name = { 0 }
#define list_empty(list) (!(list)->used)
#define list_add_tail(entry, list) ((void)((entry)->used = (list)->used = 1))
#define list_del_init(entry) ((void)((entry)->used = 0))
#define list_for_each_entry_rcu(at, list, member) for (int once_ = ((at) = &queue, (list)->used); once_; once_ = 0)
/* Only the queue of this CPU is ever on the second list. */
#define list_for_each_entry_safe(at, next, list, member) \
	for (int once_ = ((next) = (at) = &queue, (list)->used); once_; once_ = 0, (list)->used = 0)

static void unthrottle_cfs_rq(struct cfs_rq *cfs_rq)
{
	goes_on = 1;
	cfs_rq->throttled = cfs_rq->tg->cfs_bandwidth.throttled_cfs_rq.used = 0;
}
#define unthrottle_cfs_rq_async(queue) unthrottle_cfs_rq(queue)

#ifdef FORM_7_3
static int cpus;

#define SCHED_CAPACITY_SHIFT 10
#define scale_load(weight) ((weight) << 10)
/* The weight of nice -20. */
static const int sched_prio_to_weight[] = { 88761 };
#define num_online_cpus() cpus
#define cpusets_enabled() 0
#define cpuset_num_cpus(cgroup) ((cgroup)->cpus)
#define READ_ONCE(value) (value)
#undef max
#define max(a, b) ({ __typeof__((a) + (b)) a_ = (a), b_ = (b); a_ > b_ ? a_ : b_; })
#define rq_clock(rq) clock_now
#define update_rq_clock(rq) ((void)0)
#define update_curr(queue) ((void)0)
#define cpu_rq(cpu) (&the_rq)
#define guard(lock) guard_##lock
#define guard_rcu() ((void)0)
#define guard_rq_lock_irqsave(rq) ((void)(rq))
#define guard_raw_spinlock(lock) ((void)0)
#define scoped_guard(...) if (1)
#define __must_hold(lock)

static void __cfsb_csd_unthrottle(struct rq *rq)
{
	rq->cfsb_csd_list.used = queue.throttled_csd_list.used = 0;
	unthrottle_cfs_rq(&queue);
}
#endif

#include "groups_extract.h"

/* Whether somebody still waits when all has been handed out. */
static word distribute(struct cfs_bandwidth *pool)
{
#ifdef FORM_6_1
	distribute_cfs_runtime(pool);
	return pool->throttled_cfs_rq.used;
#else
	return distribute_cfs_runtime(pool);
#endif
}

static void begin(void)
{
	memset(&group, 0, sizeof(group));
	memset(&queue, 0, sizeof(queue));
	queue.tg = &group;
	clock_now = 0;
}

static void report_pool(void)
{
	const struct cfs_bandwidth *pool = &group.cfs_bandwidth;

	out(pool->runtime);
	out(pool->runtime_snap);
	out(pool->idle);
	out(pool->nr_periods);
	out(pool->nr_throttled);
	out(pool->nr_burst);
	out(pool->burst_time);
	out(queue.runtime_remaining);
}

static void operate(word op, const word *arg)
{
	struct cfs_bandwidth *pool = &group.cfs_bandwidth;
	int waited;

	switch (op - OP_FIRST) {
	case 0: /* shares */
		group.shares = arg[0];
		group.load_avg = arg[1];
		queue.tg_load_avg_contrib = arg[2];
		queue.load.weight = arg[3];
		queue.avg.load_avg = arg[4];
#ifdef FORM_7_3
		group.runnable_avg = (s64)arg[5] >> 16;
		cpus = arg[5] >> 8 & 0xff;
		switch (arg[5] & 0xff) {
		case 0:
			out(calc_up_shares(&queue));
			break;
		case 1:
			out(calc_smp_shares(&queue));
			break;
		case 2:
			out(calc_concur_shares(&queue));
			break;
		case 3:
			out(calc_max_shares(&queue));
			break;
		case 4:
			out(calc_tasks_shares(&queue));
			break;
		}
#else
		out(calc_group_shares(&queue));
#endif
		break;
	case 1: /* contribute: always a millisecond later */
		clock_now += 1000000;
		group.load_avg = group.runnable_avg = 0;
		queue.tg_load_avg_contrib = arg[0];
		queue.avg.load_avg = arg[1];
		queue.tg_runnable_avg_contrib = arg[2];
		queue.avg.runnable_avg = arg[3];
		update_tg_load_avg(&queue);
		out(group.load_avg);
#ifdef FORM_7_3
		out(group.runnable_avg);
#endif
		break;
	case 2: /* limit */
		pool->quota = arg[0];
		pool->burst = arg[1];
		slice = arg[2];
		__refill_cfs_bandwidth_runtime(pool);
		report_pool();
		break;
	case 3: /* run */
		queue.runtime_remaining -= arg[0];
		break;
	case 4: /* assign */
		out(__assign_cfs_rq_runtime(pool, &queue, arg[0]));
		report_pool();
		break;
	case 5: /* give back */
		slack_timer_started = 0;
		waited = pool->throttled_cfs_rq.used;
		pool->throttled_cfs_rq.used |= arg[0] != 0;
		__return_cfs_rq_runtime(&queue);
		pool->throttled_cfs_rq.used = waited;
		out(slack_timer_started);
		report_pool();
		break;
	case 6: /* throttle */
		queue.throttled = pool->throttled_cfs_rq.used = 1;
		break;
	case 7: /* period */
		goes_on = 0;
		out(do_sched_cfs_period_timer(pool, arg[0], 0));
		out(goes_on);
		report_pool();
		break;
	case 8: /* hand out, as the slack timer does */
		goes_on = 0;
		out(distribute(pool));
		out(goes_on);
		report_pool();
		break;
	}
}

int main(void)
{
	return serve(begin, operate);
}
