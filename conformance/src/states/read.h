// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads the numbers of states (`conformance/src/states`), and compares answers as text.
 */
enum { ANSWER_MAX = 8192, SHOWN_MAX = 5 };

static unsigned long case_number;

static long long number(void)
{
	long long value;

	if (scanf("%lld", &value) != 1) {
		fprintf(stderr, "case %lu: a number is missing\n", case_number);
		exit(2);
	}
	return value;
}

static unsigned hex(void)
{
	unsigned value;

	if (scanf("%x", &value) != 1) {
		fprintf(stderr, "case %lu: a number is missing\n", case_number);
		exit(2);
	}
	return value;
}

static int below(long long value, int bound)
{
	if (value < 0 || value >= bound) {
		fprintf(stderr, "case %lu: %lld is not below %d\n", case_number, value, bound);
		exit(2);
	}
	return value;
}

/* Reads our answer, and shows it beside the kernel's if they differ: returns whether they do. */
static int compare(const char *kernels, unsigned long differing)
{
	static char ours[ANSWER_MAX];

	if (scanf(" = %8191[^\n]", ours) != 1) {
		fprintf(stderr, "case %lu: no answer\n", case_number);
		exit(2);
	}
	if (!strcmp(kernels, ours))
		return 0;
	if (differing < SHOWN_MAX)
		printf("case %lu\n  kernel %s\n  ours   %s\n", case_number, kernels, ours);
	return 1;
}
