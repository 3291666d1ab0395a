/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes a process in a namespace of its own. */
static long attack(void)
{
	long child = sys(56, 0x10000011, 0, 0, 0);

	if (!child)
		sys(231, 0, 0, 0, 0);
	return child;
}
