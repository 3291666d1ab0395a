// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for teo: a kernel tree's own drivers/cpuidle/governors/teo.c around one CPU. With TEO_RECENT
 * the tree is one of 5.14 to 6.2, whose teo counts recent intercepts.
 */
#include "cpuidle_world.h"
#include "teo.c"

#define GOVERNOR teo_governor

static void report(word state, word stop_tick, word asked)
{
	out(state);
	out(stop_tick);
	out(asked);
	out(teo_cpus.time_span_ns);
	out(teo_cpus.sleep_length_ns);
	out(teo_cpus.total);
#ifdef TEO_RECENT
	out(teo_cpus.next_recent_idx);
	for (int i = 0; i < NR_RECENT; i++)
		out((word)(s64)teo_cpus.recent_idx[i]);
#else
	out(teo_cpus.tick_hits);
#endif
	out((word)(s64)device.last_state_idx);
	for (int i = 0; i < driver.state_count; i++) {
		out(teo_cpus.state_bins[i].hits);
		out(teo_cpus.state_bins[i].intercepts);
#ifdef TEO_RECENT
		out(teo_cpus.state_bins[i].recent);
#endif
	}
}

#include "cpuidle_serve.h"
