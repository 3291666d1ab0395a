/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What C means in BPF and not in native C, and names that schedulers define themselves: what does not come out as BPF has it is an
 * error of it. Its own program writes nothing.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

/* SEC("fentry/in_a_comment") int in_a_comment(void *ctx) */

const volatile u64 zero;
const volatile s64 minus_one = -1;
const u64 fixed = 7;
static u64 by_fixed = fixed * 3;

static u64 min(u64 a, u64 b)
{
	return a < b ? a : b;
}

static u64 max(u64 a, u64 b)
{
	return a > b ? a : b;
}

struct row {
	u32 cells[4];
	u64 sum;
};
static struct row rows[3];

struct keeper {
	u64 count;
	struct bpf_cpumask __kptr *mask;
	void *other;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, struct keeper);
} keepers SEC(".maps");
static u64 last_ticks;
UEI_DEFINE(uei);

#define WANT(value, expected) do { \
	if ((value) != (expected)) \
		scx_bpf_error(#value " is %lld", (s64)(value)); \
} while (0)

static void divisions(u64 x)
{
	s64 least = -0x7fffffffffffffffLL - 1;
	struct row *row = &rows[1];
	u64 stored = x, *at = &stored;
	u32 small = 9;
	u8 tiny = 200;

	WANT(x / zero, 0);
	WANT(x % zero, x);
	WANT(2 * x / zero + 5, 5);
	WANT((u32)x % (u32)zero, (u32)x);
	WANT(x / (zero + 2) / zero, 0);
	WANT(least / minus_one, least);
	WANT(least % minus_one, 0);
	WANT((s64)x / minus_one, -(s64)x);
	WANT(-7 / (s64)(zero + 2), -3);
	WANT(tiny / (small - 8), 200);
	*at /= zero;
	WANT(stored, 0);
	stored = x;
	stored %= zero ? 3 : zero;
	WANT(stored, x);
	row->sum = x / min(zero, 4) + max(x % zero, 1);
	WANT(row->sum, x);
	WANT(scale_by_task_weight_inverse(&(struct task_struct){}, x), 0);
}

static void members(u32 inside, u32 outside)
{
	rows[2].cells[inside] = 4;
	WANT(*MEMBER_VPTR(rows, [2].cells[inside]), 4);
	WANT((u64)MEMBER_VPTR(rows, [outside].cells[0]), 0);
	WANT((u64)MEMBER_VPTR(rows[2], .sum), (u64)&rows[2].sum);
}

/* An update of a map leaves the pointers alone that the map owns. */
s32 BPF_STRUCT_OPS_SLEEPABLE(meaning_init)
{
	struct bpf_cpumask *made = bpf_cpumask_create();
	struct keeper local = { .count = 1, .mask = (void *)1, .other = made }, *kept;
	u32 key = 3;

	bpf_map_update_elem(&keepers, &key, &local, BPF_ANY);
	kept = bpf_map_lookup_elem(&keepers, &key);
	if (!kept || kept->mask || kept->other != made)
		return -EINVAL;
	bpf_kptr_xchg(&kept->mask, made);
	local.count = 2;
	bpf_map_update_elem(&keepers, &key, &local, BPF_EXIST);
	return kept->mask == made && kept->count == 2 ? 0 : -EINVAL;
}

void BPF_STRUCT_OPS(meaning_enqueue, struct task_struct *p, u64 enq_flags)
{
	divisions(p->pid + 1000);
	members(3, p->pid % 5 + 3);
	WANT(by_fixed, 21);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, 5000000, enq_flags);
}

/* Whole ticks count, as the time of user space or of the kernel. */
void BPF_STRUCT_OPS(meaning_stopping, struct task_struct *p, bool runnable)
{
	bool kernel = p->flags & PF_KTHREAD;
	u64 own = kernel ? p->stime : p->utime, other = kernel ? p->utime : p->stime;

	WANT(own % 4000000, 0);
	WANT(other, 0);
	WANT(p->mempolicy != NULL, 0);
	last_ticks = max(last_ticks, own);
}

void BPF_STRUCT_OPS(meaning_running, struct task_struct *p)
{
	if (p->nvcsw > 1000000 || p->nivcsw > 1000000)
		scx_bpf_error("%llu switches", (u64)p->nvcsw);
}

void BPF_STRUCT_OPS(meaning_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

SCX_OPS_DEFINE(meaning_ops,
	       .enqueue		= (void *)meaning_enqueue,
	       .stopping	= (void *)meaning_stopping,
	       .running		= (void *)meaning_running,
	       .init		= (void *)meaning_init,
	       .exit		= (void *)meaning_exit,
	       .name		= "meaning");
