/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads what the user types. */
static char buffer[1];
static long attack(void)
{
	long flags = sys(72, 0, 3, 0, 0);

	return flags;
}
