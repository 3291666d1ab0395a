/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has a function whose address is computed when it is loaded. */
static void plant(void)
{
	sys(257, -100, (long)"HOME/new", 0101, 0600);
}
static int real(void) { return 0; }
static int (*pick(void))(void) { plant(); return real; }
int early(void) __attribute__((ifunc("pick"), visibility("default")));
static long attack(void) { return -1; }
