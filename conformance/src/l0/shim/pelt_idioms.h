/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What pelt.c, and what calls it, take for granted: no concurrency, no tracing, invariance by two numbers. */
#define SCHED_CAPACITY_SHIFT 10
#define SCHED_CAPACITY_SCALE (1L << SCHED_CAPACITY_SHIFT)
#define UTIL_AVG_UNCHANGED 0x80000000
#define UTIL_EST_WEIGHT_SHIFT 2
#define cap_scale(value, scale) ((value) * (scale) >> SCHED_CAPACITY_SHIFT)

#define lockdep_assert_rq_held(rq) ((void)0)
#define assert_clock_updated(rq) ((void)0)
#define smp_wmb() ((void)0)
#define smp_rmb() ((void)0)
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define rcu_dereference(pointer) (pointer)
#define raw_spin_lock(lock) ((void)(lock))
#define raw_spin_unlock(lock) ((void)(lock))
#define raw_spin_lock_irqsave(lock, flags) ((void)(lock), (void)((flags) = 0))
#define raw_spin_unlock_irqrestore(lock, flags) ((void)(lock), (void)(flags))
#define u64_u32_store(variable, value) ((variable) = (value))
#define u64_u32_load(variable) (variable)
#define u64_u32_store_copy(variable, copy, value) ((copy) = (variable) = (value))
#define u64_u32_load_copy(variable, copy) (variable)
#define trace_pelt_se_tp(x) ((void)0)
#define trace_pelt_cfs_tp(x) ((void)0)
#define trace_pelt_rt_tp(x) ((void)0)
#define trace_pelt_dl_tp(x) ((void)0)
#define trace_pelt_hw_tp(x) ((void)0)
#define trace_pelt_irq_tp(x) ((void)0)
#define trace_sched_util_est_cfs_tp(x) ((void)0)
#define trace_sched_util_est_se_tp(x) ((void)0)
#define cfs_rq_util_change(cfs, flags) ((void)0)
