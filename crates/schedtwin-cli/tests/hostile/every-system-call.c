/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes every system call that is not on the list, with zeros. */
/* 335 and 336, uretprobe and uprobe, are the kernel's own: seccomp lets them pass, and whoever else calls them gets SIGILL. */
static const short allowed[] = {
	335, 336, 0, 1, 9, 10, 11, 12, 13, 14, 15, 20, 24, 25, 28, 35, 39, 56, 60, 131, 157, 186,
	202, 204, 219, 228, 230, 231, 234, 273, 302, 318, 334, 435,
};
static long attack(void)
{
	long number;
	unsigned int at;

	for (number = 0; number <= 600; number++) {
		for (at = 0; at < sizeof(allowed) / sizeof(*allowed); at++)
			if (allowed[at] == number)
				break;
		if (at == sizeof(allowed) / sizeof(*allowed) && sys(number, 0, 0, 0, 0) != -1)
			return number;
	}
	return -1;
}
