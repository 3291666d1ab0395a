/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes the mode of a file. */
static long attack(void)
{
	return sys(90, (long)"HOME/secret", 0777, 0, 0);
}
