/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has a destructor. */
static void plant(void)
{
	sys(257, -100, (long)"HOME/new", 0101, 0600);
}
__attribute__((destructor)) static void last(void) { plant(); }
static long attack(void) { return -1; }
