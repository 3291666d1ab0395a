/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a frequency governor sees: its domains, what the scheduler says of a CPU's utilisation, and the driver. The
 * way to a driver that sleeps (irq_work, a kthread) is the twin's own: here it is gone through at once, and what
 * the governor asks the driver for is its decision.
 */
#ifndef SCHEDTWIN_CPUFREQ_H
#define SCHEDTWIN_CPUFREQ_H

#include <schedtwin/kernel.h>

#define SCHED_CAPACITY_SHIFT 10
#define SCHED_CAPACITY_SCALE (1L << SCHED_CAPACITY_SHIFT)
#define SCHED_CPUFREQ_IOWAIT 1U
#define SCHED_DEADLINE 6
#define SCHED_FLAG_SUGOV 0x10000000

/* ---- what the twin answers; it fills this in before each call ------------------------------------------------------- */

struct schedtwin_performance { u64 util, min, max; };
/* cpu_util_cfs_boost() of a CPU, and effective_cpu_util() of that. */
struct schedtwin_demand { u64 util_cfs; struct schedtwin_performance performance; };

/* Questions that go back to the twin. */
struct schedtwin_frequency_questions {
	u64 (*cpu_util_cfs)(void *view, u32 cpu, u32 boost);
	void (*effective_cpu_util)(void *view, u32 cpu, u64 util_cfs, struct schedtwin_performance *answer);
	/* By CPU; of this domain they are up to date. */
	const struct schedtwin_demand *(*demands)(void *view, u32 domain);
	u64 (*cpu_bw_dl)(void *view, u32 cpu);
	u32 (*uclamp_rq_is_capped)(void *view, u32 cpu);
	u64 (*idle_calls)(void *view, u32 cpu);
	u32 (*can_update)(void *view, u32 domain);
	u32 (*resolve)(void *view, u32 domain, u32 khz);
};

struct schedtwin_frequency_call {
	void *view;
	const struct schedtwin_frequency_questions *ask;
	/* NULL until the first question about a CPU of the domain. */
	const struct schedtwin_demand *demands;
	u64 time;
	/* Of `cpu`. */
	u64 bw_dl;
	u32 cpu, this_cpu, domain, flags;
	/* Of the domain that it is about. */
	u32 current_khz, limit_khz, invariant;
	/* The answer. */
	u32 decided, khz;
};

extern struct schedtwin_frequency_call *schedtwin_frequency;
struct schedtwin_frequency_call *schedtwin_frequency_now(void);

/* ---- the scheduler --------------------------------------------------------------------------------------------------- */

struct rq { int cpu; };
extern struct rq schedtwin_rqs[NR_CPUS];
static inline struct rq *cpu_rq(int cpu)
{
	if (unlikely((unsigned int)cpu >= schedtwin_nr_cpus))
		schedtwin_refuse("the run queue of a CPU that there is not:", cpu);
	return &schedtwin_rqs[cpu];
}
#define cpu_of(rq) ((rq)->cpu)
unsigned long arch_scale_cpu_capacity(int cpu);
unsigned long cpu_util_cfs(int cpu);
unsigned long cpu_util_cfs_boost(int cpu);
unsigned long effective_cpu_util(int cpu, unsigned long util_cfs, unsigned long *min, unsigned long *max);
unsigned long cpu_bw_dl(struct rq *rq);
bool uclamp_rq_is_capped(struct rq *rq);
unsigned long tick_nohz_get_idle_calls_cpu(int cpu);
unsigned int arch_scale_freq_ref(int cpu);
bool arch_scale_freq_invariant(void);
/* No sched_ext. */
static inline unsigned long scx_cpuperf_target(int cpu) { (void)cpu; return 0; }
static inline bool scx_switched_all(void) { return false; }
/* A quarter of headroom; the frequency that gives `util` of `capacity`. */
static inline unsigned long map_util_perf(unsigned long util) { return util + util / 4; }
static inline unsigned long map_util_freq(unsigned long util, unsigned long freq, unsigned long capacity) { return freq * util / capacity; }

/* ---- cpufreq --------------------------------------------------------------------------------------------------------- */

