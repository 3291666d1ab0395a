// SPDX-License-Identifier: GPL-2.0-or-later
/* A frequency governor as the twin asks it: the governor's own file, then the door to it. */
#include <schedtwin/all.h>

#include GOVERNOR_FILE

struct schedtwin_frequency_call *schedtwin_frequency;
struct rq schedtwin_rqs[NR_CPUS];
char schedtwin_thread[64];

static struct cpufreq_governor *governor;
static struct cpufreq_policy *policies;
static u32 nr_policies;
static u64 capacities[NR_CPUS];
static u32 domains[NR_CPUS];
static struct update_util_data *hooks[NR_CPUS];

struct schedtwin_frequency_call *schedtwin_frequency_now(void)
{
	if (unlikely(!schedtwin_frequency))
		schedtwin_refuse("outside of the hook there is no moment to ask about; domains:", nr_policies);
	return schedtwin_frequency;
}

#define CHECK(cpu) do { \
	if (unlikely((unsigned int)(cpu) >= schedtwin_nr_cpus)) \
		schedtwin_refuse("there is no CPU", cpu); \
} while (0)

int cpufreq_register_governor(struct cpufreq_governor *registered)
{
	if (!registered || !registered->start || !registered->limits)
		return -EINVAL;
	governor = registered;
	return 0;
}

unsigned long arch_scale_cpu_capacity(int cpu)
{
	CHECK(cpu);
	return capacities[cpu];
}

/* What the twin keeps of a CPU; NULL: it is of another domain than the one that the call is about. */
static const struct schedtwin_demand *demand_of(struct schedtwin_frequency_call *call, int cpu)
{
	CHECK(cpu);
	if (domains[cpu] != call->domain)
		return NULL;
	if (!call->demands)
		call->demands = call->ask->demands(call->view, call->domain);
	return &call->demands[cpu];
}

unsigned long cpu_util_cfs(int cpu)
{
	struct schedtwin_frequency_call *call = schedtwin_frequency_now();

	CHECK(cpu);
	return call->ask->cpu_util_cfs(call->view, cpu, false);
}

unsigned long cpu_util_cfs_boost(int cpu)
{
	struct schedtwin_frequency_call *call = schedtwin_frequency_now();
	const struct schedtwin_demand *demand = demand_of(call, cpu);

	return demand ? demand->util_cfs : call->ask->cpu_util_cfs(call->view, cpu, true);
}

unsigned long effective_cpu_util(int cpu, unsigned long util_cfs, unsigned long *min, unsigned long *max)
{
	struct schedtwin_frequency_call *call = schedtwin_frequency_now();
	const struct schedtwin_demand *demand = demand_of(call, cpu);
	struct schedtwin_performance answer;

	if (likely(demand && demand->util_cfs == util_cfs))
		answer = demand->performance;
	else
		call->ask->effective_cpu_util(call->view, cpu, util_cfs, &answer);
	if (min)
		*min = answer.min;
	if (max)
		*max = answer.max;
	return answer.util;
}

unsigned long cpu_bw_dl(struct rq *rq)
{
	struct schedtwin_frequency_call *call = schedtwin_frequency_now();

	return likely(rq->cpu == (int)call->cpu) ? call->bw_dl : call->ask->cpu_bw_dl(call->view, rq->cpu);
}

bool uclamp_rq_is_capped(struct rq *rq)
{
	struct schedtwin_frequency_call *call = schedtwin_frequency_now();

	return call->ask->uclamp_rq_is_capped(call->view, rq->cpu);
}

unsigned long tick_nohz_get_idle_calls_cpu(int cpu)
{
	struct schedtwin_frequency_call *call = schedtwin_frequency_now();

	CHECK(cpu);
	return call->ask->idle_calls(call->view, cpu);
}

/* The domain of a CPU. */
static struct cpufreq_policy *policy_of(int cpu)
{
	u32 index;

	CHECK(cpu);
	for (index = 0; index < nr_policies; index++)
		if (cpumask_test_cpu(cpu, policies[index].cpus))
			return &policies[index];
	schedtwin_refuse("no frequency domain has CPU", cpu);
}

bool arch_scale_freq_invariant(void) { return schedtwin_frequency_now()->invariant; }

/* None where utilisation does not scale with the clock. */
unsigned int arch_scale_freq_ref(int cpu)
{
	return arch_scale_freq_invariant() ? policy_of(cpu)->cpuinfo.max_freq : 0;
}

