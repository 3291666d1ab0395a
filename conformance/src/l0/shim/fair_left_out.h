/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Empty definitions of what functions of the fair class call beyond the matter in hand: groups and
 * bandwidth control (not configured, but for WITH_BANDWIDTH), the fair server, statistics.
 */
static void update_load_add(struct load_weight *load, unsigned long weight)
{
	load->weight += weight;
	load->inv_weight = 0;
}

static void update_load_sub(struct load_weight *load, unsigned long weight)
{
	load->weight -= weight;
	load->inv_weight = 0;
}

static void update_load_set(struct load_weight *load, unsigned long weight)
{
	load->weight = weight;
	load->inv_weight = 0;
}

#ifndef WITH_BANDWIDTH
#define cfs_rq_throttled(cfs) 0
#define throttled_hierarchy(cfs) 0
#define check_enqueue_throttle(cfs) ((void)0)
#define check_cfs_rq_runtime(cfs) 0
#define account_cfs_rq_runtime(cfs, delta) 0
#define return_cfs_rq_runtime(cfs) ((void)0)
#define list_add_leaf_cfs_rq(cfs) ((void)0)
#define update_rq_clock(rq) ((void)0)
#endif
#define assert_list_leaf_cfs_rq(rq) ((void)0)
#define se_update_runnable(se) ((void)0)
#define update_cfs_group(se) ((void)0)
#ifndef KERNEL_7_3
#define reweight_eevdf(se, average, weight) warn(true, "a queued entity is reweighted")
#endif
#define cpufreq_update_util(rq, flags) ((void)0)
#define check_update_overutilized_status(rq) ((void)0)
#define update_misfit_status(task, rq) ((void)0)
#define hrtick_update(rq) ((void)0)
#define hrtick_enabled_fair(rq) 0
#define hrtick_start_fair(rq, task) ((void)0)
#define sched_fair_update_stop_tick(rq, task) ((void)0)
#define task_tick_core(rq, task) ((void)0)
#define task_tick_numa(rq, task) ((void)0)
#define static_branch_unlikely(key) 0
#define dl_server_active(server) 0
#define dl_server_update(server, delta) ((void)0)
#define dl_server_update_idle_time(rq, task) ((void)0)
#define dl_server_start(server) ((void)0)
#define rq_clock_skip_update(rq) ((void)0)
#define account_numa_enqueue(rq, task) ((void)0)
#define account_numa_dequeue(rq, task) ((void)0)
#define check_schedstat_required() ((void)0)
#define schedstat_enabled() 0
#define update_stats_enqueue_fair(cfs, se, flags) ((void)0)
#define update_stats_dequeue_fair(cfs, se, flags) ((void)0)
#define update_stats_wait_start_fair(cfs, se) ((void)0)
#define update_stats_wait_end_fair(cfs, se) ((void)0)
#define update_stats_curr_start(cfs, se) ((se)->exec_start = rq_clock_task(rq_of(cfs)))
#define update_curr_task(task, delta) ((void)0)
#define __schedstats_from_se(se) ((struct sched_statistics *)NULL)
#define __schedstat_set(variable, value) ((void)0)

struct sched_statistics { u64 slice_max, exec_max; };
