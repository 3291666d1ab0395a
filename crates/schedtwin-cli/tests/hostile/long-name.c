/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has a symbol whose name has 10 kB. */
#define TEN(x) x x x x x x x x x x
#define LONG TEN(TEN(TEN("schedtwin_")))
__asm__(".pushsection .data\n.globl " LONG "\n.type " LONG ", @object\n" LONG ": .byte 0\n.popsection\n");
static long attack(void) { return -1; }
