// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for the timer wheel: functions cut out of a kernel tree's own kernel/time/timer.c around the bases of one CPU.
 *
 * Replaced: locks, tracing, and the hierarchy of all CPUs, which answers what the operation says. A tick is one
 * nanosecond, so that times are jiffies.
 */
#include "kernel_types.h"
#include "protocol.h"

enum { SLOTS = 12 };

typedef int raw_spinlock_t;
typedef int spinlock_t;
typedef struct { int counter; } atomic_t;

#define CONFIG_NO_HZ_COMMON 1
#define IS_ENABLED(option) (option)
#define TICK_NSEC 1
#define UINT_MAX (~0U)
#define LIST_POISON2 NULL
#define BITS_PER_LONG 64
#define ____cacheline_aligned
#define DECLARE_BITMAP(name, bits) unsigned long name[((bits) + 63) / 64]

#define TIMER_CPUMASK 0x0003FFFF
#define TIMER_MIGRATING 0x00040000
#define TIMER_BASEMASK (TIMER_CPUMASK | TIMER_MIGRATING)
#define TIMER_DEFERRABLE 0x00080000
#define TIMER_PINNED 0x00100000
#define TIMER_IRQSAFE 0x00200000
#define TIMER_ARRAYSHIFT 22
#define TIMER_ARRAYMASK 0xFFC00000

#define WARN_ON_ONCE(condition) ({ if (condition) abort(); 0; })
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define time_before_eq(a, b) time_after_eq(b, a)
#define time_is_after_jiffies(a) time_before(jiffies, a)

#define raw_spin_lock(lock) ((void)0)
#define raw_spin_lock_nested(lock, depth) ((void)0)
#define raw_spin_unlock(lock) ((void)0)
#define raw_spin_lock_irq(lock) ((void)0)
#define raw_spin_unlock_irq(lock) ((void)0)
#define raw_spin_unlock_irqrestore(lock, flags) ((void)(flags))
#define lockdep_assert_held(lock) ((void)0)
#define timer_base_lock_expiry(base) ((void)0)
#define timer_base_unlock_expiry(base) ((void)0)
#define timer_sync_wait_running(base) ((void)0)
#define debug_assert_init(timer) ((void)0)
#define debug_timer_activate(timer) ((void)0)
#define debug_activate(timer, expires) ((void)0)
#define debug_deactivate(timer) ((void)0)
#define trace_timer_start(timer, expires, ...) ((void)0)
#define trace_timer_base_idle(idle, cpu) ((void)0)
#define trigger_dyntick_cpu(base, timer) ((void)0)
#define hrtimer_run_queues() ((void)0)
#define cpu_is_offline(cpu) 0
#define smp_processor_id() 0
#define tick_nohz_full_cpu(cpu) 0
#define cmp_next_hrtimer_event(basem, expires) (expires)

struct hlist_node { struct hlist_node *next, **pprev; };
struct hlist_head { struct hlist_node *first; };
struct timer_list {
	struct hlist_node entry;
	unsigned long expires;
	void (*function)(struct timer_list *);
	u32 flags;
	unsigned long rearm;
	int kills;
};

#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#define hlist_entry(pointer, type, member) container_of(pointer, type, member)

static int hlist_empty(const struct hlist_head *head)
{
	return !head->first;
}

static void hlist_add_head(struct hlist_node *node, struct hlist_head *head)
{
	node->next = head->first;
	if (head->first)
		head->first->pprev = &node->next;
	head->first = node;
	node->pprev = &head->first;
}

static void __hlist_del(struct hlist_node *node)
{
	*node->pprev = node->next;
	if (node->next)
		node->next->pprev = node->pprev;
}

static bool hlist_is_singular_node(struct hlist_node *node, struct hlist_head *head)
{
	return !node->next && node->pprev == &head->first;
}

static void hlist_move_list(struct hlist_head *from, struct hlist_head *to)
{
	to->first = from->first;
	if (to->first)
		to->first->pprev = &to->first;
	from->first = NULL;
}

static int timer_pending(const struct timer_list *timer)
{
	return timer->entry.pprev != NULL;
}

static void __set_bit(unsigned bit, unsigned long *map)
{
	map[bit / 64] |= 1UL << bit % 64;
}

static void __clear_bit(unsigned bit, unsigned long *map)
{
	map[bit / 64] &= ~(1UL << bit % 64);
}

static int __test_and_clear_bit(unsigned bit, unsigned long *map)
{
	int was = map[bit / 64] >> bit % 64 & 1;

	__clear_bit(bit, map);
	return was;
}

static unsigned find_next_bit(const unsigned long *map, unsigned size, unsigned from)
{
	while (from < size && !(map[from / 64] >> from % 64 & 1))
		from++;
	return from < size ? from : size;
}

static unsigned long jiffies;
static int raised, reactivated;
static unsigned target, asked;
static u64 of_all, asked_global;

