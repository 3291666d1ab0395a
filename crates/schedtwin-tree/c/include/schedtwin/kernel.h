/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What C of a kernel may take for granted inside of schedtwin: types, arithmetic, per-CPU data, memory, and locks that nobody
 * contends for, because one thread asks the governors of a machine one call after the other.
 *
 * Written for this purpose from what these names mean; nothing of the kernel is in here. What the twin has no answer
 * to is not declared, so that code which asks for it does not compile instead of being answered wrongly.
 */
#ifndef SCHEDTWIN_KERNEL_H
#define SCHEDTWIN_KERNEL_H

/* ---- configuration: what a kernel of the twin is built with; HZ comes from the command line ------------------------ */

#define CONFIG_64BIT 1
#define CONFIG_SMP 1
#define CONFIG_HZ HZ
#define CONFIG_NO_HZ_COMMON 1
#define CONFIG_NO_HZ_IDLE 1
#define CONFIG_HIGH_RES_TIMERS 1
#define CONFIG_CPU_IDLE 1
#define CONFIG_CPU_FREQ 1
#define CONFIG_UCLAMP_TASK 1
#define CONFIG_FAIR_GROUP_SCHED 1
#define __KERNEL__ 1

#define SCHEDTWIN_SECOND_(first, second, ...) second
#define SCHEDTWIN_IS_ONE_1 0,
#define SCHEDTWIN_ENABLED_(value) SCHEDTWIN_ENABLED__(value)
#define SCHEDTWIN_ENABLED__(value) SCHEDTWIN_SECOND_(SCHEDTWIN_IS_ONE_##value 1, 0, 0)
#define IS_ENABLED(option) SCHEDTWIN_ENABLED_(option)
#define IS_BUILTIN(option) IS_ENABLED(option)
#define IS_REACHABLE(option) IS_ENABLED(option)
#define IS_MODULE(option) 0

/* ---- types -------------------------------------------------------------------------------------------------------- */

typedef signed char s8, __s8, int8_t;
typedef unsigned char u8, __u8, uint8_t;
typedef short s16, __s16, int16_t;
typedef unsigned short u16, __u16, uint16_t;
typedef int s32, __s32, int32_t;
typedef unsigned int u32, __u32, uint32_t, uint;
typedef long long s64, __s64, int64_t;
typedef unsigned long long u64, __u64, uint64_t;
typedef unsigned long size_t, uintptr_t, ulong;
typedef long ssize_t, ptrdiff_t, intptr_t;
typedef _Bool bool;
typedef s64 ktime_t;
typedef unsigned int gfp_t;
#define true 1
#define false 0
#define NULL ((void *)0)

#define U8_MAX ((u8)~0)
#define U16_MAX ((u16)~0)
#define U32_MAX (~0U)
#define S32_MAX 0x7fffffff
#define S32_MIN (-S32_MAX - 1)
#define U64_MAX (~0ULL)
#define S64_MAX ((s64)(U64_MAX >> 1))
#define S64_MIN (-S64_MAX - 1)
#define UINT_MAX (~0U)
#define INT_MAX 0x7fffffff
#define INT_MIN (-INT_MAX - 1)
#define ULONG_MAX (~0UL)
#define LONG_MAX ((long)(ULONG_MAX >> 1))
#define LONG_MIN (-LONG_MAX - 1)
#define ULLONG_MAX U64_MAX
#define LLONG_MAX S64_MAX
#define SIZE_MAX ULONG_MAX
#define KTIME_MAX S64_MAX
#define KTIME_SEC_MAX (KTIME_MAX / NSEC_PER_SEC)

/* ---- words of the compiler and the linker -------------------------------------------------------------------------- */

