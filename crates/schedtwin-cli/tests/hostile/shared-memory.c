/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes shared memory that outlives the run. */
static long attack(void)
{
	return sys(29, 0, 4096, 01600, 0);
}
