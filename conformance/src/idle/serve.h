/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The operations on the world of world.h; to be included last. */

static void begin(void)
{
	memset(&driver, 0, sizeof(driver));
	memset(&device, 0, sizeof(device));
	tick_nsec = 4000000;
	io_waiters = 0;
	cpu_util = 0;
#ifdef GOVERNOR_MEMORY /* which its enable() does not clear, as that is called once a boot */
	memset(&GOVERNOR_MEMORY, 0, sizeof(GOVERNOR_MEMORY));
#endif
	GOVERNOR.enable(&driver, &device);
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
		/* Nothing has been selected yet: as if the governor came last. */
		GOVERNOR.enable(&driver, &device);
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
		selected = GOVERNOR.select(&driver, &device, &stop_tick);
		report(selected, stop_tick, timers_asked);
		break;
	case OP_FIRST + 4:
		clock_now = arg[0];
		got_tick = arg[2];
		device.poll_time_limit = arg[3];
		GOVERNOR.reflect(&device, arg[1]);
		report(0, 0, device.poll_time_limit);
		break;
	case OP_FIRST + 5: /* tasks that wait for I/O */
		io_waiters = arg[0];
		report(0, 0, 0);
		break;
	case OP_FIRST + 6: /* how long the stay lasted that is reflected next */
		device.last_residency_ns = arg[0];
		report(0, 0, 0);
		break;
	case OP_FIRST + 7: /* utilisation of the CPU */
		cpu_util = arg[0];
		report(0, 0, 0);
		break;
	default:
		fprintf(stderr, "unknown operation %llu\n", op);
		exit(2);
	}
}

int main(void)
{
	return serve(begin, operate);
}
