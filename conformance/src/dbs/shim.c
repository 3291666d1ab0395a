// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for ondemand and conservative: the functions of a kernel tree's cpufreq_governor.c, cpufreq_ondemand.c and
 * cpufreq_conservative.c that ask for a sample, take it and decide, and the search in the frequency table, cut out when the test
 * runs (dbs_extract.h and the two files of the governors, written by the test program), around one frequency domain of up to four
 * CPUs. Nothing of the kernel is in this file.
 */
#include "kernel_types.h"
#include "protocol.h"

#define CPUS_MAX 4
#define TABLE_MAX 12
#define UINT_MAX ~0u
#define BIT(n) (1UL << (n))

#define clamp(value, low, high) \
	({ __typeof__(value) v_ = (value), l_ = (low), h_ = (high); v_ < l_ ? l_ : v_ > h_ ? h_ : v_; })
#define clamp_val(value, low, high) clamp((unsigned int)(value), (unsigned int)(low), (unsigned int)(high))
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#define WARN_ON_ONCE(condition) (condition)
#define pr_debug(...) ((void)0)
#define smp_rmb() ((void)0)
#define smp_wmb() ((void)0)
#define EINVAL 22
#define ENODEV 19

/* No concurrency. */
typedef struct { int counter; } atomic_t;
#define atomic_set(v, i) ((void)((v)->counter = (i)))
#define atomic_add_unless(v, a, u) ((v)->counter == (u) ? 0 : ((v)->counter += (a), 1))
struct mutex { int unused; };
#define mutex_lock(mutex) ((void)(mutex))
#define mutex_unlock(mutex) ((void)(mutex))
static struct mutex gov_dbs_data_mutex;
struct list_head { int unused; };
struct gov_attr_set { int unused; };
struct work_struct { int unused; };
struct irq_work { bool raised; };
struct kobj_type { int unused; };
struct update_util_data { int unused; };
static void irq_work_queue(struct irq_work *work)
{
	work->raised = true;
}

struct cpumask { unsigned long bits; };
#define for_each_cpu(cpu, mask) \
	for ((cpu) = 0; (cpu) < CPUS_MAX; (cpu)++) if ((mask)->bits >> (cpu) & 1)
#define DEFINE_PER_CPU(type, name) type name[CPUS_MAX]
#define per_cpu(name, cpu) name[cpu]

struct cpufreq_frequency_table { unsigned int flags, driver_data, frequency; };
enum { CPUFREQ_TABLE_UNSORTED, CPUFREQ_TABLE_SORTED_ASCENDING, CPUFREQ_TABLE_SORTED_DESCENDING };
#define CPUFREQ_ENTRY_INVALID ~0u
#define CPUFREQ_TABLE_END ~1u
#define CPUFREQ_INEFFICIENT_FREQ (1 << 1)
#define cpufreq_table_index_unsorted(...) 0

struct cpufreq_governor { int unused; };
struct cpufreq_policy {
	struct cpumask cpus[1], related_cpus[1];
	unsigned int cpu, min, max, cur, cached_target_freq, cached_resolved_idx;
	struct { unsigned int min_freq, max_freq; } cpuinfo;
	bool efficiencies_available;
	int freq_table_sorted;
	struct cpufreq_frequency_table *freq_table;
	struct cpufreq_governor *governor;
	void *governor_data;
};
struct cpufreq_driver {
	unsigned int flags;
	int (*target)(struct cpufreq_policy *policy, unsigned int target, unsigned int relation);
	int (*target_index)(struct cpufreq_policy *policy, unsigned int index);
};

static struct cpufreq_policy policy;
static struct cpufreq_frequency_table table[TABLE_MAX + 1];
static unsigned int table_size, asked, asked_times;
static u64 now_us, idle_us[CPUS_MAX];

#define cpufreq_disabled() false
#define CPUFREQ_NEED_UPDATE_LIMITS 1
#define cpufreq_this_cpu_can_update(policy) true
#define policy_is_shared(policy) (((policy)->cpus->bits & ((policy)->cpus->bits - 1)) != 0)
#define cpufreq_add_update_util_hook(cpu, data, function) ((void)(data))
#define kcpustat_cpu(cpu) 0
#define kcpustat_field(cpustat, field, cpu) 0ULL
#define cpustat_index(...) 0
#define kcpustat_cpu_cpustat 0

static u64 get_cpu_idle_time(unsigned int cpu, u64 *wall, int io_busy)
{
	*wall = now_us;
	return idle_us[cpu];
}

static int __target_index(struct cpufreq_policy *policy, unsigned int index)
{
	policy->cur = asked = policy->freq_table[index].frequency;
	asked_times++;
	return 0;
}
static int target_index(struct cpufreq_policy *policy, unsigned int index)
{
	abort();
}
static struct cpufreq_driver driver = { .target_index = target_index }, *cpufreq_driver = &driver;

