/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What its program makes of the machine, as machine.options.json beside it says: variables, entries of maps, sets of CPUs, and programs
 * that run before `init` and after it. What does not fit together is an error of it.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

#define CPUS 64

struct set {
	u64 words[4];
};
struct where {
	u32 core;
	u16 llc;
	s32 sibling;
	struct set threads;
};
struct pair {
	u32 node, llc;
};

const volatile u32 nr_cpu_ids, all_cores;
const volatile bool smt_enabled;
const volatile u16 order[CPUS];
const volatile struct set big, everywhere;
static struct set primary;
static u32 told, started_on, enabled;
UEI_DEFINE(uei);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CPUS);
	__type(key, u32);
	__type(value, struct where);
} places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CPUS);
	__type(key, struct pair);
	__type(value, u64);
} sizes SEC(".maps");

struct cpu_arg {
	s32 cpu;
	u8 level;
};

SEC("syscall")
int enable_cpu(struct cpu_arg *input)
{
	if (input->level != 3 || enabled)
		return -EINVAL;
	if (input->cpu < 0 || input->cpu >= CPUS)
		return -ENOENT;
	primary.words[input->cpu / 64] |= 1ULL << input->cpu % 64;
	told++;
	return 0;
}

SEC("syscall")
int start(struct cpu_arg *input)
{
	if (!enabled || bpf_get_smp_processor_id() != input->cpu)
		return -EINVAL;
	started_on = input->cpu + 1;
	return 0;
}

SEC("syscall")
int look(void *ctx)
{
	return told ? 0 : -EINVAL;
}

static bool has(const volatile struct set *set, u32 cpu) { return set->words[cpu / 64] >> cpu % 64 & 1; }

s32 BPF_STRUCT_OPS_SLEEPABLE(machine_init)
{
	u32 cores = 0, threads = 0, cpu;

	if (told != nr_cpu_ids)
		scx_bpf_error("told %u of %u CPUs", told, nr_cpu_ids);
	bpf_for(cpu, 0, nr_cpu_ids) {
		struct where *where = bpf_map_lookup_elem(&places, &cpu);
		struct pair pair = {};
		u64 *size;

		if (!where || !has(&where->threads, cpu) || !has(&everywhere, cpu) || !has(&primary, cpu)) {
			scx_bpf_error("CPU %u is nowhere", cpu);
			return 0;
		}
		if (smt_enabled != (where->sibling >= 0) || (smt_enabled && !has(&where->threads, where->sibling)))
			scx_bpf_error("CPU %u: sibling %d", cpu, where->sibling);
		cores = cores > where->core ? cores : where->core;
		pair.llc = where->llc;
		size = bpf_map_lookup_elem(&sizes, &pair);
		if (!size || !*size)
			scx_bpf_error("CPU %u: its cache has no size", cpu);
		if (scx_bpf_cpuperf_cap(order[cpu]) > scx_bpf_cpuperf_cap(order[cpu ? cpu - 1 : 0]))
			scx_bpf_error("CPU %u is not in its place", cpu);
		threads += has(&big, cpu);
	}
	if (cores + 1 != all_cores || !threads)
		scx_bpf_error("%u cores of %u, %u big CPUs", cores + 1, all_cores, threads);
	enabled = 1;
	return 0;
}

void BPF_STRUCT_OPS(machine_enable, struct task_struct *p)
{
	/* One that its loader has refused hears of nothing. */
	if (!enabled)
		__builtin_trap();
	if (!started_on)
		scx_bpf_error("not started");
}

void BPF_STRUCT_OPS(machine_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

SCX_OPS_DEFINE(machine_ops,
	       .enable		= (void *)machine_enable,
	       .init		= (void *)machine_init,
	       .exit		= (void *)machine_exit,
	       .name		= "machine");
