/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an idle governor sees: the states of its CPU, the tick, the timers, what the CPU is used for. Members
 * that the twin would have to make up are not there.
 */
#ifndef SCHEDTWIN_CPUIDLE_H
#define SCHEDTWIN_CPUIDLE_H

#include <schedtwin/kernel.h>

#define CPUIDLE_STATE_MAX 10
#define CPUIDLE_NAME_LEN 16
#define CPUIDLE_FLAG_NONE 0
#define CPUIDLE_FLAG_POLLING BIT(0)

struct cpuidle_state {
	s64 exit_latency_ns, target_residency_ns;
	unsigned int flags;
	/* Microseconds. */
	unsigned int exit_latency, target_residency;
};

struct cpuidle_state_usage { unsigned long long disable; };

struct cpuidle_device {
	unsigned int registered : 1, enabled : 1, poll_time_limit : 1;
	unsigned int cpu;
	int last_state_idx;
	u64 last_residency_ns, poll_limit_ns;
	struct cpuidle_state_usage states_usage[CPUIDLE_STATE_MAX];
};

struct cpuidle_driver {
	const char *name;
	struct cpuidle_state states[CPUIDLE_STATE_MAX];
	int state_count;
};

struct cpuidle_governor {
	char name[CPUIDLE_NAME_LEN];
	struct list_head governor_list;
	unsigned int rating;
	int (*enable)(struct cpuidle_driver *driver, struct cpuidle_device *device);
	void (*disable)(struct cpuidle_driver *driver, struct cpuidle_device *device);
	int (*select)(struct cpuidle_driver *driver, struct cpuidle_device *device, bool *stop_tick);
	void (*reflect)(struct cpuidle_device *device, int index);
};

/* One call: what the twin tells, in the layout that it writes. */
struct schedtwin_idle_call {
	u64 now;
	s64 latency_req_ns;
	u64 last_residency_ns;
	u64 cpu_util;
	void *timers;
	s64 (*sleep_length)(void *timers, s64 *delta_tick);
	u32 cpu;
	u32 nr_iowaiters;
	u32 tick_stopped;
	u32 got_tick;
	u32 poll_time_limit;
	/* The answer. */
	u32 stop_tick;
};

extern struct schedtwin_idle_call *schedtwin_idle;
/* Refuses a question about another CPU than the one that is asked, which the twin has not told about. */
static inline struct schedtwin_idle_call *schedtwin_idle_of(unsigned int cpu)
{
	if (unlikely(!schedtwin_idle))
		schedtwin_refuse("outside of select() and reflect() there is no moment to ask about: CPU", cpu);
	if (unlikely(cpu != schedtwin_idle->cpu))
		schedtwin_refuse("an idle governor can ask about the CPU that it is asked for only, and not about CPU", cpu);
	return schedtwin_idle;
}

/* What is told in select() alone. */
static inline struct schedtwin_idle_call *schedtwin_idle_select_of(unsigned int cpu)
{
	struct schedtwin_idle_call *call = schedtwin_idle_of(cpu);

	if (unlikely(!call->sleep_length))
		schedtwin_refuse("latency limit, tick, timers and utilisation can be asked for in select() only: CPU", cpu);
	return call;
}

int cpuidle_register_governor(struct cpuidle_governor *governor);
ktime_t tick_nohz_get_sleep_length(ktime_t *delta_next);
static inline s64 cpuidle_governor_latency_req(unsigned int cpu) { return schedtwin_idle_select_of(cpu)->latency_req_ns; }
static inline bool tick_nohz_tick_stopped(void) { return schedtwin_idle_select_of(schedtwin_cpu)->tick_stopped; }
static inline bool tick_nohz_tick_stopped_cpu(int cpu) { return schedtwin_idle_select_of(cpu)->tick_stopped; }
static inline bool tick_nohz_idle_got_tick(void)
{
	struct schedtwin_idle_call *call = schedtwin_idle_of(schedtwin_cpu);
	bool got = call->got_tick;

	call->got_tick = false;
	return got;
}
static inline unsigned int nr_iowait_cpu(int cpu) { return schedtwin_idle_select_of(cpu)->nr_iowaiters; }
static inline unsigned long sched_cpu_util(int cpu) { return schedtwin_idle_select_of(cpu)->cpu_util; }
unsigned long arch_scale_cpu_capacity(int cpu);
static inline bool kvm_para_available(void) { return false; }
static inline bool need_resched(void) { return false; }
static const bool tick_nohz_enabled __maybe_unused = true;

#endif
