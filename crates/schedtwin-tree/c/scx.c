// SPDX-License-Identifier: GPL-2.0-or-later
/* A scheduler of sched_ext as the twin calls it: the scheduler's own file, then what it stands on. */
#include <schedtwin/scx.h>

/* What a loader writes before it loads a scheduler is const to the scheduler. */
#define const
#include GOVERNOR_FILE
#undef const

extern struct sched_ext_ops *schedtwin_scx_ops;
void schedtwin_refuse(const char *what, long value);
#define OFFERED __attribute__((__visibility__("default")))

/* ---- the call that is under way -------------------------------------------------------------------------------------- */

/* `struct Questions` of scx/ask.rs. Tasks are named by their numbers. */
struct schedtwin_scx_questions {
	s32 (*create_dsq)(void *call, u64 dsq_id);
	void (*destroy_dsq)(void *call, u64 dsq_id);
	bool (*insert)(void *call, int pid, u64 dsq_id, u64 slice, u64 vtime, u64 enq_flags, bool priq);
	bool (*move_to_local)(void *call, u64 dsq_id, u64 enq_flags);
	s32 (*number)(void *call, int which, u64 argument);
	bool (*iter_new)(void *call, u64 *state, u64 dsq_id, bool rev);
	struct task_struct *(*iter_next)(void *call, u64 *state);
	bool (*move)(void *call, u64 *state, int pid, u64 dsq_id, u64 enq_flags, bool priq, const u64 *slice, const u64 *vtime);
	s32 (*select_cpu)(void *call, int pid, s32 prev_cpu, u64 wake_flags, const struct cpumask *within, u64 flags);
	s32 (*pick)(void *call, const struct cpumask *mask, u64 flags, int how);
	void (*mask)(void *call, int which, struct cpumask *to);
	struct task_struct *(*task)(void *call, int which, s32 argument);
	bool (*set)(void *call, int pid, int which, u64 value);
	void (*act)(void *call, int which, s64 a, u64 b);
	u64 (*time)(void *call, int which);
	s64 (*timer)(void *call, s64 number, u64 ns, u64 flags, int what);
	void (*end)(void *call, s64 code, bool error, const char *message);
};
enum {
	NUMBER_SLOTS, NUMBER_QUEUED, NUMBER_NODES, NUMBER_NODE_OF, NUMBER_CAP, NUMBER_CUR, NUMBER_LLC, NUMBER_CPU_OF, NUMBER_RUNS,
};
enum { PICK_IDLE, PICK_ANY, PICK_DISTRIBUTE, PICK_CLAIM };
enum { MASK_IDLE, MASK_SMT, MASK_POSSIBLE };
enum { TASK_PEEK, TASK_CURR, TASK_CURRENT, TASK_PID };
enum { SET_SLICE, SET_VTIME };
enum { ACT_KICK, ACT_CPUPERF, ACT_CANCEL, ACT_REENQUEUE };
enum { TIME_RQ, TIME_MONOTONIC, TIME_JIFFIES };
enum { TIMER_INIT, TIMER_START, TIMER_CANCEL };

static void *call;
static struct schedtwin_scx_questions *ask;

OFFERED struct sched_ext_ops *schedtwin_scx_boot(unsigned int nr_cpus)
{
	schedtwin_nr_cpus = nr_cpus;
	return schedtwin_scx_ops;
}

OFFERED void *schedtwin_scx_allocate(size_t bytes) { return schedtwin_allocate(bytes); }

OFFERED void schedtwin_scx_enter(void *of, struct schedtwin_scx_questions *questions, unsigned int cpu)
{
	call = of;
	ask = questions;
	schedtwin_cpu = cpu;
}

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) { return ask->create_dsq(call, dsq_id); }
void scx_bpf_destroy_dsq(u64 dsq_id) { ask->destroy_dsq(call, dsq_id); }

static int pid_of(struct task_struct *p)
{
	if (!p) {
		ask->end(call, 0, true, "called with NULL task");
		return -1;
	}
	return p->pid;
}

bool scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
{
	int pid = pid_of(p);

	return pid >= 0 && ask->insert(call, pid, dsq_id, slice, 0, enq_flags, false);
}

bool scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime, u64 enq_flags)
{
	int pid = pid_of(p);

	return pid >= 0 && ask->insert(call, pid, dsq_id, slice, vtime, enq_flags, true);
}

