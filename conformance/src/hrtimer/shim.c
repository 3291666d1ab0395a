// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for hrtimers and for the tick: functions cut out of a kernel tree's own kernel/time/hrtimer.c, tick-sched.c, timer.c and
 * kernel/sched/core.c, and its timerqueue.c and rbtree.c, around the timers of four CPUs and the tick of each.
 *
 * Replaced: locks, tracing, clocks (one, that stands still during an operation), jiffies (they never lag: a CPU that is not one of
 * these four updates them), the timer wheel, RCU and who is idle, which answer what the operations say. A clock event is
 * what was programmed last.
 */
#include "kernel_types.h"
#include "protocol.h"

enum { CPUS = 4, TIMERS = 6, HRTICK = TIMERS };

typedef int raw_spinlock_t;
typedef int spinlock_t;
typedef int clockid_t;
typedef int seqcount_t;
typedef int seqcount_raw_spinlock_t;
typedef int call_single_data_t;
typedef unsigned char u8;
typedef struct { int counter; } atomic_t;

#define CONFIG_SMP 1
#define CONFIG_64BIT 1
#define CONFIG_HIGH_RES_TIMERS 1
#define CONFIG_NO_HZ_COMMON 1
#define CONFIG_HRTIMER_REARM_DEFERRED 1
#define BITS_PER_LONG 64
#define HZ 250
#define TICK_NSEC 4000000LL
#define LONG_MAX ((long)(~0UL >> 1))
#define UINT_MAX (~0U)
#define BIT(nr) (1UL << (nr))
#define TIMER_SOFTIRQ 1
#define HRTIMER_SOFTIRQ 8
#define CLOCK_MONOTONIC 1

/* A configuration is on if it has been defined above, as the kernel's own macro has it. */
#define ON_1 0,
#define SECOND_OF(first, second, ...) second
#define IS_ON_2(first_or_junk) SECOND_OF(first_or_junk 1, 0)
#define IS_ON_1(value) IS_ON_2(ON_##value)
#define IS_ENABLED(option) IS_ON_1(option)

#define ____cacheline_aligned
#define __hrtimer_clock_base_align
#define __private
#define __acquires(lock)
#define __releases(lock)
#define __must_hold(lock)
#define __latent_entropy
#define __read_mostly
#define __percpu
#define EXPORT_SYMBOL(name)
#define EXPORT_SYMBOL_GPL(name)

#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#define container_of_const container_of
#define ACCESS_PRIVATE(pointer, member) ((pointer)->member)
#define BUG_ON(condition) do { if (condition) abort(); } while (0)
#define WARN(condition, ...) WARN_ON(condition)
#define WARN_ONCE(condition, ...) WARN_ON(condition)
#define WARN_ON_ONCE(condition) WARN_ON(condition)
#define WARN_ON(condition) ({ \
	bool warned = (condition); \
	if (warned) { \
		fprintf(stderr, "the kernel would warn: %s\n", #condition); \
		exit(2); \
	} \
	warned; \
})
#define pr_warn(...) abort()
#define pr_warn_once(...) abort()
#define printk_once(...) ((void)0)

#define guard(name) guard_##name
#define guard_rcu() ((void)0)
#define guard_raw_spinlock(lock) ((void)0)
#define guard_raw_spinlock_irqsave(lock) ((void)0)
#define raw_spin_lock(lock) ((void)0)
#define raw_spin_unlock(lock) ((void)0)
#define raw_spin_lock_irq(lock) ((void)0)
#define raw_spin_lock_irqsave(lock, flags) ((void)0)
#define raw_spin_unlock_irqrestore(lock, flags) ((void)0)
#define rcu_assign_pointer(pointer, value) ((pointer) = (value))
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define local_irq_disable() ((void)0)
#define local_irq_enable() ((void)0)
#define lockdep_assert_held(lock) ((void)0)
#define lockdep_assert_irqs_disabled() ((void)0)
#define lockdep_assert_irqs_enabled() ((void)0)
#define lockdep_hrtimer_enter(timer) 0
#define lockdep_hrtimer_exit(context) ((void)0)
#define raw_write_seqcount_barrier(seq) ((void)0)
#define raw_read_seqcount_begin(seq) 0
#define read_seqcount_begin(seq) 0
#define read_seqcount_retry(seq, begun) ((void)(begun), 0)
#define write_seqcount_begin(seq) ((void)0)
#define write_seqcount_end(seq) ((void)0)

