/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has no end of its stack. */
static int deep(volatile int *from)
{
	volatile int here[1000];

	here[0] = *from + 1;
	return deep(here) + here[0];
}
static long attack(void)
{
	volatile int zero = 0;

	return deep(&zero) ? -1 : -2;
}
