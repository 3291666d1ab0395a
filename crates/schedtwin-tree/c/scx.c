// SPDX-License-Identifier: GPL-2.0-or-later
/* What a scheduler of sched_ext may call, as questions to the twin; its timers and texts. Its own files are units beside. */
#include <schedtwin/scx_inside.h>

extern struct sched_ext_ops *schedtwin_scx_ops;

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
	u64 (*time)(void *call, int which, u64 argument);
	s64 (*timer)(void *call, s64 number, u64 ns, u64 flags, int what);
	void (*end)(void *call, s64 code, bool error, const char *message);
	struct cgroup *(*cgroup)(void *call, int which, u64 argument);
};
enum {
	NUMBER_SLOTS, NUMBER_QUEUED, NUMBER_NODES, NUMBER_NODE_OF, NUMBER_CAP, NUMBER_CUR, NUMBER_LLC, NUMBER_CPU_OF, NUMBER_RUNS,
	NUMBER_REENQUEUED, NUMBER_IN_INTERRUPT, NUMBER_CGROUPS, NUMBER_EVENT,
};
enum { PICK_IDLE, PICK_ANY, PICK_DISTRIBUTE, PICK_CLAIM };
enum { MASK_IDLE, MASK_SMT, MASK_POSSIBLE };
enum { TASK_PEEK, TASK_CURR, TASK_CURRENT, TASK_PID };
enum { SET_SLICE, SET_VTIME };
enum { ACT_KICK, ACT_CPUPERF, ACT_CANCEL, ACT_REENQUEUE };
enum { CGROUP_OF_TASK, CGROUP_BY_ID, CGROUP_ABOVE, CGROUP_BY_NUMBER };
enum { TIME_RQ, TIME_MONOTONIC, TIME_JIFFIES, TIME_TASK_CLOCK, TIME_PELT_CLOCK };
enum { TIMER_INIT, TIMER_START, TIMER_CANCEL };

static void *call;
static struct schedtwin_scx_questions *ask;

/* CPUs by their topological numbers, and the other way round; both as they are for a scheduler that goes by CPUs. */
static s32 cid_to_cpu[SCHEDTWIN_NR_CPUS], cpu_to_cid[SCHEDTWIN_NR_CPUS];
extern bool schedtwin_scx_cids;

OFFERED bool schedtwin_scx_uses_cids(void) { return schedtwin_scx_cids; }

OFFERED void schedtwin_scx_number_cids(u16 const *cpus, u32 count)
{
	u32 cid;

	for (cid = 0; cid < count; cid++) {
		cid_to_cpu[cid] = cpus[cid];
		cpu_to_cid[cpus[cid]] = cid;
	}
}

/* Numbers that are none stay so, and are told by who is asked about them. */
static s32 cpu_of(s32 cid)
{
	return schedtwin_scx_cids && (u32)cid < schedtwin_nr_cpus ? cid_to_cpu[cid] : cid;
}

static s32 cid_of(s32 cpu) { return (u32)cpu < schedtwin_nr_cpus ? cpu_to_cid[cpu] : cpu; }

/* A queue's ID with a CPU in it. */
static u64 dsq_of(u64 dsq_id)
{
	if (schedtwin_scx_cids && (dsq_id & SCX_DSQ_LOCAL_ON) == SCX_DSQ_LOCAL_ON)
		return SCX_DSQ_LOCAL_ON | (u32)cpu_of(dsq_id & SCX_DSQ_LOCAL_CPU_MASK);
	return dsq_id;
}

OFFERED struct sched_ext_ops *schedtwin_scx_boot(unsigned int nr_cpus)
{
	schedtwin_nr_cpus = nr_cpus;
	return schedtwin_scx_ops;
}

OFFERED void *schedtwin_scx_allocate(size_t bytes) { return schedtwin_allocate(bytes); }

/* Time that helpers and maps have cost in the present call, ns. */
static u32 spent;

void schedtwin_spend(u32 ns) { spent += ns; }
OFFERED u32 schedtwin_scx_spent(void) { return spent; }

OFFERED void schedtwin_scx_enter(void *of, struct schedtwin_scx_questions *questions, unsigned int cpu)
{
	spent = 0;
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

	return pid >= 0 && ask->insert(call, pid, dsq_of(dsq_id), slice, 0, enq_flags, false);
}

/* As 6.13 to 6.18 had it: a scheduler declares it itself. */
void scx_bpf_dsq_insert___v1(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, dsq_id, slice, enq_flags);
}

bool scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime, u64 enq_flags)
{
	int pid = pid_of(p);

	return pid >= 0 && ask->insert(call, pid, dsq_of(dsq_id), slice, vtime, enq_flags, true);
}

