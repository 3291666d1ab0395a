/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes an object of a gigabyte. */
__asm__(".data\n.fill 0x40000000, 1, 7\n.text\n");
static long attack(void) { return -1; }
