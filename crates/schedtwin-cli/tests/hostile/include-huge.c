/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Includes a file without end, almost. */
#include "huge.h"
static long attack(void) { return -1; }
