/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A scheduler of sched_ext for tests: a queue for each cgroup, and cgroups in turn by the time that they have used over their
 * weight. It uses what schedulers of cgroups use: their callbacks and storage, ancestors, an ordered tree of nodes that
 * pointers own, a list, maps of maps, a stack, a tracing program. What does not add up is an error of it.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

#define SLICE_NS (4 * 1000 * 1000)
#define FALLBACK 0
#define GROUPS 64

struct group {
	u64 id;
	u64 weight;
	u64 members;
	bool queued;
};

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct group);
} groups SEC(".maps");

struct turn {
	struct bpf_rb_node node;
	u64 used;
	u64 id;
};

struct stash {
	struct turn __kptr *turn;
};

/* The nodes of groups that wait for tasks, by their IDs. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GROUPS);
	__type(key, u64);
	__type(value, struct stash);
} stashes SEC(".maps");

/* A stack of the last CPUs for each parity of a task's number. */
struct cpus {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 8);
	__type(value, u32);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, u32);
	__array(values, struct cpus);
} recent SEC(".maps");

struct entry {
	struct bpf_list_node node;
	s32 pid;
};

private(A) struct bpf_spin_lock lock;
private(A) struct bpf_rb_root turns __contains(turn, node);
private(B) struct bpf_list_head switched __contains(entry, node);

static u64 used_now;
u64 nr_switches, nr_moves, nr_weights, nr_groups, nr_exits;
static u64 levels[4];
UEI_DEFINE(uei);

static bool less(struct bpf_rb_node *a, const struct bpf_rb_node *b)
{
	return container_of(a, struct turn, node)->used < container_of(b, struct turn, node)->used;
}

static void add_turn(struct turn *turn)
{
	if (time_before(turn->used, used_now))
		turn->used = used_now;
	bpf_spin_lock(&lock);
	bpf_rbtree_add(&turns, &turn->node, less);
	bpf_spin_unlock(&lock);
}

void BPF_STRUCT_OPS(groups_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct cgroup *cgrp = scx_bpf_task_cgroup(p);
	struct group *group = bpf_cgrp_storage_get(&groups, cgrp, 0, 0);
	struct stash *stash;
	struct turn *turn;
	u64 id = cgrp->kn->id;

	if (!group || group->id != id) {
		scx_bpf_error("group %llu has no storage", id);
	} else if (p->flags & PF_KTHREAD) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, enq_flags);
	} else {
		scx_bpf_dsq_insert(p, id, SLICE_NS, enq_flags);
		stash = bpf_map_lookup_elem(&stashes, &id);
		turn = stash ? bpf_kptr_xchg(&stash->turn, NULL) : NULL;
		if (turn)
			add_turn(turn);
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_IDLE);
	}
	bpf_cgroup_release(cgrp);
}

void BPF_STRUCT_OPS(groups_dispatch, s32 cpu, struct task_struct *prev)
{
	struct bpf_rb_node *node;
	struct cgroup *cgrp;
	struct stash *stash;
	struct group *group;
	struct turn *turn;
	int i;

	bpf_for(i, 0, GROUPS) {
		bpf_spin_lock(&lock);
		node = bpf_rbtree_first(&turns);
		if (node)
			node = bpf_rbtree_remove(&turns, node);
		bpf_spin_unlock(&lock);
		if (!node)
			return;
		turn = container_of(node, struct turn, node);
		used_now = turn->used;
		cgrp = bpf_cgroup_from_id(turn->id);
		group = cgrp ? bpf_cgrp_storage_get(&groups, cgrp, 0, 0) : NULL;
		if (!group) {
			bpf_obj_drop(turn);
			continue;
		}
		if (scx_bpf_dsq_move_to_local(turn->id, 0)) {
			turn->used += SLICE_NS * 100 / (group->weight ?: 1);
			add_turn(turn);
			return;
		}
		/* Nobody waits: the node goes back, and comes with the next task. */
		stash = bpf_map_lookup_elem(&stashes, &turn->id);
		turn = stash ? bpf_kptr_xchg(&stash->turn, turn) : turn;
		if (turn)
			scx_bpf_error("group %llu had two nodes", turn->id);
	}
}