#include "dbs_extract.h"

/* Each governor calls what it adds by the same names. */
#define to_dbs_info od_dbs_info_of
#include "dbs_ondemand.h"
#undef to_dbs_info
#define to_dbs_info cs_dbs_info_of
#include "dbs_conservative.h"
#undef to_dbs_info

static struct od_policy_dbs_info ondemand;
static struct cs_policy_dbs_info conservative;
static struct od_dbs_tuners od_tuners;
static struct cs_dbs_tuners cs_tuners;
static struct dbs_data data;
static struct policy_dbs_info *info;
static struct dbs_governor od_gov = { .gov_dbs_update = od_dbs_update, .start = od_start };
static struct dbs_governor cs_gov = { .gov_dbs_update = cs_dbs_update, .start = cs_start, .limits = cs_limits };

static void begin(void)
{
	memset(&policy, 0, sizeof(policy));
	memset(&ondemand, 0, sizeof(ondemand));
	memset(&conservative, 0, sizeof(conservative));
	memset(&data, 0, sizeof(data));
	memset(cpu_dbs, 0, sizeof(cpu_dbs));
	memset(idle_us, 0, sizeof(idle_us));
	now_us = table_size = asked = asked_times = 0;
	info = NULL;
	policy.freq_table = table;
	policy.freq_table_sorted = CPUFREQ_TABLE_SORTED_ASCENDING;
}

static void operate(word op, const word *arg)
{
	int cpu;

	switch (op) {
	case OP_FIRST + 0:
		policy.cpus->bits = BIT(arg[0]) - 1;
		policy.governor = arg[1] ? &cs_gov.gov : &od_gov.gov;
		info = arg[1] ? &conservative.policy_dbs : &ondemand.policy_dbs;
		data.tuners = arg[1] ? (void *)&cs_tuners : (void *)&od_tuners;
		data.sampling_rate = arg[2];
		data.up_threshold = arg[3];
		data.sampling_down_factor = arg[4];
		cs_tuners.down_threshold = arg[5] & 0xff;
		cs_tuners.freq_step = arg[5] >> 8;
		info->policy = &policy;
		info->dbs_data = &data;
		policy.governor_data = info;
		for (cpu = 0; cpu < CPUS_MAX; cpu++)
			cpu_dbs[cpu].policy_dbs = info;
		break;
	case OP_FIRST + 1: /* a further operating point */
		if (table_size == TABLE_MAX)
			exit(2);
		table[table_size].frequency = arg[0];
		table[table_size].flags = arg[1] ? CPUFREQ_INEFFICIENT_FREQ : 0;
		policy.efficiencies_available |= arg[1];
		table[++table_size].frequency = CPUFREQ_TABLE_END;
		policy.min = policy.cpuinfo.min_freq = table[0].frequency;
		policy.max = policy.cpuinfo.max_freq = policy.cur = asked = arg[0];
		break;
	case OP_FIRST + 2: /* the core asks the governor for its limits right after the start */
		info->idle_periods = UINT_MAX;
		cpufreq_dbs_governor_start(&policy);
		cpufreq_dbs_governor_limits(&policy);
		break;
	case OP_FIRST + 3:
		idle_us[arg[0]] = arg[1];
		break;
	case OP_FIRST + 4: /* the hook of a CPU */
		dbs_update_util_handler(&cpu_dbs[arg[0]].update_util, arg[1], 0);
		break;
	case OP_FIRST + 5: /* the kworker */
		now_us = arg[0];
		if (info->irq_work.raised) {
			info->irq_work.raised = false;
			dbs_work_handler(&info->work);
		}
		break;
	case OP_FIRST + 6: /* the upper limit */
		policy.max = arg[0];
		cpufreq_dbs_governor_limits(&policy);
		break;
	default:
		fprintf(stderr, "unknown operation %llu\n", op);
		exit(2);
	}
	out(policy.cur);
	out(asked);
	if (!info)
		return;
	out(info->last_sample_time);
	out(info->sample_delay_ns);
	out(info->rate_mult);
	out(info->idle_periods);
	out(info->work_in_progress);
	out(info == &conservative.policy_dbs ? conservative.requested_freq : 0);
	out(info == &conservative.policy_dbs ? conservative.down_skip : 0);
	for_each_cpu(cpu, policy.cpus) {
		out(cpu_dbs[cpu].prev_cpu_idle);
		out(cpu_dbs[cpu].prev_update_time);
		out(cpu_dbs[cpu].prev_load);
	}
}

int main(void)
{
	return serve(begin, operate);
}
