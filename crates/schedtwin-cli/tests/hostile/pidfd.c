/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Gets a handle of another process. */
static long attack(void)
{
	return sys(434, PARENT, 0, 0, 0);
}
