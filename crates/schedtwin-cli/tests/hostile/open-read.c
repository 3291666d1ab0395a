/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a file of the user. */
static long attack(void)
{
	return sys(257, -100, (long)"HOME/secret", 0, 0);
}
