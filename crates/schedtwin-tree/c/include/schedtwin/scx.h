/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the C of a sched_ext scheduler may take for granted inside of schedtwin: the names of <scx/common.bpf.h> and what
 * that leads to, as native C.
 *
 * Written for this purpose from what these names mean; nothing of the kernel or of libbpf is in here. What the twin has no
 * answer to is not declared, so that a scheduler which asks for it does not compile instead of being answered wrongly.
 *
 * Maps: a map's declaration says its sizes in types, as libbpf has it. Natively the object is a row of pointers, of which
 * the loader makes the first one lead to what the map holds; it has the sizes from the debug information.
 */
#ifndef SCHEDTWIN_SCX_H
#define SCHEDTWIN_SCX_H

#define __BPF__ 1
#define __VMLINUX_H__ 1
/* BPF is compiled by clang, and some files look for it. */
#ifndef __clang__
#define __clang__ 1
#endif
#define HAVE_SCX_ENQ_CPU_SELECTED 1

/* Some weak functions ask for it; native compilers do not inline what a linker may replace. */
#define always_inline __unused__

/* ---- types -------------------------------------------------------------------------------------------------------- */

typedef signed char s8, __s8;
typedef unsigned char u8, __u8;
typedef short s16, __s16;
typedef unsigned short u16, __u16;
typedef int s32, __s32, pid_t;
typedef unsigned int u32, __u32;
typedef long long s64, __s64;
typedef unsigned long long u64, __u64;
typedef unsigned long size_t;
typedef long ssize_t;
typedef long long loff_t;
typedef u8 uint8_t;
typedef u16 uint16_t;
typedef u32 uint32_t;
typedef u64 uint64_t;
typedef s32 int32_t;
typedef s64 int64_t, ktime_t;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

#define ULLONG_MAX (~0ULL)
#define PAGE_SIZE 4096
#define NUMA_NO_NODE (-1)
/* Schedulers define the other clocks themselves. */
#define CLOCK_MONOTONIC 1

enum {
	EPERM = 1, ENOENT = 2, ESRCH = 3, E2BIG = 7, EAGAIN = 11, ENOMEM = 12, EACCES = 13, EFAULT = 14, EBUSY = 16,
	ENOSYS = 38,
	EEXIST = 17, ENODEV = 19, EINVAL = 22, ENOSPC = 28, ERANGE = 34, EOPNOTSUPP = 95, ENOTSUP = 95, ETIMEDOUT = 110,
	EALREADY = 114, ECANCELED = 125,
};

/* ---- what marks a program of BPF ---------------------------------------------------------------------------------- */

#define SEC(name)
#define __hidden
#define __weak __attribute__((__weak__))
#define __noinline __attribute__((__noinline__))
#define __maybe_unused __attribute__((__unused__))
#define __always_inline inline __attribute__((__always_inline__))
#define __arg_trusted
#define __arg_nonnull
#define __arg_nullable
#define __arg_arena
#define __arg_ctx
#define __kptr
#define __kptr_untrusted
#define __percpu_kptr
#define __ksym
#define __kconfig
#define __arena
#define __arena_global
#define __contains(kind, node)
#define private(name)
#define cast_kern(pointer) ((void)(pointer))
#define cast_user(pointer) ((void)(pointer))
#define can_loop true
#define cond_break ((void)0)
#define __sink(value) ((void)(value))
#define barrier_var(value) __asm__ volatile("" : "+r"(value))
#define barrier() __asm__ volatile("" ::: "memory")
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define smp_mb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_rmb() smp_mb()
#define smp_wmb() smp_mb()
#define smp_load_acquire(at) __atomic_load_n(at, __ATOMIC_ACQUIRE)
#define smp_store_release(at, value) __atomic_store_n(at, value, __ATOMIC_RELEASE)
#define cmpxchg(at, before, after) __sync_val_compare_and_swap(at, before, after)
#define xchg(at, value) __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST)
#define READ_ONCE(x) (*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))
#ifndef ARRAY_SIZE
#define ARRAY_SIZE(x) (sizeof(x) / sizeof((x)[0]))
#endif
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - __builtin_offsetof(type, member)))
#define offsetof(type, member) __builtin_offsetof(type, member)
/* What a scheduler defines itself, SCHEDTWIN_WITHOUT_name says: it has no such name from here. */
#if !defined(min) && !defined(SCHEDTWIN_WITHOUT_min)
#define min(a, b) ({ typeof(a) a_ = (a); typeof(b) b_ = (b); a_ < b_ ? a_ : b_; })
#endif
#if !defined(max) && !defined(SCHEDTWIN_WITHOUT_max)
#define max(a, b) ({ typeof(a) a_ = (a); typeof(b) b_ = (b); a_ > b_ ? a_ : b_; })
#endif

#define BPF_STRUCT_OPS(name, ...) name(__VA_ARGS__)
#define BPF_STRUCT_OPS_SLEEPABLE(name, ...) name(__VA_ARGS__)
#define BPF_PROG(name, ...) name(__VA_ARGS__)

#define ___bpf_concat(a, b) a##b
#define ___bpf_apply(name, number) ___bpf_concat(name, number)
/* What guard(rcu)() of a scheduler holds. */
typedef struct {
	void *lock;
} class_rcu_t;

