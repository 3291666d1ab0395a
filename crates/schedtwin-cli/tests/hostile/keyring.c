/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes a key. */
static long attack(void)
{
	return sys(250, 0, -3, 1, 0);
}
