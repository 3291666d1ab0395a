/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has tables of its own in front of those by which functions are found. */
__asm__(".section .dynstr,\"a\"\n.rept 1000\n.ascii \"AAAAAAAAAAAAAAAAAAAA\"\n.endr\n"
	".section .hash,\"a\"\n.long 1,5000,0,0\n"
	".section .dynsym,\"a\"\n.rept 3000\n.long 5\n.byte 0x11,0\n.short 7\n.quad 0x1000,0\n.endr\n"
	".text\n");
static long attack(void) { return -1; }
