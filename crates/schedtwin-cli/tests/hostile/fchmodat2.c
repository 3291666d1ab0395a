/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes the mode by the newer call. */
static long attack(void)
{
	return sys(452, -100, (long)"HOME/secret", 0777, 0);
}
