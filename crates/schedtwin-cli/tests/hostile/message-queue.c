/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes a queue of messages that outlives the run. */
static long attack(void)
{
	return sys(68, 0, 01600, 0, 0);
}
