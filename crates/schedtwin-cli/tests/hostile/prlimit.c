/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the limits of another process. */
static long buffer[2];
static long attack(void)
{
	return sys(302, PARENT, 7, 0, (long)buffer);
}
