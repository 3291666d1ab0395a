/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes the priority of another process. */
static long attack(void)
{
	return sys(141, 0, PARENT, 1, 0);
}
