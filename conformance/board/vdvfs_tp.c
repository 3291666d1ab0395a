// SPDX-License-Identifier: GPL-2.0
/* Prints the scheduler's bare tracepoints and the inputs of its decisions into the trace, all times in ns, and counts the events that take
 * a CPU from its task. What each line says: README.md. The name of an event in the trace is that of the function that prints it.
 *
 * Fields and functions that not every release has come from vdvfs_has.h, which the build makes from the kernel's own headers: SOME_F is a
 * field's format and SOME_A its argument, both empty where there is none. */
#include <linux/cpufreq.h>
#include <linux/cpuidle.h>
#include <linux/debugfs.h>
#include <linux/kprobes.h>
#include <linux/mmu_context.h>
#include <linux/module.h>
#include <linux/sched/cputime.h>
#include <linux/vdvfs.h>
#include "sched.h"
#include <trace/events/irq.h>
#include <trace/events/sched.h>
#include "vdvfs_has.h"

int vdvfs_probes = 1;	/* vdvfs_tp.probes=0: count only, for recordings as undisturbed as can be */
module_param_named(probes, vdvfs_probes, int, 0444);

/* Stays a function of its own, under its own name. */
#define PRINTER static noinline __noclone

#define AVG "lut=%llu pc=%u ls=%llu rs=%llu us=%u l=%lu r=%lu u=%lu ue=%u"
#define AVG_OF(a)                                                                                     \
	(a)->last_update_time, (a)->period_contrib, (a)->load_sum, (a)->runnable_sum, (a)->util_sum,   \
	(a)->load_avg, (a)->runnable_avg, (a)->util_avg, UTIL_EST(a) & ~UTIL_AVG_UNCHANGED
#define UNCHANGED(a) !!(UTIL_EST(a) & UTIL_AVG_UNCHANGED)

#ifdef CONFIG_FAIR_GROUP_SCHED
#define GROUP_OF(q) ((q)->tg->css.id)
#define OWNED(se) ((se)->my_q)
#else
#define GROUP_OF(q) 1
#define OWNED(se) ((struct cfs_rq *)NULL)
#endif
/* A task's pid, or the negative number of the group that the entity stands for. */
static int who(struct sched_entity *se)
{
	return !se ? 0 : OWNED(se) ? -GROUP_OF(OWNED(se)) : container_of(se, struct task_struct, se)->pid;
}

/* ---- averages ---- */
#define CFS_F " " AVG CFS_NR_F CFS_HQ_F CFS_HR_F CFS_HD_F CFS_AV_F CFS_AL_F CFS_ZV_F " cur=%d"
#define CFS_A(q)                                                                                      \
	AVG_OF(&(q)->avg) CFS_NR_A(q) CFS_HQ_A(q) CFS_HR_A(q) CFS_HD_A(q) CFS_AV_A(q) CFS_AL_A(q) CFS_ZV_A(q), who((q)->curr)
PRINTER void p_gcfs(struct cfs_rq *q)
{
	trace_printk("pelt_gcfs cpu=%d tg=%d" CFS_F "\n", cpu_of(rq_of(q)), GROUP_OF(q), CFS_A(q));
}
PRINTER void p_cfs(void *d, struct cfs_rq *q)
{
	if (q == &rq_of(q)->cfs)
		trace_printk("pelt_cfs cpu=%d" CFS_F "\n", cpu_of(rq_of(q)), CFS_A(q));
	else
		p_gcfs(q);
}
#define SE_F " " AVG " uf=%d w=%lu on=%d" SE_DLY_F " v=%llu" SE_D_F SE_VLAG_F SE_SL_F
#define SE_A(se)                                                                                      \
	AVG_OF(&(se)->avg), UNCHANGED(&(se)->avg), (se)->load.weight, (se)->on_rq SE_DLY_A(se),        \
	(se)->vruntime SE_D_A(se) SE_VLAG_A(se) SE_SL_A(se)
