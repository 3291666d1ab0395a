// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Oracle for cache-aware scheduling: functions cut out of a kernel tree's own kernel/sched/fair.c around eight CPUs, a few tasks
 * and the groups of three processes.
 *
 * Replaced: locks, references, per-CPU memory; work at return to user mode (a task has it or not). No NUMA balancing.
 */
#include "kernel_types.h"
#include "protocol.h"
#include <limits.h>

enum { CPUS = 8, TASKS = 8, PROCESSES = 3 };

#define NICE_0_LOAD (1024L << 10)
#define fits_capacity(value, max) ((value) * 1280 < (max) * 1024)
#define clamp_t(type, value, low, high) \
	({ type v_ = (value); v_ < (type)(low) ? (type)(low) : v_ > (type)(high) ? (type)(high) : v_; })
#define time_before(a, b) ((long)((a) - (b)) < 0)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define div64_u64(a, b) ((u64)(a) / (u64)(b))
#define div64_s64(a, b) ((s64)(a) / (s64)(b))
#define PF_EXITING 1
#define PF_KTHREAD 2
#define TWA_RESUME 1
#define ENOMEM 12
#define GFP_KERNEL 0
#define __percpu
#define __free(release)
#define WARN_ON_ONCE(condition) do { if (condition) abort(); } while (0)

struct cpumask { u64 bits; };
typedef struct cpumask *cpumask_var_t;
#define CPUMASK_VAR_NULL NULL
static struct cpumask scan_mask, online = { (1 << CPUS) - 1 };
#define cpu_online_mask (&online)
#define zalloc_cpumask_var(mask, flags) (*(mask) = &scan_mask, scan_mask.bits = 0, true)
#define cpumask_copy(to, from) (*(to) = *(from))
#define cpumask_andnot(to, a, b) ((void)((to)->bits = (a)->bits & ~(b)->bits))
#define for_each_cpu(cpu, mask) for ((cpu) = 0; (cpu) < CPUS; (cpu)++) if ((mask)->bits >> (cpu) & 1)
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < CPUS; (cpu)++)

struct sched_cache_time { u64 runtime; unsigned long epoch; };
struct sched_cache_group {
	struct sched_cache_time *pcpu_sched;
	int lock, refcnt;
	unsigned long epoch;
	u64 nr_running_avg;
	unsigned long next_scan, footprint;
	int cpu;
};
struct mm_struct { struct sched_cache_group *sched_cache_grp; int nr_threads; };
struct callback_head { struct callback_head *next; };
struct sched_entity { int sched_delayed; };
struct task_struct {
	struct sched_entity se;
	struct sched_cache_group *sched_cache_grp;
	struct mm_struct *mm;
	struct callback_head cache_work;
	const int *sched_class;
	int flags, cpu, queued, preferred_llc, pref_llc_queued;
};
struct sched_domain { struct cpumask span; unsigned llc_max, llc_counts[CPUS]; };
struct sched_domain_shared { unsigned long util_avg, capacity; };
struct rq {
	int cpu, cpu_epoch_lock;
	u64 cpu_runtime;
	unsigned long cpu_epoch, cpu_epoch_next;
	unsigned nr_pref_llc_running, nr_llc_running;
	struct sched_domain *sd;
	struct task_struct *curr;
};

static const int fair_sched_class;
static struct rq rqs[CPUS];
static struct sched_domain bases[CPUS], llcs[CPUS];
static struct sched_domain_shared two_caches[2], *per_cpu_sd_llc_shared[CPUS];
static struct sched_domain *per_cpu_sd_llc[CPUS];
static int per_cpu_sd_llc_id[CPUS], per_cpu_sd_llc_size[CPUS];
static struct task_struct tasks[TASKS], runner, nobody, *current;
static struct mm_struct mms[PROCESSES];
static struct sched_cache_group groups[PROCESSES];
static struct sched_cache_time times[PROCESSES][CPUS];
static int nr_tasks, executing_cpu;
static unsigned long jiffies;
static unsigned cpu_smt_num_threads, llc_aggr_tolerance, llc_epoch_period, llc_epoch_affinity_timeout,
	llc_imb_pct, llc_overaggr_pct;

