/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Includes a file of the user. */
#include "HOME/secret"
static long attack(void) { return -1; }
int leaked = the_secret_word + "";
