// SPDX-License-Identifier: GPL-2.0-or-later
/* Oracle for haltpoll: a kernel tree's own drivers/cpuidle/governors/haltpoll.c around one CPU. */
#include "../idle/world.h"
#include "haltpoll.c"

#define GOVERNOR haltpoll_governor

static void report(word state, word stop_tick, word asked)
{
	out(state);
	out(stop_tick);
	out(asked);
	out(device.poll_limit_ns);
	out(device.last_state_idx);
}

#include "../idle/serve.h"
