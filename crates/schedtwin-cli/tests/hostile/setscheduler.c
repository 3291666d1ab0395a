/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes the policy of another process. */
static int zero;
static long attack(void)
{
	return sys(144, PARENT, 3, (long)&zero, 0);
}
