/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Moves a file. */
static long attack(void)
{
	return sys(82, (long)"HOME/moved", (long)"HOME/new", 0, 0);
}