PRINTER void p_gse(struct sched_entity *se)
{
#ifdef CONFIG_FAIR_GROUP_SCHED
	trace_printk("pelt_gse tg=%d cpu=%d" SE_F " up=%d\n", GROUP_OF(se->my_q), cpu_of(rq_of(se->my_q)), SE_A(se), GROUP_OF(se->cfs_rq));
#endif
}
PRINTER void p_se(void *d, struct sched_entity *se)
{
	struct task_struct *p = container_of(se, struct task_struct, se);

	if (OWNED(se))
		p_gse(se);
	else
		trace_printk("pelt_se pid=%d cpu=%d" SE_F " up=%d\n", p->pid, task_cpu(p), SE_A(se), GROUP_OF(cfs_rq_of(se)));
}
PRINTER void p_ue_cfs(void *d, struct cfs_rq *q)
{
	trace_printk("ue_cfs cpu=%d ue=%u\n", cpu_of(rq_of(q)), UTIL_EST(&q->avg));
}
PRINTER void p_ue_se(void *d, struct sched_entity *se)
{
	trace_printk("ue_se pid=%d u=%lu ue=%u uf=%d\n", who(se), se->avg.util_avg, UTIL_EST(&se->avg) & ~UTIL_AVG_UNCHANGED,
		     UNCHANGED(&se->avg));
}
/* rt, dl and irq only where there is something to say */
static __always_inline void p_avg(const char *what, struct rq *rq, struct sched_avg *a)
{
	if (a->util_sum)
		trace_printk("%s cpu=%d lut=%llu pc=%u us=%u u=%lu\n", what, cpu_of(rq), a->last_update_time, a->period_contrib, a->util_sum, a->util_avg);
}
PRINTER void p_rt(void *d, struct rq *rq) { p_avg("pelt_rt", rq, &rq->avg_rt); }
PRINTER void p_dl(void *d, struct rq *rq) { p_avg("pelt_dl", rq, &rq->avg_dl); }
PRINTER void p_irq(void *d, struct rq *rq) { p_avg("pelt_irq", rq, &rq->avg_irq); }

/* ---- clocks and counts ---- */
PRINTER void p_nr(void *d, struct rq *rq, int change)
{
	trace_printk("nr cpu=%d nr=%u ch=%d cp=%llu\n", cpu_of(rq), rq->nr_running, change, rq->clock_pelt);
}
PRINTER void p_cap(void *d, struct rq *rq)
{
	static unsigned long last[NR_CPUS];

	if (last[cpu_of(rq)] != rq->cpu_capacity)
		trace_printk("cap cpu=%d cap=%lu\n", cpu_of(rq), last[cpu_of(rq)] = rq->cpu_capacity);
}
PRINTER void p_over(void *d, struct root_domain *rd, bool on)
{
	static int last = -1;

	if (xchg(&last, on) != on)
		trace_printk("overutilized on=%d\n", on);
}
PRINTER void p_energy(void *d, struct task_struct *p, int dst, unsigned long energy, unsigned long max_util, unsigned long busy)
{
	trace_printk("energy pid=%d dst=%d e=%lu max=%lu busy=%lu\n", p->pid, dst, energy, max_util, busy);
}
/* A run queue: at a switch (before it), and at waking (the task's last CPU, without its lock) and wakeup (the new one). */
static __always_inline void rq_line(struct rq *rq)
{
	trace_printk("rq cpu=%d clk=%llu ct=%llu cp=%llu lost=%lu irq=%llu rbw=%llu umin=%lu umax=%lu nr=%u\n", cpu_of(rq),
		     rq->clock, rq->clock_task, rq->clock_pelt, rq->lost_idle_time, rq->prev_irq_time, rq->dl.running_bw,
		     (unsigned long)uclamp_rq_get(rq, UCLAMP_MIN), (unsigned long)uclamp_rq_get(rq, UCLAMP_MAX), rq->nr_running);
}
static void count(void) { vdvfs_page->nev[smp_processor_id()]++; }
PRINTER void p_switch(void *d, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int state)
{
	count();
	if (vdvfs_probes)
		rq_line(this_rq());
}
PRINTER void p_wake(void *d, struct task_struct *p) { rq_line(task_rq(p)); }
PRINTER void p_run(void *d, struct task_struct *p, u64 runtime STAT_RUNTIME_MORE)
{
	trace_printk("run pid=%d ct=%llu cp=%llu\n", p->pid, task_rq(p)->clock_task, task_rq(p)->clock_pelt);
}
static void p_irq_exit(void *d, int irq, struct irqaction *action, int ret) { count(); }
static void p_softirq_exit(void *d, unsigned int vec) { count(); }
/* Interrupt time as it is charged: kept from clock_task, given to the interrupt signal. Without any the signal only ages, which p_irq tells. */
PRINTER int p_irqt(struct kprobe *k, struct pt_regs *r)
{
	struct rq *rq = (void *)r->regs[0];

	if (r->regs[1])
		trace_printk("irqt cpu=%d clk=%llu ct=%llu d=%llu irq=%llu\n", cpu_of(rq), rq->clock, rq->clock_task, (u64)r->regs[1],
			     rq->prev_irq_time);
	return 0;
}

