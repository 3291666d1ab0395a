/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has an _init(). */
static void plant(void)
{
	sys(257, -100, (long)"HOME/new", 0101, 0600);
}
void _init(void) { plant(); }
static long attack(void) { return -1; }
