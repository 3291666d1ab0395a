/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Maps more than the machine has. */
static long attack(void)
{
	return sys(9, 0, 1L << 44, 3, 0x4022);
}