#define cpu_rq(cpu) (&rqs[cpu])
#define cpu_of(rq) ((rq)->cpu)
#define per_cpu(variable, cpu) per_cpu_##variable[cpu]
#define per_cpu_ptr(pointer, cpu) (&(pointer)[cpu])
#define raw_smp_processor_id() executing_cpu
#define task_cpu(task) ((task)->cpu)
#define task_llc(task) per_cpu(sd_llc_id, task_cpu(task))
#define get_nr_threads(task) ((task)->mm->nr_threads)
#define task_running_on_cpu(number, task) ((task)->queued && (task)->cpu == (number))
#define sched_domain_span(domain) (&(domain)->span)
#define sched_cache_enabled() true
#define rcu_dereference_all(pointer) (pointer)
#define rcu_access_pointer(pointer) (pointer)
#define task_cache_group_get(task) ((task)->sched_cache_grp)
#define task_work_add(task, work, mode) ((void)((work)->next = NULL))
#define try_cmpxchg(at, old, new) (*(at) == *(old) && (*(at) = (new), true))
#define lockdep_assert_held(lock) ((void)0)
#define no_guard(...) ((void)0)
#define guard(kind) no_guard
#define scoped_guard(...) if (1)
#define raw_spin_lock_init(lock) ((void)0)
#define refcount_set(at, value) ((void)(*(at) = (value)))
#define smp_store_release(at, value) ((void)(*(at) = (value)))
#define free_percpu(pointer) ((void)0)
#define kzalloc_obj(object) new_group()

static struct sched_cache_group *made;
static struct sched_cache_group *new_group(void)
{
	return made;
}

#include "sched_cache_extract.h"

static const int layouts[][5] = { { 4, 4 }, { 2, 2, 2, 2 }, { 1, 2, 5 }, { 6, 2 } };

static void machine(const int *sizes)
{
	int cpu = 0, nr = 0;

	while (sizes[nr])
		nr++;
	memset(rqs, 0, sizeof(rqs));
	memset(bases, 0, sizeof(bases));
	memset(mms, 0, sizeof(mms));
	memset(groups, 0, sizeof(groups));
	memset(times, 0, sizeof(times));
	nr_tasks = 0;
	jiffies = 0;
	nobody.flags = PF_KTHREAD;
	for (int llc = 0; llc < nr; llc++) {
		llcs[llc].span.bits = ((1ULL << sizes[llc]) - 1) << cpu;
		for (int last = cpu + sizes[llc]; cpu < last; cpu++) {
			rqs[cpu].cpu = cpu;
			rqs[cpu].curr = &nobody;
			rqs[cpu].sd = &bases[cpu];
			bases[cpu].llc_max = nr;
			per_cpu_sd_llc[cpu] = sizes[llc] > 1 ? &llcs[llc] : NULL;
			per_cpu_sd_llc_id[cpu] = llc;
			per_cpu_sd_llc_size[cpu] = sizes[llc];
		}
	}
}

static void begin(void)
{
	llc_aggr_tolerance = llc_epoch_period = cpu_smt_num_threads = 1;
	llc_epoch_affinity_timeout = 5;
	llc_overaggr_pct = 50;
	llc_imb_pct = 20;
	machine(layouts[0]);
}

static void report(int cpu, const struct task_struct *task)
{
	const struct rq *rq = &rqs[cpu];
	const struct sched_cache_group *grp = task->mm->sched_cache_grp;
	word counts = 0;

	out(rq->cpu_runtime);
	out(rq->cpu_epoch);
	out(rq->cpu_epoch_next);
	out(rq->nr_pref_llc_running);
	for (int llc = 0; llc < CPUS; llc++)
		counts += (word)rq->sd->llc_counts[llc] << 8 * llc;
	out(counts);
	out(grp->pcpu_sched[cpu].runtime);
	out(grp->pcpu_sched[cpu].epoch);
	out(grp->epoch);
	out(grp->next_scan);
	out(grp->nr_running_avg);
	out((s64)grp->cpu);
	out((s64)task->preferred_llc);
	out(task->cache_work.next != &task->cache_work);
}

