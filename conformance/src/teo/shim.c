// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for teo: a kernel tree's own drivers/cpuidle/governors/teo.c around one CPU. What its struct has
 * beside the rest: TEO_RECENT recent intercepts (5.14 to 6.10), TEO_TICK_HITS a bin behind the last (6.6 and
 * later), TEO_UTILIZED whether the CPU was utilised (patches up to 6.5); TEO_SHORT_IDLES what 6.18 has
 * instead of a time span, TEO_TIMERS what 7.3 has beside it.
 */
#include "../idle/world.h"
#define CONFIG_SMP 1
#define CONFIG_CPU_IDLE_GOV_TEO_UTIL_AWARE 1
#include "teo.c"

#define GOVERNOR teo_governor

static void report(word state, word stop_tick, word asked)
{
	out(state);
	out(stop_tick);
	out(asked);
#ifndef TEO_SHORT_IDLES
	out(teo_cpus.time_span_ns);
#endif
	out(teo_cpus.sleep_length_ns);
	out(teo_cpus.total);
#ifdef TEO_TIMERS
	out(teo_cpus.total_tick);
#endif
#ifdef TEO_SHORT_IDLES
	out(teo_cpus.tick_intercepts);
	out(teo_cpus.short_idles);
#endif
#ifdef TEO_TIMERS
	out(teo_cpus.tick_wakeup);
#elif defined(TEO_SHORT_IDLES)
	out(teo_cpus.artificial_wakeup);
#endif
#ifdef TEO_UTILIZED
	out(teo_cpus.utilized);
#endif
#ifdef TEO_RECENT
	out(teo_cpus.next_recent_idx);
	for (int i = 0; i < NR_RECENT; i++)
		out((word)(s64)teo_cpus.recent_idx[i]);
#endif
#ifdef TEO_TICK_HITS
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

#include "../idle/serve.h"
