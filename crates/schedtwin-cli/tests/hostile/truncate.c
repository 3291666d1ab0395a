/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Empties a file. */
static long attack(void)
{
	return sys(76, (long)"HOME/secret", 0, 0, 0);
}