#define raise_softirq(nr) ((void)(raised = 1))
#define raise_timer_softirq(nr) ((void)(raised = 1))
#define tmigr_requires_handle_remote() 0

static u64 ask(unsigned call, u64 global)
{
	asked = call;
	asked_global = global;
	return of_all;
}

#define tmigr_cpu_new_timer(global) ask(1, global)
#define tmigr_cpu_deactivate(global) ask(2, global)
#define tmigr_quick_check(global) ask(3, global)
#define tmigr_cpu_activate() ((void)(reactivated = 1))

/* Constants and the struct; then the bases and who chooses among them; then the functions. */
#include "timer_types_extract.h"

/* Three for both: a release with two has no global timers. */
static struct timer_base timer_bases[3];

#define this_cpu_ptr(bases) (bases)
#define per_cpu_ptr(bases, cpu) (bases)

static struct timer_base *base_at(unsigned at)
{
	return &timer_bases[at == 2 ? BASE_DEF : at == 1 ? 3 - BASE_DEF : 0];
}

/* The number of a base stands where the kernel has that of its CPU. */
#define home(timer) ((timer)->flags & TIMER_CPUMASK)

static struct timer_list slots[SLOTS];

#define lock_timer_base(timer, flags) (*(flags) = 0, base_at(home(timer)))
#define get_target_base(base, tflags) base_at(target)
#define get_timer_this_cpu_base(tflags) base_at(target)

static int __mod_timer(struct timer_list *timer, unsigned long expires, unsigned int options);

static void call_timer_fn(struct timer_list *timer, void (*fn)(struct timer_list *), unsigned long baseclk)
{
	fn(timer);
}

#include "timer_extract.h"

static void arm(struct timer_list *timer, unsigned long expires, unsigned to)
{
	target = to;
	__mod_timer(timer, expires, 0);
}

static void expired(struct timer_list *timer)
{
	out(100 + (timer - slots));
	if (timer->rearm)
		arm(timer, jiffies + timer->rearm - 1, home(timer));
	if (timer->kills)
		detach_if_pending(&slots[timer->kills - 1], base_at(home(&slots[timer->kills - 1])), true);
}

static void begin(void)
{
	memset(timer_bases, 0, sizeof(timer_bases));
	memset(slots, 0, sizeof(slots));
	jiffies = 0;
	for (unsigned at = 0; at < 3; at++)
		base_at(at)->cpu = at;
	for (int slot = 0; slot < SLOTS; slot++)
		slots[slot].function = expired;
}

static void report(void)
{
	for (unsigned at = 0; at < 3; at++) {
		struct timer_base *base = base_at(at);

		out(base->clk);
		out(base->next_expiry);
		out(base->next_expiry_recalc);
		out(base->is_idle);
		out(base->timers_pending);
	}
	for (int slot = 0; slot < SLOTS; slot++) {
		out(timer_pending(&slots[slot]));
		out(timer_pending(&slots[slot]) ? slots[slot].expires : 0);
		out(timer_pending(&slots[slot]) ? timer_get_idx(&slots[slot]) : 0);
	}
}

static void next(unsigned long basej, int stops)
{
	u64 expires;
	bool idle = false;

	asked = reactivated = 0;
	asked_global = 0;
#ifdef BASE_GLOBAL
	expires = __get_next_timer_interrupt(basej, basej, stops ? &idle : NULL);
#else
	expires = get_next_timer_interrupt(basej, basej);
#endif
	out(expires == KTIME_MAX ? ~0ULL : expires);
	out(asked);
	out(asked_global == KTIME_MAX ? ~0ULL : asked_global);
	out(reactivated);
}

static void operate(word op, const word *arg)
{
	switch (op - OP_FIRST) {
	case 0: /* boot */
		jiffies = arg[0];
		for (int at = 0; at < 3; at++) {
			timer_bases[at].clk = jiffies;
			timer_bases[at].next_expiry = jiffies + ((1UL << 30) - 1);
		}
		break;
	case 1: /* arm */
		arm(&slots[arg[0]], jiffies + arg[1], arg[2]);
		break;
	case 2: /* delete */
		out(detach_if_pending(&slots[arg[0]], base_at(home(&slots[arg[0]])), true));
		break;
	case 3: /* next */
		of_all = arg[1] ? jiffies + arg[1] - 10 : KTIME_MAX;
		next(jiffies, arg[0]);
		break;
	case 4: /* run */
		__run_timers_of(base_at(arg[0]));
		break;
	case 5: /* pass */
		jiffies += arg[0];
		raised = 0;
		run_local_timers();
		out(raised);
		break;
	case 6: /* script */
		slots[arg[0]].rearm = arg[1];
		slots[arg[0]].kills = arg[2];
		break;
	case 7: /* wake */
		timer_bases[0].is_idle = false;
		break;
	case 8: /* round */
		out(round_jiffies_common(jiffies + arg[0], arg[1], arg[2]));
		return;
	}
	report();
}

int main(void)
{
	return serve(begin, operate);
}
