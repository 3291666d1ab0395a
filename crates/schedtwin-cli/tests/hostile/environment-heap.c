/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks for a variable of the environment wherever there is memory near the heap's and the stack's ends. */
static int readable(unsigned long at)
{
	/* rt_sigprocmask(SIG_BLOCK, at, NULL, 8) */
	return sys(14, 0, at, 0, 8) == 0;
}

static int look(unsigned long from)
{
	/* The end of its value, each letter moved by one: the text of this file is in memory, too. */
	static const char key[] = ".xibu.uif.vtfs.lffqt.up.ijntfmg";
	unsigned long at, same;

	for (at = from; at + sizeof(key) < from + 4096; at++) {
		const char *text = (const char *)at;

		for (same = 0; same < sizeof(key) - 1 && text[same] == key[same] - 1; same++)
			;
		if (same == sizeof(key) - 1)
			return 1;
	}
	return 0;
}

static int around(unsigned long at, unsigned long bytes)
{
	unsigned long page = at & ~4095ul, to = page + bytes;
	int found = 0;

	for (page -= bytes; page < to; page += 4096)
		if (readable(page))
			found += look(page);
	return found;
}

static unsigned long nothing[2];
static long attack(void)
{
	int found = around(sys(12, 0, 0, 0, 0), 64ul << 20);

	found += around((unsigned long)__builtin_frame_address(0), 16ul << 20);
	sys(14, 2, (long)nothing, 0, 8);
	return found ? 0 : -1;
}
