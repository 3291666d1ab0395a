/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks for a process by a signal. */
static long attack(void)
{
	return sys(62, PARENT, 0, 0, 0);
}