#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)
#define barrier() __asm__ __volatile__("" : : : "memory")
#undef __always_inline
#define __always_inline inline __attribute__((__always_inline__))
#define noinline __attribute__((__noinline__))
#define __maybe_unused __attribute__((__unused__))
#define __always_unused __attribute__((__unused__))
#define __used __attribute__((__used__))
#define __packed __attribute__((__packed__))
#define __aligned(bytes) __attribute__((__aligned__(bytes)))
#define __must_check
#define __pure __attribute__((__pure__))
#define __attribute_const__ __attribute__((__const__))
#define __cold __attribute__((__cold__))
#define __printf(format, first)
#define fallthrough __attribute__((__fallthrough__))
#define __init __maybe_unused
#define __exit __maybe_unused
#define __initdata
#define __initconst
#define __read_mostly
#define __ro_after_init
#define __cacheline_aligned
#define __cacheline_aligned_in_smp
#define ____cacheline_aligned
#define ____cacheline_aligned_in_smp
#define __percpu
#define __user
#define __rcu
#define __force
#define __iomem
#define __acquires(lock)
#define __releases(lock)
#define __must_hold(lock)
#define notrace
#define noinstr
#define asmlinkage
#define __stringify_(text...) #text
#define __stringify(text...) __stringify_(text)
#define typeof __typeof__
#define static_assert(condition, ...) _Static_assert(condition, "" __VA_ARGS__)
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), "BUILD_BUG_ON: " #condition)
#define EXPORT_SYMBOL(symbol)
#define EXPORT_SYMBOL_GPL(symbol)
#define EXPORT_SYMBOL_NS_GPL(symbol, space)
#define MODULE_LICENSE(text)
#define MODULE_AUTHOR(text)
#define MODULE_DESCRIPTION(text)
#define MODULE_PARM_DESC(name, text)
/* Parameters keep the values that the code gives them. */
#define module_param(name, type, mode)
#define module_param_named(name, variable, type, mode)
#define core_param(name, variable, type, mode)
#define THIS_MODULE NULL
struct module;

/* What registers itself at boot: gathered by the linker, called in that order. */
typedef int (*schedtwin_initcall)(void);
#define SCHEDTWIN_INITCALL(function) \
	static schedtwin_initcall schedtwin_init_##function __used \
		__attribute__((__section__("schedtwin_initcalls"))) = function
#define core_initcall(function) SCHEDTWIN_INITCALL(function)
#define postcore_initcall(function) SCHEDTWIN_INITCALL(function)
#define arch_initcall(function) SCHEDTWIN_INITCALL(function)
#define subsys_initcall(function) SCHEDTWIN_INITCALL(function)
#define fs_initcall(function) SCHEDTWIN_INITCALL(function)
#define device_initcall(function) SCHEDTWIN_INITCALL(function)
#define late_initcall(function) SCHEDTWIN_INITCALL(function)
#define module_init(function) SCHEDTWIN_INITCALL(function)
#define module_exit(function)

/* ---- what goes wrong ----------------------------------------------------------------------------------------------- */

/* Ends the program with a message that names the governor. */
void schedtwin_refuse(const char *what, long value) __attribute__((__noreturn__, __cold__));
/* Tells the user once for each place. */
void schedtwin_warn(const char *file, int line, const char *what) __attribute__((__cold__));

#define BUG() schedtwin_refuse("BUG() in line", __LINE__)
#define BUG_ON(condition) do { if (unlikely(condition)) schedtwin_refuse("BUG_ON(" #condition ") in line", __LINE__); } while (0)
#define WARN(condition, ...) ({ \
	bool warned_ = !!(condition); \
	static bool told_; \
	if (unlikely(warned_ && !told_)) { \
		told_ = true; \
		schedtwin_warn(__FILE__, __LINE__, #condition); \
	} \
	warned_; })
#define WARN_ON(condition) WARN(condition)
#define WARN_ON_ONCE(condition) WARN(condition)
#define WARN_ONCE(condition, ...) WARN(condition)
#define lockdep_assert_held(lock) ((void)(lock))
#define might_sleep() ((void)0)

