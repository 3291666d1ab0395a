/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes a file of the user in as data. */
__asm__(".data\n.incbin \"HOME/secret\"\n.text\n");
static long attack(void) { return -1; }
