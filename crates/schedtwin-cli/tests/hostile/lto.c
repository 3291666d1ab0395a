/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Says that it was compiled for the linker's plug-in, with options of its own for another compiler. */
__asm__(".section .gnu.lto_.lto.1234,\"e\",@progbits\n.short 12,0\n.byte 0,0,0,0\n"
	".section .gnu.lto_.opts,\"e\",@progbits\n.asciz \"'-fPIC' '-O2' '-Xassembler' '--version'\"\n"
	".section .gnu.lto_.symtab.1234,\"e\",@progbits\n"
	".section .gnu.lto_main.1234,\"e\",@progbits\n.long 0\n.text\n.comm __gnu_lto_v1,1,1\n");
static long attack(void) { return -1; }
