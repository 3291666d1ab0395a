// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for the refresh of capacities: functions cut out of a kernel tree's fair.c when the test runs
 * (capacity_extract.h, written by the test program), around CPUs with given signals and all their domains.
 *
 * Reads cases, one a line, as `sched/fair/balance/states/capacity.rs` of the kernel crate draws them: the state, `=`,
 * our answer. Computes the kernel's answer as text in the same form, and compares.
 *
 *   shim refreshes       update_group_capacity() of one domain of a CPU, or of all from the lowest up
 */
#include "../balance/kernel.h"
#include "../balance/clamps.h"

#undef update_group_capacity
#undef capacity_orig_of
#define HZ 250
/* At this HZ a jiffy is 4 ms. */
#define msecs_to_jiffies(ms) (((ms) + 3) / 4)
#define clamp(value, low, high) min(max(value, low), high)
#define SD_OVERLAP 0x2000
#define READ_ONCE(value) (value)
#define trace_sched_cpu_capacity_tp(rq) ((void)0)

static unsigned long max_load_balance_interval = HZ * 8 / 10;

#include "capacity_extract.h"
#include "../states/read.h"
#include "../balance/domains.h"

static void refresh(long now, char *answer)
{
	memset(rqs, 0, sizeof(rqs));
	jiffies = now;
	int cpu = below(number(), CPUS), only = number(), level = 0;
	struct sched_domain *sd;

	read_domains();
	for (int at = 0; at < CPUS; at++) {
		struct rq *rq = cpu_rq(at);

		rq->cpu = at;
		rq->arch_capacity = number();
		rq->cpu_capacity = number();
		rq->avg_rt.util_avg = number();
		rq->avg_dl.util_avg = number();
		rq->avg_irq.util_avg = number();
		rq->avg_hw.load_avg = number();
		rq->pressure = number();
	}
	for (sd = cpu_rq(cpu)->sd; sd; sd = sd->parent, level++)
		if (only < 0 || only == level)
			update_group_capacity(sd, cpu);
	for (int at = 0; at < CPUS; at++)
		answer += sprintf(answer, "%s%lu", at ? " " : "", cpu_rq(at)->cpu_capacity);
	for (int i = 0; i < nr_capacities; i++) {
		struct sched_group_capacity *sgc = &all_capacities[i];

		answer += sprintf(answer, " %lu,%lu,%lu,%lu", sgc->capacity, sgc->min_capacity,
				  sgc->max_capacity, sgc->next_update);
	}
}

int main(void)
{
	static char kernels[ANSWER_MAX];
	unsigned long differing = 0;
	long now;

	while (scanf("%ld", &now) == 1) {
		case_number++;
		refresh(now, kernels);
		differing += compare(kernels, differing);
	}
	printf("%lu refreshes compared, %lu differ\n", case_number, differing);
	return differing != 0;
}
