/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes a link. */
static long attack(void)
{
	return sys(88, (long)"/etc", (long)"HOME/new", 0, 0);
}
