/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Removes a file. */
static long attack(void)
{
	return sys(87, (long)"HOME/gone", 0, 0, 0);
}
