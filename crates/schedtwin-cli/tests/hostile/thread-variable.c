/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has a variable of threads. */
__thread int mine __attribute__((tls_model("initial-exec"))) = 3;
int *theirs(void) { return &mine; }
static long attack(void) { return -1; }
