/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the memory of another process. */
static char buffer[8];
static void *own[2] = { buffer, (void *)8 }, *other[2] = { 0, 0 };
static long attack(void)
{
	return sys(310, PARENT, (long)own, 1, (long)other);
}