/* Messages go nowhere, but their arguments are looked at by the compiler. */
__attribute__((__format__(__printf__, 1, 2))) static inline void schedtwin_no_printk(const char *format, ...) { (void)format; }
#define printk(...) do { if (0) (void)sizeof(0, ##__VA_ARGS__); } while (0)
#define pr_debug(...) printk()
#define pr_info(...) printk()
#define pr_notice(...) printk()
#define pr_warn(...) printk()
#define pr_warn_once(...) printk()
#define pr_warn_ratelimited(...) printk()
#define pr_err(...) printk()
#define pr_err_once(...) printk()
#define printk_deferred(...) printk()
#define trace_printk(...) printk()

#define EPERM 1
#define ENOENT 2
#define EIO 5
#define E2BIG 7
#define EAGAIN 11
#define ENOMEM 12
#define EBUSY 16
#define EEXIST 17
#define ENODEV 19
#define EINVAL 22
#define ERANGE 34
#define EOPNOTSUPP 95
#define MAX_ERRNO 4095
static inline void *ERR_PTR(long error) { return (void *)error; }
static inline long PTR_ERR(const void *pointer) { return (long)pointer; }
static inline bool IS_ERR(const void *pointer) { return (unsigned long)pointer >= (unsigned long)-MAX_ERRNO; }
static inline bool IS_ERR_OR_NULL(const void *pointer) { return !pointer || IS_ERR(pointer); }

/* ---- arithmetic ---------------------------------------------------------------------------------------------------- */

#define min(a, b) ({ __auto_type min_a_ = (a); __auto_type min_b_ = (b); min_a_ < min_b_ ? min_a_ : min_b_; })
#define max(a, b) ({ __auto_type max_a_ = (a); __auto_type max_b_ = (b); max_a_ > max_b_ ? max_a_ : max_b_; })
#define min_t(type, a, b) ({ type min_a_ = (a); type min_b_ = (b); min_a_ < min_b_ ? min_a_ : min_b_; })
#define max_t(type, a, b) ({ type max_a_ = (a); type max_b_ = (b); max_a_ > max_b_ ? max_a_ : max_b_; })
#define umin(a, b) min_t(u64, a, b)
#define umax(a, b) max_t(u64, a, b)
#define min3(a, b, c) min(min(a, b), c)
#define max3(a, b, c) max(max(a, b), c)
#define min_not_zero(a, b) ({ __auto_type mnz_a_ = (a); __auto_type mnz_b_ = (b); \
	mnz_a_ == 0 ? mnz_b_ : mnz_b_ == 0 ? mnz_a_ : min(mnz_a_, mnz_b_); })
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define clamp(value, low, high) min((__typeof__(value))max(value, low), high)
#define clamp_t(type, value, low, high) min_t(type, max_t(type, value, low), high)
#define clamp_val(value, low, high) clamp_t(__typeof__(value), value, low, high)
#define swap(a, b) do { __auto_type swap_ = (a); (a) = (b); (b) = swap_; } while (0)
#define abs(value) ({ __auto_type abs_ = (value); abs_ < 0 ? -abs_ : abs_; })
#define abs_diff(a, b) ({ __auto_type ad_a_ = (a); __auto_type ad_b_ = (b); ad_a_ > ad_b_ ? ad_a_ - ad_b_ : ad_b_ - ad_a_; })
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define BIT(number) (1UL << (number))
#define BIT_ULL(number) (1ULL << (number))
#define GENMASK(high, low) ((~0UL << (low)) & (~0UL >> (63 - (high))))
#define DIV_ROUND_UP(number, by) (((number) + (by) - 1) / (by))
#define DIV_ROUND_UP_ULL(number, by) DIV_ROUND_UP((unsigned long long)(number), (unsigned long long)(by))
#define DIV_ROUND_CLOSEST(number, by) (((number) + (by) / 2) / (by))
#define DIV_ROUND_CLOSEST_ULL(number, by) (((unsigned long long)(number) + (by) / 2) / (by))
#define roundup(number, to) (DIV_ROUND_UP(number, to) * (to))
#define rounddown(number, to) ((number) / (to) * (to))
#define offsetof(type, member) __builtin_offsetof(type, member)
#define sizeof_field(type, member) sizeof(((type *)0)->member)
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#define READ_ONCE(variable) (*(volatile __typeof__(variable) *)&(variable))
#define WRITE_ONCE(variable, value) do { *(volatile __typeof__(variable) *)&(variable) = (value); } while (0)

