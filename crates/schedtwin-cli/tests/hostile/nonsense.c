/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes nonsense where the supervisor listens. */
static long attack(void)
{
	return sys(1, 3, (long)"gggggggggggg", 12, 0), -1;
}