#define bpf_for(i, from, to) \
	for (typeof(i) next_##i = (from), end_##i = (to); next_##i < end_##i && ((i) = next_##i, true); next_##i++)
#define bpf_repeat(count) for (u64 turn_ = 0; turn_ < (u64)(count); turn_++)
#define BPF_MAX_LOOPS (8 * 1024 * 1024)
#define bpf_for_each(kind, item, ...) \
	for (struct bpf_iter_##kind iter_ __attribute__((__cleanup__(bpf_iter_##kind##_destroy))), \
	     *started_ = (bpf_iter_##kind##_new(&iter_, __VA_ARGS__), &iter_); \
	     started_ && ((item) = bpf_iter_##kind##_next(&iter_));)
#define BPF_FOR_EACH_ITER (&iter_)

#define ARRAY_ELEM_PTR(array, index, count) \
	((u64)(index) < (u64)(count) && (u64)(index) < ARRAY_SIZE(array) ? &(array)[index] : NULL)
/* What `.member`, `[index]` or several of them lead to within a variable; NULL outside of it. Indices are looked at once. */
#define MEMBER_VPTR(base, member) ({ \
	u64 offset_ = __builtin_offsetof(struct { typeof(base) base_; }, base_ member); \
	offset_ < sizeof(base) ? (typeof((base) member) *)((char *)&(base) + offset_) : NULL; \
})
/* The loader of a scheduler makes these as long as the machine has CPUs. */
#define RESIZABLE_ARRAY(section, name) name[SCHEDTWIN_NR_CPUS]

#define bpf_ksym_exists(name) 1
#define bpf_core_enum_value_exists(type, value) 1
#define bpf_core_enum_value(type, value) (value)
#define bpf_core_type_exists(type) 1
#define bpf_core_field_exists(...) 1
#define LINUX_KERNEL_VERSION SCHEDTWIN_KERNEL_VERSION
#define KERNEL_VERSION(a, b, c) ((a) << 16 | (b) << 8 | (c))

/* ---- the kernel's structures, as far as schedulers read them ------------------------------------------------------ */

#define NR_CPUS SCHEDTWIN_NR_CPUS
typedef struct cpumask {
	unsigned long bits[SCHEDTWIN_NR_CPUS / 64];
} cpumask_t;

enum {
	TASK_COMM_LEN = 16,
	PF_IDLE = 2, PF_EXITING = 4, PF_IO_WORKER = 0x10, PF_WQ_WORKER = 0x20, PF_KTHREAD = 0x200000,
	SCX_TASK_QUEUED = 1,
	SCX_TASK_REENQ_REASON_MASK = 7 << 12, SCX_TASK_REENQ_NONE = 0, SCX_TASK_REENQ_KFUNC = 1 << 12,
	SCX_TASK_REENQ_IMMED = 2 << 12, SCX_TASK_REENQ_PREEMPTED = 3 << 12, SCX_TASK_REENQ_CAP = 4 << 12,
	SCHED_NORMAL = 0, SCHED_FIFO = 1, SCHED_RR = 2, SCHED_BATCH = 3, SCHED_IDLE = 5, SCHED_DEADLINE = 6, SCHED_EXT = 7,
};

struct sched_ext_entity {
	u64 slice, dsq_vtime;
	u64 runnable_at;
	u32 weight, flags;
	bool disallow;
	u64 tid;
	/* For dumps, which nobody reads. */
	u64 ddsp_dsq_id, ddsp_enq_flags;
};

/* Of the fair class, which does not follow tasks of another one: all 0 for those that it never had. */
struct sched_avg {
	unsigned long load_avg, runnable_avg, util_avg;
};
struct sched_entity {
	u64 sum_exec_runtime;
	struct sched_avg avg;
};
/* Counted with schedstats alone, which are off. */
struct sched_statistics {
	u64 nr_wakeups, nr_wakeups_sync;
};
enum { MPOL_DEFAULT, MPOL_PREFERRED, MPOL_BIND, MPOL_INTERLEAVE, MPOL_LOCAL, MPOL_PREFERRED_MANY };
/* Tasks have none. */
struct mempolicy {
	unsigned short mode, flags;
	struct {
		unsigned long bits[1];
	} nodes;
	int home_node;
};

struct mm_struct;
struct cgroup;
struct css_set {
	struct cgroup *dfl_cgrp;
};

/* Its twin in Rust is TaskStruct of scx/layout.rs. */
struct task_struct {
	int pid, tgid;
	u32 flags;
	int prio, static_prio;
	u32 policy;
	int nr_cpus_allowed, on_cpu, recent_used_cpu, cpu;
	unsigned short migration_disabled;
	char comm[16];
	struct sched_ext_entity scx;
	struct sched_entity se;
	/* By ticks; switches since the scheduler is there. */
	u64 utime, stime;
	unsigned long nvcsw, nivcsw;
	struct sched_statistics stats;
	struct mempolicy *mempolicy;
	struct mm_struct *mm;
	struct task_struct *real_parent;
	const struct cpumask *cpus_ptr;
	struct css_set *cgroups;
	struct cpumask cpus_mask;
	/* What `cgroups` leads to. */
	struct css_set css_set;
};

struct cgroup;
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
	/* No cgroup goes away: its bit PERCPU_REF_DEAD is never set. */
	struct {
		unsigned long percpu_count_ptr;
	} refcnt;
};
enum cgroup_subsys_id {
	cpu_cgrp_id,
};
struct kernfs_node {
	u64 id;
	const char *name;
};
struct task_group {
	struct cgroup_subsys_state css;
	struct {
		u32 weight;
		bool idle;
	} scx;
};
/* Its twin in Rust is CgroupStruct of scx/layout.rs. */
struct cgroup {
	struct kernfs_node *kn;
	int level, number;
	struct cgroup_subsys_state *subsys[1];
	struct cgroup *dom_cgrp;
	struct cgroup_subsys_state self;
};
struct scx_cgroup_init_args {
	u32 weight;
	u64 bw_period_us, bw_quota_us, bw_burst_us;
	bool sched_idle;
};
struct scx_enable_args {
};
/* CPUs by their topological numbers: `nr_cids` bits from `base` on. */
struct scx_cmask {
	u32 base, nr_cids, alloc_words;
	u64 bits[];
};
struct sched_ext_ops;
struct scx_sub_attach_args {
	struct sched_ext_ops *ops;
	char *cgroup_path;
};
struct scx_sub_detach_args {
	struct sched_ext_ops *ops;
	char *cgroup_path;
};
struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;
};
struct scx_exit_task_args {
	bool cancelled;
};
enum scx_cpu_preempt_reason {
	SCX_CPU_PREEMPT_RT, SCX_CPU_PREEMPT_DL, SCX_CPU_PREEMPT_STOP, SCX_CPU_PREEMPT_UNKNOWN,
};
struct scx_cpu_acquire_args {
};
struct scx_cpu_release_args {
	enum scx_cpu_preempt_reason reason;
	struct task_struct *task;
};
enum scx_exit_kind {
	SCX_EXIT_NONE = 0, SCX_EXIT_DONE = 1, SCX_EXIT_UNREG = 64, SCX_EXIT_UNREG_BPF = 65, SCX_EXIT_UNREG_KERN = 66,
	SCX_EXIT_ERROR = 1024, SCX_EXIT_ERROR_BPF = 1025, SCX_EXIT_ERROR_STALL = 1026,
};
struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	u64 flags;
	const char *reason, *msg;
};
struct scx_dump_ctx {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	u64 at_ns, at_jiffies;
};

/*
 * A scheduler has the callbacks that it has. Those of hotplug, core scheduling, sub-schedulers and dumps are never called.
 * The form that goes by topological numbers (cids) has other names for some of them.
 */
