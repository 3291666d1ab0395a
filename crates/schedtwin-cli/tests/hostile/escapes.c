/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes to the terminal what acts on it. */
static long attack(void)
{
	sys(1, 1, (long)"\033]0;owned\007\n", 11, 0);
	sys(1, 2, (long)"\033[2J\033[H\n", 8, 0);
	return -1;
}
