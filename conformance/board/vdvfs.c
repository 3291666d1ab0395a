// SPDX-License-Identifier: GPL-2.0
/* Virtual DVFS and idle states for the emulated board: a cpufreq policy, an energy model and a cpuidle driver for each domain of
 * the device tree's node /vdvfs (written by mkdtb.py), and a page that tells the tasks each CPU's speed.
 *
 *	vdvfs {
 *		domain@0 {
 *			cpus = <0 4>;				first CPU, how many
 *			opps = <300000 6352>, ...;		kHz, uW; ascending
 *			idle = <70 160 2000>, ...;		after WFI: entry, exit, residency in us; entry is only told, exit is taken
 *			idle-names = "c2", ...;
 *		};
 *	};
 */
#include <linux/arch_topology.h>
#include <linux/cpu.h>
#include <linux/cpufreq.h>
#include <linux/cpuidle.h>
#include <linux/delay.h>
#include <linux/energy_model.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/sched/topology.h>
#include <linux/vmalloc.h>
#include <asm/cpuidle.h>
#include <linux/vdvfs.h>
#include "../../kernel/sched/vdvfs_has.h"

/* vdvfs.fast=0: no fast switch, requests go through schedutil's thread. vdvfs.latency_us: the transition latency that
 * schedutil's rate limit starts from. */
static int fast = 1, latency_us = 500;
module_param(fast, int, 0444);
module_param(latency_us, int, 0444);

#define OPPS_MAX 24
#define DEEP_MAX 4
struct opp { u32 khz, uw; };
struct deep { u32 entry_us, exit_us, residency_us; };
static struct domain {
	u32 cpus[2];	/* first, count */
	int nr_opps, nr_deep;
	struct opp opp[OPPS_MAX];
	struct deep deep[DEEP_MAX];
	const char *deep_name[DEEP_MAX];
	struct cpufreq_frequency_table table[OPPS_MAX + 1];
	struct cpumask mask;
	struct cpuidle_driver idle;
} domains[VDVFS_CPUS];
static int nr_domains;
struct vdvfs_page *vdvfs_page;

static struct domain *domain_of(int cpu)
{
	int i;

	for (i = 0; i < nr_domains; i++)
		if (cpumask_test_cpu(cpu, &domains[i].mask))
			return &domains[i];
	return NULL;
}
static void publish(struct cpufreq_policy *p, unsigned int khz)
{
	int cpu;

	for_each_cpu(cpu, p->related_cpus)
		WRITE_ONCE(vdvfs_page->khz[cpu], khz);
}
static void publish_capacities(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		vdvfs_page->capacity[cpu] = topology_get_cpu_scale(cpu);
}

static int vd_init(struct cpufreq_policy *p)
{
	struct domain *d = domain_of(p->cpu);
	int i;

	if (!d)
		return -ENODEV;
	cpumask_and(p->cpus, &d->mask, cpu_possible_mask);
	for (i = 0; i < d->nr_opps; i++)
		d->table[i].frequency = d->opp[i].khz;
	d->table[i].frequency = CPUFREQ_TABLE_END;
	p->freq_table = d->table;
	p->cpuinfo.transition_latency = latency_us * 1000;
	p->fast_switch_possible = fast;
	p->dvfs_possible_from_any_cpu = true;
	p->cur = d->opp[0].khz;
	for_each_cpu(i, p->cpus) {
		vdvfs_page->khz[i] = p->cur;
		vdvfs_page->khz_max[i] = d->opp[d->nr_opps - 1].khz;
	}
	publish_capacities();
	return 0;
}
static int vd_target(struct cpufreq_policy *p, unsigned int idx)
{
	publish(p, p->freq_table[idx].frequency);
	return 0;
}
static unsigned int vd_fast(struct cpufreq_policy *p, unsigned int khz)
{
	struct domain *d = domain_of(p->cpu);
	int i;

	/* The lowest that is enough. */
	for (i = 0; i < d->nr_opps - 1 && d->opp[i].khz < khz; i++)
		;
	publish(p, d->opp[i].khz);
	return d->opp[i].khz;
}
static unsigned int vd_get(unsigned int cpu)
{
	return vdvfs_page->khz[cpu];
}
static int vd_power(struct device *dev, unsigned long *uw, unsigned long *khz)
{
	struct domain *d = domain_of(dev->id);
	int i;

	for (i = 0; i < d->nr_opps; i++)
		if (d->opp[i].khz >= *khz)
			break;
	if (i == d->nr_opps)
		return -EINVAL;
	*khz = d->opp[i].khz;
	*uw = d->opp[i].uw;
	return 0;
}
static void vd_em(struct cpufreq_policy *p)
{
	struct em_data_callback cb = EM_DATA_CB(vd_power);

	publish_capacities();
	em_dev_register_perf_domain(get_cpu_device(p->cpu), domain_of(p->cpu)->nr_opps, &cb, p->related_cpus, true);
}
static struct cpufreq_driver vd_driver = {
	.name = "vdvfs",
	.flags = CPUFREQ_HAVE_GOVERNOR_PER_POLICY | CPUFREQ_NEED_INITIAL_FREQ_CHECK,
	.init = vd_init,
	.verify = cpufreq_generic_frequency_table_verify,
	.target_index = vd_target,
	.fast_switch = vd_fast,
	.get = vd_get,
	.register_em = vd_em,
#ifdef VDVFS_GENERIC_ATTR	/* later releases show the frequencies unasked */
	.attr = cpufreq_generic_attr,
#endif
};