bool schedtwin_move_to_local(u64 dsq_id, u64 enq_flags) { return ask->move_to_local(call, dsq_id, enq_flags); }
u32 scx_bpf_dispatch_nr_slots(void) { return ask->number(call, NUMBER_SLOTS, 0); }
void scx_bpf_dispatch_cancel(void) { ask->act(call, ACT_CANCEL, 0, 0); }
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) { return ask->number(call, NUMBER_QUEUED, dsq_of(dsq_id)); }

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
	bool moved = ask->move(call, iter->state, p->pid, dsq_of(dsq_id), enq_flags, priq, iter->has_slice ? &iter->slice : NULL,
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
/* A node's number plus one, above two bits for the question. What is no node, as NUMA_NO_NODE, is more than any. */
static int of_node(int node) { return (node < 0 || node > 4095 ? 4096 : node + 1) << 2; }

struct cpumask const *schedtwin_idle_mask_of(int node, bool smt)
{
	static struct cpumask of_nodes[2][16];
	struct cpumask *to = &of_nodes[smt][(unsigned int)node % 16];

	ask->mask(call, of_node(node) | smt, to);
	return to;
}

s32 schedtwin_pick_idle_of(struct cpumask const *mask, int node, u64 flags, bool any)
{
	return ask->pick(call, mask, flags, of_node(node) | any);
}

struct cpumask const *scx_bpf_get_possible_cpumask(void) { return mask_of(MASK_POSSIBLE); }
u32 scx_bpf_nr_node_ids(void) { return ask->number(call, NUMBER_NODES, 0); }
s32 scx_bpf_cpu_node(s32 cpu) { return ask->number(call, NUMBER_NODE_OF, cpu); }
s32 schedtwin_llc_id(s32 cpu) { return ask->number(call, NUMBER_LLC, cpu); }

u32 schedtwin_reenqueue_local(void) { return ask->number(call, NUMBER_REENQUEUED, 0); }
void scx_bpf_dsq_reenq(u64 dsq_id, u64 flags) { ask->act(call, ACT_REENQUEUE, dsq_of(dsq_id), flags); }

void scx_bpf_kick_cpu(s32 cpu, u64 flags) { ask->act(call, ACT_KICK, cpu, flags); }
s32 scx_bpf_task_cpu(struct task_struct const *p) { return ask->number(call, NUMBER_CPU_OF, p->pid); }
bool scx_bpf_task_running(struct task_struct const *p) { return ask->number(call, NUMBER_RUNS, p->pid); }
struct task_struct *scx_bpf_cpu_curr(s32 cpu) { return ask->task(call, TASK_CURR, cpu); }

struct rq *scx_bpf_cpu_rq(s32 cpu)
{
	static struct rq queues[SCHEDTWIN_NR_CPUS];

	if ((u32)cpu >= schedtwin_nr_cpus) {
		scx_bpf_error("invalid CPU %d", cpu);
		return NULL;
	}
	queues[cpu].curr = scx_bpf_cpu_curr(cpu);
	return &queues[cpu];
}

bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice) { return ask->set(call, p->pid, SET_SLICE, slice); }
bool scx_bpf_task_set_dsq_vtime(struct task_struct *p, u64 vtime) { return ask->set(call, p->pid, SET_VTIME, vtime); }
u32 scx_bpf_cpuperf_cap(s32 cpu) { return ask->number(call, NUMBER_CAP, cpu); }
u32 scx_bpf_cpuperf_cur(s32 cpu) { return ask->number(call, NUMBER_CUR, cpu); }
void scx_bpf_cpuperf_set(s32 cpu, u32 perf) { ask->act(call, ACT_CPUPERF, cpu, perf); }
u64 scx_bpf_now(void) { return ask->time(call, TIME_RQ, 0); }
u64 bpf_ktime_get_ns(void) { return ask->time(call, TIME_MONOTONIC, 0); }
u64 bpf_jiffies64(void) { return ask->time(call, TIME_JIFFIES, 0); }
u64 scx_clock_task(u32 cpu) { return ask->time(call, TIME_TASK_CLOCK, cpu); }
u64 scx_clock_pelt(u32 cpu) { return ask->time(call, TIME_PELT_CLOCK, cpu); }
bool schedtwin_in_interrupt(void) { return ask->number(call, NUMBER_IN_INTERRUPT, 0); }

/* The events in the order of `ask_number`; the others never happen. */
void scx_bpf_events(struct scx_event_stats *to, size_t bytes)
{
	struct scx_event_stats events = {
		.SCX_EV_SELECT_CPU_FALLBACK = ask->number(call, NUMBER_EVENT, 0),
		.SCX_EV_DISPATCH_KEEP_LAST = ask->number(call, NUMBER_EVENT, 1),
		.SCX_EV_ENQ_SKIP_EXITING = ask->number(call, NUMBER_EVENT, 2),
		.SCX_EV_REFILL_SLICE_DFL = ask->number(call, NUMBER_EVENT, 3),
	};

	memcpy(to, &events, bytes < sizeof(events) ? bytes : sizeof(events));
}