struct sched_ext_ops {
	union {
		s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
		s32 (*select_cid)(struct task_struct *p, s32 prev_cid, u64 wake_flags);
	};
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dequeue)(struct task_struct *p, u64 deq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	bool (*core_sched_before)(struct task_struct *a, struct task_struct *b);
	void (*set_weight)(struct task_struct *p, u32 weight);
	union {
		void (*set_cpumask)(struct task_struct *p, const struct cpumask *cpumask);
		void (*set_cmask)(struct task_struct *p, const struct scx_cmask *cmask);
	};
	void (*update_idle)(s32 cpu, bool idle);
	void (*cpu_acquire)(s32 cpu, struct scx_cpu_acquire_args *args);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	void (*dump)(struct scx_dump_ctx *ctx);
	union {
		void (*dump_cpu)(struct scx_dump_ctx *ctx, s32 cpu, bool idle);
		void (*dump_cid)(struct scx_dump_ctx *ctx, s32 cid, bool idle);
	};
	void (*dump_task)(struct scx_dump_ctx *ctx, struct task_struct *p);
	union {
		void (*cpu_online)(s32 cpu);
		void (*cid_online)(s32 cid);
	};
	union {
		void (*cpu_offline)(s32 cpu);
		void (*cid_offline)(s32 cid);
	};
#define SCHEDTWIN_CGROUP_OPS(prefix) \
	struct { \
		s32 (*prefix##_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args); \
		void (*prefix##_exit)(struct cgroup *cgrp); \
		s32 (*prefix##_prep_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to); \
		void (*prefix##_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to); \
		void (*prefix##_cancel_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to); \
		void (*prefix##_set_weight)(struct cgroup *cgrp, u32 weight); \
		void (*prefix##_set_bandwidth)(struct cgroup *cgrp, u64 period_us, u64 quota_us, u64 burst_us); \
		void (*prefix##_set_idle)(struct cgroup *cgrp, bool idle); \
	}
	union {
		SCHEDTWIN_CGROUP_OPS(cgroup);
		SCHEDTWIN_CGROUP_OPS(cpuctl);
	};
	s32 (*sub_attach)(struct scx_sub_attach_args *args);
	void (*sub_detach)(struct scx_sub_detach_args *args);
	void (*sub_caps_updated)(const struct scx_cmask *cmask, u64 caps);
	void (*sub_ecaps_updated)(s32 cid, u64 before, u64 after);
	s32 (*init_cids)(void);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u32 dispatch_max_batch;
	u64 flags;
	u32 timeout_ms;
	u32 exit_dump_len;
	u64 hotplug_seq;
	u32 cid_shard_size, rescue_bandwidth_ppt, rescue_quantum_us;
	u64 sub_cgroup_id;
	char name[128];
};

#define SCHEDTWIN_OPS(object, cids, ...) \
	struct sched_ext_ops object = { __VA_ARGS__ }; \
	struct sched_ext_ops *schedtwin_scx_ops = &object; \
	bool schedtwin_scx_cids = cids
#define SCX_OPS_DEFINE(object, ...) SCHEDTWIN_OPS(object, false, __VA_ARGS__)
#define SCX_OPS_CID_DEFINE(object, ...) SCHEDTWIN_OPS(object, true, __VA_ARGS__)

struct user_exit_info {
	int kind;
	s64 exit_code;
	char reason[128], msg[1024];
};
#define UEI_DEFINE(name) struct user_exit_info name
#define UEI_RECORD(name, info) ((name).kind = (info)->kind, (name).exit_code = (info)->exit_code)

/* ---- constants ---------------------------------------------------------------------------------------------------- */

#define SCX_DSQ_FLAG_BUILTIN (1ULL << 63)
#define SCX_DSQ_FLAG_LOCAL_ON (1ULL << 62)
#define SCX_DSQ_INVALID (SCX_DSQ_FLAG_BUILTIN | 0)
#define SCX_DSQ_GLOBAL (SCX_DSQ_FLAG_BUILTIN | 1)
#define SCX_DSQ_LOCAL (SCX_DSQ_FLAG_BUILTIN | 2)
#define SCX_DSQ_LOCAL_ON (SCX_DSQ_FLAG_BUILTIN | SCX_DSQ_FLAG_LOCAL_ON)
#define SCX_DSQ_LOCAL_CPU_MASK 0xffffffffULL
#define SCX_SLICE_DFL 20000000ULL
#define SCX_SLICE_INF (~0ULL)
#define SCX_CPUPERF_ONE 1024
#define SCX_ECODE_RSN_HOTPLUG (1ULL << 32)
#define SCX_ECODE_ACT_RESTART (1ULL << 48)
#define SCX_OPS_NAME_LEN 128
enum {
	SCX_OPS_KEEP_BUILTIN_IDLE = 1, SCX_OPS_ENQ_LAST = 2, SCX_OPS_ENQ_EXITING = 4, SCX_OPS_SWITCH_PARTIAL = 8,
	SCX_OPS_ENQ_MIGRATION_DISABLED = 16, SCX_OPS_ALLOW_QUEUED_WAKEUP = 32, SCX_OPS_BUILTIN_IDLE_PER_NODE = 64,
	SCX_OPS_HAS_CGROUP_WEIGHT = 1 << 16, SCX_OPS_ALWAYS_ENQ_IMMED = 128, SCX_OPS_TID_TO_TASK = 256,
	SCX_KICK_IDLE = 1, SCX_KICK_PREEMPT = 2, SCX_KICK_WAIT = 4,
	SCX_PICK_IDLE_CORE = 1, SCX_PICK_IDLE_IN_NODE = 2,
	SCX_WAKE_FORK = 4, SCX_WAKE_TTWU = 8, SCX_WAKE_SYNC = 16,
	SCX_DEQ_SLEEP = 1,
	SCX_DSQ_ITER_REV = 1 << 16,
	BPF_F_TIMER_ABS = 1, BPF_F_TIMER_CPU_PIN = 2,
	BPF_ANY = 0, BPF_NOEXIST = 1, BPF_EXIST = 2,
	BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1 << 10,
	BPF_CGROUP_ITER_DESCENDANTS_PRE = 2, BPF_CGROUP_ITER_DESCENDANTS_POST = 3,
	SCX_CAP_BASE = 1, SCX_CAP_ENQ_IMMED = 2, SCX_CAP_ENQ = 4, SCX_CAP_PREEMPT = 8, SCX_CAP_PERF = 16,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};
#define SCX_ENQ_WAKEUP 1ULL
#define SCX_ENQ_HEAD (1ULL << 16)
#define SCX_ENQ_CPU_SELECTED (1ULL << 20)
#define SCX_ENQ_PREEMPT (1ULL << 32)
#define SCX_ENQ_IMMED (1ULL << 33)
#define SCX_ENQ_RESCUE (1ULL << 34)
#define SCX_ENQ_REENQ (1ULL << 40)
#define SCX_ENQ_LAST (1ULL << 41)
#define SCX_DEQ_CORE_SCHED_EXEC (1ULL << 32)
#define SCX_DEQ_SCHED_CHANGE (1ULL << 33)

/* ---- arithmetic --------------------------------------------------------------------------------------------------- */

#define time_after(a, b) ((s64)((u64)(b) - (u64)(a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((s64)((u64)(a) - (u64)(b)) >= 0)
#define time_before_eq(a, b) time_after_eq(b, a)
#define time_in_range(a, b, c) (time_after_eq(a, b) && time_before_eq(a, c))
#define time_delta(after, before) ((s64)((u64)(after) - (u64)(before)) > 0 ? (u64)(after) - (u64)(before) : 0)

static inline u64 scale_by_task_weight(const struct task_struct *p, u64 value) { return value * p->scx.weight / 100; }
static inline u64 scale_by_task_weight_inverse(const struct task_struct *p, u64 value)
{
	return value * 100 / p->scx.weight;
}
/* An average that keeps a part of 2^-decay less of the old value; small ones are halved, so that they reach 0. */
#define __calc_avg(old, new, decay) ({ \
	typeof(old) old_ = (old); \
	typeof(old) new_ = (new); \
	typeof(old) most_ = 1 << (decay); \
	int by_ = old_ < most_ || new_ < most_ ? 1 : (decay); \
	old_ == 1 && new_ == 0 ? 0 : old_ - (old_ >> by_) + (new_ >> by_); \
})
static inline u32 log2_u32(u32 v) { return v ? 32 - __builtin_clz(v) : 0; }
static inline u32 log2_u64(u64 v) { return v ? 64 - __builtin_clzll(v) : 0; }
static inline int ctzll(u64 v) { return v ? __builtin_ctzll(v) : 64; }
static inline u64 div_round_up_u64(u64 a, u64 b) { return (a + b - 1) / b; }
#ifndef SCHEDTWIN_WITHOUT_is_migration_disabled
static inline bool is_migration_disabled(const struct task_struct *p) { return p->migration_disabled != 0; }
#endif
void *memset(void *, int, size_t);
void *memcpy(void *, const void *, size_t);
int strncmp(const char *, const char *, size_t);
#define __builtin_memset memset
#define __builtin_memcpy_inline memcpy
#define bpf_strncmp(a, bytes, b) strncmp(a, b, bytes)

/* ---- maps --------------------------------------------------------------------------------------------------------- */

#define __uint(name, value) int (*name)[value]
#define __type(name, of) typeof(of) *name
#define __array(name, of) typeof(of) *name[]
#define __ulong(name, value) enum { SCHEDTWIN_PASTE(schedtwin_ignored_, __COUNTER__) = 0 } name
#define SCHEDTWIN_PASTE(a, b) SCHEDTWIN_PASTE_(a, b)
#define SCHEDTWIN_PASTE_(a, b) a##b

enum {
	BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12, BPF_MAP_TYPE_QUEUE = 22, BPF_MAP_TYPE_STACK = 23, BPF_MAP_TYPE_RINGBUF = 27, BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_MAP_TYPE_CGRP_STORAGE = 32, BPF_MAP_TYPE_ARENA = 33,
};

struct bpf_map;
struct schedtwin_map;
void *schedtwin_map_lookup(void *map, const void *key, int cpu);
long schedtwin_map_update(void *map, const void *key, const void *value, u64 flags);
long schedtwin_map_delete(void *map, const void *key);
long schedtwin_map_push(void *map, const void *value, u64 flags);
long schedtwin_map_pop(void *map, void *value, bool take);
void *schedtwin_task_storage(void *map, struct task_struct *p, bool create);
long schedtwin_task_storage_delete(void *map, struct task_struct *p);
void *schedtwin_cgrp_storage(void *map, struct cgroup *cgrp, bool create);
long schedtwin_cgrp_storage_delete(void *map, struct cgroup *cgrp);
extern unsigned int schedtwin_cpu, schedtwin_nr_cpus;

/* A map's object may be const to the scheduler. */
#define SCHEDTWIN_MAP(map) ((void *)(map))
#define bpf_map_lookup_elem(map, key) schedtwin_map_lookup(SCHEDTWIN_MAP(map), key, -1)
#define bpf_map_lookup_percpu_elem(map, key, cpu) schedtwin_map_lookup(SCHEDTWIN_MAP(map), key, cpu)
#define bpf_map_update_elem(map, key, value, flags) schedtwin_map_update(SCHEDTWIN_MAP(map), key, value, flags)
#define bpf_map_delete_elem(map, key) schedtwin_map_delete(SCHEDTWIN_MAP(map), key)
#define bpf_map_push_elem(map, value, flags) schedtwin_map_push(SCHEDTWIN_MAP(map), value, flags)
#define bpf_map_pop_elem(map, value) schedtwin_map_pop(SCHEDTWIN_MAP(map), value, true)
#define bpf_map_peek_elem(map, value) schedtwin_map_pop(SCHEDTWIN_MAP(map), value, false)
/* The other end of a ring buffer is a program that nobody runs, so it is always full. */
#define bpf_ringbuf_reserve(map, bytes, flags) ((void)(map), NULL)
#define bpf_ringbuf_submit(record, flags) ((void)(record))
#define bpf_ringbuf_discard(record, flags) ((void)(record))
#define bpf_task_storage_get(map, p, value, flags) \
	schedtwin_task_storage(SCHEDTWIN_MAP(map), p, (flags) & BPF_LOCAL_STORAGE_GET_F_CREATE)
#define bpf_task_storage_delete(map, p) schedtwin_task_storage_delete(SCHEDTWIN_MAP(map), p)
#define bpf_cgrp_storage_get(map, cgrp, value, flags) \
	schedtwin_cgrp_storage(SCHEDTWIN_MAP(map), cgrp, (flags) & BPF_LOCAL_STORAGE_GET_F_CREATE)
#define bpf_cgrp_storage_delete(map, cgrp) schedtwin_cgrp_storage_delete(SCHEDTWIN_MAP(map), cgrp)

void *schedtwin_allocate(size_t bytes);
void *schedtwin_new(size_t bytes);
void schedtwin_drop(void *memory);
#define bpf_obj_new(of) (schedtwin_spend(COST_OBJECT), (typeof(of) *)schedtwin_new(sizeof(of)))
#define bpf_obj_drop(object) schedtwin_drop(object)
#define bpf_arena_alloc_pages(map, address, pages, node, flags) ((void)(map), schedtwin_allocate((size_t)(pages) * PAGE_SIZE))
#define bpf_arena_free_pages(map, pointer, pages) ((void)(map), (void)(pointer))

/* ---- what calls cost, ns ------------------------------------------------------------------------------------------ */

/*
 * Measured with programs of BPF, see crates/schedtwin-kernel/src/sched/ext/cost.rs. Values of arrays cost nothing: the JIT
 * puts their addresses together. Lists and trees are estimates: a call, and some lines near by.
 */
enum {
	COST_CALL = 2, COST_MASK = 3, COST_HASH_LOOKUP = 8, COST_HASH_UPDATE = 28, COST_HASH_DELETE = 48, COST_QUEUE = 13,
	COST_LOCK = 13, COST_OBJECT = 320, COST_LIST = 5, COST_TREE = 20,
};
void schedtwin_spend(u32 ns);

/* ---- locks, which nobody contends for ------------------------------------------------------------------------------ */

struct bpf_spin_lock {
	u32 val;
};
struct bpf_res_spin_lock {
	u32 val;
};
typedef struct {
	u32 val;
} arena_spinlock_t;
#define arena_spin_lock(lock) ((void)(lock), schedtwin_spend(COST_LOCK), 0)
#define arena_spin_unlock(lock) ((void)(lock))
#define bpf_spin_lock(lock) ((void)(lock), schedtwin_spend(COST_LOCK))
#define bpf_spin_unlock(lock) ((void)(lock))
#define bpf_res_spin_lock(lock) ((void)(lock), schedtwin_spend(COST_LOCK), 0)
#define bpf_res_spin_unlock(lock) ((void)(lock))
#define bpf_rcu_read_lock() ((void)0)
#define bpf_rcu_read_unlock() ((void)0)
#define bpf_preempt_disable() ((void)0)
#define bpf_preempt_enable() ((void)0)

/* ---- lists and trees ------------------------------------------------------------------------------------------------ */

struct bpf_list_node {
	struct bpf_list_node *next, *prev;
	struct bpf_list_head *owner;
};
struct bpf_list_head {
	struct bpf_list_node *first, *last;
};
struct bpf_rb_node {
	struct bpf_rb_node *next, *prev;
	struct bpf_rb_root *owner;
};
struct bpf_rb_root {
	struct bpf_rb_node *first, *last;
};
int schedtwin_list_push(struct bpf_list_head *head, struct bpf_list_node *node, bool front);
struct bpf_list_node *schedtwin_list_pop(struct bpf_list_head *head, bool front);
#define bpf_list_push_front(head, node) schedtwin_list_push(head, node, true)
#define bpf_list_push_back(head, node) schedtwin_list_push(head, node, false)
#define bpf_list_pop_front(head) schedtwin_list_pop(head, true)
#define bpf_list_pop_back(head) schedtwin_list_pop(head, false)
#define bpf_list_front(head) ((head)->first)
#define bpf_list_back(head) ((head)->last)
int schedtwin_rbtree_add(struct bpf_rb_root *root, struct bpf_rb_node *node,
			 bool (*less)(struct bpf_rb_node *, const struct bpf_rb_node *));
#define bpf_rbtree_add(root, node, less) schedtwin_rbtree_add(root, node, (void *)(less))
struct bpf_rb_node *bpf_rbtree_first(struct bpf_rb_root *root);
struct bpf_rb_node *bpf_rbtree_remove(struct bpf_rb_root *root, struct bpf_rb_node *node);

/* ---- timers ------------------------------------------------------------------------------------------------------- */

struct bpf_timer {
	/* Its number plus one. */
	u64 number;
	void *map;
	int (*callback)(void *map, int *key, struct bpf_timer *timer);
};
long schedtwin_timer_init(struct bpf_timer *timer, struct schedtwin_map *map);
long bpf_timer_start(struct bpf_timer *timer, u64 ns, u64 flags);
long bpf_timer_cancel(struct bpf_timer *timer);
#define bpf_timer_init(timer, in, clock) schedtwin_timer_init(timer, *(struct schedtwin_map **)(in))
#define bpf_timer_set_callback(timer, function) ((timer)->callback = (void *)(function), 0)

/* ---- sets of CPUs -------------------------------------------------------------------------------------------------- */

struct bpf_cpumask {
	struct cpumask mask;
};
#define cast_mask(set) ((const struct cpumask *)(set))
static inline bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *m)
{
	return cpu < SCHEDTWIN_NR_CPUS && (m->bits[cpu / 64] >> cpu % 64 & 1);
}
#define bpf_cpumask_test_cpu(cpu, m) bpf_cpumask_test_cpu(cpu, (const struct cpumask *)(m))
struct bpf_cpumask *bpf_cpumask_create(void);
#define bpf_cpumask_release(m) schedtwin_drop(m)
#define bpf_cpumask_acquire(m) (m)
void schedtwin_mask_set(struct bpf_cpumask *m, u32 cpu, bool set);
#define bpf_cpumask_set_cpu(cpu, m) schedtwin_mask_set(m, cpu, true)
#define bpf_cpumask_clear_cpu(cpu, m) schedtwin_mask_set(m, cpu, false)
bool schedtwin_mask_test_and_set(struct bpf_cpumask *m, u32 cpu, bool set);
#define bpf_cpumask_test_and_set_cpu(cpu, m) schedtwin_mask_test_and_set(m, cpu, true)
#define bpf_cpumask_test_and_clear_cpu(cpu, m) schedtwin_mask_test_and_set(m, cpu, false)
/* op: 0 and, 1 or, 2 xor, 3 copy of a; whether the result is not empty. */
bool schedtwin_mask_op(struct bpf_cpumask *to, const void *a, const void *b, int op);
#define bpf_cpumask_and(to, a, b) schedtwin_mask_op(to, a, b, 0)
#define bpf_cpumask_or(to, a, b) ((void)schedtwin_mask_op(to, a, b, 1))
#define bpf_cpumask_xor(to, a, b) ((void)schedtwin_mask_op(to, a, b, 2))
#define bpf_cpumask_copy(to, a) ((void)schedtwin_mask_op(to, a, a, 3))
void schedtwin_mask_fill(struct bpf_cpumask *m, bool all);
#define bpf_cpumask_setall(m) schedtwin_mask_fill(m, true)
#define bpf_cpumask_clear(m) schedtwin_mask_fill(m, false)
u32 schedtwin_mask_weight(const void *m);
#define bpf_cpumask_weight(m) schedtwin_mask_weight(m)
#define bpf_cpumask_empty(m) (schedtwin_mask_weight(m) == 0)
#define bpf_cpumask_full(m) (schedtwin_mask_weight(m) == schedtwin_nr_cpus)
bool schedtwin_mask_test(const void *a, const void *b, int op);
#define bpf_cpumask_intersects(a, b) schedtwin_mask_test(a, b, 0)
#define bpf_cpumask_subset(a, b) schedtwin_mask_test(a, b, 1)
#define bpf_cpumask_equal(a, b) schedtwin_mask_test(a, b, 2)
u32 schedtwin_mask_first(const void *a, const void *b);
#define bpf_cpumask_first(m) schedtwin_mask_first(m, m)
#define bpf_cpumask_first_and(a, b) schedtwin_mask_first(a, b)
u32 schedtwin_mask_any(const void *a, const void *b);
#define bpf_cpumask_any_distribute(m) schedtwin_mask_any(m, m)
#define bpf_cpumask_any_and_distribute(a, b) schedtwin_mask_any(a, b)
#define __COMPAT_bpf_cpumask_populate(to, from, bytes) (memcpy(to, from, bytes), 0)
#define bpf_cpumask_populate(to, from, bytes) __COMPAT_bpf_cpumask_populate(to, from, bytes)
void *schedtwin_kptr_xchg(void **field, void *value);
#define bpf_kptr_xchg(field, value) ((typeof(*(field)))schedtwin_kptr_xchg((void **)(field), value))

/* ---- what a scheduler asks ------------------------------------------------------------------------------------------ */

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node);
void scx_bpf_destroy_dsq(u64 dsq_id);
bool scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags);
bool scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime, u64 enq_flags);
bool schedtwin_move_to_local(u64 dsq_id, u64 enq_flags);
#define SCHEDTWIN_FIRST_TWO(a, b, ...) schedtwin_move_to_local(a, b)
#define scx_bpf_dsq_move_to_local(...) SCHEDTWIN_FIRST_TWO(__VA_ARGS__, 0, 0)
u32 scx_bpf_dispatch_nr_slots(void);
void scx_bpf_dispatch_cancel(void);
s32 scx_bpf_dsq_nr_queued(u64 dsq_id);
struct task_struct *scx_bpf_dsq_peek(u64 dsq_id);
struct bpf_iter_scx_dsq {
	u64 state[4];
	u64 slice, vtime;
	bool has_slice, has_vtime;
};
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *iter, u64 dsq_id, u64 flags);
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *iter);
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *iter);
bool schedtwin_dsq_move(struct bpf_iter_scx_dsq *iter, struct task_struct *p, u64 dsq_id, u64 enq_flags, bool priq);
#define scx_bpf_dsq_move(iter, p, dsq_id, flags) schedtwin_dsq_move(iter, p, dsq_id, flags, false)
#define scx_bpf_dsq_move_vtime(iter, p, dsq_id, flags) schedtwin_dsq_move(iter, p, dsq_id, flags, true)
#define scx_bpf_dsq_move_set_slice(iter, value) ((iter)->slice = (value), (iter)->has_slice = true)
#define scx_bpf_dsq_move_set_vtime(iter, value) ((iter)->vtime = (value), (iter)->has_vtime = true)
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle);
s32 scx_bpf_select_cpu_and(struct task_struct *p, s32 prev_cpu, u64 wake_flags, const struct cpumask *mask, u64 flags);
s32 scx_bpf_pick_idle_cpu(const struct cpumask *mask, u64 flags);
s32 scx_bpf_pick_any_cpu(const struct cpumask *mask, u64 flags);
bool scx_bpf_test_and_clear_cpu_idle(s32 cpu);
const struct cpumask *scx_bpf_get_idle_cpumask(void);
const struct cpumask *scx_bpf_get_idle_smtmask(void);
/* Of a node with SCX_OPS_BUILTIN_IDLE_PER_NODE, else of all CPUs. */
const struct cpumask *schedtwin_idle_mask_of(int node, bool smt);
#define scx_bpf_get_idle_cpumask_node(node) schedtwin_idle_mask_of(node, false)
#define scx_bpf_get_idle_smtmask_node(node) schedtwin_idle_mask_of(node, true)
s32 schedtwin_pick_idle_of(const struct cpumask *mask, int node, u64 flags, bool any);
#define scx_bpf_pick_idle_cpu_node(mask, node, flags) schedtwin_pick_idle_of(mask, node, flags, false)
#define scx_bpf_pick_any_cpu_node(mask, node, flags) schedtwin_pick_idle_of(mask, node, flags, true)
#define scx_bpf_put_idle_cpumask(mask) ((void)(mask))
const struct cpumask *scx_bpf_get_possible_cpumask(void);
#define scx_bpf_get_online_cpumask() scx_bpf_get_possible_cpumask()
#define scx_bpf_put_cpumask(mask) ((void)(mask))
#define scx_bpf_nr_cpu_ids() schedtwin_nr_cpus
u32 scx_bpf_nr_node_ids(void);
s32 scx_bpf_cpu_node(s32 cpu);
/* The first CPU of the last-level cache: sd_llc_id. */
s32 schedtwin_llc_id(s32 cpu);
#define cpu_llc_id(cpu) schedtwin_llc_id(cpu)
/* Preferred cores (`sched_core_priority`): a kernel that has none does not know the name. */
#define cpu_priority(cpu) ((void)(cpu), -ENOENT)
u32 schedtwin_reenqueue_local(void);
#define scx_bpf_reenqueue_local() schedtwin_reenqueue_local()
#define scx_bpf_reenqueue_local_from_anywhere() schedtwin_reenqueue_local()
void scx_bpf_kick_cpu(s32 cpu, u64 flags);
s32 scx_bpf_task_cpu(const struct task_struct *p);
bool scx_bpf_task_running(const struct task_struct *p);
struct task_struct *scx_bpf_cpu_curr(s32 cpu);
/* A run queue as schedulers before 6.18 read it. */
struct rq {
	struct task_struct *curr;
};
struct rq *scx_bpf_cpu_rq(s32 cpu);
/* Some releases of the library look here whether a program is bound to its CPU; none is. */
#define scx_lib_init() 0
bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice);
bool scx_bpf_task_set_dsq_vtime(struct task_struct *p, u64 vtime);
u32 scx_bpf_cpuperf_cap(s32 cpu);
u32 scx_bpf_cpuperf_cur(s32 cpu);
void scx_bpf_cpuperf_set(s32 cpu, u32 perf);
u64 scx_bpf_now(void);
u64 bpf_ktime_get_ns(void);
#define bpf_ktime_get_boot_ns() bpf_ktime_get_ns()
u64 bpf_jiffies64(void);
/* `rq->clock_task`, and the clock of PELT less the idle time that it has lost, as they were when they moved last. */
u64 scx_clock_task(u32 cpu);
u64 scx_clock_pelt(u32 cpu);
#define scx_clock_virt(cpu) ((void)(cpu), 0ULL)
bool schedtwin_in_interrupt(void);
#define bpf_in_hardirq() schedtwin_in_interrupt()
#define bpf_in_nmi() false
#define bpf_in_serving_softirq() false
u32 bpf_get_prandom_u32(void);
#ifndef SCHEDTWIN_WITHOUT_get_prandom_u64
static inline u64 get_prandom_u64(void)
{
	u64 high = bpf_get_prandom_u32();

	return high << 32 | bpf_get_prandom_u32();
}
#endif
#define bpf_get_smp_processor_id() schedtwin_cpu
#define bpf_get_numa_node_id() scx_bpf_cpu_node(schedtwin_cpu)
struct task_struct *bpf_get_current_task_btf(void);
struct task_struct *bpf_task_from_pid(s32 pid);
#define bpf_get_current_comm(to, bytes) \
	(memcpy(to, bpf_get_current_task_btf()->comm, (bytes) < TASK_COMM_LEN ? (bytes) : TASK_COMM_LEN), 0)
