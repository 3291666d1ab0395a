/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The same for a thread of another process. */
static long attack(void)
{
	return sys(234, PARENT, PARENT, 0, 0);
}