static inline int fls64(u64 word) { return word ? 64 - __builtin_clzll(word) : 0; }
static inline int fls(unsigned int word) { return word ? 32 - __builtin_clz(word) : 0; }
static inline int ffs(int word) { return __builtin_ffs(word); }
static inline unsigned long __ffs(unsigned long word) { return __builtin_ctzl(word); }
static inline unsigned long __fls(unsigned long word) { return 63 - __builtin_clzl(word); }
static inline bool is_power_of_2(unsigned long number) { return number && !(number & (number - 1)); }
#define ilog2(number) (fls64(number) - 1)
#define order_base_2(number) ((number) > 1 ? ilog2((number) - 1) + 1 : 0)
static inline unsigned int hweight_long(unsigned long word)
{
	unsigned int bits = 0;

	for (; word; word &= word - 1)
		bits++;
	return bits;
}
#define hweight64(word) hweight_long(word)
#define hweight32(word) hweight_long((u32)(word))

#define do_div(dividend, divisor) ({ \
	u32 divisor_ = (divisor); \
	u32 rest_ = (u64)(dividend) % divisor_; \
	(dividend) = (u64)(dividend) / divisor_; \
	rest_; })
static inline u64 div_u64(u64 dividend, u32 divisor) { return dividend / divisor; }
static inline s64 div_s64(s64 dividend, s32 divisor) { return dividend / divisor; }
static inline u64 div64_u64(u64 dividend, u64 divisor) { return dividend / divisor; }
static inline s64 div64_s64(s64 dividend, s64 divisor) { return dividend / divisor; }
#define div64_ul(dividend, divisor) div64_u64(dividend, divisor)
#define div64_long(dividend, divisor) div64_s64(dividend, divisor)
static inline u64 div_u64_rem(u64 dividend, u32 divisor, u32 *rest) { *rest = dividend % divisor; return dividend / divisor; }
static inline u64 div64_u64_rem(u64 dividend, u64 divisor, u64 *rest) { *rest = dividend % divisor; return dividend / divisor; }
static inline u64 mul_u32_u32(u32 a, u32 b) { return (u64)a * b; }
static inline u64 mul_u64_u32_shr(u64 a, u32 factor, unsigned int shift) { return (u64)(((unsigned __int128)a * factor) >> shift); }
static inline u64 mul_u64_u64_shr(u64 a, u64 factor, unsigned int shift) { return (u64)(((unsigned __int128)a * factor) >> shift); }
static inline u64 mul_u64_u64_div_u64(u64 a, u64 factor, u64 divisor)
{
	unsigned __int128 rest = (unsigned __int128)a * factor;
	u64 quotient = 0;
	int bit;

	for (bit = 63; bit >= 0; bit--) {
		if (rest >> bit >= divisor) {
			rest -= (unsigned __int128)divisor << bit;
			quotient |= 1ULL << bit;
		}
	}
	return quotient;
}
#define mul_u64_u32_div(a, factor, divisor) mul_u64_u64_div_u64(a, factor, divisor)
static inline unsigned long int_sqrt(unsigned long number)
{
	unsigned long root = 0;
	int bit;

	for (bit = 31; bit >= 0; bit--) {
		unsigned long next = root | 1UL << bit;

		if (next * next <= number)
			root = next;
	}
	return root;
}

/* ---- time: everything is asked at one moment of the twin ------------------------------------------------------------ */