void BPF_STRUCT_OPS(groups_running, struct task_struct *p)
{
	u32 which = p->pid & 1, cpu = bpf_get_smp_processor_id(), last;
	void *cpus = bpf_map_lookup_elem(&recent, &which);

	if (!cpus || bpf_map_push_elem(cpus, &cpu, BPF_EXIST) || bpf_map_peek_elem(cpus, &last) || last != cpu)
		scx_bpf_error("the stack lost CPU %u", cpu);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(groups_switched, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct bpf_list_node *node;
	struct entry *entry = bpf_obj_new(struct entry);

	if (!entry)
		return 0;
	entry->pid = next->pid;
	bpf_list_push_back(&switched, &entry->node);
	/* Two are kept. */
	if (++nr_switches > 2) {
		node = bpf_list_pop_front(&switched);
		if (!node)
			scx_bpf_error("the list is empty");
		else
			bpf_obj_drop(container_of(node, struct entry, node));
	}
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(groups_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	struct group *group = bpf_cgrp_storage_get(&groups, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct stash empty = {}, *stash;
	u64 id = cgrp->kn->id, *level;
	struct cgroup *above;
	struct turn *turn;

	if (!group || bpf_map_update_elem(&stashes, &id, &empty, BPF_NOEXIST))
		return -ENOMEM;
	above = bpf_cgroup_ancestor(cgrp, cgrp->level ? cgrp->level - 1 : 0);
	if (!above || (cgrp->level && above == cgrp))
		return -EINVAL;
	bpf_cgroup_release(above);
	level = MEMBER_VPTR(levels, [cgrp->level]);
	if (level)
		(*level)++;
	group->id = id;
	group->weight = args->weight;
	turn = bpf_obj_new(struct turn);
	stash = bpf_map_lookup_elem(&stashes, &id);
	if (!turn || !stash)
		return -ENOMEM;
	turn->id = id;
	bpf_kptr_xchg(&stash->turn, turn);
	nr_groups++;
	return scx_bpf_create_dsq(id, -1);
}

void BPF_STRUCT_OPS(groups_cgroup_exit, struct cgroup *cgrp)
{
	u64 id = cgrp->kn->id;

	nr_exits++;
	bpf_map_delete_elem(&stashes, &id);
}

void BPF_STRUCT_OPS(groups_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	struct group *group = bpf_cgrp_storage_get(&groups, cgrp, 0, 0);

	nr_weights++;
	if (group)
		group->weight = weight;
}

void BPF_STRUCT_OPS(groups_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct group *source = bpf_cgrp_storage_get(&groups, from, 0, 0), *target = bpf_cgrp_storage_get(&groups, to, 0, 0);

	nr_moves++;
	if (!source || !target || source == target || !source->members--)
		scx_bpf_error("task %d moves from %llu to %llu", p->pid, from->kn->id, to->kn->id);
	else
		target->members++;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(groups_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct group *group = bpf_cgrp_storage_get(&groups, args->cgroup, 0, 0);

	if (!group)
		return -ENOENT;
	group->members++;
	return 0;
}

void BPF_STRUCT_OPS(groups_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

SCX_OPS_DEFINE(groups_ops,
	       .enqueue = (void *)groups_enqueue,
	       .dispatch = (void *)groups_dispatch,
	       .running = (void *)groups_running,
	       .init_task = (void *)groups_init_task,
	       .cgroup_init = (void *)groups_cgroup_init,
	       .cgroup_exit = (void *)groups_cgroup_exit,
	       .cgroup_set_weight = (void *)groups_cgroup_set_weight,
	       .cgroup_move = (void *)groups_cgroup_move,
	       .exit = (void *)groups_exit,
	       .timeout_ms = 5000,
	       .name = "groups");
