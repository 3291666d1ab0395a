// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An idle governor for tests: the deepest state that pays for the average of the CPU's stays, and for the time until
 * the next timer. It has state of each kind that a governor can have: per CPU, of all CPUs, allocated, and pointers
 * between them.
 */
#include <linux/cpuidle.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/tick.h>

#include "average.h"

struct average_cpu {
	u64 sum_ns;
	unsigned int stays;
	struct average_history *history;
};

static DEFINE_PER_CPU(struct average_cpu, average_cpus) = { .stays = 1 };
/* Of all CPUs: every SKIP-th stay of the machine teaches nothing. */
static unsigned int machine_stays;

static int average_enable(struct cpuidle_driver *drv, struct cpuidle_device *dev)
{
	struct average_cpu *data = per_cpu_ptr(&average_cpus, dev->cpu);

	data->history = kzalloc(sizeof(*data->history), GFP_KERNEL);
	return data->history ? 0 : -ENOMEM;
}

static int average_select(struct cpuidle_driver *drv, struct cpuidle_device *dev, bool *stop_tick)
{
	struct average_cpu *data = this_cpu_ptr(&average_cpus);
	s64 latency_req = cpuidle_governor_latency_req(dev->cpu);
	u64 expected_ns = data->sum_ns / data->stays;
	ktime_t delta_tick;
	int i, idx = 0;

	expected_ns = min_t(u64, expected_ns, max_t(s64, tick_nohz_get_sleep_length(&delta_tick), 0));
	for (i = 0; i < drv->state_count; i++) {
		if (dev->states_usage[i].disable || drv->states[i].exit_latency_ns > latency_req)
			continue;
		if (drv->states[i].target_residency_ns <= expected_ns)
			idx = i;
	}
	*stop_tick = expected_ns >= TICK_NSEC;
	return idx;
}

static void average_reflect(struct cpuidle_device *dev, int index)
{
	struct average_cpu *data = this_cpu_ptr(&average_cpus);
	struct average_history *history = data->history;
	u64 *oldest = &history->stay_ns[history->next];

	if (++machine_stays % SKIP == 0)
		return;
	data->sum_ns += dev->last_residency_ns - *oldest;
	*oldest = dev->last_residency_ns;
	history->next = (history->next + 1) % ARRAY_SIZE(history->stay_ns);
	data->stays = max_t(unsigned int, data->stays, history->next);
}

static struct cpuidle_governor average_governor = {
	.name = "average",
	.rating = 5,
	.enable = average_enable,
	.select = average_select,
	.reflect = average_reflect,
};

static int __init init_average(void)
{
	return cpuidle_register_governor(&average_governor);
}
postcore_initcall(init_average);