#define debug_hrtimer_deactivate(timer) ((void)0)
#define debug_hrtimer_assert_init(timer) ((void)0)
#define debug_activate(timer, mode, was_armed) ((void)0)
#define trace_hrtimer_start(timer, mode, was_armed) ((void)0)
#define trace_hrtimer_cancel(timer) ((void)0)
#define trace_hrtimer_rearm(expires, deferred) ((void)0)
#define trace_hrtimer_expire_entry(timer, now) ((void)0)
#define trace_hrtimer_expire_exit(timer) ((void)0)
#define trace_tick_stop(success, dependency) ((void)0)
#define TICK_DEP_MASK_NONE 0

#define ktime_add(a, b) ((a) + (b))
#define ktime_sub(a, b) ((a) - (b))
#define ktime_add_ns(a, b) ((ktime_t)((u64)(a) + (u64)(b)))
#define ktime_to_ns(a) (a)
#define ns_to_ktime(a) ((ktime_t)(a))
#define ktime_divns(a, b) ((a) / (b))
#define ktime_before(a, b) ((a) < (b))

static ktime_t ktime_add_safe(ktime_t a, ktime_t b)
{
	ktime_t sum = (u64)a + (u64)b;

	return sum < 0 || sum < a || sum < b ? KTIME_MAX : sum;
}

static int this_cpu;
static ktime_t now_ns;
static int busy[CPUS], resched[CPUS];

#define smp_processor_id() this_cpu
#define this_cpu_ptr(variable) (&(*(variable))[this_cpu])
#define per_cpu(variable, cpu) ((variable)[cpu])
#define __this_cpu_read(variable) (variable)
#define cpu_is_offline(cpu) 0
#define cpu_online(cpu) 1
#define cpu_online_mask 0
#define cpumask_any_and(a, b) (abort(), 0)
#define smp_call_function_single_async(cpu, csd) abort()
#define need_resched() resched[this_cpu]
#define idle_cpu(cpu) (!busy[cpu])
#define static_branch_likely(key) 1
#define ktime_get() now_ns

/* CPUs 0 and 1 share a domain, and so do 2 and 3; all are in one above. */
struct cpumask { unsigned long bits; };
struct sched_domain { struct cpumask span; struct sched_domain *parent; };
static struct sched_domain all_cpus = { { 15 }, NULL };
static struct sched_domain pairs[2] = { { { 3 }, &all_cpus }, { { 12 }, &all_cpus } };

#define HK_TYPE_TIMER 0
#define HK_TYPE_KERNEL_NOISE 0
#define housekeeping_cpu(cpu, type) 1
#define housekeeping_cpumask(type) (&all_cpus.span)
#define housekeeping_any_cpu(type) 0
#define sched_domain_span(sd) (&(sd)->span)
#define for_each_domain(cpu, sd) for (sd = &pairs[(cpu) / 2]; sd; sd = sd->parent)
#define for_each_cpu_and(cpu, a, b) \
	for ((cpu) = 0; (cpu) < CPUS; (cpu)++) \
		if ((a)->bits >> (cpu) & (b)->bits >> (cpu) & 1)

/* The device, and what it was told last. */
struct clock_event_device { ktime_t next_event; unsigned next_event_forced; };
struct tick_device { struct clock_event_device *evtdev; };
static struct clock_event_device devices[CPUS];
static struct tick_device tick_devices[CPUS];
#define tick_cpu_device tick_devices[this_cpu]

static int tick_program_event(ktime_t expires, int force)
{
	if (expires <= now_ns && !force)
		return -1;
	devices[this_cpu].next_event = expires;
	return 0;
}

/* Jiffies, and the CPU that updates them. */
#define TICK_DO_TIMER_NONE -1
static int tick_do_timer_cpu = CPUS;
#define jiffies ((unsigned long)(now_ns / TICK_NSEC))
#define last_jiffies_update (now_ns / TICK_NSEC * TICK_NSEC)
#define tick_do_update_jiffies64(now) ((void)(now))
#define timekeeping_max_deferment() ((u64)1 << 40)

/* Who needs the tick, and what the wheel answers. */
static int rcu_needs;
static u64 wheel_next, wheel_next_stopping;
static int wheel_next_idle, wheel_stopping_idle;
static int wheel_idle[CPUS], has_wheel;

