/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens a socket of the internet. */
static long attack(void)
{
	return sys(41, 2, 1, 0, 0);
}
