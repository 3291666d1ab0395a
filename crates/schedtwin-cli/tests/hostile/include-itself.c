/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Includes itself. */
#include __FILE__
static long attack(void) { return -1; }
