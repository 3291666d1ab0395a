/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes a file. */
static long attack(void)
{
	return sys(257, -100, (long)"HOME/new", 0101, 0600);
}