#define bpf_get_current_pid_tgid() \
	({ struct task_struct *p_ = bpf_get_current_task_btf(); (u64)p_->tgid << 32 | (u32)p_->pid; })
#define bpf_task_acquire(p) (p)
#define bpf_task_release(p) ((void)(p))
void schedtwin_scx_error(s64 code, bool error, const char *format, ...);
#define scx_bpf_error(...) schedtwin_scx_error(0, true, __VA_ARGS__)
#define scx_bpf_exit(code, ...) schedtwin_scx_error(code, false, __VA_ARGS__)
static inline void schedtwin_printed(const char *format, ...) { (void)format; }
/* Counters of the processor (lib/pmu.h), which nobody switches on. */
#define scx_pmu_install(event) 0
#define scx_pmu_uninstall(event) 0
#define scx_pmu_task_init(p) 0
#define scx_pmu_task_fini(p) 0
#define scx_pmu_event_start(p, update) 0
#define scx_pmu_event_stop(p) 0
#define scx_pmu_read(p, event, value, clear) (*(value) = 0, 0)
#define bpf_printk(...) schedtwin_printed(__VA_ARGS__)
#define bpf_stream_printk(stream, ...) schedtwin_printed(__VA_ARGS__)
#define scx_err_loc(...) schedtwin_printed(__VA_ARGS__)
#define scx_bpf_dump(...) schedtwin_printed(__VA_ARGS__)
#define scx_bpf_dump_header() ((void)0)

