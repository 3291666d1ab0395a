/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All domains of a machine, as `write_domains()` of the kernel crate (sched/fair/states.rs) writes them: capacities of
 * groups, groups, domains, and each CPU's lowest domain. Everything else of them is 0.
 */
enum { CPUS = 8, ALL_GROUPS_MAX = 128, DOMAINS_MAX = 64 };

static struct sched_group_capacity all_capacities[ALL_GROUPS_MAX];
static struct sched_group all_groups[ALL_GROUPS_MAX];
static struct sched_domain domains[DOMAINS_MAX];
static int nr_capacities, nr_domains;

static struct sched_domain *domain_of(long long index)
{
	return index < 0 ? NULL : &domains[below(index, DOMAINS_MAX)];
}

static void read_domains(void)
{
	nr_capacities = below(number(), ALL_GROUPS_MAX);
	int nr_groups = below(number(), ALL_GROUPS_MAX);
	nr_domains = below(number(), DOMAINS_MAX);

	memset(domains, 0, sizeof(domains));
	for (int i = 0; i < nr_capacities; i++) {
		struct sched_group_capacity *sgc = &all_capacities[i];

		sgc->capacity = number();
		sgc->min_capacity = number();
		sgc->max_capacity = number();
		sgc->next_update = number();
		sgc->imbalance = number();
	}
	for (int i = 0; i < nr_groups; i++) {
		struct sched_group *group = &all_groups[i];

		group->span.bits = number();
		group->group_weight = number();
		group->cores = number();
		group->flags = hex();
		group->balance_mask.bits = number();
		group->asym_prefer_cpu = number();
		group->sgc = &all_capacities[below(number(), ALL_GROUPS_MAX)];
		group->next = &all_groups[below(number(), ALL_GROUPS_MAX)];
	}
	for (int i = 0; i < nr_domains; i++) {
		struct sched_domain *at = &domains[i];

		at->flags = hex();
		at->imbalance_pct = number();
		at->imb_numa_nr = number();
		at->span.bits = number();
		at->span_weight = number();
		at->parent = domain_of(number());
		at->child = domain_of(number());
		at->groups = &all_groups[below(number(), ALL_GROUPS_MAX)];
		at->nr_balance_failed = number();
		at->cache_nice_tries = number();
		at->balance_interval = number();
		at->min_interval = number();
		at->max_interval = number();
		at->busy_factor = number();
		at->last_balance = number();
	}
	for (int cpu = 0; cpu < CPUS; cpu++)
		cpu_rq(cpu)->sd = domain_of(number());
}
