/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens by the newer call. */
static long how[3];
static long attack(void)
{
	return sys(437, -100, (long)"HOME/secret", (long)how, 24);
}
