/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads where a link of /proc leads. */
static char buffer[256];
static long attack(void)
{
	return sys(89, (long)"/proc/self/exe", (long)buffer, 200, 0);
}
