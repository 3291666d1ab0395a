/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes a process by the call whose flags no filter sees. */
static long arguments[8] = { 0, 0, 0, 0, 17 };
static long attack(void)
{
	return sys(435, (long)arguments, 64, 0, 0);
}