/* Policies of frequency, of which a scheduler finds none, so that it goes by capacities alone. */
struct cpufreq_policy {
	struct {
		u32 max_freq;
	} cpuinfo;
	u32 max;
};
/* Walks that a reader in user space starts, of which there is none. */
struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};
#define bpf_seq_write(seq, data, bytes) ((void)(seq), (void)(data), 0)
#define bpf_per_cpu_ptr(variable, cpu) ((void)(variable), (void)(cpu), (void *)NULL)
struct trace_entry {
	u16 type;
	u8 flags, preempt_count;
	int pid;
};

/* ---- cgroups -------------------------------------------------------------------------------------------------------- */

struct cgroup *scx_bpf_task_cgroup(struct task_struct *p);
struct cgroup *bpf_cgroup_from_id(u64 id);
struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level);
#define bpf_cgroup_acquire(cgrp) (cgrp)
#define bpf_cgroup_release(cgrp) ((void)(cgrp))
struct bpf_iter_css {
	struct cgroup *root;
	int number;
	bool backwards;
};
int bpf_iter_css_new(struct bpf_iter_css *iter, struct cgroup_subsys_state *root, unsigned int flags);
struct cgroup_subsys_state *bpf_iter_css_next(struct bpf_iter_css *iter);
static inline void bpf_iter_css_destroy(struct bpf_iter_css *iter) { (void)iter; }