#define MSEC_PER_SEC 1000L
#define USEC_PER_MSEC 1000L
#define USEC_PER_SEC 1000000L
#define NSEC_PER_USEC 1000L
#define NSEC_PER_MSEC 1000000L
#define NSEC_PER_SEC 1000000000L
#define TICK_NSEC ((NSEC_PER_SEC + HZ / 2) / HZ)
#define TICK_USEC ((USEC_PER_SEC + HZ / 2) / HZ)

extern u64 schedtwin_now;
static inline u64 local_clock(void) { return schedtwin_now; }
static inline u64 local_clock_noinstr(void) { return schedtwin_now; }
static inline u64 sched_clock(void) { return schedtwin_now; }
static inline u64 ktime_get_ns(void) { return schedtwin_now; }
static inline u64 ktime_get_mono_fast_ns(void) { return schedtwin_now; }
static inline ktime_t ktime_get(void) { return (ktime_t)schedtwin_now; }
static inline s64 ktime_to_ns(ktime_t time) { return time; }
static inline s64 ktime_to_us(ktime_t time) { return time / NSEC_PER_USEC; }
static inline s64 ktime_to_ms(ktime_t time) { return time / NSEC_PER_MSEC; }
static inline ktime_t ns_to_ktime(u64 ns) { return (ktime_t)ns; }
static inline ktime_t us_to_ktime(u64 us) { return (ktime_t)(us * NSEC_PER_USEC); }
static inline ktime_t ms_to_ktime(u64 ms) { return (ktime_t)(ms * NSEC_PER_MSEC); }
static inline int ktime_compare(ktime_t a, ktime_t b) { return a < b ? -1 : a > b; }
static inline bool ktime_after(ktime_t a, ktime_t b) { return a > b; }
static inline bool ktime_before(ktime_t a, ktime_t b) { return a < b; }
#define ktime_add(a, b) ((a) + (b))
#define ktime_sub(a, b) ((a) - (b))
#define ktime_add_ns(a, ns) ((a) + (ns))
#define ktime_sub_ns(a, ns) ((a) - (ns))
#define ktime_us_delta(later, earlier) ktime_to_us((later) - (earlier))

/* ---- CPUs and what each has of its own ------------------------------------------------------------------------------ */

#define NR_CPUS 256
#define BITS_PER_LONG 64
extern unsigned int schedtwin_nr_cpus, schedtwin_cpu;
#define nr_cpu_ids schedtwin_nr_cpus
static inline unsigned int num_possible_cpus(void) { return schedtwin_nr_cpus; }
static inline unsigned int num_online_cpus(void) { return schedtwin_nr_cpus; }
static inline bool cpu_online(unsigned int cpu) { return cpu < schedtwin_nr_cpus; }
static inline bool cpu_possible(unsigned int cpu) { return cpu < schedtwin_nr_cpus; }
static inline int smp_processor_id(void) { return schedtwin_cpu; }
#define raw_smp_processor_id() smp_processor_id()
#define get_cpu() smp_processor_id()
#define put_cpu() ((void)0)
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < schedtwin_nr_cpus; (cpu)++)
#define for_each_online_cpu(cpu) for_each_possible_cpu(cpu)
#define for_each_present_cpu(cpu) for_each_possible_cpu(cpu)