bool schedtwin_move_to_local(u64 dsq_id, u64 enq_flags) { return ask->move_to_local(call, dsq_id, enq_flags); }
u32 scx_bpf_dispatch_nr_slots(void) { return ask->number(call, NUMBER_SLOTS, 0); }
void scx_bpf_dispatch_cancel(void) { ask->act(call, ACT_CANCEL, 0, 0); }
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) { return ask->number(call, NUMBER_QUEUED, dsq_id); }

/* The number of a queue does not fit into the argument that tasks are asked for by. */
struct task_struct *scx_bpf_dsq_peek(u64 dsq_id)
{
	u64 state[4];

	return ask->iter_new(call, state, dsq_id, false) ? ask->iter_next(call, state) : NULL;
}

int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *iter, u64 dsq_id, u64 flags)
{
	memset(iter, 0, sizeof(*iter));
	return ask->iter_new(call, iter->state, dsq_id, flags & SCX_DSQ_ITER_REV) ? 0 : -ENOENT;
}

struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *iter) { return ask->iter_next(call, iter->state); }
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *iter) { (void)iter; }

bool schedtwin_dsq_move(struct bpf_iter_scx_dsq *iter, struct task_struct *p, u64 dsq_id, u64 enq_flags, bool priq)
{
	bool moved = ask->move(call, iter->state, p->pid, dsq_id, enq_flags, priq, iter->has_slice ? &iter->slice : NULL,
			       iter->has_vtime ? &iter->vtime : NULL);

	iter->has_slice = iter->has_vtime = false;
	return moved;
}

s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle)
{
	s32 cpu = ask->select_cpu(call, p->pid, prev_cpu, wake_flags, NULL, 0);

	*is_idle = cpu >= 0;
	return cpu >= 0 ? cpu : prev_cpu;
}

s32 scx_bpf_select_cpu_and(struct task_struct *p, s32 prev_cpu, u64 wake_flags, struct cpumask const *mask, u64 flags)
{
	s32 cpu = ask->select_cpu(call, p->pid, prev_cpu, wake_flags, mask, flags);

	return cpu >= 0 ? cpu : -EBUSY;
}

s32 scx_bpf_pick_idle_cpu(struct cpumask const *mask, u64 flags) { return ask->pick(call, mask, flags, PICK_IDLE); }
s32 scx_bpf_pick_any_cpu(struct cpumask const *mask, u64 flags) { return ask->pick(call, mask, flags, PICK_ANY); }
bool scx_bpf_test_and_clear_cpu_idle(s32 cpu) { return ask->pick(call, NULL, cpu, PICK_CLAIM); }

static struct cpumask masks[3];

static struct cpumask const *mask_of(int which)
{
	ask->mask(call, which, &masks[which]);
	return &masks[which];
}

struct cpumask const *scx_bpf_get_idle_cpumask(void) { return mask_of(MASK_IDLE); }
struct cpumask const *scx_bpf_get_idle_smtmask(void) { return mask_of(MASK_SMT); }
struct cpumask const *scx_bpf_get_possible_cpumask(void) { return mask_of(MASK_POSSIBLE); }
u32 scx_bpf_nr_node_ids(void) { return ask->number(call, NUMBER_NODES, 0); }
s32 scx_bpf_cpu_node(s32 cpu) { return ask->number(call, NUMBER_NODE_OF, cpu); }
s32 cpu_llc_id(s32 cpu) { return ask->number(call, NUMBER_LLC, cpu); }

u32 schedtwin_reenqueue_local(void)
{
	ask->act(call, ACT_REENQUEUE, 0, 0);
	return 0;
}

void scx_bpf_kick_cpu(s32 cpu, u64 flags) { ask->act(call, ACT_KICK, cpu, flags); }
s32 scx_bpf_task_cpu(struct task_struct const *p) { return ask->number(call, NUMBER_CPU_OF, p->pid); }
bool scx_bpf_task_running(struct task_struct const *p) { return ask->number(call, NUMBER_RUNS, p->pid); }
struct task_struct *scx_bpf_cpu_curr(s32 cpu) { return ask->task(call, TASK_CURR, cpu); }
bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice) { return ask->set(call, p->pid, SET_SLICE, slice); }
bool scx_bpf_task_set_dsq_vtime(struct task_struct *p, u64 vtime) { return ask->set(call, p->pid, SET_VTIME, vtime); }
u32 scx_bpf_cpuperf_cap(s32 cpu) { return ask->number(call, NUMBER_CAP, cpu); }
u32 scx_bpf_cpuperf_cur(s32 cpu) { return ask->number(call, NUMBER_CUR, cpu); }
void scx_bpf_cpuperf_set(s32 cpu, u32 perf) { ask->act(call, ACT_CPUPERF, cpu, perf); }
u64 scx_bpf_now(void) { return ask->time(call, TIME_RQ); }
u64 bpf_ktime_get_ns(void) { return ask->time(call, TIME_MONOTONIC); }
u64 bpf_jiffies64(void) { return ask->time(call, TIME_JIFFIES); }
struct task_struct *bpf_get_current_task_btf(void) { return ask->task(call, TASK_CURRENT, 0); }
struct task_struct *bpf_task_from_pid(s32 pid) { return ask->task(call, TASK_PID, pid); }

