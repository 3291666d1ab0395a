/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that its loader runs for each CPU: it is told the other thread of the CPU's core, and nothing else. `level` stands
 * before the CPU in its argument, as in scx_flash's, and may be refused. */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

const volatile s32 refused_cpu = -1;
const volatile u32 nr_cpu_ids;

struct domain_arg {
	s32 lvl_id;
	s32 cpu_id;
#ifdef SCHEDTWIN_TEST_MORE
	s32 other;
#endif
	s32 sibling_cpu_id;
};

static s32 sibling_of[64];
static u32 calls;
UEI_DEFINE(uei);

SEC("syscall")
int enable_sibling_cpu(struct domain_arg *input)
{
	if (input->lvl_id != 0 || input->cpu_id < 0 || input->cpu_id >= 64)
		return -EINVAL;
	if (input->cpu_id == refused_cpu)
		return -ENOENT;
	sibling_of[input->cpu_id] = input->sibling_cpu_id + 1;
	calls++;
	return 0;
}

/* The mask says "the other thread": one CPU, never the CPU itself, and the same from both sides. */
s32 BPF_STRUCT_OPS_SLEEPABLE(threads_init)
{
	s32 cpu;

	if (calls != nr_cpu_ids)
		scx_bpf_error("%u calls for %u CPUs", calls, nr_cpu_ids);
	bpf_for(cpu, 0, nr_cpu_ids) {
		s32 other = sibling_of[cpu] - 1;

		if (other == cpu)
			scx_bpf_error("CPU %d is its own sibling", cpu);
		if (other >= 0 && sibling_of[other] - 1 != cpu)
			scx_bpf_error("CPU %d is not the sibling of CPU %d", cpu, other);
	}
	return 0;
}

void BPF_STRUCT_OPS(threads_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

SCX_OPS_DEFINE(threads_ops,
	       .init		= (void *)threads_init,
	       .exit		= (void *)threads_exit,
	       .name		= "threads");
