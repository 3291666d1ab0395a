// SPDX-License-Identifier: GPL-2.0-or-later
/* Oracle for menu: a kernel tree's own drivers/cpuidle/governors/menu.c around one CPU. */
#include "../idle/world.h"
#include "menu.c"

#define GOVERNOR menu_governor

static void report(word state, word stop_tick, word asked)
{
	out(state);
	out(stop_tick);
	out(asked);
	out(menu_devices.needs_update);
	out(menu_devices.tick_wakeup);
	out(menu_devices.next_timer_ns);
	out(menu_devices.bucket);
	out(menu_devices.interval_ptr);
	out(device.last_state_idx);
	for (int i = 0; i < BUCKETS; i++)
		out(menu_devices.correction_factor[i]);
	for (int i = 0; i < INTERVALS; i++)
		out(menu_devices.intervals[i]);
}

#include "../idle/serve.h"