#define CPUFREQ_NAME_LEN 16
#define CPUFREQ_GOV_DYNAMIC_SWITCHING BIT(0)
#define CPUFREQ_GOV_STRICT_TARGET BIT(1)
#define CPUFREQ_NEED_UPDATE_LIMITS BIT(0)
#define CPUFREQ_RELATION_L 0
#define CPUFREQ_RELATION_H 1
#define CPUFREQ_RELATION_C 2
#define CPUFREQ_RELATION_LE (CPUFREQ_RELATION_L | BIT(2))
#define CPUFREQ_RELATION_CE (CPUFREQ_RELATION_C | BIT(2))

struct cpufreq_governor;
struct kobject { int unused; };
struct cpufreq_policy {
	cpumask_var_t cpus, related_cpus, real_cpus;
	unsigned int cpu, min, max, cur;
	struct { unsigned int max_freq, min_freq; } cpuinfo;
	bool fast_switch_possible, fast_switch_enabled, dvfs_possible_from_any_cpu;
	struct cpufreq_governor *governor;
	void *governor_data;
	struct kobject kobj;
	/* Ours. */
	u32 schedtwin_domain, schedtwin_rate_limit_us;
};

struct cpufreq_governor {
	char name[CPUFREQ_NAME_LEN];
	int (*init)(struct cpufreq_policy *policy);
	void (*exit)(struct cpufreq_policy *policy);
	int (*start)(struct cpufreq_policy *policy);
	void (*stop)(struct cpufreq_policy *policy);
	void (*limits)(struct cpufreq_policy *policy);
	struct list_head governor_list;
	struct module *owner;
	u8 flags;
};

struct update_util_data { void (*func)(struct update_util_data *data, u64 time, unsigned int flags); };
void cpufreq_add_update_util_hook(int cpu, struct update_util_data *data,
				  void (*func)(struct update_util_data *data, u64 time, unsigned int flags));