/* A sequence that repeats with each run: splitmix64. */
u32 bpf_get_prandom_u32(void)
{
	static u64 state;
	u64 z = state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (z ^ z >> 31) >> 32;
}

/* ---- texts ------------------------------------------------------------------------------------------------------------ */

struct text {
	char *at, *end;
};

static void put(struct text *text, char c)
{
	if (text->at < text->end)
		*text->at++ = c;
}

static void put_number(struct text *text, u64 value, unsigned int base, int width, char fill)
{
	char digits[24];
	int count = 0;

	do {
		digits[count++] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	while (width-- > count)
		put(text, fill);
	while (count)
		put(text, digits[--count]);
}

void schedtwin_scx_error(s64 code, bool error, char const *format, ...)
{
	static char message[512];
	struct text text = { message, message + sizeof(message) - 1 };
	__builtin_va_list arguments;

	__builtin_va_start(arguments, format);
	for (; *format; format++) {
		int width = 0, longs = 0;
		char fill = ' ';

		if (*format != '%') {
			put(&text, *format);
			continue;
		}
		if (*++format == '0')
			fill = '0';
		for (; *format >= '0' && *format <= '9'; format++)
			width = width * 10 + (*format - '0');
		for (; *format == 'l'; format++)
			longs++;
		switch (*format) {
		case 'd':
		case 'i': {
			s64 value = longs ? __builtin_va_arg(arguments, s64) : __builtin_va_arg(arguments, int);

			if (value < 0)
				put(&text, '-');
			put_number(&text, value < 0 ? -(u64)value : (u64)value, 10, width, fill);
			break;
		}
		case 'u':
		case 'x': {
			u64 value = longs ? __builtin_va_arg(arguments, u64) : __builtin_va_arg(arguments, u32);

			put_number(&text, value, *format == 'x' ? 16 : 10, width, fill);
			break;
		}
		case 'p':
			put_number(&text, (u64)__builtin_va_arg(arguments, void *), 16, width, fill);
			break;
		case 'c':
			put(&text, __builtin_va_arg(arguments, int));
			break;
		case 's': {
			char *string = __builtin_va_arg(arguments, char *);

			while (string && *string)
				put(&text, *string++);
			break;
		}
		case '\0':
			format--;
			break;
		default:
			put(&text, *format);
		}
	}
	__builtin_va_end(arguments);
	*text.at = '\0';
	ask->end(call, code, error, message);
}

/* ---- maps ------------------------------------------------------------------------------------------------------------- */

struct schedtwin_map {
	int type, key, value, entries;
	/* Bytes from a value to the next. */
	int stride;
	/* Arrays: their values, as many for each CPU. Queues: a ring. Hashes: rows of key, used and value. */
	char *memory;
	u32 head, count;
	/* Storage of tasks, by number. */
	void **by_pid;
	u32 capacity;
};

struct schedtwin_map *schedtwin_map(void **object, int type, int key, int value, int entries)
{
	struct schedtwin_map *map = *object;
	size_t copies = type == BPF_MAP_TYPE_PERCPU_ARRAY ? schedtwin_nr_cpus : 1;

	if (map)
		return map;
	map = *object = schedtwin_allocate(sizeof(*map));
	map->type = type;
	map->key = key;
	map->value = value;
	map->stride = (value + 7) & ~7;
	map->entries = entries;
	switch (type) {
	case BPF_MAP_TYPE_ARRAY:
	case BPF_MAP_TYPE_PERCPU_ARRAY:
	case BPF_MAP_TYPE_QUEUE:
		map->memory = schedtwin_allocate(copies * entries * map->stride);
		break;
	case BPF_MAP_TYPE_HASH:
	case BPF_MAP_TYPE_TASK_STORAGE:
		break;
	default:
		schedtwin_refuse("a map of this type is not offered:", type);
	}
	return map;
}

/* A hash: its entries in the order of insertion, each with its key behind it. Deleted ones are used again. */
struct entry {
	struct entry *next;
	bool used;
	char bytes[];
};

static bool same(char const *a, char const *b, int bytes)
{
	while (bytes--)
		if (*a++ != *b++)
			return false;
	return true;
}

static struct entry *find(struct schedtwin_map *map, void const *key)
{
	struct entry *entry;

	for (entry = (void *)map->memory; entry; entry = entry->next)
		if (entry->used && same(entry->bytes + map->stride, key, map->key))
			return entry;
	return NULL;
}

void *schedtwin_map_lookup(struct schedtwin_map *map, void const *key, int cpu)
{
	u32 index;
	struct entry *entry;

	if (map->type == BPF_MAP_TYPE_HASH) {
		entry = find(map, key);
		return entry ? entry->bytes : NULL;
	}
	index = *(u32 *)key;
	if (index >= (u32)map->entries)
		return NULL;
	if (map->type == BPF_MAP_TYPE_PERCPU_ARRAY) {
		if (cpu < 0)
			cpu = schedtwin_cpu;
		if ((u32)cpu >= schedtwin_nr_cpus)
			return NULL;
		index += cpu * map->entries;
	}
	return map->memory + (size_t)index * map->stride;
}

long schedtwin_map_update(struct schedtwin_map *map, void const *key, void const *value, u64 flags)
{
	void *there = schedtwin_map_lookup(map, key, -1);
	struct entry *entry;

	if (map->type != BPF_MAP_TYPE_HASH && !there)
		return -E2BIG;
	if (there && flags == BPF_NOEXIST)
		return -EEXIST;
	if (!there) {
		if (flags == BPF_EXIST)
			return -ENOENT;
		if (map->count >= (u32)map->entries)
			return -E2BIG;
		for (entry = (void *)map->memory; entry && entry->used; entry = entry->next)
			;
		if (!entry) {
			entry = schedtwin_allocate(sizeof(*entry) + map->stride + map->key);
			entry->next = (void *)map->memory;
			map->memory = (void *)entry;
		}
		entry->used = true;
		map->count++;
		memcpy(entry->bytes + map->stride, key, map->key);
		there = entry->bytes;
	}
	memcpy(there, value, map->value);
	return 0;
}

long schedtwin_map_delete(struct schedtwin_map *map, void const *key)
{
	struct entry *entry = map->type == BPF_MAP_TYPE_HASH ? find(map, key) : NULL;

	if (!entry)
		return map->type == BPF_MAP_TYPE_HASH ? -ENOENT : -EINVAL;
	entry->used = false;
	map->count--;
	return 0;
}

long schedtwin_map_push(struct schedtwin_map *map, void const *value)
{
	if (map->count >= (u32)map->entries)
		return -E2BIG;
	memcpy(map->memory + (size_t)((map->head + map->count++) % map->entries) * map->stride, value, map->value);
	return 0;
}

long schedtwin_map_pop(struct schedtwin_map *map, void *value, bool take)
{
	if (!map->count) {
		memset(value, 0, map->value);
		return -ENOENT;
	}
	memcpy(value, map->memory + (size_t)map->head * map->stride, map->value);
	if (take) {
		map->head = (map->head + 1) % map->entries;
		map->count--;
	}
	return 0;
}

void *schedtwin_storage_get(struct schedtwin_map *map, struct task_struct *p, bool create)
{
	u32 pid, capacity;
	void **larger;

	if (!p)
		return NULL;
	pid = p->pid;
	if (pid >= map->capacity) {
		if (!create)
			return NULL;
		for (capacity = map->capacity ? map->capacity : 64; capacity <= pid; capacity *= 2)
			;
		larger = schedtwin_allocate(capacity * sizeof(*larger));
		memcpy(larger, map->by_pid, map->capacity * sizeof(*larger));
		map->by_pid = larger;
		map->capacity = capacity;
	}
	if (!map->by_pid[pid] && create)
		map->by_pid[pid] = schedtwin_allocate(map->value);
	return map->by_pid[pid];
}

long schedtwin_storage_delete(struct schedtwin_map *map, struct task_struct *p)
{
	if (!p || (u32)p->pid >= map->capacity || !map->by_pid[p->pid])
		return -ENOENT;
	map->by_pid[p->pid] = NULL;
	return 0;
}

void *schedtwin_kptr_xchg(void **field, void *value)
{
	void *before = *field;

	*field = value;
	return before;
}

/* ---- timers ----------------------------------------------------------------------------------------------------------- */

static struct bpf_timer *timers[64];

long schedtwin_timer_init(struct bpf_timer *timer, struct schedtwin_map *map)
{
	s64 number;

	if (timer->number)
		return -EBUSY;
	number = ask->timer(call, 0, 0, 0, TIMER_INIT);
	if (number >= (s64)(sizeof(timers) / sizeof(*timers)))
		schedtwin_refuse("more timers than are offered:", number);
	timers[number] = timer;
	timer->number = number + 1;
	timer->map = map;
	return 0;
}

long bpf_timer_start(struct bpf_timer *timer, u64 ns, u64 flags)
{
	if (!timer->number || !timer->callback)
		return -EINVAL;
	ask->timer(call, timer->number - 1, ns, flags, TIMER_START);
	return 0;
}

long bpf_timer_cancel(struct bpf_timer *timer)
{
	return timer->number ? ask->timer(call, timer->number - 1, 0, 0, TIMER_CANCEL) : -EINVAL;
}

OFFERED void schedtwin_scx_timer(u32 number)
{
	struct bpf_timer *timer = timers[number];
	struct schedtwin_map *map = timer->map;
	int key = ((char *)timer - map->memory) / map->stride;

	timer->callback(map, &key, timer);
}

/* ---- sets of CPUs ------------------------------------------------------------------------------------------------------ */

#define WORDS (SCHEDTWIN_NR_CPUS / 64)

struct bpf_cpumask *bpf_cpumask_create(void) { return schedtwin_allocate(sizeof(struct bpf_cpumask)); }

void schedtwin_mask_set(struct bpf_cpumask *m, u32 cpu, bool set)
{
	unsigned long bit = 1UL << cpu % 64;

	if (cpu >= SCHEDTWIN_NR_CPUS)
		return;
	m->mask.bits[cpu / 64] = set ? m->mask.bits[cpu / 64] | bit : m->mask.bits[cpu / 64] & ~bit;
}

bool schedtwin_mask_test_and_set(struct bpf_cpumask *m, u32 cpu, bool set)
{
	bool was = cpu < SCHEDTWIN_NR_CPUS && m->mask.bits[cpu / 64] >> cpu % 64 & 1;

	schedtwin_mask_set(m, cpu, set);
	return was;
}

bool schedtwin_mask_op(struct bpf_cpumask *to, void const *a, void const *b, int op)
{
	struct cpumask const *left = a, *right = b;
	unsigned long all = 0;
	int i;

	for (i = 0; i < WORDS; i++) {
		unsigned long l = left->bits[i], r = right->bits[i];

		to->mask.bits[i] = op == 0 ? l & r : op == 1 ? l | r : op == 2 ? l ^ r : l;
		all |= to->mask.bits[i];
	}
	return all;
}

void schedtwin_mask_fill(struct bpf_cpumask *m, bool all)
{
	u32 cpu;

	memset(m, 0, sizeof(*m));
	for (cpu = 0; all && cpu < schedtwin_nr_cpus; cpu++)
		schedtwin_mask_set(m, cpu, true);
}

u32 schedtwin_mask_weight(void const *m)
{
	struct cpumask const *mask = m;
	u32 weight = 0;
	int i;

	for (i = 0; i < WORDS; i++) {
		unsigned long bits = mask->bits[i];

		for (; bits; bits &= bits - 1)
			weight++;
	}
	return weight;
}

/* 0 intersects, 1 subset, 2 equal. */
bool schedtwin_mask_test(void const *a, void const *b, int op)
{
	struct cpumask const *left = a, *right = b;
	int i;

	for (i = 0; i < WORDS; i++) {
		unsigned long l = left->bits[i], r = right->bits[i];

		if (op == 0 && l & r)
			return true;
		if ((op == 1 && l & ~r) || (op == 2 && l != r))
			return false;
	}
	return op != 0;
}

u32 schedtwin_mask_first(void const *a, void const *b)
{
	struct cpumask const *left = a, *right = b;
	int i;

	for (i = 0; i < WORDS; i++)
		if (left->bits[i] & right->bits[i])
			return i * 64 + __builtin_ctzl(left->bits[i] & right->bits[i]);
	return schedtwin_nr_cpus;
}

u32 schedtwin_mask_any(void const *a, void const *b)
{
	struct bpf_cpumask both;
	s32 cpu;

	schedtwin_mask_op(&both, a, b, 0);
	cpu = ask->pick(call, &both.mask, 0, PICK_DISTRIBUTE);
	return cpu >= 0 ? (u32)cpu : schedtwin_nr_cpus;
}
