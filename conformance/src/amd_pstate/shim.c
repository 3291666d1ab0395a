// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for amd-pstate in passive mode: the functions of a kernel tree's amd-pstate.c that make levels of frequencies and of performance,
 * cut out when the test runs (amd_pstate_extract.h, written by the test program), around one CPU. Nothing of the kernel is in this file.
 *
 * BY_NOMINAL: the tree is of 6.15 or later.
 */
#include "kernel_types.h"
#include "protocol.h"

typedef unsigned char u8;

#define DIV_ROUND_UP(a, b) (((a) + (b) - 1) / (b))
#define DIV_ROUND_UP_ULL(a, b) (((u64)(a) + (b) - 1) / (b))
#define DIV_ROUND_CLOSEST(a, b) (((a) + (b) / 2) / (b))
#define clamp(value, low, high) ((value) >= (high) ? (high) : (value) <= (low) ? (low) : (value))
#define clamp_t(type, value, low, high) clamp((type)(value), (type)(low), (type)(high))
#define WARN_ON(condition) ((void)(condition))
#define ENODEV 19
#define __free(function)

#define AMD_CPPC_MIN_PERF(x) (((u64)(x) & 0xff) << 0)
#define AMD_CPPC_DES_PERF(x) (((u64)(x) & 0xff) << 8)
#define AMD_CPPC_MAX_PERF(x) (((u64)(x) & 0xff) << 16)
#define CPUFREQ_GOV_DYNAMIC_SWITCHING 1
#define CPUFREQ_POLICY_PERFORMANCE 2
#define trace_amd_pstate_perf_enabled() false
#define trace_amd_pstate_perf(...) ((void)0)
#define trace_call__amd_pstate_perf(...) ((void)0)
#define amd_pstate_sample(cpudata) false

enum { AMD_PSTATE_PASSIVE, AMD_PSTATE_GUIDED };
static int cppc_state = AMD_PSTATE_PASSIVE;

struct cpufreq_freqs { unsigned int old, new; };
struct cpufreq_governor { int flags; };
struct cpufreq_policy {
	unsigned int cpu, min, max, cur, boost_enabled, fast_switch_enabled;
	struct { unsigned int max_freq; } cpuinfo;
	struct cpufreq_governor *governor;
	void *driver_data;
};

/* What the driver's files call these. */
union perf_cached {
	struct { u8 highest_perf, nominal_perf, lowest_nonlinear_perf, lowest_perf, min_limit_perf, max_limit_perf, bios_min_perf; };
	u64 val;
};
struct amd_cpudata {
	int cpu;
	union perf_cached perf;
	u32 highest_perf, nominal_perf, lowest_nonlinear_perf, lowest_perf, min_limit_perf, max_limit_perf;
	u32 max_freq, nominal_freq, min_limit_freq, max_limit_freq, policy;
	u64 cppc_req_cached, freq;
	bool boost_supported;
	struct { u64 mperf, aperf, tsc; } cur;
};

static struct cpufreq_policy policy;
static struct cpufreq_policy *cpufreq_cpu_get(unsigned int cpu)
{
	return &policy;
}

static struct cpufreq_governor governor = { CPUFREQ_GOV_DYNAMIC_SWITCHING };
static struct amd_cpudata cpudata;
/* What the processor was asked for last. */
static u32 asked[3];

#define cpufreq_cpu_put(policy) ((void)(policy))
#define cpufreq_freq_transition_begin(policy, freqs) ((void)(freqs))
#define cpufreq_freq_transition_end(policy, freqs, failed) ((void)(freqs))

static void ask(u32 min_perf, u32 des_perf, u32 max_perf)
{
	asked[0] = min_perf;
	asked[1] = des_perf;
	asked[2] = max_perf;
}

#ifdef BY_NOMINAL
#define amd_pstate_update_perf(policy, min_perf, des_perf, max_perf, epp, fast_switch) ask(min_perf, des_perf, max_perf)
#else
#define amd_pstate_update_perf(cpudata, min_perf, des_perf, max_perf, fast_switch) ask(min_perf, des_perf, max_perf)
#endif

#include "amd_pstate_extract.h"

#ifdef BY_NOMINAL
#ifdef OF_POLICY
#define adjust(floor, target, capacity) amd_pstate_adjust_perf(&policy, floor, target, capacity, capacity)
#else
#define adjust(floor, target, capacity) amd_pstate_adjust_perf(&policy, floor, target, capacity)
#endif
#else
#define adjust(floor, target, capacity) amd_pstate_adjust_perf(0, floor, target, capacity)
#endif

static void begin(void)
{
	memset(&policy, 0, sizeof(policy));
	memset(&cpudata, 0, sizeof(cpudata));
	memset(asked, 0, sizeof(asked));
	policy.driver_data = &cpudata;
	policy.governor = &governor;
	policy.boost_enabled = policy.fast_switch_enabled = true;
}

static void operate(word op, const word *arg)
{
	switch (op) {
	case OP_FIRST + 0:
		cpudata.perf.highest_perf = cpudata.highest_perf = arg[0];
		cpudata.perf.nominal_perf = cpudata.nominal_perf = arg[1];
		cpudata.perf.lowest_nonlinear_perf = cpudata.lowest_nonlinear_perf = arg[2];
		cpudata.perf.lowest_perf = cpudata.lowest_perf = arg[3];
		cpudata.max_freq = policy.cpuinfo.max_freq = policy.max = arg[4];
		cpudata.nominal_freq = arg[5];
		policy.min = 1;
		break;
	case OP_FIRST + 1: /* the core's limits, and whether there is boost */
		policy.min = arg[0];
		policy.max = arg[1];
		cpudata.boost_supported = arg[2];
		break;
	case OP_FIRST + 2:
		adjust(arg[0], arg[1], arg[2]);
		break;
	case OP_FIRST + 3:
		amd_pstate_fast_switch(&policy, arg[0]);
		break;
	default:
		fprintf(stderr, "unknown operation %llu\n", op);
		exit(2);
	}
	out(asked[0]);
	out(asked[1]);
	out(asked[2]);
	out(op == OP_FIRST + 2 ? policy.cur : 0);
}

int main(void)
{
	return serve(begin, operate);
}