void cpufreq_remove_update_util_hook(int cpu);
bool cpufreq_this_cpu_can_update(struct cpufreq_policy *policy);
unsigned int cpufreq_driver_resolve_freq(struct cpufreq_policy *policy, unsigned int khz);
unsigned int cpufreq_driver_fast_switch(struct cpufreq_policy *policy, unsigned int khz);
int __cpufreq_driver_target(struct cpufreq_policy *policy, unsigned int khz, unsigned int relation);
#define cpufreq_driver_target(policy, khz, relation) __cpufreq_driver_target(policy, khz, relation)
int cpufreq_register_governor(struct cpufreq_governor *governor);
#define cpufreq_governor_init(governor) \
	static int __init governor##_init(void) { return cpufreq_register_governor(&governor); } \
	core_initcall(governor##_init)
static inline bool policy_is_shared(struct cpufreq_policy *policy) { return cpumask_weight(policy->cpus) > 1; }
static inline void cpufreq_enable_fast_switch(struct cpufreq_policy *policy) { policy->fast_switch_enabled = policy->fast_switch_possible; }
static inline void cpufreq_disable_fast_switch(struct cpufreq_policy *policy) { policy->fast_switch_enabled = false; }
static inline unsigned int cpufreq_policy_transition_delay_us(struct cpufreq_policy *policy) { return policy->schedtwin_rate_limit_us; }
/* The twin applies limits itself. */
static inline void cpufreq_policy_apply_limits(struct cpufreq_policy *policy) { (void)policy; }
static inline bool cpufreq_driver_test_flags(u16 flags) { (void)flags; return false; }
static inline bool cpufreq_driver_has_adjust_perf(void) { return false; }
#define cpufreq_driver_adjust_perf(...) schedtwin_refuse("a governor from a tree cannot use adjust_perf: line", __LINE__)
static inline bool have_governor_per_policy(void) { return true; }
#define em_rebuild_sched_domains() ((void)0)
#define rebuild_sched_domains_energy() ((void)0)

/* ---- files in sysfs, which nobody reads ------------------------------------------------------------------------------ */

struct attribute { const char *name; };
struct attribute_group { struct attribute **attrs; };
struct gov_attr_set {
	struct kobject kobj;
	struct list_head policy_list;
	struct mutex update_lock;
	int usage_count;
};
struct governor_attr {
	struct attribute attr;
	ssize_t (*show)(struct gov_attr_set *set, char *text);
	ssize_t (*store)(struct gov_attr_set *set, const char *text, size_t count);
};
struct sysfs_ops { int unused; };
static const struct sysfs_ops governor_sysfs_ops __maybe_unused;
struct kobj_type {
	const struct attribute_group **default_groups;
	const struct sysfs_ops *sysfs_ops;
	void (*release)(struct kobject *kobject);
};
#define __ATTR_RW(file) { .attr = { .name = #file }, .show = file##_show, .store = file##_store }
#define __ATTR_RO(file) { .attr = { .name = #file }, .show = file##_show }
#define ATTRIBUTE_GROUPS(set) \
	static const struct attribute_group set##_group = { .attrs = set##_attrs }; \
	static const struct attribute_group *set##_groups[] = { &set##_group, NULL }
static inline struct gov_attr_set *to_gov_attr_set(struct kobject *kobject) { return container_of(kobject, struct gov_attr_set, kobj); }
static inline void gov_attr_set_init(struct gov_attr_set *set, struct list_head *entry)
{
	INIT_LIST_HEAD(&set->policy_list);
	set->usage_count = 1;
	list_add(entry, &set->policy_list);
}
static inline void gov_attr_set_get(struct gov_attr_set *set, struct list_head *entry)
{
	set->usage_count++;
	list_add(entry, &set->policy_list);
}
static inline unsigned int gov_attr_set_put(struct gov_attr_set *set, struct list_head *entry)
{
	list_del(entry);
	return --set->usage_count;
}
static inline struct kobject *get_governor_parent_kobj(struct cpufreq_policy *policy) { return &policy->kobj; }
#define kobject_init_and_add(kobject, type, parent, ...) ((void)(kobject), (void)(type), (void)(parent), 0)
#define kobject_put(kobject) ((void)(kobject))
#define sprintf(text, ...) ((void)(text), 0)
#define sysfs_emit(text, ...) ((void)(text), 0)
static inline int kstrtouint(const char *text, unsigned int base, unsigned int *number) { (void)text; (void)base; *number = 0; return -EINVAL; }

/* ---- the way to a driver that sleeps, gone through at once ----------------------------------------------------------- */

struct task_struct;
struct irq_work { void (*func)(struct irq_work *work); };
struct kthread_work { void (*func)(struct kthread_work *work); };
struct kthread_worker { int unused; };
struct work_struct { void (*func)(struct work_struct *work); };
struct sched_attr {
	u32 size, sched_policy;
	u64 sched_flags;
	s32 sched_nice;
	u32 sched_priority;
	u64 sched_runtime, sched_deadline, sched_period;
	u32 sched_util_min, sched_util_max;
};
#define init_irq_work(work, function) ((void)((work)->func = (function)))
static inline bool irq_work_queue(struct irq_work *work) { work->func(work); return true; }
#define irq_work_sync(work) ((void)(work))
#define kthread_init_work(work, function) ((void)((work)->func = (function)))
#define kthread_init_worker(worker) ((void)(worker))
static inline bool kthread_queue_work(struct kthread_worker *worker, struct kthread_work *work) { (void)worker; work->func(work); return true; }
#define kthread_flush_worker(worker) ((void)(worker))
#define kthread_cancel_work_sync(work) ((void)(work))
#define kthread_worker_fn NULL
extern char schedtwin_thread[];
#define kthread_create(function, data, ...) ((struct task_struct *)schedtwin_thread)
#define kthread_stop(thread) ((void)(thread))
#define kthread_bind_mask(thread, mask) ((void)(thread))
#define set_cpus_allowed_ptr(thread, mask) ((void)(thread), 0)
#define sched_setattr_nocheck(thread, attr) ((void)(thread), (void)(attr), 0)
#define wake_up_process(thread) ((void)(thread))
#define DECLARE_WORK(name, function) struct work_struct name = { function }
#define schedule_work(work) ((void)(work))

#endif
