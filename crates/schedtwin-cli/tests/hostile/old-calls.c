/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes a call by the interrupt of 32 bits. */
static long attack(void)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory");
	return result;
}
