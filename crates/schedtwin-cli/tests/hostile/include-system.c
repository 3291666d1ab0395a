/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Includes a file of the system. */
#include "/usr/include/stdc-predef.h"
static long attack(void) { return -1; }
