/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes semaphores that outlive the run. */
static long attack(void)
{
	return sys(64, 0, 1, 01600, 0);
}
