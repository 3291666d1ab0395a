// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a governor's C stands on: its memory, where that lies, and the way out when something is wrong. Compiled
 * into the same shared object, which needs nothing else: no C library is linked.
 */
#include <schedtwin/kernel.h>

/* ---- what a compiler may call by itself ------------------------------------------------------------------------------ */

void *memset(void *to, int byte, size_t bytes)
{
	char *at = to;

	while (bytes--)
		*at++ = byte;
	return to;
}

void *memcpy(void *to, const void *from, size_t bytes)
{
	char *at = to;
	const char *source = from;

	while (bytes--)
		*at++ = *source++;
	return to;
}

void *memmove(void *to, const void *from, size_t bytes)
{
	char *at = to;
	const char *source = from;

	if (at <= source)
		return memcpy(to, from, bytes);
	while (bytes--)
		at[bytes] = source[bytes];
	return to;
}

int memcmp(const void *a, const void *b, size_t bytes)
{
	const unsigned char *left = a, *right = b;

	for (; bytes--; left++, right++)
		if (*left != *right)
			return *left - *right;
	return 0;
}

size_t strlen(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

int strncmp(const char *a, const char *b, size_t bytes)
{
	for (; bytes--; a++, b++)
		if (*a != *b || !*a)
			return (unsigned char)*a - (unsigned char)*b;
	return 0;
}

int strcmp(const char *a, const char *b) { return strncmp(a, b, ULONG_MAX); }

static char lower(char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; }

int strncasecmp(const char *a, const char *b, size_t bytes)
{
	for (; bytes--; a++, b++)
		if (lower(*a) != lower(*b) || !*a)
			return (unsigned char)lower(*a) - (unsigned char)lower(*b);
	return 0;
}

/* ---- connected when the object is loaded ----------------------------------------------------------------------------- */

static void (*refuse)(const char *what, long value);
static void (*warn)(const char *file, int line, const char *what);
static char *heap, *heap_used, *heap_end;

u64 schedtwin_now;
unsigned int schedtwin_nr_cpus, schedtwin_cpu;
char *schedtwin_percpu_areas;
size_t schedtwin_percpu_size;
extern char schedtwin_percpu_last[] __asm__("__stop_schedtwin_percpu") __attribute__((__visibility__("hidden")));
/* So that the section exists. */
static DEFINE_PER_CPU(u64, schedtwin_percpu_alignment) __used __aligned(64);
extern schedtwin_initcall schedtwin_initcalls_first[] __asm__("__start_schedtwin_initcalls") __attribute__((__visibility__("hidden")));
extern schedtwin_initcall schedtwin_initcalls_last[] __asm__("__stop_schedtwin_initcalls") __attribute__((__visibility__("hidden")));
static int nothing(void) { return 0; }
module_init(nothing);

void schedtwin_refuse(const char *what, long value)
{
	refuse(what, value);
	__builtin_trap();
}

void schedtwin_warn(const char *file, int line, const char *what) { warn(file, line, what); }

void *schedtwin_allocate(size_t bytes)
{
	void *memory = heap_used;

	bytes = (bytes + 63) & ~(size_t)63;
	if (bytes > (size_t)(heap_end - heap_used))
		schedtwin_refuse("all memory that is offered has been allocated; bytes asked for:", bytes);
	heap_used += bytes;
	return memset(memory, 0, bytes);
}

#define OFFERED __attribute__((__visibility__("default")))

OFFERED void schedtwin_connect(void (*to_refuse)(const char *, long), void (*to_warn)(const char *, int, const char *),
			       char *memory, size_t bytes)
{
	refuse = to_refuse;
	warn = to_warn;
	heap = heap_used = memory;
	heap_end = memory + bytes;
}

/* How much of the heap is in use. */
OFFERED size_t schedtwin_heap_used(void) { return heap_used - heap; }

/* Everything at boot that does not depend on the kind of governor. */
OFFERED int schedtwin_boot(unsigned int nr_cpus)
{
	schedtwin_initcall *call;
	unsigned int cpu;
	int error = 0;

	schedtwin_nr_cpus = nr_cpus;
	schedtwin_percpu_size = (schedtwin_percpu_last - schedtwin_percpu_first + 63) & ~63L;
	schedtwin_percpu_areas = schedtwin_allocate(nr_cpus * schedtwin_percpu_size);
	for (cpu = 0; cpu < nr_cpus; cpu++)
		memcpy(schedtwin_percpu_areas + cpu * schedtwin_percpu_size, schedtwin_percpu_first,
		       schedtwin_percpu_last - schedtwin_percpu_first);
	for (call = schedtwin_initcalls_first; call < schedtwin_initcalls_last && !error; call++)
		error = (*call)();
	return error;
}

/* ---- where the object's own variables are ---------------------------------------------------------------------------- */

struct elf_header {
	unsigned char ident[16];
	u16 type, machine;
	u32 version;
	u64 entry, program_headers, section_headers;
	u32 flags;
	u16 size, program_header_size, program_header_count;
};

struct elf_program_header {
	u32 type, flags;
	u64 offset, virtual, physical, in_file, in_memory, alignment;
};

#define ELF_LOAD 1
#define ELF_READ_ONLY_AFTER_RELOCATION 0x6474e552
#define ELF_WRITABLE 2

extern const char schedtwin_elf[] __asm__("__ehdr_start") __attribute__((__visibility__("hidden")));

OFFERED const void *schedtwin_base(void) { return schedtwin_elf; }

static const struct elf_program_header *program_header(int index)
{
	const struct elf_header *elf = (const void *)schedtwin_elf;

	if (index >= elf->program_header_count)
		return NULL;
	return (const void *)(schedtwin_elf + elf->program_headers + index * elf->program_header_size);
}

/* The writable range number `index`; false: there is none. What is read-only after relocation is left out. */
OFFERED bool schedtwin_writable(int index, u64 page, char **from, char **to)
{
	const struct elf_program_header *header, *sealed;
	int i, j;

	for (i = 0; (header = program_header(i)); i++) {
		u64 start = header->virtual, end = header->virtual + header->in_memory;

		if (header->type != ELF_LOAD || !(header->flags & ELF_WRITABLE))
			continue;
		for (j = 0; (sealed = program_header(j)); j++)
			if (sealed->type == ELF_READ_ONLY_AFTER_RELOCATION && sealed->virtual <= start &&
			    sealed->virtual + sealed->in_memory > start)
				start = (sealed->virtual + sealed->in_memory) & ~(page - 1);
		if (start < end && index-- == 0) {
			*from = (char *)schedtwin_elf + start;
			*to = (char *)schedtwin_elf + end;
			return true;
		}
	}
	return false;
}