void cpufreq_add_update_util_hook(int cpu, struct update_util_data *data,
				  void (*func)(struct update_util_data *data, u64 time, unsigned int flags))
{
	CHECK(cpu);
	if (hooks[cpu])
		schedtwin_refuse("a hook is there already, of CPU", cpu);
	data->func = func;
	hooks[cpu] = data;
}

void cpufreq_remove_update_util_hook(int cpu)
{
	CHECK(cpu);
	hooks[cpu] = NULL;
}

bool cpufreq_this_cpu_can_update(struct cpufreq_policy *policy)
{
	struct schedtwin_frequency_call *call = schedtwin_frequency_now();

	return call->ask->can_update(call->view, policy->schedtwin_domain);
}

unsigned int cpufreq_driver_resolve_freq(struct cpufreq_policy *policy, unsigned int khz)
{
	struct schedtwin_frequency_call *call = schedtwin_frequency_now();

	return call->ask->resolve(call->view, policy->schedtwin_domain, khz);
}

/* The governor's decision, whichever way it takes to the driver. */
unsigned int cpufreq_driver_fast_switch(struct cpufreq_policy *policy, unsigned int khz)
{
	struct schedtwin_frequency_call *call = schedtwin_frequency_now();

	if (policy->schedtwin_domain != call->domain)
		schedtwin_refuse("a governor can ask for a frequency of the domain that it is called for only, not of", policy->schedtwin_domain);
	call->decided = true;
	call->khz = khz;
	return khz;
}

int __cpufreq_driver_target(struct cpufreq_policy *policy, unsigned int khz, unsigned int relation)
{
	if (relation != CPUFREQ_RELATION_L && relation != CPUFREQ_RELATION_LE)
		schedtwin_refuse("only the lowest frequency that is not below can be asked for (CPUFREQ_RELATION_L), not relation", relation);
	cpufreq_driver_fast_switch(policy, khz);
	return 0;
}

#define OFFERED __attribute__((__visibility__("default")))

/* Before the first domain. */
OFFERED int schedtwin_frequency_boot(u32 count)
{
	unsigned int cpu;

	if (!governor)
		return -ENODEV;
	nr_policies = count;
	policies = schedtwin_allocate(count * sizeof(*policies));
	for (cpu = 0; cpu < schedtwin_nr_cpus; cpu++)
		schedtwin_rqs[cpu].cpu = cpu;
	return 0;
}

OFFERED void schedtwin_frequency_add_cpu(u32 domain, u32 cpu, u64 capacity)
{
	cpumask_set_cpu(cpu, policies[domain].cpus);
	cpumask_set_cpu(cpu, policies[domain].related_cpus);
	cpumask_set_cpu(cpu, policies[domain].real_cpus);
	capacities[cpu] = capacity;
	domains[cpu] = domain;
}

/* All CPUs of the domain are there: the governor takes it over. */
OFFERED int schedtwin_frequency_start(u32 domain, u32 min_khz, u32 max_khz, u32 rate_limit_us, u32 fast_switch, u32 from_any_cpu)
{
	struct cpufreq_policy *policy = &policies[domain];
	int error = 0;

	policy->schedtwin_domain = domain;
	policy->schedtwin_rate_limit_us = rate_limit_us;
	policy->cpu = schedtwin_cpu = cpumask_first(policy->cpus);
	policy->min = policy->cpuinfo.min_freq = min_khz;
	policy->max = policy->cur = policy->cpuinfo.max_freq = max_khz;
	policy->fast_switch_possible = fast_switch;
	policy->dvfs_possible_from_any_cpu = from_any_cpu;
	policy->governor = governor;
	if (governor->init)
		error = governor->init(policy);
	if (!error)
		error = governor->start(policy);
	/* As the core does right after the start. */
	if (!error)
		governor->limits(policy);
	return error;
}

OFFERED void schedtwin_frequency_update(struct schedtwin_frequency_call *call)
{
	struct update_util_data *hook = hooks[call->cpu];
	struct cpufreq_policy *policy = &policies[call->domain];

	schedtwin_frequency = call;
	schedtwin_cpu = call->this_cpu;
	schedtwin_now = call->time;
	policy->cur = call->current_khz;
	policy->max = call->limit_khz;
	if (hook)
		hook->func(hook, call->time, call->flags);
	schedtwin_frequency = NULL;
}

OFFERED void schedtwin_frequency_limits(u32 domain) { governor->limits(&policies[domain]); }
