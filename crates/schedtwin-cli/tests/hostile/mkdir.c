/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes a folder. */
static long attack(void)
{
	return sys(83, (long)"HOME/new", 0700, 0, 0);
}
