/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks for the rights of a file. */
static long attack(void)
{
	return sys(21, (long)"HOME/secret", 0, 0, 0);
}