#define rcu_needs_cpu() rcu_needs
#define arch_needs_cpu() 0
#define irq_work_needs_cpu() 0
#define local_softirq_pending() 0UL
#define local_timers_pending() 0UL
#define report_idle_softirq() 0
#define tick_nohz_full_enabled() 0
#define tick_nohz_full_cpu(cpu) 0
#define tick_nohz_full_update_tick(ts) abort()
#define __tick_nohz_full_update_tick(ts, now) abort()
#define timer_clear_idle() ((void)(wheel_idle[this_cpu] = 0))

static u64 get_next_timer_interrupt(unsigned long basej, u64 basem)
{
	wheel_idle[this_cpu] = wheel_next_idle;
	return wheel_next;
}

static u64 __get_next_timer_interrupt(unsigned long basej, u64 basem, bool *idle)
{
	*idle = wheel_idle[this_cpu] = wheel_stopping_idle;
	return wheel_next_stopping;
}

#define get_irq_regs() ((struct pt_regs *)1)
#define user_mode(regs) 0
#define is_idle_task(task) 1
#define CPU_PROFILING 0
#define touch_softlockup_watchdog_sched() ((void)0)
#define update_process_times(user) ((void)0)
#define profile_tick(type) ((void)0)
#define calc_load_nohz_start() ((void)0)
#define calc_load_nohz_stop() ((void)0)
#define quiet_vmstat() ((void)0)
#define nohz_balance_enter_idle(cpu) ((void)0)
#define kcpustat_dyntick_start(now) ((void)0)
#define kcpustat_dyntick_stop(now) ((void)0)
#define kcpustat_irq_exit(now) ((void)0)
#define vtime_accounting_enabled_this_cpu() 0
#define tick_nohz_account_idle_time(ts, now) ((void)0)
#define tick_nohz_stop_idle(ts, now) ((void)0)
#define sched_clock_idle_sleep_event() ((void)0)
#define sched_clock_idle_wakeup_event() ((void)0)
#define raise_softirq_irqoff(nr) abort()
#define raise_timer_softirq(nr) abort()
#define set_thread_flag(flag) ((void)0)
#define atomic_read(variable) ((variable)->counter)
#define atomic_set(variable, value) ((void)((variable)->counter = (value)))
#define atomic_try_cmpxchg(variable, old, new) ((variable)->counter = (new), true)
#define ffs(bits) __builtin_ffs(bits)
#define __ffs(bits) (__builtin_ffsl(bits) - 1)

/* Red-black trees and timer queues, as they are. */
#include "rbtree.c"
#include "timerqueue.c"

static unsigned int hrtimer_resolution = 1;
struct hrtimer_clock_base;
struct hrtimer_cpu_base;

/* Constants and structures, and how the fields of a timer are read. */
#include "hrtimer_types_extract.h"

static struct hrtimer_cpu_base hrtimer_bases[CPUS];
static struct hrtimer_clock_base migration_base;
static struct tick_sched tick_cpu_sched[CPUS];

#define HRTIMER_ACTIVE_HARD ((1U << HRTIMER_BASE_MONOTONIC_SOFT) - 1)
#define HRTIMER_ACTIVE_SOFT (HRTIMER_ACTIVE_HARD << HRTIMER_BASE_MONOTONIC_SOFT)
#define HRTIMER_ACTIVE_ALL (HRTIMER_ACTIVE_HARD | HRTIMER_ACTIVE_SOFT)
#define lock_hrtimer_base(timer, flags) ((timer)->base)
#define unlock_hrtimer_base(timer, flags) ((void)0)
#define hrtimer_sync_wait_running(cpu_base, flags) ((void)0)
#define hrtimer_update_base(cpu_base) now_ns
#define __hrtimer_cb_get_time(clock) now_ns

static bool tick_nohz_tick_stopped(void);
static void hrtimer_start_range_ns(struct hrtimer *timer, ktime_t expires, u64 slack, const enum hrtimer_mode mode);
static int hrtimer_try_to_cancel(struct hrtimer *timer);

static int hrtimer_cancel(struct hrtimer *timer)
{
	return hrtimer_try_to_cancel(timer);
}

/* In the order of the kernel: hrtimer.c, then tick-sched.c. */
#include "hrtimer_extract.h"

