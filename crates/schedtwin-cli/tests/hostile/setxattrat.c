/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets an attribute by the newer call. */
static long attack(void)
{
	return sys(463, -100, (long)"HOME/secret", 0, (long)"user.x");
}