/* How the kernel is configured, as far as schedulers ask. */
bool CONFIG_NO_HZ_IDLE = true, CONFIG_PREEMPT_RCU = true;
unsigned int CONFIG_HZ = HZ;
/* No CPU has one. */
struct cpufreq_policy *cpufreq_cpu_data[SCHEDTWIN_NR_CPUS];

/* ---- numbers by topology ---------------------------------------------------------------------------------------------- */

s32 scx_bpf_cid_to_cpu(s32 cid) { return (u32)cid < schedtwin_nr_cpus ? cid_to_cpu[cid] : -EINVAL; }
s32 scx_bpf_cpu_to_cid(s32 cpu) { return (u32)cpu < schedtwin_nr_cpus ? cpu_to_cid[cpu] : -EINVAL; }
s32 scx_bpf_task_cid(struct task_struct const *p) { return cid_of(scx_bpf_task_cpu(p)); }
s32 scx_bpf_this_cid(void) { return cid_of(schedtwin_cpu); }
void scx_bpf_kick_cid(s32 cid, u64 flags) { scx_bpf_kick_cpu(cpu_of(cid), flags); }
u32 scx_bpf_cidperf_cap(s32 cid) { return scx_bpf_cpuperf_cap(cpu_of(cid)); }
u32 scx_bpf_cidperf_cur(s32 cid) { return scx_bpf_cpuperf_cur(cpu_of(cid)); }
void scx_bpf_cidperf_set(s32 cid, u32 perf) { scx_bpf_cpuperf_set(cpu_of(cid), perf); }

/* The root scheduler has every capability on every CPU; there are no others. */
s32 scx_bpf_sub_caps(u64 cgroup_id, u64 caps, struct scx_cmask *to)
{
	u32 cid;

	if (cgroup_id)
		return -ENOENT;
	for (cid = to->base; cid < to->base + to->nr_cids; cid++)
		if (cid < schedtwin_nr_cpus)
			to->bits[cid / 64 - to->base / 64] |= 1ULL << cid % 64;
	return 0;
}

/* ---- cgroups ---------------------------------------------------------------------------------------------------------- */

struct cgroup *scx_bpf_task_cgroup(struct task_struct *p)
{
	int pid = pid_of(p);

	/* As the kernel's: that of the root where there is none, never NULL. */
	return ask->cgroup(call, CGROUP_OF_TASK, pid < 0 ? 0 : pid);
}

struct cgroup *bpf_cgroup_from_id(u64 id) { return ask->cgroup(call, CGROUP_BY_ID, id); }

struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level)
{
	if (!cgrp || level < 0 || level > cgrp->level)
		return NULL;
	while (cgrp && cgrp->level > level)
		cgrp = ask->cgroup(call, CGROUP_ABOVE, cgrp->number);
	return cgrp;
}

/* Parents come before their children in number, so forward is before, and backward after their children. */
int bpf_iter_css_new(struct bpf_iter_css *iter, struct cgroup_subsys_state *root, unsigned int flags)
{
	iter->root = root ? root->cgroup : NULL;
	if (!iter->root)
		return -EINVAL;
	iter->backwards = flags == BPF_CGROUP_ITER_DESCENDANTS_POST;
	iter->number = iter->backwards ? ask->number(call, NUMBER_CGROUPS, 0) - 1 : iter->root->number;
	return 0;
}

struct cgroup_subsys_state *bpf_iter_css_next(struct bpf_iter_css *iter)
{
	struct cgroup *cgrp;

	if (!iter->root)
		return NULL;
	for (;;) {
		s64 number = iter->number;

		if (number < iter->root->number || number >= ask->number(call, NUMBER_CGROUPS, 0))
			return NULL;
		iter->number += iter->backwards ? -1 : 1;
		cgrp = ask->cgroup(call, CGROUP_BY_NUMBER, number);
		if (cgrp && bpf_cgroup_ancestor(cgrp, iter->root->level) == iter->root)
			return cgrp->subsys[cpu_cgrp_id];
	}
}
struct task_struct *bpf_get_current_task_btf(void) { return ask->task(call, TASK_CURRENT, 0); }
struct task_struct *bpf_task_from_pid(s32 pid) { return ask->task(call, TASK_PID, pid); }

/* A sequence that repeats with each run: splitmix64. */
u32 bpf_get_prandom_u32(void)
{
	static u64 state;
	u64 z = state += 0x9e3779b97f4a7c15ULL;

	schedtwin_spend(COST_CALL);
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
	int key = schedtwin_key_of(map, timer);

	timer->callback(map, &key, timer);
}


u32 schedtwin_mask_distribute(struct cpumask const *mask)
{
	s32 cpu = ask->pick(call, mask, 0, PICK_DISTRIBUTE);

	return cpu >= 0 ? (u32)cpu : schedtwin_nr_cpus;
}
