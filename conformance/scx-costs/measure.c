// SPDX-License-Identifier: GPL-2.0-or-later
/* Runs each loop of costs.bpf.c 200 times and prints the least time of a call, ns, without the loop's own. */
#include <linux/types.h>
#include <stdio.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "costs.skel.h"

static const char *const NAMES[] = {
	"a call of the loop", "array: lookup", "percpu array: lookup", "hash: lookup", "hash: update", "hash: new entry, delete",
	"queue: push, pop", "task storage: get", "bpf_ktime_get_ns", "bpf_get_prandom_u32", "bpf_rcu_read_lock, unlock",
	"bpf_task_from_pid, release", "bpf_cpumask_test_cpu (with RCU)", "bpf_cpumask_first (with RCU)",
	"bpf_cpumask_any_distribute (with RCU)", "bpf_cpumask_create, release",
};

static char packet[64];

static double least(struct costs *costs, struct bpf_program *program, int which, bool is_syscall)
{
	double least = 1e18;

	for (int round = 0; round < 200; round++) {
		LIBBPF_OPTS(bpf_test_run_opts, options);
		if (!is_syscall) {
			options.data_in = packet;
			options.data_size_in = sizeof(packet);
		}
		costs->bss->which = which;
		costs->bss->result = 0;
		if (bpf_prog_test_run_opts(bpf_program__fd(program), &options) || !costs->bss->result)
			return -1;
		if (costs->bss->result / 1000.0 < least)
			least = costs->bss->result / 1000.0;
	}
	return least;
}

int main(void)
{
	struct costs *costs = costs__open_and_load();
	double loop;

	if (!costs)
		return 1;
	for (__u32 key = 0; key < 512; key++) {
		__u64 value = key;

		bpf_map_update_elem(bpf_map__fd(costs->maps.hash), &key, &value, 0);
	}
	loop = least(costs, costs->progs.calls, 0, true);
	printf("%-40s %6.1f\n", NAMES[0], loop);
	for (int which = 1; which < (int)(sizeof(NAMES) / sizeof(*NAMES)); which++)
		printf("%-40s %6.1f\n", NAMES[which], least(costs, costs->progs.calls, which, true) - loop);
	printf("%-40s %6.1f\n", "bpf_spin_lock, unlock",
	       least(costs, costs->progs.locks_taken, 1, false) - least(costs, costs->progs.locks_taken, 0, false));
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet, .data_size_in = sizeof(packet), .repeat = 1000000);
	if (!bpf_prog_test_run_opts(bpf_program__fd(costs->progs.empty), &options))
		printf("%-40s %6u\n", "an empty program", options.duration);
	return 0;
}
