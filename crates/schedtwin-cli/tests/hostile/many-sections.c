/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has a constructor, and so many sections that the header cannot count them. */
static void plant(void)
{
	sys(257, -100, (long)"HOME/new", 0101, 0600);
}
__attribute__((constructor)) static void first(void) { plant(); }
__asm__(".altmacro\n.macro mk n\n.section .zz\\n,\"\",@progbits\n.byte 0\n.endm\n.set i,0\n.rept 66000\nmk %i\n.set i,i+1\n.endr\n.noaltmacro\n.text\n");
static long attack(void) { return -1; }
