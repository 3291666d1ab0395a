/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Includes a link that leads out of the tree. */
#include "link.h"
static long attack(void) { return -1; }
