/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What deadline.c and cpudeadline.c of a kernel tree need beyond classes.h, before its tasks and run queues. */
#define EXPORT_SYMBOL(name)
#define rcu_assign_pointer(pointer, value) ((pointer) = (value))
#include <linux/rbtree.h>
#include "rbtree.c"

#define DL_SCALE 10
#define RATIO_SHIFT 8
#define SCHED_FLAG_RECLAIM 0x02
#define SCHED_FLAG_DL_OVERRUN 0x04
#define SCHED_FLAG_SUGOV 0x10000000
#define SCHED_DL_FLAGS (SCHED_FLAG_RECLAIM | SCHED_FLAG_DL_OVERRUN | SCHED_FLAG_SUGOV)
#define ENQUEUE_MIGRATING 0x100
#define DEQUEUE_MIGRATING 0x100
#define TASK_DEAD 0x80
#define KMALLOC_NOTHING

struct rq_flags;
struct sched_dl_entity;
typedef struct task_struct *(*dl_server_pick_f)(struct sched_dl_entity *entity);
typedef bool (*dl_server_has_tasks_f)(struct sched_dl_entity *entity);

struct sched_dl_entity {
	struct rb_node rb_node;
	u64 dl_runtime, dl_deadline, dl_period, dl_bw, dl_density;
	s64 runtime;
	u64 deadline;
	unsigned int flags, dl_throttled, dl_yielded, dl_non_contending, dl_overrun, dl_server, dl_server_active, dl_defer,
		dl_defer_armed, dl_defer_running, dl_defer_idle, dl_bw_attached;
	struct hrtimer dl_timer, inactive_timer;
	struct rq *rq;
	struct task_struct *(*server_pick_task)();
	bool (*server_has_tasks)();
};

struct dl_bw {
	raw_spinlock_t lock;
	u64 bw, total_bw;
};

struct dl_rq {
	struct rb_root_cached root, pushable_dl_tasks_root;
	unsigned int dl_nr_running, dl_nr_migratory;
	struct { u64 curr, next; } earliest_dl;
	bool overloaded;
	u64 running_bw, this_bw, extra_bw, max_bw, bw_ratio;
	struct sched_dl_entity *curr;
};

struct cpudl_item { u64 dl; int cpu, idx; };
struct cpudl {
	raw_spinlock_t lock;
	int size;
	cpumask_var_t free_cpus;
	struct cpudl_item *elements;
};
struct sched_attr { u64 sched_flags, sched_runtime, sched_deadline, sched_period; unsigned int sched_priority; };
