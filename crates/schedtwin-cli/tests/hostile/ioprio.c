/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes the I/O priority of another process. */
static long attack(void)
{
	return sys(251, 1, PARENT, 0x4004, 0);
}
