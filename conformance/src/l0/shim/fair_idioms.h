/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the oracles of the fair class take for granted: idioms, lists, and the tree's own red-black tree. */
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#define clamp(value, low, high) \
	({ __typeof__(value) v_ = (value), l_ = (low), h_ = (high); v_ < l_ ? l_ : v_ > h_ ? h_ : v_; })
#define EXPORT_SYMBOL(name)
#define rcu_assign_pointer(pointer, value) ((pointer) = (value))
#define fls(word) ((word) ? 32 - __builtin_clz(word) : 0)
#define mul_u32_u32(a, b) ((u64)(u32)(a) * (u32)(b))
/* The divisor is 32 bits wide, as the kernel's. */
static s64 div_s64(s64 dividend, s32 divisor)
{
	return dividend / divisor;
}

#ifdef WARNING_ENDS_SEQUENCE
/* A warning is an illegal world, which follows from a difference. The rest of the sequence is left out. */
#include <setjmp.h>
static bool warned;
static jmp_buf illegal;
static bool warn(bool condition, const char *text)
{
	if (condition && out_verbose)
		fprintf(stderr, "the kernel would warn: %s\n", text);
	warned |= condition;
	if (condition)
		longjmp(illegal, 1);
	return condition;
}
#else
/* A warning is an illegal world, so the test program's fault. */
static bool warn(bool condition, const char *text)
{
	if (condition) {
		fprintf(stderr, "the kernel would warn: %s\n", text);
		exit(3);
	}
	return condition;
}
#endif
#define SCHED_WARN_ON(condition) warn(!!(condition), #condition)
#define WARN_ON_ONCE(condition) warn(!!(condition), #condition)

struct list_head { struct list_head *next, *prev; };

static void list_add(struct list_head *entry, struct list_head *after)
{
	entry->next = after->next;
	entry->prev = after;
	after->next->prev = entry;
	after->next = entry;
}

static void list_del_init(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	entry->next = entry->prev = entry;
}

static void list_move(struct list_head *entry, struct list_head *head)
{
	list_del_init(entry);
	list_add(entry, head);
}

#include <linux/rbtree.h>
#include "rbtree.c"

