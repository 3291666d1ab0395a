/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Binds another process to CPUs. */
static long all = -1;
static long attack(void)
{
	return sys(203, PARENT, 8, (long)&all, 0);
}
