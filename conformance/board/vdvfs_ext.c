// SPDX-License-Identifier: GPL-2.0
/* Prints the inputs and results of sched_ext's decisions into the trace: the default choice of a CPU, each task that enters a dispatch queue,
 * each consumption with the whole queue, each pick. What each line says: README.md. A kernel without sched_ext compiles this to nothing. */
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/vdvfs.h>
#include "sched.h"

#ifdef CONFIG_SCHED_CLASS_EXT
#define PRINTER static noinline __noclone

/* As the class has them, in its order: the idle CPUs, and those of which all siblings are idle. */
struct idle_masks { cpumask_var_t cpu, smt; };
static struct idle_masks *idle_masks;
static int __percpu *cursor;	/* of cpumask_any_distribute() */

static unsigned long bits(const struct cpumask *mask) { return mask ? cpumask_bits(mask)[0] : 0; }
static struct task_struct *head_of(struct scx_dispatch_q *dsq)
{
	return list_first_entry_or_null(&dsq->list, struct task_struct, scx.dsq_list.node);
}
static int pid_of(struct task_struct *p) { return p ? p->pid : 0; }

/* ---- scx_select_cpu_dfl(p, prev, wake_flags, allowed, flags) ---- */
PRINTER int ext_select(struct kretprobe_instance *ri, struct pt_regs *r)
{
	struct task_struct *p = (void *)r->regs[0];
	int this = smp_processor_id();

	*(struct task_struct **)ri->data = p;
	trace_printk("ext_select pid=%d this=%d prev=%d fl=%llx cpus=%lx idle=%lx smt=%lx cursor=%d nr=%u flags=%llx\n", p->pid, this,
		     (int)r->regs[1], (u64)r->regs[2], bits(p->cpus_ptr) & (r->regs[3] ? bits((void *)r->regs[3]) : ~0ul),
		     idle_masks ? bits(idle_masks->cpu) : 0, idle_masks ? bits(idle_masks->smt) : 0, cursor ? *this_cpu_ptr(cursor) : -1,
		     cpu_rq(this)->scx.local_dsq.nr, (u64)r->regs[4]);
	return 0;
}
PRINTER int ext_selected(struct kretprobe_instance *ri, struct pt_regs *r)
{
	struct task_struct *p = *(struct task_struct **)ri->data;

	trace_printk("ext_selected pid=%d cpu=%d cursor=%d\n", p->pid, (int)r->regs[0], cursor ? *this_cpu_ptr(cursor) : -1);
	return 0;
}

/* ---- a task enters a queue: scx_dispatch_enqueue(sch, rq, dsq, p, slice, vtime, enq_flags) ---- */
PRINTER int ext_insert(struct kprobe *k, struct pt_regs *r)
{
	struct rq *rq = (void *)r->regs[1];
	struct scx_dispatch_q *dsq = (void *)r->regs[2];
	struct task_struct *p = (void *)r->regs[3];

	trace_printk("ext_insert pid=%d cpu=%d dsq=%llx nr=%u slice=%llu vtime=%llu fl=%llx\n", p->pid, cpu_of(rq), dsq->id, dsq->nr,
		     (u64)r->regs[4], (u64)r->regs[5], (u64)r->regs[6]);
	return 0;
}

/* ---- one is taken: scx_consume_dispatch_q(sch, rq, dsq, enq_flags) ---- */
PRINTER void ext_ent(struct task_struct *p)
{
	trace_printk("ext_ent pid=%d cpu=%d vtime=%llu cpus=%lx fixed=%d\n", p->pid, task_cpu(p), p->scx.dsq_vtime, bits(p->cpus_ptr),
		     is_migration_disabled(p));
}
PRINTER int ext_consume(struct kretprobe_instance *ri, struct pt_regs *r)
{
	struct rq *rq = (void *)r->regs[1];
	struct scx_dispatch_q *dsq = (void *)r->regs[2];
	struct task_struct *p;

	*(struct rq **)ri->data = rq;
	if (list_empty(&dsq->list))
		return 1;
	trace_printk("ext_consume cpu=%d dsq=%llx nr=%u\n", cpu_of(rq), dsq->id, dsq->nr);
	list_for_each_entry(p, &dsq->list, scx.dsq_list.node)
		ext_ent(p);
	return 0;
}
PRINTER int ext_consumed(struct kretprobe_instance *ri, struct pt_regs *r)
{
	struct rq *rq = *(struct rq **)ri->data;
	struct list_head *last = rq->scx.local_dsq.list.prev;

	trace_printk("ext_consumed cpu=%d got=%d nr=%u last=%d\n", cpu_of(rq), (int)(r->regs[0] & 1), rq->scx.local_dsq.nr,
		     last == &rq->scx.local_dsq.list ? 0 : pid_of(list_entry(last, struct task_struct, scx.dsq_list.node)));
	return 0;
}