static void fork_task(int process)
{
	struct task_struct *task = &tasks[nr_tasks++];
	struct mm_struct *mm = &mms[process];

	memset(task, 0, sizeof(*task));
	task->sched_class = &fair_sched_class;
	task->cache_work.next = &task->cache_work;
	task->preferred_llc = -1;
	task->mm = mm;
	if (!mm->sched_cache_grp) {
		made = &groups[process];
		mm_init_sched(mm, times[process]);
	}
	task->sched_cache_grp = mm->sched_cache_grp;
	mm->nr_threads++;
}

static void operate(word op, const word *arg)
{
	struct task_struct *task = &tasks[op - OP_FIRST == 3 || op - OP_FIRST == 9 ? arg[0] : arg[1] % TASKS];

	switch (op - OP_FIRST) {
	case 0: /* machine */
		cpu_smt_num_threads = arg[1];
		llc_aggr_tolerance = arg[2];
		llc_epoch_period = arg[3];
		llc_epoch_affinity_timeout = arg[4];
		llc_overaggr_pct = 50;
		llc_imb_pct = 20;
		machine(layouts[arg[0]]);
		break;
	case 1: /* limits */
		llc_overaggr_pct = arg[0];
		llc_imb_pct = arg[1];
		break;
	case 2: /* fork */
		jiffies = arg[1];
		fork_task(arg[0]);
		break;
	case 3: /* exit */
		task->flags |= PF_EXITING;
		task->sched_cache_grp = NULL;
		task->mm->nr_threads--;
		break;
	case 4: /* account */
		jiffies = arg[3];
		account_mm_sched(&rqs[arg[0]], task, arg[2]);
		report(arg[0], task);
		break;
	case 5: /* tick */
		task_tick_cache(&rqs[arg[0]], task);
		report(arg[0], task);
		break;
	case 6: /* work */
		jiffies = arg[2];
		executing_cpu = arg[0];
		if (!task->queued)
			task->cpu = arg[0];
		current = task;
		runner.sched_cache_grp = task->sched_cache_grp;
		for (int cpu = 0; cpu < CPUS; cpu++)
			rqs[cpu].curr = arg[3] >> cpu & 1 ? &runner : &nobody;
		task_cache_work(&task->cache_work);
		report(arg[0], task);
		break;
	case 7: /* enqueue */
		task->cpu = arg[0];
		account_llc_enqueue(&rqs[arg[0]], task);
		task->queued = 1;
		report(arg[0], task);
		break;
	case 8: /* dequeue */
		account_llc_dequeue(&rqs[arg[0]], task);
		task->queued = 0;
		report(arg[0], task);
		break;
	case 9: /* delay, as set_delayed() and clear_delayed() */
		if (arg[1]) {
			pref_llc_running_dec(&rqs[task->cpu], task);
			task->se.sched_delayed = 1;
		} else {
			task->se.sched_delayed = 0;
			pref_llc_running_inc(&rqs[task->cpu], task);
		}
		report(task->cpu, task);
		break;
	case 10: /* cross: CPU 0 is the source's, CPU 1 the destination's */
		two_caches[0] = (struct sched_domain_shared){ arg[0], arg[1] };
		two_caches[1] = (struct sched_domain_shared){ arg[2], arg[3] };
		per_cpu_sd_llc_shared[0] = &two_caches[0];
		per_cpu_sd_llc_shared[1] = &two_caches[1];
		out(can_migrate_llc(0, 1, arg[4], arg[5]));
		break;
	}
}

int main(void)
{
	return serve(begin, operate);
}
