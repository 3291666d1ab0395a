/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes the times of a file. */
static long attack(void)
{
	return sys(280, -100, (long)"HOME/secret", 0, 0);
}