/* ---- idle governors: the time to the next timer, without and with the tick, and afterwards how long the sleep was ---- */
static int sleep_in(struct kretprobe_instance *ri, struct pt_regs *r)
{
	*(ktime_t **)ri->data = (ktime_t *)r->regs[0];
	return 0;
}
PRINTER int sleep_out(struct kretprobe_instance *ri, struct pt_regs *r)
{
	trace_printk("sleep len=%lld tick=%lld\n", (s64)r->regs[0], **(ktime_t **)ri->data);
	return 0;
}
PRINTER int reflect(struct kprobe *k, struct pt_regs *r)
{
	struct cpuidle_device *d = (void *)r->regs[0];

	trace_printk("reflect st=%d res=%lld\n", (int)r->regs[1], d->last_residency_ns);
	return 0;
}

/* ---- schedutil: every call, and the frequency it computes whenever that differs from its last request ---- */
PRINTER int sugov(struct kprobe *k, struct pt_regs *r)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if ((unsigned long)per_cpu(cpufreq_update_util_data, cpu) == r->regs[0])
			trace_printk("sugov cpu=%d time=%llu fl=%x\n", cpu, r->regs[1], (unsigned int)r->regs[2]);
	return 0;
}
PRINTER int resolve(struct kprobe *k, struct pt_regs *r)
{
	struct cpufreq_policy *p = (void *)r->regs[0];

	trace_printk("resolve cpu=%u khz=%u\n", p->cpu, (unsigned int)r->regs[1]);
	return 0;
}

/* ---- the fair class: the whole of each queue with a choice, before a pick, a tick and a question of preemption ---- */
PRINTER void p_ent(struct sched_entity *se)
{
	trace_printk("ent who=%d v=%llu" SE_D_F SE_VLAG_F SE_SL_F SE_VP_F " w=%lu" SE_DLY_F "\n", who(se),
		     se->vruntime SE_D_A(se) SE_VLAG_A(se) SE_SL_A(se) SE_VP_A(se), se->load.weight SE_DLY_A(se));
}
PRINTER void p_queue(struct rq *rq, struct cfs_rq *q, const char *at)
{
	struct rb_node *node;

	trace_printk("queue cpu=%d tg=%d at=%s" CFS_NR_F CFS_AV_F CFS_AL_F CFS_ZV_F " cur=%d ct=%llu\n", cpu_of(rq), GROUP_OF(q),
		     at CFS_NR_A(q) CFS_AV_A(q) CFS_AL_A(q) CFS_ZV_A(q), who(q->curr), rq->clock_task);
	if (q->curr && q->curr->on_rq)
		p_ent(q->curr);
	for (node = rb_first_cached(&q->tasks_timeline); node; node = rb_next(node))
		p_ent(rb_entry(node, struct sched_entity, run_node));
}
static bool queues(struct rq *rq, const char *at)
{
	struct cfs_rq *q;
	bool any = false;

#ifdef CONFIG_FAIR_GROUP_SCHED
	list_for_each_entry(q, &rq->leaf_cfs_rq_list, leaf_cfs_rq_list)
#else
	for (q = &rq->cfs; q; q = NULL)
#endif
		if (CFS_NR(q) > 1) {
			p_queue(rq, q, at);
			any = true;
		}
	return any;
}
static int pick(struct kprobe *k, struct pt_regs *r) { queues((void *)r->regs[0], "pick"); return 0; }

struct asked { struct rq *rq; struct task_struct *p; int was; };
static bool ask(struct asked *a, struct pt_regs *r, const char *at)
{
	a->rq = (void *)r->regs[0];
	a->p = (void *)r->regs[1];
	a->was = test_tsk_need_resched(a->rq->curr);
	return queues(a->rq, at);
}
static int tick_in(struct kretprobe_instance *ri, struct pt_regs *r) { return !ask((void *)ri->data, r, "tick"); }
static int preempt_in(struct kretprobe_instance *ri, struct pt_regs *r) { return !ask((void *)ri->data, r, "wake"); }
PRINTER int tick_out(struct kretprobe_instance *ri, struct pt_regs *r)
{
	struct asked *a = (void *)ri->data;

	trace_printk("tick cpu=%d was=%d now=%d\n", cpu_of(a->rq), a->was, test_tsk_need_resched(a->rq->curr));
	return 0;
}
PRINTER int preempt_out(struct kretprobe_instance *ri, struct pt_regs *r)
{
	struct asked *a = (void *)ri->data;

	trace_printk("preempt cpu=%d pid=%d curr=%d was=%d now=%d\n", cpu_of(a->rq), a->p->pid, a->rq->curr->pid, a->was,
		     test_tsk_need_resched(a->rq->curr));
	return 0;
}