struct cpumask { unsigned long bits[NR_CPUS / BITS_PER_LONG]; };
typedef struct cpumask cpumask_t;
typedef struct cpumask cpumask_var_t[1];
#define cpumask_bits(mask) ((mask)->bits)
static inline bool cpumask_test_cpu(int cpu, const struct cpumask *mask)
{
	return (unsigned int)cpu < NR_CPUS && (mask->bits[cpu / BITS_PER_LONG] >> cpu % BITS_PER_LONG & 1);
}
static inline void cpumask_set_cpu(unsigned int cpu, struct cpumask *mask) { mask->bits[cpu / BITS_PER_LONG] |= 1UL << cpu % BITS_PER_LONG; }
static inline void cpumask_clear_cpu(int cpu, struct cpumask *mask) { mask->bits[cpu / BITS_PER_LONG] &= ~(1UL << cpu % BITS_PER_LONG); }
static inline unsigned int cpumask_next(int after, const struct cpumask *mask)
{
	unsigned int cpu;

	for (cpu = after + 1; cpu < schedtwin_nr_cpus; cpu++)
		if (cpumask_test_cpu(cpu, mask))
			break;
	return cpu;
}
static inline unsigned int cpumask_first(const struct cpumask *mask) { return cpumask_next(-1, mask); }
static inline unsigned int cpumask_weight(const struct cpumask *mask)
{
	unsigned int word, bits = 0;

	for (word = 0; word < ARRAY_SIZE(mask->bits); word++)
		bits += hweight_long(mask->bits[word]);
	return bits;
}
static inline bool cpumask_empty(const struct cpumask *mask) { return cpumask_weight(mask) == 0; }
#define for_each_cpu(cpu, mask) for ((cpu) = cpumask_first(mask); (cpu) < schedtwin_nr_cpus; (cpu) = cpumask_next(cpu, mask))

/*
 * A per-CPU variable is a template in a section of its own; each CPU has a copy of the section. A CPU that there
 * is not is refused.
 */
#define SCHEDTWIN_PERCPU __attribute__((__section__("schedtwin_percpu")))
#define DEFINE_PER_CPU(type, name) SCHEDTWIN_PERCPU __typeof__(type) name
#define DEFINE_PER_CPU_ALIGNED(type, name) DEFINE_PER_CPU(type, name)
#define DEFINE_PER_CPU_SHARED_ALIGNED(type, name) DEFINE_PER_CPU(type, name)
#define DEFINE_PER_CPU_READ_MOSTLY(type, name) DEFINE_PER_CPU(type, name)
#define DECLARE_PER_CPU(type, name) extern SCHEDTWIN_PERCPU __typeof__(type) name
extern char *schedtwin_percpu_areas;
extern size_t schedtwin_percpu_size;
extern char schedtwin_percpu_first[] __asm__("__start_schedtwin_percpu") __attribute__((__visibility__("hidden")));
static inline void *schedtwin_percpu_at(const void *template, unsigned int cpu)
{
	if (unlikely(cpu >= schedtwin_nr_cpus))
		schedtwin_refuse("per-CPU data of a CPU that there is not:", cpu);
	return schedtwin_percpu_areas + cpu * schedtwin_percpu_size + ((const char *)template - schedtwin_percpu_first);
}
#define per_cpu_ptr(pointer, cpu) ((__typeof__(*(pointer)) *)schedtwin_percpu_at(pointer, cpu))
#define per_cpu(variable, cpu) (*per_cpu_ptr(&(variable), cpu))
#define this_cpu_ptr(pointer) per_cpu_ptr(pointer, schedtwin_cpu)
#define raw_cpu_ptr(pointer) this_cpu_ptr(pointer)
#define get_cpu_ptr(pointer) this_cpu_ptr(pointer)
#define put_cpu_ptr(pointer) ((void)(pointer))
#define get_cpu_var(variable) (*this_cpu_ptr(&(variable)))
#define put_cpu_var(variable) ((void)0)
#define this_cpu_read(variable) (*this_cpu_ptr(&(variable)))
#define this_cpu_write(variable, value) ((void)(*this_cpu_ptr(&(variable)) = (value)))
#define this_cpu_add(variable, value) ((void)(*this_cpu_ptr(&(variable)) += (value)))
#define this_cpu_inc(variable) this_cpu_add(variable, 1)
#define this_cpu_dec(variable) this_cpu_add(variable, -1)
#define __this_cpu_read(variable) this_cpu_read(variable)
#define __this_cpu_write(variable, value) this_cpu_write(variable, value)
#define __this_cpu_add(variable, value) this_cpu_add(variable, value)
#define __this_cpu_inc(variable) this_cpu_inc(variable)
#define __this_cpu_dec(variable) this_cpu_dec(variable)