/* The timers: what their handlers do. */
enum { NOTHING, FORWARD, START_OTHER, CANCEL_OTHER };
static struct hrtimer timers[TIMERS + 1];
static struct { int what, other; u64 value; } scripts[TIMERS + 1];
static int deferred[CPUS];

#ifdef KERNEL_7_3
#define is_queued(timer) ((timer)->is_queued)
#define DEFERS 1
#else
#define is_queued(timer) ((timer)->state & 1)
#define DEFERS 0
#endif
#ifdef KERNEL_6_1
#define tick_handler tick_sched_timer
#define is_in_idle(ts) ((ts)->inidle)
#define is_stopped(ts) ((ts)->tick_stopped)
#else
#define tick_handler tick_nohz_handler
#define is_in_idle(ts) tick_sched_flag_test(ts, TS_FLAG_INIDLE)
#define is_stopped(ts) tick_sched_flag_test(ts, TS_FLAG_STOPPED)

static bool tick_nohz_tick_stopped(void)
{
	return is_stopped(&tick_cpu_sched[this_cpu]);
}
#endif

static enum hrtimer_restart expired(struct hrtimer *timer)
{
	int slot = timer - timers;
	struct hrtimer *other = &timers[scripts[slot].other];

	out(100 + slot);
	switch (scripts[slot].what) {
	case FORWARD:
		hrtimer_forward(timer, now_ns, scripts[slot].value);
		return HRTIMER_RESTART;
	case START_OTHER:
		if (!is_queued(other) && other != timer)
			hrtimer_start_range_ns(other, now_ns + scripts[slot].value, 0, HRTIMER_MODE_ABS);
		break;
	case CANCEL_OTHER:
		if (is_queued(other) && other->base->cpu_base == &hrtimer_bases[this_cpu])
			hrtimer_try_to_cancel(other);
		break;
	}
	return HRTIMER_NORESTART;
}

static void setup(struct hrtimer *timer, int cpu, enum hrtimer_restart (*function)(struct hrtimer *))
{
	memset(timer, 0, sizeof(*timer));
	timer->base = &hrtimer_bases[cpu].clock_base[HRTIMER_BASE_MONOTONIC];
	timer->is_hard = 1;
	timer->function = function;
#ifdef KERNEL_7_3
	timerqueue_linked_init(&timer->node);
#else
	timerqueue_init(&timer->node);
#endif
}

static void boot(u64 now)
{
	now_ns = 0;
	for (this_cpu = 0; this_cpu < CPUS; this_cpu++) {
		struct hrtimer_cpu_base *base = &hrtimer_bases[this_cpu];
		struct tick_sched *ts = &tick_cpu_sched[this_cpu];

		memset(base, 0, sizeof(*base));
		memset(ts, 0, sizeof(*ts));
		tick_devices[this_cpu].evtdev = &devices[this_cpu];
		devices[this_cpu].next_event = KTIME_MAX;
		deferred[this_cpu] = busy[this_cpu] = resched[this_cpu] = wheel_idle[this_cpu] = 0;
		base->hres_active = base->online = 1;
		base->cpu = this_cpu;
		base->expires_next = base->softirq_expires_next = KTIME_MAX;
		for (int i = 0; i < HRTIMER_MAX_CLOCK_BASES; i++) {
			struct hrtimer_clock_base *clock = &base->clock_base[i];

			clock->cpu_base = base;
			*(unsigned int *)&clock->index = i;
#ifdef KERNEL_7_3
			clock->expires_next = KTIME_MAX;
			timerqueue_linked_init_head(&clock->active);
#else
			timerqueue_init_head(&clock->active);
#endif
		}
		setup(&ts->sched_timer, this_cpu, tick_handler);
#ifdef KERNEL_6_1
		ts->nohz_mode = NOHZ_MODE_HIGHRES;
#else
		tick_sched_flag_set(ts, TS_FLAG_HIGHRES | TS_FLAG_NOHZ);
#endif
		hrtimer_start(&ts->sched_timer, TICK_NSEC, HRTIMER_MODE_ABS_PINNED_HARD);
	}
	memset(scripts, 0, sizeof(scripts));
	for (int slot = 0; slot < TIMERS; slot++)
		setup(&timers[slot], 0, expired);
	setup(&timers[HRTICK], 1, expired);
#ifdef KERNEL_7_3
	timers[HRTICK].is_lazy = 1;
#endif
	this_cpu = 0;
	now_ns = now;
}

