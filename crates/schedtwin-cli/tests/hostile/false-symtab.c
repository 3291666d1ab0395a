/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has an ifunc resolver, and a section of its own where its symbols should be. */
static void plant(void)
{
	sys(257, -100, (long)"HOME/new", 0101, 0600);
}
static int real(void) { return 0; }
__attribute__((used)) static int (*pick(void))(void) { plant(); return real; }
int early(void) __attribute__((ifunc("pick")));
int (*volatile pointer)(void) = early;
__attribute__((section(".symtab"), used)) static char mine[24];
static long attack(void) { return -1; }