/* ---- numbers by topology (cids) -------------------------------------------------------------------------------------- */

#define sched_ext_ops_cid sched_ext_ops
#define scx_bpf_nr_cids() schedtwin_nr_cpus
#define scx_bpf_nr_online_cids() schedtwin_nr_cpus
s32 scx_bpf_this_cid(void);
s32 scx_bpf_task_cid(const struct task_struct *p);
s32 scx_bpf_cid_to_cpu(s32 cid);
s32 scx_bpf_cpu_to_cid(s32 cpu);
void scx_bpf_kick_cid(s32 cid, u64 flags);
u32 scx_bpf_cidperf_cap(s32 cid);
u32 scx_bpf_cidperf_cur(s32 cid);
void scx_bpf_cidperf_set(s32 cid, u32 perf);
#define scx_bpf_tid_to_task(tid) bpf_task_from_pid(tid)
void scx_bpf_dsq_reenq(u64 dsq_id, u64 flags);
#define scx_bpf_cid_override(...) scx_bpf_error("scx_bpf_cid_override: not offered")

/* A scheduler that is alone has every capability, and nobody to give any. */
s32 scx_bpf_sub_caps(u64 cgroup_id, u64 caps, struct scx_cmask *to);
#define SCHEDTWIN_NO_SUB(name) (scx_bpf_error(name ": sub-schedulers are not offered"), -EOPNOTSUPP)
#define scx_bpf_sub_dispatch(...) (SCHEDTWIN_NO_SUB("scx_bpf_sub_dispatch") == 0)
#define scx_bpf_sub_grant(...) SCHEDTWIN_NO_SUB("scx_bpf_sub_grant")
#define scx_bpf_sub_revoke(...) SCHEDTWIN_NO_SUB("scx_bpf_sub_revoke")
#define scx_bpf_sub_kill(...) SCHEDTWIN_NO_SUB("scx_bpf_sub_kill")

