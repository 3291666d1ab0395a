// SPDX-License-Identifier: GPL-2.0-or-later
/* Sets of CPUs (`bpf_cpumask_*`). */
#include <schedtwin/scx_inside.h>

/* Compilers call it where the processor may have no such instruction. */
int __popcountdi2(long bits)
{
	unsigned long rest = bits;
	int count = 0;

	for (; rest; rest &= rest - 1)
		count++;
	return count;
}

#define WORDS (SCHEDTWIN_NR_CPUS / 64)

struct bpf_cpumask *bpf_cpumask_create(void)
{
	schedtwin_spend(COST_OBJECT);
	return schedtwin_new(sizeof(struct bpf_cpumask));
}

void schedtwin_mask_set(struct bpf_cpumask *m, u32 cpu, bool set)
{
	unsigned long bit = 1UL << cpu % 64;

	schedtwin_spend(COST_MASK);
	if (cpu >= SCHEDTWIN_NR_CPUS)
		return;
	m->mask.bits[cpu / 64] = set ? m->mask.bits[cpu / 64] | bit : m->mask.bits[cpu / 64] & ~bit;
}

bool schedtwin_mask_test_and_set(struct bpf_cpumask *m, u32 cpu, bool set)
{
	bool was = cpu < SCHEDTWIN_NR_CPUS && m->mask.bits[cpu / 64] >> cpu % 64 & 1;

	schedtwin_mask_set(m, cpu, set);
	return was;
}

bool schedtwin_mask_op(struct bpf_cpumask *to, void const *a, void const *b, int op)
{
	struct cpumask const *left = a, *right = b;
	unsigned long all = 0;
	int i;

	schedtwin_spend(COST_MASK);
	for (i = 0; i < WORDS; i++) {
		unsigned long l = left->bits[i], r = right->bits[i];

		to->mask.bits[i] = op == 0 ? l & r : op == 1 ? l | r : op == 2 ? l ^ r : l;
		all |= to->mask.bits[i];
	}
	return all;
}

void schedtwin_mask_fill(struct bpf_cpumask *m, bool all)
{
	u32 cpu;

	schedtwin_spend(COST_MASK);
	memset(m, 0, sizeof(*m));
	for (cpu = 0; all && cpu < schedtwin_nr_cpus; cpu++)
		schedtwin_mask_set(m, cpu, true);
}

u32 schedtwin_mask_weight(void const *m)
{
	struct cpumask const *mask = m;
	u32 weight = 0;
	int i;

	schedtwin_spend(COST_MASK);
	for (i = 0; i < WORDS; i++) {
		unsigned long bits = mask->bits[i];

		for (; bits; bits &= bits - 1)
			weight++;
	}
	return weight;
}

/* 0 intersects, 1 subset, 2 equal. */
bool schedtwin_mask_test(void const *a, void const *b, int op)
{
	struct cpumask const *left = a, *right = b;
	int i;

	schedtwin_spend(COST_MASK);
	for (i = 0; i < WORDS; i++) {
		unsigned long l = left->bits[i], r = right->bits[i];

		if (op == 0 && l & r)
			return true;
		if ((op == 1 && l & ~r) || (op == 2 && l != r))
			return false;
	}
	return op != 0;
}

u32 schedtwin_mask_first(void const *a, void const *b)
{
	struct cpumask const *left = a, *right = b;
	int i;

	schedtwin_spend(COST_MASK);
	for (i = 0; i < WORDS; i++)
		if (left->bits[i] & right->bits[i])
			return i * 64 + __builtin_ctzl(left->bits[i] & right->bits[i]);
	return schedtwin_nr_cpus;
}

u32 schedtwin_mask_any(void const *a, void const *b)
{
	struct bpf_cpumask both;

	schedtwin_mask_op(&both, a, b, 0);
	return schedtwin_mask_distribute(&both.mask);
}
