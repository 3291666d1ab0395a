/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens by the x32 form of the call. */
static long attack(void)
{
	return sys(0x40000002, (long)"HOME/secret", 0, 0, 0);
}
