/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the oracles of clamps share: idioms of the kernel's files, CPUs, tasks and a tree of task groups, and
 * how the functions cut out of a tree walk through them. Nothing of the kernel is in this file.
 */
#define MAX_T_AS_WRITTEN
#include "kernel_types.h"
#include "protocol.h"

#define CPUS_MAX 3
#define TASKS_MAX 6
#define GROUPS_MAX 4
#define BUCKETS_MAX 20

#define BITS_PER_LONG 64
#define SCHED_CAPACITY_SHIFT 10
#define SCHED_CAPACITY_SCALE 1024L
#define BW_SHIFT 20
#define EINVAL 22
#define ERANGE 34
#define CONFIG_UCLAMP_TASK 1
#define CONFIG_UCLAMP_TASK_GROUP 1
#define CONFIG_SMP 1
#define MAX_RT_PRIO 100
#define ENQUEUE_RESTORE 2
#define ENQUEUE_NOCLOCK 8
#define ENQUEUE_WAKEUP 1
#define ENQUEUE_MIGRATED 0x40
#define ENQUEUE_DELAYED 0x200
#define DEQUEUE_SAVE 2
#define DEQUEUE_NOCLOCK 8
#define SCHED_FLAG_UTIL_CLAMP_MIN 0x20
#define SCHED_FLAG_UTIL_CLAMP_MAX 0x40
#define SCHED_FLAG_UTIL_CLAMP (SCHED_FLAG_UTIL_CLAMP_MIN | SCHED_FLAG_UTIL_CLAMP_MAX)

#define bits_per(n) ((n) < 32 ? 5 : 11)
#define clamp(value, low, high) \
	({ __typeof__(value) v_ = (value), l_ = (low), h_ = (high); v_ >= h_ ? h_ : v_ > l_ ? v_ : l_; })
#define DIV_ROUND_CLOSEST(a, b) (((a) + (b) / 2) / (b))
#define DIV_ROUND_CLOSEST_ULL(a, b) (((a) + (u64)(b) / 2) / (u64)(b))

/* No concurrency; a warning is an illegal world, so the test program's fault. */
static bool warn(bool condition, const char *text)
{
	if (condition) {
		fprintf(stderr, "the kernel would warn: %s\n", text);
		exit(3);
	}
	return condition;
}
#define SCHED_WARN_ON(condition) warn(!!(condition), #condition)
#define WARN_ON_ONCE(condition) SCHED_WARN_ON(condition)
#define no_guard(...) ((void)0)
#define guard(name) no_guard
#define mutex_lock(mutex) ((void)0)
#define mutex_unlock(mutex) ((void)0)
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define rcu_read_lock_held() true
#define lockdep_assert_held(lock) ((void)0)
#define lockdep_assert_rq_held(rq) ((void)0)
#define task_rq_lock(p, rf) ((void)(rf), task_rq(p))
#define task_rq_unlock(rq, p, rf) ((void)0)
struct rq_flags { int unused; };

/* The static key. */
static bool sched_uclamp_used;
#define static_branch_likely(key) (*(key))
#define static_branch_unlikely(key) (*(key))
#define static_branch_enable(key) ((void)(*(key) = true))

enum uclamp_id { UCLAMP_MIN, UCLAMP_MAX, UCLAMP_CNT };

/* ---- groups ------------------------------------------------------------------------------------- */

struct cgroup_subsys_state { int number; };
struct kernfs_open_file { struct cgroup_subsys_state *css; };
struct seq_file;
#define of_css(of) ((of)->css)

static int group_parent[GROUPS_MAX];

/* Groups come behind those that they are in: the walk down from `top`, a group before those in it. */
static int group_next(int at, int top)
{
	int i;

	for (i = at + 1; i < GROUPS_MAX; i++)
		if (group_parent[i] == at)
			return i;
	for (; at != top; at = group_parent[at])
		for (i = at + 1; i < GROUPS_MAX; i++)
			if (group_parent[i] == group_parent[at])
				return i;
	return -1;
}

static int group_last(int at)
{
	int i, last;

	for (;;) {
		for (i = 0, last = -1; i < GROUPS_MAX; i++)
			if (group_parent[i] == at)
				last = i;
		if (last < 0)
			return at;
		at = last;
	}
}

#define css_tg(group) (&groups[(group)->number])
#define css_of(number) ((number) < 0 ? NULL : &groups[number].css)
#define css_for_each_descendant_pre(at, top) \
	for ((at) = (top); (at); (at) = css_of(group_next((at)->number, (top)->number)))
#define css_rightmost_descendant(at) css_of(group_last((at)->number))

struct css_task_iter { int group, next; };
#define css_task_iter_start(group_, flags, it) ((it)->group = (group_)->number, (it)->next = 0)
#define css_task_iter_end(it) ((void)0)

/* ---- what is written into files ----------------------------------------------------------------- */

/* Hundredths of a percent that the file's text stands for; 10000 is written as "max". */
static s64 written_percent;
#define strim(text) (text)

static int cgroup_parse_float(const char *input, unsigned int decimals, s64 *value)
{
	*value = written_percent;
	return 0;
}

/* The three sysctls of a boot. */
struct ctl_table { unsigned int *value[3], written[3]; };

static int proc_dointvec(const struct ctl_table *table, int write, void *buffer, size_t *size, long long *position)
{
	int i;

	for (i = 0; i < 3; i++)
		*table->value[i] = table->written[i];
	return 0;
}
