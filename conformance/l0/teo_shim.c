// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for teo: a kernel tree's own drivers/cpuidle/governors/teo.c (and gov.h beside it) around
 * one CPU. Nothing of the kernel is in this file; the headers that teo.c includes are the ones in
 * include/, which are empty because everything it needs is declared here.
 */
#include "protocol.h"
#include "kernel_types.h"

#define CPUIDLE_STATE_MAX 10
#define CPUIDLE_FLAG_POLLING 1
/* A constant in a kernel; here the sequence decides, so that one program serves every HZ. */
#define TICK_NSEC tick_nsec

struct cpuidle_state {
	s64 exit_latency_ns, target_residency_ns;
	unsigned int flags;
};

struct cpuidle_state_usage { unsigned long long disable; };

struct cpuidle_device {
	unsigned int poll_time_limit : 1;
	unsigned int cpu;
	int last_state_idx;
	u64 last_residency_ns;
	struct cpuidle_state_usage states_usage[CPUIDLE_STATE_MAX];
};

struct cpuidle_driver {
	struct cpuidle_state states[CPUIDLE_STATE_MAX];
	int state_count;
};

struct cpuidle_governor {
	char name[16];
	unsigned int rating;
	int (*enable)(struct cpuidle_driver *, struct cpuidle_device *);
	int (*select)(struct cpuidle_driver *, struct cpuidle_device *, bool *);
	void (*reflect)(struct cpuidle_device *, int);
};

static struct cpuidle_driver driver;
static struct cpuidle_device device;
static s64 tick_nsec, latency_req, sleep_length, delta_next;
static bool tick_stopped, got_tick;
static u64 clock_now;
static unsigned timers_asked;

#define DEFINE_PER_CPU(type, name) type name
#define per_cpu_ptr(pointer, cpu) (pointer)
#define postcore_initcall(function)

static u64 local_clock(void) { return clock_now; }
static s64 cpuidle_governor_latency_req(unsigned int cpu) { (void)cpu; return latency_req; }
static bool tick_nohz_tick_stopped(void) { return tick_stopped; }
static int cpuidle_register_governor(struct cpuidle_governor *gov) { (void)gov; return 0; }

static bool tick_nohz_idle_got_tick(void)
{
	bool got = got_tick;

	got_tick = false;
	return got;
}

static ktime_t tick_nohz_get_sleep_length(ktime_t *delta)
{
	timers_asked++;
	*delta = delta_next;
	return sleep_length;
}

#include "teo.c"

static void report(word state, word stop_tick, word asked)
{
	out(state);
	out(stop_tick);
	out(asked);
	out(teo_cpus.time_span_ns);
	out(teo_cpus.sleep_length_ns);
	out(teo_cpus.total);
	out(teo_cpus.tick_hits);
	out((word)(s64)device.last_state_idx);
	for (int i = 0; i < driver.state_count; i++) {
		out(teo_cpus.state_bins[i].hits);
		out(teo_cpus.state_bins[i].intercepts);
	}
}

static void begin(void)
{
	memset(&driver, 0, sizeof(driver));
	memset(&device, 0, sizeof(device));
	tick_nsec = 4000000;
	teo_enable_device(&driver, &device);
}

static void operate(word op, const word *arg)
{
	struct cpuidle_state *state;
	bool stop_tick;
	int selected;

	switch (op) {
	case OP_FIRST + 0: /* a further state */
		if (driver.state_count == CPUIDLE_STATE_MAX)
			exit(2);
		state = &driver.states[driver.state_count];
		state->exit_latency_ns = arg[0];
		state->target_residency_ns = arg[1];
		state->flags = arg[2] ? CPUIDLE_FLAG_POLLING : 0;
		device.states_usage[driver.state_count].disable = arg[3];
		driver.state_count++;
		report(0, 0, 0);
		break;
	case OP_FIRST + 1:
		tick_nsec = arg[0];
		report(0, 0, 0);
		break;
	case OP_FIRST + 2: /* switches a state on or off */
		device.states_usage[arg[0] % CPUIDLE_STATE_MAX].disable = arg[1];
		report(0, 0, 0);
		break;
	case OP_FIRST + 3:
		clock_now = arg[0];
		latency_req = arg[1];
		tick_stopped = arg[2] & 1;
		device.last_residency_ns = arg[3];
		sleep_length = arg[4];
		delta_next = arg[5];
		timers_asked = 0;
		stop_tick = true;
		selected = teo_governor.select(&driver, &device, &stop_tick);
		report(selected, stop_tick, timers_asked);
		break;
	case OP_FIRST + 4:
		clock_now = arg[0];
		got_tick = arg[2];
		device.poll_time_limit = arg[3];
		teo_governor.reflect(&device, arg[1]);
		report(0, 0, device.poll_time_limit);
		break;
	default:
		fprintf(stderr, "unknown operation %llu\n", op);
		exit(2);
	}
}

int main(void)
{
	teo_governor_init();
	return serve(begin, operate);
}
