/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What newidle balancing and balancing for CPUs without a tick take for granted beside kernel.h. All CPUs do
 * housekeeping; averages are refreshed by a mark that says whether something is left; a pass costs 1 ns.
 */
#undef group_balance_mask
#undef group_balance_cpu
#define group_balance_mask(group) (&(group)->balance_mask)
#define group_balance_cpu(group) cpumask_first(&(group)->balance_mask)

#define HZ 250
#define LOAD_AVG_PERIOD 32
/* At this HZ a jiffy is 4 ms. */
#define msecs_to_jiffies(ms) (((ms) + 3) / 4)
#define clamp(value, low, high) min(max(value, low), high)
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define __must_hold(lock)
#define SD_BALANCE_NEWIDLE 1
#define NOHZ_BALANCE_KICK 1
#define NOHZ_STATS_KICK 2
#define NOHZ_NEWILB_KICK 4
#define NOHZ_NEXT_KICK 8
#define NOHZ_KICK_MASK (NOHZ_BALANCE_KICK | NOHZ_STATS_KICK | NOHZ_NEXT_KICK)
#define nohz_flags(cpu) (&cpu_rq(cpu)->nohz_flags)
#define SCHED_WARN_ON(condition) WARN_ON_ONCE(condition)

static struct cpumask nohz_mask;
static struct {
	struct cpumask *idle_cpus_mask;
	int nr_cpus;
	union { int has_blocked, has_blocked_load; };
	int needs_update;
	unsigned long next_balance, next_blocked;
} nohz = { &nohz_mask };

static int FEATURE_NI_RANDOM, FEATURE_NI_RATE = 1;
static unsigned long max_load_balance_interval = HZ * 8 / 10;
static struct sched_domain *per_cpu_sd_asym_packing[CPUS_MAX];
#ifdef FORM_7_3
#define STAMP_OF(domain) ((domain)->newidle_stamp)
#else
/* Nobody looks at it. */
#define STAMP_OF(domain) 0
#endif
/* Nobody else balances meanwhile. */
#ifndef SINCE_6_18
static int sched_balance_running;
#define atomic_set_release(at, value) ((void)(*(at) = (value)))
#endif
static int balancing;
#define spin_trylock(lock) 1
#define spin_unlock(lock) ((void)(lock))
#define atomic_cmpxchg_acquire(at, old, new) ({ int was_ = *(at); if (was_ == (old)) *(at) = (new); was_; })
#define atomic_read(at) (*(at))
#define atomic_inc(at) ((void)++*(at))
#define atomic_dec(at) ((void)--*(at))
#define atomic_or(bits, at) ((void)(*(at) |= (bits)))
#define atomic_fetch_or(bits, at) ({ int was_ = *(at); *(at) |= (bits); was_; })
#define atomic_fetch_andnot(bits, at) ({ int was_ = *(at); *(at) &= ~(bits); was_; })
#define smp_mb() ((void)0)
#define smp_mb__after_atomic() ((void)0)
#undef READ_ONCE
#undef WRITE_ONCE
#define READ_ONCE(value) (value)
#define WRITE_ONCE(place, value) ((void)((place) = (value)))
#define rcu_dereference_sched_domain(pointer) (pointer)
#define rcu_dereference_check_sched_domain(pointer) (pointer)
#define rcu_dereference_all(pointer) (pointer)
#define rq_unpin_lock(rq, flags) ((void)(flags))
#define rq_repin_lock(rq, flags) ((void)(flags))
#define rq_unlock_irqrestore(rq, flags) ((void)(flags))
#define raw_spin_rq_lock(rq) ((void)0)
#define raw_spin_rq_unlock(rq) ((void)0)
#define rq_clock(rq) ((rq)->clock_task)
#define rq_modified_begin(rq, class) ((void)0)
#define rq_modified_above(rq, class) 0
#define on_null_domain(rq) (!(rq)->sd)
#define housekeeping_cpu(cpu, type) true
#define housekeeping_cpumask(type) (&every_cpu)
#define cpumask_set_cpu(cpu, mask) ((void)((mask)->bits |= 1ULL << (cpu)))
#define cpumask_clear_cpu(cpu, mask) ((void)((mask)->bits &= ~(1ULL << (cpu))))
#define cpumask_empty(mask) (!(mask)->bits)
#define need_resched() (cpu_rq(executing_cpu)->resched)
#define get_rd_overloaded(root) ((root)->overloaded)
#ifndef nr_cpu_ids
#define nr_cpu_ids CPUS_MAX
#endif
#define for_each_domain(cpu, domain) for (domain = cpu_rq(cpu)->sd; domain; domain = domain->parent)
#define per_cpu_sd_balance_shared per_cpu_sd_llc_shared
#define smp_call_function_single_async(cpu, data) ((void)(cpu_rq(cpu)->kicked = 1))
/* Of no task. */
#define update_misfit_status(task, rq) ((void)(asym_capacities && ((rq)->misfit_task_load = 0)))

static u64 clock_now, clock_reads;
#define sched_clock_cpu(cpu) (clock_now + clock_reads++)
#define sched_clock() clock_now

/* Knuth's MMIX generator, of which the upper half is taken, as the twin draws. */
static u32 sched_rng(void)
{
	u64 *state = &cpu_rq(executing_cpu)->rng;

	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 32;
}

static void refresh_blocked(int cpu)
{
	struct rq *rq = cpu_rq(cpu);

	rq->last_blocked_load_update_tick = jiffies;
	if (!rq->still_blocked)
		rq->has_blocked_load = 0;
}
#define sched_balance_update_blocked_averages(cpu) refresh_blocked(cpu)
#define update_blocked_averages(cpu) refresh_blocked(cpu)
#define __sched_balance_update_blocked_averages(rq) refresh_blocked((rq)->cpu)

#ifdef FORM_6_1
#define sched_balance_domains rebalance_domains
#endif