static int vd_mmap(struct file *f, struct vm_area_struct *vma)
{
	publish_capacities();
	return remap_vmalloc_range(vma, vdvfs_page, 0);
}
static const struct file_operations vd_fops = { .owner = THIS_MODULE, .mmap = vd_mmap };
static struct miscdevice vd_misc = { .minor = MISC_DYNAMIC_MINOR, .name = "vdvfs", .fops = &vd_fops };

static int __init read_domain(struct device_node *node, struct domain *d)
{
	int i;

	d->nr_opps = of_property_count_u32_elems(node, "opps") / 2;
	d->nr_deep = max(of_property_count_u32_elems(node, "idle"), 0) / 3;
	if (of_property_read_u32_array(node, "cpus", d->cpus, 2))
		return -EINVAL;
	if (d->nr_opps < 1 || d->nr_opps > OPPS_MAX || d->nr_deep > DEEP_MAX)
		return -EINVAL;
	of_property_read_u32_array(node, "opps", (u32 *)d->opp, 2 * d->nr_opps);
	if (d->nr_deep)
		of_property_read_u32_array(node, "idle", (u32 *)d->deep, 3 * d->nr_deep);
	of_property_read_string_array(node, "idle-names", d->deep_name, d->nr_deep);
	for (i = d->cpus[0]; i < d->cpus[0] + d->cpus[1]; i++)
		cpumask_set_cpu(i, &d->mask);
	return 0;
}
static int __init vd_start(void)
{
	struct device_node *board = of_find_node_by_path("/vdvfs"), *node;

	vdvfs_page = vmalloc_user(PAGE_SIZE);
	if (!vdvfs_page || !board)
		return -ENODEV;
	for_each_child_of_node(board, node)
		if (nr_domains == VDVFS_CPUS || read_domain(node, &domains[nr_domains]))
			pr_err("vdvfs: cannot read %pOF\n", node);
		else
			nr_domains++;
	misc_register(&vd_misc);
	return cpufreq_register_driver(&vd_driver);
}

static __cpuidle int vd_wfi(struct cpuidle_device *dev, struct cpuidle_driver *drv, int idx)
{
	cpu_do_idle();
	return idx;
}
/* Leaving a deep state takes its exit latency. */
static __cpuidle int vd_deep(struct cpuidle_device *dev, struct cpuidle_driver *drv, int idx)
{
	cpu_do_idle();
	udelay(container_of(drv, struct domain, idle)->deep[idx - 1].exit_us);
	return idx;
}
static int __init vd_idle(void)
{
	int i, k;

	for (i = 0; i < nr_domains; i++) {
		struct domain *d = &domains[i];
		struct cpuidle_driver *drv = &d->idle;

		drv->name = "vdidle";
		drv->owner = THIS_MODULE;
		drv->cpumask = &d->mask;
		drv->state_count = 1 + d->nr_deep;
		drv->states[0] = (struct cpuidle_state) {
			.enter = vd_wfi, .exit_latency = 1, .target_residency = 1, .name = "WFI", .desc = "WFI",
		};
		for (k = 0; k < d->nr_deep; k++) {
			struct cpuidle_state *s = &drv->states[1 + k];

			*s = (struct cpuidle_state) {
				.enter = vd_deep,
				.exit_latency = d->deep[k].entry_us + d->deep[k].exit_us,
				.target_residency = d->deep[k].residency_us,
			};
			strscpy(s->name, d->deep_name[k] ?: "deep", CPUIDLE_NAME_LEN);
			strscpy(s->desc, s->name, CPUIDLE_DESC_LEN);
		}
		cpuidle_register(drv, NULL);
	}
	return 0;
}
device_initcall(vd_start);
device_initcall(vd_idle);