/* ---- reading the kernel's memory ------------------------------------------------------------------------------------- */

/* A bad pointer reads as 0; the only one that a scheduler gets here is NULL. */
#define SCHEDTWIN_READ(from, member) ({ \
	typeof(from) from_ = (from); \
	struct { \
		typeof((from)->member) value; \
	} read_ = {}; \
	if (from_) \
		__builtin_memcpy(&read_, &from_->member, sizeof(read_.value)); \
	read_.value; \
})
#define SCHEDTWIN_READ_2(from, a, b) SCHEDTWIN_READ(SCHEDTWIN_READ(from, a), b)
#define SCHEDTWIN_READ_3(from, a, b, c) SCHEDTWIN_READ(SCHEDTWIN_READ_2(from, a, b), c)
#define SCHEDTWIN_NTH(from, a, b, c, which, ...) which
#define BPF_CORE_READ(...) \
	SCHEDTWIN_NTH(__VA_ARGS__, SCHEDTWIN_READ_3, SCHEDTWIN_READ_2, SCHEDTWIN_READ)(__VA_ARGS__)
#define bpf_probe_read_kernel(to, bytes, from) (memcpy(to, from, bytes), 0)
static inline long bpf_probe_read_kernel_str(char *to, u32 bytes, const char *from)
{
	u32 i;

	for (i = 0; i + 1 < bytes && from && from[i]; i++)
		to[i] = from[i];
	if (bytes)
		to[i] = 0;
	return i + 1;
}
#define bpf_core_read(to, bytes, from) bpf_probe_read_kernel(to, bytes, from)

