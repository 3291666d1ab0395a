// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for intel_pstate in active mode: the functions of a kernel tree's intel_pstate.c that take a sample and decide, cut out
 * when the test runs (intel_pstate_extract.h, written by the test program), around one CPU whose registers the sequence sets.
 * Nothing of the kernel is in this file.
 */
#include "kernel_types.h"
#include "protocol.h"

typedef unsigned long long __u64;
typedef short s16;
struct update_util_data { int unused; };
struct delayed_work { int unused; };

#define div64_s64(a, b) ((s64)(a) / (s64)(b))
#define div64_u64(a, b) ((u64)(a) / (u64)(b))
#define DIV_ROUND_UP(a, b) (((a) + (b) - 1) / (b))
#define clamp_t(type, value, low, high) \
	({ type v_ = (value), l_ = (low), h_ = (high); v_ < l_ ? l_ : v_ > h_ ? h_ : v_; })
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#define pr_debug(...) ((void)0)
#define local_irq_save(flags) ((flags) = 0)
#define local_irq_restore(flags) ((void)(flags))
#define trace_cpu_frequency(...) ((void)0)
#define trace_pstate_sample(...) ((void)0)
#define SCHED_CPUFREQ_IOWAIT 1
#define TICK_NSEC tick_nsec
#define cpu_khz 0
#define hwp_active false
#define per_cpu_limits false
#define HWP_HIGHEST_PERF(value) ((value) & 0xff)
#define HWP_GUARANTEED_PERF(value) ((value) >> 8 & 0xff)
#define HWP_MIN_PERF(value) ((value) & 0xff)
#define HWP_MAX_PERF(value) (((value) & 0xff) << 8)
#define HWP_DESIRED_PERF(value) (((value) & 0xff) << 16)
#define wrmsrl_on_cpu(cpu, number, value) wrmsrl(number, value)
#define intel_cpufreq_trace(...) ((void)0)
#define intel_pstate_freq_to_hwp(cpu, freq) (abort(), 0)

enum { MSR_IA32_APERF, MSR_IA32_MPERF, MSR_IA32_PERF_CTL, MSR_HWP_REQUEST, REGISTERS };

static u64 registers[REGISTERS], time_stamp;
static u64 tick_nsec;
static int this_cpu;

#define rdmsrl(number, value) ((value) = registers[number])
#define wrmsrl(number, value) (registers[number] = (value))
#define rdtsc() time_stamp
#define smp_processor_id() this_cpu

#include "intel_pstate_extract.h"

static struct global_params global;
static u64 value_of(struct cpudata *cpu, int pstate)
{
	return pstate;
}
static struct { u64 (*get_val)(struct cpudata *cpu, int pstate); } pstate_funcs = { value_of };

#include "intel_pstate_functions.h"

static struct cpudata cpu;
static struct cpudata *all_cpu_data[] = { &cpu };

#include "intel_pstate_hints.h"

static void begin(void)
{
	memset(&cpu, 0, sizeof(cpu));
	memset(registers, 0, sizeof(registers));
	time_stamp = 0;
}

static void operate(word op, const word *arg)
{
	switch (op) {
	case OP_FIRST + 0:
		cpu.pstate.min_pstate = arg[0];
		cpu.pstate.max_pstate_physical = arg[1];
		cpu.pstate.turbo_pstate = arg[2];
		cpu.pstate.current_pstate = arg[0];
		cpu.pstate.scaling = cpu.pstate.perf_ctl_scaling = 100000;
		cpu.max_perf_ratio = arg[2];
		tick_nsec = arg[3];
		global.max_perf_pct = arg[4];
		global.min_perf_pct = arg[5];
		registers[MSR_IA32_PERF_CTL] = arg[0];
		cpu.hwp_cap_cached = arg[2] | arg[1] << 8;
		break;
	case OP_FIRST + 1:
		intel_pstate_update_perf_limits(&cpu, arg[0], arg[1]);
		break;
	case OP_FIRST + 2:
		this_cpu = arg[1] >> 1;
		registers[MSR_IA32_APERF] = arg[2];
		registers[MSR_IA32_MPERF] = arg[3];
		time_stamp = arg[4];
		intel_pstate_update_util(&cpu.update_util, arg[0], arg[1] & 1);
		break;
	case OP_FIRST + 3:
		intel_cpufreq_adjust_perf(0, arg[0], arg[1], arg[2]);
		break;
	default:
		fprintf(stderr, "unknown operation %llu\n", op);
		exit(2);
	}
	out(cpu.min_perf_ratio);
	out(cpu.max_perf_ratio);
	out(cpu.pstate.current_pstate);
	out(registers[MSR_IA32_PERF_CTL]);
	out(registers[MSR_HWP_REQUEST]);
	out(cpu.iowait_boost);
	out(cpu.last_update);
	out(cpu.last_sample_time);
	out(cpu.sample.time);
	out(cpu.sample.aperf);
	out(cpu.sample.mperf);
	out(cpu.sample.tsc);
	out(cpu.prev_aperf);
	out(cpu.prev_mperf);
	out(cpu.prev_tsc);
	out(cpu.sample.core_avg_perf);
	out(cpu.sample.busy_scaled);
}

int main(void)
{
	return serve(begin, operate);
}
