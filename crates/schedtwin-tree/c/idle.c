// SPDX-License-Identifier: GPL-2.0-or-later
/* An idle governor as the twin asks it: the governor's own file, then the door to it. */
#include <schedtwin/all.h>

#include GOVERNOR_FILE

struct schedtwin_idle_call *schedtwin_idle;

static struct cpuidle_governor *governor;
static struct cpuidle_driver *drivers;
static struct cpuidle_device *devices;
static u64 *capacities;

int cpuidle_register_governor(struct cpuidle_governor *registered)
{
	if (!registered || !registered->select)
		return -EINVAL;
	if (!governor || registered->rating > governor->rating)
		governor = registered;
	return 0;
}

ktime_t tick_nohz_get_sleep_length(ktime_t *delta_next)
{
	struct schedtwin_idle_call *call = schedtwin_idle_select_of(schedtwin_cpu);
	s64 delta_tick = 0, length;

	length = call->sleep_length(call->timers, &delta_tick);
	*delta_next = delta_tick;
	return length;
}

unsigned long arch_scale_cpu_capacity(int cpu)
{
	if ((unsigned int)cpu >= schedtwin_nr_cpus)
		schedtwin_refuse("the capacity of a CPU that there is not:", cpu);
	return capacities[cpu];
}

#define OFFERED __attribute__((__visibility__("default")))

/* Before the first CPU. */
OFFERED int schedtwin_idle_boot(void)
{
	if (!governor)
		return -ENODEV;
	drivers = schedtwin_allocate(schedtwin_nr_cpus * sizeof(*drivers));
	devices = schedtwin_allocate(schedtwin_nr_cpus * sizeof(*devices));
	capacities = schedtwin_allocate(schedtwin_nr_cpus * sizeof(*capacities));
	return 0;
}

/* A further state of a CPU, from shallow to deep. */
OFFERED void schedtwin_idle_add_state(unsigned int cpu, s64 exit_latency_ns, s64 target_residency_ns, int polling, int disabled)
{
	int index = drivers[cpu].state_count++;
	struct cpuidle_state *state = &drivers[cpu].states[index];

	state->exit_latency_ns = exit_latency_ns;
	state->target_residency_ns = target_residency_ns;
	state->exit_latency = exit_latency_ns / NSEC_PER_USEC;
	state->target_residency = target_residency_ns / NSEC_PER_USEC;
	state->flags = polling ? CPUIDLE_FLAG_POLLING : CPUIDLE_FLAG_NONE;
	devices[cpu].states_usage[index].disable = disabled;
}

/* All states are there: the governor takes the CPU over. */
OFFERED int schedtwin_idle_enable(unsigned int cpu, u64 capacity)
{
	devices[cpu].cpu = schedtwin_cpu = cpu;
	devices[cpu].registered = devices[cpu].enabled = 1;
	drivers[cpu].name = "schedtwin";
	capacities[cpu] = capacity;
	return governor->enable ? governor->enable(&drivers[cpu], &devices[cpu]) : 0;
}

/* How long to poll is the twin's to know: a governor that sets it would be answered wrongly. */
static void check(const struct cpuidle_device *device)
{
	if (device->poll_limit_ns)
		schedtwin_refuse("a governor from a tree cannot set poll_limit_ns; it set", device->poll_limit_ns);
}

OFFERED int schedtwin_idle_select(struct schedtwin_idle_call *call)
{
	struct cpuidle_device *device = &devices[call->cpu];
	bool stop_tick = true;
	int state;

	schedtwin_idle = call;
	schedtwin_cpu = call->cpu;
	schedtwin_now = call->now;
	device->last_residency_ns = call->last_residency_ns;
	state = governor->select(&drivers[call->cpu], device, &stop_tick);
	call->stop_tick = stop_tick;
	schedtwin_idle = NULL;
	check(device);
	return state;
}

OFFERED void schedtwin_idle_reflect(struct schedtwin_idle_call *call, int state)
{
	struct cpuidle_device *device = &devices[call->cpu];

	schedtwin_idle = call;
	schedtwin_cpu = call->cpu;
	schedtwin_now = call->now;
	device->last_residency_ns = call->last_residency_ns;
	/* Only the polling state's loop writes it. */
	if (drivers[call->cpu].states[state].flags & CPUIDLE_FLAG_POLLING)
		device->poll_time_limit = call->poll_time_limit;
	if (governor->reflect)
		governor->reflect(device, state);
	schedtwin_idle = NULL;
	check(device);
}
