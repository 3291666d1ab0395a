/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes itself open to others. */
static long attack(void)
{
	return sys(157, 4, 1, 0, 0);
}