/* ---- memory -------------------------------------------------------------------------------------------------------- */

#define GFP_KERNEL 0U
#define GFP_ATOMIC 0U
#define GFP_NOWAIT 0U
#define __GFP_ZERO 0U
/* Zeroed; it belongs to the instance, is copied with it and goes with it. */
void *schedtwin_allocate(size_t bytes);
static inline void *kzalloc(size_t bytes, gfp_t flags) { (void)flags; return schedtwin_allocate(bytes); }
static inline void *kmalloc(size_t bytes, gfp_t flags) { return kzalloc(bytes, flags); }
static inline void *kcalloc(size_t count, size_t bytes, gfp_t flags) { return kzalloc(count * bytes, flags); }
static inline void *kmalloc_array(size_t count, size_t bytes, gfp_t flags) { return kzalloc(count * bytes, flags); }
static inline void kfree(const void *memory) { (void)memory; }
#define kzalloc_obj(object, ...) ((__typeof__(object) *)kzalloc(sizeof(object), GFP_KERNEL))
#define kmalloc_obj(object, ...) kzalloc_obj(object)
#define kzalloc_objs(object, count, ...) ((__typeof__(object) *)kzalloc(sizeof(object) * (count), GFP_KERNEL))
#define kzalloc_node(bytes, flags, node) kzalloc(bytes, flags)

void *memset(void *to, int byte, size_t bytes);
void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);
size_t strlen(const char *text);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t bytes);
int strncasecmp(const char *a, const char *b, size_t bytes);

struct list_head { struct list_head *next, *prev; };
#define LIST_HEAD_INIT(name) { &(name), &(name) }
#define LIST_HEAD(name) struct list_head name = LIST_HEAD_INIT(name)
static inline void INIT_LIST_HEAD(struct list_head *head) { head->next = head->prev = head; }
static inline void list_add_tail(struct list_head *entry, struct list_head *head)
{
	entry->prev = head->prev;
	entry->next = head;
	head->prev->next = entry;
	head->prev = entry;
}
static inline void list_add(struct list_head *entry, struct list_head *head) { list_add_tail(entry, head->next); }
static inline void list_del(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
}
static inline bool list_empty(const struct list_head *head) { return head->next == head; }
#define list_entry(pointer, type, member) container_of(pointer, type, member)
#define list_for_each_entry(entry, head, member) \
	for ((entry) = list_entry((head)->next, __typeof__(*(entry)), member); &(entry)->member != (head); \
	     (entry) = list_entry((entry)->member.next, __typeof__(*(entry)), member))

/* ---- nobody else runs: locks, barriers, atomics --------------------------------------------------------------------- */

