/* SPDX-License-Identifier: GPL-2.0-or-later */
#define SKIP 7

struct average_history {
	unsigned int next;
	u64 stay_ns[8];
};
