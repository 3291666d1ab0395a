/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets flags of a file by the newest call. */
static char buffer[64];
static long attack(void)
{
	return sys(469, -100, (long)"HOME/secret", (long)buffer, 24);
}
