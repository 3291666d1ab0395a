/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks whether a file is there. */
static char buffer[256];
static long attack(void)
{
	return sys(4, (long)"HOME/secret", (long)buffer, 0, 0);
}
