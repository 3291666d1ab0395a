/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the CPUs of another process. */
static long all;
static long attack(void)
{
	return sys(204, PARENT, 8, (long)&all, 0);
}