/* ---- placement: what select_task_rq_fair reads besides the averages, and what it says ---- */
static int idle_scan(int cpu)
{
	struct sched_domain_shared *s = rcu_dereference_sched(per_cpu(IDLE_SHARED, cpu));

	return s ? s->nr_idle_scan : -1;
}
static int idle_cores(int cpu)
{
	struct sched_domain_shared *s = rcu_dereference_sched(per_cpu(IDLE_SHARED, cpu));

	return s && s->has_idle_cores;
}
static unsigned long idle_now(void)
{
	unsigned long idle = 0;
	int cpu;

	for_each_online_cpu(cpu)
		idle |= (unsigned long)!!idle_cpu(cpu) << cpu;
	return idle;
}
static unsigned long load_of(int cpu) { return cpu_rq(cpu)->cfs.avg.load_avg; }
PRINTER int select_in(struct kretprobe_instance *ri, struct pt_regs *r)
{
	struct task_struct *p = (void *)r->regs[0];
	int this = smp_processor_id(), prev = r->regs[1];

	*(struct task_struct **)ri->data = p;
	trace_printk("select pid=%d this=%d prev=%d fl=%x cpus=%lx idle=%lx over=%d used=%d nr=%u sthis=%d sprev=%d lthis=%lu lprev=%lu lcur=%lu cthis=%d cprev=%d\n",
		     p->pid, this, prev, (unsigned int)r->regs[2], cpumask_bits(p->cpus_ptr)[0], idle_now(),
		     !!READ_ONCE(cpu_rq(this)->rd->overutilized), p->recent_used_cpu, cpu_rq(this)->nr_running, idle_scan(this),
		     idle_scan(prev), load_of(this), load_of(prev), current->se.avg.load_avg, idle_cores(this), idle_cores(prev));
	return 0;
}
PRINTER int select_out(struct kretprobe_instance *ri, struct pt_regs *r)
{
	struct task_struct *p = *(struct task_struct **)ri->data;

	trace_printk("selected pid=%d cpu=%d wf=%u pf=%u l=%lu u=%lu ue=%u\n", p->pid, (int)r->regs[0], current->wakee_flips,
		     p->wakee_flips, p->se.avg.load_avg, p->se.avg.util_avg, UTIL_EST(&p->se.avg) & ~UTIL_AVG_UNCHANGED);
	return 0;
}

/* ---- balancing: what a pass over a domain reads, the group and the queue that it finds ---- */
PRINTER int balance_in(struct kprobe *k, struct pt_regs *r)
{
	static DEFINE_PER_CPU(char [640], line);
	char *text = this_cpu_ptr(line);
	int this = r->regs[0], cpu, len = 0, dom = 0;
	struct sched_domain *sd = (void *)r->regs[2], *at;
	struct sched_group *group = sd->groups;

	for (at = cpu_rq(this)->sd; at && at != sd; at = at->parent)
		dom++;
	for_each_cpu(cpu, sched_domain_span(sd)) {
		struct rq *rq = cpu_rq(cpu);

		len += scnprintf(text + len, sizeof(line) - len, "%s%d:%u:%u:%lu:%lu:%lu:%u:%lu" RUNNABLE_F, len ? "," : "", cpu,
				 rq->nr_running, CFS_HQ(&rq->cfs), rq->cfs.avg.load_avg, rq->cfs.avg.runnable_avg, rq->cfs.avg.util_avg,
				 UTIL_EST(&rq->cfs.avg), rq->cpu_capacity RUNNABLE_A(&rq->cfs));
	}
	len += scnprintf(text + len, sizeof(line) - len, " groups=");
	do {
		len += scnprintf(text + len, sizeof(line) - len, "%s%lu:%d", group == sd->groups ? "" : ",", group->sgc->capacity,
				 group->sgc->imbalance);
	} while ((group = group->next) != sd->groups);
	trace_printk("balance cpu=%d dom=%d type=%d failed=%u idle=%lx queues=%s\n", this, dom, (int)r->regs[3], sd->nr_balance_failed,
		     idle_now(), text);
	return 0;
}
static int nothing_in(struct kretprobe_instance *ri, struct pt_regs *r) { return 0; }
PRINTER int group_out(struct kretprobe_instance *ri, struct pt_regs *r)
{
	struct sched_group *group = (void *)r->regs[0];

	trace_printk("src_group first=%d\n", group ? (int)cpumask_first(sched_group_span(group)) : -1);
	return 0;
}
PRINTER int queue_out(struct kretprobe_instance *ri, struct pt_regs *r)
{
	struct rq *rq = (void *)r->regs[0];

	trace_printk("src_rq cpu=%d\n", rq ? cpu_of(rq) : -1);
	return 0;
}

