/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Includes the compiler's own messages. */
#include "/dev/stderr"
static long attack(void) { return -1; }