typedef struct { int unused; } spinlock_t, raw_spinlock_t, rwlock_t, seqcount_t;
struct mutex { int unused; };
#define DEFINE_SPINLOCK(name) spinlock_t name
#define DEFINE_RAW_SPINLOCK(name) raw_spinlock_t name
#define DEFINE_MUTEX(name) struct mutex name
#define spin_lock_init(lock) ((void)(lock))
#define raw_spin_lock_init(lock) ((void)(lock))
#define mutex_init(lock) ((void)(lock))
#define mutex_destroy(lock) ((void)(lock))
#define spin_lock(lock) ((void)(lock))
#define spin_unlock(lock) ((void)(lock))
#define raw_spin_lock(lock) ((void)(lock))
#define raw_spin_unlock(lock) ((void)(lock))
#define mutex_lock(lock) ((void)(lock))
#define mutex_unlock(lock) ((void)(lock))
#define spin_lock_irqsave(lock, flags) ((void)(lock), (void)((flags) = 0))
#define spin_unlock_irqrestore(lock, flags) ((void)(lock), (void)(flags))
#define raw_spin_lock_irqsave(lock, flags) ((void)(lock), (void)((flags) = 0))
#define raw_spin_unlock_irqrestore(lock, flags) ((void)(lock), (void)(flags))
#define local_irq_save(flags) ((void)((flags) = 0))
#define local_irq_restore(flags) ((void)(flags))
#define local_irq_disable() ((void)0)
#define local_irq_enable() ((void)0)
#define preempt_disable() ((void)0)
#define preempt_enable() ((void)0)
#define guard(kind) (void)
#define scoped_guard(kind, ...) if (1)
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define synchronize_rcu() ((void)0)
#define rcu_dereference(pointer) (pointer)
#define rcu_dereference_sched(pointer) (pointer)
#define rcu_assign_pointer(pointer, value) ((void)((pointer) = (value)))
#define smp_mb() barrier()
#define smp_rmb() barrier()
#define smp_wmb() barrier()
#define smp_mb__before_atomic() barrier()
#define smp_mb__after_atomic() barrier()
#define smp_load_acquire(pointer) READ_ONCE(*(pointer))
#define smp_store_release(pointer, value) WRITE_ONCE(*(pointer), value)
#define cpu_relax() barrier()
#define cmpxchg(pointer, expected, value) ({ \
	__auto_type cx_at_ = (pointer); \
	__auto_type cx_was_ = *cx_at_; \
	if (cx_was_ == (expected)) \
		*cx_at_ = (value); \
	cx_was_; })
#define xchg(pointer, value) ({ __auto_type xg_at_ = (pointer); __auto_type xg_was_ = *xg_at_; *xg_at_ = (value); xg_was_; })

typedef struct { int counter; } atomic_t;
typedef struct { long counter; } atomic_long_t;
typedef struct { s64 counter; } atomic64_t;
#define ATOMIC_INIT(value) { (value) }
#define atomic_read(atomic) READ_ONCE((atomic)->counter)
#define atomic_set(atomic, value) WRITE_ONCE((atomic)->counter, value)
#define atomic_add(value, atomic) ((void)((atomic)->counter += (value)))
#define atomic_sub(value, atomic) ((void)((atomic)->counter -= (value)))
#define atomic_inc(atomic) atomic_add(1, atomic)
#define atomic_dec(atomic) atomic_sub(1, atomic)
#define atomic_inc_return(atomic) (++(atomic)->counter)
#define atomic_dec_return(atomic) (--(atomic)->counter)
#define atomic_add_return(value, atomic) ((atomic)->counter += (value))
#define atomic_dec_and_test(atomic) (--(atomic)->counter == 0)
#define atomic_long_read(atomic) atomic_read(atomic)
#define atomic_long_set(atomic, value) atomic_set(atomic, value)
#define atomic_long_add(value, atomic) atomic_add(value, atomic)
#define atomic_long_inc(atomic) atomic_inc(atomic)
#define atomic64_read(atomic) atomic_read(atomic)
#define atomic64_set(atomic, value) atomic_set(atomic, value)
#define atomic64_add(value, atomic) atomic_add(value, atomic)
#define atomic64_inc(atomic) atomic_inc(atomic)

/* ---- switches that are patched into the code ------------------------------------------------------------------------ */

struct static_key_false { bool on; };
struct static_key_true { bool on; };
#define DEFINE_STATIC_KEY_FALSE(name) struct static_key_false name = { false }
#define DEFINE_STATIC_KEY_TRUE(name) struct static_key_true name = { true }
#define DECLARE_STATIC_KEY_FALSE(name) extern struct static_key_false name
#define static_branch_likely(key) likely((key)->on)
#define static_branch_unlikely(key) unlikely((key)->on)
#define static_key_enabled(key) ((key)->on)
#define static_branch_enable(key) ((void)((key)->on = true))
#define static_branch_disable(key) ((void)((key)->on = false))

#endif