static void begin(void)
{
}

static word time_word(ktime_t time)
{
	return time == KTIME_MAX ? ~0ULL : (word)time;
}

static void report(void)
{
	for (int cpu = 0; cpu < CPUS; cpu++) {
		struct tick_sched *ts = &tick_cpu_sched[cpu];

		out(deferred[cpu] ? 0 : time_word(devices[cpu].next_event));
		out(is_queued(&ts->sched_timer) ? hrtimer_get_expires(&ts->sched_timer) : 0);
	}
	for (int slot = 0; slot <= HRTICK; slot++) {
		struct hrtimer *timer = &timers[slot];

		if (!is_queued(timer)) {
			out(0);
			continue;
		}
		out(1 + timer->base->cpu_base->cpu);
		out(hrtimer_get_softexpires(timer));
		out(hrtimer_get_expires(timer));
	}
	struct tick_sched *ts = &tick_cpu_sched[0];

	out(is_in_idle(ts));
	out(is_stopped(ts));
	out(is_stopped(ts) ? ts->last_tick : 0);
	out(ts->idle_calls);
	out(ts->timer_expires_base != 0);
	out(ts->timer_expires_base ? time_word(ts->timer_expires) : 0);
	out(has_wheel && wheel_idle[0]);
}

/* rcu, then what the wheel answers when it is asked and when the tick is about to be stopped. */
static void answers(const word *arg)
{
	rcu_needs = arg[0];
	wheel_next = arg[1] == ~0ULL ? KTIME_MAX : arg[1];
	wheel_next_idle = arg[2];
	wheel_next_stopping = arg[3] == ~0ULL ? KTIME_MAX : arg[3];
	wheel_stopping_idle = arg[4];
}

static void operate(word op, const word *arg)
{
	struct hrtimer *timer = &timers[arg[0] <= HRTICK ? arg[0] : 0];
	ktime_t delta;

	switch (op - OP_FIRST) {
	case 0: /* boot */
		boot(arg[0]);
		has_wheel = arg[1];
		break;
	case 1: /* pass */
		now_ns += arg[1];
		this_cpu = arg[0];
		break;
	case 2: /* busy */
		busy[arg[0]] = arg[1];
		resched[arg[0]] = arg[2];
		break;
	case 3: /* start */
		hrtimer_start_range_ns(timer, now_ns + arg[1], arg[2], arg[3] ? HRTIMER_MODE_ABS_PINNED : HRTIMER_MODE_ABS);
		break;
	case 4: /* cancel */
		hrtimer_try_to_cancel(timer);
		break;
	case 5: /* script */
		scripts[arg[0]].what = arg[1];
		scripts[arg[0]].value = arg[2];
		scripts[arg[0]].other = arg[3];
		break;
	case 6: /* interrupt */
		deferred[this_cpu] = DEFERS;
		hrtimer_interrupt(&devices[this_cpu]);
		break;
	case 7: /* rearm */
#ifdef KERNEL_7_3
		__hrtimer_rearm_deferred();
		deferred[this_cpu] = 0;
#endif
		break;
	case 8: /* without-tick */
		out(time_word(hrtimer_next_event_without(&tick_cpu_sched[this_cpu].sched_timer)));
		return;
	case 9: { /* forward */
		struct hrtimer any = { 0 };

		hrtimer_set_expires(&any, arg[0]);
		hrtimer_forward(&any, arg[1], arg[2]);
		out(hrtimer_get_expires(&any));
		return;
	}
	case 10: /* target */
		out(get_nohz_timer_target());
		return;
	case 11: /* enter */
		tick_nohz_idle_enter();
		break;
	case 12: /* irq-exit */
		tick_nohz_irq_exit();
		break;
	case 13: /* sleep-length */
		answers(arg);
		out(tick_nohz_get_sleep_length(&delta));
		out(delta);
		break;
	case 14: /* stop */
		answers(arg);
		tick_nohz_idle_stop_tick();
		break;
	case 15: /* retain */
		tick_nohz_idle_retain_tick();
		break;
	case 16: /* exit */
		tick_nohz_idle_exit();
		break;
	case 17: /* got-tick */
		out(tick_nohz_idle_got_tick());
		break;
	case 18: /* wheel: ours alone; the answers say what came of it */
		break;
	}
	report();
}

int main(void)
{
	return serve(begin, operate);
}
