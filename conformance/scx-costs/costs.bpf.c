// SPDX-License-Identifier: GPL-2.0-or-later
/* Loops over helpers, maps and kfuncs of BPF, one at a time. `measure.c` says which, and reads how long it took. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

volatile __u64 result, sink;
volatile __u32 which, count = 1000;

struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 512); __type(key, __u32); __type(value, __u64); } array SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 10240); __type(key, __u32); __type(value, __u64); } hash SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 8); __type(key, __u32); __type(value, __u64); } percpu SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 1024); __type(value, __u32); } queue SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE); __uint(map_flags, BPF_F_NO_PREALLOC); __type(key, int); __type(value, __u64);
} storage SEC(".maps");
struct locked { struct bpf_spin_lock lock; __u64 value; };
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 4); __type(key, __u32); __type(value, struct locked); } locks SEC(".maps");

extern struct bpf_cpumask *bpf_cpumask_create(void) __ksym;
extern void bpf_cpumask_release(struct bpf_cpumask *) __ksym;
extern __u32 bpf_cpumask_first(const struct cpumask *) __ksym;
extern bool bpf_cpumask_test_cpu(__u32, const struct cpumask *) __ksym;
extern __u32 bpf_cpumask_any_distribute(const struct cpumask *) __ksym;
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
extern struct task_struct *bpf_task_from_pid(__s32) __ksym;
extern void bpf_task_release(struct task_struct *) __ksym;

#define CASE(name) static long name(__u32 i, void *unused)
#define LOOKUP(name, call)                      \
	CASE(name)                              \
	{                                       \
		__u32 key = i & 7;              \
		__u64 *value = call;            \
		if (value)                      \
			sink = *value;          \
		return 0;                       \
	}
LOOKUP(array_lookup, bpf_map_lookup_elem(&array, &key))
LOOKUP(percpu_lookup, bpf_map_lookup_elem(&percpu, &key))
LOOKUP(hash_lookup, bpf_map_lookup_elem(&hash, &key))
LOOKUP(storage_get, bpf_task_storage_get(&storage, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE))
CASE(nothing) { sink = i; return 0; }
CASE(hash_update) { __u32 key = i & 511; __u64 value = i; bpf_map_update_elem(&hash, &key, &value, 0); return 0; }
CASE(hash_replace)
{
	__u32 key = 600 + (i & 511);
	__u64 value = i;

	bpf_map_update_elem(&hash, &key, &value, 0);
	bpf_map_delete_elem(&hash, &key);
	return 0;
}
CASE(queue_both) { __u32 value = i; bpf_map_push_elem(&queue, &value, 0); bpf_map_pop_elem(&queue, &value); return 0; }
CASE(ktime) { sink = bpf_ktime_get_ns(); return 0; }
CASE(prandom) { sink = bpf_get_prandom_u32(); return 0; }
CASE(rcu) { bpf_rcu_read_lock(); sink = i; bpf_rcu_read_unlock(); return 0; }
CASE(task_from_pid) { struct task_struct *task = bpf_task_from_pid(1); if (task) bpf_task_release(task); return 0; }
#define MASK(name, call)                                                \
	CASE(name)                                                      \
	{                                                               \
		struct task_struct *task = bpf_get_current_task_btf();  \
		bpf_rcu_read_lock();                                    \
		sink = call;                                            \
		bpf_rcu_read_unlock();                                  \
		return 0;                                               \
	}
MASK(mask_test, bpf_cpumask_test_cpu(i & 1, task->cpus_ptr))
MASK(mask_first, bpf_cpumask_first(task->cpus_ptr))
MASK(mask_distribute, bpf_cpumask_any_distribute(task->cpus_ptr))
CASE(mask_new) { struct bpf_cpumask *mask = bpf_cpumask_create(); if (mask) bpf_cpumask_release(mask); return 0; }

#define RUN(number, name)                               \
	case number:                                    \
		begun = bpf_ktime_get_ns();             \
		bpf_loop(count, name, 0, 0);            \
		result = bpf_ktime_get_ns() - begun;    \
		break;

SEC("syscall") int calls(void *unused)
{
	__u64 begun;

	switch (which) {
	RUN(0, nothing) RUN(1, array_lookup) RUN(2, percpu_lookup) RUN(3, hash_lookup) RUN(4, hash_update) RUN(5, hash_replace)
	RUN(6, queue_both) RUN(7, storage_get) RUN(8, ktime) RUN(9, prandom) RUN(10, rcu) RUN(11, task_from_pid) RUN(12, mask_test)
	RUN(13, mask_first) RUN(14, mask_distribute) RUN(15, mask_new)
	}
	return 0;
}

/* Programs of this type may have locks. */
CASE(look) { __u32 key = i & 3; struct locked *at = bpf_map_lookup_elem(&locks, &key); if (at) sink = at->value; return 0; }
CASE(lock)
{
	__u32 key = i & 3;
	struct locked *at = bpf_map_lookup_elem(&locks, &key);

	if (!at)
		return 1;
	bpf_spin_lock(&at->lock);
	at->value++;
	bpf_spin_unlock(&at->lock);
	return 0;
}
SEC("tc") int locks_taken(struct __sk_buff *unused)
{
	__u64 begun;

	switch (which) {
	RUN(0, look) RUN(1, lock)
	}
	return 0;
}
SEC("tc") int empty(struct __sk_buff *unused) { return 0; }
