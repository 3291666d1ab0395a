/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ends the process as if all had gone well. */
static long attack(void)
{
	return sys(231, 0, 0, 0, 0);
}
