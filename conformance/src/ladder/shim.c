// SPDX-License-Identifier: GPL-2.0-or-later
/* Oracle for ladder: a kernel tree's own drivers/cpuidle/governors/ladder.c around one CPU. */
#include "../idle/world.h"
#include "ladder.c"

#define GOVERNOR ladder_governor
#define GOVERNOR_MEMORY ladder_devices

static void report(word state, word stop_tick, word asked)
{
	out(state);
	out(stop_tick);
	out(asked);
	out(device.last_state_idx);
	for (int i = 0; i < driver.state_count; i++) {
		out(ladder_devices.states[i].stats.promotion_count);
		out(ladder_devices.states[i].stats.demotion_count);
	}
}

#include "../idle/serve.h"
