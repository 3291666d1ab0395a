/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens a pair of sockets. */
static int pair[2];
static long attack(void)
{
	return sys(53, 1, 1, 0, (long)pair);
}
