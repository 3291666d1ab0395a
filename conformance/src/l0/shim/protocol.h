/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How an oracle talks: fixed records of seven 64-bit words on stdin (operation, six arguments),
 * native byte order. Each operation yields some words: the return value and what it touched.
 *
 *   BEGIN  resets the world; argument 0 = 1 asks for every operation's words, not only the digest
 *   END    ends a sequence; the digest of all its words is written to stdout
 *
 * With all words asked for, each operation writes their number and then them.
 */
#ifndef L0_PROTOCOL_H
#define L0_PROTOCOL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long word;

enum { OP_END = 0, OP_BEGIN = 1, OP_FIRST = 2, RECORD_ARGS = 6, OUT_MAX = 192 };

static word out_words[OUT_MAX];
static unsigned out_count;
static word out_digest;
static int out_verbose;

static void out(word value)
{
	if (out_count == OUT_MAX)
		abort();
	out_words[out_count++] = value;
}

static void out_send(const word *words, unsigned count)
{
	if (fwrite(words, sizeof(*words), count, stdout) != count)
		exit(1);
}

/* Mixes the operation's words into the digest, one multiplication each. */
static void out_flush(void)
{
	for (unsigned i = 0; i < out_count; i++) {
		out_digest = (out_digest ^ out_words[i]) * 0x9e3779b97f4a7c15ULL;
		out_digest ^= out_digest >> 32;
	}
	if (out_verbose) {
		word count = out_count;
		out_send(&count, 1);
		out_send(out_words, out_count);
	}
	out_count = 0;
}

/* Mixes a value into a digest of the shim's own. */
static inline word fold(word digest, word value)
{
	digest = (digest ^ value) * 0x9e3779b97f4a7c15ULL;
	return digest ^ digest >> 32;
}

static int serve(void (*begin)(void), void (*operate)(word op, const word *arg))
{
	static char in_buffer[1 << 20], out_buffer[1 << 16];
	word record[1 + RECORD_ARGS];

	setvbuf(stdin, in_buffer, _IOFBF, sizeof(in_buffer));
	setvbuf(stdout, out_buffer, _IOFBF, sizeof(out_buffer));
	while (fread(record, sizeof(record), 1, stdin) == 1) {
		switch (record[0]) {
		case OP_BEGIN:
			out_digest = 0;
			out_verbose = record[1] != 0;
			begin();
			break;
		case OP_END:
			out_send(&out_digest, 1);
			/* Whoever asked for everything waits for it. */
			if (out_verbose)
				fflush(stdout);
			break;
		default:
			operate(record[0], record + 1);
			out_flush();
		}
	}
	return 0;
}

#endif
