/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the compiler say 30 MB. */
#define TEN(x) x x x x x x x x x x
#define LONG TEN(TEN("0123456789012345678901234567890123456789"))
__asm__(".rept 7000\n.error \"" LONG "\"\n.endr\n");
static long attack(void) { return -1; }
