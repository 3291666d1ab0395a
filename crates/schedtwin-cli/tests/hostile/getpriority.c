/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the priority of another process. */
static long attack(void)
{
	return sys(140, 0, PARENT, 0, 0);
}
