/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes a file in memory. */
static long attack(void)
{
	return sys(319, (long)"x", 0, 0, 0);
}