/* ---- what happened to the scheduler ----------------------------------------------------------------------------------- */

struct scx_event_stats {
	s64 SCX_EV_SELECT_CPU_FALLBACK, SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE, SCX_EV_DISPATCH_KEEP_LAST, SCX_EV_ENQ_SKIP_EXITING;
	s64 SCX_EV_ENQ_SKIP_MIGRATION_DISABLED, SCX_EV_REENQ_IMMED, SCX_EV_REENQ_REPEAT, SCX_EV_REFILL_SLICE_DFL;
	s64 SCX_EV_BYPASS_DURATION, SCX_EV_BYPASS_DISPATCH, SCX_EV_BYPASS_ACTIVATE;
};
void scx_bpf_events(struct scx_event_stats *to, size_t bytes);
#define __COMPAT_scx_bpf_events(to, bytes) scx_bpf_events(to, bytes)
#define scx_read_event(stats, name) ((stats)->name)

/* The names before 6.13, and those by which a source bears several releases. */
#define scx_bpf_dispatch(p, dsq_id, slice, flags) ((void)scx_bpf_dsq_insert(p, dsq_id, slice, flags))
#define scx_bpf_dispatch_vtime(p, dsq_id, slice, vtime, flags) \
	((void)scx_bpf_dsq_insert_vtime(p, dsq_id, slice, vtime, flags))
#define scx_bpf_consume(dsq_id) schedtwin_move_to_local(dsq_id, 0)
#define __COMPAT_HAS_scx_bpf_select_cpu_and 1
#define __COMPAT_scx_bpf_reenqueue_local_from_anywhere() SCHEDTWIN_REENQUEUES_ANYWHERE
#define __COMPAT_scx_bpf_dsq_move(...) scx_bpf_dsq_move(__VA_ARGS__)
#define __COMPAT_scx_bpf_dsq_move_vtime(...) scx_bpf_dsq_move_vtime(__VA_ARGS__)
#define __COMPAT_scx_bpf_dsq_move_set_slice(...) scx_bpf_dsq_move_set_slice(__VA_ARGS__)
#define __COMPAT_scx_bpf_dsq_move_set_vtime(...) scx_bpf_dsq_move_set_vtime(__VA_ARGS__)
#define __COMPAT_scx_bpf_dispatch_from_dsq(...) scx_bpf_dsq_move(__VA_ARGS__)
#define __COMPAT_scx_bpf_dispatch_vtime_from_dsq(...) scx_bpf_dsq_move_vtime(__VA_ARGS__)
#define __COMPAT_scx_bpf_dispatch_from_dsq_set_slice(...) scx_bpf_dsq_move_set_slice(__VA_ARGS__)
#define __COMPAT_scx_bpf_dispatch_from_dsq_set_vtime(...) scx_bpf_dsq_move_set_vtime(__VA_ARGS__)
#define __COMPAT_scx_bpf_task_cgroup(p) scx_bpf_task_cgroup(p)
#define __COMPAT_scx_bpf_dsq_peek(dsq_id) scx_bpf_dsq_peek(dsq_id)
#define __COMPAT_scx_bpf_cpu_curr(cpu) scx_bpf_cpu_curr(cpu)
#define __COMPAT_scx_bpf_get_idle_cpumask_node(node) scx_bpf_get_idle_cpumask_node(node)
#define __COMPAT_scx_bpf_get_idle_smtmask_node(node) scx_bpf_get_idle_smtmask_node(node)
#define __COMPAT_scx_bpf_pick_idle_cpu_node(mask, node, flags) scx_bpf_pick_idle_cpu_node(mask, node, flags)
#define __COMPAT_scx_bpf_pick_any_cpu_node(mask, node, flags) scx_bpf_pick_any_cpu_node(mask, node, flags)
#define __COMPAT_scx_bpf_nr_node_ids() scx_bpf_nr_node_ids()
#define __COMPAT_scx_bpf_cpu_node(cpu) scx_bpf_cpu_node(cpu)
#define __COMPAT_is_enq_cpu_selected(flags) (((flags) & SCX_ENQ_CPU_SELECTED) != 0)
#define __COMPAT_SCX_KICK_IDLE SCX_KICK_IDLE
#define __COMPAT_has_generic_reenq() true
#define __COMPAT_dsq_move(...) scx_bpf_dsq_move(__VA_ARGS__)

#ifndef BIT_U64
#define BIT_U64(bit) (1ULL << (bit))
#endif
#define struct_size_t(type, member, count) (sizeof(type) + sizeof(((type *)0)->member[0]) * (count))

/* The helpers for sets of such numbers are the tree's own. */
#ifdef SCHEDTWIN_CID_FILE
#include SCHEDTWIN_CID_FILE
#endif

#endif
