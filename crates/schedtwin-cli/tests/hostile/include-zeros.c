/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Includes a link to an endless device. */
#include "zeros.h"
static long attack(void) { return -1; }
