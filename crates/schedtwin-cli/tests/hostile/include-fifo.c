/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Includes a pipe that nobody writes to. */
#include "fifo.h"
static long attack(void) { return -1; }