/* ---- which functions, by the names that releases gave them ---- */
static char absent[1024] = VDVFS_ABSENT;
static char *absent_text = absent;
static struct { const char *name[3]; kprobe_pre_handler_t at; kretprobe_handler_t in, out; struct kretprobe probe; } functions[] = {
	{ { "update_irq_load_avg" }, p_irqt },
	{ { "tick_nohz_get_sleep_length" }, NULL, sleep_in, sleep_out },
	{ { "cpuidle_reflect" }, reflect },
	{ { "sugov_update_shared" }, sugov },
	{ { "sugov_update_single_freq" }, sugov },
	{ { "cpufreq_driver_resolve_freq" }, resolve },
	{ { "pick_next_task_fair", "pick_task_fair" }, pick },
	{ { "task_tick_fair" }, NULL, tick_in, tick_out },
	{ { "check_preempt_wakeup_fair", "wakeup_preempt_fair", "check_preempt_wakeup" }, NULL, preempt_in, preempt_out },
	{ { "select_task_rq_fair" }, NULL, select_in, select_out },
	{ { "sched_balance_rq", "load_balance" }, balance_in },
	{ { "sched_balance_find_src_group", "find_busiest_group" }, NULL, nothing_in, group_out },
	{ { "sched_balance_find_src_rq", "find_busiest_queue" }, NULL, nothing_in, queue_out },
};
static void __init probe_functions(void)
{
	int i, k, failed;

	for (i = 0; i < ARRAY_SIZE(functions); i++) {
		struct kretprobe *p = &functions[i].probe;

		for (k = 0, failed = 1; failed && k < ARRAY_SIZE(functions[i].name) && functions[i].name[k]; k++) {
			memset(p, 0, sizeof(*p));
			p->kp.symbol_name = functions[i].name[k];
			p->kp.pre_handler = functions[i].at;
			p->entry_handler = functions[i].in;
			p->handler = functions[i].out;
			p->data_size = sizeof(struct asked);
			failed = functions[i].at ? register_kprobe(&p->kp) : register_kretprobe(p);
		}
		if (failed) {
			strlcat(absent, " probe:", sizeof(absent));
			strlcat(absent, functions[i].name[0], sizeof(absent));
		}
	}
}

static int __init tp_start(void)
{
	debugfs_create_str("absent", 0444, debugfs_create_dir("vdvfs", NULL), &absent_text);
	register_trace_sched_switch(p_switch, NULL);
	register_trace_irq_handler_exit(p_irq_exit, NULL);
	register_trace_softirq_exit(p_softirq_exit, NULL);
	if (!vdvfs_probes)
		return 0;
	REGISTER_PELT_CFS(p_cfs);
	REGISTER_PELT_SE(p_se);
	REGISTER_PELT_RT(p_rt);
	REGISTER_PELT_DL(p_dl);
	REGISTER_PELT_IRQ(p_irq);
	REGISTER_UTIL_EST_CFS(p_ue_cfs);
	REGISTER_UTIL_EST_SE(p_ue_se);
	REGISTER_NR_RUNNING(p_nr);
	REGISTER_CPU_CAPACITY(p_cap);
	REGISTER_OVERUTILIZED(p_over);
	REGISTER_COMPUTE_ENERGY(p_energy);
	register_trace_sched_stat_runtime(p_run, NULL);
	register_trace_sched_waking(p_wake, NULL);
	register_trace_sched_wakeup(p_wake, NULL);
	probe_functions();
	return 0;
}
late_initcall(tp_start);
