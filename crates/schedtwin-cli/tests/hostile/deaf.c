/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ignores every signal and computes for ever. */
static long attack(void)
{
	static long ignore[4] = { 1, 0, 0, 0 };
	int signal;

	for (signal = 1; signal < 65; signal++)
		sys(13, signal, (long)ignore, 0, 8);
	for (;;)
		__asm__ volatile("");
}
