/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ends the process by a signal. */
static long attack(void)
{
	return sys(234, sys(39, 0, 0, 0, 0), sys(39, 0, 0, 0, 0), 9, 0);
}