/* ---- a pick: dispatch_one(rq, prev); its result 0 none, 1 the local queue's head, 2 prev goes on ---- */
struct picking { struct rq *rq; struct task_struct *prev; };
PRINTER int ext_pick(struct kretprobe_instance *ri, struct pt_regs *r)
{
	struct picking *a = (void *)ri->data;

	*a = (struct picking){ (void *)r->regs[0], (void *)r->regs[1] };
	trace_printk("ext_pick cpu=%d prev=%d ext=%d queued=%d slice=%llu nr=%u head=%d ct=%llu start=%llu\n", cpu_of(a->rq), a->prev->pid,
		     a->prev->sched_class == &ext_sched_class, !!(a->prev->scx.flags & SCX_TASK_QUEUED), a->prev->scx.slice,
		     a->rq->scx.local_dsq.nr, pid_of(head_of(&a->rq->scx.local_dsq)), a->rq->clock_task, a->prev->se.exec_start);
	return 0;
}
PRINTER int ext_picked(struct kretprobe_instance *ri, struct pt_regs *r)
{
	struct picking *a = (void *)ri->data;

	trace_printk("ext_picked cpu=%d verdict=%d slice=%llu nr=%u head=%d\n", cpu_of(a->rq), (int)r->regs[0], a->prev->scx.slice,
		     a->rq->scx.local_dsq.nr, pid_of(head_of(&a->rq->scx.local_dsq)));
	return 0;
}

/* ---- the class's own steps: each begins ---- */
static void step(const char *what, struct pt_regs *r, u64 more)
{
	struct task_struct *p = (void *)r->regs[1];

	trace_printk("ext_step %s cpu=%d pid=%d slice=%llu more=%llx\n", what, cpu_of((struct rq *)r->regs[0]), p->pid, p->scx.slice, more);
}
PRINTER int ext_enqueue(struct kprobe *k, struct pt_regs *r) { step("enqueue", r, r->regs[2]); return 0; }
PRINTER int ext_dequeue(struct kprobe *k, struct pt_regs *r) { step("dequeue", r, r->regs[2]); return 0; }
PRINTER int ext_set_next(struct kprobe *k, struct pt_regs *r) { step("set_next", r, r->regs[2]); return 0; }
PRINTER int ext_put_prev(struct kprobe *k, struct pt_regs *r) { step("put_prev", r, pid_of((void *)r->regs[2])); return 0; }
PRINTER int ext_tick(struct kprobe *k, struct pt_regs *r) { step("tick", r, r->regs[2]); return 0; }
PRINTER int ext_kick(struct kprobe *k, struct pt_regs *r)
{
	trace_printk("ext_kick cpu=%d fl=%llx\n", (int)r->regs[0], (u64)r->regs[1]);
	return 0;
}

static struct { const char *name; kprobe_pre_handler_t at; kretprobe_handler_t in, out; struct kretprobe probe; } functions[] = {
	{ "scx_select_cpu_dfl", NULL, ext_select, ext_selected },
	{ "scx_dispatch_enqueue", ext_insert },
	{ "scx_consume_dispatch_q", NULL, ext_consume, ext_consumed },
	{ "dispatch_one", NULL, ext_pick, ext_picked },
	{ "enqueue_task_scx", ext_enqueue },
	{ "dequeue_task_scx", ext_dequeue },
	{ "set_next_task_scx", ext_set_next },
	{ "put_prev_task_scx", ext_put_prev },
	{ "task_tick_scx", ext_tick },
	{ "scx_bpf_kick_cpu", ext_kick },
};
static int __init ext_start(void)
{
	int i, failed;

	if (!vdvfs_probes)
		return 0;
	idle_masks = (void *)kallsyms_lookup_name("scx_idle_global_masks");
	cursor = (void __percpu *)kallsyms_lookup_name("distribute_cpu_mask_prev");
	for (i = 0; i < ARRAY_SIZE(functions); i++) {
		struct kretprobe *p = &functions[i].probe;

		p->kp.symbol_name = functions[i].name;
		p->kp.pre_handler = functions[i].at;
		p->entry_handler = functions[i].in;
		p->handler = functions[i].out;
		p->data_size = sizeof(struct picking);
		failed = functions[i].at ? register_kprobe(&p->kp) : register_kretprobe(p);
		if (failed)
			pr_warn("vdvfs_ext: no probe of %s: %d\n", functions[i].name, failed);
	}
	if (!idle_masks || !cursor)
		pr_warn("vdvfs_ext: build with KALLSYMS_ALL\n");
	return 0;
}
late_initcall(ext_start);
#endif
