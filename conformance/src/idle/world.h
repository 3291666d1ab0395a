/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The world of an idle governor: one CPU, its idle states, its timers and its tick, as a sequence of
 * operations sets them. A shim includes this, then the kernel's governor, and defines
 *
 *   report(result...)   what is compared after each operation
 *   GOVERNOR            the governor's struct
 *
 * and includes serve.h. Nothing of the kernel is in these files; the headers that governors
 * include are the ones in l0/shim/include, which are empty because everything they need is declared here.
 */
#ifndef L0_CPUIDLE_WORLD_H
#define L0_CPUIDLE_WORLD_H

#include <limits.h>
#include "protocol.h"
#include "kernel_types.h"

#define CPUIDLE_STATE_MAX 10
#define CPUIDLE_FLAG_POLLING 1
/* A constant in a kernel; here the sequence decides, so that one program serves every HZ. */
#define TICK_NSEC tick_nsec

struct cpuidle_state {
	s64 exit_latency_ns, target_residency_ns;
	unsigned int flags;
};

struct cpuidle_state_usage { unsigned long long disable; };

struct cpuidle_device {
	unsigned int poll_time_limit : 1;
	unsigned int cpu;
	int last_state_idx;
	u64 last_residency_ns, poll_limit_ns;
	struct cpuidle_state_usage states_usage[CPUIDLE_STATE_MAX];
};

struct cpuidle_driver {
	struct cpuidle_state states[CPUIDLE_STATE_MAX];
	int state_count;
};

struct cpuidle_governor {
	char name[16];
	unsigned int rating;
	int (*enable)(struct cpuidle_driver *, struct cpuidle_device *);
	int (*select)(struct cpuidle_driver *, struct cpuidle_device *, bool *);
	void (*reflect)(struct cpuidle_device *, int);
};

static struct cpuidle_driver driver;
static struct cpuidle_device device;
static s64 tick_nsec, latency_req, sleep_length, delta_next;
static bool tick_stopped, got_tick;
static u64 clock_now;
static unsigned timers_asked, io_waiters;
static unsigned long cpu_util;
static bool tick_nohz_enabled = true;

#define DEFINE_PER_CPU(type, name) type name
#define per_cpu_ptr(pointer, cpu) (pointer)
#define this_cpu_ptr(pointer) (pointer)
#define per_cpu(variable, cpu) (variable)
#define postcore_initcall(function)
#define module_param(name, type, mode)
#define __read_mostly
#ifndef unlikely
#define unlikely(condition) (condition)
#endif

#define uint64_t u64
#define int64_t s64
#define do_div(dividend, divisor) ((dividend) /= (u32)(divisor))
static u64 div64_u64(u64 dividend, u64 divisor) { return dividend / divisor; }
static s64 ktime_to_us(s64 ns) { return ns / 1000; }

static u64 local_clock(void) { return clock_now; }
static s64 cpuidle_governor_latency_req(unsigned int cpu) { (void)cpu; return latency_req; }
static unsigned nr_iowait_cpu(int cpu) { (void)cpu; return io_waiters; }
static bool tick_nohz_tick_stopped(void) { return tick_stopped; }
static unsigned long sched_cpu_util(int cpu) { (void)cpu; return cpu_util; }
static unsigned long arch_scale_cpu_capacity(int cpu) { (void)cpu; return 1024; }
static bool kvm_para_available(void) { return true; }
static void trace_guest_halt_poll_ns_grow(unsigned val, u64 old) { (void)val; (void)old; }
static void trace_guest_halt_poll_ns_shrink(unsigned val, u64 old) { (void)val; (void)old; }
static int cpuidle_register_governor(struct cpuidle_governor *gov) { (void)gov; return 0; }

static bool tick_nohz_idle_got_tick(void)
{
	bool got = got_tick;

	got_tick = false;
	return got;
}

static ktime_t tick_nohz_get_sleep_length(ktime_t *delta)
{
	timers_asked++;
	*delta = delta_next;
	return sleep_length;
}

#endif
