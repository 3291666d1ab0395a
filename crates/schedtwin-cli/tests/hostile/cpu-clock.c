/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks how much processor time a process of somebody else has used. */
static long attack(void)
{
	long time[2];

	return sys(228, (~(long)PARENT << 3) | 2, (long)time, 0, 0);
}
