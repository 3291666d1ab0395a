/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes a process. */
static long attack(void)
{
	return sys(57, 0, 0, 0, 0);
}
